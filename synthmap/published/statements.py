"""The privacy statement of an opened release."""

from synthmap.published.store import OpenedRelease, unharmed
from synthmap.release.statement import RECORD, Statement, read_statement


def statement_of(opened: OpenedRelease) -> Statement:
    """Return the statement of a release: the record in it, or for releases made before, one made now.

    Raises
    ------
    ReleaseCorruptError
        If its file was changed or cannot be read.
    """
    opened.file(RECORD if RECORD in opened.manifest.files else "plan.parquet")
    with unharmed(opened.id):
        return read_statement(opened.directory, opened.manifest)
