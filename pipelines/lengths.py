"""Between reading and planning: mean commute lengths of classes of destinations, with noise, for the prior's decay."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipelines.partition import read_counts, read_headcounts
from pipelines.places import fetch, results
from pipelines.stage import attempt, stage
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
    with_decay,
)
from synthmap.spec import Spec


@stage
def measure(spec: Spec, partitions: Sequence[Path], region_directory: Path, directory: Path) -> Path:
    """Return the file to which noisy sums of lengths were written, and the decay fitted to them.

    **Guarantee** (adjacency: one worker of one destination has another origin): ``prior.lengths_epsilon``-DP for one
    job. Whoever calls this has had it paid for. The file is as secret as all others of a run until the release is
    published: a task that Dask runs again, or a run after a crash, draws anew, and nobody is to see both.
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
    measured = fit_decay(region, decay, destination, classes, noisy, epsilon)
    with results(directory) as here:
        path = attempt(here, "lengths")
        path.write_text(json.dumps(asdict(measured)), encoding="utf-8")
    return directory / path.name


def read_lengths(path: Path, directory: Path) -> MeasuredLengths:
    """Return what `measure` wrote."""
    return MeasuredLengths(**json.loads(fetch(path, directory).read_text(encoding="utf-8")))


def as_fitted(spec: Spec, lengths: Path | None, directory: Path) -> Spec:
    """Return `spec` with the decay that was fitted, if lengths were measured."""
    return spec if lengths is None else with_decay(spec, read_lengths(lengths, directory))


def _lengths(partition: Path, region: Region, cap_km: float) -> NDArray[np.int64]:
    """Return the lengths of a partition's workers by destination: confidential."""
    counts, (destination, _) = read_counts(partition), read_headcounts(partition)
    places = region.tree.level_centre[finest_level(region.tree)]
    return lengths_of(places, destination, counts.first_row, counts.origin, counts.workers, cap_km)
