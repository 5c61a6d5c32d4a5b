"""``synthmap fit-decay``: the decay of the prior that has the mean commutes of a public table."""

import json
from pathlib import Path
from typing import Annotated

import typer

from synthmap.commands.shared import AsJson, show

app = typer.Typer()


@app.command()
def fit_decay(
    path: Annotated[Path, typer.Argument(metavar="SPEC", help="A TOML spec with prior.release or [prior.table].")],
    as_json: AsJson = False,
) -> None:
    """Print a decay for [prior], fitted to the public table that SPEC names; no confidential table is read."""
    from synthmap.analysis.prior_table import read_prior_table, refuse_confidential
    from synthmap.errors import ConfigurationError
    from synthmap.geography.read import read_zones
    from synthmap.geography.region import make_region
    from synthmap.mechanism.lengths import fit_to_table
    from synthmap.spec import read_spec

    spec = read_spec(path)
    if not spec.prior.public:
        raise ConfigurationError(f"spec ({path}) must name a public table: prior.release or [prior.table]")
    refuse_confidential(spec)
    region = make_region(read_zones(spec.zones))
    table, source = read_prior_table(spec, region.zones)
    found = fit_to_table(region, spec, table)
    assert source is not None  # noqa: S101 (the spec names one)
    values = {
        "class_edges_km": [round(edge, 3) for edge in found.edges_km],
        "class_scales_km": [round(scale, 3) for scale in found.scales_km],
        "class_source": f"{source.name} (vintage {source.vintage}, SHA-256 {source.sha256}): {source.statement}",
        "mean_km": [round(mean, 3) for mean in found.mean_km],
        "workers": found.workers,
        "source": source.name,
    }
    lines = ["[prior]", f"scale_km = {spec.prior.scale_km}", f"power = {spec.prior.power}"]
    names = ("class_edges_km", "class_scales_km", "class_source")
    lines += [f"{name} = {json.dumps(values[name], ensure_ascii=False)}" for name in names]
    show(values, as_json, "\n".join(lines))
