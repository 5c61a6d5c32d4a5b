"""Linkage: who lives alone in a remote zone is known from a directory; a table of flows tells where they work.

It succeeds against any method that gives noise to occupied cells only: no other draw can start in that zone
(Machanavajjhala, Kifer, Abowd, Gehrke, Vilhuber, ICDE 2008).

Where a worker of a known workplace lives is one worker's origin: the odds move by at most exp(ε). At which of two
workplaces the resident of a known home works is the origin of a worker at either: they move by at most exp(2ε).
"""

import polars as pl


def linked_workplaces(tables: pl.DataFrame, *, origin: str) -> pl.DataFrame:
    """Return (draw, destination) of the largest flow from `origin`; nothing for draws without, or where two are alike.

    Parameters
    ----------
    tables : polars.DataFrame
        Flows; draw 0 if there is no column ``draw``.
    origin : str
        A zone in which one worker is known to live.
    """
    if "draw" not in tables.columns:
        tables = tables.with_columns(draw=pl.lit(0))
    here = tables.filter((pl.col("origin") == origin) & (pl.col("count") > 0))
    largest = here.filter(pl.col("count") == pl.col("count").max().over("draw"))
    return largest.filter(pl.len().over("draw") == 1).select("draw", "destination").sort("draw")


def lone_homes(table: pl.DataFrame) -> list[str]:
    """Return the origins of exactly one worker; what a directory tells of a confidential table."""
    each = table.group_by("origin").agg(pl.col("count").sum()).filter(pl.col("count") == 1)
    return sorted(each["origin"].to_list())


def linked_share(published: pl.DataFrame, confidential: pl.DataFrame, homes: list[str]) -> float:
    """Return for which share of `homes` the published table names the true workplace."""
    truth = confidential.filter(pl.col("origin").is_in(homes))
    right = 0
    for home in homes:
        found = linked_workplaces(published, origin=home)["destination"].to_list()
        right += found == truth.filter(pl.col("origin") == home)["destination"].to_list()
    return right / len(homes)
