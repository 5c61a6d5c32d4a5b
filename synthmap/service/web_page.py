"""The page at /map as it was built: its files, ready to be sent, and what browsers may let it do."""

import gzip
import mimetypes
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

BUILT = Path(__file__).parent / "web" / "dist"
_TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css", ".md": "text/plain"}


@dataclass(frozen=True)
class PageFile:
    """A file of the page.

    Attributes
    ----------
    media_type : str
    content : bytes
    packed : bytes
        The same, compressed with gzip.
    """

    media_type: str
    content: bytes
    packed: bytes


@dataclass(frozen=True)
class Page:
    """The built page: its HTML, and the files that this names, whose names change with their content."""

    html: PageFile
    files: dict[str, PageFile]


@cache
def built_page(directory: Path = BUILT) -> Page | None:
    """Return the page, read once; None where it is not built."""
    if not (directory / "index.html").is_file():
        return None
    files = {path.name: _read(path) for path in sorted((directory / "map").iterdir()) if path.suffix != ".gz"}
    return Page(_read(directory / "index.html"), files)


def policy(tiles: str) -> str:
    """Return the Content-Security-Policy of the page: all from here, but for a base map's tiles where one is set.

    Parameters
    ----------
    tiles : str
        The setting ``map_tiles``.
    """
    parts = urlsplit(tiles)
    beyond = f" {parts.scheme}://{parts.netloc}" if tiles else ""
    return (
        f"default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; font-src 'self'; "
        f"img-src 'self' data: blob:{beyond}; connect-src 'self'{beyond}; "
        "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    )


def _read(path: Path) -> PageFile:
    content = path.read_bytes()
    packed = path.with_name(f"{path.name}.gz")
    media_type = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return PageFile(media_type, content, packed.read_bytes() if packed.is_file() else gzip.compress(content, mtime=0))
