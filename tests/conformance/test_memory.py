"""Views, buffers and their effects (000 sections 8-10, SUPPLEMENT 3 and 8, decisions 34, 37, 38, 39)."""
from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import intent_numba as intent
import intent_numba.language as I
from intent_numba import reference
from tests.support import BACKEND, NUMPY, assert_same_bits, check, kir_of, out


def roads(kernel, arrays):
    """The memory behind ``arrays(memory)`` after a call, by the reference and by compiled code; both must agree."""
    results = []
    for road in ("reference", "compiled") if BACKEND != "reference" else ("reference",):
        memory, args = arrays()
        if road == "reference":
            reference.run(kir_of(kernel), list(args))
        else:
            intent.compile(kernel, target="cpu")(*args)
        results.append(memory)
    for r in results[1:]:
        assert_same_bits(r, results[0])
    return results[0]


# --- views: any strides ---------------------------------------------------------------------------------------------------------

@intent.kernel
def combined(x: I.In[I.f32, ("M", "N")], w: I.In[I.f32, ("N", "K")], i: I.In[I.i64, ("N",)], rows: I.Out[I.f32, ("M",)],
             prefix: I.Out[I.f32, ("M", "N")],
             product: I.Out[I.f32, ("M", "K")], picked: I.Out[I.f32, ("M", "N")], low: I.Out[I.f32, ("N",)]):
    v = x[:, :]
    rows[:] = I.reduce.sum(v, axis=1)
    prefix[:, :] = I.cumsum(v, axis=1, reverse=True)
    product[:, :] = I.matmul(v, w[:, :], acc_dtype=I.f32)
    picked[:, :] = x[:, i[:]] - 1.0
    for n in I.parallel(I.domain(0, x.shape[1])):
        t = x[0, n]
        for m in I.domain(1, x.shape[0]):
            t = I.minimum(t, x[m, n])
        low[n] = t


def strided_views(rng):
    block = rng.standard_normal(4000).astype("f4")
    size = block.itemsize
    for strides in ((0, 0), (0, 1), (1, 0), (0, -1), (-37, -1), (1, 37), (3, 3), (-3, 5), (80, 2)):
        yield as_strided(block[2000:], (9, 37), tuple(s * size for s in strides))


def test_reads_take_any_strides(rng):
    w, i = rng.standard_normal((37, 5)).astype("f4"), rng.integers(0, 37, 37)
    artifact = intent.compile(combined, target="cpu")
    for x in strided_views(rng):
        copy = np.ascontiguousarray(x)
        outs = [out((9,), "f32"), out((9, 37), "f32"), out((9, 5), "f32"), out((9, 37), "f32"), out((37,), "f32")]
        want = check(combined, [copy, w, i, *outs], layouts=())
        assert_same_bits(want[3], copy[:, i] - np.float32(1))
        assert_same_bits(want[4], copy.min(0))
        turned = np.broadcast_to(w[:, :1], w.shape)                                     # a stride of zero in the right operand too
        for right, left in ((w, want), (turned, check(combined, [copy, np.ascontiguousarray(turned), i, *outs], layouts=()))):
            for got, expected in zip(artifact.run(x, right, i), left):
                assert_same_bits(got, expected)


@intent.kernel
def written(x: I.In[I.f32, ("M", "N")], y: I.Out[I.f32, ("M", "N")], z: I.InOut[I.f32, ("N",)]):
    y[:, :] = x[:, :] * 2.0
    z[:] = z[:] + x[0, :]
    for n in I.domain(1, x.shape[1]):
        z[n] += z[n - 1]


def test_writes_take_any_strides_without_repeated_addresses(rng):
    x = rng.integers(-9, 9, (3, 35)).astype("f4")
    for strides in ((-35, -1), (1, 3), (-1, -3), (100, 2)):
        def arrays():
            memory = np.zeros(600, "f4")
            return memory, (x, as_strided(memory[200:], x.shape, tuple(4 * s for s in strides)), as_strided(memory[560:], (35,), (-4,)))
        memory = roads(written, arrays)
        assert np.array_equal(as_strided(memory[200:], x.shape, tuple(4 * s for s in strides)), x * 2)
        assert np.array_equal(memory[560:525:-1], np.cumsum(x[0], dtype="f4")) and not memory[561:].any()


@intent.kernel
def poured(x: I.In[I.i32, ("M", "N")], y: I.InOut[I.i32, ("M", "N")], z: I.InOut[I.i32, ("M", "N")]):
    I.atomic.add(y[:, :], x[:, :], order="relaxed")
    I.scatter_reduce(z, index=(I.domain(0, x.shape[0]), I.domain(0, x.shape[1])), value=x[:, :], combine=I.maximum)


@pytest.mark.parametrize("strides", [(0, 4), (4, 0), (0, 0), (4, 4)])
def test_updates_may_repeat_addresses(strides, rng):
    x = rng.integers(-9, 9, (6, 70)).astype("i4")

    def arrays():
        memory = np.zeros((2, 100), "i4")
        return memory, (x, as_strided(memory[0], x.shape, strides), as_strided(memory[1], x.shape, strides))
    want = np.zeros((2, 100), "i4")
    for m, n in np.ndindex(x.shape):
        at = (m * strides[0] + n * strides[1]) // 4
        want[0, at] += x[m, n]
        want[1, at] = max(want[1, at], x[m, n])
    assert np.array_equal(roads(poured, arrays), want)


def test_a_store_into_repeated_addresses_is_a_call_error():
    with pytest.raises(intent.CallError, match="overlaps itself"):
        written(np.zeros((3, 4), "f4"), np.lib.stride_tricks.as_strided(np.zeros(4, "f4"), (3, 4), (0, 4)), np.zeros(4, "f4"))


# --- what stays ----------------------------------------------------------------------------------------------------------------------

@intent.kernel
def some(x: I.In[I.i32, ("N",)], at: I.In[I.i32, ("N",)], a: I.Out[I.i32, ("K",)], b: I.Out[I.i32, ("K",)], c: I.Out[I.i32, ("K",)],
         d: I.Out[I.i32, ("K",)]):
    N, = x.shape
    a[1:3] = 7
    I.store(b, 0, 1, valid=x[0] > 0)
    I.scatter_unique(c, index=at[:], value=x[:], valid=x[:] > 0)
    for i in I.parallel(I.domain(0, N)):
        if x[i] < 0:
            continue
        d[at[i]] = x[i]


def test_unwritten_elements_stay():
    x, at = np.array([-1, 5, -3, 8], "i4"), np.array([3, 0, 900, 5], "i4")
    args = [x, at, *(np.arange(6, dtype="i4") + 10 * k for k in range(4))]

    def oracle(x, at, a, b, c, d):
        a[1:3] = 7
        c[[0, 5]] = d[[0, 5]] = 5, 8
        return a, b, c, d
    check(some, args, oracle)


# --- buffers -----------------------------------------------------------------------------------------------------------------------------

def buffers(dt):
    @intent.kernel
    def kernel(x: I.In[dt, ("M", "N")], y: I.Out[dt, (4, "M", "N")], z: I.Out[dt, (2,)]):
        M, N = x.shape
        whole = I.buffer(x.shape, dt, init=x[:, :])
        grown = I.buffer((M, N), dt)
        one = I.buffer((), dt, init=x[0, 0])
        grown[:, :] = whole[:, :]
        y[0, :, :] = whole[:, :]
        for m in I.domain(0, M):
            row = I.buffer((N,), dt, init=x[0, 0])
            y[1, m, :] = row[:]
            row[:] = x[m, :]
            I.store(row, 0, x[m, N - 1])
            whole[m, :] = row[:]
        y[2, :, :] = whole[:, :]
        y[3, :, :] = grown[:, :]
        z[0] = I.mutable_load(one, ())
        one[()] = x[M - 1, 0]
        z[1] = one[()]
    return kernel


@pytest.mark.parametrize("dt", list(NUMPY))
def test_buffers_of_every_kind(dt):
    x = (np.arange(15).reshape(3, 5) % 7).astype(NUMPY[dt])

    def oracle(x):
        changed = x.copy()
        changed[:, 0] = x[:, -1]
        return np.stack([x, np.broadcast_to(x[0, 0], x.shape), changed, x]), np.array([x[0, 0], x[-1, 0]], x.dtype)
    check(buffers(I.dtype(dt)), [x, out((4, 3, 5), dt), out(2, dt)], oracle, layouts=("contiguous", "mixed"))


@intent.kernel
def loads(x: I.InOut[I.f32, ("M", "N")], k: I.In[I.i32, ("K",)], y: I.Out[I.f32, ("K", "N")], z: I.Out[I.f32, (3,)]):
    y[:, :] = I.mutable_load(x, (k[:], I.domain(0, x.shape[1])))
    z[0] = I.mutable_load(x, (0, 1))
    x[0, 1] = 5.0
    z[1] = I.mutable_load(x, (0, 1))
    z[2] = x[0, 1]


def test_mutable_load_is_an_element():
    x, k = np.arange(6, dtype="f4").reshape(2, 3), np.array([1, 1, 0], "i4")

    def oracle(x, k):
        after = x.copy()
        after[0, 1] = 5
        return after, x[k], np.array([1, 5, 5], "f4")
    check(loads, [x, k, out((3, 3), "f32"), out(3, "f32")], oracle)
