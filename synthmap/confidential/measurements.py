"""What is measured on confidential tables to be published with noise: whole numbers of bounded sensitivity."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synthmap.analysis.measured_classes import BANDS, MeasuredClasses, add_up, look_up
from synthmap.analysis.table import ODTable


@dataclass(frozen=True)
class Measurement:
    """A vector of whole numbers, confidential.

    Attributes
    ----------
    name : str
        Which; also the part of the charge.
    values : ndarray of int64
    sensitivity : int
        Most by which the entries change together (L1) when one worker of one destination has another origin.
        Proof: privacy/proofs/metrics.md.
    """

    name: str
    values: NDArray[np.int64]
    sensitivity: int


COUNTS, ABSOLUTE, SIGNED = "length histogram", "absolute error of averages", "signed error of averages"
NAMES = (COUNTS, ABSOLUTE, SIGNED)


def measure(table: ODTable, classes: MeasuredClasses) -> tuple[Measurement, Measurement, Measurement]:
    """Return the three measurements of a release against a confidential table, without noise.

    **No guarantee** as they are; with noise by `sensitivity` they are ε-DP.

    Parameters
    ----------
    table : ODTable
        Over the same zones, with the plan's headcounts. Confidential.
    classes : MeasuredClasses
        Public.

    Returns
    -------
    tuple of Measurement
        Workers by density class and band, flat, row-major; for classes (length class, density class), flat, the sum
        over destinations of ``|S_d − s_d|``, and of ``s_d − S_d``, in metres: S_d the sum of the workers' lengths in
        the table, s_d in the release.
    """
    row, band, metres = look_up(table, classes.plan, classes.zones, classes.cap_m)
    counts = add_up(classes.density[row] * (BANDS + 1) + band, table.count, classes.densities * (BANDS + 1))
    true_m = add_up(row, metres * table.count, classes.plan.destination.size)
    error = classes.synthetic_m - true_m
    place, size = classes.length * classes.densities + classes.density, BANDS * classes.densities
    return (
        Measurement(COUNTS, counts, 2),
        Measurement(ABSOLUTE, add_up(place, np.abs(error), size), classes.cap_m),
        Measurement(SIGNED, add_up(place, error, size), classes.cap_m),
    )
