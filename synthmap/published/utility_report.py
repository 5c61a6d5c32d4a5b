"""What is told about a release's utility: the fields, and in plain words what to trust."""

from collections.abc import Sequence
from typing import Annotated

import polars as pl
from pydantic import BaseModel, ConfigDict, Field, PlainSerializer

Figure = Annotated[float, PlainSerializer(lambda value: float(f"{value:.6g}"))]  # no digits that mean nothing


class _Report(BaseModel):
    model_config = ConfigDict(frozen=True)


class Whole(_Report):
    """Several destinations together; means are weighted by their workers."""

    destinations: int
    workers: int = Field(description="Synthetic workers.")
    cells_median: Figure | None = Field(description="Areas between which the origins of a destination are told apart.")
    prior_share: Figure | None = Field(description="Expected share of synthetic workers drawn from the public prior.")
    predicted_km_median: Figure | None = Field(
        description="Predicted error (root mean square) of a destination's average commute; null where not planned for."
    )
    expected_km: Figure | None = Field(description="Expected absolute error of a destination's average commute.")
    common_part: Figure | None = Field(
        description="Expected share of workers that table and truth have in common, in cells, if the prior were true."
    )
    noise_floor_median: Figure | None = Field(
        description="Workers from which on a destination's figure is expected to be off by at most half of itself; "
        "null: none is, short of the total."
    )


class HeadcountClass(Whole):
    """Destinations of one size, both ends included."""

    headcount_from: int
    headcount_to: int | None


class DistanceBand(_Report):
    """Commutes of one length: km_from ≤ length < km_to; or those from elsewhere."""

    km_from: Figure | None
    km_to: Figure | None
    origin: str | None = Field(description="Set where the band is not one of distance: origins off the map.")
    share: Figure = Field(description="Of the synthetic workers.")
    share_of_prior: Figure = Field(description="Share of workers that the public prior alone expects.")
    prior_share: Figure | None = Field(
        description="Expected share of the band's synthetic workers drawn from the prior."
    )
    share_error: Figure = Field(description="Expected error of the band's share at one destination, mean over workers.")


class FigureError(_Report):
    """Expected error (root mean square) of a figure of one destination, for origins that make up whole cells."""

    workers: int
    error: Figure


class ReleaseUtility(Whole):
    """A release as a whole."""

    release: str
    title: str
    warning: str | None
    epsilon: float
    delta: float
    mostly_prior_below: int | None = Field(
        description="From this headcount on, every destination takes most of its workers from data; null: all do."
    )
    mostly_prior_workers_share: Figure = Field(
        description="Share of workers at destinations that take more than half of theirs from the prior."
    )
    by_headcount: list[HeadcountClass]
    by_distance: list[DistanceBand] = Field(
        description="Empty where a public table is mixed into the prior: it is no part of the release."
    )
    by_distance_destinations: int = Field(description="Destinations looked at for the bands; all, or a fixed sample.")
    trust: str = Field(description="In plain words, what to trust.")

    @property
    def nbytes(self) -> int:
        """Bytes it takes in memory, about."""
        return 10 * len(self.model_dump_json())


class DestinationUtility(_Report):
    """One destination."""

    release: str
    warning: str | None
    destination: str
    headcount: int = Field(description="Published exactly.")
    synthetic_size: int
    cells: int
    alpha: Figure | None = Field(
        description="Pseudo-count of each cell (and segment), in workers; null unless real counts are resampled."
    )
    keep: Figure | None = Field(description="Smallest chance that an empty cell can be drawn; null likewise.")
    noise_sd: Figure | None = Field(
        default=None,
        description="Standard deviation of the noise on each cell's count, in workers; null where they are resampled.",
    )
    epsilon: float
    delta: float
    prior_share: Figure
    predicted_km: Figure | None
    expected_km: Figure | None
    common_part: Figure
    noise_floor: Figure | None
    figures: list[FigureError]
    by_distance: list[DistanceBand] = Field(
        description="Empty where a public table is mixed into the prior: it is no part of the release."
    )
    trust: str


def trust_release(
    prior_share: float | None, below: int | None, share: float, classes: Sequence[HeadcountClass], *, measured: bool
) -> str:
    """Return what to trust of a release.

    Parameters
    ----------
    below : int or None
        Headcount from which on no destination is mostly prior; None if none is.
    share : float
        Share of workers at destinations that are mostly prior.
    measured : bool
        Whether the prior's decay was fitted to commute lengths that were measured with noise.
    """
    if prior_share is None:
        return "The release has no workers."
    parts = ["The number of workers at each destination is exact.",
             f"{_percent(prior_share)} of the origins are drawn from the public prior, not from data."]  # fmt: skip
    if measured:
        parts.append("Its decay with distance was fitted to noisy mean commutes of classes of destinations.")
    if below is None:
        parts.append("No destination takes more than half of its origins from the prior.")
    else:
        parts.append(
            f"Below {_workers(below)}, figures of a single destination can be mostly prior ({_percent(share)} of all "
            "workers are at such places): add destinations up before reading anything into them."
        )
    floors = [
        f"{_range(one)}: {_workers(round(one.noise_floor_median))}"
        for one in classes
        if one.noise_floor_median is not None
    ]
    if floors:
        parts.append(
            "A figure of one destination is expected to be off by less than half of itself from about this size on, "
            f"by workers at the destination: {'; '.join(floors)}."
        )
    return " ".join(parts)


def trust_destination(
    headcount: int, cells: int, prior_share: float, floor: float | None, mostly: float, *, measured: bool
) -> str:
    """Return what to trust of one destination; `measured`: the prior's decay was fitted to measured lengths."""
    total = f"The total, {_workers(headcount)}, is exact."
    if cells == 1 and measured:
        return (
            f"{total} All origins are drawn from the public prior, whose decay with distance was fitted to noisy mean "
            "commutes of many destinations: they say no more about who works here."
        )
    if cells == 1:
        return f"{total} All origins are drawn from the public prior: they say nothing about who works here."
    share = f"{_percent(prior_share)} of the origins are drawn from the public prior, not from data."
    if prior_share > mostly:
        advice = "Figures are mostly prior: add destinations up before reading anything into them."
    elif floor is None:
        advice = "Any part of it is expected to be off by more than half of itself."
    else:
        advice = f"A part below {_workers(round(floor))} is expected to be off by more than half of itself."
    apart = f"Origins are told apart in {cells:,} areas; inside one, zones are drawn from the prior."
    return f"{total} {share} {advice} {apart}"


def _range(one: HeadcountClass) -> str:
    if one.headcount_to is None:
        return f"{one.headcount_from:,} and more"
    return f"{one.headcount_from:,} to {one.headcount_to:,}"


def _workers(count: int) -> str:
    return f"{count:,} worker" if count == 1 else f"{count:,} workers"


def _percent(share: float) -> str:
    """Return a share for people, never rounded to nothing or all."""
    if 0 < share < 0.01:
        return "under 1 %"
    if 0.99 < share < 1:
        return "over 99 %"
    return f"{share:.0%}".replace("%", " %")


def utility_rows(report: ReleaseUtility | DestinationUtility) -> pl.DataFrame:
    """Return a report as one table: the whole first, then its classes; what does not apply is empty.

    Columns ``class`` (all or destination, headcount, distance), ``from`` and ``to`` (workers or km), then the fields.
    """
    values = report.model_dump()
    lists = ("by_headcount", "by_distance", "figures")
    whole = {key: value for key, value in values.items() if key not in (*lists, "trust", "warning", "title")}
    rows: list[dict[str, object]] = [
        {"class": "all" if isinstance(report, ReleaseUtility) else "destination", "from": None, "to": None, **whole}
    ]
    for one in values.get("by_headcount", ()):
        ends = {"class": "headcount", "from": one.pop("headcount_from"), "to": one.pop("headcount_to")}
        rows.append({**ends, **one})
    for one in values["by_distance"]:
        rows.append({"class": "distance", "from": one.pop("km_from"), "to": one.pop("km_to"), **one})
    return pl.DataFrame(rows, infer_schema_length=None)
