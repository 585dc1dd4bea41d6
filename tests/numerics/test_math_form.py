"""Are the programs what every target relies on: primitives only, one dtype at a time, no f64 inside f32, of bounded length?"""
from __future__ import annotations

import pytest

from intent_numba import math

BINARY = {"add", "sub", "mul", "div", "and_", "or_", "xor", "shl", "shr", "tdiv", "trem"}
UNARY = {"neg", "abs", "sqrt", "floor", "ceil", "rint", "not_"}
TESTS = {"eq", "ne", "lt", "le", "gt", "ge"}
WIDTH = {"f32": 32, "i32": 32, "u32": 32, "f64": 64, "i64": 64, "u64": 64}


class Recorder:
    """An operations object whose values are dtypes: it checks every step and counts those that are not constants."""

    def __init__(self):
        self.steps, self.dtypes = 0, set()

    def _step(self, dt: str) -> str:
        self.steps += 1
        self.dtypes.add(dt)
        return dt

    def dt(self, x: str) -> str:
        return x

    def const(self, value, dt: str) -> str:
        assert isinstance(value, (int, float))
        return dt

    def fma(self, a, b, c):
        assert a == b == c
        return self._step(a)

    def select(self, c, a, b):
        assert c == "bool" and a == b
        return self._step(a)

    def cast(self, x, dt: str):
        return self._step(dt)

    def bitcast(self, x, dt: str):
        assert WIDTH[x] == WIDTH[dt]
        return self._step(dt)

    def table(self, values, dt: str, index):
        assert isinstance(values, tuple) and index in ("i32", "i64")
        return self._step(dt)

    def __getattr__(self, name):
        if name in BINARY | TESTS:
            def binary(a, b):
                assert a == b
                return self._step("bool" if name in TESTS else a)
            return binary
        if name in UNARY:
            return lambda a: self._step(a)
        raise AttributeError(f"{name} is not a primitive")


BINARY_KINDS = ("pow", "floor_divide", "remainder", "maximum", "minimum", "maximum_num", "minimum_num")
OWN = {"f32": {"f32", "i32", "u32", "bool"}, "f64": {"f64", "i64", "u64", "bool"}}
LENGTH = {"exp": 25, "exp2": 25, "sigmoid": 50, "tanh": 40, "log": 35, "log1p": 50, "rsqrt": 15, "erf": 50,
          "lgamma": 440, "maximum": 12, "minimum": 12, "maximum_num": 12, "minimum_num": 12}
"""Steps of f32 programs; the first ones stand in hot loops."""


@pytest.mark.parametrize("dt", ["f32", "f64"])
@pytest.mark.parametrize("kind", math.FLOAT)
def test_float_programs(kind, dt):
    o = Recorder()
    assert math.program(kind, dt)(o, *[dt] * (2 if kind in BINARY_KINDS else 1)) == dt
    assert o.dtypes <= OWN[dt]
    if dt == "f32":
        assert o.steps <= LENGTH.get(kind, 200)


def test_random_bits_are_words():
    assert math.program("random_bits", "u64")(Recorder(), "u64", "u64") == "u32"


@pytest.mark.parametrize("kind", sorted(set(math.INTEGER) - {"random_bits"}))
def test_integer_programs(kind):
    for dt in math.integers.WIDTH:
        assert math.program(kind, dt)(Recorder(), dt, dt) == dt


def test_primitives_have_no_program():
    for kind in ("add", "fma", "floor", "sqrt", "select", "cast"):
        assert math.program(kind, "f32") is None
    assert math.program("exp", "i32") is None
