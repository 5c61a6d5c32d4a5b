"""What a statement adds where mean commute lengths were measured, with noise, before the table was planned.

Every function returns nothing where none were: such statements have no word of it.
"""

from synthmap.privacy.shown import shown_loss
from synthmap.release.statement_facts import Facts


def promised(facts: Facts) -> list[str]:
    """Return that the promise covers them, what they took of it, and where they are published."""
    if facts.lengths is None:
        return []
    whole = "the ε above" if facts.max_jobs_per_worker == 1 else "each job's ε"
    return [
        f"The promise covers what was measured before the table was planned: {_measured(facts)}. That took "
        f"ε = {shown_loss(facts.lengths.epsilon)} of {whole}; the sums are published in the manifest (prior.lengths). "
        "What shapes the table's noise comes from public data and from these published figures."
    ]


def fitted_prior(facts: Facts) -> str:
    """Return what of the prior is not public data."""
    if facts.lengths is None:
        return ""
    return (
        " The prior is public data, but for its decay with distance: that was fitted to the mean commute lengths that "
        "were measured with noise."
    )


def mechanism(facts: Facts) -> str:
    """Return what is done before the table is planned."""
    if facts.lengths is None:
        return ""
    return f"Before the table is planned: {_measured(facts)}, drawn as an integer, exactly, too. "


def verified(facts: Facts) -> str:
    """Return the same, and who checks it."""
    if facts.lengths is None:
        return ""
    return f" {mechanism(facts)}`synthmap verify` certifies that noise again as well."


def tuning(facts: Facts) -> str:
    """Return of what else the plan is made, and what tuning costs."""
    if facts.lengths is None:
        return " alone, so tuning costs nothing"
    return (
        ", and from mean commute lengths that were measured with noise first, to which the prior's decay was fitted. "
        f"Measuring took ε = {shown_loss(facts.lengths.epsilon)} for one job, which is in the ε stated here; all other "
        "tuning costs nothing"
    )


def composition(facts: Facts) -> str:
    """Return how their loss adds up with the table's."""
    if facts.lengths is None:
        return ""
    return (
        "Lengths and table in sequence: their ε add up. Each worker of a destination is in the sum of one class, so "
        "all classes together cost what one does. "
    )


def parameters(facts: Facts) -> list[str]:
    """Return their part of what was certified for one job."""
    if facts.lengths is None:
        return []
    return [f"In that, ε = {shown_loss(facts.lengths.epsilon)} for commute lengths, measured before the table."]


def _measured(facts: Facts) -> str:
    lengths = facts.lengths
    assert lengths is not None  # noqa: S101
    of = "all destinations together" if lengths.classes == 1 else f"{lengths.classes} classes of destinations"
    return (
        f"mean commute lengths of {of}, from sums of lengths (cut off at {lengths.cap_km:.4g} km) with two-sided "
        "geometric noise"
    )
