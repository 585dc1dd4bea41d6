"""Kernels that several host tests share; at module level, so that they pickle and other processes can import them."""
from __future__ import annotations

import intent_numba as intent
import intent_numba.language as I


class Mode(I.Enum):
    DOUBLE = 0
    TRIPLE = 1


class Other(I.Enum):
    DOUBLE = 0
    TRIPLE = 1


@intent.fn
def shifted(value, by):
    return value + by


@intent.kernel
def scale(x: I.In[I.f32, ("M", "N")], s: I.f32, y: I.Out[I.f32, ("M", "N")]):
    y[:, :] = x[:, :] * s


@intent.kernel
def add_one(x: I.InOut[I.f32, ("N",)]):
    x[:] = shifted(x[:], 1)


@intent.kernel
def modes(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, ("N",)], NEGATE: I.Constexpr[bool], mode: I.Constexpr[Mode] = Mode.DOUBLE, *,
          times: I.Constexpr[int] = 1):
    factor = I.cast(2, I.f32) if mode == Mode.DOUBLE else I.cast(3, I.f32)
    v = x[:] * factor
    for _ in range(times - 1):
        v = v * factor
    y[:] = -v if NEGATE else v


@intent.kernel
def shift(a: I.In[I.f32, ("N",)], b: I.Out[I.f32, ("N",)]):
    b[:] = a[:]


@intent.kernel
def copy_ordered(a: I.In[I.f32, ("N",)], b: I.Out[I.f32, ("N",)]):
    for i in I.domain(0, a.shape[0]):
        b[i] = a[i]


@intent.kernel
def two_outs(x: I.In[I.f32, ("N",)], big: I.Out[I.f32, ("P", 2)], y: I.Out[I.f32, ("N",)]):
    big[:, :] = I.full(big.shape, 5, I.f32)
    y[:] = x[:] + 1


@intent.kernel
def nothing_out(x: I.InOut[I.i32, ("N",)]):
    x[:] = x[:] + 1


@intent.kernel
def row_sums(x: I.In[I.f32, ("M", "N")], y: I.Out[I.f32, ("M",)]):
    y[:] = I.reduce.sum(x[:, :], axis=1)


@intent.kernel
def scalars(b: I.bool, i: I.i8, u: I.u64, n: I.index, h: I.f16, f: I.f32, d: I.f64, out: I.Out[I.f64, (6,)]):
    out[0] = I.cast(b, I.f64)
    out[1] = I.cast(i, I.f64)
    out[2] = I.cast(u, I.f64)
    out[3] = I.cast(n, I.f64)
    out[4] = I.cast(h, I.f64)
    out[5] = I.cast(f, I.f64) + d


@intent.kernel
def constrained(a: I.In[I.f32, ("M", "N"), I.constraints(strides=(None, 1))],
                b: I.In[I.f32, ("M", "N"), I.constraints(strides=("s", "t"))],
                c: I.Out[I.f32, ("M", "N"), I.constraints(strides=("s", None), noalias=True)]):
    c[:, :] = a[:, :] + b[:, :]


@intent.kernel
def grouped(a: I.In[I.f32, ("N",), I.constraints(alias="g")], b: I.Out[I.f32, ("N",), I.constraints(alias="g")]):
    b[:] = a[:]


@intent.kernel
def fixed(x: I.In[I.f32, (3, "N")], y: I.Out[I.f32, ("N",)], z: I.Out[I.f32, ()]):
    y[:] = x[0, :]
    z[()] = I.cast(1, I.f32)


@intent.kernel
def small_floats(x: I.In[I.bf16, ("N",)], y: I.Out[I.f8e5m2, ("N",)]):
    y[:] = I.cast(x[:], I.f8e5m2)
