"""The list of releases and their manifests, as clients see them."""

import json
import os
import shutil

import pytest


@pytest.fixture
def copied(store, tmp_path, made_up, odd):
    """A store of one's own: the made-up release, and four copies of the odd one under other names and times."""
    root = tmp_path / "releases"
    shutil.copytree(store / made_up, root / made_up)
    for day in (1, 2, 3, 4):
        add(root, store / odd, f"copy-2031010{day}T000000Z-00000000")
    return root


def add(root, source, name):
    """Copy a release to `root` under another id."""
    shutil.copytree(source, root / name)
    (root / name).chmod(0o755)
    manifest = root / name / "manifest.json"
    text = json.loads(manifest.read_bytes()) | {"release": name}
    manifest.unlink()
    manifest.write_text(json.dumps(text))


def test_the_list_tells_what_a_reader_chooses_by(client, made_up, odd):
    body = client.get("/releases").json()
    listed = {one["id"]: one for one in body["releases"]}
    assert body["numberReturned"] == len(body["releases"]) == 2
    one = listed[made_up]
    assert one["levels"] == ["region", "state", "county", "tract", "blockgroup", "zone"]
    assert one["segments"] == ["SA01", "SA02", "SA03"]
    assert (one["workers"], one["destinations"], one["epsilon"]) == (3000, 60, 4.0)
    assert one["status"] == "available"
    assert one["private"] is False
    assert "fixed seed" in one["warning"]
    assert listed[odd]["title"] == "Odd ids <b>& polygons</b>"


def test_every_link_of_a_release_leads_somewhere(client, made_up):
    links = client.get(f"/releases/{made_up}").json()["links"]
    assert {link["rel"] for link in links} >= {"self", "statement", "od", "metrics", "downloads"}
    for link in links:
        answer = client.get(link["href"])
        assert answer.status_code == 200, link
        assert answer.headers["content-type"].split(";")[0] == link["type"]


def test_newest_first_and_pages_hold_while_releases_come_and_go(make_client, copied, store, odd):
    client = make_client(store=copied)
    body = client.get("/releases?limit=2").json()
    assert [one["id"][:13] for one in body["releases"]] == ["copy-20310104", "copy-20310103"]
    add(copied, store / odd, "copy-20310201T000000Z-00000000")
    shutil.rmtree(copied / "copy-20310103T000000Z-00000000")
    seen = []
    while links := [link for link in body["links"] if link["rel"] == "next"]:
        body = client.get(links[0]["href"]).json()
        seen += [one["id"][:13] for one in body["releases"]]
    assert seen[:2] == ["copy-20310102", "copy-20310101"]
    assert len(seen) == 3


def test_a_damaged_release_is_named_and_spoils_no_other(make_client, copied, made_up):
    broken, unreadable = "copy-20310101T000000Z-00000000", "copy-20310102T000000Z-00000000"
    os.truncate(copied / broken / "zones.parquet", 10)
    (copied / unreadable / "manifest.json").write_text("{")
    client = make_client(store=copied)
    answer = client.get("/releases")
    assert answer.status_code == 200
    listed = {one["id"]: one for one in answer.json()["releases"]}
    assert len(listed) == 5
    for name in (broken, unreadable):
        assert listed[name]["status"] == "damaged"
        assert str(copied) not in answer.text
        assert client.get(f"/releases/{name}").status_code == 503
    assert "zones.parquet" in listed[broken]["fault"]
    assert client.get(f"/releases/{made_up}/od?limit=1").status_code == 200


def test_the_manifest_has_its_hash_as_etag(client, made_up, store):
    answer = client.get(f"/releases/{made_up}", headers={"Accept-Encoding": "identity"})
    manifest = json.loads((store / made_up / "manifest.json").read_bytes())
    assert answer.json().items() >= manifest.items()
    tag = answer.headers["etag"]
    from synthmap.release.verify import sha256

    assert tag == f'"{sha256(store / made_up / "manifest.json")}"'
    for condition in (tag, f"W/{tag}", f'"x", {tag}', "*"):
        again = client.get(f"/releases/{made_up}", headers={"If-None-Match": condition})
        assert (again.status_code, again.content) == (304, b"")
    assert client.get(f"/releases/{made_up}", headers={"If-None-Match": '"x"'}).status_code == 200


@pytest.mark.parametrize("below", ["", "/statement", "/od"])
@pytest.mark.parametrize("name", ["none", "%2e%2e", "a%01b", "%F0%9F%98%80", ".catalog", "x" * 3000])
def test_no_release_of_that_name_is_not_found(client, name, below):
    answer = client.get(f"/releases/{name}{below}")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=-1", "limit=x", "limit=1e9", "limit=100000", "cursor=x", "cursor=", "cursor=W10", "cursor=%01",
     "cursor=WzEsMiwzXQ==", "page=2", "f=xml"],
)  # fmt: skip
def test_bad_parameters_of_the_list_are_named(client, query):
    answer = client.get(f"/releases?{query}")
    assert answer.status_code == 400
    assert query.split("=")[0] in answer.json()["detail"]


def test_an_empty_store_is_an_empty_list(make_client, tmp_path):
    (tmp_path / "empty").mkdir()
    assert make_client(store=tmp_path / "empty").get("/releases").json()["releases"] == []
