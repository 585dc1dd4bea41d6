"""Do the portable programs of ``math`` agree, bit for bit, with what the reference computes by itself?"""
import itertools

import numpy as np
import pytest

from intent_numba import math
from intent_numba.kir.types import is_float, is_signed
from intent_numba.reference.operations import NUMPY, OPERATIONS, Typed, convert, evaluate, to_bits

from .build import ARRAYS, from_bits
from .test_integers import INTEGERS, edges

FLOATS = ("f8e4m3fn", "f8e5m2", "f16", "bf16", "f32", "f64")


def same(got: np.ndarray, want: np.ndarray, dt: str) -> None:
    assert got.dtype == want.dtype and got.shape == want.shape
    if is_float(dt):
        nan = np.isnan(want)
        assert (np.isnan(got) == nan).all()
        got, want = np.where(nan, NUMPY[dt](0), got), np.where(nan, NUMPY[dt](0), want)
    assert (to_bits(got, dt) == to_bits(want, dt)).all()


def float_pairs(dt: str, rng):
    special = np.array([0.0, -0.0, 1.0, -1.0, 2.5, -2.5, np.inf, -np.inf, np.nan]).astype(ARRAYS[dt]).astype(NUMPY[dt])
    width = 8 * np.dtype(ARRAYS[dt]).itemsize
    wild = from_bits(rng.integers(0, 1 << width, 200, dtype=np.uint64), dt).astype(NUMPY[dt])
    every = np.concatenate([special, wild])
    a, b = np.meshgrid(every, every)
    return a.ravel(), b.ravel()


@pytest.mark.parametrize("dt", FLOATS)
@pytest.mark.parametrize("kind", ["maximum", "minimum", "maximum_num", "minimum_num"])
def test_extrema(kind, dt, rng):
    with np.errstate(all="ignore"):
        args = [Typed(dt, x) for x in float_pairs(dt, rng)]
        same(math.program(kind, dt)(OPERATIONS, *args).array, evaluate(kind, args, dt), dt)


@pytest.mark.parametrize("dt", INTEGERS)
@pytest.mark.parametrize("kind", ["floordiv", "mod", "power", "maximum", "minimum"])
def test_integers(kind, dt):
    a, b = (np.array(x, NUMPY[dt]) for x in zip(*itertools.product(edges(dt), repeat=2)))
    if kind in ("floordiv", "mod"):
        # The two cases that have no meaning in the language: each side gives a value of its own.
        defined = (b != 0) & ~((b == -1) & (a == np.iinfo(a.dtype).min)) if is_signed(dt) else b != 0
        a, b = a[defined], b[defined]
    with np.errstate(all="ignore"):
        args = [Typed(dt, a), Typed(dt, b)]
        same(math.program(kind, dt)(OPERATIONS, *args).array, evaluate(kind, args, dt), dt)


@pytest.mark.parametrize("dt", ["f32", "f64"])
@pytest.mark.parametrize("kind", ["floor_divide", "remainder"])
def test_float_division_follows_python(kind, dt, rng):
    """003: CPython's algorithm. In f64 it is Python's own // and %."""
    a = np.concatenate([rng.standard_normal(300) * 10, [0.5, 1.0, -1.0, -1.0, 7.0, -7.0, 0.0, -0.0, 5.0, -5.0]]).astype(NUMPY[dt])
    b = np.concatenate([rng.standard_normal(300) * 3, [0.1, 0.1, np.inf, 3.0, -2.0, -2.0, 4.0, 4.0, 5.0, 5.0]]).astype(NUMPY[dt])
    with np.errstate(all="ignore"):
        got = evaluate(kind, [Typed(dt, a), Typed(dt, b)], dt)
    if dt == "f64":
        want = [x // y if kind == "floor_divide" else x % y for x, y in zip(a.tolist(), b.tolist())]
    else:
        # The remainder of two f32 numbers is exact; the quotient is checked where the true one is far from an integer.
        want = [np.float32(x // y if kind == "floor_divide" else x % y) for x, y in zip(a.tolist(), b.tolist())]
    if kind == "floor_divide" and dt == "f64":
        same(got, np.array(want, NUMPY[dt]), dt)
    else:
        assert np.allclose(got, np.array(want, NUMPY[dt]), rtol=1e-6, atol=0, equal_nan=True)


def test_the_programs_run_on_every_float_dtype(rng):
    x = rng.standard_normal(64)
    for dt, kind in itertools.product(FLOATS, ("exp", "exp2", "log", "tanh", "rsqrt", "erf", "sigmoid")):
        with np.errstate(all="ignore"):
            held = convert(x, "f64", dt)
            got = evaluate(kind, [Typed(dt, held)], dt)
        assert got.dtype == NUMPY[dt] and got.shape == (64,)
        if dt not in ("f32", "f64"):  # decision 19
            with np.errstate(all="ignore"):
                wide = evaluate(kind, [Typed("f32", held)], "f32")
            same(got, convert(wide, "f32", dt), dt)
