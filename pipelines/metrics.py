"""Measurements of a release for everybody: paid for in the ledger, read, given noise by OpenDP, published once.

What was drawn is kept beside the registry before it is published, so that nothing is ever drawn twice for one payment:
whoever asks again, after a crash or because the published file is gone, gets the same figures; none if both are gone.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from pipelines.places import public_inputs, run_directory, with_tables
from pipelines.registry import locked, registered_spec, write_privately
from pipelines.seal import Seal
from pipelines.spending import Spending
from synthmap import __version__
from synthmap.analysis.measured_classes import MeasuredClasses, make_classes
from synthmap.analysis.measured_report import NoisyVector, average_errors, band_shares, density_classes
from synthmap.analysis.read import read_od, read_plan
from synthmap.catalog.account import Account
from synthmap.catalog.database import Catalog
from synthmap.catalog.datasets import find_dataset
from synthmap.catalog.entries import Adjacency, Charge, Kind, charge
from synthmap.catalog.ledger import read_account, refund
from synthmap.confidential.fidelity import check_totals, read_confidential, same_zones
from synthmap.confidential.measurements import NAMES, Measurement, measure
from synthmap.confidential.noisy import Noisy, add_noise, need_opendp, scale_of
from synthmap.errors import ConfigurationError, LedgerError, PrivacyParameterError, SynthmapError
from synthmap.privacy.composition import round_up
from synthmap.privacy.shown import shown_loss
from synthmap.published.measured import (
    Measured,
    NoiseStep,
    metrics_path,
    paid_name,
    parse_measured,
    publish_measured,
    read_measured,
)
from synthmap.release.manifest import MANIFEST, Manifest, read_manifest
from synthmap.release.verify import sha256, verify
from synthmap.spec import Spec

COVERAGE = 0.95
_FARTHEST_KM = 20_040.0  # half way round the earth: no commute is longer


@dataclass(frozen=True)
class Asked:
    """What is to be measured, and at what price.

    Attributes
    ----------
    epsilon : float
        Natural-log ε for one job, above 0 and at most 100; the three measurements get a third each.
    cap_km : float
        Lengths count up to here.
    """

    epsilon: float
    cap_km: float

    def __post_init__(self) -> None:
        if not 0 < self.epsilon <= 100:
            raise PrivacyParameterError(f"epsilon ({self.epsilon:g}) must be above 0 and at most 100")
        if not 1 <= self.cap_km <= _FARTHEST_KM:
            raise ConfigurationError(f"cap-km ({self.cap_km:g}) must be at least 1 and at most {_FARTHEST_KM:g}")

    @property
    def share(self) -> Fraction:
        """ε of one measurement, exact."""
        return Fraction(self.epsilon) / len(NAMES)

    @property
    def cap_m(self) -> int:
        """The cap in whole metres."""
        return math.ceil(self.cap_km * 1000)

    def charge(self, max_jobs_per_worker: int) -> Charge:
        """Return what it costs a person, all jobs together: a sum holds them all, so they are one loss, not several.

        No segment is read, so the loss is stated for another origin or segment, like the widest of a release.
        """
        parts = [(name, 1, max_jobs_per_worker * self.share, Fraction(0)) for name in NAMES]
        return charge(Kind.METRICS, parts, adjacency=Adjacency.ORIGIN_OR_SEGMENT, rule="pure",
                      max_jobs_per_worker=max_jobs_per_worker)  # fmt: skip


def publish_metrics(
    catalog: Catalog, registry: Path, dataset: str, directory: Path, asked: Asked,
    *, drawn: Callable[[], None] = lambda: None,
) -> tuple[Path, Measured]:  # fmt: skip
    """Return where the measurements of the release in `directory` are published, and what they say.

    **Guarantee** (adjacency: one worker of one destination has another origin or another segment or both): ε-DP for one
    job, J·ε for a person, by `Asked.charge`. Proof: privacy/proofs/metrics.md.

    Parameters
    ----------
    catalog : Catalog
    registry : Path
    dataset : str
        That the release was made and paid for from.
    directory : Path
        Of the release; the record goes beside it.
    asked : Asked
    drawn : callable
        Called when the figures are kept, before they are published.

    Raises
    ------
    BudgetExceededError, BudgetMissingError, LedgerError
        Before a table is read.
    SynthmapError
        If the release or the dataset breaks a rule; what was paid is refunded unless noise was drawn.
    """
    need_opendp()
    find_dataset(catalog, dataset)
    spec, manifest = registered_spec(registry, dataset), read_manifest(directory)
    if not manifest.private:
        raise ConfigurationError(f"release ({manifest.release}) must be private; this one was drawn with a fixed seed")
    store, mark = directory.parent, sha256(directory / MANIFEST)
    kept = registry.with_name(registry.name + ".metrics") / f"{manifest.release}.json"
    with locked(kept):
        known = _known(store, kept, manifest.release, mark)
        if known is None:
            verify(directory)
            with run_directory(None) as run:
                known = _measure(catalog, registry, dataset, spec, manifest, directory, asked, mark, run)
            write_privately(kept, known.model_dump_json() + "\n")
        Seal(registry).remember_shown(known.name)
        _same(known, dataset, asked)
        drawn()
        return publish_measured(store, known), known


def _known(store: Path, kept: Path, release: str, mark: str) -> Measured | None:
    """Return what was measured before, if anything."""
    published = read_measured(store, release, mark)
    if published is not None or not kept.exists():
        return published
    found = parse_measured(kept.read_bytes())
    if found is None or (found.release, found.manifest_sha256) != (release, mark):
        raise LedgerError(f"{kept} must be as it was written; restore it from a copy: nothing is drawn twice")
    return found


def _same(known: Measured, dataset: str, asked: Asked) -> None:
    """Refuse to publish other figures than were asked for."""
    jobs = known.max_jobs_per_worker
    epsilon = round_up(Fraction(asked.charge(jobs).epsilon))
    if (known.dataset, known.epsilon, known.cap_km) != (dataset, epsilon, asked.cap_m / 1000):
        raise ConfigurationError(
            f"metrics of release ({known.release}) must be published once; they were, for dataset {known.dataset}, "
            f"with ε = {shown_loss(known.epsilon)} for a person and a cap of {known.cap_km:g} km: ask for the same"
        )


def _measure(
    catalog: Catalog, registry: Path, dataset: str, spec: Spec, manifest: Manifest, directory: Path, asked: Asked,
    mark: str, run: Path,
) -> Measured:  # fmt: skip
    """Pay, read, draw; refund what was paid if it ends before noise is drawn."""
    zones = same_zones(directory, manifest, public_inputs(spec, run))
    plan = read_plan(directory, zones)
    classes = make_classes(plan, read_od(directory, manifest, zones), zones, asked.cap_m)
    jobs = manifest.privacy.max_jobs_per_worker
    cost = asked.charge(jobs)
    for sensitivity in (2, asked.cap_m):
        scale_of(sensitivity, asked.share)  # fails before anything is paid
    account = read_account(catalog, dataset)
    name = _name(account, manifest.release)
    if (paid := account.losses.get(name)) is not None and paid.charge != cost:
        raise LedgerError(
            f"epsilon ({asked.epsilon:g}) must be the one that was paid for before a crash: ask for ε = "
            f"{float(Fraction(paid.charge.epsilon) / jobs)} again"
        )
    if Seal(registry).may_be_shown(name):
        raise LedgerError(
            f"figures of release ({manifest.release}) must be restored from a copy, as published or as kept beside "
            "the registry: they were drawn, and nothing is drawn twice"
        )
    paying = Spending(catalog, registry, dataset, spec, asked=cost)
    try:
        paying.before_reading(name)
        table = read_confidential(with_tables(spec, run), zones)
        check_totals(manifest, plan, table)
        measured = measure(table, classes)
        paying.before_drawing(name)
        noisy = [add_noise(one, asked.share) for one in measured]
    except BaseException:
        with suppress(SynthmapError):
            refund(catalog, dataset, name, check=Seal(registry).check_of(dataset))
        raise
    paid_at = read_account(catalog, dataset).losses[name].body.time  # a later time tells how long reading took
    return _report(manifest, classes, measured, noisy, asked, cost, dataset, name, mark, paid_at)


def _name(account: Account, release: str) -> str:
    """Return the name to pay under: the last that was not refunded.

    Raises
    ------
    LedgerError
        If the release itself was not paid for by the dataset.
    """
    if release not in account.losses:
        raise LedgerError(
            f"release ({release}) must be a loss in the ledger of dataset ({account.dataset}): measurements of one "
            "that nobody accounts for would hide what both cost together"
        )
    gone = {entry.body.name for entry in account.entries if entry.body.kind is Kind.REFUND}
    attempt = 1
    while paid_name(release, attempt) in gone:
        attempt += 1
    return paid_name(release, attempt)


def _report(
    manifest: Manifest, classes: MeasuredClasses, measured: tuple[Measurement, ...], noisy: list[Noisy], asked: Asked,
    cost: Charge, dataset: str, name: str, mark: str, created: str,
) -> Measured:  # fmt: skip
    """Return the record, sealed; of `measured` only the sensitivities are told."""
    counts, absolute, signed = (NoisyVector(one.values, one.scale) for one in noisy)
    jobs = manifest.privacy.max_jobs_per_worker
    epsilon = round_up(Fraction(cost.epsilon))
    return Measured(
        release=manifest.release,
        manifest_sha256=mark,
        created=created,
        dataset=dataset,
        name=name,
        epsilon=epsilon,
        max_jobs_per_worker=jobs,
        cap_km=asked.cap_m / 1000,
        coverage=COVERAGE,
        densities=density_classes(classes),
        lengths=band_shares(classes, counts, COVERAGE, elsewhere=manifest.zones.elsewhere is not None),
        averages=average_errors(classes, absolute, signed, COVERAGE),
        steps=[
            NoiseStep(name=one.name, sensitivity=one.sensitivity, epsilon=round_up(asked.share), scale=two.scale,
                      values=two.values.tolist())
            for one, two in zip(measured, noisy, strict=True)
        ],
        statement=[
            "These figures were measured on the confidential table with ε-differential privacy, ε = "
            + shown_loss(epsilon)
            + (f" for all of up to {jobs} jobs of a worker together" if jobs > 1 else " for a worker")
            + f", in addition to what the release cost; {name} in the ledger of dataset {dataset}.",
            f"Neighbouring tables: {Adjacency.ORIGIN_OR_SEGMENT}. Classes of length and density come from the release "
            "and its public headcounts.",
            f"Lengths are great-circle distances between internal points, cut off at {asked.cap_m / 1000:g} km; "
            "origins elsewhere count as that.",
            "Noise: discrete Laplace on integers, drawn by OpenDP. Each interval holds the figure of the confidential "
            f"table with a probability of at least {COVERAGE:.0%}, over the noise; several together with less.",
        ],
        software=f"synthmap {__version__}",
    ).sealed()  # fmt: skip


def published_path(directory: Path) -> Path:
    """Return where the measurements of the release in `directory` lie or would lie."""
    return metrics_path(directory.parent, directory.name)
