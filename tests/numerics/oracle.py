"""What are the exact values of the elementary functions? Answers that share nothing with the package.

``WIDE`` evaluates in f64 by NumPy and SciPy, fast and good enough for narrower results wherever ``poor`` does not say otherwise.
``EXACT`` evaluates one number with MPFR, correctly rounded to ``BITS`` bits.
"""
from __future__ import annotations

import functools
from collections.abc import Callable

import gmpy2
import numpy as np
from gmpy2 import mpfr
from scipy import special

BITS = 88
CONTEXT = functools.partial(gmpy2.context, precision=BITS)
"""The arithmetic that a block of ``EXACT`` values is computed in."""

WIDE: dict[str, Callable] = {
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "log1p": np.log1p, "tanh": np.tanh, "sigmoid": special.expit,
    "rsqrt": lambda x: 1 / np.sqrt(x), "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "asin": np.arcsin,
    "erf": special.erf, "erfc": special.erfc, "i0": special.i0,
    # SciPy has NaN at minus infinity; log|Gamma| is taken as +inf there, as in C.
    "lgamma": lambda x: np.where(np.isinf(x), np.abs(x), special.gammaln(x)),
    "abs": np.abs, "floor": np.floor, "ceil": np.ceil, "pow": np.power, "fdiv": np.divide,
}


def bessel_i0(x: mpfr) -> mpfr:
    """The power series, whose terms are all positive, or the asymptotic one where exp(-2 x) is far below the last bit."""
    if not gmpy2.is_finite(x):
        return abs(x)
    x, total, term, k = abs(x), mpfr(1), mpfr(1), 0
    if x < 50:
        z = x * x / 4
        while term > total * 2.0 ** -BITS:
            k += 1
            term = term * z / (k * k)
            total += term
        return total
    while term > total * 2.0 ** -BITS:
        k += 1
        term = term * (2 * k - 1) ** 2 / (8 * k * x)
        total += term
    return total * gmpy2.exp(x) * gmpy2.rec_sqrt(2 * gmpy2.const_pi() * x)


EXACT: dict[str, Callable] = {
    "exp": gmpy2.exp, "exp2": gmpy2.exp2, "log": gmpy2.log, "log1p": gmpy2.log1p, "tanh": gmpy2.tanh,
    "sigmoid": lambda x: 1 / (1 + gmpy2.exp(-x)),
    # MPFR gives +inf at -0, where IEEE 754 has -inf.
    "rsqrt": lambda x: gmpy2.rec_sqrt(x) if x else 1 / x, "sqrt": gmpy2.sqrt,
    "sin": gmpy2.sin, "cos": gmpy2.cos, "asin": gmpy2.asin, "erf": gmpy2.erf, "erfc": gmpy2.erfc, "i0": bessel_i0,
    "lgamma": lambda x: gmpy2.lgamma(x)[0], "abs": abs, "floor": gmpy2.rint_floor, "ceil": gmpy2.rint_ceil,
    "pow": lambda x, y: x ** y, "fdiv": lambda x, y: x / y,
}


def poor(kind: str, exact: np.ndarray) -> np.ndarray:
    """Where the value of ``WIDE`` has lost too much to judge an f32 result: next to the zeros of lgamma."""
    if kind == "lgamma":
        return np.abs(exact) < 2.0 ** -12
    return np.zeros(exact.shape, bool)


def evaluate(kind: str, *numbers: float) -> mpfr:
    """The exact value at one point, inside a ``CONTEXT``."""
    return EXACT[kind](*map(mpfr, numbers))

