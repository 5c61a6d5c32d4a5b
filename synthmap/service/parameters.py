"""Query parameters: those a route does not know are refused, and the ones that several routes share."""

import math
from collections.abc import Sequence
from typing import Any

from fastapi import Request

from synthmap.errors import QueryError

_TOLD = 60  # characters of a wrong value
EVERYWHERE = frozenset({"f", "token"})  # representation; key, for clients that cannot send headers


async def known_only(request: Request) -> None:
    """Refuse a query parameter that the route does not declare (OGC API Features wants 400).

    A route whose parameters depend on a release's columns sets ``own_parameters`` on its function and refuses itself.
    """
    if not request.scope["query_string"]:
        return
    route = request.scope.get("route")
    dependant = getattr(route, "dependant", None)
    if dependant is None:
        return
    declared = _declared(dependant)
    for name, field in declared.items():
        if field.field_info.annotation in (float, float | None):
            _finite(name, request.query_params.getlist(name))
    if not getattr(dependant.call, "own_parameters", False):
        refuse_unknown(request, set(declared))


def refuse_unknown(request: Request, declared: set[str]) -> None:
    """Refuse query parameters that are neither `declared` nor known everywhere."""
    unknown = sorted(set(request.query_params) - declared - EVERYWHERE)
    if unknown:
        raise QueryError(f"query parameter ({', '.join(unknown)}) must be one of {', '.join(sorted(declared | {'f'}))}")


def _declared(dependant: Any) -> dict[str, Any]:
    """Return the query parameters of a route and of what it depends on."""
    found = {field.alias: field for field in dependant.query_params}
    for part in dependant.dependencies:
        found |= _declared(part)
    return found


def _finite(name: str, values: list[str]) -> None:
    """Refuse NaN and infinity, which a float parameter would take."""
    for value in values:
        try:
            number = float(value)
        except ValueError:
            continue  # the parameter says itself what it must be
        if not math.isfinite(number):
            raise QueryError(f"{name} must be a finite number")


def numbers(text: str, name: str, count: Sequence[int], kind: str = "numbers") -> tuple[float, ...]:
    """Return comma-separated finite numbers, or refuse them by `name`."""
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError:
        values = ()
    if len(values) not in count or not all(abs(value) < 1e308 for value in values):
        many = f"{count[0]} to {count[-1]}" if len(count) > 2 else " or ".join(map(str, count))
        raise QueryError(f"{name} ({text[:_TOLD]}) must be {many} {kind} separated by commas")
    return values
