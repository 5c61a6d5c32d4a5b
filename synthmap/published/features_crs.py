"""The coordinate reference systems that features of a release come in."""

import json

import pyarrow.parquet as pq

from synthmap.errors import QueryError
from synthmap.published.boxes import CRS84
from synthmap.published.features_region import Bounds
from synthmap.published.store import OpenedRelease, unharmed

_EPSG = "http://www.opengis.net/def/crs/EPSG/0/"
WRAPPING = frozenset({"OGC:CRS84", "EPSG:4326", "EPSG:3857"})  # here a line over the antimeridian is cut there


def declared(opened: OpenedRelease) -> dict[str, str]:
    """Return the CRSs of a release by URI, as ``OGC:CRS84`` or ``EPSG:…``.

    Degrees in both orders of axes, web Mercator, and for lengths the UTM zone at its middle.
    """
    west, south, east, north = extent(opened)
    zone = min(int(((west + east) / 2 + 180) // 6) + 1, 60)
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


class _Extent(tuple[float, float, float, float]):
    nbytes = 100


def extent(opened: OpenedRelease) -> Bounds:
    """Return west, south, east and north of the zones of a release, from the head of its GeoParquet file."""

    def read() -> _Extent:
        with unharmed(opened.id):
            head = pq.read_schema(opened.file("zones.parquet")).metadata or {}
        geo = json.loads(head.get(b"geo", b"{}"))
        bbox = geo.get("columns", {}).get("geometry", {}).get("bbox")
        return _Extent(round(edge, 7) for edge in (bbox if bbox else opened.emptied().places.extent))

    return opened.memory.get((opened.etag, "extent"), read)
