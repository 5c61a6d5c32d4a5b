"""Losses and budgets as people read them: rounded to the safe side, never to the nearest."""

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

_ROOM = Decimal(2) ** -40  # of a figure: the sum of three times 0.1 reads as 0.3, as the ledger's budgets take it
_EXACT = Context(prec=60)


def shown_loss(value: float, digits: int = 6) -> str:
    """Return a loss, or a chance of failure, in so many digits: what is shown is not below it.

    Parameters
    ----------
    value : float
        Finite and at least 0.
    digits : int
        At most 15.

    Notes
    -----
    But for 2⁻⁴⁰ of it: decimals that no float holds read as they were typed.

    Examples
    --------
    >>> shown_loss(4.0), shown_loss(4.0000004), shown_loss(1.2341e-6, 3), shown_loss(0.1 + 0.1 + 0.1)
    ('4', '4.00001', '1.24e-06', '0.3')
    """
    return _rounded(Decimal(value), 1 - _ROOM, Context(prec=digits, rounding=ROUND_CEILING))


def shown_budget(value: float, digits: int = 6) -> str:
    """Return a budget, or what is left of one, in so many digits: what is shown is not above it, but for 2⁻⁴⁰ of it.

    Examples
    --------
    >>> shown_budget(4.0), shown_budget(0.49999999), shown_budget(0.0)
    ('4', '0.499999', '0')
    """
    return _rounded(Decimal(value), 1 + _ROOM, Context(prec=digits, rounding=ROUND_FLOOR))


def shown_losses(epsilon: float, delta: float) -> str:
    """Return ε and δ of a loss as they stand in a sentence.

    Examples
    --------
    >>> shown_losses(4.0, 1.2341e-6)
    'ε = 4, δ = 1.24e-06'
    """
    return f"ε = {shown_loss(epsilon)}, δ = {shown_loss(delta, 3)}"


def _rounded(value: Decimal, room: Decimal, context: Context) -> str:
    return f"{float(context.plus(_EXACT.multiply(value, room))):.{context.prec}g}"
