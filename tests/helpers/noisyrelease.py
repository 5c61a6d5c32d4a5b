"""What makes the small release of the fixture one of noisy counts: its plan, and the change of its manifest."""

from typing import Any

import pyarrow as pa

from synthmap.privacy.histogram import histogram_epsilon, minimum_units
from synthmap.release.plan_summary import prior_share_mean, summarise_classes

_UNITS = minimum_units(4.0)[0]
EPSILON = float(histogram_epsilon(_UNITS))
PLAN: dict[str, Any] = {
    "alpha_numerator": None,
    "alpha_denominator": None,
    "keep_units": None,
    "epsilon_dropping": None,
    "epsilon": [EPSILON, EPSILON],
    "delta": [0.0, 0.0],
    "noise_units": [_UNITS, _UNITS],
    "group_noise_units": [0, 0],
    "prior_share": [0.2, 0.1],
}


def noisy(manifest: dict[str, Any]) -> None:
    """Change the manifest of the small release, planned by `PLAN`, to that of noisy counts; its parts get intervals."""
    loss = {"epsilon": 4.0, "delta": 0.0}
    steps = {"cells_epsilon": EPSILON}
    manifest["privacy"] |= {"rule": "pure", "dp": loss, "certified_per_job": loss, "pdp_cells": None, "steps": steps}
    plan = pa.table({"headcount": [4, 5], "cells": [2, 2], "predicted_km": [2.0, 1.5]} | {
        name: values for name, values in PLAN.items() if values is not None
    })  # fmt: skip
    manifest["plan"] |= {
        "mechanism": "histogram",
        "reading": "means",
        "interval": 0.9,
        "prior_share_mean": prior_share_mean(plan, 2),
        "classes": [one.model_dump() for one in summarise_classes(plan, 2)],
    }
