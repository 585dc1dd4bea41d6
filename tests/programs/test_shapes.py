"""Shape pipelines and indexed relations: reshape, transpose, join, gather, embedding, windows, in-place permutations, overlap."""
from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from tests.support import BACKEND, check, integers, normal, out


@intent.kernel
def transpose(x: I.In[I.f32, ("M", "N")], y: I.Out[I.f32, ("N", "M")], z: I.Out[I.f32, ("N", "M")]):
    M, N = x.shape
    rows, columns = I.domain(0, M), I.domain(0, N)
    y[columns, rows] = I.transpose(x[rows, columns])
    z[:, :] = x[I.indices(rows)[None, :], I.indices(columns)[:, None]]


@pytest.mark.parametrize("shape", [(8, 64), (37, 5), (0, 4), (4, 0)])
def test_transpose(shape, rng):
    back = shape[::-1]
    check(transpose, [normal(rng, shape), out(back, "f32"), out(back, "f32")], lambda x: (x.T, x.T))


@intent.kernel
def heads(x: I.In[I.f32, ("S", "H", "D")], y: I.Out[I.f32, ("H", "S", "D")], total: I.Out[I.f32, ("S",)]):
    S, H, D = x.shape
    flat = I.reshape(x[:, :, :], (S, H * D))
    prefix = I.cummax(flat, axis=1)
    y[:, :, :] = I.permute(I.reshape(prefix, (S, H, D)), (1, 0, 2))
    total[:] = I.reduce.sum(flat, axis=-1)


@pytest.mark.parametrize("s,h,d", [(5, 4, 16), (3, 2, 7), (0, 2, 3), (4, 1, 1)])
def test_merge_and_split_heads(s, h, d, rng):
    def oracle(x):
        flat = x.reshape(s, h * d)
        return np.maximum.accumulate(flat, axis=1).reshape(s, h, d).transpose(1, 0, 2), flat.sum(1, dtype=np.float64)

    check(heads, [normal(rng, (s, h, d)), out((h, s, d), "f32"), out(s, "f32")], oracle, floor=64)


@cache
def rotary(pairs):
    @intent.kernel
    def rotary(x: I.In[I.f32, ("S", 2 * pairs)], angle: I.In[I.f32, ("S", pairs)], y: I.Out[I.f32, ("S", 2 * pairs)]):
        pair = I.reshape(x[:, :], (x.shape[0], pairs, 2))
        a, b = pair[:, :, 0], pair[:, :, 1]
        c, s = I.cos(angle[:, :]), I.sin(angle[:, :])
        y[:, :] = I.reshape(I.join(a * c - b * s, a * s + b * c), (-1, 2 * pairs))

    return rotary


@pytest.mark.parametrize("s,p", [(4, 16), (3, 5), (0, 2), (9, 1)])
def test_rotary_embedding(s, p, rng):
    def oracle(x, t):
        z = (x[:, 0::2] + 1j * x[:, 1::2].astype(np.float64)) * np.exp(1j * t.astype(np.float64))
        return np.stack([z.real, z.imag], -1).reshape(s, 2 * p)

    check(rotary(p), [normal(rng, (s, 2 * p)), normal(rng, (s, p)), out((s, 2 * p), "f32")], oracle, floor=16)


@intent.kernel
def embedding(table: I.In[I.bf16, ("V", "D")], token: I.In[I.i32, ("N",)], y: I.Out[I.f32, ("N", "D")], z: I.Out[I.f32, ("N", "D")]):
    N, = token.shape
    V, D = table.shape
    n, d = I.domain(0, N), I.domain(0, D)
    t = token[n]
    y[n, d] = I.cast(table[t, d], I.f32)
    inside = (t >= 0) & (t < I.cast(V, I.i32))
    z[n, d] = I.cast(I.gather(table, index=(t[:, None], I.indices(d)), valid=inside[:, None], fill=0.0), I.f32)


@pytest.mark.parametrize("n,v,d", [(9, 20, 32), (5, 3, 7), (0, 4, 4), (3, 4, 0)])
def test_embedding(n, v, d, rng):
    check(embedding, [normal(rng, (v, d), "bf16"), integers(rng, n, "i32", 0, v), out((n, d), "f32"), out((n, d), "f32")],
          lambda table, t: (table[t].astype(np.float32),) * 2)


@intent.kernel
def guarded(x: I.In[I.i32, ("N",)], where: I.In[I.i64, ("K",)], y: I.Out[I.i32, ("K",)]):
    N, = x.shape
    w = where[:]
    y[:] = I.gather(x, index=(w,), valid=(w >= 0) & (w < I.cast(N, I.i64)), fill=-7)


@pytest.mark.parametrize("n,k", [(16, 64), (5, 37), (0, 5), (3, 0)])
def test_gather_touches_nothing_where_invalid(n, k, rng):
    where = integers(rng, k, "i64")
    where[::2] = rng.integers(-3, n + 3, len(where[::2]))
    check(guarded, [integers(rng, n, "i32"), where, out(k, "i32")],
          lambda x, w: np.array([x[i] if 0 <= i < n else -7 for i in w], np.int32).reshape(k))


@intent.kernel
def fancy(x: I.In[I.i32, ("M", "N")], r: I.In[I.i32, ("K",)], c: I.In[I.u8, ("K",)], pairs: I.Out[I.i32, ("K",)],
          grid: I.Out[I.i32, ("K", "K")],
          rows: I.Out[I.i32, ("K", "N")], columns: I.Out[I.i32, ("M", "K")]):
    i, j = r[:], c[:]
    pairs[:] = x[i, j]
    grid[:, :] = x[i[:, None], j[None, :]]
    rows[:, :] = x[i, :]
    columns[:, :] = x[:, j]


@pytest.mark.parametrize("m,n,k", [(6, 9, 32), (3, 4, 5), (2, 2, 0)])
def test_tensor_indices_pair_pointwise_and_broadcast(m, n, k, rng):
    check(fancy, [integers(rng, (m, n), "i32"), integers(rng, k, "i32", 0, m), integers(rng, k, "u8", 0, n), out(k, "i32"),
                  out((k, k), "i32"),
                  out((k, n), "i32"), out((m, k), "i32")],
          lambda x, r, c: (x[r, c], x[r[:, None], c[None]], x[r], x[:, c]))


@intent.kernel
def windows(x: I.In[I.f32, ("N",)], mean: I.Out[I.f32, ("P",)], largest: I.Out[I.f32, ("P",)], W: I.Constexpr[int]):
    N, = x.shape
    P, = mean.shape
    at = I.indices(I.domain(0, P))[:, None] + I.indices(I.domain(0, W))
    v = x[at]
    mean[:] = I.reduce.sum(v, axis=1) / I.cast(W, I.f32)
    largest[:] = I.reduce.max(v, axis=-1)


@pytest.mark.parametrize("n,w", [(67, 4), (37, 5), (3, 3)])
def test_sliding_windows(n, w, rng):
    def oracle(x):
        v = np.lib.stride_tricks.sliding_window_view(x, w)
        return v.mean(1, dtype=np.float64), v.max(1)

    check(windows, [normal(rng, n), out(n - w + 1, "f32"), out(n - w + 1, "f32")], oracle, constexprs={"W": w}, ulps=4, floor=8)


@intent.kernel
def parts(x: I.In[I.f32, ("N",)], begin: I.i32, end: I.i32, y: I.InOut[I.f32, ("N",)], where: I.Out[I.i64, ("N",)]):
    N, = x.shape
    n = I.domain(0, N)
    where[n] = I.full((N,), -1, I.i64)
    part = n[begin:end]
    y[part] = x[part] * 2.0
    where[part] = I.cast(I.indices(part), I.i64)
    inner = part[begin + 1:end]
    y[inner] = x[inner] + 1.0


@pytest.mark.parametrize("n,begin,end", [(64, 3, 50), (37, 0, 37), (9, 4, 5)])
def test_subregions_keep_source_coordinates(n, begin, end, rng):
    def oracle(x, b, e, y):
        y[b:e] = x[b:e] * 2
        y[b + 1:e] = x[b + 1:e] + 1
        where = np.full(n, -1)
        where[b:e] = np.arange(b, e)
        return y, where

    check(parts, [normal(rng, n), np.int32(begin), np.int32(end), normal(rng, n), out(n, "i64")], oracle)


@intent.kernel
def strided_domain(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, ("N",)], total: I.Out[I.f32, ()]):
    N, = x.shape
    y[:] = I.zeros((N,), I.f32)
    every_third = I.domain(1, N, 3)
    y[every_third] = x[every_third]
    acc = I.cast(0.0, I.f32)
    for i in every_third:
        acc = acc + x[i]
    total[()] = acc


@pytest.mark.parametrize("n", [64, 37, 2, 1, 0])
def test_domains_with_a_step(n, rng):
    def oracle(x):
        y = np.zeros_like(x)
        y[1::3] = x[1::3]
        return y, np.asarray(np.add.accumulate(x[1::3])[-1] if n > 1 else 0)

    check(strided_domain, [normal(rng, n), out(n, "f32"), out((), "f32")], oracle)


@intent.kernel
def reversed_rows(x: I.In[I.i16, ("M", "N")], y: I.Out[I.i16, ("M", "N")], z: I.Out[I.i16, ("M", "N")]):
    M, N = x.shape
    rows, columns = I.domain(0, M), I.domain(0, N)
    y[rows, columns] = x[rows, N - 1 - I.indices(columns)]
    for i in I.domain(0, M):
        z[M - 1 - i, columns] = x[i, columns]


@pytest.mark.parametrize("shape", [(3, 64), (5, 7), (0, 3), (3, 0)])
def test_reversal_by_coordinates(shape, rng):
    check(reversed_rows, [integers(rng, shape, "i16"), out(shape, "i16"), out(shape, "i16")], lambda x: (x[:, ::-1], x[::-1]))


@intent.kernel
def transpose_in_place(m: I.InOut[I.f32, ("N", "N")]):
    N, _ = m.shape
    r, c = I.domain(0, N), I.domain(0, N)
    m[r, c] = I.transpose(m[r, c])


@intent.kernel
def transpose_by_coordinates(m: I.InOut[I.f32, ("N", "N")]):
    N, _ = m.shape
    r, c = I.domain(0, N), I.domain(0, N)
    m[r, c] = m[I.indices(c)[None, :], I.indices(r)[:, None]]


@pytest.mark.parametrize("n", [1, 7, 32, 65, 0])
@pytest.mark.parametrize("kernel", [transpose_in_place, transpose_by_coordinates], ids=["transpose", "coordinates"])
def test_transpose_in_place(kernel, n, rng):
    check(kernel, [normal(rng, (n, n))], lambda m: m.T)


@intent.kernel
def reversed_copy(a: I.InOut[I.u32, ("M", "N")], y: I.Out[I.u32, ("M", "N")]):
    M, N = a.shape
    v = a[:, :]
    y[:, :] = v[M - 1 - I.indices(I.domain(0, M)), :]


@pytest.mark.skipif(BACKEND == "reference", reason="compiled code only")
@pytest.mark.parametrize("m", [1, 5, 40])
def test_an_output_that_is_a_readable_view(m, rng):
    """The two parameters are one array: the read of ``a`` is a snapshot although ``a`` itself could be written."""
    x = integers(rng, (m, 3), "u32")
    want = x[::-1].copy()
    reversed_copy(x, x)
    assert np.array_equal(x, want)


@intent.kernel
def rotate_in_place(x: I.InOut[I.i32, ("N",)], shift: I.index):
    N, = x.shape
    n = I.domain(0, N)
    x[n] = x[(I.indices(n) + shift) % N]


@pytest.mark.parametrize("n", [1, 5, 64, 100, 5000])
def test_rotate_in_place(n, rng):
    check(rotate_in_place, [integers(rng, n, "i32"), 3], lambda x, s: np.roll(x, -s))


@intent.kernel
def swap_halves(x: I.InOut[I.f32, ("M", "N")]):
    M, N = x.shape
    half = N // 2
    rows, columns = I.domain(0, M), I.domain(0, N)
    left, right = columns[0:half], columns[half:half + half]
    a = x[rows, left]
    b = x[rows, right]
    x[rows, left] = b
    x[rows, right] = a


@pytest.mark.parametrize("shape", [(3, 64), (5, 7), (2, 1), (0, 4)])
def test_swap_by_snapshots(shape, rng):
    def oracle(x):
        h = shape[1] // 2
        return np.concatenate([x[:, h:2 * h], x[:, :h], x[:, 2 * h:]], axis=1)

    check(swap_halves, [normal(rng, shape)], oracle)


@intent.kernel
def gauss_seidel(x: I.InOut[I.f64, ("N",)]):
    for i in I.domain(1, x.shape[0] - 1):
        x[i] = (x[i - 1] + x[i + 1]) * 0.5


@pytest.mark.parametrize("n", [2, 3, 37, 64])
def test_ordered_loops_see_earlier_stores(n, rng):
    def oracle(x):
        for i in range(1, len(x) - 1):
            x[i] = (x[i - 1] + x[i + 1]) * 0.5
        return x

    check(gauss_seidel, [rng.standard_normal(n)], oracle)


@intent.kernel
def update_twice(x: I.InOut[I.f32, ("M", "N")], s: I.Out[I.f32, ("M",)]):
    v = x[:, :]
    x[:, :] = v - I.reduce.max(v, axis=1)[:, None]
    w = x[:, :]
    x[:, :] = I.exp(w)
    s[:] = I.reduce.sum(x[:, :], axis=1) + I.reduce.sum(w, axis=1)


@pytest.mark.parametrize("shape", [(4, 64), (3, 37), (0, 4)])
def test_reads_see_the_stores_before_them(shape, rng):
    def oracle(x):
        w = x.astype(np.float64) - x.max(1, initial=-np.inf)[:, None]
        return np.exp(w), np.exp(w).sum(1) + w.sum(1)

    check(update_twice, [normal(rng, shape), out(shape[0], "f32")], oracle, ulps=4, floor=512)


@intent.kernel
def scatter_rows(x: I.In[I.f32, ("M", "N")], order: I.In[I.i32, ("M",)], y: I.Out[I.f32, ("M", "N")]):
    I.scatter_unique(y, index=(order[:][:, None], I.indices(I.domain(0, x.shape[1]))[None, :]), value=x[:, :])


@pytest.mark.parametrize("shape", [(8, 32), (5, 7), (0, 3), (3, 0)])
def test_scatter_rows(shape, rng):
    order = rng.permutation(shape[0]).astype(np.int32)
    check(scatter_rows, [normal(rng, shape), order, out(shape, "f32")], lambda x, o: x[np.argsort(o)])


@intent.kernel
def guarded_with_a_fill_of_its_own(x: I.In[I.f32, ("M", "K")], at: I.In[I.i64, ("M", "N")], y: I.Out[I.f32, ("N", "M", "N")]):
    M, N = at.shape
    sums = I.cumsum(x[:, :], axis=1)
    for p in I.domain(0, N):
        where = at[:, :]
        y[p, :, :] = I.gather(sums, index=(where, where), valid=where < I.cast(M, I.i64), fill=I.cast(p, I.f32))
        b = I.buffer((M,), I.f32)
        b[:] = I.full((M,), 1.0, I.f32)


@pytest.mark.parametrize("n,m", [(1, 1), (5, 3), (33, 40), (0, 4)])
def test_a_fill_may_vary_where_the_access_does_not(n, m, rng):
    def oracle(x, at):
        sums = np.cumsum(x, axis=1)
        return np.array([[[sums[i, i] if i < m else p for i in row] for row in at] for p in range(n)], np.float32).reshape(n, m, n)

    x = np.arange(m * m, dtype=np.float32).reshape(m, m)
    check(guarded_with_a_fill_of_its_own, [x, rng.integers(0, 2 * m, (m, n)), out((n, m, n), "f32")], oracle)
