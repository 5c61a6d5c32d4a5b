"""The command line: it only assembles. Heavy imports happen inside the command that needs them."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from synthmap import __version__
from synthmap.commands import (
    audit,
    compare,
    datasets,
    export,
    fit,
    keys,
    ledger,
    metrics,
    serving,
    statement,
    up,
    verify,
)
from synthmap.commands.program import run
from synthmap.commands.shared import AsJson, Database, Scheduler, caution, literal, progress_bars
from synthmap.commands.shared import show as _print
from synthmap.errors import ConfigurationError
from synthmap.privacy.shown import shown_loss, shown_losses

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Publish who commutes from where to where without giving anyone away.",
)
for one in (verify, audit, serving, up, export, fit, statement, compare):
    app.add_typer(one.app)
app.add_typer(keys.app, name="keys")
app.add_typer(datasets.app, name="datasets")
app.add_typer(ledger.app, name="ledger")
app.add_typer(metrics.app, name="metrics")


class RuleName(StrEnum):
    """Rules of `synthmap calibrate`."""

    PDP = "pdp"
    ADP = "adp"
    PURE = "pure"
    REFERENCE = "reference-zero-sample"


def main() -> None:
    """Run the command line; a user's error is one line on stderr and exit code 2, an interrupt one and 130."""
    run(literal(app))


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"synthmap {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Publish who commutes from where to where without giving anyone away."""
    if context.invoked_subcommand != "serve":  # what a killed run left in the usual place is confidential
        from synthmap.release.store import sweep_scratch

        sweep_scratch(None)


@app.command()
def sample(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where to write it.")],
    workers: Annotated[int, typer.Option(help="Workers in all.")] = 200_000,
    zones: Annotated[int, typer.Option(help="Zones, possible origins.")] = 20_000,
    destinations: Annotated[int, typer.Option(help="Zones in which somebody works.")] = 4_000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same region.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Write a made-up region: zones, a confidential table and a spec to release it with."""
    from synthmap.confidential.sample import write_sample

    with progress_bars() as show:
        found = write_sample(
            directory,
            workers=workers,
            zones=zones,
            destinations=destinations,
            seed=seed,
            progress=lambda share: show("sample", round(100 * share), 100),
        )
    values = {key: str(value) if isinstance(value, Path) else value for key, value in found.items()}
    _print(values, as_json, f"{workers:,} made-up workers written to {directory}")


@app.command()
def calibrate(
    headcount: Annotated[int, typer.Option(help="Workers at the destination, n.")],
    cells: Annotated[int, typer.Option(help="Cells of its origin domain, k.")],
    delta: Annotated[float, typer.Option(help="Failure probability per destination; rule pure takes none.")] = 0.0,
    epsilon: Annotated[float | None, typer.Option(help="Natural-log ε in total, what dropping costs included.")] = None,
    ratio: Annotated[float | None, typer.Option(help="R = exp(ε) instead of ε.")] = None,
    synthetic_size: Annotated[int | None, typer.Option(help="Synthetic workers, m [n].")] = None,
    keep: Annotated[float, typer.Option(help="Keep probability of an empty cell.")] = 1.0,
    rule: Annotated[RuleName, typer.Option(help="The certificate to pass.")] = RuleName.PDP,
    as_json: AsJson = False,
) -> None:
    """Compute the least noise (pseudo-count α of each cell) for one destination."""
    from synthmap.errors import PrivacyParameterError
    from synthmap.privacy.calibration import minimum_alpha
    from synthmap.privacy.epsilon import Epsilon
    from synthmap.privacy.rule import Rule

    if (epsilon is None) == (ratio is None):
        raise PrivacyParameterError("exactly one of --epsilon and --ratio must be given")
    asked = Epsilon.from_ratio(ratio) if ratio is not None else epsilon
    assert asked is not None  # noqa: S101
    if rule is RuleName.REFERENCE:
        values = _reference(asked, delta, headcount, cells, synthetic_size, keep)
    else:
        found = minimum_alpha(
            epsilon=asked,
            delta=delta,
            headcount=headcount,
            cells=cells,
            synthetic_size=synthetic_size,
            keep=keep,
            rule=Rule(rule.value),
        )
        values = {
            "alpha": float(found.alpha),
            "alpha_rational": str(found.alpha),
            "j": found.j,
            "certified_delta": found.certified_delta,
            "epsilon_total": found.epsilon_total,
            "epsilon_resampling": found.epsilon_resampling,
            "epsilon_dropping": found.epsilon_dropping,
            "rule": rule.value,
            "certified": True,
        }
    text = "\n".join(f"{key:>18}  {value}" for key, value in values.items())
    _print(values, as_json, text)


def _reference(
    epsilon: float, delta: float, headcount: int, cells: int, size: int | None, keep: float
) -> dict[str, Any]:
    """Return the answer of the ICDE 2008 rule, with what the exact rule makes of it."""
    from synthmap.errors import PrivacyParameterError
    from synthmap.privacy.certificate import certified, kept_cells
    from synthmap.privacy.epsilon import ratio_minus_one
    from synthmap.privacy.reference_zero_sample import reference_zero_sample_alpha

    if keep != 1:
        raise PrivacyParameterError(f"keep ({keep:g}) must be 1 for the reference-zero-sample rule")
    alpha = reference_zero_sample_alpha(
        epsilon=epsilon, delta=delta, headcount=headcount, cells=cells, synthetic_size=size
    )
    excess = ratio_minus_one(epsilon)
    kept = kept_cells(cells, 1.0)
    m = size or headcount
    bound = certified(headcount, m, cells, alpha, excess, 1.0, *kept, False, 1.0)
    return {
        "alpha": alpha,
        "j": min(m, int(excess * alpha)),
        "certified_delta": bound,
        "epsilon_total": float(epsilon),
        "rule": RuleName.REFERENCE.value,
        "certified": bound <= delta,
    }


@app.command()
def spec(
    example: Annotated[bool, typer.Option("--example", help="Print a commented example.")] = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON schema.")] = False,
) -> None:
    """Print an example spec, or the schema that specs follow."""
    from synthmap.spec import Spec, example_spec

    if example == schema:
        raise ConfigurationError("exactly one of --example and --schema must be given")
    typer.echo(example_spec().rstrip() if example else json.dumps(Spec.model_json_schema(), indent=2))


SpecPath = Annotated[Path, typer.Argument(metavar="SPEC", help="A TOML spec.")]


@app.command()
def plan(path: SpecPath, scheduler: Scheduler = "auto", as_json: AsJson = False) -> None:
    """Show about what a release would do, by class of headcount, and what it costs. Spends and publishes nothing."""
    from pipelines import release as pipeline
    from synthmap.spec import read_spec

    spec = read_spec(path)
    with progress_bars() as show:
        found = pipeline.plan(spec, scheduler=scheduler, progress=show)
    values = {
        "epsilon": found.promise.epsilon,
        "delta": found.promise.delta,
        "pdp_delta_table": found.certified.pdp_delta_table,
        "certified_epsilon_per_job": found.per_job.epsilon,
        "certified_delta_per_job": found.per_job.delta,
        "lengths_epsilon": found.lengths_epsilon,
        "workers": int(found.plan.headcount.sum()),
        "destinations": len(found.plan),
        "plan": found.summary.model_dump(),
    }
    lines = [
        f"{shown_losses(found.promise.epsilon, found.promise.delta)} for {values['workers']:,} workers at "
        f"{values['destinations']:,} destinations",
        f"{'headcount':>16} {'destinations':>12} {'workers':>11} {'cells':>7} {'noise':>9} {'prior':>7} "
        f"{'error km':>9}",
    ]
    for part in found.summary.classes:
        size = f"{part.headcount_from:,}–{part.headcount_to:,}"
        error = "" if part.predicted_km_median is None else f"{part.predicted_km_median:.2f}"
        lines.append(
            f"{size:>16} {part.destinations:>12,} {part.workers:>11,} {part.cells_median:>7g} "
            f"{part.noise:>9.4g} {part.prior_share_mean:>7.1%} {error:>9}"
        )
    lines.append(f"mechanism {found.summary.mechanism}; {found.summary.noise}")
    lines += [found.summary.choice] if found.summary.choice else []
    if found.lengths_epsilon:
        lines.append(
            f"a release first measures mean commutes, with ε = {shown_loss(found.lengths_epsilon)} of this for "
            "each job, and so plans with another decay of the prior, and more trust in it; nothing was measured now"
        )
    _print(values, as_json, "\n".join(lines))


@app.command()
def release(
    path: SpecPath,
    scheduler: Scheduler = "auto",
    dataset: Annotated[
        str | None, typer.Option(metavar="ID", show_default=False, help="Pay from the budget of this dataset [nobody].")
    ] = None,
    store: Annotated[
        Path | None, typer.Option(metavar="DIR", show_default=False, help="With --dataset: where to publish [SPEC's].")
    ] = None,
    database: Database = "",
    registry: datasets.Registry = None,
    as_json: AsJson = False,
) -> None:
    """Run a spec and publish the release. With --dataset its loss is recorded in the ledger first.

    Tables that hold jobs of a registered dataset are released with --dataset only.
    """
    from pipelines import release as pipeline
    from pipelines.unpaid import Unpaid
    from synthmap.remote import shown
    from synthmap.spec import read_spec

    spec = read_spec(path)
    with progress_bars() as show:
        if dataset is not None:
            chosen = spec.model_copy(update={"store": store or spec.store})
            found = ledger.paid(chosen, dataset, database, registry, scheduler=scheduler, progress=show)
        elif store is not None:
            raise ConfigurationError(f"--dataset must be given with --store ({store}); else SPEC says where to publish")
        else:
            unpaid = Unpaid(spec, registry)
            found = pipeline.release(spec, scheduler=scheduler, progress=show, before_reading=unpaid.before_reading,
                                     before_drawing=unpaid.before_drawing)  # fmt: skip
    if dataset is None and not as_json:
        typer.echo("synthmap: no ledger keeps account of this release; --dataset names one that does", err=True)
    dp = found.manifest.privacy.dp
    values = {
        "release": found.release,
        "path": shown(found.path),
        "epsilon": dp.epsilon,
        "delta": dp.delta,
        "workers": found.manifest.invariants.workers,
        "destinations": found.manifest.invariants.destinations,
        "private": found.manifest.private,
        "warning": found.manifest.warning,
        "dataset": dataset,
        "seconds": round(found.seconds, 3),
    }
    _print(
        values,
        as_json,
        f"release {found.release}: {values['workers']:,} workers at {values['destinations']:,} destinations, "
        f"{shown_losses(dp.epsilon, dp.delta)}, in {found.seconds:.1f} s\n"
        + "".join(f"{one}\n" for one in caution(found.manifest.private, found.manifest.warning))
        + shown(found.path),
    )


@app.command()
def evaluate(
    path: Annotated[Path, typer.Argument(metavar="RELEASE", help="Directory of a release.")],
    against: Annotated[Path, typer.Option(metavar="SPEC", help="The spec that the release was made from.")],
    plots: Annotated[Path | None, typer.Option(metavar="DIR", help="Also draw three figures there.")] = None,
    as_json: AsJson = False,
) -> None:
    """Measure a release against its confidential tables. The result is confidential: it stays with the curator."""
    from pipelines.places import public_inputs, run_directory, with_tables
    from synthmap.confidential.fidelity import evaluate_by_destination
    from synthmap.confidential.fidelity_report import report
    from synthmap.release.remote_store import on_disk
    from synthmap.spec import read_spec

    spec = read_spec(against)
    with progress_bars() as show, on_disk(path) as directory, run_directory(spec.run.scratch) as run:
        show("evaluate", 0, 1)
        found, by_destination = evaluate_by_destination(directory, with_tables(public_inputs(spec, run), run))
        show("evaluate", 1, 1)
    values = found.to_json()
    text = report(found)
    if plots is not None:
        from synthmap.analysis.plots import write_plots

        drawn = write_plots(by_destination, plots, title=found.release, footer="Confidential: stays with the curator.")
        values["plots"] = [str(one) for one in drawn]
        text += "\n\nFigures, as confidential as the table:\n" + "\n".join(f"  {one}" for one in drawn)
    _print(values, as_json, text)


@app.command()
def demo(
    directory: Annotated[Path, typer.Option(help="Where to work.")] = Path("demo"),
    workers: Annotated[int, typer.Option(help="Workers in the made-up region.")] = 200_000,
    as_json: AsJson = False,
) -> None:
    """Make a region up, plan, release and verify it, and print what is promised."""
    from pipelines import release as pipeline
    from synthmap.confidential.sample import write_sample
    from synthmap.release.statement import read_statement
    from synthmap.release.statement import text as words
    from synthmap.release.verify import verify as check
    from synthmap.spec import read_spec

    region = directory / "region"
    with progress_bars() as show:
        if not (region / "spec.toml").exists():
            write_sample(
                region,
                workers=workers,
                zones=max(workers // 10, 50),
                destinations=max(workers // 50, 10),
                seed=1,
                progress=lambda share: show("sample", round(100 * share), 100),
            )
        spec = read_spec(region / "spec.toml").model_copy(update={"store": directory / "releases"})
        found = pipeline.release(spec, progress=show)
    check(found.path)
    values = {
        "release": found.release,
        "path": str(found.path),
        "epsilon": found.manifest.privacy.dp.epsilon,
        "delta": found.manifest.privacy.dp.delta,
        "workers": found.manifest.invariants.workers,
        "destinations": found.manifest.invariants.destinations,
    }
    text = (
        f"{words(read_statement(found.path))}\n\nVerified. The confidential table and its spec: {region}\n"
        f"The release: {found.path}\n  od/*.parquet    origin, destination, count and segments\n"
        "  zones.parquet   GeoParquet\n  plan.parquet    noise of every destination\n"
        "  statement.html  the statement above and more, a page; statement.json for machines\n"
        "  manifest.json   how it was made"
    )
    _print(values, as_json, text)
