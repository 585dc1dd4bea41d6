"""Do random scalar programs with control flow give the same bits compiled and interpreted? CPython itself must agree where it can."""
from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import intent_numba.language as I
from tests.support import BACKEND, assert_same_bits, execute, interpret, out

from .execution import check_program, load
from .scalars import Scalars, TypedScalars
from .settings import fuzz

PLAIN = SimpleNamespace(domain=range, parallel=lambda d: d, cast=lambda v, dt: int(v), i64=None, maximum=max,
                        buffer=lambda shape, dt, init: [init] * shape[0], In=I.In, Out=I.Out)
"""What the language's names mean to CPython in a scalar program over small integers."""


def by_python(source, x):
    body = source[source.index("def kernel"):].replace('x: I.In[I.i64, ("N",)], y: I.Out[I.i64, ("N", 4)]', "x, y")
    scope = {"I": PLAIN}
    exec(compile(body, "<python>", "exec"), scope)
    y = out((len(x), 4), "i64")
    result = np.empty(y.shape, np.int64)
    result.view(np.uint8)[...] = 0xA5

    class Reader:
        shape = x.shape

        def __getitem__(self, i):
            return int(x[i])

    scope["kernel"](Reader(), result)
    return result


def scalar_program(rnd, budget):
    source = Scalars(rnd).program(budget)
    x = np.array([0, 1, 2, 5, 9, 63, 500, 1023, 77, 8], np.int64)
    try:
        kernel = load(source).kernel
        want = by_python(source, x)
        args = [x, out((len(x), 4), "i64")]
        assert_same_bits(interpret(kernel, args)[0], want, "reference against Python")
        if BACKEND != "reference":
            assert_same_bits(execute(kernel, args, layout="strided")[0], want, "compiled against Python")
    except Exception as error:
        error.add_note(source) if hasattr(error, "add_note") else print(source)
        raise


def typed_program(rnd, budget, data_seed):
    program = TypedScalars(rnd).program(budget)
    try:
        check_program(program, data_seed, rehearse=False)
    except Exception as error:
        error.add_note(program.source) if hasattr(error, "add_note") else print(program.source)
        raise


@fuzz(0.05)
@given(st.randoms(use_true_random=False), st.integers(0, 5), st.integers(0, 2 ** 32 - 1))
def test_typed_scalar_programs(rnd, budget, data_seed):
    typed_program(rnd, budget, data_seed)


@fuzz(0.05)
@given(st.randoms(use_true_random=False), st.integers(0, 6))
def test_scalar_programs(rnd, budget):
    scalar_program(rnd, budget)


@pytest.mark.nightly
@fuzz(0.1, factor=50)
@given(st.randoms(use_true_random=False), st.integers(0, 8))
def test_many_scalar_programs(rnd, budget):
    scalar_program(rnd, budget)
