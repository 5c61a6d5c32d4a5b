"""Dirichlet shares in floating point, one cell after the other: at tiny α they vanish so often that an attack sees it.

A cell takes a share Beta(a, b) of what is left, X/(X + Y) of gamma variables of shapes a and b. One of shape α is below
the smallest number t of a precision with a probability of nearly t^α: 0.89 in double precision at α = 1/6000. Where
empty cells alone are left, both are below it as a rule. So whoever is drawn into the noise is in the last cell nearly
always, and a lone worker found in another one lives there.

Where the shares of all cells are divided by one sum, that sum has a worker in it, and only their grid is at fault
(`float_dirichlet`).

References
----------
numpy issues 5851 and 19637: `beta` and `dirichlet` of tiny α, not a number. The latter is so in `RandomState` today.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from synthmap.audit.mechanism import Drawing, Mechanism
from synthmap.geography.region import Region
from synthmap.kernels.stream import Stream
from synthmap.mechanism.dirichlet_plan import DirichletPlan
from synthmap.mechanism.plan import PlanSettings
from synthmap.mechanism.table import Counts, SyntheticCounts

Doubles = NDArray[np.float64]
Share = Callable[[np.random.Generator, Doubles, Doubles], Doubles]
"""Draws Beta(a, b) variables."""


def share_of_gammas(
    random: np.random.Generator, a: Doubles, b: Doubles, *, precision: type[np.float32] | type[np.float64]
) -> Doubles:
    """Return X/(X + Y) of gamma variables, and 0 where both are."""
    x, y = (random.standard_gamma(shape, dtype=precision) for shape in (a, b))
    return np.asarray(x / np.maximum(x + y, np.finfo(precision).tiny), np.float64)


def one_cell_after_the_other(share: Share) -> Callable[[Drawing], Drawing]:
    """Return what draws by `share` instead, in worlds where every origin is a cell."""

    def around(_: Drawing) -> Drawing:
        def drawn(
            plan: DirichletPlan, counts: Counts, region: Region, settings: PlanSettings, stream: Stream
        ) -> SyntheticCounts:
            random = np.random.default_rng(stream.words(int(plan.destination[0]), 4))
            shape = len(plan), len(region.zones) + 1, settings.segments
            dense = np.zeros(shape, np.int64)
            dense[np.repeat(np.arange(len(plan)), np.diff(counts.first_row)), counts.origin] = counts.workers
            weight = dense.reshape(len(plan), -1) + plan.alpha()[:, None]
            left = plan.synthetic_size.copy()
            found = np.empty(weight.shape, np.int64)
            for cell in range(weight.shape[1] - 1):
                others = weight[:, cell + 1 :].sum(axis=1)
                found[:, cell] = random.binomial(left, share(random, weight[:, cell], others))
                left -= found[:, cell]
            found[:, -1] = left
            table = found.reshape(shape)
            place, origin = np.nonzero(table.sum(axis=2))
            return SyntheticCounts(plan.destination[place], origin.astype(np.int32), table[place, origin])

        return drawn  # type: ignore[return-value]

    return around


SHARES_IN_DOUBLES = Mechanism(
    "shares of what is left in double precision",
    around=one_cell_after_the_other(partial(share_of_gammas, precision=np.float64)),
)
SHARES_IN_SINGLES = Mechanism(
    "shares of what is left in single precision",
    around=one_cell_after_the_other(partial(share_of_gammas, precision=np.float32)),
)
