"""The exact audit through the tasks of a release: from a confidential file to the rows of a published one.

The audit drives planning and drawing; what stands around them (reading, collecting, writing) must neither change the
law of the table nor its plan. So the task that draws is driven here, over files that the tasks before it made.
"""

from dataclasses import fields, replace

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.files import write_part
from pipelines.partition import collect, partitions
from pipelines.planning import plan_partition, read_plans
from pipelines.synthesize import draw
from pipelines.tabulate import HEADCOUNT, Stretch, tabulate
from synthmap.analysis.prior_table import read_prior_table, write_prior_table
from synthmap.audit.choices import rebuilt, synthesize
from synthmap.audit.exact import laws
from synthmap.audit.worlds import World, four_zones, two_zones
from synthmap.geography.read import read_zones
from synthmap.geography.region import make_region, write_region
from synthmap.mechanism.plan import settings_of
from synthmap.spec import read_spec

WHOLE = Stretch(0, 0, 1)
RESAMPLED = {"cells": 2}
NOISY = {"mechanism": "histogram", "coarsening": "prior-mass", "reading": "agreement", "cells": 2}
WORLDS = {  # region, ranks of destinations in the order of ids, headcounts, plan: few cells, so draws are spread
    "two segments": (two_zones, (0,), (2,), RESAMPLED),
    "two segments, four zones": (four_zones, (2,), (1,), RESAMPLED),
    "two segments, dropping": (two_zones, (0,), (1,), {"cells": 2, "keep": 0.5}),
    "two segments, two destinations": (two_zones, (1, 0), (1, 1), RESAMPLED),
    "two segments, noisy counts": (two_zones, (0,), (1,), NOISY),
}


class Stages:
    """The tasks of a release over a world, one after the other, without Dask."""

    def __init__(self, directory, write_spec, region, places, headcount, plan):
        zones = region.zones
        self.directory, self.public = directory, directory / "region"
        self.public.mkdir()
        columns = {name: getattr(zones, name) for name in ("longitude", "latitude", "weight")}
        pq.write_table(pa.table({"id": zones.ids, "county": zones.parents[0], **columns}), directory / "zones.parquet")
        values = {
            "name": "small",
            "segments": ["day", "night"],
            "outside": "elsewhere",
            "zones": {"path": "zones.parquet", "vintage": "1", "id": "id", "levels": ["county"]}
            | {name: name for name in columns},
            "tables": [
                {"path": "od.parquet", "vintage": "1", "format": "long"}
                | {name: name for name in ("origin", "destination", "count")}
            ],
            "privacy": {"epsilon": 2.5, "delta": 0.02},
            "plan": plan,
            "prior": {"scale_km": 4.0, "power": 2.0, "elsewhere_share": 0.2},
        }
        self.spec = read_spec(write_spec(directory / "spec.toml", values))
        read = make_region(read_zones(self.spec.zones))
        write_region(read, self.public)
        write_prior_table(self.public, *read_prior_table(self.spec, read.zones))
        self.world = World("small", region, places, headcount, settings_of(self.spec, region))

    def collected(self, table):
        """Write a confidential file; return the partition that a release makes of it."""
        names = [*self.world.region.zones.ids.to_pylist(), "abroad"]
        segments = self.spec.segment_columns
        workers = [
            {"origin": names[key // 2], "destination": names[place], "count": 1}
            | {name: int(key % 2 == s) for s, name in enumerate(segments)}
            for place, here in zip(self.world.places, table, strict=True)
            for key in here
        ]
        pl.DataFrame(workers).group_by("origin", "destination").sum().write_parquet(self.spec.tables[0].path)
        blocks = tabulate(self.spec, WHOLE, self.public, self.directory)
        headcount = np.load(blocks / HEADCOUNT)
        (whole,) = partitions(headcount, 1)
        return collect(self.spec, whole, [(WHOLE, blocks)], headcount, None, self.public, self.directory)

    def planned(self, partition):
        """Write the public plan of a partition; return its file."""
        return plan_partition(self.spec, partition, None, self.public, self.directory)

    def law(self, partition, choices, write=write_part):
        """Return the exact law of the rows that the drawing task publishes."""
        driven = synthesize(choices, self.world.settings)
        planned = self.planned(partition)
        task = rebuilt(draw.__wrapped__, synthesize=driven, write_part=write)

        def run():
            part = task(self.spec, partition, planned, None, self.public, self.directory)
            table = pl.read_parquet(part)
            part.unlink()
            assert table.columns[:5] == ["origin", "destination", "count", *self.spec.segment_columns]
            return tuple(table.rows())

        return choices.law(run)

    def rows(self, outcome):
        """Return what a release must publish of an outcome of the audit: sorted by destination, then origin."""
        figures = int(np.prod(self.world.shape))
        table, told = np.reshape(outcome[:figures], self.world.shape), np.reshape(outcome[figures:], (-1, 2))
        names = self.world.region.names.to_pylist()
        found = []
        for row, (place, origin) in enumerate(np.argwhere(table.sum(axis=2)).tolist()):
            workers = table[place, origin].tolist()
            interval = told[row].tolist() if told.size else []
            found.append((names[origin], names[self.world.places[place]], sum(workers), *workers, *interval))
        return tuple(sorted(found, key=lambda row: (row[1], row[0])))


@pytest.fixture
def stages(tmp_path, write_spec):
    def make(name):
        region, *others = WORLDS[name]
        return Stages(tmp_path, write_spec, region(), *others)

    return make


@pytest.mark.parametrize("name", WORLDS)
def test_what_is_written_has_the_law_that_is_audited(stages, choices, name):
    """In fractions, for every third confidential table of the world (the audit alone goes through all of them).

    And every task of them reads the one public plan.
    """
    small = stages(name)
    planned, audited = laws(small.world)
    assert len(audited) == len(set(small.world.tables())) > 5
    for table, law in list(audited.items())[::3]:
        partition = small.collected(table)
        plan = read_plans([small.planned(partition)], small.world.settings)
        for field in fields(planned):
            np.testing.assert_array_equal(getattr(plan, field.name), getattr(planned, field.name))
        assert small.law(partition, choices) == {small.rows(outcome): p for outcome, p in law.items()}


def segments_changed(path, table, region, segments):
    write_part(path, replace(table, workers=table.workers[:, ::-1]), region, segments)


def nobody_alone(path, table, region, segments):
    """Leave out what looks like a lone worker."""
    seen = table.workers.sum(axis=1) > 1
    kept = {name: getattr(table, name)[seen] for name in ("destination", "origin", "workers")}
    write_part(path, replace(table, **kept), region, segments)


@pytest.mark.parametrize("broken", [segments_changed, nobody_alone])
def test_what_is_written_otherwise_has_another_law(stages, choices, broken):
    small = stages("two segments")
    _, audited = laws(small.world)
    table = ((0, 2),)
    law = {small.rows(outcome): p for outcome, p in audited[table].items()}
    assert small.law(small.collected(table), choices) == law
    assert small.law(small.collected(table), choices, write=broken) != law


def test_the_law_is_that_of_one_table_not_of_all(stages, choices):
    """Of a worker in another segment, or in another cell, the task publishes the same rows, but not as often."""
    small = stages("two segments, four zones")
    here, other_segment, far_away = [small.law(small.collected(((key,),)), choices) for key in (0, 1, 8)]
    assert here.keys() == other_segment.keys() == far_away.keys()
    assert here != other_segment != far_away != here
