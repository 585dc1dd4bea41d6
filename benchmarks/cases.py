"""The throughput cases: what is run, against whom, and the bar."""
from __future__ import annotations

import ml_dtypes
import numpy as np

from . import kernels, peers
from .harness import Case

RNG = np.random.default_rng(0)


def normal(*shape) -> np.ndarray:
    return RNG.standard_normal(shape, np.float32)


def close(got, expected, tolerance):
    """A check that ``got()`` is within ``tolerance`` of ``expected()``, absolute and relative."""
    return lambda: np.testing.assert_allclose(got(), expected(), rtol=tolerance, atol=tolerance)


def swiglu():
    a, b = normal(4096, 4096), normal(4096, 4096)
    y, z = np.empty_like(a), np.empty_like(a)
    calls = {"intent": lambda: kernels.swiglu(a, b, y), "numba": lambda: peers.swiglu(a, b, z)}
    return calls, close(lambda: y[::97], lambda: a[::97] / (1 + np.exp(-a[::97])) * b[::97], 1e-5)


def softmax():
    x = normal(4096, 4096)
    y, z = np.empty_like(x), np.empty_like(x)
    calls = {"intent": lambda: kernels.softmax(x, y), "numba": lambda: peers.softmax(x, z)}

    def expected():
        e = np.exp(x[::97].astype(np.float64))
        return e / e.sum(1, keepdims=True)
    return calls, close(lambda: y[::97], expected, 1e-5)


def sums(kernel, axis):
    def make():
        x = normal(4096, 4096)
        y, z = np.empty(4096, np.float32), np.empty(4096, np.float32)
        calls = {"intent": lambda: kernel(x, y), "numpy": lambda: np.sum(x, axis=axis, out=z)}
        return calls, close(lambda: y, lambda: x.sum(axis=axis, dtype=np.float64), 1e-3)
    return make


def bitonic():
    x = normal(4096, 256)
    y, z = np.empty_like(x), np.empty_like(x)
    calls = {"intent": lambda: kernels.bitonic_sort(x, y), "numba": lambda: peers.bitonic_sort(x, z)}
    return calls, lambda: np.testing.assert_array_equal(y, np.sort(x, axis=1))


def gemm():
    a, b = normal(1024, 1024), normal(1024, 1024)
    c, d = np.empty_like(a), np.empty_like(a)
    calls = {"intent": lambda: kernels.gemm(a, b, c), "numpy": lambda: np.matmul(a, b, out=d)}
    return calls, close(lambda: c, lambda: a.astype(np.float64) @ b, 1e-3)


def gemm_bf16():
    a, b = normal(1024, 1024).astype(ml_dtypes.bfloat16), normal(1024, 1024).astype(ml_dtypes.bfloat16)
    wide_a, wide_b = a.astype(np.float32), b.astype(np.float32)
    c, d = np.empty((1024, 1024), np.float32), np.empty((1024, 1024), np.float32)
    calls = {"intent": lambda: kernels.gemm_bf16(a, b, c), "numpy": lambda: np.matmul(wide_a, wide_b, out=d)}
    return calls, close(lambda: c, lambda: wide_a.astype(np.float64) @ wide_b, 1e-3)


def layer_norm():
    x, gain, shift = normal(4096, 4096), normal(4096), normal(4096)
    y, z = np.empty_like(x), np.empty_like(x)
    calls = {"intent": lambda: kernels.layer_norm(x, gain, shift, y), "numba": lambda: peers.layer_norm(x, gain, shift, z)}

    def expected():
        v = x[::97].astype(np.float64)
        return (v - v.mean(1, keepdims=True)) / np.sqrt(v.var(1, keepdims=True) + 1e-5) * gain + shift
    return calls, close(lambda: y[::97], expected, 1e-4)


def attention():
    q, k, v = normal(8, 1024, 64), normal(8, 1024, 64), normal(8, 1024, 64)
    scores, out, peer = np.empty((8, 1024, 1024), np.float32), np.empty_like(q), np.empty_like(q)
    calls = {"intent": lambda: kernels.attention(q, k, v, out), "numpy": lambda: peers.attention(q, k, v, scores, peer)}

    def expected():
        e = np.exp(q[0].astype(np.float64) @ k[0].T / 8)
        return e / e.sum(1, keepdims=True) @ v[0]
    return calls, close(lambda: out[0], expected, 1e-4)


CASES = [
    Case("SwiGLU f32 4096x4096", swiglu, "numba", 1.5, 3 * 4096**2 * 4, "GB/s"),
    Case("softmax rows f32 4096x4096", softmax, "numba", 2.5, 2 * 4096**2 * 4, "GB/s"),
    Case("row sums f32 4096x4096", sums(kernels.row_sums, 1), "numpy", 1.2, 4096**2 * 4, "GB/s"),
    Case("column sums f32 4096x4096", sums(kernels.column_sums, 0), "numpy", 1.2, 4096**2 * 4, "GB/s"),
    Case("bitonic sort f32 4096x256", bitonic, "numba", 2.0, 2 * 4096 * 256 * 4, "GB/s"),
    Case("GEMM f32 1024^3", gemm, "numpy", 0.7, 2 * 1024**3, "GFLOP/s"),
    Case("GEMM bf16 -> f32 1024^3", gemm_bf16, "numpy", 0.5, 2 * 1024**3, "GFLOP/s"),
    Case("layer norm f32 4096x4096", layer_norm, "numba", None, 2 * 4096**2 * 4, "GB/s"),
    Case("attention f32 8x1024x64", attention, "numpy", None, 4 * 8 * 1024**2 * 64, "GFLOP/s"),
]
