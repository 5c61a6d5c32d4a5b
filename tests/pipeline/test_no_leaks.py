"""Nothing of the confidential table but the draw and the declared invariants leaves a run."""

import gzip
import stat
import time
import traceback

import polars as pl
import psutil
import pytest

import pipelines.lengths
import pipelines.partition
import pipelines.synthesize
import pipelines.tabulate
from pipelines.cluster import connect
from pipelines.release import release
from pipelines.stage import StageError
from synthmap.errors import SynthmapError
from synthmap.release.store import time_in

SECRET = "987654"  # noqa: S105
SEGMENTS = ["SA01", "SA02", "SA03"]
HEADER = "origin,destination,count,note\n"


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


@pytest.mark.parametrize("content", [pytest.param(text, id=name) for name, text in bad_tables()])
def test_an_error_is_the_same_whatever_the_table_holds(bad_spec, content):
    """Another count, and the same fault after many good rows: neither changes a word."""
    words = []
    header, _, rows = content.partition("\n")
    good = "" if header + "\n" != HEADER else "{d},{d},3,4\n"
    for text in (content, content.replace(SECRET, "12"), f"{header}\n{good}{rows}"):
        with pytest.raises(SynthmapError) as caught:
            release(bad_spec(text), scheduler="threads")
        words.append(str(caught.value))
    assert len(set(words)) == 1


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
    "collect": (pipelines.partition, "merge_tables"),
    "measure": (pipelines.lengths, "noisy_sums"),
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
    with pytest.raises(StageError, match=r"stage (tabulate|collect|measure|draw) failed") as caught:
        release(make_spec(prior={"lengths_epsilon": 0.3}), scheduler="threads")
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


def test_no_time_that_is_public_tells_how_long_the_table_took_to_read(make_spec, monkeypatch):
    read_table = pipelines.tabulate.read_table

    def slowly(*values, **options):
        time.sleep(2.5)
        return read_table(*values, **options)

    monkeypatch.setattr(pipelines.tabulate, "read_table", slowly)
    found = release(make_spec(), scheduler="threads")
    began = time_in(found.release)
    assert found.manifest.created == began.isoformat(timespec="seconds")
    assert {path.stat().st_mtime for path in found.path.rglob("*")} == {began.timestamp()}
    named = release(make_spec(), scheduler="threads", name="by-hand")
    assert named.manifest.created.endswith("T00:00:00+00:00")


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
