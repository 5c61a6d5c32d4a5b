"""How faithful a release is to the confidential tables it was made from. The result stays with the curator."""

from pathlib import Path
from typing import Literal

import numpy as np

from synthmap.analysis.classes import ByDestination
from synthmap.analysis.comparison import Comparison, measure
from synthmap.analysis.expectation import Expected, expectation
from synthmap.analysis.measures import PairCounts, common_part, count_pairs
from synthmap.analysis.prior_table import read_prior_table
from synthmap.analysis.prior_world import in_cells, setting_of
from synthmap.analysis.read import PublishedPlan, read_od, read_plan, read_zones_of
from synthmap.analysis.table import ODTable, pair
from synthmap.confidential.duplicates import merge_tables
from synthmap.confidential.table import Chunk, one_row_a_worker, read_table
from synthmap.errors import ConfigurationError, VintageError
from synthmap.geography.prior import NO_TABLE, PriorTable
from synthmap.geography.read import read_zones
from synthmap.geography.zones import Zones, difference
from synthmap.release.manifest import Manifest, read_manifest
from synthmap.release.verify import verify
from synthmap.spec import Spec

NOTE = (
    "measured on the confidential tables without noise: stays with the curator; publishing any of it would need a "
    "privacy budget of its own. `expected` is made from public figures only."
)


class Fidelity(Comparison):
    """The measures of a release against its confidential tables; confidential.

    Attributes
    ----------
    confidential : True
    note : str
        Why, for whoever finds the file.
    release, spec : str
        What was judged, and the name of the spec that says against what.
    cpc_cells : float or None
        Common part of the tables of cells, between which the mechanism works; None where the release's cells
        cannot be made again over these zones.
    pairs_cells : PairCounts or None
        Spurious and missing pairs of cell and destination; None likewise.
    expected : Expected
        From public figures only; stands beside the measured values.
    """

    confidential: Literal[True] = True
    note: str = NOTE
    release: str
    spec: str
    cpc_cells: float | None
    pairs_cells: PairCounts | None
    expected: Expected


def evaluate(release_directory: Path, spec: Spec) -> Fidelity:
    """Return how faithful the release in `release_directory` is to the tables of `spec`.

    **No guarantee**: the result is a function of confidential data without noise and must not be published.

    Parameters
    ----------
    release_directory : Path
    spec : Spec
        The spec of the release, or one with the same zones, tables, `outside`, `duplicates` and prior table.

    Raises
    ------
    ConfigurationError
        If the release was not made from these zones and tables.
    VintageError
        If the zones are of another vintage than the release's.
    ReleaseError
        If the release is not whole.
    """
    return evaluate_by_destination(release_directory, spec)[0]


def evaluate_by_destination(release_directory: Path, spec: Spec) -> tuple[Fidelity, ByDestination]:
    """Return `evaluate`, and the figures of each destination for plots; both confidential."""
    directory = release_directory.absolute()
    manifest = read_manifest(directory)
    verify(directory)
    zones = same_zones(directory, manifest, spec)
    plan, published = read_plan(directory, zones), read_od(directory, manifest, zones)
    confidential = read_confidential(spec, zones)
    check_totals(manifest, plan, confidential)
    paired = pair(confidential, published, len(zones))
    found, by_destination = measure(paired, zones)
    setting = setting_of(manifest, plan, zones, _prior_table(manifest, spec, zones))
    cells = in_cells(paired, setting, plan)
    fields = {name: getattr(found, name) for name in Comparison.model_fields}
    fidelity = Fidelity(
        **fields,
        release=manifest.release,
        spec=spec.name,
        cpc_cells=None if cells is None else common_part(cells),
        pairs_cells=None if cells is None else count_pairs(cells),
        expected=expectation(manifest, plan, setting, zones),
    )
    return fidelity, by_destination


def read_confidential(spec: Spec, zones: Zones) -> ODTable:
    """Return all tables of `spec` as one, every pair once by the spec's policy, segments summed. Confidential.

    Raises
    ------
    ConfidentialDataError
        If a table breaks a rule.
    UnknownZoneError
        If an id is not one of the zones and the spec does not place it elsewhere.
    """
    listed: list[Chunk] = []
    flows: list[Chunk] = []
    for table in spec.tables:
        chunks = list(read_table(table, zones, segments=(), outside=spec.outside))
        (listed if one_row_a_worker(table) else flows).extend(chunks)
    destination, origin, counts = merge_tables(listed, flows, policy=spec.duplicates, zones=zones)
    return ODTable(origin, destination, counts[:, 0])


def same_zones(directory: Path, manifest: Manifest, spec: Spec) -> Zones:
    """Return the zones of the verified release in `directory` after checking that `spec` has the same."""
    if manifest.zones.vintage != spec.zones.vintage:
        raise VintageError(
            f"release {manifest.release}: vintage of the zones ({manifest.zones.vintage}) must be that of the spec "
            f"({spec.zones.vintage}); evaluate against the spec of the release"
        )
    zones = read_zones(spec.zones)
    if len(zones) != manifest.zones.zones or list(zones.levels) != manifest.zones.levels:
        raise ConfigurationError(
            f"release {manifest.release}: zones ({manifest.zones.zones}, levels {', '.join(manifest.zones.levels)}) "
            f"must be those of the spec ({len(zones)}, levels {', '.join(zones.levels)}); evaluate against the spec of "
            f"the release"
        )
    own = read_zones_of(directory, manifest)
    if other := difference(own, zones):
        raise ConfigurationError(
            f"release {manifest.release}: zones must be those of the spec, which has other {other}; evaluate against "
            f"the spec of the release"
        )
    return own


def _prior_table(manifest: Manifest, spec: Spec, zones: Zones) -> PriorTable:
    """Return the public table in the release's prior, which the spec must name."""
    if manifest.prior.source is None:
        return NO_TABLE
    table, source = read_prior_table(spec, zones)
    if source is None or source.sha256 != manifest.prior.source.sha256:
        raise ConfigurationError(
            f"release {manifest.release}: the spec's prior must be the release's own, {manifest.prior.source.name}; "
            "evaluate against the spec of the release"
        )
    return table


def check_totals(manifest: Manifest, plan: PublishedPlan, table: ODTable) -> None:
    """Refuse tables whose workers by destination are not those that the release publishes exactly.

    The message tells neither totals nor destinations of the tables, which may be others than the release's.
    """
    size = 1 + max(int(plan.destination.max()), int(table.destination.max()))
    true = np.bincount(table.destination, table.count, size)
    stated = np.bincount(plan.destination, plan.headcount, size)
    if not np.array_equal(true, stated):
        raise ConfigurationError(
            f"release {manifest.release}: workers at each destination must be those of the tables in the spec; they "
            f"are not: evaluate against the tables and the `outside` that the release was made with"
        )
