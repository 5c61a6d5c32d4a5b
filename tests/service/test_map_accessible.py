"""axe finds no serious fault in the map: light and dark, wide and narrow, with all of it open."""

import layout
import pytest
from axe import serious
from mappage import PHONE, ignoring, picture, settle, unfold

WIDE = {"width": 1280, "height": 900}


@pytest.mark.parametrize(("scheme", "size"), [("light", WIDE), ("dark", WIDE), ("light", PHONE)])
def test_axe_finds_no_serious_fault(shown, odd, scheme, size, tmp_path):
    page = shown(odd, options={"color_scheme": scheme, "viewport": size}, area="side", id="east")
    for title in ("Analyses", "Privacy statement", "Downloads", "Key and publishing"):
        unfold(page, title)
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_selector("section.analysis")
    page.locator("section.analysis summary").click()
    settle(page)
    assert serious(page) == []
    picture(page, f"axe-{scheme}-{size['width']}", tmp_path)


def enlarged(route):
    """Answer with numbers that do not fit beside their bars."""
    found = route.fetch().json()
    for row in found["rows"]:
        row["workers"] += 123_456_789_012
    route.fulfill(json=found)


def test_axe_finds_no_serious_fault_in_what_comes_and_goes(shown, odd, tmp_path):
    page = shown(odd)
    page.route("**/analyses/**", enlarged)
    page.get_by_label("Id", exact=True).fill("west")
    page.get_by_role("button", name="Choose", exact=True).click()
    settle(page)
    page.locator("summary", has_text="The flows on the map").click()
    scrolled = "all => all.some(one => one.scrollWidth > one.clientWidth)"
    assert page.locator(".result .scroll").evaluate_all(scrolled)
    assert serious(page) == []
    page.unroute("**/analyses/**")
    with ignoring(page, "400"):
        page.get_by_label("Id", exact=True).fill("nowhere")
        page.get_by_role("button", name="Choose", exact=True).click()
        page.wait_for_selector(".status .failed")
    page.get_by_role("button", name="Draw an area").click()
    assert serious(page) == []
    picture(page, "axe-failed-draws", tmp_path)


def test_axe_would_find_a_fault(shown, odd):
    page = shown(odd)
    page.evaluate("document.querySelector('.panel').append(document.createElement('input'))")
    assert [one[0] for one in serious(page)] == ["label"]


COLOURS = "all => all.map(one => getComputedStyle(one).backgroundColor)"


def test_bars_and_whiskers_are_seen_in_forced_colours(shown, odd, tmp_path):
    page = shown(odd, options={"forced_colors": "active"}, area="side", id="east")
    colours = page.locator(".bar, .whisker").evaluate_all(COLOURS)
    assert colours
    assert page.locator("html").evaluate_all(COLOURS)[0] not in colours
    picture(page, "forced-colours", tmp_path)


def test_the_smallest_phone_has_room_to_draw(shown, odd, tmp_path):
    size = {"width": 320, "height": 568}
    page = shown(odd, options={"viewport": size, "has_touch": True, "is_mobile": True})
    page.get_by_role("button", name="Draw an area").click()
    settle(page)
    assert "Tap the corners" in page.locator(".tools").inner_text()
    tools, cross = (page.locator(one).bounding_box() for one in (".tools", ".cross"))
    assert cross["y"] + cross["height"] < tools["y"]
    assert tools["height"] < page.locator(".map").bounding_box()["height"] / 3
    layout.in_order(page)
    picture(page, "smallest-phone-draws", tmp_path)


def test_titles_and_ids_from_right_to_left_stay_apart(chrome_page, live_server, odd):
    page = chrome_page
    titled = {"title": "תנועה 2026"}

    def retitle(route):
        found = route.fetch().json()
        found["releases"] = [one | titled for one in found["releases"]]
        route.fulfill(json=found)

    page.route("**/releases", retitle)
    page.goto(f"{live_server}/map#release={odd}")
    settle(page)
    assert all(
        "\u2068תנועה 2026\u2069" in one for one in page.get_by_label("Release").locator("option").all_inner_texts()
    )
