"""What the kernels are measured against, written as a user of Numba or NumPy would write it for speed."""
from __future__ import annotations

import math

import numpy as np
from numba import njit, prange

ONE = np.float32(1.0)
ZERO = np.float32(0.0)


@njit(parallel=True, fastmath=True)
def swiglu(a, b, y):
    M, N = a.shape
    for i in prange(M):
        for j in range(N):
            v = a[i, j]
            y[i, j] = v / (ONE + math.exp(-v)) * b[i, j]


@njit(parallel=True, fastmath=True)
def softmax(x, y):
    M, N = x.shape
    for i in prange(M):
        m = x[i, 0]
        for j in range(N):
            m = max(m, x[i, j])
        s = ZERO
        for j in range(N):
            e = math.exp(x[i, j] - m)
            y[i, j] = e
            s += e
        r = ONE / s
        for j in range(N):
            y[i, j] *= r


@njit(parallel=True, fastmath=True)
def bitonic_sort(x, y):
    M, N = x.shape
    for row in prange(M):
        values = y[row]
        values[:] = x[row]
        size = 2
        while size <= N:
            stride = size // 2
            while stride > 0:
                for i in range(N):
                    partner = i ^ stride
                    if partner > i:
                        a, b = values[i], values[partner]
                        if (a > b) == ((i & size) == 0):
                            values[i] = b
                            values[partner] = a
                stride //= 2
            size *= 2


@njit(parallel=True, fastmath=True)
def layer_norm(x, gain, shift, y):
    M, N = x.shape
    count = np.float32(N)
    for i in prange(M):
        s = ZERO
        for j in range(N):
            s += x[i, j]
        mean = s / count
        s = ZERO
        for j in range(N):
            d = x[i, j] - mean
            s += d * d
        r = ONE / math.sqrt(s / count + np.float32(1e-5))
        for j in range(N):
            y[i, j] = (x[i, j] - mean) * r * gain[j] + shift[j]


def attention(q, k, v, scores, out):
    """NumPy with every temporary allocated beforehand: ``scores`` is [H, S, T]."""
    np.matmul(q, k.transpose(0, 2, 1), out=scores)
    scores *= np.float32(1.0 / math.sqrt(q.shape[-1]))
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    np.matmul(scores, v, out=out)
