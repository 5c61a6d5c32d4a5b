"""Fixtures for all tests."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import browser
import postgres
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from missing import missing

collect_ignore_glob = ["*/qgis_*.py"]  # run by QGIS's own Python

Result = subprocess.CompletedProcess[str]


@pytest.fixture(scope="session")
def data_folder() -> Path:
    default = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("SYNTHMAP_TEST_DATA", default))
    if not folder.is_dir():
        pytest.skip(f"no test data: set SYNTHMAP_TEST_DATA (looked in {folder})")
    return folder


@pytest.fixture(scope="session")
def repository() -> Path:
    return Path(__file__).parents[1]


@pytest.fixture(scope="session")
def command() -> Callable[..., Result]:
    """Run `synthmap …` in a process of its own."""

    def run(*words: object) -> Result:
        line = [sys.executable, "-c", "from synthmap.cli import main; main()", *map(str, words)]
        return subprocess.run(line, capture_output=True, text=True, encoding="utf-8", check=False)

    return run


class _SayAtOnce:
    """Name what failed as soon as it has: of a run stopped before its end only an F would be left."""

    def __init__(self, terminal: Any) -> None:
        self.terminal = terminal

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            why = str(crash.message if crash else report.longrepr).strip().partition("\n")[0]
            self.terminal.write_line(f"\n{report.when} failed: {report.nodeid}: {why[:300]}")


def pytest_sessionstart(session: pytest.Session) -> None:
    plugins = session.config.pluginmanager
    terminal = plugins.get_plugin("terminalreporter")
    if terminal and not hasattr(session.config, "workerinput"):  # xdist's workers report to the one that shows it
        plugins.register(_SayAtOnce(terminal))


def pytest_report_header() -> str:
    return f"PostgreSQL: {postgres.described()}"


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Any]:
    """The URL of a PostgreSQL server."""
    with postgres.server() as at:
        if at is None:
            pytest.skip(f"PostgreSQL: {postgres.described()}")
        yield at


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request, tmp_path) -> Iterator[str]:
    """The URL of an empty database, once of each kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'catalog.sqlite'}"
    else:
        with postgres.database(request.getfixturevalue("postgresql")) as url:
            yield url


@pytest.fixture
def catalog(database) -> Iterator[Any]:
    """An open catalog, once on each kind of database."""
    from synthmap.catalog.database import open_catalog

    found = open_catalog(database)
    yield found
    found.close()


@pytest.fixture(scope="module")
def chrome() -> Iterator[Any]:
    """A browser, where the map is built and there is one.

    Of one module: while it is there, Playwright's event loop runs, and no test of this process may run another.
    """
    from synthmap.service.web_page import built_page

    if built_page() is None:
        missing("the map is not built")
    with browser.chromium() as found:
        yield found


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(str(value) if isinstance(value, Path) else value, ensure_ascii=False)


@pytest.fixture(scope="session")
def write_spec() -> Callable[[Path, dict[str, Any]], Path]:
    """Write a nested dict as a TOML spec and return its path."""

    def write(path: Path, values: dict[str, Any]) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{key} = {_toml(part)}\n" for key, part in values.items()), encoding="utf-8")
        return path

    return write


FLOWS = [  # origin, destination, count, A, B: a release in small, sorted as it must be
    ("01", "01", 2, 1, 1),
    ("03", "01", 1, 0, 1),
    ("elsewhere", "01", 1, 1, 0),
    ("02", "03", 5, 5, 0),
]


@pytest.fixture
def small_release(tmp_path: Path) -> Callable[..., Path]:
    """Write a whole release by hand, hashes right, with other rows, zones, plan or manifest than usual if asked.

    A column of the plan that is None is left out. What the manifest says of the plan is so, unless it is changed. With
    a statement if it is to be `stated`.
    """
    from synthmap.release import wording
    from synthmap.release.manifest import MANIFEST, Manifest
    from synthmap.release.plan_summary import prior_share, prior_share_mean, summarise_classes
    from synthmap.release.statement import PAGE, RECORD
    from synthmap.release.statement_files import write_statement
    from synthmap.release.verify import sha256

    def make(
        parts: list[list[tuple[Any, ...]]] | list[pa.Table] | None = None,
        *,
        zones: list[str] = ["01", "02", "03", "elsewhere"],  # noqa: B006
        plan: dict[str, list[Any]] | None = None,
        name: str = "tiny-20260101T000000Z-00000000",
        change: Callable[[dict[str, Any]], None] = lambda manifest: None,
        stated: bool = False,
    ) -> Path:
        directory = tmp_path / name
        (directory / "od").mkdir(parents=True)
        columns = ("origin", "destination", "count", "A", "B")
        for i, rows in enumerate([FLOWS[:3], FLOWS[3:]] if parts is None else parts):
            table = (
                rows
                if isinstance(rows, pa.Table)
                else pa.table(dict(zip(columns, zip(*rows, strict=True), strict=True)))
            )
            pq.write_table(table, directory / "od" / f"part-{i:05}.parquet", row_group_size=2)
        inside = [None if one == "elsewhere" else 1.0 + 0.1 * i for i, one in enumerate(zones)]
        places = {
            "id": zones,
            "weight": [1] * len(zones),
            "longitude": inside,
            "latitude": [one and 50.0 for one in inside],
            "geometry": [one and shapely.to_wkb(shapely.Point(one, 50.0)) for one in inside],
        }
        pq.write_table(pa.table(places), directory / "zones.parquet")
        usual = {
            "destination": ["01", "03"],
            "headcount": [4, 5],
            "synthetic_size": [4, 5],
            "cells": [2, 2],
            "alpha_numerator": [1, 1],
            "alpha_denominator": [2, 2],
            "keep_units": [65536, 65536],
            "epsilon": [4.0, 4.0],
            "epsilon_dropping": [0.0, 0.0],
            "delta": [1e-6, 5e-7],
            "predicted_km": [2.0, 1.5],
        }
        planned = pa.table({name: values for name, values in (usual | (plan or {})).items() if values is not None})
        if "prior_share" not in planned.column_names:
            planned = planned.append_column("prior_share", pa.array(prior_share(planned, 2)))
        pq.write_table(planned, directory / "plan.parquet")
        files = {
            path.relative_to(directory).as_posix(): {"sha256": sha256(path), "bytes": path.stat().st_size}
            for path in sorted(directory.rglob("*.parquet"))
        }
        loss = {"epsilon": 4.0, "delta": 1e-6}
        manifest: dict[str, Any] = {
            "release": name,
            "name": "tiny",
            "title": "",
            "year": None,
            "created": "2026-01-01T00:00:00+00:00",
            "private": True,
            "warning": None,
            "segments": ["A", "B"],
            "privacy": {
                "unit": wording.unit(segments=True, jobs=1),
                "adjacency": wording.adjacency(segments=True),
                "rule": "pdp",
                "max_jobs_per_worker": 1,
                "dp": loss,
                "pdp_cells": {"epsilon": 4.0, "delta_destination": 1e-6, "delta_table": 1.5e-6},
                "certified_per_job": loss,
                "steps": {
                    "resampling_epsilon": 4.0,
                    "resampling_delta": 1e-6,
                    "dropping_epsilon": 0.0,
                    "dropping_delta": 0.0,
                },
                "assumptions": wording.assumptions(1, None, None),
            },
            "invariants": {"statements": list(wording.INVARIANTS), "workers": 9, "destinations": 2},
            "plan": {
                "mechanism": "dirichlet",
                "coarsening": "prior-mass",
                "finest": "",
                "cells": "2",
                "keep": "1.0",
                "keep_smallest": 1.0,
                "synthetic_size_rule": wording.SYNTHETIC_SIZE,
                "prior_share_mean": prior_share_mean(planned, 2),
                "classes": [one.model_dump() for one in summarise_classes(planned, 2)],
            },
            "prior": {
                "formula": wording.formula(classes=False, source=None),
                "weight": "",
                "scale_km": 4.0,
                "power": 2.0,
                "elsewhere_share": 0.1,
                "strength": 20.0,
            },
            "zones": {"vintage": "2010", "zones": 3, "levels": [], "elsewhere": "elsewhere"},
            "software": {"synthmap": "0", "source": "0", "python": "3", "packages": {}},
            "files": files,
        }
        change(manifest)
        if stated:
            write_statement(directory, Manifest.model_validate(manifest))
            manifest["files"] |= {
                name: {"sha256": sha256(directory / name), "bytes": (directory / name).stat().st_size}
                for name in (RECORD, PAGE)
            }
        (directory / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
        Manifest.model_validate(manifest)
        return directory

    return make
