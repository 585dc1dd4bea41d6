"""How are the float formats narrower than f32 encoded, decoded and rounded to?

The reference holds f16, bf16, f8e4m3fn and f8e5m2 values as float32 arrays whose elements the format represents
exactly. Everything here works on bit patterns and is written from the definitions of 000 section 5.2 alone.
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np


@dataclass(frozen=True)
class Format:
    """A sign bit, ``exponent`` bits and ``fraction`` bits. ``finite_only`` marks E4M3FN: no infinity, S.1111.111 is NaN."""
    exponent: int
    fraction: int
    carrier: type
    finite_only: bool = False

    @property
    def bias(self) -> int:
        return (1 << self.exponent - 1) - 1

    @property
    def special(self) -> int:
        """The exponent field of infinities and NaNs."""
        return (1 << self.exponent) - 1

    @property
    def largest(self) -> int:
        """The magnitude bits of the largest finite value."""
        return (self.special << self.fraction) + ((1 << self.fraction) - 2 if self.finite_only else -1)

    @property
    def infinity(self) -> int:
        """The magnitude bits that an overflow gives: infinity, or NaN where there is none."""
        return self.largest + 1


FORMATS = {
    "f16": Format(5, 10, np.uint16), "bf16": Format(8, 7, np.uint16),
    "f8e5m2": Format(5, 2, np.uint8), "f8e4m3fn": Format(4, 3, np.uint8, finite_only=True),
}


@cache
def _decode_table(dt: str) -> np.ndarray:
    f = FORMATS[dt]
    width = 1 + f.exponent + f.fraction
    bits = np.arange(1 << width, dtype=np.uint32)
    sign, exponent, fraction = bits >> (width - 1), (bits >> f.fraction) & f.special, bits & ((1 << f.fraction) - 1)
    magnitude = np.where(exponent == 0, np.ldexp(fraction.astype(np.float64), 1 - f.bias - f.fraction),
                         np.ldexp(((1 << f.fraction) + fraction).astype(np.float64), exponent.astype(np.int64) - f.bias - f.fraction))
    out = np.where(sign == 1, -magnitude, magnitude).astype(np.float32).view(np.uint32)
    above = (bits & ((1 << width - 1) - 1)) > f.largest
    special = (sign << 31) | np.uint32(0x7F800000) | (fraction << (23 - f.fraction))
    return np.where(above, special, out).astype(np.uint32).view(np.float32)


def decode(bits: np.ndarray, dt: str) -> np.ndarray:
    """Bit patterns (uint8 or uint16) of format ``dt`` as float32; exact, NaN payloads kept."""
    return _decode_table(dt)[bits]


def encode(x: np.ndarray, dt: str) -> np.ndarray:
    """The bit patterns of format ``dt`` nearest to the float32 or float64 values ``x``, ties to even.

    Overflow gives infinity; in f8e4m3fn, whatever rounds beyond 448 gives NaN. A NaN stays NaN with its leading payload bits.
    """
    f = FORMATS[dt]
    x = np.asarray(x)
    wide = x.astype(np.float64).view(np.uint64)
    sign = (wide >> np.uint64(63)) << np.uint64(f.exponent + f.fraction)
    magnitude = wide & np.uint64(0x7FFFFFFFFFFFFFFF)
    exponent = (magnitude >> np.uint64(52)).astype(np.int64) - 1023
    nan = magnitude > np.uint64(0x7FF0000000000000)
    # Rounding is done on the 53-bit significand as an integer: drop ``cut`` low bits. Below the smallest normal exponent
    # the quantum stays, so more bits are dropped; the f64 subnormals lie far below every format and vanish.
    significand = np.where(exponent == -1023, np.uint64(0), (magnitude & np.uint64((1 << 52) - 1)) | np.uint64(1 << 52))
    below = np.maximum(1 - f.bias - exponent, 0)
    cut = np.minimum(52 - f.fraction + below, 63).astype(np.uint64)
    kept = significand >> cut
    rest = significand & ((np.uint64(1) << cut) - np.uint64(1))
    half = np.uint64(1) << (cut - np.uint64(1))
    kept = kept + ((rest > half) | ((rest == half) & (kept & np.uint64(1) == 1))).astype(np.uint64)
    # ``kept`` holds the hidden bit of a normal value, so adding it to the exponent field below carries by itself.
    field = np.where(below > 0, 0, np.clip(exponent + f.bias - 1, 0, f.special)).astype(np.uint64)
    bits = np.minimum((field << np.uint64(f.fraction)) + kept, np.uint64(f.infinity))
    if x.dtype == np.float32:  # read here, because widening a NaN to f64 sets its quiet bit
        payload = x.view(np.uint32).astype(np.uint64) >> np.uint64(23 - f.fraction)
    else:
        payload = magnitude >> np.uint64(52 - f.fraction)
    payload &= np.uint64((1 << f.fraction) - 1)
    if f.finite_only:
        payload = np.full_like(payload, (1 << f.fraction) - 1)
    else:
        payload = np.where(payload == 0, np.uint64(1 << f.fraction - 1), payload)
    bits = np.where(nan, np.uint64(f.special << f.fraction) | payload, bits)
    return (sign | bits).astype(f.carrier)


def round_to(x: np.ndarray, dt: str) -> np.ndarray:
    """The float32 or float64 values ``x`` rounded once to ``dt``, as the reference holds that dtype."""
    if dt in FORMATS:
        return decode(encode(x, dt), dt)
    return np.asarray(x, dtype=np.float32 if dt == "f32" else np.float64)


def largest_finite(dt: str) -> float:
    """The largest finite value of a float dtype."""
    if dt in FORMATS:
        return float(_decode_table(dt)[FORMATS[dt].largest])
    return float(np.finfo(np.float32 if dt == "f32" else np.float64).max)
