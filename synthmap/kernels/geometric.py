"""Two-sided geometric noise of any size, drawn in a time that does not depend on it: integers, no float anywhere.

Z = G − G′ of two independent geometric variables, P(G = g) = (1 − q)·q^g, has P(Z = z) = (1 − q)/(1 + q)·q^|z|; the
binary digits of G are independent, digit j is 1 with probability Q/(1 + Q), Q = q^(2^j). So as many random words are
read and as many comparisons made whatever Z becomes. Proof: synthmap/privacy/proofs/lengths.md.
"""

from synthmap.kernels.noise import NOISE_UNITS
from synthmap.kernels.stream import Stream

DIGITS = 62  # of each geometric variable
_BITS = 256  # of each uniform fraction: fewer than one in 2^200 noises need more


def digit_bounds(units: int, bits: int) -> tuple[list[int], list[int]]:
    """Return lower and upper bounds, in 1/2^bits, of the probability that digit 0, 1, … of G is 1.

    Parameters
    ----------
    units : int
        c in 1/2^32, above 0 and below 2^31: q = c/(2^32 − c).
    bits : int
        At least 1.
    """
    one, rest = 2**bits, NOISE_UNITS - units
    low, high = one * units // rest, -(-one * units // rest)  # of Q
    least, most = [], []
    for _ in range(DIGITS):
        least.append(one * low // (one + low))
        most.append(-(-one * high // (one + high)))
        low, high = low * low >> bits, -(-high * high >> bits)
    return least, most


def first_bits(stream: Stream, number: int, bits: int) -> list[int]:
    """Return the first bits of 2·DIGITS uniform fractions, which take the words of a stream in turn.

    Parameters
    ----------
    number : int
        Which of the streams, see `Stream.words`.
    bits : int
        A multiple of 64.
    """
    words = stream.words(number, 2 * DIGITS * bits // 64).reshape(-1, 2 * DIGITS)
    return [int.from_bytes(fraction.tobytes(), "big") for fraction in words.T.astype(">u8")]


def noise_of_sum(units: int, stream: Stream, number: int, bits: int = _BITS) -> int:
    """Return Z, P(Z = z) = (1 − q)/(1 + q)·q^|z|, q = units/(2^32 − units); |Z| < 2^62.

    Parameters
    ----------
    units : int
        c in 1/2^32, above 0 and below 2^31.
    number : int
        Which of the streams it is drawn from, see `Stream.words`: a function of that stream alone.
    bits : int
        How many of each fraction are looked at first, a multiple of 64; more where these leave a digit open.
    """
    while True:
        fractions = first_bits(stream, number, bits)
        ones, open_or_ones = (
            [fraction < bound for fraction, bound in zip(fractions, 2 * bounds, strict=True)]
            for bounds in digit_bounds(units, bits)
        )
        if ones == open_or_ones:
            return sum((up - down) << j for j, (up, down) in enumerate(zip(ones[:DIGITS], ones[DIGITS:], strict=True)))
        bits *= 2
