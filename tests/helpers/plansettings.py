"""Settings of a plan, for tests that need some."""

from typing import Any

from synthmap.mechanism.plan import PlanSettings
from synthmap.privacy.rule import Rule


def plan_settings(**changes: Any) -> PlanSettings:
    """Return plain settings: prior-mass cells, nothing dropped, one segment."""
    usual = {
        "epsilon": 4.0,
        "delta": 1e-5,
        "rule": Rule.PDP,
        "cells": 0,
        "finest": -1,
        "keep": 1.0,
        "keep_by_prior": False,
        "segments": 1,
        "scale_km": 4.0,
        "power": 2.0,
        "elsewhere_share": 0.0,
        "strength": 5.0,
    }
    return PlanSettings(**(usual | changes))
