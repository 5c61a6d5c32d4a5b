# `make demo` and `make test` do all the set-up themselves; they need Python ≥ 3.11 and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# of the tests: one more than processors, as some tests wait for what they have killed
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)

.PHONY: help install page demo serve test lint ogctests bench clean

help:
	@echo "make install   a virtual environment with .venv/bin/synthmap"
	@echo "make demo      make a region up, release it privately, verify, print the promise"
	@echo "make serve     the demo release over HTTP, with a worker that makes further ones"
	@echo "make test      lint, types, architecture, tests"
	@echo "make bench     benchmarks (not part of the tests)"

install: $(VENV)/.installed

# the last step compiles the kernels once, so that no user waits for it
$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[service]'  # builds the map's page, too
	@warm=$$(mktemp -d) && $(BIN)/synthmap demo --directory "$$warm" --workers 2000 >"$$warm/log" 2>&1 \
		&& $(BIN)/synthmap evaluate "$$warm"/releases/* --against "$$warm/region/spec.toml" >>"$$warm/log" 2>&1 \
		&& printf '\n[plan]\nmechanism = "histogram"\n' >>"$$warm/region/spec.toml" \
		&& $(BIN)/synthmap release "$$warm/region/spec.toml" >>"$$warm/log" 2>&1 \
		|| { cat "$$warm/log"; exit 1; }; rm -rf "$$warm"
	@touch $@

# the page at /map, anew when its sources have changed; it is shipped built, so that users need no npm
page: $(VENV)/.installed
	$(BIN)/python synthmap/service/web/build.py || echo "the map is not built; all else works"

$(VENV)/.installed-test: $(VENV)/.installed
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[test]'
	@touch $@

demo: install page
	$(BIN)/synthmap demo --directory demo

# on http://127.0.0.1:8080/; the curator's key is printed once
serve: install page
	@test -d demo/releases || $(MAKE) demo
	$(BIN)/synthmap up --directory demo --port 8080

# the OGC's own conformance tests pin old packages: they get an environment of their own
ogctests: $(VENV)-ogctests/.installed
$(VENV)-ogctests/.installed:
	$(PYTHON) -m venv $(VENV)-ogctests
	$(VENV)-ogctests/bin/pip install --quiet 'ogctests==0.1.15'
	@touch $@

lint: $(VENV)/.installed-test page
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/hadolint Dockerfile
	@$(BIN)/python synthmap/service/web/build.py --lint

test: lint
	$(BIN)/pytest --numprocesses $(WORKERS) --dist worksteal

bench: $(VENV)/.installed-test
	$(BIN)/python -m tests.benchmarks

clean:
	rm -rf $(VENV) $(VENV)-ogctests demo .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
