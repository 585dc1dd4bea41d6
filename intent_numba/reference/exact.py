"""How does the reference round exactly once where NumPy has no operation for it: fma, and integers to narrow floats?

The tool is rounding to odd: an inexact result whose last bit is even is moved to the neighbour on the side of the
error. Rounding such a value again to a format at least two bits narrower equals rounding the exact value once
(Boldo and Melquiond, "Emulation of FMA and correctly rounded sums").
"""
from __future__ import annotations

import math
import struct

import numpy as np

from .formats import round_to


def two_sum(a, b):
    """s = fl(a + b) and the exact error a + b - s, for finite values that do not overflow (Knuth)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def sum_to_odd(a, b):
    """a + b in f64, rounded to odd. A sum that is not finite stays as IEEE gives it."""
    s, error = two_sum(a, b)
    bits = s.view(np.int64)
    inexact_even = np.isfinite(s) & (error != 0) & (bits & 1 == 0)
    # One step in magnitude: up when the error points away from zero.
    step = ((error > 0) == (s > 0)) * 2 - 1
    return (bits + step * inexact_even).view(np.float64)


def fma(a, b, c, dt: str) -> np.ndarray:
    """a * b + c rounded once to ``dt``; operands as the reference holds them, of one shape or broadcastable."""
    if a.ndim == b.ndim == c.ndim == 0:
        return _fma_one(float(a), float(b), float(c), dt)
    if dt == "f64":
        return _fma64(a, b, c)
    # The product of two f32 values is exact in f64, and neither it nor the sum can leave the range of f64.
    return round_to(sum_to_odd(a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)), dt)


_SPLIT = float((1 << 27) + 1)


def _two_product(a, b):
    """p = fl(a * b) and the exact error, for values far from overflow and underflow (Dekker, Veltkamp)."""
    p = a * b
    ta, tb = _SPLIT * a, _SPLIT * b
    ah, bh = ta - (ta - a), tb - (tb - b)
    al, bl = a - ah, b - bh
    return p, al * bl - (((p - ah * bh) - al * bh) - ah * bl)


def _fma64(a, b, c):
    p, e = _two_product(a, b)
    th, tl = two_sum(c, e)
    vh, vl = two_sum(p, th)
    out = vh + sum_to_odd(tl, vl)
    # The error-free steps above hold when nothing comes near the limits of the exponent; zeros, infinities and NaN
    # need no error terms at all; what is left is computed in integers.
    easy = _moderate(a) & _moderate(b) & (_moderate(c) | (c == 0))
    plain = ~np.isfinite(c) | ~np.isfinite(a) | ~np.isfinite(b) | (a == 0) | (b == 0)
    # With a finite product, an infinite or NaN addend is the result; a product that overflows must not meet it.
    overflow_only = np.isfinite(a) & np.isfinite(b) & ~np.isfinite(c)
    out = np.where(plain, np.where(overflow_only, c, a * b + c), out)
    # An exact product alone: one rounding, and the sign of the product even when it vanishes.
    out = np.where(~plain & (c == 0), a * b, out)
    hard = ~easy & ~plain & (c != 0)
    if hard.any():
        out, a, b, c = np.array(out), *np.broadcast_arrays(a, b, c)
        out[hard] = [_fma_integers(*xyz) for xyz in zip(a[hard].tolist(), b[hard].tolist(), c[hard].tolist())]
    return np.asarray(out)


def _moderate(x):
    m = np.abs(x)
    return (m > 2.0 ** -400) & (m < 2.0 ** 400)


def _fma_integers(a: float, b: float, c: float) -> float:
    """a * b + c for finite values, exactly, then rounded by Python's correctly rounded integer division."""
    (an, ad), (bn, bd), (cn, cd) = a.as_integer_ratio(), b.as_integer_ratio(), c.as_integer_ratio()
    numerator, denominator = an * bn * cd + cn * ad * bd, ad * bd * cd
    if numerator == 0:
        return 0.0  # both parts are nonzero, so this is an exact cancellation
    try:
        return numerator / denominator
    except OverflowError:
        return float("inf") if numerator > 0 else float("-inf")


def _fma_one(a: float, b: float, c: float, dt: str) -> np.ndarray:
    """The same for one element, in Python numbers: an array operation costs as much as ten of these."""
    if dt != "f64":
        return round_to(np.float64(_sum_to_odd_one(a * b, c)), dt)
    if not math.isfinite(a) or not math.isfinite(b) or a == 0 or b == 0:
        return np.asarray(a * b + c)
    if not math.isfinite(c) or c == 0:
        return np.asarray(c or a * b)
    return np.asarray(_fma_integers(a, b, c))


def _sum_to_odd_one(a: float, b: float) -> float:
    s = a + b
    t = s - a
    error = (a - (s - t)) + (b - t)
    if error == 0 or not math.isfinite(s) or struct.unpack("<q", struct.pack("<d", s))[0] & 1:
        return s
    return math.nextafter(s, math.copysign(math.inf, error))


def integer_to_float(x: np.ndarray, dt: str) -> np.ndarray:
    """An integer array rounded once to the float dtype ``dt``; overflow gives infinity (NaN in f8e4m3fn)."""
    if dt in ("f32", "f64"):
        return x.astype(np.float32 if dt == "f32" else np.float64)
    if x.dtype.itemsize < 8:
        return round_to(x.astype(np.float64), dt)
    # Two exact halves, added with rounding to odd.
    high = x >> x.dtype.type(32)
    low = x & x.dtype.type(0xFFFFFFFF)
    return round_to(sum_to_odd(high.astype(np.float64) * 2.0 ** 32, low.astype(np.float64)), dt)
