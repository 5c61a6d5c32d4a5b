"""Flows on the map: their figures can be read under the pointer, and where a release lies is taken the short way."""

from urllib.parse import parse_qs

import pytest
from mappage import MIDDLE, at, get, settle


def tooltip(page, x, y):
    """What stands beside the pointer, once it has moved to a point."""
    page.mouse.move(x - 1, y)
    page.mouse.move(x, y)
    page.wait_for_timeout(300)
    return page.locator(".tooltip:visible").all_inner_texts()


def test_a_flow_under_the_pointer_tells_the_workers_of_the_api_and_no_zone(shown, odd):
    page = shown(odd, level="side", at=at(2.4, 48.05, 8.5))  # in the middle between both sides
    x, y = MIDDLE
    told = {one for step in range(-9, 15, 3) for one in tooltip(page, x, y + step) if "→" in one}
    rows = get(page, f"/releases/{odd}/od", level="side")["rows"]
    between = {f"{row['origin']} → {row['destination']}\n{row['count']} workers" for row in rows}
    assert told
    assert told <= between
    (zone,) = tooltip(page, x, y + 25)
    assert "live" in zone
    page.mouse.move(x + 600, y)  # over the panel
    page.wait_for_selector(".tooltip", state="hidden")


def test_a_flow_of_an_area_tells_its_expected_error(shown, odd):
    page = shown(odd, area="side", id="west", end="home", level="side", at=at(2.4, 48.05, 8.5))
    x, y = MIDDLE
    told = {one for step in range(-9, 15, 3) for one in tooltip(page, x, y + step) if "→" in one}
    answer = get(page, f"/releases/{odd}/analyses/destinations", zone="west", level="side", by="side")
    (east,) = [row for row in answer["rows"] if row["id"] == "east"]
    assert {one.split("\n")[1].split(" ±")[0].removesuffix(" workers") for one in told} == {str(east["workers"])}
    assert all(("±" in one) == (east["expected_error"] > 0) for one in told)


@pytest.mark.parametrize("place", ["180,-17,8", "-179.9,-17,8", None])
def test_a_release_across_the_antimeridian_is_in_view_from_both_sides(chrome_page, live_server, odd, place):
    page, asked = chrome_page, []
    levels = {"levels": [{"id": "side", "units": 90}, {"id": "zone", "units": 160}]}
    levels["extent"] = [179.5, -17.2, -179.5, -16.8]
    page.route("**/levels", lambda route: route.fulfill(json=levels))

    def answer(route):
        asked.append(route.request.url)
        route.fulfill(json={"features": [], "links": []})

    page.route("**/od?*", answer)
    page.goto(f"{live_server}/map#release={odd}" + (f"&at={place}" if place else ""))
    settle(page)
    assert asked
    assert all("bbox=" not in one for one in asked)  # all of the release is in view
    assert all("level=side" in one for one in asked)
    page.evaluate("hash => { location.hash = hash; }", f"release={odd}&at=179.7,-17,11")
    settle(page)
    west, _, east, _ = (float(one) for one in parse_qs(asked[-1])["bbox"][0].split(","))
    assert 179.5 < west < 179.7 < east < 180
    assert "level=zone" in asked[-1]  # a fraction of it is in view
