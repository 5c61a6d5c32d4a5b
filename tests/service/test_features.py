"""OGC API – Features over HTTP: pages, boxes, reference systems, filters, single features, refusals."""

import json
import re
import shutil
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import geopandas
import polars as pl
import pytest
import shapely
from publishedtable import published

from synthmap.catalog.keys import Role, add_key

CRS84 = "http://www.opengis.net/def/crs/OGC/1.3/CRS84"
EPSG = "http://www.opengis.net/def/crs/EPSG/0/"
KINDS = ("flows", "origins", "destinations")


def items(client, release, kind="flows", **query):
    answer = client.get(f"/collections/{release}.{kind}/items", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def links_of(document, rel):
    return [one["href"] for one in document["links"] if one["rel"] == rel]


def all_pages(client, address):
    """Return all features, page by page."""
    found, pages = [], 0
    while address:
        answer = client.get(address)
        assert answer.status_code == 200, answer.text
        page = answer.json()
        assert page["numberReturned"] == len(page["features"])
        found += page["features"]
        pages += 1
        address = next(iter(links_of(page, "next")), None)
    return found, pages, page["numberMatched"]


@pytest.mark.parametrize("limit", [1, 7, 50])
def test_following_next_gives_every_flow_once_as_it_was_published(make_client, store, made_up, limit):
    client = make_client(page_size=limit, page_size_maximum=2000)
    wanted = published(store, made_up)
    if limit == 1:
        wanted = wanted.filter(pl.col("destination") == wanted["destination"][100])
        start = f"/collections/{made_up}.flows/items?destination={wanted['destination'][0]}"
    else:
        start = f"/collections/{made_up}.flows/items"
    found, pages, matched = all_pages(client, start)
    assert matched == len(found) == wanted.height
    assert pages == -(-wanted.height // limit) > 1
    assert len({one["id"] for one in found}) == len(found)
    assert [[one["properties"][name] for name in wanted.columns] for one in found] == [
        list(row) for row in wanted.rows()
    ]


@pytest.mark.parametrize("query", [{}, {"bbox": "-45.02,34.98,-44.98,35.02"}, {"filter": "count > 1 AND SA01 = 0"}])
def test_pages_of_a_query_are_one_answer(client, made_up, query):
    whole = items(client, made_up, limit=10_000, **query)
    first = client.get(f"/collections/{made_up}.flows/items", params=query | {"limit": 40}).request.url
    found, pages, matched = all_pages(client, str(first))
    assert pages > 1
    assert [one["id"] for one in found] == [one["id"] for one in whole["features"]]
    assert matched == whole["numberMatched"]


def test_totals_agree(client, store, made_up, odd):
    for release in (made_up, odd):
        table = published(store, release)
        for kind, end in (("origins", "origin"), ("destinations", "destination")):
            sums = dict(table.group_by(end).agg(pl.col("count").sum()).iter_rows())
            zones = items(client, release, kind, limit=10_000)["features"]
            counts = {one["properties"]["zone"]: one["properties"]["count"] for one in zones}
            assert {zone: count for zone, count in counts.items() if count} == sums
            assert len(counts) == len(zones)


def test_ids_are_text_exactly_as_they_were(client, odd, store):
    found = items(client, odd)["features"]
    table = published(store, odd)
    assert [one["properties"]["origin"] for one in found] == table["origin"].to_list()
    assert {"01", "001"} <= {one["properties"]["destination"] for one in found}
    zones = {one["properties"]["zone"] for one in items(client, odd, "origins")["features"]}
    assert {"東京", "<img src=x onerror=alert(1)>", 'say "hi", ok; é', "a/b?c=d&e#f", "elsewhere"} <= zones
    for zone in zones:
        (one,) = items(client, odd, "origins", zone=zone)["features"]
        assert one["properties"]["zone"] == zone
        quoted = zone.replace("'", "''")
        assert items(client, odd, "origins", filter=f"zone = '{quoted}'")["features"] == [one]


def test_every_feature_has_an_address_of_its_own(client, odd):
    for kind in KINDS:
        for one in items(client, odd, kind)["features"]:
            answer = client.get(f"/collections/{odd}.{kind}/items/{one['id']}")
            assert answer.headers["content-type"] == "application/geo+json"
            alone = answer.json()
            (self,) = links_of(alone, "self")
            assert client.get(self).json() == alone
            assert client.get(links_of(alone, "collection")[0]).json()["id"] == f"{odd}.{kind}"
            assert {key: alone[key] for key in one} == one


@pytest.mark.parametrize("feature", ["-1", "00", "01", "9", "1e3", "x", "9999999999999999999999", "1.0", "²", " 1"])
def test_a_feature_that_is_not_there_is_not_found(client, odd, feature):
    answer = client.get(f"/collections/{odd}.flows/items/{feature}")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("name", ["none", "none.flows", "{odd}.nothing", "{odd}", "{odd}.", ".flows", "..%2F.flows"])
def test_a_collection_that_is_not_there_is_not_found(client, odd, name):
    for below in ("", "/items", "/items/0", "/queryables"):
        answer = client.get(f"/collections/{name.format(odd=odd)}{below}")
        assert answer.status_code == 404, answer.text


def test_flows_from_elsewhere_count_and_have_no_place(client, odd):
    (flow,) = [one for one in items(client, odd)["features"] if one["properties"]["origin"] == "elsewhere"]
    assert flow["geometry"] is None and flow["properties"]["count"] > 0
    assert flow["properties"]["origin_side"] is None and flow["properties"]["distance_km"] is None
    assert flow["id"] not in [one["id"] for one in items(client, odd, bbox="-180,-90,180,90")["features"]]
    (zone,) = items(client, odd, "origins", zone="elsewhere")["features"]
    assert zone["geometry"] is None and zone["properties"]["count"] == flow["properties"]["count"]
    assert items(client, odd, "origins", bbox="-180,-90,180,90")["numberMatched"] == 8


@pytest.mark.parametrize(
    ("box", "crs", "zones"),
    [
        ("2.05,48.02,2.15,48.04", None, {"01", "O'Brien"}),
        ("2.05,48.02,-1000,2.15,48.04,1000", None, {"01", "O'Brien"}),
        ("2.05,48.02,2.15,48.04", CRS84, {"01", "O'Brien"}),
        ("48.02,2.05,48.04,2.15", EPSG + "4326", {"01", "O'Brien"}),
        ("2.05,48.02,2.15,48.04", EPSG + "4326", set()),
        ("228206.0,6109000.0,239339.0,6112000.0", EPSG + "3857", {"01", "O'Brien"}),
        ("429200,5319500,436000,5321000", EPSG + "32631", {"01", "O'Brien"}),
        ("170,-90,2.05,90", None, {"01"}),  # over the antimeridian, to the first zone
        ("2.75,-90,-170,90", None, {"001"}),
        ("2.8,48.1,2.8,48.1", None, {"001"}),  # its corner
        ("0,0,0,0", None, set()),
        ("-1e300,-1e300,1e300,1e300", None, None),
    ],
)
def test_zones_in_a_box_of_any_declared_reference_system(client, odd, box, crs, zones):
    found = items(client, odd, "origins", bbox=box, **({"bbox-crs": crs} if crs else {}))
    ids = {one["properties"]["zone"] for one in found["features"]}
    assert ids == zones if zones is not None else len(ids) == 8


def test_polygons_that_only_come_near_a_box_are_left_out(client, odd):
    """A line of no width between the zones' corners meets them; a triangle beside them does not."""
    triangle = "S_INTERSECTS(geometry, POLYGON((1.9 48.05, 1.9 48.2, 2.06 48.2, 1.9 48.05)))"
    assert items(client, odd, "origins", filter=triangle)["numberMatched"] == 0
    assert items(client, odd, "origins", filter=triangle.replace("48.05", "47.9"))["numberMatched"] == 1


def test_reference_systems_are_sent_as_asked(client, odd):
    declared = client.get(f"/collections/{odd}.origins").json()
    assert declared["crs"] == [CRS84, EPSG + "4326", EPSG + "3857", EPSG + "32631"]
    assert declared["storageCrs"] == CRS84
    (plain,) = items(client, odd, "origins", zone="01")["features"]
    for uri in declared["crs"]:
        for below, query in (("", {"zone": "01"}), (f"/{plain['id']}", {})):
            answer = client.get(f"/collections/{odd}.origins/items{below}", params=query | {"crs": uri})
            assert answer.headers["content-crs"] == f"<{uri}>"
            one = answer.json()
            shape = shapely.from_geojson(json.dumps((one["features"][0] if "features" in one else one)["geometry"]))
            zone = geopandas.GeoSeries([shapely.box(2, 48, 2.1, 48.1)], crs=4326)
            wanted = {CRS84: (2, 48, 2.1, 48.1), EPSG + "4326": (48, 2, 48.1, 2.1)}.get(uri)
            if wanted is None:
                wanted = zone.to_crs(int(uri.rsplit("/", 1)[1])).total_bounds
            assert shape.bounds == pytest.approx(wanted, rel=1e-7)
    assert client.get(f"/collections/{odd}.origins/items").headers["content-crs"] == f"<{CRS84}>"


def test_coordinates_have_no_needless_digits(client, odd, made_up):
    """But for the one in some 700 of which GEOS does not find the shortest text."""
    every, needless = 0, 0
    for address in (f"{odd}.origins", f"{odd}.flows", f"{made_up}.flows", f"{made_up}.origins"):
        text = client.get(f"/collections/{address}/items", params={"limit": 50}).text
        for one in json.loads(text, parse_float=str)["features"]:
            digits = [len(found) for found in re.findall(r"-?\d+\.(\d+)", str(one["geometry"]))]
            every += len(digits)
            needless += sum(found > 7 for found in digits)
    assert needless < 0.02 * every


@pytest.mark.parametrize(
    "query",
    [
        {"limit": "0"}, {"limit": "-1"}, {"limit": "unlimited"}, {"limit": "1.5"}, {"limit": ""}, {"limit": "9" * 40},
        {"limit": "²"}, {"start": "-1"}, {"start": "x"}, {"bbox": ""}, {"bbox": "1,2,3"}, {"bbox": "1,2,3,4,5"},
        {"bbox": "a,b,c,d"}, {"bbox": "nan,0,1,1"}, {"bbox": "0,0,inf,1"}, {"bbox": "0,5,1,4"},
        {"bbox": "1,2,3,4,5,6,7"}, {"bbox": "5,0,4,1", "bbox-crs": EPSG + "3857"},
        {"bbox": "0,0,1,1", "bbox-crs": "EPSG:9999"}, {"crs": "x"}, {"crs": EPSG + "2154"}, {"bbox-crs": ""},
        {"filter-crs": EPSG + "1"}, {"filter-lang": "sql", "filter": "count=1"}, {"filter": "count >"},
        {"filter": "nothing = 1"}, {"filter": "count = 'a'"}, {"filter": "", "filter-lang": "cql2-json"},
        {"count": "many"}, {"count": ""}, {"ooga": "booga"}, {"zone": "01"}, {"datetime": "yesterday"},
        {"datetime": ".."}, {"datetime": "../.."}, {"datetime": "2021-01-01/2020-01-01"},
        {"datetime": "2020-01-01/2020/2021"}, {"datetime": "2020-13-01T00:00:00Z"}, {"f": "shp"}, {"LIMIT": "1"},
        {"bbox": ["0,0,1,1", "0,0,1,1"]}, {"origin": ["01", "001"]},
    ],
)  # fmt: skip
def test_bad_parameters_are_refused_with_a_problem(client, odd, query):
    answer = client.get(f"/collections/{odd}.flows/items", params=query)
    assert answer.status_code == 400, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == 400 and answer.json()["detail"]


def test_a_limit_above_the_maximum_is_the_maximum(make_client, made_up):
    client = make_client(page_size=20, page_size_maximum=30)
    assert items(client, made_up, limit=1_000_000)["numberReturned"] == 30
    assert items(client, made_up)["numberReturned"] == 20


def test_a_start_behind_the_end_is_an_empty_page(client, odd):
    for query in ({}, {"filter": "count > 0"}):
        page = items(client, odd, start=10**17, **query)
        assert page["features"] == [] and page["numberMatched"] == 9 and not links_of(page, "next")


def test_an_empty_answer_is_an_answer(client, odd):
    page = items(client, odd, origin="nobody's")
    assert (page["numberMatched"], page["numberReturned"], page["features"]) == (0, 0, [])


@pytest.mark.parametrize(
    "text", ["2019-06-01T00:00:00Z", "../2026-01-01T00:00:00Z", "2015-01-01/2024-01-01", "2019-01-01T00:00:00+02:00/"]
)
def test_features_without_a_time_match_any_time(client, odd, text):
    assert items(client, odd, datetime=text)["numberMatched"] == 9


def test_properties_can_be_asked_for_by_name(client, odd):
    assert {one["properties"]["origin"] for one in items(client, odd, destination="001")["features"]} == {
        "elsewhere",
        "Île de Ré",
    }
    both = items(client, odd, destination="01", origin_side="west")["features"]
    assert {one["properties"]["origin_side"] for one in both} == {"west"}
    found = items(client, odd, count="32")["features"]
    assert [one["properties"]["count"] for one in found] == [32]
    assert items(client, odd, count="32.0")["features"] == found
    assert items(client, odd, count="32.5")["features"] == []


def test_filters_boxes_and_properties_are_joined(client, odd):
    query = {"filter": "count >= 3", "destination": "01", "bbox": "2.3,48,2.9,48.2"}
    found = {one["properties"]["origin"] for one in items(client, odd, **query)["features"]}
    assert found == {"a/b?c=d&e#f", "東京"}
    tree = {"op": ">=", "args": [{"property": "count"}, 3]}
    again = items(client, odd, **(query | {"filter": json.dumps(tree), "filter-lang": "cql2-json"}))
    assert {one["properties"]["origin"] for one in again["features"]} == found
    assert parse_qs(urlsplit(links_of(again, "self")[0]).query)["filter"] == [json.dumps(tree)]


def test_filter_geometries_have_a_reference_system(client, odd):
    text = "S_INTERSECTS(geometry, POINT(48.05 2.05))"
    assert items(client, odd, "origins", filter=text)["numberMatched"] == 0
    assert items(client, odd, "origins", **{"filter": text, "filter-crs": EPSG + "4326"})["numberMatched"] == 1


def test_the_queryables_are_those_that_can_be_asked(client, odd, made_up):
    for release in (odd, made_up):
        for kind in KINDS:
            address = f"/collections/{release}.{kind}"
            answer = client.get(address + "/queryables")
            assert answer.headers["content-type"] == "application/schema+json"
            schema = answer.json()
            assert (
                schema["$id"]
                == links_of(client.get(address).json(), "http://www.opengis.net/def/rel/ogc/1.0/queryables")[0]
            )
            assert schema["additionalProperties"] is False
            (feature,) = items(client, release, kind, limit=1)["features"]
            assert set(schema["properties"]) == {*feature["properties"], "geometry"}
            for name, one in schema["properties"].items():
                if name != "geometry":
                    literal = "'x'" if one["type"] == "string" else "1"
                    items(client, release, kind, filter=f'"{name}" = {literal}')
            assert schema["$id"] in client.get(address + "/items").headers["link"]


def test_the_time_stamp_is_the_time(client, odd):
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    stamp = datetime.fromisoformat(items(client, odd)["timeStamp"])
    assert before <= stamp <= datetime.now(UTC)


def test_links_work_behind_a_proxy_with_a_prefix(make_client, made_up):
    client = make_client(root_path="/maps", page_size=1000)
    answer = client.get(f"/collections/{made_up}.flows/items", headers={"host": "gis.example.org"})
    for one in answer.json()["links"]:
        assert one["href"].startswith("http://gis.example.org/maps/collections/")
    (address,) = links_of(answer.json(), "next")
    assert client.get(urlsplit(address).path + "?" + urlsplit(address).query).status_code == 200
    public = make_client(public_url="https://office.example/data/")
    for path in ("/", "/collections", f"/collections/{made_up}.flows", f"/collections/{made_up}.flows/items"):
        for one in public.get(path).json()["links"]:
            assert one["href"].startswith("https://office.example/data/")


def test_links_never_carry_a_key(make_client, made_up):
    client = make_client(page_size=10)
    secret = add_key(client.app.state.service.catalog, "test", Role.READER)
    for path in ("/", "/collections", f"/collections/{made_up}.flows", f"/collections/{made_up}.flows/items"):
        for form in ("json", "html"):
            answer = client.get(path, params={"token": secret, "f": form})
            assert answer.status_code == 200
            assert secret not in answer.text


def test_reading_needs_a_key_where_it_is_not_anonymous(make_client, odd):
    client = make_client(anonymous=False)
    for path in (
        "/collections",
        f"/collections/{odd}.flows",
        f"/collections/{odd}.flows/items",
        "/collections/none.flows",
    ):
        assert client.get(path).status_code == 401


def test_a_damaged_release_spoils_no_other(make_client, store, tmp_path, odd, made_up):
    copy = tmp_path / "store"
    shutil.copytree(store, copy)
    part = next((copy / odd / "od").glob("*.parquet"))
    part.chmod(0o644)
    part.write_bytes(part.read_bytes()[:-20] + b"x" * 20)
    client = make_client(store=copy)
    names = {one["id"] for one in client.get("/collections").json()["collections"]}
    assert names == {f"{made_up}.{kind}" for kind in KINDS}
    answer = client.get(f"/collections/{odd}.flows/items")
    assert answer.status_code == 503 and str(copy) not in answer.text


def test_an_answer_can_be_kept_and_asked_for_again(client, odd):
    address = f"/collections/{odd}.flows/items"
    first = client.get(address)
    assert client.get(address, headers={"if-none-match": first.headers["etag"]}).status_code == 304
    assert client.get(address + "?f=html").headers["etag"] != first.headers["etag"]


@pytest.mark.parametrize(
    ("accept", "media"),
    [
        ("application/geo+json", "application/geo+json"),
        ("application/json", "application/json"),
        ("application/geo+json, application/json", "application/geo+json"),
        ("text/html,application/xhtml+xml,*/*;q=0.8", "text/html; charset=utf-8"),
        ("*/*", "application/geo+json"),
        ("", "application/geo+json"),
    ],
)
def test_the_representation_is_negotiated(client, odd, accept, media):
    for path in ("items", "items/0"):
        answer = client.get(f"/collections/{odd}.flows/{path}", headers={"accept": accept})
        assert answer.headers["content-type"] == media
    assert client.get(f"/collections/{odd}.flows/items", headers={"accept": "image/png"}).status_code == 406
