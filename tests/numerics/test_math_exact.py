"""Are the programs that have one right answer exact: extrema, integer division and powers, float remainder, saturation?"""
from __future__ import annotations

import math as pymath
from fractions import Fraction

import numpy as np
import pytest

from intent_numba import math
from intent_numba.kir.types import BITS, INTEGERS, SIGNED, int_range
from intent_numba.reference.operations import NUMPY as HELD
from intent_numba.reference.operations import Operations, Typed, convert

from .samples import every_exponent
from .test_math_special import same
from .ulp import NUMPY, run

INF, NAN = float("inf"), float("nan")
EDGES = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 1e-40, -1e-40, 2.5, -2.5]


# --- extrema ----------------------------------------------------------------------------------------------------------

def _extreme(a: float, b: float, larger: bool, ignore: bool) -> float:
    if a != a or b != b:
        return (b if a != a else a) if ignore else NAN
    key = lambda v: (v, pymath.copysign(1, v))
    return max(a, b, key=key) if larger else min(a, b, key=key)


@pytest.mark.parametrize("dt", ["f32", "f64", "f16", "bf16"])
@pytest.mark.parametrize("kind", ["maximum", "minimum", "maximum_num", "minimum_num"])
def test_extrema_of_floats(kind, dt):
    values = [v for v in EDGES if abs(v) != 1e-40] if dt == "f16" else EDGES
    a, b = (x.ravel().astype(HELD[dt]) for x in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        a, b = (convert(x, "f32", dt) if dt == "bf16" else x for x in (a, b))
    expected = [_extreme(float(x), float(y), kind.startswith("max"), kind.endswith("num")) for x, y in zip(a, b)]
    same(run(kind, dt, a, b), np.array(expected, HELD[dt]))


@pytest.mark.parametrize("dt", INTEGERS)
def test_extrema_of_integers(dt, rng):
    a, b = _integers(dt, rng), _integers(dt, rng)[::-1]
    assert np.array_equal(run("maximum", dt, a, b), np.maximum(a, b))
    assert np.array_equal(run("minimum_num", dt, a, b), np.minimum(a, b))


# --- integers ---------------------------------------------------------------------------------------------------------

def _integers(dt: str, rng, count: int = 3000) -> np.ndarray:
    low, high = int_range(dt)
    edges = np.array([v for v in (low, low + 1, -2, -1, 0, 1, 2, 3, high - 1, high) if low <= v <= high], HELD[dt])
    small = rng.integers(max(low, -100), min(high, 100), count, endpoint=True)
    wide = rng.integers(low, high, count, dtype=HELD[dt], endpoint=True)
    return np.concatenate([np.repeat(edges, len(edges)), np.tile(edges, len(edges)), small.astype(HELD[dt]), wide])


def _operands(dt: str, rng):
    if BITS[dt] == 8:
        every = np.arange(256, dtype=np.uint8).view(HELD[dt])
        return tuple(x.ravel() for x in np.meshgrid(every, every))
    a = _integers(dt, rng)
    b = rng.permutation(a)
    edges = np.unique(a[:100])
    pairs = [x.ravel() for x in np.meshgrid(edges, edges)]
    return np.concatenate([a, pairs[0]]), np.concatenate([b, pairs[1]])


def _wrapped(value: int, dt: str) -> int:
    n = BITS[dt]
    value &= (1 << n) - 1
    return value - (1 << n) if dt in SIGNED and value >> (n - 1) else value


@pytest.mark.parametrize("dt", INTEGERS)
def test_floordiv_and_mod_are_pythons(dt, rng):
    a, b = _operands(dt, rng)
    q, r = run("floordiv", dt, a, b), run("mod", dt, a, b)
    pairs = list(zip(a.tolist(), b.tolist()))
    assert q.tolist() == [_wrapped(x // y, dt) if y else 0 for x, y in pairs]
    assert r.tolist() == [x % y if y else 0 for x, y in pairs]


@pytest.mark.parametrize("dt", INTEGERS)
def test_integer_power(dt, rng):
    a, b = _operands(dt, rng)
    expected = [_wrapped(pow(x, y % 2 ** 64, 2 ** BITS[dt]), dt) for x, y in zip(a.tolist(), b.tolist())]
    assert run("power", dt, a, b).tolist() == expected


# --- float remainder --------------------------------------------------------------------------------------------------

def _divmod(a, b, number):
    """The text of 003 over NumPy scalars of one precision; math.fmod is exact, so it is exact in f32 too."""
    try:
        r = number(pymath.fmod(float(a), float(b)))
    except ValueError:
        r = number(NAN)
    q = (a - r) / b
    if r != 0.0:
        if (r < 0.0) != (b < 0.0):
            r += b
            q -= number(1.0)
    else:
        r = np.copysign(number(0.0), b)
    if q == 0.0:
        return np.copysign(number(0.0), a / b), r
    result = np.floor(q)
    return (result + number(1.0) if q - result > 0.5 else result), r


@pytest.mark.parametrize("dt", ["f32", "f64"])
def test_float_floor_division(dt, rng):
    number = NUMPY[dt]
    sizes = every_exponent(dt, rng, 4 if dt == "f32" else 1)
    edges = np.array(EDGES + [0.1, 0.5, 0.3, -0.7, 3.0, 1e30, 7.0], number)
    a, b = (x.ravel() for x in np.meshgrid(edges, edges))
    near = rng.permutation(sizes)[:3000]
    with np.errstate(all="ignore"):
        multiples = near * rng.integers(-2000, 2000, near.size).astype(number)
    a = np.concatenate([a, rng.permutation(sizes)[:3000], multiples, rng.normal(0, 9, 3000).astype(number)])
    b = np.concatenate([b, rng.permutation(sizes)[:3000], near, rng.normal(0, 1, 3000).astype(number)])
    with np.errstate(all="ignore"):
        expected = [_divmod(x, y, number) for x, y in zip(a, b)]
    same(run("floor_divide", dt, a, b), np.array([q for q, _ in expected], number))
    same(run("remainder", dt, a, b), np.array([r for _, r in expected], number))


def test_examples_of_the_text():
    assert run("floor_divide", "f64", [0.5, 1.0, -1.0], [0.1, 0.1, INF]).tolist() == [4.0, 9.0, -1.0]
    assert run("remainder", "f64", [0.5, -1.0], [0.1, INF]).tolist() == [0.09999999999999998, INF]


# --- saturating_cast --------------------------------------------------------------------------------------------------

FLOATS = ("f8e4m3fn", "f8e5m2", "f16", "bf16", "f32", "f64")
LARGEST = {"f8e4m3fn": Fraction(448), "f8e5m2": Fraction(57344), "f16": Fraction(65504), "bf16": Fraction(255 * 2 ** 120),
           "f32": Fraction((2 ** 24 - 1) * 2 ** 104), "f64": Fraction((2 ** 53 - 1) * 2 ** 971)}


def _samples(dt: str, rng) -> np.ndarray:
    if dt not in FLOATS:
        return _integers(dt, rng, 200)
    limits = [float(v) for v in LARGEST.values()] + [2.0 ** n for n in (7, 8, 15, 16, 31, 32, 63, 64)]
    values = np.array(EDGES + [0.5, 1.5, -0.9] + [s * v * f for v in limits for s in (1, -1) for f in (1, 0.999, 1.001)
                                                  if abs(v * f) < INF], np.float64)
    return convert(np.concatenate([values, rng.normal(0, 300, 50)]), "f64", dt)


def _saturated(value, src: str, dst: str):
    """One value by exact arithmetic: clamp to the finite range of the destination, then convert."""
    limit = LARGEST.get(dst)
    if src in FLOATS and (value != value):
        return 0 if limit is None else NAN
    low, high = (-limit, limit) if limit is not None else map(Fraction, int_range(dst))
    if value in (INF, -INF):
        exact = high if value > 0 else low
    else:
        exact = min(max(Fraction(value), low), high)
    if limit is None:
        return int(exact) if exact.denominator == 1 else pymath.trunc(exact)
    if src in FLOATS:  # clamped numbers of float formats are f64 numbers
        return convert(np.asarray(-0.0 if value == 0 and pymath.copysign(1, value) < 0 else float(exact)), "f64", dst)
    return convert(np.asarray(int(exact), np.int64 if exact < 0 else np.uint64), "i64" if exact < 0 else "u64", dst)


@pytest.mark.parametrize("src", INTEGERS + FLOATS)
def test_saturating_cast(src, rng):
    with np.errstate(all="ignore"):
        x = _samples(src, rng)
    for dst in INTEGERS + FLOATS:
        with np.errstate(all="ignore"):
            got = math.program("saturating_cast", src)(Operations(), Typed(src, x), dst)
            expected = np.array([_saturated(v, src, dst) for v in x.tolist()], HELD[dst])
        assert got.dt == dst
        same(got.array, expected)
