"""A published plan, for tests that need some."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from synthmap.analysis.read import PublishedPlan


def published_plan(destination: Sequence[int], headcount: Sequence[int], **changes: Any) -> PublishedPlan:
    """Return the plan of resampling in one cell; `changes` are whole columns, or one value for all destinations."""
    n = np.array(headcount, np.int64)
    usual = {
        "size": n,
        "cells_asked": 1,
        "cells": 1,
        "predicted_km": np.nan,
        "prior_share": 0.5,
        "finest": -1,
        "alpha_numerator": 1,
        "alpha_denominator": 1,
        "keep_units": 2**16,
        "groups_asked": 1,
        "groups": 1,
        "noise_units": 0,
        "group_noise_units": 0,
        "gaussian_units": 0,
        "common_part": np.nan,
    }
    columns = {name: np.broadcast_to(np.asarray(value), n.shape).copy() for name, value in (usual | changes).items()}
    return PublishedPlan(destination=np.array(destination, np.int32), headcount=n, **columns)
