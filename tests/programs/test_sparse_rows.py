"""Rows of unequal length: compressed sparse rows times vectors and matrices, jagged means, grouped products."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import intent_numba as intent
import intent_numba.language as I
from tests.support import check, normal, out


@intent.kernel
def spmv(offsets: I.In[I.i32, ("P",)], col: I.In[I.i32, ("E",)], value: I.In[I.f32, ("E",)], x: I.In[I.f32, ("N",)],
         y: I.Out[I.f32, ("M",)]):
    M, = y.shape
    E, = col.shape
    rows = I.ragged(I.domain(0, M), I.domain(0, E), offsets)
    for i in I.parallel(rows.outer):
        e = rows[i]
        y[i] = I.dot(value[e], x[col[e]], acc_dtype=I.f32)[()]


@intent.kernel
def spmm(offsets: I.In[I.i32, ("P",)], col: I.In[I.i32, ("E",)], value: I.In[I.f32, ("E",)], x: I.In[I.f32, ("N", "K")],
         y: I.Out[I.f32, ("M", "K")]):
    M, K = y.shape
    E, = col.shape
    rows, k = I.ragged(I.domain(0, M), I.domain(0, E), offsets), I.domain(0, K)
    for i in I.parallel(rows.outer):
        e = rows[i]
        y[i, k] = I.vecmat(value[e], x[col[e], k], acc_dtype=I.f32)


@intent.kernel
def spmm_by_entries(offsets: I.In[I.i32, ("P",)], col: I.In[I.i32, ("E",)], value: I.In[I.f32, ("E",)], x: I.In[I.f32, ("N", "K")],
                    y: I.Out[I.f32, ("M", "K")]):
    """A row of the result is carried over the entries of its row."""
    M, K = y.shape
    for i in I.parallel(I.domain(0, M)):
        acc = I.zeros((K,), I.f32)
        for e in I.domain(offsets[i], offsets[i + 1]):
            acc = acc + value[e] * x[col[e], :]
        y[i, :] = acc


def random_csr(rng, m, n, density):
    """Entries with small integer values, so that every order of summation is exact; some rows are empty, one is full."""
    mask = rng.random((m, n)) < density
    if m > 2:
        mask[1], mask[-1] = True, False
    dense = np.where(mask, rng.integers(1, 8, (m, n)) * rng.choice([-1, 1], (m, n)), 0).astype(np.float32)
    s = scipy.sparse.csr_matrix(dense)
    return [s.indptr.astype(np.int32), s.indices.astype(np.int32), s.data], dense


@pytest.mark.parametrize("m,n,density", [(0, 5, 0.5), (1, 1, 1.0), (40, 33, 0.1), (7, 9000, 0.02), (5, 4, 0.0)])
def test_sparse_rows_times_vector(m, n, density, rng):
    csr, dense = random_csr(rng, m, n, density)
    x = rng.integers(-8, 8, n).astype(np.float32)
    check(spmv, [*csr, x, out(m, "f32")], lambda *_: dense @ x, layouts=("contiguous", "strided", "mixed"))


@pytest.mark.parametrize("kernel", [spmm, spmm_by_entries])
@pytest.mark.parametrize("m,n,k", [(0, 5, 3), (1, 1, 1), (40, 33, 37), (5, 400, 0), (6, 5000, 3)])
def test_sparse_rows_times_matrix(kernel, m, n, k, rng):
    csr, dense = random_csr(rng, m, n, 0.1)
    x = rng.integers(-8, 8, (n, k)).astype(np.float32)
    check(kernel, [*csr, x, out((m, k), "f32")], lambda *_: dense @ x, layouts=("contiguous", "transposed", "mixed"))


@intent.fn
def times(offsets, col, value, x):
    y = I.buffer(x.shape, I.f64)
    rows = I.ragged(I.domain(0, x.shape[0]), I.domain(0, col.shape[0]), offsets)
    for i in I.parallel(rows.outer):
        e = rows[i]
        y[i] = I.reduce.sum(value[e] * x[col[e]], axis=0)
    return y[:]


@intent.kernel
def conjugate_gradient(offsets: I.In[I.i32, ("P",)], col: I.In[I.i32, ("E",)], value: I.In[I.f64, ("E",)], b: I.In[I.f64, ("N",)],
                       tolerance: I.f64, x: I.Out[I.f64, ("N",)], steps: I.Out[I.i32, ()]):
    v, r, p = I.zeros(b.shape, I.f64), b[:], b[:]
    square, k = I.dot(r, r, acc_dtype=I.f64)[()], I.cast(0, I.i32)
    while square > tolerance * tolerance and k < 1000:
        ap = times(offsets, col, value, p)
        step = square / I.dot(p, ap, acc_dtype=I.f64)[()]
        v, r = v + step * p, r - step * ap
        before, square = square, I.dot(r, r, acc_dtype=I.f64)[()]
        p = r + (square / before) * p
        k += 1
    x[:] = v
    steps[()] = k


@pytest.mark.parametrize("n", [1, 5, 70])
def test_conjugate_gradient(n, rng):
    g = rng.standard_normal((n, n)) * (rng.random((n, n)) < 0.1)
    a = scipy.sparse.csr_matrix(g @ g.T + n * np.eye(n))
    b = rng.standard_normal(n)
    x, steps = check(conjugate_gradient, [a.indptr.astype(np.int32), a.indices.astype(np.int32), a.data, b, np.float64(1e-10),
                                          out(n, "f64"), out((), "i32")], layouts=("contiguous", "mixed"))
    assert np.linalg.norm(a @ x - b) < 1e-9 and 0 < steps <= n + 1


# --- jagged mean ----------------------------------------------------------------------------------------------------------

@intent.kernel
def jagged_mean(x: I.In[I.f16, ("R", "D")], offsets: I.In[I.i64, ("P",)], y: I.Out[I.f32, ("G", "D")]):
    R, D = x.shape
    G, _ = y.shape
    groups = I.ragged(I.domain(0, G), I.domain(0, R), offsets)
    for g in I.parallel(groups.outer):
        rows = groups[g]
        total = I.reduce.sum(x[rows, :], axis=0)                        # f16 widens to f32
        length = I.reduce.sum(I.full((rows,), 1, I.i32), axis=0)
        y[g, :] = total / I.cast(length, I.f32) if length > 0 else I.zeros((D,), I.f32)


@pytest.mark.parametrize("lengths,d", [([3, 0, 0, 40, 1], 33), ([0, 5000, 0], 2), ([0, 0], 7), ([], 3), ([6], 0), ([1] * 50, 1)])
def test_jagged_mean(lengths, d, rng):
    offsets = np.r_[0, np.cumsum(lengths, dtype=np.int64)]

    def oracle(x, offsets):
        parts = [x[a:b].astype(np.float64) for a, b in zip(offsets, offsets[1:])]
        return np.array([p.mean(axis=0) if len(p) else np.zeros(d) for p in parts]).reshape(len(lengths), d)

    check(jagged_mean, [normal(rng, (offsets[-1], d), "f16"), offsets, out((len(lengths), d), "f32")], oracle, floor=16,
          layouts=("contiguous", "transposed", "mixed"))


# --- grouped products -----------------------------------------------------------------------------------------------------

@intent.kernel
def grouped_gemm(x: I.In[I.f32, ("T", "K")], w: I.In[I.f32, ("G", "K", "N")], offsets: I.In[I.i32, ("P",)], y: I.Out[I.f32, ("T", "N")]):
    """Rows that lie side by side, one weight for each group."""
    T, _ = x.shape
    G, _, _ = w.shape
    groups = I.ragged(I.domain(0, G), I.domain(0, T), offsets)
    for g in I.parallel(groups.outer):
        rows = groups[g]
        y[rows, :] = I.matmul(x[rows, :], w[g, :, :], acc_dtype=I.f32)


@intent.kernel
def gathered_gemm(x: I.In[I.f32, ("T", "K")], w: I.In[I.f32, ("G", "K", "N")], offsets: I.In[I.i32, ("P",)], order: I.In[I.i32, ("T",)],
                  y: I.Out[I.f32, ("T", "N")]):
    """Rows reached through an order, and put back where they came from."""
    T, _ = x.shape
    G, _, N = w.shape
    groups = I.ragged(I.domain(0, G), I.domain(0, T), offsets, indices=order)
    for g in I.parallel(groups.outer):
        rows = I.members(groups[g])
        I.scatter_unique(y, index=(rows, I.domain(0, N)), value=I.matmul(x[rows, :], w[g, :, :], acc_dtype=I.f32))


@intent.kernel
def tiled_gemm(x: I.In[I.f32, ("T", "K")], w: I.In[I.f32, ("G", "K", "N")], offsets: I.In[I.i32, ("P",)], y: I.Out[I.f32, ("T", "N")],
               TILE: I.Constexpr[int] = 16):
    """Every group cut into tiles of rows; a tile behind the end of its group has nothing to do."""
    T, _ = x.shape
    G, _, _ = w.shape
    for g, tile in I.parallel((I.domain(0, G), I.domain(0, (T + TILE - 1) // TILE))):
        begin = I.cast(offsets[g], I.index) + tile * TILE
        end = I.minimum(begin + TILE, I.cast(offsets[g + 1], I.index))
        if begin >= end:
            continue
        rows = I.domain(0, T)[begin:end]
        y[rows, :] = I.matmul(x[rows, :], w[g, :, :], acc_dtype=I.f32)


@pytest.mark.parametrize("lengths,k,n", [([3, 0, 40, 1], 9, 33), ([0, 0], 4, 4), ([], 4, 4), ([70, 5], 1100, 3), ([2, 3], 0, 5),
                                         ([33, 64, 0, 7], 16, 1)])
def test_grouped_gemm(lengths, k, n, rng):
    offsets = np.r_[0, np.cumsum(lengths)].astype(np.int32)
    t, g = int(offsets[-1]), len(lengths)
    x, w = normal(rng, (t, k)), normal(rng, (g, k, n))
    group = np.repeat(np.arange(g), lengths)
    order = rng.permutation(t).astype(np.int32)

    def oracle(x, w, *_):
        return np.einsum("tk,tkn->tn", x.astype("f8"), w.astype("f8")[group])

    def oracle_of_order(x, w, *_):
        y = np.zeros((t, n))
        y[order] = oracle(x[order], w)
        return y

    y = out((t, n), "f32")
    layouts = ("contiguous", "transposed", "mixed")
    check(grouped_gemm, [x, w, offsets, y], oracle, floor=8 * (k + 1), layouts=layouts)
    check(tiled_gemm, [x, w, offsets, y], oracle, floor=8 * (k + 1), layouts=("contiguous", "mixed"))
    check(gathered_gemm, [x, w, offsets, order, y], oracle_of_order, floor=8 * (k + 1), layouts=layouts)
