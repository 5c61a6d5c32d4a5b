"""Files for other programs, made from a release: each name is one file."""

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from synthmap.errors import NotFoundError
from synthmap.published.exports import limits
from synthmap.published.exports.limits import matrix
from synthmap.published.exports.once import make_once
from synthmap.published.exports.rows import count_rows, from_elsewhere
from synthmap.published.places import ZONE
from synthmap.published.store import OpenedRelease


@dataclass(frozen=True)
class Format:
    """How one file is made.

    Attributes
    ----------
    family : str
        What people call the format: one word for all its files.
    title : str
    media_type : str
    writer : str
        Module and function; loaded when a file is made, since listing needs none of it.
    part : str
        What of the release the writer is to write.
    """

    family: str
    title: str
    media_type: str
    writer: str
    part: str = ""


def _layers(family: str, ending: str, title: str, media_type: str) -> dict[str, Format]:
    """Return the files of a format that holds one layer a file."""
    writer = f"{family}:write_{family}"
    return {
        f"{part}.{ending}": Format(family, f"{title}: {part}", media_type, writer, part)
        for part in ("flows", "origins", "destinations")
    }


def _omx(level: str) -> Format:
    """Return the matrix of a level."""
    return Format("omx", f"OMX matrix: {level} by {level}", "application/x-hdf5", "omx:write_omx", level)


FORMATS: dict[str, Format] = {
    "flows.csv": Format("csv", "CSV: flows with the parents of both ends", "text/csv", "csv:write_csv"),
    "flows.csv-metadata.json": Format(
        "csv", "CSV: what its columns are (CSV on the Web)", "application/csvm+json", "csv:write_csv_metadata"
    ),
    **_layers("geoparquet", "parquet", "GeoParquet 1.1", "application/vnd.apache.parquet"),
    "release.gpkg": Format(
        "geopackage", "GeoPackage: flows, origins, destinations", "application/geopackage+sqlite3",
        "geopackage:write_geopackage",
    ),
    **_layers("flatgeobuf", "fgb", "FlatGeobuf", "application/vnd.flatgeobuf"),
    **_layers("pmtiles", "pmtiles", "PMTiles", "application/vnd.pmtiles"),
    "release.shp.zip": Format(
        "shapefile", "Shapefiles, zipped: flows, origins, destinations", "application/zip", "shapefile:write_shapefile"
    ),
    "matrix.omx": _omx(ZONE),
}  # fmt: skip
"""Files that can be made from any release."""
UNPLACED = {"flatgeobuf": ("flows", "origins"), "pmtiles": ("flows", "origins")}
"""Formats, and which of their files leave out what has no place on a map."""
_COUNTED = 2_000_000  # rows of a table that is read to list its files: half a second, once


def known(opened: OpenedRelease) -> dict[str, Format]:
    """Return the files of a release: `FORMATS`, and a matrix for each of its parent levels; some may be too large."""
    files = FORMATS | {matrix(level): _omx(level) for level in opened.manifest.zones.levels}
    return {name: _titled(opened, one) for name, one in files.items()}


def _titled(opened: OpenedRelease, one: Format) -> Format:
    """Return a format whose title tells what it leaves out; how many workers, where it takes no time to know."""
    if one.family not in UNPLACED or one.part not in UNPLACED[one.family] or opened.manifest.zones.elsewhere is None:
        return one
    who = "those"
    if one.part == "flows" and count_rows(opened) <= _COUNTED:
        who = f"the {from_elsewhere(opened):,} workers"
    without = f"{who} from elsewhere" if one.part == "flows" else "elsewhere"
    return replace(one, title=f"{one.title}, without {without}")


def offered(opened: OpenedRelease) -> dict[str, Format]:
    """Return the files that can be made from a release: those that its formats can hold."""
    return {name: one for name, one in known(opened).items() if limits.fits(opened, one.family, one.part)}


def place(exports: Path, opened: OpenedRelease) -> Path:
    """Return the directory below `exports` for files of a release; a release that differs has another one."""
    return exports / opened.id / opened.etag[:16]


def export(opened: OpenedRelease, directory: Path, name: str) -> Path:
    """Return the file `name` in `directory`, made from a release unless it is there.

    Several processes may do so at once: one makes it, the others wait, nobody sees a part.

    Parameters
    ----------
    opened : OpenedRelease
    directory : Path
        For files of this release only.
    name : str
        One of `known`.

    Raises
    ------
    NotFoundError
        If no such file can be made.
    ExportError
        If the format cannot hold this release.
    ReleaseCorruptError
        If the release cannot be read.
    ReleaseError
        If the file cannot be written.
    """
    files = known(opened)
    if name not in files:
        raise NotFoundError(f"file ({name}) must be one of {', '.join(files)}")
    one = files[name]
    module, function = one.writer.split(":")
    write = getattr(importlib.import_module(f"{__name__}.{module}"), function)
    return make_once(directory / name, lambda path: write(opened, path, one.part))


def export_all(
    opened: OpenedRelease,
    directory: Path,
    wanted: Iterable[str],
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
) -> list[Path]:
    """Return the files in `directory` that `wanted` asks for, made unless they are there.

    Parameters
    ----------
    opened : OpenedRelease
    directory : Path
    wanted : iterable of str
        Families (``geopackage``) or names of files (``flows.fgb``).
    progress : callable
        Told the name of each file, how many are done, and of how many.

    Raises
    ------
    NotFoundError
        If a word is neither; before anything is made.
    ExportError, ReleaseCorruptError, ReleaseError
        As `named`, before anything is made, and as `export`.
    """
    names = named(opened, wanted)
    made = []
    for place, name in enumerate(names):
        progress(name, place, len(names))
        made.append(export(opened, directory, name))
        progress(name, place + 1, len(names))
    return made


def named(opened: OpenedRelease, wanted: Iterable[str]) -> list[str]:
    """Return the files that `wanted` asks for, by their names or by family, each once.

    Raises
    ------
    NotFoundError
        If a word is neither.
    ExportError
        If a format cannot hold the file, or none of its files.
    """
    files, fit = known(opened), offered(opened)
    out: dict[str, None] = {}
    for word in wanted:
        found = [name for name, one in files.items() if word in (name, one.family)]
        if not found:
            families = dict.fromkeys(one.family for one in files.values())
            raise NotFoundError(f"format ({word}) must be one of {', '.join([*families, *files])}")
        if not any(name in fit for name in found):
            limits.check(opened, files[found[0]].family, files[found[0]].part)
        out |= dict.fromkeys(name for name in found if name in fit)
    return list(out)
