"""Layers over packed weights: quantizers written in the language, their layouts bit for bit, and products over what they give.

int8 and int4 with scales, MX blocks, structured sparsity, Q4_K. Exact oracles where the arithmetic is exact, f64 elsewhere.
"""
from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from tests.language.test_quantized import q4_records, quantize, quantized_dot, unpack_q4
from tests.language.test_scaled import e8m0, unpack
from tests.support import check, normal, out

LAYOUTS = ("contiguous", "mixed")
F = np.float32


# --- int8: tokens quantized as they come ----------------------------------------------------------------------------------------

@intent.kernel
def w8a8(x: I.In[I.bf16, ("T", "K")], w: I.In[I.i8, ("N", "K")], w_scale: I.In[I.f32, ("N",)], bias: I.In[I.f32, ("N",)],
         y: I.Out[I.bf16, ("T", "N")], scale: I.Out[I.f32, ("T",)]):
    v = I.cast(x[:, :], I.f32)
    top = I.reduce.max(I.abs(v), axis=1)
    s = I.select(top > 0.0, top / 127.0, 1.0)
    q = I.saturating_cast(nearest(v / s[:, None]), I.i8)
    acc = I.matmul(q, w[:, :], acc_dtype=I.i32, transpose_rhs=True)
    y[:, :] = I.cast(I.cast(acc, I.f32) * (s[:, None] * w_scale[:][None, :]) + bias[:][None, :], I.bf16)
    scale[:] = s


@intent.fn
def nearest(v):
    """To the nearest integer, halves to even, for |v| < 2^22."""
    return (v + 12582912.0) - 12582912.0


@pytest.mark.parametrize("T, K, N", [(0, 4, 3), (1, 1, 1), (5, 64, 33), (70, 1100, 9), (3, 0, 4)])
def test_w8a8(T, K, N, rng):
    def oracle(x, w, w_scale, bias):
        v = x.astype("f4")
        top = np.abs(v).max(1, initial=-np.inf)
        s = np.where(top > 0, top / F(127), F(1)).astype("f4")
        q = np.clip(np.rint(v / s[:, None]), -128, 127).astype("i4")
        acc = (q @ w.astype("i4").T).astype("f4")
        scaled = acc.astype("f8") * (s[:, None] * w_scale[None, :]).astype("f8") + bias            # the kernel's fma
        return scaled.astype("f4").astype(ml_dtypes.bfloat16), s
    args = [normal(rng, (T, K), "bf16"), rng.integers(-128, 128, (N, K)).astype("i1"), rng.random(N).astype("f4"), normal(rng, (N,)),
            out((T, N), "bf16"), out(T, "f32")]
    check(w8a8, args, oracle, layouts=LAYOUTS)


# --- 4 bits: packed in pairs, with scales of groups, uniform and by a table ----------------------------------------------------------

@intent.kernel
def pack_int4(w: I.In[I.f32, ("P", 32, "N")], packed: I.Out[I.u8, ("P", 16, "N")], scale: I.Out[I.f16, ("P", "N")]):
    """Two's complement nibbles, the even row low; one f16 scale for 32 rows of a column."""
    P, _, N = w.shape
    v = w[:, :, :]
    s = I.cast(I.reduce.max(I.abs(v), axis=1) / 7.0, I.f16)
    scale[:, :] = s
    q = I.saturating_cast(nearest(v / I.select(s > 0.0, I.cast(s, I.f32), 1.0)[:, None, :]), I.i8)
    nibble = I.reshape(I.bitcast(I.clamp(q, -8, 7), I.u8) & 15, (P, 16, 2, N))
    packed[:, :, :] = nibble[:, :, 0, :] | (nibble[:, :, 1, :] << 4)


@intent.fn
def nibbles(packed):
    """[P, 16, N] carriers as [P, 32, N] codes."""
    P, H, N = packed.shape
    return I.reshape(I.transpose(I.join(packed & 15, packed >> 4), (0, 1, 3, 2)), (P, 2 * H, N))


@intent.kernel
def int4_linear(x: I.In[I.f32, ("M", "P", 32)], packed: I.In[I.u8, ("P", 16, "N")], scale: I.In[I.f16, ("P", "N")],
                y: I.Out[I.f32, ("M", "N")]):
    signed = I.bitcast(nibbles(packed[:, :, :]) << 4, I.i8) >> 4
    w = I.cast(signed, I.f32) * I.cast(scale[:, :], I.f32)[:, None, :]
    y[:, :] = I.contract(x[:, :, :], w, reduce=((1, 0), (2, 1)), batch=(), acc_dtype=I.f32)


def int4_oracle(w):
    s = (np.abs(w).max(1) / F(7)).astype("f2")
    q = np.clip(np.rint(w / np.where(s > 0, s.astype("f4"), F(1))[:, None]), -8, 7).astype("i1").view("u1") & 15
    return q[:, 0::2] | q[:, 1::2] << 4, s


@pytest.mark.parametrize("M, P, N", [(0, 1, 3), (1, 1, 1), (1, 5, 40), (7, 3, 33), (50, 40, 5), (3, 0, 4)])
def test_int4_weights(M, P, N, rng):
    w = normal(rng, (P, 32, N))
    w[:1, :, :1] = 0
    packed, scale = check(pack_int4, [w, out((P, 16, N), "u8"), out((P, N), "f16")], int4_oracle, layouts=LAYOUTS)

    def oracle(x, packed, scale):
        q = np.stack([packed & 15, packed >> 4], 2).reshape(P, 32, N).astype("i4")
        return np.einsum("mpk,pkn->mn", x.astype("f8"), (q - 16 * (q > 7)) * scale.astype("f8")[:, None])
    check(int4_linear, [normal(rng, (M, P, 32)), packed, scale, out((M, N), "f32")], oracle, ulps=16, floor=64 + 32 * P, layouts=LAYOUTS)


@intent.kernel
def table_linear(x: I.In[I.bf16, ("M", "P", 32)], packed: I.In[I.u8, ("P", 16, "N")], scale: I.In[I.f32, ("P", "N")],
                 table: I.In[I.f32, (16,)], y: I.Out[I.f32, ("M", "N")]):
    w = table[nibbles(packed[:, :, :])] * scale[:, :][:, None, :]
    y[:, :] = I.contract(I.cast(x[:, :, :], I.f32), w, reduce=((1, 0), (2, 1)), batch=(), acc_dtype=I.f32)


@pytest.mark.parametrize("M, P, N", [(1, 1, 1), (1, 4, 35), (9, 2, 6)])
def test_weights_by_a_table_of_16_values(M, P, N, rng):
    def oracle(x, packed, scale, table):
        w = table[np.stack([packed & 15, packed >> 4], 2).reshape(P, 32, N)].astype("f8") * scale[:, None]
        return np.einsum("mpk,pkn->mn", x.astype("f8"), w)
    args = [normal(rng, (M, P, 32), "bf16"), rng.integers(0, 256, (P, 16, N)).astype("u1"), rng.random((P, N)).astype("f4"),
            np.sort(normal(rng, 16)), out((M, N), "f32")]
    check(table_linear, args, oracle, ulps=16, floor=64 + 32 * P, layouts=LAYOUTS)


# --- MX blocks: a power of two for 32 elements -------------------------------------------------------------------------------------

@intent.fn
def block_exponents(v, top_exponent):
    """The e8m0 code that brings a block's largest element to ``top_exponent``, from the bits of its magnitude; and its inverse."""
    largest = I.bitcast(I.reduce.max(I.abs(v), axis=2), I.u32) >> 23
    code = I.select(largest > top_exponent, largest - top_exponent, 0)
    return I.cast(code, I.u8), I.bitcast((254 - code) << 23, I.f32)


@intent.kernel
def to_mx8(x: I.In[I.f32, ("M", "G", 32)], element: I.Out[I.f8e4m3fn, ("M", "G", 32)], scale: I.Out[I.u8, ("M", "G")]):
    v = x[:, :, :]
    code, inverse = block_exponents(v, 8)
    scale[:, :] = code
    element[:, :, :] = I.saturating_cast(v * inverse[:, :, None], I.f8e4m3fn)


@intent.kernel
def to_mx4(x: I.In[I.f32, ("M", "G", 32)], packed: I.Out[I.u8, ("M", "G", 16)], scale: I.Out[I.u8, ("M", "G")]):
    """To the nearest of 0 1/2 1 3/2 2 3 4 6, halves to the even code: the code counts the midpoints that lie below."""
    M, G, _ = x.shape
    v = x[:, :, :]
    code, inverse = block_exponents(v, 2)
    scale[:, :] = code
    u = v * inverse[:, :, None]
    a = I.abs(u)
    odd = I.cast(a > 0.25, I.u8) + I.cast(a > 1.25, I.u8) + I.cast(a > 2.5, I.u8) + I.cast(a > 5.0, I.u8)
    even = I.cast(a >= 0.75, I.u8) + I.cast(a >= 1.75, I.u8) + I.cast(a >= 3.5, I.u8)
    c = odd + even + I.select(u < 0.0, I.full((M, G, 32), 8, I.u8), 0)
    pair = I.reshape(c, (M, G, 16, 2))
    packed[:, :, :] = pair[:, :, :, 0] | (pair[:, :, :, 1] << 4)


@intent.kernel
def mx_linear(a: I.In[I.u8, ("M", "G", 16)], sa: I.In[I.u8, ("M", "G")], w: I.In[I.f8e4m3fn, ("N", "G", 32)], sw: I.In[I.u8, ("N", "G")],
              y: I.Out[I.f32, ("M", "N")]):
    y[:, :] = I.scaled_matmul(a[:, :, :], sa[:, :], I.transpose(w[:, :, :], (1, 2, 0)), sw[:, :], lhs_format=I.e2m1, rhs_format=I.e4m3,
                              group_size=32, acc_dtype=I.f32)


def exponents(x, top):
    code = np.maximum(np.frexp(np.abs(x).max(2))[1].astype("i8") + 126 - top, 0)
    return code.astype("u1"), x.astype("f8") * np.exp2(127.0 - code)[..., None]


@pytest.mark.parametrize("M, G, N", [(0, 2, 3), (1, 1, 1), (5, 3, 33), (60, 2, 7), (2, 40, 5)])
def test_mx_blocks(M, G, N, rng):
    x, w = (normal(rng, (n, G, 32)) * np.exp2(rng.integers(-6, 7, (n, G, 1))).astype("f4") for n in (M, N))
    x[:1, :1, :6] = np.float32([0.25, 0.75, 2.5, 5, 1.75, 4])        # with 4 the largest these are midpoints

    def mx4(x):
        code, u = exponents(x, 2)
        table = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
        apart = np.abs(np.abs(u)[..., None] - table)
        best = apart == apart.min(-1, keepdims=True)
        c = np.where(best.sum(-1) > 1, np.where(best, np.arange(8) % 2 * 10 + np.arange(8), 99).argmin(-1), apart.argmin(-1))
        c = (c + 8 * (u < 0)).astype("u1")
        return c[..., 0::2] | c[..., 1::2] << 4, code

    def mx8(x):
        code, u = exponents(x, 8)
        return np.clip(u, -448, 448).astype("f4").astype(ml_dtypes.float8_e4m3fn), code
    a, sa = check(to_mx4, [x, out((M, G, 16), "u8"), out((M, G), "u8")], mx4, layouts=LAYOUTS)
    b, sb = check(to_mx8, [w, out((N, G, 32), "f8e4m3fn"), out((N, G), "u8")], mx8, layouts=LAYOUTS)

    def oracle(a, sa, b, sb):
        return np.einsum("mgc,ngc->mn", unpack(a, 2) * e8m0(sa)[..., None], b.astype("f8") * e8m0(sb)[..., None])
    terms = np.einsum("mgc,ngc->mn", np.abs(x).astype("f8"), np.abs(w))
    (y,) = check(mx_linear, [a, sa, b, sb, out((M, N), "f32")], oracle, floor=16 * terms.max(initial=0), layouts=LAYOUTS)
    assert (np.abs(y - np.einsum("mgc,ngc->mn", x.astype("f8"), w)) <= 0.35 * terms).all()


# --- structured sparsity: prune, then multiply ----------------------------------------------------------------------------------------

@intent.kernel
def prune_2_4(w: I.In[I.f32, ("M", "Q", 4)], kept: I.Out[I.f32, ("M", "Q", 2)], first: I.Out[I.index, ("M", "Q")],
              second: I.Out[I.index, ("M", "Q")]):
    """The two of largest magnitude, the earlier on ties, in source order."""
    M, Q, _ = w.shape
    v = w[:, :, :]
    at = I.indices(I.domain(0, 4))
    _, best = I.arg_reduce.max(I.abs(v), axis=2)
    _, next_ = I.arg_reduce.max(I.select(at == best[:, :, None], -1.0, I.abs(v)), axis=2)
    i, j = I.minimum(best, next_), I.maximum(best, next_)
    first[:, :] = i
    second[:, :] = j
    rows, groups = I.indices(I.domain(0, M))[:, None], I.indices(I.domain(0, Q))[None, :]
    kept[:, :, :] = I.join(v[rows, groups, i], v[rows, groups, j])


@intent.kernel
def linear_2_4(kept: I.In[I.f32, ("M", "H")], first: I.In[I.index, ("M", "Q")], second: I.In[I.index, ("M", "Q")],
               x: I.In[I.f32, ("T", "K")], y: I.Out[I.f32, ("T", "M")]):
    T, K = x.shape
    places = I.record(first=first[:, :], second=second[:, :])
    y[:, :] = I.transpose(I.sparse_matmul(kept[:, :], places, I.transpose(x[:, :]), acc_dtype=I.f32,
                                          format=I.sparse.two_of_four(compression_axis=1, logical_extent=K)))


@intent.kernel
def prune_1_2(w: I.In[I.f32, ("M", "H", 2)], kept: I.Out[I.f32, ("M", "H")], where: I.Out[I.index, ("M", "H")]):
    left, right = w[:, :, 0], w[:, :, 1]
    later = I.abs(right) > I.abs(left)
    kept[:, :] = I.select(later, right, left)
    where[:, :] = I.select(later, I.full(left.shape, 1, I.index), 0)


@intent.kernel
def linear_1_2(kept: I.In[I.f32, ("M", "H")], where: I.In[I.index, ("M", "H")], x: I.In[I.f32, ("T", "K")], y: I.Out[I.f32, ("T", "M")]):
    K = x.shape[1]
    y[:, :] = I.transpose(I.sparse_matmul(kept[:, :], where[:, :], I.transpose(x[:, :]), acc_dtype=I.f32,
                                          format=I.sparse.one_of_two(compression_axis=1, logical_extent=K)))


@intent.kernel
def dense_linear(w: I.In[I.f32, ("M", "K")], x: I.In[I.f32, ("T", "K")], y: I.Out[I.f32, ("T", "M")]):
    y[:, :] = I.matmul(x[:, :], w[:, :], acc_dtype=I.f32, transpose_rhs=True)


@pytest.mark.parametrize("M, Q, T", [(0, 2, 3), (1, 1, 1), (5, 16, 33), (9, 300, 4), (3, 0, 2), (60, 7, 50)])
def test_pruned_weights_have_the_bits_of_dense_ones_with_zeros(M, Q, T, rng):
    w, x = normal(rng, (M, Q, 4)), normal(rng, (T, 4 * Q))
    w[:, :1] = np.float32([-1, 1, 1, -1])
    order = np.sort(np.argsort(-np.abs(w), axis=2, kind="stable")[..., :2], axis=2)
    dense = np.zeros_like(w)
    np.put_along_axis(dense, order, np.take_along_axis(w, order, 2), 2)
    kept, first, second = check(prune_2_4, [w, out((M, Q, 2), "f32"), out((M, Q), "index"), out((M, Q), "index")],
                                lambda w: (np.take_along_axis(w, order, 2), order[..., 0], order[..., 1]), layouts=LAYOUTS)
    check(linear_2_4, [kept.reshape(M, 2 * Q), first, second, x, out((T, M), "f32")],
          lambda *_: dense_linear.run(dense.reshape(M, 4 * Q), x), layouts=LAYOUTS)

    pairs = w.reshape(M, 2 * Q, 2)
    later = np.abs(pairs[..., 1]) > np.abs(pairs[..., 0])
    dense = np.where(np.stack([~later, later], 2), pairs, F(0)).reshape(M, 4 * Q)
    kept, where = check(prune_1_2, [pairs, out((M, 2 * Q), "f32"), out((M, 2 * Q), "index")],
                        lambda p: (np.where(later, p[..., 1], p[..., 0]), later.astype("i8")), layouts=LAYOUTS)
    check(linear_1_2, [kept, where, x, out((T, M), "f32")], lambda *_: dense_linear.run(dense, x), layouts=LAYOUTS)


# --- Q4_K ----------------------------------------------------------------------------------------------------------------------------

@intent.kernel
def q4_k_projection(w: I.In[I.u8, ("R", "G", 144)], x: I.In[I.f32, ("T", "G", 256)], bias: I.In[I.f32, ("R",)],
                    y: I.InOut[I.f32, ("T", "R")]):
    """Tokens are quantized first; then each row of weights meets each token, on top of what y holds."""
    R, G, _ = w.shape
    T = x.shape[0]
    tokens = I.reshape(I.quantize(I.reshape(x[:, :, :], (-1, 256)), format=I.quant.q8_k), (T, G, 292))
    for t, r in I.parallel((I.domain(0, T), I.domain(0, R))):
        dot = I.quantized_dot(w[r, :, :], tokens[t, :, :], lhs_format=I.quant.q4_k, rhs_format=I.quant.q8_k, acc_dtype=I.f32)
        y[t, r] = y[t, r] + (dot[()] + bias[r])


@intent.kernel
def q4_k_rows(w: I.In[I.u8, ("R", "G", 144)], token: I.In[I.i32, ("T",)], y: I.Out[I.f32, ("T", "G", 256)]):
    """An embedding: rows of records, decoded by ordinary bit operations."""
    T, G, _ = y.shape
    a = w[token[:], :, :]
    halves = I.bitcast(I.cast(I.join(a[:, :, 0], a[:, :, 2]), I.u16)
                       | (I.cast(I.join(a[:, :, 1], a[:, :, 3]), I.u16) << 8), I.f16)
    d, least = I.cast(halves[:, :, 0], I.f32), I.cast(halves[:, :, 1], I.f32)
    s = I.indices(I.domain(0, 8))
    t = s % 4
    low_scale, low_least, spill = a[:, :, 4 + t], a[:, :, 8 + t], a[:, :, 12 + t]
    first = s < 4
    sc = I.select(first, low_scale & 63, (spill & 15) | ((low_scale >> 6) << 4))
    m = I.select(first, low_least & 63, (spill >> 4) | ((low_least >> 6) << 4))
    i = I.indices(I.domain(0, 256))
    byte = a[:, :, 16 + 32 * (i // 64) + i % 32]
    q = I.select(i % 64 < 32, byte & 15, byte >> 4)
    part = i // 32
    y[:, :, :] = d[:, :, None] * I.cast(sc[:, :, part], I.f32) * I.cast(q, I.f32) - least[:, :, None] * I.cast(m[:, :, part], I.f32)


def decoded(record):
    d, least, sc, m, q = unpack_q4(record)
    return float(d) * np.repeat(sc, 32) * np.array(q) - float(least) * np.repeat(m, 32)


@pytest.mark.parametrize("T, R, G", [(0, 2, 1), (1, 1, 1), (3, 9, 2), (1, 2, 20), (2, 2, 0)])
def test_q4_k_projection(T, R, G, rng):
    w, x, bias, y = q4_records(rng, R * G).reshape(R, G, 144), normal(rng, (T, G, 256)), normal(rng, (R,)), normal(rng, (T, R))

    def oracle(w, x, bias, y):
        for t, r in np.ndindex(T, R):
            y[t, r] = y[t, r] + (quantized_dot(w[r], quantize(x[t])) + bias[r])
        return y
    got, = check(q4_k_projection, [w, x, bias, y], oracle, layouts=LAYOUTS)
    rows = np.array([[decoded(a) for a in row] for row in w]).reshape(R, G * 256)
    step = np.abs(x).max(initial=0) / 254                    # a token's elements are off by no more
    assert (np.abs(got - y - bias - x.reshape(T, G * 256).astype("f8") @ rows.T) <= 1.1 * step * np.abs(rows).sum(1) + 1e-3).all()


def test_rows_of_q4_k(rng):
    w, token = q4_records(rng, 10).reshape(5, 2, 144), np.array([4, 0, 4], "i4")
    check(q4_k_rows, [w, token, out((3, 2, 256), "f32")], lambda w, t: np.array([[decoded(a) for a in row] for row in w[t]]), ulps=2,
          floor=2.0 ** 20, layouts=LAYOUTS)
