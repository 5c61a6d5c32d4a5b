"""``synthmap metrics``: figures for people and programs, and refusals in one line."""

import pytest
from measuredrecord import measured

from synthmap.published.measured import publish_measured
from synthmap.release.manifest import MANIFEST
from synthmap.release.verify import sha256


@pytest.fixture
def release(small_release):
    directory = small_release()
    publish_measured(directory.parent, measured(directory.name, sha256(directory / MANIFEST)))
    return directory


def test_published_ones_are_shown(synthmap, one_object, release):
    code, out, err = synthmap("metrics", "show", release)
    assert (code, err) == (0, "")
    assert "measured with ε = 0.5; intervals of 95%" in out
    assert "0–5 km  0 (-100 to 100)" in out
    assert "elsewhere  10 (-90 to 110)" in out
    assert "80 km and more  3 (2 to 4);  -2 (-3 to -1)  (9 workers)" in out
    assert "dense  4 (3 to 5);  -3 (-4 to -2)  (9 workers)" in out
    assert "Measured with ε = 0.5." in out
    assert one_object("metrics", "show", release)["epsilon"] == 0.5


def test_where_there_are_none_one_line_says_how_to_get_them(one_line, small_release):
    assert "must be published first: synthmap metrics publish" in one_line("metrics", "show", small_release())


def test_publishing_needs_a_known_dataset(one_line, small_release, tmp_path):
    words = [
        "metrics",
        "publish",
        small_release(),
        "--dataset",
        "nobody",
        "--epsilon",
        "1",
        "--registry",
        tmp_path / "r",
    ]
    assert "dataset (nobody) must be" in one_line(*words)


@pytest.mark.parametrize(("epsilon", "cap"), [("0", "80"), ("-1", "80"), ("1", "0"), ("1", "1e9")])
def test_figures_out_of_range_are_one_line(one_line, small_release, tmp_path, epsilon, cap):
    words = ["--dataset", "a", "--epsilon", epsilon, "--cap-km", cap, "--registry", tmp_path / "r"]
    assert "must be" in one_line("metrics", "publish", small_release(), *words)
