"""schemathesis asks what the OpenAPI document allows, and much that it does not: nothing may be answered with 5xx."""

import json
import urllib.request
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")

KINDS = ("flows", "origins", "destinations")


@pytest.fixture(scope="session")
def described(live_server, made_up, odd):
    """The document of a service, its path parameters narrowed to what is there, so that more than 404 is met."""
    with urllib.request.urlopen(f"{live_server}/api") as answer:  # noqa: S310  # our own server
        document = json.load(answer)
    known = {
        "release": [made_up, odd, "none"],
        "collectionId": [*(f"{odd}.{kind}" for kind in KINDS), f"{made_up}.flows", "none.flows"],
        "process": ["release", "evaluate", "export", "none"],
    }
    for methods in document["paths"].values():
        for one in methods.values():
            for parameter in one.get("parameters", []):
                if parameter.get("in") == "path" and parameter["name"] in known:
                    parameter["schema"] = {"type": "string", "enum": known[parameter["name"]]}
    return schemathesis.openapi.from_dict(document)


@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_no_answer_is_a_fault_of_the_service(described, live_server, mode):
    answers = []
    for found in described.get_all_operations():

        @settings(max_examples=20, deadline=None, derandomize=True, database=None, suppress_health_check=HealthCheck)
        @given(case=found.ok().as_strategy(generation_mode=schemathesis.GenerationMode(mode)))
        def ask(case):
            answers.append(case.call(base_url=live_server, timeout=None))

        with suppress(Unsatisfiable):  # nothing can be wrong in a request without parameters
            ask()
    assert [f"{one.request.method} {one.request.url} {one.text}" for one in answers if one.status_code >= 500] == []
    assert len(answers) > 200
    assert sum(one.status_code == (200 if mode == "positive" else 400) for one in answers) > 50
