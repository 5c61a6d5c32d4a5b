"""What a release costs, and for which change of the confidential data: two small types."""

import math
from dataclasses import dataclass
from fractions import Fraction

from synthmap.errors import PrivacyParameterError
from synthmap.privacy.composition import round_up


@dataclass(frozen=True)
class ReplaceOrigin:
    """The protected change: one worker of one destination has another origin.

    The worker's destination and every headcount stay as they are.

    Attributes
    ----------
    segments : bool
        Whether the worker's segment may change too. True when segments are synthesised with the origins,
        false when the segment of a worker is treated as public or not published.

    Examples
    --------
    >>> ReplaceOrigin().statement
    'one worker of one destination has another origin; destination and headcount fixed'
    """

    segments: bool = False

    @property
    def statement(self) -> str:
        """Return the adjacency as a sentence fit for a manifest."""
        change = "another origin or another segment or both" if self.segments else "another origin"
        return f"one worker of one destination has {change}; destination and headcount fixed"


@dataclass(frozen=True)
class PrivacyLoss:
    """An (ε, δ)-differential-privacy loss for a stated adjacency; `+` is sequential composition.

    Attributes
    ----------
    epsilon : float
        Natural-log ε, finite and at least 0.
    delta : float
        δ of (ε, δ)-DP, in [0, 1].
    adjacency : ReplaceOrigin
        The protected change.

    Raises
    ------
    PrivacyParameterError
        If a value is out of range, or losses for different adjacencies are added.

    Notes
    -----
    Sums are rounded up; δ stays at most 1. Proof: proofs/composition.md.

    Examples
    --------
    >>> one = PrivacyLoss(epsilon=4.0, delta=1e-5, adjacency=ReplaceOrigin())
    >>> (one + one).epsilon
    8.0
    """

    epsilon: float
    delta: float
    adjacency: ReplaceOrigin

    def __post_init__(self) -> None:
        if not (math.isfinite(self.epsilon) and self.epsilon >= 0):
            raise PrivacyParameterError(
                f"epsilon ({self.epsilon:g}) must be finite and at least 0: state the loss in full"
            )
        if not 0 <= self.delta <= 1:
            raise PrivacyParameterError(f"delta ({self.delta:g}) must be at least 0 and at most 1: it is a probability")
        if not isinstance(self.adjacency, ReplaceOrigin):
            raise PrivacyParameterError(
                f"adjacency ({type(self.adjacency).__name__}) must be a ReplaceOrigin: "
                "name the protected change by its type"
            )

    def __add__(self, other: "PrivacyLoss") -> "PrivacyLoss":
        """Return the loss of publishing both; refuses losses for different protected changes."""
        if not isinstance(other, PrivacyLoss):
            return NotImplemented
        if self.adjacency != other.adjacency:
            raise PrivacyParameterError(
                f"adjacency ({other.adjacency.statement}) must be the same as that of the first loss "
                f"({self.adjacency.statement}): restate both losses for one protected change"
            )
        epsilon = round_up(Fraction(float(self.epsilon)) + Fraction(float(other.epsilon)))
        delta = round_up(Fraction(float(self.delta)) + Fraction(float(other.delta)))
        return PrivacyLoss(epsilon, min(1.0, delta), self.adjacency)
