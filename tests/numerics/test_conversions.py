"""Casts and bitcasts of the float formats against exact fractions (language cases 2, 3, 4 and decisions 13, 20, 21, 22)."""
import math
from fractions import Fraction

import numpy as np
import pytest

from intent_numba.kir.types import int_range

from .build import ARRAYS, bits, elementwise, from_bits
from .rational import FORMATS, agrees, nearest, value_of

NARROW = ("f8e4m3fn", "f8e5m2", "f16", "bf16")
FLOATS = (*NARROW, "f32", "f64")


def all_patterns(dt: str) -> np.ndarray:
    return np.arange(1 << 8 * np.dtype(ARRAYS[dt]).itemsize)


@pytest.mark.parametrize("dt", NARROW)
@pytest.mark.parametrize("wide", ["f32", "f64"])
def test_every_pattern_widens_exactly(dt, wide):
    patterns = all_patterns(dt)
    got = elementwise("cast", (from_bits(patterns, dt),), (dt,), wide)
    for p, y in zip(patterns.tolist(), got.tolist()):
        negative, want = value_of(p, dt)
        assert agrees(y, want, negative), hex(p)


@pytest.mark.parametrize("dt", NARROW)
@pytest.mark.parametrize("wide", ["f32", "f64"])
def test_every_pattern_comes_back(dt, wide):
    patterns = all_patterns(dt)
    there = elementwise("cast", (from_bits(patterns, dt),), (dt,), wide)
    back = bits(elementwise("cast", (there,), (wide,), dt))
    nan = np.isnan(there)
    assert (back[~nan] == patterns[~nan]).all()
    assert np.isnan(elementwise("cast", (from_bits(back, dt),), (dt,), "f64")[nan]).all()


@pytest.mark.parametrize("dt", NARROW)
def test_bitcast_keeps_every_pattern(dt):
    patterns = all_patterns(dt)
    carrier = "u8" if dt.startswith("f8") else "u16"
    assert (elementwise("bitcast", (patterns,), (carrier,), dt).view(ARRAYS[carrier]) == patterns).all()
    assert (elementwise("bitcast", (from_bits(patterns, dt),), (dt,), carrier) == patterns).all()


@pytest.mark.parametrize("source", ["i8", "i16", "i32", "i64", "index", "u8", "u16", "u32", "u64"])
@pytest.mark.parametrize("dt", FLOATS)
def test_integers_round_once(source, dt, rng):
    low, high = int_range(source)
    near = [s * ((1 << k) + d) for k in range(65) for d in (-1, 0, 1) for s in (1, -1)]
    halves = [(1 << k) + (1 << max(k - p, 0)) for k in range(64) for p in (3, 4, 8, 9, 11, 12, 24, 25)]
    near += [s * (h + d) for h in halves for d in (-1, 0, 1) for s in (1, -1)]
    near += [65519, 65520, 61439, 61440, 448, 464, 465, 479, 480, 57344]
    x = sorted({v for v in near if low <= v <= high})
    got = elementwise("cast", (x,), (source,), dt).astype(np.float64)
    for a, y in zip(x, got.tolist()):
        assert agrees(y, nearest(Fraction(a), dt)), a


@pytest.mark.parametrize("dt", FLOATS)
@pytest.mark.parametrize("target", ["i8", "i16", "i32", "i64", "index", "u8", "u16", "u32", "u64"])
def test_floats_truncate(dt, target, rng):
    """In range this is the language; out of range the reference saturates and NaN gives 0 (decision 11)."""
    low, high = int_range(target)
    x = np.array([0.0, -0.0, 0.5, -0.5, 0.9, -0.9, 1.5, -1.5, 127.9, 128.0, -128.9, -129.0, 255.9, 256.0, 32767.5, 65535.9,
                  2.0 ** 31, 2.0 ** 31 - 1, -2.0 ** 31, 2.0 ** 32, 2.0 ** 63, -2.0 ** 63, 2.0 ** 64, 1e30, -1e30,
                  np.inf, -np.inf, np.nan, *(rng.standard_normal(50) * 1000)])
    with np.errstate(over="ignore"):
        x = x.astype(ARRAYS[dt])
    got = elementwise("cast", (x,), (dt,), target)
    saturated = elementwise("saturating_cast", (x,), (dt,), target)
    for a, y, z in zip(x.astype(np.float64).tolist(), got.tolist(), saturated.tolist()):
        want = 0 if math.isnan(a) else min(max(math.trunc(a), low), high) if math.isfinite(a) else (high if a > 0 else low)
        assert y == z == want, a


@pytest.mark.parametrize("dt", FLOATS)
def test_bool(dt):
    x = np.array([0.0, -0.0, 1.0, np.nan, -2.0]).astype(ARRAYS[dt])
    assert elementwise("cast", (x,), (dt,), "bool").tolist() == [False, False, True, True, True]
    assert elementwise("cast", ([True, False],), ("bool",), dt).astype(float).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("dt", FLOATS)
def test_saturating_floats(source, dt, rng):
    x = np.concatenate([np.array([0.0, -0.0, 1e9, -1e9, 464.0, 449.0, 1e39, np.inf, -np.inf, np.nan]), rng.standard_normal(50) * 300])
    with np.errstate(over="ignore"):
        x = x.astype(ARRAYS[source])
    got = elementwise("saturating_cast", (x,), (source,), dt).astype(np.float64)
    largest = FORMATS[dt][2]
    for a, y in zip(x.astype(np.float64).tolist(), got.tolist()):
        if math.isnan(a):
            want = math.nan
        elif math.isinf(a):
            want = largest if a > 0 else -largest
        else:
            want = nearest(min(max(Fraction(a), -largest), largest), dt)
        assert agrees(y, want, math.copysign(1, a) < 0), a


def test_nan_narrows_to_nan():
    """Language case 2."""
    x = from_bits([0x7FFFFFFF, 0x7F800001, 0xFFFFFFFF], "f32")
    for dt in NARROW:
        assert np.isnan(elementwise("cast", (x,), ("f32",), dt).astype(np.float32)).all()


def test_f8_edges():
    """Language case 3."""
    x = np.array([448, 464, -0.0, 2.0 ** -10, 2.0 ** -10 + 2.0 ** -30])
    assert bits(elementwise("cast", (x,), ("f32",), "f8e4m3fn")).tolist() == [0x7E, 0x7E, 0x80, 0x00, 0x01]
    assert elementwise("cast", ([61439, 61440],), ("f32",), "f8e5m2").astype(float).tolist() == [57344.0, math.inf]
    assert elementwise("saturating_cast", ([1e9],), ("f32",), "f8e4m3fn").astype(float).tolist() == [448.0]


def test_integer_overflow_gives_infinity():
    assert elementwise("cast", ([65519, 65520, -70000],), ("i32",), "f16").astype(float).tolist() == [65504.0, math.inf, -math.inf]
