"""Floating point of chapter 5 (000 and 001) and decisions 17, 31, 32, 45: where roundings are, and that modes stay with their operation."""
from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from intent_numba.frontend import build_kernel
from intent_numba.kir import walk
from tests.numerics.rational import nearest
from tests.support import BACKEND, assert_same_bits, check, execute, interpret, normal, numpy_dtype, out

from .world import source

A, C = np.float32(1 + 2.0 ** -12), np.float32(-(1 + 2.0 ** -11))
FUSED, APART = np.float32(2.0 ** -24), np.float32(0)


# --- 5.5 and decision 17: each clause, as a value -------------------------------------------------------------------------

SCALARS = "a: I.f32, c: I.f32, v: I.In[I.f32, (2,)], w: I.In[I.f32, (2, 1)], y: I.Out[I.f32, (1,)]"
FMA = [
    ("y[0] = a * a + c", FUSED), ("y[0] = c + a * a", FUSED), ("y[0] = a * a - (-c)", FUSED), ("y[0] = -c - a * a", -FUSED),
    ("y[0] = (a * a) + c", FUSED), ("y[0] = a * a + c + 0.0", FUSED), ("y[0] = 0.0 + (a * a + c)", FUSED),
    ("t = c\nt += a * a\ny[0] = t", FUSED), ("t = c\nt -= -a * a\ny[0] = t", FUSED), ("y[0] = c\ny[0] += a * a", FUSED),
    ("y[0] = I.add(a * a, c)", FUSED), ("y[0] = I.multiply(a, a) + c", FUSED), ("y[0] = I.subtract(I.multiply(a, a), -c)", FUSED),
    ("y[0] = I.add(I.multiply(a, a), c)", FUSED), ("y[0] = I.abs(a * a + c)", FUSED), ("y[0] = (a * a + c) * 1.0", FUSED),
    ("t = v[:] * v[:] + c\ny[0] = t[0]", FUSED), ("t = a * a + (v[:] * 0.0 + c)\ny[0] = t[1]", APART),      # only the second product grows
    ("y[0] = a * a + 1.0 * c", APART), ("y[0] = 1.0 * c + a * a", FUSED), ("y[0] = 1.0 * c - a * -a", FUSED),
    ("p = a * a\ny[0] = p + c", APART), ("y[0] = (p := a * a) + c", APART), ("p: I.f32 = a * a\ny[0] = p + c", APART),
    ("y[0] = -(a * a) - c", APART), ("y[0] = +(a * a) + c", APART), ("y[0] = (a * a if a > 0.0 else c) + c", APART),
    ("p, t = a * a, c\ny[0] = p + t", APART), ("y[0] = I.cast(I.cast(a * a, I.f64), I.f32) + c", APART), ("y[0] = times(a, a) + c", APART),
    ("y[0] = same(a * a) + c", APART), ("y[0] = I.full((), a * a, I.f32)[()] + c", APART), ("y[0] = (a * a,)[0] + c", APART),
    ("y[0] = I.record(p=a * a).p + c", APART), ("y[0] = I.select(a > 0.0, a * a, c) + c", APART), ("y[0] = I.maximum(a * a, c) + c", APART),
    ("t = c\nfor i in I.domain(0, 1):\n    t = t + a * a\ny[0] = t", FUSED), ("if a > 0.0:\n    p = a * a\nelse:\n    p = c\ny[0] = p + c",
                                                                              APART),
    ("y[0] = (v[0] * w[:, :])[0, 0] + c", APART), ("t = v[:][:, None] * 1.0 * w[:, :] + c\ny[0] = t[0, 0]", FUSED),
    ("y[0] = I.fma(a, a, c)", FUSED), ("y[0] = a * a + c if a > 0.0 else c", FUSED),
]


@pytest.mark.parametrize("body, want", FMA, ids=[b.replace("\n", "; ") for b, _ in FMA])
def test_where_products_and_sums_fuse(body, want):
    v, w = np.array([A, 0], "f4"), np.array([[A], [0]], "f4")
    (y,) = check(source(body, SCALARS), [A, C, v, w, out(1, "f32") if "y[0] +=" not in body else np.zeros(1, "f4")],
                 layouts=("contiguous",))
    assert y[0] == want


@pytest.mark.parametrize("dt, bits", [(I.f64, 27), (I.f32, 12), (I.f16, 6), (I.bf16, 4)], ids=str)
def test_only_f32_and_f64_fuse(dt, bits):
    """(1 + e)^2 - (1 + 2 e) is e^2 in one rounding, 0 in two."""
    kernel = source("y[0] = a[0] * a[0] + a[1]", f"a: I.In[I.{dt.name}, (2,)], y: I.Out[I.{dt.name}, (1,)]")
    e = 2.0 ** -bits
    a = np.array([1 + e, -(1 + 2 * e)]).astype(numpy_dtype(dt))
    (y,) = check(kernel, [a, out(1, dt)])
    assert float(y[0]) == (e * e if dt in (I.f64, I.f32) else 0.0)


@intent.kernel
def both_uses(a: I.In[I.f32, ("N",)], c: I.In[I.f32, ("N",)], y: I.Out[I.f32, (3, "N")]):
    """A product that is fused in one place is a rounded product in the other."""
    p = a[:] * a[:]
    y[0, :] = a[:] * a[:] + c[:]
    y[1, :] = p
    y[2, :] = p + c[:]


def test_fusing_in_one_place_changes_no_other(rng):
    a = normal(rng, 100)
    c = -a * a

    def oracle(a, c):
        return np.array([[float(nearest(Fraction(float(x)) ** 2 + Fraction(float(z)), "f32")) for x, z in zip(a, c)], a * a, a * a + c])
    (y,) = check(both_uses, [a, c, out((3, 100), "f32")], oracle)
    assert y[0].any() and not y[2].any()


# --- 5.3, 5.4 and decision 31: permissions that are not used ---------------------------------------------------------------

@intent.kernel
def separate(a: I.In[I.f32, ("M", "K")], b: I.In[I.f32, ("K", "N")], c: I.In[I.f32, ("M", "N")], y: I.Out[I.f32, (2, "M", "N")],
             z: I.Out[I.f32, (2, "M")]):
    p = I.matmul(a[:, :], b[:, :], acc_dtype=I.f32)
    y[0, :, :] = I.matmul(a[:, :], b[:, :], acc_dtype=I.f32) + c[:, :]
    y[1, :, :] = p + c[:, :]
    squares = a[:, :] * a[:, :]
    z[0, :] = I.reduce.sum(a[:, :] * a[:, :], axis=1)
    z[1, :] = I.reduce.sum(squares, axis=1)


@pytest.mark.parametrize("k", [0, 1, 2, 40])
def test_sums_after_contractions_and_products_before_sums_are_rounded(k, rng):
    a, b, c = normal(rng, (3, k)), normal(rng, (k, 5)), normal(rng, (3, 5), scale=1e4)
    y, z = check(separate, [a, b, c, out((2, 3, 5), "f32"), out((2, 3), "f32")], layouts=("contiguous", "mixed"))
    assert_same_bits(y[0], y[1])
    assert_same_bits(z[0], z[1])
    if k == 1:
        assert_same_bits(y[0], (a @ b) + c)
        assert_same_bits(z[0], (a * a)[:, 0])
    if k == 2:                                                  # two products, each rounded, and their sum
        assert_same_bits(z[0], a[:, 0] * a[:, 0] + a[:, 1] * a[:, 1])


# --- 5.1: approximate and flush_to_zero stay with their operation ------------------------------------------------------------

@intent.kernel
def modes(x: I.In[I.f32, ("N",)], d: I.In[I.f32, ("N",)], y: I.Out[I.f32, (3, "N")], z: I.Out[I.f32, (3, "N")], t: I.Out[I.f32, (2, "N")],
          w: I.Out[I.f32, ("N",)]):
    v = x[:]
    y[0, :] = I.exp2(v)
    y[1, :] = I.exp2(v, approximate=True)
    y[2, :] = I.exp2(v, approximate=True, flush_to_zero=True)
    z[2, :] = I.fdiv(v, d[:], approximate=True, flush_to_zero=True)
    z[1, :] = I.fdiv(v, d[:], approximate=True)
    z[0, :] = v / d[:]
    t[0, :] = I.tanh(v, approximate=True)
    t[1, :] = I.tanh(v)
    w[:] = I.exp2(v, approximate=True, flush_to_zero=True) * 0.5 + d[:] * 0.5


@intent.kernel
def modes_in_points(x: I.In[I.f32, ("N",)], d: I.In[I.f32, ("N",)], y: I.Out[I.f32, (3, "N")], z: I.Out[I.f32, (3, "N")],
                    t: I.Out[I.f32, (2, "N")], w: I.Out[I.f32, ("N",)]):
    for i in I.parallel(I.domain(0, x.shape[0])):
        for r in I.domain(0, 3):
            flush = r == 2
            y[r, i] = I.exp2(x[i]) if r == 0 else I.exp2(x[i], approximate=True, flush_to_zero=True) if flush else I.exp2(x[i],
                                                                                                                          approximate=True)
        z[2, i] = I.fdiv(x[i], d[i], approximate=True, flush_to_zero=True)
        z[1, i] = I.fdiv(x[i], d[i], approximate=True)
        z[0, i] = I.fdiv(x[i], d[i])
        t[0, i] = I.tanh(x[i], approximate=True)
        t[1, i] = I.tanh(x[i])
        w[i] = I.exp2(x[i], approximate=True, flush_to_zero=True) * 0.5 + d[i] * 0.5


@pytest.mark.parametrize("kernel", [modes, modes_in_points])
def test_modes_stay_with_their_operation(kernel):
    tiny = 2.0 ** -149
    x = np.array([-127, -140, -149, tiny, -tiny, 0.0, -0.0, np.inf, -np.inf, np.nan, 1.5, -2.5, 2.0 ** 127] * 4, "f4")
    d = np.array([1, 2, 4, 1, 1, 3, 3, 2.0 ** 127, 2.0 ** 127, 1, tiny, tiny, 2.0 ** 127] * 4, "f4")
    args = [x, d, *(out((n, len(x)), "f32") for n in (3, 3, 2)), out(len(x), "f32")]
    results = [interpret(kernel, args)] + ([execute(kernel, args)] if BACKEND != "reference" else [])
    flushed = np.where(np.abs(x) < 2.0 ** -126, np.copysign(np.float32(0), x), x)
    with np.errstate(all="ignore"):
        power, small = np.exp2(x.astype("f8")), np.abs(x) < 2.0 ** -126
        plain = np.where(np.isnan(x), np.nan, power)
        for y, z, t, w in results:
            assert np.array_equal(y[0], plain.astype("f4"), equal_nan=True)                 # these powers are exact
            subnormal = (plain > 0) & (plain < 2.0 ** -126)
            assert (y[2][subnormal] == 0).all() and (y[0][subnormal] > 0).all() and not np.signbit(y[2][subnormal]).any()
            ordinary = ~subnormal & np.isfinite(plain) & ~small
            assert np.allclose(y[1][ordinary], plain[ordinary], rtol=2.0 ** -22) and np.allclose(y[2][ordinary], plain[ordinary],
                                                                                                 rtol=2.0 ** -22)
            assert (y[1][x == 0] == 1).all() and (y[2][small] == 1).all() and y[1][7] == np.inf and y[1][8] == 0 and np.isnan(y[1][9])
            assert np.array_equal(z[0], x / d, equal_nan=True)
            assert (z[2][small] == 0).all() and (np.signbit(z[2]) == np.signbit(flushed / d))[small].all()
            assert z[1][12] == 0 and z[2][12] == 0 and np.isnan(z[1][[7, 8]]).all()         # a divisor of 2^127
            assert np.array_equal(t[0][small], x[small]) and (np.signbit(t[0]) == np.signbit(x))[~np.isnan(x)].all()
            assert np.array_equal(np.abs(t[0][[7, 8]]), [1, 1]) and np.isnan(t[0][9]) and abs(t[0][10] / np.tanh(1.5) - 1) < 2.0 ** -11
            near = np.nan_to_num(w - d * np.float32(0.5))
            assert (near[subnormal & (d > 1e-30)] == 0).all()


def test_modes_are_attributes_of_the_operation():
    found = {(op.kind, bool(op.attrs.get("approximate")), bool(op.attrs.get("flush_to_zero") or op.attrs.get("ftz")))
             for op in walk(build_kernel(modes.pyfunc).body) if op.kind in ("exp2", "div", "tanh")}
    assert found == {("exp2", False, False), ("exp2", True, False), ("exp2", True, True), ("div", False, False), ("div", True, False),
                     ("div", True, True), ("tanh", False, False), ("tanh", True, False)}
