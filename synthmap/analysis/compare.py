"""Compare two published releases: for instance two years, two ε or two plans."""

from pathlib import Path

from synthmap.analysis.comparison import Comparison, measure
from synthmap.analysis.read import read_od, read_zones_of
from synthmap.analysis.table import pair
from synthmap.errors import GeographyError, VintageError
from synthmap.release.manifest import read_manifest
from synthmap.release.verify import verify


def compare(release_a: Path, release_b: Path) -> Comparison:
    """Return the measures of `release_b` against `release_a` as the reference. Both are public, and so is the result.

    Parameters
    ----------
    release_a, release_b : Path
        Directories of releases over zones of the same ids and vintage; points, weights and levels are those of a.

    Raises
    ------
    VintageError
        If the zones are of different vintages.
    GeographyError
        If the zones have different ids.
    ReleaseError
        If one of them is no release or not whole.
    """
    for release in (release_a, release_b):
        verify(release)
    first, second = read_manifest(release_a), read_manifest(release_b)
    if first.zones.vintage != second.zones.vintage:
        raise VintageError(
            f"release {second.release}: vintage of the zones ({second.zones.vintage}) must be that of "
            f"{first.release} ({first.zones.vintage})"
        )
    zones, others = read_zones_of(release_a, first), read_zones_of(release_b, second)
    if len(zones) != len(others) or (zones.find(others.ids) < 0).any():
        raise GeographyError(f"release {second.release}: zones must have the ids of those of {first.release}")
    paired = pair(read_od(release_a, first, zones), read_od(release_b, second, zones), len(zones))
    return measure(paired, zones)[0]
