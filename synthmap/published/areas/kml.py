"""Points, lines and polygons of a KML file; no document type, no entities, nothing fetched."""

from typing import Any
from xml.parsers import expat

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.errors import ShapelyError

from synthmap.errors import QueryError
from synthmap.published.areas.shapes import FEATURES, VERTICES, Shape, make_shape

_DEPTH = 100
_GEOMETRIES = ("Point", "LineString", "LinearRing", "Polygon")
_DAMAGED = "area must be a KML file that can be read: well-formed XML without a document type"


def read_kml(data: bytes, description: str = "uploaded KML") -> Shape:
    """Return the geometries of a KML document as a shape.

    Raises
    ------
    QueryError
        If it is not well-formed, has a document type (which could define entities), is too deep or too large, has
        coordinates that are none, or `make_shape` refuses it.
    """
    reader = _Reader()
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = reader.doctype
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, LookupError, ValueError):  # also encodings that nobody knows
        raise QueryError(_DAMAGED) from None
    return make_shape(np.array(reader.found, object), description)


class _Reader:
    """What a parser of XML calls; it keeps geometries only."""

    def __init__(self) -> None:
        self.found: list[shapely.Geometry] = []
        self._path: list[str] = []
        self._text: list[str] | None = None
        self._rings: list[NDArray[np.float64]] = []
        self._vertices = 0

    def doctype(self, *_: Any) -> None:
        raise QueryError(_DAMAGED)

    def start(self, name: str, _: dict[str, str]) -> None:
        self._path.append(name.rpartition(" ")[2])
        if self._path[0] != "kml":
            raise QueryError("area must be a KML file: its root must be kml")
        if len(self._path) > _DEPTH:
            raise QueryError(f"area must be KML with elements no deeper than {_DEPTH}")
        if self._path[-1] == "Polygon":
            self._rings = []
        if self._path[-1] == "coordinates":
            self._text = []

    def text(self, part: str) -> None:
        if self._text is not None:
            self._text.append(part)

    def end(self, _: str) -> None:
        name = self._path.pop()
        if name == "coordinates" and self._text is not None:
            text, self._text = "".join(self._text), None
            self._coordinates(text)
        elif name == "Polygon" and self._rings:
            self._add(lambda: shapely.Polygon(self._rings[0], self._rings[1:]))

    def _coordinates(self, text: str) -> None:
        """Keep a geometry, or a ring of the polygon around it."""
        xy = self._numbers(text)
        kind = next((name for name in reversed(self._path) if name in _GEOMETRIES), None)
        if kind is None or not xy.size:
            return
        if "Polygon" in self._path:
            self._rings.append(xy)
        elif kind == "Point":
            self._add(lambda: shapely.Point(xy[0]))
        else:
            self._add(lambda: shapely.LineString(xy))

    def _numbers(self, text: str) -> NDArray[np.float64]:
        words = text.split()
        self._vertices += len(words)
        if self._vertices > VERTICES:
            raise QueryError(f"area must have at most {VERTICES:,} vertices; simplify it")
        try:
            xy = np.array([[float(number) for number in word.split(",")[:2]] for word in words]).reshape(-1, 2)
        except ValueError:
            xy = np.full((1, 2), np.nan)
        if not np.isfinite(xy).all():
            raise QueryError("area: coordinates of KML must be longitude,latitude with blanks between points")
        return xy

    def _add(self, make: Any) -> None:
        if len(self.found) >= FEATURES:
            raise QueryError(f"area must have at most {FEATURES:,} features; simplify it")
        try:
            self.found.append(make())
        except (ShapelyError, ValueError):
            raise QueryError("area: rings of KML must have three points or more, lines two") from None
