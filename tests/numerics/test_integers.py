"""Integer semantics against Python integers modulo 2^N: exhaustive for 8 bits, on edges for the other widths."""
import itertools

import numpy as np
import pytest

from intent_numba.kir.types import BITS, SIGNED, int_range

from .build import elementwise

INTEGERS = ("i8", "i16", "i32", "i64", "index", "u8", "u16", "u32", "u64")


def wrap(x: int, dt: str) -> int:
    low, _ = int_range(dt)
    return (x - low) % (1 << BITS[dt]) + low


def pattern(x: int, dt: str) -> int:
    return x % (1 << BITS[dt])


def floordiv(a, b, dt):
    return 0 if b == 0 else wrap(a // b, dt)


def mod(a, b, dt):
    return 0 if b == 0 else a % b


def power(a, b, dt):
    return wrap(pow(a, pattern(b, "u64"), 1 << BITS[dt]), dt)


BINARY = {
    "add": lambda a, b, dt: wrap(a + b, dt), "sub": lambda a, b, dt: wrap(a - b, dt), "mul": lambda a, b, dt: wrap(a * b, dt),
    "floordiv": floordiv, "mod": mod, "power": power,
    "shl": lambda a, b, dt: wrap(a << b % BITS[dt], dt), "shr": lambda a, b, dt: a >> b % BITS[dt],
    "and": lambda a, b, dt: wrap(pattern(a, dt) & pattern(b, dt), dt), "or": lambda a, b, dt: wrap(pattern(a, dt) | pattern(b, dt), dt),
    "xor": lambda a, b, dt: wrap(pattern(a, dt) ^ pattern(b, dt), dt),
    "maximum": lambda a, b, dt: max(a, b), "minimum": lambda a, b, dt: min(a, b),
    "maximum_num": lambda a, b, dt: max(a, b), "minimum_num": lambda a, b, dt: min(a, b),
}
UNARY = {"neg": lambda a, dt: wrap(-a, dt), "abs": lambda a, dt: wrap(abs(a), dt), "not": lambda a, dt: wrap(~a, dt)}
COMPARE = {"eq": int.__eq__, "ne": int.__ne__, "lt": int.__lt__, "le": int.__le__, "gt": int.__gt__, "ge": int.__ge__}


def edges(dt: str) -> list[int]:
    low, high = int_range(dt)
    n = BITS[dt]
    near = [0, 1, 2, 3, 7, 10, n - 1, n, n + 1, 100, 1 << n // 2, (1 << n // 2) - 1, high, high - 1, high // 3]
    return sorted({x for x in near + [-x for x in near] + [low, low + 1] if low <= x <= high})


def members(dt: str) -> list[int]:
    low, high = int_range(dt)
    return list(range(low, high + 1)) if BITS[dt] == 8 else edges(dt)


@pytest.mark.parametrize("dt", INTEGERS)
@pytest.mark.parametrize("kind", BINARY)
def test_binary(kind, dt):
    a, b = (list(x) for x in zip(*itertools.product(members(dt), repeat=2)))
    got = elementwise(kind, (a, b), (dt, dt), dt).tolist()
    want = [BINARY[kind](x, y, dt) for x, y in zip(a, b)]
    assert got == want


@pytest.mark.parametrize("dt", INTEGERS)
@pytest.mark.parametrize("kind", UNARY)
def test_unary(kind, dt):
    a = members(dt)
    assert elementwise(kind, (a,), (dt,), dt).tolist() == [UNARY[kind](x, dt) for x in a]


@pytest.mark.parametrize("dt", INTEGERS)
@pytest.mark.parametrize("kind", COMPARE)
def test_comparison(kind, dt):
    a, b = (list(x) for x in zip(*itertools.product(members(dt), repeat=2)))
    assert elementwise(kind, (a, b), (dt, dt), "bool").tolist() == [COMPARE[kind](x, y) for x, y in zip(a, b)]


@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("target", INTEGERS)
def test_casts(source, target):
    a = members(source)
    assert elementwise("cast", (a,), (source,), target).tolist() == [wrap(x, target) for x in a]
    low, high = int_range(target)
    assert elementwise("saturating_cast", (a,), (source,), target).tolist() == [min(max(x, low), high) for x in a]
    if BITS[source] == BITS[target]:
        assert elementwise("bitcast", (a,), (source,), target).tolist() == [wrap(x, target) for x in a]


@pytest.mark.parametrize("dt", INTEGERS)
def test_bool_casts(dt):
    a = members(dt)
    assert elementwise("cast", (a,), (dt,), "bool").tolist() == [x != 0 for x in a]
    assert elementwise("cast", ([False, True],), ("bool",), dt).tolist() == [0, 1]


def test_bool_logic():
    a, b = [False, False, True, True], [False, True, False, True]
    for kind, want in (("and", [0, 0, 0, 1]), ("or", [0, 1, 1, 1]), ("xor", [0, 1, 1, 0]), ("eq", [1, 0, 0, 1]), ("ne", [0, 1, 1, 0])):
        assert elementwise(kind, (a, b), ("bool", "bool"), "bool").tolist() == [bool(x) for x in want]
    assert elementwise("not", (a,), ("bool",), "bool").tolist() == [True, True, False, False]


def test_division_follows_python():
    """Language case 5."""
    a, b = [-7, -7, 7, 7], [3, -3, -3, 3]
    assert elementwise("floordiv", (a, b), ("i8", "i8"), "i8").tolist() == [-3, 2, -3, 2]
    assert elementwise("mod", (a, b), ("i8", "i8"), "i8").tolist() == [2, -1, -2, 1]
    assert elementwise("mod", ([-128], [-1]), ("i8", "i8"), "i8").tolist() == [0]
    for signed in (dt for dt in INTEGERS if dt in SIGNED):
        low, _ = int_range(signed)
        assert elementwise("floordiv", ([low, 5], [-1, 0]), (signed, signed), signed).tolist() == [low, 0]


@pytest.mark.parametrize("dt", INTEGERS)
@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min", "and", "or", "xor"])
def test_reductions_are_exact(kind, dt, rng):
    from functools import reduce

    from .build import structured
    low, high = int_range(dt)
    x = rng.integers(low, high, 50, dtype=np.uint64 if low == 0 else np.int64, endpoint=True)
    operate = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum"}.get(kind, kind)
    want = reduce(lambda a, b: BINARY[operate](a, b, dt), x.tolist())
    assert structured("reduce", x, dt, 0, kind=kind).tolist() == want
