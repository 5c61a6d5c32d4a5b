"""Files that people send as areas, made in memory."""

import io
import zipfile
from pathlib import Path

import geopandas
import shapely

SQUARE = shapely.box(10, 50, 11, 51)
RING = "10,50 11,50 11,51 10,51 10,50"


def kml(inner: str, head: str = '<?xml version="1.0" encoding="UTF-8"?>') -> bytes:
    """A KML document with a placemark."""
    start = f'{head}<kml xmlns="http://www.opengis.net/kml/2.2"><Document><Placemark>'
    return f"{start}{inner}</Placemark></Document></kml>".encode()


def polygon(ring: str = RING, hole: str = "") -> str:
    """A polygon of KML."""

    def side(name: str, text: str) -> str:
        return f"<{name}><LinearRing><coordinates>{text}</coordinates></LinearRing></{name}>"

    return f"<Polygon>{side('outerBoundaryIs', ring)}{side('innerBoundaryIs', hole) if hole else ''}</Polygon>"


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """An archive."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def written(directory: Path, name: str, *shapes: shapely.Geometry, crs: object = 4326, **options: object) -> bytes:
    """A file of GDAL."""
    path = directory / name
    geopandas.GeoDataFrame({"n": range(len(shapes))}, geometry=list(shapes), crs=crs).to_file(path, **options)
    return path.read_bytes()


def shapefile(directory: Path, *shapes: shapely.Geometry, crs: object = 4326, folder: str = "") -> bytes:
    """A zipped shapefile."""
    written(directory, "shape.shp", *shapes, crs=crs)
    return zipped({folder + path.name: path.read_bytes() for path in sorted(directory.glob("shape.*"))})
