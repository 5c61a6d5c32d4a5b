"""A file as an answer: whole, in part, or not at all where the client has it."""

import os
import re
from pathlib import Path

from fastapi import Request
from starlette.responses import FileResponse, Response

from synthmap.service.caching import kept, not_modified
from synthmap.service.problems import Problem

_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})", re.IGNORECASE)


def answer_file(
    request: Request, path: Path, status: os.stat_result, *, media_type: str, tag: str, name: str
) -> Response:
    """Return what a GET of a file gets: 200, 206 or 304.

    One range of bytes is answered. Several at once, and what is not a range of bytes, are answered with the whole
    file, as RFC 9110 allows.

    Parameters
    ----------
    request : Request
    path : Path
    status : os.stat_result
        Of the file.
    media_type : str
    tag : str
        Names these bytes: a strong validator.
    name : str
        What the file shall be called where it is saved.

    Raises
    ------
    Problem
        416 for a range that lies behind the end.
    """
    headers = kept(request, tag)
    known = not_modified(request, headers)
    if known is not None:
        return known
    answer = FileResponse(path, headers=headers, media_type=media_type, filename=name, stat_result=status)
    asked = request.headers.get("range")
    if asked is None:
        return answer
    if not _current(request, answer) or not _single(asked, status.st_size):
        request.scope["headers"] = [pair for pair in request.scope["headers"] if pair[0] != b"range"]
    return answer


def _current(request: Request, answer: FileResponse) -> bool:
    """Return whether a range may be sent: If-Range, if there is one, names what the file is now."""
    condition = request.headers.get("if-range")
    return condition in (None, answer.headers["etag"], answer.headers["last-modified"])


def _single(asked: str, size: int) -> bool:
    """Return whether a Range is one range of bytes that can be sent."""
    match = _RANGE.fullmatch(asked.replace(" ", ""))
    if match is None or not any(match.groups()):
        return False
    first, last = match.groups()
    if first and last and int(last) < int(first):
        return False
    if (int(first) >= size) if first else (int(last) == 0):
        raise Problem(416, f"range must start before the end of the file ({size} bytes)", {
            "Content-Range": f"bytes */{size}"
        })  # fmt: skip
    return True
