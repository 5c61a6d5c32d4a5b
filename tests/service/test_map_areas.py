"""Areas with what lies around them, and what the service notes about an area."""

import json

import pytest
from mappage import get, picture, service, settle, unfold, until, workers

NEAR = {"buffer": "8000"}
RING = {"buffer": "25000", "inner": "3000"}


@pytest.mark.parametrize("around", [NEAR, RING])
def test_paired_areas_are_of_what_lies_around_them(shown, odd, around):
    page = shown(odd, area="zone", id="01", **around)
    unfold(page, "Analyses")
    page.get_by_label("Analysis", exact=True).select_option("paired-areas")
    page.get_by_role("button", name="Keep the chosen area as A").click()
    page.get_by_role("button", name="Remove").click()
    page.get_by_label("Metres around it").fill("0")
    page.get_by_label("Id", exact=True).fill("001")
    page.get_by_role("button", name="Choose", exact=True).click()
    settle(page)
    told = page.locator("p", has_text="Area A:").inner_text()
    assert f"{int(around['buffer']):,} m" in told
    assert "001" in told.split("Area B:")[1]
    assert " m " not in told.split("Area B:")[1]
    with page.expect_response(lambda one: "/analyses/paired-areas" in one.url) as answer:
        page.get_by_role("button", name="Run", exact=True).click()
    a = {"around": {"zones": ["01"], "level": "zone"}} | {f"{name}_m": int(value) for name, value in around.items()}
    wanted = page.request.post(f"{service(page)}/releases/{odd}/analyses/paired-areas",
                               data={"a": a, "b": {"zones": ["001"], "level": "zone"}})  # fmt: skip
    assert answer.value.json() == wanted.json()
    settle(page)


def test_a_ring_leaves_out_what_lies_nearer(shown, odd):
    page = shown(odd, area="zone", id="001", buffer="25000")
    whole = workers(page)
    page.get_by_label("Metres left out").fill("3000")
    page.get_by_label("Metres left out").blur()
    settle(page)
    query = {"zone": "001", "by": "zone", "top": 300, "buffer_m": 25000, "inner_m": 3000}
    rows = get(page, f"/releases/{odd}/analyses/origins", **query)["rows"]
    assert workers(page) == next(row["workers"] for row in rows if row["group"] == "total") < whole
    assert "inner=3000" in page.url


@pytest.mark.parametrize(("ring", "note"), [
    ([[60, 10], [61, 10], [61, 11], [60, 10]], "outside"),
    ([[2.02, 47.9], [2.28, 48.2], [2.28, 47.9], [2.02, 48.2], [2.02, 47.9]], "mended"),
])  # fmt: skip
def test_what_is_noted_about_an_upload_stands_beside_it(shown, odd, ring, note, tmp_path):
    page = shown(odd)
    path = tmp_path / "area.geojson"
    path.write_text(json.dumps({"type": "Polygon", "coordinates": [ring]}))
    page.get_by_label("Upload an area").set_input_files(path)
    settle(page)
    page.wait_for_selector(".headline")
    assert note in " ".join(page.locator(".result .caution").all_inner_texts())


RING_B = "2.42,47.9,2.68,47.9,2.68,48.2,2.42,48.2"


def test_an_analysis_keeps_the_outline_of_the_chosen_area_and_goes_with_another(shown, odd, tmp_path):
    page = shown(odd, area="side", id="west")
    unfold(page, "Analyses")
    page.get_by_label("Analysis", exact=True).select_option("paired-areas")
    page.get_by_role("button", name="Keep the chosen area as A").click()
    page.evaluate("hash => { location.hash = hash; }", f"release={odd}&ring={RING_B}&flows=0")
    settle(page)
    before = page.locator(".canvas").screenshot()
    with page.expect_response("**/analyses/paired-areas"):
        page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_selector("section.analysis")
    settle(page)
    assert page.locator(".canvas").screenshot() == before
    picture(page, "paired-with-a-drawn-area", tmp_path)
    page.get_by_role("button", name="Clear the area").click()
    assert page.locator("section.analysis").count() == 0


def test_an_analysis_that_is_answered_late_does_not_stand_under_another_area(shown, odd):
    page, held = shown(odd, area="side", id="west"), []
    unfold(page, "Analyses")
    page.route("**/analyses/inflow-outflow*", lambda route: held.append(route))  # noqa: PLW0108  # Playwright marks it
    page.get_by_role("button", name="Run", exact=True).click()
    until(page, lambda: held)
    page.get_by_label("Home", exact=True).check()
    settle(page)
    held[0].continue_()
    page.wait_for_timeout(500)
    assert page.locator("section.analysis").count() == 0


def test_limits_are_those_of_the_service(chrome_page, live_server, odd, tmp_path):
    page = chrome_page
    page.route("**/map/settings", lambda route: route.fulfill(json=route.fetch().json() | {"upload_bytes": 1500}))
    page.goto(f"{live_server}/map#release={odd}")
    settle(page)
    assert "at most 1.5 kB" in page.locator(".panel").inner_text()
    assert page.get_by_label("Metres around it").get_attribute("max") == "1000000"
    path = tmp_path / "area.geojson"
    path.write_text(json.dumps({"type": "Point", "coordinates": [2, 48]}).ljust(1501))
    page.get_by_label("Upload an area").set_input_files(path)
    assert "at most 1.5 kB" in page.locator(".status .failed").inner_text()
