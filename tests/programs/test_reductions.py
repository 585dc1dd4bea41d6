"""Sums, normalisations and losses: programs made of reductions and broadcasts."""
from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy import special

import intent_numba as intent
import intent_numba.language as I
from tests.support import check, integers, normal, out

SHAPES = [(4, 64), (3, 37), (37, 3), (2, 4200), (0, 5), (1, 1)]


@cache
def softmax(dt, axis):
    @intent.kernel
    def softmax(x: I.In[dt, ("M", "N")], y: I.Out[dt, ("M", "N")]):
        v = I.cast(x[:, :], I.f32)
        m = I.reduce.max(v, axis=axis)
        e = I.exp(v - (m[:, None] if axis == 1 else m[None, :]))
        s = I.reduce.sum(e, axis=axis)
        y[:, :] = I.cast(e / (s[:, None] if axis == 1 else s[None, :]), dt)

    return softmax


@pytest.mark.parametrize("shape", [*SHAPES, (5, 0)])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dt", [I.f32, I.bf16], ids=lambda d: d.name)
def test_softmax(dt, axis, shape, rng):
    x = normal(rng, shape, dt, 3)
    check(softmax(dt, axis), [x, out(shape, dt)],
          lambda x: special.softmax(x.astype(np.float64), axis=axis) if x.size else x, ulps=24 if dt is I.f32 else 1)


@intent.kernel
def softmax_by_rows(x: I.In[I.f32, ("M", "N")], y: I.Out[I.f32, ("M", "N")]):
    M, N = x.shape
    columns = I.domain(0, N)
    for r in I.parallel(I.domain(0, M)):
        v = x[r, columns]
        e = I.exp(v - I.reduce.max(v, axis=0))
        y[r, columns] = e / I.reduce.sum(e, axis=0)


@pytest.mark.parametrize("shape", SHAPES)
def test_parallel_rows_give_the_bits_of_the_whole_tensor(shape, rng):
    x = normal(rng, shape, "f32", 3)
    (a,) = check(softmax_by_rows, [x, out(shape, "f32")])
    (b,) = check(softmax(I.f32, 1), [x, out(shape, "f32")])
    assert a.tobytes() == b.tobytes()


@intent.kernel
def layer_norm(x: I.In[I.f32, ("M", "N")], gain: I.In[I.f32, ("N",)], bias: I.In[I.f32, ("N",)], eps: I.f32,
               y: I.Out[I.f32, ("M", "N")], mean_out: I.Out[I.f32, ("M",)]):
    M, N = x.shape
    v = x[:, :]
    count = I.cast(N, I.f32)
    mean = I.reduce.sum(v, axis=1) / count
    d = v - mean[:, None]
    variance = I.reduce.sum(d * d, axis=1) / count
    y[:, :] = d * I.rsqrt(variance + eps)[:, None] * gain[:] + bias[:]
    mean_out[:] = mean


@pytest.mark.parametrize("shape", SHAPES)
def test_layer_norm(shape, rng):
    x, g, b = normal(rng, shape) + np.float32(1), normal(rng, shape[1]), normal(rng, shape[1])

    def oracle(x, g, b, eps):
        x = x.astype(np.float64)
        mean = x.mean(axis=1) if x.size else np.zeros(x.shape[0])
        var = x.var(axis=1) if x.size else np.zeros(x.shape[0])
        return (x - mean[:, None]) / np.sqrt(var + eps)[:, None] * g + b, mean

    check(layer_norm, [x, g, b, np.float32(1e-3), out(shape, "f32"), out(shape[0], "f32")], oracle, ulps=64, floor=64)


@cache
def rms_norm(dt):
    @intent.kernel
    def rms_norm(x: I.In[dt, ("M", "N")], gain: I.In[dt, ("N",)], y: I.Out[dt, ("M", "N")]):
        M, N = x.shape
        for r in I.parallel(I.domain(0, M)):
            v = I.cast(x[r, :], I.f32)
            scale = I.rsqrt(I.reduce.sum(v * v, axis=0) / I.cast(N, I.f32) + 1e-5)
            y[r, :] = I.cast(v * scale, dt) * gain[:]

    return rms_norm


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dt", [I.f32, I.f16, I.bf16], ids=lambda d: d.name)
def test_rms_norm(dt, shape, rng):
    x, g = normal(rng, shape, dt), normal(rng, shape[1], dt)

    def oracle(x, g):
        v = x.astype(np.float64)
        ms = np.mean(v * v, axis=1, keepdims=True) if v.size else np.zeros((v.shape[0], 1))
        return v / np.sqrt(ms + 1e-5) * g.astype(np.float64)

    check(rms_norm(dt), [x, g, out(shape, dt)], oracle, ulps=16 if dt is I.f32 else 2)


@intent.kernel
def log_sum_exp(x: I.In[I.f32, ("M", "N")], y: I.Out[I.f32, ("M",)]):
    v = x[:, :]
    m = I.reduce.max(v, axis=1)
    y[:] = m + I.log(I.reduce.sum(I.exp(v - m[:, None]), axis=1))


@pytest.mark.parametrize("shape", [(4, 64), (3, 37), (33, 2), (0, 5)])
def test_log_sum_exp(shape, rng):
    check(log_sum_exp, [normal(rng, shape, "f32", 4), out(shape[0], "f32")],
          lambda x: special.logsumexp(x.astype(np.float64), axis=1) if x.size else np.zeros(x.shape[0]), ulps=4, floor=2)


@cache
def sums(dt, acc):
    @intent.kernel
    def sums(x: I.In[dt, ("M", "N")], rows: I.Out[acc, ("M",)], columns: I.Out[acc, ("N",)], whole: I.Out[acc, ()]):
        v = x[:, :]
        rows[:] = I.reduce.sum(v, axis=1)
        columns[:] = I.reduce.sum(v, axis=0)
        whole[()] = I.reduce.sum(v, axis=(0, 1))

    return sums


WIDENED = [(I.f32, I.f32), (I.f64, I.f64), (I.f16, I.f32), (I.bf16, I.f32), (I.f8e5m2, I.f32), (I.i8, I.i32), (I.u8, I.u32), (I.i16, I.i32),
           (I.u16, I.u32), (I.i32, I.i32), (I.u32, I.u32), (I.i64, I.i64), (I.u64, I.u64)]


@pytest.mark.parametrize("shape", [*SHAPES, (5, 0), (70, 130)])
@pytest.mark.parametrize("dt,acc", WIDENED, ids=lambda d: d.name)
def test_sums(dt, acc, shape, rng):
    floating = dt.name[0] in "fb"
    x = normal(rng, shape, dt) if floating else integers(rng, shape, dt)
    M, N = shape

    def oracle(x):
        wide = x.astype(np.float64) if floating else x.astype({"u": np.uint64, "i": np.int64}[dt.name[0]])
        parts = wide.sum(axis=1), wide.sum(axis=0), np.asarray(wide.sum())
        return parts if floating else tuple(p.astype({"i32": np.int32, "u32": np.uint32}.get(acc.name, p.dtype)) for p in parts)

    check(sums(dt, acc), [x, out(M, acc), out(N, acc), out((), acc)], oracle, floor=40.0 * max(1, M * N) ** 0.5)


@intent.kernel
def extrema(x: I.In[I.f32, ("M", "N")], high: I.Out[I.f32, ("M",)], low: I.Out[I.f32, ("N",)], product: I.Out[I.f32, ("M",)],
            some: I.Out[I.bool, ("M",)], every: I.Out[I.bool, ("N",)]):
    v = x[:, :]
    high[:] = I.reduce.max(v, axis=-1)
    low[:] = I.reduce.min(v, axis=0)
    product[:] = I.reduce.prod(v, axis=1)
    some[:] = I.reduce.any(v > 2.0, axis=1)
    every[:] = I.reduce.all(v > -2.0, axis=0)


@pytest.mark.parametrize("shape", [(4, 64), (3, 37), (33, 2), (0, 3), (3, 0)])
def test_extrema(shape, rng):
    x = normal(rng, shape)

    def oracle(x):
        return (np.max(x, axis=1, initial=-np.inf), np.min(x, axis=0, initial=np.inf), np.prod(x.astype(np.float64), axis=1),
                np.any(x > 2, axis=1), np.all(x > -2, axis=0))

    M, N = shape
    check(extrema, [x, out(M, "f32"), out(N, "f32"), out(M, "f32"), out(M, "bool"), out(N, "bool")], oracle, ulps=2 * N + 2)


@cache
def arg_extrema(dt):
    @intent.kernel
    def arg_extrema(x: I.In[dt, ("M", "N")], v1: I.Out[dt, ("M",)], i1: I.Out[I.i64, ("M",)], v0: I.Out[dt, ("N",)],
                    i0: I.Out[I.i64, ("N",)]):
        v = x[:, :]
        value, index = I.arg_reduce.max(v, axis=1)
        v1[:] = value
        i1[:] = I.cast(index, I.i64)
        value, index = I.arg_reduce.min(v, axis=0)
        v0[:] = value
        i0[:] = I.cast(index, I.i64)

    return arg_extrema


@pytest.mark.parametrize("shape", [(4, 64), (3, 37), (40, 5), (2, 4200), (0, 5)])
@pytest.mark.parametrize("dt", [I.f32, I.i8, I.u32, I.f16], ids=lambda d: d.name)
def test_arg_extrema_with_ties_and_nan(dt, shape, rng):
    x = integers(rng, shape, "i8", -4 if dt.name[0] != "u" else 0, 5).astype({"f32": np.float32, "i8": np.int8, "u32": np.uint32,
                                                                              "f16": np.float16}[dt.name])
    if dt.name[0] == "f" and x.size:
        x[rng.random(shape) < 0.02] = np.nan

    def oracle(x):
        if not x.size:
            none = np.iinfo(np.int64).max
            return (np.zeros(0, x.dtype), np.zeros(0, np.int64), np.full(x.shape[1],
                                                                         np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).max, x.dtype),
                    np.full(x.shape[1], none))
        a, b = np.argmax(x, axis=1), np.argmin(x, axis=0)
        return np.take_along_axis(x, a[:, None], 1)[:, 0], a, np.take_along_axis(x, b[None], 0)[0], b

    M, N = shape
    check(arg_extrema(dt), [x, out(M, dt), out(M, "i64"), out(N, dt), out(N, "i64")], oracle)


@intent.kernel
def centred(x: I.In[I.f64, ("M", "N")], y: I.Out[I.f64, ("M", "N")]):
    M, N = x.shape
    v = x[:, :]
    row_mean = I.reduce.sum(v, axis=1) / I.cast(N, I.f64)
    column_mean = I.reduce.sum(v, axis=0) / I.cast(M, I.f64)
    y[:, :] = v - row_mean[:, None] - column_mean[None, :]


@pytest.mark.parametrize("shape", [(4, 64), (3, 37), (65, 33), (0, 5), (5, 0)])
def test_row_and_column_means(shape, rng):
    check(centred, [rng.standard_normal(shape), out(shape, "f64")],
          lambda x: x - x.mean(1)[:, None] - x.mean(0) if x.size else x, floor=64)


@intent.kernel
def cross_entropy(logits: I.In[I.f32, ("M", "N")], target: I.In[I.i32, ("M",)], ignore: I.i32, loss: I.Out[I.f32, ("M",)],
                  mean: I.Out[I.f32, ()]):
    M, N = logits.shape
    rows = I.domain(0, M)
    v = logits[rows, :]
    t = target[rows]
    active = t != ignore
    m = I.reduce.max(v, axis=1)
    lse = m + I.log(I.reduce.sum(I.exp(v - m[:, None]), axis=1))
    picked = I.gather(logits, index=(I.indices(rows), t), valid=active, fill=0.0)
    each = I.select(active, lse - picked, 0.0)
    loss[rows] = each
    count = I.reduce.sum(I.cast(active, I.i32), axis=0)
    mean[()] = I.reduce.sum(each, axis=0) / I.cast(I.maximum(count, 1), I.f32)


@pytest.mark.parametrize("shape", [(8, 64), (7, 33), (0, 4)])
def test_cross_entropy(shape, rng):
    M, N = shape
    x, t = normal(rng, shape, "f32", 3), integers(rng, M, "i32", 0, N)
    t[::3] = -100

    def oracle(x, t, ignore):
        x = x.astype(np.float64)
        active = t != ignore
        lse = special.logsumexp(x, axis=1) if x.size else np.zeros(0)
        each = np.where(active, lse - x[np.arange(M), np.where(active, t, 0)], 0)
        return each, np.asarray(each.sum() / max(active.sum(), 1))

    check(cross_entropy, [x, t, np.int32(-100), out(M, "f32"), out((), "f32")], oracle, ulps=16, floor=16)


@intent.kernel
def k_means_assignment(points: I.In[I.f32, ("N", "D")], centres: I.In[I.f32, ("K", "D")], label: I.Out[I.i32, ("N",)],
                       distance: I.Out[I.f32, ("N",)]):
    N, D = points.shape
    for n in I.parallel(I.domain(0, N)):
        d = points[n, :][None, :] - centres[:, :]
        value, index = I.arg_reduce.min(I.reduce.sum(d * d, axis=1), axis=0)
        label[n] = I.cast(index, I.i32)
        distance[n] = value


@pytest.mark.parametrize("n,k,d", [(32, 4, 8), (21, 7, 3), (0, 3, 2), (5, 1, 1)])
def test_k_means_assignment(n, k, d, rng):
    points, centres = normal(rng, (n, d)), normal(rng, (k, d))

    def oracle(p, c):
        dist = ((p[:, None].astype(np.float64) - c[None]) ** 2).sum(-1)
        return dist.argmin(1).astype(np.int32), dist.min(1, initial=np.inf)

    check(k_means_assignment, [points, centres, out(n, "i32"), out(n, "f32")], oracle, ulps=8)


@intent.kernel
def nested_axes(x: I.In[I.f32, ("A", "B", "C")], ac: I.Out[I.f32, ("B",)], bc: I.Out[I.f32, ("A",)], ab: I.Out[I.f32, ("C",)]):
    v = x[:, :, :]
    ac[:] = I.reduce.sum(v, axis=(0, 2))
    bc[:] = I.reduce.sum(v, axis=(-1, 1))
    ab[:] = I.reduce.max(v, axis=(0, 1))


@pytest.mark.parametrize("shape", [(3, 4, 32), (5, 3, 7), (2, 0, 3), (2, 3, 0)])
def test_several_axes(shape, rng):
    A, B, C = shape
    check(nested_axes, [normal(rng, shape), out(B, "f32"), out(A, "f32"), out(C, "f32")],
          lambda x: (x.sum((0, 2), dtype=np.float64), x.sum((1, 2), dtype=np.float64), x.max((0, 1), initial=-np.inf)), floor=64)


@intent.kernel
def two_pass(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, ("N",)], total: I.Out[I.f32, (1,)]):
    v = x[:]
    s = I.reduce.sum(v, axis=0)
    y[:] = v / s
    total[0] = s


@pytest.mark.parametrize("n", [64, 33, 4097, 10000])
def test_divide_by_the_whole_sum(n, rng):
    check(two_pass, [rng.random(n).astype(np.float32), out(n, "f32"), out(1, "f32")],
          lambda x: (x / x.sum(dtype=np.float64), x.sum(dtype=np.float64, keepdims=True)), ulps=8)


@intent.kernel
def segment_sums(values: I.In[I.f32, ("R",)], offsets: I.In[I.i32, ("G1",)], y: I.Out[I.f32, ("G",)], largest: I.Out[I.f32, ("G",)]):
    R, = values.shape
    G, = y.shape
    members = I.domain(0, R)
    for g in I.parallel(I.domain(0, G)):
        part = members[offsets[g]:offsets[g + 1]]
        y[g] = I.reduce.sum(values[part], axis=0)
        largest[g] = I.reduce.max(values[part], axis=0)


@pytest.mark.parametrize("lengths", [[3, 0, 64, 33, 1], [0, 0], [5000, 2], []])
def test_segment_sums(lengths, rng):
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    values, G = normal(rng, int(offsets[-1])), len(lengths)

    def oracle(v, o):
        parts = [v[a:b] for a, b in zip(o, o[1:])]
        return np.array([p.sum(dtype=np.float64) for p in parts]), np.array([p.max(initial=-np.inf) for p in parts], np.float32)

    check(segment_sums, [values, offsets, out(G, "f32"), out(G, "f32")], oracle, floor=512)
