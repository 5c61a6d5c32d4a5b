"""`synthmap …` in this process."""

import json
import sys

import pytest

from synthmap import cli


@pytest.fixture
def synthmap(monkeypatch, capfd, tmp_path):
    """Run a command in an empty directory; return (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["synthmap", *map(str, words)])
        code = 0
        try:
            cli.main()
        except SystemExit as end:
            code = end.code or 0
        return code, *capfd.readouterr()

    return run


@pytest.fixture
def one_object(synthmap):
    """Run a command with --json and return the only thing on its stdout."""

    def run(*words):
        code, out, err = synthmap(*words, "--json")
        assert (code, err) == (0, "")
        assert len(out.splitlines()) == 1
        return json.loads(out)

    return run


@pytest.fixture
def one_line(synthmap):
    """Run a command that must fail with one line and exit code 2; return the line."""

    def run(*words):
        code, out, err = synthmap(*words)
        assert (code, out) == (2, "")
        assert len(err.splitlines()) == 1
        assert err.startswith("synthmap: ")
        return err

    return run
