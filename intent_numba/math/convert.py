"""saturating_cast: how does a conversion stop at the ends of the destination's range?

It clamps to the finite range, infinities too; NaN becomes 0 in integers and stays NaN in floats; the rounding is that of
``cast``, as the clamp is done before a narrowing and after a widening (decision 21).
"""
from __future__ import annotations

from intent_numba.math.integers import SIGNED, WIDTH
from intent_numba.math.term import Term, where

LARGEST = {"f8e4m3fn": 448.0, "f8e5m2": 57344.0, "f16": 65504.0, "bf16": 255.0 * 2.0 ** 120,
           "f32": (2.0 - 2.0 ** -23) * 2.0 ** 127, "f64": (2.0 - 2.0 ** -52) * 2.0 ** 1023}
"""The largest finite number of each float dtype."""


def saturating_cast(x: Term, dst: str) -> Term:
    if "bool" in (x.dt, dst):
        return x.cast(dst)
    if x.dt in WIDTH:
        return _from_integer(x, dst)
    # A narrow float is exact in f32, where the limits below are numbers too.
    x = x if x.dt == "f64" else x.cast("f32")
    return _to_integer(x, dst) if dst in WIDTH else _to_float(x, dst)


def integer_range(dt: str) -> tuple[int, int]:
    n = WIDTH[dt]
    return (-(1 << (n - 1)), (1 << (n - 1)) - 1) if dt in SIGNED else (0, (1 << n) - 1)


def _from_integer(x: Term, dst: str) -> Term:
    low, high = integer_range(dst) if dst in WIDTH else (-int(LARGEST[dst]), int(LARGEST[dst]))
    least, most = integer_range(x.dt)
    if low > least:
        x = where(x < low, low, x)
    if high < most:
        x = where(x > high, high, x)
    return x.cast(dst)


def _to_integer(x: Term, dst: str) -> Term:
    low, high = integer_range(dst)
    # high + 1 is a power of two, so both limits are exact; what passes is inside after truncation.
    above, below = x >= float(high + 1), x <= float(low)
    inside = where(above | below | x.is_nan(), 0.0, x).cast(dst)
    return where(above, high, where(below, low, inside))


def _to_float(x: Term, dst: str) -> Term:
    x = x if dst != "f64" else x.cast("f64")
    limit = LARGEST[dst]
    x = where(x > limit, limit, x)
    return where(x < -limit, -limit, x).cast(dst)
