"""Every conversion bit for bit, compiled and interpreted, against integers (decisions 11, 13, 20, 21, 22).

From the narrow floats all patterns; from f32, f64 and integers the values of the destination and the midpoints between them, each with
its neighbours, the powers of two, and random numbers of every size.
"""
import os

import numpy as np
import pytest

from intent_numba.kir.types import BITS, int_range

from . import rounding
from .generated import from_patterns, hold, results
from .rounding import Exact, decode, encode, layout

COUNT = int(os.environ.get("INTENT_TUPLES") or 300_000)
NARROW = ("f8e4m3fn", "f8e5m2", "f16", "bf16")
FLOATS = (*NARROW, "f32", "f64")
INTEGERS = ("i8", "i16", "i32", "i64", "index", "u8", "u16", "u32", "u64")


def expected(x: Exact, target: str, saturate: bool):
    """(patterns of a cast, where the language defines it)."""
    if target == "bool":
        return ~x.zero, np.ones(x.m.shape, bool)
    if target in FLOATS:
        return encode(x, target, saturate), np.ones(x.m.shape, bool)
    clamped, fits = rounding.truncated(x, *int_range(target))
    return clamped, fits | saturate


def check_conversions(patterns, source: str, x: Exact, targets) -> None:
    """``cast`` and ``saturating_cast`` of the values ``x`` to all targets, in one kernel."""
    lines, wants = [], []
    for target in targets:
        for saturate in (False, True) if target != "bool" else (False,):
            lines.append((f"I.{'saturating_' * saturate}cast(a, I.{target})", target))
            wants.append(expected(x, target, saturate))
    array = from_patterns(patterns, source)
    for road, got in results({"a": (array, source)}, lines, ("contiguous", "strided")):
        for (text, target), g, (want, defined) in zip(lines, got, wants):
            want = from_patterns(want, target)
            nan = rounding.is_nan(bits(g), target) & rounding.is_nan(bits(want), target) if target in FLOATS else False
            wrong = np.flatnonzero((bits(g) != bits(want)) & defined & ~nan)
            assert not wrong.size, f"{road}: {text} of {array[wrong[0]]} gives {g[wrong[0]]}, want {want[wrong[0]]} ({wrong.size} such)"


def bits(array):
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").astype(np.uint64)


@pytest.mark.parametrize("source", NARROW)
def test_every_pattern_of_a_narrow_float(source):
    every = np.arange(1 << BITS[source])
    check_conversions(every, source, decode(every, source), [t for t in (*FLOATS, *INTEGERS, "bool") if t != source])


def around(dt: str, wide: str, rng) -> np.ndarray:
    """Patterns of ``wide`` at the numbers of ``dt``, at the midpoints, and one step beside; the first midpoint beyond the format too."""
    largest = layout(dt)[2]
    x = decode(np.arange(largest + 1) if largest < 40_000 else np.append(rng.integers(0, largest + 1, 20_000), largest), dt)
    points = [encode(Exact(x.negative, m, x.e - 1, x.kind), wide) for m in (2 * x.m, 2 * x.m + 1)]
    near = np.concatenate([p + step for p in points for step in (-1, 0, 1)])
    near = near[near >= 0].view(np.uint64)
    return np.concatenate([near, near | np.uint64(1 << BITS[wide] - 1)])


@pytest.mark.parametrize("source, target", [(s, t) for s in ("f32", "f64") for t in (*NARROW, "f32") if s != t])
def test_floats_narrow(source, target, rng):
    wild = rng.integers(0, 1 << BITS[source], COUNT, dtype=np.uint64)
    fraction, least, _ = layout(source)
    exponents = rng.integers(layout(target)[1] - 20, 20 - layout(target)[1], COUNT)
    inside = rng.integers(0, 1 << fraction, COUNT) + (np.maximum(exponents - least + 1, 0) << fraction)
    patterns = np.concatenate([around(target, source, rng), wild, inside.view(np.uint64)])
    check_conversions(patterns, source, decode(patterns, source), [target])


@pytest.mark.parametrize("source", ["f32", "f64"])
def test_floats_to_integers(source, rng):
    width, (fraction, least, _) = BITS[source], layout(source)
    powers = (np.arange(-2, 68) - least + 1) << fraction
    near = np.concatenate([powers + step for step in (-2, -1, 0, 1, 2)] + [powers | 1 << fraction - 1])
    inside = rng.integers(0, 1 << fraction, 4000) + (rng.integers(-2, 66, 4000) - least + 1 << fraction)
    sizes = np.concatenate([near, inside, np.arange(3), layout(source)[2] + np.arange(3)]).astype(np.uint64)
    patterns = np.concatenate([sizes, sizes | np.uint64(1 << width - 1)])
    check_conversions(patterns, source, decode(patterns, source), (*INTEGERS, "bool", "f64")[:11 if source == "f32" else 10])


def whole_numbers(source: str, rng) -> np.ndarray:
    """Of every bit length: a significand of each float format, its midpoint, and the neighbours; and random ones."""
    low, high = int_range(source)
    found = {0, low, high, *(1 << k for k in range(64)), 448, 464, 465, 479, 480, 57344, 61439, 61440, 65504, 65519, 65520}
    for length in range(2, 65):
        for fraction in {layout(dt)[0] for dt in FLOATS}:
            cut = max(length - fraction - 1, 0)
            for top in (1 << length - 1, (1 << length) - 1, int(rng.integers(0, 1 << 62)) | 1 << length - 1):
                significand = (top & (1 << length) - 1) >> cut << cut
                found |= {significand, significand + (1 << cut - 1 if cut else 0)}
    found |= {int(v) >> int(s) for v, s in zip(rng.integers(0, 1 << 64, 3000, dtype=np.uint64), rng.integers(0, 64, 3000))}
    members = sorted({sign * v + step for v in found for step in (-1, 0, 1) for sign in (1, -1) if low <= sign * v + step <= high})
    return np.array(members, "u8" if low == 0 else "i8")


@pytest.mark.parametrize("source", INTEGERS)
def test_integers(source, rng):
    x = whole_numbers(source, rng)
    check_conversions(x.view(np.uint64), source, rounding.of_integers(x), (*FLOATS, "bool"))


@pytest.mark.parametrize("source", INTEGERS)
def test_integers_to_integers(source, rng):
    low, high = int_range(source)
    x = np.arange(low, high + 1) if BITS[source] == 8 else whole_numbers(source, rng)
    values, lines, wants = [int(v) for v in x], [], []
    for target in INTEGERS:
        least, most = int_range(target)
        lines += [(f"I.{name}(a, I.{target})", target) for name in ("cast", "saturating_cast")]
        wants += [np.array([v % (1 << 64) for v in values], np.uint64),
                  np.array([min(max(v, least), most) % (1 << 64) for v in values], np.uint64)]
    hold({"a": (from_patterns(x, source), source)}, lines, wants, ("contiguous", "strided"))


def test_bool():
    targets = (*FLOATS, *INTEGERS)
    lines = [(f"I.cast(a, I.{t})", t) for t in targets]
    bits = np.array([0, 1])
    hold({"a": (bits == 1, "bool")}, lines, [encode(rounding.of_integers(bits), t) if t in FLOATS else bits for t in targets])


@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_bitcasts(width, rng):
    """Every pair of equal widths. The bits of a NaN are no one's promise, that it is one is."""
    every = np.arange(1 << width) if width <= 16 else rng.integers(0, 1 << width, 20_000, dtype=np.uint64)
    same = [dt for dt in (*FLOATS, *INTEGERS) if BITS[dt] == width]
    for source in same:
        targets = [t for t in same if t != source]
        lines = [(f"I.bitcast(a, I.{t})", t) for t in targets]
        for road, got in results({"a": (from_patterns(every, source), source)}, lines, ("contiguous", "strided")):
            for t, g in zip(targets, got):
                nan = [rounding.is_nan(every, dt) if dt in FLOATS else np.zeros(every.shape, bool) for dt in (source, t)]
                assert (bits(g) == every)[~(nan[0] | nan[1])].all(), (road, source, t)
                assert t not in FLOATS or rounding.is_nan(bits(g), t)[nan[1] & ~nan[0]].all(), (road, source, t)
