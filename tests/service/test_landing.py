"""The landing page and what it leads to."""

import pytest


def test_the_landing_page_leads_everywhere(client):
    links = client.get("/").json()["links"]
    wanted = {"self", "service-desc", "service-doc", "conformance", "data"}
    assert wanted <= {one["rel"] for one in links}
    for one in links:
        answer = client.get(one["href"], headers={"accept": one["type"]})
        if one["rel"].endswith("job-list"):
            assert answer.status_code in (401, 403)  # for curators
        else:
            assert answer.status_code == 200, one
            assert answer.headers["content-type"].split(";")[0] == one["type"].split(";")[0]


def test_conformance_names_classes_not_requirements(client):
    classes = client.get("/conformance").json()["conformsTo"]
    assert len(classes) == len(set(classes))
    assert all("/conf/" in one and "/req/" not in one for one in classes)
    for part in ("features-1/1.0/conf/core", "features-1/1.0/conf/oas30", "features-1/1.0/conf/geojson",
                 "features-2/1.0/conf/crs", "features-3/1.0/conf/queryables", "features-3/1.0/conf/filter",
                 "processes-1/1.0/conf/core", "tiles-1/1.0/conf/core"):  # fmt: skip
        assert f"http://www.opengis.net/spec/ogcapi-{part}" in classes


@pytest.mark.parametrize("path", ["/", "/conformance", "/collections", "/api"])
def test_pages_refuse_parameters_they_do_not_know(client, path):
    assert client.get(path, params={"nothing": 1}).status_code == 400


def test_collections_are_the_same_in_the_list_and_alone(client, made_up, odd):
    found = client.get("/collections").json()
    names = [one["id"] for one in found["collections"]]
    assert set(names) == {
        f"{release}.{kind}" for release in (made_up, odd) for kind in ("flows", "origins", "destinations")
    }
    for one in found["collections"]:
        assert client.get(f"/collections/{one['id']}").json() == one
        west, south, east, north = one["extent"]["spatial"]["bbox"][0]
        assert -180 <= west < east <= 180 and -90 <= south < north <= 90
        items = [link["href"] for link in one["links"] if link["rel"] == "items"]
        assert {client.get(address).status_code for address in items} == {200}


def test_a_collection_says_how_private_it_is(client, odd):
    text = client.get(f"/collections/{odd}.flows").json()["description"]
    for part in ("NOT PRIVATE", "ε = 4", "δ = 1e-05", "Do not read single zones as facts"):
        assert part in text


def test_an_empty_store_has_no_collections(make_client, tmp_path):
    (tmp_path / "empty").mkdir()
    client = make_client(store=tmp_path / "empty")
    assert client.get("/collections").json()["collections"] == []
    assert "no release yet" in client.get("/collections?f=html").text
