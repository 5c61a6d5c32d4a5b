"""What the planner reaches: ``python -m tests.benchmarks.utility [--fixed]``, without network and extras.

Error of a destination's average commute (worker-weighted and not), common part of commuters tract to tract (in Leeds
zone to zone), mean ± standard deviation over draws; `predicted` is the plan's own expectation of the first column, from
public figures (`expected_mae_km` of `predicted_km`). Default prior, δ = 1e-5, everything included, rule pdp.

A spec by itself spends a fiftieth of ε on mean commutes, to which the prior's decay is fitted; each draw has noise of
its own in both. Rows "as given" spend nothing on that (`prior.lengths_epsilon = 0`). It says below a planned row what
is asked of it, and leaves with code 1 where that is not met, though perhaps no plan can (1.0 km in Rhode Island at
ε = 8.6, see the end), or where a fixed number of cells, with either decay, does better than a spec by itself by more
than noise.

Seen (5 draws each, one run; the best number of prior-mass cells, found *afterwards*, in the confidential table, in an
earlier run; three of them again: 2.057, 1.724, 1.369. No planned row is over 2 % above, but Leeds at 8.6 and 10, by
0.005 km, where draws deviate by 0.007):

Rhode Island 2019 main       ε = 0.5          1          2          4        8.6         10
planned, km                1.937±.020 1.613±.019 1.300±.004 1.110±.013 1.040±.013 1.034±.007
best fixed cells, km       2.073±.033 1.728±.012 1.370±.004 1.142±.019 1.044±.019 1.051±.021
planned, as given          2.865±.005 2.334±.008 1.609±.012 1.156±.007 1.038±.009 1.035±.008
best fixed, as given       2.737±.012 2.321±.011 1.766±.015 1.218±.013 1.041±.014 1.035±.007
tract cells, km            8.585      7.882      6.293      3.151      1.070      1.060
planned, common part       0.741      0.761      0.788      0.823      0.859      0.860
common part, as given      0.724      0.749      0.783      0.822      0.856      0.859
predicted, km              1.95       1.64       1.29       1.08       1.01       1.01
predicted, as given        2.35       1.85       1.30       0.95       0.83       0.83
prior alone 2.194 km (predicted 2.31), common part 0.728; as given 3.547 (3.03), 0.701; the urn alone, without privacy,
1.046±.014 km, 0.862

District of Columbia 2023
planned, km                0.465±.011 0.369±.003 0.294±.005 0.250±.001 0.227±.003 0.229±.005
best fixed cells, km       0.477±.010 0.377±.005 0.301±.007 0.255±.003 0.230±.005 0.225±.006
planned, as given          0.454±.004 0.362±.004 0.284±.004 0.241±.005 0.231±.006 0.229±.004
best fixed, as given       0.475±.003 0.368±.003 0.289±.004 0.253±.002 0.229±.003 0.227±.001
tract cells, km            0.839      0.766      0.599      0.348      0.229      0.228
planned, common part       0.648      0.667      0.702      0.763      0.859      0.861
predicted, km              0.46       0.38       0.29       0.23       0.21       0.21
predicted, as given        0.65       0.49       0.33       0.23       0.20       0.20
prior alone 0.543 km (predicted 0.57), common part 0.632; as given 0.540 (0.88), 0.631; the urn alone 0.224±.003 km,
0.864

Leeds 2011
planned, km                0.432±.013 0.261±.005 0.156±.004 0.104±.006 0.089±.007 0.087±.007
best fixed cells, km       0.507±.011 0.322±.009 0.177±.003 0.108±.010 0.094±.008 0.083±.005
planned, as given          0.790±.009 0.487±.008 0.200±.004 0.101±.010 0.090±.009 0.088±.008
best fixed, as given       0.819±.003 0.474±.004 0.228±.014 0.117±.010 0.084±.006 0.087±.011
zone cells, km             2.246      1.520      0.615      0.114      0.087      0.087
planned, common part       0.802      0.852      0.893      0.906      0.911      0.913
common part, as given      0.788      0.841      0.892      0.909      0.910      0.910
predicted, km              0.53       0.29       0.13       0.08       0.08       0.08
predicted, as given        0.72       0.37       0.15       0.08       0.08       0.08
prior alone 0.533 km (predicted 0.76), common part 0.782; as given 1.162 (1.24), 0.751; the urn alone 0.084±.004 km,
0.912

Believed to be worth 5, 10, 15 or 25 workers (`prior.strength`) a fitted prior is planned with about equally well (3
draws; Leeds at ε = 0.5: 0.44, 0.43, 0.43, 0.41 km; Rhode Island with the first three 1.94, 1.93, 1.93; the District at
4: 0.246, 0.246, 0.251, 0.256), but the expected error is right with 15 only (Rhode Island, at ε = 0.5: 2.73, 2.22, 1.96
km).

The default decay was chosen on these tables, so rows as given are in-sample. Fitted, it hardly matters where one
begins: at ε = 0.5, 3 draws each, from these scales and powers, as given and fitted:
                         10, 2.5      30, 2.5       3, 2.5       5, 1.6        60, 6
Rhode Island, km       2.87, 1.93   3.22, 1.97   4.90, 2.32   2.95, 1.93   2.64, 1.93
District, km           0.45, 0.47   0.75, 0.46   0.88, 0.45   0.45, 0.46   0.64, 0.46
Leeds, km              0.78, 0.45   1.46, 0.46   0.65, 0.45   0.84, 0.49   1.25, 0.40

With the decay as given, the fixed 16 cells do better on Rhode Island at ε = 0.5: their pull towards far cells (0.8 km
at full noise) happens to cancel the bias of the default decay there (−1.8 km), whose sign no planner can know
unmeasured. That is why a spec by itself measures.

Cells by distance beside those by prior mass (``coarsening = "auto"``): none chosen in Leeds and the District; in Rhode
Island for 5 % of workers at ε = 1 and below 0.3 % at 4 and 8.6, for 0.2 % less predicted error. They agree better tract
to tract in the District (0.83 against 0.76 at ε = 4) and worse in average commutes, which is what is planned for.

No plan seen brings Rhode Island to the 1.0 km asked at ε = 8.6, with m = n. The mean of m draws from an urn has the
variance σ²/m·(m + n + A)/(1 + n + A), and drawing alone costs 1.046 km. A plan may err a little less: noise pulls that
down where the prior is good, to (2 − s + s²(1 + n/(1 + S)))/2 of it at the share s = A/(n + A). With a prior worth S =
5 workers the best s leaves 0.953, 0.971, 0.987 at n = 10, 20, 50, so 2.4, 1.5, 0.7 % less error, with 15 workers 3.9,
2.8, 1.5 %, where 4.4 % are needed; most workers are at larger places. (Spending less than ε at small destinations,
which is the same, was tried: no difference.) It takes a prior worth hundreds of workers, or more draws than workers:
with 2n, 4n, 8n draws by the same plan, noise certified for them, the averages err by 0.90, 0.85, 0.90 km at ε = 8.6 and
by 1.16, 1.26, 1.52 km at ε = 4. Thinning those to n would keep (ε, δ)-DP, but not the probabilistic promise at cell
level; so it is not done.
"""

import argparse
import sys
import tempfile
from dataclasses import astuple
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from synthmap.analysis.table import ODTable
from synthmap.geography.region import Region, make_region
from synthmap.kernels.stream import seeded_stream
from synthmap.mechanism.dirichlet import synthesize
from synthmap.mechanism.dirichlet_plan import LADDER, DirichletPlan, plan_destinations
from synthmap.mechanism.lengths import (
    MeasuredLengths,
    fit_decay,
    length_classes,
    length_sums,
    noisy_sums,
    public_decay,
    with_decay,
)
from synthmap.mechanism.plan import PlanSettings, settings_of
from synthmap.mechanism.table import Counts
from synthmap.published.expected import expected_mae_km
from tests.benchmarks import worlds
from tests.benchmarks.worlds import World

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.6, 10.0)
ASKED = {1.0: (4.0, 0.53), 2.0: (3.0, 0.56), 4.0: (1.5, 0.64), 8.6: (1.0, 0.72)}  # km at most, common part at least
_NOISE = 1.05  # an error of a few draws, times the one that is compared with; or by its deviation more


def short_of(asked: tuple[float, float], found: list[float], urn_km: float) -> list[str]:
    """Print what is asked of a row and return what is not met; the bound tells why and excuses nothing."""
    (most_km, least), (km, _, common, _) = asked, found
    bound = f"; bound {_NOISE * urn_km:.2f}, {_NOISE:g} times the urn alone"
    figures = (
        (km <= most_km, f"{km:.3f} km, asked {most_km:.1f}", bound),
        (common >= least, f"common part {common:.3f}, asked {least:.2f}", ""),
    )
    lines = [(met, f"{told}, " + ("met" if met else f"not met{why}")) for met, told, why in figures]
    print(*(f"  {line}" for _, line in lines), sep="\n", flush=True)
    return [line for met, line in lines if not met]


class Bench:
    """A world as the mechanism takes it."""

    def __init__(self, world: World, draws: int, delta: float) -> None:
        self.world, self.draws, self.delta = world, draws, delta
        self.region: Region = make_region(world.zones)
        order = np.lexsort([world.table.origin, world.table.destination])
        table = world.table
        self.origin, self.destination, self.count = (a[order] for a in (table.origin, table.destination, table.count))
        self.first = np.append(np.flatnonzero(np.diff(self.destination, prepend=-1)), self.destination.size)
        self.headcount = np.add.reduceat(self.count, self.first[:-1])
        self.counts = Counts(self.first, self.origin.astype(np.int32), self.count[:, None])

    def settings(self, epsilon: float, lengths: float | None = 0.0, seed: int = 0, **plan: Any) -> PlanSettings:
        """Return the settings of a release; the share `lengths` of ε measures commutes, with the noise of a seed.

        Without a share it is what a spec takes by itself.
        """
        spec = self.world.spec
        privacy = spec.privacy.model_copy(update={"epsilon": epsilon, "delta": self.delta})
        part = "auto" if lengths is None else lengths * epsilon
        prior = spec.prior.model_copy(update={"lengths_epsilon": part})
        changed = spec.model_copy(
            update={"privacy": privacy, "prior": prior, "plan": spec.plan.model_copy(update=plan)}
        ).with_workers(int(self.headcount.sum()))
        if changed.lengths_epsilon:
            changed = with_decay(changed, self.measured(changed.lengths_epsilon, seed))
        return settings_of(changed, self.region)

    @cache  # noqa: B019 – one bench a world
    def measured(self, epsilon: float, seed: int) -> MeasuredLengths:
        """Return the decay fitted to commutes that are measured with the noise of a seed."""
        region, decay, destination = self.region, public_decay(self.world.spec), self.world.destinations
        classes = length_classes(region, decay, destination, self.headcount, epsilon)
        sums = length_sums(region, decay, classes, destination, self.headcount, self.counts)
        noisy = noisy_sums(classes, sums, seeded_stream(seed))
        return fit_decay(region, decay, classes, sums.workers, noisy, epsilon)

    def planned(self, settings: PlanSettings) -> DirichletPlan:
        return plan_destinations(self.region, self.world.destinations, self.headcount, settings)

    def released(self, name: str, epsilon: float, draws: int | None = None, **plan: Any) -> list[float]:
        """Draw by plans, print the row and return its means."""
        rows = []
        for seed in range(draws or self.draws):
            settings = self.settings(epsilon, seed=seed, **plan)
            made = self.planned(settings)
            t = synthesize(made, self.counts, self.region, settings, seeded_stream(seed))
            rows.append(astuple(self.world.score(ODTable(t.origin, t.destination, t.workers[:, 0])))[:3])
        expected = float(np.average(expected_mae_km(made.predicted_km), weights=made.headcount))
        return self.show(name, f"{epsilon:g}", rows, expected)

    def urn_without_noise(self) -> list[float]:
        """The Dirichlet-multinomial at α = 0: what drawing alone costs this mechanism, without any privacy."""
        rows = []
        for seed in range(self.draws):
            rng = np.random.default_rng(seed)
            share = rng.standard_gamma(self.count)
            share /= np.repeat(np.add.reduceat(share, self.first[:-1]), np.diff(self.first))
            parts = np.split(share, self.first[1:-1])
            drawn = [rng.multinomial(n, p) for n, p in zip(self.headcount, parts, strict=True)]
            rows.append(astuple(self.world.score(ODTable(self.origin, self.destination, np.concatenate(drawn))))[:3])
        return self.show("no privacy: the urn alone", "any", rows, float("nan"))

    def show(self, name: str, epsilon: str, rows: list[tuple[float, ...]], expected: float) -> list[float]:
        mean, deviation = np.mean(rows, axis=0), np.std(rows, axis=0)
        cells = [f"{m:.3f} ± {d:.3f}" for m, d in zip(mean, deviation, strict=True)]
        print(f"{name:34}{epsilon:>5}  {cells[0]:>15} {cells[1]:>15} {cells[2]:>15} {expected:9.2f}", flush=True)
        return [*mean, deviation[0]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    everywhere = (worlds.RHODE_ISLAND, worlds.DISTRICT, worlds.LEEDS, worlds.MADE_UP, *worlds.SMALL)
    parser.add_argument("--world", choices=everywhere)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--epsilon", type=float, nargs="+", default=list(EPSILONS))
    parser.add_argument(
        "--fixed", action="store_true", help="Also the best of all fixed numbers of cells, one draw each."
    )
    parser.add_argument("--lengths", type=float, help="Share of ε that measured lengths take [what a spec takes].")
    chosen = parser.parse_args()
    short = []
    for name in [chosen.world] if chosen.world else [worlds.RHODE_ISLAND, worlds.DISTRICT, worlds.LEEDS]:
        with tempfile.TemporaryDirectory() as directory:
            found = _run(Bench(worlds.world(name, Path(directory)), chosen.draws, chosen.delta), chosen)
            short += [f"{name}, {one}" for one in found]
    sys.exit("falls short: " + "; ".join(short) if short else 0)


def _run(bench: Bench, chosen: argparse.Namespace) -> list[str]:
    """Print the rows of a world and return where it falls short."""
    world = bench.world
    print(f"\n{world.name}: {bench.headcount.sum():,} workers, {bench.headcount.size:,} destinations, "
          f"{len(world.zones):,} zones; δ = {chosen.delta:g}; {chosen.draws} draws")  # fmt: skip
    print(f"{'':34}{'ε':>5}  {'MAE km':>15} {'unweighted':>15} {'common part':>15} {'predicted':>9}")
    decays = ((chosen.lengths, ""), (0.0, ", decay as given"))
    for lengths, told in decays:
        bench.released(f"prior alone{told}", chosen.epsilon[0], lengths=lengths, cells=1)
    urn_km, short = bench.urn_without_noise()[0], []
    asked = ASKED if world.name == worlds.RHODE_ISLAND and chosen.delta == 1e-5 else {}
    areas = int(np.unique(world.area[:-1]).size)
    finest = None if world.level == "zone" else world.level
    for epsilon in chosen.epsilon:
        reached = {}
        for lengths, told in decays:
            planned = reached[told] = bench.released(f"planned{told}", epsilon, lengths=lengths)
            if epsilon in asked:
                short += [f"ε = {epsilon:g}{told}: {one}" for one in short_of(asked[epsilon], planned, urn_km)]
        bench.released("tract cells, uniform α", epsilon, coarsening="distance", finest=finest, cells=areas)
        if chosen.fixed:
            most = min(len(world.zones), 4096)
            for lengths, told in decays:
                plans = {k: {"cells": k, "lengths": lengths} for k in LADDER if k <= most}
                rows = {k: bench.released(f"fixed, {k} cells{told}", epsilon, 1, **plan) for k, plan in plans.items()}
                best = min(rows, key=lambda k: rows[k][0])
                fixed = bench.released(f"best fixed: {best} cells{told}", epsilon, **plans[best])
                if reached[""][0] > max(_NOISE * fixed[0], fixed[0] + reached[""][3]):
                    short.append(f"ε = {epsilon:g}: {reached[''][0]:.3f} km, with {best} cells{told} {fixed[0]:.3f} km")
    return short


if __name__ == "__main__":
    main()
