"""Runtime scalars: which numbers a dtype holds, and the bits they become."""
from __future__ import annotations

import math
import struct
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from intent_numba.kir.types import FLOATS, INTEGERS, int_range
from intent_numba.runtime.scalars import Refused, convert, encode, numpy_scalar, round_to

NUMPY = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32,
         "f8e4m3fn": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2}


@pytest.mark.parametrize("dt", INTEGERS)
def test_integers_are_held_exactly_or_refused(dt):
    lo, hi = int_range(dt)
    for value in (lo, hi, 0, 1):
        assert convert(dt, value) == value
        assert encode(dt, value) % (1 << 64) == value % (1 << 64)
    for value in (lo - 1, hi + 1, 1 << 70):
        with pytest.raises(Refused):
            convert(dt, value)


@pytest.mark.parametrize("value", [1.0, 0.5, True, np.True_, np.float32(1), "1", None, 1j, Fraction(1)])
def test_an_integer_parameter_takes_integers_only(value):
    with pytest.raises(Refused):
        convert("i32", value)


@pytest.mark.parametrize("value", [np.int8(5), np.uint64(5), np.int64(5), 5])
def test_numpy_integers_are_integers(value):
    assert convert("i8", value) == 5 and convert("u64", value) == 5 and convert("f32", value) == 5.0


@pytest.mark.parametrize("dt", FLOATS)
def test_floats_refuse_bools_strings_and_integers_they_cannot_hold(dt):
    for value in (True, np.bool_(False), "1.0", None, 1j, 2**60 + 1, 10**400):
        with pytest.raises(Refused):
            convert(dt, value)


def test_bool_takes_bools_only():
    assert convert("bool", np.True_) is True and encode("bool", False) == 0
    for value in (0, 1, 1.0, "True", None):
        with pytest.raises(Refused):
            convert("bool", value)


@pytest.mark.parametrize("dt", ["f16", "bf16", "f32", "f8e4m3fn", "f8e5m2"])
def test_too_large_floats_are_refused(dt):
    for value in (1e300, -1e300):
        with pytest.raises(Refused):
            convert(dt, value)


@pytest.mark.parametrize("dt", ["f16", "bf16", "f32", "f64", "f8e5m2"])
def test_infinities_and_nan_pass(dt):
    assert convert(dt, math.inf) == math.inf and convert(dt, -math.inf) == -math.inf
    assert math.isnan(convert(dt, math.nan))
    assert math.copysign(1, convert(dt, -0.0)) == -1


def test_e4m3fn_has_no_infinity():
    with pytest.raises(Refused):
        convert("f8e4m3fn", math.inf)
    assert convert("f8e4m3fn", 448.0) == 448.0


@pytest.mark.parametrize("dt", ["f16", "bf16", "f8e4m3fn", "f8e5m2"])
def test_rounding_is_to_nearest_even_once(dt):
    """Halfway points between neighbours, exactly and by the smallest double above and below."""
    every = np.arange(256 if dt.startswith("f8") else 65536, dtype=np.uint8 if dt.startswith("f8") else np.uint16)
    with np.errstate(invalid="ignore"):
        decoded = every.view(NUMPY[dt]).astype(np.float64)
    values = np.unique(decoded)
    values = values[np.isfinite(values) & (values > 0)]
    step = max(1, len(values) // 400)
    bits = {float(v): int(b) for b, v in zip(every, decoded) if np.isfinite(v)}
    for low, high in list(zip(values, values[1:]))[::step]:
        middle = (low + high) / 2
        even = low if bits[float(low)] % 2 == 0 else high
        assert round_to(dt, middle) == even
        assert round_to(dt, np.nextafter(middle, 0)) == low
        assert round_to(dt, np.nextafter(middle, np.inf)) == high


def test_bits_of_small_floats(rng):
    for dt, type_ in NUMPY.items():
        for value in [0.0, -0.0, 1.0, -1.5, 0.0625, math.nan]:
            bits = encode(dt, value)
            size = np.dtype(type_).itemsize
            assert np.array([bits], f"u{size}").view(type_).astype(np.float64)[0] == pytest.approx(value, nan_ok=True)
            assert 0 <= bits < 1 << 8 * size
    assert encode("f32", 1.5) == struct.unpack("<I", struct.pack("<f", 1.5))[0]
    assert encode("f64", -2.0) == struct.unpack("<q", struct.pack("<d", -2.0))[0]


def test_reference_scalars_have_the_dtype():
    assert numpy_scalar("bf16", 1.0).dtype == ml_dtypes.bfloat16
    assert numpy_scalar("index", 3).dtype == np.int64
    assert numpy_scalar("u64", 2**64 - 1) == np.uint64(2**64 - 1)
