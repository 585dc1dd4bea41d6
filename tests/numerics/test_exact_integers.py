"""Integer operations, compiled and interpreted, against Python's integers: all pairs of 8 bits, dense edges of the other widths."""
import itertools

import numpy as np
import pytest

from intent_numba.kir.types import BITS, SIGNED, int_range

from .generated import from_patterns, patterns, results
from .test_integers import BINARY, COMPARE, INTEGERS, UNARY

TEXT = {"add": "a + b", "sub": "a - b", "mul": "a * b", "floordiv": "a // b", "mod": "a % b", "power": "a ** b", "and": "a & b",
        "or": "a | b", "xor": "a ^ b", "shl": "a << b", "shr": "a >> b", "neg": "-a", "not": "~a", "abs": "I.abs(a)", "eq": "a == b",
        "ne": "a != b", "lt": "a < b", "le": "a <= b", "gt": "a > b", "ge": "a >= b",
        **{k: f"I.{k}(a, b)" for k in ("maximum", "minimum", "maximum_num", "minimum_num")}}


def members(dt: str, rng) -> list[int]:
    """Every number of 8 bits; else powers of two over the whole width with their neighbours, thirds, and random ones."""
    low, high = int_range(dt)
    n = BITS[dt]
    if n == 8:
        return list(range(low, high + 1))
    near = {(1 << k) + d for k in (0, 1, 2, 3, n // 4, n // 2 - 1, n // 2, n // 2 + 1, n - 3, n - 2, n - 1, n) for d in (-1, 0, 1)}
    near |= {low, low + 1, high, high - 1, high // 3, 10, 100, n - 1, n}
    near |= {int(v) >> int(s) for v, s in zip(rng.integers(0, 1 << 63, 8), rng.integers(64 - n, 63, 8))}
    return sorted({s * v for v in near for s in (1, -1) if low <= s * v <= high})


def defined(kind: str, a: int, b: int, dt: str) -> bool:
    """Whether the language gives a value (decision 11)."""
    if kind in ("shl", "shr"):
        return 0 <= b < BITS[dt]
    return kind not in ("floordiv", "mod") or b != 0 and not (kind == "floordiv" and b == -1 and a == int_range(dt)[0])


def compare(inputs: dict, lines, wants, names) -> None:
    """``wants``: lists of Python integers, None where any value will do."""
    for road, got in results(inputs, lines, ("contiguous", "reversed")):
        for (text, dt), g, want, name in zip(lines, got, wants, names):
            bits = patterns(g).tolist()
            mask = (1 << 8 * g.dtype.itemsize) - 1
            wrong = [i for i, (v, w) in enumerate(zip(bits, want)) if w is not None and (v ^ w) & mask]
            at = {n: int(x[wrong[0]]) for n, (x, _) in inputs.items()} if wrong else None
            assert not wrong, f"{road}: {text} of {dt} with {at} gives {g[wrong[0]]}, want {want[wrong[0]]} ({len(wrong)} such)"


@pytest.mark.parametrize("dt", INTEGERS)
def test_all_operations(dt, rng):
    low, high = int_range(dt)
    pairs = list(itertools.product(members(dt, rng), repeat=2))
    pairs += [(a, b) for a in members(dt, rng) for b in range(BITS[dt])] if BITS[dt] > 8 else []
    a, b = (from_patterns(np.array([v % (1 << 64) for v in side], np.uint64), dt) for side in zip(*pairs))
    kinds = [*BINARY, *UNARY, *COMPARE]
    rules = {**BINARY, **{k: lambda x, y, dt, f=f: f(x, dt) for k, f in UNARY.items()},
             **{k: lambda x, y, dt, f=f: int(f(x, y)) for k, f in COMPARE.items()}}
    wants = [[rules[k](x, y, dt) if defined(k, x, y, dt) else None for x, y in pairs] for k in kinds]
    compare({"a": (a, dt), "b": (b, dt)}, [(TEXT[k], "bool" if k in COMPARE else dt) for k in kinds], wants, kinds)


@pytest.mark.parametrize("dt", ["i8", "u8", "i32", "u64"])
def test_literal_operands(dt, rng):
    """A known divisor, shift or exponent may be compiled another way; so may a known left side."""
    low, high = int_range(dt)
    numbers = members(dt, rng)
    literals = sorted({v for v in (1, 2, 3, 7, 10, 64, 100, high, high - 1, -1, -2, -3, low) if low <= v <= high})
    lines, wants, names = [], [], []
    for kind, v in itertools.product(("floordiv", "mod", "mul", "shl", "shr", "power"), literals):
        legal = {"shl": v >= 0, "shr": v >= 0, "power": 0 <= v <= 10, "mul": v in (3, low)}.get(kind, True)
        if legal and any(defined(kind, x, v, dt) for x in numbers):
            lines.append((TEXT[kind].replace("b", f"({v})"), dt))
            wants.append([BINARY[kind](x, v, dt) if defined(kind, x, v, dt) else None for x in numbers])
            names.append(kind)
    for kind, v in itertools.product(("floordiv", "mod", "power"), (low, 1, 2, high)):
        lines.append((TEXT[kind].replace("a", f"({v})").replace("b", "a"), dt))
        wants.append([BINARY[kind](v, x, dt) if defined(kind, v, x, dt) else None for x in numbers])
        names.append(kind)
    array = from_patterns(np.array([v % (1 << 64) for v in numbers], np.uint64), dt)
    compare({"a": (array, dt)}, lines, wants, names)
    assert {"floordiv", "mod", "power", "shl", "shr"} <= set(names) and (dt in SIGNED) == any(v < 0 for v in literals)
