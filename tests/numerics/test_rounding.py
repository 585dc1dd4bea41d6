"""Is the oracle over arrays right? Against exact fractions, element by element."""
import math
from fractions import Fraction

import numpy as np
import pytest

from . import rounding
from .rational import FORMATS, nearest, value_of

PAIRS = {"add": lambda a, b: a + b, "multiply": lambda a, b: a * b, "divide": lambda a, b: a / b if b else None}


SIZES = {"f8e4m3fn": 1, "f8e5m2": 1, "f16": 2, "bf16": 2, "f32": 4}


def decoded(pattern, dt):
    """As value_of, for one pattern of the oracle under test."""
    x = rounding.decode(np.array([pattern]), dt)
    kind = int(x.kind[0])
    if kind:
        return bool(x.negative[0]), math.nan if kind == 2 else -math.inf if x.negative[0] else math.inf
    size = Fraction(int(x.m[0])) * Fraction(2) ** int(x.e[0])
    return bool(x.negative[0]), -size if x.negative[0] else size


@pytest.mark.parametrize("dt", FORMATS)
def test_decode(dt, rng):
    width = 8 * SIZES.get(dt, 8)
    patterns = range(256) if width == 8 else rng.integers(0, 1 << width, 2000, dtype=np.uint64).tolist()
    for p in patterns:
        (sign, value), (other, want) = decoded(p, dt), value_of(p, dt)
        assert sign == other and (value == want or math.isnan(value) and math.isnan(want)), p


@pytest.mark.parametrize("dt", SIZES)
@pytest.mark.parametrize("name", [*PAIRS, "fma"])
def test_operations(name, dt, rng):
    a, b, c = rng.integers(0, 1 << 8 * SIZES[dt], (3, 3000), dtype=np.uint64).astype(np.int64)
    b[::2] = a[::2] ^ rng.integers(0, 1 << 2 * SIZES[dt], 1500)        # near in size: sums cancel
    x, y, z = (rounding.decode(p, dt) for p in (a, b, c))
    got = rounding.encode(rounding.fma(x, y, z) if name == "fma" else getattr(rounding, name)(x, y), dt)
    for p, q, r, g in zip(*(v.tolist() for v in (a, b, c, got))):
        (_, u), (_, v), (_, w) = (value_of(i, dt) for i in (p, q, r))
        if any(isinstance(i, float) for i in (u, v, w)):
            continue
        exact = u * v + w if name == "fma" else PAIRS[name](u, v)
        if exact:
            want, (negative, value) = nearest(exact, dt), value_of(g, dt)
            assert negative == (exact < 0) and (value == want or math.isnan(value) and math.isnan(want)), (p, q, r)


@pytest.mark.parametrize("dt", SIZES)
def test_square_root(dt, rng):
    p = rng.integers(0, 1 << 8 * SIZES[dt], 500, dtype=np.uint64)
    for i, g in zip(p.tolist(), rounding.encode(rounding.square_root(rounding.decode(p, dt)), dt).tolist()):
        (negative, x), (_, y) = value_of(i, dt), value_of(g, dt)
        if negative or isinstance(x, float):
            continue
        below, above = ((value_of(g + d, dt)[1] + y) / 2 for d in (-1, 1)) if y else (0, 0)
        assert below ** 2 < x < above ** 2 or x == y ** 2, i


@pytest.mark.parametrize("source", ["f64", "i64", "u64"])
@pytest.mark.parametrize("dt", FORMATS)
def test_narrowing(dt, source, rng):
    p = rng.integers(0, 1 << 64, 2000, dtype=np.uint64) >> rng.integers(0, 64, 2000).astype(np.uint64)
    if source == "f64":
        p[::2] = (rng.standard_normal(1000) * 2.0 ** rng.integers(-150, 130, 1000)).view(np.uint64)
        exact, x = [value_of(i, "f64")[1] for i in p.tolist()], rounding.decode(p, "f64")
    else:
        p = p.view(np.dtype(source[0] + "8"))
        exact, x = [Fraction(i) for i in p.tolist()], rounding.of_integers(p)
    for v, g in zip(exact, rounding.encode(x, dt).tolist()):
        if not isinstance(v, float):
            value, want = value_of(g, dt)[1], nearest(v, dt)
            assert value == want or math.isnan(value) and math.isnan(want), v


def test_ties_and_limits():
    def narrowed(*values):
        return rounding.encode(rounding.decode(np.array(values).view(np.uint64), "f64"), "f8e4m3fn").tolist()
    assert narrowed(464.0, 464.0000001, -math.inf, 2.0 ** -10, -(2.0 ** -10) * 1.5, 0.0, -0.0) == [0x7E, 0x7F, 0xFF, 0, 0x81, 0, 0x80]
    inf = 0x7C00
    x, y = (rounding.decode(np.array(p), "f16") for p in ((inf, inf, 0x8000, 0x8000, 0x3C00), (inf | 0x8000, inf, 0x8000, 0, 0xBC00)))
    assert rounding.is_nan(rounding.encode(rounding.add(x, y), "f16"), "f16").tolist() == [True, False, False, False, False]
    assert rounding.encode(rounding.add(x, y), "f16").tolist()[1:] == [inf, 0x8000, 0, 0]
