"""``synthmap metrics``: measurements of a release that everybody may see, and what they say."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from synthmap.commands.datasets import Registry
from synthmap.commands.shared import AsJson, Database, opened, show
from synthmap.errors import NotFoundError
from synthmap.privacy.shown import shown_loss

if TYPE_CHECKING:
    from synthmap.published.measured import Estimate, Measured

app = typer.Typer(no_args_is_help=True, help="How far a release is from its table, with noise, for everybody.")
ReleasePath = Annotated[Path, typer.Argument(metavar="RELEASE", help="Directory of a release.")]


@app.command()
def publish(
    release: ReleasePath,
    dataset: Annotated[str, typer.Option(metavar="ID", help="The dataset it was made from, which pays.")],
    epsilon: Annotated[float, typer.Option(help="Natural-log ε for one job, in addition to the release's.")],
    cap_km: Annotated[float, typer.Option(help="Commutes count up to this length; elsewhere counts as it.")] = 80.0,
    database: Database = "",
    registry: Registry = None,
    as_json: AsJson = False,
) -> None:
    """Measure commute lengths and their errors with differential privacy, once, and publish them beside the release.

    The loss is recorded in the ledger before the table is read. Asked again, it publishes the same figures.
    """
    directory = release.resolve()
    with opened(directory.parent, database) as catalog:
        from pipelines.metrics import Asked, publish_metrics
        from pipelines.settings import worker_settings

        place = worker_settings(registry=registry).registry
        path, found = publish_metrics(catalog, place, dataset, directory, Asked(epsilon, cap_km))
    values = {"path": str(path), **found.model_dump(mode="json")}
    show(values, as_json, f"{_text(found)}\n\n{path}")


@app.command("show")
def show_(release: ReleasePath, as_json: AsJson = False) -> None:
    """Show the published measurements of a release."""
    from synthmap.published.measured import read_measured
    from synthmap.release.manifest import MANIFEST, read_manifest
    from synthmap.release.verify import sha256

    directory = release.resolve()
    name = read_manifest(directory).release
    found = read_measured(directory.parent, name, sha256(directory / MANIFEST))
    if found is None:
        raise NotFoundError(f"metrics of release ({name}) must be published first: synthmap metrics publish")
    show(found.model_dump(mode="json"), as_json, _text(found))


def _text(found: "Measured") -> str:
    lines = [
        f"Release {found.release}, measured with ε = {shown_loss(found.epsilon)}; intervals of {found.coverage:.0%}",
        "",
    ]
    lines.append("Share of commutes by length, release less confidential table, in percent:")
    for one in found.lengths:
        if one.density == "all":
            lines.append(f"  {_band(one.km_from, one.km_to):>14}  {_interval(one.share_error, 100)}")
    for title, density in [("length in the release", None), ("density", True)]:
        lines += ["", f"Error of destinations' average commutes by {title}, km: absolute; signed"]
        for mean in found.averages:
            whole = mean.km_from is None
            if (mean.density == "all" and not whole) if density is None else (mean.density != "all" and whole):
                label = _band(mean.km_from, mean.km_to) if density is None else mean.density
                figures = f"{_interval(mean.mean_absolute_error_km)};  {_interval(mean.mean_error_km)}"
                lines.append(f"  {label:>14}  {figures}  ({mean.workers:,} workers)")
    return "\n".join([*lines, "", *found.statement])


def _band(low: float | None, high: float | None) -> str:
    if low is None:
        return "elsewhere"
    return f"{low:g} km and more" if high is None else f"{low:g}–{high:g} km"


def _interval(one: "Estimate", times: float = 1.0) -> str:
    return f"{times * one.value:.3g} ({times * one.low:.3g} to {times * one.high:.3g})"
