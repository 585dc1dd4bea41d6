"""Do random programs give the same bits compiled and interpreted? Tensor programs on random shapes, dtypes and layouts; scalar
programs with control flow, which CPython itself must agree with as well."""
from __future__ import annotations

import random
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import intent_numba.language as I
from intent_numba import reference
from tests.support import BACKEND, assert_same_bits, compiled, execute, integers, interpret, kir_of, numpy_dtype, out, special_floats
from tests.support.arrays import LAYOUTS
from tests.support.compare import is_float

from .generate import Ordered, Rows, Scalars, Tensors, TypedScalars
from .settings import fuzz

EXTENTS = (0, 1, 2, 3, 5, 8, 17, 31, 32, 33, 40, 64, 65, 100)
SHAPES_PER_PROGRAM = 3


def load(source):
    """The kernel of a program's text, as exec would make it in a session without a source file."""
    scope: dict = {"__name__": "fuzz"}
    exec(compile(source, "<fuzz>", "exec"), scope)
    return scope["kernel"]


def contents(rng, dt, shape):
    """An array of random contents, some of them special."""
    return np.asarray(values(rng, dt, shape))


def values(rng, dt, shape):
    dtype = numpy_dtype(dt)
    if dt == "bool":
        return rng.random(shape) < 0.5
    if not is_float(np.zeros(0, dtype)):
        return integers(rng, shape, dt) if rng.random() < 0.5 else integers(rng, shape, dt, 0, 50)
    with np.errstate(all="ignore"):
        x = (rng.standard_normal(shape) * 10.0 ** rng.integers(-2, 3)).astype(dtype)
        if rng.random() < 0.3:
            special = special_floats(dt)
            where = rng.random(shape) < 0.1
            x = np.where(where, rng.choice(special, shape) if shape else special[3], x).astype(dtype)
    return x


def arguments(rng, parameters, M, N):
    extent = {"M": M, "N": N, "1": 1, "2": 2}
    args = []
    for access, _, dt, shape in parameters:
        if access == "scalar":
            args.append(bool(rng.random() < 0.5) if dt == "bool" else contents(rng, dt, (1,))[0])
        else:
            size = tuple(extent[e] for e in shape)
            args.append(out(size, dt) if access == "out" else contents(rng, dt, size))
    return args


def compare(program, args, layout):
    kernel = load(program.source)
    with np.errstate(all="ignore"):
        want = interpret(kernel, args)
    if BACKEND != "reference":
        for i, (g, w) in enumerate(zip(execute(kernel, args, layout=layout), want)):
            assert_same_bits(g, w, f"output {i}, layout {layout}")
    return kernel


def tensor_program(kind, rnd, steps, data_seed):
    program = kind(rnd).program(steps)
    rng = np.random.default_rng(data_seed)
    for _ in range(SHAPES_PER_PROGRAM):
        M, N = (int(rng.choice(EXTENTS)) for _ in range(2))
        layout = str(rng.choice([*LAYOUTS, "mixed"]))
        try:
            compare(program, arguments(rng, program.parameters, M, N), layout)
        except Exception as error:
            error.add_note(f"M = {M}, N = {N}, data seed {data_seed}\n{program.source}") if hasattr(error,
                                                                                                    "add_note") else print(program.source,
                                                                                                                           M, N)
            raise


@pytest.mark.parametrize("kind", [Tensors, Rows, Ordered])
@fuzz(0.08)
@given(st.randoms(use_true_random=False), st.integers(1, 14), st.integers(0, 2 ** 32 - 1))
def test_tensor_programs(kind, rnd, steps, data_seed):
    tensor_program(kind, rnd, steps, data_seed)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", [Tensors, Rows, Ordered])
@fuzz(0.08, factor=50)
@given(st.randoms(use_true_random=False), st.integers(1, 25), st.integers(0, 2 ** 32 - 1))
def test_many_tensor_programs(kind, rnd, steps, data_seed):
    tensor_program(kind, rnd, steps, data_seed)


def overlapping(rng, parameters, M, N):
    """Arguments whose views of one dtype lie in one block, overlapping at random; the blocks, and a maker of the arguments
    inside any copies of them."""
    extent = {"M": M, "N": N, "1": 1, "2": 2}
    sizes: dict = {}
    for access, _, dt, shape in parameters:
        if access != "scalar":
            sizes[dt] = max(sizes.get(dt, 0), int(np.prod([extent[e] for e in shape], dtype=np.int64)))
    blocks = {dt: contents(rng, dt, (n + n // 2 + 3,)) for dt, n in sizes.items()}
    recipes = []
    for access, _, dt, shape in parameters:
        size = tuple(extent[e] for e in shape or ())
        n = int(np.prod(size, dtype=np.int64))
        recipes.append((access, dt, size, int(rng.integers(0, len(blocks[dt]) - n + 1))
                        if access != "scalar" else contents(rng, dt, (1,))[0],
                        bool(rng.random() < 0.3)))

    def make(memory):
        args = []
        for access, dt, size, at, turned in recipes:
            if access == "scalar":
                args.append(bool(at) if dt == "bool" else at)
                continue
            flat = memory[dt][at:at + int(np.prod(size, dtype=np.int64))]
            args.append(flat.reshape(size[::-1]).T if turned else flat.reshape(size))
        return args

    return blocks, make


def overlap_program(kind, rnd, steps, data_seed):
    program = kind(rnd).program(steps)
    rng = np.random.default_rng(data_seed)
    kernel = load(program.source)
    for _ in range(SHAPES_PER_PROGRAM):
        M, N = (int(rng.choice(EXTENTS[:12])) for _ in range(2))
        blocks, make = overlapping(rng, program.parameters, M, N)
        try:
            want, got = ({dt: b.copy() for dt, b in blocks.items()} for _ in range(2))
            with np.errstate(all="ignore"):
                reference.run(kir_of(kernel), make(want))
            if BACKEND != "reference":
                compiled(kernel)(*make(got))
                for dt in blocks:
                    assert_same_bits(got[dt], want[dt], f"memory of {dt}")
        except Exception as error:
            error.add_note(f"M = {M}, N = {N}, data seed {data_seed}\n{program.source}") if hasattr(error,
                                                                                                    "add_note") else print(program.source,
                                                                                                                           M, N)
            raise


@pytest.mark.parametrize("kind", [Tensors, Ordered])
@fuzz(0.04)
@given(st.randoms(use_true_random=False), st.integers(1, 10), st.integers(0, 2 ** 32 - 1))
def test_tensor_programs_on_overlapping_views(kind, rnd, steps, data_seed):
    overlap_program(kind, rnd, steps, data_seed)


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
        kernel = load(source)
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
    rng = np.random.default_rng(data_seed)
    try:
        compare(program, arguments(rng, program.parameters, 1, int(rng.choice((0, 1, 7, 33, 40)))), str(rng.choice(LAYOUTS)))
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


def test_generators_are_deterministic():
    assert Tensors(random.Random(7)).program(9).source == Tensors(random.Random(7)).program(9).source
    assert Scalars(random.Random(7)).program(4) == Scalars(random.Random(7)).program(4)
