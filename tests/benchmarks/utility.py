"""What the planner reaches: ``python -m tests.benchmarks.utility [--fixed]``, without network and extras.

Error of a destination's average commute (worker-weighted and not), common part of commuters tract to tract (in Leeds
zone to zone), mean ± standard deviation over draws; `predicted` is the plan's own expectation of the first column, from
public figures (`expected_mae_km` of `predicted_km`). Default prior, δ = 1e-5, everything included, rule pdp.

Seen (5 draws each; ``--fixed`` looks for the best number of prior-mass cells *afterwards*, in the confidential table;
on Rhode Island from ε = 1 on that row is of an earlier run, with a finer prior):

Rhode Island 2019 main       ε = 0.5          1          2          4        8.6         10
planned, km                2.874±.006 2.342±.018 1.643±.011 1.164±.011 1.041±.007 1.049±.019
best fixed cells, km       2.737±.012 2.342±.006 1.797±.012 1.240±.012 1.041±.015 1.036±.009
tract cells, km            8.579      7.878      6.283      3.165      1.060      1.052
planned, common part       0.723      0.749      0.783      0.823      0.858      0.860
predicted, km              2.37       1.87       1.33       1.02       0.95       0.95
prior alone 3.546 km (predicted 3.05), common part 0.701; the urn alone, without privacy, 1.046±.014 km, 0.862

District of Columbia 2023
planned, km                0.447±.006 0.364±.005 0.287±.007 0.243±.002 0.230±.004 0.227±.003
best fixed cells, km       0.475±.003 0.368±.003 0.289±.004 0.253±.002 0.229±.003 0.227±.001
tract cells, km            0.840      0.766      0.603      0.348      0.232      0.229
planned, common part       0.648      0.666      0.697      0.758      0.860      0.862
predicted, km              0.65       0.49       0.34       0.25       0.23       0.23
prior alone 0.541 km (predicted 0.88), common part 0.631; the urn alone 0.224±.003 km, 0.864

Leeds 2011
planned, km                0.785±.006 0.477±.007 0.199±.008 0.101±.009 0.088±.005 0.086±.007
best fixed cells, km       0.819±.003 0.474±.004 0.228±.014 0.117±.010 0.084±.006 0.087±.011
zone cells, km             2.239      1.533      0.611      0.122      0.087      0.086
planned, common part       0.787      0.841      0.892      0.909      0.911      0.913
predicted, km              0.72       0.37       0.15       0.08       0.08       0.08
prior alone 1.161 km (predicted 1.24), common part 0.751; the urn alone 0.084±.004 km, 0.912

The fixed 16 cells do better on Rhode Island at ε = 0.5 because their pull towards far cells (0.8 km at full noise)
happens to cancel the bias of the prior there (−1.8 km), whose sign no planner can know.

Cells by distance beside those by prior mass (``coarsening = "auto"``): none chosen in Leeds and the District; in Rhode
Island for 5 % of workers at ε = 1 and below 0.3 % at 4 and 8.6, for 0.2 % less predicted error. They agree better tract
to tract in the District (0.83 against 0.76 at ε = 4) and worse in average commutes, which is what is planned for.

No plan brings Rhode Island below 1.0 km at ε = 8.6 with m = n. The mean of m draws from an urn has the variance
σ²/m·(m + n + A)/(1 + n + A), and drawing alone costs 1.046 km. Noise pulls that down where the prior is good: to
(2 − s + s²(1 + n/(1 + S)))/2 of it at the share s = A/(n + A). With a prior worth S = 5 workers the best s leaves
0.953, 0.971, 0.987 at n = 10, 20, 50, so 2.4, 1.5, 0.7 % less error; most workers are at larger places. (Spending less
than ε at small destinations, which is the same, was tried: no difference.) It takes a prior worth hundreds of workers,
or more draws than workers: with 2n, 4n, 8n draws by the same plan, noise certified for them, the averages err by 0.90,
0.85, 0.90 km at ε = 8.6 and by 1.16, 1.26, 1.52 km at ε = 4. Thinning those to n would keep (ε, δ)-DP, but not the
probabilistic promise at cell level; so it is not done.
"""

import argparse
import tempfile
from dataclasses import astuple
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from synthmap.analysis.table import ODTable
from synthmap.geography.prior import finest_level
from synthmap.geography.region import Region, make_region
from synthmap.kernels.lengths import lengths_of
from synthmap.kernels.stream import seeded_stream
from synthmap.mechanism.dirichlet import synthesize
from synthmap.mechanism.dirichlet_plan import LADDER, DirichletPlan, plan_destinations
from synthmap.mechanism.lengths import (
    MeasuredLengths,
    fit_decay,
    length_cap_km,
    length_classes,
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

    def settings(self, epsilon: float, lengths: float = 0.0, seed: int = 0, **plan: Any) -> PlanSettings:
        """Return the settings of a release; the share `lengths` of ε measures commutes, with the noise of a seed."""
        spec = self.world.spec
        privacy = spec.privacy.model_copy(update={"epsilon": epsilon, "delta": self.delta})
        changed = spec.model_copy(update={"privacy": privacy, "plan": spec.plan.model_copy(update=plan)})
        if lengths:
            prior = spec.prior.model_copy(update={"lengths_epsilon": lengths * epsilon})
            changed = with_decay(changed.model_copy(update={"prior": prior}), self.measured(lengths * epsilon, seed))
        return settings_of(changed, self.region)

    @cache  # noqa: B019 – one bench a world
    def measured(self, epsilon: float, seed: int) -> MeasuredLengths:
        """Return the decay fitted to commutes that are measured with the noise of a seed."""
        region, decay, destination = self.region, public_decay(self.world.spec), self.world.destinations
        cap_km = length_cap_km(region, decay)
        classes, of = length_classes(region, decay, destination, self.headcount, epsilon, cap_km)
        places, counts = region.tree.level_centre[finest_level(region.tree)], self.counts
        sums = lengths_of(places, destination, counts.first_row, counts.origin, counts.workers, cap_km)
        noisy = noisy_sums(classes, of, *sums, seeded_stream(seed))
        return fit_decay(region, decay, destination, classes, noisy, epsilon)

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
        return list(mean)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--world", choices=(worlds.RHODE_ISLAND, worlds.DISTRICT, worlds.LEEDS, worlds.MADE_UP))
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--epsilon", type=float, nargs="+", default=list(EPSILONS))
    parser.add_argument(
        "--fixed", action="store_true", help="Also the best of all fixed numbers of cells, one draw each."
    )
    parser.add_argument("--lengths", type=float, default=0.02, help="Share of ε that measured lengths take.")
    chosen = parser.parse_args()
    for name in [chosen.world] if chosen.world else [worlds.RHODE_ISLAND, worlds.DISTRICT, worlds.LEEDS]:
        with tempfile.TemporaryDirectory() as directory:
            _run(Bench(worlds.world(name, Path(directory)), chosen.draws, chosen.delta), chosen)


def _run(bench: Bench, chosen: argparse.Namespace) -> None:
    world = bench.world
    print(f"\n{world.name}: {bench.headcount.sum():,} workers, {bench.headcount.size:,} destinations, "
          f"{len(world.zones):,} zones; δ = {chosen.delta:g}; {chosen.draws} draws")  # fmt: skip
    print(f"{'':34}{'ε':>5}  {'MAE km':>15} {'unweighted':>15} {'common part':>15} {'predicted':>9}")
    bench.released("prior alone", chosen.epsilon[0], cells=1)
    bench.released("prior alone, lengths measured", chosen.epsilon[0], lengths=chosen.lengths, cells=1)
    bench.urn_without_noise()
    areas = int(np.unique(world.area[:-1]).size)
    finest = None if world.level == "zone" else world.level
    for epsilon in chosen.epsilon:
        bench.released("planned", epsilon)
        bench.released("planned, lengths measured", epsilon, lengths=chosen.lengths)
        bench.released("tract cells, uniform α", epsilon, coarsening="distance", finest=finest, cells=areas)
        if chosen.fixed:
            most = min(len(world.zones), 4096)
            for lengths, told in ((0.0, ""), (chosen.lengths, ", lengths")):
                plans = {k: {"cells": k, "lengths": lengths} for k in LADDER if k <= most}
                rows = {k: bench.released(f"fixed, {k} cells{told}", epsilon, 1, **plan) for k, plan in plans.items()}
                best = min(rows, key=lambda k: rows[k][0])
                bench.released(f"best fixed: {best} cells{told}", epsilon, **plans[best])


if __name__ == "__main__":
    main()
