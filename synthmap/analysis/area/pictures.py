"""Pictures of analyses as PNG or PDF: figures with their expected errors, what to beware of, and the citation.

Drawn without pyplot, so nothing global changes; one at a time, since matplotlib's fonts are shared between threads.
Colours are those of Okabe and Ito, told apart by colour-blind readers.
"""

import io
import textwrap
import threading
from collections.abc import Mapping, Sequence
from datetime import date
from functools import cache
from typing import Any, Literal
from unicodedata import east_asian_width

import numpy as np
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, MaxNLocator

from synthmap.analysis.area.bands import SECTORS, Bands
from synthmap.analysis.area.figures import Figures
from synthmap.analysis.area.result import Analysis
from synthmap.geography.zones import ELSEWHERE
from synthmap.published.figure_errors import Trust, trust

DPI = 150
MOST_BARS = 40
_WIDTH = 9.0  # inches
_LABELS, _SIDE, _ROW, _LINE = 2.9, 0.35, 0.34, 0.165
_WRAPPED = 142  # characters of small print in a line
_NAVY, _BLUE, _ORANGE, _GREY, _DARK = "#003F5C", "#0072B2", "#D55E00", "#BBBBBB", "#333333"
_BANDS = ("#003F5C", "#0072B2", "#56B4E9", "#B3DFF5")  # near to far; more bands lie between
_KINDS: dict[Trust, tuple[str, str, str]] = {
    "exact": (_NAVY, "", "exact"),
    "signal": (_BLUE, "", "expected error below half of the figure"),
    "weak": (_ORANGE, "", "weak: expected error above half of the figure"),
    "noise": (_GREY, "////", "noise: expected error as large as the figure, or larger"),
}
_FONTS = (
    "DejaVu Sans", "Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Sans Arabic", "Noto Sans Hebrew",
    "Noto Sans Devanagari", "WenQuanYi Zen Hei", "IPAexGothic", "Arial Unicode MS",
)  # fmt: skip
_GONE = "□"  # in the place of a character that none of them has
_LOCK = threading.Lock()
Picture = Literal["png", "pdf"]


def write_picture(found: Analysis, on: date, form: Picture) -> bytes:
    """Return a picture of what an analysis found.

    Parameters
    ----------
    found : Analysis
    on : datetime.date
        The day, for the citation.
    form : {"png", "pdf"}
    """
    with _LOCK:
        figure = draw(found, on)
        out = io.BytesIO()
        canvas = FigureCanvasAgg(figure) if form == "png" else FigureCanvasPdf(figure)
        about = {"Title": found.title, "Subject" if form == "pdf" else "Description": found.cited(on)}
        undated = {"CreationDate": None} if form == "pdf" else {}
        canvas.print_figure(out, format=form, dpi=DPI, metadata=about | undated)
    return out.getvalue()


def draw(found: Analysis, on: date) -> Figure:
    """Return the figure of an analysis."""
    rose = found.name == "distance-direction"
    rows = _bars(found)
    hidden = len(rows) - MOST_BARS
    rows = rows[:MOST_BARS]
    prints = [*found.cautions(), found.cited(on)]
    if hidden > 0 and not rose:
        prints.insert(0, f"{hidden:,} more rows are in the table.")
    if found.segments:
        prints.append("Segments are in the table.")
    if any(_GONE in _shown(text) for text in (*prints, *_place(found), *(row[0] for row in rows))):
        prints.insert(0, f"{_GONE} stands for a character that no font has here; the table has it.")
    small = [line for text in prints for line in textwrap.wrap(_shown(text), _WRAPPED)]
    head = _wrapped(_shown("; ".join(_place(found))), 100, 3)
    kinds = [kind for kind in _KINDS if any(row[3] == kind for row in rows)]
    legend = 0.0 if rose else 0.15 + 0.19 * ((len(kinds) + 1) // 2)
    body = 5.2 if rose else _ROW * max(1, len(rows)) + 0.45
    top, bottom = 0.62 + 0.2 * len(head) + legend, _LINE * len(small) + 0.35
    height = top + body + bottom
    figure = Figure(figsize=(_WIDTH, height))
    _write(figure, _SIDE, height - 0.35, found.title, height, size=14, weight="bold")
    _write(figure, _SIDE, height - 0.60, "\n".join(head), height, size=9, color=_DARK)
    _write(figure, _SIDE, bottom - 0.2, "\n".join(small), height, size=7, color=_DARK)
    if rose:
        _rose(figure, found, (bottom + 0.15) / height, (body - 0.3) / height)
    else:
        axes = figure.add_axes((_LABELS / _WIDTH, bottom / height + 0.3 / height, (_WIDTH - _LABELS - 0.3) / _WIDTH,
                                (body - 0.4) / height))  # fmt: skip
        _barred(axes, rows)
        handles = [_patch(kind) for kind in kinds]
        figure.legend(
            handles=handles, loc="upper left", ncols=2, fontsize=8, frameon=False, borderpad=0, borderaxespad=0,
            bbox_to_anchor=(_SIDE / _WIDTH, (height - 0.68 - 0.2 * len(head)) / height),
        )  # fmt: skip
    return figure


Bar = tuple[str, int, float, Trust]  # label, workers, expected error, how far it can be trusted


def _bars(found: Analysis) -> list[Bar]:
    """Return what is drawn as bars; totals that all others are part of are told in words instead."""
    kinds = trust(found.figures.workers[:, 0], found.figures.error[:, 0])
    numbers = zip(found.figures.workers[:, 0].tolist(), found.figures.error[:, 0].tolist(), kinds, strict=True)
    out = []
    for key, (workers, error, kind) in zip(found.keys, numbers, strict=True):
        label = key.get("label") or key.get("id") or _direction(key, found.parameters)
        if label is not None and key.get("group") != "total":
            out.append(("outside the map" if label == ELSEWHERE else str(label), workers, error, kind))
    return out


def _direction(key: Mapping[str, Any], parameters: Mapping[str, Any]) -> str | None:
    """Return a direction and its band in words; None where a row has none."""
    if key.get("direction") in (None, "all"):
        return None
    if key["from"] is None:
        return {"same_zone": "within one zone"}.get(key["direction"], ELSEWHERE)
    end = "and more" if key["to"] is None else f"to under {key['to']:g}"
    return f"{key['direction']}, {key['from']:g} {end} {parameters['units']}"


def _place(found: Analysis) -> list[str]:
    """Return what and where, and the total where there is one."""
    out = [one.area.description if one.name == "area" else f"{one.name}: {one.area.description}" for one in found.areas]
    ends = {"home": "people who live in the area", "work": "people who work in the area"}
    if (end := found.areas[0].end) is not None:
        out.append(ends[end])
    if "releases" in found.parameters:
        out.append(f"from {found.parameters['releases']['before']} to {found.parameters['releases']['after']}")
    if (found.keys[-1].get("group") == "total") or (found.keys[-1].get("direction") == "all"):
        total = _told(int(found.figures.workers[-1, 0]), float(found.figures.error[-1, 0]))
        out.append(f"{total} workers in all" if found.before is None else f"change in all: {total} workers")
    return out


def _barred(axes: Axes, rows: Sequence[Bar]) -> None:
    """Draw bars with their errors, the first at the top."""
    at = np.arange(len(rows))
    workers, error = np.array([row[1] for row in rows], float), np.array([row[2] for row in rows])
    for place, (_, count, off, kind) in enumerate(rows):
        colour, hatch, _ = _KINDS[kind]
        axes.barh(place, count, height=0.62, color=colour, hatch=hatch, edgecolor="white" if hatch else colour, lw=0)
        if off > 0:
            axes.errorbar(count, place, xerr=off, color=_DARK, capsize=2.5, lw=1)
    ends = np.maximum(0.0, workers + error)
    low, high = min(0.0, float((workers - error).min(initial=0.0))), float(ends.max(initial=0.0)) or 1.0
    span = high - low
    axes.set_xlim(low - 0.03 * span if low < 0 else 0.0, high + 0.34 * span)
    for place, (_, count, off, _) in enumerate(rows):
        text = axes.text(ends[place] + 0.015 * span, place, _told(count, off), va="center", fontsize=8)
        text.set_parse_math(False)
    if not rows:
        axes.text(0.5, 0.5, "no workers", transform=axes.transAxes, ha="center", va="center", fontsize=9, color=_DARK)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_yticks(at, ["\n".join(_wrapped(_shown(row[0]), 36, 2)) for row in rows], fontsize=8, family=_fonts())
    for label in axes.get_yticklabels():
        label.set_parse_math(False)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=8)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.axvline(0, color=_DARK, lw=0.8)
    axes.grid(axis="x", color="#DDDDDD", lw=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel("workers; whiskers are ± the expected error", fontsize=8, labelpad=2)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def _rose(figure: Figure, found: Analysis, bottom: float, height: float) -> None:
    """Draw sectors of the compass, bands of distance on top of each other, the nearest in the middle."""
    bands = len(found.parameters["bands"]) + 1
    cells = len(SECTORS) * bands
    workers = found.figures.workers[:cells, 0].reshape(len(SECTORS), bands).astype(float)
    kinds = np.array(trust(found.figures.workers[:cells, 0], found.figures.error[:cells, 0])).reshape(-1, bands)
    axes = figure.add_axes((0.06, bottom + 0.04 * height, 0.56, 0.92 * height), projection="polar")
    axes.set_theta_zero_location("N")  # type: ignore[attr-defined]
    axes.set_theta_direction(-1)  # type: ignore[attr-defined]
    turn = np.radians(np.arange(len(SECTORS)) * 45.0)
    colours = _between(bands)
    base = np.zeros(len(SECTORS))
    for band in range(bands):
        for sector in range(len(SECTORS)):
            noise = kinds[sector, band] == "noise"
            axes.bar(
                turn[sector], workers[sector, band], width=np.radians(42), bottom=base[sector],
                color=colours[band], hatch="////" if noise else "", edgecolor="white", lw=0.4,
            )  # fmt: skip
        base += workers[:, band]
    axes.set_xticks(turn, SECTORS, fontsize=9)
    axes.set_rmax(float(base.max()) * 1.02 or 1.0)  # type: ignore[attr-defined]
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=True, prune="lower"))
    gap = np.radians(45.0 * float(np.argmin(base + np.roll(base, -1))) + 22.5)  # where bars hide least
    for tick in axes.get_yticks():
        if 0 < tick <= axes.get_ylim()[1]:
            axes.text(gap, tick, f"{tick:,.0f}", fontsize=7, ha="center", va="center", zorder=5,
                      bbox={"facecolor": "white", "alpha": 0.75, "lw": 0, "pad": 0.8})  # fmt: skip
    axes.tick_params(axis="y", labelleft=False)
    axes.set_axisbelow(True)
    axes.grid(color="#CCCCCC", lw=0.6)
    names = Bands(tuple(found.parameters["bands"]), found.parameters["units"])
    handles = [Patch(facecolor=colours[band], label=names.label(band)) for band in range(bands)]
    if (kinds[workers > 0] == "noise").any():
        handles.append(
            Patch(facecolor="white", hatch="////", edgecolor=_GREY, label="noise: error as large as the figure")
        )
    legend = figure.legend(
        handles=handles, loc="upper left", bbox_to_anchor=(0.68, bottom + 0.96 * height), fontsize=8, frameon=False,
        title="Distance of the other end", title_fontsize=9, alignment="left",
    )  # fmt: skip
    legend.get_title().set_fontweight("bold")
    others = (
        (label, found.figures.take([row]))
        for row, label in ((cells, "within one zone"), (cells + 1, "outside the map"))
    )
    lines = ["Workers by direction:"]
    lines += [f"{name:>4} {_figure(one):>19}" for name, one in found.sums.items()]
    lines += [f"{label}: {_figure(one)}" for label, one in others]
    figure.text(
        0.68,
        bottom + 0.02 * height,
        "\n".join(lines),
        fontsize=8,
        va="bottom",
        linespacing=1.4,
        family="DejaVu Sans Mono",
    )


def _between(number: int) -> list[str]:
    """Return so many colours from the first to the last of the bands."""
    known = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in _BANDS], float)
    at = np.linspace(0, len(known) - 1, number)
    mixed = np.stack([np.interp(at, np.arange(len(known)), known[:, axis]) for axis in range(3)], axis=1)
    return ["#{:02X}{:02X}{:02X}".format(*colour) for colour in mixed.round().astype(int).tolist()]


def _patch(kind: Trust) -> Patch:
    colour, hatch, label = _KINDS[kind]
    return Patch(facecolor=colour, hatch=hatch, edgecolor="white" if hatch else colour, label=label)


def _told(workers: int, error: float) -> str:
    return (
        f"{workers:,}" if error == 0 else f"{workers:,} ± {error:,.0f}" if error >= 1 else f"{workers:,} ± {error:.1g}"
    )


def _figure(one: Figures) -> str:
    return _told(int(one.workers[0, 0]), float(one.error[0, 0]))


def _write(figure: Figure, x: float, y: float, words: str, height: float, *, size: float, **style: Any) -> Text:
    """Write text whose upper left corner is at inches from the lower left one."""
    text = figure.text(
        x / _WIDTH, y / height, words, fontsize=size, va="top", linespacing=1.3, family=_fonts(), **style
    )
    text.set_parse_math(False)
    return text


def _shown(text: str) -> str:
    """Return a text whose characters a font has; a square stands for each other one."""
    known = _characters()
    return "".join(one if ord(one) in known and one.isprintable() else " " if one.isspace() else _GONE for one in text)


def _wrapped(text: str, width: int, most: int) -> list[str]:
    """Return at most so many lines of a text, the last with an ellipsis if there would be more."""
    if any(east_asian_width(one) in "WF" for one in text):  # twice as wide
        width //= 2
    lines = textwrap.wrap(text, width)
    return lines if len(lines) <= most else [*lines[: most - 1], lines[most - 1][: width - 1] + "…"]


@cache
def _fonts() -> list[str]:
    """Return the fonts that are there; a character is drawn with the first that has it."""
    there = set(font_manager.get_font_names())
    return [name for name in _FONTS if name in there]


@cache
def _characters() -> frozenset[int]:
    """Return the characters that the fonts have."""
    fonts = (font_manager.get_font(font_manager.findfont(name)) for name in _fonts())
    return frozenset(code for font in fonts for code in font.get_charmap())
