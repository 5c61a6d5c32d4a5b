"""Longest commute: whoever drives farthest to a workplace is known there; the farthest flow tells where they live."""

import numpy as np
import polars as pl

from synthmap.geography.sphere import arc_km, unit_vectors


def farthest_homes(tables: pl.DataFrame, places: pl.DataFrame, *, destination: str) -> pl.DataFrame:
    """Return (draw, origin, km) of the farthest flow into `destination`; the first id where several are as far.

    Parameters
    ----------
    tables : polars.DataFrame
        Flows; draw 0 if there is no column ``draw``. Origins off the map are left out.
    places : polars.DataFrame
        Columns ``id``, ``longitude`` and ``latitude``.
    destination : str
    """
    if "draw" not in tables.columns:
        tables = tables.with_columns(draw=pl.lit(0))
    here = places.filter(pl.col("id") == destination)
    if not here.height:
        raise ValueError(f"destination ({destination}) must be one of the places")
    known = places.drop_nulls(["longitude", "latitude"])
    points = unit_vectors(known["longitude"].to_numpy(), known["latitude"].to_numpy())
    at = unit_vectors(here["longitude"].to_numpy(), here["latitude"].to_numpy())
    lengths = known.select(pl.col("id").alias("origin"), pl.Series("km", np.round(arc_km(points, at), 9)))
    inside = tables.filter((pl.col("destination") == destination) & (pl.col("count") > 0))
    found = inside.join(lengths, on="origin").sort("km", "origin", descending=[True, False])
    return found.group_by("draw", maintain_order=True).first().select("draw", "origin", "km").sort("draw")
