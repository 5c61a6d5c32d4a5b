"""Tables of results: no column is lost, whatever segments are called."""

import io
from dataclasses import replace
from datetime import date

import numpy as np
import polars as pl
import pytest
from handmade import World, Zone

from synthmap.analysis.area.distance import area_profile, distance_direction
from synthmap.analysis.area.figures import Figures
from synthmap.analysis.area.inflow_outflow import inflow_outflow
from synthmap.analysis.area.ranked import origins
from synthmap.analysis.area.result import ABOUT
from synthmap.analysis.area.time import time
from synthmap.published.areas.area import area_of_zones
from synthmap.service.analysis_answers import as_csv

ON = date(2026, 1, 2)
WORLD = World([Zone("x"), Zone("y")], [("x", "x", (100, 7)), ("y", "x", (40, 2))], segments=("p", "q"), year=2019)
LATER = replace(WORLD, flows=[("x", "x", (90, 8)), ("y", "x", (70, 2))], year=2020)
RUNS = {
    "inflow-outflow": lambda before, after, area: inflow_outflow(after, area),
    "area-profile": lambda before, after, area: area_profile(after, area, end="work"),
    "distance-direction": lambda before, after, area: distance_direction(after, area, end="work"),
    "origins": lambda before, after, area: origins(after, area),
    "time": time,
}


def tables(opened, name, segments):
    """What an analysis gives of the world with these names of segments: JSON's figures, and CSV read back."""
    before, after = (opened(replace(world, segments=segments)) for world in (WORLD, LATER))
    found = RUNS[name](before, after, area_of_zones(after, ("x",)))
    return found, pl.read_csv(io.BytesIO(as_csv(found, ON)))


@pytest.mark.parametrize("name", RUNS)
def test_a_segment_may_be_called_like_any_other_column(opened, name):
    plain = tables(opened, name, ("p", "q"))[1]
    own = [column for column in plain.columns if column.removesuffix("_trust").removesuffix("_expected_error")
           .removeprefix("before_").removeprefix("after_") not in ("p", "q")]  # fmt: skip
    assert {"workers", "expected_error", "trust", "prior_share", "warnings", "citation"} < set(own)
    for column in [*own, "WORKERS"]:
        found, table = tables(opened, name, (column, "q"))
        assert len(table.columns) == len(plain.columns), column
        assert table.select(own).drop(ABOUT).equals(plain.select(own).drop(ABOUT)), column
        assert table[f"{column}_2"].to_list() == found.figures.workers[:, 1].tolist(), column
        assert table[f"{column}_2_trust"].equals(plain["p_trust"].alias(f"{column}_2_trust")), column
        assert table["q"].to_list() == found.figures.workers[:, 2].tolist(), column


@pytest.mark.parametrize("segments", [("p", "p_trust"), ("p_expected_error", "p"), ("p", "before_p"), ("p", "P")])
def test_segments_may_be_called_like_columns_of_others(opened, segments):
    found, table = tables(opened, "time", segments)
    assert len({column.casefold() for column in table.columns}) == len(table.columns) == 3 + 4 * 3 + 2 * 9 + 2
    assert table[segments[0]].to_list() == found.figures.workers[:, 1].tolist()
    assert table[f"{segments[1]}_2"].to_list() == found.figures.workers[:, 2].tolist()
    assert table[f"before_{segments[1]}_2"].to_list() == found.others["before"].workers[:, 2].tolist()


NOISE = (
    "Noise outweighs signal in {}: they are expected to be off by as much as they say, or more. Read nothing into them."
)
WEAK = "{} are expected to be off by more than half of themselves."
FOLLOW = "{} mostly follow the public prior, not data:"


@pytest.mark.parametrize(
    ("workers", "error", "prior", "told"),
    [
        ([[90, 60, 30], [3, 2, 1]], [[0, 9, 9], [4, 0.1, 0.1]], 0.1, [NOISE.format("1 of 2 figures")]),
        ([[90, 87, 3]], [[5, 5, 4]], 0.1, [NOISE.format("1 of 2 figures of segments")]),
        ([[9, 5, 4]], [[9, 5, 1]], 0.1, [NOISE.format("1 of 1 figures and 1 of 2 figures of segments")]),
        ([[0, 0, 0], [9, 5, 4]], [[2, 1, 0.5], [1, 1, 1]], 0.1,
         [NOISE.format("1 of 2 figures and 1 of 3 figures of segments")]),
        ([[0, 0, 0]], [[0.9, 0.9, 0.9]], 0.1, []),
        ([[9, 5, 4], [9, 5, 4]], [[5, 1, 1], [4, 3, 1]], 0.1,
         [WEAK.format("1 of 2 figures and 1 of 4 figures of segments")]),
        ([[9, 5, 4], [-9, -5, -4]], [[9, 1, 1], [5, 1, 1]], 0.1,
         [NOISE.format("1 of 2 figures"), WEAK.format("1 of 2 figures")]),
        ([[9, 5, 4], [8, 4, 4]], [[1, 1, 1], [1, 1, 1]], [[0.6, 0, 0], [0.5, 0, 0]], [FOLLOW.format("1 of 2 figures")]),
        ([[9, 5, 4]], [[1, 1, 1]], 0.1, []),
    ],
)  # fmt: skip
def test_warnings_count_figures_and_those_of_segments(opened, workers, error, prior, told):
    release = opened(WORLD)
    found = inflow_outflow(release, area_of_zones(release, ("x",)))
    other = found.warnings()
    figures = Figures(
        np.array(workers), np.array(error, float), np.broadcast_to(np.array(prior, float), (len(workers), 3))
    )
    said = replace(found, figures=figures).warnings()
    known = [one for one in said if one in other and "figures" not in one.split(":")[0]]
    found = [one for one in said if one not in known]
    assert [one[: len(text)] for one, text in zip(found, told, strict=True)] == told
