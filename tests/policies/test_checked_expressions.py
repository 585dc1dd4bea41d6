"""Random i32 programs under ``checked`` against Python's integers: the exact value, or OverflowError if any node leaves i32."""
import random

import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from tests.support import check, interpret, out

LOW, HIGH = -2 ** 31, 2 ** 31 - 1
OPERATIONS = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b}


def expression(rng, depth):
    """(text, value of an environment); the value raises OverflowError."""
    if depth == 0:
        name = rng.choice("abc")
        return f"{name}[:]", lambda env: env[name]
    left, right = expression(rng, depth - 1), expression(rng, rng.randrange(depth))
    if rng.random() < 0.25:
        value = rng.choice([0, 1, -3, 46341, HIGH, LOW])
        right = f"({value})", lambda env: value
    if rng.random() < 0.1:
        exponent = rng.randrange(4)
        return f"({left[0]} ** {exponent})", lambda env: narrowed(left[1](env) ** exponent)
    symbol, apply = rng.choice(list(OPERATIONS.items()))
    return f"({left[0]} {symbol} {right[0]})", lambda env: narrowed(apply(left[1](env), right[1](env)))


def narrowed(value):
    if not LOW <= value <= HIGH:
        raise OverflowError
    return value


@pytest.mark.parametrize("seed", range(10))
def test_exact_or_overflow(seed):
    rng = random.Random(seed)
    expressions = [expression(rng, rng.randrange(1, 4)) for _ in range(6)]
    scope = {"I": I}
    outs = ", ".join(f"y{n}: I.Out[I.i32, ('N',)]" for n in range(len(expressions)))
    exec(f"def k(a: I.In[I.i32, ('N',)], b: I.In[I.i32, ('N',)], c: I.In[I.i32, ('N',)], {outs}):\n"
         + "".join(f"    y{n}[:] = {text}\n" for n, (text, _) in enumerate(expressions)), scope)
    kernel = intent.kernel(policy="checked")(scope["k"])
    for size in (3, 40, 2000, 46000, HIGH):
        columns = {name: [rng.randint(-size, size) for _ in range(37)] for name in "abc"}
        args = [np.array(columns[name], np.int32) for name in "abc"]
        results = [out((37,), np.int32)] * len(expressions)
        rows = [dict(zip(columns, row)) for row in zip(*columns.values())]
        try:
            want = tuple(np.array([value(env) for env in rows], np.int32) for _, value in expressions)
        except OverflowError:
            with pytest.raises(OverflowError):
                interpret(kernel, [*args, *results])
            with pytest.raises(OverflowError):
                kernel(*args, *(np.zeros(37, np.int32) for _ in expressions))
        else:
            check(kernel, [*args, *results], lambda *_, want=want: want, layouts=("mixed",))
