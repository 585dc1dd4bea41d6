"""Are the elementary functions within their bounds?  000 section 5: f32 over all exponents against f64, f64 against mpmath.

``pytest -s`` prints the measured maxima.
"""
from __future__ import annotations

import ml_dtypes
import mpmath
import numpy as np
import pytest
from scipy import special

from intent_numba import math
from intent_numba.reference.operations import Operations, Typed

from .ulp import error_f64, errors_f32, every_exponent, run, spread, worst_f64

ORACLE = {
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "log1p": np.log1p, "tanh": np.tanh, "sigmoid": special.expit,
    "rsqrt": lambda x: 1 / np.sqrt(x), "sin": np.sin, "cos": np.cos, "asin": np.arcsin,
    "erf": special.erf, "erfc": special.erfc, "i0": special.i0, "lgamma": special.gammaln,
}

EXACT = {
    "exp": mpmath.exp, "exp2": lambda x: mpmath.mpf(2) ** x, "log": mpmath.log, "log1p": mpmath.log1p, "tanh": mpmath.tanh,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)), "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "sin": mpmath.sin, "cos": mpmath.cos, "asin": mpmath.asin,
    "erf": mpmath.erf, "erfc": mpmath.erfc, "i0": lambda x: mpmath.besseli(0, x), "lgamma": lambda x: mpmath.re(mpmath.loggamma(x)),
}

BOUND = {kind: {"f32": 1.0, "f64": 2.0} for kind in ORACLE} | {
    "log1p": {"f32": 1.0, "f64": 1.0}, "erfc": {"f32": 4.0, "f64": 5.0}, "i0": {"f32": 6.0, "f64": 6.0}}

TINY = (1e-37, 1e-3)
ZONES = {
    "exp": [(-104, 89), (-1, 1)], "exp2": [(-150, 128), (-1, 1)], "sigmoid": [(-104, 20), (-3, 3)],
    "tanh": [(-10, 10), (0.9, 1.1), TINY], "log": [(1e-37, 1e38), (0.5, 2), (0.99, 1.01)],
    "log1p": [(-0.999, 3), (-0.01, 0.01), (0.38, 0.46), (1, 1e38)], "rsqrt": [(1e-37, 1e38), (1, 4)],
    "sin": [(-10, 10), (1, 1e38), TINY], "cos": [(-10, 10), (1, 1e38), TINY], "asin": [(-1, 1), (0.45, 0.55), TINY],
    "erf": [(-4, 4), (0.8, 1.2), TINY], "erfc": [(-4, 10), (0.4, 0.6), TINY], "i0": [(-91, 91), (7, 11)],
    "lgamma": [(-0.5, 3), (0.99, 1.01), (1.99, 2.01), (2, 50), (1, 1e36)],
}
ZONES_F64 = ZONES | {
    "exp": [(-745, 709), (-1, 1)], "exp2": [(-1074, 1023), (-1, 1)], "sigmoid": [(-740, 40), (-3, 3)],
    "tanh": [(-20, 20), (0.6, 0.7), (1e-300, 1e-3)], "log": [(1e-307, 1e308), (0.5, 2), (0.99, 1.01)],
    "sin": [(-10, 10), (1, 1e308)], "cos": [(-10, 10), (1, 1e308)],
    "erf": [(-6, 6), (0.8, 1.2)], "erfc": [(-6, 26), (0.4, 0.6)], "i0": [(-700, 700), (12, 18)],
    "lgamma": [(-0.5, 3), (0.99, 1.01), (1.99, 2.01), (2, 50), (1, 1e300)],
}


@pytest.mark.parametrize("kind", ORACLE)
def test_f32(kind, rng):
    x = np.concatenate([every_exponent("f32", rng, 100), spread(ZONES[kind], "f32", rng, 60_000)])
    if kind == "lgamma":
        x = x[x >= -0.5]
    got = run(kind, "f32", x)
    assert got.dtype == np.float32
    with np.errstate(all="ignore"):
        errors = errors_f32(got, ORACLE[kind](x.astype(np.float64)))
    worst = int(np.argmax(errors))
    print(f"\n{kind} f32: {errors[worst]:.3f} ULP at {x[worst]!r} of {x.size} points")
    assert errors[worst] <= BOUND[kind]["f32"]


@pytest.mark.parametrize("kind", EXACT)
def test_f64(kind, rng):
    x = spread(ZONES_F64[kind], "f64", rng, 400)
    worst, place = worst_f64(kind, EXACT[kind], x)
    print(f"\n{kind} f64: {worst:.3f} ULP at {place!r} of {x.size} points")
    assert worst <= BOUND[kind]["f64"]


def _powers(dt: str, rng, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Bases of all sizes, bases near one, and exponents whose powers fill the format's range."""
    reach, largest = (88.0, 80.0) if dt == "f32" else (709.0, 700.0)
    base = np.concatenate([np.exp(rng.uniform(-largest, largest, count)), rng.uniform(0.5, 2.0, count)])
    exponent = rng.uniform(-1, 1, 2 * count) * reach / np.log(base)
    dtype = np.float32 if dt == "f32" else np.float64
    return base.astype(dtype), exponent.astype(dtype)


def test_pow_f32(rng):
    x, y = _powers("f32", rng, 100_000)
    with np.errstate(all="ignore"):
        errors = errors_f32(run("pow", "f32", x, y), np.power(x.astype(np.float64), y.astype(np.float64)))
    print(f"\npow f32: {errors.max():.3f} ULP of {x.size} points")
    assert errors.max() <= 1.0


def test_pow_f64(rng):
    x, y = _powers("f64", rng, 500)
    exponents = iter(y.tolist())
    worst, place = 0.0, None
    got = run("pow", "f64", x, y)
    with mpmath.workprec(140):
        for a, b, z in zip(x.tolist(), exponents, got.tolist()):
            exact = mpmath.mpf(a) ** mpmath.mpf(b)
            if exact < mpmath.mpf(2) ** 1023 and not error_f64(z, exact) <= worst:
                worst, place = error_f64(z, exact), (a, b)
    print(f"\npow f64: {worst:.3f} ULP at {place}")
    assert worst <= 2.0


def test_lgamma_of_negative_numbers(rng):
    """Below -1/2 the error is measured where the result is not next to one of its zeros."""
    x = -np.concatenate([rng.uniform(0.5, 20, 1500), np.exp(rng.uniform(0, 9, 500))])
    for dt, limit, bound in (("f32", 2.0 ** -10, 1.0), ("f64", 2.0 ** -10, 1.0)):
        a = x.astype(np.float32).astype(np.float64) if dt == "f32" else x
        with mpmath.workprec(140):
            exact = [EXACT["lgamma"](mpmath.mpf(v)) if v != round(v) else mpmath.inf for v in a.tolist()]
        keep = np.array([bool(limit < abs(v) < mpmath.inf) for v in exact])
        if dt == "f32":
            errors = errors_f32(run("lgamma", dt, a.astype(np.float32)), np.array([float(v) for v in exact]))[keep]
        else:
            got = run("lgamma", dt, a)
            errors = np.array([error_f64(g, e) for g, e, k in zip(got.tolist(), exact, keep) if k])
        print(f"\nlgamma {dt} below -1/2: {errors.max():.3f} ULP of {errors.size} points")
        assert errors.max() <= bound


@pytest.mark.parametrize("kind", ["exp", "log", "tanh", "sigmoid", "erf", "sin"])
@pytest.mark.parametrize("dt", ["f16", "bf16"])
def test_narrow_floats_round_the_f32_function(kind, dt):
    """Every f16 and bf16 value: the f32 result rounded, so half a unit plus what f32 lost."""
    storage = np.dtype(np.float16 if dt == "f16" else ml_dtypes.bfloat16)
    x = np.arange(1 << 16, dtype=np.uint16).view(storage).astype(np.float32)
    with np.errstate(all="ignore"):
        got = math.program(kind, dt)(Operations(), Typed(dt, x))
        wide = run(kind, "f32", x)
        expected = wide.astype(storage).astype(np.float32)
    assert got.dt == dt
    assert np.array_equal(got.array, expected, equal_nan=True)


@pytest.mark.parametrize("kind", ["sin", "cos"])
def test_angles_next_to_multiples_of_a_quarter_turn(kind, rng):
    """The f64 numbers nearest to k pi/2, and 6381956970095103 2^797, the nearest of all to a multiple."""
    with mpmath.workprec(1200):
        x = [float(mpmath.pi / 2 * k) for k in [*range(1, 200), *(int(v) for v in np.exp(rng.uniform(5, 40, 300)))]]
    x = np.array(x + [6381956970095103.0 * 2.0 ** 797])
    assert worst_f64(kind, EXACT[kind], x)[0] <= 1.0
    single = x[:-1].astype(np.float32)
    assert errors_f32(run(kind, "f32", single), ORACLE[kind](single.astype(np.float64))).max() <= 1.0


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["exp", "exp2", "log", "log1p", "tanh", "sigmoid", "rsqrt", "sin", "cos", "asin", "erf", "erfc", "i0"])
def test_every_f32_number(kind):
    worst, place = 0.0, None
    for start in range(0, 1 << 32, 1 << 22):
        x = np.arange(start, start + (1 << 22), dtype=np.uint32).view(np.float32)
        with np.errstate(all="ignore"):
            errors = errors_f32(run(kind, "f32", x), ORACLE[kind](x.astype(np.float64)))
        i = int(np.argmax(errors))
        if errors[i] > worst:
            worst, place = errors[i], x[i]
    print(f"\n{kind} f32, every number: {worst:.4f} ULP at {place!r}")
    assert worst <= BOUND[kind]["f32"]
