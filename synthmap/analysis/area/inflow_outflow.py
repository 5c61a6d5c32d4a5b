"""Who is employed in an area, who lives in it, and who crosses its edge."""

import numpy as np

from synthmap.analysis.area.figures import Figures, elsewhere_code, estimated, joined, parts_of, same_release, total_of
from synthmap.analysis.area.result import OUTSIDE, Analysis, Named
from synthmap.published.areas.area import Area
from synthmap.published.figure_errors import figure_errors
from synthmap.published.store import OpenedRelease
from synthmap.published.tally import tally

TITLE = "Inflow and outflow"
LABELS = {
    "employed": "Employed in the area",
    "living": "Living in the area",
    "live_and_work": "Living and employed in the area",
    "in_commuters": "Employed in the area, living outside",
    "in_commuters_from_elsewhere": "… of these living outside the map",
    "out_commuters": "Living in the area, employed outside",
    "net_inflow": "Net inflow (employed minus living)",
}


def inflow_outflow(opened: OpenedRelease, area: Area) -> Analysis:
    """Return how many workers are employed in an area, live in it, do both, commute in and out.

    Parameters
    ----------
    opened : OpenedRelease
    area : Area

    Returns
    -------
    Analysis
        Keys ``figure`` (see `LABELS`) and ``label``.

    Raises
    ------
    QueryError
        If the area is not one of this release.
    ReleaseCorruptError
        If its files cannot be read.
    """
    same_release(opened, area)
    figures = inflow_outflow_figures(opened, area)
    notes = (OUTSIDE,) if area.count else ()
    keys = tuple({"figure": name, "label": label} for name, label in LABELS.items())
    return Analysis("inflow-outflow", TITLE, opened, (Named("area", None, area),), {}, keys, figures, notes=notes)


def inflow_outflow_figures(opened: OpenedRelease, area: Area) -> Figures:
    """Return the figures in the order of `LABELS`."""
    errors = figure_errors(opened)
    inside, away = area.zones, elsewhere_code(opened)
    outside, off_map = ~inside, np.arange(inside.size) == away
    came = tally(opened, 3, lambda o, d: np.where(inside[o], 0, np.where(o == away, 2, 1)), destinations=inside)
    left = tally(opened, 1, lambda o, d: np.zeros(o.size, np.int64), origins=inside, destinations=outside)
    here, there, everywhere = (errors.grouped(np.where(at, 0, -1), 1) for at in (inside, outside, inside | outside))
    home, beyond = (errors.shapes(np.where(of, 0, -1), 1) for of in (inside, off_map))
    employed = total_of(errors, came, inside)
    parts = np.stack([came[0], came[1:].sum(axis=0)])
    some = [bool(inside.any()), bool(outside.any())]  # origins
    parted = parts_of(estimated(errors, parts, here, home), employed, some)
    both, in_commuters = parted.take(slice(1)), parted.take(slice(1, None))
    from_elsewhere = estimated(errors, came[2:], here, beyond).where(off_map.any())
    if (outside == off_map).all():
        from_elsewhere = in_commuters
    out_commuters = estimated(errors, left, there, home).where(some[:1])
    living = estimated(errors, came[:1] + left, everywhere, home).where(some[:1])
    if not there.size.any():
        living = both
    # the errors of employed (0 but for its segments) and of living are not independent; added, they are an upper bound
    net = Figures(employed.workers - living.workers, employed.error + living.error, living.prior)
    return joined(employed, living, both, in_commuters, from_elsewhere, out_commuters, net)
