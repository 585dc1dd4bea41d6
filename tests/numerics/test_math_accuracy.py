"""Are the elementary functions within their bounds, as compiled, and is docs/accuracy.md what was measured?

The f64 oracle of f32 results is itself held against MPFR. ``python -m tests.numerics.accuracy`` measures more than a test run.
"""
from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest

from . import oracle, samples
from .accuracy import DTYPES, PAGE, SUBJECTS, compiled, inputs, interpreted, kernel, measure, read_page
from .build import ARRAYS, bits, from_bits
from .rational import value_of
from .ulp import FORMATS, errors_exact

F32_COUNT, F64_COUNT, PAIRS = 10 ** 7, 20_000, 10 ** 6
NARROW = [dt for dt in DTYPES if dt not in ("f32", "f64")]
PAGE_ROWS = read_page()

each_case = pytest.mark.parametrize(
    "subject, dt", [pytest.param(s, dt, id=f"{s.name}-{dt}".replace(" ", "-")) for s in SUBJECTS for dt in s.dtypes])
unary = [s for s in SUBJECTS if not s.binary]


@pytest.mark.parametrize("kind", oracle.WIDE)
def test_the_f64_oracle_is_good_enough_for_f32(kind, rng):
    with np.errstate(all="ignore"):
        if kind in ("pow", "fdiv"):
            columns = (samples.powers if kind == "pow" else samples.quotients)("f32", rng, 2000)
        else:
            columns = (np.concatenate([samples.stratified_f32(1500, rng), samples.spread(samples.ZONES[kind], rng, 1500)]),)
        columns = tuple(c.astype(np.float32) for c in columns)
        wide = oracle.WIDE[kind](*(c.astype(np.float64) for c in columns))
        inside = np.isfinite(wide.astype(np.float32)) & (np.abs(wide) > 2.0 ** -150) & ~oracle.poor(kind, wide)
    off = errors_exact(kind, "f64", wide[inside], *(c[inside] for c in columns))
    assert inside.sum() > 300 and off.max() < 1e-4 * 2 ** 29


@each_case
def test_bound(subject, dt, rng):
    count = {"f32": PAIRS if subject.binary else F32_COUNT, "f64": F64_COUNT}.get(dt, PAIRS // 10)
    row = measure(subject, dt, inputs(subject, dt, count, rng))
    print(f"\n{dt} {row.text(subject.name)}")
    assert row.error <= row.bound
    shown = PAGE_ROWS[subject.name, dt]
    assert row.error <= shown.error or not shown.inputs.startswith("all"), f"{PAGE.name} is out of date: {row}"


def test_the_page_has_every_row():
    assert set(PAGE_ROWS) == {(s.name, dt) for s in SUBJECTS for dt in s.dtypes}
    for s in SUBJECTS:
        for dt in s.dtypes:
            assert PAGE_ROWS[s.name, dt].error <= PAGE_ROWS[s.name, dt].bound == s.bound(dt)


def _hard(subject, dt, rng):
    """A few thousand inputs, special ones among them."""
    special = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.0, -3.0, 1e-40, -1e-310, 0.5])
    if subject.binary:
        a, b = samples.powers(dt, rng, 4000) if subject.kind == "pow" else samples.quotients(dt, rng, 4000)
        columns = np.concatenate([a, np.repeat(special, special.size)]), np.concatenate([b, np.tile(special, special.size)])
    else:
        near = samples.neighbours(samples.centres(subject.kind)[:40], "f64")
        columns = (np.concatenate([special, near, samples.spread(samples.ZONES[subject.kind], rng, 4000)]),)
    with np.errstate(all="ignore"):
        return tuple(c.astype(ARRAYS[dt]) for c in columns)


@each_case
def test_compiled_bits_are_the_interpreter_s(subject, dt, rng):
    columns = _hard(subject, dt, rng)
    got, expected = compiled(subject, dt, columns), interpreted(subject, dt, columns)
    with np.errstate(all="ignore"):
        same = (bits(got) == bits(expected)) | np.isnan(got.astype(np.float64)) & np.isnan(expected.astype(np.float64))
    assert same.all(), [(tuple(c[i] for c in columns), got[i], expected[i]) for i in np.flatnonzero(~same)[:5]]


@each_case
def test_code_is_vectors_without_a_library(subject, dt):
    """Nothing is called but LLVM's own operations, and the numbers go through vector registers."""
    text = kernel(subject, dt).inspect("llvm")
    called = set(re.findall(r"\bcall\b[^@\n]*@\"?([\w.$]+)", text))
    assert not {c for c in called if re.fullmatch(r"_*(exp|log|pow|sin|cos|tan|erf|gamma|lgamma|sqrt|floor|ceil|fmod|j0)\w*", c)}, called
    assert re.search(r"<\d+ x float>|<\d+ x double>|<\d+ x half>|<\d+ x i\d+>", text)


@pytest.mark.parametrize("dt", NARROW)
@pytest.mark.parametrize("subject", [s for s in unary if not s.options], ids=lambda s: s.name)
def test_narrow_functions_are_the_f32_function_rounded(subject, dt):
    """Every bit pattern."""
    x = from_bits(np.arange(1 << 8 * np.dtype(ARRAYS[dt]).itemsize), dt)
    with np.errstate(all="ignore"):
        expected = _rounded(dt, compiled(subject, "f32", (x.astype(np.float32),)))
        got = compiled(subject, dt, (x,)).astype(np.float32)
    nan = np.isnan(expected)
    assert np.array_equal(nan, np.isnan(got))
    assert np.array_equal(bits(got)[~nan], bits(expected)[~nan])


@cache
def _grid(dt: str) -> np.ndarray:
    """The numbers of ``dt`` from zero on, in the order of their encodings, and the one that would follow."""
    f = FORMATS[dt]
    values = [value_of(code, dt)[1] for code in range(1 << 8 * np.dtype(ARRAYS[dt]).itemsize - 1)]
    return np.array([float(v) for v in values if v <= f.largest] + [f.largest + 2.0 ** (f.most - f.mant)])


def _rounded(dt: str, x: np.ndarray) -> np.ndarray:
    """The numbers of ``dt`` nearest to f32 numbers, ties to the even encoding, by search among all numbers of ``dt``."""
    values, beyond = _grid(dt), np.inf if FORMATS[dt].infinite else np.nan
    size, middle = np.abs(x.astype(np.float64)), (values[:-1] + values[1:]) / 2
    below, above = np.searchsorted(middle, size, "left"), np.searchsorted(middle, size, "right")
    result = np.append(values[:-1], beyond)[np.where(below % 2 == 0, below, above)]
    return np.copysign(np.where(np.isnan(size), np.nan, result), x).astype(np.float32)


@pytest.mark.nightly
@pytest.mark.parametrize("subject", unary, ids=lambda s: s.name)
def test_every_f32_number(subject, rng):
    row = measure(subject, "f32", inputs(subject, "f32", 0, rng, every=True))
    print(f"\n{row.text(subject.name)}")
    assert row.error <= row.bound


@pytest.mark.nightly
@pytest.mark.parametrize("subject", [s for s in SUBJECTS if "f64" in s.dtypes], ids=lambda s: s.name)
def test_a_million_f64_numbers(subject, rng):
    row = measure(subject, "f64", inputs(subject, "f64", 10 ** 6, rng))
    print(f"\n{row.text(subject.name)}")
    assert row.error <= row.bound
