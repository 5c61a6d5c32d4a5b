"""What a curator does on the map: a wrong key, a release made from the form and watched, measured and exported."""

import re

import browser
import live
import pytest
import sites
from axe import serious
from mappage import get, ignoring, picture, service, settle, unfold, until

from synthmap.catalog.keys import Role, add_key


@pytest.fixture
def site(make_spec, tmp_path):
    """A store without releases, a dataset, and no worker yet."""
    make_spec(name="made-on-the-map")
    found = sites.site(tmp_path, f"sqlite:///{tmp_path / 'catalog.sqlite'}")
    found.register(tmp_path / "spec.toml")
    found.store.mkdir()
    yield found
    found.stop()


def enter(page, key):
    page.get_by_label("Key", exact=True).fill(key)
    page.get_by_role("button", name="Use the key").click()


def jobs(page, key):
    """What the service says of the jobs, newest first."""
    answer = page.request.get(f"{service(page)}/jobs", headers={"Authorization": f"Bearer {key}"})
    return answer.json()["jobs"]


def watched(page):
    """Remember which progress the service tells while the page looks at jobs."""
    told = set()

    def look(route):
        found = route.fetch()
        told.update(one["progress"] for one in found.json()["jobs"] if one["status"] == "running")
        route.fulfill(response=found)

    page.route("**/jobs?*", look)
    return told


def test_a_curator_publishes_measures_and_exports_a_release(chrome, site, forks, tmp_path):
    key = add_key(site.catalog, "Ada", Role.CURATOR)
    database, log = tmp_path / "catalog.sqlite", tmp_path / "service.log"
    with live.killable(site.store, database, log) as (address, _), browser.opened(chrome, address) as page:
        page.goto(f"{address}/map")
        page.get_by_text("There is no release yet.").first.wait_for()
        assert not page.locator(".legend").is_visible()
        unfold(page, "Key and publishing")
        with ignoring(page, "401"):
            enter(page, "smk_wrong")
            page.locator(".status", has_text="not one of the service's, or was revoked").wait_for()
            page.get_by_label("Key", exact=True).wait_for()
        picture(page, "curator-wrong-key", tmp_path)
        enter(page, key)
        publish = page.get_by_role("button", name="Publish a release")
        publish.wait_for()
        assert page.locator(".status .failed").count() == 0
        assert key not in page.url
        page.get_by_label("Privacy loss ε").fill("2")
        page.get_by_label("Title", exact=True).fill("Made on the map <b>")
        page.get_by_label("Segments: none").check()
        assert serious(page) == []
        picture(page, "curator-form", tmp_path)
        publish.click()
        page.wait_for_selector(".job[data-status=accepted]")
        page.get_by_role("button", name="Dismiss").click()  # a job, since nothing went wrong
        page.wait_for_selector(".job[data-status=dismissed]")
        assert [one["status"] for one in jobs(page, key)] == ["dismissed"]
        told = watched(page)
        publish.click()
        page.wait_for_selector(".job[data-status=accepted]")
        site.worker("--once")
        bar = page.locator(".job[data-status=running] progress")
        bar.wait_for()
        assert int(bar.get_attribute("value")) in told
        picture(page, "curator-running", tmp_path)
        page.wait_for_selector(".job[data-status=successful]")
        page.unroute("**/jobs?*")
        page.locator("option", has_text="Made on the map <b>").first.wait_for(state="attached")
        (release,) = get(page, "/releases")["releases"]
        assert (release["epsilon"], release["segments"]) == (2.0, [])
        settle(page)
        assert page.locator("[data-legend=circles] li").count() > 0
        assert float(page.url.split("at=")[1].split("%2C")[2]) > 4  # all of the release fills the map
        page.get_by_text(re.compile("^[2-9] entries$")).wait_for()  # the budget, what was spent, what was published
        page.get_by_text("Not measured yet").wait_for()

        page.get_by_label("Process").select_option("evaluate")
        page.get_by_role("button", name="Measure a release").click()
        page.locator(".job[data-status=accepted]", has_text="evaluate").wait_for()
        unfold(page, "Downloads")
        settle(page)
        offered = page.locator("li", has_text="GeoPackage").first
        before = offered.inner_text()
        page.get_by_label("Process").select_option("export")
        page.get_by_label(re.compile("^Formats")).fill("geopackage")
        assert page.get_by_label("Formats: none").count() == 0
        page.get_by_role("button", name="Make files to download").click()
        page.locator(".job[data-status=accepted]", has_text="export").wait_for()
        site.forks = forks  # nobody watches the progress of these
        assert site.work() == {"successful": 2}
        page.locator(".job[data-status=successful]", has_text="evaluate").wait_for()
        page.locator(".job[data-status=successful]", has_text="export").wait_for()
        until(page, lambda: offered.inner_text() != before)  # it is there now
        settle(page)
        answer = page.request.get(f"{address}/releases/{release['id']}/metrics/confidential",
                                  headers={"Authorization": f"Bearer {key}"})  # fmt: skip
        measured = page.get_by_label("Measured errors")
        measured.wait_for()
        shown = dict(row.locator("th, td").all_inner_texts() for row in measured.locator("tr").all())
        figures = dict(leaves(answer.json()))
        assert "tv" in figures
        written = {name: float(shown[name].replace(",", "")) for name in figures}
        assert written == pytest.approx(figures, rel=5e-3)  # three digits
        assert measured.evaluate("one => one.scrollWidth <= one.clientWidth")  # figures are beside their names
        assert serious(page) == []
        measured.scroll_into_view_if_needed()
        picture(page, "curator-measured", tmp_path)
        page.get_by_role("button", name="Forget it").click()
        page.get_by_label("Key", exact=True).wait_for()
        assert page.locator(".job").count() == 0
        page.faults[:] = [one for one in page.faults if "404" not in one]  # metrics that were not measured yet


def leaves(record, above=""):
    """Figures of a nested record, by their full names on the page."""
    for name, value in record.items():
        full = f"{above} › {name}" if above else name
        if isinstance(value, dict):
            yield from leaves(value, full)
        elif isinstance(value, float):
            yield full, value


def test_a_service_that_stops_while_a_job_runs_is_asked_again(chrome, site, tmp_path):
    key = add_key(site.catalog, "Ada", Role.CURATOR)
    database, log = tmp_path / "catalog.sqlite", tmp_path / "service.log"
    with live.killable(site.store, database, log) as (address, process), browser.opened(chrome, address) as page:
        page.goto(f"{address}/map?token={key}")
        unfold(page, "Key and publishing")
        page.get_by_role("button", name="Publish a release").click()
        page.wait_for_selector(".job[data-status=accepted]")
        site.worker("--once")
        page.wait_for_selector(".job[data-status=running]")
        with ignoring(page, "ERR_CONNECTION", "Failed to fetch"):
            process.kill()
            page.locator(".status .failed", has_text="does not answer").wait_for()
            assert page.locator(".job[data-status=running]").count() == 1  # as it was when last heard of
            picture(page, "curator-stopped", tmp_path)
        with live.killable(site.store, database, tmp_path / "again.log", port=address.rpartition(":")[2]) as (again, _):
            assert again == address
            page.get_by_role("button", name="Try again").click()
            page.wait_for_selector(".job[data-status=successful]")
            page.locator("[data-legend=circles] li").first.wait_for()
            settle(page)
            assert page.locator(".status .failed").count() == 0
            page.faults[:] = [one for one in page.faults if "404" not in one]
