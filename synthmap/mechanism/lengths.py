"""Mean commute lengths, measured with noise, and the decay of the prior that has them.

Gravity models are calibrated to mean trip lengths (Hyman, Environment and Planning 1, 1969). Here destinations form
classes by how far the public decay expects their workers to live; each class gets the scale at which its prior has the
mean that was measured. A worker is of one destination, so of one class: all classes together cost what one does.
"""

from dataclasses import dataclass
from math import exp, inf, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from synthmap.compiled import compiled
from synthmap.geography.decay import rough_mean_km
from synthmap.geography.hierarchy import ZoneTree
from synthmap.geography.prior import NO_TABLE, PriorModel, PriorTable, class_at, finest_level, prior_from
from synthmap.geography.region import Region
from synthmap.kernels.geometric import noise_of_sum
from synthmap.kernels.lengths import PARTS, lengths_of
from synthmap.kernels.stream import Stream
from synthmap.mechanism.table import Counts
from synthmap.privacy.lengths import least_lengths_units
from synthmap.spec import Spec, usual_strength

MOST_CLASSES = 8
_CAP = 5.0  # times the public mean length: longer commutes count as this long, so that noise stays small
_SAMPLE = 1_000  # destinations whose rough public lengths set the edges of classes, taken by headcount
_FEW = 200  # places whose public lengths tell how long commutes are
_EACH = 64  # destinations of a class that its scale is fitted on
_PRECISION = 0.025  # largest noise of a class's mean, as a share of it, with which there is more than one class
_TRUST = 0.25  # how far public means are from true ones, as a share of them, where nothing was measured
_FARTHEST_SCALE = 50.0  # times the public scale, or part of it, that a fitted one may be
_CLOSE = 0.002  # a fitted mean is off by at most this share of it
_STEPS = 12  # at most, towards a fitted scale: halvings of the range of its logarithm leave a fifth of a percent
_STEEPNESS = 0.5  # about how much longer commutes become with the scale, both as logarithms
_EXACT = 10.0  # ε of noise so small that a public table has as many classes as there can be
_ANYWHERE_KM = 40_000.0  # no two places are as far apart
_STREAM = 2**64 - 1  # the last number of a stream; no destination has it


@dataclass(frozen=True)
class LengthClasses:
    """Classes of destinations and what is expected of them. Public.

    Attributes
    ----------
    cap_km : float
        Longer commutes count as this long.
    units : int
        Noise of each sum, in 1/2^32.
    edges_km : ndarray of float64, shape (classes − 1,)
        See `PriorModel`.
    public_km : ndarray of float64, shape (classes,)
        Mean length, cut off at the cap, by the public decay.
    sample : list of ndarray of int32
        For each class, ranks of destinations of it, each as often as is in proportion to its headcount.
    """

    cap_km: float
    units: int
    edges_km: NDArray[np.float64]
    public_km: NDArray[np.float64]
    sample: list[NDArray[np.int32]]


class LengthSums(NamedTuple):
    """Sums over the destinations of each class, shape (classes,); they add up over partitions.

    Attributes
    ----------
    workers : ndarray of int64
        Public headcounts.
    lengths, elsewhere : ndarray of int64
        See `synthmap.kernels.lengths.lengths_of`. Confidential.
    """

    workers: NDArray[np.int64]
    lengths: NDArray[np.int64]
    elsewhere: NDArray[np.int64]


@dataclass(frozen=True)
class MeasuredLengths:
    """Noisy sums of commute lengths by class of destination, and the decay fitted to them; publishable.

    Attributes
    ----------
    epsilon : float
        Of one job, all classes together.
    cap_km : float
    units : int
        Noise of each sum, in 1/2^32.
    edges_km : list of float
    workers : list of int
        Public headcounts by class.
    noisy : list of int
        Sum of lengths by class, in thousandths of the cap, with noise.
    mean_km : list of float
        Mean length by class that the decay is fitted to, cut off at the cap.
    scales_km : list of float
        The fitted scales.
    trust : float
        Share that measured means have in those, the rest being public, by worker: it follows from noise and headcounts.
    """

    epsilon: float
    cap_km: float
    units: int
    edges_km: list[float]
    workers: list[int]
    noisy: list[int]
    mean_km: list[float]
    scales_km: list[float]
    trust: float


def public_decay(spec: Spec) -> PriorModel:
    """Return the decay that `spec` names for all destinations alike, without a public table."""
    return PriorModel(spec.prior.scale_km, spec.prior.power, spec.elsewhere_share, 0.0, spec.strength, NO_TABLE)


def length_classes(
    region: Region, model: PriorModel, destination: NDArray[np.int32], headcount: NDArray[np.int64], epsilon: float
) -> LengthClasses:
    """Return classes of about equally many workers. From public data alone.

    There are so many that the noise of none is more than a fortieth of its mean, one at least and eight at most.

    Parameters
    ----------
    model : PriorModel
        The public decay, without a table.
    destination : ndarray of int32, shape (D,)
        Ranks.
    headcount : ndarray of int64, shape (D,)
        Public.
    epsilon : float
        Natural-log ε of one job.

    Raises
    ------
    PrivacyParameterError
        If ε is out of range.
    """
    units = least_lengths_units(epsilon, PARTS)
    cap_km = length_cap_km(region, model)
    taken = _evenly(destination, headcount, _SAMPLE)
    rough = _rough_km(region.tree, model, region.points(taken))
    typical = float(_capped_km(region.tree, model, region.points(_evenly(taken, None, _FEW)), cap_km).mean())
    sharp = _PRECISION * typical * float(headcount.sum()) / _noise_km(units, cap_km)
    classes = int(min(MOST_CLASSES, max(1.0, sharp)))
    ascending = np.sort(rough)
    edges = np.unique(ascending[np.arange(1, classes) * rough.size // classes])
    edges = edges[edges > ascending[0]]
    of = np.searchsorted(edges, rough, side="right")
    sample = [_evenly(taken[of == one], None, _EACH) for one in range(edges.size + 1)]
    means = [float(_capped_km(region.tree, model, region.points(ranks), cap_km).mean()) for ranks in sample]
    return LengthClasses(cap_km, units, edges, np.array(means), sample)


def length_cap_km(region: Region, model: PriorModel) -> float:
    """Return where lengths are cut off. From zones, weights and the public decay alone."""
    cumulative = region.tree.cumulative
    steps = (np.arange(_FEW) + 0.5) * (float(cumulative[-1]) / _FEW)
    homes = np.searchsorted(cumulative[1:], steps, side="right").astype(np.int32)
    public = _capped_km(region.tree, model, region.points(homes), _ANYWHERE_KM)
    return max(1.0, _CAP * float(public.mean()))


def class_of_each(
    region: Region, model: PriorModel, classes: LengthClasses, destination: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Return the class of each destination, shape (D,), by the public decay. Public."""
    return _classes(region.tree, model._replace(edges_km=classes.edges_km), region.points(destination))


def length_sums(
    region: Region,
    classes: LengthClasses,
    of: NDArray[np.int64],
    destination: NDArray[np.int32],
    headcount: NDArray[np.int64],
    counts: Counts,
) -> LengthSums:
    """Return what the workers of some destinations add to each class.

    Parameters
    ----------
    of : ndarray of int64, shape (D,)
        See `class_of_each`.
    destination : ndarray of int32, shape (D,)
        Ranks.
    headcount : ndarray of int64, shape (D,)
        Public.
    counts : Counts
        Of these destinations. Confidential.
    """
    places = region.tree.level_centre[finest_level(region.tree)]
    found = lengths_of(places, destination, counts.first_row, counts.origin, counts.workers, classes.cap_km)
    sums = LengthSums(*np.zeros((3, classes.public_km.size), np.int64))
    for total, each in zip(sums, (headcount, *found), strict=True):
        np.add.at(total, of, each)
    return sums


def noisy_sums(classes: LengthClasses, sums: LengthSums, stream: Stream) -> NDArray[np.int64]:
    """Return the sum of lengths of each class, in thousandths of the cap, with noise.

    **Guarantee** (adjacency: one worker of one destination has another origin): ε-DP of all sums together, by
    `lengths_epsilon` of the units. Proof: privacy/proofs/lengths.md. Who lives elsewhere counts as the public mean.

    Parameters
    ----------
    classes : LengthClasses
        Public.
    sums : LengthSums
        Of all destinations. Confidential.
    stream : Stream
        `secure_stream()` for a release.
    """
    exact = _sums(classes, sums)
    noise = [noise_of_sum(classes.units, stream, _STREAM - one) for one in range(exact.size)]
    return exact + np.array(noise, np.int64)


def _sums(classes: LengthClasses, sums: LengthSums) -> NDArray[np.int64]:
    """Return the sum of lengths of each class, as secret as they are."""
    typical = np.minimum(PARTS, np.floor(classes.public_km / classes.cap_km * PARTS + 0.5)).astype(np.int64)
    return np.asarray(sums.lengths + sums.elsewhere * typical)


def fit_decay(
    region: Region,
    model: PriorModel,
    classes: LengthClasses,
    workers: NDArray[np.int64],
    noisy: NDArray[np.int64],
    epsilon: float,
) -> MeasuredLengths:
    """Return the decay by class whose prior has the measured mean lengths. From what is public by now.

    A mean is weighed against the public one, by its noise and by how far public means usually are from true ones, so
    that few workers move little.

    Parameters
    ----------
    model : PriorModel
        The public decay, without a table.
    workers, noisy : ndarray of int64, shape (classes,)
        Public headcounts, and what `noisy_sums` returned.
    epsilon : float
        Natural-log ε of one job that the sums cost.
    """
    each = np.maximum(workers, 1)  # a class lies between sampled destinations, of which another machine may see none
    measured = noisy / PARTS * classes.cap_km / each
    away = model.elsewhere_share  # they count as the public mean
    inside = (measured - away * classes.public_km) / (1.0 - away)
    noise = _noise_km(classes.units, classes.cap_km) / each / (1.0 - away)
    trust = (_TRUST * classes.public_km) ** 2 / ((_TRUST * classes.public_km) ** 2 + noise**2)
    mean = np.clip(classes.public_km + trust * (inside - classes.public_km), 0.0, classes.cap_km)
    scales = [
        _scale_km(region.tree, model, region.points(ranks), classes.cap_km, public, one)
        for ranks, public, one in zip(classes.sample, classes.public_km.tolist(), mean.tolist(), strict=True)
    ]
    return MeasuredLengths(
        epsilon=epsilon,
        cap_km=classes.cap_km,
        units=classes.units,
        edges_km=classes.edges_km.tolist(),
        workers=workers.tolist(),
        noisy=noisy.tolist(),
        mean_km=mean.tolist(),
        scales_km=scales,
        trust=float(np.average(trust, weights=each)),
    )


def fit_to_table(region: Region, spec: Spec, table: PriorTable) -> MeasuredLengths:
    """Return the decay that `spec`'s has by class where it is fitted to a public table: exact, and without cost.

    Parameters
    ----------
    table : PriorTable
        Public, at least one row.
    """
    decay = public_decay(spec)
    starts = table.first
    destination = np.flatnonzero(np.diff(starts)).astype(np.int32)
    counts = Counts(np.append(starts[destination], starts[-1]), table.origin, table.workers[:, None])
    headcount = np.add.reduceat(table.workers, starts[destination])
    classes = length_classes(region, decay, destination, headcount, _EXACT)
    of = class_of_each(region, decay, classes, destination)
    sums = length_sums(region, classes, of, destination, headcount, counts)
    return fit_decay(region, decay, classes, sums.workers, _sums(classes, sums), _EXACT)


def with_decay(spec: Spec, measured: MeasuredLengths) -> Spec:
    """Return `spec` with the decay by class that was fitted, how far to believe it, and what of its ε that took."""
    told = spec.prior.strength
    fitted = {
        "class_edges_km": measured.edges_km,
        "class_scales_km": measured.scales_km,
        "lengths_epsilon": measured.epsilon,
        "strength": usual_strength(measured.trust) if told is None else told,
    }
    return spec.model_copy(update={"prior": spec.prior.model_copy(update=fitted)})


def _scale_km(
    tree: ZoneTree, model: PriorModel, points: NDArray[np.float64], cap: float, public: float, mean: float
) -> float:
    """Return about the scale at which the priors seen from some points have a mean length, or the end of the range.

    `public` is what they have at the scale of `model`. By secants, or by halving the range where one leads out of it.
    """
    low, high = log(model.scale_km / _FARTHEST_SCALE), log(model.scale_km * _FARTHEST_SCALE)
    at, slope = log(model.scale_km), _STEEPNESS
    last: tuple[float, float] | None = None
    found = public
    for _ in range(_STEPS):
        if abs(found - mean) <= _CLOSE * mean:
            break
        low, high = (at, high) if found < mean else (low, at)
        step = inf
        if found > 0.0 < mean:
            off = log(found / mean)
            if last is not None and off != last[1]:
                slope = (off - last[1]) / (at - last[0])
            last, step = (at, off), off / slope
        at = at - step if low < at - step < high else (low + high) / 2
        found = float(_capped_km(tree, model._replace(scale_km=exp(at)), points, cap).mean())
    return exp(at)


def _noise_km(units: int, cap: float) -> float:
    """Return the standard deviation of the noise of a sum, in km."""
    ratio = units / (2**32 - units)
    return sqrt(2.0 * ratio) / (1.0 - ratio) / PARTS * cap


def _evenly(ranks: NDArray[np.int32], headcount: NDArray[np.int64] | None, number: int) -> NDArray[np.int32]:
    """Return `number` of `ranks` at even steps; of their workers, so that large ones occur several times, if given."""
    reached = np.cumsum(np.ones(ranks.size) if headcount is None else headcount)
    steps = (np.arange(number) + 0.5) * (float(reached[-1]) / number)
    return np.asarray(ranks[np.searchsorted(reached, steps, side="right")])


@compiled
def _capped_km(tree: ZoneTree, model: PriorModel, points: NDArray[np.float64], cap: float) -> NDArray[np.float64]:
    """Return the mean distance, cut off at `cap`, to an origin drawn from the prior seen from each point."""
    out = np.empty(len(points))
    for d in range(len(points)):
        prior = prior_from(tree, model, points[d], 0)
        total = 0.0
        for piece in range(prior.decay.size):
            mass, moment = prior.mass[piece + 1] - prior.mass[piece], prior.moment[piece + 1] - prior.moment[piece]
            total += min(moment, cap * mass)
        out[d] = total / prior.mass[prior.decay.size]
    return out


@compiled
def _rough_km(tree: ZoneTree, model: PriorModel, points: NDArray[np.float64]) -> NDArray[np.float64]:
    out = np.empty(len(points))
    for d in range(len(points)):
        out[d] = rough_mean_km(tree, model.scale_km, model.power, points[d])
    return out


@compiled
def _classes(tree: ZoneTree, model: PriorModel, points: NDArray[np.float64]) -> NDArray[np.int64]:
    out = np.empty(len(points), np.int64)
    for d in range(len(points)):
        out[d] = class_at(tree, model, points[d])
    return out
