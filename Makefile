# `make demo` and `make test` do all the set-up themselves; they need Python ≥ 3.11 and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
WORKERS ?= auto

.PHONY: help install demo test lint bench clean

help:
	@echo "make install   a virtual environment with .venv/bin/synthmap"
	@echo "make demo      make a region up, release it privately, verify, print the promise"
	@echo "make test      lint, types, architecture, tests"
	@echo "make bench     benchmarks (not part of the tests)"

install: $(VENV)/.installed

# the last step compiles the kernels once, so that no user waits for it
$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable .
	@warm=$$(mktemp -d) && $(BIN)/synthmap demo --directory "$$warm" --workers 2000 >"$$warm/log" 2>&1 \
		|| { cat "$$warm/log"; exit 1; }; rm -rf "$$warm"
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[test]'
	@touch $@

demo: install
	$(BIN)/synthmap demo --directory demo

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/hadolint Dockerfile

test: lint
	$(BIN)/pytest --numprocesses $(WORKERS)

bench: $(VENV)/.installed-test
	$(BIN)/python -m tests.benchmarks

clean:
	rm -rf $(VENV) demo .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
