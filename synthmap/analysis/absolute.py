"""The mean absolute value of a difference of counts, from its mean and variance."""

import math

from synthmap.compiled import compiled

_FEW = 0.01  # up to which a series of three terms is right to 1e-7
_HALF_PI = math.pi / 2.0


@compiled
def mean_absolute(mean: float, variance: float) -> float:
    """Return about E|D| of a difference D of two counts, in their unit.

    Parameters
    ----------
    mean, variance : float
        Of D.

    Notes
    -----
    For mean 0 that of two independent Poisson counts, ``V·e^−V·(I₀(V) + I₁(V))``: V where D is rarely not 0, for then
    |D| = D²; √(2V/π) where it is nearly normal. The Bessel functions are those of Abramowitz and Stegun 9.8.1 to
    9.8.4; the result is right to 1e-6 of it. With another mean it is the larger one of two: that of V + mean², as
    |D| = D² again where D is rarely not 0; and that of V times what a mean does to a normal variable,
    ``e^(−t²/2) + t·√(π/2)·erf(t/√2)`` at t = mean/√V, which for all but small V is larger.

    Resampled counts are no Poisson counts: with 8 workers in 32 cells E|D| of a cell is 0.83 of this, with 3 in 8 that
    of half the cells 1.09 of it, with 200 in 64 that of a cell 0.94 and of two 0.98. `cell_tables` has these ratios.
    """
    if variance <= 0.0:
        return abs(mean)
    found = _two_poissons(variance)
    if mean * mean < 1e-6 * variance:
        return found
    square = mean * mean / variance
    t = math.sqrt(square)
    normal = math.exp(-0.5 * square) + t * math.sqrt(_HALF_PI) * math.erf(t / math.sqrt(2.0))
    return max(found * normal, _two_poissons(variance + mean * mean))


@compiled
def _two_poissons(v: float) -> float:
    if v < _FEW:
        return v * (1.0 - v * (0.5 - 0.25 * v))
    if v < 3.75:
        y = (v / 3.75) ** 2
        zeroth = 1.0 + y * (
            3.5156229 + y * (3.0899424 + y * (1.2067492 + y * (0.2659732 + y * (0.0360768 + y * 0.0045813))))
        )
        first = v * (
            0.5
            + y
            * (0.87890594 + y * (0.51498869 + y * (0.15084934 + y * (0.02658733 + y * (0.00301532 + y * 0.00032411)))))
        )
        return v * math.exp(-v) * (zeroth + first)
    y = 3.75 / v
    both = 0.0
    for power in range(8, -1, -1):
        both = both * y + _LARGE[power]
    return math.sqrt(v) * both


# coefficients of A&S 9.8.2 and 9.8.4, added up
_LARGE = (
    0.39894228 + 0.39894228,
    0.01328592 - 0.03988024,
    0.00225319 - 0.00362018,
    -0.00157565 + 0.00163801,
    0.00916281 - 0.01031555,
    -0.02057706 + 0.02282967,
    0.02635537 - 0.02895312,
    -0.01647633 + 0.01787654,
    0.00392377 - 0.00420059,
)
