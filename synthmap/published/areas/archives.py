"""Files in a zip archive, in memory: names are only looked at, never opened; sizes are bounded whatever it says."""

import io
import zipfile
import zlib

from synthmap.errors import QueryError

BYTES = 50_000_000  # of what is unpacked
_ENTRIES = 1_000
_ENTRY = b"PK\x01\x02"  # starts the record of each file in the directory of an archive
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_FAULTS = (zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError, KeyError)
SHAPEFILE = ("shp", "shx", "dbf", "prj")


def unpack(data: bytes) -> dict[str, bytes]:
    """Return what an archive holds of a shapefile, a KML file or a GeoPackage, by extension.

    Folders and names do not matter; of each extension there is one file.

    Raises
    ------
    QueryError
        If it cannot be read, is encrypted, holds more than one such thing or none, or more than `BYTES`.
    """
    if data.count(_ENTRY) > _ENTRIES:
        raise QueryError(f"area: a zip archive must have at most {_ENTRIES:,} files")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _unpack(archive)
    except _FAULTS:
        raise QueryError("area: the zip archive must be readable and not encrypted; zip the files again") from None


def _unpack(archive: zipfile.ZipFile) -> dict[str, bytes]:
    wanted: dict[str, zipfile.ZipInfo] = {}
    is_kmz = "doc.kml" in archive.namelist()  # the others are what it links to
    for entry in archive.infolist():
        name = entry.filename.replace("\\", "/").rpartition("/")[2]
        ending = name.rpartition(".")[2].lower()
        if ending not in (*SHAPEFILE, "kml", "gpkg") or name.startswith(".") or entry.is_dir():
            continue
        if ending == "kml" and name != "doc.kml" and is_kmz:
            continue
        if ending in wanted:
            raise QueryError(f"area: a zip archive must hold one .{ending} file")
        wanted[ending] = entry
    kinds = [kind for kind in ("shp", "kml", "gpkg") if kind in wanted]
    if len(kinds) != 1:
        raise QueryError("area: a zip archive must hold one shapefile (.shp, .shx, .prj), one .kml or one .gpkg")
    left, found = BYTES, {}
    for ending in SHAPEFILE if kinds == ["shp"] else kinds:
        if ending in wanted:
            found[ending] = _read(archive, wanted[ending], left)
            left -= len(found[ending])
    return found


def _read(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, most: int) -> bytes:
    if entry.compress_type not in _METHODS:
        raise QueryError("area: files in a zip archive must be stored or deflated; zip them again")
    with archive.open(entry) as file:
        found = file.read(most + 1)
    if len(found) > most:
        raise QueryError(f"area: a zip archive must hold at most {BYTES:,} bytes when unpacked")
    return found


def pack(files: dict[str, bytes], stem: str) -> bytes:
    """Return an archive of files called `stem` with these extensions, stored."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for ending, content in files.items():
            archive.writestr(f"{stem}.{ending}", content)
    return out.getvalue()
