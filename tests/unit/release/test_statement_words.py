"""The sentences of a statement say what its facts say, for every rule."""

import pytest

from synthmap.release.statement import read_statement, text
from synthmap.release.statement_words import percent


@pytest.fixture
def say(small_release):
    """Return the text of the statement of a release whose privacy part was changed."""

    def make(segments=("A", "B"), plan=None, **values):
        def change(manifest):
            manifest["privacy"].update(values)
            manifest["segments"] = list(segments)

        return text(read_statement(small_release(change=change, plan=plan)))

    return make


PURE = {"rule": "pure", "dp": {"epsilon": 2.0, "delta": 0.0}, "pdp_cells": None}
ADP = {"rule": "adp", "pdp_cells": None}


def test_the_probabilistic_promise_speaks_of_cells_and_of_exp_epsilon(say):
    told = say()
    assert "Promise: (ε, δ)-differential privacy with ε = 4, δ = 1e-06" in told
    assert "probabilistic DP" in told
    assert "1.5e-06 for the whole table" in told
    assert "but for a chance of at most 1e-06 (1 in 1,000,000), the release" in told
    assert "at most 54.5982; what seemed 1 % likely beforehand seems at most 35.6 % likely" in told


def test_figures_are_never_better_in_words_than_they_are(say):
    cells = {"epsilon": 4.0000004, "delta_destination": 1.0001e-6, "delta_table": 1.5001e-6}
    told = say(dp={"epsilon": 4.0000004, "delta": 1.2341e-6}, pdp_cells=cells)
    assert "with ε = 4.00001, δ = 1.24e-06, for this table" in told
    assert "(OnTheMap's form): ε = 4.00001, δ = 1.01e-06 for a destination, δ = 1.51e-06 for the whole table" in told
    assert "at most 1.24e-06 (1 in 806,451), the release" in told


@pytest.mark.parametrize(
    ("delta", "told"),
    [(1e-5, "1e-05 (1 in 100,000)"), (0.1 + 0.2, "0.3 (1 in 3)"), (3e-6, "3e-06 (1 in 333,333)"),
     (1e-13, "1e-13 (1 in 10,000,000,000,000)"), (1.0000000001e-5, "1.01e-05 (1 in 99,009)")],
)  # fmt: skip
def test_one_in_so_many_is_the_chance_beside_it_and_never_a_smaller_one(say, delta, told):
    assert f"but for a chance of at most {told}, the release" in say(dp={"epsilon": 4.0, "delta": delta})


def test_plain_dp_claims_no_more_than_it_bounds(say):
    told = say(**ADP)
    assert "probabilistic" not in told
    assert "but for a chance of at most 2e-06" in told
    assert "at most 109.197" in told
    assert "at twice exp(ε)" in told


def test_pure_dp_has_no_chance_of_failure(say):
    told = say(**PURE)
    assert "Promise: ε-differential privacy with ε = 2, δ = 0" in told
    assert "chance of at most" not in told
    assert "the release multiplies the odds" in told


def test_several_jobs_are_named(say):
    told = say(segments=(), max_jobs_per_worker=3, dp={"epsilon": 12.0, "delta": 3e-6})
    assert "the homes of up to 3 jobs of a worker together" in told
    assert "one job's home" in told
    assert "segment by" not in told


def test_an_epsilon_that_bounds_nothing_says_so(say):
    assert "too large to bound anything" in say(dp={"epsilon": 1000.0, "delta": 1e-6})


def test_a_warning_comes_first(small_release):
    def change(manifest):
        manifest.update(private=False, warning="drawn with a fixed seed")

    assert text(read_statement(small_release(change=change))).splitlines()[2] == "NOT PRIVATE: drawn with a fixed seed"


def test_it_says_below_which_size_figures_are_mostly_prior(say):
    assert "At no destination are more than half of them; the largest share at one is 33.3 %" in say()


def test_it_names_the_size_where_there_is_one(say):
    told = say(plan={"prior_share": [0.7, 0.1]})
    assert "Below 5 workers more than half of a destination's origins can be prior: 1 of 2 destinations" in told
    assert "with 44.4 % of all workers" in told


@pytest.mark.parametrize(
    ("share", "up", "words"),
    [(0.0, False, "0 %"), (1.0, True, "100 %"), (0.5, False, "50 %"), (0.99999, True, "100 %"), (0.9994, True, "100 %"),
     (0.355469, True, "35.6 %"), (0.3541, True, "35.5 %"), (1e-7, False, "0.00001 %"), (0.9999, False, "over 99.9 %")],
)  # fmt: skip
def test_percentages(share, up, words):
    assert percent(share, up=up) == words
