"""Triggering: descriptions that a form can be made from, inputs that are only public choices, one job a request."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import get_args

import pytest
from bearer import bearer
from jsonschema import Draft202012Validator

from synthmap.catalog.datasets import Dataset, put_dataset
from synthmap.catalog.inputs import PROCESSES
from synthmap.catalog.jobs import list_jobs
from synthmap.catalog.keys import Role
from synthmap.spec import PlanSpec, PrivacySpec

TYPES = "http://www.opengis.net/def/exceptions/ogcapi-processes-1/1.0"
OPENAPI_30 = {  # what a schema may say for readers of OpenAPI 3.0, the dialect of the standard
    "type", "enum", "minimum", "maximum", "minLength", "maxLength", "pattern", "items", "minItems", "maxItems",
    "anyOf", "not", "properties", "nullable", "example",
}  # fmt: skip


@pytest.fixture
def curated(client):
    """A service with a dataset, and a curator's headers."""
    put_dataset(client.app.state.service.catalog, Dataset("ri", "RI", ("SA01", "SA02", "SA03"), ("county",), "2010"))
    return client, bearer(client)


def post(curated, process="release", inputs=None, **changes):
    client, headers = curated
    body = {"inputs": {"dataset": "ri"} if inputs is None else inputs, **changes}
    return client.post(
        f"/processes/{process}/execution",
        content=json.dumps(body),
        headers={**headers, "Content-Type": "application/json"},
    )


def jobs_of(curated):
    return list_jobs(curated[0].app.state.service.catalog, limit=100)


def test_the_list_links_every_process(client):
    found = client.get("/processes").json()
    assert [one["id"] for one in found["processes"]] == ["release", "evaluate", "export"]
    for one in found["processes"]:
        assert one["jobControlOptions"] == ["async-execute", "dismiss"]
        assert client.get(one["links"][0]["href"]).json()["id"] == one["id"]


def test_the_list_is_paged(client):
    seen, href = [], "/processes?limit=2"
    while href:
        page = client.get(href).json()
        seen += [one["id"] for one in page["processes"]]
        href = next((one["href"] for one in page["links"] if one["rel"] == "next"), None)
    assert seen == ["release", "evaluate", "export"]
    assert client.get("/processes?limit=0").status_code == 400


@pytest.mark.parametrize("process", ["release", "evaluate", "export"])
def test_a_description_is_one_that_a_form_can_be_made_from(client, process):
    found = client.get(f"/processes/{process}").json()
    model = PROCESSES[process].model_fields
    assert set(found["inputs"]) == set(model)
    for name, one in found["inputs"].items():
        assert one["title"] and one["description"]
        assert (one["minOccurs"] == 1) == model[name].is_required()
        Draft202012Validator.check_schema(one["schema"])
        assert words(one["schema"]) <= OPENAPI_30
        if "example" in one["schema"]:
            assert Draft202012Validator(one["schema"]).is_valid(one["schema"]["example"])
    (output,) = found["outputs"].values()
    Draft202012Validator.check_schema(output["schema"])
    assert words(output["schema"]) <= OPENAPI_30


def words(schema):
    """Return the keywords of a schema and of those in it."""
    found = set(schema)
    for part in [*schema.get("anyOf", []), *schema.get("properties", {}).values(), schema.get("items")]:
        found |= words(part) if part else set()
    return found


@pytest.mark.parametrize("process", ["sell", "Release", "release ", "%2e%2e"])
def test_no_such_process(curated, process):
    client, headers = curated
    for answer in (client.get(f"/processes/{process}"), client.post(
        f"/processes/{process}/execution", json={"inputs": {}}, headers=headers
    )):  # fmt: skip
        assert answer.status_code == 404
        if answer.json()["detail"] != "there is nothing at this path":
            assert answer.json()["type"] == f"{TYPES}/no-such-process"


VALUES = {
    "epsilon": [0, -1, 1e-300, 4, 4.5, 700, 700.1, "4", True, [4], float("inf"), float("nan")],
    "delta": [0, 1e-9, 0.999, 1, -1e-9, "0"],
    "rule": ["pdp", "adp", "pure", "PDP", "", 1],
    "coarsening": ["prior-mass", "distance", "none", 3],
    "cells": [1, 0, 8_000_000, 8_000_001, 1.5, "auto", "many", True, "10"],
    "keep": [1, 0, 0.001, 1.001, "prior", "no", False],
}


@pytest.mark.parametrize("name", VALUES)
def test_spec_schema_and_service_agree_on_what_is_allowed(curated, name):
    client, _ = curated
    section = PrivacySpec if name in PrivacySpec.model_fields else PlanSpec
    rest = {} if section is PlanSpec else {"epsilon": 1.0, "delta": 0.0}
    schema = Draft202012Validator(client.get("/processes/release").json()["inputs"][name]["schema"])
    for value in VALUES[name]:
        # TOML has types of its own, so the spec takes "10" and True for numbers; the service does not
        typed = not isinstance(value, bool) and (
            not isinstance(value, str) or value in literals(section.model_fields[name].annotation)
        )
        allowed = typed and fits(section, {**rest, name: value})
        answer = post(curated, inputs={"dataset": "ri", name: value})
        assert answer.status_code == (201 if allowed else 400), (value, answer.text)
        assert allowed or name in answer.json()["detail"]
        if value == value:  # JSON has no NaN, though some write one
            assert schema.is_valid(value) == allowed, value


def fits(section, values):
    try:
        section.model_validate(values)
    except ValueError:
        return False
    return True


def literals(annotation):
    """Return the texts that an annotation names."""
    parts = get_args(annotation)
    return {part for part in parts if isinstance(part, str)}.union(*map(literals, parts)) | (
        set(annotation)
        if isinstance(annotation, type) and issubclass(annotation, str) and annotation is not str
        else set()
    )


@pytest.mark.parametrize("prefer", [None, "respond-async", "respond-async, wait=5", "respond-sync"])
def test_a_job_is_accepted(curated, prefer):
    client, headers = curated
    sent = headers | ({"Prefer": prefer} if prefer else {})
    inputs = {"dataset": "ri", "epsilon": 4, "segments": "SA", "title": "Île & <b>"}
    answer = client.post("/processes/release/execution", json={"inputs": inputs}, headers=sent)
    assert answer.status_code == 201
    found = answer.json()
    assert (found["processID"], found["type"], found["status"], found["progress"]) == (
        "release",
        "process",
        "accepted",
        0,
    )
    assert found["inputs"] == inputs
    assert answer.headers["location"].endswith(f"/jobs/{found['jobID']}")
    assert client.get(answer.headers["location"], headers=headers).json() == found
    assert answer.headers.get("preference-applied") == ("respond-async" if prefer and "async" in prefer else None)
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "dataset", ["other", "/etc/passwd", "../ri", "ri.toml", "ri/../ri", "", "RI", "ri\u0000", 3, None]
)
def test_a_dataset_must_be_registered(curated, dataset):
    answer = post(curated, inputs={"dataset": dataset})
    assert answer.status_code == 400
    assert "dataset" in answer.json()["detail"]
    assert jobs_of(curated) == []


@pytest.mark.parametrize(("segments", "status"), [
    ("SA", 201), (["SA02"], 201), ([], 201), ("SE", 400), (["SA01", "SE01"], 400), (["home"], 400), ("", 400),
])  # fmt: skip
def test_segments_must_be_those_of_the_dataset(curated, segments, status):
    assert post(curated, inputs={"dataset": "ri", "segments": segments}).status_code == status


@pytest.mark.parametrize("inputs", [
    {"dataset": "ri", "seed": 1}, {"dataset": "ri", "store": "/srv"}, {"dataset": "ri", "tables": []}, {},
    {"dataset": "ri", "max_jobs_per_worker": 1}, {"dataset": {"href": "http://127.0.0.1/ri"}},
    {"dataset": "ri", "epsilon": {"href": "file:///etc/passwd", "type": "application/json"}},
    {"dataset": "ri", "epsilon": {"value": 4, "other": 1}}, {"dataset": "ri", "name": "../../up"},
    {"dataset": "ri", "title": "two\nlines"}, {"dataset": "ri", "title": "x" * 300}, {"dataset": "ri", "": 1},
])  # fmt: skip
def test_what_is_not_offered_cannot_be_asked_for(curated, inputs):
    answer = post(curated, inputs=inputs)
    assert answer.status_code == 400
    assert "passwd" not in answer.text
    assert jobs_of(curated) == []


def test_a_value_may_be_wrapped(curated):
    assert post(curated, inputs={"dataset": {"value": "ri"}, "epsilon": {"value": 2}}).json()["inputs"] == {
        "dataset": "ri", "epsilon": 2,
    }  # fmt: skip


@pytest.mark.parametrize("changes", [
    {"outputs": {"table": {}}}, {"outputs": {"release": {"transmissionMode": "reference"}}}, {"response": "raw"},
    {"subscriber": {"successUri": "http://127.0.0.1/"}}, {"mode": "sync"}, {"inputs": []}, {"outputs": 3},
])  # fmt: skip
def test_what_the_execution_does_not_know_is_refused(curated, changes):
    answer = post(curated, **changes)
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"


def test_an_output_may_be_named(curated):
    assert post(curated, outputs={"release": {"transmissionMode": "value"}}, response="document").status_code == 201


@pytest.mark.parametrize("body", [
    b"", b"{", b"[]", b'"x"', b"null", b"\xff\xfe", b'{"inputs": ' + b"[" * 50_000,
    b'{"inputs": {"dataset": "\\ud800"}}',
])  # fmt: skip
def test_a_body_that_is_none_is_a_bad_request(curated, body):
    client, headers = curated
    answer = client.post(
        "/processes/release/execution", content=body, headers={**headers, "Content-Type": "application/json"}
    )
    assert answer.status_code == 400
    assert set(answer.json()) == {"type", "title", "status", "detail", "instance"}


@pytest.mark.parametrize(("process", "inputs", "word"), [
    ("export", {"release": "none", "formats": ["csv"]}, "release"),
    ("export", {"release": "ODD", "formats": []}, "formats"),
    ("export", {"release": "ODD", "formats": ["exe"]}, "format"),
    ("export", {"release": "ODD", "formats": ["../csv"]}, "format"),
    ("export", {"release": "../ODD", "formats": ["csv"]}, "release"),
    ("export", {"release": ".catalog", "formats": ["csv"]}, "release"),
    ("evaluate", {"release": "none", "dataset": "ri"}, "release"),
    ("evaluate", {"release": "ODD", "dataset": "none"}, "dataset"),
    ("evaluate", {"release": "ODD"}, "dataset"),
])  # fmt: skip
def test_releases_and_formats_must_be_there(curated, odd, process, inputs, word):
    named = {key: value.replace("ODD", odd) if isinstance(value, str) else value for key, value in inputs.items()}
    answer = post(curated, process, named)
    assert answer.status_code == 400
    assert word in answer.json()["detail"]


def test_formats_are_families_or_files(curated, odd):
    client, _ = curated
    (families, _) = client.get("/processes/export").json()["inputs"]["formats"]["schema"]["items"]["anyOf"]
    for words in (families["enum"], ["flows.fgb", "csv"]):
        assert post(curated, "export", {"release": odd, "formats": words}).status_code == 201


def test_a_damaged_release_is_not_exported(make_client, store, odd, tmp_path):
    own = tmp_path / "own"
    shutil.copytree(store / odd, own / odd)
    (own / odd / "plan.parquet").chmod(0o644)
    (own / odd / "plan.parquet").write_bytes(b"PAR1")
    client = make_client(store=own)
    answer = post((client, bearer(client)), "export", {"release": odd, "formats": ["csv"]})
    assert answer.status_code == 503


def test_a_request_sent_again_is_the_same_job(curated):
    client, headers = curated
    sent = headers | {"Idempotency-Key": "night-of-2026-01-31"}
    body = {"inputs": {"dataset": "ri", "epsilon": 2}}

    def trigger(_):
        return client.post("/processes/release/execution", json=body, headers=sent)

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(trigger, range(8)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["jobID"] for answer in answers}) == 1
    assert len({answer.headers["location"] for answer in answers}) == 1
    assert len(jobs_of(curated)) == 1


@pytest.mark.parametrize(("process", "inputs"), [
    ("release", {"dataset": "ri", "epsilon": 3}), ("release", {"dataset": "ri"}), ("export", None),
])  # fmt: skip
def test_a_name_is_not_used_for_another_request(curated, odd, process, inputs):
    client, headers = curated
    sent = headers | {"Idempotency-Key": "one"}
    client.post("/processes/release/execution", json={"inputs": {"dataset": "ri", "epsilon": 2}}, headers=sent)
    inputs = inputs or {"release": odd, "formats": ["csv"]}
    answer = client.post(f"/processes/{process}/execution", json={"inputs": inputs}, headers=sent)
    assert answer.status_code == 409
    assert len(jobs_of(curated)) == 1


def test_two_curators_may_use_the_same_name(curated):
    client, _ = curated
    for headers in (bearer(client), bearer(client)):
        sent = headers | {"Idempotency-Key": "one"}
        assert client.post("/processes/release/execution", json={"inputs": {"dataset": "ri"}}, headers=sent).is_success
    assert len(jobs_of(curated)) == 2


@pytest.mark.parametrize("name", ["", "x" * 256, "two words"])
def test_a_name_that_cannot_be_one_is_refused(curated, name):
    client, headers = curated
    sent = headers | {"Idempotency-Key": name}
    answer = client.post("/processes/release/execution", json={"inputs": {"dataset": "ri"}}, headers=sent)
    assert answer.status_code == 400
    assert jobs_of(curated) == []


@pytest.mark.parametrize(("role", "status"), [(None, 401), (Role.READER, 403), (Role.ANALYST, 403)])
def test_only_curators_trigger_and_see_datasets(curated, role, status):
    client, _ = curated
    headers = {} if role is None else bearer(client, role)
    for process in ("release", "sell"):  # nor does the answer tell which processes there are
        answer = client.post(f"/processes/{process}/execution", json={"inputs": {"dataset": "ri"}}, headers=headers)
        assert answer.status_code == status
    assert client.get("/datasets", headers=headers).status_code == status
    assert client.get("/processes/release", headers=headers).status_code == 200
    assert jobs_of(curated) == []


def test_datasets_are_told_by_their_public_facts(curated):
    client, headers = curated
    answer = client.get("/datasets", headers=headers)
    assert answer.json()["datasets"] == [
        {"id": "ri", "title": "RI", "segments": ["SA01", "SA02", "SA03"], "levels": ["county"], "vintage": "2010"}
    ]
    assert answer.headers["cache-control"] == "no-store"


def test_a_description_needs_a_key_where_reading_does(make_client):
    client = make_client(anonymous=False)
    assert client.get("/processes").status_code == 401
    assert client.get("/processes", headers=bearer(client, Role.READER)).status_code == 200


def test_without_a_catalog_nothing_is_accepted(make_client, tmp_path):
    place = tmp_path / "gone"
    client = make_client(database=f"sqlite:///{place / 'catalog.sqlite'}")
    headers = bearer(client)
    client.app.state.service.catalog.engine.dispose()
    shutil.rmtree(place)
    assert client.get("/processes").status_code == 200
    for answer in (
        client.post("/processes/release/execution", json={"inputs": {"dataset": "ri"}}, headers=headers),
        client.get("/jobs", headers=headers),
        client.delete(f"/jobs/{'0' * 32}", headers=headers),
    ):
        assert answer.status_code == 503
        assert str(place) not in answer.text
