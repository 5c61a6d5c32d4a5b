"""Compare two published releases: for instance two years, two ε or two plans."""

import math
from pathlib import Path

from synthmap.analysis.comparison import Comparison, Coverage, measure
from synthmap.analysis.read import read_od, read_zones_of
from synthmap.analysis.table import ZONE, pair
from synthmap.errors import GeographyError, VintageError
from synthmap.geography.zones import difference, same_ids
from synthmap.release.manifest import read_manifest
from synthmap.release.remote_store import on_disk
from synthmap.release.verify import verify

_ROW = "{:<46} {:>12} {:>12}"


class ReleaseComparison(Comparison):
    """The measures of a release against another one, as the reference; public.

    Attributes
    ----------
    reference, release : str
        Their ids.
    other_zones : str
        What the release's zones have otherwise than the reference's, whose are used for both; empty if nothing.
    """

    reference: str
    release: str
    other_zones: str


def compare(release_a: Path, release_b: Path) -> ReleaseComparison:
    """Return the measures of `release_b` against `release_a` as the reference. Both are public, and so is the result.

    Parameters
    ----------
    release_a, release_b : Path
        Releases over zones of the same ids and vintage, directories or addresses (``Path("s3://…")``); both are
        verified first. Points, weights and levels are those of a; `ReleaseComparison.other_zones` tells where those of
        b are others.

    Raises
    ------
    VintageError
        If the zones are of different vintages.
    GeographyError
        If the zones have different ids.
    ReleaseError
        If one of them is no release, or is not whole.
    StorageError
        If an object store does not answer.

    Notes
    -----
    Where a destination is in one release only, measures of single destinations cannot be about it; `Comparison.in_both`
    and `Comparison.with_average` tell how many destinations and workers they cover. Their weights are workers in a.
    Coefficients of the gravity model are each release's own, whichever is the reference, if the zones are the same.
    """
    with on_disk(release_a) as a, on_disk(release_b) as b:
        return _compare(a, b)


def _compare(a: Path, b: Path) -> ReleaseComparison:
    """Return `compare` of two directories."""
    first, second = read_manifest(a), read_manifest(b)
    if first.zones.vintage != second.zones.vintage:
        raise VintageError(
            f"release {second.release}: vintage of the zones ({second.zones.vintage}) must be that of "
            f"{first.release} ({first.zones.vintage})"
        )
    verify(a)
    verify(b)
    zones, others = read_zones_of(a, first), read_zones_of(b, second)
    if not same_ids(zones, others):
        raise GeographyError(f"release {second.release}: zones must have the ids of those of {first.release}")
    found = measure(pair(read_od(a, first, zones), read_od(b, second, zones), len(zones)), zones)[0]
    fields = {name: getattr(found, name) for name in Comparison.model_fields}
    return ReleaseComparison(
        **fields, reference=first.release, release=second.release, other_zones=difference(zones, others)
    )


def report(found: ReleaseComparison) -> str:
    """Return the main measures as a text."""
    own = found.pairs[f"{ZONE}/{ZONE}"]
    lines = [
        f"Release {found.release} against {found.reference}.",
        "Both are public, and so is this. It shows what differs in truth and the noise of both.",
    ]
    if found.other_zones:
        lines += [
            f"The zones of {found.release} have other {found.other_zones};",
            f"for both, those of {found.reference} are used.",
        ]
    lines += [
        "",
        f"Whole tables: {found.workers:,} workers instead of {found.workers_reference:,}, at {found.destinations:,} "
        "destinations of either",
        _row("mean commute of all workers", _km(found.mean_km), f"was {_km(found.mean_km_reference)}"),
        _row("commute lengths, Wasserstein, whole table", _km(found.length_wasserstein_km)),
        _row("common part of commute lengths, 2 km classes", _share(found.cpl)),
        *[_row(f"common part of commuters, {key}", _share(value)) for key, value in found.cpc.items() if _same(key)],
        f"pairs of zones: {own.spurious_share:.0%} of this release's are not in the other, "
        f"{own.missing_share:.0%} of the other's are not in this",
        *_gravity(found),
        "",
        f"Destinations in both: {_covered(found.in_both)}",
        _row("total variation of origin zones, by worker", _share(found.tv)),
        "",
        f"Destinations with an average commute in both: {_covered(found.with_average)}",
        _row("average commute, absolute difference, by worker", _km(found.distance_mae_km)),
        _row("average commute, signed difference, by worker", _km(found.distance_bias_km)),
        "",
        "by worker: weighted by the other release's workers. Who is from elsewhere has no length.",
    ]
    return "\n".join(lines)


def _covered(of: Coverage) -> str:
    """Return how many destinations and workers a group of rows is about."""
    return f"{of.destinations:,}, with {of.workers:,} workers instead of {of.workers_reference:,}"


def _gravity(found: ReleaseComparison) -> list[str]:
    """Return lines on how flows fall with distance in either release, each by its own workers at destinations."""
    if found.gravity is None:
        return []
    own, other, level = found.gravity.other, found.gravity.reference, found.gravity.level
    return [
        f"gravity model by {level}: distance to the power −{own.distance:.2f}, was −{other.distance:.2f}",
        f"  each fitted to its own workers between different units: {own.workers:,} to {own.destinations:,} units, "
        f"were {other.workers:,} to {other.destinations:,}",
    ]


def _same(key: str) -> bool:
    """Return whether a key of `cpc` names one level twice."""
    origin, destination = key.split("/")
    return origin == destination


def _row(name: str, *values: str) -> str:
    return _ROW.format(name, *values, *[""] * (2 - len(values))).rstrip()


def _share(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"{value:.3f}"


def _km(value: float | None) -> str:
    return "" if value is None else f"{value:.2f} km"
