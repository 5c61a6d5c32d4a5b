"""Fuzz the readers in this process, with bounded memory: ``python -m tests.fuzz [TARGET …] [--examples N]``.

With ``--seconds`` each target is fuzzed that long by atheris, which follows the branches that synthmap's own code
takes; it must be installed (``pip install atheris``; wheels for CPython on Linux). The tests run the examples only.
Prints one line a target. Anything but synthmap's own errors ends the run, with the bytes that caused it.
"""

import argparse
import importlib.util
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from targets import Target, changed, targets

from synthmap.errors import SynthmapError

MEMORY = 1 << 30  # of address space, beyond what libraries and their threads have taken once the sample was read
CHANGES = st.lists(
    st.tuples(st.integers(0, 5), st.floats(0, 1), st.floats(0, 1), st.integers(0, 2**63 - 1)), min_size=1, max_size=6
)


def check(target: Target, data: bytes) -> bool:
    """Return whether `data` was read; anything but a refusal of synthmap's own comes out."""
    try:
        target.read(data)
    except SynthmapError as fault:
        if any(isinstance(one, MemoryError) for one in _behind(fault)):
            raise
        text = str(fault)
        if not text or len(text) > 20_000:
            raise AssertionError(f"a message of {len(text)} characters") from None
        return False
    return True


def _behind(fault: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, and those that it was made of."""
    while fault is not None:
        yield fault
        fault = fault.__context__


def bound() -> None:
    """Let this process take `MEMORY` more than it has now, and no more."""
    taken = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, most))


def by_examples(target: Target, examples: int) -> int:
    """Return how many of `examples` changed files were read all the same."""
    read = 0
    check(target, target.seed)
    bound()

    @settings(max_examples=examples, derandomize=True, database=None, deadline=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(CHANGES)
    def one(changes: list[tuple[int, float, float, int]]) -> None:
        nonlocal read
        read += check(target, changed(target.seed, changes))

    one()
    return read


def following(seconds: int) -> AbstractContextManager[object]:
    """Return a context in which what is imported of synthmap tells atheris its branches, if that is to fuzz at all."""
    if not seconds:
        return nullcontext()
    import atheris

    return atheris.instrument_imports(include=["synthmap", "pipelines"])


def by_branches(target: Target, seconds: int, corpus: Path) -> None:
    """Fuzz one target with atheris; the process ends with it."""
    import atheris

    with following(seconds):
        check(target, target.seed)  # what a reader imports late
    bound()
    (corpus / "seed").write_bytes(target.seed)
    atheris.Setup([sys.argv[0], f"-max_total_time={seconds}", str(corpus)], lambda data: check(target, data))
    atheris.Fuzz()


def main() -> int:
    words = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    words.add_argument("names", nargs="*", metavar="TARGET")
    words.add_argument("--examples", type=int, default=1000)
    words.add_argument("--seconds", type=int, default=0)
    asked = words.parse_args()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        with following(asked.seconds if importlib.util.find_spec("atheris") else 0):
            known = targets(place)
        if unknown := set(asked.names) - set(known):
            words.error(f"TARGET ({', '.join(sorted(unknown))}) must be one of {', '.join(known)}")
        if asked.seconds and importlib.util.find_spec("atheris") is None:
            words.error("--seconds must have atheris installed: pip install atheris")
        if asked.seconds and len(asked.names) == 1:
            corpus = place / "corpus"
            corpus.mkdir()
            by_branches(known[asked.names[0]], asked.seconds, corpus)
        for one in asked.names or known:
            if asked.seconds:
                line = [sys.executable, "-m", "tests.fuzz", one, "--seconds", str(asked.seconds)]
                if subprocess.run(line, check=False).returncode:
                    return 1
            else:
                examples = -(-asked.examples // known[one].costs)
                read = by_examples(known[one], examples)
                sys.stdout.write(f"{one}: {examples} changed files, {read} read all the same\n")
                sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
