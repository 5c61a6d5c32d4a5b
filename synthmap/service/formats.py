"""Which representation a client gets: ``f=`` first, then ``Accept``, then the first offered."""

from collections.abc import Mapping

from fastapi import Request

from synthmap.service.problems import Problem

JSON, HTML, GEOJSON = "application/json", "text/html", "application/geo+json"
TEXT, SCHEMA = "text/plain", "application/schema+json"
PNG, PDF = "image/png", "application/pdf"
CSV, PARQUET, ARROW = "text/csv", "application/vnd.apache.parquet", "application/vnd.apache.arrow.stream"


def negotiate(request: Request, offered: Mapping[str, str]) -> str:
    """Return the name of the representation to send.

    Parameters
    ----------
    request : Request
    offered : mapping of str to str
        Name (as in ``f=``) to media type, the default first.

    Raises
    ------
    Problem
        400 for an unknown ``f``, 406 when ``Accept`` allows none of them.
    """
    asked = request.query_params.get("f")
    if asked is not None:
        if asked not in offered:
            raise Problem(400, f"f ({asked}) must be one of {', '.join(offered)}")
        return asked
    accept = request.headers.get("accept", "").strip()
    if not accept:
        return next(iter(offered))
    best: tuple[float, int, str] | None = None
    for place, (name, media) in enumerate(offered.items()):
        quality = _quality(accept, media)
        if quality > 0 and (best is None or (-quality, place) < best[:2]):
            best = (-quality, place, name)
    if best is None:
        raise Problem(406, f"Accept must allow one of {', '.join(offered.values())}")
    return best[2]


def json_only(request: Request) -> None:
    """Refuse a request for anything but JSON; for routers whose answers have no other form."""
    negotiate(request, {"json": JSON})


def _quality(accept: str, media: str) -> float:
    """Return how much an Accept header wants a media type; the most specific range decides."""
    found = (0, 0.0)
    kind = media.split("/")[0]
    for part in accept.split(","):
        value, *parameters = (piece.strip() for piece in part.split(";"))
        quality = 1.0
        for parameter in parameters:
            key, _, number = parameter.partition("=")
            if key.strip() == "q":
                try:
                    quality = float(number)
                except ValueError:
                    quality = 0.0
        specific = {media: 3, f"{kind}/*": 2, "*/*": 1}.get(value.lower(), 0)
        if specific > found[0]:
            found = (specific, quality)
    return found[1]
