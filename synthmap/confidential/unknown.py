"""Ids of a confidential table that are not zones, collected over a whole file."""

from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from synthmap.errors import ConfidentialDataError
from synthmap.geography.zones import Zones, unknown_message

LIMIT = 100_000

_SWALLOWED = r'["\r\n]'  # in an id, the sign that an unbalanced quote ran over the end of a row


@dataclass
class UnknownIds:
    """The ids of one column that are not zones.

    Attributes
    ----------
    file, column : str
        Where they are, as the message names it.
    ids : pyarrow.StringArray
        The distinct ones; no more are added once there are `LIMIT`.
    empty : bool
        Whether a row had none.
    """

    file: str
    column: str
    ids: pa.StringArray = field(default_factory=lambda: pa.array([], pa.string()))
    empty: bool = False

    def __bool__(self) -> bool:
        return self.empty or len(self.ids) > 0

    def add(self, ids: pa.StringArray) -> None:
        """Collect `ids`, which are not zones; a null is an empty one.

        Raises
        ------
        ConfidentialDataError
            If one holds a quote or a line break: then it is a piece of several rows and must not be
            shown.
        """
        self.empty = self.empty or ids.null_count > 0
        distinct = pc.unique(ids.drop_null())
        if pc.any(pc.match_substring_regex(distinct, _SWALLOWED)).as_py():
            raise ConfidentialDataError(
                f"{self.file}: column {self.column} must hold ids without quotes and line breaks; "
                f"check that every quote is closed in its row"
            )
        if len(self.ids) < LIMIT:
            self.ids = pc.unique(pa.concat_arrays([self.ids, distinct]))

    def short_of_a_zero(self, zones: Zones) -> str | None:
        """Return one of the ids that zeros before it would make a zone, if there is one."""
        if len(self.ids) == 0:
            return None
        lengths = pc.utf8_length(self.ids)
        for length in pc.unique(pc.utf8_length(zones.ids)).to_pylist():
            shorter = self.ids.filter(pc.less(lengths, length))
            found = zones.find(pc.utf8_lpad(shorter, width=length, padding="0")) >= 0
            if found.any():
                return str(shorter.filter(pa.array(found))[0].as_py())
        return None

    def message(self) -> str:
        """Return what to tell about them; names up to ten and how many distinct there are."""
        if len(self.ids) == 0:
            return f"{self.file}: column {self.column} must hold a zone in every row; at least one is empty"
        stopped = "; counting stopped there" if len(self.ids) >= LIMIT else ""
        return unknown_message(self.ids, self.file, self.column) + stopped
