"""Which violation is reported, and with which coordinates: combines, region operations, dead code, order, ways of calling."""
from __future__ import annotations

import ml_dtypes
import numba
import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from intent_numba import reference
from intent_numba.frontend.segments import segmentation
from tests.support.segments import EXTENTS

from .planted import rehearsed
from .test_obligations import report

CHECKS = intent.CompileOptions(checks=True)


def at(kernel, *args, error=intent.InvalidInput):
    e = report(kernel, list(args), error)
    return e.operation, e.coordinates


def silent(kernel, *args):
    return reference.rehearse(rehearsed(kernel), list(args))


# ---- combines: pairs have no coordinates, elements of components do


@intent.fn
def narrowed(a, b):
    return I.cast(I.cast(a, I.f32) + I.cast(b, I.f32), I.i8)


@intent.fn
def merged(a, b):
    return I.record(n=a.n + b.n, s=narrowed(a.s, b.s))


@intent.kernel
def columns(x: I.In[I.i8, ("M", "N")], y: I.Out[I.i8, ("N",)], z: I.Out[I.i8, ("M",)], c: I.Out[I.i8, ("M", "N")]):
    M, N = x.shape
    y[:] = I.reduce(x[:, :], axis=0, identity=I.zeros((N,), I.i8), combine=narrowed)
    for i in I.parallel(I.domain(0, M)):
        r = I.reduce(I.record(n=I.full((N,), 1, I.i32), s=x[i, :]), axis=0, combine=merged,
                     identity=I.record(n=I.cast(0, I.i32), s=I.cast(0, I.i8)))
        z[i] = r.s
    c[:, :] = I.scan(x[:, :], axis=1, identity=I.zeros((M,), I.i8), combine=narrowed)


@pytest.mark.parametrize("m, n", [(1, 1), (3, 33), (40, 5), (2, 97)])
def test_combines(m, n):
    """Sums up to the largest value are silent, whatever pairs a tree or a scan of blocks forms."""
    x = np.zeros((m, n), "i1")
    x[0, n - 1] = 100
    out = np.zeros(n, "i1"), np.zeros(m, "i1"), np.zeros((m, n), "i1")
    silent(columns, x, *out)
    if m > 1:
        x[1, n - 1] = 28
        assert at(columns, x, *out) == ("I.cast", (n - 1,))
    if n > 1:
        x[:] = 0
        x[m - 1, n - 2:] = 100
        assert at(columns, x, *out) == ("I.cast", (m - 1,))


@intent.kernel
def thrown(x: I.In[I.i8, ("N",)], k: I.In[I.i32, ("N",)], ok: I.In[I.bool, ("N",)], y: I.InOut[I.i8, ("K",)]):
    I.scatter_reduce(y, index=k[:], value=x[:], combine=narrowed, valid=ok[:])


@intent.kernel
def thrown_by_points(x: I.In[I.i8, ("N",)], k: I.In[I.i32, ("N",)], y: I.InOut[I.i8, ("K",)]):
    for i in I.parallel(I.domain(0, x.shape[0])):
        I.scatter_reduce(y, index=k[i], value=x[i], combine=narrowed)


def test_combines_of_scatter_reduce_name_the_member():
    x, k, ok = np.array([100, 99, 100, 3, 27, 1], "i1"), np.array([0, 0, 1, 1, 1, 0], "i4"), np.array([1, 0, 1, 1, 1, 1], bool)
    assert at(thrown, x, k, ok, np.zeros(2, "i1")) == ("I.cast", (4,))
    assert at(thrown_by_points, x, k, np.zeros(2, "i1")) == ("I.cast", (1,))
    silent(thrown, x, k, ok & (x != 27), np.zeros(2, "i1"))


# ---- region operations: members keep the coordinates of the source, under any segmentation


@intent.fn
def quotients(v, d, j):
    return I.reduce.sum(v // d[:, None], axis=0) + I.reduce.max(j, axis=0) * 0


@intent.fn
def added(a, b):
    return a + b


@intent.fn
def moved(p, s):
    return s + p


@intent.fn
def emitted(v, d, j, s):
    return I.cumsum(v, axis=0) % d[:, None] + s


@intent.kernel
def segmented(x: I.In[I.i64, ("M", "N")], d: I.In[I.i64, ("M",)], e: I.In[I.i64, ("M",)], s: I.Out[I.i64, ("N",)],
              y: I.Out[I.i64, ("M", "N")]):
    M, N = x.shape
    zero = I.zeros((N,), I.i64)
    rows = I.domain(0, M)
    j = I.cast(I.indices(rows), I.i64)
    s[:] = I.region_fold(source=(x[:, :], d[:], j), axis=0, summarize=quotients, combine=added, identity=zero)
    y[:, :], last = I.region_scan(source=(x[:, :], e[:], j), axis=0, summarize=quotients_of_one, combine=added, identity=zero,
                                  initial_state=zero, apply=moved, emit=emitted)


@intent.fn
def quotients_of_one(v, d, j):
    return I.reduce.sum(v, axis=0)


@pytest.mark.parametrize("extent", EXTENTS)
def test_members_of_segments(extent):
    x, ones = np.arange(140 * 2).reshape(140, 2), np.ones(140, np.int64)
    out = np.zeros(2, np.int64), np.zeros((140, 2), np.int64)
    bad = ones.copy()
    bad[131] = 0
    with segmentation(extent):
        silent(segmented, x, ones, ones, *out)
        assert at(segmented, x, bad, ones, *out) == ("//", (131, 0))
        assert at(segmented, x, ones, bad, *out) == ("%", (131, 0))


# ---- what no result depends on; order; more than one view of one memory


@intent.kernel
def unused(x: I.In[I.i8, ("N",)], n: I.index, y: I.Out[I.i8, ("N",)]):
    total = I.reduce(x[:], axis=0, identity=I.cast(0, I.i8), combine=narrowed)  # noqa: F841
    room = I.buffer((n,), I.f32, init=0.0)  # noqa: F841
    y[:] = x[:]


def test_what_no_result_depends_on():
    x, y = np.array([100, 20, 7], "i1"), np.zeros(3, "i1")
    silent(unused, x, 0, y)
    assert at(unused, x, -1, y) == ("I.buffer", ())
    assert at(unused, x + np.int8(20), -1, y) == ("I.cast", ())


@intent.kernel(policy="checked")
def raising(x: I.In[I.i32, ("N",)], k: I.In[I.i32, ("N",)], y: I.Out[I.i32, ("N",)]):
    for i in I.parallel(I.domain(0, x.shape[0])):
        t = y[k[i]] if k[i] > 90 else k[i]
        y[i] = x[i] * 3 + t


def test_overflow_and_violations_stand_in_one_order():
    x, k, y = np.array([1, 2 ** 30, 3], "i4"), np.array([0, 1, 2], "i4"), np.zeros(3, "i4")
    with pytest.raises(intent.IntegerOverflow, match=r"y\[i\] = x\[i\] \* 3"):
        reference.rehearse(rehearsed(raising), [x, k, y])
    k[2] = 99                                                  # a later point, an earlier operation
    assert at(raising, x, k, y) == ("read", (2,))


@intent.kernel
def both(a: I.In[I.u8, ("N",)], b: I.InOut[I.f32, ("M",)]):
    for i in I.parallel(I.domain(0, b.shape[0])):
        b[i] = b[i] + I.cast(a[i * 4 + 7], I.f32)


def test_views_of_other_dtypes_in_one_memory():
    """The last byte of the next element is read."""
    memory = np.zeros(6, "f4")
    with pytest.raises(intent.InvalidInput, match="have no order") as caught:
        intent.compile(both, options=CHECKS)(memory.view("u1"), memory[:5])
    assert caught.value.coordinates == (1,)
    intent.compile(both, options=CHECKS)(memory.view("u1")[12:], memory[:1])


# ---- loops and arms of the text, whatever CPython makes of them


@intent.kernel
def rotating(x: I.In[I.i64, ("N",)], y: I.InOut[I.i64, ("N",)]):
    k = I.cast(-1, I.i64)
    while k < 9 and \
            60 // (x[k + 1] + 7) < 90:
        k = k + 1
        while True:
            while y[k] > 0:
                y[k] = y[k] - 1
            if x[k] < 6:
                break
            y[k] = y[k] + 8 // x[k]
            if x[k] < 9:
                break
        if x[k] == 3:
            continue
        y[k] = y[k] + 12 // x[k]


def test_a_continued_while_is_one_loop():
    x, y = np.array([1, 3, 2, 3, 3, 4, 5, 6, 7, 8]), np.arange(10)
    silent(rotating, x, y)
    x[6] = 0
    assert at(rotating, x, y) == ("//", (6,))
    x[5] = -7
    assert at(rotating, x, y) == ("//", (4,))                   # the condition after iteration 4


@intent.kernel
def in_arms(x: I.In[I.i64, ("N",)], y: I.Out[I.i64, ("N",)]):
    for i in I.parallel(I.domain(0, x.shape[0])):
        if not (x[i] < 5 or x[i] == 7):
            y[i] = 7 // (x[i] - 9)
        else:
            y[i] = 7 % x[i]


def test_arms_stand_in_the_order_of_the_text():
    assert at(in_arms, np.array([0, 6, 9]), np.zeros(3, np.int64)) == ("//", (2,))
    assert at(in_arms, np.array([6, 7, 0]), np.zeros(3, np.int64)) == ("%", (2,))


# ---- ways of calling


@numba.njit
def third(v):
    return v / 3


@intent.kernel
def called(x: I.In[I.bf16, ("M", "N")], k: I.In[I.i32, ("N",)], y: I.Out[I.i8, ("N", "M")], SCALE: I.Constexpr[int] = 3):
    for i, j in I.parallel((I.domain(0, x.shape[0]), I.domain(0, x.shape[1]))):
        y[j, i] = I.cast(third(I.cast(x[i, k[j]], I.f32)) * SCALE, I.i8)


@pytest.mark.parametrize("layout", [lambda a: a, lambda a: a[::-1], np.asfortranarray, lambda a: np.repeat(a, 2, 1)[:, ::2],
                                    lambda a: a[:0], lambda a: np.broadcast_to(a[:1], a.shape)])
def test_arrays_of_every_layout(layout):
    x = layout(np.arange(12).reshape(3, 4).astype(ml_dtypes.bfloat16))
    x.flags.writeable = False
    k, y = np.array([3, 0, 1, 2], "i4"), np.full((4, len(x)), 9, "i1")
    intent.compile(called, options=CHECKS)(x, k, y)
    assert np.array_equal(y, called.run(x, k))
    if len(x):
        y[:] = 9
        for constexprs, index, operation, where in (({"SCALE": 200}, 0, "I.cast", None), ({}, 4, "read", (0, 1))):
            k[1] = index
            with pytest.raises(intent.InvalidInput) as caught:
                intent.compile(called, constexprs=constexprs, options=CHECKS)(x, k, y)
            assert caught.value.operation == operation and where in (None, caught.value.coordinates) and (y == 9).all()


def test_pickled_and_kept_apart_from_the_unchecked():
    import pickle
    x, k = np.ones((1, 2), ml_dtypes.bfloat16), np.array([0, 2], "i4")
    with pytest.raises(intent.InvalidInput) as caught:
        intent.compile(called, options=CHECKS).run(x, k)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.loc, again.operation, again.coordinates) == (str(caught.value), caught.value.loc, "read", (0, 1))
