"""Whole numbers with discrete Laplace noise, drawn by OpenDP: the only way a measurement leaves the curator's room."""

import importlib.util
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from synthmap.confidential.measurements import Measurement
from synthmap.errors import ConfigurationError, PrivacyParameterError


@dataclass(frozen=True)
class Noisy:
    """A measurement with noise; publishable.

    Attributes
    ----------
    name : str
    values : ndarray of int64
    scale : float
        b of the noise, ``P(z) ∝ exp(−|z|/b)`` in every entry.
    """

    name: str
    values: NDArray[np.int64]
    scale: float


def need_opendp() -> None:
    """Refuse in one line where OpenDP is not installed.

    Raises
    ------
    ConfigurationError
        If it is missing.
    """
    if importlib.util.find_spec("opendp") is None:
        raise ConfigurationError("this command must have opendp installed: pip install 'synthmap[metrics]'")


def add_noise(measured: Measurement, epsilon: Fraction) -> Noisy:
    """Return a measurement with noise.

    **Guarantee** (adjacency: one worker of one destination has another origin): `epsilon`-DP by OpenDP's own map for
    the measurement's sensitivity; everything computed from it costs nothing more.

    Parameters
    ----------
    measured : Measurement
        Confidential.
    epsilon : Fraction
        Natural-log ε for one job, above 0.

    Raises
    ------
    PrivacyParameterError
        If epsilon is not above 0, or so small that no scale is a float.
    """
    scale = scale_of(measured.sensitivity, epsilon)
    return Noisy(measured.name, np.asarray(_laplace(scale)(measured.values.tolist()), dtype=np.int64), scale)


def scale_of(sensitivity: int, epsilon: Fraction) -> float:
    """Return the least scale found at which OpenDP states at most `epsilon` for an L1 distance of `sensitivity`."""
    if epsilon <= 0 or sensitivity / epsilon > 2**50:
        raise PrivacyParameterError(
            f"epsilon ({float(epsilon):g}) must be above 0, and large enough for a sensitivity of {sensitivity}"
        )
    scale = float(sensitivity / epsilon)
    while Fraction(_laplace(scale).map(sensitivity)) > epsilon:
        scale = math.nextafter(scale, math.inf)
    return scale


def _laplace(scale: float):  # type: ignore[no-untyped-def]
    """Return OpenDP's discrete Laplace mechanism on vectors of integers."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    return dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=scale)
