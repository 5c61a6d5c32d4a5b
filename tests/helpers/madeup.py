"""True origins that follow the prior."""

import numpy as np
from numpy.typing import NDArray

from synthmap.analysis.prior_world import _made_up
from synthmap.geography.prior import NO_TABLE
from synthmap.geography.region import Region
from synthmap.mechanism.plan import PlanSettings, model_of


def made_up(
    region: Region,
    settings: PlanSettings,
    places: NDArray[np.int32],
    first: NDArray[np.int64],
    rng: np.random.Generator,
) -> NDArray[np.int32]:
    """Return origins drawn from the prior of each destination, ascending; those of the i-th start at first[i]."""
    model = model_of(settings, NO_TABLE)
    return _made_up(region.tree, model, region.points(places), places, first, rng.random(int(first[-1])))
