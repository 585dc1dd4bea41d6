"""Quantized records byte for byte, and their dot product rounding for rounding. The oracles are plain Python and NumPy scalars.
Spec: SUPPLEMENT 7, decision 30."""
from __future__ import annotations

import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from intent_numba.errors import IntentShapeError, IntentTypeError
from intent_numba.frontend import build_kernel
from tests.support import check, normal, out

F = np.float32


@intent.kernel
def to_q8(x: I.In[I.f32, ("G", 256)], y: I.Out[I.u8, ("G", 292)]):
    y[:, :] = I.quantize(x[:, :], format=I.quant.q8_k)


@intent.kernel
def one_dot(w: I.In[I.u8, ("G", 144)], x: I.In[I.u8, ("G", 292)], y: I.Out[I.f32, ()]):
    y[()] = I.quantized_dot(w[:, :], x[:, :], lhs_format=I.quant.q4_k, rhs_format=I.quant.q8_k, acc_dtype=I.f32)[()]


def quantize(values):
    records = np.zeros((len(values), 292), "u1")
    for block, record in zip(values, records):
        magnitude = np.abs(block).max()
        if magnitude == 0:
            continue
        extreme = -magnitude if -magnitude in block else magnitude
        inverse = F(-127) / extreme
        q = np.clip(np.rint(block * inverse), -128, 127).astype("i1")
        record[:4] = np.array([F(1) / inverse], "<f4").view("u1")
        record[4:260] = q.view("u1")
        record[260:] = q.reshape(16, 16).sum(1, dtype="<i2").view("u1")
    return records


def blocks(rng, kind):
    x = normal(rng, (6, 256))
    match kind:
        case "normal":
            return x
        case "zeros":
            x[1], x[3] = 0, -0.0
            return x
        case "ties":                                            # halves of the step, both signs, both extremes
            x = (rng.integers(-254, 255, (6, 256)) / 2).astype("f4")
            x[:, 3], x[:, 200] = 127, -127
            x[4:, 200] = 0
            return x
        case "positive":
            return np.abs(x)
        case "scales":
            return x * F(2.0) ** rng.integers(-100, 100, (6, 1)).astype("f4")
        case "none":
            return x[:0]


@pytest.mark.parametrize("kind", ["normal", "zeros", "ties", "positive", "scales", "none"])
def test_quantize(kind, rng):
    x = blocks(rng, kind)
    check(to_q8, [x, out((len(x), 292), "u8")], quantize, layouts=("contiguous", "mixed"))


def unpack_q4(a):
    fields = []
    for r in (0, 1):
        low = [int(a[4 + 4 * r + i]) & 63 for i in range(4)]
        high = [(int(a[12 + t]) >> 4 * r) & 15 | (int(a[4 + 4 * r + t]) >> 6) << 4 for t in range(4)]
        fields.append(low + high)
    q = [int(a[16 + 32 * (i // 64) + i % 32]) >> (0 if i % 64 < 32 else 4) & 15 for i in range(256)]
    d, dmin = a[:4].view("<f2").astype("f4")
    return d, dmin, *fields, q


def quantized_dot(w, x):
    total = F(0)
    for a, b in zip(w, x):
        d, dmin, sc, m, wq = unpack_q4(a)
        ds, xq, bsum = b[:4].view("<f4")[0], b[4:260].view("i1").tolist(), b[260:].view("<i2").tolist()
        S = sum(sc[s] * sum(wq[32 * s + i] * xq[32 * s + i] for i in range(32)) for s in range(8))
        T = sum(m[s] * (bsum[2 * s] + bsum[2 * s + 1]) for s in range(8))
        total = total + ds * (d * F(S) - dmin * F(T))
    return np.array(total)


def q4_records(rng, count):
    w = rng.integers(0, 256, (count, 144)).astype("u1")
    w[:, :4] = rng.standard_normal((count, 2)).astype("<f2").view("u1")
    return w


@pytest.mark.parametrize("count", [0, 1, 2, 40])
def test_dot(count, rng):
    w, x = q4_records(rng, count), quantize(normal(rng, (count, 256)))
    got = check(one_dot, [w, x, out((), "f32")], quantized_dot, layouts=("contiguous", "mixed"))
    assert count or not np.signbit(got[0])


def test_dot_with_extreme_bytes():
    """Largest fields: the exact sums need more than 24 bits, and the product rounds after the conversion."""
    w = np.full((3, 144), 0xFF, "u1")
    w[:, :4] = np.array([[1.0, -1.0], [65504, 6e-8], [-0.0, 0.0]], "<f2").view("u1")
    x = np.zeros((3, 292), "u1")
    x[:, :4] = np.array([[1e-3], [3.0], [-1.0]], "<f4").view("u1")
    x[:, 4:260] = np.array([127, -128, 77], "i1").view("u1")[:, None]
    x[:, 260:] = np.repeat(np.array([127 * 16, -128 * 16, 77 * 16], "<i2")[:, None], 16, 1).view("u1")
    check(one_dot, [w, x, out((), "f32")], quantized_dot, layouts=("contiguous",))


@intent.kernel
def projection(w: I.In[I.u8, ("R", "G", 144)], x: I.In[I.f32, ("T", "G", 256)], y: I.Out[I.f32, ("T", "R")]):
    """A Q4_K layer: each token is quantized once, every row of weights meets it."""
    R, G, _ = w.shape
    T = x.shape[0]
    for t in I.parallel(I.domain(0, T)):
        token = I.quantize(x[t, :, :], format=I.quant.q8_k)
        for r in I.parallel(I.domain(0, R)):
            y[t, r] = I.quantized_dot(w[r, :, :], token, lhs_format=I.quant.q4_k, rhs_format=I.quant.q8_k, acc_dtype=I.f32)[()]


@pytest.mark.parametrize("T, R, G", [(2, 5, 2), (1, 3, 1), (2, 0, 1), (1, 2, 0)])
def test_q4_k_projection(T, R, G, rng):
    w, x = q4_records(rng, R * G).reshape(R, G, 144), normal(rng, (T, G, 256))

    def oracle(w, x):
        return np.array([[quantized_dot(w[r], quantize(x[t])) for r in range(R)] for t in range(T)], "f4").reshape(T, R)
    check(projection, [w, x, out((T, R), "f32")], oracle, layouts=("contiguous", "mixed"))


@intent.kernel
def int4_gemm(x: I.In[I.f32, ("M", "K")], w: I.In[I.u8, ("H", "N")], scale: I.In[I.f32, ("P", "N")], zero: I.In[I.u8, ("P", "N")],
              y: I.Out[I.f32, ("M", "N")], GROUP: I.Constexpr[int]):
    """Weight-only int4: carriers are decoded, shifted by a zero point and scaled explicitly, then contracted."""
    M, K = x.shape
    N = w.shape[1]
    k = I.indices(I.domain(0, K))
    columns = I.indices(I.domain(0, N))
    code = (w[(k // 2)[:, None], columns[None, :]] >> I.cast(k % 2 * 4, I.u8)[:, None]) & 15
    group = (k // GROUP)[:, None]
    shift = I.cast(code, I.i32) - I.cast(zero[group, columns[None, :]], I.i32)
    y[:, :] = I.matmul(x[:, :], I.cast(shift, I.f32) * scale[group, columns[None, :]], acc_dtype=I.f32)


@pytest.mark.parametrize("M, K, N", [(5, 64, 7), (1, 32, 1), (3, 1088, 4)])
def test_int4_weight_only_gemm(M, K, N, rng):
    x = normal(rng, (M, K))
    w, zero = rng.integers(0, 256, (K // 2, N)).astype("u1"), rng.integers(0, 16, (K // 32, N)).astype("u1")
    scale = normal(rng, (K // 32, N))

    def oracle(x, w, scale, zero):
        q = np.stack([w & 15, w >> 4], 1).reshape(K, N).astype("f8")
        weights = (q - np.repeat(zero, 32, 0)) * np.repeat(scale, 32, 0)
        return x.astype("f8") @ weights
    check(int4_gemm, [x, w, scale, zero, out((M, N), "f32")], oracle, constexprs={"GROUP": 32}, ulps=16, floor=600,
          layouts=("contiguous", "mixed"))


def rows_of(width, dt="f32"):
    def kernel(x, y):
        y[:, :] = I.quantize(x[:, :], format=I.quant.q8_k)
    kernel.__annotations__ = {"x": I.In[I.dtype(dt), ("G", width)], "y": I.Out[I.u8, ("G", 292)]}
    return kernel


def dot_of(left=144, right=292, lhs=I.quant.q4_k, rhs=I.quant.q8_k, acc=I.f32, records="G"):
    def kernel(w, x, y):
        y[()] = I.quantized_dot(w[:, :], x[:, :], lhs_format=lhs, rhs_format=rhs, acc_dtype=acc)[()]
    kernel.__annotations__ = {"w": I.In[I.u8, ("G", left)], "x": I.In[I.u8, (records, right)], "y": I.Out[I.f32, ()]}
    return kernel


@pytest.mark.parametrize("kernel, error, text", [
    (rows_of(255), IntentShapeError, "extent 255 where 256"), (rows_of("K"), IntentShapeError, "annotate the extent as 256"),
    (rows_of(256, "f64"), IntentTypeError, "values must hold f32"), (dot_of(left=145), IntentShapeError, "records of lhs"),
    (dot_of(right=256), IntentShapeError, "records of rhs"), (dot_of(lhs=I.quant.q8_k), IntentTypeError, "lhs_format"),
    (dot_of(rhs=I.e2m1), IntentTypeError, "rhs_format"), (dot_of(acc=I.f64), IntentTypeError, "acc_dtype must be I.f32"),
    (dot_of(records="H"), IntentShapeError, "records"),
])
def test_refused(kernel, error, text):
    with pytest.raises(error) as caught:
        build_kernel(kernel)
    assert text in str(caught.value)
