"""A small oracle of its own: float formats over exact fractions. It shares no code with the package."""
import math
from fractions import Fraction

FORMATS = {  # precision with the hidden bit, smallest normal exponent, largest finite value
    "f8e4m3fn": (4, -6, Fraction(448)), "f8e5m2": (3, -14, Fraction(57344)), "f16": (11, -14, Fraction(65504)),
    "bf16": (8, -126, (2 - Fraction(1, 2 ** 7)) * 2 ** 127), "f32": (24, -126, (2 - Fraction(1, 2 ** 23)) * 2 ** 127),
    "f64": (53, -1022, (2 - Fraction(1, 2 ** 52)) * 2 ** 1023),
}
EXPONENT_BITS = {"f8e4m3fn": 4, "f8e5m2": 5, "f16": 5, "bf16": 8, "f32": 8, "f64": 11}


def nearest(x: Fraction, dt: str):
    """The value of ``dt`` nearest to ``x``, ties to even: a Fraction, or an infinity or NaN on overflow."""
    if x == 0:
        return Fraction(0)
    precision, least, largest = FORMATS[dt]
    exponent = x.numerator.bit_length() - x.denominator.bit_length()
    if abs(x) < Fraction(2) ** exponent:
        exponent -= 1
    quantum = Fraction(2) ** (max(exponent, least) - precision + 1)
    value = round(x / quantum) * quantum
    if abs(value) > largest:
        return math.nan if dt == "f8e4m3fn" else math.inf if x > 0 else -math.inf
    return value


def value_of(bits: int, dt: str):
    """The value of a bit pattern: a Fraction with its sign apart, or an infinity or NaN. Gives (negative, value)."""
    precision, least, largest = FORMATS[dt]
    fraction_bits, exponent_bits = precision - 1, EXPONENT_BITS[dt]
    negative = bool(bits >> (fraction_bits + exponent_bits) & 1)
    exponent = bits >> fraction_bits & (1 << exponent_bits) - 1
    fraction = bits & (1 << fraction_bits) - 1
    magnitude = Fraction(fraction, 1 << fraction_bits) + (exponent > 0)
    value = magnitude * Fraction(2) ** (max(exponent, 1) - 1 + least)
    if value > largest:
        value = math.inf if fraction == 0 and dt != "f8e4m3fn" else math.nan
    return negative, (-value if negative else value)


def agrees(got: float, want, negative_zero: bool = False) -> bool:
    """Whether a float holds the exact value ``want``; a zero must have the sign that ``negative_zero`` says."""
    got = float(got)
    if isinstance(want, float) and math.isnan(want):
        return math.isnan(got)
    if isinstance(want, float) and (want != 0 or not math.isfinite(want)):
        return got == want
    if not math.isfinite(got) or Fraction(got) != want:
        return False
    return want != 0 or (math.copysign(1, got) < 0) == negative_zero
