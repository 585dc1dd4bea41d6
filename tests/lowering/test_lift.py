"""Rows that never meet become tasks, and scratch of unknown extents gets a bound."""
from __future__ import annotations

import intent_numba as intent
import intent_numba.language as I
from intent_numba.frontend import build_kernel
from intent_numba.kir import Extent
from intent_numba.lowering import lower
from intent_numba.task import Contract, Phase, Stage


def stages(kernel):
    return [s for s in lower(build_kernel(kernel.pyfunc)).body if isinstance(s, Stage)]


@intent.kernel
def scores(q: I.In[I.f32, ("H", "M", "D")], k: I.In[I.f32, ("H", "N", "D")], y: I.Out[I.f32, ("H", "M")]):
    for h in I.parallel(I.domain(0, q.shape[0])):
        best = I.full((q.shape[1],), -I.inf, I.f32)
        for begin in I.domain(0, k.shape[1], 32):
            rows = I.domain(0, k.shape[1])[begin:I.minimum(begin + 32, k.shape[1])]
            s = I.matmul(q[h, :, :], k[h, rows, :], acc_dtype=I.f32, transpose_rhs=True)
            best = I.maximum(best, I.reduce.max(s, axis=1))
        y[h, :] = best


@intent.kernel
def rows_meet(q: I.In[I.f32, ("H", "M", "D")], y: I.Out[I.f32, ("H", "M", "D")]):
    for h in I.parallel(I.domain(0, q.shape[0])):
        v = q[h, :, :]
        for _ in I.domain(0, 3):
            s = I.matmul(v, v, acc_dtype=I.f32, transpose_rhs=True)
            v = I.matmul(s, v, acc_dtype=I.f32)
        y[h, :, :] = v


def contracts(stage):
    def walk(body):
        for s in body:
            if isinstance(s, Phase):
                yield from (k for k in s.sinks if isinstance(k, Contract))
            else:
                yield from walk(s.body)
    return list(walk(stage.body))


def test_rows_of_a_head_become_tasks():
    (stage,) = stages(scores)
    assert [str(a.extent) for a in stage.tasks] == ["H", "M"]
    rows = stage.tasks[1].name
    (product,) = contracts(stage)
    assert rows in (*product.m_axes, *product.n_axes)
    assert all(r.axes == (rows,) for r in stage.resources if r.shape)


def test_scratch_is_laid_out_for_the_longest_part():
    (stage,) = stages(scores)
    (product,) = contracts(stage)
    shape = next(r.shape for r in stage.resources if r.name == product.target)
    assert shape[-1] == Extent.of(32)


def test_rows_that_meet_stay_inside():
    (stage,) = stages(rows_meet)
    assert [str(a.extent) for a in stage.tasks] == ["H"]
