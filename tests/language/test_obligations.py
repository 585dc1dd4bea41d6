"""Every obligation of the caller, broken inside of programs of some size: the report says which, where and at which coordinates, and
nothing is written; where none is broken, nothing is said and the bits are those of the unchecked program."""
from __future__ import annotations

import numpy as np
import pytest

import intent_numba as intent
from intent_numba import reference
from tests.support import assert_same_bits

from .planted import SITES, Plant, arguments, interpreted, kernel_of, rehearsed

PLANTS = [
    Plant("zero divisor", "return a // b", ("i32", "i32"), "i32", ((7, 2), (-7, 3), (5, -1)), (4, 0), "//", "a // b",
          "the divisor is zero"),
    Plant("zero divisor", "q = a - a\nreturn q + a % b", ("u8", "u8"), "u8", ((7, 2), (255, 255)), (4, 0), "%", "a % b",
          "the divisor is zero"),
    Plant("quotient", "return a // b", ("i8", "i8"), "i8", ((-128, 1), (-127, -1)), (-128, -1), "//", "a // b",
          "the quotient -128 // -1 does not fit i8"),
    Plant("quotient", "return a // b", ("i64", "i64"), "i64", ((-2 ** 63, 1), (3, -1)), (-2 ** 63, -1), "//", "a // b",
          "the quotient -9223372036854775808 // -1 does not fit i64"),
    Plant("shift", "return a << b", ("u32", "u32"), "u32", ((1, 0), (5, 31)), (0, 32), "<<", "a << b",
          "the shift amount is outside 0 .. 31"),
    Plant("shift", "return a >> b", ("i16", "i16"), "i16", ((-1, 0), (5, 15)), (0, -1), ">>", "a >> b",
          "the shift amount is outside 0 .. 15"),
    Plant("exponent", "return a ** b", ("i32", "i32"), "i32", ((3, 0), (2, 40)), (1, -1), "**", "a ** b", "the exponent is negative"),
    Plant("NaN to integer", "c = a * b\nreturn I.cast(c, I.i16)", ("f32", "f32"), "i16", ((2.5, -3.0), (-0.0, 1.0)), (np.inf, 0.0),
          "I.cast", "I.cast(c, I.i16)", "NaN has no value in i16"),
    Plant("float to integer", "return I.cast(a, I.u8)", ("f32", "f32"), "u8", ((255.9, 0), (-0.9, 0), (-0.0, 0)), (-1.0, 0), "I.cast",
          "I.cast(a, I.u8)", "the value is outside the range of u8"),
    Plant("float to integer", "return I.cast(a, I.i8)", ("f16", "f16"), "i8", ((127.9, 0), (-128.9, 0)), (128.0, 0), "I.cast",
          "I.cast(a, I.i8)", "the value is outside the range of i8"),
    Plant("float to integer", "return I.cast(a, I.i64)", ("f64", "f64"), "i64", ((-2.0 ** 63, 0), (2.0 ** 63 - 1024, 0)), (2.0 ** 63, 0),
          "I.cast", "I.cast(a, I.i64)", "the value is outside the range of i64"),
    Plant("f8e4m3fn", "return I.cast(I.cast(a * b, I.f8e4m3fn), I.f32)", ("f32", "f32"), "f32", ((464.0, 1.0), (-8.0, 58.0), (np.nan, 1.0)),
          (232.5, -2.0), "I.cast", "I.cast(a * b, I.f8e4m3fn)", "the value rounds beyond 448, the largest number of f8e4m3fn"),
    Plant("counter", "return I.random.bits(7, I.cast(a, I.index))", ("i32", "i32"), "u32", ((0, 0), (9, 0)), (-1, 0), "I.random",
          "I.random.bits(7, I.cast(a, I.index))", "the counter is negative", pure=False),
    Plant("index", "return t[a]", ("i32", "i32"), "f32", ((0, 0), (4, 0)), (5, 0), "read", "t[a]",
          "index 5 is outside axis 0 of 't', whose extent is 5", pure=False),
    Plant("index", "k = n[b]\nreturn t[k + a - 5]", ("i32", "i32"), "f32", ((5, 4), (7, 2)), (2, 2), "read", "t[k + a - 5]",
          "index -1 is outside axis 0 of 't', whose extent is 5", pure=False),
    Plant("index", "v = t[:] * 2.0\nreturn v[a]", ("u64", "u8"), "f32", ((0, 0), (4, 0)), (2 ** 64 - 1, 0), "gather", "v[a]",
          "index 18446744073709551615 is outside axis 0 of a tensor, whose extent is 5"),
    Plant("index", "return I.gather(t, index=a, valid=b != 0, fill=-1.0)", ("i64", "i8"), "f32", ((9, 0), (-1, 0), (4, 1)), (5, 1), None,
          "I.gather(t, index=a, valid=b != 0, fill=-1.0)", "index 5 is outside axis 0 of "),
    Plant("assumption", "I.assume_in_bounds(a, t, axis=0)\nreturn a", ("i32", "i32"), "i32", ((0, 0), (4, 0)), (-1, 0),
          "I.assume_in_bounds", "I.assume_in_bounds(a, t, axis=0)", "the index is outside of axis 0"),
    Plant("zero divisor, range_preserving", "return 1.5 + a / b", ("i16", "i32"), "f32", ((7, 2), (0, -3)), (4, 0), "/", "a / b",
          "the divisor is zero", policy="range_preserving"),
    Plant("zero divisor, range_preserving", "return a % b", ("f32", "i8"), "f32", ((7.5, 2), (-0.0, -3)), (4.0, 0), "%", "a % b",
          "the divisor is zero", policy="range_preserving"),
    Plant("zero divisor, range_preserving", "return a // b", ("f32", "f64"), "f64", ((7.5, 2), (np.inf, -3)), (4.0, -0.0), "//", "a // b",
          "the divisor is zero", policy="range_preserving"),
]


def report(kernel, args, error=intent.InvalidInput):
    """The violation that a rehearsal finds; the arrays stay as they are."""
    own = [np.array(x) for x in args]
    with pytest.raises(error) as caught:
        reference.rehearse(rehearsed(kernel), [x if x.ndim or isinstance(y, np.ndarray) else y for x, y in zip(own, args)])
    for x, y in zip(own, args):
        assert x.tobytes() == np.asarray(y).tobytes()
    return caught.value


def assert_reported(e, kernel, lines, operation, mark, text, at):
    line = next(k for k, s in enumerate(lines, 1) if mark in s)
    assert (e.operation, e.coordinates, e.line) == (operation or e.operation, at, line), str(e)
    assert e.col in (None, lines[line - 1].index(mark)), str(e)
    where = f" at coordinates {at}" if at else ""
    assert f"{kernel.__name__}: {e.operation}{where}: {text}" in str(e)


PAIRS = [pytest.param(plant, site, id=f"{plant.name} {plant.types[0]} {site}", marks=pytest.mark.nightly if (i + k) % 3 else ())
         for i, plant in enumerate(PLANTS) for k, site in enumerate(SITES) if plant.pure or not SITES[site].pure]
"""A third of them, and all every night."""


@pytest.mark.parametrize("plant, site", PAIRS)
def test_planted(plant, site):
    kernel, lines = kernel_of(plant, site)
    args = arguments(plant, None)
    want = interpreted(kernel, args)
    for got, w, a in zip(reference.rehearse(rehearsed(kernel), args), want, arguments(plant, None)):
        assert_same_bits(got, w)
    at = SITES[site].at
    for where in ([(2, 66)], [(1, 0)], [(2, 3), (1, 69)], [(0, 1), (0, 0), (2, 69)]):
        e = report(kernel, arguments(plant, where))
        assert_reported(e, kernel, lines, plant.operation, plant.mark, plant.text, at(*min(where)))
