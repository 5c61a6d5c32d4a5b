"""Which features a filter is true of: basic CQL2, LIKE, IN, BETWEEN, CASEI and S_INTERSECTS, with SQL's unknown."""

import operator
import re
from collections.abc import Callable
from typing import Any, cast

import polars as pl

from synthmap.errors import QueryError
from synthmap.published.features_layer import Kind, Layer, Operand
from synthmap.published.features_region import Region, box_region, shape_region

GEOMETRY = "geometry"
_COMPARE: dict[str, Callable[[pl.Series, pl.Series], pl.Series]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_ARGUMENTS = {"not": 1, "isNull": 1, "between": 3, "casei": 1}  # of the others: two
_PATTERN = 200  # characters of a LIKE: a regular expression's size is bounded
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Filter:
    """Compiles trees of CQL2 JSON for one layer.

    Attributes
    ----------
    layer : Layer
    crs : str
        CRS of the geometries in the filter.
    """

    def __init__(self, layer: Layer, crs: str) -> None:
        self.layer = layer
        self.crs = crs
        self._operations: dict[str, Callable[..., Operand]] = {
            "and": self._and, "or": self._or, "not": self._not, "isNull": self._is_null, "like": self._like,
            "between": self._between, "in": self._in, "casei": self._casei, "s_intersects": self._intersects,
        }  # fmt: skip

    def condition(self, node: Any) -> Operand:
        """Return what a filter, or a part of it, is of every feature: true, false or (null) unknown.

        Raises
        ------
        QueryError
            If it names what is no property, compares what cannot be compared, or asks for what is not supported.
        """
        found = self._operand(node)
        if found.kind != "boolean":
            raise QueryError("filter must be a condition, such as count > 10")
        return found

    def _operand(self, node: Any) -> Operand:
        """Return the values of a property, a literal or an operation."""
        match node:
            case bool() | int() | float() | str():
                return _literal(node)
            case {"property": str(name)}:
                if name not in self.layer.properties:
                    known = ", ".join([*self.layer.properties, GEOMETRY])
                    raise QueryError(
                        f"filter: property ({name}) must be one of {known}; {GEOMETRY} is for S_INTERSECTS"
                    )
                return self.layer.column(name)
            case {"op": str(name), "args": list(arguments)}:
                return self._operation(name, arguments)
        raise QueryError("filter must be made of properties, text, numbers and operations; dates have none here")

    def _operation(self, name: str, arguments: list[Any]) -> Operand:
        known = [*_COMPARE, *self._operations]
        if name not in known:
            raise QueryError(f"filter: operation ({name}) must be one of {', '.join(known)}")
        wanted = max(2, len(arguments)) if name in ("and", "or") else _ARGUMENTS.get(name, 2)
        if len(arguments) != wanted:
            raise QueryError(f"filter: operation {name} must have {wanted} arguments")
        if name in _COMPARE:
            return self._compare(name, *map(self._operand, arguments))
        return self._operations[name](*arguments)

    def _and(self, *parts: Any) -> Operand:
        return self._joined(operator.and_, parts)

    def _or(self, *parts: Any) -> Operand:
        return self._joined(operator.or_, parts)

    def _joined(self, function: Callable[[pl.Series, pl.Series], pl.Series], parts: tuple[Any, ...]) -> Operand:
        first, *others = (self.condition(part) for part in parts)
        for other in others:
            first = _combined("boolean", function, first, other)
        return first

    def _not(self, part: Any) -> Operand:
        return _combined("boolean", operator.invert, self.condition(part))

    def _compare(self, name: str, left: Operand, right: Operand) -> Operand:
        _same_kind(left, right)
        if left.of == "constant" and right.of != "constant":
            return self._compare(_TURNED.get(name, name), right, left)
        if len({left.of, right.of, "constant", "row"}) == 4:  # both ends: ranks are quicker to compare than text
            left, right = _ranked(left, right)
        return _combined("boolean", _COMPARE[name], left, right)

    def _is_null(self, value: Any) -> Operand:
        return _combined("boolean", pl.Series.is_null, self._operand(value))

    def _like(self, value: Any, pattern: Any) -> Operand:
        text, wanted = self._operand(value), self._operand(pattern)
        if text.kind != "string" or wanted.kind != "string" or wanted.of != "constant":
            raise QueryError("filter: LIKE must compare text with a pattern in quotes")
        pattern = _constant(wanted)
        if len(pattern) > _PATTERN:
            raise QueryError(f"filter: a pattern of LIKE must have at most {_PATTERN} characters")
        expression = _expression(pattern)
        return _combined("boolean", lambda values: values.str.contains(expression), text)

    def _between(self, value: Any, low: Any, high: Any) -> Operand:
        return self._and({"op": ">=", "args": [value, low]}, {"op": "<=", "args": [value, high]})

    def _in(self, value: Any, options: list[Any]) -> Operand:
        if not isinstance(options, list) or not options:
            raise QueryError("filter: IN must have a list of one value or more")
        found, literals = self._operand(value), [self._operand(option) for option in options]
        for literal in literals:
            _same_kind(found, literal)
            if literal.of != "constant":
                raise QueryError("filter: IN must have a list of text or of numbers")
        wanted = pl.Series([_constant(literal) for literal in literals])
        return _combined("boolean", lambda values: values.cast(wanted.dtype).is_in(wanted), found)

    def _casei(self, value: Any) -> Operand:
        found = self._operand(value)
        if found.kind != "string":
            raise QueryError("filter: CASEI must be of text")
        return _combined("string", lambda values: values.str.to_lowercase(), found)

    def _intersects(self, left: Any, right: Any) -> Operand:
        if right == {"property": GEOMETRY}:
            left, right = right, left
        if left != {"property": GEOMETRY}:
            raise QueryError(f"filter: S_INTERSECTS must compare {GEOMETRY} with a geometry")
        return self.layer.meeting(self._region(right))

    def _region(self, literal: Any) -> Region:
        match literal:
            case {"bbox": [*numbers]} if len(numbers) in (4, 6) and all(isinstance(one, float) for one in numbers):
                return box_region(tuple(numbers), self.crs)
            case {"type": str()}:
                return shape_region(literal, self.crs)
        raise QueryError("filter: S_INTERSECTS must have a geometry, as POINT(2 48) or BBOX(2,48,3,49)")


def _literal(value: bool | float | str) -> Operand:
    series = pl.Series([value])
    kind: Kind = "boolean" if isinstance(value, bool) else "string" if isinstance(value, str) else "number"
    return Operand(kind, "constant", lambda _: series)


def _constant(operand: Operand) -> Any:
    """Return the value of a constant."""
    return operand.get(cast(Any, None))[0]


def _same_kind(left: Operand, right: Operand) -> None:
    if left.kind != right.kind:
        raise QueryError(
            f"filter must not compare a {left.kind} with a {right.kind}; ids are text: write them in quotes"
        )


def _combined(kind: Kind, function: Callable[..., pl.Series], *operands: Operand) -> Operand:
    """Return a function of operands: found at once, for all units of an end, where it depends on one end alone."""
    over = {one.of for one in operands} - {"constant"}
    if over <= {"row"} or len(over) > 1:
        if not over:
            done = function(*(one.get(cast(Any, None)) for one in operands))
            return Operand(kind, "constant", lambda _: done)
        return Operand(
            kind,
            "row",
            lambda s: function(*(one.get(s) if one.of == "constant" else one.rows(s) for one in operands)),
        )
    found = function(*(one.get(cast(Any, None)) for one in operands))
    return Operand(kind, over.pop(), lambda _: found)


def _ranked(left: Operand, right: Operand) -> tuple[Operand, Operand]:
    """Return operands of two ends as numbers in the same order."""
    values = [one.get(cast(Any, None)) for one in (left, right)]
    ranks = pl.concat([one.rename("") for one in values]).rank("dense")
    split = ranks[: len(values[0])], ranks[len(values[0]) :]
    return Operand("number", left.of, lambda _: split[0]), Operand("number", right.of, lambda _: split[1])


def _expression(pattern: str) -> str:
    """Return the regular expression of a pattern: % is any text, _ any character, a backslash takes them literally."""
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    meaning = {"%": ".*", "_": "."}
    return "(?s)^" + "".join(meaning.get(part) or re.escape(part[-1]) for part in parts) + "$"
