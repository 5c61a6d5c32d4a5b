"""Files that people send as an area: GeoJSON, KML, KMZ, GeoPackage, zipped shapefile, known by their content."""

from synthmap.errors import QueryError
from synthmap.published.areas.archives import SHAPEFILE, pack, unpack
from synthmap.published.areas.gdal import read_with_gdal
from synthmap.published.areas.kml import read_kml
from synthmap.published.areas.objects import read_json
from synthmap.published.areas.shapes import Shape, read_geojson

_ZIP, _GEOPACKAGE = b"PK\x03\x04", b"SQLite format 3\0"
_BLANK = b"\xef\xbb\xbf \t\r\n"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


def read_upload(data: bytes) -> Shape:
    """Return the shape in a file; its name and its media type do not matter.

    Raises
    ------
    QueryError
        If it is none of the formats, cannot be read, or holds no area.
    """
    if data.startswith(_GEOPACKAGE):
        return read_with_gdal(data, "uploaded GeoPackage")
    if data.startswith(_ZIP):
        return _unpacked(data)
    start = data[:100].lstrip(_BLANK)
    if start.startswith(b"<") or data.startswith(_UTF_16):
        return read_kml(data)
    if start.startswith((b"{", b"[")):
        return read_geojson(read_json(data.removeprefix(_BLANK[:3])), "uploaded GeoJSON")
    raise QueryError("area must be a GeoJSON, KML, KMZ or GeoPackage file, or a zipped shapefile")


def _unpacked(data: bytes) -> Shape:
    found = unpack(data)
    if "kml" in found:
        return read_kml(found["kml"], "uploaded KMZ")
    if "gpkg" in found:
        if not found["gpkg"].startswith(_GEOPACKAGE):
            raise QueryError("area: the .gpkg file must be a GeoPackage")
        return read_with_gdal(found["gpkg"], "uploaded GeoPackage")
    if "shx" not in found or "prj" not in found:
        raise QueryError("area: a zipped shapefile must have its .shp, .shx and .prj files")
    return read_with_gdal(
        pack({name: found[name] for name in SHAPEFILE if name in found}, "area"), "uploaded shapefile"
    )
