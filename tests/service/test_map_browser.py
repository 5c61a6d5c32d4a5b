"""The map in a browser: releases, zones, areas, links; what it says when things go wrong."""

import re
from contextlib import ExitStack
from urllib.parse import parse_qsl, urlsplit

import browser
import live
import pytest
from mappage import MIDDLE, PHONE, at, get, ignoring, picture, settle, unfold, workers

ODD_AREA = [(2.02, 47.9), (2.28, 47.9), (2.28, 48.2), (2.02, 48.2)]  # the internal points of the three first zones
KML = """<?xml version="1.0"?><kml xmlns="http://www.opengis.net/kml/2.2"><Placemark><Polygon><outerBoundaryIs><LinearRing>
<coordinates>{}</coordinates></LinearRing></outerBoundaryIs></Polygon></Placemark></kml>"""
NAMES = ["<img src=x onerror=alert(1)>", "O'Brien", "Île de Ré", "東京", "a/b?c=d&e#f", 'say "hi", ok; é']


def test_a_release_is_shown_and_another_can_be_chosen(shown, made_up, odd, tmp_path):
    page = shown(made_up)
    flows = page.locator("[data-legend=flows]")
    assert "home → work" in flows.inner_text()
    picture(page, "opened", tmp_path)
    page.get_by_label("Release").select_option(odd)
    page.locator(".release", has_text="Odd ids").locator("text=vintage 2026").wait_for()
    settle(page)
    assert f"release={odd}" in page.url
    assert "8 zones" in page.locator(".release").inner_text()
    page.get_by_label("Thermal").check()
    settle(page)
    assert page.locator("[data-legend=thermal]").count() == 1
    picture(page, "thermal", tmp_path)
    page.get_by_label("Home", exact=True).check()
    page.get_by_label("Circles").check()
    settle(page)
    assert "Live here" in page.locator("[data-legend=circles]").inner_text()


@pytest.mark.parametrize(("delta", "promise"), [
    (0, "ε-differentially private, ε = 4. "), (1e-6, "(ε, δ)-differentially private with ε = 4, δ = 1·10⁻⁶. "),
])  # fmt: skip
def test_the_promise_names_delta_where_there_is_one(chrome_page, live_server, odd, delta, promise):
    page = chrome_page

    def private(route):
        found = route.fetch().json()
        found["releases"] = [one | {"private": True, "epsilon": 4, "delta": delta} for one in found["releases"]]
        route.fulfill(json=found)

    page.route("**/releases", private)
    page.goto(f"{live_server}/map#release={odd}")
    settle(page)
    assert f"homes are drawn, {promise}" in page.locator(".release").inner_text()


ORDER = """() => ['.over', '.status', '.maplibregl-ctrl-top-left', '.maplibregl-ctrl-top-right']
    .map((one) => Number(getComputedStyle(document.querySelector(one)).zIndex) || 0)"""


def test_legend_and_messages_lie_above_what_is_drawn(shown, made_up):
    page = shown(made_up)
    over, messages, *drawn = page.evaluate(ORDER)  # the layer of flows is among the map's controls
    assert messages > over > max(drawn)
    assert max(drawn) > 0


def test_a_clicked_zone_has_the_workers_of_the_api_and_the_link_restores_it(shown, odd, tmp_path):
    page = shown(odd, level="zone", at=at(2.75, 48.05))
    page.mouse.click(*MIDDLE)
    flows = get(page, f"/releases/{odd}/od", destination="001")["rows"]
    assert workers(page) == sum(row["count"] for row in flows) == 45
    assert page.locator(".chips li").all_inner_texts() == ["zone 001\n×"]
    assert "mostly chance" in page.locator(".panel").inner_text()
    picture(page, "zone", tmp_path)
    link = dict(parse_qsl(urlsplit(page.url).fragment))
    again = shown(link.pop("release"), **link)
    assert workers(again) == 45
    assert dict(parse_qsl(urlsplit(again.url).fragment)) == {"release": odd} | link


def test_odd_ids_are_text_everywhere(shown, odd, tmp_path):
    page = shown(odd, end="home")
    page.get_by_label("Level", exact=True).select_option("zone")
    for name in NAMES:
        page.get_by_label("Id", exact=True).fill(name)
        page.get_by_role("button", name="Choose", exact=True).click()
        people = workers(page)
        assert people == sum(row["count"] for row in get(page, f"/releases/{odd}/od", origin=name)["rows"])
        assert page.locator(".chips li").inner_text() == f"zone {name}\n×"
        assert page.locator("img").count() == 0
        if name == NAMES[0]:
            picture(page, "odd-id", tmp_path)


def test_an_id_that_there_is_not_is_told_and_has_no_figures_of_another_area(shown, odd):
    page = shown(odd, area="zone", id="001")
    assert workers(page) == 45
    page.get_by_label("Id", exact=True).fill("nowhere")
    with ignoring(page, "400"):
        page.get_by_role("button", name="Choose", exact=True).click()
        page.wait_for_selector(".status .failed")
        assert "nowhere" in page.locator(".status .failed").inner_text()
        assert page.locator(".headline, [data-legend=flows] li").count() == 0


def test_an_area_is_drawn_by_mouse_and_by_keyboard(shown, odd, tmp_path):
    wanted = None
    page = shown(odd, at=at(2.15, 48.05, 9))
    for keys in (False, True):
        page.get_by_role("button", name="Draw an area").click()
        if keys:
            for move in ("ArrowLeft", "ArrowUp", "ArrowRight"):
                for _ in range(2):
                    page.keyboard.press(move)
                    settle(page)
                page.keyboard.press("Enter")
        else:
            x, y = MIDDLE
            for number, (dx, dy) in enumerate(((-100, -200), (170, -200), (170, 200), (-100, 200)), 1):
                page.mouse.click(x + dx, y + dy)
                page.get_by_text(re.compile(rf"^{number} corners?\b")).wait_for()
        picture(page, f"drawing-{'keys' if keys else 'mouse'}", tmp_path)
        with page.expect_request("**/analyses/origins*") as asked:
            page.get_by_role("button", name="Finish").click()
        found = workers(page)
        ring = [float(one) for one in page.url.split("ring=")[1].split("&")[0].replace("%2C", ",").split(",")]
        assert len(ring) == (6 if keys else 8)
        corners = [ring[i : i + 2] for i in range(0, len(ring), 2)]
        body = {"type": "Polygon", "coordinates": [[*corners, corners[0]]]}
        assert asked.value.post_data_json == body  # what the link says is what is looked at
        answer = page.request.post(
            f"{page.url.split('/map')[0]}/releases/{odd}/analyses/origins?by=zone", data=body
        ).json()
        (wanted,) = [row["workers"] for row in answer["rows"] if row["group"] == "total"]
        assert found == wanted
        picture(page, f"drawn-{'keys' if keys else 'mouse'}", tmp_path)
        page.get_by_role("button", name="Clear the area").click()
    assert wanted is not None


def test_a_kml_is_uploaded_and_a_file_that_is_none_is_refused(shown, odd, tmp_path):
    page = shown(odd, end="home")
    ring = " ".join(f"{x},{y}" for x, y in [*ODD_AREA, ODD_AREA[0]])
    path = tmp_path / "area.kml"
    path.write_text(KML.format(ring))
    page.get_by_label("Upload an area").set_input_files(path)
    flows = get(page, f"/releases/{odd}/od", limit=100)["rows"]
    assert workers(page) == sum(row["count"] for row in flows if row["origin"] in ("01", "O'Brien", "Île de Ré"))
    assert "area.kml" in page.locator(".panel").inner_text()
    picture(page, "uploaded", tmp_path)
    path = tmp_path / "area.gpkg"
    path.write_bytes(b"nothing of the kind")
    with ignoring(page, "400", "415"):
        page.get_by_label("Upload an area").set_input_files(path)
        page.wait_for_selector(".status .failed")
    assert "area.gpkg" in page.locator(".panel").inner_text()
    assert page.locator(".headline").count() == 0


def test_a_service_that_stops_is_told_and_what_is_shown_stays(chrome, store, odd, tmp_path):
    with ExitStack() as stack, ExitStack() as running:
        address = running.enter_context(live.serving(store, tmp_path / "catalog.sqlite"))
        page = stack.enter_context(browser.opened(chrome, address))
        page.goto(f"{address}/map#release={odd}")
        settle(page)
        running.close()
        with ignoring(page, "ERR_CONNECTION_REFUSED", "Failed to fetch"):
            page.get_by_label("Id", exact=True).fill("001")
            page.get_by_role("button", name="Choose", exact=True).click()
            page.wait_for_selector(".status .failed")
            assert "does not answer" in page.locator(".status").inner_text()
            assert page.get_by_role("button", name="Try again").count() >= 1
            assert page.locator("[data-legend=circles] li").count() > 0
            picture(page, "stopped", tmp_path)


def test_a_release_that_there_is_not_is_told_and_another_shown(shown, odd):
    page = shown("nothing-there", end="home")
    assert "nothing-there" not in page.url
    assert page.get_by_label("Release").input_value()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_all_without_sideways_scrolling(shown, odd, scheme, tmp_path):
    options = {"viewport": PHONE, "color_scheme": scheme, "has_touch": True}
    page = shown(odd, options=options, area="side", id="east")
    assert workers(page) > 0
    for title in ("Analyses", "Privacy statement", "Downloads", "Key and publishing"):
        unfold(page, title)
    settle(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    picture(page, f"phone-{scheme}", tmp_path)
    page.locator(".headline").scroll_into_view_if_needed()
    picture(page, f"phone-{scheme}-area", tmp_path)


def test_the_keyboard_reaches_every_control(shown, odd):
    page = shown(odd)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.innerText") == "Skip to the controls"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.tagName") == "SELECT"
    seen = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.innerText || document.activeElement.type || ''"))
    for name in ("Draw an area", "Choose", "Analyses", "Privacy statement", "Downloads", "Key and publishing", "file"):
        assert name in seen


@pytest.mark.parametrize("key", ["schlüssel", "“key”", "two words", "клю́ч"])
def test_a_key_that_is_none_is_refused_and_not_kept(chrome_page, live_server, odd, key):
    page, refused = chrome_page, chrome_page.locator(".status .failed")
    page.goto(f"{live_server}/map?token={key}#release={odd}")
    refused.filter(has_text="no key has").wait_for()
    settle(page)
    assert "token" not in page.url
    assert page.locator("[data-legend=circles] li").count() > 0
    assert page.evaluate("sessionStorage.length") == 0
    refused.get_by_role("button", name="Dismiss").click()
    assert refused.count() == 0
    unfold(page, "Key and publishing")
    page.get_by_label("Key", exact=True).fill(key)
    page.get_by_role("button", name="Use the key").click()
    assert "no key has" in refused.inner_text()
    assert page.evaluate("sessionStorage.length") == 0


def test_tiles_that_are_missing_come_when_they_are_asked_for_again(shown, odd, made_up):
    page = shown(odd)
    with ignoring(page, "503", "Error"):
        page.route("**/tiles/**", lambda route: route.fulfill(status=503, json={"detail": "the tiles are being made"}))
        page.get_by_label("Release").select_option(made_up)
        page.locator(".status .failed", has_text="being made").wait_for()
        settle(page)
        page.unroute("**/tiles/**")
        page.get_by_role("button", name="Try again").click()
        page.wait_for_selector(".status .failed", state="detached")
    settle(page)
    assert page.locator("[data-legend=circles] li").count() > 0
