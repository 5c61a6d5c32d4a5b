"""One shape for every refusal, and no fault of the service whatever is asked."""

import json

import pytest
from approutes import routes_of
from bearer import bearer
from fastapi.routing import iter_route_contexts
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from synthmap import errors
from synthmap.service.problems import STATUS

SHAPE = {"type", "title", "status", "detail", "instance"}
FUZZ = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def is_problem(answer):
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert set(body) == SHAPE
    assert body["status"] == answer.status_code
    assert body["title"] != "Error"
    assert answer.headers["cache-control"] == "no-store"
    return True


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/nothing", 404), ("GET", "/releases//", 404), ("GET", "/releases/", 404), ("GET", "/releases/none", 404),
     ("PATCH", "/releases", 405), ("GET", "/processes?limit=0", 400), ("GET", "/processes?limit=x", 400),
     ("GET", "/processes?unknown=1", 400), ("GET", "/jobs", 401), ("GET", "/processes/nothing", 404),
     ("TRACE", "/processes", 405), ("BREW", "/", 405), ("GET", "/releases/..%2f..%2fetc%2fpasswd", 404)],
)  # fmt: skip
def test_refusals_have_one_shape(client, method, path, status):
    answer = client.request(method, path)
    assert answer.status_code == status
    assert is_problem(answer)


def test_a_405_tells_all_methods_of_the_path(client):
    assert client.put("/jobs/x").headers["allow"] == "DELETE, GET, HEAD"
    assert client.get("/processes/release/execution").headers["allow"] == "POST"
    assert client.delete("/healthz").headers["allow"] == "GET, HEAD"


def test_a_damaged_release_is_not_available_and_says_nothing_of_paths(make_client, tmp_path):
    release = tmp_path / "store" / "bad"
    release.mkdir(parents=True)
    (release / "manifest.json").write_text("{}")
    answer = make_client(store=tmp_path / "store").get("/releases/bad")
    assert answer.status_code == 503
    assert is_problem(answer)
    assert str(tmp_path) not in answer.text


def test_a_parameter_is_named_and_what_was_sent_is_not_repeated(client):
    detail = client.get("/processes?limit=hunter2&offset=-1").json()["detail"]
    assert "limit must be a valid integer" in detail
    assert "offset must be greater than or equal to 0" in detail
    assert "hunter2" not in detail


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[" * 100_000, b"\xff\xfe\x00", b"null", b"[]", b"NaN", b'{"inputs": {"dataset": "\\ud800"}}',
     b'{"inputs": {"\\ud800": 1}}', b'{"\\ud800": 1}', b'{"inputs": {"epsilon": NaN}}',
     b'{"inputs": {"epsilon": 1e999}}',
     b'{"inputs": {"dataset": "\\u0000"}}', b'{"inputs": {"dataset": ' + b"9" * 5000 + b"}}",
     b'{"inputs": {"dataset": "ri", "epsilon": -Infinity}}', b'{"inputs": {"release": "' + b"x" * 50_000 + b'"}}',
     b'{"inputs": {"release": "../../etc"}}', b'{"inputs": {"release": "a\\u0000b"}}'],
)  # fmt: skip
def test_a_bad_body_is_a_bad_request(client, body):
    for route in routes_of(client.app):
        if route.method in ("POST", "PUT", "PATCH"):
            for process in ("release", "evaluate", "export"):
                headers = {**bearer(client), "Content-Type": "application/json"}
                answer = client.request(route.method, route.path(process=process), content=body, headers=headers)
                known = "{release}" not in route.template  # there is none of the name that the path gets
                assert answer.status_code == (400 if known else 404), (route, answer.text)
                assert is_problem(answer)
                assert len(answer.text) < 2000


@pytest.mark.parametrize("kind", [None, "", "text/plain", "application/json; charset=utf-16", "a/b; \xe9", "x" * 5000])
def test_an_odd_kind_of_body_is_a_bad_request(client, kind):
    headers = [*bearer(client).items()] + ([("Content-Type", kind.encode("latin-1"))] if kind is not None else [])
    answer = client.post("/processes/release/execution", content=json.dumps({"inputs": []}), headers=headers)
    assert answer.status_code in (400, 415)
    assert is_problem(answer)


def test_every_error_of_the_package_is_for_the_public_or_a_fixed_text(client):
    @client.app.get("/raises/{name}")
    def raises(name: str) -> None:
        raise getattr(errors, name)("hunter2 <b>")

    public = {kind for kind, _ in STATUS}
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, errors.SynthmapError):
            answer = client.get(f"/raises/{name}")
            assert is_problem(answer)
            shown = any(issubclass(kind, one) for one in public)
            assert ("hunter2" in answer.text, answer.status_code != 500) == (shown, shown), name


def test_every_route_has_a_template_that_the_counts_can_name(client):
    for route in iter_route_contexts(client.app.routes):
        assert route.path_format, route


def odd_text():
    ids = st.sampled_from(["", ".", "..", "~", "O'Brien", "a/b?c=d&e#f", "<img src=x onerror=alert(1)>", "01", "東京",
                           "manifest.json", "flows", "-1", "999999999999999999999", "1e5", "nan", "%", "%2e%2e",
                           "\u202e", "x" * 300, "{}", "[]", "null", "0,0,1,1", "-180,-90,180,90", "nan,0,1,1",
                           "180,0,-180,1"])  # fmt: skip
    return ids | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


def encoded(text):
    """Percent-encode some characters and leave others as no client should."""
    return "".join(
        one if one.isascii() and one.isalnum() else "".join(f"%{b:02X}" for b in one.encode()) for one in text
    )


QUERIES = ("f", "token", "unknown", "bbox", "bbox-crs", "crs", "limit", "offset", "filter", "filter-lang", "datetime",
           "origin", "destination", "count", "id")  # fmt: skip


@FUZZ
@given(data=st.data())
def test_no_question_makes_the_service_fail(client, made_up, odd, data):
    route = data.draw(st.sampled_from(routes_of(client.app)))
    examples = route.examples(data.draw(st.sampled_from([made_up, odd]) | odd_text()))
    path = route.template
    for name, example in examples.items():
        path = path.replace("{" + name + "}", encoded(data.draw(st.just(example) | odd_text())))
    names = st.sampled_from([*route.queries, *QUERIES])
    pairs = data.draw(st.lists(st.tuples(names, odd_text()), max_size=3))
    query = "&".join(f"{encoded(name)}={encoded(value)}" for name, value in pairs)
    kinds = ["*/*", "text/html", "application/json", "text/csv", "x/y", "", ";q=", "*/*;q=nan"]
    headers = {"Accept": data.draw(st.sampled_from(kinds))}
    if data.draw(st.booleans()):
        headers |= bearer(client)
    method = data.draw(st.sampled_from([route.method, "HEAD"]))
    answer = client.request(method, f"{path}?{query}", headers=headers)
    assert answer.status_code < 500, (method, path, query, headers, answer.text[:300])
    if answer.status_code >= 400 and method != "HEAD":
        assert is_problem(answer)


@FUZZ
@given(path=st.binary(max_size=40), query=st.binary(max_size=40), value=st.binary(max_size=40))
def test_no_bytes_make_the_service_fail(client, path, query, value):
    raw = "".join(f"%{one:02X}" if one not in b"/%abcRELSNs0123456789" else chr(one) for one in path)
    asked = "".join(f"%{one:02X}" if one not in b"&=%ftokenbx" else chr(one) for one in query)
    clean = value.translate(None, b"\r\n\0")
    headers = [
        (b"Accept", clean),
        (b"If-None-Match", clean),
        (b"Range", b"bytes=" + clean),
        (b"X-Forwarded-For", clean),
    ]
    answer = client.get(f"http://testserver/{raw}?{asked}", headers=headers)
    assert answer.status_code < 500
