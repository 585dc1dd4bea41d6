"""Float arithmetic bit for bit, compiled and interpreted: all pairs of f8, a million tuples of f16, bf16 and f32.

Tuples are uniform over bit patterns, so every exponent is met as often; half of the second operands lie near the first in size, where
sums cancel, and half of the addends of an fma near the product it adds to.
"""
import os
from fractions import Fraction

import numpy as np
import pytest

from tests.support import assert_same_bits

from . import rounding
from .generated import from_patterns, hold, results
from .rational import agrees, nearest
from .rounding import decode, encode, is_nan, negated, rank

COUNT = int(os.environ.get("INTENT_TUPLES") or 1_000_000)
BITS = {"f8e4m3fn": 8, "f8e5m2": 8, "f16": 16, "bf16": 16, "f32": 32}

ARITHMETIC = {"a + b": rounding.add, "a - b": lambda x, y: rounding.add(x, negated(y)), "a * b": rounding.multiply,
              "a / b": rounding.divide}
COMPARISONS = {"==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
EXTREMA = {"maximum": np.greater, "minimum": np.less}


def tuples(dt: str, rng, count: int) -> np.ndarray:
    """Patterns of three operands; those of f8 are all pairs."""
    n = BITS[dt]
    if n == 8:
        pairs = np.stack([g.ravel() for g in np.meshgrid(np.arange(256), np.arange(256))])
        return np.concatenate([pairs, rng.integers(0, 256, (1, 1 << 16))])
    a, b, c = rng.integers(0, 1 << n, (3, count))
    near = rng.integers(0, 1 << rng.integers(1, n - 2, count // 2))
    b[::2] = (a[::2] ^ near[:b[::2].size]) & (1 << n) - 1
    return np.stack([a, b, c])


def test_operands_of_every_exponent(rng):
    for dt in ("f16", "bf16", "f32"):
        a, b, _ = tuples(dt, rng, 20_000)
        fraction, width = rounding.layout(dt)[0], BITS[dt]
        for operand in (a, b):
            assert np.unique(operand >> fraction & (1 << width - 1 - fraction) - 1).size == 1 << width - 1 - fraction


@pytest.mark.parametrize("dt", BITS)
def test_arithmetic(dt, rng):
    a, b, _ = tuples(dt, rng, COUNT)
    x, y = decode(a, dt), decode(b, dt)
    hold({"a": (from_patterns(a, dt), dt), "b": (from_patterns(b, dt), dt)}, [(text, dt) for text in ARITHMETIC],
         [encode(operation(x, y), dt) for operation in ARITHMETIC.values()])


def test_f64(rng):
    """Fractions are slow: they judge a part, and every road must agree on the rest."""
    a, b, c = rng.integers(0, 1 << 64, (3, 60_000), dtype=np.uint64).view(np.int64)
    b[::2] = a[::2] ^ rng.integers(0, 1 << rng.integers(1, 62, b[::2].size))
    x, y, z = (p.view(np.float64) for p in (a, b, c))
    with np.errstate(all="ignore"):
        z[::3] = -(x * y)[::3]
    texts = [*ARITHMETIC, "I.fma(a, b, c)"]
    (_, want), *others = results({"a": (x, "f64"), "b": (y, "f64"), "c": (z, "f64")}, [(t, "f64") for t in texts])
    for road, got in others:
        for text, g, w in zip(texts, got, want):
            assert_same_bits(g, w, f"{text}, {road}")
    for i in range(3000):
        p, q, r = float(x[i]), float(y[i]), float(z[i])
        if np.isfinite([p, q, r]).all():
            p, q, r = map(Fraction, (p, q, r))
            for exact, w in zip((p + q, p - q, p * q, p / q if q else 0, p * q + r), want):
                assert not exact or agrees(float(w[i]), nearest(exact, "f64"), exact < 0), (p, q, r)


def addends(dt: str, product: rounding.Exact, rng) -> np.ndarray:
    """Patterns within two steps of the negated product's, which leave its last bits or nothing."""
    near = encode(negated(product), dt, saturate=True) + rng.integers(-2, 3, product.m.shape)
    return near & (1 << BITS[dt]) - 1


@pytest.mark.parametrize("dt", BITS)
def test_fma(dt, rng):
    a, b, c = tuples(dt, rng, COUNT)
    product = rounding.multiply(decode(a, dt), decode(b, dt))
    thirds = [addends(dt, product, rng), np.where(np.arange(c.size) % 2, c, addends(dt, product, rng))]
    if BITS[dt] == 8:                                       # all pairs with every third operand of a dense set
        thirds = [addends(dt, product, rng), *(np.full_like(a, v) for v in (*range(0, 256, 9), 0x80, 0x01, 0x7E, 0x7F, 0xFC))]
        a, b = np.tile(a, len(thirds)), np.tile(b, len(thirds))
        c = np.concatenate(thirds)
    else:
        c = thirds[1]
    hold({name: (from_patterns(p, dt), dt) for name, p in zip("abc", (a, b, c))}, [("I.fma(a, b, c)", dt)],
         [encode(rounding.fma(decode(a, dt), decode(b, dt), decode(c, dt)), dt)])


@pytest.mark.parametrize("dt", BITS)
def test_comparisons_and_extrema(dt, rng):
    a, b, _ = tuples(dt, rng, COUNT // 4)
    nans, keys = (is_nan(a, dt), is_nan(b, dt)), (rank(a, dt), rank(b, dt))
    lines, wants = [], []
    values = [np.where(k < 0, k + 1, k) for k in keys]                     # -0 is +0
    for symbol, compare in COMPARISONS.items():
        lines.append((f"a {symbol} b", "bool"))
        wants.append(np.where(nans[0] | nans[1], symbol == "!=", compare(*values)))
    for name, better in EXTREMA.items():
        best = np.where(better(*keys), a, b)
        lines += [(f"I.{name}(a, b)", dt), (f"I.{name}_num(a, b)", dt)]
        wants += [np.where(nans[0], a, np.where(nans[1], b, best)), np.where(nans[0], b, np.where(nans[1], a, best))]
    hold({"a": (from_patterns(a, dt), dt), "b": (from_patterns(b, dt), dt)}, lines, wants)


@pytest.mark.parametrize("dt", BITS)
def test_unary(dt, rng):
    """Every pattern of the narrow floats."""
    n = BITS[dt]
    a = np.arange(1 << n) if n < 32 else rng.integers(0, 1 << n, COUNT // 20)
    x, sign = decode(a, dt), 1 << n - 1
    with np.errstate(invalid="ignore"):
        values = from_patterns(a, dt).astype(np.float64)
        whole = [encode(decode(f(values).view(np.uint64), "f64"), dt) for f in (np.floor, np.ceil)]
    lines = [(text, dt) for text in ("-a", "I.abs(a)", "I.sqrt(a)", "I.floor(a)", "I.ceil(a)", "I.relu(a)")]
    wants = [a ^ sign, a & sign - 1, encode(rounding.square_root(x), dt), *whole, np.where(is_nan(a, dt) | (a < sign), a, 0)]
    hold({"a": (from_patterns(a, dt), dt)}, lines, wants, ("contiguous", "strided"))


def pythons_division(a: np.ndarray, b: np.ndarray):
    """CPython's float_divmod, every step in the arrays' own dtype. fmod of two f32 is exact in f64 and an f32."""
    one, half = a.dtype.type(1), a.dtype.type(0.5)
    r = np.fmod(a.astype(np.float64), b.astype(np.float64)).astype(a.dtype)
    q = (a - r) / b
    wrong = (r != 0) & ((r < 0) != (b < 0))
    q = np.where(wrong, q - one, q)
    floor = np.floor(q)
    quotient = np.where(q == 0, np.copysign(a.dtype.type(0), a / b), np.where(q - floor > half, floor + one, floor))
    return quotient, np.where(r == 0, np.copysign(a.dtype.type(0), b), np.where(wrong, r + b, r))


@pytest.mark.parametrize("dt", [*BITS, "f64"])
def test_floor_division(dt, rng):
    """A zero divisor is the caller's matter. Narrow floats are computed in f32 and rounded (decision 19)."""
    if dt == "f64":
        a = rng.integers(0, 1 << 64, 40_000, dtype=np.uint64).view(np.int64)
        b = a ^ rng.integers(0, 1 << rng.integers(1, 62, 40_000))
        b[::3] = rng.integers(0, 1 << 64, b[::3].size, dtype=np.uint64).view(np.int64)
        tame = rng.standard_normal((2, 20_000)).round(rng.integers(1, 4)).view(np.int64)
        a, b = np.concatenate([a, tame[0]]), np.concatenate([b, tame[1]])
    else:
        a, b, _ = tuples(dt, rng, COUNT // 10)
    a, b = (x[(b << 1) & (1 << BITS.get(dt, 64)) - 1 != 0 if dt != "f64" else b << 1 != 0] for x in (a, b))
    held = "f64" if dt == "f64" else "f32"
    x, y = (p.view(np.float64) if dt == "f64" else from_patterns(encode(decode(p, dt), held), held) for p in (a, b))
    with np.errstate(all="ignore"):
        wants = [encode(decode(w.view(f"u{w.itemsize}"), held), dt) for w in pythons_division(x, y)]
    for i in range(0, 2000 if dt == "f64" else 0):                          # the transcription is what Python does
        if np.isfinite(x[-i]) and y[-i]:
            assert wants[0][-i] == np.float64(float(x[-i]) // float(y[-i])).view(np.int64)
            assert wants[1][-i] == np.float64(float(x[-i]) % float(y[-i])).view(np.int64)
    hold({"a": (from_patterns(a, dt), dt), "b": (from_patterns(b, dt), dt)},
         [("I.floor_divide(a, b)", dt), ("I.remainder(a, b)", dt)], wants)
