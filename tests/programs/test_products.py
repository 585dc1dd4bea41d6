"""Matrix products in every transposition and dtype, batched products, convolution and attention."""
from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy import signal, special

import intent_numba as intent
import intent_numba.language as I
from tests.support import check, integers, normal, numpy_dtype, out

SIZES = [(8, 64, 16), (7, 33, 5), (1, 1, 1), (3, 0, 4), (0, 4, 3), (4, 3, 0), (35, 1100, 9)]
KINDS = [(I.f32, I.f32), (I.f16, I.f32), (I.bf16, I.f32), (I.f64, I.f64), (I.i8, I.i32), (I.u8, I.u32), (I.i32, I.i32), (I.i64, I.i64)]


def values(rng, shape, dt):
    return normal(rng, shape, dt) if dt.name[0] in "fb" else integers(rng, shape, dt)


def exact(dt, array):
    """The array in a dtype that holds its sums of products."""
    return array.astype(np.float64 if dt.name[0] in "fb" else np.int64)


def narrowed(acc, array):
    return array if acc.name[0] == "f" else array.astype(numpy_dtype(acc))


@cache
def gemm(dt, acc, transpose_lhs=False, transpose_rhs=False):
    a_shape, b_shape = ("K", "M") if transpose_lhs else ("M", "K"), ("N", "K") if transpose_rhs else ("K", "N")

    @intent.kernel
    def gemm(a: I.In[dt, a_shape], b: I.In[dt, b_shape], c: I.Out[acc, ("M", "N")]):
        c[:, :] = I.matmul(a[:, :], b[:, :], acc_dtype=acc, transpose_lhs=transpose_lhs, transpose_rhs=transpose_rhs)

    return gemm


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dt,acc", KINDS, ids=lambda d: d.name)
def test_gemm(dt, acc, size, rng):
    M, K, N = size
    a, b = values(rng, (M, K), dt), values(rng, (K, N), dt)
    check(gemm(dt, acc), [a, b, out((M, N), acc)], lambda a, b: narrowed(acc, exact(dt, a) @ exact(dt, b)), floor=8.0 * (K + 1))


@pytest.mark.parametrize("size", [(8, 64, 16), (7, 33, 5), (3, 0, 4)])
@pytest.mark.parametrize("tl,tr", [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("dt,acc", [(I.f32, I.f32), (I.i8, I.i32)], ids=lambda d: d.name)
def test_transposed_gemm_has_the_bits_of_the_plain_one(dt, acc, tl, tr, size, rng):
    M, K, N = size
    a, b = values(rng, (M, K), dt), values(rng, (K, N), dt)
    args = [np.ascontiguousarray(a.T) if tl else a, np.ascontiguousarray(b.T) if tr else b, out((M, N), acc)]
    (got,) = check(gemm(dt, acc, tl, tr), args)
    (plain,) = check(gemm(dt, acc), [a, b, out((M, N), acc)], layouts=())
    assert got.tobytes() == plain.tobytes()


@cache
def linear(dt, activation):
    @intent.kernel
    def linear(x: I.In[dt, ("M", "K")], w: I.In[dt, ("N", "K")], bias: I.In[I.f32, ("N",)], y: I.Out[dt, ("M", "N")]):
        acc = I.matmul(x[:, :], w[:, :], acc_dtype=I.f32, transpose_rhs=True) + bias[:]
        if activation == 1:
            acc = I.relu(acc)
        elif activation == 2:
            acc = acc * I.sigmoid(acc)
        y[:, :] = I.cast(acc, dt)

    return linear


@pytest.mark.parametrize("size", SIZES[:6])
@pytest.mark.parametrize("activation", [0, 1, 2])
@pytest.mark.parametrize("dt", [I.f32, I.f16, I.bf16], ids=lambda d: d.name)
def test_linear_with_bias_and_activation(dt, activation, size, rng):
    M, K, N = size

    def oracle(x, w, b):
        acc = x.astype(np.float64) @ w.astype(np.float64).T + b
        return (acc, np.maximum(acc, 0), acc * special.expit(acc))[activation]

    check(linear(dt, activation), [normal(rng, (M, K), dt), normal(rng, (N, K), dt), normal(rng, N), out((M, N), dt)], oracle, ulps=4,
          floor=64)


@intent.kernel
def quantised_linear(x: I.In[I.i8, ("M", "K")], w: I.In[I.i8, ("K", "N")], scale: I.In[I.f32, ("N",)], y: I.Out[I.i8, ("M", "N")]):
    acc = I.matmul(x[:, :], w[:, :], acc_dtype=I.i32)
    y[:, :] = I.saturating_cast(I.cast(acc, I.f32) * scale[:], I.i8)


@pytest.mark.parametrize("size", [(8, 64, 16), (7, 33, 5), (3, 0, 4)])
def test_quantised_linear(size, rng):
    M, K, N = size
    scale = np.exp2(rng.integers(-9, -3, N)).astype(np.float32)

    def oracle(x, w, s):
        acc = (x.astype(np.int32) @ w.astype(np.int32)).astype(np.float32) * s
        return np.clip(np.trunc(acc), -128, 127).astype(np.int8)

    check(quantised_linear, [integers(rng, (M, K), "i8"), integers(rng, (K, N), "i8"), scale, out((M, N), "i8")], oracle)


@intent.kernel
def batched(a: I.In[I.f32, ("B", 1, "M", "K")], b: I.In[I.f32, ("H", "K", "N")], c: I.Out[I.f32, ("B", "H", "M", "N")]):
    c[:, :, :, :] = I.matmul(a[:, :, :, :], b[:, :, :], acc_dtype=I.f32)


@pytest.mark.parametrize("size", [(2, 3, 8, 32, 8), (3, 2, 5, 7, 3), (0, 2, 2, 2, 2), (2, 2, 3, 0, 2)])
def test_batched_gemm_broadcasts_its_batches(size, rng):
    B, H, M, K, N = size
    check(batched, [normal(rng, (B, 1, M, K)), normal(rng, (H, K, N)), out((B, H, M, N), "f32")],
          lambda a, b: a.astype(np.float64) @ b.astype(np.float64), floor=64)


@intent.kernel
def vectors(m: I.In[I.f32, ("M", "K")], v: I.In[I.f32, ("K",)], u: I.In[I.f32, ("M",)], mv: I.Out[I.f32, ("M",)], vm: I.Out[I.f32, ("K",)],
            mtv: I.Out[I.f32, ("K",)], dot: I.Out[I.f32, ()], outer: I.Out[I.f32, ("M", "K")]):
    a = m[:, :]
    mv[:] = I.matvec(a, v[:], acc_dtype=I.f32)
    vm[:] = I.vecmat(u[:], a, acc_dtype=I.f32)
    mtv[:] = I.matvec(a, u[:], acc_dtype=I.f32, transpose=True)
    dot[()] = I.dot(v[:], v[:], acc_dtype=I.f32)
    outer[:, :] = I.outer(u[:], v[:])


@pytest.mark.parametrize("size", [(8, 64), (5, 33), (33, 5), (0, 4), (4, 0), (2, 4200)])
def test_vector_products(size, rng):
    M, K = size

    def oracle(m, v, u):
        wide = m.astype(np.float64)
        return wide @ v, u @ wide, wide.T @ u, np.asarray(np.dot(v.astype(np.float64), v)), np.outer(u, v)

    got = check(vectors, [normal(rng, (M, K)), normal(rng, K), normal(rng, M), out(M, "f32"), out(K, "f32"), out(K, "f32"), out((), "f32"),
                          out((M, K), "f32")],
                oracle, floor=8.0 * (K + M + 8))
    assert got[1].tobytes() == got[2].tobytes(), "vecmat and the transposed matvec are one contraction"


@intent.kernel
def contract_case(a: I.In[I.f32, ("P", "Q", "R")], b: I.In[I.f32, ("Q", "R", "S")], c: I.Out[I.f32, ("P", "Q", "S")],
                  d: I.Out[I.f32, ("P", "S")]):
    c[:, :, :] = I.contract(a[:, :, :], b[:, :, :], reduce=((2, 1),), batch=((1, 0),), acc_dtype=I.f32)
    d[:, :] = I.contract(a[:, :, :], b[:, :, :], reduce=((2, 1), (1, 0)), batch=(), acc_dtype=I.f32)


@pytest.mark.parametrize("size", [(2, 3, 4, 5), (3, 2, 33, 7), (2, 0, 3, 2), (2, 3, 0, 2)])
def test_contract_with_batch_and_several_axes(size, rng):
    P, Q, R, S = size
    check(contract_case, [normal(rng, (P, Q, R)), normal(rng, (Q, R, S)), out((P, Q, S), "f32"), out((P, S), "f32")],
          lambda a, b: (np.einsum("pqr,qrs->pqs", a.astype("d"), b), np.einsum("pqr,qrs->ps", a.astype("d"), b)), floor=256)


@cache
def convolution(padding):
    @intent.kernel
    def convolution(x: I.In[I.f32, ("C", "H", "W")], w: I.In[I.f32, ("F", "C", "R", "S")], y: I.Out[I.f32, ("F", "P", "Q")]):
        C, H, W = x.shape
        F, C2, R, S = w.shape
        F2, P, Q = y.shape
        c, r, s = I.domain(0, C), I.domain(0, R), I.domain(0, S)
        columns = I.domain(0, Q)
        for p in I.parallel(I.domain(0, P)):
            i = I.indices(r) + p - padding
            j = I.indices(columns)[:, None] + I.indices(s) - padding
            inside = ((i >= 0) & (i < H))[:, None, None] & ((j >= 0) & (j < W))[None, :, :]
            patch = I.gather(x, index=(I.indices(c)[:, None, None, None], i[:, None, None], j[None, :, :]), valid=inside, fill=0.0)
            y[:, p, columns] = I.contract(w[:, :, :, :], patch, reduce=((1, 0), (2, 1), (3, 3)), batch=(), acc_dtype=I.f32)

    return convolution


@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("size", [(2, 6, 33, 3, 3, 3), (1, 5, 7, 2, 2, 3), (3, 4, 4, 0, 3, 3)])
def test_convolution(padding, size, rng):
    C, H, W, F, R, S = size
    x, w = normal(rng, (C, H, W)), normal(rng, (F, C, R, S))
    shape = F, H + 2 * padding - R + 1, W + 2 * padding - S + 1

    def oracle(x, w):
        padded = np.pad(x, ((0, 0), (padding, padding), (padding, padding))).astype(np.float64)
        return np.array([signal.correlate(padded, f, "valid")[0] for f in w.astype(np.float64)]).reshape(shape)

    check(convolution(padding), [x, w, out(shape, "f32")], oracle, floor=256)


@intent.kernel
def attention(q: I.In[I.f32, ("H", "S", "D")], k: I.In[I.f32, ("H", "T", "D")], v: I.In[I.f32, ("H", "T", "E")],
              o: I.Out[I.f32, ("H", "S", "E")],
              scale: I.f32, CAUSAL: I.Constexpr[bool]):
    H, S, D = q.shape
    T = k.shape[1]
    rows, keys = I.domain(0, S), I.domain(0, T)
    for h in I.parallel(I.domain(0, H)):
        scores = I.matmul(q[h, rows, :], k[h, keys, :], acc_dtype=I.f32, transpose_rhs=True) * scale
        if CAUSAL:
            scores = I.select(I.indices(keys)[None, :] <= I.indices(rows)[:, None], scores, -I.inf)
        m = I.reduce.max(scores, axis=1)
        e = I.exp(scores - m[:, None])
        p = e / I.reduce.sum(e, axis=1)[:, None]
        o[h, rows, :] = I.matmul(p, v[h, keys, :], acc_dtype=I.f32)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("size", [(2, 16, 64, 16, 16), (1, 5, 7, 3, 2), (2, 33, 33, 8, 8), (1, 0, 3, 2, 2), (0, 2, 2, 2, 2)])
def test_attention(causal, size, rng):
    H, S, T, D, E = size

    def oracle(q, k, v, scale):
        s = q.astype(np.float64) @ k.astype(np.float64).swapaxes(1, 2) * scale
        if causal:
            s = np.where(np.arange(T) <= np.arange(S)[:, None], s, -np.inf)
        return (special.softmax(s, axis=2) if s.size else s) @ v

    check(attention, [normal(rng, (H, S, D)), normal(rng, (H, T, D)), normal(rng, (H, T, E)), out((H, S, E), "f32"), np.float32(D ** -0.5)],
          oracle, constexprs={"CAUSAL": causal}, ulps=8, floor=64)


@intent.kernel
def gram(x: I.In[I.f32, ("N", "D")], y: I.Out[I.f32, ("N", "N")]):
    v = x[:, :]
    y[:, :] = I.matmul(v, v, acc_dtype=I.f32, transpose_rhs=True)


@pytest.mark.parametrize("n,d", [(16, 32), (7, 5), (0, 3), (3, 0)])
def test_gram_matrix(n, d, rng):
    (got,) = check(gram, [normal(rng, (n, d)), out((n, n), "f32")], lambda x: x.astype("d") @ x.T.astype("d"), floor=64)
    assert np.array_equal(got, got.T)


@intent.kernel
def chained(a: I.In[I.f64, ("M", "K")], b: I.In[I.f64, ("K", "N")], c: I.In[I.f64, ("N", "P")], d: I.Out[I.f64, ("M", "P")]):
    ab = I.matmul(a[:, :], b[:, :], acc_dtype=I.f64)
    d[:, :] = I.matmul(ab, c[:, :], acc_dtype=I.f64) + I.reduce.sum(ab, axis=1)[:, None]


@pytest.mark.parametrize("size", [(4, 32, 8, 16), (5, 3, 7, 9), (2, 0, 3, 2)])
def test_chained_products(size, rng):
    M, K, N, P = size
    a, b, c = rng.standard_normal((M, K)), rng.standard_normal((K, N)), rng.standard_normal((N, P))
    check(chained, [a, b, c, out((M, P), "f64")], lambda a, b, c: a @ b @ c + (a @ b).sum(1)[:, None], floor=512)


@intent.kernel
def scores(a: I.In[I.f32, ("M", "D")], b: I.In[I.f32, ("D", "N")], c: I.In[I.f32, ("N", "E")], y: I.Out[I.f32, ("M", "E")]):
    s = I.matmul(a[:, :], b[:, :], acc_dtype=I.f32)
    scaled = (s - I.reduce.min(s, axis=1)[:, None]) * I.reduce.max(s, axis=1)[:, None]
    y[:, :] = I.matmul(scaled, c[:, :], acc_dtype=I.f32)


@pytest.mark.parametrize("size", [(7, 5, 40, 33), (70, 16, 90, 40), (1, 1, 1, 1), (33, 4, 3, 2)])
def test_a_product_whose_left_rows_read_numbers_of_their_own(size, rng):
    M, D, N, E = size

    def oracle(a, b, c):
        s = a.astype(np.float64) @ b
        return ((s - s.min(1)[:, None]) * s.max(1)[:, None]) @ c
    check(scores, [normal(rng, (M, D)), normal(rng, (D, N)), normal(rng, (N, E)), out((M, E), "f32")], oracle, floor=64.0 * N * D * D)


@cache
def joined(dt):
    @intent.kernel
    def joined(x: I.In[dt, ("M", "N")], y: I.Out[I.f32, (2,)]):
        v = x[:, :]
        y[:] = I.contract(v, I.join(v, v), reduce=((1, 1), (0, 0)), acc_dtype=I.f32)
    return joined


@pytest.mark.parametrize("dt", [I.f16, I.bf16, I.f8e5m2, I.f32], ids=lambda d: d.name)
@pytest.mark.parametrize("size", [(2, 3), (1, 33), (40, 65)])
def test_an_element_that_is_read_as_itself_and_as_f32(size, dt, rng):
    """One number stands in all lanes in both dtypes."""
    x = rng.integers(-3, 4, size).astype(numpy_dtype(dt))
    check(joined(dt), [x, out((2,), "f32")], lambda x: np.full(2, (x.astype(np.float32) ** 2).sum(dtype=np.float32)))
