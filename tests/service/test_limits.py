"""What one request and one caller may take: bytes, seconds, requests a minute; NaN and other bad values."""

import threading
import time

import anyio
import pytest
from bearer import bearer
from fastapi.responses import StreamingResponse
from starlette.testclient import TestClient
from waiting import PATIENCE

from synthmap.catalog.keys import Role
from synthmap.service import app, rates
from synthmap.service.limits import TimeLimit
from synthmap.service.rates import Rates, address_of

EXECUTE = "/processes/release/execution"


def is_problem(answer, status, *words):
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert set(answer.json()) == {"type", "title", "status", "detail", "instance"}
    assert all(word in answer.json()["detail"] for word in words)
    return True


def chunks(size, count):
    for _ in range(count):
        yield b"x" * size


def test_a_body_that_says_it_is_too_large_is_refused_before_it_is_read(make_client):
    client = make_client(body_bytes_maximum=1000)
    answer = client.post(EXECUTE, content=b"x" * 1001, headers=bearer(client))
    assert is_problem(answer, 413, "1,000 bytes")
    assert answer.headers["connection"] == "close"


def test_a_body_that_does_not_say_how_large_it_is_is_refused_once_it_is_too_large(make_client):
    client = make_client(body_bytes_maximum=1000)
    headers = {**bearer(client), "Content-Type": "application/json"}
    answer = client.post(EXECUTE, content=chunks(100, 11), headers=headers)
    assert "content-length" not in answer.request.headers
    assert is_problem(answer, 413, "1,000 bytes")
    assert client.post(EXECUTE, content=chunks(100, 10), headers=headers).status_code == 400


def test_a_body_of_the_largest_size_is_read(make_client):
    client = make_client(body_bytes_maximum=1000)
    assert client.post(EXECUTE, content=b"x" * 1000, headers=bearer(client)).status_code == 400


@pytest.mark.parametrize("length", ["-1", "1e9", "99999999999999999999999999", "٣"])
def test_an_odd_length_does_no_harm(make_client, length):
    client = make_client(body_bytes_maximum=1000)
    headers = [(b"Content-Length", length.encode()), *bearer(client).items()]
    assert client.post(EXECUTE, content=chunks(10, 1), headers=headers).status_code in (400, 413)


@pytest.fixture
def anyio_backend():
    return "asyncio"


SCOPE = {"type": "http", "method": "POST", "path": "/", "headers": [], "state": {}}


class Sent(list):
    """What was sent, as a server keeps it."""

    async def send(self, message):
        self.append(message)


@pytest.mark.anyio
async def test_who_waits_too_long_is_told_so_while_the_work_goes_on():
    go, sent, outcome = threading.Event(), Sent(), []

    async def working(scope, receive, send):
        outcome.append(await anyio.to_thread.run_sync(lambda: go.wait(PATIENCE)))
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async with anyio.create_task_group() as group:
        group.start_soon(TimeLimit(working, 0.05), SCOPE, None, sent.send)
        with anyio.fail_after(PATIENCE):
            while len(sent) < 2:
                await anyio.sleep(0.01)
        assert not go.is_set()
        go.set()
    assert [message.get("status") for message in sent] == [503, None]  # the late answer goes nowhere
    assert b"0.05 seconds" in sent[1]["body"]
    assert int(dict(sent[0]["headers"])[b"retry-after"]) >= 1


@pytest.mark.anyio
async def test_a_body_that_never_comes_is_not_waited_for_longer():
    sent = Sent()

    async def reading(scope, receive, send):
        await receive()

    with anyio.fail_after(PATIENCE):
        await TimeLimit(reading, 0.05)(SCOPE, anyio.sleep_forever, sent.send)
    assert sent[0]["status"] == 503
    assert b"connection" in dict(sent[0]["headers"])
    assert len(sent) == 2


def test_after_a_request_that_took_too_long_the_service_goes_on(make_client):
    client = make_client(seconds_maximum=2.0)
    go = threading.Event()

    @client.app.get("/slow")
    def slow() -> bool:
        return go.wait(4.0)  # what tests ask waits for it, too

    assert is_problem(client.get("/slow"), 503, "2 seconds")
    assert client.get("/healthz").status_code == 200
    go.set()
    assert client.get("/slow").json() is True


def test_an_answer_that_has_begun_may_take_longer(make_client):
    client = make_client(seconds_maximum=2.0)

    def parts():
        for _ in range(4):
            yield b"part,"
            time.sleep(0.7)

    @client.app.get("/large")
    def large() -> StreamingResponse:
        return StreamingResponse(parts(), media_type="application/octet-stream")

    assert client.get("/large").content == b"part," * 4


def statuses(client, count, **sent):
    return [client.get("/processes", **sent).status_code for _ in range(count)]


@pytest.fixture
def stopped_clock(monkeypatch):
    """Let no second pass for those who count requests a minute: on a busy machine one would be given back."""
    monkeypatch.setattr(app, "Rates", lambda per_minute: Rates(per_minute, lambda: 0.0))


@pytest.mark.usefixtures("stopped_clock")
def test_who_asks_too_often_is_told_when_to_ask_again(make_client):
    client = make_client(requests_per_minute=3)
    assert statuses(client, 4) == [200, 200, 200, 429]
    answer = client.get("/processes")
    assert is_problem(answer, 429)
    assert 1 <= int(answer.headers["retry-after"]) <= 20


@pytest.mark.usefixtures("stopped_clock")
def test_each_key_and_each_address_has_its_own_limit(make_client):
    client = make_client(requests_per_minute=3)
    reader, curator = bearer(client, Role.READER), bearer(client)
    assert statuses(client, 4) == [200, 200, 200, 429]
    assert statuses(client, 4, headers=reader) == [200, 200, 200, 429]
    assert statuses(client, 4, headers=curator) == [200, 200, 200, 429]
    other = TestClient(client.app, client=("192.0.2.7", 5000))
    assert statuses(other, 4) == [200, 200, 200, 429]
    assert statuses(other, 1, headers=reader) == [429]


@pytest.mark.usefixtures("stopped_clock")
def test_guessing_keys_is_limited_and_does_not_shut_out_who_has_one(make_client):
    client = make_client(requests_per_minute=3)
    known = bearer(client)
    assert statuses(client, 1, headers=known) == [200]
    guesses = [client.get("/jobs", headers={"Authorization": f"Bearer guess{i}"}).status_code for i in range(4)]
    assert guesses == [401, 401, 429, 429]  # the look-up of the right key was one of three
    assert statuses(client, 2, headers=known) == [200, 200]


def test_probes_are_never_limited(make_client):
    client = make_client(requests_per_minute=1)
    assert {client.get("/healthz").status_code for _ in range(5)} == {200}


def test_no_limit_is_a_choice(make_client):
    assert set(statuses(make_client(requests_per_minute=0), 20)) == {200}


class Clock:
    now = 50.0

    def __call__(self) -> float:
        return self.now


def test_a_bucket_fills_up_again_and_no_higher_than_it_was():
    clock = Clock()
    limits = Rates(60, clock)
    assert [limits.wait("me") for _ in range(61)] == [0] * 60 + [1]
    clock.now += 1
    assert [limits.wait("me"), limits.wait("me")] == [0, 1]
    clock.now += 1e6
    assert [limits.wait("me") for _ in range(61)] == [0] * 60 + [1]


def test_a_slow_bucket_tells_the_whole_wait():
    clock = Clock()
    limits = Rates(2, clock)
    assert [limits.wait("me") for _ in range(3)] == [0, 0, 30]
    clock.now += 29
    assert limits.wait("me") == 1
    clock.now += 1
    assert limits.wait("me") == 0


def test_memory_does_not_grow_with_callers(monkeypatch):
    monkeypatch.setattr(rates, "_CALLERS", 3)
    limits = Rates(1, Clock())
    for caller in "abc":
        assert limits.wait(caller) == 0
    assert limits.wait("a") > 0  # asked again: b is the one who was quiet longest
    assert limits.wait("d") == 0
    assert limits.wait("a") > 0
    assert limits.wait("b") == 0


def test_addresses_that_one_caller_has_count_as_one():
    assert address_of(("2001:db8:1:2::5", 1)) == address_of(("2001:db8:1:2:ffff::1", 2))
    assert address_of(("2001:db8:1:2::5", 1)) != address_of(("2001:db8:1:3::5", 1))
    assert address_of(("::ffff:192.0.2.1", 1)) == address_of(("192.0.2.1", 9)) != address_of(("192.0.2.2", 9))
    assert address_of(None) == ""
    assert len(address_of(("x" * 1000, 1))) < 100


@pytest.mark.parametrize("path", ["/releases/%00", "/a%00b", "/processes?limit=1%00", "/processes?x=%00"])
def test_a_nul_character_is_refused(client, path):
    assert is_problem(client.get(path), 400, "NUL")


def test_an_address_nobody_can_mean_is_refused(client):
    assert is_problem(client.get("/releases/" + "a" * 8000), 414)
    assert is_problem(client.get("/processes?f=" + "a" * 8000), 414)
    assert client.get("/releases/" + "a" * 5000).status_code == 404


@pytest.mark.parametrize("value", ["nan", "NaN", "inf", "-Infinity", "1e999", "+nan"])
def test_a_number_that_is_none_is_refused_wherever_a_number_is_asked_for(client, value):
    @client.app.get("/number")
    def number(x: float, y: float | None = None) -> list[float | None]:
        return [x, y]

    for query in (f"x={value}", f"x=1&y={value}", f"x=1&x={value}"):
        assert is_problem(client.get(f"/number?{query.replace('+', '%2B')}"), 400, "finite")
    assert is_problem(client.get("/number?x=one"), 400, "x must be a valid number")
    assert client.get("/number?x=1e3").json() == [1000.0, None]
