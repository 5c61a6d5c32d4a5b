"""The OD table of a release, as it was published."""

from pathlib import Path

import polars as pl


def published(store: Path, release: str) -> pl.DataFrame:
    return pl.read_parquet(store / release / "od" / "*.parquet")
