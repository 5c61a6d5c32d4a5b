"""All measures of two tables at once, as one object that becomes JSON."""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from synthmap.analysis import classes
from synthmap.analysis.classes import ByDestination
from synthmap.analysis.gravity import GravityFit, gravity
from synthmap.analysis.lengths import (
    BIN_KM,
    LengthError,
    common_part_of_lengths,
    length_error,
    mean_lengths,
    wasserstein_by_destination_km,
    wasserstein_km,
)
from synthmap.analysis.measures import (
    MarginalError,
    PairCounts,
    common_part,
    count_pairs,
    marginal_error,
    total_variation,
    weighted_mean,
)
from synthmap.analysis.table import ZONE, Paired, by_levels, pair_km, units_by_level
from synthmap.geography.zones import Zones


@dataclass(frozen=True)
class Coverage:
    """The destinations that a group of measures is about, and how many work there in either table."""

    destinations: int
    workers_reference: int
    workers: int


class Comparison(BaseModel):
    """A table judged against a reference over the same zones.

    Attributes
    ----------
    workers_reference, workers, destinations : int
        Of whole tables; destinations of either. So are all measures that `in_both` and `with_average` do not name.
    in_both : Coverage
        Destinations with workers in both tables: all that ``tv…`` are about.
    with_average : Coverage
        Destinations whose average commute both tables tell, that is with origins on the map in both: all that
        ``distance_…``, ``length_wasserstein_by_destination_km`` and ``by_…`` are about.
    distance_mae_km, distance_bias_km : float or None
        Of destinations' average commutes, absolute and signed, weighted by workers in the reference; with
        ``_unweighted``, each destination once. None where no destination has an average.
    mean_km_reference, mean_km : float or None
        Mean commute of all workers.
    length_wasserstein_km, length_wasserstein_by_destination_km : float or None
        Of commute lengths over all workers, and worker-weighted mean over destinations.
    cpl : float or None
        Common part of commute lengths in classes of 2 km.
    tv, tv_unweighted : float
        Mean over destinations (worker-weighted, or each once) of the total variation distance of origin *zones*.
        Worker-weighted, it is 1 − ``cpc["zone/zone"]`` where every destination has as many workers in both tables.
    tv_by_level : dict
        The same of origin units of each level, worker-weighted; under the same condition 1 − ``cpc["level/zone"]``.
    cpc : dict
        Common part of commuters by ``origin_level/destination_level``.
    pairs : dict
        Spurious and missing pairs by ``level/level``.
    marginals : dict
        Workers by area of residence, by level.
    gravity : GravityFit or None
    by_headcount, by_density, by_length : list
        Errors of average commutes by class of destination: workers, workers per km², km.
    elsewhere_share_reference, elsewhere_share : float
        Share of workers whose origin is elsewhere.
    """

    model_config = ConfigDict(frozen=True)

    workers_reference: int
    workers: int
    destinations: int
    in_both: Coverage
    with_average: Coverage
    distance_mae_km: float | None
    distance_mae_km_unweighted: float | None
    distance_bias_km: float | None
    distance_bias_km_unweighted: float | None
    distance_rmse_km: float | None
    mean_km_reference: float | None
    mean_km: float | None
    length_wasserstein_km: float | None
    length_wasserstein_by_destination_km: float | None
    cpl: float | None
    tv: float
    tv_unweighted: float
    tv_by_level: dict[str, float]
    cpc: dict[str, float]
    pairs: dict[str, PairCounts]
    marginals: dict[str, MarginalError]
    gravity: GravityFit | None
    by_headcount: list[classes.LengthClass]
    by_density: list[classes.LengthClass]
    by_length: list[classes.LengthClass]
    elsewhere_share_reference: float
    elsewhere_share: float

    def to_json(self) -> dict[str, Any]:
        """Return it as plain values; what is not known (NaN) is null."""
        found = _plain(self.model_dump())
        assert isinstance(found, dict)  # noqa: S101
        return found


def measure(paired: Paired, zones: Zones) -> tuple[Comparison, ByDestination]:
    """Return all measures of two tables at zone level, and what is measured at each destination (for figures)."""
    units = units_by_level(zones)
    km = pair_km(paired.origin, paired.destination, zones)
    lengths = mean_lengths(paired, km)
    weight = lengths.headcount
    weight_other = np.add.reduceat(paired.other, paired.starts) if weight.size else weight
    cpc: dict[str, float] = {}
    pairs: dict[str, PairCounts] = {}
    variation: dict[str, float] = {}
    tv_unweighted = float("nan")
    for origin_level, destination_level, flows in by_levels(paired, units):
        cpc[f"{origin_level}/{destination_level}"] = common_part(flows)
        if origin_level == destination_level:
            pairs[f"{origin_level}/{destination_level}"] = count_pairs(flows)
        if destination_level == ZONE:
            each = total_variation(flows)
            variation[origin_level] = weighted_mean(each, weight)
            if origin_level == ZONE:
                tv_unweighted = weighted_mean(each, np.ones(each.size))
    density = classes.jobs_per_km2(lengths.destination, weight, zones)
    error = length_error(lengths)
    away = paired.origin == len(zones)
    workers_reference, workers = int(paired.reference.sum()), int(paired.other.sum())
    found = Comparison(
        workers_reference=workers_reference,
        workers=workers,
        destinations=int(weight.size),
        in_both=_coverage(weight, weight_other, (weight > 0) & (weight_other > 0)),
        with_average=_coverage(weight, weight_other, ~np.isnan(lengths.error)),
        **_error_fields(error),
        mean_km_reference=_known(weighted_mean(km, paired.reference)),
        mean_km=_known(weighted_mean(km, paired.other)),
        length_wasserstein_km=_known(wasserstein_km(paired, km)),
        length_wasserstein_by_destination_km=_known(weighted_mean(wasserstein_by_destination_km(paired, km), weight)),
        cpl=_known(common_part_of_lengths(paired, km, bin_km=BIN_KM)),
        tv=variation[ZONE],
        tv_unweighted=tv_unweighted,
        tv_by_level=variation,
        cpc=cpc,
        pairs=pairs,
        marginals={level: marginal_error(paired, unit) for level, unit in units.items()},
        gravity=gravity(paired, zones, units),
        by_headcount=classes.by_headcount(lengths),
        by_density=classes.by_density(lengths, density),
        by_length=classes.by_true_length(lengths),
        elsewhere_share_reference=float(paired.reference[away].sum() / max(1, workers_reference)),
        elsewhere_share=float(paired.other[away].sum() / max(1, workers)),
    )
    return found, ByDestination(lengths, density)


def _coverage(reference: NDArray[np.int64], other: NDArray[np.int64], inside: NDArray[np.bool_]) -> Coverage:
    return Coverage(int(inside.sum()), int(reference[inside].sum()), int(other[inside].sum()))


def _error_fields(error: LengthError | None) -> dict[str, float | None]:
    names = ("mae_km", "mae_km_unweighted", "bias_km", "bias_km_unweighted", "rmse_km")
    return {f"distance_{name}": getattr(error, name) if error else None for name in names}


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _plain(value: Any) -> Any:
    """Return dataclasses as dicts and numbers that are not finite as None, all the way down."""
    if hasattr(value, "__dataclass_fields__"):
        value = asdict(value)
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
