"""What dropping empty cells costs: a factor on the ratio for each situation of the moving worker.

The cost is a **sum** of two logarithms, not the maximum that the OnTheMap slides' theorem 3 suggests.
Proof: proofs/dropping.md.
"""

import math

from synthmap.compiled import compiled

_LGAMMA_ERROR = 2.0**-47


@compiled
def vanishing_gain(headcount: int, synthetic_size: int, alpha: float, cells: int) -> float:
    """Return an upper bound on G = Π_{t<m} (n + A + t)/(n + A − α + t), with A = cells·α.

    G is how much likelier an output becomes when an empty cell, in which it has no worker, is dropped
    from a domain of `cells` cells.
    """
    full = headcount + cells * alpha
    less = headcount + (cells - 1) * alpha
    terms = (
        math.lgamma(full + synthetic_size),
        math.lgamma(less),
        math.lgamma(full),
        math.lgamma(less + synthetic_size),
    )
    size = math.fabs(terms[0]) + math.fabs(terms[1]) + math.fabs(terms[2]) + math.fabs(terms[3]) + 4.0
    log_gain = terms[0] + terms[1] - terms[2] - terms[3] + _LGAMMA_ERROR * size
    return math.exp(log_gain) if log_gain < 700.0 else math.inf


@compiled
def dropping_factors(
    headcount: int, synthetic_size: int, cells: int, alpha: float, keep: float
) -> tuple[float, float, float]:
    """Return by how much dropping multiplies the worst ratio when a worker leaves a cell of v workers.

    **Guarantee** (adjacency: one worker of one destination has another origin): the ratio of the
    probabilities of an output under two neighbours is at most ``(1 + x/(v − 1 + α)) · factor(v)``, where
    v ≥ 1 is the number of workers in the cell that loses one and x that cell's synthetic workers. Attained
    in the smallest domains.

    Parameters
    ----------
    headcount, synthetic_size, cells : int
        n ≥ 1, m ≥ 1 and k ≥ 1, public.
    alpha : float
        Pseudo-count of each cell, in workers.
    keep : float
        The smallest keep probability of any cell, in (0, 1].

    Returns
    -------
    tuple of float
        Factors for v = 1 < n; for 1 < v < n; for v = n. Rounded up. Infinite where nothing can be
        promised.

    Notes
    -----
    With f the keep probability and G_c the gain of a domain of c cells:

    * v = 1 < n: (1/f)·(f + (1 − f)·G_3): the cell left behind may vanish, the one entered may have been
      missing, and a third cell holds the other workers;
    * 1 < v < n: f + (1 − f)·G_3;
    * v = n > 1: f + (1 − f)·G_2: everybody lives in one cell, so the domain may be just two;
    * v = n = 1: (1/f)·(f + (1 − f)·G_2).

    Where k leaves no room for the empty cell that is entered, its term is 1.
    """
    if keep >= 1.0 or cells < 2:
        return 1.0, 1.0, 1.0
    up = 1.0 + 1e-14
    two = (keep + (1.0 - keep) * vanishing_gain(headcount, synthetic_size, alpha, 2)) * up
    three = 1.0
    if cells > 2:
        three = (keep + (1.0 - keep) * vanishing_gain(headcount, synthetic_size, alpha, 3)) * up
    if headcount == 1:
        two *= up / keep
    return three * up / keep, three, two
