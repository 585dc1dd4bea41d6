"""The language cases: small programs with the right value, for rules that are easy to get wrong.

Numbers are those of the case list. A case that no test here covers yet stands in ``NOT_COVERED`` with its reason.
"""
from __future__ import annotations

from functools import cache, lru_cache

import ml_dtypes
import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from intent_numba import reference
from intent_numba.frontend import build_kernel
from intent_numba.frontend.segments import segmentation
from intent_numba.kir.ir import walk
from tests.support import BACKEND, check, execute, interpret, kir_of, numpy_dtype, out, poison
from tests.support.arrays import Out

NOT_COVERED = {
    "3 (saturating e4m3fn over the whole range)": "covered by the cast tests of numerics",
    "4 (InvalidInput)": "tests/host/test_checks.py",
    "5 (checks)": "tests/host/test_checks.py",
    "6 (checks)": "tests/host/test_checks.py",
    "18 (checks)": "tests/host/test_checks.py",
}


def array(values, dt) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.array(values).astype(numpy_dtype(dt))


def same(got, want):
    """Equal values with the sign of zero, any NaN for NaN."""
    got, want = np.asarray(got), np.asarray(want)
    g, w = got.astype(np.float64), want.astype(np.float64)
    assert got.shape == want.shape and np.array_equal(g, w, equal_nan=True), f"got {got}, want {want}"
    plain = ~np.isnan(w)
    assert np.array_equal(np.signbit(g)[plain], np.signbit(w)[plain]), f"signs: got {got}, want {want}"


def legal(kernel, **constexprs):
    kir_of(kernel, tuple(constexprs.items()))


def refused(kernel, error=intent.IntentError, text=""):
    with pytest.raises(error) as caught:
        kir_of(kernel)
    assert text in str(caught.value)


# ---- 1: where products and sums fuse

@intent.kernel
def fma_scope(a: I.f32, b: I.f32, c: I.f32, y: I.Out[I.f32, (5,)]):
    p = a * b
    s = p + c
    d = p
    y[0] = s
    y[1] = d
    y[2] = p - p
    y[3] = a * b + c
    y[4] = c + a * b


def test_01_fma_scope():
    a, c = np.float32(1 + 2.0 ** -12), np.float32(-(1 + 2.0 ** -11))
    (y,) = check(fma_scope, [a, a, c, out(5, "f32")])
    same(y, [0, 1 + 2.0 ** -11, 0, 2.0 ** -24, 2.0 ** -24])


def test_01_checked_never_fuses():
    a, c = np.float32(1 + 2.0 ** -12), np.float32(-(1 + 2.0 ** -11))
    (y,) = check(intent.kernel(policy="checked")(fma_scope.pyfunc), [a, a, c, out(5, "f32")])
    same(y, [0, 1 + 2.0 ** -11, 0, 0, 0])


@intent.fn
def times(a, b):
    return a * b


@intent.kernel
def fma_boundaries(a: I.f32, c: I.f32, x: I.In[I.f32, ("N",)], y: I.Out[I.f32, (7,)], z: I.Out[I.f32, ("N", "N")]):
    y[0] = times(a, a) + c
    y[1] = -(a * a) - c
    y[2] = (p := a * a) + c + (p - p)
    y[3] = (a * a if a > 0.0 else c) + c
    acc = c
    acc += a * a
    y[4] = acc
    y[5] = I.add(I.multiply(a, a), c)
    y[6] = -c - a * a
    v = x[:]
    z[:, :] = (v * v)[:, None] + v


def test_01_boundaries_of_fusion():
    a, c = np.float32(1 + 2.0 ** -12), np.float32(-(1 + 2.0 ** -11))
    x = np.array([a, c], np.float32)
    y, z = check(fma_boundaries, [a, c, x, out(7, "f32"), out((2, 2), "f32")])
    fused = 2.0 ** -24
    same(y, [0, 0, 0, 0, fused, fused, -fused])
    same(z, (x * x)[:, None] + x)


# ---- 2, 3: narrowing

@cache
def cast(src, dst, saturating=False):
    @intent.kernel
    def cast(x: I.In[src, ("N",)], y: I.Out[dst, ("N",)]):
        y[:] = I.saturating_cast(x[:], dst) if saturating else I.cast(x[:], dst)

    return cast


@pytest.mark.parametrize("dt", [I.bf16, I.f16, I.f8e5m2, I.f8e4m3fn, I.f64], ids=lambda d: d.name)
def test_02_nan_narrows_to_nan(dt):
    x = np.array([0x7FFFFFFF, 0x7F800001, 0xFFFFFFFF, 0xFF800001] * 9, np.uint32).view(np.float32)
    (y,) = check(cast(I.f32, dt), [x, out(x.shape, dt)])
    assert np.isnan(y.astype(np.float64)).all()


def test_03_edges_of_f8():
    x = array([448, 464, -0.0, 2.0 ** -10, 2.0 ** -10 + 2.0 ** -30, -448], "f32")
    (y,) = check(cast(I.f32, I.f8e4m3fn), [x, out(x.shape, "f8e4m3fn")])
    assert y.view(np.uint8).tolist() == [0x7E, 0x7E, 0x80, 0x00, 0x01, 0xFE]
    (y,) = check(cast(I.f32, I.f8e5m2), [array([61439, 61440], "f32"), out(2, "f8e5m2")])
    same(y, [57344, np.inf])
    (y,) = check(cast(I.f32, I.f8e4m3fn, True), [array([1e9, -1e9, np.inf, np.nan, 463], "f32"), out(5, "f8e4m3fn")])
    same(y, [448, -448, 448, np.nan, 448])


# ---- 4, 5, 6: conversions and division

def test_04_float_to_integer_truncates():
    (y,) = check(cast(I.f32, I.i8), [array([127.9, -128.9, -0.5, 3.99], "f32"), out(4, "i8")])
    assert y.tolist() == [127, -128, 0, 3]
    (y,) = check(cast(I.f32, I.u8), [array([-0.9, 255.9], "f32"), out(2, "u8")])
    assert y.tolist() == [0, 255]


@pytest.mark.unchecked
def test_04_out_of_range_is_harmless_when_unchecked():
    x = array([128.0, -1.0, np.nan, 2147483648.0, np.inf, -1e30], "f32")
    for dt in (I.i8, I.u8, I.i32, I.u64):
        if BACKEND != "reference":
            execute(cast(I.f32, dt), [x, out(x.shape, dt)])
        interpret(cast(I.f32, dt), [x, out(x.shape, dt)])


@intent.kernel
def division(a: I.In[I.i8, ("N",)], b: I.In[I.i8, ("N",)], p: I.i8, q: I.i8, y: I.Out[I.i8, (2, "N")], z: I.Out[I.i8, (8,)]):
    y[0, :] = a[:] // b[:]
    y[1, :] = a[:] % b[:]
    z[0] = p // q
    z[1] = p % q
    z[2] = p // 3
    z[3] = p % 3
    z[4] = -7 // 3
    z[5] = -7 % 3
    z[6] = 7 // -3
    z[7] = 7 % -3


def test_05_division_floors():
    y, z = check(division, [array([-7, -7, 7, 7], "i8"), array([3, -3, -3, 3], "i8"), np.int8(-7), np.int8(3), out((2, 4), "i8"),
                            out(8, "i8")])
    assert y.tolist() == [[-3, 2, -3, 2], [2, -1, -2, 1]]
    assert z.tolist() == [-3, 2, -3, 2, -3, 2, -3, -2]


@pytest.mark.unchecked
def test_05_division_by_zero_and_overflow_are_harmless_when_unchecked():
    a, b = array([5, -128, -128, 7] * 20, "i8"), array([0, -1, 1, 2] * 20, "i8")
    args = [a, b, np.int8(-128), np.int8(-1), out((2, 80), "i8"), out(8, "i8")]
    results = [interpret(division, args)] + ([execute(division, args)] if BACKEND != "reference" else [])
    for y, z in results:
        assert y[0, 2:4].tolist() == [-128, 3] and y[1, 1:4].tolist() == [0, 0, 1] and z[1] == 0


@intent.kernel
def guarded_division(a: I.In[I.i32, ("N",)], b: I.In[I.i32, ("N",)], y: I.Out[I.i32, ("N",)], z: I.Out[I.i32, ("N",)]):
    n = I.domain(0, a.shape[0])
    for i in n:
        y[i] = a[i] // b[i] if b[i] != 0 else 0
    z[n] = I.select(b[n] != 0, a[n] // b[n], 0)


@pytest.mark.unchecked
def test_06_guarded_division():
    y, z = check(guarded_division, [array([5, 5], "i32"), array([0, 2], "i32"), out(2, "i32"), out(2, "i32")])
    assert y.tolist() == z.tolist() == [0, 2]


# ---- 7: literals

@lru_cache(maxsize=None, typed=True)
def plus(dt, literal):
    @intent.kernel
    def plus(x: I.In[dt, ("N",)], y: I.Out[dt, ("N",)]):
        y[:] = x[:] + literal

    return plus


@pytest.mark.parametrize("dt,literal", [(I.i8, -128), (I.u8, 255), (I.f32, 1), (I.u64, 18446744073709551615), (I.f32, 16777216),
                                        (I.f16, 65504.0),
                                        (I.f32, 0.1), (I.index, 5), (I.f32, float("inf"))], ids=str)
def test_07_literals_that_fit(dt, literal):
    x = array([1, 2, 3], dt)
    (y,) = check(plus(dt, literal), [x, out(3, dt)])
    with np.errstate(all="ignore"):
        assert y.tobytes() == (x + x.dtype.type(literal)).tobytes()


@pytest.mark.parametrize("dt,literal", [(I.i8, 128), (I.f32, 16777217), (I.i32, 1.0), (I.f16, 1e5), (I.f32, True), (I.i32, True),
                                        (I.u8, -1),
                                        (I.u64, 18446744073709551616), (I.bool, 1)], ids=str)
def test_07_literals_that_do_not_fit(dt, literal):
    refused(plus(dt, literal))


@intent.kernel
def untyped_accumulator(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, ()]):
    acc = 0.0
    for n in I.domain(0, x.shape[0]):
        acc = acc + x[n]
    y[()] = acc


def test_07_a_float_literal_bound_to_a_name_is_f64():
    refused(untyped_accumulator, text="I.cast(0.0, I.f32)")


@intent.kernel
def weak_integers(n: I.index, k: I.i64, y: I.Out[I.i64, (4,)]):
    step = 2
    while step <= n:
        step = step * 2
    y[0] = I.cast(n + step, I.i64)
    count = 0
    for _ in I.domain(0, n):
        count = count + 1
    y[1] = k + count
    small = 3
    y[2] = k * small
    y[3] = I.cast(I.cast(250, I.u8) + 6, I.i64)


def test_07_weak_integers():
    (y,) = check(weak_integers, [9, np.int64(100), out(4, "i64")])
    assert y.tolist() == [9 + 16, 109, 300, 0]


@intent.kernel
def weak_meets_i32(x: I.i32, n: I.index, y: I.Out[I.i32, ()]):
    step = 2
    for _ in I.domain(0, n):
        step = step * 2
    y[()] = x + step


def test_07_a_weak_integer_meets_i32_only_through_a_cast():
    refused(weak_meets_i32, text="I.cast(")


# ---- 8: maxima and minima

@cache
def extrema(dt):
    @intent.kernel
    def extrema(a: I.In[dt, ("N",)], b: I.In[dt, ("N",)], y: I.Out[dt, (4, "N")], r: I.Out[dt, (2, "N")]):
        p, q = a[:], b[:]
        y[0, :] = I.maximum(p, q)
        y[1, :] = I.minimum(p, q)
        y[2, :] = I.maximum_num(p, q)
        y[3, :] = I.minimum_num(p, q)
        both = I.join(p, q)
        r[0, :] = I.reduce.max(both, axis=1)
        r[1, :] = I.reduce.min(both, axis=1)

    return extrema


@pytest.mark.parametrize("n", [1, 7, 32, 33])
@pytest.mark.parametrize("dt", [I.f32, I.f16, I.bf16, I.f64, I.f8e5m2, I.f8e4m3fn], ids=lambda d: d.name)
def test_08_extrema(dt, n):
    nan = np.nan
    table = [(nan, 1, (nan, nan, 1, 1)), (1, nan, (nan, nan, 1, 1)), (nan, nan, (nan,) * 4), (-0.0, 0.0, (0.0, -0.0, 0.0, -0.0)),
             (0.0, -0.0, (0.0, -0.0, 0.0, -0.0)),
             (2, 3, (3, 2, 3, 2)), (-0.0, -0.0, (-0.0,) * 4)]
    for start in range(len(table)):
        rows = [table[(start + i) % len(table)] for i in range(n)]
        a, b, want = (array([r[i] for r in rows], dt) for i in range(3))
        y, r = check(extrema(dt), [a, b, out((4, n), dt), out((2, n), dt)], layouts=("contiguous", "reversed"))
        same(y, want.T)
        same(r, want.T[:2])
        if n > 7:
            break


@cache
def whole_extrema(dt):
    @intent.kernel
    def whole_extrema(x: I.In[dt, ("N",)], y: I.Out[dt, (2,)], z: I.Out[dt, ("N",)]):
        v = x[:]
        y[0] = I.reduce.max(v, axis=0)
        y[1] = I.reduce.min(v, axis=0)
        z[:] = I.cummax(v, axis=0)

    return whole_extrema


@pytest.mark.parametrize("n", [1, 7, 32, 33])
def test_08_extrema_of_arrays_of_zeros(n):
    for mixed in (array([-0.0] * (n - 1) + [0.0], "f32"), array([0.0] + [-0.0] * (n - 1), "f32")):
        y, z = check(whole_extrema(I.f32), [mixed, out(2, "f32"), out(n, "f32")])
        same(y, [0.0, -0.0 if n > 1 else 0.0])
        same(z, np.where(np.cumsum(~np.signbit(mixed)) > 0, 0.0, -0.0))


# ---- 9: folds that floating arithmetic forbids

@intent.kernel
def no_folds(x: I.In[I.f32, (4,)], y: I.Out[I.f32, (10,)]):
    zero, plus_zero, infinity, big = x[0], x[1], x[2], x[3]
    y[0] = zero + 0.0
    y[1] = -plus_zero
    y[2] = I.floor(zero)
    y[3] = I.ceil(plus_zero - 0.5)
    y[4] = I.rsqrt(zero)
    y[5] = infinity - infinity
    y[6] = infinity * 0.0
    t = big + 1.0
    y[7] = t - big
    y[8] = zero - 0.0
    y[9] = zero * 1.0


def test_09_forbidden_folds():
    (y,) = check(no_folds, [array([-0.0, 0.0, np.inf, 2.0 ** 24], "f32"), out(10, "f32")])
    same(y, [0.0, -0.0, -0.0, -0.0, -np.inf, np.nan, np.nan, 0.0, -0.0, -0.0])


# ---- 10, 11: widening and empty reductions

@cache
def sums(dt, acc):
    @intent.kernel
    def sums(x: I.In[dt, ("N",)], s: I.Out[acc, ()], c: I.Out[acc, ("N",)], m: I.Out[dt, ()]):
        v = x[:]
        s[()] = I.reduce.sum(v, axis=0)
        c[:] = I.cumsum(v, axis=0)
        m[()] = I.reduce.max(v, axis=0)

    return sums


@pytest.mark.parametrize("dt,acc,x,total", [(I.f16, I.f32, [65504, 65504], 131008), (I.i8, I.i32, [100, 100], 200),
                                            (I.u8, I.u32, [255] * 300, 76500)])
def test_10_sums_widen(dt, acc, x, total):
    s, c, m = check(sums(dt, acc), [array(x, dt), out((), acc), out(len(x), acc), out((), dt)])
    assert s == total and c.tolist() == np.cumsum(x).tolist() and m == max(x)


def test_10_a_sum_of_negative_zeros_is_zero():
    s, c, m = check(sums(I.f32, I.f32), [array([-0.0], "f32"), out((), "f32"), out(1, "f32"), out((), "f32")])
    same(s, 0.0)
    same(c, [-0.0])
    same(m, -0.0)


@cache
def all_reductions(dt, acc):
    @intent.kernel
    def all_reductions(x: I.In[dt, ("M", "N")], s: I.Out[acc, ("M",)], p: I.Out[acc, ("M",)], hi: I.Out[dt, ("M",)], lo: I.Out[dt, ("M",)],
                       b: I.Out[I.bool, (2, "M")]):
        v = x[:, :]
        s[:] = I.reduce.sum(v, axis=1)
        p[:] = I.reduce.prod(v, axis=1)
        hi[:] = I.reduce.max(v, axis=1)
        lo[:] = I.reduce.min(v, axis=1)
        test = v == v
        b[0, :] = I.reduce.any(test, axis=1)
        b[1, :] = I.reduce.all(test, axis=1)

    return all_reductions


@pytest.mark.parametrize("dt,acc,low,high", [(I.f32, I.f32, -np.inf, np.inf), (I.f16, I.f32, -np.inf, np.inf),
                                             (I.f8e4m3fn, I.f32, -448, 448), (I.i8, I.i32, -128, 127),
                                             (I.u8, I.u32, 0, 255), (I.f8e5m2, I.f32, -np.inf, np.inf), (I.i64, I.i64, -2 ** 63,
                                                                                                         2 ** 63 - 1)], ids=str)
def test_11_empty_reductions(dt, acc, low, high):
    for m in (3, 0):
        x = np.zeros((m, 0), numpy_dtype(dt))
        s, p, hi, lo, b = check(all_reductions(dt, acc), [x, out(m, acc), out(m, acc), out(m, dt), out(m, dt), out((2, m), "bool")])
        assert (s == 0).all() and (p == 1).all() and (hi == numpy_dtype(dt).type(low)).all() and (lo == numpy_dtype(dt).type(high)).all()
        assert not b[0].any() and b[1].all()
    got = check(all_reductions(dt, acc), [np.zeros((0, 3), numpy_dtype(dt)), out(0, acc), out(0, acc), out(0, dt), out(0, dt),
                                          out((2, 0), "bool")])
    assert got[0].shape == (0,)


@intent.kernel
def product(a: I.In[I.f32, ("M", "K")], b: I.In[I.f32, ("K", "N")], c: I.Out[I.f32, ("M", "N")]):
    c[:, :] = I.matmul(a[:, :], b[:, :], acc_dtype=I.f32)


def test_11_a_product_over_nothing_is_zero():
    (c,) = check(product, [np.zeros((3, 0), np.float32), np.zeros((0, 2), np.float32), out((3, 2), "f32")])
    same(c, np.zeros((3, 2)))


# ---- 12: arg_reduce

@intent.kernel
def arg_max(x: I.In[I.f32, ("N",)], v: I.Out[I.f32, ()], i: I.Out[I.i64, ()]):
    value, index = I.arg_reduce.max(x[:], axis=0)
    v[()] = value
    i[()] = I.cast(index, I.i64)


@pytest.mark.parametrize("x,value,index", [([1, np.nan, 3, np.nan], np.nan, 1), ([2, 5, 5], 5, 1), ([-0.0, 0.0], 0.0, 1),
                                           ([], -np.inf, 2 ** 63 - 1),
                                           ([-np.inf, -np.inf], -np.inf, 0)])
def test_12_arg_max(x, value, index):
    v, i = check(arg_max, [array(x, "f32"), out((), "f32"), out((), "i64")])
    same(v, value)
    assert i == index


@intent.kernel
def arg_max_of_part(x: I.In[I.f32, ("N",)], begin: I.index, end: I.index, i: I.Out[I.i64, ()]):
    columns = I.domain(0, x.shape[0])
    _, index = I.arg_reduce.max(x[columns[begin:end]], axis=0)
    i[()] = I.cast(index, I.i64)


def test_12_indices_count_inside_the_tensor():
    (i,) = check(arg_max_of_part, [array(range(10), "f32"), 4, 8, out((), "i64")])
    assert i == 3


# ---- 13: scans

@cache
def scan(dt, operation, inclusive, reverse):
    @intent.kernel
    def scan(x: I.In[dt, ("N",)], y: I.Out[dt, ("N",)]):
        y[:] = operation(x[:], axis=0, inclusive=inclusive, reverse=reverse)

    return scan


@pytest.mark.parametrize("inclusive,reverse,want", [(True, False, [1, 3, 6, 10]), (False, False, [0, 1, 3, 6]),
                                                    (True, True, [10, 9, 7, 4]), (False, True, [9, 7, 4, 0])])
def test_13_cumsum(inclusive, reverse, want):
    for dt in (I.f32, I.i32):
        (y,) = check(scan(dt, I.cumsum, inclusive, reverse), [array([1, 2, 3, 4], dt), out(4, dt)])
        assert y.tolist() == want


def test_13_cummax():
    (y,) = check(scan(I.i8, I.cummax, False, False), [array([3, 1, 5], "i8"), out(3, "i8")])
    assert y.tolist() == [-128, 3, 3]
    (y,) = check(scan(I.f32, I.cummax, True, False), [array([1, np.nan, 2], "f32"), out(3, "f32")])
    same(y, [1, np.nan, np.nan])


# ---- 14, 15: products

@intent.kernel
def contract_axes(a: I.In[I.f32, (2, 3, 4)], b: I.In[I.f32, (3, 4, 5)], c: I.Out[I.f32, (2, 3, 5)]):
    c[:, :, :] = I.contract(a[:, :, :], b[:, :, :], reduce=((2, 1),), batch=((1, 0),), acc_dtype=I.f32)


@intent.kernel
def batch_axes(a: I.In[I.f32, (2, 1, 3, 4)], b: I.In[I.f32, (7, 4, 5)], c: I.Out[I.f32, (2, 7, 3, 5)]):
    c[:, :, :, :] = I.matmul(a[:, :, :, :], b[:, :, :], acc_dtype=I.f32)


@intent.kernel
def broadcast_k(a: I.In[I.f32, (2, 1)], b: I.In[I.f32, (5, 3)], c: I.Out[I.f32, (2, 3)]):
    c[:, :] = I.matmul(a[:, :], b[:, :], acc_dtype=I.f32)


def test_14_axes_of_products(rng):
    a, b = (rng.integers(-9, 9, s).astype(np.float32) for s in ((2, 3, 4), (3, 4, 5)))
    check(contract_axes, [a, b, out((2, 3, 5), "f32")], lambda a, b: np.einsum("pqr,qrs->pqs", a, b))
    a, b = (rng.integers(-9, 9, s).astype(np.float32) for s in ((2, 1, 3, 4), (7, 4, 5)))
    check(batch_axes, [a, b, out((2, 7, 3, 5), "f32")], lambda a, b: a @ b)
    refused(broadcast_k)


@cache
def dot(dt, acc):
    @intent.kernel
    def dot(a: I.In[dt, ("K",)], b: I.In[dt, ("K",)], y: I.Out[acc, ()]):
        y[()] = I.dot(a[:], b[:], acc_dtype=acc)

    return dot


@pytest.mark.parametrize("dt,acc,x,want", [(I.i8, I.i32, [127, 127], 32258), (I.f16, I.f32, [300, 300], 180000),
                                           (I.i32, I.i32, [2 ** 31 - 1, 1], 2)])
def test_15_accumulators(dt, acc, x, want):
    (y,) = check(dot(dt, acc), [array(x, dt), array(x, dt), out((), acc)])
    assert y == want


# ---- 17, 18: overlap and snapshots

@intent.kernel
def copy_tensor(a: I.In[I.i32, ("N",)], b: I.Out[I.i32, ("N",)]):
    r = I.domain(0, a.shape[0])
    b[r] = a[r]


@intent.kernel
def copy_in_order(a: I.In[I.i32, ("N",)], b: I.Out[I.i32, ("N",)]):
    r = I.domain(0, a.shape[0])
    for i in r:
        b[i] = a[i]


def on_overlap(kernel, first, second):
    """The contents of a base after a call on two overlapping parts of it, by both roads."""
    results = []
    for road in ("reference", "compiled") if BACKEND != "reference" else ("reference",):
        base = np.arange(6, dtype=np.int32)
        if road == "reference":
            reference.run(kir_of(kernel), [base[first], base[second]])
        else:
            intent.compile(kernel, target="cpu")(base[first], base[second])
        results.append(base.tolist())
    assert all(r == results[0] for r in results), results
    return results[0]


def test_17_overlap():
    low, high = slice(0, 5), slice(1, 6)
    assert on_overlap(copy_tensor, low, high) == [0, 0, 1, 2, 3, 4]
    assert on_overlap(copy_tensor, high, low) == [1, 2, 3, 4, 5, 5]
    assert on_overlap(copy_in_order, low, high) == [0] * 6
    assert on_overlap(copy_in_order, high, low) == [1, 2, 3, 4, 5, 5]


@intent.kernel
def transpose_by_coordinates(m: I.InOut[I.i32, ("N", "N")]):
    n = I.domain(0, m.shape[0])
    r = I.indices(n)[:, None]
    c = I.indices(n)[None, :]
    m[r, c] = m[c, r]


@intent.kernel
def old_value(a: I.InOut[I.i32, (1,)], y: I.Out[I.i32, ()]):
    t = a[0]
    a[0] = 9
    y[()] = t


def test_17_reads_are_snapshots(rng):
    m = rng.integers(0, 99, (5, 5)).astype(np.int32)
    check(transpose_by_coordinates, [m], lambda m: m.T)
    a, y = check(old_value, [array([4], "i32"), out((), "i32")])
    assert (a[0], y) == (9, 4)


@intent.kernel
def buffer_snapshot(y: I.Out[I.i32, (2,)]):
    b = I.buffer((3,), I.i32)
    b[0] = 1
    t = b[0]
    b[0] = 2
    y[0] = t
    y[1] = b[0]


@intent.kernel
def fresh_buffers(n: I.index, y: I.Out[I.i32, ("N",)]):
    for i in I.domain(0, n):
        b = I.buffer((2,), I.i32, init=7)
        b[0] = b[0] + I.cast(i, I.i32)
        y[i] = b[0] + b[1]


def test_18_buffers():
    (y,) = check(buffer_snapshot, [out(2, "i32")])
    assert y.tolist() == [1, 2]
    (y,) = check(fresh_buffers, [5, out(5, "i32")])
    assert y.tolist() == [14, 15, 16, 17, 18]


# ---- 19: enums

class Mode(I.Enum):
    A = 0
    B = 1


class Other(I.Enum):
    A = 0
    B = 1


def test_19_enum_declarations():
    with pytest.raises(TypeError):
        class Twice(I.Enum):
            A = 1
            B = 1
    with pytest.raises(TypeError):
        class Nothing(I.Enum):
            pass

        I.Constexpr[Nothing]


def enum_use(body):
    """A kernel whose body applies ``body`` to the Constexpr parameter."""
    if body == "integer":
        @intent.kernel
        def kernel(y: I.Out[I.i32, ()], MODE: I.Constexpr[Mode] = Mode.A):
            y[()] = 1 if MODE == 0 else 2
    elif body == "arithmetic":
        @intent.kernel
        def kernel(y: I.Out[I.i32, ()], MODE: I.Constexpr[Mode] = Mode.A):
            y[()] = MODE + 1
    elif body == "other":
        @intent.kernel
        def kernel(y: I.Out[I.i32, ()], MODE: I.Constexpr[Mode] = Mode.A):
            y[()] = 1 if MODE == Other.A else 2
    elif body == "cast":
        @intent.kernel
        def kernel(y: I.Out[I.i32, ()], MODE: I.Constexpr[Mode] = Mode.A):
            y[()] = I.cast(MODE, I.i32)
    else:
        @intent.kernel
        def kernel(y: I.Out[I.i32, ()], MODE: I.Constexpr[Mode] = Mode.A):
            y[()] = 1 if MODE else 2
    return kernel


@pytest.mark.parametrize("body", ["integer", "arithmetic", "other", "cast", "truth"])
def test_19_enums_have_no_arithmetic(body):
    with pytest.raises(intent.IntentError):
        kir_of(enum_use(body), (("MODE", Mode.A),))


@cache
def by_mode(enum):
    @intent.kernel
    def by_mode(y: I.Out[I.i32, ()], MODE: I.Constexpr[enum]):
        y[()] = 1 if MODE == enum.A else 2

    return by_mode


def test_19_enum_types_specialise_separately():
    for enum in (Mode, Other):
        for member, want in ((enum.A, 1), (enum.B, 2)):
            (y,) = check(by_mode(enum), [out((), "i32")], constexprs={"MODE": member})
            assert y == want


# ---- 20: approximate mathematics

@intent.kernel
def approximate(a: I.In[I.f32, ("N",)], b: I.In[I.f32, ("N",)], y: I.Out[I.f32, (5, "N")]):
    p, q = a[:], b[:]
    y[0, :] = I.fdiv(p, q)
    y[1, :] = I.fdiv(p, q, approximate=True)
    y[2, :] = I.fdiv(p, q, approximate=True, flush_to_zero=True)
    y[3, :] = I.exp2(p, approximate=True, flush_to_zero=True)
    y[4, :] = I.tanh(p, approximate=True)


def test_20_approximate_edges():
    big, tiny = 2.0 ** 127, 2.0 ** -149
    a = array([big, -1, np.inf, -tiny, -127, 1, 6], "f32")
    b = array([big, big, big, 1, 1, 3, 2], "f32")
    y = interpret(approximate, [a, b, out((5, 7), "f32")])[0]
    compiled = execute(approximate, [a, b, out((5, 7), "f32")])[0] if BACKEND != "reference" else y
    for got in (y, compiled):
        same(got[1, :3], [0.0, -0.0, np.nan])
        same(got[2, 3:4], [-0.0])
        same(got[3, 4:5], [0.0])
        assert got[0, 5] == np.float32(1) / np.float32(3) and abs(got[1, 5] * 3 - 1) < 4e-7 and abs(got[4, 5] / np.tanh(1) - 1) < 2.0 ** -11


def approximate_misuse(kind):
    if kind == "flush without approximate":
        @intent.kernel
        def kernel(x: I.f32, y: I.Out[I.f32, ()]):
            y[()] = I.exp2(x, flush_to_zero=True)
    elif kind == "flush on tanh":
        @intent.kernel
        def kernel(x: I.f32, y: I.Out[I.f32, ()]):
            y[()] = I.tanh(x, approximate=True, flush_to_zero=True)
    elif kind == "f16":
        @intent.kernel
        def kernel(x: I.f16, y: I.Out[I.f16, ()]):
            y[()] = I.exp2(x, approximate=True)
    else:
        @intent.kernel
        def kernel(x: I.f32, flag: I.bool, y: I.Out[I.f32, ()]):
            y[()] = I.exp2(x, approximate=flag)
    return kernel


@pytest.mark.parametrize("kind", ["flush without approximate", "flush on tanh", "f16", "runtime flag"])
def test_20_approximate_misuse(kind):
    refused(approximate_misuse(kind))


# ---- 16: region folds

@intent.fn
def coordinate_total(c):
    return I.reduce.sum(I.cast(c, I.i64), axis=0)


@intent.kernel
def fold_coordinates(n: I.index, begin: I.index, end: I.index, y: I.Out[I.i64, ()]):
    columns = I.domain(0, n)
    y[()] = I.region_fold(source=I.indices(columns[begin:end]), axis=0, summarize=coordinate_total, combine=I.add,
                          identity=I.cast(0, I.i64))


@intent.fn
def slice_maximum(scores, valid):
    return I.record(any=I.reduce.any(valid, axis=0), top=I.reduce.max(I.select(valid, scores, -I.inf), axis=0))


@intent.fn
def merge_maxima(a, b):
    return I.record(any=a.any | b.any, top=I.maximum(a.top, b.top))


@intent.kernel
def running_maximum(scores: I.In[I.f32, ("N",)], valid: I.In[I.bool, ("N",)], some: I.Out[I.bool, ()], top: I.Out[I.f32, ()]):
    result = I.region_fold(source=(scores[:], valid[:]), axis=0, summarize=slice_maximum, combine=merge_maxima,
                           identity=I.record(any=False, top=-I.inf))
    some[()] = result.any
    top[()] = result.top


def under(extent, kernel, args):
    """The reference's results when region operations cut their source into slices of another extent."""
    with segmentation(extent):
        kir = build_kernel(kernel.pyfunc, {})
    own = [poison(a.shape, a.dtype) if isinstance(a, Out) else a for a in args]
    reference.run(kir, own)
    return own


@pytest.mark.parametrize("extent", [1, 3, 64, "whole"])
def test_16_folds_do_not_show_their_slices(extent):
    args = [20, 3, 9, out((), "i64")]
    assert check(fold_coordinates, args)[0] == under(extent, fold_coordinates, args)[-1] == 33
    scores = array([-np.inf] * 70, "f32")
    for valid, some, top in ((np.zeros(70, bool), False, -np.inf), (np.arange(70) > 60, True, -np.inf)):
        args = [scores, valid, out((), "bool"), out((), "f32")]
        for got in (check(running_maximum, args), under(extent, running_maximum, args)[2:]):
            assert got[0] == some and got[1] == top


# ---- 21: random bits and atomics

@intent.kernel
def random_bits(counter: I.In[I.u64, ("N",)], y: I.Out[I.u32, ("N",)], u: I.Out[I.f32, ("N",)]):
    seed = I.cast(0x123456789ABCDEF0, I.u64)
    for i in I.parallel(I.domain(0, counter.shape[0])):
        y[i] = I.random.bits(seed, counter[i])
        u[i] = I.random.uniform(seed, counter[i])


def test_21_random_bits():
    y, u = check(random_bits, [np.array([5, 2 ** 34 + 7, 2 ** 64 - 1], np.uint64), out(3, "u32"), out(3, "f32")])
    assert y.tolist() == [0x609CF517, 0xF9F9ADEB, 0xD98A803B]
    assert u.tolist() == [(v >> 8) * 2.0 ** -24 for v in y.tolist()]


@intent.kernel
def count_elements(e: I.In[I.i32, ("N",)], counts: I.InOut[I.i32, ("K",)]):
    for i in I.parallel(I.domain(0, e.shape[0])):
        I.atomic.add(counts[e[i]], 1, order="relaxed")


@intent.kernel
def load_that_releases(counts: I.InOut[I.i32, ("K",)], y: I.Out[I.i32, ()]):
    y[()] = I.atomic.load(counts[0], order="release")


def test_21_atomics():
    (counts,) = check(count_elements, [array([0, 0, 1], "i32"), np.zeros(2, np.int32)])
    assert counts.tolist() == [2, 1]
    reads = [op for op in walk(kir_of(count_elements).body) if op.kind == "read" and op.args[0].name == "counts"]
    assert not reads, "the element expression of an atomic is an address, not a read"
    refused(load_that_releases)


# ---- 22: views that only look contiguous

@intent.kernel
def scaled(x: I.In[I.f32, ("M", "N")], y: I.Out[I.f32, ("M", "N")], s: I.Out[I.f32, ("M",)]):
    v = x[:, :]
    y[:, :] = v * 3.0
    s[:] = I.reduce.sum(v, axis=1)


@pytest.mark.parametrize("n", [31, 32, 33, 65, 129])
def test_22_tails_and_layouts(n, rng):
    x = rng.standard_normal((3, n)).astype(np.float32)
    check(scaled, [x, out((3, n), "f32"), out(3, "f32")], lambda x: (x * np.float32(3), x.sum(1, dtype=np.float64)), floor=64)


@pytest.mark.skipif(BACKEND == "reference", reason="compiled code only")
def test_22_a_broadcast_view_gives_the_bits_of_its_copy(rng):
    row = rng.standard_normal(70).astype(np.float32)
    results = []
    for x in (np.broadcast_to(row, (4, 70)), np.ascontiguousarray(np.broadcast_to(row, (4, 70)))):
        y, s = np.zeros((4, 70), np.float32), np.zeros(4, np.float32)
        intent.compile(scaled, target="cpu")(x, y, s)
        results.append(y.tobytes() + s.tobytes())
    assert results[0] == results[1]


def test_22_f8_values_are_what_ml_dtypes_says():
    codes = np.arange(256, dtype=np.uint8)
    for dt, kind in ((I.f8e4m3fn, ml_dtypes.float8_e4m3fn), (I.f8e5m2, ml_dtypes.float8_e5m2)):
        x = codes.view(kind)
        (y,) = check(cast(dt, I.f32), [x, out(256, "f32")])
        same(y, x.astype(np.float32))
