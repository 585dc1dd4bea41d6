"""Do the elementary functions give the exact values that 000 section 5 and C99 ask for: zeros, poles, infinities, NaN?

Each is asked of the interpreter and of compiled code, in every float dtype.
"""
from __future__ import annotations

import itertools
import math as pymath

import numpy as np
import pytest

from .accuracy import DTYPES, Subject, compiled, interpreted
from .build import ARRAYS
from .ulp import FORMATS, NUMPY, run

INF, NAN = float("inf"), float("nan")

EXACT = {
    "exp": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (800.0, INF), (-800.0, 0.0)],
    "exp2": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (1.0, 2.0), (-3.0, 0.125), (10.0, 1024.0), (1024.0, INF), (-1100.0, 0.0)],
    "log": [(1.0, 0.0), (0.0, -INF), (-0.0, -INF), (INF, INF), (-INF, NAN), (-1.0, NAN), (-1e-40, NAN)],
    "log1p": [(0.0, 0.0), (-0.0, -0.0), (-1.0, -INF), (-1.5, NAN), (INF, INF), (-INF, NAN)],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (30.0, 1.0), (-30.0, -1.0)],
    "sigmoid": [(0.0, 0.5), (-0.0, 0.5), (INF, 1.0), (-INF, 0.0), (100.0, 1.0), (-800.0, 0.0)],
    "rsqrt": [(0.0, INF), (-0.0, -INF), (INF, 0.0), (-INF, NAN), (-1.0, NAN), (4.0, 0.5), (1.0, 1.0)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN)],
    "cos": [(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN)],
    "asin": [(0.0, 0.0), (-0.0, -0.0), (1.0625, NAN), (-1.0625, NAN), (INF, NAN), (-INF, NAN)],
    "erf": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (7.0, 1.0), (-7.0, -1.0)],
    "erfc": [(0.0, 1.0), (-0.0, 1.0), (INF, 0.0), (-INF, 2.0), (-7.0, 2.0), (40.0, 0.0)],
    "i0": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, INF), (800.0, INF), (-800.0, INF)],
    "lgamma": [(1.0, 0.0), (2.0, 0.0), (0.0, INF), (-0.0, INF), (-1.0, INF), (-7.0, INF), (-1e30, INF), (INF, INF), (-INF, INF)],
    "sqrt": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, NAN), (-1.0, NAN), (-1e-40, NAN), (4.0, 2.0), (2.0 ** -148, 2.0 ** -74)],
    "abs": [(0.0, 0.0), (-0.0, 0.0), (-3.0, 3.0), (INF, INF), (-INF, INF), (-2.0 ** -149, 2.0 ** -149)],
    "floor": [(0.0, 0.0), (-0.0, -0.0), (0.5, 0.0), (-0.5, -1.0), (-2.0 ** -149, -1.0), (2.5, 2.0), (INF, INF), (-INF, -INF)],
    "ceil": [(0.0, 0.0), (-0.0, -0.0), (0.5, 1.0), (-0.5, -0.0), (2.0 ** -149, 1.0), (2.5, 3.0), (INF, INF), (-INF, -INF)],
}
QUOTIENTS = [(1.0, 0.0, INF), (-1.0, 0.0, -INF), (1.0, -0.0, -INF), (0.0, 0.0, NAN), (INF, INF, NAN), (1.0, INF, 0.0), (-1.0, INF, -0.0),
             (0.0, -5.0, -0.0), (INF, 0.0, INF), (INF, -2.0, -INF), (6.0, 3.0, 2.0), (NAN, 1.0, NAN), (0.0, NAN, NAN)]
KEEPS_SMALL = ("log1p", "tanh", "sin", "asin")
"""Functions whose value at a subnormal is that number."""


def in_format(values, dt: str) -> np.ndarray:
    """Numbers of ``dt``; those beyond its range become what overflow gives."""
    values = np.array(values, np.float64)
    beyond = INF if FORMATS[dt].infinite else NAN
    with np.errstate(all="ignore"):
        return np.where(np.abs(values) > FORMATS[dt].largest, np.copysign(beyond, values), values).astype(ARRAYS[dt])


def check_exact(kind: str, dt: str, table) -> None:
    """Every row of (arguments ..., result) whose arguments ``dt`` has."""
    rows = [row for row in table if all(v != v or v == float(in_format(v, dt)) for v in row[:-1])]
    *columns, expected = (in_format(column, dt) for column in zip(*rows))
    for results in (interpreted, compiled):
        same(results(Subject(kind), dt, tuple(columns)), expected)


@pytest.mark.parametrize("dt", DTYPES)
@pytest.mark.parametrize("kind", EXACT)
def test_exact_values(kind, dt):
    check_exact(kind, dt, [*EXACT[kind], (NAN, NAN), (-NAN, NAN)])


@pytest.mark.parametrize("dt", DTYPES)
def test_exact_quotients(dt):
    check_exact("fdiv", dt, QUOTIENTS)


@pytest.mark.parametrize("dt", DTYPES)
@pytest.mark.parametrize("kind", KEEPS_SMALL)
def test_subnormals_pass_through(kind, dt):
    tiny = 2.0 ** (FORMATS[dt].least - FORMATS[dt].mant)
    check_exact(kind, dt, [(v, v) for k in (1, 2, 3, 2 ** FORMATS[dt].mant - 1) for v in (k * tiny, -k * tiny)])


def test_results_that_are_subnormal():
    with np.errstate(under="ignore"):
        for kind, x in (("exp", -100.0), ("exp2", -140.5), ("sigmoid", -95.0)):
            exact = 2.0 ** x if kind == "exp2" else pymath.exp(x)
            same(run(kind, "f32", np.float32([x])), np.float32([exact]))
    same(run("exp2", "f64", np.array([-1074.0, -1074.5, -1075.5])), np.array([5e-324, 5e-324, 0.0]))


@pytest.mark.parametrize("dt", ["f32", "f64"])
def test_edge_of_overflow(dt):
    top = {"f32": 88.0, "f64": 709.0}[dt]
    last = np.finfo(NUMPY[dt]).max
    x = np.linspace(top, top + 1.5, 400).astype(NUMPY[dt])
    y = run("exp", dt, x)
    assert np.isinf(y).any() and np.all(y[np.isfinite(y)] <= last) and np.all(np.diff(np.isinf(y).astype(int)) >= 0)
    limit = np.log(last.astype(np.longdouble)).astype(np.float64)
    assert np.array_equal(np.isinf(y), x.astype(np.float64) > limit)


SPECIAL = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, 2.5, -2.5, 1e30, -1e30, 1e-40, -1e-40,
           8388609.0, -8388609.0]


def c99_pow(x: float, y: float) -> float:
    """The cases of C99 F.9.4.4, in its order; None where the result is an ordinary number."""
    whole = pymath.isinf(y) or y == pymath.floor(y) if y == y else False
    odd = whole and pymath.isfinite(y) and y % 2 == 1
    if x == 1 or y == 0:
        return 1.0
    if x != x or y != y:
        return NAN
    if x == 0:
        value = INF if y < 0 else 0.0
        return pymath.copysign(value, x) if odd else value
    if x == -1 and pymath.isinf(y):
        return 1.0
    if pymath.isinf(y):
        return INF if (abs(x) > 1) == (y > 0) else 0.0
    if pymath.isinf(x):
        value = 0.0 if y < 0 else INF
        return -value if x < 0 and odd else value
    if x < 0 and not whole:
        return NAN
    return None


@pytest.mark.parametrize("dt", DTYPES)
def test_pow_is_c99(dt):
    check_exact("pow", dt, [(x, y, z) for x in SPECIAL for y in SPECIAL if (z := c99_pow(x, y)) is not None])


@pytest.mark.parametrize("dt", ["f32", "f64"])
def test_ordinary_powers_of_special_arguments(dt):
    pairs = [(x, y) for x, y in itertools.product(np.array(SPECIAL, NUMPY[dt]).tolist(), repeat=2) if c99_pow(x, y) is None]
    x, y = (np.array(column, NUMPY[dt]) for column in zip(*pairs))
    got = run("pow", dt, x, y)
    with np.errstate(all="ignore"):
        wide = np.power(x.astype(np.float64), y.astype(np.float64)).astype(NUMPY[dt])
        assert np.array_equal(np.signbit(got), np.signbit(wide))
        assert np.all((got == wide) | np.isclose(got, wide, rtol=3e-7 if dt == "f32" else 1e-15))


@pytest.mark.parametrize("dt", ["f32", "f64"])
def test_exact_powers(dt):
    x, y = np.meshgrid(np.arange(-12, 13), np.arange(0, 6))
    x, y = x.ravel().astype(NUMPY[dt]), y.ravel().astype(NUMPY[dt])
    exact = np.array([int(a) ** int(b) for a, b in zip(x, y)], NUMPY[dt])
    same(run("pow", dt, x, y), exact)


def same(got: np.ndarray, expected: np.ndarray):
    """Equal, NaN where NaN, and of one sign."""
    assert got.dtype == expected.dtype
    if got.dtype not in (np.float32, np.float64):
        got, expected = got.astype(np.float64), expected.astype(np.float64)
    ok = (got == expected) & (np.signbit(got) == np.signbit(expected)) | np.isnan(got) & np.isnan(expected)
    assert ok.all(), [(i, got[i], expected[i]) for i in np.nonzero(~ok)[0][:8]]
