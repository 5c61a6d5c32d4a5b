"""Releases that contradict themselves, hashes and statement right: found; and whole ones of all kinds pass."""

import pyarrow as pa
import pytest
from noisyrelease import PLAN, noisy

from synthmap.errors import ReleaseCorruptError
from synthmap.release import wording
from synthmap.release.verify import verify

FLOWS = [  # as the fixture's
    ("01", "01", 2, 1, 1),
    ("03", "01", 1, 0, 1),
    ("elsewhere", "01", 1, 1, 0),
    ("02", "03", 5, 5, 0),
]
LENGTHS = {"epsilon": 0.08, "cap_km": 60.0, "noise_units": 2_146_000_000, "workers": [4, 5], "noisy_sums": [400, 900],
           "mean_km": [6.0, 10.8]}  # fmt: skip
MEASURED = {"epsilon": [3.92, 3.92], "scale_km": [6.0, 12.0]}
SOURCE = {"kind": "table", "name": "census.csv", "sha256": "0", "vintage": "1", "private": True, "mixing": 0.9,
          "workers": 9, "statement": "a census"}  # fmt: skip


def told(**sections):
    """Return a change of some values of a manifest's sections, named as in ``plan__keep``."""

    def change(manifest):
        for name, value in sections.items():
            *places, last = name.split("__")
            at = manifest
            for place in places:
                at = at[place]
            at[last] = value

    return change


def both(*changes):
    def change(manifest):
        for one in changes:
            one(manifest)

    return change


CLASSES = told(
    prior__class_edges_km=[9.0],
    prior__class_scales_km=[6.0, 12.0],
    prior__formula=wording.formula(classes=True, source=None),
)
MEASURE = both(
    CLASSES,
    told(
        prior__lengths=LENGTHS, privacy__steps__resampling_epsilon=3.92, privacy__steps__lengths_epsilon=0.08
    ),
)  # fmt: skip
FROM_FIGURES = both(
    CLASSES,
    told(prior__class_source="census 2011", privacy__assumptions=wording.assumptions(1, None, "census 2011")),
)
BLANK = wording.assumptions(1, None, " ")
SEEDED = told(private=False, warning=wording.warning(private=False, source=None))


def two_jobs(manifest):
    privacy = manifest["privacy"]
    privacy |= {
        "max_jobs_per_worker": 2,
        "unit": wording.unit(segments=True, jobs=2),
        "assumptions": wording.assumptions(2, None, None),
        "dp": {"epsilon": 8.0, "delta": 2e-6},
        "pdp_cells": privacy["pdp_cells"] | {"epsilon": 8.0},
    }


@pytest.mark.parametrize(
    ("plan", "change"),
    [
        (None, None),
        (None, SEEDED),
        (None, two_jobs),
        (MEASURED, MEASURE),
        ({"scale_km": [6.0, 12.0]}, FROM_FIGURES),
        ({"cells": [1, 1]}, None),  # two segments: noise is needed
        ({"predicted_km": [float("nan"), 1.5]}, None),
        ({"keep_units": [32_768, 65_536]}, told(plan__keep="0.5", plan__keep_smallest=0.5)),
        ({"finest": [-1, -1], "cells_asked": [2, 2]}, None),
        ({"prior_share": None}, None),
    ],
)
def test_whole_releases_of_all_kinds_pass(small_release, plan, change):
    assert verify(small_release(plan=plan, change=change or told(), stated=True)).workers == 9


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (told(privacy__unit="everything about every household."), "privacy.unit must be"),
        (told(privacy__adjacency="all records of a household are removed"), "privacy.adjacency must be"),
        (told(privacy__assumptions=[]), "privacy.assumptions must be"),
        (told(invariants__statements=[]), "invariants.statements must be"),
        (told(private=False), "warning must be"),
        (told(warning="drawn with a fixed seed"), "warning must be"),
        (told(prior__formula="uniform"), "prior.formula must be"),
        (told(prior__source=SOURCE), "privacy.assumptions must be"),
        (told(plan__synthetic_size_rule="m = 2n"), r"synthetic_size_rule \(m = 2n\) must be"),
        (told(plan__prior_share_mean=0.001), "prior_share_mean must be"),
        (told(plan__keep_smallest=0.1), "keep_smallest must be"),
        (told(plan__mechanism="histogram"), "mechanism must be"),
        (told(plan__reading="means"), "a reading and an interval"),
        (told(plan__finest="county"), "finest must be a level"),
        (told(plan__classes=[]), "must tell the plan's 2 classes"),
        (told(privacy__steps__resampling_epsilon=0.01), "resampling_epsilon must be"),
        (told(privacy__steps__resampling_delta=1e-9), "resampling_delta must be"),
        (told(privacy__steps__groups_epsilon=1.0), "groups_epsilon must be"),
        (told(privacy__pdp_cells=None), "must have a promise for cells"),
        (told(privacy__rule="adp"), "a promise for cells must be by rule"),
        (told(privacy__rule="pure"), "rule pure must have no δ"),
        (told(zones__levels=["county"]), r"levels must be those of zones.parquet \(none\)"),
        (told(zones__elsewhere=None), "elsewhere must be in the manifest and in zones.parquet"),
        (CLASSES, "must come from lengths, from class_source or from a public table"),
        (both(FROM_FIGURES, told(prior__class_source=" ", privacy__assumptions=BLANK)), "must come from lengths"),
        (told(prior__class_edges_km=[9.0]), "a scale more than class_edges_km"),
        (told(prior__lengths=LENGTHS), "must be told of these only"),
    ],
)  # fmt: skip
def test_a_manifest_that_contradicts_its_plan_or_zones_is_refused(small_release, change, rule):
    with pytest.raises(ReleaseCorruptError, match=rule):
        verify(small_release(change=change, stated=True))


@pytest.mark.parametrize(
    "name",
    [
        "headcount_to",
        "destinations",
        "workers",
        "cells_median",
        "alpha_smallest",
        "alpha_median",
        "alpha_largest",
        "prior_share_mean",
        "predicted_km_median",
    ],
)
def test_every_figure_of_a_class_is_the_plans(small_release, name):
    def change(manifest):
        manifest["plan"]["classes"][0][name] = 1 + manifest["plan"]["classes"][0][name]

    with pytest.raises(ReleaseCorruptError, match=f"manifest's {name} of headcounts 2 to 4 must be the plan's"):
        verify(small_release(change=change))


@pytest.mark.parametrize(
    ("plan", "rule"),
    [
        ({"headcount": [9, 10]}, r"headcount n\(d\) must be its m\(d\)"),
        ({"headcount": [5, 4]}, r"headcount n\(d\) must be its m\(d\)"),
        ({"prior_share": [0.001, 0.001]}, "prior_share must be what"),
        ({"scale_km": [4.0, 5.0]}, "scales of the plan's decay must be those"),
        ({"cells_asked": [3, 2]}, "cells must be those that the plan asked for"),
        ({"finest": [-1, 0]}, "coarsened by prior mass"),
        ({"keep_units": [32_768, 65_536]}, "keep_smallest must be"),
        ({"epsilon": [4.0, float("nan")]}, "epsilon must be finite"),
        ({"delta": [1e-6, None]}, "delta must be double, and none missing"),
        ({"cells": [2.0, 2.0]}, "cells must be int64"),
        ({"epsilon": [-4.0, 4.0]}, "must be losses"),
    ],
)
def test_a_plan_that_contradicts_the_manifest_or_itself_is_refused(small_release, plan, rule):
    with pytest.raises(ReleaseCorruptError, match=rule):
        verify(small_release(plan=plan, stated=True))


def of_noisy_counts(small_release, plan, change):
    return small_release(
        [with_interval(FLOWS[:3]), with_interval(FLOWS[3:])], plan=PLAN | plan, change=both(noisy, change)
    )


def with_interval(rows):
    table = pa.table(dict(zip(("origin", "destination", "count", "A", "B"), zip(*rows, strict=True), strict=True)))
    ends = table["count"].cast(pa.int32())
    return table.append_column("low", ends).append_column("high", ends)


def test_a_release_of_noisy_counts_passes(small_release):
    assert verify(of_noisy_counts(small_release, {}, told())).workers == 9


@pytest.mark.parametrize(
    ("plan", "change", "rule"),
    [
        ({}, told(plan__mechanism="dirichlet"), "mechanism must be"),
        ({}, told(plan__reading=""), "a reading and an interval"),
        ({}, told(plan__noise_law="gaussian"), "noise_law must be"),
        ({}, told(privacy__rule="pdp"), "rule of noisy counts must be pure"),
        ({}, told(privacy__steps__cells_epsilon=1.0), "cells_epsilon must be"),
        ({}, told(plan__classes=[]), "must tell the plan's 2 classes"),
        ({"prior_share": [0.001, 0.001]}, told(), "prior_share_mean must be"),
        ({"prior_share": [1.2, 0.1]}, told(), "prior_share must be what"),
        ({"cells": [1, 2]}, told(), "prior_share must be what"),
    ],
)
def test_one_that_contradicts_itself_is_refused(small_release, plan, change, rule):
    with pytest.raises(ReleaseCorruptError, match=rule):
        verify(of_noisy_counts(small_release, plan, change))


@pytest.mark.parametrize("column", ["epsilon", "delta"])
def test_one_cell_costs_nothing(small_release, column):
    """Cells that are told to be one cell at the price of many: the statement would tell that price of another table."""
    right = {"segments": [], "privacy__unit": wording.unit(False, 1), "privacy__adjacency": wording.adjacency(False)}
    plan = {"cells": [1, 2], "epsilon": [0.0, 4.0], "delta": [0.0, 5e-7]}
    plan[column] = [1e-7, plan[column][1]]
    with pytest.raises(ReleaseCorruptError, match="destinations of one cell must cost nothing"):
        verify(small_release([columns(FLOWS[:3]), columns(FLOWS[3:])], plan=plan, change=told(**right)))


def columns(rows):
    names = ("origin", "destination", "count")
    return pa.table(dict(zip(names, list(zip(*rows, strict=True))[:3], strict=True)))


def test_lengths_that_were_measured_cannot_be_left_out(small_release):
    """The reviewer's: ε = 4 with lengths told as the table's 3.92 alone, classes and their scales still there."""
    less = {"epsilon": 3.92, "delta": 1e-6}
    hidden = both(
        MEASURE,
        told(prior__lengths=None, privacy__steps__lengths_epsilon=0.0, privacy__dp=less),
        told(privacy__certified_per_job=less, privacy__pdp_cells__epsilon=3.92),
    )
    with pytest.raises(ReleaseCorruptError, match="must come from lengths, from class_source or from a public table"):
        verify(small_release(plan=MEASURED, change=hidden, stated=True))
    also = both(
        hidden, told(prior__class_edges_km=[], prior__class_scales_km=[], prior__formula=wording.formula(False, None))
    )
    with pytest.raises(ReleaseCorruptError, match="scales of the plan's decay must be those of the manifest"):
        verify(small_release(name="also", plan=MEASURED, change=also, stated=True))


def test_lengths_are_of_all_workers(small_release):
    other = both(MEASURE, told(prior__lengths=LENGTHS | {"workers": [4, 4]}))
    with pytest.raises(ReleaseCorruptError, match="lengths must be those of all workers"):
        verify(small_release(plan=MEASURED, change=other))
