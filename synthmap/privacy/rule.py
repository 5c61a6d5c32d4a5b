"""The certificates that a noise level can be asked to pass."""

from enum import StrEnum


class Rule(StrEnum):
    """The certificate that a noise level must pass.

    ``pdp`` is OnTheMap's (ε, δ)-probabilistic DP, ``adp`` is (ε, δ)-DP directly, ``pure`` is ε-DP.
    """

    PDP = "pdp"
    ADP = "adp"
    PURE = "pure"
