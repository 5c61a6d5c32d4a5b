"""What the counts of a page of flows are expected to be off by."""

from dataclasses import replace

import polars as pl

from synthmap.published.figure_errors import figure_errors
from synthmap.published.od import Page, Query
from synthmap.published.places import ZONE
from synthmap.published.store import OpenedRelease
from synthmap.published.table import units_of

ERROR = "expected_error"
DIGITS = 3  # of an error; more mean nothing


def with_errors(opened: OpenedRelease, query: Query, page: Page) -> Page:
    """Return a page with one more column, the expected errors of its counts, workers.

    Between zones as a feature's, between larger units as a tile's: as if a flow went evenly into its destination.

    Raises
    ------
    ReleaseCorruptError
        If the plan cannot be read.
    """
    homes, works = units_of(opened, query.origin_level), units_of(opened, query.destination_level)
    origins, destinations = homes.find(page.rows["origin"])[0], works.find(page.rows["destination"])[0]
    errors, counts = figure_errors(opened), page.rows["count"].to_numpy()
    if query.origin_level == query.destination_level == ZONE:
        found = errors.of_flows(counts, origins, destinations)
    else:
        found = errors.of_units(counts, origins, destinations, homes.of, works.of)
    return replace(page, rows=page.rows.with_columns(pl.Series(ERROR, found).round_sig_figs(DIGITS)))
