"""Why the draw uses integers: a Dirichlet sampler in single precision, run with every uniform number it can get.

The breach is a rare event, so it is enumerated: no number of draws would show it. They do show the other breach that
floats cause, see `broken_shares`.
"""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from synthmap.audit.exact import ExactFinding
from synthmap.audit.pairs import excess, ratio_at
from synthmap.privacy.calibration import minimum_alpha
from synthmap.privacy.epsilon import ratio_minus_one
from synthmap.privacy.rule import Rule

Singles = NDArray[np.float32]
_GRID = 2**24  # uniform numbers in single precision are multiples of 1/_GRID


def power(uniform: Singles, exponent: Fraction) -> Singles:
    """Return a power as single precision has it."""
    return np.power(uniform, np.float32(exponent), dtype=np.float32)


def empty_share(alpha: Fraction) -> Fraction:
    """Return how likely a lone worker is drawn into the other of two cells, when shares are drawn in single precision.

    The share of the empty cell is Beta(α, 1 + α), by Jöhnk's method of 1964: X/(X + Y) with X = U^(1/α) and
    Y = V^(1/(1 + α)), if X + Y ≤ 1. At tiny α, X is 0 for nearly every U that a generator can give.
    """
    uniform = np.arange(1, _GRID, dtype=np.float32) / np.float32(_GRID)
    noise = power(uniform, 1 / alpha)
    noise = noise[noise > 0]
    rest = power(uniform, 1 / (1 + alpha))
    accepted, share = uniform.size * (uniform.size - noise.size), 0.0
    for x in noise:
        total = x + rest
        inside = total <= 1
        accepted += int(inside.sum())
        share += float((x / total)[inside].sum(dtype=np.float64))
    return Fraction(share) / accepted


def audit_float_dirichlet(epsilon: float) -> ExactFinding:
    """Return what the noise that is right for an exact sampler promises a lone worker, and the truth with this one."""
    found = minimum_alpha(epsilon=epsilon, delta=0, headcount=1, cells=2, rule=Rule.PURE)
    away = empty_share(found.alpha)
    here, there = {0: 1 - away, 1: away}, {0: away, 1: 1 - away}
    ratio = ratio_at(here, there, Fraction(0))
    delta = excess(here, there, 1 + Fraction(ratio_minus_one(epsilon)))
    return ExactFinding(
        world="a lone worker",
        mechanism="shares drawn in single precision",
        tables=2,
        promised_epsilon=epsilon,
        promised_delta=0.0,
        worst_delta=delta,
        worst_epsilon=math.inf if ratio is None else math.log(ratio),
        promised_failure=None,
        worst_failure=None,
    )
