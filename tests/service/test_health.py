"""Liveness, readiness, and the one shape of errors."""

import threading
from types import SimpleNamespace

from waiting import PATIENCE, wait_for

from synthmap.service import readiness


def test_a_service_over_a_store_is_alive_and_ready(client):
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ready"}


def test_it_is_ready_once_the_newest_release_has_been_read(make_client, store, monkeypatch):
    reading, go_on, read = threading.Event(), threading.Event(), readiness.first_view

    def slowly(*arguments):
        reading.set()
        assert go_on.wait(PATIENCE)
        read(*arguments)

    monkeypatch.setattr(readiness, "first_view", slowly)
    client = make_client()
    assert reading.wait(PATIENCE)
    assert client.get("/readyz").status_code == 503
    go_on.set()
    releases = client.app.state.service.releases
    newest = releases.dated()[0][-1]
    wait_for(lambda: client.get("/readyz").status_code == 200)
    assert (releases.open(newest).etag, "tiles", "ladder") in releases.memory


def test_without_a_store_it_is_alive_but_not_ready(make_client, tmp_path):
    client = make_client(store=tmp_path / "none")
    assert client.get("/healthz").status_code == 200
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.headers["content-type"] == "application/problem+json"


def test_an_unknown_path_is_a_problem(client):
    answer = client.get("/nothing")
    assert answer.status_code == 404
    assert set(answer.json()) == {"type", "title", "status", "detail", "instance"}


def test_an_unknown_query_parameter_is_a_bad_request(client):
    answer = client.get("/healthz?verbose=1")
    assert answer.status_code == 400
    assert "verbose" in answer.json()["detail"]


def test_what_is_still_being_opened_is_waited_for_at_the_end():
    """A daemon thread that is cut off in a library at exit aborts the process."""
    going_on, begun = threading.Event(), threading.Event()

    def list_slowly(names):
        begun.set()
        going_on.wait(PATIENCE)
        return []

    releases = SimpleNamespace(ids=lambda: ["one", "two"], list=list_slowly, dated=list)
    found = readiness.Readiness(releases, SimpleNamespace(), 10)
    found.start()
    assert begun.wait(PATIENCE)
    threading.Timer(0.1, going_on.set).start()
    found.stop()
    assert not found._opening.is_alive()
