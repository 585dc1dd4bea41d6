"""Atomics, combining scatters and histograms as task programs: which axes are tasks, and the plain executor against the reference."""
import numpy as np
import pytest
from run_program import run_program

import intent_numba as intent
import intent_numba.language as I
from intent_numba import reference
from intent_numba.frontend import build_kernel
from intent_numba.lowering import lower
from intent_numba.task import For, Stage
from intent_numba.task.parse import parse_program
from intent_numba.task.text import print_program

RNG = np.random.default_rng(2)


def lowered(kernel):
    kir = build_kernel(kernel.pyfunc)
    program = lower(kir)
    text = print_program(program)
    assert print_program(parse_program(text)) == text
    return kir, program


def both(kernel, *args):
    """Executor and reference on copies; gives the task program."""
    kir, program = lowered(kernel)
    mine, theirs = ([np.array(a) if isinstance(a, np.ndarray) else a for a in args] for _ in range(2))
    run_program(program, mine)
    reference.run(kir, theirs)
    for a, b in zip(mine, theirs):
        if isinstance(a, np.ndarray):
            assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    return program


def tasks(program) -> list[int]:
    """Task axes of each stage at the top."""
    return [len(s.tasks) for s in program.body if isinstance(s, Stage)]


@intent.kernel
def count(x: I.In[I.i64, ("N",)], y: I.InOut[I.i32, ("K",)], old: I.Out[I.i32, ("N",)]):
    for i in I.parallel(I.domain(0, x.shape[0])):
        old[i] = I.atomic.add(y[x[i]], 1, order="relaxed")


def test_atomics_are_tasks():
    program = both(count, RNG.integers(0, 4, 50), np.zeros(4, np.int32), np.zeros(50, np.int32))
    assert tasks(program) == [1]


@intent.kernel
def two_rounds(x: I.In[I.i64, ("N",)], y: I.InOut[I.i32, ("K",)]):
    N, = x.shape
    for i in I.parallel(I.domain(0, N)):
        I.atomic.add(y[x[i]], 1, order="relaxed")
    for i in I.parallel(I.domain(0, N)):
        I.atomic.max(y[x[i]], 5, order="relaxed")


def test_statements_are_stages_of_their_own():
    assert tasks(both(two_rounds, RNG.integers(0, 4, 50), np.zeros(4, np.int32))) == [1, 1]


@intent.kernel
def float_sum(x: I.In[I.i64, ("N",)], v: I.In[I.f32, ("N",)], y: I.InOut[I.f32, ("K",)]):
    for i in I.parallel(I.domain(0, x.shape[0])):
        I.atomic.add(y[x[i]], v[i], order="relaxed")


@intent.kernel
def scatter_rows(x: I.In[I.i64, ("M", "N")], v: I.In[I.f32, ("M", "N")], y: I.InOut[I.f32, ("M", "K")], z: I.InOut[I.f32, ("K",)]):
    for i in I.parallel(I.domain(0, x.shape[0])):
        I.scatter_reduce(y, index=(i, x[i, :]), value=v[i, :], combine=I.add)
        I.scatter_reduce(z, index=x[i, :], value=v[i, :], combine=I.add)


def test_ascending_updates_are_tasks_where_addresses_differ():
    assert tasks(both(float_sum, RNG.integers(0, 4, 50), RNG.standard_normal(50).astype(np.float32), np.zeros(4, np.float32))) == [0]
    x, v = RNG.integers(0, 4, (6, 9)), RNG.standard_normal((6, 9)).astype(np.float32)
    assert tasks(both(scatter_rows, x, v, np.zeros((6, 4), np.float32), np.zeros(4, np.float32))) == [1, 0]


@intent.kernel
def histograms(x: I.In[I.i32, ("M", "N")], y: I.Out[I.i32, ("M", 8)], z: I.Out[I.i32, (8,)]):
    for i in I.parallel(I.domain(0, x.shape[0])):
        y[i, :] = I.histogram(x[i, :], bins=8, valid=x[i, :] != 3, count_dtype=I.i32)
    z[:] = I.histogram(x[:, :], bins=8, count_dtype=I.i32)


def test_histograms_of_rows_are_one_stage():
    program = both(histograms, RNG.integers(0, 8, (5, 30)).astype(np.int32), np.zeros((5, 8), np.int32), np.zeros(8, np.int32))
    assert tasks(program)[0] == 1 and len(program.body[0].resources) == 1


@intent.fn
def shifted(a, b):
    return a * 2 + b


@intent.kernel
def mixture(x: I.In[I.i64, ("N",)], y: I.InOut[I.i32, ("K",)], won: I.Out[I.bool, ("N",)], seen: I.Out[I.i32, ("N",)]):
    d = I.domain(0, x.shape[0])
    I.scatter_reduce(y, index=x[d], value=I.cast(x[d], I.i32), combine=shifted, valid=x[d] > 0)
    r = I.atomic.compare_exchange(y, index=x[d], expected=0, desired=9, order="acq_rel")
    won[d] = r.success
    seen[d] = r.old_value + I.atomic.load(y[x[d]], order="acquire")
    I.atomic.store(y[0], 4, order="release")


def test_every_form():
    n = 40
    both(mixture, RNG.integers(0, 5, n), np.zeros(5, np.int32), np.zeros(n, np.bool_), np.zeros(n, np.int32))


@intent.kernel
def rounds(x: I.In[I.i64, ("N",)], y: I.InOut[I.i64, ("K",)], seen: I.Out[I.i64, ("R", "N")]):
    R, N = seen.shape
    for r in I.domain(0, R):
        for i in I.parallel(I.domain(0, N)):
            seen[r, i] = I.atomic.add(y[x[i]], 1, order="relaxed")


@intent.kernel
def red_black(y: I.InOut[I.f32, ("M", "N")], rounds: I.index):
    M, _ = y.shape
    for t in I.domain(0, rounds):
        for i in I.parallel(I.domain(0, M)):
            if (i + t) % 2 == 0:
                y[i, :] = y[(i + M - 1) % M, :] + y[(i + 1) % M, :]


@pytest.mark.parametrize("kernel, args", [
    (rounds, (RNG.integers(0, 3, 20), np.zeros(3, np.int64), np.zeros((4, 20), np.int64))),
    (red_black, (RNG.standard_normal((6, 5)).astype(np.float32), np.int64(4)))])
def test_a_loop_whose_tasks_meet_keeps_its_form(kernel, args):
    program = both(kernel, *args)
    assert any(isinstance(s, For) for s in program.body)


@intent.kernel
def permuted(at: I.In[I.i64, ("N",)], x: I.In[I.f32, ("N",)], y: I.Out[I.f32, ("N",)]):
    y[at[:]] = x[:] * 2.0


def test_a_lone_store_through_data_is_a_task_for_each_element():
    assert tasks(both(permuted, RNG.permutation(30), RNG.standard_normal(30).astype(np.float32), np.zeros(30, np.float32))) == [1]


@intent.kernel
def twice(y: I.InOut[I.i32, ("N",)], z: I.Out[I.i32, ("N",)]):
    y[:] = y[:] * 2 + 1
    z[:] = y[:] * 2 + 1
    y[:] = y[:] * 2 + 1


def test_equal_statements_see_what_was_stored_between():
    y, z = np.arange(40, dtype=np.int32), np.zeros(40, np.int32)
    both(twice, y, z)
    twice(y, z)
    assert y.tolist() == [4 * i + 3 for i in range(40)] and z.tolist() == y.tolist()
