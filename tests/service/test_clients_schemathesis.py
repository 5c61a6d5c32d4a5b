"""schemathesis asks what the OpenAPI document allows, and much that it does not: nothing may be answered with 5xx."""

import json
import urllib.request

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
    faults: dict[str, str] = {}
    asked = 0
    for found in described.get_all_operations():
        operation = found.ok()

        @settings(
            max_examples=15, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
        )
        @given(case=operation.as_strategy(generation_mode=schemathesis.GenerationMode(mode)))
        def ask(case, label=operation.label):
            nonlocal asked
            asked += 1
            answer = case.call(base_url=live_server, timeout=60)
            if answer.status_code >= 500:
                faults[label] = f"{answer.request.url} {answer.status_code} {answer.text}"

        try:
            ask()
        except Unsatisfiable:
            pass  # nothing can be wrong in an operation without parameters
    assert not faults
    assert asked > 200
