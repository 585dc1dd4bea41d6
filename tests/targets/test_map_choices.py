"""Every way the CPU mapper has of running a stage, against the reference, on every layout, with tails on every side."""
from __future__ import annotations

import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from intent_numba.lowering import lower
from intent_numba.targets.map_vector import pointwise
from intent_numba.targets.map_vector.grouped import can_group
from intent_numba.targets.map_vector.stage import plan_stage
from intent_numba.task.program import Stage
from tests.support import check, integers, kir_of, normal, out


def plans(kernel):
    """(stage, plan) of the stages at the top of a kernel's program, and the program."""
    program = lower(kir_of(kernel))
    return program, [(s, plan_stage(program, s)) for s in program.body if isinstance(s, Stage)]


@intent.kernel
def clamp(x: I.In[I.f32, ("A", "B", 3)], y: I.Out[I.f32, ("A", "B", 3)]):
    y[:, :, :] = I.maximum(x[:, :, :], 0.0)


@pytest.mark.parametrize("shape", [(5, 7, 3), (1, 1, 3), (64, 2, 3), (0, 4, 3)])
def test_short_rows_run_on(shape, rng):
    program, ((stage, plan),) = plans(clamp)
    assert pointwise.flat_resources(program, stage, plan.order) == ["x", "y"]
    check(clamp, [normal(rng, shape), out(shape, "f32")], lambda x: np.maximum(x, 0))


@intent.kernel
def biased(x: I.In[I.f32, ("M", "N")], b: I.In[I.f32, ("N",)], y: I.Out[I.f32, ("M", "N")]):
    y[:, :] = x[:, :] + b[None, :]


def test_a_broadcast_needs_its_coordinates(rng):
    program, ((stage, plan),) = plans(biased)
    assert pointwise.flat_resources(program, stage, plan.order) is None
    check(biased, [normal(rng, (9, 35)), normal(rng, 35), out((9, 35), "f32")], lambda x, b: x + b)


@intent.kernel
def turned(x: I.In[I.f32, ("M", "N")], b: I.In[I.f64, ("N", "M")], y: I.Out[I.f64, ("N", "M")]):
    y[:, :] = I.cast(I.transpose(x[:, :]), I.f64) * b[:, :]


@pytest.mark.parametrize("shape", [(3, 5), (64, 64), (33, 70), (100, 31), (0, 3), (3, 0)])
def test_transposes_go_in_blocks(shape, rng):
    _, ((_, plan),) = plans(turned)
    assert plan.crossing is not None
    check(turned, [normal(rng, shape), normal(rng, shape[::-1]).astype(np.float64), out(shape[::-1], "f64")], lambda x, b: x.T * b)


@intent.kernel
def column_statistics(x: I.In[I.f32, ("M", "N")], total: I.Out[I.f32, ("N",)], top: I.Out[I.f32, ("N",)], place: I.Out[I.i64, ("N",)]):
    v = x[:, :]
    total[:] = I.reduce.sum(v, axis=0)
    top[:] = I.reduce.max(v, axis=0)
    _, at = I.arg_reduce.min(v, axis=0)
    place[:] = I.cast(at, I.i64)


@pytest.mark.parametrize("shape", [(1, 1), (127, 40), (128, 33), (300, 1100), (5000, 3), (0, 4)])
def test_columns_in_groups(shape, rng):
    _, found = plans(column_statistics)
    assert any(can_group(s) and plan.lanes is not None for s, plan in found)
    check(column_statistics, [normal(rng, shape), *(out(shape[1], dt) for dt in ("f32", "f32", "i64"))], layouts=("contiguous", "mixed"))


@intent.kernel
def insertion(x: I.In[I.i16, ("M", "N")], y: I.Out[I.i16, ("M", "N")]):
    M, N = x.shape
    for r in I.parallel(I.domain(0, M)):
        b = I.buffer((N,), I.i16, init=x[r, :])
        for i in I.domain(1, N):
            v = b[i]
            j = i - 1
            while j >= 0:
                if b[j] <= v:
                    break
                b[j + 1] = b[j]
                j = j - 1
            b[j + 1] = v
        y[r, :] = b[:]


@pytest.mark.parametrize("shape", [(40, 16), (17, 33), (3, 1), (16, 0), (1, 40)])
def test_scalar_loops_run_in_lanes(shape, rng):
    _, ((_, plan),) = plans(insertion)
    assert plan.lanes is not None and plan.width == 16
    check(insertion, [integers(rng, shape, "i16"), out(shape, "i16")], lambda x: np.sort(x, axis=1))


@intent.kernel
def gated(x: I.In[I.f32, ("M", "K")], w: I.In[I.f32, ("N", "K")], u: I.In[I.f32, ("K", "N")], y: I.Out[I.f32, ("M", "N")]):
    a = I.matmul(x[:, :], w[:, :], acc_dtype=I.f32, transpose_rhs=True)
    b = I.matmul(x[:, :], u[:, :], acc_dtype=I.f32)
    y[:, :] = a * I.maximum(b, 0.0)


@pytest.mark.parametrize("m,k,n", [(1, 1, 1), (100, 70, 130), (7, 1030, 40), (97, 33, 129), (3, 0, 4)])
def test_two_products_in_one_stage(m, k, n, rng):
    check(gated, [normal(rng, (m, k)), normal(rng, (n, k)), normal(rng, (k, n)), out((m, n), "f32")], layouts=("contiguous", "mixed"))


@intent.kernel
def flash(q: I.In[I.f32, ("S", "D")], k: I.In[I.f32, ("T", "D")], v: I.In[I.f32, ("T", "D")], o: I.Out[I.f32, ("S", "D")]):
    S, D = q.shape
    T, _ = k.shape
    keys, columns = I.domain(0, T), I.domain(0, D)
    top = I.full((S,), -1e30, I.f32)
    total = I.full((S,), 0.0, I.f32)
    acc = I.full((S, D), 0.0, I.f32)
    for b in I.domain(0, T // 16):
        some = keys[b * 16:b * 16 + 16]
        s = I.matmul(q[:, :], k[some, columns], acc_dtype=I.f32, transpose_rhs=True)
        new = I.maximum(top, I.reduce.max(s, axis=1))
        p = I.exp(s - new[:, None])
        c = I.exp(top - new)
        total = total * c + I.reduce.sum(p, axis=1)
        acc = acc * c[:, None] + I.matmul(p, v[some, columns], acc_dtype=I.f32)
        top = new
    o[:, :] = acc / total[:, None]


@pytest.mark.parametrize("s,t,d", [(5, 32, 8), (100, 48, 33), (193, 16, 64)])
def test_loops_around_products(s, t, d, rng):
    check(flash, [normal(rng, (s, d)), normal(rng, (t, d)), normal(rng, (t, d)), out((s, d), "f32")], layouts=("contiguous", "mixed"))


@intent.kernel
def attention(q: I.In[I.f32, ("H", "S", "D")], k: I.In[I.f32, ("H", "T", "D")], v: I.In[I.f32, ("H", "T", "D")],
              o: I.Out[I.f32, ("H", "S", "D")]):
    for h in I.parallel(I.domain(0, q.shape[0])):
        s = I.matmul(q[h, :, :], k[h, :, :], acc_dtype=I.f32, transpose_rhs=True)
        e = I.exp(s - I.reduce.max(s, axis=1)[:, None])
        o[h, :, :] = I.matmul(e / I.reduce.sum(e, axis=1)[:, None], v[h, :, :], acc_dtype=I.f32)


@pytest.mark.parametrize("h,s,t,d", [(3, 25, 40, 8), (1, 1, 1, 1), (2, 7, 1100, 5)])
def test_rows_of_scores_stay_in_the_task(h, s, t, d, rng):
    _, ((_, plan),) = plans(attention)
    assert plan.panel is not None and plan.panel.n is None
    check(attention, [normal(rng, (h, s, d)), normal(rng, (h, t, d)), normal(rng, (h, t, d)), out((h, s, d), "f32")],
          layouts=("contiguous", "mixed"))


def test_large_outputs_go_around_the_caches(rng):
    x = normal(rng, (5000, 1303))
    for offset in (0, 1):                                    # elements past an aligned address
        y = np.zeros(x.size + 8, np.float32)[offset:offset + x.size].reshape(x.shape)
        biased(x, x[0], y)
        assert np.array_equal(y, x + x[0])


@intent.kernel
def routed(x: I.In[I.f32, ("T", "K")], w: I.In[I.f32, ("G", "K", "N")], offsets: I.In[I.i32, ("P",)], order: I.In[I.i32, ("T",)],
           y: I.Out[I.f32, ("T", "N")]):
    groups = I.ragged(I.domain(0, w.shape[0]), I.domain(0, x.shape[0]), offsets, indices=order)
    for g in I.parallel(groups.outer):
        rows = I.members(groups[g])
        I.scatter_unique(y, index=(rows, I.domain(0, y.shape[1])), value=I.matmul(x[rows, :], w[g, :, :], acc_dtype=I.f32))


def test_the_numbers_of_rows_do_not_decide_the_lanes_of_a_product(rng):
    """They are read once for each row; the weights beside them are read for every step of the product."""
    _, ((stage, plan),) = plans(routed)
    assert plan.lanes == stage.tasks[-1].name
    order = rng.permutation(9).astype(np.int32)

    def oracle(x, w, offsets, order):
        y = np.zeros((9, 37))
        y[order[:4]], y[order[4:]] = x[order[:4]].astype("f8") @ w[0], x[order[4:]].astype("f8") @ w[1]
        return y
    check(routed, [normal(rng, (9, 5)), normal(rng, (2, 5, 37)), np.array([0, 4, 9], np.int32), order, out((9, 37), "f32")], oracle,
          floor=64)
