"""Does memory matter? Random shapes, strides, offsets and overlaps for a few fixed kernels that cover every kind of stage."""
from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import intent_numba as intent
import intent_numba.language as I
from intent_numba import reference
from tests.support import BACKEND, assert_same_bits, compiled, kir_of, poison

from .settings import fuzz


@intent.kernel
def pointwise(x: I.In[I.f32, ("M", "N")], y: I.InOut[I.f32, ("M", "N")]):
    y[:, :] = x[:, :] * 2.0 + y[:, :]


@intent.kernel
def softmax(x: I.In[I.f32, ("M", "N")], y: I.Out[I.f32, ("M", "N")]):
    v = x[:, :]
    e = I.exp(v - I.reduce.max(v, axis=1)[:, None])
    y[:, :] = e / I.reduce.sum(e, axis=1)[:, None]


@intent.kernel
def column_scan(x: I.In[I.f32, ("M", "N")], y: I.Out[I.f32, ("M", "N")]):
    y[:, :] = I.cumsum(x[:, :], axis=0) - I.reduce.sum(x[:, :], axis=0)


@intent.kernel
def gram(x: I.In[I.f32, ("M", "N")], y: I.Out[I.f32, ("M", "N")]):
    v = x[:, :]
    s = I.matmul(v, v, acc_dtype=I.f32, transpose_lhs=True)
    y[:, :] = I.matmul(v, s, acc_dtype=I.f32)


@intent.kernel
def smooth(x: I.In[I.f32, ("M", "N")], y: I.InOut[I.f32, ("M", "N")]):
    M, N = x.shape
    for i in I.parallel(I.domain(0, M)):
        state = y[i, 0] if N > 0 else I.cast(0.0, I.f32)
        for j in I.domain(0, N):
            state = 0.5 * state + x[i, j]
            y[i, j] = state


@intent.kernel
def whole_sum(x: I.In[I.f32, ("M", "N")], y: I.Out[I.f32, ("M", "N")]):
    y[:, :] = x[:, :] / (I.reduce.sum(I.abs(x[:, :]), axis=(0, 1)) + 1.0)


@intent.kernel
def smooth_in_order(x: I.In[I.f32, ("M", "N")], y: I.InOut[I.f32, ("M", "N")]):
    M, N = x.shape
    for i in I.domain(0, M):
        total = I.reduce.sum(x[i, :], axis=0)
        for j in I.domain(0, N):
            total = 0.5 * total + x[i, j]
            y[i, j] = total
        y[i, :] = y[i, :] + x[i, :]


KERNELS = (pointwise, softmax, column_scan, gram, smooth, smooth_in_order, whole_sum)
ORDERED = tuple(k for k in KERNELS if k is not smooth)
"""Kernels whose meaning does not depend on the order of unordered points when views overlap."""

extents = st.sampled_from((0, 1, 2, 3, 5, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 257))
steps = st.sampled_from((1, 1, 1, 2, 3, -1, -2, -3))


def carve(base, M, N, rows, columns, swap, offset):
    """A view of M x N elements with the given steps inside a flat block."""
    first, second = (N, M) if swap else (M, N)
    a, b = (columns, rows) if swap else (rows, columns)
    flat = base[offset:offset + first * abs(a) * second * abs(b)].reshape(first * abs(a), second * abs(b))
    view = flat[::a, ::b]
    return view.T if swap else view


def run(kernel, base, x_at, y_at, road):
    base = base.copy()
    x, y = carve(base, *x_at), carve(base, *y_at)
    if road == "reference":
        with np.errstate(all="ignore"):
            reference.run(kir_of(kernel), [x, y])
    else:
        compiled(kernel)(x, y)
    return base


placement = st.tuples(steps, steps, st.booleans(), st.integers(0, 70))


@fuzz(0.3)
@given(st.sampled_from(KERNELS), extents, extents, placement, placement, st.integers(0, 2 ** 32 - 1))
def test_strided_views(kernel, M, N, x_place, y_place, data_seed):
    space = M * N * 9 + 256
    base = np.random.default_rng(data_seed).standard_normal(2 * space).astype(np.float32)
    base[::97] = poison((1,), np.float32)[0]
    x_at, y_at = (M, N, *x_place), (M, N, *y_place[:3], space + y_place[3])
    want = run(kernel, base, x_at, y_at, "reference")
    if BACKEND != "reference":
        assert_same_bits(run(kernel, base, x_at, y_at, "compiled"), want, kernel.__name__)


@fuzz(0.3)
@given(st.sampled_from(ORDERED), extents.filter(lambda n: n < 70), extents.filter(lambda n: n < 70), placement, placement,
       st.integers(0, 2 ** 32 - 1))
def test_overlapping_views(kernel, M, N, x_place, y_place, data_seed):
    """Both views lie in one block, overlapping at random: the answer is that of the language, reads are snapshots."""
    base = np.random.default_rng(data_seed).standard_normal(M * N * 9 + 256).astype(np.float32)
    x_at, y_at = (M, N, *x_place), (M, N, *y_place)
    want = run(kernel, base, x_at, y_at, "reference")
    if BACKEND != "reference":
        assert_same_bits(run(kernel, base, x_at, y_at, "compiled"), want, kernel.__name__)
