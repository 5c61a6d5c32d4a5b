"""Tiles over HTTP: addresses, documents, caching, compression, refusals."""

import gzip
import html

import mapbox_vector_tile
import polars as pl
import pytest

from synthmap.catalog.keys import Role, add_key
from synthmap.published.tiles_grid import TMS
from synthmap.service import tile_documents

GRID = "WebMercatorQuad"
KINDS = ("flows", "origins", "destinations")


def layers(answer):
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/vnd.mapbox-vector-tile"
    return mapbox_vector_tile.decode(answer.content, default_options={"y_coord_down": True})


def address(release, kind, zoom, x, y):
    return f"/collections/{release}.{kind}/tiles/{GRID}/{zoom}/{y}/{x}"


def tile_of(release, kind, zoom, longitude, latitude):
    found = TMS.tile(longitude, latitude, zoom)
    return address(release, kind, zoom, found.x, found.y)


def properties(found):
    return [one["properties"] for layer in found.values() for one in layer["features"]]


def test_the_world_tile_sums_to_the_release(client, store, made_up):
    table = pl.read_parquet(store / made_up / "od")
    manifest = client.get(f"/releases/{made_up}").json()
    for kind in ("origins", "destinations"):
        found = properties(layers(client.get(address(made_up, kind, 0, 0, 0))))
        assert sum(one["count"] for one in found) == manifest["invariants"]["workers"]
        for segment in manifest["segments"]:
            assert sum(one[segment] for one in found) == table[segment].sum()
    flows = properties(layers(client.get(address(made_up, "flows", 0, 0, 0))))
    assert sum(one["count"] for one in flows) == manifest["invariants"]["workers"]


def test_row_comes_before_column(client, odd):
    tile = TMS.tile(2.4, 48.05, 9)
    assert layers(client.get(f"/collections/{odd}.origins/tiles/{GRID}/9/{tile.y}/{tile.x}"))
    assert client.get(f"/collections/{odd}.origins/tiles/{GRID}/9/{tile.x}/{tile.y}").status_code == 204


def test_odd_ids_survive(client, store, odd):
    zones = set(pl.read_parquet(store / odd / "zones.parquet")["id"]) - {"elsewhere"}
    found = layers(client.get(tile_of(odd, "destinations", 8, 2.4, 48.05)))
    assert {one["properties"]["id"] for one in found["areas"]["features"]} == zones
    flows = properties(layers(client.get(tile_of(odd, "flows", 12, 2.05, 48.05))))
    assert flows
    assert {one["origin"] for one in flows} <= zones


def test_who_lives_elsewhere_is_counted_at_work_and_has_no_line(client, store, odd):
    table = pl.read_parquet(store / odd / "od")
    away = table.filter(pl.col("origin") == "elsewhere")["count"].sum()
    assert away > 0
    into = sum(one["count"] for one in properties(layers(client.get(address(odd, "destinations", 0, 0, 0)))))
    flows = sum(one["count"] for one in properties(layers(client.get(address(odd, "flows", 0, 0, 0)))))
    assert (into, flows) == (table["count"].sum(), table["count"].sum() - away)


def test_an_empty_tile_is_no_content(client, made_up):
    answer = client.get(address(made_up, "flows", 9, 0, 0))
    assert (answer.status_code, answer.content) == (204, b"")
    assert answer.headers["etag"]
    assert "max-age" in answer.headers["cache-control"]


@pytest.mark.parametrize(
    "place", ["0/0/1", "0/1/0", "3/8/0", "3/0/8", "-1/0/0", "3/-1/0", "15/0/0", "99/0/0", "9/0/99999999999999999999"]
)
def test_a_tile_outside_the_grid_is_not_found(client, made_up, place):
    answer = client.get(f"/collections/{made_up}.flows/tiles/{GRID}/{place}")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert "must lie in WebMercatorQuad" in answer.json()["detail"]


@pytest.mark.parametrize(
    "place", ["a/0/0", "0/b/0", "0/0/c", "0.5/0/0", "1e1/0/0", "0/0/0.mvt", "0/%00/0", "0/0/" + "9" * 5000]
)
def test_a_tile_that_is_no_number_is_a_bad_request(client, made_up, place):
    answer = client.get(f"/collections/{made_up}.flows/tiles/{GRID}/{place}")
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "name",
    [
        "nothing.flows",
        "{made_up}.roads",
        "{made_up}",
        ".flows",
        "..flows",
        "%2e%2e%2f.flows",
        "{made_up}.",
        "{made_up}.Flows",
    ],
)
@pytest.mark.parametrize("rest", ["", f"/{GRID}", f"/{GRID}/tilejson.json", f"/{GRID}/0/0/0"])
def test_a_collection_that_is_not_there_is_not_found(client, made_up, name, rest):
    answer = client.get(f"/collections/{name.format(made_up=made_up)}/tiles{rest}")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


def test_another_grid_is_not_found(client, made_up):
    assert client.get(f"/collections/{made_up}.flows/tiles/WorldCRS84Quad/0/0/0").status_code == 404
    assert client.get("/tileMatrixSets/WorldCRS84Quad").status_code == 404


def test_what_is_asked_must_be_known(client, made_up):
    at = address(made_up, "flows", 0, 0, 0)
    assert client.get(at + "?level=zone").status_code == 400
    assert client.get(at + "?f=png").status_code == 400
    assert client.get(at + "?f=mvt").status_code == 200
    assert client.get(at, headers={"Accept": "image/png"}).status_code == 406
    assert client.get(at, headers={"Accept": "application/vnd.mapbox-vector-tile, */*;q=0.1"}).status_code == 200


def test_a_tile_is_compressed_for_who_takes_it_so(client, made_up):
    at = address(made_up, "origins", 0, 0, 0)
    plain = client.get(at, headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    with client.stream("GET", at, headers={"Accept-Encoding": "gzip, br"}) as packed:
        assert packed.headers["content-encoding"] == "gzip"
        assert gzip.decompress(b"".join(packed.iter_raw())) == plain.content
        assert packed.headers["etag"] == "W/" + plain.headers["etag"]
    for answer in (plain, packed):
        assert "Accept-Encoding" in answer.headers["vary"]


@pytest.mark.parametrize("zoom", [0, 9])
def test_who_has_a_tile_is_told_so(client, made_up, zoom):
    at = address(made_up, "origins", zoom, 0, 0)
    tag = client.get(at).headers["etag"]
    for known in (tag, tag.removeprefix("W/"), f'"other", {tag}', "*"):
        again = client.get(at, headers={"If-None-Match": known})
        assert (again.status_code, again.content) == (304, b"")
    assert client.get(at, headers={"If-None-Match": '"other"'}).status_code in (200, 204)


def test_every_tile_has_a_tag_of_its_own(client, made_up, odd, make_client):
    some = [
        address(release, kind, *at)
        for release in (made_up, odd)
        for kind in KINDS
        for at in ((0, 0, 0), (1, 0, 1), (1, 1, 0))
    ]
    tags = [client.get(at).headers["etag"] for at in some]
    assert len(set(tags)) == len(some)
    smaller = make_client(tile_features_maximum=1)
    assert smaller.get(some[0]).headers["etag"] != tags[0]


def test_shared_caches_keep_what_anyone_may_read(client, make_client, made_up, reader_key):
    at = address(made_up, "flows", 0, 0, 0)
    assert client.get(at).headers["cache-control"].startswith("public")
    closed = make_client(anonymous=False)
    assert closed.get(at).status_code == 401
    for answer in (
        closed.get(at, headers={"Authorization": f"Bearer {reader_key(closed)}"}),
        closed.get(f"{at}?token={reader_key(closed)}"),
    ):
        assert answer.status_code == 200
        assert answer.headers["cache-control"].startswith("private")


@pytest.fixture
def reader_key():
    """Make a reader's key of a service."""
    return lambda client: add_key(client.app.state.service.catalog, "tiles", Role.READER)


def test_the_setting_bounds_features(make_client, made_up):
    client = make_client(tile_features_maximum=5)
    for kind in KINDS:
        for zoom in (0, 6, 9):
            found = client.get(tile_of(made_up, kind, zoom, *_centre(client, made_up)))
            if found.status_code == 200:
                assert len(properties(layers(found))) <= 5


def _centre(client, release):
    west, south, east, north = client.get(f"/collections/{release}.flows/tiles/{GRID}/tilejson.json").json()["bounds"]
    return (west + east) / 2, (south + north) / 2


@pytest.mark.parametrize("kind", KINDS)
def test_tilejson_describes_the_tiles(client, odd, kind):
    found = client.get(f"/collections/{odd}.{kind}/tiles/{GRID}/tilejson.json").json()
    assert found["tilejson"] == "3.0.0"
    assert found["tiles"] == [f"http://testserver/collections/{odd}.{kind}/tiles/{GRID}/{{z}}/{{y}}/{{x}}"]
    west, south, east, north = found["bounds"]
    assert (west, south, east, north) == pytest.approx((2, 48, 2.8, 48.1), abs=1e-6)
    longitude, latitude, zoom = found["center"]
    assert west < longitude < east
    assert south < latitude < north
    assert found["minzoom"] <= zoom <= found["maxzoom"]
    fields = {layer["id"]: layer["fields"] for layer in found["vector_layers"]}
    tile = TMS.tile(longitude, latitude, 9)
    at = found["tiles"][0].format(z=9, x=tile.x, y=tile.y)
    for name, layer in layers(client.get(at)).items():
        assert {key for one in layer["features"] for key in one["properties"]} == set(fields[name])


def test_a_title_with_markup_is_text_where_clients_show_html(client, odd):
    found = client.get(f"/collections/{odd}.flows/tiles/{GRID}/tilejson.json").json()
    assert "<" not in found["attribution"]
    shown = html.unescape(found["attribution"])
    manifest = client.get(f"/releases/{odd}").json()
    for part in (manifest["title"], odd, f"ε = {manifest['privacy']['dp']['epsilon']:g}", "δ = ", "NOT PRIVATE"):
        assert part in shown


def test_sets_of_tiles_link_to_tiles_that_are_there(client, made_up):
    (one,) = client.get(f"/collections/{made_up}.origins/tiles").json()["tilesets"]
    links = {link["rel"]: link for link in one["links"]}
    whole = client.get(links["self"]["href"]).json()
    assert whole["dataType"] == one["dataType"] == "vector"
    assert whole["tileMatrixSetURI"] == "http://www.opengis.net/def/tilematrixset/OGC/1.0/WebMercatorQuad"
    assert {layer["id"] for layer in whole["layers"]} == {"areas", "points"}
    item = next(link for link in whole["links"] if link["rel"] == "item")
    assert item["templated"] is True
    for limit in (whole["tileMatrixSetLimits"][0], whole["tileMatrixSetLimits"][5]):
        at = item["href"].format(
            tileMatrix=limit["tileMatrix"], tileRow=limit["minTileRow"], tileCol=limit["minTileCol"]
        )
        assert client.get(at).status_code in (200, 204)
    grid = client.get(links["http://www.opengis.net/def/rel/ogc/1.0/tiling-scheme"]["href"]).json()
    assert grid["id"] == GRID
    assert client.get("/tileMatrixSets").json()["tileMatrixSets"][0]["id"] == GRID


def test_all_that_is_there_lies_within_the_limits(client, made_up):
    limits = client.get(f"/collections/{made_up}.origins/tiles/{GRID}").json()["tileMatrixSetLimits"]
    total = client.get(f"/releases/{made_up}").json()["invariants"]["workers"]
    for zoom in (0, 4, 7):
        limit = limits[zoom]
        found = [
            client.get(address(made_up, "origins", zoom, x, y))
            for x in range(limit["minTileCol"], limit["maxTileCol"] + 1)
            for y in range(limit["minTileRow"], limit["maxTileRow"] + 1)
        ]
        points = {  # one near a border is in two tiles, with one id
            one["id"]: one["properties"]["count"]
            for answer in found
            if answer.status_code == 200
            for one in layers(answer)["points"]["features"]
        }
        assert sum(points.values()) == total


def test_documents_carry_the_public_address(make_client, made_up):
    client = make_client(public_url="https://maps.example.org/")
    found = client.get(f"/collections/{made_up}.flows/tiles/{GRID}/tilejson.json").json()
    assert found["tiles"] == [f"https://maps.example.org/collections/{made_up}.flows/tiles/{GRID}/{{z}}/{{y}}/{{x}}"]


def test_the_service_says_that_it_has_tiles(client):
    assert "http://www.opengis.net/spec/ogcapi-tiles-1/1.0/conf/mvt" in client.get("/conformance").json()["conformsTo"]


def test_tiles_across_the_antimeridian_open_in_the_middle_of_the_release(client, odd, monkeypatch):
    """From 177 to 181 degrees: the middle is 179, and 4 of 360 degrees fill a tile of zoom 6."""
    monkeypatch.setattr(tile_documents, "extent", lambda opened: (177.0, -18.0, -179.0, -16.0))
    found = client.get(f"/collections/{odd}.flows/tiles/{GRID}/tilejson.json").json()
    assert found["bounds"] == [-180, -18, 180, -16]
    assert found["center"] == [179, -17, 6]
    box = client.get(f"/collections/{odd}.flows/tiles/{GRID}").json()["boundingBox"]
    assert (box["lowerLeft"], box["upperRight"]) == ([177, -18], [-179, -16])
