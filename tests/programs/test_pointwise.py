"""Elementwise programs: activations, gates, affine maps, masks, polynomials."""
from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy import special

import intent_numba as intent
import intent_numba.language as I
from tests.support import check, integers, normal, out, special_floats

SHAPES = [(4, 64), (3, 37), (0, 5), (5, 0), (1, 1)]


@cache
def relu(dt):
    @intent.kernel
    def relu(x: I.In[dt, ("M", "N")], y: I.Out[dt, ("M", "N")]):
        M, N = x.shape
        rows, columns = I.domain(0, M), I.domain(0, N)
        v = x[rows, columns]
        y[rows, columns] = I.select(v > 0.0, v, 0.0)

    return relu


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dt", [I.f32, I.f16, I.bf16, I.f64], ids=lambda d: d.name)
def test_relu(dt, shape, rng):
    x = normal(rng, shape, dt)
    check(relu(dt), [x, out(shape, dt)], lambda x: np.where(x > 0, x, np.zeros_like(x)))


@intent.kernel
def relu_builtin(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, ("N",)]):
    y[:] = I.relu(x[:])


def test_relu_of_special_values():
    x = special_floats("f32")
    (got,) = check(relu_builtin, [x, out(x.shape, "f32")], lambda x: np.where(np.isnan(x), x, np.maximum(x, 0)))
    assert not np.signbit(got[:2]).any(), "relu of either zero is +0"


@intent.kernel
def batched_affine(x: I.In[I.f32, ("B", "M", "N")], scale: I.In[I.f32, ("B", "N")], shift: I.In[I.f32, ("N",)],
                   y: I.Out[I.f32, ("B", "M", "N")]):
    y[:, :, :] = x[:, :, :] * scale[:, :][:, None, :] + shift[:]


@pytest.mark.parametrize("shape", [(2, 3, 64), (3, 2, 33), (0, 2, 4), (2, 0, 4)])
def test_batched_affine(shape, rng):
    B, M, N = shape
    args = [normal(rng, shape), normal(rng, (B, N)), normal(rng, (N,)), out(shape, "f32")]
    # The product has the sum's shape, so the two are one fma (decision 17); f64 rounds near enough to it.
    check(batched_affine, args, lambda x, a, b: x.astype(np.float64) * a[:, None, :] + b, ulps=1)


@cache
def swiglu(dt):
    @intent.kernel
    def swiglu(gate: I.In[dt, ("M", "N")], up: I.In[dt, ("M", "N")], y: I.Out[dt, ("M", "N")]):
        g = I.cast(gate[:, :], I.f32)
        u = I.cast(up[:, :], I.f32)
        y[:, :] = I.cast(g * I.sigmoid(g) * u, dt)

    return swiglu


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dt", [I.f32, I.bf16, I.f16], ids=lambda d: d.name)
def test_swiglu(dt, shape, rng):
    gate, up = normal(rng, shape, dt, 3), normal(rng, shape, dt)

    def oracle(g, u):
        g, u = g.astype(np.float64), u.astype(np.float64)
        return g * special.expit(g) * u

    check(swiglu(dt), [gate, up, out(shape, dt)], oracle, ulps=6 if dt is I.f32 else 1)


@intent.kernel
def gelu(x: I.In[I.f32, ("N",)], exact: I.Out[I.f32, ("N",)], approximate: I.Out[I.f32, ("N",)]):
    v = x[:]
    exact[:] = 0.5 * v * (1.0 + I.erf(v * 0.7071067811865476))
    inner = 0.7978845608028654 * (v + 0.044715 * v * v * v)
    approximate[:] = 0.5 * v * (1.0 + I.tanh(inner))


@pytest.mark.parametrize("n", [96, 41, 0])
def test_gelu(n, rng):
    x = normal(rng, (n,), "f32", 2)

    def oracle(x):
        x = x.astype(np.float64)
        return (x * special.ndtr(x), 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3))))

    check(gelu, [x, out(n, "f32"), out(n, "f32")], oracle, ulps=8, floor=4)


@intent.kernel
def horner(x: I.In[I.f64, ("N",)], c: I.In[I.f64, ("K",)], y: I.Out[I.f64, ("N",)]):
    N, = x.shape
    K, = c.shape
    v = x[:]
    acc = I.zeros((N,), I.f64)
    for k in I.domain(0, K):
        acc = acc * v + c[K - 1 - k]
    y[:] = acc


@pytest.mark.parametrize("n,k", [(64, 7), (13, 5), (0, 3), (5, 0)])
def test_horner(n, k, rng):
    x, c = rng.uniform(-1, 1, n), rng.standard_normal(k)
    check(horner, [x, c, out(n, "f64")], lambda x, c: np.polyval(c[::-1].astype(np.longdouble), x.astype(np.longdouble)), floor=16)


@intent.kernel
def select_and_mask(x: I.In[I.f32, ("M", "N")], keep: I.In[I.bool, ("N",)], limit: I.f32, y: I.Out[I.f32, ("M", "N")],
                    z: I.Out[I.f32, ("M", "N")]):
    M, N = x.shape
    rows, columns = I.domain(0, M), I.domain(0, N)
    v = x[rows, columns]
    y[rows, columns] = I.mask(v, valid=keep[columns], fill=-1.0)
    below = I.indices(columns) <= I.indices(rows)[:, None]
    z[rows, columns] = I.select(below & (v < limit), v, limit)


@pytest.mark.parametrize("shape", SHAPES)
def test_select_and_mask(shape, rng):
    M, N = shape
    keep = rng.random(N) < 0.5

    def oracle(x, keep, limit):
        below = np.arange(N) <= np.arange(M)[:, None]
        return np.where(keep, x, np.float32(-1)), np.where(below & (x < limit), x, limit)

    check(select_and_mask, [normal(rng, shape), keep, np.float32(0.25), out(shape, "f32"), out(shape, "f32")], oracle)


@intent.kernel
def clamp_and_sign(x: I.In[I.i32, ("N",)], low: I.i32, high: I.i32, y: I.Out[I.i32, ("N",)], s: I.Out[I.i8, ("N",)]):
    v = x[:]
    y[:] = I.clamp(v, low, high)
    s[:] = I.cast(v > 0, I.i8) - I.cast(v < 0, I.i8)


@pytest.mark.parametrize("n", [64, 35, 0])
def test_clamp_and_sign(n, rng):
    x = integers(rng, n, "i32", -20, 20)
    check(clamp_and_sign, [x, np.int32(-5), np.int32(9), out(n, "i32"), out(n, "i8")],
          lambda x, lo, hi: (np.clip(x, lo, hi), np.sign(x).astype(np.int8)))


@intent.kernel
def polar(z: I.In[I.f64, ("N", 2)], radius: I.Out[I.f64, ("N",)], unit: I.Out[I.f64, ("N", 2)]):
    N, two = z.shape
    n = I.domain(0, N)
    re, im = z[n, 0], z[n, 1]
    r = I.sqrt(re * re + im * im)
    radius[n] = r
    safe = I.select(r > 0.0, r, 1.0)
    unit[n, :] = I.join(re / safe, im / safe)


@pytest.mark.parametrize("n", [32, 19, 0])
def test_polar(n, rng):
    z = rng.standard_normal((n, 2))
    if n:
        z[n // 2] = 0

    def oracle(z):
        r = np.hypot(z[:, 0], z[:, 1])
        return r, z / np.where(r > 0, r, 1)[:, None]

    check(polar, [z, out(n, "f64"), out((n, 2), "f64")], oracle, ulps=4)


@intent.kernel
def rank_zero(x: I.In[I.f32, ()], a: I.f32, y: I.Out[I.f32, ()], z: I.Out[I.f32, (3,)]):
    v = x[()]
    y[()] = v * a
    z[:] = I.full((3,), v, I.f32) + I.full((), a, I.f32)


def test_rank_zero():
    check(rank_zero, [np.array(2.5, np.float32), np.float32(4), out((), "f32"), out(3, "f32")],
          lambda x, a: (x * a, np.full(3, x + a, np.float32)))
