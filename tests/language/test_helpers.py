"""Helpers: Python's binding rules, evaluation order, Constexpr parameters, captured values, njit functions, no source file."""
import numba
import numpy as np
import pytest

import intent_numba.language as I
from intent_numba.errors import IntentTypeError
from intent_numba.frontend import build_kernel
from intent_numba.kir import walk
from intent_numba.language.functions import Helper

from .front import f32, interpret

FACTOR = 3
HALF = 0.5


@Helper
def affine(v, scale, *, shift=1, sign: I.Constexpr[int] = 1):
    return v * scale + shift * sign


@Helper
def tick(log, value):
    log[0] = log[0] * 10 + value
    return value


@Helper
def weighted(a, b, *, c, d=HALF):
    return a - b, I.record(c=c, d=d)


def test_arguments_follow_the_python_signature():
    def kernel(x: I.In[I.f32, (2,)], y: I.Out[I.f32, (3,)]):
        y[0] = affine(x[0], x[1])
        y[1] = affine(scale=x[1], v=x[0], shift=2, sign=-1)
        y[2] = affine(x[0], x[1], sign=FACTOR)
    y = np.zeros(3, "f4")
    interpret(kernel, f32(2, 5), y)
    assert y.tolist() == [11, 8, 13]


def test_arguments_are_evaluated_in_source_order():
    @Helper
    def two(a, b):
        return a * 100 + b

    def kernel(y: I.Out[I.i32, (1,)]):
        log = I.buffer((1,), I.i32, init=0)
        one = I.cast(1, I.i32)
        t = two(b=tick(log, one), a=tick(log, one + 1))
        y[0] = log[0] * 1000 + t
    y = np.zeros(1, "i4")
    interpret(kernel, y)
    assert y[0] == 12 * 1000 + 201


def test_products_come_back_from_helpers():
    def kernel(x: I.In[I.f32, (2,)], y: I.Out[I.f32, (3,)]):
        difference, rest = weighted(x[0], x[1], c=x[0])
        y[0] = difference
        y[1] = rest.c
        y[2] = rest.c * I.cast(rest.d, I.f32)
    y = np.zeros(3, "f4")
    interpret(kernel, f32(2, 5), y)
    assert y.tolist() == [-3, 2, 1]


def test_captured_constants_behave_like_literals():
    scale = 2

    def kernel(x: I.In[I.f32, ("N",)], k: I.In[I.i32, ("N",)], y: I.Out[I.f32, ("N",)], z: I.Out[I.i32, ("N",)]):
        y[:] = x[:] * scale + HALF
        z[:] = k[:] * scale
    y, z = np.zeros(2, "f4"), np.zeros(2, "i4")
    interpret(kernel, f32(1, 2), np.array([3, 4], "i4"), y, z)
    assert y.tolist() == [2.5, 4.5] and z.tolist() == [6, 8]


def test_a_literal_argument_is_bound_to_a_name():
    @Helper
    def plus(v, w):
        return v + w

    def integer(x: I.In[I.f32, (1,)], y: I.Out[I.f32, (1,)]):
        y[0] = plus(x[0], 2)

    def floating(x: I.In[I.f32, (1,)], y: I.Out[I.f32, (1,)]):
        y[0] = plus(x[0], 2.5)
    y = np.zeros(1, "f4")
    interpret(integer, f32(1), y)
    assert y[0] == 3
    with pytest.raises(IntentTypeError, match=r"write I.cast\(2.5, I.f32\)"):
        build_kernel(floating)


def test_helpers_may_be_passed_on_and_take_views():
    @Helper
    def square(v):
        return v * v

    @Helper
    def apply(fn, source, row):
        return fn(source[row, :])

    def kernel(x: I.In[I.f32, ("M", "N")], y: I.Out[I.f32, ("M", "N")]):
        for row in I.parallel(I.domain(0, x.shape[0])):
            y[row, :] = apply(square, x, row)
    x = np.arange(6, dtype="f4").reshape(2, 3)
    y = np.zeros_like(x)
    interpret(kernel, x, y)
    assert (y == x * x).all()


@numba.njit
def collatz(n):
    steps = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def test_an_njit_function_is_a_call():
    def kernel(x: I.In[I.i64, ("N",)], y: I.Out[I.i64, ("N",)]):
        for i in I.parallel(I.domain(0, x.shape[0])):
            y[i] = collatz(x[i])
    kernel_ir = build_kernel(kernel)
    (call,) = [op for op in walk(kernel_ir.body) if op.kind == "call"]
    assert kernel_ir.externs[call.attrs["fn"]] is collatz
    assert call.result.type.dt == "i64"


def test_no_source_file_is_needed():
    scope = {"I": I}
    exec("def kernel(x: I.In[I.f32, ('N',)], y: I.Out[I.f32, ('N',)]):\n    y[:] = x[:] * 2\n", scope)
    y = np.zeros(2, "f4")
    interpret(scope["kernel"], f32(1, 2), y)
    assert y.tolist() == [2, 4]


def test_string_annotations_of_an_enclosing_function():
    def make(real):
        scope = {"I": I, "__name__": "elsewhere"}
        text = ("from __future__ import annotations\n"
                "def outer(real):\n"
                "    def kernel(x: I.In[real, ('N',)], y: I.Out[real, ('N',)]):\n"
                "        y[:] = x[:] + 1\n"
                "    resolve(kernel)\n"
                "    return kernel\n")
        from intent_numba.language.signature import resolve_signature
        scope["resolve"] = resolve_signature
        exec(text, scope)
        return scope["outer"](real)
    y = np.zeros(1, "f8")
    interpret(make(I.f64), np.array([1.0]), y)
    assert y[0] == 2


def test_redefinition_of_the_same_name():
    results = []
    for factor in (2, 3):
        scope = {"I": I, "FACTOR": factor}
        exec("def kernel(x: I.In[I.f32, (1,)], y: I.Out[I.f32, (1,)]):\n    y[0] = x[0] * FACTOR\n", scope)
        y = np.zeros(1, "f4")
        interpret(scope["kernel"], f32(5), y)
        results.append(float(y[0]))
    assert results == [10, 15]


def test_star_arguments_tuples_and_none_defaults():
    @Helper
    def three(a, b, c):
        return a + b + c

    @Helper
    def maybe(v, w=None):
        if w is None:
            return v
        return v + w

    def kernel(x: I.In[I.f32, ("M", "N")], y: I.Out[I.f32, ("M", "N")], s: I.Out[I.i32, (3,)]):
        pair = (x[0, 0], x[0, 1])
        y[:, :] = I.full(x.shape[:1] + (1,), 2, I.f32) + I.zeros(x.shape, I.f32) + three(*pair, x[1, 1])
        s[0] = len(x.shape)
        s[1] = maybe(I.cast(3, I.i32))
        s[2] = maybe(I.cast(3, I.i32), 4)
    x = np.arange(6, dtype="f4").reshape(2, 3)
    y, s = np.zeros_like(x), np.zeros(3, "i4")
    interpret(kernel, x, y, s)
    assert (y == 2 + 0 + 1 + 4).all() and s.tolist() == [2, 3, 7]


def test_two_njit_functions_of_one_name_stay_apart():
    def make(k):
        @numba.njit
        def f(a):
            return a + k
        return f
    one, two = make(1), make(2)

    def kernel(x: I.f64, y: I.Out[I.f64, (2,)]):
        y[0] = one(x)
        y[1] = two(x)
    assert list(build_kernel(kernel).externs.values()) == [one, two]
