"""Whether a release contradicts itself: what its manifest says, in words and figures, against its own plan and zones.

A lie that is told alike everywhere stays unseen: a manifest is not signed, and whether a table was drawn from the prior
alone, as a destination of one cell says, can only be guessed from it. What the plan claims of its noise is certified in
`synthmap.mechanism.recertify`.
"""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from synthmap.errors import PrivacyParameterError, ReleaseCorruptError
from synthmap.release import wording
from synthmap.release.manifest import Manifest
from synthmap.release.plan_summary import (
    keep_smallest,
    prior_share,
    prior_share_mean,
    resampled,
    summarise_classes,
    summarise_steps,
)

_OF_ZONES = {"id", "weight", "longitude", "latitude", "geometry"}
_OF_PLANS = ("headcount", "synthetic_size", "cells", "epsilon", "delta", "predicted_km")
_RESAMPLING = ("alpha_numerator", "alpha_denominator", "keep_units", "epsilon_dropping")
_NOISE = ("noise_units", "group_noise_units", "prior_share")
_LATER = {"cells_asked", "finest", "gaussian_units", "scale_km", "prior_share"}  # not in the first plans
_REAL = {"epsilon", "delta", "epsilon_dropping", "predicted_km", "prior_share", "scale_km"}  # others are whole numbers
_SAME = 1e-9  # relatively: sums and logarithms may differ in their last digits between machines
Need = Callable[[object, str], None]


def need_of(manifest: Manifest) -> Need:
    """Return a function that raises with its rule, for the release of `manifest`, unless something is true."""

    def need(good: object, rule: str) -> None:
        if not good:
            raise ReleaseCorruptError(f"release {manifest.release}: {rule}")

    return need


def check_consistency(directory: Path, manifest: Manifest, plan: pa.Table) -> None:
    """Raise unless manifest, plan and zones of the release in `directory` say the same.

    Parameters
    ----------
    directory : Path
    manifest : Manifest
    plan : pyarrow.Table
        ``plan.parquet``.

    Raises
    ------
    ReleaseCorruptError
        On the first contradiction.
    """
    need = need_of(manifest)
    _check_numbers(need, plan)
    _check_words(need, manifest)
    _check_zones(need, manifest, directory / "zones.parquet")
    _check_sizes(need, manifest, plan)
    _check_prior(need, manifest, plan)
    _check_choices(need, manifest, plan)
    _check_rule(need, manifest, plan)
    try:
        with np.errstate(all="ignore"):
            _check_figures(need, manifest, plan)
    except (PrivacyParameterError, ZeroDivisionError):
        need(False, "plan.parquet must tell noise that a mechanism can have")


def _check_numbers(need: Need, plan: pa.Table) -> None:
    """Raise unless all that is looked at here is a number of its kind, for every destination."""
    need(plan.num_rows, "plan.parquet must plan a destination")
    own = _RESAMPLING if resampled(plan) else _NOISE
    for name in sorted({*_OF_PLANS, *own, *(_LATER & set(plan.column_names))}):
        need(name in plan.column_names, f"plan.parquet must have a column {name}")
        column, right = plan[name], pa.float64() if name in _REAL else pa.int64()
        need(column.type == right and not column.null_count, f"plan.parquet: {name} must be {right}, and none missing")
        finite = name == "predicted_km" or pc.all(pc.is_finite(column)).as_py()
        need(finite, f"plan.parquet: {name} must be finite at every destination")


def _check_words(need: Need, manifest: Manifest) -> None:
    """Raise unless the manifest's words are those for its own figures."""
    privacy, prior, segments = manifest.privacy, manifest.prior, bool(manifest.segments)
    jobs, scales = privacy.max_jobs_per_worker, bool(prior.class_scales_km)
    told = {
        "privacy.unit": (privacy.unit, wording.unit(segments, jobs)),
        "privacy.adjacency": (privacy.adjacency, wording.adjacency(segments)),
        "privacy.assumptions": (privacy.assumptions, wording.assumptions(jobs, prior.source, prior.class_source)),
        "invariants.statements": (manifest.invariants.statements, list(wording.INVARIANTS)),
        "warning": (manifest.warning, wording.warning(manifest.private, prior.source)),
        "prior.formula": (prior.formula, wording.formula(scales, prior.source)),
    }
    for name, (found, right) in told.items():
        need(found == right, f"the manifest's {name} must be what is said of such a release: {right or 'nothing'}")


def _check_zones(need: Need, manifest: Manifest, path: Path) -> None:
    """Raise unless the manifest's levels are those of ``zones.parquet``."""
    told = manifest.zones
    levels = [name for name in pq.read_schema(path).names if name not in _OF_ZONES]
    need(levels == told.levels, f"the manifest's levels must be those of zones.parquet ({', '.join(levels) or 'none'})")
    need(told.elsewhere or not manifest.prior.elsewhere_share, "elsewhere_share must be 0 where there is no elsewhere")


def _check_sizes(need: Need, manifest: Manifest, plan: pa.Table) -> None:
    """Raise unless as many workers were drawn at each destination as work there."""
    rule = manifest.plan.synthetic_size_rule
    need(rule == wording.SYNTHETIC_SIZE, f"synthetic_size_rule ({rule}) must be {wording.SYNTHETIC_SIZE}")
    headcount, size = plan["headcount"].to_numpy(), plan["synthetic_size"].to_numpy()
    need(np.array_equal(headcount, size), "each destination's headcount n(d) must be its m(d)")
    need(headcount.sum() == manifest.invariants.workers, "headcounts must sum to the manifest's total of workers")


def _check_prior(need: Need, manifest: Manifest, plan: pa.Table) -> None:
    """Raise unless the prior's decay is the plan's, and the manifest says where one by classes comes from."""
    prior = manifest.prior
    edges, scales, lengths = prior.class_edges_km, prior.class_scales_km, prior.lengths
    need(len(scales) == (len(edges) + 1 if edges or scales else 0), "there must be a scale more than class_edges_km")
    told = lengths is not None or (prior.class_source or "").strip() or prior.source is not None
    need(told or not scales, "class_scales_km must come from lengths, from class_source or from a public table")
    need(scales or not (lengths or prior.class_source), "what class_scales_km come from must be told of these only")
    need(not (lengths and prior.class_source), "class_scales_km must come from lengths or from class_source, not both")
    if "scale_km" not in plan.column_names:
        need(not scales, "plan.parquet must tell the scale of each destination's decay")
        return
    known = np.isin(plan["scale_km"].to_numpy(), scales or [prior.scale_km])
    need(known.all(), "the scales of the plan's decay must be those of the manifest")
    if lengths is not None:
        classes = {len(scales), len(lengths.workers), len(lengths.noisy_sums), len(lengths.mean_km)}
        need(len(classes) == 1, "measured lengths must be told of every class")
        need(sum(lengths.workers) == manifest.invariants.workers, "lengths must be those of all workers")


def _check_choices(need: Need, manifest: Manifest, plan: pa.Table) -> None:
    """Raise unless the manifest's mechanism, cells, coarsening and dropping can have made the plan."""
    told = manifest.plan
    urn = resampled(plan)
    need((told.mechanism == "dirichlet") == urn, "the manifest's mechanism must be that of the plan")
    need((told.interval is None) == (not told.reading) == urn, "a reading and an interval must be told of noisy counts")
    columns = {name: plan[name].to_numpy() for name in plan.column_names if name != "destination"}
    gaussian = columns["gaussian_units"].any() if "gaussian_units" in columns else False
    need((told.noise_law == "gaussian") == bool(gaussian), "the manifest's noise_law must be that of the plan")
    smallest = keep_smallest(plan)
    need(_same(told.keep_smallest, smallest), f"the manifest's keep_smallest must be the plan's ({smallest:g})")
    if (keep := _number(told.keep)) is not None:
        need(keep <= smallest, f"the manifest's keep must be at most the plan's smallest ({smallest:g})")
    if "cells_asked" in columns and (cells := _number(told.cells)) is not None:
        need((columns["cells_asked"] == cells).all(), "the manifest's cells must be those that the plan asked for")
    names = (*manifest.zones.levels, "zone")
    need(not told.finest or told.finest in names, "the manifest's finest must be a level of the zones")
    if "finest" in columns:
        distance = columns["finest"] >= 0
        need(told.coarsening != "prior-mass" or not distance.any(), "the plan must be coarsened by prior mass, as told")
        by = (distance | (columns["cells"] == 1)).all()
        need(told.coarsening != "distance" or by, "the plan must be coarsened by distance, as told")
        if told.finest and distance.any():
            finest = names.index(told.finest)
            need((columns["finest"][distance] == finest).all(), "the manifest's finest must be that of the plan")


def _check_rule(need: Need, manifest: Manifest, plan: pa.Table) -> None:
    """Raise unless the promise has the form of its mechanism's, and who pays nothing has one cell."""
    privacy, urn = manifest.privacy, resampled(plan)
    if not urn:
        rule = "adp" if manifest.plan.noise_law == "gaussian" else "pure"
        need(privacy.rule == rule, f"the rule of noisy counts must be {rule}")
    cells = privacy.pdp_cells is not None
    need(cells or not (urn and privacy.rule == "pdp"), "rule pdp must have a promise for cells")
    need(not cells or (urn and privacy.rule != "adp"), "a promise for cells must be by rule pdp or pure, by resampling")
    epsilon, delta = plan["epsilon"].to_numpy(), plan["delta"].to_numpy()
    need((epsilon >= 0).all() and ((delta >= 0) & (delta <= 1)).all(), "ε and δ of the plan must be losses")
    pure = not delta.any() and not privacy.dp.delta
    need(privacy.rule != "pure" or pure, "rule pure must have no δ")
    alone = plan["cells"].to_numpy() * max(1, len(manifest.segments)) == 1
    free = not epsilon[alone].any() and not delta[alone].any()
    need(free, "destinations of one cell must cost nothing: they are drawn from the prior alone")


def _check_figures(need: Need, manifest: Manifest, plan: pa.Table) -> None:
    """Raise unless the manifest's figures of the plan and of its steps are those of the plan."""
    told, segments = manifest.plan, max(1, len(manifest.segments))
    if "prior_share" in plan.column_names:
        share, right = plan["prior_share"].to_numpy(), prior_share(plan, segments)
        alone = plan["cells"].to_numpy() == 1
        good = ((share >= 0) & (share <= 1)).all() and (share[alone] == 1).all() and np.allclose(share, right, _SAME, 0)
        need(good, "plan.parquet: prior_share must be what headcount, cells and noise of each destination make it")
    mean = prior_share_mean(plan, segments)
    need(_same(told.prior_share_mean, mean), f"the manifest's prior_share_mean must be the plan's ({mean:g})")
    classes = summarise_classes(plan, segments)
    need(len(told.classes) == len(classes), f"the manifest must tell the plan's {len(classes)} classes of headcounts")
    for one, found in zip(told.classes, classes, strict=True):
        other = _other(one.model_dump(), found.model_dump())
        name = f"{found.headcount_from} to {found.headcount_to}"
        need(other is None, f"the manifest's {other} of headcounts {name} must be the plan's")
    other = _other(manifest.privacy.steps.model_dump(exclude={"lengths_epsilon"}), summarise_steps(plan))
    need(other is None, f"the manifest's {other} must be that of the plan")


def _other(told: Mapping[str, Any], found: Mapping[str, Any]) -> str | None:
    """Return the name of a figure that is told otherwise than found, 0 where it is not; None if there is none."""
    return next((name for name, value in told.items() if not _same(value, found.get(name, 0.0))), None)


def _same(told: Any, found: Any) -> bool:
    """Return whether two figures are the same, or both None."""
    if told is None or found is None:
        return told is found
    return math.isclose(told, found, rel_tol=_SAME)


def _number(text: str) -> float | None:
    """Return the number that a choice is, None where it is a word."""
    try:
        return float(text)
    except ValueError:
        return None
