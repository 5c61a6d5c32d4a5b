"""Privacy statements over HTTP: text, page and record, from one source, linked from everything about a release."""

import json

import pytest
from pages import Page

from synthmap.release.statement import RECORD, Statement


@pytest.fixture
def read(client, odd):
    def get(accept, query=""):
        return client.get(f"/releases/{odd}/statement{query}", headers={"accept": accept})

    return get


@pytest.mark.parametrize(
    ("accept", "query", "media"),
    [
        ("*/*", "", "text/plain; charset=utf-8"),
        ("text/html,application/xhtml+xml,*/*;q=0.8", "", "text/html; charset=utf-8"),
        ("application/json", "", "application/json"),
        ("text/plain", "?f=json", "application/json"),
        ("*/*", "?f=html", "text/html; charset=utf-8"),
        ("text/html", "?f=text", "text/plain; charset=utf-8"),
    ],
)
def test_everyone_gets_the_form_they_read(read, accept, query, media):
    answer = read(accept, query)
    assert (answer.status_code, answer.headers["content-type"]) == (200, media)
    assert "ε = 4" in answer.text
    assert "NOT PRIVATE" in answer.text


def test_other_forms_are_refused(read):
    assert read("image/png").status_code == 406
    assert read("*/*", "?f=pdf").status_code == 400


def test_the_record_is_that_of_the_release(read, store, odd):
    answer = read("application/json")
    assert answer.text == (store / odd / RECORD).read_text()
    assert Statement.model_validate(answer.json()).facts.release == odd


def test_forms_have_validators_of_their_own(client, read, odd):
    tags = {read("*/*", f"?f={form}").headers["etag"] for form in ("text", "html", "json")}
    assert len(tags) == 3
    for form in ("text", "html", "json"):
        tag = read("*/*", f"?f={form}").headers["etag"]
        again = client.get(f"/releases/{odd}/statement?f={form}", headers={"If-None-Match": tag})
        assert again.status_code == 304


def test_the_page_is_one_of_the_service(read, odd):
    page = Page(read("text/html").text)
    assert not {name for name, _ in page.tags} & {"script", "style", "iframe", "img", "form", "b"}
    assert [one["href"] for one in page.all("link")] == ["/static/synthmap.css"]
    assert all(link.startswith("http://testserver/") or link == "#main" for link in page.links)
    assert f"http://testserver/releases/{odd}" in page.links
    assert len(page.all("h1")) == 1
    assert "Odd ids <b>& polygons</b>" in page.text
    assert "What an attacker could infer" in page.text


def test_everything_about_a_release_leads_to_it(client, odd):
    release = client.get(f"/releases/{odd}").json()
    collection = client.get(f"/collections/{odd}.flows").json()
    for document in (release, collection):
        found = [one for one in document["links"] if one["rel"] == "describedby" and "/statement" in one["href"]]
        assert {one["type"] for one in found} == {"text/html", "application/json"}
        for one in found:
            answer = client.get(one["href"], headers={"accept": "image/png"})
            assert answer.headers["content-type"].startswith(one["type"])


def test_the_schema_is_served_and_describes_what_is_served(client, read):
    landing = client.get("/").json()["links"]
    (href,) = [one["href"] for one in landing if one["type"] == "application/schema+json"]
    found = client.get(href)
    assert found.headers["content-type"] == "application/schema+json"
    assert found.json()["$id"] == href
    assert set(read("application/json").json()) == set(found.json()["properties"])


def test_it_is_part_of_the_interface(client):
    document = client.get("/api").json()
    answer = document["paths"]["/releases/{release}/statement"]["get"]["responses"]["200"]["content"]
    assert set(answer) == {"application/json", "text/html", "text/plain"}
    assert "Statement" in json.dumps(answer["application/json"])


def test_a_damaged_record_is_not_served(make_client, store, odd, tmp_path):
    import shutil

    shutil.copytree(store / odd, tmp_path / "store" / odd)
    client = make_client(store=tmp_path / "store")
    assert client.get(f"/releases/{odd}/statement").status_code == 200
    path = tmp_path / "store" / odd / RECORD
    path.chmod(0o644)
    path.write_text(path.read_text().replace("ε = 4", "ε = 1"))
    answer = client.get(f"/releases/{odd}/statement?f=json")
    assert answer.status_code == 503
    assert str(tmp_path) not in answer.text


def test_a_release_of_before_gets_one(make_client, store, odd, tmp_path):
    import shutil

    directory = tmp_path / "store" / odd
    shutil.copytree(store / odd, directory)
    path = directory / "manifest.json"
    path.chmod(0o644)
    manifest = json.loads(path.read_text())
    for name in ("statement.json", "statement.html"):
        del manifest["files"][name]
        (directory / name).unlink()
    path.write_text(json.dumps(manifest))
    client = make_client(store=tmp_path / "store")
    assert "ε = 4" in client.get(f"/releases/{odd}/statement").text
