"""The page at /map: its files, what browsers let it do, who may have it, and what there is where it is not built."""

import gzip

import pytest

from synthmap.errors import ConfigurationError
from synthmap.service.routes import landing, map_page
from synthmap.service.settings import service_settings
from synthmap.service.web_page import built_page, policy

HTML = b'<!doctype html><script type="module" src="./map/index-1.js"></script>'


@pytest.fixture
def built(tmp_path, monkeypatch):
    """A page in small, as the build leaves it; one file has its compressed form beside it, the other has none."""
    (tmp_path / "dist" / "map").mkdir(parents=True)
    (tmp_path / "dist" / "index.html").write_bytes(HTML)
    for name, content in (("index-1.js", b"let a = 1;\n" * 200), ("index-1.css", b"a { color: red }")):
        (tmp_path / "dist" / "map" / name).write_bytes(content)
    (tmp_path / "dist" / "map" / "index-1.js.gz").write_bytes(gzip.compress(b"let a = 1;\n" * 200, 9, mtime=0))
    page = built_page(tmp_path / "dist")
    for module in (map_page, landing):
        monkeypatch.setattr(module, "built_page", lambda: page)


def directives(text):
    return dict(one.strip().split(" ", 1) for one in text.split(";"))


def test_the_page_and_its_files_are_sent(built, client):
    page = client.get("/map", headers={"accept": "text/html"})
    assert (page.status_code, page.content) == (200, HTML)
    assert page.headers["cache-control"] == "no-cache"
    script = client.get("/map/index-1.js")
    assert script.headers["content-type"].startswith("text/javascript")
    assert script.headers["content-encoding"] == "gzip"
    assert script.text == "let a = 1;\n" * 200
    assert "immutable" in script.headers["cache-control"]
    plain = client.get("/map/index-1.js", headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert plain.text == script.text
    assert client.get("/map/index-1.css").headers["content-type"].startswith("text/css")


def test_a_file_that_is_known_is_not_sent_again(built, client):
    for path in ("/map", "/map/index-1.js"):
        tag = client.get(path).headers["etag"]
        assert client.get(path, headers={"if-none-match": tag}).status_code == 304


@pytest.mark.parametrize("name", ["index-1.js.gz", "..%2Findex.html", "other.js", "index.html"])
def test_other_files_are_not_there(built, client, name):
    assert client.get(f"/map/{name}").status_code == 404


def test_the_page_may_ask_nobody_but_the_service(built, client):
    told = directives(client.get("/map").headers["content-security-policy"])
    assert told["default-src"] == "'none'"
    assert told["script-src"] == told["connect-src"] == told["style-src"] == "'self'"
    assert not any("unsafe" in value or "http" in value or "*" in value for value in told.values())
    assert len(client.get("/map").headers.get_list("content-security-policy")) == 1
    assert "worker-src" not in client.get("/map/index-1.js").headers["content-security-policy"]


def test_a_base_map_is_asked_for_only_where_one_is_set(built, make_client):
    client = make_client(map_tiles="https://tiles.example.org:8443/{z}/{x}/{y}.png", map_attribution="© <b>Us</b>")
    told = directives(client.get("/map").headers["content-security-policy"])
    assert told["img-src"].endswith(" https://tiles.example.org:8443")
    assert told["script-src"] == "'self'"
    settings = client.get("/map/settings").json()
    assert settings["tiles"] == "https://tiles.example.org:8443/{z}/{x}/{y}.png"
    assert settings["attribution"] == "© <b>Us</b>"
    assert client.get("/map").headers["referrer-policy"] == "strict-origin"
    assert client.get("/map/settings").headers["referrer-policy"] == "no-referrer"
    assert make_client().get("/map").headers["referrer-policy"] == "no-referrer"
    assert make_client().get("/map/settings").json()["tiles"] is None


@pytest.mark.parametrize("tiles", ["tiles.example.org/{z}", "https://a b/{z}", "https://x;script-src/{z}", "javascript://x/{z}",
                                   "https://x,y/{z}", "https://user@x/{z}"])  # fmt: skip
def test_tiles_must_be_an_address_that_cannot_change_the_policy(tiles):
    with pytest.raises(ConfigurationError, match="map_tiles"):
        service_settings(map_tiles=tiles)


def test_a_policy_names_scheme_host_and_port_of_the_tiles_only():
    assert "connect-src 'self' http://127.0.0.1:9000;" in policy("http://127.0.0.1:9000/a/{z}/{x}/{y}.png?b=c")


def test_the_page_needs_no_key_since_a_key_is_entered_there(built, make_client):
    client = make_client(anonymous=False)
    for path in ("/map", "/map/settings", "/map/index-1.js"):
        assert client.get(path).status_code == 200
    assert client.get("/map/settings").json()["anonymous"] is False
    assert client.get("/mapped").status_code == 401


def test_the_page_learns_what_the_service_takes(built, make_client):
    settings = make_client(body_bytes_maximum=5000).get("/map/settings").json()
    assert (settings["upload_bytes"], settings["farthest_m"]) == (5000, 1_000_000)


def test_the_landing_page_leads_to_the_map(built, client):
    assert [one for one in client.get("/").json()["links"] if one["href"].endswith("/map")]


def test_where_it_is_not_built_the_page_says_how(client, monkeypatch):
    for module in (map_page, landing):
        monkeypatch.setattr(module, "built_page", lambda: None)
    answer = client.get("/map", headers={"accept": "text/html"})
    assert answer.status_code == 404
    assert "python synthmap/service/web/build.py" in answer.text
    assert not [one for one in client.get("/").json()["links"] if one["href"].endswith("/map")]
    assert client.get("/map/index-1.js").status_code == 404


def test_levels_of_a_release_have_numbers_of_units_and_an_extent(client, odd, made_up):
    found = client.get(f"/releases/{odd}/levels").json()
    assert found["levels"] == [{"id": "side", "units": 2}, {"id": "zone", "units": 8}]
    west, south, east, north = found["extent"]
    assert (round(west, 2), round(south, 2), round(east, 2), round(north, 2)) == (2.0, 48.0, 2.8, 48.1)
    sizes = [one["units"] for one in client.get(f"/releases/{made_up}/levels").json()["levels"]]
    assert sizes == sorted(sizes)
    assert sizes[-1] == 400
