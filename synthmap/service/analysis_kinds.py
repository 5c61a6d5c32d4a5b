"""The analyses that can be asked for: their names, for whom they are, and their parameters."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import Query

from synthmap.analysis.area import distance, ranked
from synthmap.analysis.area.bands import MOST, ONTHEMAP, Bands
from synthmap.analysis.area.distance import End
from synthmap.analysis.area.inflow_outflow import inflow_outflow
from synthmap.analysis.area.paired_areas import paired_areas
from synthmap.analysis.area.result import Analysis
from synthmap.analysis.area.time import Compared, in_order, time
from synthmap.published.areas.area import Area
from synthmap.published.places import ZONE
from synthmap.published.store import OpenedRelease
from synthmap.service.context import ServiceDep
from synthmap.service.parameters import numbers

Options = Mapping[str, Any]
_BANDS = ",".join(map("{:g}".format, ONTHEMAP))
_COUNTS = range(1, MOST + 1)


async def no_options() -> Options:
    """Return that an analysis has no parameters of its own."""
    return {}


async def end_and_bands(
    end: Annotated[End, Query(description="Which end of commutes is in the area: where people live, or work.")],
    units: Annotated[Literal["mi", "km"], Query(description="Units of the bands.")] = "mi",
    bands: Annotated[str, Query(description="Where bands of distance end, but for the last, which is open.")] = _BANDS,
) -> Options:
    """Return the end of commutes and the bands."""
    return {"end": end, "bands": Bands(numbers(bands, "bands", _COUNTS, "ascending numbers"), units)}


async def level_and_top(
    by: Annotated[str, Query(description=f"Level of the units that are ranked; {ZONE} is the finest.")] = ZONE,
    top: Annotated[int, Query(ge=1, le=ranked.MOST, description="How many units.")] = ranked.TOP,
) -> Options:
    """Return what is ranked."""
    return {"by": by, "top": top}


def what_is_compared(
    service: ServiceDep,
    other: Annotated[str, Query(description="Id of the release to compare with.")],
    of: Annotated[Compared, Query(description="The analysis whose figures are compared.")] = "inflow-outflow",
    end: Annotated[
        End | None, Query(description="Which end of commutes is in the area; needed for profiles and distances.")
    ] = None,
    units: Annotated[Literal["mi", "km"], Query(description="Units of the bands.")] = "mi",
    bands: Annotated[str, Query(description="Where bands of distance end, but for the last, which is open.")] = _BANDS,
    by: Annotated[str, Query(description="Level of the units that are ranked.")] = ZONE,
    top: Annotated[int, Query(ge=1, le=ranked.MOST, description="How many units.")] = ranked.TOP,
) -> Options:
    """Return the release to compare with, and what is compared."""
    wide = Bands(numbers(bands, "bands", _COUNTS, "ascending numbers"), units)
    return {"other": service.releases.open(other), "of": of, "end": end, "bands": wide, "by": by, "top": top}


def _time(opened: OpenedRelease, area: Area, *, other: OpenedRelease, **options: Any) -> Analysis:
    return time(*in_order(opened, other), area, **options)


@dataclass(frozen=True)
class Kind:
    """An analysis of the service.

    Attributes
    ----------
    title, description : str
    run : callable
        Given a release, one area or two, and the options.
    options : callable
        The dependency that reads its parameters.
    pair : bool
        Whether it is of two areas.
    """

    title: str
    description: str
    run: Callable[..., Analysis]
    options: Callable[..., Any] = no_options
    pair: bool = False


KINDS: dict[str, Kind] = {
    "inflow-outflow": Kind(
        "Inflow and outflow",
        "How many are employed in an area, live in it, do both, commute in and out.",
        inflow_outflow,
    ),
    "area-profile": Kind(
        distance.PROFILE,
        "Those who live, or work, in an area, by segment and distance of their other end.",
        distance.area_profile,
        end_and_bands,
    ),
    "distance-direction": Kind(
        distance.DIRECTION,
        "How far and in which of eight directions the other ends of an area's commutes lie.",
        distance.distance_direction,
        end_and_bands,
    ),
    "destinations": Kind(
        ranked.TITLES["destinations"],
        "The units of a level where most residents of an area work.",
        ranked.destinations,
        level_and_top,
    ),
    "origins": Kind(
        ranked.TITLES["origins"],
        "The units of a level where most workers of an area live.",
        ranked.origins,
        level_and_top,
    ),
    "paired-areas": Kind(
        "Flows between two areas",
        "How many commute from one area to another, back, and within each.",
        paired_areas,
        pair=True,
    ),
    "time": Kind(
        "Change between two releases",
        "Figures of an area in two releases of the same zones, and what changed beside the noise of both.",
        _time,
        what_is_compared,
    ),
}
