"""A world in which the public prior is the truth: the mechanism run on it shows what its noise alone does.

Origins are made up from the prior and the release's own plan is run on them. Both tables come from public
figures only, so any measure of the two estimates its expectation under that assumption, and no ε is spent.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synthmap.analysis.read import PublishedPlan
from synthmap.analysis.table import ODTable, Paired
from synthmap.compiled import compiled
from synthmap.errors import ConfigurationError
from synthmap.geography.distance import unit_vectors
from synthmap.geography.hierarchy import ZoneTree, build_tree
from synthmap.geography.prior import NO_TABLE, Prior, PriorModel, PriorTable, prior_from, rank_at, scales_at
from synthmap.geography.zones import Zones
from synthmap.kernels.bounded import KEEP_UNITS
from synthmap.kernels.destination import coarsen, synthesize_many
from synthmap.kernels.histogram import Nested, nest, publish_many
from synthmap.kernels.noise import GEOMETRIC, law_of
from synthmap.kernels.stream import draw_all, seeded_stream
from synthmap.privacy.gaussian import gaussian_tails
from synthmap.release.manifest import Manifest

_RESAMPLING = ("cells_asked", "cells", "size", "alpha_numerator", "alpha_denominator", "keep_units", "finest")
_NOISE = (
    "cells_asked", "groups_asked", "cells", "groups", "noise_units", "group_noise_units", "headcount", "finest",
)  # fmt: skip
_BATCH = 500_000  # workers drawn at once
_SEED = 7_307_119  # unlike any that a demonstration is likely to use: equal seeds would tie the two draws together


@dataclass(frozen=True)
class Setting:
    """What of a release is needed to run its plan again; public."""

    tree: ZoneTree
    model: PriorModel
    points: NDArray[np.float64]
    destination: NDArray[np.int32]
    keep_by_prior: bool
    segments: int
    strength_inside: float
    agreement: bool


def setting_of(manifest: Manifest, plan: PublishedPlan, zones: Zones, table: PriorTable = NO_TABLE) -> Setting:
    """Return the setting of a release over `zones`, which must be those it was made with.

    Parameters
    ----------
    table : PriorTable
        The public table in the release's prior, for a release that has one.

    Raises
    ------
    ConfigurationError
        If the release's prior has a public table and none is given.
    """
    prior, source = manifest.prior, manifest.prior.source
    if source is not None and not table.first.size:
        raise ConfigurationError(f"release {manifest.release}: the prior's table {source.name} must be given")
    mixing = 0.0 if source is None else source.mixing
    return Setting(
        tree=build_tree(zones),
        model=PriorModel(
            prior.scale_km,
            prior.power,
            prior.elsewhere_share,
            mixing,
            prior.strength,
            table,
            np.array(prior.class_edges_km, np.float64),
            np.array(prior.class_scales_km, np.float64),
        ),
        points=unit_vectors(zones.longitude[plan.destination], zones.latitude[plan.destination]),
        destination=plan.destination,
        keep_by_prior=manifest.plan.keep == "prior",
        segments=max(1, len(manifest.segments)),
        strength_inside=manifest.prior.strength_inside or 0.0,
        agreement=manifest.plan.reading == "agreement",
    )


def prior_variances_km2(setting: Setting) -> NDArray[np.float64]:
    """Return the variance of the commute length under the prior seen from each destination, km²."""
    return _variances(setting.tree, setting.model, setting.points, setting.destination)


def prior_world(setting: Setting, plan: PublishedPlan, seed: int = _SEED) -> tuple[ODTable, ODTable] | None:
    """Return a made-up true table and a synthetic one drawn from it by the release's plan.

    The true origins of each destination are n(d) independent draws from its prior. Segments are drawn as one, which
    is the same unless empty cells are dropped; for noisy counts workers are spread over them evenly. The seed is fixed:
    these tables hold no secret, and the same release is to give the same expectation.

    Returns
    -------
    (reference, other) or None
        None where the plan is not one of this geography.
    """
    rng = np.random.default_rng(seed)
    true, drawn = [], []
    edges = np.unique(np.searchsorted(np.cumsum(plan.headcount), np.arange(0, plan.headcount.sum(), _BATCH), "right"))
    for low, high in zip(edges, np.append(edges[1:], plan.headcount.size), strict=True):
        part = slice(int(low), int(high))
        first_row = np.append(0, np.cumsum(plan.headcount[part]))
        origin = _made_up(
            setting.tree,
            setting.model,
            setting.points[part],
            setting.destination[part],
            first_row,
            rng.random(int(first_row[-1])),
        )
        synthetic = _run(setting, plan, part, first_row, origin, seed)
        if synthetic is None:
            return None
        true.append(_table(plan.destination[part], plan.headcount[part], origin))
        drawn.append(_table(plan.destination[part], plan.size[part], synthetic))
    return _joined(true), _joined(drawn)


def _run(
    setting: Setting,
    plan: PublishedPlan,
    part: slice,
    first_row: NDArray[np.int64],
    origin: NDArray[np.int32],
    seed: int,
) -> NDArray[np.int32] | None:
    """Return the synthetic origins of the destinations in `part`, drawn by the kernels of a release."""
    size = plan.size[part]
    keys = np.empty(int(size.sum()), np.int64)
    segments = 1 if plan.resampled else setting.segments
    counts = np.zeros((origin.size, segments), np.int64)
    counts[np.arange(origin.size), np.arange(origin.size) % segments] = 1
    there = setting.tree, setting.model, setting.points[part]
    public = *there, setting.destination[part], scales_at(*there)
    outputs: tuple[NDArray[Any], ...] = (keys,)
    if plan.resampled:
        parameters = _parameters(plan, part, _RESAMPLING)
        parameters[:, 3] *= setting.segments
        draw = partial(synthesize_many, first_row, origin, counts, *public, parameters, setting.keep_by_prior)
        budget = 2 * size + 2 + np.where(plan.keep_units[part] < KEEP_UNITS, size + plan.cells[part] // 16 + 64, 0)
    else:
        parameters = _parameters(plan, part, _NOISE)
        read = setting.strength_inside, setting.agreement
        gaussian = int(plan.gaussian_units[part].max())
        law = law_of(gaussian_tails(gaussian)) if gaussian else GEOMETRIC
        draw = partial(publish_many, first_row, origin, counts, *public, parameters, law, *read)
        budget = 4 * (size + segments * plan.cells[part]) + 128
        outputs = keys, np.empty((keys.size, 2), np.int32)
    status = draw_all(seeded_stream(seed), plan.destination[part], budget, draw, *outputs)
    return None if (status == 2).any() else (keys // segments).astype(np.int32)


def _parameters(plan: PublishedPlan, part: slice, names: tuple[str, ...]) -> NDArray[np.int64]:
    """Return columns of a plan as the kernels take them."""
    return np.stack([getattr(plan, name)[part] for name in names], axis=1)


def _table(destination: NDArray[np.int32], workers: NDArray[np.int64], origin: NDArray[np.int32]) -> ODTable:
    """Return one row a worker."""
    return ODTable(origin, np.repeat(destination, workers), np.ones(origin.size, np.int64))


def _joined(tables: list[ODTable]) -> ODTable:
    return ODTable(
        np.concatenate([t.origin for t in tables]),
        np.concatenate([t.destination for t in tables]),
        np.concatenate([t.count for t in tables]),
    )


def in_cells(paired: Paired, setting: Setting, plan: PublishedPlan) -> Paired | None:
    """Return the flows with each origin replaced by its cell, numbered within the destination.

    These are the tables between which the mechanism works: cells of the plan, before they are spread over zones.
    None where the plan's destinations are not those of the table, or its cells not those of this geography.
    """
    starts = paired.starts
    if not np.array_equal(paired.destination[starts], plan.destination):
        return None
    cell = _cells(
        setting.tree,
        setting.model,
        setting.points,
        setting.destination,
        np.append(starts, paired.origin.size),
        paired.origin,
        plan.finest,
        np.stack([plan.cells_asked, plan.groups_asked], axis=1),
        plan.cells,
        plan.resampled,
    )
    if (cell < 0).any():
        return None
    return Paired(cell, paired.destination, paired.reference, paired.other, int(plan.cells.max())).merged()


@compiled
def domain_planned(
    tree: ZoneTree, point: NDArray[np.float64], prior: Prior, finest: int, asked: tuple[int, int], resampled: bool
) -> Nested:
    """Return the domain of so many (cells, groups) asked for by a plan; that of one that resamples is one group."""
    if resampled:
        bounds = coarsen(tree, point, prior, finest, asked[0], asked[0])
        return Nested(bounds, np.zeros(bounds.size - 1, np.int64), 1)
    return nest(tree, point, prior, finest, asked)


@compiled
def _variances(
    tree: ZoneTree, model: PriorModel, points: NDArray[np.float64], destination: NDArray[np.int32]
) -> NDArray[np.float64]:
    out = np.empty(len(points))
    for d in range(len(points)):
        out[d] = prior_from(tree, model, points[d], destination[d]).variance_km2
    return out


@compiled
def _made_up(
    tree: ZoneTree,
    model: PriorModel,
    points: NDArray[np.float64],
    destination: NDArray[np.int32],
    first_row: NDArray[np.int64],
    uniform: NDArray[np.float64],
) -> NDArray[np.int32]:
    """Return origins drawn from the prior of each destination, ascending."""
    out = np.empty(uniform.size, np.int32)
    for d in range(len(points)):
        prior = prior_from(tree, model, points[d], destination[d])
        total = prior.mass[-1]
        for row in range(first_row[d], first_row[d + 1]):
            out[row] = rank_at(prior, tree.cumulative, min(total - 1, np.int64(uniform[row] * total)))
        out[first_row[d] : first_row[d + 1]].sort()
    return out


@compiled
def _cells(
    tree: ZoneTree,
    model: PriorModel,
    points: NDArray[np.float64],
    destination: NDArray[np.int32],
    first_row: NDArray[np.int64],
    origin: NDArray[np.int32],
    finest: NDArray[np.int64],
    asked: NDArray[np.int64],
    cells: NDArray[np.int64],
    resampled: bool,
) -> NDArray[np.int32]:
    """Return the cell of each row's origin; −1 throughout a destination whose domain is not as planned."""
    out = np.full(origin.size, -1, np.int32)
    for d in range(len(points)):
        prior = prior_from(tree, model, points[d], destination[d])
        bounds = domain_planned(tree, points[d], prior, finest[d], (asked[d, 0], asked[d, 1]), resampled).bounds
        if bounds.size - 1 == cells[d]:
            for row in range(first_row[d], first_row[d + 1]):
                out[row] = np.searchsorted(bounds, origin[row], side="right") - 1
    return out
