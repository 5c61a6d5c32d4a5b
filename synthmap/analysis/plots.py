"""The three figures of the OnTheMap evaluation: error by density and length, short commutes, long ones where sparse.

Drawn without pyplot, so nothing global changes. Colours are those of Okabe and Ito, told apart by colour-blind readers.
"""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from synthmap.analysis.classes import DENSITY_NAMES, ByDestination, density_edges
from synthmap.analysis.lengths import length_error
from synthmap.published.expected import LENGTH_EDGES_KM

SHORT_KM = 10.0  # short commutes: destinations whose true average is below
LONG_KM = 20.0  # long commutes: from here on
_BLUE, _ORANGE, _GREEN, _GREY = "#0072B2", "#D55E00", "#009E73", "#666666"
_SIZES = (
    (1, 5, "1–4 workers", _GREY, 8.0),
    (5, 20, "5–19 workers", _ORANGE, 18.0),
    (20, 2**62, "20 and more workers", _BLUE, 36.0),
)


def write_plots(found: ByDestination, directory: Path, *, title: str, footer: str = "") -> list[Path]:
    """Draw the three figures as PNG files and return their paths.

    Parameters
    ----------
    found : ByDestination
        As confidential as the tables it comes from; so are the figures.
    directory : Path
        Made if it is not there. That, and the figures, are for their owner alone, whatever the umask.
    title, footer : str
        The release, and what a reader must know before passing the figure on.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    figures = {
        "error_by_density_and_length.png": error_by_density_and_length(found),
        "short_commutes.png": short_commutes(found),
        "long_commutes_in_sparse_places.png": long_commutes_in_sparse_places(found),
    }
    paths = []
    for name, figure in figures.items():
        figure.text(0.01, 0.01, f"{title}   {footer}".strip(), fontsize=7, color=_GREY)
        path = directory / name
        path.unlink(missing_ok=True)  # an earlier one may be open to others
        path.touch(0o600, exist_ok=False)
        figure.savefig(path, dpi=150)
        paths.append(path)
    return paths


def error_by_density_and_length(found: ByDestination) -> Figure:
    """Return a grid of the mean absolute error by density of the destination and length of its true average commute."""
    density_labels, dense = _density_classes(found)
    edges = LENGTH_EDGES_KM
    band = np.digitize(found.lengths.reference, edges[1:-1])
    shown = [b for b in range(len(edges) - 1) if ((band == b) & ~np.isnan(found.lengths.error)).any()]
    value = np.full((len(density_labels), len(shown)), np.nan)
    text = [[""] * len(shown) for _ in density_labels]
    for i in range(len(density_labels)):
        for j, b in enumerate(shown):
            error = length_error(found.lengths, (dense == i) & (band == b))
            if error is not None:
                value[i, j] = error.mae_km
                text[i][j] = f"{error.mae_km:.1f} km\n({error.bias_km:+.1f})\n{error.destinations:,} dest."
    figure, axes = _figure(8.5, 4.6)
    if not shown:
        _nothing(axes)
        return figure
    top = max(1.0, float(np.nanmax(value)))
    image = axes.imshow(value, cmap="cividis_r", aspect="auto", vmin=0.0, vmax=top)
    for i, row in enumerate(text):
        for j, label in enumerate(row):
            colour = "white" if value[i, j] > 0.55 * top else "black"
            axes.text(j, i, label or "none", ha="center", va="center", fontsize=8, color=colour if label else _GREY)
    axes.set_xticks(range(len(shown)), [_band_label(edges[b], edges[b + 1]) for b in shown])
    axes.set_yticks(range(len(density_labels)), density_labels)
    axes.set_xlabel("true average commute of the destination (km)")
    axes.set_ylabel("jobs per km² (square of 5 km around the destination)")
    axes.set_title(
        "Error of the average commute: absolute, in brackets signed (+ is overstated),\n"
        "mean over workers; number of destinations (dest.)",
        fontsize=10,
    )
    figure.colorbar(image, ax=axes, label="mean absolute error (km)")
    return figure


def short_commutes(found: ByDestination) -> Figure:
    """Return boxes of the signed error of destinations with short commutes, by density."""
    labels, dense = _density_classes(found)
    error = found.lengths.error
    short = (found.lengths.reference < SHORT_KM) & ~np.isnan(error)
    figure, axes = _figure(7.0, 4.6)
    places, groups, names = [], [], []
    for i in range(len(labels)):
        for k, (low, high, _, _, _) in enumerate(_SIZES):
            inside = short & (dense == i) & (found.lengths.headcount >= low) & (found.lengths.headcount < high)
            if inside.any():
                places.append(i + (k - 1) * 0.27)
                groups.append(error[inside])
                names.append(k)
    if groups:
        drawn = axes.boxplot(
            groups, positions=places, widths=0.22, whis=(5, 95), showfliers=False, patch_artist=True,
            medianprops={"color": "black", "linewidth": 1.5}, manage_ticks=False,
        )  # fmt: skip
        for box, k in zip(drawn["boxes"], names, strict=True):
            box.set_facecolor(_SIZES[k][3])
            box.set_alpha(0.75)
        for k in sorted(set(names)):
            axes.plot([], [], "s", color=_SIZES[k][3], alpha=0.75, label=f"destinations of {_SIZES[k][2]}")
        axes.legend(fontsize=8, loc="upper right")
        for place, group in zip(places, groups, strict=True):
            axes.annotate(
                f"{group.size:,}",
                (place, 0.01),
                xycoords=("data", "axes fraction"),
                ha="center",
                fontsize=7,
                color=_GREY,
            )
    else:
        _nothing(axes)
    axes.axhline(0.0, color="black", linewidth=0.8, zorder=0)
    axes.set_xlim(-0.5, len(labels) - 0.5)
    axes.set_xticks(range(len(labels)), labels)
    axes.set_xlabel("jobs per km² (square of 5 km around the destination)")
    axes.set_ylabel("synthetic − true average commute (km)")
    axes.set_title(
        f"Short commutes: destinations with a true average below {SHORT_KM:g} km\n"
        "box: middle half of the destinations, line: median, whiskers: 5 % to 95 %; below: how many",
        fontsize=10,
    )
    return figure


def long_commutes_in_sparse_places(found: ByDestination) -> Figure:
    """Return true against synthetic average commutes of sparse destinations with long commutes."""
    labels, dense = _density_classes(found)
    lengths = found.lengths
    chosen = (dense == 0) & (lengths.reference >= LONG_KM) & ~np.isnan(lengths.error)
    figure, axes = _figure(6.6, 5.6)
    if chosen.any():
        top = 1.05 * float(max(lengths.reference[chosen].max(), lengths.other[chosen].max()))
        axes.plot([0, top], [0, top], color="black", linewidth=0.8, label="no error")
        for low, high, name, colour, size in _SIZES:
            inside = chosen & (lengths.headcount >= low) & (lengths.headcount < high)
            if inside.any():
                axes.scatter(
                    lengths.reference[inside], lengths.other[inside], s=size, color=colour, alpha=0.6,
                    linewidths=0, label=f"{int(inside.sum()):,} destinations of {name}",
                )  # fmt: skip
        axes.set_xlim(0, top)
        axes.set_ylim(0, top)
        axes.set_aspect("equal")
        axes.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2)
    else:
        _nothing(axes)
    axes.set_xlabel("true average commute (km)")
    axes.set_ylabel("synthetic average commute (km)")
    axes.set_title(
        f"Long commutes in sparse places: true average of {LONG_KM:g} km and more,\n"
        f"{labels[0].replace(chr(10), ': ')} jobs per km²; above the line: overstated",
        fontsize=10,
    )
    return figure


def _figure(width: float, height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height), layout="constrained")
    figure.get_layout_engine().set(rect=(0.0, 0.035, 1.0, 0.965))  # type: ignore[union-attr,call-arg]
    return figure, figure.add_subplot()


def _nothing(axes: Axes) -> None:
    axes.text(0.5, 0.5, "no such destination", transform=axes.transAxes, ha="center", color=_GREY)


def _band_label(low: float, high: float) -> str:
    return f"{low:g} and more" if np.isinf(high) else f"{low:g} to {high:g}"


def _density_classes(found: ByDestination) -> tuple[list[str], NDArray[np.int64]]:
    """Return labels of the density classes, sparse first, and the class of each destination."""
    edges = density_edges(found.density)
    names = DENSITY_NAMES if len(edges) == len(DENSITY_NAMES) + 1 else ("",) * (len(edges) - 1)
    labels = []
    for name, low, high in zip(names, edges[:-1], edges[1:], strict=True):
        between = f"{low:,.0f} and more" if np.isinf(high) else f"{low:,.0f} to {high:,.0f}"
        labels.append(f"{name}\n{between}".strip())
    return labels, np.digitize(found.density, edges[1:-1])
