"""Views that overlap one another: the answer is the reference interpreter's on the very same memory, whatever the overlap."""
from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import intent_numba as intent
import intent_numba.language as I

from . import kernels


@intent.kernel
def two_steps(a: I.In[I.f32, ("N",)], b: I.Out[I.f32, ("N",)], c: I.InOut[I.f32, ("N",)]):
    b[:] = a[:] + c[:]
    c[:] = a[:] * b[:]


@intent.kernel
def recurrence(a: I.In[I.f32, ("N",)], b: I.InOut[I.f32, ("N",)]):
    for i in I.domain(1, a.shape[0]):
        b[i] = b[i - 1] + a[i]


@intent.kernel
def normalise(x: I.In[I.f32, ("M", "N")], y: I.Out[I.f32, ("M", "N")]):
    total = I.reduce.sum(x[:, :], axis=1)
    y[:, :] = x[:, :] - total[:, None]


@intent.kernel
def transposed(x: I.In[I.f32, ("M", "N")], y: I.Out[I.f32, ("N", "M")]):
    y[:, :] = I.transpose(x[:, :])


@intent.kernel
def keep_first(a: I.InOut[I.f32, ("N",)], y: I.Out[I.f32, ("K",)]):
    t = a[0]
    a[0] = I.cast(9, I.f32)
    y[0] = t


def window(block, shape, rng):
    """A random strided view inside a block; its elements are distinct."""
    while True:
        strides = []
        span = 1
        for extent in reversed(shape):
            step = span + int(rng.integers(0, 2))
            strides.insert(0, step * int(rng.choice([-1, 1])))
            span = step * extent
        if rng.random() < 0.5:
            order = rng.permutation(len(shape))
            if len(set(shape)) == 1:
                strides = [strides[i] for i in order]
        low = sum(min(0, s * (n - 1)) for s, n in zip(strides, shape))
        high = sum(max(0, s * (n - 1)) for s, n in zip(strides, shape))
        if high - low < len(block):
            start = int(rng.integers(-low, len(block) - high))
            return start, tuple(strides)


def views(block, windows, shapes):
    return [as_strided(block[start:], shape, tuple(4 * s for s in strides)) for (start, strides), shape in zip(windows, shapes)]


@pytest.mark.parametrize("kernel, shapes", [
    (kernels.shift, ((40,), (40,))),
    (kernels.copy_ordered, ((40,), (40,))),
    (two_steps, ((37,), (37,), (37,))),
    (recurrence, ((40,), (40,))),
    (normalise, ((6, 6), (6, 6))),
    (transposed, ((6, 6), (6, 6))),
    (kernels.row_sums, ((6, 35), (6,))),
    (keep_first, ((5,), (5,))),
], ids=lambda p: getattr(p, "__name__", ""))
def test_random_overlaps(kernel, shapes, rng):
    art = intent.compile(kernel)
    size = max(int(np.prod(s)) for s in shapes) * 3
    for _ in range(60):
        original = rng.standard_normal(size).astype("f4")
        windows = [window(original, s, rng) for s in shapes]
        mine, theirs = original.copy(), original.copy()
        art(*views(mine, windows, shapes))
        art.interpret(*views(theirs, windows, shapes))
        assert np.array_equal(mine.view("u4"), theirs.view("u4")), windows


@pytest.mark.parametrize("kernel", [kernels.shift, kernels.copy_ordered, recurrence])
@pytest.mark.parametrize("offset", [1, 2, 7, 8, 31, 32, 33, 64, 100, 1000])
@pytest.mark.parametrize("forward", [True, False])
def test_shifted_windows(kernel, offset, forward):
    original = np.arange(5000, dtype="f4") % 97
    first, second = np.s_[:-offset], np.s_[offset:]
    a, b = (first, second) if forward else (second, first)
    mine, theirs = original.copy(), original.copy()
    art = intent.compile(kernel)
    art(mine[a], mine[b])
    art.interpret(theirs[a], theirs[b])
    assert np.array_equal(mine, theirs)


def test_the_same_memory_twice():
    for kernel, shape in [(kernels.shift, (100,)), (normalise, (9, 70)), (transposed, (33, 33)), (recurrence, (50,))]:
        art = intent.compile(kernel)
        mine = np.random.default_rng(1).standard_normal(shape).astype("f4")
        theirs = mine.copy()
        art(mine, mine)
        art.interpret(theirs, theirs)
        assert np.array_equal(mine, theirs)


def test_views_of_different_dtypes_over_one_block():
    @intent.kernel
    def widen(x: I.In[I.u8, ("N",)], y: I.Out[I.u32, ("N",)]):
        y[:] = I.cast(x[:], I.u32)
    art = intent.compile(widen)
    mine = np.arange(256, dtype="u1")
    theirs = mine.copy()
    for start in (0, 1, 100, 192):
        art(mine[start:start + 64], mine.view("u4"))
        art.interpret(theirs[start:start + 64], theirs.view("u4"))
        assert np.array_equal(mine, theirs)
