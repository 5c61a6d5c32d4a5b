"""What is audited: how a table is planned and how it is drawn."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synthmap.geography.region import Region
from synthmap.kernels.stream import Stream
from synthmap.mechanism.chosen import plan_destinations
from synthmap.mechanism.plan import Plan, PlanSettings
from synthmap.mechanism.table import Counts, SyntheticCounts

Planning = Callable[[Region, NDArray[np.int32], NDArray[np.int64], PlanSettings], Plan]
Drawing = Callable[[Plan, Counts, Region, PlanSettings, Stream], SyntheticCounts]


def as_it_is(draw: Drawing) -> Drawing:
    """Return `draw`."""
    return draw


@dataclass(frozen=True)
class Mechanism:
    """A way to plan and draw.

    Attributes
    ----------
    name : str
    plan : callable
        As the mechanism that a world's settings name, or what somebody might have written instead.
    around : callable
        What becomes of that mechanism's `synthesize`, or of that function driven through every choice.
    """

    name: str
    plan: Planning = plan_destinations
    around: Callable[[Drawing], Drawing] = as_it_is


AS_IT_IS = Mechanism("as it is")
