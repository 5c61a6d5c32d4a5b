"""Process ``release``: the spec of a registered dataset with the public choices of whoever asked."""

from typing import Any

from pydantic import ValidationError

from pipelines.jobs.order import Order, Progress
from pipelines.jobs.published import result
from pipelines.registry import registered_spec
from pipelines.release import release
from pipelines.spending import Spending
from synthmap.catalog.claims import Claim, may_publish
from synthmap.catalog.database import Catalog
from synthmap.errors import ConfigurationError
from synthmap.spec import Spec

_SECTION = {"epsilon": "privacy", "delta": "privacy", "rule": "privacy",
            "coarsening": "plan", "cells": "plan", "keep": "plan"}  # fmt: skip


def run(order: Order, claim: Claim, catalog: Catalog, progress: Progress) -> dict[str, Any]:
    """Return what was released. Its id was fixed when the job was submitted, so a second attempt makes the same.

    The loss is recorded under that id, so a second attempt pays nothing more; and draws nothing more if the first may
    have shown what it drew.
    """
    dataset = claim.job.inputs["dataset"]
    spec = with_choices(registered_spec(order.registry, dataset), claim.job.inputs)
    paying, name = Spending(catalog, order.registry, dataset, spec, job=claim.job.id), claim.job.release or ""

    def ready() -> None:
        may_publish(catalog, claim)  # first: who lost the job must not keep the next one from drawing
        paying.before_publishing(name)

    found = release(
        spec.model_copy(update={"store": order.store}),
        scheduler=order.scheduler,
        progress=progress,
        name=name,
        before_reading=paying.before_reading,
        before_drawing=paying.before_drawing,
        before_publishing=ready,
    )
    return result(found.manifest)


def with_choices(spec: Spec, inputs: dict[str, Any]) -> Spec:
    """Return `spec` with what `inputs` choose, checked like any spec.

    Raises
    ------
    ConfigurationError
        If a choice breaks a rule, is none of the public ones, or does not fit the others.
    """
    values = spec.model_dump(exclude_unset=True)  # rules tell what was chosen from what is usual
    for key, value in inputs.items():
        if key in _SECTION:
            values.setdefault(_SECTION[key], {})[key] = value
        elif key in ("segments", "title"):
            values[key] = value
        elif key not in ("dataset", "name"):
            known = ", ".join([*_SECTION, "segments", "title", "name"])
            raise ConfigurationError(f"input ({key}) must be one of {known}")
    values["name"] = inputs.get("name") or inputs["dataset"]
    try:
        return Spec.model_validate(values)
    except ValidationError as fault:
        lines = "; ".join(
            f"{'.'.join(map(str, e['loc'])) or 'spec'}: {e['msg']}"
            for e in fault.errors(include_url=False, include_input=False)
        )
        raise ConfigurationError(f"the dataset's spec with the inputs must follow the schema: {lines}") from None
