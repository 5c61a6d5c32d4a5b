"""The guarantee of a release in words, made from its manifest alone."""

import math

from synthmap.release.manifest import Manifest


def statement(manifest: Manifest) -> str:
    """Return the privacy statement of a release as plain text."""
    privacy = manifest.privacy
    lines = [f"{manifest.title or manifest.name} (release {manifest.release})", ""]
    if not manifest.private:
        lines += [f"NOT PRIVATE: {manifest.warning}", ""]
    lines += [
        "What is published: synthetic workers by destination and origin. Origins are drawn; "
        + "; ".join(manifest.invariants.statements)
        + ".",
        f"What is protected: {privacy.unit}",
        f"Neighbouring tables: {privacy.adjacency}",
        f"Promise: (ε, δ)-differential privacy with ε = {privacy.dp.epsilon:g}, "
        f"δ = {privacy.dp.delta:.3g}, for this table and all that is derived from it.",
    ]
    if privacy.pdp_cells is not None:
        lines.append(
            f"At cell level also (ε, δ)-probabilistic DP (OnTheMap's form): ε = {privacy.pdp_cells.epsilon:g}, "
            f"δ = {privacy.pdp_cells.delta_destination:.3g} for a destination, "
            f"{privacy.pdp_cells.delta_table:.3g} for the whole table."
        )
    lines.append(f"In odds: {odds(privacy.dp.epsilon, probabilistic=privacy.rule != 'adp')}")
    lines += [f"Assumed: {text}" for text in privacy.assumptions]
    lines += ["", "How much is prior, not data (mean share of a destination's synthetic workers):"]
    for part in manifest.plan.classes:
        sizes = (
            f"{part.headcount_from:,}"
            if part.headcount_from == part.headcount_to
            else f"{part.headcount_from:,}–{part.headcount_to:,}"
        )
        lines.append(f"  {sizes:>17} workers: {part.prior_share_mean:6.1%} prior  ({part.destinations:,} destinations)")
    lines += ["", "Do not read single zones as facts: block figures are mostly chance; sum them up."]
    return "\n".join(lines)


def odds(epsilon: float, *, probabilistic: bool) -> str:
    """Return in words how far the table can move an attacker's belief about one worker's home.

    Only probabilistic DP bounds beliefs outside an event of probability δ; (ε, δ)-DP bounds
    only the probabilities of events.
    """
    if not probabilistic:
        return (
            f"any event is at most {math.exp(min(epsilon, 700.0)):.4g} times as likely, plus δ, whether a worker lives "
            "here or there. This rule does not bound how often one belief moves by more than that."
        )
    ratio = math.exp(min(epsilon, 700.0))
    before = 0.01
    after = before * ratio / (before * ratio + 1 - before)
    return (
        f"but for a chance of at most δ, it multiplies the odds of any guess about one job's home by at most "
        f"{ratio:.4g}; a guess that is 1 % likely beforehand is at most {100 * after:.3g} % likely afterwards."
    )
