"""A `Fidelity` as a text that fits a terminal; as confidential as what it shows."""

from collections.abc import Sequence

from synthmap.analysis.classes import LengthClass
from synthmap.analysis.comparison import Comparison
from synthmap.analysis.expectation import ExpectedClass
from synthmap.analysis.table import ZONE
from synthmap.confidential.fidelity import Fidelity

_ROW = "{:<50} {:>10} {:>10} {:>12}"
_CLASS = "{:>18} {:>12} {:>11} {:>8}" + 2 * "  {:>9} {:>9} {:>10}"
_MOST_LEVELS = 6
_NONE = "–"  # what is not known


def report(found: Fidelity) -> str:
    """Return a table of the main measures, expected values beside measured ones, with how to read it."""
    expected, world = found.expected, found.expected.if_prior_were_true
    lines = [
        f"CONFIDENTIAL. Release {found.release} against the tables of spec {found.spec}; stays with the curator.",
        f"{found.workers:,} workers at {found.destinations:,} destinations; "
        f"{expected.prior_share:.0%} of the synthetic ones are expected from the prior",
        "",
        _ROW.format("", "measured", "expected", "prior true"),
        _km("average commute, absolute error, by worker", found.distance_mae_km, expected.distance_mae_km, world),
        _km(
            "average commute, absolute error, by destination",
            found.distance_mae_km_unweighted,
            expected.distance_mae_km_unweighted,
            world,
            "distance_mae_km_unweighted",
        ),
        _km(
            "average commute, signed error, by worker",
            found.distance_bias_km,
            expected.distance_bias_km,
            world,
            "distance_bias_km",
        ),
        _km(
            "average commute, signed error, by destination",
            found.distance_bias_km_unweighted,
            expected.distance_bias_km_unweighted,
            world,
            "distance_bias_km_unweighted",
        ),
        _km(
            "commute lengths, Wasserstein, whole table",
            found.length_wasserstein_km,
            expected.length_wasserstein_km,
            world,
            "length_wasserstein_km",
        ),
        _km(
            "commute lengths, Wasserstein, by destination",
            found.length_wasserstein_by_destination_km,
            expected.length_wasserstein_by_destination_km,
            world,
            "length_wasserstein_by_destination_km",
        ),
        _row("common part of commute lengths, 2 km classes", found.cpl, expected.cpl, world.cpl if world else None),
        _row("total variation of origin zones, by destination", found.tv, expected.tv, world.tv if world else None),
        *_cells(found),
    ]
    levels = list(found.tv_by_level)[:_MOST_LEVELS]
    keys = [f"{level}/{level}" for level in levels] + [f"{level}/{ZONE}" for level in levels[1:]]
    planned = [*expected.cpc] if expected.tv is None else []  # the one that a histogram was planned for
    keys = list(dict.fromkeys([*keys, *planned]))
    for key in keys:
        lines.append(
            _row(
                f"common part of commuters, {key}",
                found.cpc[key],
                expected.cpc.get(key),
                world.cpc[key] if world else None,
            )
        )
    lines += [
        *_pairs(found, levels[:2]),
        *_residents(found),
        *_gravity(found),
        "",
        *_classes(
            "headcount", "workers", found.by_headcount, expected.by_headcount, world.by_headcount if world else []
        ),
        *_classes(
            "density, jobs within 5 km × 5 km",
            "per km²",
            found.by_density,
            expected.by_density,
            world.by_density if world else [],
        ),
        *_classes("true average commute", "km", found.by_length, expected.by_length, world.by_length if world else []),
        "",
        "expected: in closed form from public figures. Absolute errors of averages, and Wasserstein by destination,",
        "of noisy counts the common part at the level planned, and all by true average commute, with an error of the",
        "prior as large as the plan takes it to be; all else as if the prior were the truth.",
        "prior true: the same plan run on origins made up from the public prior, so noise and drawing alone. What is",
        "not in km is a share; of pairs and cells in one table only, of that table's.",
        f"{_NONE} under expected: there is no closed form; the figure to compare with is that under prior true.",
        "by worker: weighted by workers, as in classes; by destination: each destination once, of classes in the JSON.",
        "By true average commute, short ones look overstated and long ones understated in any noisy table.",
    ]
    return "\n".join(lines)


def _cells(found: Fidelity) -> list[str]:
    """Return rows on the tables of cells, between which the mechanism works."""
    expected = found.expected
    own, other = found.pairs_cells, expected.pairs_cells_if_prior_were_true
    return [
        _row(
            "common part of commuters, cells/zone",
            found.cpc_cells,
            expected.cpc_cells,
            expected.cpc_cells_if_prior_were_true,
        ),
        _row(
            "cells occupied only in the release",
            own.spurious_share if own else None,
            expected.spurious_cells,
            other.spurious_share if other else None,
        ),
        _row(
            "cells occupied only in the tables",
            own.missing_share if own else None,
            expected.missing_cells,
            other.missing_share if other else None,
        ),
    ]


def _pairs(found: Fidelity, levels: Sequence[str]) -> list[str]:
    """Return rows on the pairs of units of each level."""
    world, rows = found.expected.if_prior_were_true, []
    for key in [f"{level}/{level}" for level in levels]:
        own, told, made = found.pairs[key], found.expected.pairs.get(key), world.pairs[key] if world else None
        for name, field in (("release", "spurious_share"), ("tables", "missing_share")):
            values = (getattr(one, field, None) for one in (own, told, made))
            rows.append(_row(f"pairs only in the {name}, {key}", *values))
    return rows


def _residents(found: Fidelity) -> list[str]:
    """Return rows on the workers living in each unit of the coarsest level with several, and of the finest."""
    world = found.expected.if_prior_were_true
    several = [level for level, error in found.marginals.items() if error.units > 1]
    return [
        _row(
            f"workers living in an area are off, {level}",
            found.marginals[level].relative_error,
            found.expected.marginals.get(level),
            world.marginals[level].relative_error if world else None,
        )
        for level in dict.fromkeys([*several[:1], *several[-1:]])
    ]


def _gravity(found: Fidelity) -> list[str]:
    """Return lines on how flows fall with distance."""
    if found.gravity is None:
        return []
    tables, release = found.gravity.reference.distance, found.gravity.other.distance
    world = found.expected.if_prior_were_true
    pairs = ("expected", found.expected.gravity), ("prior true", world.gravity if world else None)
    told = [f"{name} −{fit.reference.distance:.2f}, −{fit.other.distance:.2f}" for name, fit in pairs if fit]
    level = found.gravity.level
    return [
        f"gravity model by {level}: distance to the power −{tables:.2f}, in the release −{release:.2f}",
        *(["    " + "; ".join(told)] if told else []),
    ]


def _row(name: str, measured: float | None, expected: float | None, world: float | None) -> str:
    return _ROW.format(name, *map(_share, (measured, expected, world)))


def _share(value: float | None) -> str:
    return _NONE if value is None else f"{value:.3f}"


def _number(value: float | None) -> str:
    return _NONE if value is None else f"{value:.2f} km"


def _km(
    name: str,
    measured: float | None,
    expected: float | None,
    world: Comparison | None,
    field: str = "distance_mae_km",
) -> str:
    return _ROW.format(name, *map(_number, (measured, expected, getattr(world, field) if world else None)))


def _classes(
    name: str,
    unit: str,
    parts: Sequence[LengthClass],
    expected: Sequence[ExpectedClass],
    world: Sequence[LengthClass],
) -> list[str]:
    """Return lines of errors by class, worker-weighted, beside those that are expected of the same class."""
    closed = {(one.low, one.high): (one.mae_km, one.bias_km) for one in expected}
    made = {(one.low, one.high): (one.error.mae_km, one.error.bias_km) for one in world}
    three = ("measured", "expected", "prior true")
    lines = [
        f"{'by ' + name:<52}{'absolute error, km':>32}{'signed error, km':>32}",
        _CLASS.format(unit, "destinations", "workers", "true km", *three, *three),
    ]
    for part in parts:
        high = "" if part.high is None else f"{part.high:,.4g}" if part.high < 1000 else f"{part.high:,.0f}"
        low = f"{part.low:,.4g}" if part.low < 1000 else f"{part.low:,.0f}"
        label = f"{low} up" if part.high is None else f"{low} to <{high}"
        error = part.error
        (closed_mae, closed_bias), (mae, bias) = (of.get((part.low, part.high), (None, None)) for of in (closed, made))
        lines.append(
            _CLASS.format(
                label,
                f"{error.destinations:,}",
                f"{error.workers:,}",
                f"{error.true_km:.1f}",
                *(_NONE if one is None else f"{one:.2f}" for one in (error.mae_km, closed_mae, mae)),
                *(_NONE if one is None else f"{one:+.2f}" for one in (error.bias_km, closed_bias, bias)),
            )
        )
    return lines
