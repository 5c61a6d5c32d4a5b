"""The legends match what is drawn: circles, widths of flows and thermal colours, measured in pictures of the map."""

import mapbox_vector_tile
import numpy as np
import pytest
from mappage import MIDDLE, at, get, picture, service
from PIL import Image

LONELY = at(2.75, 48.05)  # in the middle of the zone 001, where 45 work
BETWEEN = 8  # colours that are this close, of 255, are one


def pixels(page, name, directory):
    return np.asarray(Image.open(picture(page, name, directory)).convert("RGB")).astype(int)


def apart(one, other):
    return np.abs(one - other).max(axis=-1)


def test_the_legend_matches_the_circles_that_are_drawn(shown, odd, tmp_path):
    page = shown(odd, flows=0, at=LONELY)
    sizes = {}
    for row in page.locator("[data-legend=circles] li").all():
        sizes[int(row.inner_text())] = float(row.locator("svg").get_attribute("data-radius"))
    largest = max(sizes)
    radius = sizes[largest] * (45 / largest) ** 0.5
    image = pixels(page, "circle", tmp_path)
    x, y = MIDDLE
    rays = [(1, 0), (-1, 0), (0, 1), (0, -1)]
    inside = [image[y + round(b * (radius - 2)), x + round(a * (radius - 2))] for a, b in rays]
    outside = [image[y + round(b * (radius + 3)), x + round(a * (radius + 3))] for a, b in rays]
    middle = image[y, x]
    assert all(apart(one, middle) < 6 for one in inside)
    assert all(apart(one, middle) > 20 for one in outside)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_legend_matches_the_thermal_colours_that_are_drawn(shown, odd, scheme, tmp_path):
    page = shown(odd, options={"color_scheme": scheme}, flows=0, totals="thermal", at=LONELY)
    legend = page.locator("[data-legend=thermal]")
    few, many = (int(one.split()[0]) for one in legend.locator(".ends span").all_inner_texts())
    box = legend.locator(".ramp").bounding_box()
    image = pixels(page, f"thermal-{scheme}", tmp_path)
    ramp = image[round(box["y"] + box["height"] / 2), round(box["x"]) + 2 : round(box["x"] + box["width"]) - 2]
    x, y = MIDDLE
    share = (45 - few) / (many - few)
    nearest = apart(ramp, image[y, x]).argmin() / (len(ramp) - 1)
    assert abs(nearest - share) < 0.06
    where = [apart(ramp, image[y, x + step]).argmin() for step in range(0, 24, 4)]
    assert max(apart(ramp, image[y, x + step]).min() for step in range(0, 24, 4)) < BETWEEN
    assert where == sorted(where, reverse=True)  # from many to few, as one goes away from them
    assert where[-1] < where[0] - len(ramp) / 3


def test_the_legend_matches_the_widths_of_flows_that_are_drawn(shown, odd, tmp_path):
    page = shown(odd, level="side", totals="none", at=at(2.4, 48.05, 8.5))
    rows = get(page, f"/releases/{odd}/od", level="side")["rows"]
    (east,) = [row["count"] for row in rows if (row["origin"], row["destination"]) == ("west", "east")]
    (west,) = [row["count"] for row in rows if (row["origin"], row["destination"]) == ("east", "west")]
    legend = page.locator("[data-legend=flows] li")
    told = {int(row.inner_text()): float(row.locator("svg").get_attribute("data-width")) for row in legend.all()}
    _, most = sorted(told)
    x, y = MIDDLE
    column = pixels(page, "flows", tmp_path)[y - 30 : y + 30, x]
    body = (apart(column, np.median(column, axis=0)) > 60).sum()
    assert most == east > west
    assert abs(body - told[most]) <= 1


def test_the_legend_of_circles_tells_their_level_which_is_not_that_of_flows(shown, made_up, odd):
    page = shown(odd, level="side")
    assert page.locator("[data-legend=flows] h3").inner_text().endswith("by side")
    assert page.locator("[data-legend=circles] h3").inner_text() == "Work here, by zone"
    page = shown(made_up, level="zone", end="home", totals="thermal", at=at(-45, 35, 0.5))
    tile = page.request.get(f"{service(page)}/collections/{made_up}.origins/tiles/WebMercatorQuad/0/0/0").body()
    (level,) = {one["properties"]["level"] for one in mapbox_vector_tile.decode(tile)["points"]["features"]}
    assert level != "zone"
    told = "several zones together" if level == "grid" else f"by {level}"
    assert page.locator("[data-legend=flows] h3").inner_text().endswith("by zone")
    assert page.locator("[data-legend=thermal] h3").inner_text() == f"Live here, {told}"
