"""What a manifest says in words of a release's promise: functions of its own figures, for who writes and checks it.

These words have been the same in every version. Whoever changes one must let `synthmap.release.consistency` go on
taking the old one: releases that carry it stay.
"""

from synthmap.privacy.loss import ReplaceOrigin
from synthmap.release.manifest import PriorSource

INVARIANTS = ("the number of workers at each destination is published exactly",)
SYNTHETIC_SIZE = "m(d) = n(d)"


def unit(segments: bool, jobs: int) -> str:
    """Return what is protected of a worker with up to so many jobs."""
    return (
        "in which origin a worker lives"
        + (" and to which segment the job belongs" if segments else "")
        + (f", for all of up to {jobs} jobs of a worker together." if jobs > 1 else ".")
    )


def adjacency(segments: bool) -> str:
    """Return which tables are neighbours."""
    return ReplaceOrigin(segments=segments).statement


def assumptions(jobs: int, source: PriorSource | None, class_source: str | None) -> list[str]:
    """Return what the promise rests on: what the prior was made from is public, a worker has so many jobs at most."""
    found = ["nothing else about the same jobs has been published; losses of several releases add up"]
    if source is not None:
        found.append(f"the prior's table {source.name} is public: {source.statement}")
    if class_source is not None:
        found.append(
            "what the scales of the prior's decay were fitted to is public, or its loss is counted elsewhere: "
            + class_source
        )
    if jobs == 1:
        found.append("a worker has one job in the table")
    else:
        found.append(f"a worker has at most {jobs} jobs in the table, at different destinations")
    return found


def warning(private: bool, source: PriorSource | None) -> str | None:
    """Return what a reader must know first."""
    found = []
    if not private:
        found.append("drawn with a fixed seed, for tests and demonstrations; anyone who knows the seed can undo it")
    if source is not None and not source.private:
        found.append(f"its prior is the release {source.name}, which is not private itself")
    return "; ".join(found) or None


def formula(classes: bool, source: PriorSource | None) -> str:
    """Return the formula of the prior, its decay by classes of destinations or the same for all."""
    return (
        "weight × (1 + distance_km/scale_km)^−power, great circle between internal points"
        + ("; each class of destinations has a scale of its own" if classes else "")
        + ("" if source is None else "; mixed with the public table named in source")
    )
