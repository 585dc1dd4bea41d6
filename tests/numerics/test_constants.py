"""Operations on constants give what the same operations give on arrays: whatever is computed while compiling is computed right."""
import itertools

import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from intent_numba.kir.types import int_range
from tests.support import BACKEND, assert_same_bits, execute, interpret, numpy_dtype, out

from .generated import results
from .test_exact_conversions import FLOATS, INTEGERS

VALUES = {**{dt: (0, 1, -1, 3, *int_range(dt), int_range(dt)[1] // 3) for dt in INTEGERS},
          **{dt: (0.0, -0.0, 1.0, -1.5, 0.1, 448.0, -448.0, 3.3, 2.0 ** -9) for dt in FLOATS}}
BINARY = ("{} + {}", "{} - {}", "{} * {}", "I.maximum({}, {})", "I.minimum_num({}, {})")
ON_INTEGERS = ("{} & {}", "{} ^ {}", "{} // {}", "{} % {}")
ON_FLOATS = ("{} / {}", "I.fma({0}, {1}, {0})", "I.floor_divide({}, {})")
UNARY = ("-{}", "I.abs({})")


def literals(dt: str) -> list:
    low, high = int_range(dt) if dt in INTEGERS else (-1000, 1000)
    return [v for v in dict.fromkeys(map(repr, VALUES[dt])) if low <= float(v) <= high]


def expressions(dt: str):
    """(text over literals, the same over ``a`` and ``b``, the literals, result dtype)."""
    every = literals(dt)
    for v in every:
        for text in UNARY + (("~{}",) if dt in INTEGERS else ("I.sqrt(I.abs({}))", "I.floor({})")):
            yield text, (v,), dt
    for v, w in itertools.product(every, every[:5]):
        for text in BINARY + (ON_INTEGERS if dt in INTEGERS else ON_FLOATS):
            zero = float(w) == 0 and any(s in text for s in ("//", "%", "floor_divide"))
            if not zero and not ("//" in text and float(w) == -1):
                yield text, (v, w), dt
        yield "{} < {}", (v, w), "bool"
    for target in (*FLOATS, *INTEGERS, "bool"):
        for v in every:
            if target != dt and (dt in INTEGERS or target in FLOATS or target == "bool" or abs(float(v)) < 100 and float(v) >= 0):
                yield f"I.cast({{}}, I.{target})", (v,), target
            if target not in ("bool", dt):
                yield f"I.saturating_cast({{}}, I.{target})", (v,), target


@pytest.mark.parametrize("dt", ["i8", "u16", "i64", "f8e4m3fn", "bf16", "f32"])
def test_a_part(dt):
    check_constants(dt, list(expressions(dt))[::7])


@pytest.mark.nightly
@pytest.mark.parametrize("dt", [*FLOATS, *INTEGERS])
def test_all(dt):
    check_constants(dt, list(expressions(dt)))


def check_constants(dt, found):
    by_text: dict = {}
    for n, (text, args, result) in enumerate(found):
        by_text.setdefault((text, result), []).append((n, args))
    wants: dict = {}
    for arity in (1, 2):                                            # the same on arrays, which other tests hold
        tables = {k: v for k, v in by_text.items() if len(v[0][1]) == arity}
        rows = sorted({args for v in tables.values() for _, args in v})
        columns = {name: (np.array([_number(r[i], dt) for r in rows], numpy_dtype(dt)), dt) for i, name in enumerate("ab"[:arity])}
        _, got = next(iter(results(columns, [(text.format(*"ab"[:arity]), result) for text, result in tables])))
        for ((text, result), uses), values in zip(tables.items(), got):
            for n, args in uses:
                wants[n] = values[rows.index(args)]
    kinds = sorted({result for _, _, result in found})
    places = {kind: [n for n, f in enumerate(found) if f[2] == kind] for kind in kinds}
    lines = []
    for kind, members in places.items():
        for k, n in enumerate(members):
            text, args, _ = found[n]
            lines.append(f"    y_{kind}[{k}] = {text.format(*(f'I.cast({v}, I.{dt})' for v in args))}\n")
    scope = {"I": I}
    exec("def constants(" + ", ".join(f"y_{kind}: I.Out[I.{kind}, ({len(members)},)]" for kind, members in places.items()) + "):\n"
         + "".join(lines), scope)
    kernel = intent.kernel(scope["constants"])
    args = [out(len(members), kind) for kind, members in places.items()]
    with np.errstate(all="ignore"):
        roads = [("reference", interpret(kernel, args))] + ([("compiled", execute(kernel, args))] if BACKEND != "reference" else [])
    for road, got in roads:
        for (kind, members), values in zip(places.items(), got):
            want = np.array([wants[n] for n in members], values.dtype)
            try:
                assert_same_bits(values, want, f"{road}, {kind}")
            except AssertionError as error:
                wrong = [(found[n][:2], v, w) for n, v, w in zip(members, values, want) if v != w][:3]
                raise AssertionError(f"{error}: {wrong}") from None


def _number(text: str, dt: str):
    return int(text) if dt in INTEGERS else float(text)
