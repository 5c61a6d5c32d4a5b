import json
import signal
import sys

import numpy as np
import pyarrow as pa
import pytest

from synthmap import cli
from synthmap.geography.canonical import canonical
from synthmap.geography.region import make_region


@pytest.fixture(scope="session")
def make_town():
    """Return a made-up region: zones in tracts in counties, some of weight 0, one far away."""

    def make(zones=400, seed=0, counties=4, tracts=5):
        rng = np.random.default_rng(seed)
        county = rng.integers(0, counties, zones)
        tract = county * tracts + rng.integers(0, tracts, zones)
        x = -70 + 0.5 * (county % 2) + 0.1 * (tract % tracts) + rng.uniform(0, 0.08, zones)
        y = 41 + 0.5 * (county // 2) + rng.uniform(0, 0.4, zones)
        x[0], y[0] = -60.0, 47.0
        return make_region(
            canonical(
                ids=pa.array([f"z{i:05}" for i in range(zones)]),
                longitude=x,
                latitude=y,
                weight=rng.integers(0, 200, zones),
                levels=("county", "tract"),
                parents=(pa.array([f"c{c}" for c in county]), pa.array([f"t{t}" for t in tract])),
                vintage="made-up",
            )
        )

    return make


@pytest.fixture(scope="session")
def town(make_town):
    return make_town()


@pytest.fixture
def synthmap(monkeypatch, capfd, tmp_path):
    """Run a command in an empty directory; return (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["synthmap", *map(str, words)])
        code = 0
        handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
        try:
            cli.main()
        except SystemExit as end:
            code = end.code or 0
        finally:  # a program that leaves ignores signals; this one stays
            for number, handler in handlers.items():
                if handler is not None and signal.getsignal(number) is not handler:
                    signal.signal(number, handler)
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
