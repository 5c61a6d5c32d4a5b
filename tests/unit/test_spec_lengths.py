"""What of ε goes to measured lengths, and scales of the decay that come from public figures instead."""

import pytest
from specs import reader

from synthmap.errors import ConfigurationError

read = pytest.fixture(reader)

SCALES = "[prior]\nclass_edges_km = [9.0]\nclass_scales_km = [6.0, 12.0]\n"


def test_scales_come_with_what_they_were_fitted_to(read):
    assert read(f'{SCALES}class_source = "CTPP 2016"').prior.class_source == "CTPP 2016"
    for nothing in ("", 'class_source = ""', 'class_source = " "'):
        with pytest.raises(ConfigurationError, match=r'class_source \(""\) must tell what public figures') as caught:
            read(SCALES + nothing)
        assert "\n" not in str(caught.value)


SHARES = {
    "by itself": ("", {}, 0.1),
    "of a larger ε": ("", {"epsilon": "epsilon = 8.6"}, 8.6 / 10),
    "of hardly any ε": ("", {"epsilon": "epsilon = 0.0099"}, 0.0),
    "asked for": ('[prior]\nlengths_epsilon = "auto"', {}, 0.1),
    "a number": ("[prior]\nlengths_epsilon = 0.3", {}, 0.3),
    "none": ("[prior]\nlengths_epsilon = 0", {}, 0.0),
    "scales from public figures": (f'{SCALES}class_source = "CTPP 2016"', {}, 0.0),
    "a published release": ('[prior]\nrelease = "r"', {}, 0.0),
    "a public table": ('[prior.table]\npath = "t"\norigin = "o"\ndestination = "d"\nvintage = "v"', {}, 0.0),
    "noise for all jobs together": ('[plan]\nmechanism = "histogram"\nnoise = "gaussian"', {}, 0.0),
    "a number beside a published release": ('[prior]\nrelease = "r"\nlengths_epsilon = 0.3', {}, 0.3),
}


@pytest.mark.parametrize("case", SHARES)
def test_lengths_take_at_most_a_tenth_unless_something_public_tells_them(read, case):
    more, changes, share = SHARES[case]
    assert read(more, **changes).lengths_epsilon == share
    assert read(more, **changes).with_workers(1).lengths_epsilon == share


@pytest.mark.parametrize(
    ("epsilon", "workers", "share"),
    [(1.0, 50_000, 0.1), (1.0, 100_000, 0.05), (4.0, 100_000, 0.05), (0.5, 20_000, 0.05), (4.0, 10**9, 0.001)],
)
def test_of_more_workers_lengths_take_less(read, epsilon, workers, share):
    spec = read(epsilon=f"epsilon = {epsilon}").with_workers(workers)
    assert spec.lengths_epsilon == share
    assert spec.with_workers(1) == spec  # decided once
    assert read("[prior]\nlengths_epsilon = 0.3").with_workers(workers).lengths_epsilon == 0.3
    assert read("[prior]\nlengths_epsilon = 0").with_workers(workers).lengths_epsilon == 0


@pytest.mark.parametrize("more", ["", "strength = 7"])
def test_a_decay_that_was_fitted_is_believed_more_unless_told_otherwise(read, more):
    told = 7.0 if more else None
    assert read(f"[prior]\n{more}").strength == (told or 5.0)
    assert read(f'{SCALES}class_source = "CTPP 2016"\n{more}').strength == (told or 15.0)


@pytest.mark.parametrize("wrong", ["-0.1", "0.0009", "11.0", "nan", "true", '"usual"', '"0.1"'])
def test_another_share_of_lengths_is_refused(read, wrong):
    with pytest.raises(ConfigurationError, match="lengths_epsilon") as caught:
        read(f"[prior]\nlengths_epsilon = {wrong}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("more", ["", "lengths_epsilon = 0.1"])
def test_a_source_of_no_scales_is_refused(read, more):
    with pytest.raises(ConfigurationError, match=r'class_source \("CTPP 2016"\) must be left out'):
        read(f'[prior]\nclass_source = "CTPP 2016"\n{more}')
