"""What the front end builds: does it verify, survive its text, and mean in the reference what the language says?"""
import math

import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from intent_numba import reference
from intent_numba.frontend import build_kernel
from intent_numba.kir import parse_kernel, print_kernel, verify, walk
from tests.support import check, kir_of, out


def run(function, *args, constexprs=None, policy="strict"):
    kernel = verify(build_kernel(function, constexprs or {}, policy))
    text = print_kernel(kernel)
    again = verify(parse_kernel(text))
    assert print_kernel(again) == text
    assert print_kernel(parse_kernel(print_kernel(kernel, locs=True))) == text
    again.externs = kernel.externs
    reference.run(again, list(args))


def softmax(x: I.In[I.f32, ("M", "N")], y: I.Out[I.f32, ("M", "N")]):
    m, n = x.shape
    columns = I.domain(0, n)
    for r in I.parallel(I.domain(0, m)):
        v = x[r, columns]
        e = I.exp(v - I.reduce.max(v, axis=0))
        y[r, columns] = e / I.reduce.sum(e, axis=0)


def test_softmax(rng):
    x = rng.standard_normal((4, 37)).astype(np.float32)
    y = np.zeros_like(x)
    run(softmax, x, y)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    assert np.allclose(y, e / e.sum(1, keepdims=True), rtol=1e-6)


def fused(a: I.In[I.f32, ("N",)], c: I.In[I.f32, ("N",)], one: I.Out[I.f32, ("N",)], two: I.Out[I.f32, ("N",)]):
    p = a[:] * a[:]
    one[:] = p + c[:]
    two[:] = a[:] * a[:] + c[:]


def test_fma_scope():
    """Language case 1."""
    a, c = np.full(3, 1 + 2.0 ** -12, np.float32), np.full(3, -(1 + 2.0 ** -11), np.float32)
    one, two = np.ones_like(a), np.ones_like(a)
    run(fused, a, c, one, two)
    assert one.tolist() == [0.0] * 3 and two.tolist() == [2.0 ** -24] * 3


def division(a: I.In[I.i8, ("N",)], b: I.In[I.i8, ("N",)], q: I.Out[I.i8, ("N",)], r: I.Out[I.i8, ("N",)]):
    q[:] = a[:] // b[:]
    for i in range(a.shape[0]):
        r[i] = a[i] % b[i]


def test_division():
    """Language case 5, and unchecked zero divisors."""
    a, b = np.array([-7, -7, 7, 7, -128, 5], np.int8), np.array([3, -3, -3, 3, -1, 0], np.int8)
    q, r = np.zeros_like(a), np.zeros_like(a)
    run(division, a, b, q, r)
    assert q[:4].tolist() == [-3, 2, -3, 2] and r[:5].tolist() == [2, -1, -2, 1, 0]


def widening(h: I.In[I.f16, ("N",)], b: I.In[I.i8, ("N",)], s: I.Out[I.f32, ()], c: I.Out[I.i32, ("N",)], m: I.Out[I.i8, ()]):
    s[()] = I.reduce.sum(h[:], axis=0)
    c[:] = I.cumsum(b[:], axis=0)
    m[()] = I.reduce.max(b[:], axis=0)


def test_widening():
    """Language case 10."""
    s, c, m = np.zeros((), np.float32), np.zeros(2, np.int32), np.zeros((), np.int8)
    run(widening, np.array([65504, 65504], np.float16), np.array([100, 100], np.int8), s, c, m)
    assert s == 131008 and c.tolist() == [100, 200] and m == 100


def arg_max(x: I.In[I.f32, ("N",)], v: I.Out[I.f32, ()], at: I.Out[I.index, ()]):
    value, where = I.arg_reduce.max(x[:], axis=0)
    v[()] = value
    at[()] = where


def test_arg_reduce():
    """Language case 12."""
    v, at = np.zeros((), np.float32), np.zeros((), np.int64)
    for x, want in (([1, math.nan, 3, math.nan], 1), ([2, 5, 5], 1), ([-0.0, 0.0], 1)):
        run(arg_max, np.array(x, np.float32), v, at)
        assert at == want


def scans(x: I.In[I.f32, ("N",)], a: I.Out[I.f32, ("N",)], b: I.Out[I.f32, ("N",)], c: I.Out[I.f32, ("N",)]):
    a[:] = I.cumsum(x[:], axis=0, inclusive=False)
    b[:] = I.cumsum(x[:], axis=0, reverse=True)
    c[:] = I.cummax(x[:], axis=0)


def test_scans():
    """Language case 13."""
    a, b, c = (np.zeros(4, np.float32) for _ in range(3))
    run(scans, np.array([1, 2, 3, 4], np.float32), a, b, c)
    assert a.tolist() == [0, 1, 3, 6] and b.tolist() == [10, 9, 7, 4] and c.tolist() == [1, 2, 3, 4]


def batched(a: I.In[I.f32, ("A", "B", "K")], b: I.In[I.f32, ("B", "K", "C")], y: I.Out[I.f32, ("A", "B", "C")]):
    y[:, :, :] = I.contract(a[:, :, :], b[:, :, :], reduce=((2, 1),), batch=((1, 0),), acc_dtype=I.f32)


def test_contractions(rng):
    """Language case 14."""
    a, b = rng.integers(-4, 4, (2, 3, 4)).astype(np.float32), rng.integers(-4, 4, (3, 4, 5)).astype(np.float32)
    y = np.zeros((2, 3, 5), np.float32)
    run(batched, a, b, y)
    assert y.tolist() == np.einsum("abk,bkc->abc", a, b).tolist()


@intent.fn
def largest(left, right):
    lv, li = left
    rv, ri = right
    keep = (lv > rv) | ((lv == rv) & (li < ri))
    return I.select(keep, lv, rv), I.select(keep, li, ri)


def pairs(x: I.In[I.f32, ("N",)], v: I.Out[I.f32, ()], at: I.Out[I.index, ()]):
    d = I.domain(0, x.shape[0])
    value, where = I.reduce((x[d], I.indices(d)), axis=0, identity=(-I.inf, -1), combine=largest)
    v[()] = value
    at[()] = where


def test_generic_reduction(rng):
    v, at = np.zeros((), np.float32), np.zeros((), np.int64)
    for n in (1, 33, 100):
        x = rng.integers(0, 9, n).astype(np.float32)
        run(pairs, x, v, at)
        assert v == x.max() and at == x.argmax()


def control(n: I.index, limit: I.index, y: I.Out[I.index, (3,)]):
    total = 0
    for i in range(n):
        if i % 3 == 2:
            continue
        if total > limit:
            break
        total = total + i
    steps = 0
    value = n
    while value > 1:
        value = value // 2
        steps = steps + 1
    y[0] = total
    y[1] = steps
    y[2] = value


@pytest.mark.parametrize("n, limit", [(0, 5), (10, 1000), (100, 20), (1, 0)])
def test_control(n, limit):
    total = 0
    for i in range(n):
        if i % 3 == 2:
            continue
        if total > limit:
            break
        total += i
    steps, value = 0, n
    while value > 1:
        value, steps = value // 2, steps + 1
    y = np.zeros(3, np.int64)
    run(control, n, limit, y)
    assert y.tolist() == [total, steps, value]


def shift(a: I.In[I.i32, ("N",)], b: I.Out[I.i32, ("N",)]):
    r = I.domain(0, a.shape[0])
    b[r] = a[r]


def test_overlap():
    """Language case 17."""
    base = np.arange(6, dtype=np.int32)
    run(shift, base[0:5], base[1:6])
    assert base.tolist() == [0, 0, 1, 2, 3, 4]


def subregions(x: I.In[I.i64, ("N",)], begin: I.index, end: I.index, y: I.Out[I.i64, ()], z: I.Out[I.i64, ()]):
    d = I.domain(0, x.shape[0])
    part = d[begin:end]
    y[()] = I.reduce.sum(x[part], axis=0)
    z[()] = I.reduce.sum(I.cast(I.indices(I.domain(begin, end, 2)), I.i64), axis=0)


@pytest.mark.parametrize("begin, end", [(0, 10), (3, 9), (4, 4)])
def test_subregions(begin, end):
    x = np.arange(10) * 7
    y, z = np.zeros((), np.int64), np.zeros((), np.int64)
    run(subregions, x, begin, end, y, z)
    assert y == x[begin:end].sum() and z == sum(range(begin, end, 2))


def reversed_domain(n: I.index, m: I.index, y: I.Out[I.index, ()]):
    d = I.domain(n, m)
    y[()] = I.reduce.sum(I.indices(d) * 2, axis=0)


def test_a_domain_that_ends_before_it_begins_is_empty():
    y = np.zeros((), np.int64)
    run(reversed_domain, 5, 2, y)
    assert y == 0
    run(reversed_domain, 2, 5, y)
    assert y == 18


@intent.kernel
def half_used(a: I.InOut[I.i32, (2,)], m: I.i32, y: I.Out[I.i32, ()]):
    for k in range(2):
        v = I.atomic.load(a[k], order="relaxed")
        if v == 3 if m > 0 else v == 4:
            pass
    if m > 5:
        used, unused = a[1], I.power(m, 3)         # noqa: F841
    else:
        used, unused = m, I.power(m, 2)         # noqa: F841
    y[()] = used


def test_a_branch_keeps_what_is_used():
    kir = kir_of(half_used)
    assert [len(op.results) for op in walk(kir.body) if op.kind == "if"] == [1] and "power" not in print_kernel(kir)
    check(half_used, [np.array([3, 4], np.int32), 6, out((), "i32")], lambda a, m: (a, a[1]), layouts=("contiguous",))
