"""Many rows, each of a few elements known only at the call: the same bits as long rows have, whichever way the rows are run."""
from __future__ import annotations

import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from tests.support import check, integers, normal, out

LAYOUTS = ("contiguous", "transposed", "mixed")
SHAPES = [(100, 1), (3, 5), (70, 5), (33, 16), (40, 17), (200, 3), (40, 0), (0, 4)]


@intent.kernel
def normalised(x: I.In[I.f32, ("M", "N")], y: I.Out[I.f32, ("M", "N")], top: I.Out[I.i64, ("M",)], run: I.Out[I.f32, ("M", "N")]):
    v = x[:, :]
    e = I.exp(v - I.reduce.max(v, axis=1)[:, None])
    y[:, :] = e / I.reduce.sum(e, axis=1)[:, None]
    _, at = I.arg_reduce.max(v, axis=1)
    top[:] = I.cast(at, I.i64)
    run[:, :] = I.cumsum(v, axis=1, reverse=True)


@pytest.mark.parametrize("shape", SHAPES)
def test_reductions_and_scans(shape, rng):
    def oracle(x):
        x = x.astype("f8")
        e = np.exp(x - x.max(1, initial=-np.inf, keepdims=True))
        top = x.argmax(1) if shape[1] else np.full(shape[0], 2 ** 63 - 1)
        return e / e.sum(1, keepdims=True), top, np.cumsum(x[:, ::-1], 1)[:, ::-1]
    check(normalised, [normal(rng, shape), out(shape, "f32"), out(shape[0], "i64"), out(shape, "f32")], oracle, ulps=32, floor=16,
          layouts=LAYOUTS)


@intent.kernel
def rows_in_order(x: I.In[I.f64, ("M", "N")], w: I.In[I.f64, ("N", "N")], steps: I.In[I.i32, ("M",)], y: I.Out[I.f64, ("M", "N")],
                  total: I.Out[I.f64, ("M",)]):
    """Each row goes through a loop of its own length, with a matrix, a buffer and a branch."""
    M, N = x.shape
    for i in I.parallel(I.domain(0, M)):
        v = x[i, :]
        best = I.buffer((N,), I.f64, init=v)
        for t in I.domain(0, steps[i]):
            v = I.matvec(w[:, :], v, acc_dtype=I.f64) * 0.5 + x[i, :]
            if I.reduce.sum(v, axis=0) > 0.0:
                best[:] = I.maximum(best[:], v)
        y[i, :] = best[:]
        total[i] = I.reduce.sum(v * v, axis=0)


@pytest.mark.parametrize("shape", SHAPES)
def test_ordered_loops_of_each_row(shape, rng):
    M, N = shape
    x, w, steps = rng.integers(-3, 4, shape).astype("f8"), rng.integers(-1, 2, (N, N)).astype("f8"), rng.integers(0, 5, M).astype("i4")

    def oracle(x, w, steps):
        best, total = x.copy(), np.zeros(M)
        for i in range(M):
            v = x[i]
            for _ in range(steps[i]):
                v = w @ v * 0.5 + x[i]
                if v.sum() > 0:
                    best[i] = np.maximum(best[i], v)
            total[i] = (v * v).sum()
        return best, total
    check(rows_in_order, [x, w, steps, out(shape, "f64"), out(M, "f64")], oracle, layouts=LAYOUTS)


@intent.kernel
def small_products(a: I.In[I.i32, ("B", "M", "K")], b: I.In[I.i32, ("B", "K", "N")], c: I.Out[I.i32, ("B", "M", "N")],
                   counts: I.InOut[I.i32, ("K",)]):
    B = a.shape[0]
    for i in I.parallel(I.domain(0, B)):
        p = I.matmul(a[i, :, :], b[i, :, :], acc_dtype=I.i32)
        c[i, :, :] = p - I.reduce.max(p, axis=1)[:, None]
        I.atomic.add(counts, index=(I.indices(I.domain(0, a.shape[2])),), value=a[i, 0, :], order="relaxed")


@pytest.mark.parametrize("B, M, K, N", [(40, 2, 3, 4), (100, 1, 16, 1), (5, 3, 3, 3), (33, 16, 17, 2), (70, 3, 0, 3)])
def test_batches_of_small_products(B, M, K, N, rng):
    a, b = integers(rng, (B, M, K), "i32", -99, 99), integers(rng, (B, K, N), "i32", -99, 99)

    def oracle(a, b, counts):
        p = a @ b
        return p - p.max(2, keepdims=True), counts + a[:, 0].sum(0, dtype="i4")
    check(small_products, [a, b, out((B, M, N), "i32"), np.arange(K, dtype="i4")], oracle, layouts=LAYOUTS)
