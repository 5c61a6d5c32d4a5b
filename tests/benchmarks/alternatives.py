"""Error against ε, beside what a user would pick instead: ``python -m tests.benchmarks.alternatives``.

Needs the optional extra ``alternatives`` (OpenDP, inf-tda). Same tables, same δ per destination, same adjacency: *one
worker of one destination has another origin*, headcounts public. What the others promise is converted to it:

* OpenDP's histograms protect adding or removing a record; a worker who moves is one of each, so the L1 sensitivity is 2
  and the noise has scale 2/ε. Destinations are disjoint, so each gets the whole ε.
* The stability histogram changes in at most 2 keys, by 1 each: d_in = (L0 2, L1 2, L∞ 1); its δ is for one destination.
* inf-tda's "bounded" adjacency is the same replacement; it is run on each destination, its total public, ρ from (ε, δ).
* The histogram mechanism is pure ε-DP: it gets the same ε and no δ.
* What a method leaves negative or off the public headcount is projected onto it (nearest in L2, then by largest
  remainders, at random among equals): post-processing, no ε. Methods that work on tracts are spread over zones by the
  public weights.
* Noise on all zones is drawn with numpy, by the destination: OpenDP's has the same law but takes some 30 µs a cell.
  4 million values of OpenDP's Laplace at ε = 1: Kolmogorov-Smirnov p = 0.71. All zones of 100 destinations of Rhode
  Island, km (draws): OpenDP 12.77 (2), numpy 12.18 ± 0.33 (10) at ε = 1; 7.06 (5), 6.96 ± 0.17 (60) at ε = 8.6.

Columns: worker-weighted mean absolute error of a destination's average commute (km); common part of commuters, tract to
tract and tract to zone. Mean ± standard deviation over draws.

Seen: km and common part at ε = 1, 2, 4, 8.6. Rows without a mark are one run, 4 draws each (Leeds: 5 of those that
others made), before the prior's pieces followed its mass: see `tests.benchmarks.utility` for planned rows since; what
changed most is Leeds, 0.220 km instead of 0.259 at ε = 1. Rows with ° are of earlier runs, 5 draws each unless said;
nothing that they depend on has changed since. Deviations are below 3 % of the km, in Leeds and of few draws up to some
10 %. `tests.benchmarks.utility` draws planned rows with other seeds: both differ by no more.

Rhode Island 2019, tract to zone    ε = 1         2           4           8.6
histogram                        1.280 .601  1.037 .687  0.757 .816  0.389 .961
histogram, decay as given        1.559 .606  1.200 .691  0.901 .821  0.416 .962
histogram, likeliest             2.524 .622  1.783 .711  1.343 .841  0.537 .967
planned                          1.642 .534  1.292 .558  1.092 .594  1.041 .685
planned, decay as given          2.348 .531  1.630 .557  1.158 .590  1.052 .673
Laplace by tract (OpenDP) °      4.286 .517  2.945 .657  1.795 .794  0.733 .931
geometric by tract (2 draws) °   4.271 .517  2.894 .661  1.742 .805  0.570 .957
inf-tda °                        3.199 .246  2.265 .363  1.562 .492  1.021 .631
stability histogram (OpenDP) °   8.985 .372  8.942 .373  8.824 .377  8.096 .404
geometric by zone (2 draws) °    10.45 .280  9.927 .343  8.859 .418  5.906 .575
Laplace by zone (2 draws) °      10.38 .280  9.965 .343  8.894 .416  5.998 .571
geometric, n(d) largest (1) °    10.37 .280  9.862 .343  8.800 .410  5.701 .577
ICDE 2008, a cell a tract (2) °  7.872 .414  6.311 .474  3.277 .576  1.058 .692
ICDE 2008, 100 cells (2) °       6.96  –     4.818 .454  2.524 .536  1.653 .576
prior alone 3.548 .497; no privacy, resampled 0.756 .779
tract to tract: planned .761 .790 .826 .858, decay as given .749 .783 .822 .856; histogram .822 .863 .911 .971, decay as
given .824 .865 .911 .971; prior .701; no privacy .901; of earlier runs ° Laplace .735 .818 .886 .952; geometric .735
.821 .889 .966; by zone, either .53 .57 .63 .74; inf-tda .54 .66 .76 .84; stability .59 .59 .60 .62; tract cells .622
.687 .796 .861; ICDE .623 .684 .780 .860, with 100 cells .474 .605 .730 .777 (the histogram with tracts)

Made-up region, tract to tract      ε = 1         2           4           8.6
histogram                        0.472 .962  0.376 .974  0.275 .985  0.154 .995
histogram, decay as given        0.627 .957  0.465 .972  0.344 .985  0.221 .995
histogram, likeliest             0.642 .957  0.510 .972  0.437 .983  0.240 .995
planned                          0.648 .891  0.606 .932  0.590 .950  0.604 .952
planned, decay as given          1.532 .880  0.969 .925  0.640 .949  0.592 .953
inf-tda °                        1.084 .888  0.737 .930  0.501 .956  0.340 .973
geometric, n(d) largest °        3.955 .758  3.115 .810  2.202 .865  0.909 .943
stability histogram (OpenDP) °   5.016 .699  4.637 .718  4.147 .746  2.848 .821
geometric by tract °             0.758 .948  0.486 .970  0.306 .985  0.183 .996
prior alone 2.695 .802; no privacy, resampled 0.431 .967

Leeds 2011, zone to zone            ε = 1         2           4           8.6
planned                          0.263 .853  0.161 .893  0.095 .909  0.086 .912
planned, decay as given          0.474 .842  0.196 .892  0.094 .909  0.093 .909
histogram                        0.045 .960  0.022 .979  0.010 .992  0.003 .999
histogram, decay as given        0.046 .961  0.021 .980  0.010 .993  0.003 .999
histogram, likeliest             0.046 .961  0.024 .980  0.011 .993  0.003 .999
geometric (OpenDP)               0.050 .958  0.023 .980  0.011 .993  0.003 .999
Laplace (OpenDP)                 0.051 .958  0.023 .978  0.013 .990  0.006 .997
stability histogram (OpenDP)     0.287 .897  0.175 .934  0.094 .962  0.026 .990
inf-tda                          0.118 .880  0.074 .932  0.058 .961  0.054 .979
zone cells, one α                1.526 .814  0.613 .888  0.120 .911  0.084 .913
ICDE 2008, a cell a zone         1.527 .814  0.613 .887  0.157 .910  0.082 .913
prior alone 1.162 .751; no privacy, resampled 0.062 .938

District of Columbia 2023, tract to zone (the histogram with tracts)
planned                          0.367 .527  0.292 .554  0.250 .598  0.224 .695
planned, decay as given          0.362 .526  0.282 .552  0.245 .592  0.233 .665
histogram                        0.303 .627  0.228 .727  0.148 .851  0.071 .971
histogram, decay as given        0.297 .630  0.225 .730  0.148 .854  0.070 .971
histogram, likeliest             0.357 .632  0.263 .743  0.171 .866  0.072 .974
tract cells, one α °             0.766 .533  0.601 .582  0.345 .651  0.229 .704
geometric by tract (OpenDP) °    0.449 .600  0.313 .735  0.199 .860  0.087 .971
ICDE 2008, a cell a tract (3) °  0.762 .532  0.605 .575  0.385 .631  0.227 .703
Laplace by tract (OpenDP, 2) °   0.438 .600  0.309 .731  0.209 .845  0.107 .949
stability histogram (2) °        1.101 .436  1.090 .438  1.058 .448  0.856 .505
geometric by zone (2) °          1.031 .378  0.877 .476  0.677 .585  0.356 .784
Laplace by zone (2) °            1.031 .380  0.878 .475  0.682 .584  0.381 .766
inf-tda (1 draw) °               0.710 .309  0.510 .460  0.366 .603  0.270 .735
prior alone 0.539 .494; no privacy, resampled 0.164 .787
(100 distance cells are refused in Leeds and the District: fewer than the units of the coarsest level would be one)
"""

import argparse
import json
import platform
import tempfile
import time
from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path

import numpy as np

from synthmap.analysis.table import ODTable
from synthmap.errors import ConfigurationError
from tests.benchmarks import others, worlds
from tests.benchmarks.worlds import World

Method = Callable[[World, float, float, np.random.Generator, Path], ODTable]
EPSILONS = (1.0, 2.0, 4.0, 8.6)


def histogram(world: World, epsilon: float, delta: float, rng: np.random.Generator, place: Path) -> ODTable:
    return _histogram(world, epsilon, delta, place, "means", lengths=True)


def histogram_agreement(world: World, epsilon: float, delta: float, rng: np.random.Generator, place: Path) -> ODTable:
    return _histogram(world, epsilon, delta, place, "agreement")


def histogram_as_given(world: World, epsilon: float, delta: float, rng: np.random.Generator, place: Path) -> ODTable:
    return _histogram(world, epsilon, delta, place, "means")


def _histogram(world: World, epsilon: float, delta: float, place: Path, reading: str, lengths: bool = False) -> ODTable:
    finest = None if world.level == "zone" else world.level
    named = {"mechanism": "histogram", "finest": finest, "reading": reading}
    return world.released(place, lengths=lengths, epsilon=epsilon, delta=delta, **named)


def planned(world: World, epsilon: float, delta: float, rng: np.random.Generator, place: Path) -> ODTable:
    return world.released(place, lengths=True, epsilon=epsilon, delta=delta)


def planned_as_given(world: World, epsilon: float, delta: float, rng: np.random.Generator, place: Path) -> ODTable:
    return world.released(place, epsilon=epsilon, delta=delta)


def tract_cells(world: World, epsilon: float, delta: float, rng: np.random.Generator, place: Path) -> ODTable:
    cells = int(np.unique(world.area[:-1]).size)
    finest = None if world.level == "zone" else world.level
    return world.released(
        place, epsilon=epsilon, delta=delta, coarsening="distance", finest=finest, cells=cells, keep=1.0
    )


def icde_2008(world: World, epsilon: float, delta: float, rng: np.random.Generator, place: Path) -> ODTable:
    """Distance cells, one an area; one α; dropping. Noise by the exact certificate, since the published rule fails."""
    return _icde_2008(world, epsilon, delta, place, int(np.unique(world.area[:-1]).size) + 1)


def icde_2008_coarse(world: World, epsilon: float, delta: float, rng: np.random.Generator, place: Path) -> ODTable:
    """The same with 100 cells: areas near the destination, coarser ones far away."""
    return _icde_2008(world, epsilon, delta, place, 100)


def _icde_2008(world: World, epsilon: float, delta: float, place: Path, cells: int) -> ODTable:
    finest = None if world.level == "zone" else world.level
    return world.released(
        place, epsilon=epsilon, delta=delta, coarsening="distance", finest=finest, cells=cells, keep="prior"
    )


def prior_alone(world: World, epsilon: float, delta: float, rng: np.random.Generator, place: Path) -> ODTable:
    return world.released(place, epsilon=epsilon, delta=delta, cells=1)


def no_privacy(world: World, epsilon: float, delta: float, rng: np.random.Generator, _: Path) -> ODTable:
    """Each destination's workers drawn from its own true table: what resampling alone costs."""
    order = np.argsort(world.table.destination, kind="stable")
    count, destination = world.table.count[order], world.table.destination[order]
    starts = np.searchsorted(destination, world.destinations)
    parts = [rng.multinomial(part.sum(), part / part.sum()) for part in np.split(count, starts[1:])]
    return ODTable(world.table.origin[order], destination, np.concatenate(parts))


METHODS: dict[str, Method] = {
    "synthmap, planned": planned,
    "synthmap, planned, decay as given": planned_as_given,
    "synthmap histogram": histogram,
    "synthmap histogram, decay as given": histogram_as_given,
    "synthmap histogram, likeliest": histogram_agreement,
    "synthmap, tract cells, one alpha": tract_cells,
    "ICDE 2008, a cell for every area": icde_2008,
    "ICDE 2008, 100 cells": icde_2008_coarse,
    "OpenDP geometric, tracts": others.geometric_by_tract,
    "OpenDP Laplace, tracts": others.laplace_by_tract,
    "geometric, zones": others.geometric_by_zone,
    "Laplace, zones": others.laplace_by_zone,
    "geometric, zones, n(d) largest": others.largest_of_zones,
    "OpenDP stability histogram, zones": others.stability,
    "inf-tda top-down, tracts": others.top_down,
    "prior alone": prior_alone,
    "no privacy, resampled": no_privacy,
}
CONSTANT = {"prior alone", "no privacy, resampled"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--world", choices=(worlds.RHODE_ISLAND, worlds.DISTRICT, worlds.LEEDS, worlds.MADE_UP))
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--epsilon", type=float, nargs="+", default=list(EPSILONS))
    parser.add_argument("--method", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--output", type=Path, help="Folder for alternatives-<world>.json and .png.")
    chosen = parser.parse_args()
    for name in [chosen.world] if chosen.world else [worlds.RHODE_ISLAND, worlds.DISTRICT, worlds.LEEDS]:
        with tempfile.TemporaryDirectory() as directory:
            _run(worlds.world(name, Path(directory)), chosen, Path(directory))


def _run(world: World, chosen: argparse.Namespace, directory: Path) -> None:
    print(f"\n{world.name}: {world.table.count.sum():,} workers, {world.destinations.size:,} destinations, "
          f"{len(world.zones):,} zones, origins by {world.level}; δ = {chosen.delta:g}; {chosen.draws} draws; "
          f"{platform.machine()}, Python {platform.python_version()}")  # fmt: skip
    print(f"{'':36}{'ε':>5} {'MAE km':>14} {'area-area':>15} {'area-zone':>15} {'s':>6}")
    found = []
    for method in chosen.method:
        for epsilon in chosen.epsilon[:1] if method in CONSTANT else chosen.epsilon:
            began = time.perf_counter()
            tables = (
                METHODS[method](world, epsilon, chosen.delta, np.random.default_rng(draw), directory / "out")
                for draw in range(chosen.draws)
            )
            try:
                rows = [astuple(world.score(table)) for table in tables]
            except ConfigurationError as fault:  # what synthmap refuses there: too few cells for the areas
                print(f"{method:36}{epsilon:5g} {fault}", flush=True)
                continue
            mean, deviation = np.mean(rows, axis=0), np.std(rows, axis=0)
            seconds = (time.perf_counter() - began) / chosen.draws
            row = {"method": method, "epsilon": epsilon, "mean": mean.tolist(), "deviation": deviation.tolist()}
            found.append(row | {"seconds": seconds})
            shown = "any" if method in CONSTANT else f"{epsilon:g}"
            cells = (f"{mean[i]:.{digits}f} ± {deviation[i]:.{digits}f}" for i, digits in ((0, 3), (2, 4), (3, 4)))
            first, second, third = cells
            print(f"{method:36}{shown:>5} {first:>14} {second:>15} {third:>15} {seconds:6.1f}", flush=True)
    if chosen.output:
        chosen.output.mkdir(parents=True, exist_ok=True)
        path = chosen.output / f"alternatives-{world.name}"
        path.with_suffix(".json").write_text(json.dumps(found, indent=1))
        _plot(found, world, path.with_suffix(".png"))


def _plot(found: list[dict[str, object]], world: World, path: Path) -> None:
    """Draw error and common part against ε; a method has the same look in every world, synthmap's a thick line."""
    from matplotlib import colormaps
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 6.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, 2)
    titles = "error of a destination's average commute, km", "common part of commuters, area to area"
    shades = colormaps["tab20"].colors
    looks = {name: (shades[2 * i % 20 + i // 10], "osD^vP*X<>hd8pH12"[i]) for i, name in enumerate(METHODS)}
    for axis, label, at in zip(axes, titles, (0, 2), strict=True):
        for method in dict.fromkeys(row["method"] for row in found):
            rows = [row for row in found if row["method"] == method]
            y, deviation = [row["mean"][at] for row in rows], [row["deviation"][at] for row in rows]
            if method in CONSTANT:
                axis.axhline(y[0], linestyle=":" if method == "prior alone" else "--", color="grey", label=method)
                continue
            colour, marker = looks[method]
            width = 2.5 if method.startswith("synthmap") else 1.0
            x = [row["epsilon"] for row in rows]
            axis.errorbar(x, y, deviation, marker=marker, color=colour, linewidth=width, label=method)
        axis.set_xscale("log", base=2)
        ticks = sorted({row["epsilon"] for row in found})
        axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.set_xlabel("ε")
        axis.set_ylabel(label)
    axes[0].set_yscale("log")
    axes[0].yaxis.set_major_formatter("{x:g}")
    axes[0].yaxis.set_minor_formatter("{x:g}")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8)
    figure.suptitle(f"{world.name}: error against ε")
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
