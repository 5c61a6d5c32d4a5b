"""A smaller sum of a ledger's losses, as far as the preconditions of tighter composition hold: checked entry by entry.

Preconditions and proof: privacy/proofs/composition.md, "Tighter sums".
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from synthmap.catalog.account import ROOM, Account
from synthmap.catalog.entries import Adjacency, Charge, Kind
from synthmap.privacy.composition import round_up
from synthmap.privacy.tighter import tighter_epsilon

_IMPLY_DP = ("pdp", "adp", "pure", "dp")  # what passed one of these rules is (ε, δ)-DP at the ε and δ of its charge
_COVERS = {Adjacency.ORIGIN: (Adjacency.ORIGIN,), Adjacency.ORIGIN_OR_SEGMENT: tuple(Adjacency)}
_WORTH = Fraction(99, 100)  # of the plain sum: what is hardly less tells nobody anything, and takes more δ
_Losses = tuple[tuple[Fraction, Fraction, int], ...]


@dataclass(frozen=True)
class Tighter:
    """(ε, δ) of all losses together, rounded up, and the rule that gave it."""

    epsilon: float
    delta: float
    rule: str


def rounds_of(account: Account) -> list[list[Charge]]:
    """Return the losses in rounds: those of a round were all recorded before anything was drawn for one of them.

    So their ε and δ were fixed before the first result of the round was seen, which an entry's place in the chain
    shows. Whatever is recorded after a drawing may have been chosen in the light of it: it begins another round. A loss
    that was refunded counts unless its round was open still.
    """
    found: list[list[Charge]] = []
    current: dict[str, Charge] = {}
    for body in (entry.body for entry in account.entries):
        if body.charge is not None:
            current[body.name] = body.charge
        elif body.kind is Kind.REFUND:
            current.pop(body.name, None)
        elif body.kind is Kind.DRAWING and current:
            found.append(list(current.values()))
            current = {}
    return [*found, list(current.values())] if current else found


def losses_of(charge: Charge, adjacency: Adjacency, max_jobs_per_worker: int) -> _Losses | None:
    """Return a charge as (ε, δ)-DP losses, each with randomness of its own: (ε, δ, times).

    None if they are not (ε, δ)-DP for that change of that many jobs: then no rule for compositions may be applied.
    """
    if charge.rule not in _IMPLY_DP or adjacency not in _COVERS[charge.adjacency]:
        return None
    if charge.max_jobs_per_worker != max_jobs_per_worker:
        return None
    found = []
    for part in charge.parts:
        epsilon, delta, times = Fraction(part.epsilon), Fraction(part.delta), part.times
        # Only "table" promises every time on its own; under adp it may have been noise certified for all times at once
        if part.name != "table" or charge.rule == "adp":
            epsilon, delta, times = times * epsilon, times * delta, 1
        found.append((epsilon, delta, times))
    return tuple(found)


def tighter_sum(account: Account) -> Tighter | None:
    """Return a sum of all losses below the plain one, within the budget's δ; None if there is none worth telling.

    Inside a round losses are composed as `tighter_epsilon` does, at the share of the budget's δ that the round's ε is
    of the budget's; rounds add up.
    """
    adjacency, jobs = account.adjacency, account.max_jobs_per_worker
    if account.budget is None or adjacency is None or jobs is None:
        return None
    ceiling, most = account.budget
    epsilon = delta = Fraction(0)
    rule, rounds = None, rounds_of(account)
    for charges in rounds:
        told = [losses_of(charge, adjacency, jobs) for charge in charges]
        if None in told:
            return None
        losses = tuple(loss for one in told if one is not None for loss in one)
        plain = sum((e * times for e, _, times in losses), Fraction(0))
        share = most * plain / ceiling
        if (found := _tighter_epsilon(losses, share)) is not None:
            epsilon, delta, rule = epsilon + Fraction(found[0]), delta + share, found[1]
        else:
            epsilon, delta = epsilon + plain, delta + sum((d * times for _, d, times in losses), Fraction(0))
    if rule is None or epsilon > _WORTH * account.spent[0] or delta > most * ROOM:
        return None
    return Tighter(round_up(epsilon), round_up(delta), rule + _over(len(rounds)))


def _over(rounds: int) -> str:
    """Return how rounds add up."""
    before = "; recorded before anything was drawn for them"
    return before if rounds == 1 else f"{before}, in each of {rounds} rounds; basic composition of the rounds"


# the public may ask as often as it likes; an account changes seldom
@lru_cache(maxsize=4096)
def _tighter_epsilon(losses: _Losses, delta: Fraction) -> tuple[float, str] | None:
    return tighter_epsilon(losses, delta)
