"""A small world to be measured: five zones in a row, two destinations, lengths known by hand."""

import numpy as np
import pyarrow as pa
from publishedplan import published_plan

from synthmap.analysis.measured_classes import MeasuredClasses, make_classes
from synthmap.analysis.read import PublishedPlan
from synthmap.analysis.table import ODTable
from synthmap.geography.canonical import canonical
from synthmap.geography.distance import EARTH_KM
from synthmap.geography.zones import Zones

KM = (0.0, 3.0, 12.0, 30.0, 500.0)  # of each zone from the first, along the equator
CAP = 40_000


def zones() -> Zones:
    return canonical(
        ids=pa.array([f"{i}" for i in range(len(KM))]),
        longitude=np.degrees(np.array(KM) / EARTH_KM),
        latitude=np.zeros(len(KM)),
        weight=np.ones(len(KM), np.int64),
        levels=(),
        parents=(),
        vintage="1",
    )


def plan(headcount=(10, 4), size=None, destination=(0, 3)) -> PublishedPlan:
    """Return the plan of destinations 0, in the midst of jobs, and 3."""
    return published_plan(destination, headcount, **({} if size is None else {"size": size}))


def flows(*rows: tuple[int, int, int]) -> ODTable:
    """Return the table of (origin, destination, count); origin 5 is elsewhere."""
    origin, destination, count = np.array(rows, np.int64).T
    return ODTable(origin.astype(np.int32), destination.astype(np.int32), count)


SYNTHETIC = flows((0, 0, 6), (2, 0, 4), (3, 3, 1), (0, 3, 3))  # lengths 0 and 12 km; 0 and 30 km


def classes(synthetic: ODTable = SYNTHETIC) -> MeasuredClasses:
    return make_classes(plan(), synthetic, zones(), CAP)
