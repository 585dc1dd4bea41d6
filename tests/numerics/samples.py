"""Where are the elementary functions measured? Samples that reach every binade, every seam and every hard place."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from math import factorial

import gmpy2
import numpy as np
from gmpy2 import mpfr

from . import oracle
from .ulp import FORMATS, NUMPY

Zone = tuple[float, float]
"""An interval sampled evenly when it holds zero or is short, else evenly in the logarithm."""

UNSIGNED = {"f32": np.uint32, "f64": np.uint64}

TINY = (1e-300, 1e-3)
ZONES: dict[str, list[Zone]] = {
    "exp": [(-745, 709), (-1, 1)], "exp2": [(-1074, 1023), (-1, 1)], "sigmoid": [(-740, 40), (-3, 3)],
    "tanh": [(-20, 20), (0.6, 0.7), TINY], "log": [(1e-307, 1e308), (0.5, 2), (0.99, 1.01)],
    "log1p": [(-0.999, 3), (-0.01, 0.01), (0.38, 0.46), (1, 1e38)], "rsqrt": [(1e-307, 1e308), (1, 4)],
    "sqrt": [(1e-307, 1e308), (1, 4)], "sin": [(-10, 10), (1, 1e308), TINY], "cos": [(-10, 10), (1, 1e308), TINY],
    "asin": [(-1, 1), (0.45, 0.55), (0.99, 1), TINY], "erf": [(-6, 6), (0.8, 1.2), TINY],
    "erfc": [(-6, 10), (0.4, 0.6), (9, 27), TINY], "i0": [(-713, 713), (12, 18), TINY],
    "lgamma": [(-0.5, 3), (-4, -2), (-20, -0.5), (-1e4, -1), (0.99, 1.01), (1.99, 2.01), (2, 50), (1, 1e300)],
    "abs": [(-1, 1)], "floor": [(-1e3, 1e3), (1, 1e17)], "ceil": [(-1e3, 1e3), (1, 1e17)],
}
"""The ranges of f64 where something happens, and the seams between the parts of the programs."""


def every_exponent(dt: str, rng, per_binade: int) -> np.ndarray:
    """Both signs of every binade, subnormals included: its two ends and random significands."""
    m, width = FORMATS[dt].mant, NUMPY[dt](0).itemsize * 8
    exponents = np.arange(2 ** (width - 1 - m) - 1, dtype=np.uint64)
    parts = np.concatenate([np.zeros(1, np.uint64), np.full(1, 2 ** m - 1, np.uint64),
                            rng.integers(0, 2 ** m, per_binade, dtype=np.uint64)])
    codes = (exponents[:, None] << np.uint64(m) | parts[None, :]).ravel()
    return np.concatenate([codes, codes | np.uint64(1 << (width - 1))]).astype(UNSIGNED[dt]).view(NUMPY[dt])


def spread(zones: Sequence[Zone], rng, count: int) -> np.ndarray:
    """About ``count`` f64 numbers, the same number in every zone."""
    parts = []
    for low, high in zones:
        count_here = -(-count // len(zones))
        if low > 0 and high > 4 * low or high < 0 and low < 4 * high:
            sign = 1.0 if low > 0 else -1.0
            parts.append(sign * np.exp(rng.uniform(np.log(min(abs(low), abs(high))), np.log(max(abs(low), abs(high))), count_here)))
        else:
            parts.append(rng.uniform(low, high, count_here))
    return np.concatenate(parts)


def every_f32(begin: int, end: int) -> np.ndarray:
    """The numbers of a range of encodings."""
    return np.arange(begin, end, dtype=np.uint32).view(np.float32)


def stratified_f32(count: int, rng) -> np.ndarray:
    """One random encoding in each of ``count`` equal parts of all 2^32."""
    starts = np.arange(count + 1, dtype=np.uint64) * np.uint64(1 << 32) // np.uint64(count)
    return (starts[:-1] + (rng.random(count) * np.diff(starts)).astype(np.uint64)).astype(np.uint32).view(np.float32)


def neighbours(centres: np.ndarray, dt: str) -> np.ndarray:
    """Numbers around each centre: the next ones on both sides, and others at growing distances."""
    inside = centres[np.abs(centres) <= FORMATS[dt].largest]
    codes = inside.astype(NUMPY[dt]).view(UNSIGNED[dt]).astype(np.int64)
    steps = np.concatenate([np.arange(24), (1.3 ** np.arange(12, FORMATS[dt].mant * 2.4)).astype(np.int64)])
    around = (codes[:, None] + np.concatenate([-steps, steps])).ravel()
    x = around.astype(UNSIGNED[dt]).view(NUMPY[dt])
    return x[np.isfinite(x)]


@cache
def centres(kind: str) -> np.ndarray:
    """The zeros, poles and range ends of a function that do not lie in every sample anyway."""
    if kind == "lgamma":
        return np.array([*range(-30, 4), *(zero for n in range(2, 20) for zero in _lgamma_zeros(n))], np.float64)
    if kind in ("sin", "cos"):
        with gmpy2.context(precision=1200):
            quarter = gmpy2.const_pi() / 2
            turns = [*range(1, 60), *(int(1.7 ** k) for k in range(8, 1300))]
            # The last one is the f64 number nearest of all to a multiple of pi/2.
            return np.array([float(quarter * k) for k in turns] + [6381956970095103.0 * 2.0 ** 797])
    return np.array({
        "exp": [709.782712893384, -745.1332191019411, -708.3964185322641, 88.72283935546875, -103.97207641601562],
        "exp2": [1024.0, -1022.0, -1075.0, -1074.0, 128.0, -126.0, -150.0, 0.5], "sigmoid": [-745.1, -708.4, -88.7, 36.7],
        "tanh": [0.640625, 0.96875, 9.01, 19.06], "log": [1.0, 0.7071067811865476],
        "log1p": [-1.0, 0.4142135623730951, -0.2928932188134524],
        "asin": [1.0, -1.0, 0.5, -0.5], "erf": [0.96875, 1.0, 3.9, 5.9], "erfc": [0.46875, 10.05, 26.54, 27.22, -4.0],
        "i0": [9.0, 15.0, 91.9, 713.9],
    }.get(kind, [1.0]), np.float64)


def _lgamma_zeros(n: int) -> Iterator[float]:
    """Where log|Gamma| changes sign within 1/2 of -n, by bisection."""
    with oracle.CONTEXT():
        for end in (-n - mpfr(0.5), -n + mpfr(0.5)):
            low, high = -n + (end + n) / (4 * factorial(n)), end
            if oracle.EXACT["lgamma"](high) > 0:
                continue
            for _ in range(70):
                middle = (low + high) / 2
                low, high = (middle, high) if oracle.EXACT["lgamma"](middle) > 0 else (low, middle)
            yield float(low)


def points_f64(kind: str, count: int, rng) -> np.ndarray:
    """About ``count`` random points of the function's zones, and as many edges as half of them allow."""
    edges = np.concatenate([neighbours(centres(kind), "f64"), every_exponent("f64", rng, 1)])
    if edges.size > count // 2:
        edges = rng.choice(edges, count // 2, replace=False)
    return np.concatenate([edges, spread(ZONES[kind], rng, count)])


def powers(dt: str, rng, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Bases of all sizes, bases near one, and exponents whose powers fill the range of f64 or of f32 and narrower."""
    reach, largest = (709.0, 700.0) if dt == "f64" else (88.0, 80.0)
    half = count // 2
    base = np.concatenate([np.exp(rng.uniform(-largest, largest, half)), rng.uniform(0.5, 2.0, count - half)])
    return base, rng.uniform(-1, 1, count) * reach / np.log(base)


def quotients(dt: str, rng, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Operands of all sizes, half of them near one another."""
    most = FORMATS[dt].most
    a, b = (np.ldexp(rng.uniform(-1, 1, count), rng.integers(-most, most, count)) for _ in "ab")
    near = rng.random(count) < 0.5
    return a, np.where(near, a * rng.uniform(0.25, 1, count), b)
