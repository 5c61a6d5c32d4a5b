"""What a statement says in words, made from its facts: sentences shared by text, page and record."""

import math
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

from synthmap.privacy.shown import shown_loss, shown_losses
from synthmap.release import statement_lengths as lengths
from synthmap.release.statement_facts import Facts, Odds, PriorShare

ADVICE = "Do not read single zones as facts: block figures are mostly chance; sum them up."
LEDGER = (
    "Losses of several releases from the same confidential table add up. Where the curator keeps the ledger of "
    "synthmap, /ledger of the service that publishes this release shows the dataset's budget, what was spent and what "
    "is left: the budget is the most that all releases and published measurements together may ever cost one person, "
    "in the same ε and δ as here. A release outside a ledger is accounted for by nobody but its curator."
)
SERVICE = (
    "Service (the program that publishes): reads finished releases, and need not be trusted with secrets, unless the "
    "curator lets `evaluate` run as a job, for this release or another of the same table: the figures of such a job "
    "are exact, as confidential as the table, and lie where the service reads them for curators (<store>/.metrics/). "
    "Then it, and whoever runs its machine, is trusted with those. `synthmap evaluate` at the command line leaves none "
    "there."
)
TRUST = (
    "The central model: the curator and the machine that draws see the confidential table. Readers, and whoever "
    "attacks them, see the release only, all of it, with any other knowledge. So does the service, but for the exact "
    "figures of `evaluate` where the curator had these made by a job: they lie in its store, and it is trusted with "
    "them."
)
NOT_PROTECTED = (
    "The number of workers at each destination, which zones are destinations, and all totals of these: exact.",
    "What is true of people in general: that a factory draws its workers from the next village can be learned, and "
    "applied to anyone known to work there, whether or not that person is in the table.",
    "Guesses about one worker that lean on others whose homes go with that worker's, such as a household that moves "
    "together: the bounds are for one worker, all others being given.",
    "The confidential table itself where it is kept, the machine that drew the release, and exact figures that the "
    "curator measured with `evaluate`, where these are kept: who can read them needs no release.",
)


def amounts(facts: Facts) -> str:
    """Return ε and δ for people."""
    return shown_losses(facts.dp.epsilon, facts.dp.delta)


def kind_and_amounts(epsilon: float, delta: float) -> tuple[str, str]:
    """Return what a release is, in words for sentences of others, and with which ε and δ; without δ where that is 0.

    Examples
    --------
    >>> kind_and_amounts(4.0, 1e-5), kind_and_amounts(4.0, 0.0)
    (('(ε, δ)-differentially private', 'ε = 4, δ = 1e-05'), ('ε-differentially private', 'ε = 4'))
    """
    if delta == 0:
        return "ε-differentially private", f"ε = {shown_loss(epsilon)}"
    return "(ε, δ)-differentially private", shown_losses(epsilon, delta)


def promise(facts: Facts) -> list[str]:
    """Return the promise in sentences, each with what it is about."""
    kind = "ε-differential privacy" if facts.form == "pure" else "(ε, δ)-differential privacy"
    found = [
        f"Promise: {kind} with {amounts(facts)}, for this table and all that is derived from it.",
    ]
    if facts.pdp_cells is not None and facts.form == "probabilistic":
        found.append(
            f"At cell level also (ε, δ)-probabilistic DP (OnTheMap's form): "
            f"{shown_losses(facts.pdp_cells.epsilon, facts.pdp_cells.delta_destination)} for a destination, "
            f"δ = {shown_loss(facts.pdp_cells.delta_table, 3)} for the whole table."
        )
    return found + lengths.promised(facts)


def odds(one: Odds, facts: Facts) -> str:
    """Return in words how far the release can move an attacker's belief about one worker."""
    whose = "one job's home" if one.jobs == 1 else f"the homes of up to {one.jobs} jobs of a worker together"
    if facts.segments:
        whose = whose.replace("home", "home and segment", 1)
    chance = ""
    if one.chance > 0:
        most = shown_loss(one.chance, 3)
        # 1 in so many is that of the figure beside it: 1 / 1e-5 in floats is 99,999.99…
        chance = f"but for a chance of at most {most} (1 in {math.floor(1 / Fraction(most)):,}), "
    if one.factor is None:
        return f"In odds: ε = {shown_loss(one.epsilon)} is too large to bound anything about {whose}."
    return (
        f"In odds: {chance}the release multiplies the odds that an attacker gives to the truth about {whose} by at "
        f"most {one.factor:g}; what seemed {percent(one.beliefs[1].prior)} likely beforehand seems at most "
        f"{percent(one.beliefs[1].posterior, up=True)} likely afterwards."
    )


def odds_note(facts: Facts) -> str:
    """Return for whom the bounds on beliefs hold, and why they are what they are."""
    everyone = "These bounds hold for an attacker who knows where all others live, and for one who knows or sees less"
    if facts.form == "pure":
        return f"{everyone}. There is no chance of failure: δ is 0."
    if facts.form == "approximate":
        return (
            f"{everyone}. Plain (ε, δ)-DP bounds the probability of every event; how often a belief moves it bounds "
            "only at twice exp(ε), with twice δ as the chance of more: those are the figures here."
        )
    return (
        "These bounds hold for an attacker who sees the whole table and knows where all other workers live. For one "
        "who sees only sums or maps, or knows less, the factor and the chance are at most twice as large."
    )


def prior(facts: Facts) -> str:
    """Return below which size figures are mostly prior, and what is prior at every size."""
    mostly = facts.mostly_prior
    whole = f"{percent(facts.prior_share)} of all origins are expected to come from the public prior, not from data."
    inside = "A destination's origins are told apart in cells; in which zone of its cell one lies is always prior."
    inside += lengths.fitted_prior(facts)
    if mostly is None:
        return f"{whole} {inside}"
    if mostly.below is None:
        below = f"At no destination are more than half of them; the largest share at one is {percent(mostly.largest)}."
    else:
        below = (
            f"Below {mostly.below:,} workers more than half of a destination's origins can be prior: "
            f"{mostly.destinations:,} of {facts.destinations:,} destinations, with {percent(mostly.workers_share)} of "
            "all workers, are like that."
        )
    return f"{whole} {below} {inside}"


def sizes(one: PriorShare) -> str:
    """Return a class of headcounts."""
    if one.headcount_from == one.headcount_to:
        return f"{one.headcount_from:,}"
    return f"{one.headcount_from:,}–{one.headcount_to:,}"


def percent(share: float, *, up: bool = False) -> str:
    """Return a share in percent, three digits, never rounded to nothing or all; a bound is rounded up.

    Examples
    --------
    >>> percent(0.001), percent(0.35547, up=True), percent(0.99999), percent(0)
    ('0.1 %', '35.6 %', 'over 99.9 %', '0 %')
    """
    context = Context(prec=3, rounding=ROUND_CEILING if up else ROUND_HALF_EVEN)
    if 0.999 < share < 1 and not up:
        return "over 99.9 %"
    value = context.plus(context.create_decimal(Decimal(repr(share))) * 100)
    return f"{value.normalize():f} %"
