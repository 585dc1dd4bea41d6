"""Dtypes, literals, widening and products (000 sections 1-3, SUPPLEMENT 3) on every dtype, by both roads."""
from __future__ import annotations

import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from intent_numba.frontend import build_kernel
from tests.support import NUMPY, check, numpy_dtype, out

from .world import source

NUMBERS = [dt for dt in NUMPY if dt != "bool"]
FLOATS = ["f8e4m3fn", "f8e5m2", "f16", "bf16", "f32", "f64"]
WIDENED = {"i8": "i32", "i16": "i32", "u8": "u32", "u16": "u32", "f8e4m3fn": "f32", "f8e5m2": "f32", "f16": "f32", "bf16": "f32"}
BITS = {dt: 8 * np.dtype(NUMPY[dt]).itemsize for dt in NUMBERS}


# --- 3: accumulators -------------------------------------------------------------------------------------------------------

SUMS = """v = x[:, :]
s[:] = I.reduce.sum(v, axis=1)
p[:] = I.reduce.prod(v, axis=1)
c[:, :] = I.cumsum(v, axis=1)
hi[:], lo[:] = I.reduce.max(v, axis=1), I.reduce.min(v, axis=-1)
m[:, :] = I.cummax(v, axis=1)
top[:], at[:] = I.arg_reduce.max(v, axis=1)
o[:, :] = I.outer(v[0, :], v[1, :])"""


@pytest.mark.parametrize("dt", NUMBERS)
def test_sums_widen_and_extremes_keep_their_dtype(dt):
    acc = WIDENED.get(dt, dt)
    outs = (("s", acc, "M"), ("p", acc, "M"), ("c", acc, "MN"), ("hi", dt, "M"), ("lo", dt, "M"), ("m", dt, "MN"), ("top", dt, "M"),
            ("at", "index", "M"), ("o", dt, "NN"))
    kernel = source(SUMS, f'x: I.In[I.{dt}, ("M", "N")], ' + ", ".join(f"{name}: I.Out[I.{d}, {tuple(shape)}]" for name, d, shape in outs))
    values = np.array([[1, 2, 4, 3, 2], [2, 1, 1, 2, 5]])
    values = values if dt in FLOATS else values * (np.iinfo(NUMPY[dt]).max // 16)             # sums leave the dtype, not the accumulator
    x, wide = values.astype(NUMPY[dt]), np.dtype(NUMPY[acc])

    def oracle(x):
        v = x.astype(float if dt in FLOATS else object)
        fits = lambda a: a.astype(wide) if dt in FLOATS else (a % 2 ** BITS[acc]).astype(np.uint64).astype(wide)
        o = np.multiply.outer(v[0], v[1])
        o = o.astype(NUMPY[dt]) if dt in FLOATS else (o % 2 ** BITS[dt]).astype(np.uint64).astype(NUMPY[dt])
        return (fits(v.sum(1)), fits(v.prod(1)), fits(np.cumsum(v, axis=1)), x.max(1), x.min(1), np.maximum.accumulate(x.astype(v.dtype),
                                                                                                                       axis=1).astype(x.dtype),
                x.max(1), np.argmax(v, axis=1), o)
    check(kernel, [x, out(2, acc), out(2, acc), out((2, 5), acc), out(2, dt), out(2, dt), out((2, 5), dt), out(2, dt), out(2, "index"),
                   out((5, 5), dt)],
          oracle, layouts=("contiguous", "mixed"))


def legal(dt, acc):
    """Decision 23."""
    return acc in FLOATS and dt not in FLOATS or BITS[acc] >= BITS[dt] and (acc in FLOATS) == (dt in FLOATS)


@pytest.mark.parametrize("dt", NUMBERS)
def test_accumulators_are_integers_for_integers_or_floats_and_not_narrower(dt):
    for acc in NUMBERS:
        for body in (f"y[()] = I.reduce.sum(x[:], axis=0, acc_dtype=I.{acc})", f"y[()] = I.dot(x[:], x[:], acc_dtype=I.{acc})"):
            kernel = source(body, f'x: I.In[I.{dt}, ("N",)], y: I.Out[I.{acc}, ()]')
            if legal(dt, acc):
                build_kernel(kernel.pyfunc)
            else:
                with pytest.raises(intent.IntentTypeError, match="narrower|float accumulator"):
                    build_kernel(kernel.pyfunc)


@pytest.mark.parametrize("dt, acc", [("i8", "i64"), ("u8", "i16"), ("i32", "f32"), ("i16", "f64"), ("f16", "f16"), ("bf16", "f64"),
                                     ("f8e5m2", "f16"), ("i8", "bf16"),
                                     ("u32", "f32"), ("index", "f64"), ("i8", "i8")])
def test_operands_are_converted_before_they_are_combined(dt, acc):
    kernel = source(f"v = x[:]\ns[()] = I.reduce.sum(v, axis=0, acc_dtype=I.{acc})\nd[()] = I.dot(v, v, acc_dtype=I.{acc})\n"
                    f"c[:] = I.cumsum(v, axis=0, acc_dtype=I.{acc})",
                    f'x: I.In[I.{dt}, ("N",)], s: I.Out[I.{acc}, ()], d: I.Out[I.{acc}, ()], c: I.Out[I.{acc}, ("N",)]')
    x = np.array([3, 1, 2, 5, 7, 4]).astype(NUMPY[dt])

    def oracle(x):
        v = x.astype("i8")
        return tuple(np.asarray(a).astype(NUMPY[acc]) for a in (v.sum(), (v * v).sum(), np.cumsum(v)))
    check(kernel, [x, out((), acc), out((), acc), out(6, acc)], oracle, layouts=("contiguous", "strided"))


def test_a_product_is_of_the_operands_values_and_not_of_their_dtype():
    """i8 times i8 and f16 times f16 do not wrap or round before the accumulator."""
    kernel = source("y[()] = I.dot(x[:], x[:], acc_dtype=I.i16)\nz[()] = I.dot(h[:], h[:], acc_dtype=I.f64)",
                    'x: I.In[I.i8, (3,)], h: I.In[I.f16, (1,)], y: I.Out[I.i16, ()], z: I.Out[I.f64, ()]')
    check(kernel, [np.array([-128, 127, 1], "i1"), np.array([1.0009765625], "f2"), out((), "i16"), out((), "f64")],
          lambda x, h: (np.array(128 ** 2 + 127 ** 2 + 1, "i2"), np.array(float(h[0]) ** 2)))


# --- 3: literals ---------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("value, dt", [("True", "bool"), ("7", "i64"), ("0.1", "f64"), ("-1.0", "f64"), ("I.pi", "f64"), ("FLAG", "bool"),
                                       ("COUNT", "i64"), ("HALF", "f64"),
                                       ("1 < 2", "bool"), ("2 ** 40", "i64"), ("7 // 2", "i64"), ("7 / 2", "f64")])
def test_what_is_made_of_literals_alone(value, dt):
    constants = {"FLAG": True, "COUNT": 5, "HALF": 0.5}
    expected = eval(value, {"I": I, **constants})
    kernel = source(f"t = {value}\ny[()] = t", f"y: I.Out[I.{dt}, ()]", **constants)
    (y,) = check(kernel, [out((), dt)], layouts=("contiguous",))
    assert y[()] == expected
    if dt == "f64":
        with pytest.raises(intent.IntentTypeError):
            build_kernel(source(f"t = {value}\ny[()] = x + t", "x: I.f32, y: I.Out[I.f32, ()]", **constants).pyfunc)


@pytest.mark.parametrize("dt", NUMBERS)
def test_captured_constants_are_literals(dt):
    kernel = source("v = x[:]\ny[:] = v * TWO + TWO\nz[:] = v > TWO",
                    f'x: I.In[I.{dt}, ("N",)], y: I.Out[I.{dt}, ("N",)], z: I.Out[I.bool, ("N",)]', TWO=2)
    check(kernel, [np.array([1, 2, 3]).astype(NUMPY[dt]), out(3, dt), out(3, "bool")],
          lambda x: ((x.astype("f8") * 2 + 2).astype(x.dtype), x.astype("f8") > 2), layouts=("contiguous",))


def test_captured_values_are_frozen_by_the_first_compilation():
    kernel = source("y[()] = SIZE", "y: I.Out[I.i64, ()]", SIZE=3)
    assert kernel.run() == 3
    kernel.pyfunc.__globals__["SIZE"] = 4
    assert kernel.run() == 3


def test_comparisons_give_bool_and_floats_compare_as_ieee():
    kernel = source("a, b = x[:], z[:]\ny[0, :], y[1, :], y[2, :] = a < b, a <= b, a == b\n"
                    "y[3, :], y[4, :], y[5, :] = a != b, a > b, a >= b",
                    'x: I.In[I.f32, ("N",)], z: I.In[I.f32, ("N",)], y: I.Out[I.bool, (6, "N")]')
    v = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1.0], "f4")
    a, b = (m.ravel() for m in np.meshgrid(v, v))
    check(kernel, [a, b, out((6, 36), "bool")], lambda a, b: np.array([a < b, a <= b, a == b, a != b, a > b, a >= b]))


# --- 2: full, extents -----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (2, 5)])
def test_full_takes_shapes_and_extents(shape):
    kernel = source("""
M, N = x.shape
rows = I.domain(0, M)
a[:, :] = I.full(x.shape, 3, I.i8)
b[:, :] = I.full((rows, N), s, I.f32) + I.zeros((M, 1), I.f32)
c[()] = I.zeros((N, M), I.i32).shape[0] * M
d[()] = I.full((), s, I.f32)""", 'x: I.In[I.f32, ("M", "N")], s: I.f32, a: I.Out[I.i8, ("M", "N")], b: I.Out[I.f32, ("M", "N")], '
                                 "c: I.Out[I.index, ()], d: I.Out[I.f32, ()]")
    check(kernel, [np.zeros(shape, "f4"), np.float32(1.5), out(shape, "i8"), out(shape, "f32"), out((), "index"), out((), "f32")],
          lambda x, s: (np.full(shape, 3, "i1"), np.full(shape, 1.5, "f4"), np.array(shape[0] * shape[1]), np.array(1.5, "f4")))


# --- 1: products -----------------------------------------------------------------------------------------------------------------

@intent.fn
def statistics(v, scale):
    return I.record(low=I.reduce.min(v, axis=1), all=(I.reduce.sum(v, axis=(0, 1)), I.record(count=v.shape[0] * v.shape[1],
                                                                                             scaled=v * scale)))


@intent.fn
def swapped(pair):
    a, b = pair
    return b, a


@intent.kernel
def products(x: I.In[I.f32, ("M", "N")], flag: I.bool, low: I.Out[I.f32, ("M",)], total: I.Out[I.f32, ()], count: I.Out[I.index, ()],
             scaled: I.Out[I.f32, ("M", "N")],
             last: I.Out[I.f32, (2,)]):
    s = statistics(x[:, :], I.cast(2.0, I.f32))
    low[:] = s.low
    total[()], count[()] = s.all[0], s.all[1].count
    scaled[:, :] = s.all[-1].scaled
    pair = (s.low, (s.all[0], 7))
    for i in I.domain(0, 3):
        pair = (pair[0] + 1.0, swapped(swapped(pair[1])))
    if flag:
        pair = (pair[0] * 0.0, (pair[1][0], 8))
    last[0] = I.reduce.sum(pair[0], axis=0)
    last[1] = I.cast(pair[1][1], I.f32)


@pytest.mark.parametrize("flag", [False, True])
def test_products_nest_and_are_values_everywhere(flag):
    x = np.arange(6, dtype="f4").reshape(2, 3)

    def oracle(x, flag):
        low = x.min(1)
        return low, np.array(x.sum()), np.array(6), x * 2, np.array([0 if flag else (low + 3).sum(), 8 if flag else 7], "f4")
    check(products, [x, flag, out(2, "f32"), out((), "f32"), out((), "index"), out((2, 3), "f32"), out(2, "f32")], oracle,
          layouts=("contiguous", "mixed"))


# --- 5.2: bits -------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_bitcast_between_all_dtypes_of_one_width(bits, rng):
    dtypes = [dt for dt in NUMBERS if BITS[dt] == bits]
    body = "\n".join(f"v{i} = I.bitcast(v{i - 1}, I.{dt})" for i, dt in enumerate(dtypes[1:] + dtypes[:1], 1))
    kernel = source(f"v0 = x[:]\n{body}\ny[:] = v{len(dtypes)}", f'x: I.In[I.{dtypes[0]}, ("N",)], y: I.Out[I.{dtypes[0]}, ("N",)]')
    x = rng.integers(0, 256, 64 * bits // 8, np.uint8).view(f"i{bits // 8}").view(numpy_dtype(dtypes[0]))
    floats = [dt for dt in dtypes if dt in FLOATS]
    with np.errstate(all="ignore"):
        keep = np.logical_and.reduce([~np.isnan(x.view(numpy_dtype(dt)).astype("f8")) for dt in floats]) if floats else np.ones(len(x),
                                                                                                                                bool)
    x = x[keep]                                                     # the payload of a NaN may change
    check(kernel, [x, out(len(x), dtypes[0])], lambda x: x, layouts=("contiguous", "strided"))
