"""Nothing of the confidential table but the draw and the declared invariants leaves a run."""

import gzip
import json
import re
import stat
import traceback

import polars as pl
import psutil
import pytest

import pipelines.partition
import pipelines.synthesize
import pipelines.tabulate
from pipelines.cluster import connect
from pipelines.release import release
from pipelines.stage import StageError
from synthmap.errors import SynthmapError

SECRET = "987654"  # noqa: S105
SEGMENTS = ["SA01", "SA02", "SA03"]
HEADER = "origin,destination,count,note\n"


def neighbour(flows, zones):
    """Return `flows` with one worker of the largest destination moved to an origin nobody there has."""
    largest = flows.group_by("destination").agg(pl.col("count").sum()).sort("count")["destination"][-1]
    here = flows.filter(pl.col("destination") == largest)
    home = sorted(set(zones) - set(here["origin"]))[-1]
    from_row = here.filter(pl.col("SA01") > 0).row(0, named=True)
    gone = pl.all_horizontal(pl.col(name) == from_row[name] for name in ("origin", "destination"))
    moved = flows.with_columns(
        pl.when(gone).then(pl.col(n) - 1).otherwise(pl.col(n)).alias(n) for n in ("count", "SA01")
    )
    added = from_row | {"origin": home, "count": 1, "SA01": 1, "SA02": 0, "SA03": 0}
    return pl.concat([moved.filter(pl.col("count") > 0), pl.DataFrame([added], schema=flows.schema)])


@pytest.fixture
def neighbours(region, tmp_path, region_spec, with_changes, write_spec):
    """Return spec files for the region's table and for a neighbour of it, each in a directory of its own."""

    def make(**changes):
        flows = pl.read_parquet(region / "od.parquet").with_columns(pl.col("origin", "destination").cast(pl.String))
        zones = pl.read_parquet(region / "zones.parquet")["id"]
        specs = []
        for name, table in (("one", flows), ("two", neighbour(flows, zones))):
            assert table["count"].sum() == 3000
            (tmp_path / name).mkdir()
            table.write_parquet(tmp_path / name / "od.parquet")
            tables = [region_spec["tables"][0] | {"path": "od.parquet"}]
            run = {"scratch": "scratch", "seed": 3, "partitions": 3}
            own = {"tables": tables, "store": "store", "run": run}
            specs.append(write_spec(tmp_path / name / "spec.toml", with_changes(region_spec, own | changes)))
        return specs

    return make


def scrubbed(text, spec):
    """Return a log or manifest without the run's directory, id, time and hashes."""
    text = text.replace(str(spec.parent), "DIR")
    text = re.sub(r"demo-\d{8}T\d{6}Z-[0-9a-f]{8}", "ID", text)
    text = re.sub(r'"created": "[^"]*"|"sha256": "\w{64}"|"bytes": \d+|"seconds": [\d.]+|\d:\d\d:\d\d', "…", text)
    return text


@pytest.mark.parametrize("changes", [{}, {"plan": {"keep": "prior", "cells": 16}}], ids=["auto", "dropping"])
def test_neighbouring_tables_show_no_difference_but_the_draw(neighbours, command, changes):
    seen = []
    for spec in neighbours(**changes):
        done = command("release", spec, "--scheduler", "threads", "--json")
        assert done.returncode == 0, done.stderr
        found = spec.parent / "store" / json.loads(done.stdout)["release"]
        names = sorted(path.relative_to(found).as_posix() for path in found.rglob("*"))
        public = {name: (found / name).read_bytes() for name in ("plan.parquet", "zones.parquet")}
        draw = [path.read_bytes() for path in sorted((found / "od").iterdir())]
        manifest = scrubbed((found / "manifest.json").read_text(), spec)
        seen.append(((names, public, manifest, scrubbed(done.stdout, spec), scrubbed(done.stderr, spec)), draw))
    assert seen[0][0] == seen[1][0]
    assert seen[0][1] != seen[1][1]


def test_neighbouring_tables_have_the_same_plan(neighbours, command):
    plans = [command("plan", spec, "--scheduler", "threads", "--json") for spec in neighbours()]
    assert plans[0].returncode == plans[1].returncode == 0
    assert plans[0].stdout == plans[1].stdout


def bad_tables():
    """Contents that break a rule; each row carries the secret in every column where it is no id."""
    row = "{o},{d}," + SECRET + "," + SECRET + "\n"
    yield "decimal", HEADER + row.replace(SECRET, SECRET + ".5", 1)
    yield "negative", HEADER + row.replace(SECRET, "-" + SECRET, 1)
    yield "text", HEADER + row.replace(SECRET, SECRET + "x", 1)
    yield "too large", HEADER + row.replace(SECRET, SECRET * 9, 1)
    yield "empty count", HEADER + "{o},{d},," + SECRET + "\n"
    yield "duplicates", HEADER + row + row
    yield "empty origin", HEADER + row.replace("{o}", "")
    yield "empty destination", HEADER + row.replace("{d}", "")
    yield "ragged", HEADER + row + "{o},{d}," + SECRET + "\n"
    yield "separator", (HEADER + row).replace(",", ";")
    yield "quote", HEADER + row.replace("{o}", '"{o}')
    yield "no header", row * 2
    yield "other header", HEADER.replace("count", "n") + row
    yield "latin-1", (HEADER + row).replace("{o}", "é")


def all_texts(fault):
    """Return everything that could be printed of an exception, its chain included even where it is suppressed."""
    texts = []
    while fault is not None:
        texts += [
            *traceback.format_exception(fault, chain=False),
            repr(fault.args),
            repr(getattr(fault, "__dict__", "")),
        ]
        fault = fault.__cause__ or fault.__context__
    return "\n".join(texts)


@pytest.fixture
def bad_spec(make_spec, region, tmp_path):
    """Return a spec for a table with this content."""
    flows = pl.read_parquet(region / "od.parquet")

    def make(content, name="bad.csv"):
        text = content.replace("{o}", flows["origin"][0]).replace("{d}", flows["destination"][0])
        (tmp_path / name).write_bytes(text.encode("latin-1"))
        good = make_spec().tables[0].model_dump(exclude_none=True)
        return make_spec(segments=None, tables=[good | {"path": tmp_path / name}])

    return make


@pytest.mark.parametrize("content", [pytest.param(text, id=name) for name, text in bad_tables()])
def test_no_error_quotes_the_table(bad_spec, tmp_path, left_in, caplog, capfd, content):
    with pytest.raises(SynthmapError) as caught:
        release(bad_spec(content), scheduler="threads")
    assert not isinstance(caught.value, StageError)
    assert SECRET not in all_texts(caught.value)
    assert SECRET not in caplog.text + "".join(capfd.readouterr())
    assert left_in(tmp_path / "scratch") == left_in(tmp_path / "store") == []


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_nor_does_the_command_line(bad_spec, command, tmp_path, scheduler):
    bad_spec(dict(bad_tables())["text"])
    done = command("release", tmp_path / "spec.toml", "--scheduler", scheduler, "--json")
    assert done.returncode == 2
    assert done.stdout == ""
    assert SECRET not in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("synthmap: bad.csv: column count must hold whole numbers")


def test_a_broken_gzip_file_is_not_quoted(bad_spec, tmp_path, caplog, capfd):
    spec = bad_spec(HEADER)
    packed = gzip.compress((HEADER + f"01,02,{SECRET},{SECRET}\n" * 1000).encode(), compresslevel=0)
    spec.tables[0].path.write_bytes(packed[:-500])
    with pytest.raises(SynthmapError, match="corrupt or truncated") as caught:
        release(spec, scheduler="threads")
    assert SECRET not in all_texts(caught.value) + caplog.text + "".join(capfd.readouterr())


STAGES = {
    "tabulate": (pipelines.tabulate, "read_table"),
    "collect": (pipelines.partition, "merge_duplicates"),
    "draw": (pipelines.synthesize, "synthesize"),
    "write": (pipelines.synthesize, "write_part"),
}


@pytest.mark.parametrize(("module", "name"), STAGES.values(), ids=STAGES)
@pytest.mark.parametrize(
    "fault",
    [ValueError(f"secret {SECRET}"), KeyError(SECRET), MemoryError(SECRET), OSError(5, "Input/output error", SECRET)],
    ids=lambda fault: type(fault).__name__,
)
def test_no_unexpected_error_quotes_the_table(
    make_spec, tmp_path, left_in, monkeypatch, caplog, capfd, module, name, fault
):
    def broken(*_, **__):
        value = SECRET
        raise fault from RuntimeError(value)

    monkeypatch.setattr(module, name, broken)
    with pytest.raises(StageError, match=r"stage (tabulate|collect|draw) failed") as caught:
        release(make_spec(), scheduler="threads")
    assert SECRET not in all_texts(caught.value)
    assert caught.value.__cause__ is None
    assert SECRET not in caplog.text + "".join(capfd.readouterr())
    assert left_in(tmp_path / "scratch") == left_in(tmp_path / "store") == []


def test_scratch_is_private_while_it_lasts_and_empty_afterwards(make_spec, tmp_path, left_in):
    modes = set()

    def look(stage, done, total):
        for path in (*(tmp_path / "scratch").glob("*[!k]"), *(tmp_path / "store").glob(".partial-*[!k]")):
            if path.is_dir():
                modes.add(stat.S_IMODE(path.stat().st_mode))

    release(make_spec(), scheduler="threads", progress=look)
    assert modes == {0o700}
    assert left_in(tmp_path / "scratch") == []


def test_nothing_is_written_outside_scratch_and_store(make_spec, tmp_path, left_in, monkeypatch):
    """Dask keeps files of its own; none of them may lie where the run did not say."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    release(make_spec(), scheduler="threads")
    assert left_in(here) == []
    assert left_in(tmp_path) == ["here", "scratch", "spec.toml", "store"]


def test_a_release_names_no_path_of_a_confidential_table(make_spec, region, tmp_path):
    secret = tmp_path / "payroll-of-everybody"
    secret.mkdir()
    (secret / "ministry-of-truth.parquet").write_bytes((region / "od.parquet").read_bytes())
    table = make_spec().tables[0].model_dump(exclude_none=True) | {"path": secret / "ministry-of-truth.parquet"}
    found = release(make_spec(tables=[table]), scheduler="threads")
    for path in found.path.rglob("*.*"):
        content = path.read_bytes()
        for word in (b"payroll", b"ministry", str(tmp_path).encode(), str(region).encode()):
            assert word not in content, path.name


def test_parts_of_the_table_carry_nothing_but_the_table(make_spec):
    found = release(make_spec(), scheduler="threads")
    for part in (found.path / "od").iterdir():
        assert set(pl.read_parquet_metadata(part)) <= {"ARROW:schema"}


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_a_run_listens_on_this_machine_only(scheduler):
    """Dask's HTTP servers show tasks and their errors to whoever reaches them."""
    with connect(scheduler):
        me = psutil.Process()
        listening = {
            socket.laddr.ip
            for process in (me, *me.children(recursive=True))
            for socket in process.net_connections("inet")
            if socket.status == psutil.CONN_LISTEN
        }
    assert listening <= {"127.0.0.1", "::1"}


def test_local_processes_answer_only_those_who_hold_the_key():
    """A Dask port without TLS runs the code of anybody on the machine, as the owner of the data."""
    with connect("processes") as client:
        assert client.scheduler.address.startswith("tls://")
