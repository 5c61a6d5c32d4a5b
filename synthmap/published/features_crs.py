"""The coordinate reference systems that features of a release come in."""

from synthmap.errors import QueryError
from synthmap.published.boxes import CRS84
from synthmap.published.extents import extent, middle
from synthmap.published.store import OpenedRelease

_EPSG = "http://www.opengis.net/def/crs/EPSG/0/"
WRAPPING = frozenset({"OGC:CRS84", "EPSG:4326", "EPSG:3857"})  # here a line over the antimeridian is cut there


def declared(opened: OpenedRelease) -> dict[str, str]:
    """Return the CRSs of a release by URI, as ``OGC:CRS84`` or ``EPSG:…``.

    Degrees in both orders of axes, web Mercator, and for lengths the UTM zone at its middle.
    """
    west, south, east, north = extent(opened)
    zone = min(int((middle(west, east) + 180) // 6) + 1, 60)
    utm = (32600 if south + north >= 0 else 32700) + zone
    return {CRS84: "OGC:CRS84"} | {f"{_EPSG}{code}": f"EPSG:{code}" for code in (4326, 3857, utm)}


def code_of(opened: OpenedRelease, uri: str, parameter: str) -> str:
    """Return the code of a declared CRS.

    Raises
    ------
    QueryError
        If it is not declared.
    """
    known = declared(opened)
    if uri not in known:
        raise QueryError(f"{parameter} ({uri}) must be one of {', '.join(known)}")
    return known[uri]


def decimals(crs: str) -> int:
    """Return to how many decimals coordinates are given: about a centimetre."""
    return 7 if crs in ("OGC:CRS84", "EPSG:4326") else 2
