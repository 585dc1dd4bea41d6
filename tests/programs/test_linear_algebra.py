"""Factorisations and solves, each written with whole columns and shrinking subregions and held against LAPACK."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

import intent_numba as intent
import intent_numba.language as I
from tests.support import check, out


# --- Householder QR -------------------------------------------------------------------------------------------------------

@intent.kernel
def householder_qr(a: I.In[I.f64, ("B", "M", "N")], q: I.Out[I.f64, ("B", "M", "N")], r: I.Out[I.f64, ("B", "N", "N")]):
    """Reflectors as LAPACK chooses them: one turns a column with something below its diagonal element, and changes that element's sign."""
    B, M, N = a.shape
    rows, cols = I.domain(0, M), I.domain(0, N)
    for p in I.parallel(I.domain(0, B)):
        w = I.buffer((M, N), I.f64, init=a[p, :, :])
        v = I.buffer((M, N), I.f64, init=0.0)                           # unit vectors; a column that is not turned has none
        for k in cols:
            here, right = rows[k:M], cols[k:N]
            below = w[rows[k + 1:M], k]
            rest = I.dot(below, below, acc_dtype=I.f64)[()]
            if rest > 0.0:
                diagonal = w[k, k]
                norm = I.sqrt(diagonal * diagonal + rest)
                u = w[here, k] + I.select(I.indices(here) == k, norm if diagonal >= 0.0 else -norm, 0.0)
                u = u / I.sqrt(I.dot(u, u, acc_dtype=I.f64)[()])
                v[here, k] = u
                block = w[here, right]
                w[here, right] = block - I.outer(u, I.vecmat(u, block, acc_dtype=I.f64) * 2.0)
        upper = I.indices(cols)[:, None] <= I.indices(cols)[None, :]
        r[p, :, :] = I.select(upper, w[rows[0:N], cols], 0.0)
        e = I.buffer((M, N), I.f64, init=I.select(I.indices(rows)[:, None] == I.indices(cols)[None, :], 1.0, I.cast(0.0, I.f64)))
        for back in cols:
            k = N - 1 - back
            u = v[:, k]
            e[:, :] = e[:, :] - I.outer(u, I.vecmat(u, e[:, :], acc_dtype=I.f64) * 2.0)
        q[p, :, :] = e[:, :]


@pytest.mark.parametrize("shape", [(5, 7, 4), (2, 33, 33), (40, 3, 3), (1, 70, 5), (3, 1, 1), (0, 4, 3), (2, 3, 0), (2, 0, 0)])
def test_householder_qr(shape, rng):
    b, m, n = shape

    def oracle(a):
        qr = [np.linalg.qr(x) if n else (np.zeros((m, n)), np.zeros((n, n))) for x in a]
        return np.array([x[0] for x in qr]).reshape(b, m, n), np.array([x[1] for x in qr]).reshape(b, n, n)

    check(householder_qr, [rng.standard_normal(shape), out(shape, "f64"), out((b, n, n), "f64")], oracle, floor=64 * (m + 1))


# --- Cholesky -------------------------------------------------------------------------------------------------------------

@intent.kernel
def cholesky(a: I.In[I.f64, ("N", "N")], l: I.Out[I.f64, ("N", "N")]):
    """Right-looking: a column is finished, then the trailing matrix loses its outer product."""
    N, _ = a.shape
    d = I.domain(0, N)
    w = I.buffer((N, N), I.f64, init=a[:, :])
    l[:, :] = I.zeros((N, N), I.f64)
    for k in d:
        pivot = I.sqrt(w[k, k])
        l[k, k] = pivot
        rest = d[k + 1:N]
        column = w[rest, k] / pivot
        l[rest, k] = column
        w[rest, rest] = w[rest, rest] - I.outer(column, column)


@intent.kernel
def blocked_cholesky(a: I.In[I.f32, ("N", "N")], l: I.Out[I.f32, ("N", "N")], STEP: I.Constexpr[int]):
    """Left-looking by block columns: one product with what is finished, then the columns of the block."""
    N, _ = a.shape
    d = I.domain(0, N)
    l[:, :] = I.zeros((N, N), I.f32)
    for begin in I.domain(0, N, STEP):
        end = I.minimum(begin + STEP, N)
        rows, block, done = d[begin:N], d[begin:end], d[0:begin]
        panel = I.buffer((N - begin, end - begin), I.f32,
                         init=a[rows, block] - I.matmul(l[rows, done], l[block, done], acc_dtype=I.f32, transpose_rhs=True))
        for k in I.domain(0, end - begin):
            own = I.domain(0, k)
            column = panel[:, k] - I.matvec(panel[:, own], panel[k, own], acc_dtype=I.f32)
            column = column / I.sqrt(column[k])
            panel[:, k] = column
        keep = I.indices(rows)[:, None] >= I.indices(block)[None, :]
        l[rows, block] = I.select(keep, panel[:, :], 0.0)


def positive_definite(rng, n):
    g = rng.standard_normal((n, n))
    return g @ g.T + n * np.eye(n)


def lower_factor(a):
    return np.linalg.cholesky(a.astype(np.float64)) if a.size else a


@pytest.mark.parametrize("n", [0, 1, 2, 33, 70])
def test_cholesky(n, rng):
    check(cholesky, [positive_definite(rng, n), out((n, n), "f64")], lower_factor, floor=32 * (n + 1))


@pytest.mark.parametrize("n,step", [(0, 4), (1, 4), (8, 4), (37, 16), (70, 32), (33, 100)])
def test_cholesky_by_block_columns(n, step, rng):
    a = positive_definite(rng, n).astype(np.float32)
    check(blocked_cholesky, [a, out((n, n), "f32")], lower_factor, floor=32 * (n + 1), constexprs={"STEP": step})


# --- triangular solves ----------------------------------------------------------------------------------------------------

@intent.kernel
def solve_triangular(t: I.In[I.f64, ("N", "N")], b: I.In[I.f64, ("N", "R")], x: I.Out[I.f64, ("N", "R")], LOWER: I.Constexpr[bool],
                     UNIT: I.Constexpr[bool]):
    N, _ = t.shape
    d = I.domain(0, N)
    for ordinal in d:
        i = ordinal if LOWER else N - 1 - ordinal
        known = d[0:i] if LOWER else d[i + 1:N]
        row = b[i, :] - I.vecmat(t[i, known], x[known, :], acc_dtype=I.f64)
        x[i, :] = row if UNIT else row / t[i, i]


@intent.kernel
def solve_by_columns(t: I.In[I.f64, ("N", "N")], x: I.InOut[I.f64, ("N", "R")]):
    """In place, outwards: a finished row is subtracted from all that follow."""
    N, _ = t.shape
    d = I.domain(0, N)
    for i in d:
        row = x[i, :] / t[i, i]
        x[i, :] = row
        later = d[i + 1:N]
        x[later, :] = x[later, :] - I.outer(t[later, i], row)


@pytest.mark.parametrize("n,rights", [(0, 3), (1, 1), (7, 0), (33, 5), (40, 33)])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_triangular_solve(n, rights, lower, unit, rng):
    t = rng.standard_normal((n, n)) / (4 * max(n, 1)) + np.diag(2 + rng.random(n))     # both triangles are filled: one is not read

    def oracle(t, b):
        return scipy.linalg.solve_triangular(t, b, lower=lower, unit_diagonal=unit) if b.size else b

    args = [t, rng.standard_normal((n, rights)), out((n, rights), "f64")]
    check(solve_triangular, args, oracle, floor=64, constexprs={"LOWER": lower, "UNIT": unit}, layouts=("contiguous", "mixed"))
    if lower and not unit:
        check(solve_by_columns, args[:2], oracle, floor=64, layouts=("contiguous", "mixed"))


# --- LU -------------------------------------------------------------------------------------------------------------------

@intent.kernel
def lu(a: I.In[I.f64, ("N", "N")], lu: I.Out[I.f64, ("N", "N")], pivot: I.Out[I.i32, ("N",)], zero: I.Out[I.i32, ()]):
    """Partial pivoting in the output itself: rows change places, and a null column ends it."""
    N, _ = a.shape
    d = I.domain(0, N)
    lu[:, :] = a[:, :]
    first_zero = I.cast(-1, I.i32)
    for k in d:
        size, at = I.arg_reduce.max(I.abs(lu[d[k:], k]), axis=0)
        p = k + at
        pivot[k] = I.cast(p, I.i32)
        if size == 0.0:
            first_zero = I.cast(k, I.i32)
            break
        if p != k:
            lu[k, :], lu[p, :] = lu[p, :], lu[k, :]
        below = d[k + 1:]
        lu[below, k] = lu[below, k] / lu[k, k]
        lu[below, below] = lu[below, below] - I.outer(lu[below, k], lu[k, below])
    zero[()] = first_zero


@pytest.mark.parametrize("n", [0, 1, 5, 33])
def test_lu(n, rng):
    def oracle(a):
        return (*(scipy.linalg.lu_factor(a) if n else (a, np.zeros(0))), np.array(-1))

    check(lu, [rng.standard_normal((n, n)), out((n, n), "f64"), out(n, "i32"), out((), "i32")], oracle, floor=64 * (n + 1))


def test_lu_stops_at_a_null_column():
    a = np.array([[1, 1, 2], [2, 2, 5], [3, 3, 7.5]])
    _, pivot, zero = check(lu, [a, out((3, 3), "f64"), out(3, "i32"), out((), "i32")])
    assert pivot[:2].tolist() == [2, 1] and zero == 1
