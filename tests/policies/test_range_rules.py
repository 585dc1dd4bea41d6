"""Sentences of spec 003 one by one, each with its own small program, and what holds under every policy."""
import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from intent_numba.frontend import build_kernel
from tests.support import BACKEND, check, out

kernel = intent.kernel(policy="range_preserving")
F = np.float32


def same(k, args, oracle):
    return check(k, args, oracle, layouts=("contiguous", "mixed"))


# --- float literals ------------------------------------------------------------------------------------------------------

@kernel
def weak_places(x: I.In[I.f64, ("N",)], f: I.In[I.f32, ("N",)], n: I.In[I.i32, ("N",)], less: I.Out[I.bool, ("N",)],
                less32: I.Out[I.bool, ("N",)], stored: I.Out[I.f64, ("N",)], far: I.Out[I.f64, ("N",)], added: I.InOut[I.f64, (1,)],
                p: I.Out[I.f64, ("N",)], big: I.Out[I.f64, ("N",)], back: I.Out[I.f64, ("N",)], whole: I.Out[I.f64, ("N",)]):
    less[:] = x[:] < 0.1
    less32[:] = f[:] < 0.1
    for i in I.domain(0, x.shape[0]):
        stored[i] = 0.1
        far[i] = n[i] * 0.1
        I.atomic.add(added[0], 0.1, order="relaxed")
        big[i] = max(x[i], 0.1)
    p[:] = I.pow(x[:], 0.1)
    back[:] = -0.1 * x[:]
    whole[:] = I.cast(0.1, I.f64) * n[:]


def test_what_a_literal_meets_decides_its_precision():
    x, f, n = np.array([np.float64(F(0.1)), 0.1, 0.25]), np.array([0.1, 0.09, 3], F), np.array([1, 3, -7], np.int32)
    added = np.zeros(1)
    got = same(weak_places, [x, f, n, out((3,), np.bool_), out((3,), np.bool_), out((3,), "f64"), out((3,), "f64"), added,
                             *[out((3,), "f64")] * 4], None)
    assert got[0].tolist() == [False, False, False] and (x[0] > 0.1) and got[1].tolist() == [False, True, False]
    assert got[2].tolist() == [0.1] * 3                                             # a store adopts it
    assert got[3].tolist() == (n.astype(F) * F(0.1)).astype(np.float64).tolist()    # beside an integer it is f32, then widened
    assert got[4].tolist() == [0.1 + 0.1 + 0.1]
    assert np.allclose(got[5], x ** 0.1, rtol=1e-15, atol=0) and not np.array_equal(got[5], x ** np.float64(F(0.1)))
    assert got[6].tolist() == [max(v, 0.1) for v in x.tolist()]
    assert got[7].tolist() == (-0.1 * x).tolist() and got[8].tolist() == (0.1 * n).tolist()


@kernel
def locals_of_literals(x: I.In[I.f64, ("N",)], f: I.In[I.f32, ("N",)], a: I.Out[I.f64, ("N",)], b: I.Out[I.f32, ("N",)]):
    tenth = 0.1
    a[:] = x[:] * tenth
    b[:] = f[:] * tenth


@kernel
def twice_assigned(f: I.In[I.f32, ("N",)], c: I.In[I.bool, ("N",)], b: I.Out[I.f32, ("N",)]):
    for i in I.domain(0, f.shape[0]):
        t = 0.1
        if c[i]:
            t = 0.2
        b[i] = f[i] * t


def test_a_local_assigned_once_keeps_the_literal():
    x, f, c = np.array([3.0, 7.0]), np.array([3, 7], F), np.array([True, False])
    same(locals_of_literals, [x, f, out((2,), "f64"), out((2,), "f32")], lambda x, f: (x * 0.1, f * F(0.1)))
    same(twice_assigned, [f, c, out((2,), "f32")], lambda f, c: f * np.where(c, F(0.2), F(0.1)))


# --- result types ----------------------------------------------------------------------------------------------------------

@kernel
def results(a: I.In[I.i32, ("N",)], b: I.In[I.i32, ("N",)], w: I.In[I.i64, ("N",)], x: I.In[I.f64, ("N",)], wide: I.Out[I.f64, ("N",)],
            exact: I.Out[I.f64, ("N",)], root: I.Out[I.f32, ("N",)], root64: I.Out[I.f64, ("N",)], low: I.Out[I.i64, ("N",)],
            t: I.Out[I.i32, ("N",)], size: I.Out[I.i8, ("N",)], s: I.In[I.i8, ("N",)]):
    wide[:] = a[:] / b[:]
    exact[:] = I.cast(a[:], I.f64) / b[:]
    root[:] = I.sqrt(w[:])
    root64[:] = I.sqrt(x[:])
    size[:] = I.abs(s[:])
    for i in I.domain(0, a.shape[0]):
        low[i] = min(a[i], w[i], b[i])
        t[i] = (not a[i]) + (a[i] and b[i]) * 10 + (a[i] or b[i]) * 100


def test_types_of_results():
    a, b, w = np.array([7, 0, 16777217], np.int32), np.array([3, 5, 1], np.int32), np.array([2 ** 40 + 1, 4, 9])
    x, s = np.array([2.0, 4.0, 1e300]), np.array([-128, 5, -1], np.int8)

    def oracle(a, b, w, x, s):
        quotient = (a.astype(F) / b.astype(F)).astype(np.float64)
        truth = (a == 0) + ((a != 0) & (b != 0)) * 10 + ((a != 0) | (b != 0)) * 100
        return (quotient, a / b, np.sqrt(w.astype(F)), np.sqrt(x), np.minimum(np.minimum(a, w), b), truth.astype(np.int32),
                np.array([-128, 5, 1], np.int8))
    same(results, [a, b, w, x, out((3,), "f64"), out((3,), "f64"), out((3,), "f32"), out((3,), "f64"), out((3,), "i64"), out((3,), "i32"),
                   out((3,), "i8"), s], oracle)


@kernel
def logic(a: I.In[I.i32, ("N",)], b: I.In[I.i32, ("N",)], x: I.In[I.f64, ("N",)], y: I.Out[I.i32, ("N", 9)], m: I.Out[I.f64, ("N",)]):
    for i in I.domain(0, a.shape[0]):
        p, q, r = a[i], b[i], x[i]
        y[i, 0] = p and q
        y[i, 1] = p or q
        y[i, 2] = p and q and r
        y[i, 3] = (p or q) and r
        y[i, 4] = max(p, p and q, p or r)
        y[i, 5] = (p and 7) + (q or 9)
        t = not (p or q)
        y[i, 6] = t
        y[i, 7] = (p if p else q) + (p == 3 or q)
        y[i, 8] = max(p, 5 if p else 7)
        m[i] = (r and q) + r


def test_logic_gives_zero_or_one():
    a, b, x = np.array([0, 3, 0, -5, 8], np.int32), np.array([0, 0, 4, 6, 7], np.int32), np.array([1.5, np.nan, 0.0, -0.0, 2.0])

    def oracle(a, b, x):
        rows = []
        for p, q, r in zip(a.tolist(), b.tolist(), x.tolist()):
            P, Q, R = bool(p), bool(q), bool(r)
            rows.append([P and Q, P or Q, P and Q and R, (P or Q) and R, max(p, P and Q, P or R), P + (Q or True), not (P or Q),
                         (p or q) + (p == 3 or Q), max(p, 5 if p else 7)])
        return np.array(rows, np.int32), ((x != 0) & (b != 0)) + x
    same(logic, [a, b, x, out((5, 9), "i32"), out((5,), "f64")], oracle)


def test_a_join_that_no_type_holds_is_refused():
    def local(a: I.In[I.i64, ("N",)], b: I.In[I.u64, ("N",)], y: I.Out[I.i64, ("N",)]):
        for i in I.domain(0, a.shape[0]):
            t = a[i]
            if a[i] > 0:
                t = b[i]
            y[i] = I.cast(t, I.i64)
    with pytest.raises(intent.IntentTypeError) as caught:
        build_kernel(local, {}, "range_preserving")
    assert "u64" in str(caught.value) and "i64" in str(caught.value) and caught.value.line is not None


# --- float expressions -------------------------------------------------------------------------------------------------------

@kernel
def named_products(a: I.In[I.f32, ("N",)], c: I.In[I.f32, ("N",)], zero: I.Out[I.f32, ("N",)], apart: I.Out[I.f32, ("N",)],
                   one: I.Out[I.f32, ("N",)], grouped: I.Out[I.f32, ("N",)]):
    p = a[:] * 0.2
    zero[:] = p - p
    q = a[:] * a[:]
    apart[:] = q + c[:]
    one[:] = a[:] * a[:] + c[:]
    grouped[:] = (a[:] + c[:]) + (a[:] - c[:])


def test_a_named_product_is_rounded_once():
    a = np.array([3, 1 + 2.0 ** -12, 1e15], F)
    c = -(a * a)

    def oracle(a, c):
        fused = (a.astype(np.float64) ** 2 + c).astype(F)
        return np.zeros(3, F), np.zeros(3, F), fused, (a + c) + (a - c)
    same(named_products, [a, c, *[out((3,), "f32")] * 4], oracle)


@kernel
def guards(a: I.In[I.i32, ("N",)], b: I.In[I.i32, ("N",)], y: I.Out[I.i32, ("N",)], z: I.Out[I.i32, ("N",)], w: I.Out[I.i32, ("N",)]):
    for i in I.domain(0, a.shape[0]):
        y[i] = a[i] // b[i] if b[i] != 0 else 0
        z[i] = 0
        if b[i] != 0 and a[i] % b[i] == 1:
            z[i] = 1
        w[i] = 0
        if b[i] == 0 or a[i] // b[i] < 3:
            w[i] = 1


def test_guards_hold_under_checks_too():
    """An operation whose guard is false is not executed, so no obligation is reported."""
    a, b = np.array([7, -7, 5, 9], np.int32), np.array([0, 3, 2, 0], np.int32)
    wants = [0, -3, 2, 0], [0, 0, 1, 0], [1, 1, 1, 1]
    same(guards, [a, b, *[out((4,), "i32")] * 3], lambda a, b: tuple(np.array(w, np.int32) for w in wants))
    if BACKEND != "reference":
        art = intent.compile(guards, options=intent.CompileOptions(checks=True))
        for got, want in zip(art.run(a, b), wants):
            assert got.tolist() == want


# --- under every policy ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("policy", ["strict", "range_preserving", "checked"])
def test_extrema_reductions_propagate_nan_and_order_zeros(policy):
    @intent.kernel(policy=policy)
    def extrema(x: I.In[I.f32, ("M", "N")], high: I.Out[I.f32, ("M",)], low: I.Out[I.f32, ("M",)], whole: I.Out[I.f32, ()]):
        high[:] = I.reduce.max(x[:, :], axis=1)
        low[:] = I.reduce.min(x[:, :], axis=1)
        whole[()] = I.reduce.max(x[:, :], axis=(0, 1))
    x = np.array([[0.0, -0.0] * 20, [-0.0, 0.0] * 20, [np.nan] + [1.0] * 39, [1.0] * 39 + [np.nan], [-np.inf] * 39 + [-0.0],
                  [-0.0] * 40], F)
    high, low, whole = check(extrema, [x, out((6,), "f32"), out((6,), "f32"), out((), "f32")])
    assert np.isnan(high).tolist() == np.isnan(low).tolist() == [False, False, True, True, False, False] and np.isnan(whole)
    assert high[[0, 1, 4, 5]].tolist() == [0, 0, 0, 0] and np.signbit(high[[0, 1, 4, 5]]).tolist() == [False, False, True, True]
    assert np.signbit(low[[0, 1, 4, 5]]).all() and low[4] == -np.inf


@pytest.mark.parametrize("policy", ["range_preserving", "checked"])
def test_float_singularities_are_ieee(policy):
    """004: no Python arithmetic exception; 003: dividing by zero gives an infinity or NaN."""
    @intent.kernel(policy=policy)
    def singular(x: I.In[I.f32, ("N",)], y: I.In[I.f32, ("N",)], q: I.Out[I.f32, ("N",)], p: I.Out[I.f32, ("N",)], d: I.Out[I.f32, ("N",)],
                 r: I.Out[I.f32, ("N",)]):
        q[:] = x[:] / y[:]
        p[:] = x[:] * y[:]
        d[:] = x[:] - y[:]
        r[:] = I.sqrt(x[:])
    x, y = np.array([1, -1, 0, 3e38, np.inf, -0.0, np.nan], F), np.array([0, 0, 0, 3e38, np.inf, 1, 1], F)
    check(singular, [x, y, *[out((7,), "f32")] * 4], lambda x, y: (x / y, x * y, x - y, np.sqrt(x)))
