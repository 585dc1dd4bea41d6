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


# --- int4: packed in pairs, with scales of groups ----------------------------------------------------------------------------------

@intent.kernel
def pack_int4(w: I.In[I.f32, ("K", "N")], packed: I.Out[I.u8, ("H", "N")], scale: I.Out[I.f16, ("P", "N")], GROUP: I.Constexpr[int]):
    """Two's complement nibbles, the even row low; one f16 scale for GROUP rows."""
    K, N = w.shape
    H, P = packed.shape[0], scale.shape[0]
    k = I.indices(I.domain(0, H))
    columns = I.domain(0, N)
    groups = I.reshape(w[:, :], (P, GROUP, N)) if P * GROUP == K else I.zeros((P, GROUP, N), I.f32)
    s = I.cast(I.reduce.max(I.abs(groups), axis=1) / 7.0, I.f16)
    scale[:, :] = s
    wide = I.select(s > 0.0, I.cast(s, I.f32), 1.0)
    low, high = 2 * k, 2 * k + 1
    a = I.saturating_cast(nearest(w[low, columns] / wide[low // GROUP, columns]), I.i8) & 15
    b = I.saturating_cast(nearest(w[high, columns] / wide[high // GROUP, columns]), I.i8) & 15
    packed[:, :] = I.bitcast(a, I.u8) | (I.bitcast(b, I.u8) << 4)
