"""Downloads over HTTP: lists, ranges, conditions, names, faults."""

import asyncio
import io
import shutil
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import polars as pl
import pytest

from synthmap.catalog.database import open_catalog
from synthmap.catalog.keys import Role, add_key
from synthmap.errors import ExportError
from synthmap.published.exports import FORMATS, export, offered, place
from synthmap.published.store import ReleaseStore
from synthmap.release.verify import sha256
from synthmap.service import making
from synthmap.service.problems import Problem


@pytest.fixture
def own_store(store, made_up, tmp_path):
    """A store of its own with a copy of the made-up release: nothing is made yet."""
    shutil.copytree(store / made_up, tmp_path / "store" / made_up)
    return tmp_path / "store"


@pytest.fixture(scope="session")
def all_made(store):
    """All files of both releases, made beforehand: a process for each would take long."""
    releases = ReleaseStore(store)
    for opened in map(releases.open, releases.ids()):
        for name in offered(opened):
            export(opened, place(store / ".exports", opened), name)


@pytest.fixture
def files(client, made_up, all_made):
    """Return the link of a file of the made-up release."""
    return lambda name: f"/releases/{made_up}/downloads/{quote(name)}"


def test_the_list_names_every_file_and_each_link_works(client, store, odd, all_made):
    listed = client.get(f"/releases/{odd}/downloads").json()
    names = [one["name"] for one in listed["files"]]
    assert listed["release"] == odd
    assert {"manifest.json", "zones.parquet", "plan.parquet", "od/part-00000.parquet", *FORMATS} <= set(names)
    assert "matrix-side.omx" in names
    for one in listed["files"]:
        answer = client.get(one["href"])
        assert answer.status_code == 200, one
        assert answer.headers["content-type"].split(";")[0] == one["type"]
        assert len(answer.content) == int(answer.headers["content-length"]) > 0
        if "sha256" in one:
            assert answer.content == (store / odd / one["name"]).read_bytes()
            assert one["sha256"] == sha256(store / odd / one["name"])
        assert one["state"] == "ready"
        assert one["bytes"] == len(answer.content)


def test_what_is_not_made_is_made_on_request(make_client, own_store, made_up):
    client = make_client(store=own_store)
    path = f"/releases/{made_up}/downloads"
    state = {one["name"]: (one["state"], one["bytes"]) for one in client.get(path).json()["files"]}
    assert state["flows.csv"] == ("on request", None)
    answer = client.get(f"{path}/flows.csv")
    assert answer.status_code == 200
    expected = ReleaseStore(own_store).open(made_up).flows.select("origin", "destination", "count").collect()
    kinds = {"origin": pl.String, "destination": pl.String}
    found = pl.read_csv(io.BytesIO(answer.content), schema_overrides=kinds).select(expected.columns)
    assert found.equals(expected)
    state = {one["name"]: (one["state"], one["bytes"]) for one in client.get(path).json()["files"]}
    assert state["flows.csv"] == ("ready", len(answer.content))
    assert state["flows.fgb"][0] == "on request"


def test_a_file_has_a_name_a_type_a_validator_and_may_be_kept(client, made_up, files):
    answer = client.get(files("od/part-00000.parquet"))
    assert answer.headers["content-disposition"] == f'attachment; filename="{made_up}-od-part-00000.parquet"'
    assert answer.headers["accept-ranges"] == "bytes"
    assert answer.headers["etag"].startswith('"')
    assert answer.headers["cache-control"] == "public, max-age=3600"


def test_what_a_key_was_needed_for_is_kept_by_no_one_else(make_client, made_up, tmp_path, all_made):
    client = make_client(anonymous=False)
    path = f"/releases/{made_up}/downloads"
    catalog = open_catalog(f"sqlite:///{tmp_path / 'catalog.sqlite'}")
    key = add_key(catalog, "reader", Role.READER)
    catalog.close()
    for file in ("manifest.json", "flows.csv"):
        assert client.get(f"{path}/{file}").status_code == 401
        answer = client.get(f"{path}/{file}", headers={"authorization": f"Bearer {key}"})
        assert answer.status_code == 200
        assert answer.headers["cache-control"].startswith("private")
        assert client.get(f"{path}/{file}?token={key}").headers["cache-control"].startswith("private")


def test_head_tells_what_get_would_send(client, files):
    for name in ("flows.csv", "zones.parquet"):
        head, get = client.head(files(name)), client.get(files(name))
        assert head.status_code == 200
        assert head.content == b""
        wanted = ("content-length", "etag", "content-type", "content-disposition", "last-modified")
        assert [head.headers[one] for one in wanted] == [get.headers[one] for one in wanted]


@pytest.mark.parametrize(
    ("asked", "part"),
    [("bytes=0-9", slice(0, 10)), ("bytes=5-", slice(5, None)), ("bytes=-7", slice(-7, None)),
     ("bytes=3-999999999", slice(3, None)), ("bytes=-999999999", slice(0, None)), ("BYTES=0-0", slice(0, 1))],
)  # fmt: skip
@pytest.mark.parametrize("name", ["zones.parquet", "flows.fgb"])
def test_a_range_is_sent_alone(client, files, name, asked, part):
    whole = client.get(files(name)).content
    answer = client.get(files(name), headers={"range": asked})
    assert answer.status_code == 206
    assert answer.content == whole[part]
    start = whole.index(answer.content) if asked == "bytes=5-" else range(len(whole))[part].start
    assert answer.headers["content-range"] == f"bytes {start}-{start + len(answer.content) - 1}/{len(whole)}"


@pytest.mark.parametrize("asked", ["bytes=999999999-", "bytes=-0", "bytes=999999999-9999999999"])
def test_a_range_behind_the_end_is_a_problem_that_tells_the_size(client, files, asked):
    answer = client.get(files("zones.parquet"), headers={"range": asked})
    assert answer.status_code == 416
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["content-range"] == f"bytes */{len(client.get(files('zones.parquet')).content)}"


@pytest.mark.parametrize(
    "asked",
    ["bytes=0-1,5-6", "lines=1-2", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=9-2", "bytes=1_0-2_0", "bytes=--1",
     "bytes=" + "9" * 5000 + "-", "bytes=" + ",".join(["0-"] * 200)],
)  # fmt: skip
def test_what_is_not_one_range_gets_the_whole_file(client, files, asked):
    answer = client.get(files("zones.parquet"), headers={"range": asked})
    assert answer.status_code == 200
    assert answer.content == client.get(files("zones.parquet")).content


def test_a_range_of_what_has_changed_gets_the_whole_file(client, files):
    first = client.get(files("zones.parquet"))
    for condition, status in (
        (first.headers["etag"], 206), (first.headers["last-modified"], 206), ('"other"', 200),
        (f"W/{first.headers['etag']}", 200), ("Mon, 01 Jan 2001 00:00:00 GMT", 200),
    ):  # fmt: skip
        answer = client.get(files("zones.parquet"), headers={"range": "bytes=0-3", "if-range": condition})
        assert answer.status_code == status, condition
    late = {"range": "bytes=999999999-", "if-range": '"other"'}
    assert client.get(files("zones.parquet"), headers=late).status_code == 200


@pytest.mark.parametrize("name", ["manifest.json", "flows.csv"])
def test_what_the_client_has_is_not_sent_again(client, files, name):
    tag = client.get(files(name)).headers["etag"]
    for condition in (tag, f"W/{tag}", f'"a", {tag}', "*"):
        for ask in (client.get, client.head):
            answer = ask(files(name), headers={"if-none-match": condition})
            assert (answer.status_code, answer.content) == (304, b"")
            assert answer.headers["etag"] == tag
            assert "cache-control" in answer.headers
    assert client.get(files(name), headers={"if-none-match": '"a", W/"b"'}).status_code == 200


def test_every_file_has_a_validator_of_its_own(client, made_up, all_made):
    listed = client.get(f"/releases/{made_up}/downloads").json()["files"]
    tags = [client.head(one["href"]).headers["etag"] for one in listed]
    assert len(set(tags)) == len(tags)


def test_a_file_made_again_has_another_validator(make_client, own_store, made_up):
    client = make_client(store=own_store)
    path = f"/releases/{made_up}/downloads/flows.csv"
    first = client.get(path).headers["etag"]
    shutil.rmtree(own_store / ".exports")
    assert client.get(path).headers["etag"] != first


@pytest.mark.parametrize(
    "file",
    ["../manifest.json", "..%2Fmanifest.json", "..%2F..%2F..%2Fetc%2Fpasswd", "%2Fetc%2Fpasswd", "od", "od/",
     "od%2F..%2Fmanifest.json", "od/part-00000.parquet/", ".flows.csv.lock", "flows.csv%00", "FLOWS.CSV", "flows.csv/",
     "matrix-nowhere.omx", "%2e%2e%2f%2e%2e", "a\\..\\b", "%ff", "é", "x" * 3000],
)  # fmt: skip
def test_no_other_file_is_there(client, made_up, file):
    answer = client.get(f"/releases/{made_up}/downloads/{file}", follow_redirects=False)
    assert answer.status_code in (400, 404)
    assert answer.headers["content-type"] == "application/problem+json"
    assert b"root:" not in answer.content


def test_parameters_no_one_knows_are_refused(client, files, made_up):
    assert client.get(files("manifest.json") + "?level=county").status_code == 400
    assert client.get(f"/releases/{made_up}/downloads?x=1").status_code == 400
    assert client.post(files("manifest.json")).status_code == 405


def test_files_of_no_release(client):
    for path in ("/releases/none/downloads", "/releases/none/downloads/flows.csv", "/releases/..%2f/downloads"):
        assert client.get(path).status_code == 404


def test_a_large_release_is_made_by_a_job_and_the_answer_says_how(make_client, own_store, made_up):
    client = make_client(store=own_store, export_rows_maximum=100)
    path = f"/releases/{made_up}/downloads"
    state = {one["name"]: one["state"] for one in client.get(path).json()["files"]}
    assert (state["release.gpkg"], state["zones.parquet"]) == ("by job", "ready")
    answer = client.get(f"{path}/release.gpkg")
    assert answer.status_code == 409
    for word in ("/processes/export/execution", made_up, "release.gpkg"):
        assert word in answer.json()["detail"]
    assert not (own_store / ".exports").exists()
    assert client.get(f"{path}/zones.parquet").status_code == 200
    assert make_client(store=own_store).get(f"{path}/flows.csv").status_code == 200  # as a job would
    assert client.get(f"{path}/flows.csv").status_code == 200


def test_a_corrupt_release_is_not_served(make_client, own_store, made_up):
    path = f"/releases/{made_up}/downloads"
    client = make_client(store=own_store)
    assert client.get(f"{path}/flows.csv").status_code == 200
    part = own_store / made_up / "od" / "part-00000.parquet"
    part.chmod(part.stat().st_mode | stat.S_IWUSR)
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(content)
    for one in (client, make_client(store=own_store)):
        answer = one.get(f"{path}/od/part-00000.parquet")
        assert answer.status_code == 503
        assert answer.headers["content-type"] == "application/problem+json"
        assert one.get(f"{path}/flows.parquet").status_code == 503
    part.unlink()
    for one in (client, make_client(store=own_store)):
        assert one.get(f"{path}/od/part-00000.parquet").status_code == 503
        assert one.get(path).status_code == 503
    assert [p for p in (own_store / ".exports").rglob("*.parquet*") if not p.name.startswith(".")] == []


def test_what_a_format_cannot_hold_is_not_listed(client, odd, monkeypatch):
    monkeypatch.setattr("synthmap.published.exports.limits.ZONES", 2)
    files = {one["name"]: one["title"] for one in client.get(f"/releases/{odd}/downloads").json()["files"]}
    assert "matrix.omx" not in files
    assert files["flows.fgb"] == "FlatGeobuf: flows, without the 10 workers from elsewhere"
    assert files["flows.parquet"] == "GeoParquet 1.1: flows"


def test_what_a_format_cannot_hold_is_said(make_client, own_store, made_up, monkeypatch):
    monkeypatch.setattr(making, "_COMMAND", (sys.executable, "-c", REFUSES))
    answer = make_client(store=own_store).get(f"/releases/{made_up}/downloads/matrix.omx")
    assert answer.status_code == 409
    assert answer.json()["detail"] == "zones must be fewer"


REFUSES = """
from synthmap.errors import ExportError
from synthmap.published import exports
from synthmap.published.exports import __main__ as program

def export(*_):
    raise ExportError("zones must be fewer")

program.export = export
import sys
sys.exit(program.main(*sys.argv[1:]))
"""


@pytest.mark.parametrize(
    "fault",
    ["import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "raise ValueError('secret words')",
     "print('{'); exit(2)", "print('{\"error\": \"SystemExit\", \"detail\": \"secret words\"}'); exit(2)"],
)  # fmt: skip
def test_a_fault_of_the_process_stays_its_own(make_client, own_store, made_up, monkeypatch, fault):
    monkeypatch.setattr(making, "_COMMAND", (sys.executable, "-c", fault))
    client = make_client(store=own_store)
    answer = client.get(f"/releases/{made_up}/downloads/flows.csv")
    assert answer.status_code == 503
    assert "secret words" not in answer.text
    assert answer.headers["retry-after"]
    monkeypatch.undo()
    assert client.get(f"/releases/{made_up}/downloads/flows.csv").status_code == 200


def test_requests_at_the_same_time_make_it_once(make_client, own_store, made_up, monkeypatch, tmp_path):
    counts = "import sys, pathlib, runpy, uuid; pathlib.Path({!r}, uuid.uuid4().hex).touch(); "
    counts += "runpy.run_module('synthmap.published.exports', run_name='__main__')"
    (tmp_path / "runs").mkdir()
    monkeypatch.setattr(making, "_COMMAND", (sys.executable, "-c", counts.format(str(tmp_path / "runs"))))
    client = make_client(store=own_store)
    path = f"/releases/{made_up}/downloads/release.gpkg"
    together = threading.Barrier(6)

    def ask(_):
        together.wait()
        return client.get(path)

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(ask, range(6)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert len(list((tmp_path / "runs").iterdir())) == 1


def test_processes_at_the_same_time_make_one_whole_file(own_store, made_up, tmp_path):
    line = [sys.executable, "-m", "synthmap.published.exports", own_store / made_up, tmp_path / "into", "release.gpkg"]
    running = [subprocess.Popen(line) for _ in range(3)]
    assert [one.wait() for one in running] == [0, 0, 0]
    assert [path.name for path in (tmp_path / "into").iterdir()] == ["release.gpkg"]
    assert (tmp_path / "into" / "release.gpkg").read_bytes()[:15] == b"SQLite format 3"


def test_only_so_many_files_wait(own_store, made_up, tmp_path, monkeypatch):
    monkeypatch.setattr(making, "_COMMAND", (sys.executable, "-c", "import time; time.sleep(60)"))
    monkeypatch.setattr(making, "_WAITING", 3)
    opened = ReleaseStore(own_store).open(made_up)

    async def crowd():
        queue = making.Making()
        waiting = [asyncio.create_task(queue.make(opened, tmp_path, str(i % 3), 60)) for i in range(6)]
        await asyncio.sleep(0.1)
        with pytest.raises(Problem, match="too many files"):
            await queue.make(opened, tmp_path, "one more", 60)
        started = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in started:
            task.cancel()
        return await asyncio.gather(*started, *waiting, return_exceptions=True)

    assert all(isinstance(one, asyncio.CancelledError) for one in asyncio.run(crowd()))


def test_a_reader_who_leaves_stops_it_for_no_one_else(own_store, made_up, tmp_path):
    opened = ReleaseStore(own_store).open(made_up)

    async def two():
        queue = making.Making()
        first = asyncio.create_task(queue.make(opened, tmp_path, "flows.csv", 60))
        await asyncio.sleep(0)
        second = asyncio.create_task(queue.make(opened, tmp_path, "flows.csv", 60))
        await asyncio.sleep(0.05)
        first.cancel()
        await second

    asyncio.run(two())
    assert (tmp_path / "flows.csv").exists()


def test_who_would_wait_too_long_is_told_so_and_it_is_made_nevertheless(own_store, made_up, tmp_path):
    opened = ReleaseStore(own_store).open(made_up)

    async def impatient():
        queue = making.Making()
        with pytest.raises(Problem, match=r"flows\.csv is still being made") as refusal:
            await queue.make(opened, tmp_path, "flows.csv", 0.01)
        assert refusal.value.status == 503
        assert "Retry-After" in refusal.value.headers
        await queue.make(opened, tmp_path, "flows.csv", 60)

    asyncio.run(impatient())
    assert (tmp_path / "flows.csv").exists()


def test_an_error_nobody_waits_for_is_no_noise(own_store, made_up, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(making, "_COMMAND", (sys.executable, "-c", REFUSES))
    opened = ReleaseStore(own_store).open(made_up)

    async def leave():
        queue = making.Making()
        task = asyncio.create_task(queue.make(opened, tmp_path, "flows.csv", 60))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(ExportError):
            await queue.make(opened, tmp_path, "flows.csv", 60)

    asyncio.run(leave())
    assert caplog.records == []
