"""Ids of a confidential table that are not zones: what is wrong with them is told, never which they are.

A column that was named by mistake may hold anything, and where somebody lives is secret even where it is no zone.
"""

from decimal import Decimal
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from synthmap.errors import ConfidentialDataError
from synthmap.geography.zones import Zones

_SWALLOWED = r'["\r\n]'  # in an id, the sign that an unbalanced quote ran over the end of a row
_AROUND = r"[\s\p{C}\p{Z}'`´,]+"  # blanks, what is not seen, the apostrophe of a spreadsheet, commas between thousands
_POINT = r"\.0*$"
_EXPONENT = r"^\+?\d(\.\d*)?e\+?\d{1,3}$"
_NO_ID = r"^\d\.\d*e|e\+"  # in an exponent form, the sign that it is no id such as 4E07
_LONGEST = 100


class UnknownIds:
    """What is wrong with the ids of one column that are not zones, over a whole file.

    Parameters
    ----------
    file, column : str
        Where they are, as the message names it.
    zones : Zones
        Public.
    elsewhere : bool
        Whether ids may be empty or no zones. Even then none may be a zone's id that was written otherwise: whoever
        has it would live elsewhere by mistake.
    """

    def __init__(self, file: str, column: str, zones: Zones, *, elsewhere: bool = False) -> None:
        self.file, self.column, self.zones, self.elsewhere = file, column, zones, elsewhere
        self.empty = self.respelled = self.alike = self.other = False

    def __bool__(self) -> bool:
        """Whether the file must be refused for them."""
        return self.respelled or (not self.elsewhere and (self.empty or self.alike or self.other))

    def add(self, ids: pa.StringArray) -> None:
        """Look at `ids`, which are not zones; a null is an empty one.

        Raises
        ------
        ConfidentialDataError
            If one holds a quote or a line break: then it is a piece of several rows.
        """
        self.empty = self.empty or ids.null_count > 0
        distinct = pc.unique(ids.drop_null())
        if pc.any(pc.match_substring_regex(distinct, _SWALLOWED)).as_py():
            raise ConfidentialDataError(
                f"{self.file}: column {self.column} must hold ids without quotes and line breaks; "
                f"check that every quote is closed in its row"
            )
        respelled = self._respelled(distinct)
        self.respelled = self.respelled or bool(respelled.any())
        if not self.elsewhere:
            alike = np.asarray(pc.is_in(_forms(distinct), value_set=self._forms)) & ~respelled
            self.alike = self.alike or bool(alike.any())
            self.other = self.other or not (alike | respelled).all()

    def message(self) -> str:
        """Return what to tell of them: the column, the rule, and what to check."""
        faults = []
        if self.respelled:
            faults.append(
                "at least one is a zone's id written otherwise (leading zeros, letters in another case, blanks, a "
                "decimal point or an exponent): if ids were read as numbers somewhere before, read the column as text "
                "there"
            )
        if self.alike and not self.elsewhere:
            faults.append(
                "at least one looks like a zone's id but is none: check that the zones are of the vintage the table "
                "was made for, and that all are there"
            )
        if self.other and not self.elsewhere:
            faults.append(f"at least one looks otherwise: check that {self.column} is the column that holds them")
        if self.empty and not self.elsewhere:
            faults.append("at least one is empty")
        example = self.zones.ids[0].as_py()
        return (
            f"{self.file}: every id of column {self.column} must be one of the zones, such as {example!r}; "
            f"{'; '.join(faults)}"
        )

    def _respelled(self, ids: pa.StringArray) -> NDArray[np.bool_]:
        """Return whether each of distinct `ids` is a zone's, but for how it is written."""
        found = np.zeros(len(ids), np.bool_)
        odd = np.ones(len(ids), np.bool_)
        if self._digits:  # so many digits that are no zone are none however they are written
            odd = ~np.asarray(pc.and_(pc.ascii_is_decimal(ids), pc.equal(pc.utf8_length(ids), self._digits)))
        if not odd.any():
            return found
        ids = ids.filter(pa.array(odd))
        keys = _keys(ids)
        if self._digits:
            known = self.zones.find(pc.utf8_lpad(keys, width=self._digits, padding="0")) >= 0
        else:
            known = np.asarray(pc.is_in(keys, value_set=self._keys))
        if self._numbers:  # digits are lost in 4.4E+14, so it need not be a zone any more
            tidy = _tidy(ids)
            exponents = (pc.match_substring_regex(tidy, pattern) for pattern in (_EXPONENT, _NO_ID))
            known = known | np.asarray(pc.and_(*exponents))
        found[odd] = known
        return found

    @cached_property
    def _digits(self) -> int:
        """Of how many digits every zone's id consists; 0 if not all of equally many."""
        lengths = pc.min_max(pc.utf8_length(self.zones.ids)).as_py()
        same = lengths["min"] == lengths["max"] and pc.all(pc.ascii_is_decimal(self.zones.ids)).as_py()
        return int(lengths["min"]) if same else 0

    @cached_property
    def _numbers(self) -> bool:
        """Whether a zone's id could be taken for a number."""
        return self._digits > 0 or bool(pc.any(pc.ascii_is_decimal(self.zones.ids)).as_py())

    @cached_property
    def _keys(self) -> pa.StringArray:
        return pc.unique(_keys(self.zones.ids))

    @cached_property
    def _forms(self) -> pa.StringArray:
        return pc.unique(_forms(self.zones.ids))


def _keys(ids: pa.StringArray) -> pa.StringArray:
    """Return what is left of each id without all that programs change when they take it for a number or tidy it up."""
    keys = _tidy(ids)
    numbers = pc.match_substring_regex(keys, _EXPONENT)
    if pc.any(numbers).as_py():
        keys = pc.replace_with_mask(
            keys, numbers, pa.array([_written_out(key) for key in keys.filter(numbers).to_pylist()], pa.string())
        )
    keys = pc.replace_substring_regex(keys, pattern=_POINT, replacement="")
    return pc.utf8_ltrim(keys, characters="0")


def _tidy(ids: pa.StringArray) -> pa.StringArray:
    """Return ids in small letters and their usual characters, without what stands around and between these."""
    tidy = pc.utf8_lower(pc.utf8_normalize(ids, form="NFKC"))
    return pc.replace_substring_regex(tidy, pattern=_AROUND, replacement="")


def _written_out(number: str) -> str:
    """Return the whole number that an exponent form is; itself if it is none, or one far too long for an id."""
    found = Decimal(number)
    return str(int(found)) if found.adjusted() < _LONGEST and found == found.to_integral_value() else number


def _forms(ids: pa.StringArray) -> pa.StringArray:
    """Return each id with every digit, capital and small letter replaced by one of its class."""
    for pattern, replacement in ((r"\p{Nd}", "0"), (r"\p{Lu}", "A"), (r"\p{Ll}", "a")):
        ids = pc.replace_substring_regex(ids, pattern=pattern, replacement=replacement)
    return ids
