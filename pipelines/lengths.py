"""Between reading and planning: mean commute lengths of classes of destinations, with noise, for the prior's decay."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipelines.partition import read_counts, read_headcounts
from pipelines.places import fetch
from pipelines.stage import stage
from synthmap.geography.prior import finest_level
from synthmap.geography.region import Region, open_region
from synthmap.kernels.lengths import lengths_of
from synthmap.kernels.stream import secure_stream, seeded_stream
from synthmap.mechanism.lengths import (
    MeasuredLengths,
    fit_decay,
    length_cap_km,
    length_classes,
    noisy_sums,
    public_decay,
)
from synthmap.spec import Spec


@stage
def measure(spec: Spec, partitions: Sequence[Path], region_directory: Path, directory: Path) -> MeasuredLengths:
    """Return noisy sums of lengths and the decay fitted to them: public from here on.

    **Guarantee** (adjacency: one worker of one destination has another origin): ``prior.lengths_epsilon``-DP for one
    job. Whoever calls this has had it paid for. A task that Dask runs again draws anew; the driver is told of one.
    """
    region = open_region(fetch(region_directory, directory))
    near = [fetch(partition, directory) for partition in partitions]
    destination, headcount = (np.concatenate(arrays) for arrays in zip(*map(read_headcounts, near), strict=True))
    decay, epsilon = public_decay(spec), spec.prior.lengths_epsilon or 0.0
    cap_km = length_cap_km(region, decay)
    classes, of = length_classes(region, decay, destination, headcount, epsilon, cap_km)
    lengths, elsewhere = np.concatenate([_lengths(partition, region, cap_km) for partition in near], axis=1)
    stream = secure_stream() if spec.run.seed is None else seeded_stream(spec.run.seed)
    noisy = noisy_sums(classes, of, lengths, elsewhere, stream)
    return fit_decay(region, decay, destination, classes, noisy, epsilon)


def _lengths(partition: Path, region: Region, cap_km: float) -> NDArray[np.int64]:
    """Return the lengths of a partition's workers by destination: confidential."""
    counts, (destination, _) = read_counts(partition), read_headcounts(partition)
    places = region.tree.level_centre[finest_level(region.tree)]
    return lengths_of(places, destination, counts.first_row, counts.origin, counts.workers, cap_km)
