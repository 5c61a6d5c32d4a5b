"""A smaller ε for several losses together, where dp-accounting is installed and its preconditions hold.

Proof and preconditions: proofs/composition.md, "Tighter sums".
"""

import importlib
import importlib.metadata
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

from synthmap.privacy.composition import round_up

LIBRARY = "dp-accounting"
_LARGEST_EPSILON = Fraction(50)  # of one loss; the gain is gone long before, and exp(ε) is still a float
_SMALLEST_DELTA = Fraction(1, 10**10)  # the library sums probabilities as floats, off by some 1e-15
_MARGIN = 1 - Fraction(1, 1000)
_STEPS = 200_000  # into which the sum of all ε is divided; a loss is rounded up to a whole number of them


def tighter_epsilon(losses: Iterable[tuple[Fraction, Fraction, int]], delta: Fraction) -> tuple[float, str] | None:
    """Return an ε at which all losses together are (ε, δ)-DP, and the name of the rule that gave it.

    **Guarantee** (adjacency: any for which every loss holds): (returned ε, `delta`)-DP of everything together, if the
    ε and δ of every loss were fixed before the first result was seen. Numerical: pessimistic, with a margin of a
    thousandth of δ for the float sums of the library.

    Parameters
    ----------
    losses : iterable of (epsilon, delta, times)
        Natural-log ε and δ of one (ε, δ)-DP result, and how many there are of the kind; public.
    delta : Fraction
        δ for all together; public.

    Returns
    -------
    tuple of (float, str) or None
        None where basic composition is no worse, a precondition fails or the library is not installed: fewer than two
        losses, an ε above 50, a δ below 1e-10, or losses whose own δ add up to nearly `delta`.
    """
    kinds: Counter[tuple[Fraction, Fraction]] = Counter()
    for epsilon, failure, times in losses:
        kinds[epsilon, failure] += times
    total = sum((epsilon * times for (epsilon, _), times in kinds.items()), Fraction(0))
    failures = sum((failure * times for (_, failure), times in kinds.items()), Fraction(0))
    if kinds.total() < 2 or total == 0 or max(epsilon for epsilon, _ in kinds) > _LARGEST_EPSILON:
        return None
    if not max(failures, _SMALLEST_DELTA) < delta * _MARGIN:
        return None
    try:
        pld = importlib.import_module("dp_accounting.pld.privacy_loss_distribution")
        common = importlib.import_module("dp_accounting.pld.common")
        version = importlib.metadata.version(LIBRARY)
    except (ModuleNotFoundError, importlib.metadata.PackageNotFoundError):
        return None
    step = float(total) / _STEPS
    whole = None
    for (epsilon, failure), times in kinds.items():
        one = common.DifferentialPrivacyParameters(round_up(epsilon), round_up(failure))
        part = pld.from_privacy_parameters(one, value_discretization_interval=step)
        part = part.self_compose(times) if times > 1 else part
        whole = part if whole is None else whole.compose(part)
    assert whole is not None  # noqa: S101
    found = float(whole.get_epsilon_for_delta(float(delta * _MARGIN)))
    if not found < total:
        return None
    return found, f"optimal composition of (ε, δ)-DP losses fixed in advance, computed by {LIBRARY} {version}"
