"""histogram: pure counts of integer values, with validity, in every place a value can stand."""
from __future__ import annotations

import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from tests.support import check, kir_of, numpy_dtype, out

RNG = np.random.default_rng(3)


def counted(values, bins, valid=True, dt="u32"):
    values = np.asarray(values)
    active = values[np.broadcast_to(valid, values.shape)]
    return np.bincount(active.astype(np.int64), minlength=bins).astype(numpy_dtype(dt))


@intent.kernel
def plain(x: I.In[I.i32, ("N",)], y: I.Out[I.u32, ("B",)]):
    B, = y.shape
    y[:] = I.histogram(x[:], bins=B, count_dtype=I.u32)


@pytest.mark.parametrize("n", [0, 1, 31, 1000, 100_000])
def test_counts(n):
    x = RNG.integers(0, 17, n).astype(np.int32)
    check(plain, [x, out(17, "u32")], lambda x: counted(x, 17))


@pytest.mark.parametrize("dt", ["i8", "i16", "i64", "u8", "u16", "u32", "u64"])
def test_value_dtypes(dt):
    @intent.kernel
    def of_dtype(x: I.In[I.dtype(dt), ("M", "N")], y: I.Out[I.i64, (9,)]):
        y[:] = I.histogram(x[:, :], bins=9, count_dtype=I.i64)
    check(of_dtype, [RNG.integers(0, 9, (13, 40)).astype(numpy_dtype(dt)), out(9, "i64")], lambda x: counted(x, 9, dt="i64"))


@intent.kernel
def within(x: I.In[I.i64, ("M", "N")], low: I.i64, high: I.i64, rows: I.In[I.bool, ("M",)], y: I.Out[I.i32, (10,)],
           z: I.Out[I.i32, (10,)]):
    v = x[:, :]
    ok = (v >= low) & (v < high)
    y[:] = I.histogram(v, bins=10, valid=ok, count_dtype=I.i32)
    z[:] = I.histogram(v, bins=10, valid=ok & rows[:][:, None], count_dtype=I.i32)


def test_inactive_values_may_be_anything():
    x = RNG.integers(-2 ** 62, 2 ** 62, (40, 30))
    x[::2] = RNG.integers(-5, 20, (20, 30))
    rows = RNG.random(40) < 0.5

    def oracle(x, low, high, rows):
        ok = (x >= low) & (x < high)
        return counted(x, 10, ok, "i32"), counted(x, 10, ok & rows[:, None], "i32")
    check(within, [x, np.int64(0), np.int64(10), rows, out(10, "i32"), out(10, "i32")], oracle)


def test_valid_broadcasts_and_may_be_a_scalar():
    @intent.kernel
    def broadcast(x: I.In[I.i32, ("M", "N")], cols: I.In[I.bool, ("N",)], on: I.bool, y: I.Out[I.i32, (4,)], z: I.Out[I.i32, (4,)],
                  none: I.Out[I.i32, (4,)]):
        y[:] = I.histogram(x[:, :], bins=4, valid=cols[:], count_dtype=I.i32)
        z[:] = I.histogram(x[:, :], bins=4, valid=on, count_dtype=I.i32)
        none[:] = I.histogram(x[:, :], bins=4, valid=False, count_dtype=I.i32)

    x, cols = RNG.integers(0, 4, (9, 21)).astype(np.int32), RNG.random(21) < 0.5
    for on in (True, False):
        check(broadcast, [x, cols, on, out(4, "i32"), out(4, "i32"), out(4, "i32")],
              lambda x, cols, on: (counted(x, 4, cols, "i32"), counted(x, 4, on, "i32"), np.zeros(4, np.int32)))


def test_counts_wrap():
    @intent.kernel
    def narrow(x: I.In[I.i32, ("N",)], y: I.Out[I.u8, (2,)], z: I.Out[I.i8, (2,)]):
        y[:] = I.histogram(x[:], bins=2, count_dtype=I.u8)
        z[:] = I.histogram(x[:], bins=2, count_dtype=I.i8)

    x = np.repeat([0, 1], [300, 200]).astype(np.int32)
    check(narrow, [x, out(2, "u8"), out(2, "i8")], lambda x: (np.array([44, 200], np.uint8), np.array([44, -56], np.int8)))


@intent.kernel
def rowwise(x: I.In[I.u8, ("M", "N")], y: I.Out[I.f32, ("M", "B")], entropy: I.Out[I.f32, ("M",)]):
    M, N = x.shape
    _, B = y.shape
    for m in I.parallel(I.domain(0, M)):
        share = I.cast(I.histogram(x[m, :], bins=B, count_dtype=I.u32), I.f32) / I.cast(N, I.f32)
        y[m, :] = share
        entropy[m] = -I.reduce.sum(I.select(share > 0.0, share * I.log(I.maximum(share, 1e-30)), 0.0), axis=0)


def test_one_for_each_point():
    x = RNG.integers(0, 16, (33, 64)).astype(np.uint8)

    def oracle(x):
        share = np.stack([counted(r, 16) for r in x]).astype(np.float32) / np.float32(64)
        logs = np.log(np.where(share > 0, share, 1).astype(np.float64))
        return share, (-(share * logs).sum(axis=1)).astype(np.float32)
    check(rowwise, [x, out((33, 16), "f32"), out(33, "f32")], oracle, ulps=8, floor=8)


def test_in_a_loop_and_as_an_operand():
    @intent.kernel
    def counting_sort(x: I.In[I.i32, ("N",)], keys: I.Out[I.i64, ("K",)], y: I.Out[I.i32, ("N",)]):
        N, = x.shape
        K, = keys.shape
        total = I.histogram(x[:], bins=K, count_dtype=I.i64)
        begins = I.cumsum(total, axis=0, inclusive=False)
        keys[:] = begins
        cursor = I.buffer((K,), I.i64, init=begins)
        for i in I.domain(0, N):
            y[cursor[x[i]]] = x[i]
            cursor[x[i]] = cursor[x[i]] + 1

    x = RNG.integers(0, 11, 500).astype(np.int32)
    check(counting_sort, [x, out(11, "i64"), out(500, "i32")],
          lambda x: (np.r_[0, np.cumsum(np.bincount(x, minlength=11))[:-1]], np.sort(x)))


def test_inside_an_ordered_loop():
    @intent.kernel
    def repeated(x: I.In[I.i32, ("R", "N")], y: I.Out[I.i32, (8,)]):
        R, N = x.shape
        best = I.zeros((8,), I.i32)
        for r in I.domain(0, R):
            best = I.maximum(best, I.histogram(x[r, :], bins=8, count_dtype=I.i32))
        y[:] = best
    check(repeated, [RNG.integers(0, 8, (7, 90)).astype(np.int32), out(8, "i32")],
          lambda x: np.max([counted(r, 8, dt="i32") for r in x], axis=0))


def test_refusals():
    def refused(error, text, **options):
        values, bins, count = options.get("values", I.i32), options.get("bins", 4), options.get("count", I.i32)

        @intent.kernel
        def kernel(x: I.In[values, ("N",)], y: I.Out[count, ("B",)]):
            y[:] = I.histogram(x[:], bins=bins, count_dtype=count)
        with pytest.raises(error) as caught:
            kir_of(kernel)
        assert text in str(caught.value)

    refused(intent.IntentTypeError, "integer tensor", values=I.f32)
    refused(intent.IntentTypeError, "integer tensor", values=I.bool)
    refused(intent.IntentTypeError, "counts are integers", count=I.f32)
    refused(intent.IntentShapeError, "positive", bins=0)
