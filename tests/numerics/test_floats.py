"""Float arithmetic against exact fractions: every operation rounds once, in its own dtype."""
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from .build import ARRAYS, elementwise, from_bits
from .rational import agrees, nearest, value_of

NARROW = ("f8e4m3fn", "f8e5m2", "f16", "bf16")
FLOATS = (*NARROW, "f32", "f64")


def sample(dt: str, rng, count: int, spread: bool = True) -> np.ndarray:
    """Random bit patterns, and numbers of similar size so that sums cancel."""
    width = 8 * np.dtype(ARRAYS[dt]).itemsize
    wild = from_bits(rng.integers(0, 1 << width, count, dtype=np.uint64), dt)
    tame = (rng.standard_normal(count) * 2.0 ** rng.integers(-4, 4, count)).astype(ARRAYS[dt])
    return np.concatenate([wild, tame]) if spread else tame


def special(dt: str) -> np.ndarray:
    x = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, np.nan]
    if dt != "f8e4m3fn":
        x += [np.inf, -np.inf]
    return np.array(x).astype(ARRAYS[dt])


def floats(x: np.ndarray) -> list[float]:
    with np.errstate(invalid="ignore"):  # signaling NaN
        return x.astype(np.float64).tolist()


EXACT = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b}


def ieee(kind: str, a: float, b: float):
    """The result for operands with a special value or a zero divisor, from NumPy's f64."""
    with np.errstate(all="ignore"):
        return float({"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[kind](np.float64(a), np.float64(b)))


def check_binary(kind: str, dt: str, a: np.ndarray, b: np.ndarray) -> None:
    got = floats(elementwise(kind, (a, b), (dt, dt), dt))
    for x, y, z in zip(floats(a), floats(b), got):
        if not (math.isfinite(x) and math.isfinite(y)) or (kind == "div" and y == 0) or EXACT[kind](Fraction(x), Fraction(y)) == 0:
            want = ieee(kind, x, y)
            if dt == "f8e4m3fn" and math.isinf(want):
                want = math.nan  # decision 20
            assert (math.isnan(want) and math.isnan(z)) or (z == want and math.copysign(1, z) == math.copysign(1, want)), (x, y, z)
            continue
        exact = EXACT[kind](Fraction(x), Fraction(y))
        assert agrees(z, nearest(exact, dt), exact < 0), (x, y, z)


@pytest.mark.parametrize("dt", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("kind", EXACT)
def test_pairs(kind, dt, rng):
    pairs = list(itertools.product(special(dt).tolist(), repeat=2))
    a, b = (np.array(x).astype(ARRAYS[dt]) for x in zip(*pairs))
    check_binary(kind, dt, np.concatenate([a, sample(dt, rng, 300)]), np.concatenate([b, sample(dt, rng, 300)]))


@pytest.mark.parametrize("dt", FLOATS)
def test_sqrt(dt, rng):
    x = np.abs(sample(dt, rng, 1000))
    got = floats(elementwise("sqrt", (x,), (dt,), dt))
    for a, y in zip(floats(x), got):
        if not math.isfinite(a) or a == 0:
            assert y == a or math.isnan(a) and math.isnan(y)
            continue
        # Scaled to an integer square root with many more bits than any format; a sticky bit keeps it off the midpoints.
        q = Fraction(a)
        shift = 2 ** 1400
        root = math.isqrt(q.numerator * shift * shift // q.denominator)
        exact = Fraction(2 * root + (Fraction(root, shift) ** 2 != q), 2 * shift)
        assert agrees(y, nearest(exact, dt)), a


@pytest.mark.parametrize("dt", FLOATS)
def test_fma_rounds_once(dt, rng):
    a, b, c = (sample(dt, rng, 1500) for _ in range(3))
    # Addends that cancel the product to its last bits, and products that straddle a midpoint of the sum.
    with np.errstate(all="ignore"):
        c[::3] = -(a.astype(np.float64) * b.astype(np.float64)).astype(ARRAYS[dt])[::3]
    got = floats(elementwise("fma", (a, b, c), (dt,) * 3, dt))
    for x, y, z, w in zip(floats(a), floats(b), floats(c), got):
        if all(map(math.isfinite, (x, y, z))):
            exact = Fraction(x) * Fraction(y) + Fraction(z)
            if exact:
                assert agrees(w, nearest(exact, dt), exact < 0), (x, y, z, w)
            else:
                both_negative = math.copysign(1, x) * math.copysign(1, y) < 0 and math.copysign(1, z) < 0
                assert w == 0 and (math.copysign(1, w) < 0) == (both_negative and z == 0), (x, y, z, w)


@pytest.mark.parametrize("dt", ["f32", "f64"])
def test_fma_at_the_limits(dt):
    tiny = math.ldexp(1.0, -149 if dt == "f32" else -1074)
    top = float(np.finfo(ARRAYS[dt]).max)
    inf, nan = math.inf, math.nan
    cases = [  # a, b, c, result
        (top, 2.0, -top, top), (top, top, -inf, -inf), (top, top, inf, inf), (-top, top, inf, inf), (inf, 0.0, 1.0, nan),
        (inf, 1.0, -inf, nan), (inf, 1.0, 1.0, inf), (0.0, nan, 1.0, nan), (1.0, 1.0, nan, nan), (tiny, tiny, 0.0, 0.0),
        (-tiny, tiny, 0.0, -0.0), (-tiny, tiny, -0.0, -0.0), (tiny, tiny, -tiny, -tiny), (tiny, 0.5, 0.0, 0.0),
        (tiny, 0.5, tiny, 2 * tiny), (tiny, 0.75, 0.0, tiny), (0.0, -1.0, 0.0, 0.0), (0.0, -1.0, -0.0, -0.0),
        (0.0, 1.0, -0.0, 0.0), (1.0, 1.0, -1.0, 0.0), (top, 1.0, tiny, top), (top, top, 1.0, inf),
    ]
    a, b, c, want = (np.array(x, ARRAYS[dt]) for x in zip(*cases))
    got = elementwise("fma", (a, b, c), (dt,) * 3, dt)
    for case, y, w in zip(cases, got.tolist(), want.tolist()):
        assert (math.isnan(w) and math.isnan(y)) or (y == w and math.copysign(1, y) == math.copysign(1, w)), (case, y)


@pytest.mark.parametrize("dt", FLOATS)
def test_maximum_and_minimum(dt):
    """Language case 8 and decision 15, on arrays of several lengths and in both operand orders."""
    nan, inf = math.nan, (math.inf if dt != "f8e4m3fn" else 448.0)
    rows = [  # a, b, maximum, minimum, maximum_num, minimum_num
        (nan, 1.0, nan, nan, 1.0, 1.0), (nan, nan, nan, nan, nan, nan), (-0.0, 0.0, 0.0, -0.0, 0.0, -0.0),
        (1.0, 2.0, 2.0, 1.0, 2.0, 1.0), (-inf, inf, inf, -inf, inf, -inf), (-0.0, -0.0, -0.0, -0.0, -0.0, -0.0),
        (nan, -inf, nan, nan, -inf, -inf), (nan, -0.0, nan, nan, -0.0, -0.0),
    ]
    for length, flipped in itertools.product((1, 33), (False, True)):
        for a, b, *wants in rows:
            a, b = (b, a) if flipped else (a, b)
            for kind, want in zip(("maximum", "minimum", "maximum_num", "minimum_num"), wants):
                got = floats(elementwise(kind, ([a] * length, [b] * length), (dt, dt), dt))
                assert all(agrees(y, want, math.copysign(1, want) < 0) for y in got), (kind, a, b)


@pytest.mark.parametrize("dt", FLOATS)
def test_signs_and_roundings_to_integers(dt):
    """Language case 9."""
    def one(kind, *args):
        return float(elementwise(kind, [[a] for a in args], [dt] * len(args), dt)[0])

    def signed(x):
        return (x, math.copysign(1, x))
    assert signed(one("add", -0.0, 0.0)) == (0.0, 1)
    assert signed(one("neg", 0.0)) == (0.0, -1)
    assert signed(one("floor", -0.0)) == (0.0, -1)
    assert signed(one("ceil", -0.5)) == (0.0, -1)
    assert (one("floor", -1.5), one("ceil", 1.5), one("abs", -2.0)) == (-2.0, 2.0, 2.0)
    assert math.isnan(one("sub", math.inf, math.inf)) and math.isnan(one("mul", math.inf, 0.0))
    assert math.isnan(one("div", 0.0, 0.0))
    if dt == "f32":
        big = np.float32(1) + np.float32(2 ** 24)
        assert one("sub", one("add", 1.0, 2.0 ** 24), 2.0 ** 24) == float(big - np.float32(2 ** 24)) == 0.0


def test_e4m3fn_has_no_infinity():
    """Decision 20."""
    def one(kind, *args):
        return float(elementwise(kind, [[a] for a in args], ["f8e4m3fn"] * len(args), "f8e4m3fn")[0])
    assert math.isnan(one("add", 448.0, 448.0)) and math.isnan(one("div", 1.0, 0.0))
    assert math.isnan(one("mul", 448.0, -2.0))
    assert one("add", 448.0, 16.0) == 448.0


def test_comparisons_with_nan():
    for dt in FLOATS:
        a, b = [math.nan, 1.0, -0.0], [1.0, math.nan, 0.0]
        wants = {"eq": [0, 0, 1], "ne": [1, 1, 0], "lt": [0, 0, 0], "le": [0, 0, 1], "gt": [0, 0, 0], "ge": [0, 0, 1]}
        for kind, want in wants.items():
            assert elementwise(kind, (a, b), (dt, dt), "bool").tolist() == [bool(w) for w in want]


def test_approximate_forms():
    """Language case 20: the special cases of the approximate contracts."""
    def div(a, b, **attrs):
        return float(elementwise("div", ([a], [b]), ("f32", "f32"), "f32", approximate=True, **attrs)[0])
    assert math.copysign(1, div(2.0 ** 127, 2.0 ** 127)) == 1 and div(2.0 ** 127, 2.0 ** 127) == 0
    assert math.copysign(1, div(-1.0, 2.0 ** 127)) == -1 and div(-1.0, 2.0 ** 127) == 0
    assert math.isnan(div(math.inf, 2.0 ** 127))
    assert div(1.0, 2.0 ** 126) == 2.0 ** -126 and div(1.0, math.inf) == 0
    assert math.copysign(1, div(-(2.0 ** -149), 1.0, ftz=True)) == -1 and div(-(2.0 ** -149), 1.0, ftz=True) == 0


def test_narrow_patterns_are_what_they_say():
    for dt in NARROW:
        for p in (0, 1, 0x38, 0x7F if dt.startswith("f8") else 0x7FFF):
            negative, want = value_of(p, dt)
            assert agrees(from_bits([p], dt).astype(np.float64)[0], want, negative)


@pytest.mark.parametrize("dt", FLOATS)
def test_one_element_is_as_good_as_many(dt, rng):
    """The reference has a road of its own for the fma of scalars."""
    from intent_numba.reference.exact import fma
    from intent_numba.reference.operations import NUMPY
    tiny, top = (math.ldexp(1.0, -1074), 1.7e308) if dt == "f64" else (math.ldexp(1.0, -149), 3.3e38)
    limits = np.array([0.0, -0.0, tiny, -tiny, top, -top, 1.0, math.inf, -math.inf, math.nan])
    with np.errstate(all="ignore"):
        special = np.stack([g.ravel() for g in np.meshgrid(limits, limits, limits)])
        a, b, c = (np.concatenate([s.astype(ARRAYS[dt]), sample(dt, rng, 300)]).astype(NUMPY[dt]) for s in special)
        c[1000::2] = -(a * b)[1000::2]
        c = c.astype(ARRAYS[dt]).astype(NUMPY[dt])
        many = fma(a, b, c, dt)
        one = [fma(x, y, z, dt) for x, y, z in zip(a, b, c)]
    for x, y, z, m, o in zip(a, b, c, many, one):
        assert o.dtype == many.dtype and (np.isnan(m) and np.isnan(o) or m == o and np.signbit(m) == np.signbit(o)), (x, y, z, m, o)
