"""How far sums of discrete Laplace noise reach. Proof: proofs/metrics.md."""

import math

import numpy as np
from scipy.stats import nbinom

from synthmap.errors import PrivacyParameterError

_STEPS = 512  # lattice points a scale; more make a width tighter by less than terms/_STEPS of a scale
_SLACK = 1e-9  # far above what the sums of tails are off by


def half_width(scale: float, terms: int, coverage: float) -> int:
    """Return t such that a sum of `terms` independent discrete Laplace variables lies in [−t, t] often enough.

    Parameters
    ----------
    scale : float
        b of ``P(z) ∝ exp(−|z|/b)``, above 0.
    terms : int
        At least 1.
    coverage : float
        Least probability, strictly between 0 and 1.

    Returns
    -------
    int
        Never too small; for scales below 1024 the smallest there is, but for rounding of the tails.

    Raises
    ------
    PrivacyParameterError
        If a value is out of range.

    Examples
    --------
    >>> half_width(1.0, 1, 0.5), half_width(1.0, 1, 0.95), half_width(100.0, 1, 0.95)
    (1, 3, 300)
    """
    if not (0 < scale < math.inf and terms >= 1 and 0 < coverage < 1):
        raise PrivacyParameterError(
            f"scale ({scale:g}), terms ({terms}) and coverage ({coverage:g}) must be above 0, at least 1, and between "
            "0 and 1"
        )
    step = max(1, int(scale // _STEPS))
    up = nbinom(terms, -math.expm1(-step / scale))
    y = np.arange(int(up.isf(_SLACK / 4)) + 1)
    weight = up.pmf(y)
    allowed = 1.0 - coverage - _SLACK

    def tail(t: int) -> float:
        return 2.0 * float(weight @ up.sf(t + y)) + _SLACK / 2

    low, high = -1, int(up.isf(_SLACK / 4)) + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if tail(middle) <= allowed else (middle, high)
    return high if step == 1 else step * (high + terms)
