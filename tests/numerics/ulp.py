"""How far is a result from the exact value, in units of its last place?

The unit is that of the binade of the exact value, subnormals included. Beyond the largest number a format goes on as if its
last binade had a successor: infinity stands for the power of two there, and is exact where it is the rounded result. NaN is
as far as can be from a number; so is a wrong sign, of zeros too.
"""
from __future__ import annotations

import math
from dataclasses import dataclass

import gmpy2
import numba
import numpy as np
from gmpy2 import mpfr

from intent_numba import math as programs
from intent_numba.reference.operations import Operations, Typed

from . import oracle

NUMPY = {"f32": np.float32, "f64": np.float64}


@dataclass(frozen=True)
class Format:
    mant: int
    """Bits of the significand without the hidden one."""
    least: int
    """The exponent of the smallest normal number."""
    most: int
    """The exponent of the largest number."""
    largest: float
    infinite: bool = True
    """Whether overflow gives an infinity; else it gives NaN."""

    @property
    def edge(self) -> float:
        """From here on a value rounds to infinity (below f64)."""
        return self.largest + 2.0 ** (self.most - self.mant) / 2


FORMATS = {
    "f8e4m3fn": Format(3, -6, 8, 448.0, False), "f8e5m2": Format(2, -14, 15, 57344.0), "f16": Format(10, -14, 15, 65504.0),
    "bf16": Format(7, -126, 127, (2 - 2.0 ** -7) * 2.0 ** 127), "f32": Format(23, -126, 127, (2 - 2.0 ** -23) * 2.0 ** 127),
    "f64": Format(52, -1022, 1023, (2 - 2.0 ** -52) * 2.0 ** 1023),
}


def run(kind: str, dt: str, *arrays) -> np.ndarray:
    """The program of ``kind`` on arrays of ``dt``, by the reference interpreter's operations."""
    with np.errstate(all="ignore"):
        return programs.program(kind, dt)(Operations(), *(Typed(dt, np.asarray(a)) for a in arrays)).array


@numba.njit(nogil=True)
def _ordinary_errors(got, exact, mant, least, most, edge):
    """Errors where result and value are numbers of one sign inside the range, else -1; a loop of vectors."""
    codes, results = exact.view(np.int64), got.view(np.int32)
    out = np.empty(got.size)
    inverses = out.view(np.int64)
    for i in range(got.size):
        exponent = min(max((codes[i] >> 52 & 2047) - 1023, least), most)
        inverses[i] = (mant - exponent + 1023) << 52
    for i in range(got.size):
        y, z = np.float64(got[i]), exact[i]
        ordinary = (abs(z) < edge) & (abs(y) < np.inf) & ((codes[i] < 0) == (results[i] < 0))
        out[i] = abs(y - z) * out[i] if ordinary else -1.0
    return out


@numba.njit(nogil=True)
def _errors(got, exact, mant, least, most, edge, infinite):
    out = _ordinary_errors(got, exact, mant, least, most, edge)
    end = 2.0 ** (most + 1)
    for i in range(got.size):
        if out[i] >= 0.0:
            continue
        y, z = np.float64(got[i]), exact[i]
        if y != y or z != z:
            overflow = not infinite and abs(z) >= edge
            out[i] = 0.0 if y != y and (z != z or overflow) else np.inf
        elif np.signbit(y) != np.signbit(z):
            out[i] = np.inf
        elif abs(z) >= edge and np.isinf(y):
            out[i] = 0.0
        elif np.isinf(z):
            out[i] = np.inf
        else:
            out[i] = abs(min(max(y, -end), end) - z) * 2.0 ** (mant - most)
    return out


def errors(dt: str, got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Errors of results below f64 against f64 values."""
    f = FORMATS[dt]
    return _errors(np.ascontiguousarray(got, np.float32), exact, f.mant, f.least, f.most, f.edge, f.infinite)


def error_at(dt: str, got: float, exact: mpfr) -> float:
    """The error of one result of any format, inside a ``CONTEXT`` of the oracle."""
    f = FORMATS[dt]
    exponent = gmpy2.get_exp(exact) - 1 if gmpy2.is_regular(exact) else f.most
    if -900 < exponent < f.most and -math.inf < got < math.inf:
        if (got < 0) == (exact < 0) and got != 0:
            return math.ldexp(float(abs(exact - got)), f.mant - max(exponent, f.least))
    edge = mpfr(f.largest) + gmpy2.exp2(f.most - f.mant - 1)
    if got != got or gmpy2.is_nan(exact):
        overflow = not f.infinite and abs(exact) >= edge
        return 0.0 if got != got and (gmpy2.is_nan(exact) or overflow) else math.inf
    if (math.copysign(1, got) < 0) != gmpy2.is_signed(exact):
        return math.inf
    if abs(exact) >= edge and math.isinf(got):
        return 0.0
    if exact == 0 or not gmpy2.is_finite(exact):
        return 0.0 if got == exact else math.inf
    number = mpfr(got) if math.isfinite(got) else gmpy2.copy_sign(gmpy2.exp2(f.most + 1), exact)
    return float(abs(number - exact) * gmpy2.exp2(f.mant - min(max(exponent, f.least), f.most)))


def errors_exact(kind: str, dt: str, got: np.ndarray, *columns: np.ndarray) -> np.ndarray:
    """Errors of results of any format against MPFR."""
    with oracle.CONTEXT():
        return np.array([error_at(dt, y, oracle.evaluate(kind, *numbers))
                         for y, *numbers in zip(got.tolist(), *(c.tolist() for c in columns))])
