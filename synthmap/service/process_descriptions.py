"""The processes in the words of OGC API – Processes: what each is for, its inputs with their schemas, its output."""

from dataclasses import dataclass, field
from typing import Any

from synthmap.catalog.inputs import PROCESSES
from synthmap.published.exports import FORMATS

_AS_IN_SPEC = "Left out: as the operator wrote it in the dataset's spec."


@dataclass(frozen=True)
class Words:
    """What people read of an input, and an example to start from."""

    title: str
    description: str
    example: Any = None


@dataclass(frozen=True)
class Process:
    """A process for people; the rules of its inputs are those of the catalog.

    Attributes
    ----------
    title, description : str
    inputs : dict of str to Words
        In the order of a form.
    output : str
        Name of the one output.
    output_title : str
    output_schema : dict
    """

    title: str
    description: str
    inputs: dict[str, Words]
    output: str
    output_title: str
    output_schema: dict[str, Any] = field(repr=False)


_LINKS = {
    "type": "array",
    "items": {"type": "object", "properties": {"rel": {"type": "string"}, "href": {"type": "string"}}},
}
_RELEASE = Words("Release", "Id of a release of this service.")
_DATASET = Words("Dataset", "Id of a dataset that the operator registered; never a path.")

DESCRIBED: dict[str, Process] = {
    "release": Process(
        "Publish a release",
        "Draws a synthetic origin–destination table from a registered dataset, checks it and publishes it. Every "
        "release spends its ε and δ again: send an Idempotency-Key, so that a request sent twice spends once.",
        {
            "dataset": _DATASET,
            "epsilon": Words(
                "Privacy loss ε", f"Natural logarithm, for one job, everything included; above 0. {_AS_IN_SPEC}", 4.0
            ),
            "delta": Words(
                "Failure probability δ", f"For one destination; below 1; the rule pure takes none. {_AS_IN_SPEC}", 1e-6
            ),
            "rule": Words(
                "Rule",
                "Which guarantee is certified: pdp (probabilistic DP, OnTheMap's own), adp (approximate DP, about half "
                f"the noise), pure (δ is 0). {_AS_IN_SPEC}",
                "pdp",
            ),
            "segments": Words(
                "Segments",
                "Columns drawn beside the total, among those of the dataset: SA, SE or SI for the three of LODES, or a "
                f"list; an empty list: the total only. {_AS_IN_SPEC}",
                "SA",
            ),
            "coarsening": Words(
                "Coarsening",
                f"How zones are joined to the areas between which noise is added. {_AS_IN_SPEC}",
                "prior-mass",
            ),
            "cells": Words(
                "Areas for each destination", f"A number, or auto: chosen by predicted error. {_AS_IN_SPEC}", "auto"
            ),
            "keep": Words(
                "Keep probability",
                f"Chance that an empty area can be drawn; above 0; or prior: by its prior mass. {_AS_IN_SPEC}",
                1.0,
            ),
            "name": Words("Name", "Beginning of the release's id. Left out: the id of the dataset."),
            "title": Words("Title", f"For people. {_AS_IN_SPEC}"),
        },
        "release",
        "The release",
        {
            "type": "object",
            "properties": {
                "id": {"type": "string"},
                "title": {"type": "string"},
                "private": {"type": "boolean"},
                "warning": {"type": "string", "nullable": True},
                "epsilon": {"type": "number"},
                "delta": {"type": "number"},
                "workers": {"type": "integer"},
                "destinations": {"type": "integer"},
                "links": _LINKS,
            },
        },
    ),
    "evaluate": Process(
        "Measure a release",
        "Compares a release with the confidential table it was made from. The result is as confidential as the table: "
        "curators read it, it is never published.",
        {"release": _RELEASE, "dataset": Words("Dataset", "Id of the dataset that the release was made from.")},
        "metrics",
        "Where curators find the measures",
        {"type": "object", "properties": {"release": {"type": "string"}, "links": _LINKS}},
    ),
    "export": Process(
        "Make files to download",
        "Writes a release in other formats, for releases too large to be written while a reader waits.",
        {
            "release": _RELEASE,
            "formats": Words(
                "Formats", "Formats, or single files by the name they have among the downloads.", ["geopackage"]
            ),
        },
        "files",
        "The files",
        {
            "type": "array",
            "items": {"type": "object", "properties": {"name": {"type": "string"}, "href": {"type": "string"}}},
        },
    ),
}  # fmt: skip


def summary(process: str) -> dict[str, Any]:
    """Return the processSummary of a process, without links."""
    one = DESCRIBED[process]
    return {
        "id": process,
        "title": one.title,
        "description": one.description,
        "version": "1.0.0",
        "jobControlOptions": ["async-execute", "dismiss"],
        "outputTransmission": ["value"],
    }


def description(process: str) -> dict[str, Any]:
    """Return the process description of a process, without links."""
    one = DESCRIBED[process]
    rules = PROCESSES[process].model_json_schema()
    required = rules.get("required", [])
    inputs: dict[str, dict[str, Any]] = {
        name: {
            "title": words.title,
            "description": words.description,
            "minOccurs": 1 if name in required else 0,
            "maxOccurs": 1,
            "schema": _schema(rules["properties"][name], words.example),
        }
        for name, words in one.inputs.items()
    }
    if process == "export":
        families = list(dict.fromkeys(form.family for form in FORMATS.values()))
        named = inputs["formats"]["schema"]["items"]
        inputs["formats"]["schema"]["items"] = {"anyOf": [{"type": "string", "enum": families}, named]}
    return {
        **summary(process),
        "inputs": inputs,
        "outputs": {one.output: {"title": one.output_title, "schema": one.output_schema}},
    }


def _schema(rule: dict[str, Any], example: Any) -> dict[str, Any]:
    """Return the schema of an input, for readers of JSON Schema and of OpenAPI 3.0 alike.

    Null, which stands for "left out", is not in it.
    """
    kinds = [_plain(one) for one in rule.get("anyOf", [rule]) if one.get("type") != "null"]
    found = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    return found if example is None else found | {"example": example}


def _plain(rule: dict[str, Any]) -> dict[str, Any]:
    """Return a rule without the words in which the two differ."""
    found = {key: value for key, value in rule.items() if key not in ("title", "default")}
    if "const" in found:
        found["enum"] = [found.pop("const")]
    excluded = [found.pop(key) for key in ("exclusiveMinimum", "exclusiveMaximum") if key in found]
    if "exclusiveMinimum" in rule:
        found["minimum"] = rule["exclusiveMinimum"]
    if "exclusiveMaximum" in rule:
        found["maximum"] = rule["exclusiveMaximum"]
    return found | ({"not": {"enum": excluded}} if excluded else {})
