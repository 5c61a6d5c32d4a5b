"""Analyses as clients ask for them: areas in the address and in the body, representations, faults."""

import json

import numpy as np
import polars as pl
import pytest
import shapely
from bearer import bearer

from synthmap.catalog.keys import Role
from synthmap.service.analysis_kinds import KINDS

OPTIONS = {"area-profile": {"end": "work"}, "distance-direction": {"end": "home"}, "destinations": {"by": "county"}}
NAMES = sorted(set(KINDS) - {"time"})


@pytest.fixture
def flows(store, made_up) -> pl.DataFrame:
    """The table of the made-up release, read from its files, with the county of both ends."""
    table = pl.read_parquet(store / made_up / "od" / "*.parquet")
    zones = pl.read_parquet(store / made_up / "zones.parquet", columns=["id", "county"])
    table = table.join(zones.select(origin="id", home="county"), on="origin", how="left")
    return table.join(zones.select(destination="id", work="county"), on="destination")


@pytest.fixture
def counties(flows) -> list[str]:
    """Counties where people work, the busiest first."""
    return flows.group_by("work").agg(pl.col("count").sum()).sort("count", "work", descending=True)["work"].to_list()


@pytest.fixture
def ask(client, made_up):
    """Return a function that asks the made-up release and returns a good answer."""

    def get(name, release=made_up, **query):
        answer = client.get(f"/releases/{release}/analyses/{name}", params=query)
        assert answer.status_code == 200, answer.text
        return answer

    return get


def figures(body):
    return {row["figure"]: row["workers"] for row in body["rows"]}


def refused(answer, status, *words):
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert all(word in answer.json()["detail"] for word in words), answer.json()["detail"]
    return True


def area_query(name, counties):
    """Return parameters that make a good request of an analysis."""
    if name == "paired-areas":
        return {"a": counties[0], "a_level": "county", "b": counties[1], "b_level": "county"}
    return {"zone": counties[0], "level": "county"} | OPTIONS.get(name, {})


def test_inflow_and_outflow_agree_with_the_table(ask, flows, counties):
    county = counties[0]
    body = ask("inflow-outflow", zone=county, level="county").json()
    home, work = pl.col("home") == county, pl.col("work") == county

    def total(which):
        return flows.filter(which.fill_null(False))["count"].sum()

    assert figures(body) == {
        "employed": total(work),
        "living": total(home),
        "live_and_work": total(home & work),
        "in_commuters": total(work) - total(home & work),
        "in_commuters_from_elsewhere": total(work & (pl.col("origin") == "elsewhere")),
        "out_commuters": total(home & ~work),
        "net_inflow": total(work) - total(home),
    }
    assert body["segments"] == ["SA01", "SA02", "SA03"]
    for row in body["rows"]:
        assert sum(part["workers"] for part in row["segments"].values()) == row["workers"]


def test_profile_direction_and_ranks_agree_with_inflow(ask, counties):
    place = {"zone": counties[0], "level": "county"}
    flow = figures(ask("inflow-outflow", **place).json())
    for end, total in (("work", flow["employed"]), ("home", flow["living"])):
        profile = ask("area-profile", end=end, **place).json()
        assert profile["areas"][0]["end"] == profile["parameters"]["end"] == end
        assert profile["rows"][-1]["workers"] == total
        assert sum(row["workers"] for row in profile["rows"] if row["group"] in ("distance", "elsewhere")) == total
        rose = ask("distance-direction", end=end, units="km", bands="5,20", **place).json()
        assert len(rose["rows"]) == 8 * 3 + 3
        assert rose["rows"][-1]["workers"] == sum(row["workers"] for row in rose["rows"][:-1]) == total
    for name, total in (("origins", flow["employed"]), ("destinations", flow["living"])):
        ranked = ask(name, by="tract", top=3, **place).json()["rows"]
        assert [row["rank"] for row in ranked] == [1, 2, 3, None, None]
        assert ranked[-1]["workers"] == sum(row["workers"] for row in ranked[:-1]) == total


def test_pairs_agree_with_the_flows_between_counties(client, ask, made_up, counties):
    body = ask("paired-areas", a=counties[0], b=counties[1], a_level="county", b_level="county").json()
    od = client.get(f"/releases/{made_up}/od", params={"level": "county", "limit": 1000}).json()["rows"]
    table = {(row["origin"], row["destination"]): row["count"] for row in od}
    a, b = counties[:2]
    assert figures(body) == {
        "a_to_b": table.get((a, b), 0),
        "b_to_a": table.get((b, a), 0),
        "within_a": table[a, a],
        "within_b": table[b, b],
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_drawn_area_answers_as_the_same_zones_do(client, ask, made_up, store, counties, name):
    zones = pl.read_parquet(store / made_up / "zones.parquet", columns=["county", "longitude", "latitude"])

    def hull(county):
        points = zones.filter(pl.col("county") == county).select("longitude", "latitude").to_numpy()
        return json.loads(shapely.to_geojson(shapely.MultiPoint(points).buffer(1e-7)))

    drawn = {"a": hull(counties[0]), "b": hull(counties[1])} if name == "paired-areas" else hull(counties[0])
    answer = client.post(f"/releases/{made_up}/analyses/{name}", params=OPTIONS.get(name), json=drawn)
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "no-store"
    body = answer.json()
    assert body["rows"] == ask(name, **area_query(name, counties)).json()["rows"]
    assert "internal point" in body["areas"][0]["rule"]
    assert body["areas"][0]["geometry"]["type"] in ("Polygon", "MultiPolygon")


def test_expected_errors_are_of_the_size_of_real_ones(client, made_up, store):
    """The table that the release was drawn from is made up, so here it may be looked at."""
    truth = pl.read_parquet(store.parent / "region" / "od.parquet").with_columns(pl.col("count").cast(pl.Int64))
    zones = pl.read_parquet(store / made_up / "zones.parquet", columns=["id", "tract", "blockgroup"])
    off: dict[str, list[float]] = {"living": [], "live_and_work": []}
    for level in ("tract", "blockgroup"):
        table = truth.join(zones.select(origin="id", home=level), on="origin", how="left")
        table = table.join(zones.select(destination="id", work=level), on="destination")
        for unit in zones[level].drop_nulls().unique().sort()[:25]:
            query = {"zone": unit, "level": level}
            rows = client.get(f"/releases/{made_up}/analyses/inflow-outflow", params=query).json()["rows"]
            here = table.filter(pl.col("home") == unit)
            real = {"living": here["count"].sum(), "live_and_work": here.filter(pl.col("work") == unit)["count"].sum()}
            for row in rows:
                if row["figure"] in real and row["workers"] > 0:
                    off[row["figure"]].append((row["workers"] - real[row["figure"]]) / row["expected_error"])
    for one in off.values():
        assert len(one) > 8
        assert 0.2 < np.sqrt(np.mean(np.square(one))) < 3


def test_the_area_itself_can_be_asked_for(client, ask, made_up, odd):
    around = ask("area", release=odd, point="2.05,48.05", buffer_m=9000).json()
    assert around["zone_ids"] == ["01", "O'Brien", "Île de Ré"] or set(around["zone_ids"]) == {"01", "O'Brien"}
    assert shapely.from_geojson(json.dumps(around["areas"][0]["geometry"])).is_valid
    ring = ask("area", release=odd, zone="01", buffer_m=9000, inner_m=1000).json()
    assert "01" not in ring["zone_ids"]
    sent = client.post(
        f"/releases/{odd}/analyses/area",
        json={"around": {"zones": ["東京", "<img src=x onerror=alert(1)>"], "level": "zone"}, "buffer_m": 1},
    )
    assert sent.json()["zone_ids"] == ["<img src=x onerror=alert(1)>", "東京"]


def test_an_area_outside_is_answered_and_explained(client, made_up):
    drawn = shapely.geometry.mapping(shapely.box(100, 60, 101, 61))
    body = client.post(f"/releases/{made_up}/analyses/inflow-outflow", json=drawn).json()
    assert set(figures(body).values()) == {0}
    assert "lies outside of the release" in " ".join(body["areas"][0]["notes"])


@pytest.mark.parametrize(
    ("name", "query", "words"),
    [
        ("inflow-outflow", {}, ["the area must be given"]),
        ("inflow-outflow", {"zone": "nowhere"}, ["zone ('nowhere') must be an id at level zone"]),
        ("inflow-outflow", {"zone": "1", "level": "galaxy"}, ["level (galaxy) must be one of"]),
        ("inflow-outflow", {"point": "1,2"}, ["give buffer_m"]),
        ("inflow-outflow", {"point": "1", "buffer_m": 3}, ["point (1) must be 2 numbers"]),
        ("inflow-outflow", {"point": "1,2", "zone": "x", "buffer_m": 3}, ["the area must be given"]),
        ("inflow-outflow", {"point": "1,2", "buffer_m": "nan"}, ["buffer_m must be a finite number"]),
        ("inflow-outflow", {"point": "1,2", "buffer_m": -3}, ["buffer_m (-3) must be above 0"]),
        ("inflow-outflow", {"point": "1,2", "inner_m": 3}, ["inner_m must come with buffer_m"]),
        ("inflow-outflow", {"point": "1,2", "buffer_m": 3, "end": "home"}, ["query parameter (end)"]),
        ("area-profile", {"point": "1,2", "buffer_m": 3}, ["end must be given"]),
        ("area-profile", {"point": "1,2", "buffer_m": 3, "end": "both"}, ["end must be"]),
        ("distance-direction", {"point": "1,2", "buffer_m": 3, "end": "home", "bands": "9,8"}, ["bands must be"]),
        (
            "distance-direction",
            {"point": "1,2", "buffer_m": 3, "end": "home", "bands": "2,5; 12"},
            ["bands (2,5; 12) must be 1 to 20 ascending numbers separated by commas"],
        ),
        ("distance-direction", {"point": "1,2", "buffer_m": 3, "end": "home", "units": "li"}, ["units must be"]),
        ("origins", {"point": "1,2", "buffer_m": 3, "by": "galaxy"}, ["level (galaxy) must be one of"]),
        ("origins", {"point": "1,2", "buffer_m": 3, "top": 0}, ["top must be"]),
        ("paired-areas", {"a": "1"}, ["both areas must be given"]),
        ("time", {"point": "1,2", "buffer_m": 3}, ["other must be given"]),
        ("time", {"point": "1,2", "buffer_m": 3, "other": "x", "end": "both"}, ["end must be"]),
    ],
)
def test_what_is_wrong_with_a_request_is_said(client, made_up, name, query, words):
    assert refused(client.get(f"/releases/{made_up}/analyses/{name}", params=query), 400, *words)


def test_ends_overlap_and_releases_that_differ_are_refused(client, made_up, odd, counties):
    at = f"/releases/{made_up}/analyses"
    query = {"a": counties[0], "b": counties[0], "a_level": "county", "b_level": "county"}
    assert refused(client.get(f"{at}/paired-areas", params=query), 400, "no zone in common")
    place = {"zone": counties[0], "level": "county"}
    assert refused(client.get(f"{at}/time", params=place | {"other": odd}), 400, "the same vintage of zones")
    assert refused(client.get(f"{at}/time", params=place | {"other": made_up}), 400, "another release")
    assert refused(client.get(f"{at}/time", params=place | {"other": "none"}), 404, "none")
    assert refused(client.get("/releases/none/analyses/inflow-outflow", params=place), 404)


@pytest.mark.parametrize(
    ("of", "query"),
    [
        ("inflow-outflow", {}),
        ("area-profile", {"end": "home", "units": "km", "bands": "5,20"}),
        ("distance-direction", {"end": "work"}),
        ("origins", {"by": "tract", "top": 4}),
        ("destinations", {"by": "county", "top": 3}),
    ],
)
def test_two_releases_are_compared_figure_by_figure(make_client, two, made_up, counties, of, query):
    client = make_client(store=two)
    (later,) = {path.name for path in two.iterdir()} - {made_up}
    place = {"zone": counties[0], "level": "county"}
    at = f"/releases/{later}/analyses/time"
    found = client.get(at, params=place | query | {"other": made_up, "of": of}).json()
    if "end" in query:
        assert refused(client.get(at, params=place | {"other": made_up, "of": of}), 400, f"end must be given with {of}")
    assert found["parameters"]["releases"] == {"before": made_up, "after": later}
    assert found["parameters"]["of"] == of
    for release, name in ((made_up, "before"), (later, "after")):
        alone = client.get(f"/releases/{release}/analyses/{of}", params=place | query).json()["rows"]
        label = lambda row: [row.get(key) for key in ("figure", "group", "id", "label", "direction", "from")]  # noqa: E731
        known = {json.dumps(label(row)): row["workers"] for row in alone}
        shared = [row for row in found["rows"] if json.dumps(label(row)) in known and row.get("group") != "others"]
        assert len(shared) >= min(3, len(alone))
        assert all(row[name]["workers"] == known[json.dumps(label(row))] for row in shared)
    for row in found["rows"]:
        assert row["workers"] == row["after"]["workers"] - row["before"]["workers"]
        both = np.hypot(row["after"]["expected_error"], row["before"]["expected_error"])
        assert row["expected_error"] == pytest.approx(both, rel=0.01)
        assert row["within_noise"] == (abs(row["workers"]) < 2 * row["expected_error"])
    table = client.get(at, params=place | query | {"other": made_up, "of": of, "f": "csv"})
    assert "within_noise" in table.text.splitlines()[0]


@pytest.mark.parametrize(
    ("content", "media", "status", "words"),
    [
        (b"{", "application/json", 400, ["body must be JSON"]),
        (b'{"type": "Point", "coordinates": [NaN, 1]}', "application/json", 400, ["finite numbers"]),
        (b"[" * 100_000, "application/json", 400, ["body must be JSON"]),
        (b'"\xff"', "application/json", 400, ["UTF-8"]),
        (b"3", "application/geo+json", 400, ["area must be GeoJSON"]),
        (b'{"zones": ["\\ud800"]}', "application/json", 400, ["ids as text"]),
        (b'{"zones": [1]}', "application/json", 400, ["ids as text"]),
        (b'{"zones": [], "level": "zone"}', "application/json", 400, ["at least one zone"]),
        (b'{"zones": ["a"], "lvl": "zone"}', "application/json", 400, ["area must be GeoJSON"]),
        (b'{"around": {"zones": ["a"]}, "buffer_m": "far"}', "application/json", 400, ["must be an id", "'a'"]),
        (b"{}", "text/plain", 415, ["Content-Type must be"]),
        (b"", "application/json", 400, ["body must be JSON"]),
    ],
)
def test_bodies_that_are_no_area_are_refused(client, made_up, content, media, status, words):
    path = f"/releases/{made_up}/analyses/inflow-outflow"
    assert refused(client.post(path, content=content, headers={"Content-Type": media}), status, *words)


def test_a_body_has_no_second_buffer_and_a_pair_has_two_areas(client, made_up):
    at, point = f"/releases/{made_up}/analyses", {"type": "Point", "coordinates": [0, 0]}
    both = client.post(f"{at}/inflow-outflow?buffer_m=3", json={"around": point, "buffer_m": 3})
    assert refused(both, 400, "buffer_m must be given once")
    assert refused(client.post(f"{at}/paired-areas", json=point), 400, "must be")
    assert client.post(f"{at}/inflow-outflow?buffer_m=3", json=point).status_code == 200


def test_forms_that_are_not_offered_are_refused(client, made_up, counties):
    path, query = f"/releases/{made_up}/analyses/inflow-outflow", {"zone": counties[0], "level": "county"}
    assert refused(client.get(path, params=query | {"f": "xlsx"}), 400, "f (xlsx) must be one of json, csv, png, pdf")
    assert refused(client.get(path, params=query, headers={"Accept": "image/gif"}), 406, "Accept must allow")
    assert client.get(path, params=query, headers={"Accept": "text/csv"}).headers["content-type"].startswith("text/csv")


def test_an_answer_is_kept_and_found_again(client, made_up, counties):
    path, query = f"/releases/{made_up}/analyses/inflow-outflow", {"zone": counties[0], "level": "county"}
    first = client.get(path, params=query)
    again = client.get(path, params=query, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    other = client.get(path, params=query | {"zone": counties[1]}, headers={"If-None-Match": first.headers["etag"]})
    assert other.status_code == 200
    (same,) = [link for link in first.json()["links"] if link["rel"] == "self"]
    assert client.get(same["href"]).json()["rows"] == first.json()["rows"]
    assert any(link["rel"] == "alternate" and link["type"] == "text/csv" for link in first.json()["links"])


def test_the_list_names_all_and_the_release_links_it(client, made_up):
    listed = client.get(f"/releases/{made_up}/analyses").json()["analyses"]
    assert [one["name"] for one in listed] == list(KINDS)
    links = client.get(f"/releases/{made_up}").json()["links"]
    assert any(link["rel"] == "analyses" and client.get(link["href"]).status_code == 200 for link in links)


def test_where_reading_needs_a_key_analyses_do(make_client, made_up, counties):
    client = make_client(anonymous=False)
    path, query = f"/releases/{made_up}/analyses/inflow-outflow", {"zone": counties[0], "level": "county"}
    assert client.get(path, params=query).status_code == 401
    assert client.post(path, content=b"{").status_code == 401
    assert client.get(path, params=query, headers=bearer(client, Role.READER)).status_code == 200
