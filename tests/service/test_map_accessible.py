"""axe finds no serious fault in the map: light and dark, wide and narrow, with all of it open."""

import layout
import pytest
from mappage import PHONE, picture, settle, unfold

AXE = "synthmap/service/web/node_modules/axe-core/axe.min.js"
WIDE = {"width": 1280, "height": 900}


@pytest.fixture(scope="module")
def axe(repository):
    path = repository / AXE
    if not path.exists():
        pytest.skip("axe-core is not installed: python synthmap/service/web/build.py --lint brings it")
    return path.read_text(encoding="utf-8")


def serious(page, axe):
    """Serious and critical faults, each with where it is."""
    page.evaluate(axe)
    found = page.evaluate("axe.run(document)")
    assert len(found["passes"]) > 10
    return [(one["id"], node["target"], node["failureSummary"]) for one in found["violations"]
            if one["impact"] in ("serious", "critical") for node in one["nodes"]]  # fmt: skip


@pytest.mark.parametrize(("scheme", "size"), [("light", WIDE), ("dark", WIDE), ("light", PHONE)])
def test_axe_finds_no_serious_fault(shown, axe, odd, scheme, size, tmp_path):
    page = shown(odd, options={"color_scheme": scheme, "viewport": size}, area="side", id="east")
    for title in ("Analyses", "Privacy statement", "Downloads", "Key and publishing"):
        unfold(page, title)
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_selector("section.analysis")
    page.locator("section.analysis summary").click()
    settle(page)
    assert serious(page, axe) == []
    picture(page, f"axe-{scheme}-{size['width']}", tmp_path)


def test_axe_would_find_a_fault(shown, axe, odd):
    page = shown(odd)
    page.evaluate("document.querySelector('.panel').append(document.createElement('input'))")
    assert [one[0] for one in serious(page, axe)] == ["label"]


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
