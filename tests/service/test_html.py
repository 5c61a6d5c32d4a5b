"""Pages for people: nothing from elsewhere, no scripts, hostile ids are text, the promise is on the page."""

import shutil

import pytest
from pages import Page

from synthmap.published.store import ReleaseStore
from synthmap.release.manifest import Loss
from synthmap.service.html import caution

ROOT = ("/", "/conformance", "/api?f=html", "/collections", "/releases", "/releases/{odd}")
FLOWS = ("flows", "flows/queryables", "flows/items", "flows/items/0", "flows/items/7")
ZONES = ("origins/items", "origins/items/2", "destinations/items")
PATHS = (*ROOT, *(f"/collections/{{odd}}.{path}" for path in (*FLOWS, *ZONES)))


@pytest.fixture
def read(client, odd):
    def get(path):
        answer = client.get(path.format(odd=odd), headers={"accept": "text/html"})
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        return Page(answer.text)

    return get


@pytest.mark.parametrize("path", PATHS)
def test_a_page_is_whole_and_takes_nothing_from_elsewhere(read, path):
    page = read(path)
    names = {name for name, _ in page.tags}
    assert not names & {"script", "style", "iframe", "object", "img", "form"}
    assert not any(key.startswith("on") or key == "style" for _, attributes in page.tags for key in attributes)
    assert [one["href"] for one in page.all("link")] == ["/static/synthmap.css"]
    assert all(link.startswith("http://testserver/") or link == "#main" for link in page.links)
    (html,) = page.all("html")
    assert html["lang"] == "en"
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in page.all("meta")
    assert len(page.all("h1")) == len(page.all("main")) == len(page.all("title")) == 1
    assert all(one.get("scope") in ("col", "row") for one in page.all("th"))


@pytest.mark.parametrize("path", PATHS)
def test_links_of_a_page_lead_somewhere(read, client, path):
    for link in set(read(path).links) - {"#main"}:
        answer = client.get(link, headers={"accept": "text/html,*/*;q=0.5"})
        assert answer.status_code == 200 or (link.endswith("/jobs") and answer.status_code == 401), link


@pytest.mark.parametrize("path", [one for one in PATHS if "{odd}" in one] + ["/collections", "/releases"])
def test_pages_of_a_release_say_what_is_promised(read, path):
    text = read(path).text
    for part in ("NOT PRIVATE", "ε = 4", "δ = 1e-05", "Do not read single zones as facts"):
        assert part in text


def test_a_release_without_delta_promises_none(store, odd):
    manifest = ReleaseStore(store).open(odd).manifest
    pure = manifest.privacy.model_copy(update={"dp": Loss(epsilon=4.0, delta=0.0)})
    for private, words in ((True, "are drawn, ε-differentially private with ε = 4. Do"), (False, "noise of ε = 4. Do")):
        text = caution(manifest.model_copy(update={"privacy": pure, "private": private})).text
        assert words in text
        assert "δ" not in text


def test_hostile_ids_and_titles_are_text(read):
    hostile = {
        "/collections/{odd}.origins/items": ("<img src=x onerror=alert(1)>", "O'Brien", "東京", 'say "hi", ok; é'),
        "/collections/{odd}.flows/items/7": ("<img src=x onerror=alert(1)>",),
        "/collections": ("Odd ids <b>& polygons</b>",),
        "/releases": ("Odd ids <b>& polygons</b>",),
        "/releases/{odd}": ("Odd ids <b>& polygons</b>", "vintage 2026", "dirichlet"),
    }
    for path, ids in hostile.items():
        page = read(path)
        for one in ids:
            assert one in page.text
        assert not page.all("img") and not page.all("b")


def test_pages_follow_one_another(make_client, odd):
    client = make_client(page_size=4)
    seen, address = [], f"http://testserver/collections/{odd}.flows/items?f=html"
    while address:
        page = Page(client.get(address).text)
        seen += [link.rsplit("/", 1)[1] for link in page.links if "/items/" in link]
        address = next((one["href"] for one in page.all("a") if one.get("rel") == "next"), None)
    assert seen == [f"{row}?f=html" for row in range(9)]


def test_releases_follow_one_another(make_client, two):
    client = make_client(store=two)
    first = Page(client.get("/releases?limit=1&f=html").text)
    (older,) = [one["href"] for one in first.all("a") if one.get("rel") == "next"]
    rest = Page(client.get(older).text)
    assert not [one for one in rest.all("a") if one.get("rel") == "next"]
    heads = [[link for link in page.links if "/releases/" in link] for page in (first, rest)]
    assert len(heads[0]) == len(heads[1]) == 1
    assert heads[0] != heads[1]


def test_a_damaged_release_is_told_beside_the_others(make_client, two, made_up, tmp_path):
    store = tmp_path / "store"
    shutil.copytree(two, store)
    with (store / made_up / "plan.parquet").open("ab") as file:
        file.write(b"more")
    text = Page(make_client(store=store).get("/releases?f=html").text).text
    assert f"{made_up} Damaged:" in " ".join(text.split())
    assert "A year later" in text


def test_the_style_is_served_and_lies_below_the_prefix(make_client):
    client = make_client(root_path="/maps")
    page = Page(client.get("/", headers={"accept": "text/html"}).text)
    (style,) = page.all("link")
    assert style["href"] == "/maps/static/synthmap.css"
    answer = client.get(style["href"])
    assert answer.headers["content-type"].startswith("text/css")
    assert "prefers-color-scheme: dark" in answer.text and "url(" not in answer.text and "@import" not in answer.text


def test_a_policy_forbids_what_pages_do_not_need(client):
    policy = client.get("/", headers={"accept": "text/html"}).headers["content-security-policy"]
    assert "default-src 'none'" in policy and "style-src 'self'" in policy and "unsafe" not in policy
