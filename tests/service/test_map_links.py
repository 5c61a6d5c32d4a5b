"""Links to the map restore all of a view, on the open page, too; late answers do not stand under another release."""

import re
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from mappage import at, get, settle, unfold, until, usable, workers

FOLLOW = "hash => { location.hash = hash; }"


def follow(page, release, /, **view):
    """Follow a link on the open page."""
    page.evaluate(FOLLOW, urlencode({"release": release} | view))
    settle(page)


def told(page):
    """What the address says."""
    return dict(parse_qsl(urlsplit(page.url).fragment))


def test_a_link_that_is_followed_on_the_open_page_restores_all_of_the_view(shown, odd, made_up):
    page = shown(odd)
    before = told(page)["at"]
    view = {"end": "home", "totals": "thermal", "flows": "100", "level": "side", "at": at(2.35, 48.05, 11.0)}
    follow(page, odd, **view)
    longitude, latitude, zoom = (float(one) for one in told(page)["at"].split(","))
    assert (longitude, latitude, zoom) == pytest.approx((2.35, 48.05, 11), abs=1e-4)
    assert page.get_by_label("Home", exact=True).is_checked()
    assert page.get_by_label("Thermal").is_checked()
    assert page.get_by_label("Flows", exact=True).input_value() == "100"
    assert page.get_by_label("Level of flows").input_value() == "side"
    follow(page, odd)  # a link without a place shows all of the release
    assert told(page)["at"] == before
    follow(page, made_up, end="home")
    assert page.get_by_label("Release").input_value() == made_up
    assert told(page)["at"] != before


def test_a_level_or_a_release_that_there_is_not_is_told_and_left_out(shown, odd, made_up):
    page = shown(odd, level="county")
    page.locator(".status", has_text="no level county").wait_for()
    assert "level" not in told(page)
    follow(page, "nothing-there")
    page.locator(".status", has_text="no release nothing-there").wait_for()
    settle(page)
    assert told(page)["release"] in (odd, made_up)


@pytest.fixture
def late(shown, odd, made_up):
    """Return a function that holds an answer about a release back until another is shown, and then lets it come."""

    def hold(pattern, ask, **view):
        held = []
        page = shown(odd, **view)
        page.route(pattern, lambda route: held.append(route) if odd in route.request.url else route.continue_())
        ask(page)
        until(page, lambda: held)
        page.get_by_label("Release").select_option(made_up)
        settle(page)
        for one in held:
            one.continue_()
        page.wait_for_timeout(500)
        return page

    return hold


def test_a_late_statement_or_list_of_files_does_not_stand_under_another_release(late, odd, made_up):
    page = late("**/statement*", lambda page: unfold(page, "Privacy statement"))
    assert made_up in page.locator(".statement").inner_text()
    assert odd not in page.locator(".panel").inner_text().replace(f"· {odd}", "")
    page = late("**/downloads", lambda page: unfold(page, "Downloads"))
    links = page.locator("a[download]").evaluate_all("all => all.map(one => one.href)")
    assert links
    assert all(made_up in one for one in links)


def test_a_late_analysis_is_not_drawn_under_another_release(late):
    def run(page):
        unfold(page, "Analyses")
        page.get_by_role("button", name="Run", exact=True).click()

    page = late("**/analyses/inflow-outflow*", run, area="side", id="east")
    assert page.locator("section.analysis").count() == 0
    assert page.locator(".status .busy").count() == 0


def test_analyses_files_and_statement_that_are_opened_early_come_with_the_release(chrome_page, live_server, odd):
    page, held = chrome_page, []
    page.route("**/releases", lambda route: held.append(route))  # noqa: PLW0108  # Playwright marks what it calls
    page.goto(f"{live_server}/map")
    page.locator(".status .busy", has_text="Loading the releases").wait_for()
    assert not page.locator(".legend").is_visible()
    for title in ("Analyses", "Privacy statement", "Downloads"):
        unfold(page, title)
    none_yet = page.get_by_text("There is no release yet.")
    none_yet.nth(2).wait_for()
    assert none_yet.count() == 3
    page.route("**/analyses", lambda route: held.append(route))  # noqa: PLW0108
    held[0].continue_()
    usable(page)
    page.locator("details", has=page.locator("h2", has_text="Analyses")).get_by_text("Loading…").wait_for()
    until(page, lambda: len(held) == 2)
    held[1].continue_()
    page.get_by_label("Analysis", exact=True).wait_for()
    page.wait_for_selector(".statement")
    assert get(page, "/releases")["releases"]
    page.get_by_role("link", name="plan.parquet").wait_for()  # one, or this fails
    settle(page)


@pytest.fixture
def two_pages(chrome_page, live_server, made_up):
    """Let the service list `made_up` first, all others on a page that `meanwhile` lets go; return what is asked."""
    asked = []

    def listen(meanwhile):
        def part(route):
            asked.append(route.request.url)
            found = route.fetch(url=f"{live_server}/releases").json()
            first = "cursor=" not in route.request.url
            found["releases"] = [one for one in found["releases"] if (one["id"] == made_up) == first]
            found["links"] = [{"rel": "next", "href": f"{live_server}/releases?limit=1&cursor=later"}] if first else []
            if first:
                route.fulfill(json=found)
            else:
                meanwhile(lambda: route.fulfill(json=found))

        chrome_page.route(re.compile(r"/releases(\?|$)"), part)
        return asked

    return listen


def test_a_release_that_is_listed_later_can_be_compared_with(chrome_page, live_server, odd, made_up, two_pages):
    page, held = chrome_page, []
    two_pages(held.append)
    page.goto(f"{live_server}/map#release={made_up}")
    until(page, lambda: held)
    unfold(page, "Analyses")
    page.get_by_label("Analysis", exact=True).select_option("time")
    page.get_by_text("There is no other release to compare with.").wait_for()
    held[0]()
    page.get_by_label("Compared with").wait_for()


def test_a_release_of_a_later_page_of_the_list_is_found(chrome_page, live_server, odd, made_up, two_pages):
    page, asked = chrome_page, two_pages(lambda go_on: go_on())
    page.goto(f"{live_server}/map#release={odd}")
    settle(page)
    assert told(page)["release"] == odd
    assert [one.split("?")[1:] for one in asked] == [[], ["cursor=later"]]
    assert page.get_by_label("Release").locator("option").count() == 2
    assert "no release" not in page.locator(".status").inner_text()
    follow(page, "nothing-there")
    page.locator(".status", has_text="no release nothing-there").wait_for()
    assert told(page)["release"] == made_up


def choose(page, name):
    page.get_by_label("Id", exact=True).fill(name)
    page.get_by_role("button", name="Choose", exact=True).click()


TWICE = """([label, id]) => {
  const input = [...document.querySelectorAll('input')].find((one) => one.labels?.[0]?.textContent === label);
  for (let i = 0; i < 2; i += 1) {
    input.value = id;
    input.form.requestSubmit();
  }
}"""


def test_a_late_answer_about_another_area_or_none_is_not_shown(shown, odd):
    page, held = shown(odd, area="zone", id="001", level="zone"), []
    own = workers(page)

    def again(pattern, ask):
        """Ask for something else, and for the same area again before that is answered."""
        held.clear()
        page.route(pattern, lambda route: route.fallback() if held else held.append(route))
        ask()
        until(page, lambda: held)
        choose(page, "001")
        settle(page)
        held[0].continue_()
        page.wait_for_timeout(500)
        assert page.locator(".chips li").all_inner_texts() == ["zone 001\n×"]
        assert workers(page) == own
        assert "From where they come" in page.locator("[data-legend=flows]").inner_text()

    again("**/analyses/origins*", lambda: choose(page, "01"))
    again("**/od?*", lambda: page.get_by_role("button", name="Clear the area").click())
    page.get_by_label("Add to what is chosen already").check()
    page.evaluate(TWICE, ["Id", "001"])  # taken out, and put in again before anything was asked
    settle(page)
    assert workers(page) == own
