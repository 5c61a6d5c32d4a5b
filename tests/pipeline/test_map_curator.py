"""What a curator does on the map: a wrong key, a release made from the form and watched, the ledger, the metrics."""

import re
import signal
import socket
import subprocess
import sys

import browser
import httpx2
import pytest
from mappage import ignoring, picture, settle, unfold
from waiting import wait_for

UP = "from synthmap.cli import main; main()"


@pytest.fixture
def running(command, tmp_path):
    """The address of `synthmap up` over a small demo, and the curator's key."""
    done = command("demo", "--directory", tmp_path / "demo", "--workers", 500)
    assert done.returncode == 0, done.stderr
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{one.getsockname()[1]}"
    port = address.rpartition(":")[2]
    line = [sys.executable, "-c", UP, "up", "--directory", str(tmp_path / "demo"), "--port", port]
    with (
        (tmp_path / "log").open("w") as log,
        subprocess.Popen(line, stdout=subprocess.PIPE, stderr=log, text=True) as up,
    ):
        told = "".join(up.stdout.readline() for _ in range(2))
        wait_for(lambda: ready(address))
        yield address, re.search(r"smk_\S+", told)[0]
        up.send_signal(signal.SIGINT)
        up.communicate(timeout=60)


def ready(address):
    try:
        return httpx2.get(f"{address}/readyz").status_code == 200
    except httpx2.TransportError:
        return False


def enter(page, key):
    page.get_by_label("Key", exact=True).fill(key)
    page.get_by_role("button", name="Use the key").click()


def test_a_curator_publishes_a_release_and_watches_it(chrome, running, tmp_path):
    address, key = running
    with browser.opened(chrome, address) as page:
        page.goto(f"{address}/map")
        settle(page)
        unfold(page, "Key and publishing")
        with ignoring(page, "401"):
            enter(page, "smk_wrong")
            page.locator(".status", has_text="not one of the service's, or was revoked").wait_for()
            page.get_by_label("Key", exact=True).wait_for()
        picture(page, "curator-wrong-key", tmp_path)
        enter(page, key)
        page.get_by_role("button", name="Publish a release").wait_for()
        assert page.locator(".status .failed").count() == 0
        assert key not in page.url
        page.get_by_label("Privacy loss ε").fill("2")
        page.get_by_label("Title", exact=True).fill("Made on the map <b>")
        picture(page, "curator-form", tmp_path)
        page.get_by_role("button", name="Publish a release").click()
        page.wait_for_selector(".job")
        picture(page, "curator-running", tmp_path)
        page.wait_for_selector(".job[data-status=successful]", timeout=120_000)
        page.locator("option", has_text="Made on the map <b>").first.wait_for(state="attached")
        assert page.get_by_label("Release").first.locator("option").count() == 2
        page.get_by_text(re.compile("^[2-9] entries$")).wait_for()  # the budget, what was spent, what was published
        assert "Not measured yet" in page.locator(".panel").inner_text()
        page.locator(".job").scroll_into_view_if_needed()
        picture(page, "curator-done", tmp_path)
        page.get_by_role("button", name="Forget it").click()
        page.get_by_label("Key", exact=True).wait_for()
        assert page.locator(".job").count() == 0
        page.faults[:] = [one for one in page.faults if "404" not in one]  # metrics that are not measured yet
