"""Who may do what: keys in every way they can be sent, every route of the application, a catalog that is down."""

import base64

import pytest
from approutes import routes_of
from bearer import bearer
from sqlalchemy import event

from synthmap.catalog.database import open_catalog
from synthmap.catalog.keys import Role, add_key, find_key, revoke_key
from synthmap.errors import CatalogError
from synthmap.service import keyring
from synthmap.service.access import analyses, curates, reads
from synthmap.service.analysis_kinds import KINDS
from synthmap.service.keyring import Keyring
from synthmap.service.paths import is_open

ABSENT = "none-20260101T000000Z-00000000"


def secret_of(client, role=Role.READER, name="test") -> str:
    return add_key(client.app.state.service.catalog, name, role)


def basic(user: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def curator_routes(client):
    found = [route for route in routes_of(client.app) if curates in route.calls]
    assert {"/processes/{process}/execution", "/jobs", "/jobs/{job}", "/datasets"} <= {one.template for one in found}
    return found


def without_instance(answer):
    return answer.status_code, {**answer.json(), "instance": None}, answer.headers.get_list("www-authenticate")


BODIES = (
    {}, {"content": b"{", "headers": {"Content-Type": "application/json"}}, {"json": {"inputs": 3, "unknown": 1}},
    {"content": b"\xff\xfe", "headers": {"Content-Type": "application/json"}}, {"content": b"x" * 100_000},
)  # fmt: skip


NAMES = (ABSENT, "é\n'<b>", "x" * 3000)
QUERY = "?limit=-1&x=1"


@pytest.mark.parametrize(("role", "status"), [(None, 401), (Role.READER, 403), (Role.ANALYST, 403)])
def test_curator_routes_refuse_all_others_with_one_answer_whatever_is_asked(client, made_up, role, status):
    headers = {} if role is None else bearer(client, role)
    asked = [(name, "", {}) for name in (made_up, *NAMES)] + [(made_up, "", body) for body in BODIES]
    asked += [(made_up, QUERY, {}), *((NAMES[0], QUERY, body) for body in BODIES)]  # one thing wrong, and all at once
    for route in curator_routes(client):
        answers = []
        for name, query, body in asked:
            if route.method in ("GET", "HEAD") and body:
                continue
            path = route.path(release=name, process=name, job=name)
            sent = {**body, "headers": {**body.get("headers", {}), **headers}}
            answers.append(without_instance(client.request(route.method, path + query, **sent)))
        assert answers[0][0] == status, route
        assert all(answer == answers[0] for answer in answers), route


def test_curators_pass_where_others_are_refused(client, made_up):
    headers = bearer(client, Role.CURATOR)
    for route in curator_routes(client):
        answer = client.request(route.method, route.path(release=made_up), headers=headers)
        assert answer.status_code not in (401, 403, 500), route
        assert answer.headers["cache-control"] == "no-store"


def test_without_anonymous_reading_nothing_answers_without_a_key(make_client, made_up):
    client = make_client(anonymous=False)
    paths = {(route.method, route.path(release=made_up)) for route in routes_of(client.app)}
    paths |= {("GET", "/nothing"), ("HEAD", "/"), ("OPTIONS", "/releases"), ("PUT", f"/releases/{made_up}")}
    refused = {(method, path) for method, path in paths if not is_open(path)}
    assert len(refused) > 20
    for method, path in refused:
        answer = client.request(method, path)
        assert answer.status_code == 401, (method, path)
        challenges = answer.headers.get_list("www-authenticate")
        assert [one.split()[0] for one in challenges] == ["Basic", "Bearer"]
    let_in = {path for method, path in paths if method == "GET" and is_open(path)}
    assert {"/healthz", "/readyz", "/map"} <= let_in
    assert {client.get(path).status_code for path in let_in} <= {200, 404, 503}  # the map may not be built


def test_without_anonymous_reading_any_key_reads(make_client, made_up):
    client = make_client(anonymous=False)
    for role in Role:
        headers = bearer(client, role)
        for route in routes_of(client.app):
            if reads in route.calls and route.method == "GET":
                answer = client.get(route.path(release=made_up), headers=headers)
                assert answer.status_code not in (401, 403), route


def test_every_route_that_changes_something_says_who_may_use_it(client):
    asks = {
        f"/releases/{{release}}/analyses/{name}" for name in ("area", *KINDS)
    }  # POST, for areas that no address holds
    for route in routes_of(client.app):
        allowed = {reads, analyses, curates} if route.template in asks else {analyses, curates}
        assert route.method in ("GET", "HEAD") or allowed & route.calls, route


@pytest.mark.parametrize("user", ["", "anyone", "a:b", "Zoë"])
def test_a_key_is_taken_in_three_ways(make_client, user):
    client = make_client(anonymous=False)
    secret = secret_of(client)
    assert client.get("/processes", headers={"Authorization": f"Bearer {secret}"}).status_code == 200
    assert client.get("/processes", headers={"Authorization": f"bEARER  {secret} "}).status_code == 200
    assert client.get("/processes", params={"token": secret}).status_code == 200
    expected = 401 if ":" in user else 200  # a user name holds no colon: what follows it is the password
    assert client.get("/processes", headers=basic(user, secret)).status_code == expected


def test_several_keys_must_be_the_same(client):
    one, other = secret_of(client), secret_of(client)
    agreeing = client.get("/processes", params={"token": one}, headers=basic("me", one))
    assert agreeing.status_code == 200
    for sent in (
        {"params": {"token": one}, "headers": basic("me", other)},
        {"params": {"token": [one, other]}},
        {"params": {"token": one}, "headers": {"Authorization": "Bearer nonsense"}},
        {"headers": [("Authorization", f"Bearer {one}"), ("Authorization", f"Bearer {other}")]},
    ):
        answer = client.get("/processes", **sent)
        assert answer.status_code == 401
        assert "differ" in answer.json()["detail"]


@pytest.mark.parametrize(
    "authorization",
    ["", " ", "Bearer", "Bearer ", "Basic", "Basic !!!", "Basic Og==", "Basic bm9jb2xvbg==", "Basic /w==", "Digest x=y",
     "smk_0123456789abcdef_x", "Bearer smk_0123456789abcdef_" + "x" * 43, "Bearer " + "x" * 9000, b"Bearer \xff\xfe",
     b"Basic \xe9\xff"],
)  # fmt: skip
def test_what_is_no_key_opens_nothing_not_even_what_anyone_may_read(client, authorization):
    for path in ("/processes", "/jobs"):
        answer = client.get(path, headers=[(b"Authorization", authorization)])
        assert answer.status_code == 401
        assert "smk_" not in answer.text


@pytest.mark.parametrize("token", ["", "x", "%00", "%ff%fe", "smk_%F0%9F%92%A9", "%ed%a0%80"])
def test_a_token_that_is_no_key_opens_nothing(client, token):
    assert client.get(f"/processes?token={token}").status_code in (400, 401)


def test_a_key_that_is_nearly_right_opens_nothing(client):
    secret = secret_of(client, Role.CURATOR)
    for wrong in (secret[:-1], secret + "x", secret.upper(), secret[:-1] + ("A" if secret[-1] != "A" else "B")):
        assert client.get("/jobs", headers={"Authorization": f"Bearer {wrong}"}).status_code == 401
    assert client.get("/jobs", headers={"Authorization": f"Bearer {secret}"}).status_code == 200


def test_health_does_not_look_at_keys(client):
    assert client.get("/healthz", headers={"Authorization": "Bearer nonsense"}).status_code == 200


def test_what_a_key_was_sent_for_is_kept_by_no_shared_cache(client, made_up):
    path = f"/releases/{made_up}/downloads/manifest.json"
    assert client.get(path).headers["cache-control"].startswith("public")
    for role, expected in ((Role.READER, "private, max-age=3600"), (Role.CURATOR, "no-store")):
        assert client.get(path, headers=bearer(client, role)).headers["cache-control"] == expected
        assert client.get(path, params={"token": secret_of(client, role)}).headers["cache-control"] == expected


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def catalog(tmp_path):
    catalog = open_catalog(f"sqlite:///{tmp_path / 'keys.sqlite'}")
    yield catalog
    catalog.close()


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.mark.anyio
async def test_a_revoked_key_opens_nothing_after_seconds(catalog):
    clock = Clock()
    ring = Keyring(catalog, clock)
    secret = add_key(catalog, "leaving", Role.CURATOR)
    key = await ring.find(secret)
    revoke_key(catalog, key.id)
    clock.now += keyring.SECONDS
    assert keyring.SECONDS <= 5
    assert await ring.find(secret) is None


@pytest.mark.anyio
async def test_the_catalog_is_not_asked_at_every_request(catalog):
    clock, asked = Clock(), []
    ring = Keyring(catalog, clock)
    secret = add_key(catalog, "busy", Role.READER)
    event.listen(catalog.engine, "before_cursor_execute", lambda *_: asked.append(1))
    for _ in range(50):
        assert (await ring.find(secret)).role is Role.READER
        clock.now += keyring.SECONDS / 100
    first = len(asked)
    assert await ring.find(secret + "x") is None
    clock.now += keyring.SECONDS
    await ring.find(secret)
    assert len(asked) == 2 * first > 0


@pytest.mark.anyio
async def test_memory_does_not_grow_with_guesses(catalog, monkeypatch):
    monkeypatch.setattr(keyring, "_KEPT", 5)
    ring = Keyring(catalog, Clock())
    for i in range(20):
        assert await ring.find(f"guess {i}") is None
    assert sum(ring.kept(f"guess {i}")[0] for i in range(20)) == 5


@pytest.mark.anyio
async def test_a_catalog_that_is_down_is_not_asked_again_at_once(catalog, monkeypatch):
    clock, asked = Clock(), []

    def down(*_):
        asked.append(1)
        raise CatalogError("the catalog does not answer")

    ring = Keyring(catalog, clock)
    secret = add_key(catalog, "unlucky", Role.READER)
    monkeypatch.setattr(keyring, "find_key", down)
    for _ in range(10):
        with pytest.raises(CatalogError):
            await ring.find(secret)
    assert len(asked) == 1
    monkeypatch.setattr(keyring, "find_key", find_key)
    clock.now += 1.5
    assert (await ring.find(secret)).name == "unlucky"


def test_with_the_catalog_down_anyone_still_reads_and_keys_are_told_so(client, made_up, tmp_path, monkeypatch):
    monkeypatch.setattr(keyring, "_DOWN_SECONDS", 0.0)
    secret = secret_of(client)
    sent = {"headers": {"Authorization": f"Bearer {secret}"}}
    file = tmp_path / "catalog.sqlite"
    client.app.state.service.catalog.engine.dispose()
    aside = {path: path.read_bytes() for path in tmp_path.glob("catalog.sqlite*")}
    for path in aside:
        path.unlink()
    file.write_bytes(b"no database at all " * 100)
    assert client.get(f"/releases/{made_up}").status_code == 200
    answer = client.get(f"/releases/{made_up}", **sent)
    assert answer.status_code == 503
    assert answer.headers["content-type"] == "application/problem+json"
    assert str(file) not in answer.text
    client.app.state.service.catalog.engine.dispose()
    for path, content in aside.items():
        path.write_bytes(content)
    assert client.get(f"/releases/{made_up}", **sent).status_code == 200
