"""Stage 4: draw a partition's synthetic workers and write them as a part of the release; beside it, the zones."""

from pathlib import Path

from pipelines.files import write_part, write_zones
from pipelines.lengths import as_fitted
from pipelines.partition import read_counts
from pipelines.places import fetch, results
from pipelines.planning import read_plans
from pipelines.stage import attempt, stage
from synthmap.analysis.prior_table import open_prior_table
from synthmap.geography.region import open_region
from synthmap.kernels.stream import secure_stream, seeded_stream
from synthmap.mechanism.chosen import synthesize
from synthmap.mechanism.plan import settings_of
from synthmap.spec import Spec


@stage
def draw(
    spec: Spec, partition: Path, planned: Path, lengths: Path | None, region_directory: Path, directory: Path
) -> Path:
    """Return the file in `directory` to which the synthetic table of a partition was written.

    The stream is keyed here, in the process that draws, so that no key travels. A task that Dask runs again, because a
    worker was lost, draws anew into a file of its own; the driver takes the one whose name it is told.
    """
    partition, planned = fetch(partition, directory), fetch(planned, directory)
    region_directory = fetch(region_directory, directory)
    region = open_region(region_directory)
    stream = secure_stream() if spec.run.seed is None else seeded_stream(spec.run.seed)
    known, _ = open_prior_table(region_directory)
    settings = settings_of(as_fitted(spec, lengths, directory), region)
    plan, counts = read_plans([planned], settings), read_counts(partition)
    table = synthesize(plan, counts, region, settings, stream, known)
    with results(directory) as here:
        path = attempt(here, "draw")
        write_part(path, table, region, spec.segment_columns)
    return directory / path.name


@stage
def publish_zones(spec: Spec, region_directory: Path, directory: Path) -> Path:
    """Return the file in `directory` to which the zones were written, as a release shows them on a map."""
    region = open_region(fetch(region_directory, directory))
    with results(directory) as here:
        path = attempt(here, "zones")
        write_zones(path, region, elsewhere=spec.outside == "elsewhere")
    return directory / path.name
