"""Flows as features: their geometries, and which of them meet a region, against shapely one by one."""

import json

import numpy as np
import pytest
import shapely
from handmade import Flow, World, Zone, open_world

from synthmap.errors import QueryError
from synthmap.published.boxes import CRS84, project
from synthmap.published.features import Query, find, open_layer
from synthmap.published.features_crs import code_of, declared
from synthmap.published.features_geojson import write_features
from synthmap.published.features_parse import parse_filter
from synthmap.published.features_region import box_region
from synthmap.published.figure_errors import figure_errors
from synthmap.published.figure_variance import Parts

MERCATOR = "http://www.opengis.net/def/crs/EPSG/0/3857"
WGS84 = "http://www.opengis.net/def/crs/EPSG/0/4326"
PACIFIC = World(
    [Zone("fiji", (), 178.5, -18.0), Zone("samoa", (), -172.0, -14.0), Zone("tonga", (), -175.0, -21.0)],
    [("fiji", "samoa", (3,)), ("samoa", "tonga", (2,)), ("tonga", "tonga", (5,))],
    segments=("A",),
    elsewhere=False,
)


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """400 flows among 40 zones, several at one point, and everywhere else; in blocks of 50 rows."""
    random = np.random.default_rng(3)
    places = 2 + random.integers(6, size=40) / 10, 48 + random.integers(6, size=40) / 10
    zones = [Zone(f"{i:03}", (f"{i % 3}",), x, y) for i, (x, y) in enumerate(zip(*places, strict=True))]
    ends = [zone.id for zone in zones]
    pairs = {(str(random.choice([*ends, "elsewhere"])), str(random.choice(ends))) for _ in range(430)}
    flows: list[Flow] = [(*pair, (int(random.integers(0, 9)), 1)) for pair in sorted(pairs)]
    world = World(zones, flows, levels=("side",), segments=("A", "B"))
    return open_world(tmp_path_factory.mktemp("flows") / "world", world, part=170, group=50)


@pytest.fixture(scope="module")
def flows(opened):
    return open_layer(opened, "flows")


def features(layer, rows, crs=CRS84):
    return [json.loads(text + "}") for text in write_features(layer, np.asarray(rows), crs)]


def there(points, code):
    found = project(points[:, 0], points[:, 1], code)
    return found.first, found.second


def matched(layer, query):
    return find(layer, query, start=0, limit=10**6).rows.tolist()


@pytest.mark.parametrize("code", ["OGC:CRS84", "EPSG:4326", "EPSG:3857", "EPSG:32631"])
def test_the_flows_in_a_box_are_those_whose_geometry_as_sent_meets_it(opened, flows, code):
    uri = next(uri for uri, one in declared(opened).items() if one == code)
    sent = [one["geometry"] for one in features(flows, range(len(flows)), uri)]
    shapes = [shapely.from_geojson(json.dumps(one)) if one else None for one in sent]
    random = np.random.default_rng(4)
    corner = np.stack(there(np.array([[2.0, 48.0], [2.5, 48.5]]), code), axis=1)
    low, high = corner.min(axis=0), corner.max(axis=0)
    sizes = []
    for _ in range(40):
        one, two = np.sort(low + (random.random((2, 2)) * 1.4 - 0.2) * (high - low), axis=0)
        box = shapely.box(*one, *two)
        wanted = [row for row, shape in enumerate(shapes) if shape is not None and shape.intersects(box)]
        region = box_region((*one.tolist(), *two.tolist()), code)
        assert matched(flows, Query(region)) == wanted
        sizes.append(len(wanted))
    assert min(sizes) < 10 and max(sizes) > 100  # boxes that tell something


def test_a_box_holds_its_border(flows):
    region = box_region((2.1, 48.1, 2.1, 48.1), "OGC:CRS84")
    lines = [one["geometry"]["coordinates"] if one["geometry"] else [] for one in features(flows, range(len(flows)))]
    ends = {row for row, line in enumerate(lines) if [2.1, 48.1] in [line, *line]}
    assert ends
    assert ends <= set(matched(flows, Query(region)))


def test_a_flow_without_length_is_a_point_and_one_from_elsewhere_is_nowhere(flows):
    frame, shapes = flows.read(np.arange(len(flows)), "OGC:CRS84")
    still = (frame["distance_km"] == 0).fill_null(value=False).to_numpy()
    nowhere = (frame["origin"] == "elsewhere").to_numpy()
    assert still.sum() > (frame["origin"] == frame["destination"]).sum() > 0  # also between zones at one point
    assert {shape.geom_type for shape in shapes[still]} == {"Point"}
    assert {shape.geom_type for shape in shapes[~still & ~nowhere]} == {"LineString"}
    assert all(shape is None for shape in shapes[nowhere])
    assert all(shape.is_valid for shape in shapes[~nowhere])
    assert frame.filter(nowhere)["distance_km"].null_count() == nowhere.sum()
    assert frame.filter(nowhere)["origin_side"].null_count() == nowhere.sum()
    assert frame.filter(~nowhere)["origin_side"].null_count() == 0


def test_ids_are_places_and_every_page_size_gives_each_feature_once(opened, flows):
    query = Query(box_region((2.0, 48.0, 2.3, 48.3), "OGC:CRS84"))
    whole = matched(flows, query)
    for limit in (1, 7, 64, len(whole), 1000):
        seen, start = [], 0
        while start is not None:
            page = find(flows, query, start=start, limit=limit)
            assert page.matched == len(whole) and page.rows.size <= limit
            seen += page.rows.tolist()
            start = page.next
        assert seen == whole
    table = opened.collect(opened.flows)
    frame, _ = flows.read(np.array([0, 49, 50, 171, len(flows) - 1]), "OGC:CRS84")
    assert frame.select(table.columns).rows() == [table.row(i) for i in (0, 49, 50, 171, table.height - 1)]


def test_coordinates_are_in_the_order_of_the_axes_and_to_the_centimetre(flows):
    (degrees,), (turned,), (metres,) = (features(flows, [1], uri) for uri in (CRS84, WGS84, MERCATOR))
    line = degrees["geometry"]["coordinates"]
    assert turned["geometry"]["coordinates"] == [point[::-1] for point in line]
    wanted = np.stack(there(np.array(line), "EPSG:3857"), axis=1)
    assert metres["geometry"]["coordinates"] == np.round(wanted, 2).tolist()


@pytest.fixture
def pacific(tmp_path):
    return open_layer(open_world(tmp_path / "pacific", PACIFIC), "flows")


def test_a_line_over_the_antimeridian_is_cut_there(pacific):
    cut, plain, still = features(pacific, range(3))
    assert cut["geometry"]["type"] == "MultiLineString"
    west, east = cut["geometry"]["coordinates"]
    assert (west[0], west[1][0], east[0][0], east[1]) == ([178.5, -18.0], 180.0, -180.0, [-172.0, -14.0])
    assert west[1][1] == east[0][1] == pytest.approx(-18 + 4 * 1.5 / 9.5, abs=1e-7)
    assert (plain["geometry"]["type"], still["geometry"]["type"]) == ("LineString", "Point")


@pytest.mark.parametrize(
    ("box", "rows"),
    [
        ((-10, -20, 10, -10), []),  # Africa is not between Fiji and Samoa
        ((179, -20, -179, -10), [0]),  # over the antimeridian
        ((177, -30, -170, 0), [0, 1, 2]),
        ((-176, -22, -174, -20), [1, 2]),
        ((-180, -90, 180, 90), [0, 1, 2]),
        ((179.9, -18, 180, -17), [0]),
        ((-180, -18, -179.9, -17), [0]),
    ],
)
def test_boxes_at_the_antimeridian(pacific, box, rows):
    assert matched(pacific, Query(box_region(tuple(map(float, box)), "OGC:CRS84"))) == rows
    turned = (box[1], box[0], box[3], box[2])
    assert matched(pacific, Query(box_region(tuple(map(float, turned)), "EPSG:4326"))) == rows


def test_the_cut_line_is_cut_in_mercator_too(pacific):
    (cut,) = features(pacific, [0], MERCATOR)
    west, east = cut["geometry"]["coordinates"]
    assert west[1][0] == -east[0][0] == pytest.approx(20037508.34, abs=0.01)
    assert matched(pacific, Query(box_region((-1e6, -3e6, 1e6, -1e6), "EPSG:3857"))) == []


def test_a_reference_system_that_is_not_declared_is_refused(opened):
    with pytest.raises(QueryError, match=r"crs .* must be one of"):
        code_of(opened, "http://www.opengis.net/def/crs/EPSG/0/2154", "crs")


def test_what_has_no_coordinates_in_a_reference_system_has_no_geometry_there(tmp_path):
    zones = [Zone("far", (), 93, 0), Zone("near", (), 3, 10), Zone("west", (), -87, 20)]
    world = World(zones, [("far", "near", (1,)), ("near", "near", (1,))], segments=("A",))
    layer = open_layer(open_world(tmp_path / "wide", world), "flows")
    utm = next(uri for uri, code in declared(layer.opened).items() if code == "EPSG:32631")
    lost, kept = features(layer, [0, 1], utm)
    assert (lost["geometry"], kept["geometry"]["type"]) == (None, "Point")
    assert matched(layer, Query(box_region((-1e9, -1e9, 1e9, 1e9), "EPSG:32631"))) == [1]


def test_every_flow_tells_its_expected_error_and_can_be_chosen_by_it(opened, flows):
    every = matched(flows, Query(None))
    told = [one["properties"] for one in features(flows, every)]
    errors = figure_errors(opened)
    codes = {name: code for code, name in enumerate(flows.table.zones.names.to_list())}
    for one in told[::40]:
        d = codes[one["destination"]]
        n = errors.parts.size[d]
        sums = Parts(*(part[[d], None] for part in errors.parts))
        found = errors.expected(np.array([[[one["count"]]]]), sums).error.item()
        assert one["expected_error"] == pytest.approx(found, rel=0.01)
        assert 0 < one["expected_error"] <= n
    small = matched(flows, Query(None, (json.dumps(parse_filter("expected_error < 2", "cql2-text")),)))
    assert [at for at, one in zip(every, told, strict=True) if one["expected_error"] < 2] == small
    assert 0 < len(small) < len(every)
