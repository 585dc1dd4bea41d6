"""Exact arithmetic rounded once, over whole arrays of bit patterns: integers only, no float operation anywhere.

A finite value is (-1)^negative * m * 2^e with an integer m below 2^62. An operation keeps its exact result, or, where that is longer,
the result with its last bit set if anything was cut off: far below the precision of every format, such a bit rounds like the exact
value. It shares no code with the package; ``test_rounding.py`` holds it against exact fractions.
"""
from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .rational import EXPONENT_BITS, FORMATS

TOP = 60
"""The highest bit of a normalized significand."""


@dataclass(frozen=True)
class Exact:
    """``kind``: 0 finite, 1 infinity, 2 NaN."""
    negative: np.ndarray
    m: np.ndarray
    e: np.ndarray
    kind: np.ndarray

    @property
    def zero(self):
        return (self.kind == 0) & (self.m == 0)


def layout(dt: str) -> tuple[int, int, int]:
    """Fraction bits, smallest normal exponent, pattern of the largest finite value."""
    precision, least, _ = FORMATS[dt]
    ones = (1 << EXPONENT_BITS[dt] + precision - 1) - 1
    return precision - 1, least, ones - 1 if dt == "f8e4m3fn" else ones - (1 << precision - 1)


def decode(patterns, dt: str) -> Exact:
    patterns = np.asarray(patterns).astype(np.uint64).view(np.int64)
    fraction, least, largest = layout(dt)
    width = fraction + EXPONENT_BITS[dt]
    magnitude = patterns & (1 << width) - 1
    field = magnitude >> fraction
    m = (magnitude & (1 << fraction) - 1) + ((field > 0).astype(np.int64) << fraction)
    kind = np.where(magnitude <= largest, 0, np.where((magnitude == largest + 1) & (dt != "f8e4m3fn"), 1, 2))
    return Exact(patterns >> width & 1 == 1, m, np.maximum(field, 1) - 1 + least - fraction, kind)


def of_integers(x: np.ndarray) -> Exact:
    """Of an array of 64-bit integers."""
    negative = x < 0
    size = np.where(negative, np.negative(x), x).astype(np.uint64)
    long = size >> np.uint64(TOP + 1) != 0
    cut = np.where(long, size >> np.uint64(4) | (size & np.uint64(15) != 0), size)
    return Exact(negative, cut.view(np.int64), np.where(long, 4, 0), np.zeros(x.shape, np.int64))


def encode(x: Exact, dt: str, saturate: bool = False) -> np.ndarray:
    """The pattern nearest to ``x``, ties to even; beyond the format infinity (NaN in f8e4m3fn), or with ``saturate`` the largest."""
    fraction, least, largest = layout(dt)
    m, e = _normalized(x.m, x.e)
    exponent = np.maximum(e + TOP, least)
    shift = np.clip(exponent - fraction - e, 0, 62)
    kept, rest, half = m >> shift, m & (1 << shift) - 1, 1 << shift - 1
    kept = kept + ((rest > half) | (rest == half) & (kept & 1 == 1))
    magnitude = np.where(m == 0, 0, np.where(exponent > 1200, largest + 1, (np.minimum(exponent, 1200) - least << fraction) + kept))
    magnitude = np.where(x.kind == 1, largest + 1, np.minimum(magnitude, largest + 1))
    magnitude = np.minimum(magnitude, largest) if saturate else magnitude
    magnitude = np.where(x.kind == 2, (1 << fraction + EXPONENT_BITS[dt]) - 1, magnitude)
    return magnitude | x.negative.astype(np.int64) << fraction + EXPONENT_BITS[dt]


def truncated(x: Exact, low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
    """The integer part as a 64-bit pattern, clamped into low .. high (0 for NaN), and where that was not needed."""
    m, e = _normalized(x.m, x.e)
    huge = (m != 0) & (e > 63 - TOP) | (x.kind == 1)
    size = np.where(e < 0, m >> np.clip(-e, 0, 62), m << np.clip(e, 0, 63 - TOP)).view(np.uint64)
    fits = ~huge & np.where(x.negative, size <= np.uint64(-low), size <= np.uint64(high))
    limit = np.where(x.negative, np.uint64(low % (1 << 64)), np.uint64(high))
    value = np.where(fits, np.where(x.negative, np.negative(size), size), limit)
    return np.where(x.kind == 2, np.uint64(0), value), fits & (x.kind == 0)


def is_nan(patterns, dt: str) -> np.ndarray:
    return decode(patterns, dt).kind == 2


def _normalized(m, e):
    """The same values with the highest bit at TOP; zeros stay."""
    for s in (32, 16, 8, 4, 2, 1):
        small = (m < 1 << TOP + 1 - s) & (m != 0)
        m, e = np.where(small, m << s, m), np.where(small, e - s, e)
    return m, e


def negated(x: Exact) -> Exact:
    return Exact(~x.negative, x.m, x.e, x.kind)


def add(x: Exact, y: Exact) -> Exact:
    (xm, xe), (ym, ye) = _normalized(x.m, x.e), _normalized(y.m, y.e)
    xe, ye = np.where(xm == 0, -1 << 20, xe), np.where(ym == 0, -1 << 20, ye)
    swap = (ye > xe) | (ye == xe) & (ym > xm)
    big, small, e = np.where(swap, ym, xm), np.where(swap, xm, ym), np.maximum(xe, ye)
    sign, other = np.where(swap, y.negative, x.negative), np.where(swap, x.negative, y.negative)
    shift = np.minimum(np.abs(xe - ye), 62)
    small = small >> shift | (small & (1 << shift) - 1 != 0)
    m = np.where(sign == other, big + small, big - small)
    carry = m >> TOP + 1
    m, e = m >> carry | m & carry, e + carry
    sign = np.where(m == 0, x.negative & y.negative, sign)
    nan = (x.kind == 2) | (y.kind == 2) | (x.kind == 1) & (y.kind == 1) & (x.negative != y.negative)
    infinite = np.maximum(x.kind, y.kind)
    sign = np.where(infinite == 1, np.where(x.kind == 1, x.negative, y.negative), sign)
    return Exact(sign, m, np.where(m == 0, 0, e), np.where(nan, 2, infinite))


def multiply(x: Exact, y: Exact) -> Exact:
    """Of significands of at most 30 bits."""
    nan = (x.kind == 2) | (y.kind == 2) | (x.kind == 1) & y.zero | (y.kind == 1) & x.zero
    return Exact(x.negative != y.negative, x.m * y.m, x.e + y.e, np.where(nan, 2, np.maximum(x.kind, y.kind)))


def divide(x: Exact, y: Exact) -> Exact:
    """Of significands of at most 24 bits."""
    xm, xe = _normalized(x.m, x.e)
    whole, rest = np.divmod(xm, np.where(y.m == 0, 1, y.m))
    nan = (x.kind == 2) | (y.kind == 2) | (x.kind == 1) & (y.kind == 1) | x.zero & y.zero
    infinite = (x.kind == 1) | y.zero
    return Exact(x.negative != y.negative, np.where(y.kind == 1, 0, whole | (rest != 0)), xe - y.e, np.where(nan, 2, infinite))


def square_root(x: Exact) -> Exact:
    """Element by element; of at most 30 bits."""
    m, e = _normalized(x.m, x.e)
    odd = e & 1
    wide = m.astype(object) << 60 + odd                     # an even exponent, and enough bits for a root of sixty
    root = np.frompyfunc(math.isqrt, 1, 1)(wide)
    inexact = (root * root != wide).astype(np.int64)
    nan = (x.kind == 2) | x.negative & ~x.zero
    return Exact(x.negative, root.astype(np.int64) | inexact, (e - odd - 60) >> 1, np.where(nan, 2, x.kind))


def fma(x: Exact, y: Exact, z: Exact) -> Exact:
    return add(multiply(x, y), z)


def rank(patterns, dt: str) -> np.ndarray:
    """An integer that orders the patterns that are numbers: -0 just below +0 (decision 15)."""
    patterns = np.asarray(patterns).astype(np.int64)
    bits = layout(dt)[0] + EXPONENT_BITS[dt]
    magnitude = patterns & (1 << bits) - 1
    return np.where(patterns >> bits & 1, ~magnitude, magnitude)
