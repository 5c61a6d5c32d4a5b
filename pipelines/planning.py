"""Stage 3: plan a partition's destinations from public headcounts, the prior and, if they were measured, lengths."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.lengths import as_fitted
from pipelines.partition import read_classes, read_headcounts
from pipelines.places import fetch, results
from pipelines.stage import attempt, stage
from synthmap.analysis.prior_table import open_prior_table
from synthmap.geography.region import open_region
from synthmap.mechanism.chosen import mechanism_of, plan_destinations
from synthmap.mechanism.plan import Plan, PlanSettings, settings_of
from synthmap.spec import Spec


@stage
def plan_partition(spec: Spec, partition: Path, lengths: Path | None, region_directory: Path, directory: Path) -> Path:
    """Return the file to which the public plan of a partition was written, from what `collect` found public."""
    partition, region_directory = fetch(partition, directory), fetch(region_directory, directory)
    region = open_region(region_directory)
    known, _ = open_prior_table(region_directory)
    settings = settings_of(as_fitted(spec, lengths, directory), region)
    scale_km = None if lengths is None else np.array(settings.scales_km)[read_classes(partition)]
    plan = plan_destinations(region, *read_headcounts(partition), settings, known, scale_km)
    with results(directory) as here:
        path = attempt(here, "plan")
        pq.write_table(plan.to_table(), path)
    return directory / path.name


def read_plans(paths: Sequence[Path], settings: PlanSettings) -> Plan:
    """Return the plans at `paths`, of partitions, as one."""
    tables = [pq.read_table(path, partitioning=None) for path in paths]
    found: Plan = mechanism_of(settings).plan.from_table(pa.concat_tables(tables))
    return found
