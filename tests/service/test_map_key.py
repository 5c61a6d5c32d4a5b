"""The part of the map behind a key, against answers that are held back or made up: what comes late is not shown."""

import re

import browser
import pytest
from mappage import picture, settle, unfold, until

JOB = {"jobID": "1", "processID": "export", "status": "running", "message": "half", "progress": 50,
       "created": "2026-03-05T12:00:00.000Z", "inputs": {"release": "x"}}  # fmt: skip


@pytest.fixture
def curates(shown, odd, live_server):
    """Return a function that opens the map as a curator's; the service itself is asked without the key."""

    def bare(route):
        headers = {name: value for name, value in route.request.headers.items() if name != "authorization"}
        route.continue_(headers=headers)

    def opened(jobs, **options):
        page = shown(odd, options=options)
        page.route(f"{live_server}/**", bare)
        page.route("**/datasets", lambda route: route.fulfill(json={"datasets": [{"id": "x", "title": "X"}]}))
        page.route("**/jobs?*", lambda route: route.fulfill(json={"jobs": jobs}))
        page.route("**/metrics/confidential", lambda route: route.fulfill(json={"error": {"mean": 1234.5}}))
        unfold(page, "Key and publishing")
        return page

    return opened


def enter(page):
    page.get_by_label("Key", exact=True).fill("smk_made_up")
    page.get_by_role("button", name="Use the key").click()


def holding(page, pattern):
    """Hold the next question of a pattern back."""
    held = []
    page.route(pattern, lambda route: route.fallback() if held else held.append(route))
    return held


def test_what_is_answered_after_the_key_is_forgotten_is_not_shown(curates):
    page = curates([JOB])
    for pattern in ("**/datasets", "**/jobs?*", "**/processes/release", "**/ledger"):
        held = holding(page, pattern)
        enter(page)
        until(page, lambda held=held: held)
        page.get_by_role("button", name="Forget it").click()
        (one,) = held
        one.fulfill(json={"datasets": [], "jobs": [JOB], "title": "Late", "description": "", "inputs": {}})
        asked = []
        page.on("request", lambda request, asked=asked: asked.append(request.url))
        page.wait_for_timeout(2000)  # longer than between two looks at the jobs
        assert [one for one in asked if "/jobs" in one] == []
        assert page.locator(".job, form button.main").count() == 0
        assert page.locator(".status p").count() == 0


def test_files_and_statement_are_read_again_when_a_job_has_ended(curates):
    jobs = [dict(JOB)]
    page = curates(jobs)
    unfold(page, "Downloads")
    unfold(page, "Privacy statement")
    settle(page)
    enter(page)
    bar = page.locator(".job progress")
    bar.wait_for()
    assert bar.get_attribute("value") == "50"
    settle(page)
    with page.expect_request("**/downloads"), page.expect_request("**/statement"):
        jobs[0] |= {"status": "successful", "progress": 100}
    page.wait_for_selector(".job[data-status=successful]")
    assert bar.count() == 0
    settle(page)


def test_an_empty_list_can_be_sent_and_what_is_being_loaded_is_told(curates, tmp_path):
    page = curates([])
    held = [holding(page, pattern) for pattern in ("**/processes/release", "**/jobs?*", "**/ledger")]
    enter(page)
    loading = page.locator("details", has_text="Key and publishing").get_by_text("Loading…")
    loading.nth(2).wait_for()
    until(page, lambda: all(held))
    picture(page, "curator-loading", tmp_path)
    for (one,) in held:
        one.fallback()
    loading.first.wait_for(state="detached")
    page.get_by_label("Segments: none").check()
    assert page.get_by_label("Segments", exact=True).is_disabled()
    page.route("**/execution", lambda route: route.fulfill(status=201, json=JOB))
    with page.expect_request("**/execution") as asked:
        page.get_by_role("button", name="Publish a release").click()
    assert asked.value.post_data_json == {"inputs": {"dataset": "x", "segments": []}}
    page.get_by_label("Segments: none").uncheck()
    settle(page)
    with page.expect_request("**/execution") as asked:
        page.get_by_role("button", name="Publish a release").click()
    assert asked.value.post_data_json == {"inputs": {"dataset": "x"}}
    settle(page)


@pytest.mark.parametrize(
    ("locale", "date", "number"), [("de-DE", "05.03.2026, 13:00", "1.230"), ("en-GB", "5 Mar 2026, 13:00", "1,230")]
)
def test_dates_and_measured_errors_are_written_by_locale(curates, locale, date, number):
    page = curates([JOB | {"status": "failed"}], locale=locale, timezone_id="Europe/Berlin")
    enter(page)
    page.locator(".job", has_text=date).wait_for()
    page.get_by_role("row", name=re.compile(f"error › mean {re.escape(number)}")).wait_for()


def test_with_a_key_the_statement_is_fetched_with_it(chrome, live_keyed, odd, tmp_path):
    address, key = live_keyed
    with browser.opened(chrome, address) as page:
        page.goto(f"{address}/map?token={key}#release={odd}")
        settle(page)
        unfold(page, "Privacy statement")
        with page.expect_download() as arrived:
            page.get_by_role("button", name="The whole statement, as a page").click()
        arrived.value.save_as(tmp_path / "statement.html")
        assert arrived.value.suggested_filename == f"{odd}-statement.html"
        assert "NIST SP 800-226" in (tmp_path / "statement.html").read_text(encoding="utf-8")
        settle(page)
