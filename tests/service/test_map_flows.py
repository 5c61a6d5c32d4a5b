"""Flows on the map: their figures can be read under the pointer, and where a release lies is taken the short way."""

from urllib.parse import parse_qs, urlencode

import pytest
from mappage import MIDDLE, at, get, picture, service, settle


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
    between = {f"{row['origin']} → {row['destination']}\n{row['count']}" for row in rows}
    assert told
    assert {one.split(" ±")[0].removesuffix(" workers") for one in told} <= between
    (zone,) = tooltip(page, x, y + 25)
    assert " ± " in zone.split(" live, ")[0]  # who works there is exact
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


def unsure(route):
    """Answer with an expected error of every flow."""
    found = route.fetch().json()
    for one in found["features"]:
        one["properties"]["expected_error"] = 2.5
    route.fulfill(json=found)


def test_the_flows_are_listed_with_the_figures_of_the_api(shown, odd, tmp_path):
    page = shown(odd, flows=0)
    assert not page.locator("summary", has_text="The flows on the map").is_visible()
    page.route("**/od?*", unsure)
    page.get_by_label("Level of flows").select_option("zone")
    page.get_by_label("Flows", exact=True).select_option("300")
    settle(page)
    listed = listing(page)
    rows = get(page, f"/releases/{odd}/od", top=300)["rows"]
    drawn = [one for one in rows if one["origin"] not in (one["destination"], "elsewhere")]
    inside = [one for one in rows if one["origin"] == one["destination"]]
    assert inside
    assert listed == [
        [(f"{one['origin']} → {one['destination']}", f"{one['count']} ± 2.5") for one in some]
        for some in (drawn, inside)
    ]
    picture(page, "flows-listed", tmp_path)


def listing(page):
    """The rows of each table of flows that the panel lists."""
    page.locator("summary", has_text="The flows on the map").click()
    page.locator(".panel .tall tbody tr").first.wait_for()
    return [
        [tuple(row.locator("th, td").all_inner_texts()) for row in table.locator("tbody tr").all()]
        for table in page.locator(".panel .tall table").all()
    ]


def figures(page):
    """The figures that the legend of flows tells in words, by the words behind them."""
    told = page.locator("[data-legend=flows] p").all_inner_texts()
    pairs = (one.removesuffix(".").split(" ", 1) for one in told if one[0].isdigit())
    return {words.split("± ")[-1].lstrip("0123456789. "): int(number.replace(",", "")) for number, words in pairs}


@pytest.mark.parametrize("flows", [100, 1000])
def test_who_is_on_no_arrow_is_told_and_takes_the_place_of_none(shown, made_up, flows):
    page = shown(made_up, level="zone", flows=flows)
    within = get(page, f"/releases/{made_up}/od", kind="within", limit=200)["rows"]
    assert 0 < len(within) < 100
    assert figures(page) == {"live and work in the same zone": sum(one["count"] for one in within)}
    assert list(map(len, listing(page))) == [flows, len(within)]


def test_who_comes_from_off_the_map_is_told_whatever_is_drawn(shown, odd):
    page = shown(odd, level="zone")
    assert figures(page) == {"live and work in the same zone": 32, "more come from off the map": 10}
    page.get_by_label("Home", exact=True).check()
    settle(page)
    assert figures(page) == {"live and work in the same zone": 32}  # homes off the map are not in view
    page = shown(odd, level="zone", at=at(2.05, 48.05, 13))  # the zone 01 alone
    assert figures(page) == {"live and work in the same zone": 32}


def test_a_flow_under_the_pointer_tells_its_expected_error_where_not_all_are_drawn(shown, odd):
    page = shown(odd, level="side", flows=0, at=at(2.4, 48.05, 8.5))

    def cut(route):  # as many as may be drawn: there may be more
        found = route.fetch().json()
        for one in found["features"]:
            one["properties"]["expected_error"] = 2.5
        found["features"] = (found["features"] * 100)[:100]
        route.fulfill(json=found)

    page.route("**/od?*", cut)
    page.get_by_label("Flows", exact=True).select_option("100")
    settle(page)
    x, y = MIDDLE
    told = {one for step in range(-9, 15, 3) for one in tooltip(page, x, y + step) if "→" in one}
    assert told
    assert all(one.endswith(" ± 2.5 workers") for one in told)


@pytest.mark.parametrize(("end", "area"), [("work", ["01"]), ("home", ["01"]), ("work", ["01", "001"])])
def test_who_lives_and_works_in_the_chosen_area_is_told_and_listed(shown, odd, end, area):
    page = shown(odd, area="zone", id=area[0], end=end, level="zone", flows=100)
    if len(area) > 1:
        page.get_by_label("Add to what is chosen already").check()
        page.get_by_label("Id", exact=True).fill(area[1])
        page.get_by_role("button", name="Choose", exact=True).click()
        settle(page)
    query = [("zone", one) for one in area]
    rows = page.request.get(f"{service(page)}/releases/{odd}/analyses/inflow-outflow?{urlencode(query)}").json()["rows"]
    (within,) = [row["workers"] for row in rows if row.get("figure") == "live_and_work"]
    (away,) = [row["workers"] for row in rows if row.get("figure") == "in_commuters_from_elsewhere"]
    told = figures(page)
    assert told.pop("live and work in the area") == within > 0
    assert told.get("more come from off the map", 0) == (away if end == "work" else 0)
    *_, inside = listing(page)
    assert [one[0] for one in inside] == ["the area → the area"]


@pytest.mark.parametrize("area", [["01"], ["001"]])
def test_who_is_not_among_the_largest_of_an_area_is_told_all_the_same(shown, odd, area):
    page = shown(odd, flows=0)

    def cut(route):  # as if others were more than can be drawn
        found = route.fetch().json()
        units = [one for one in found["rows"] if one["group"] == "unit"]
        lost = [one for one in units if one["id"] in (*area, "elsewhere")]
        for one in lost:
            found["rows"].remove(one)
        (rest,) = [one for one in found["rows"] if one["group"] == "others"]
        rest["workers"] += sum(one["workers"] for one in lost)
        route.fulfill(json=found)

    page.route("**/analyses/origins*", cut)
    page.get_by_label("Flows", exact=True).select_option("100")
    page.get_by_label("Level of flows").select_option("zone")
    page.get_by_label("Level", exact=True).select_option("zone")
    page.get_by_label("Id", exact=True).fill(area[0])
    page.get_by_role("button", name="Choose", exact=True).click()
    settle(page)
    wanted = {"01": {"live and work in the area": 32}, "001": {"more come from off the map": 10}}[area[0]]
    assert figures(page) == wanted


def test_flows_that_are_joined_on_the_map_tell_their_sum(shown, odd, tmp_path):
    page = shown(odd, level="zone", totals="none", at=at(2.15, 48.05, 5))  # between 01 and the three others of its side
    others = ("O'Brien", "Île de Ré", "東京")
    rows = [row for row in get(page, f"/releases/{odd}/od", destination="01")["rows"] if row["origin"] in others]
    assert len(rows) > 1
    joined = f'"Île de Ré" and 2 others → 01\n{sum(row["count"] for row in rows)} workers'
    x, y = MIDDLE
    over = ((x + dx, y + dy) for dx in (0, -3, 3) for dy in range(-9, 10, 3))
    assert any(joined in tooltip(page, *point) for point in over)
    picture(page, "flows-joined", tmp_path)


@pytest.mark.parametrize("place", ["180,-17,8", "-179.9,-17,8", None])
def test_a_release_across_the_antimeridian_is_in_view_from_both_sides(chrome_page, live_server, odd, place):
    page, asked = chrome_page, []
    levels = {"levels": [{"id": "side", "units": 90}, {"id": "zone", "units": 160}]}
    levels["extent"] = [179.5, -17.2, -179.5, -16.8]
    page.route("**/levels", lambda route: route.fulfill(json=levels))

    def answer(route):
        asked.append(route.request.url)
        route.fulfill(json={"features": [], "links": [], "sums": {"between": 0, "within": 0, "elsewhere": 0}})

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
