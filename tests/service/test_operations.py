"""What operators and browsers rely on: ids, counts, logs, HEAD, headers, compression, readiness, settings."""

import gzip
import json
import re
import shutil
import subprocess
import sys

import pytest
from approutes import routes_of
from bearer import bearer
from starlette.responses import Response, StreamingResponse
from structlog.testing import capture_logs
from waiting import wait_for

from synthmap.errors import ConfigurationError
from synthmap.service.settings import service_settings


def answered(client, made_up):
    """Yield every route that answers GET, as a path that exists where the examples allow it, and its answer."""
    for route in routes_of(client.app):
        if route.method == "GET":
            path = route.path(release=made_up)
            yield path, client.get(path, headers=bearer(client))


def test_every_answer_has_an_id_of_its_own(client):
    ids = {client.get(path).headers["x-request-id"] for path in ("/healthz", "/processes", "/nothing", "/jobs")}
    assert len(ids) == 4
    answer = client.get("/nothing")
    assert answer.json()["instance"] == f"urn:request:{answer.headers['x-request-id']}"


def test_the_id_of_a_proxy_is_kept_and_nothing_that_is_none(client):
    good = "4bf92f35-77b3-4da6"
    assert client.get("/healthz", headers={"X-Request-ID": good}).headers["x-request-id"] == good
    for bad in ("short", "x" * 65, "smk_0123456789abcdef_secret", 'new"line', "a b c d e f"):
        assert client.get("/healthz", headers={"X-Request-ID": bad}).headers["x-request-id"] != bad


def test_head_is_get_without_a_body(client, made_up):
    checked = 0
    for path, got in answered(client, made_up):
        if path == "/metrics" or path.endswith("/downloads"):  # counts go on; other processes make files meanwhile
            continue
        head = client.head(path, headers=got.request.headers)
        assert head.status_code == got.status_code, path
        assert head.content == b""
        varying = {"x-request-id", "date"}
        if b"timeStamp" in got.content:  # compressed, the time takes more bytes at one moment than at another
            varying.add("content-length")
        if got.status_code < 400:  # a problem holds the id of its request
            assert {k: v for k, v in head.headers.items() if k not in varying} == {
                k: v for k, v in got.headers.items() if k not in varying
            }, path
            checked += 1
    assert checked > 15


def test_head_does_not_answer_ranges_and_needs_a_get(client, made_up):
    path = f"/releases/{made_up}/downloads/manifest.json"
    head = client.head(path, headers={"Range": "bytes=0-9"})
    assert (head.status_code, head.headers["accept-ranges"]) == (200, "bytes")
    assert client.head("/processes/release/execution").status_code == 405
    assert client.head("/nothing").status_code == 404


def test_every_answer_tells_browsers_what_not_to_do(client, made_up):
    for path, answer in answered(client, made_up):
        assert answer.headers["x-content-type-options"] == "nosniff", path
        assert answer.headers["referrer-policy"] == "no-referrer"
        policy = answer.headers.get_list("content-security-policy")
        assert len(policy) == 1
        assert "frame-ancestors 'none'" in policy[0]
        assert "unsafe" not in policy[0]


def test_pages_need_no_more_than_the_policy_allows(client, made_up):
    pages = 0
    for route in routes_of(client.app):
        if route.method == "GET":
            path = route.path(release=made_up)
            answer = client.get(path, headers={"Accept": "text/html"})
            if answer.headers["content-type"].startswith("text/html"):
                pages += 1
                inside = r"<style|<script(?![^>]* src=)|\s(style|on[a-z]+)=|javascript:"
                assert not re.search(inside, answer.text, re.IGNORECASE), path
                assert not re.search(r'(src|rel="stylesheet" href)="(?!/|\./|http://testserver/)', answer.text), path
    assert pages > 5


def test_other_pages_may_not_read_unless_they_are_named(make_client):
    origin = {"Origin": "https://maps.example.org"}
    asking = {**origin, "Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "authorization"}
    closed, opened = make_client(), make_client(cors_origins=["https://maps.example.org"], anonymous=False)
    assert not [name for name in closed.get("/processes", headers=origin).headers if name.startswith("access-control")]
    assert closed.options("/processes", headers=asking).status_code == 405
    allowed = opened.options("/processes", headers=asking)
    assert allowed.status_code == 200
    assert allowed.headers["access-control-allow-origin"] == origin["Origin"]
    assert "access-control-allow-credentials" not in allowed.headers
    got = opened.get("/processes", headers=origin | bearer(opened))
    assert got.headers["access-control-allow-origin"] == origin["Origin"]
    assert "etag" in got.headers["access-control-expose-headers"].lower()
    other = opened.get("/processes", headers={"Origin": "https://evil.example"} | bearer(opened))
    assert "access-control-allow-origin" not in other.headers


def raw(client, path, **headers):
    with client.stream("GET", path, headers=headers) as answer:
        return b"".join(answer.iter_raw()), answer.headers


def test_text_is_compressed_and_can_be_read(client):
    plain, before = raw(client, "/processes/release", **{"Accept-Encoding": "identity"})
    packed, after = raw(client, "/processes/release", **{"Accept-Encoding": "br, gzip;q=0.5"})
    assert len(plain) > 1000
    assert gzip.decompress(packed) == plain
    assert (after["content-encoding"], after["content-length"]) == ("gzip", str(len(packed)))
    assert "content-encoding" not in before
    assert "Accept-Encoding" in before["vary"] and "Accept-Encoding" in after["vary"]
    refusing, _ = raw(client, "/processes/release", **{"Accept-Encoding": "gzip;q=0, identity"})
    assert refusing == plain


def test_what_is_streamed_is_compressed_as_it_comes_and_large_parts_too(client):
    parts = [b"one,two\n" * 100, b"", b"three,four\n" * 50_000, b"five\n"]

    @client.app.get("/rows")
    def rows() -> StreamingResponse:
        return StreamingResponse(iter(parts), media_type="text/csv", headers={"ETag": '"rows"'})

    packed, headers = raw(client, "/rows", **{"Accept-Encoding": "gzip"})
    assert gzip.decompress(packed) == b"".join(parts)
    assert headers["etag"] == 'W/"rows"'
    assert "content-length" not in headers
    plain, headers = raw(client, "/rows", **{"Accept-Encoding": "identity"})
    assert (plain, headers["etag"]) == (b"".join(parts), '"rows"')


def test_files_ranges_and_what_is_compressed_already_are_sent_as_they_are(client, made_up):
    @client.app.get("/tile")
    def tile() -> Response:
        return Response(gzip.compress(b"x" * 5000), media_type="text/x", headers={"Content-Encoding": "gzip"})

    packed, _ = raw(client, "/tile", **{"Accept-Encoding": "gzip"})
    assert gzip.decompress(packed) == b"x" * 5000
    whole, headers = raw(client, f"/releases/{made_up}/downloads/manifest.json", **{"Accept-Encoding": "gzip"})
    assert "content-encoding" not in headers
    assert not headers["etag"].startswith("W/")
    asked = {"Accept-Encoding": "gzip", "Range": "bytes=0-1999"}
    part, headers = raw(client, f"/releases/{made_up}/downloads/manifest.json", **asked)
    assert part == whole[:2000]
    assert "content-encoding" not in headers


def samples(client):
    text = client.get("/metrics").text
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in text.splitlines() if line[0] != "#"}


def test_requests_are_counted_by_template_never_by_what_was_asked(client, made_up):
    for path in (f"/releases/{made_up}", "/releases/none", "/releases/secret-name", "/never/heard?of=it", "/healthz"):
        client.get(path)
    client.request("SMK_0123456789ABCDEF", "/releases")
    found = samples(client)
    assert found['synthmap_requests_total{method="GET",route="/releases/{release}",status="200"}'] == 1
    assert found['synthmap_requests_total{method="GET",route="/releases/{release}",status="404"}'] == 2
    assert found['synthmap_requests_total{method="GET",route="none",status="404"}'] == 1
    assert found['synthmap_requests_total{method="other",route="/releases",status="405"}'] == 1
    assert found['synthmap_request_seconds_count{method="GET",route="/releases/{release}"}'] == 3
    assert found["synthmap_requests_running"] == 1  # the one that asks
    assert "secret-name" not in "".join(found)
    assert "smk" not in "".join(found).lower()


def test_two_applications_in_one_process_count_apart(make_client):
    one, other = make_client(), make_client()
    one.get("/processes")
    assert 'synthmap_requests_total{method="GET",route="/processes",status="200"}' in samples(one)
    assert 'synthmap_requests_total{method="GET",route="/processes",status="200"}' not in samples(other)


def test_a_request_is_one_line_of_the_log_without_what_it_asked(client, made_up):
    headers = bearer(client)
    secret = headers["Authorization"].split()[1]
    with capture_logs() as lines:
        client.get(f"/releases/{made_up}?f=json", headers=headers)
        client.get(f"/releases/{made_up}?token={secret}&unknown={secret}")
        client.get(f"/releases/{secret}")
        client.get("/healthz")
    assert [line["event"] for line in lines] == ["request"] * 3  # probes are not news
    assert {line["route"] for line in lines} == {"/releases/{release}"}
    assert [line["status"] for line in lines] == [200, 400, 404]
    assert lines[0]["key"] == secret.split("_")[1]
    assert secret not in repr(lines)
    assert made_up not in repr(lines)


def test_a_fault_is_a_fixed_text_outside_and_types_and_places_in_the_log(client):
    @client.app.get("/broken")
    def broken(x: str) -> str:
        try:
            raise KeyError(f"secret {x}")
        except KeyError as fault:
            raise ExceptionGroup(f"secret {x}", [ValueError(f"secret {x}")]) from fault

    with capture_logs() as lines:
        answer = client.get("/broken?x=hunter2")
    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    id = answer.headers["x-request-id"]
    assert answer.json() == {
        "type": "about:blank", "title": "Fault of the service", "status": 500, "instance": f"urn:request:{id}",
        "detail": "the service made an error; its log has more under this request's id",
    }  # fmt: skip
    fault, line = lines
    assert (fault["event"], fault["request"], fault["route"]) == ("fault", id, "/broken")
    assert [one.split(":")[0] for one in fault["faults"]] == [
        "builtins.ExceptionGroup", "builtins.ValueError", "builtins.KeyError",
    ]  # fmt: skip
    assert "test_operations.py" in fault["faults"][0]
    assert line["status"] == 500
    assert "hunter2" not in repr(lines)


def test_a_fault_in_the_middle_of_an_answer_is_logged_and_breaks_it_off(client):
    def parts():
        yield b"begun"
        raise ValueError("hunter2")

    @client.app.get("/breaking")
    def breaking() -> StreamingResponse:
        return StreamingResponse(parts(), media_type="application/octet-stream")

    with capture_logs() as lines:
        client.get("/breaking")
    assert [line["event"] for line in lines] == ["fault", "request"]
    assert "hunter2" not in repr(lines)


def test_ready_means_that_every_release_was_opened_and_damaged_ones_are_named_in_the_log(
    make_client, store, made_up, odd, tmp_path
):
    own = tmp_path / "store"
    for release in (made_up, odd):
        shutil.copytree(store / release, own / release)
    (own / odd / "plan.parquet").write_bytes(b"PAR1")
    (own / "no-json").mkdir()
    (own / "no-json" / "manifest.json").write_text("{")
    with capture_logs() as lines:
        client = make_client(store=own)
        wait_for(lambda: client.get("/readyz").status_code == 200)
    assert {line["release"] for line in lines if line["event"] == "release damaged"} == {odd, "no-json"}
    assert next(line for line in lines if line["event"] == "releases opened")["damaged"] == 2
    assert client.get(f"/releases/{made_up}").status_code == 200
    assert client.get(f"/releases/{odd}").status_code == 503


def test_not_ready_while_releases_are_still_being_checked(make_client, monkeypatch):
    from synthmap.service.readiness import Readiness

    monkeypatch.setattr(Readiness, "start", lambda self: None)
    client = make_client()
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert "still being checked" in answer.json()["detail"]
    assert client.get("/healthz").status_code == 200


def test_the_catalog_is_not_asked_by_every_probe(client, monkeypatch):
    asked = []
    monkeypatch.setattr(client.app.state.service.catalog, "answers", lambda: asked.append(1) or True)
    for _ in range(20):
        assert client.get("/readyz").status_code == 200
    assert len(asked) <= 2


@pytest.mark.parametrize(
    ("name", "value"),
    [("ANONYMUS", "false"), ("anonymus", "false"), ("ANONYMOUS", "maybe"), ("CORS_ORIGINS", "https://a.example"),
     ("CORS_ORIGINS", '["a.example"]'), ("CORS_ORIGINS", '["https://a.example/"]'), ("REQUESTS_PER_MINUTE", "-1"),
     ("SECONDS_MAXIMUM", "0"), ("ROOT_PATH", "maps"), ("ROOT_PATH", "/maps/"), ("LOG_LEVEL", "loud")],
)  # fmt: skip
def test_a_setting_that_is_misspelt_or_wrong_stops_the_service(monkeypatch, name, value):
    monkeypatch.setenv(f"SYNTHMAP_SERVICE_{name}", value)
    with pytest.raises(ConfigurationError) as fault:
        service_settings()
    assert name.lower() in str(fault.value).lower()


def test_what_kubernetes_puts_beside_a_service_of_that_name_is_no_setting(monkeypatch):
    for name in ("HOST", "PORT", "PORT_HTTP"):
        monkeypatch.setenv(f"SYNTHMAP_SERVICE_{name}", "8080")
    assert service_settings().anonymous


def test_settings_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("SYNTHMAP_SERVICE_ANONYMOUS", "false")
    monkeypatch.setenv("SYNTHMAP_SERVICE_CORS_ORIGINS", json.dumps(["https://maps.example.org:8443", "*"]))
    settings = service_settings()
    assert not settings.anonymous
    assert settings.cors_origins == ["https://maps.example.org:8443", "*"]


LIBRARY = """
import logging, structlog, warnings
from synthmap.service.logs import start_log

secret = "smk_0123456789abcdef_" + "S3cret-_" * 5
start_log("info")
other = logging.getLogger("some.library")
other.debug("debug hunter2")
other.warning("sent %s\\nforged line", secret)
try:
    raise ValueError(f"hunter2 {secret}")
except ValueError:
    other.exception("failed")
    structlog.get_logger().exception("failed", given=[secret])
warnings.warn("careful")
structlog.get_logger().debug("debug hunter2")
"""


def test_what_libraries_log_is_one_json_line_without_keys_and_texts_of_exceptions():
    result = subprocess.run(
        [sys.executable, "-W", "default", "-c", LIBRARY], capture_output=True, text=True, check=True
    )
    assert result.stdout == ""
    lines = [json.loads(line) for line in result.stderr.splitlines()]
    assert [line["level"] for line in lines] == ["warning", "error", "error", "warning"]
    assert lines[0]["event"] == "sent smk_0123456789abcdef_(cut)\nforged line"
    assert [line["faults"][0].split(":")[0] for line in lines[1:3]] == ["builtins.ValueError"] * 2
    assert "hunter2" not in result.stderr
    assert "S3cret" not in result.stderr


def test_counts_tell_nobody_what_curators_do(client):
    client.get("/jobs")
    client.post("/processes/release/execution", json={"inputs": {}})
    client.get("/healthz")
    text = client.get("/metrics").text
    assert 'route="/healthz"' in text
    assert 'route="for curators"' in text
    assert "jobs" not in text
    assert "execution" not in text
    assert 'status="401"' not in text
