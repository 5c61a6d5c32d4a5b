"""The result of an analysis: figures with what they are called, where they are from and what to beware of."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from synthmap.analysis.area.figures import Figures
from synthmap.published.areas.area import Area
from synthmap.published.exports.about import citation
from synthmap.published.figure_errors import Trust, figure_errors, trust
from synthmap.published.store import OpenedRelease
from synthmap.release.statement_words import kind_and_amounts

OUTSIDE = (
    "Jobs at places outside the release are not in it: residents of the area who work there are not counted among "
    "those who live in it."
)


@dataclass(frozen=True)
class Named:
    """An area in a role: its name, and the end of a commute at which it is; None where it is at both."""

    name: str
    end: str | None
    area: Area


@dataclass(frozen=True)
class Analysis:
    """What an analysis found.

    Attributes
    ----------
    name, title : str
        As in routes, and for people.
    opened : OpenedRelease
    areas : tuple of Named
    parameters : mapping
        What was used, defaults included.
    keys : tuple of mapping
        What each row is about.
    figures : Figures
        One row each.
    others : mapping of str to Figures
        Further figures of each row.
    notes : tuple of str
        What a reader must know beside what all analyses tell.
    before : OpenedRelease, optional
        The release that it is compared with.
    sums : mapping of str to Figures
        Sums of rows, a figure each by its name: the errors of rows do not add up to theirs.
    """

    name: str
    title: str
    opened: OpenedRelease
    areas: tuple[Named, ...]
    parameters: Mapping[str, Any]
    keys: tuple[Mapping[str, Any], ...]
    figures: Figures
    others: Mapping[str, Figures] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    before: OpenedRelease | None = None
    sums: Mapping[str, Figures] = field(default_factory=dict)

    @property
    def releases(self) -> tuple[OpenedRelease, ...]:
        """The release, or both, the earlier first."""
        return (self.opened,) if self.before is None else (self.before, self.opened)

    @property
    def segments(self) -> tuple[str, ...]:
        """Names of the segments."""
        return tuple(self.opened.manifest.segments)[: self.figures.workers.shape[1] - 1]

    def cited(self, on: date) -> str:
        """Return one line that names releases and their promises, vintage, area and day."""
        where = "; ".join(_where(one) for one in self.areas)
        leads = ("",) if self.before is None else ("From ", "To ")
        releases = " ".join(f"{lead}{_promised(one)}" for lead, one in zip(leads, self.releases, strict=True))
        vintage = self.opened.manifest.zones.vintage
        return f"{self.title} for {where}. {releases} Zones of vintage {vintage}. Asked on {on.isoformat()}."

    def warnings(self) -> list[str]:
        """Return in plain words what to beware of."""
        named = [(one, "" if self.before is None else f" (release {one.id})") for one in self.releases]
        found = [f"NOT PRIVATE{name}: {one.manifest.warning}" for one, name in named if one.manifest.warning]
        if noise := self._which("noise"):
            found.append(
                f"Noise outweighs signal in {noise}: they are expected to be off by as much as they say, or more. Read "
                "nothing into them."
            )
        if weak := self._which("weak"):
            found.append(f"{weak} are expected to be off by more than half of themselves.")
        told = _told(self.figures)[:, 0]
        follow = int(((self.figures.prior[:, 0] > MOSTLY) & (self.figures.workers[:, 0] != 0)).sum())
        if follow:
            found.append(
                f"{follow} of {told.sum()} figures mostly follow the public prior, not data: there is too much noise, "
                "or the area is smaller than the cells between which the release tells origins apart."
            )
        for one in self.areas:
            for release, name in named if one.end != "home" else ():
                if (share := figure_errors(release).prior_share(one.area.zones)) is not None:
                    found.append(
                        f"{100 * share:.0f} % of the origins of those who work in {_called(one.name)}{name} are drawn "
                        "from the public prior, not from data."
                    )
            if one.area.count and one.area.count <= SMALL:
                has = f"{_called(one.name)} has {one.area.count} zone{'s' * (one.area.count > 1)}"
                found.append(f"{has[0].upper()}{has[1:]}: figures of so few are mostly chance; add zones up first.")
        return [*found, *self.notes]

    def cautions(self) -> list[str]:
        """Return warnings, and what is to be known about the areas."""
        return [*self.warnings(), *(note for one in self.areas for note in one.area.notes)]

    def _which(self, kind: Trust) -> str:
        """Return in words how many figures, and how many of segments, can be trusted so far; nothing if none."""
        told = _told(self.figures)
        kinds = np.array(trust(self.figures.workers.ravel(), self.figures.error.ravel())).reshape(told.shape)
        parts = ((slice(1), "figures"), (slice(1, None), "figures of segments"))
        found = [(int((told & (kinds == kind))[:, at].sum()), int(told[:, at].sum()), name) for at, name in parts]
        return " and ".join(f"{some} of {every} {name}" for some, every, name in found if some)

    def frame(self) -> pl.DataFrame:
        """Return keys and figures as a flat table: workers, expected_error, trust, prior_share; then the segments'.

        A segment whose columns would be called like others has a number after its name.
        """
        columns: dict[str, Any] = {name: [row.get(name) for row in self.keys] for name in _names(self.keys)}
        parts = {f"{prefix}_": figures for prefix, figures in self.others.items()} | {"": self.figures}
        own = [f"{prefix}{name}" for prefix in parts for name in ("workers", "expected_error", "trust", "prior_share")]
        segments = _apart(self.segments, {*columns, *own, *ABOUT}, parts)
        for prefix, figures in parts.items():
            columns |= _flat(figures, segments, prefix)
        return pl.DataFrame(columns, infer_schema_length=None, strict=False)


ABOUT = ("warnings", "citation")  # the columns that CSV has beside these
MOSTLY = 0.5  # of a figure
SMALL = 3  # zones; a single one is mostly chance


def figure(figures: Figures, row: int, segments: Sequence[str]) -> dict[str, Any]:
    """Return a figure as an object: workers, expected_error, trust, prior_share, and segments, each the first three."""
    columns = _numbers(figures, row)
    return columns[0] | {
        "prior_share": round(float(figures.prior[row, 0]), 3),
        "segments": dict(zip(segments, columns[1:], strict=True)),
    }


def _told(figures: Figures) -> NDArray[np.bool_]:
    """Return which figures tell something: all but those of 0 that are likely to be right."""
    return np.asarray((figures.workers != 0) | (figures.error >= 1.0))


def _numbers(figures: Figures, row: int) -> list[dict[str, Any]]:
    workers, error = figures.workers[row], figures.error[row]
    return [
        {"workers": one, "expected_error": rounded(off), "trust": kind}
        for one, off, kind in zip(workers.tolist(), error.tolist(), trust(workers, error), strict=True)
    ]


def rounded(value: float) -> float:
    """Return an error without digits that mean nothing."""
    return float(f"{value:.4g}")


def _flat(figures: Figures, segments: Sequence[str], prefix: str) -> dict[str, Any]:
    """Return figures as columns; segments are called by their names."""
    out: dict[str, Any] = {}
    for at, name in enumerate(["", *segments]):
        workers, error = figures.workers[:, at], figures.error[:, at]
        lead = f"{prefix}{name}_" if name else prefix
        out[f"{prefix}{name}" if name else f"{prefix}workers"] = workers
        out[f"{lead}expected_error"] = np.array([rounded(one) for one in error.tolist()], float)
        out[f"{lead}trust"] = trust(workers, error)
        if not name:
            out[f"{prefix}prior_share"] = figures.prior[:, 0].round(3)
    return out


def _apart(segments: Sequence[str], taken: Iterable[str], prefixes: Iterable[str]) -> list[str]:
    """Return names of segments, a number after those that would make a column twice, upper and lower case aside."""
    known, out = {name.casefold() for name in taken}, []
    for segment in segments:
        for number in itertools.count(1):
            name = segment if number == 1 else f"{segment}_{number}"
            ends = (name, f"{name}_expected_error", f"{name}_trust")
            columns = {f"{prefix}{end}".casefold() for prefix in prefixes for end in ends}
            if not columns & known:
                break
        known |= columns
        out.append(name)
    return out


def _names(keys: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in keys for name in row))


def _promised(opened: OpenedRelease) -> str:
    loss = opened.manifest.privacy.dp
    return f"{citation(opened)} {', '.join(kind_and_amounts(loss.epsilon, loss.delta))}."


def _called(name: str) -> str:
    return "the area" if name == "area" else f"area {name}"


def _where(one: Named) -> str:
    ends = {"home": " (where they live)", "work": " (where they work)", None: ""}
    lead = "" if one.name == "area" else f"{one.name}: "
    return f"{lead}{one.area.description}{ends[one.end]}"
