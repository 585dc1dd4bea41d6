"""Work large enough to be shared between threads: the bits are those of the reference, whatever the number of threads."""
from __future__ import annotations

import numba
import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from tests.support import BACKEND, assert_close, assert_same_bits, check, execute, normal, out

from .test_algorithms import bitonic_sort, cholesky
from .test_control import mandelbrot
from .test_products import attention, gemm
from .test_reductions import centred, extrema, layer_norm, softmax, sums
from .test_scans import compaction, prefix, welford

M, N = 700, 1031


@intent.kernel
def stages(x: I.In[I.f32, ("M", "N")], y: I.Out[I.f32, ("M", "N")], s: I.Out[I.f32, ()]):
    v = x[:, :]
    total = I.reduce.sum(I.exp(v), axis=(0, 1))
    y[:, :] = I.cumsum(v / total, axis=1) + I.reduce.max(v, axis=0)
    s[()] = total


def image(rng):
    return normal(rng, (M, N))


CASES = {
    "softmax by rows": lambda rng: (softmax(I.f32, 1), [image(rng), out((M, N), "f32")], {}),
    "softmax by columns": lambda rng: (softmax(I.f32, 0), [image(rng), out((M, N), "f32")], {}),
    "layer norm": lambda rng: (layer_norm, [image(rng), normal(rng, N), normal(rng, N), np.float32(1e-3), out((M, N), "f32"),
                                            out(M, "f32")], {}),
    "sums": lambda rng: (sums(I.f32, I.f32), [image(rng), out(M, "f32"), out(N, "f32"), out((), "f32")], {}),
    "extrema": lambda rng: (extrema, [image(rng), out(M, "f32"), out(N, "f32"), out(M, "f32"), out(M, "bool"), out(N, "bool")], {}),
    "row and column means": lambda rng: (centred, [rng.standard_normal((M, N)), out((M, N), "f64")], {}),
    "scan by rows": lambda rng: (prefix(I.f32, I.f32, -1, True, False), [image(rng), out((M, N), "f32"), out((M, N), "f32")], {}),
    "scan by columns": lambda rng: (prefix(I.f32, I.f32, 0, False, True), [image(rng), out((M, N), "f32"), out((M, N), "f32")], {}),
    "long scan": lambda rng: (prefix(I.f32, I.f32, -1, True, True),
                              [normal(rng, (1, 300_001)), out((1, 300_001), "f32"), out((1, 300_001), "f32")], {}),
    "compaction": lambda rng: (compaction, [normal(rng, 300_001), out(300_001, "f32"), out(1, "i32")], {}),
    "welford": lambda rng: (welford, [normal(rng, (300, 701)), out(300, "f32"), out(300, "f32")], {}),
    "gemm": lambda rng: (gemm(I.f32, I.f32), [normal(rng, (150, 210)), normal(rng, (210, 170)), out((150, 170), "f32")], {}),
    "attention": lambda rng: (attention, [normal(rng, (3, 130, 16)), normal(rng, (3, 130, 16)), normal(rng, (3, 130, 16)),
                                          out((3, 130, 16), "f32"),
                                          np.float32(0.25)], {"CAUSAL": True}),
    "several stages": lambda rng: (stages, [image(rng), out((M, N), "f32"), out((), "f32")], {}),
}


@pytest.mark.parametrize("name", CASES)
def test_shared_work(name, rng):
    kernel, args, constexprs = CASES[name](rng)
    expected = check(kernel, args, constexprs=constexprs, layouts=("contiguous", "strided"))
    if BACKEND != "reference":
        before = numba.get_num_threads()
        try:
            numba.set_num_threads(1)
            for got, want in zip(execute(kernel, args, constexprs), expected):
                assert_same_bits(got, want, "one thread")
        finally:
            numba.set_num_threads(before)


POINTS = {
    "bitonic sort": lambda rng: (bitonic_sort, [normal(rng, (3001, 16)), out((3001, 16), "f32")], lambda x: np.sort(x, axis=1), 0),
    "cholesky": lambda rng: (cholesky, [spd(rng, 2003, 6), out((2003, 6, 6), "f64")], np.linalg.cholesky, 4096),
    "mandelbrot": lambda rng: (mandelbrot, [np.linspace(-2, 0.6, 301), np.linspace(-1.2, 1.2, 203), np.int32(40), out((203, 301), "i32")],
                               escape, 0),
}


def spd(rng, b, n):
    g = rng.standard_normal((b, n, n))
    return g @ g.swapaxes(1, 2) + 4 * np.eye(n)


def escape(x, y, limit):
    zr, zi, n = np.zeros((len(y), len(x))), np.zeros((len(y), len(x))), np.zeros((len(y), len(x)), np.int32)
    inside = np.ones(n.shape, bool)
    for _ in range(int(limit)):
        rr, ii = zr * zr, zi * zi
        inside &= ~(rr + ii > 4)
        cross = zr * zi
        zr, zi = np.where(inside, rr - ii + x, zr), np.where(inside, cross + cross + y[:, None], zi)
        n += inside
    return n


@pytest.mark.skipif(BACKEND == "reference", reason="compiled code only: the reference takes too long at these sizes")
@pytest.mark.parametrize("name", POINTS)
def test_shared_points(name, rng):
    kernel, args, oracle, floor = POINTS[name](rng)
    want = oracle(*args[:-1])
    for layout in ("contiguous", "transposed"):
        assert_close(execute(kernel, args, layout=layout)[0], want, floor=floor, name=layout)
