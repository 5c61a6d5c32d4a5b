"""What is drawn in the three figures: each mark against the figure it stands for."""

import os

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from synthmap.analysis.classes import ByDestination
from synthmap.analysis.lengths import MeanLengths, length_error
from synthmap.analysis.plots import (
    error_by_density_and_length,
    long_commutes_in_sparse_places,
    short_commutes,
    write_plots,
)

UNKNOWN = np.nan
ROWS = (  # jobs per km², workers, true km, synthetic km; four destinations in each third by density
    (1.0, 2, 25.0, 30.0),
    (2.0, 10, 30.0, 28.0),
    (3.0, 40, 22.0, 22.5),
    (3.0, 3, 4.0, 6.0),
    (10.0, 3, 4.0, 5.0),
    (11.0, 6, 8.0, 7.0),
    (12.0, 7, 9.0, 12.0),
    (13.0, 4, 15.0, 15.0),
    (100.0, 50, 3.0, 3.5),
    (110.0, 150, 2.0, 1.0),
    (120.0, 5, 50.0, 40.0),
    (130.0, 9, UNKNOWN, UNKNOWN),
)
DENSITY = ["sparse\n0 to 8", "medium\n8 to 42", "dense\n42 and more"]
BANDS = {"0 to 5": (0, 5), "5 to 10": (5, 10), "10 to 20": (10, 20), "20 to 40": (20, 40), "40 to 80": (40, 80)}
SMALL, MIDDLE, LARGE = "#666666", "#d55e00", "#0072b2"
JOBS = "jobs per km² (square of 5 km around the destination)"


def made_up(density=None):
    given, headcount, reference, other = map(np.array, zip(*ROWS, strict=True))
    lengths = MeanLengths(np.arange(len(ROWS), dtype=np.int32), headcount, reference, other)
    return ByDestination(lengths, given if density is None else np.full(len(ROWS), density))


def ticks(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def legend(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_cells_of_the_grid_tell_the_error_of_their_destinations():
    found = made_up()
    axes, colours = error_by_density_and_length(found).axes
    assert (ticks(axes.yaxis), ticks(axes.xaxis)) == (DENSITY, list(BANDS))
    told = {text.get_position(): text.get_text() for text in axes.texts}
    shown = np.ma.filled(axes.images[0].get_array(), np.nan)
    assert shown.shape == (3, 5)
    assert len(told) == shown.size
    for i in range(3):
        for j, (low, high) in enumerate(BANDS.values()):
            true = found.lengths.reference
            error = length_error(found.lengths, (np.arange(12) // 4 == i) & (true >= low) & (true < high))
            if error is None:
                assert (told[j, i], np.isnan(shown[i, j])) == ("none", True)
            else:
                count = f"{error.destinations} dest."
                assert told[j, i] == f"{error.mae_km:.1f} km\n({error.bias_km:+.1f})\n{count}"
                assert shown[i, j] == error.mae_km
    assert told[1, 1] == "2.1 km\n(+1.2)\n2 dest."  # 6 workers with −1 km, 7 with +3
    assert axes.images[0].get_clim() == (0, 10)
    assert axes.get_xlabel() == "true average commute of the destination (km)"
    assert axes.get_ylabel() == JOBS
    assert colours.get_ylabel() == "mean absolute error (km)"


def test_boxes_of_short_commutes_are_of_their_errors():
    (axes,) = short_commutes(made_up()).axes
    boxes = [(to_hex(box.get_facecolor()), *box.get_path().get_extents().intervaly) for box in axes.patches]
    assert boxes == [(SMALL, 2, 2), (SMALL, 1, 1), (MIDDLE, 0, 2), (LARGE, -0.625, 0.125)]
    medians = [line for line in axes.lines if line.get_linewidth() == 1.5 and line.get_color() == "black"]
    drawn = [(np.mean(line.get_xdata()), *set(line.get_ydata())) for line in medians]
    assert np.array(drawn) == pytest.approx(np.array([(-0.27, 2), (0.73, 1), (1, 1), (2.27, -0.25)]))
    counted = [(text.xy[0], text.get_text()) for text in axes.texts]
    assert counted == [(-0.27, "1"), (0.73, "1"), (1.0, "2"), (2.27, "2")]
    assert ticks(axes.xaxis) == DENSITY
    assert legend(axes) == [f"destinations of {size} workers" for size in ("1–4", "5–19", "20 and more")]
    assert any(list(line.get_ydata()) == [0, 0] for line in axes.lines)
    assert (axes.get_xlabel(), axes.get_ylabel()) == (JOBS, "synthetic − true average commute (km)")
    assert "below 10 km" in axes.get_title()


def test_points_of_long_commutes_are_true_against_synthetic():
    (axes,) = long_commutes_in_sparse_places(made_up()).axes
    points = [(to_hex(some.get_facecolor()[0]), some.get_offsets().tolist()) for some in axes.collections]
    assert points == [(SMALL, [[25, 30]]), (MIDDLE, [[30, 28]]), (LARGE, [[22, 22.5]])]
    (no_error,) = axes.lines
    assert list(no_error.get_xdata()) == list(no_error.get_ydata()) == list(axes.get_xlim()) == [0, 31.5]
    assert axes.get_xlim() == axes.get_ylim()
    each = [f"1 destinations of {size} workers" for size in ("1–4", "5–19", "20 and more")]
    assert legend(axes) == ["no error", *each]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("true average commute (km)", "synthetic average commute (km)")
    assert "20 km and more,\nsparse: 0 to 8 jobs per km²" in axes.get_title()


def test_where_thirds_coincide_there_are_fewer_classes():
    found = made_up(density=5.0)
    grid = error_by_density_and_length(found).axes[0]
    assert ticks(grid.yaxis) == ["0 to 5", "5 and more"]
    rows = [[text.get_text() for text in grid.texts if text.get_position()[1] == i] for i in range(2)]
    assert rows[0] == ["none"] * 5
    assert "none" not in rows[1]
    (boxes,) = short_commutes(found).axes
    assert ticks(boxes.xaxis) == ["0 to 5", "5 and more"]
    assert [text.get_text() for text in boxes.texts] == ["2", "2", "2"]
    (points,) = long_commutes_in_sparse_places(found).axes
    assert [text.get_text() for text in points.texts] == ["no such destination"]
    assert not points.collections


def test_each_file_holds_its_figure_with_title_and_footer(tmp_path, monkeypatch):
    saved = {}
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **_: saved.update({path.name: figure}))
    write_plots(made_up(), tmp_path, title="a release", footer="Confidential.")
    titles = {name: figure.axes[0].get_title().partition(":")[0] for name, figure in saved.items()}
    assert titles == {
        "error_by_density_and_length.png": "Error of the average commute",
        "short_commutes.png": "Short commutes",
        "long_commutes_in_sparse_places.png": "Long commutes in sparse places",
    }
    for figure in saved.values():
        assert [text.get_text() for text in figure.texts] == ["a release   Confidential."]


def test_figures_are_for_their_owner_alone(tmp_path):
    """They are as confidential as the tables; also where an earlier one could be read by all."""
    place = tmp_path / "new"
    before = os.umask(0)
    try:
        write_plots(made_up(), place, title="a release")
        (place / "short_commutes.png").chmod(0o644)
        drawn = write_plots(made_up(), place, title="a release")
    finally:
        os.umask(before)
    assert place.stat().st_mode & 0o777 == 0o700
    assert {path.name: path.stat().st_mode & 0o777 for path in drawn} == {path.name: 0o600 for path in place.iterdir()}
    assert len(drawn) == 3
