"""OD queries as clients put them: parameters, pages, representations, faults."""

import csv
import io
import json
import shutil
from collections import Counter
from urllib.parse import parse_qs, quote, urlsplit

import polars as pl
import pytest
import shapely
from bearer import bearer

from synthmap.published.od import MOST

FORMS = {
    "json": "application/json",
    "csv": "text/csv",
    "geojson": "application/geo+json",
    "parquet": "application/vnd.apache.parquet",
    "arrow": "application/vnd.apache.arrow.stream",
}


@pytest.fixture
def flows(store, made_up) -> pl.DataFrame:
    """The table of the made-up release, read from its files, with the county of both ends."""
    table = pl.read_parquet(store / made_up / "od" / "*.parquet")
    zones = pl.read_parquet(store / made_up / "zones.parquet", columns=["id", "county", "longitude", "latitude"])
    table = table.join(zones.select(origin="id", of="county", x="longitude", y="latitude"), on="origin", how="left")
    return table.join(zones.select(destination="id", to="county"), on="destination")


@pytest.fixture
def ask(client, made_up):
    """Return a function that asks the made-up release and returns the body of a good answer."""

    def get(**query):
        answer = client.get(f"/releases/{made_up}/od", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    return get


def read_all(client, href):
    """Return the rows of all pages."""
    rows = []
    while href:
        body = client.get(href).json()
        assert body["numberReturned"] == len(body["rows"])
        rows += body["rows"]
        href = next((link["href"] for link in body["links"] if link["rel"] == "next"), None)
    return rows


def test_flows_into_one_destination(ask, flows):
    destination = flows["destination"].mode().sort()[0]
    body = ask(destination=destination, limit=10_000)
    expected = flows.filter(pl.col("destination") == destination).sort("origin")
    columns = ["origin", "destination", "count", "SA01", "SA02", "SA03"]
    assert [row.pop("expected_error") > 0 for row in body["rows"]] == [True] * expected.height
    assert body["rows"] == expected.select(columns).to_dicts()
    assert body["levels"] == {"origin": "zone", "destination": "zone"}


def test_ids_may_be_repeated_on_both_ends(ask, flows):
    pairs = flows.sort("count", descending=True).head(3)
    query = {"origin": pairs["origin"].to_list(), "destination": pairs["destination"].to_list()}
    expected = flows.filter(pl.col("origin").is_in(query["origin"]), pl.col("destination").is_in(query["destination"]))
    assert Counter((r["origin"], r["destination"]) for r in ask(**query)["rows"]) == Counter(
        expected.select("origin", "destination").iter_rows()
    )


def test_counties_sum_to_the_invariants(ask, flows):
    rows = ask(level="county")["rows"]
    expected = flows.group_by("of", "to").agg(pl.col("count").sum())
    assert {(r["origin"], r["destination"]): r["count"] for r in rows} == {(o, d): n for o, d, n in expected.rows()}
    assert sum(row["count"] for row in rows) == 3000
    assert all(row["count"] == row["SA01"] + row["SA02"] + row["SA03"] for row in rows)


def test_each_end_has_a_level_of_its_own(ask, flows):
    rows = ask(level="county", origin_level="zone", limit=10_000)["rows"]
    assert len(rows) == flows.select("origin", "to").n_unique()
    assert ask(origin_level="zone", destination_level="county", limit=10_000)["rows"] == rows


def test_top_is_by_count_then_ids_and_is_paged(client, made_up, flows):
    expected = flows.sort(["count", "destination", "origin"], descending=[True, False, False]).head(25)
    rows = read_all(client, f"/releases/{made_up}/od?top=25&limit=7&f=json")
    assert [(r["origin"], r["destination"], r["count"]) for r in rows] == expected.select(
        "origin", "destination", "count"
    ).rows()


def test_the_largest_of_a_kind_come_with_the_workers_of_all_kinds(client, odd):
    answer = client.get(f"/releases/{odd}/od", params={"top": 2, "kind": "between", "f": "geojson"}).json()
    assert [one["properties"]["count"] for one in answer["features"]] == [35, 22]
    assert answer["sums"] == {"between": 35 + 22 + 17 + 3 + 1 + 19 + 1, "within": 32, "elsewhere": 10}
    rows = client.get(f"/releases/{odd}/od", params={"kind": "elsewhere"}).json()
    assert [(one["origin"], one["destination"], one["count"]) for one in rows["rows"]] == [("elsewhere", "001", 10)]
    assert "sums" not in rows
    answer = client.get(f"/releases/{odd}/od", params={"top": 1, "kind": "within", "bbox": "2.05,48,2.8,48.1",
                                                       "bbox_end": "origin", "level": "side"}).json()  # fmt: skip
    assert answer["sums"]["elsewhere"] == 0
    assert client.get(f"/releases/{odd}/od", params={"kind": "other"}).status_code == 400


def test_min_count_and_a_box_in_metres(ask, flows):
    from pyproj import Transformer

    middle = flows["x"].median(), flows["y"].median()
    x, y = Transformer.from_crs(4326, 3857, always_xy=True).transform(*middle)
    west, south, _, _ = flows["x"].min(), flows["y"].min(), 0, 0
    x0, y0 = Transformer.from_crs(4326, 3857, always_xy=True).transform(west - 1, south - 1)
    box = {"bbox": f"{x0},{y0},{x},{y}", "bbox_crs": "EPSG:3857", "bbox_end": "origin"}
    expected = flows.filter(pl.col("count") >= 2, pl.col("x") <= middle[0], pl.col("y") <= middle[1])
    assert 0 < expected.height < flows.height
    assert len(ask(min_count=2, limit=10_000, **box)["rows"]) == expected.height


def test_pages_join_to_the_whole_whatever_is_published_meanwhile(make_client, store, made_up, odd, tmp_path, flows):
    root = tmp_path / "releases"
    shutil.copytree(store / made_up, root / made_up)
    client = make_client(store=root)
    first = client.get(f"/releases/{made_up}/od?limit=500").json()
    shutil.copytree(store / odd, root / odd)
    rest = read_all(client, next(link["href"] for link in first["links"] if link["rel"] == "next"))
    found = [(row["origin"], row["destination"], row["count"]) for row in first["rows"] + rest]
    assert found == flows.sort("destination", "origin").select("origin", "destination", "count").rows()


def test_a_cursor_of_another_query_or_release_is_refused(client, made_up, odd):
    links = client.get(f"/releases/{made_up}/od?limit=1").json()["links"]
    cursor = parse_qs(urlsplit(next(link["href"] for link in links if link["rel"] == "next")).query)["cursor"][0]
    assert client.get(f"/releases/{made_up}/od", params={"cursor": cursor}).status_code == 200
    for path in (f"/releases/{made_up}/od?min_count=2", f"/releases/{odd}/od?f=json", f"/releases/{made_up}/od?top=9"):
        answer = client.get(path, params=dict(parse_qs(urlsplit(path).query)) | {"cursor": cursor})
        assert answer.status_code == 400, path
        assert "start again" in answer.json()["detail"]


def test_links_keep_the_question_and_never_carry_a_key(client, odd):
    secret = bearer(client)["Authorization"].removeprefix("Bearer ")
    query = f"origin=%C3%8Ele%20de%20R%C3%A9&origin=O%27Brien&limit=1&token={secret}"
    links = client.get(f"/releases/{odd}/od?{query}").json()["links"]
    following = next(link["href"] for link in links if link["rel"] == "next")
    assert secret not in json.dumps(links)
    assert parse_qs(urlsplit(following).query)["origin"] == ["Île de Ré", "O'Brien"]
    assert client.get(following).json()["rows"]


@pytest.mark.parametrize("form", FORMS)
def test_every_answer_is_negotiated_and_says_where_it_is_from(client, odd, form):
    by_name = client.get(f"/releases/{odd}/od", params={"f": form, "limit": 2})
    by_header = client.get(f"/releases/{odd}/od?limit=2", headers={"Accept": FORMS[form]})
    for answer in (by_name, by_header):
        assert answer.headers["content-type"].split(";")[0] == FORMS[form]
        assert answer.headers["synthmap-release"] == odd
        assert float(answer.headers["synthmap-epsilon"]) == 4.0
        assert float(answer.headers["synthmap-delta"]) == 1e-5
        assert answer.headers["synthmap-vintage"] == "2026"
        assert 'rel="next"' in answer.headers["link"]
    tag = by_header.headers["etag"]
    again = client.get(f"/releases/{odd}/od?limit=2", headers={"Accept": FORMS[form], "If-None-Match": tag})
    assert again.status_code == 304
    other = client.get(f"/releases/{odd}/od?limit=2&f={form}", headers={"If-None-Match": '"other"'})
    assert other.status_code == 200


def test_ids_come_through_every_format_as_they_are(client, odd, store):
    ids = set(pl.read_parquet(store / odd / "od" / "*.parquet")["origin"])
    assert ids & {"O'Brien", "東京", "a/b?c=d&e#f"}
    url = f"/releases/{odd}/od"
    assert {row["origin"] for row in client.get(url).json()["rows"]} == ids
    lines = csv.DictReader(io.StringIO(client.get(url + "?f=csv").text, newline=""))
    assert {line["origin"] for line in lines} == ids
    assert set(pl.read_parquet(client.get(url + "?f=parquet").content)["origin"]) == ids
    assert set(pl.read_ipc_stream(client.get(url + "?f=arrow").content)["origin"]) == ids
    features = client.get(url + "?f=geojson").json()["features"]
    assert {feature["properties"]["origin"] for feature in features} == ids
    kinds = {
        (f["properties"]["origin"] == f["properties"]["destination"], f["geometry"] and f["geometry"]["type"])
        for f in features
        if f["properties"]["origin"] != "elsewhere"
    }
    assert kinds == {(True, "Point"), (False, "LineString")}
    assert [f["geometry"] for f in features if f["properties"]["origin"] == "elsewhere"] == [None]
    assert all(shapely.from_geojson(json.dumps(f["geometry"])).is_valid for f in features if f["geometry"])


def test_counts_have_the_expected_errors_of_features_and_analyses(client, ask, made_up):
    """Between zones those of features; between larger units about those of pairs, which know each workplace's part."""
    rows = ask(top=30)["rows"]
    items = client.get(f"/collections/{made_up}.flows/items", params={"limit": 10_000, "f": "json"}).json()["features"]
    known = {(p["origin"], p["destination"]): p["expected_error"] for p in (one["properties"] for one in items)}
    assert [row["expected_error"] for row in rows] == [known[row["origin"], row["destination"]] for row in rows]
    rows = [row for row in ask(level="county", top=9)["rows"] if "elsewhere" != row["origin"] != row["destination"]]
    for row in rows[:3]:
        pair = {"a": row["origin"], "b": row["destination"], "a_level": "county", "b_level": "county"}
        found = client.get(f"/releases/{made_up}/analyses/paired-areas", params=pair).json()["rows"][0]
        assert found["workers"] == row["count"]
        assert 0.5 < row["expected_error"] / found["expected_error"] < 2
    mixed = ask(level="county", origin_level="zone", limit=5)["rows"]
    assert all(row["expected_error"] > 0 for row in mixed)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_has_the_expected_error(client, odd, form):
    answer = client.get(f"/releases/{odd}/od", params={"f": form, "level": "side"})
    read = {
        "json": lambda: [row["expected_error"] for row in answer.json()["rows"]],
        "csv": lambda: [float(row["expected_error"]) for row in csv.DictReader(io.StringIO(answer.text, newline=""))],
        "geojson": lambda: [one["properties"]["expected_error"] for one in answer.json()["features"]],
        "parquet": lambda: list(pl.read_parquet(answer.content)["expected_error"]),
        "arrow": lambda: list(pl.read_ipc_stream(answer.content)["expected_error"]),
    }
    known = client.get(f"/releases/{odd}/od", params={"level": "side"}).json()["rows"]
    assert read[form]() == [row["expected_error"] for row in known] != []


@pytest.mark.parametrize("name", ["O'Brien", "東京", "<img src=x onerror=alert(1)>", 'say "hi", ok; é', "a/b?c=d&e#f"])
def test_any_id_can_be_asked_for(client, odd, name):
    answer = client.get(f"/releases/{odd}/od?destination={quote(name, safe='')}")
    assert answer.status_code == 200
    assert all(row["destination"] == name for row in answer.json()["rows"])


def test_a_zone_where_nobody_works_is_an_empty_answer(client, odd):
    for form in FORMS:
        assert client.get(f"/releases/{odd}/od", params={"destination": "O'Brien", "f": form}).status_code == 200
    assert client.get(f"/releases/{odd}/od?destination=O'Brien").json()["rows"] == []


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("destination=1", "destination ('1')"), ("origin=nobody&origin=01", "origin ('nobody')"),
        ("destination=", "destination ('')"), ("destination=west", "level zone"),
        ("level=continent", "level (continent)"), ("level=", "level ()"), ("level=id", "level (id)"),
        ("origin_level=side&origin=01", "level side"), ("top=0", "top"), ("top=-5", "top"), ("top=NaN", "top"),
        (f"top={MOST + 1}", "top"), ("min_count=0", "min_count"), (f"min_count={10**30}", "min_count"),
        ("limit=0", "limit"), ("limit=10001", "limit (10001)"), ("limit=1e3", "limit"),
        ("bbox=1,2,3", "bbox"), ("bbox=nan,0,1,1", "bbox"), ("bbox=0,0,inf,1", "bbox"), ("bbox=a,b,c,d", "bbox"),
        ("bbox=", "bbox"), ("bbox=0,5,1,4", "bbox"), ("bbox=0,0,1,1&bbox_crs=EPSG:0", "EPSG:0"),
        ("bbox=0,0,1,1", "bbox_end must be given"),
        ("bbox=0,0,1,1&bbox_crs=%2Bproj%3Dmerc", "coordinate reference system"), ("bbox_end=left", "bbox_end"),
        ("cursor=abc", "cursor"), ("cursor=", "cursor"), ("f=xls", "f (xls)"), ("destinations=01", "destinations"),
        ("sort=count", "sort"), ("destination=%FF", "destination"), ("destination=%01", "destination"),
    ],
)  # fmt: skip
def test_a_bad_question_is_named_never_a_fault_of_the_service(client, odd, query, named):
    answer = client.get(f"/releases/{odd}/od?{query}")
    assert answer.status_code == 400, answer.text
    assert named in answer.json()["detail"]


def test_up_to_ten_unknown_ids_are_named(client, odd):
    answer = client.get(f"/releases/{odd}/od", params={"destination": [f"x{i:02}" for i in range(30)]})
    assert "x09" in answer.json()["detail"]
    assert "x10" not in answer.json()["detail"]


def test_what_no_client_takes_is_not_acceptable(client, odd):
    assert client.get(f"/releases/{odd}/od", headers={"Accept": "image/png"}).status_code == 406


@pytest.mark.parametrize("harm", ["missing", "cut", "flipped"])
def test_a_file_damaged_after_opening_is_unavailable_and_nothing_else_is(
    make_client, store, made_up, odd, tmp_path, harm
):
    root = tmp_path / "releases"
    for name in (made_up, odd):
        shutil.copytree(store / name, root / name)
    client = make_client(store=root)
    assert client.get(f"/releases/{made_up}").status_code == 200
    part = next((root / made_up / "od").iterdir())
    whole = part.read_bytes()
    part.unlink()
    if harm == "cut":
        part.write_bytes(whole[: len(whole) // 2])
    if harm == "flipped":
        middle = len(whole) // 3
        part.write_bytes(whole[:middle] + bytes([whole[middle] ^ 0xFF]) + whole[middle + 1 :])
    for query in ("", "?level=county", "?top=5", "?f=parquet"):
        answer = client.get(f"/releases/{made_up}/od{query}")
        assert answer.status_code == 503
        assert answer.headers["content-type"] == "application/problem+json"
        assert str(root) not in answer.text
    assert client.get("/releases").status_code == 200
    assert client.get(f"/releases/{odd}/od").status_code == 200
    part.write_bytes(whole)
    assert client.get(f"/releases/{made_up}/od").status_code == 200


def test_many_readers_at_once_get_the_same_as_one(client, made_up, flows):
    from concurrent.futures import ThreadPoolExecutor

    destinations = flows["destination"].unique().sort().to_list()

    def total(destination):
        rows = client.get(f"/releases/{made_up}/od", params={"destination": destination, "limit": 10_000}).json()[
            "rows"
        ]
        return sum(row["count"] for row in rows)

    with ThreadPoolExecutor(8) as pool:
        found = dict(zip(destinations, pool.map(total, destinations), strict=True))
    assert found == {d: n for d, n in flows.group_by("destination").agg(pl.col("count").sum()).rows()}  # noqa: C416
