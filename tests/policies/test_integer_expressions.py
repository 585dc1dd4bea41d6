"""Random integer programs under ``range_preserving`` against Python's integers: where an intermediate wrap, cast or promotion decides.

The oracle is written from the contract's text and shares nothing with the compiler. A naive oracle, which wraps at the end only, must
disagree somewhere, or the programs would prove nothing.
"""
import random

import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from tests.support import check, numpy_dtype, out

DTYPES = ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64")
COUNT, EXPRESSIONS, SEEDS = 16, 24, range(6)


def width(dt):
    return int(dt[1:])


def wrap(value, dt):
    value %= 1 << width(dt)
    return value - (1 << width(dt)) if dt[0] == "i" and value >> (width(dt) - 1) else value


def promoted(a, b):
    """The narrowest dtype that holds both, None if there is none."""
    if a[0] == b[0]:
        return max(a, b, key=width)
    signed, unsigned = (a, b) if a[0] == "i" else (b, a)
    bits = max(width(signed), 2 * width(unsigned))
    return f"i{bits}" if bits <= 64 else None


def of_literal(value):
    return next(dt for dt in ("i32", "i64", "u64") if wrap(value, dt) == value)


class Expression:
    """``text`` of the program, ``dt`` by the contract, and how to compute it: exactly at every node, or naively."""

    def __init__(self, text, dt, compute):
        self.text, self.dt, self.compute = text, dt, compute

    def value(self, env, naive=False):
        result = self.compute(env, naive)
        return result if naive else wrap(result, self.dt)


def leaf(rng):
    if rng.random() < 0.3:
        value = rng.choice([0, 1, -1, 2, 7, 255, 65535, 2 ** 31, -2 ** 31, 2 ** 40, 2 ** 63])
        return Expression(f"({value})", of_literal(value), lambda env, naive: value)
    name = rng.choice(DTYPES)
    return Expression(f"x_{name}[:]", name, lambda env, naive: env[name])


ARITHMETIC = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "&": lambda a, b: a & b, "|": lambda a, b: a | b,
              "^": lambda a, b: a ^ b}
COMPARISONS = {"<": lambda a, b: a < b, "<=": lambda a, b: a <= b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b}


def expression(rng, depth):
    if depth == 0:
        return leaf(rng)
    a = expression(rng, depth - 1)
    kind = rng.random()
    if a.text[0] == "(" and a.text.strip("()-").isdigit():
        return a                                            # literals are folded by Python: not this test's matter
    if kind < 0.15:
        dt = rng.choice(DTYPES)
        return Expression(f"I.cast({a.text}, I.{dt})", dt, lambda env, naive: a.value(env, naive))
    if kind < 0.25:
        sign = rng.choice("-~")
        return Expression(f"({sign}{a.text})", a.dt, lambda env, naive: -a.value(env, naive) if sign == "-" else ~a.value(env, naive))
    if kind < 0.3:
        return Expression(f"I.abs({a.text})", a.dt, lambda env, naive: abs(a.value(env, naive)))
    if kind < 0.4:
        count, up = rng.randrange(min(width(a.dt), 32)), rng.random() < 0.5
        return Expression(f"({a.text} {'<<' if up else '>>'} {count})", a.dt,
                          lambda env, naive: a.value(env, naive) << count if up else a.value(env, naive) >> count)
    if kind < 0.45:
        exponent = rng.randrange(5)
        return Expression(f"({a.text} ** {exponent})", a.dt, lambda env, naive: a.value(env, naive) ** exponent)
    b = expression(rng, depth - 1)
    dt = promoted(a.dt, b.dt)
    if dt is None:
        return a
    if kind < 0.6:
        symbol, compare = rng.choice(list(COMPARISONS.items()))
        return Expression(f"(({a.text} {symbol} {b.text}) + 0)", "i32", lambda env,
                          naive: int(compare(a.value(env, naive), b.value(env, naive))))
    if kind < 0.7:
        which = rng.choice(["max", "min"])
        return Expression(f"{which}({a.text}, {b.text})", dt,
                          lambda env, naive: (max if which == "max" else min)(a.value(env, naive), b.value(env, naive)))
    symbol, apply = rng.choice(list(ARITHMETIC.items()))
    return Expression(f"({a.text} {symbol} {b.text})", dt, lambda env, naive: apply(a.value(env, naive), b.value(env, naive)))


def inputs(rng):
    found = {}
    for dt in DTYPES:
        low, high = (-(1 << width(dt) - 1), (1 << width(dt) - 1) - 1) if dt[0] == "i" else (0, (1 << width(dt)) - 1)
        found[dt] = [low, high, 0, 1, high - 1, *(rng.randint(low, high) for _ in range(COUNT - 5))]
        rng.shuffle(found[dt])
    return found


def program(seed):
    rng = random.Random(seed)
    return inputs(rng), [e for e in (expression(rng, rng.randrange(2, 5)) for _ in range(EXPRESSIONS)) if "x_" in e.text]


@pytest.mark.parametrize("seed", SEEDS)
def test_wrapping_at_every_node(seed):
    values, expressions = program(seed)
    params = [f"x_{dt}: I.In[I.{dt}, ('N',)]" for dt in DTYPES]
    params += [f"y{n}: I.Out[I.{e.dt}, ('N',)]" for n, e in enumerate(expressions)]
    body = "".join(f"    y{n}[:] = {e.text}\n" for n, e in enumerate(expressions))
    scope = {"I": I}
    exec(f"def k({', '.join(params)}):\n{body}", scope)
    args = [np.array(values[dt], numpy_dtype(dt)) for dt in DTYPES] + [out((COUNT,), e.dt) for e in expressions]

    def oracle(*_):
        rows = [{dt: values[dt][i] for dt in DTYPES} for i in range(COUNT)]
        return tuple(np.array([e.value(env) for env in rows], numpy_dtype(e.dt)) for e in expressions)
    check(intent.kernel(policy="range_preserving")(scope["k"]), args, oracle, layouts=("contiguous",))


def test_a_naive_oracle_disagrees():
    wrong = 0
    for seed in SEEDS:
        values, expressions = program(seed)
        for i in range(COUNT):
            env = {dt: values[dt][i] for dt in DTYPES}
            wrong += sum(wrap(e.value(env, naive=True), e.dt) != e.value(env) for e in expressions)
    assert wrong > 50
