import json
import os
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from noisyrelease import PLAN, noisy

from synthmap.errors import ReleaseCorruptError, ReleaseNotFoundError
from synthmap.release import wording
from synthmap.release.__main__ import main
from synthmap.release.manifest import read_manifest
from synthmap.release.verify import sha256, verify

SORTED = "rows must be sorted by destination and origin, each pair once"
FIRST = [("01", "01", 2, 1, 1), ("03", "01", 1, 0, 1), ("elsewhere", "01", 1, 1, 0)]
SECOND = [("02", "03", 5, 5, 0)]
DROP = object()


def with_first(*rows):
    return [[*rows, *FIRST[len(rows) :]], SECOND]


def columns(**changed):
    """The first part as a table, with columns changed, or left out where DROP."""
    usual = dict(zip(("origin", "destination", "count", "A", "B"), map(list, zip(*FIRST, strict=True)), strict=True))
    return pa.table({name: column for name, column in (usual | changed).items() if column is not DROP})


def second():
    names = ("origin", "destination", "count", "A", "B")
    return pa.table({name: [value] for name, value in zip(names, SECOND[0], strict=True)})


def test_a_whole_release_is_counted(small_release):
    found = verify(small_release())
    assert (found.files, found.rows, found.workers, found.destinations) == (4, 4, 9, 2)


def test_a_part_without_rows_is_no_fault(small_release):
    assert verify(small_release([columns(), columns().slice(0, 0), second()])).rows == 4


def test_zones_may_stand_in_any_order(small_release):
    assert verify(small_release(zones=["03", "elsewhere", "01", "02"])).rows == 4


@pytest.mark.parametrize(
    ("parts", "rule"),
    [
        (with_first(("01", "01", 3, 2, 1)), r"must sum to its m\(d\)"),
        (with_first(("01", "01", 1, 0, 1)), r"must sum to its m\(d\)"),
        (with_first(("01", "01", 0, 0, 0), ("03", "01", 3, 2, 1)), "every count must be above 0"),
        (with_first(("01", "01", -1, -1, 0), ("03", "01", 4, 3, 1)), "every count must be above 0"),
        (with_first(("01", "01", 2, 2, 1)), "segments must sum to count"),
        (with_first(("01", "01", 2, 3, -1)), "every segment must be at least 0"),
        (with_first(("04", "01", 2, 1, 1)), "every origin must be a zone"),
        (with_first(("1", "01", 2, 1, 1)), "every origin must be a zone"),
        ([FIRST, [("02", "04", 5, 5, 0)]], "every destination must be a zone"),
        ([[FIRST[1], FIRST[0], FIRST[2]], SECOND], SORTED),
        ([[FIRST[0], FIRST[0]], SECOND], SORTED),
        ([[*SECOND, *FIRST]], SORTED),
        ([SECOND, FIRST], "parts must be in order of destinations"),
        ([FIRST[:2], FIRST[2:], SECOND], "parts must be in order of destinations"),
        ([FIRST], r"must sum to its m\(d\)"),
        ([[*FIRST, ("01", "02", 5, 5, 0)]], r"must sum to its m\(d\)"),
        ([], "od/ must hold the table"),
    ],
)
def test_a_broken_table_is_refused_though_its_hashes_are_right(small_release, parts, rule):
    with pytest.raises(ReleaseCorruptError, match=rule):
        verify(small_release(parts))


@pytest.mark.parametrize("faulty", [0, 1, 2])
@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda rows: [("04", *rows[0][1:]), *rows[1:]], "every origin must be a zone"),
        (lambda rows: [rows[0], rows[0]], SORTED),
    ],
)
def test_the_part_at_fault_is_named_where_ids_of_several_are_looked_up_together(
    small_release, monkeypatch, faulty, change, rule
):
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    parts = [FIRST, [("03", "02", 1, 1, 0)], SECOND]
    parts[faulty] = change(parts[faulty])
    with pytest.raises(ReleaseCorruptError, match=f"od/part-0000{faulty}.parquet: {rule}"):
        verify(small_release(parts))


def test_so_many_parts_that_their_ids_are_looked_up_in_several_groups(small_release):
    empty = columns().slice(0, 0)
    assert verify(small_release([empty] * 9 + [columns()] + [empty] * 20 + [second()] + [empty] * 9)).rows == 4


@pytest.mark.parametrize(
    "first",
    [
        columns(B=DROP),
        columns(C=[1, 1, 1]),
        columns(count=[2.0, 1.0, 1.0]),
        columns(count=[2, None, 2]),
        columns(count=["2", "1", "1"]),
        columns(A=["1", "0", "1"]),
        columns(A=[1, None, 1]),
        columns(origin=[1, 3, 4]),
        columns(origin=["01", None, "elsewhere"]),
        columns(destination=[1, 1, 1]),
        columns(destination=["01", None, "01"]),
    ],
    ids=lambda table: str(table.schema.types),
)
def test_columns_of_another_kind_are_refused_without_a_crash(small_release, first):
    with pytest.raises(ReleaseCorruptError):
        verify(small_release([first, second()]))


def with_interval(part, low, high):
    return part.append_column("low", pa.array(low, pa.int32())).append_column("high", pa.array(high, pa.int32()))


@pytest.mark.parametrize(
    ("low", "high", "good"),
    [
        ([0, 1, 1], [2, 9, 1], True),
        ([-1, 1, 1], [2, 9, 1], False),
        ([0, 2, 1], [2, 9, 1], False),
        ([0, 1, 1], [1, 9, 1], False),
    ],
)
def test_counts_lie_in_their_intervals(small_release, low, high, good):
    parts = [with_interval(columns(), low, high), with_interval(second(), [5], [5])]
    directory = small_release(parts, plan=PLAN, change=noisy)
    if good:
        assert verify(directory).rows == 4
    else:
        with pytest.raises(ReleaseCorruptError, match="low must be at least 0 and count lie between low and high"):
            verify(directory)


@pytest.mark.parametrize(
    ("zones", "plan"),
    [
        (["01", "02", "elsewhere"], {}),
        (["01", "02", "03"], {"destination": ["01", "02"]}),
        (["01", "02", "03"], {"synthetic_size": [5, 4]}),
        (["01", "02", "03"], {"synthetic_size": ["4", "5"]}),
    ],
)
def test_table_zones_and_plan_must_agree(small_release, zones, plan):
    """A destination that is no zone, one that was not planned, other sizes than planned."""
    with pytest.raises(ReleaseCorruptError):
        verify(small_release(zones=zones, plan=plan))


def test_elsewhere_is_an_origin_only_where_the_manifest_says_so(small_release):
    with pytest.raises(ReleaseCorruptError, match="every origin must be a zone"):
        verify(small_release(zones=["01", "02", "03"], change=lambda m: m["zones"].update(elsewhere=None)))


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m["invariants"].update(workers=10),
        lambda m: m["invariants"].update(destinations=3),
        lambda m: m["zones"].update(zones=2),
        lambda m: m.update(segments=["A"]),
        lambda m: m["files"].pop("plan.parquet"),
        lambda m: m["files"].update({"od/part-00009.parquet": {"sha256": "0" * 64, "bytes": 1}}),
        lambda m: m["files"].update({"../../outside": {"sha256": "0" * 64, "bytes": 1}}),
        lambda m: m["files"]["zones.parquet"].update(sha256="0" * 64),
        lambda m: m["files"]["zones.parquet"].update(bytes=1),
    ],
)
def test_a_manifest_that_does_not_fit_the_files_is_refused(small_release, change):
    with pytest.raises(ReleaseCorruptError):
        verify(small_release(change=change))


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m["privacy"]["dp"].update(epsilon=2.0),
        lambda m: m["privacy"]["dp"].update(delta=1e-9),
        lambda m: m["privacy"]["certified_per_job"].update(epsilon=3.0),
        lambda m: m["privacy"]["pdp_cells"].update(delta_destination=1e-9),
        lambda m: m["privacy"]["pdp_cells"].update(delta_table=1e-9),
        lambda m: m["privacy"].update(max_jobs_per_worker=2),
    ],
)
def test_a_promise_better_than_the_plan_is_refused(small_release, change):
    with pytest.raises(ReleaseCorruptError):
        verify(small_release(change=change))


def test_every_flipped_byte_is_noticed(small_release):
    directory = small_release()
    for path in sorted(directory.rglob("*.parquet")):
        whole = path.read_bytes()
        path.write_bytes(whole[:20] + bytes([whole[20] ^ 1]) + whole[21:])
        with pytest.raises(ReleaseCorruptError, match=path.name):
            verify(directory)
        path.write_bytes(whole)
    verify(directory)


@pytest.mark.parametrize("name", ["od/part-00001.parquet", "zones.parquet", "plan.parquet"])
def test_a_missing_file_is_named(small_release, name):
    directory = small_release()
    (directory / name).unlink()
    with pytest.raises(ReleaseCorruptError, match=f"file {name} is missing"):
        verify(directory)


@pytest.mark.parametrize("name", ["notes.txt", "od/part-00002.parquet", ".hidden", "sub/deep"])
def test_an_extra_file_is_named(small_release, name):
    directory = small_release()
    (directory / name).parent.mkdir(exist_ok=True)
    (directory / name).write_text("x")
    with pytest.raises(ReleaseCorruptError, match=f"file {name} does not belong to it"):
        verify(directory)


def test_a_dangling_link_is_an_extra_file(small_release):
    directory = small_release()
    (directory / "link").symlink_to("nowhere")
    with pytest.raises(ReleaseCorruptError, match="link does not belong"):
        verify(directory)


def test_a_renamed_directory_is_refused(small_release):
    directory = small_release()
    with pytest.raises(ReleaseCorruptError, match="must be named tiny-"):
        verify(directory.rename(directory.with_name("other")))


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"format": "synthmap-release-2"}'])
def test_something_else_than_a_manifest_is_refused(small_release, content):
    directory = small_release()
    (directory / "manifest.json").write_bytes(content)
    with pytest.raises(ReleaseCorruptError, match="must be a manifest"):
        verify(directory)


def test_no_release_is_told_from_a_broken_one(tmp_path, small_release):
    directory = small_release()
    (directory / "manifest.json").unlink()
    (tmp_path / "file").touch()
    for path in (directory, tmp_path / "nothing", tmp_path / "file"):
        with pytest.raises(ReleaseNotFoundError):
            verify(path)


def no_parquet(path):
    path.write_bytes(b"PAR1 this is none PAR1")


def a_name_that_is_no_utf8(path):
    pq.write_table(pq.read_table(path), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"cells", b"\xe8ells"))


@pytest.mark.parametrize("damage", [no_parquet, a_name_that_is_no_utf8])
def test_unreadable_parquet_is_refused_though_its_hash_is_right(small_release, damage):
    directory = small_release(stated=True)
    broken = directory / "plan.parquet"
    damage(broken)
    record = read_manifest(directory).model_dump(mode="json")
    record["files"]["plan.parquet"] = {"sha256": sha256(broken), "bytes": broken.stat().st_size}
    (directory / "manifest.json").write_text(json.dumps(record))
    with pytest.raises(ReleaseCorruptError, match="cannot be read"):
        verify(directory)


def test_every_release_of_a_store_is_checked(small_release, capsys):
    directory = small_release()
    store = directory.parent
    shutil.copytree(directory, store / ".partial-left")
    assert main(store) == 0
    assert capsys.readouterr().out == f"{directory.name}: whole, 9 workers\n"
    seeded = wording.warning(private=False, source=None)
    small_release(name="seeded", change=lambda m: m.update(private=False, warning=seeded))
    assert main(store) == 0
    assert f"seeded: whole, 9 workers; NOT PRIVATE: {seeded}\n" in capsys.readouterr().out
    shutil.rmtree(store / "seeded")
    shutil.copytree(directory, store / "renamed")
    assert main(store) == 1
    assert len(capsys.readouterr().out.splitlines()) == 2
