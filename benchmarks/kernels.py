"""The Intent side of every benchmark."""
from __future__ import annotations

import intent_numba as intent
import intent_numba.language as I


@intent.kernel
def copy(x: I.In[I.f32, ("M", "N")], y: I.Out[I.f32, ("M", "N")]):
    y[:, :] = x[:, :]


@intent.kernel
def swiglu(a: I.In[I.f32, ("M", "N")], b: I.In[I.f32, ("M", "N")], y: I.Out[I.f32, ("M", "N")]):
    v = a[:, :]
    y[:, :] = v * I.sigmoid(v) * b[:, :]


@intent.kernel
def softmax(x: I.In[I.f32, ("M", "N")], y: I.Out[I.f32, ("M", "N")]):
    v = x[:, :]
    e = I.exp(v - I.reduce.max(v, axis=1)[:, None])
    y[:, :] = e / I.reduce.sum(e, axis=1)[:, None]


@intent.kernel
def row_sums(x: I.In[I.f32, ("M", "N")], y: I.Out[I.f32, ("M",)]):
    y[:] = I.reduce.sum(x[:, :], axis=1)


@intent.kernel
def column_sums(x: I.In[I.f32, ("M", "N")], y: I.Out[I.f32, ("N",)]):
    y[:] = I.reduce.sum(x[:, :], axis=0)


@intent.kernel
def bitonic_sort(x: I.In[I.f32, ("M", "N")], y: I.Out[I.f32, ("M", "N")]):
    """Sorts each row; N is a power of two."""
    M, N = x.shape
    cols = I.domain(0, N)
    for row in I.parallel(I.domain(0, M)):
        values = I.buffer((N,), I.f32, init=x[row, cols])
        size = 2
        while size <= N:
            stride = size // 2
            while stride > 0:
                for i in cols:
                    partner = i ^ stride
                    if partner > i:
                        a, b = values[i], values[partner]
                        if (a > b) == ((i & size) == 0):
                            values[i] = b
                            values[partner] = a
                stride = stride // 2
            size = size * 2
        y[row, cols] = values[cols]


@intent.kernel
def gemm(a: I.In[I.f32, ("M", "K")], b: I.In[I.f32, ("K", "N")], c: I.Out[I.f32, ("M", "N")]):
    c[:, :] = I.matmul(a[:, :], b[:, :], acc_dtype=I.f32)


@intent.kernel
def gemm_bf16(a: I.In[I.bf16, ("M", "K")], b: I.In[I.bf16, ("K", "N")], c: I.Out[I.f32, ("M", "N")]):
    c[:, :] = I.matmul(a[:, :], b[:, :], acc_dtype=I.f32)


@intent.kernel
def layer_norm(x: I.In[I.f32, ("M", "N")], gain: I.In[I.f32, ("N",)], shift: I.In[I.f32, ("N",)], y: I.Out[I.f32, ("M", "N")]):
    _, N = x.shape
    v = x[:, :]
    count = I.cast(N, I.f32)
    centred = v - (I.reduce.sum(v, axis=1) / count)[:, None]
    variance = I.reduce.sum(centred * centred, axis=1) / count
    y[:, :] = centred * I.rsqrt(variance + 1e-5)[:, None] * gain[:] + shift[:]


@intent.kernel
def attention(
    q: I.In[I.f32, ("H", "S", "D")],
    k: I.In[I.f32, ("H", "T", "D")],
    v: I.In[I.f32, ("H", "T", "D")],
    out: I.Out[I.f32, ("H", "S", "D")],
):
    H, _, D = q.shape
    scale = 1.0 / I.sqrt(I.cast(D, I.f32))
    for h in I.parallel(I.domain(0, H)):
        scores = I.matmul(q[h, :, :], k[h, :, :], acc_dtype=I.f32, transpose_rhs=True) * scale
        e = I.exp(scores - I.reduce.max(scores, axis=1)[:, None])
        weights = e / I.reduce.sum(e, axis=1)[:, None]
        out[h, :, :] = I.matmul(weights, v[h, :, :], acc_dtype=I.f32)


@intent.kernel
def add(x: I.In[I.f32, ("N",)], y: I.In[I.f32, ("N",)], z: I.Out[I.f32, ("N",)]):
    z[:] = x[:] + y[:]
