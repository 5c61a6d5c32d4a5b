"""Pictures: every text inside, none on another, the legend right, whatever zones are called."""

import io
import itertools
import sys
from dataclasses import replace
from datetime import date

import matplotlib
import numpy as np
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from handmade import World, Zone
from matplotlib import font_manager
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from PIL import Image

from synthmap.analysis.area import pictures
from synthmap.analysis.area.bands import Bands
from synthmap.analysis.area.distance import area_profile, distance_direction
from synthmap.analysis.area.inflow_outflow import inflow_outflow
from synthmap.analysis.area.paired_areas import paired_areas
from synthmap.analysis.area.pictures import MOST_BARS, draw, write_picture
from synthmap.analysis.area.ranked import destinations, origins
from synthmap.analysis.area.time import time
from synthmap.published.areas.area import area_of_zones

ON = date(2026, 1, 2)
ODD = ["$x^$", "<img src=x onerror=alert(1)>", "東京都千代田区", "a" * 90, "Île\nde Ré", "_{", "%s", "\x00", "ווווש"]


def odd_world(year=2019):
    """Zones with names that do harm, around a middle, some far away."""
    zones = [Zone(name, ("all",), 10 + 0.3 * at, 50 + 0.1 * (-1) ** at) for at, name in enumerate(ODD)]
    flows = [
        (a, b, (1 + 7 * i * j, year % 5)) for (i, a), (j, b) in itertools.product(enumerate(ODD), enumerate(ODD[:4]))
    ]
    return World(zones, [*flows, ("elsewhere", ODD[0], (5, 5))], ("land",), ("p", "q"), year=year)


@pytest.fixture(params=["inflow", "profile", "rose", "rose_home", "destinations", "origins", "pair", "time", "empty"])
def found(request, opened):
    """Every analysis of a world with odd names."""
    release = opened(odd_world())
    some, others = area_of_zones(release, tuple(ODD[:3])), area_of_zones(release, tuple(ODD[3:]))
    nobody = area_of_zones(release, (ODD[-1],))
    make = {
        "inflow": lambda: inflow_outflow(release, some),
        "profile": lambda: area_profile(release, some, end="home", bands=Bands((1, 2, 5, 10, 20, 50, 100), "km")),
        "rose": lambda: distance_direction(release, some, end="work"),
        "rose_home": lambda: distance_direction(release, some, end="home", bands=Bands((5,), "km")),
        "destinations": lambda: destinations(release, some),
        "origins": lambda: origins(release, some),
        "pair": lambda: paired_areas(release, some, others),
        "time": lambda: time(opened(odd_world(2017)), release, some),
        "empty": lambda: origins(release, nobody),
    }
    return make[request.param]()


def boxes(figure):
    """The places of all texts that are shown."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    texts = [*figure.texts, *(text for legend in figure.legends for text in [*legend.get_texts(), legend.get_title()])]
    for axes in figure.axes:
        texts += [*axes.texts, axes.xaxis.label]
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=False)
            texts += [label for at, label in ticks if low <= at <= high]
    shown = [text for text in texts if text.get_visible() and text.get_text().strip()]
    return [(text.get_text(), text.get_window_extent(renderer)) for text in shown]


def test_every_text_is_inside_and_on_no_other(found):
    figure = draw(found, ON)
    width, height = figure.get_size_inches() * figure.dpi
    seen = [(text, box) for text, box in boxes(figure) if box.width > 0]
    outside = [text for text, box in seen if box.x0 < 0 or box.y0 < 0 or box.x1 > width or box.y1 > height]
    assert outside == []
    for (one, a), (two, b) in itertools.combinations(seen, 2):
        across = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        assert min(across) <= 2, (one, two)


def test_the_citation_and_warnings_are_on_it(found):
    figure = draw(found, ON)
    written = " ".join(text.get_text() for text in figure.texts).replace("\n", " ")
    for part in ("ε = 4", "δ = 1e-06", "Asked on 2026-01-02", found.title):
        assert part in written
    for warning in found.warnings():
        assert all(word in written for word in warning.split())


def test_a_legend_names_the_colours_that_are_drawn(opened):
    release = opened(replace(odd_world(), prior_share=0.9))
    figure = draw(inflow_outflow(release, area_of_zones(release, (ODD[2],))), ON)
    (legend,) = figure.legends
    named = {to_hex(patch.get_facecolor()) for patch in legend.get_patches()}
    (axes,) = figure.axes
    assert {to_hex(bar.get_facecolor()) for bar in axes.patches} == named


def labels(figure):
    return [label.get_text() for label in figure.axes[0].get_yticklabels()]


def test_names_are_shown_as_they_are_squares_where_no_font_has_them(opened, monkeypatch):
    monkeypatch.setattr(pictures, "_characters", lambda: frozenset(range(32, 256)) | {*map(ord, "□…εδ")})
    release = opened(odd_world())
    figure = draw(origins(release, area_of_zones(release, (ODD[0],))), ON)
    assert {"$x^$", "□□□□□□□", "a" * 36 + "\n" + "a" * 35 + "…", "Île de Ré", "outside the map"} <= set(labels(figure))
    assert any("□ stands for a character that no font has here" in text.get_text() for text in figure.texts)
    latin = draw(inflow_outflow(release, area_of_zones(release, (ODD[1],))), ON)
    assert not any("□" in text.get_text() for text in latin.texts)


def test_a_font_of_the_system_is_taken_where_it_has_the_characters(opened, tmp_path, monkeypatch):
    """Drawing warns of missing glyphs, and warnings are errors here."""
    made = FontBuilder(1000)
    codes = {ord(one): f"g{at}" for at, one in enumerate(ODD[2])}
    pen = TTGlyphPen(None)
    pen.moveTo((0, 0)), pen.lineTo((800, 0)), pen.lineTo((800, 800)), pen.closePath()
    names = [".notdef", *codes.values()]
    made.setupGlyphOrder(names)
    made.setupCharacterMap(codes)
    made.setupGlyf(dict.fromkeys(names, pen.glyph()))
    made.setupHorizontalMetrics(dict.fromkeys(names, (1000, 0)))
    made.setupHorizontalHeader(ascent=900, descent=-100)
    made.setupNameTable({"familyName": "Noto Sans CJK JP", "styleName": "Regular"})
    made.setupOS2()
    made.setupPost()
    made.save(tmp_path / "cjk.ttf")
    monkeypatch.setattr(font_manager.fontManager, "ttflist", [*font_manager.fontManager.ttflist])
    font_manager.fontManager.addfont(tmp_path / "cjk.ttf")
    caches = pictures._fonts, pictures._characters
    for one in caches:
        one.cache_clear()
    try:
        release = opened(odd_world())
        found = origins(release, area_of_zones(release, (ODD[0],)))
        figure = draw(found, ON)
        assert ODD[2] in labels(figure)
        for form in ("png", "pdf"):
            write_picture(found, ON, form)
    finally:
        for one in caches:
            one.cache_clear()


def test_wide_characters_take_the_room_of_two():
    assert pictures._wrapped("東" * 40, 36, 2) == ["東" * 18, "東" * 17 + "…"]
    assert pictures._wrapped("東" * 36, 36, 2) == ["東" * 18, "東" * 18]


def test_rings_of_a_rose_are_the_workers(opened):
    release = opened(odd_world())
    found = distance_direction(release, area_of_zones(release, (ODD[0],)), end="work")
    figure = draw(found, ON)
    drawn = sorted(patch.get_height() for patch in figure.axes[0].patches)
    assert drawn == sorted(found.figures.workers[:32, 0].astype(float))


def test_more_rows_than_fit_are_told(opened):
    zones = [Zone(f"{n:03}") for n in range(MOST_BARS + 5)]
    release = opened(World(zones, [(zone.id, "000", (n + 1,)) for n, zone in enumerate(zones)]))
    figure = draw(origins(release, area_of_zones(release, ("000",)), top=100), ON)
    assert len(figure.axes[0].patches) == MOST_BARS
    assert any("5 more rows are in the table" in text.get_text() for text in figure.texts)


@pytest.mark.parametrize("form", ["png", "pdf"])
def test_the_same_analysis_is_the_same_file(opened, form):
    release = opened(odd_world())
    found = inflow_outflow(release, area_of_zones(release, (ODD[0],)))
    data = write_picture(found, ON, form)
    assert data == write_picture(found, ON, form)
    if form == "png":
        with Image.open(io.BytesIO(data)) as picture:
            assert picture.text["Description"] == found.cited(ON)
            assert np.asarray(picture.convert("L")).std() > 10


@pytest.mark.parametrize("form", ["png", "pdf"])
def test_no_picture_needs_pyplot_which_threads_would_share(opened, monkeypatch, form):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    monkeypatch.delattr(matplotlib, "pyplot", raising=False)
    release = opened(odd_world())
    assert write_picture(origins(release, area_of_zones(release, (ODD[0],))), ON, form)


def test_names_from_right_to_left_are_drawn_so():
    """The wide letter, last in the text, is at its left; then there are four thin lines."""
    figure = Figure(figsize=(4, 1))
    figure.text(0.1, 0.3, ODD[-1], size=40, family=pictures._fonts())
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    ink = np.flatnonzero((np.asarray(canvas.buffer_rgba())[:, :, 0] < 128).any(axis=0))
    letters = [part.size for part in np.split(ink, np.flatnonzero(np.diff(ink) > 1) + 1)]
    assert len(letters) == 5
    assert letters[0] > 2 * max(letters[1:])


def test_directions_are_told_with_the_errors_of_their_sums(opened):
    release = opened(odd_world())
    found = distance_direction(release, area_of_zones(release, tuple(ODD[:3])), end="home")
    told = "\n".join(text.get_text() for text in draw(found, ON).texts)
    assert len(found.sums) == 8
    for at, (sector, figure) in enumerate(found.sums.items()):
        rows = found.figures.take(slice(4 * at, 4 * at + 4))
        assert figure.workers.tolist() == [rows.workers.sum(axis=0).tolist()]
        assert np.linalg.norm(rows.error[:, 0]) / 4 < figure.error[0, 0] < rows.error[:, 0].sum()
        assert f"{sector:>4} {figure.workers[0, 0]:,} ± {figure.error[0, 0]:,.0f}".split() in map(
            str.split, told.split("\n")
        )
    assert "Segments are in the table." in told
