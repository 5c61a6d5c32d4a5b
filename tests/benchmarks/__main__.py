"""How fast releases are made and served: `make bench`. Not a test: nothing here fails on time."""

from tests.benchmarks import serving, speed

if __name__ == "__main__":
    speed.main([])
    serving.main([])
