"""Between reading and planning: mean commute lengths of classes of destinations, with noise, for the prior's decay."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from pipelines.partition import SUMS, read_sums
from pipelines.places import fetch, results
from pipelines.stage import attempt, stage
from synthmap.geography.region import open_region
from synthmap.kernels.stream import secure_stream, seeded_stream
from synthmap.mechanism.lengths import (
    LengthClasses,
    LengthSums,
    MeasuredLengths,
    fit_decay,
    noisy_sums,
    public_decay,
    with_decay,
)
from synthmap.spec import Spec


@stage
def measure(
    spec: Spec, classes: LengthClasses, partitions: Sequence[Path], region_directory: Path, directory: Path
) -> Path:
    """Return the file to which noisy sums of lengths were written, and the decay fitted to them.

    **Guarantee** (adjacency: one worker of one destination has another origin): ``spec.lengths_epsilon``-DP for one
    job. Whoever calls this has had it paid for. The file is as secret as all others of a run until the release is
    published: a task that Dask runs again, or a run after a crash, draws anew, and nobody is to see both.
    """
    region = open_region(fetch(region_directory, directory))
    each = [read_sums(fetch(partition / SUMS, directory)) for partition in partitions]
    sums = LengthSums(*(sum(parts) for parts in zip(*each, strict=True)))
    stream = secure_stream() if spec.run.seed is None else seeded_stream(spec.run.seed)
    noisy = noisy_sums(classes, sums, stream)
    measured = fit_decay(region, public_decay(spec), classes, sums.workers, noisy, spec.lengths_epsilon)
    with results(directory) as here:
        path = attempt(here, "lengths")
        with path.open("w", encoding="utf-8") as file:
            json.dump(asdict(measured), file)
            file.flush()
            os.fsync(file.fileno())  # a worker that is lost later must not take it along: it cannot be measured again
    return directory / path.name


def read_lengths(path: Path, directory: Path) -> MeasuredLengths:
    """Return what `measure` wrote."""
    return MeasuredLengths(**json.loads(fetch(path, directory).read_text(encoding="utf-8")))


def as_fitted(spec: Spec, lengths: Path | None, directory: Path) -> Spec:
    """Return `spec` with the decay that was fitted, if lengths were measured."""
    return spec if lengths is None else with_decay(spec, read_lengths(lengths, directory))
