"""How far is a result from the exact value, in units of its last place?  Samples, runs and measures for ``math``."""
from __future__ import annotations

from collections.abc import Callable, Sequence

import mpmath
import numpy as np

from intent_numba import math
from intent_numba.reference.operations import Operations, Typed

NUMPY = {"f32": np.float32, "f64": np.float64}
UNSIGNED = {"f32": np.uint32, "f64": np.uint64}
MANTISSA = {"f32": 23, "f64": 52}
LEAST = {"f32": -149, "f64": -1074}

Zone = tuple[float, float]
"""An interval sampled evenly when it holds zero or is short, else evenly in the logarithm."""


def run(kind: str, dt: str, *arrays) -> np.ndarray:
    """The program of ``kind`` on arrays of ``dt``, by the reference interpreter's operations."""
    with np.errstate(all="ignore"):
        return math.program(kind, dt)(Operations(), *(Typed(dt, np.asarray(a)) for a in arrays)).array


def every_exponent(dt: str, rng, per_binade: int) -> np.ndarray:
    """Both signs of every binade, subnormals included: its two ends and random significands."""
    m = MANTISSA[dt]
    exponents = np.arange(2 ** (31 - m if dt == "f32" else 63 - m) - 1, dtype=np.uint64)
    parts = np.concatenate([np.zeros(1, np.uint64), np.full(1, 2 ** m - 1, np.uint64),
                            rng.integers(0, 2 ** m, per_binade, dtype=np.uint64)])
    codes = (exponents[:, None] << np.uint64(m) | parts[None, :]).ravel()
    sign = np.uint64(1 << (31 if dt == "f32" else 63))
    return np.concatenate([codes, codes | sign]).astype(UNSIGNED[dt]).view(NUMPY[dt])


def spread(zones: Sequence[Zone], dt: str, rng, count: int) -> np.ndarray:
    parts = []
    for low, high in zones:
        if low > 0 and high > 4 * low or high < 0 and low < 4 * high:
            sign = 1.0 if low > 0 else -1.0
            parts.append(sign * np.exp(rng.uniform(np.log(min(abs(low), abs(high))), np.log(max(abs(low), abs(high))), count)))
        else:
            parts.append(rng.uniform(low, high, count))
    return np.concatenate(parts).astype(NUMPY[dt])


def errors_f32(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Errors of f32 results against f64 values, where the f64 value rounds to a finite f32."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float32)
        unit = np.ldexp(1.0, np.maximum(np.frexp(np.abs(exact))[1] - 24, -149))
        error = np.abs(got.astype(np.float64) - exact) / unit
    finite = np.isfinite(rounded)
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    # At the end of the range the format's largest number is as near as infinity to half a unit.
    edge = ~finite & np.isfinite(got) & np.isfinite(exact)
    return np.where(finite | edge, np.where(np.isfinite(got), error, np.where(same, 0.0, np.inf)), np.where(same, 0.0, np.inf))


def error_f64(got: float, exact: mpmath.mpf) -> float:
    """The error of one finite f64 result."""
    if exact == 0:
        return 0.0 if got == 0 else float("inf")
    exponent = max(int(mpmath.floor(mpmath.log(abs(exact), 2))) - 52, LEAST["f64"])
    return float(abs(mpmath.mpf(float(got)) - exact) / mpmath.ldexp(1, exponent))


def worst_f64(kind: str, exact: Callable, xs: np.ndarray) -> tuple[float, float]:
    """The largest error over the points whose exact value is inside the format's range, and where it is."""
    got = run(kind, "f64", xs)
    worst, place = 0.0, float("nan")
    with mpmath.workprec(140):
        for x, y in zip(xs.tolist(), got.tolist()):
            value = exact(mpmath.mpf(x))
            if abs(value) > mpmath.mpf(2) ** 1023:
                continue
            error = error_f64(y, value)
            if not error <= worst:
                worst, place = error, x
    return worst, place
