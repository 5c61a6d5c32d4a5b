"""Stage 5: the public files beside the table, the manifest, verification, and the rename that publishes."""

import importlib.metadata
import platform
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, time
from fractions import Fraction
from functools import cache
from pathlib import Path

import synthmap
from pipelines.files import write_plan
from synthmap.compiled import SOURCES
from synthmap.geography.region import Region
from synthmap.geography.zones import ELSEWHERE
from synthmap.mechanism.chosen import mechanism_of, promised
from synthmap.mechanism.lengths import MeasuredLengths
from synthmap.mechanism.plan import Plan, PlanSettings, coarsening_of
from synthmap.mechanism.table import TableLoss
from synthmap.privacy.composition import jobs, round_up
from synthmap.release import manifest as statement_of
from synthmap.release import wording
from synthmap.release.manifest import MANIFEST, Manifest
from synthmap.release.plan_summary import prior_share_mean, summarise_classes, summarise_steps
from synthmap.release.remote_store import publish_remotely
from synthmap.release.statement_files import write_statement
from synthmap.release.store import publish, time_in
from synthmap.release.verify import records, verify
from synthmap.remote import is_remote
from synthmap.spec import Spec

_PACKAGES = (
    "cryptography",
    "dask",
    "distributed",
    "geopandas",
    "numba",
    "numpy",
    "pyarrow",
    "pyogrio",
    "pyproj",
    "scipy",
    "shapely",
)


@dataclass(frozen=True)
class Told:
    """What a manifest tells of a release: public."""

    spec: Spec
    release: str
    region: Region
    plan: Plan
    settings: PlanSettings
    choice: str
    source: statement_of.PriorSource | None
    lengths: MeasuredLengths | None


def prepare(told: Told, partial: Path) -> Manifest:
    """Write what stands beside the table to `partial`; return the manifest, its list of files still empty."""
    write_plan(partial / "plan.parquet", told.plan, told.region)
    manifest = describe(told)
    write_statement(partial, manifest)
    return manifest


def finish(manifest: Manifest, partial: Path, store: Path, ready: Callable[[], None]) -> tuple[Path, Manifest]:
    """Complete the release in `partial`, verify it, publish it if `ready` agrees; return its directory and manifest."""
    names = sorted(path.relative_to(partial).as_posix() for path in partial.rglob("*") if path.is_file())
    manifest = manifest.model_copy(update={"files": records(partial, names)})
    (partial / MANIFEST).write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8")
    verify(partial)
    if is_remote(store):
        return publish_remotely(partial, store, manifest.release, ready), manifest
    return publish(partial, manifest.release, ready), manifest


def describe(told: Told) -> Manifest:
    """Return the manifest of a release, without its files: functions of what is public, noisy sums included."""
    spec, region, plan, settings, source = told.spec, told.region, told.plan, told.settings, told.source
    elsewhere = ELSEWHERE if spec.outside == "elsewhere" else None
    private = spec.run.seed is None
    began = time_in(told.release) or datetime.combine(datetime.now(UTC).date(), time(), UTC)
    return Manifest(
        release=told.release,
        name=spec.name,
        title=spec.title,
        curator=spec.curator,
        year=spec.year,
        created=began.isoformat(timespec="seconds"),
        private=private,
        warning=wording.warning(private, source),
        segments=list(spec.segment_columns),
        privacy=_privacy(told),
        invariants=statement_of.Invariants(
            statements=list(wording.INVARIANTS),
            workers=int(plan.headcount.sum()),
            destinations=len(plan),
        ),
        plan=summarise(spec, plan, settings, told.choice),
        prior=statement_of.PriorSummary(
            formula=wording.formula(bool(settings.scales_km), source),
            weight=_weight_source(spec),
            scale_km=settings.scale_km,
            power=settings.power,
            elsewhere_share=settings.elsewhere_share,
            strength=settings.strength,
            strength_inside=settings.strength_inside,
            source=source,
            class_edges_km=list(settings.edges_km),
            class_scales_km=list(settings.scales_km),
            class_source=spec.prior.class_source,
            lengths=None if told.lengths is None else _lengths(told.lengths),
        ),
        zones=statement_of.ZonesSummary(
            vintage=region.zones.vintage,
            zones=len(region.zones),
            levels=list(region.zones.levels),
            elsewhere=elsewhere,
        ),
        software=statement_of.Software(
            synthmap=synthmap.__version__,
            source=SOURCES,
            python=platform.python_version(),
            packages=_versions(),
        ),
        files={},
    )


def _lengths(measured: MeasuredLengths) -> statement_of.LengthsSummary:
    """Return what was measured of commute lengths; public by its noise."""
    return statement_of.LengthsSummary(
        epsilon=measured.epsilon,
        cap_km=measured.cap_km,
        noise_units=measured.units,
        workers=measured.workers,
        noisy_sums=measured.noisy,
        mean_km=measured.mean_km,
    )


@cache
def _versions() -> dict[str, str]:
    """Return the versions of the packages that shape a release."""
    return {name: importlib.metadata.version(name) for name in _PACKAGES}


def _weight_source(spec: Spec) -> str:
    """Return where the public weights come from."""
    if spec.zones.weights is not None:
        source = spec.zones.weights
        return f"column {source.column} of {source.path.name} (vintage {source.vintage})"
    if spec.zones.weight is not None:
        return f"column {spec.zones.weight} of {spec.zones.path.name}"
    return "1 for every zone"


def promise(spec: Spec) -> statement_of.Loss:
    """Return what a release of `spec` costs a worker at most, all jobs together."""
    delta = promised(spec)[1]
    epsilon, delta = jobs(spec.privacy.epsilon, delta, spec.privacy.max_jobs_per_worker)
    return statement_of.Loss(epsilon=epsilon, delta=delta)


def certified_per_job(spec: Spec, table: TableLoss) -> statement_of.Loss:
    """Return what a release of `spec` costs one job at the dearest destination: measured lengths, if any, and table."""
    return statement_of.Loss(
        epsilon=round_up(Fraction(table.epsilon) + Fraction(spec.lengths_epsilon)), delta=table.delta
    )


def _privacy(told: Told) -> statement_of.Privacy:
    """Return the promise."""
    spec, plan, source = told.spec, told.plan, told.source
    table = mechanism_of(told.settings).loss(plan, told.settings)
    lengths = 0.0 if told.lengths is None else told.lengths.epsilon
    held = spec.privacy.max_jobs_per_worker
    promised = promise(spec)
    segments = bool(spec.segment_columns)
    pdp = None
    if table.pdp_delta_destination is not None and table.pdp_delta_table is not None:
        pdp = statement_of.ProbabilisticLoss(
            epsilon=promised.epsilon,
            delta_destination=table.pdp_delta_destination,
            delta_table=table.pdp_delta_table,
        )
    return statement_of.Privacy(
        unit=wording.unit(segments, held),
        adjacency=wording.adjacency(segments),
        rule=table.rule.value,
        max_jobs_per_worker=held,
        certified_per_job=certified_per_job(spec, table),
        steps=statement_of.Steps(**summarise_steps(plan.to_table()), lengths_epsilon=lengths),
        dp=promised,
        pdp_cells=pdp,
        assumptions=wording.assumptions(held, source, spec.prior.class_source),
    )


def summarise(spec: Spec, plan: Plan, settings: PlanSettings, choice: str) -> statement_of.PlanSummary:
    """Return what was chosen, and the plan by class of public headcount."""
    table = plan.to_table()
    return statement_of.PlanSummary.model_validate(
        {
            "mechanism": mechanism_of(settings).name,
            "choice": choice,
            "coarsening": coarsening_of(spec),
            "finest": spec.plan.finest or "",
            "cells": str(spec.plan.cells),
            "keep": str(spec.plan.keep),
            "synthetic_size_rule": wording.SYNTHETIC_SIZE,
            "prior_share_mean": prior_share_mean(table, settings.segments),
            "classes": summarise_classes(table, settings.segments),
            **plan.summary(settings),
        }
    )
