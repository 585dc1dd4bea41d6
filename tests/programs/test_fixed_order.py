"""The order in which sums, scans and products round is part of the language: here it is written down a second time, in plain
NumPy scalars and fractions, and every road must agree to the bit."""
from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from tests.support import assert_same_bits, check, normal, out

LANES, CHUNK, KBLOCK = 32, 4096, 1024
LENGTHS = [0, 1, 5, 31, 32, 33, 64, 100, 1025, 4095, 4096, 4097, 9000]


def nearest(exact: Fraction) -> np.float32:
    """A fraction rounded once to f32, ties to even; for values in the normal range."""
    guess = np.float32(float(exact))
    near = [guess, np.nextafter(guess, np.float32(-np.inf)), np.nextafter(guess, np.float32(np.inf))]
    return min(near, key=lambda c: (abs(Fraction(float(c)) - exact), int(c.view(np.uint32)) & 1))


def fma(a, b, c) -> np.float32:
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    return nearest(exact) if exact else np.float32(0)


def combine_lanes(lanes, combine):
    for h in (16, 8, 4, 2, 1):
        for l in range(h):
            if l + h < len(lanes):
                lanes[l] = combine(lanes[l], lanes[l + h])
    return lanes[0]


def tree(x, combine, start):
    """R of the language: lanes, halving, chunks. ``start`` is a lane's first value, None for a generic combine."""
    if len(x) > CHUNK:
        return tree([tree(x[c:c + CHUNK], combine, start) for c in range(0, len(x), CHUNK)], combine, start)
    lanes = list(x[:LANES]) if start is None else [start] * LANES
    for i in range(LANES if start is None else 0, len(x)):
        lanes[i % LANES] = combine(lanes[i % LANES], x[i])
    return combine_lanes(lanes, combine)


def add(a, b):
    return a + b


@intent.fn
def halve(a, b):
    return a * 0.5 + b


@intent.kernel
def reductions(x: I.In[I.f32, ("N",)], s: I.Out[I.f32, ()], p: I.Out[I.f32, ()], g: I.Out[I.f32, ()], h: I.Out[I.f64, ()]):
    v = x[:]
    s[()] = I.reduce.sum(v, axis=0)
    p[()] = I.reduce.prod(v, axis=0)
    g[()] = I.reduce(v, axis=0, identity=I.cast(0.0, I.f32), combine=halve)
    h[()] = I.reduce.sum(v, axis=0, acc_dtype=I.f64)


@pytest.mark.parametrize("n", LENGTHS)
def test_reductions_round_in_the_fixed_tree(n, rng):
    # The combine is neither commutative nor associative on purpose: only the fixed tree gives these bits.
    def oracle(x):
        wide = [np.float64(v) for v in x]
        values = list(x)
        return (np.asarray(tree(values, add, np.float32(0))), np.asarray(tree(values, lambda a, b: a * b, np.float32(1))),
                np.asarray(tree(values, lambda a, b: fma(a, np.float32(0.5), b), None) if n else np.float32(0)),
                np.asarray(tree(wide, add, np.float64(0))))

    x = np.exp2(rng.uniform(-1, 1, n)).astype(np.float32) * rng.choice([-1, 1], n).astype(np.float32)
    with np.errstate(all="ignore"):
        want = oracle(x)
    got = check(reductions, [x, out((), "f32"), out((), "f32"), out((), "f32"), out((), "f64")])
    for name, g, w in zip(("sum", "prod", "generic", "wide sum"), got, want):
        assert_same_bits(g, w, name)


@cache
def sums_of_axis(axis):
    @intent.kernel
    def sums(x: I.In[I.f32, ("M", "N")], s: I.Out[I.f32, ("P",)]):
        M, N = x.shape
        for i in I.parallel(I.domain(0, s.shape[0])):
            s[i] = I.reduce.sum(x[i, :] if axis == 1 else x[:, i], axis=0)

    return sums


@cache
def whole_sums_of_axis(axis):
    @intent.kernel
    def sums(x: I.In[I.f32, ("A", "B")], s: I.Out[I.f32, ("A" if axis == 1 else "B",)]):
        s[:] = I.reduce.sum(x[:, :], axis=axis)

    return sums


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("n", [1, 33, 100, 4097])
@pytest.mark.parametrize("m", [1, 5, 40])
def test_rows_and_columns_have_the_bits_of_one_vector(axis, m, n, rng):
    x = normal(rng, (m, n) if axis == 1 else (n, m))
    rows = x if axis == 1 else x.T
    want = np.array([tree(list(r), add, np.float32(0)) for r in rows], np.float32)
    for kernel in (sums_of_axis(axis), whole_sums_of_axis(axis)):
        (got,) = check(kernel, [x, out(m, "f32")], layouts=("contiguous", "transposed", "strided"))
        assert_same_bits(got, want, kernel.__name__)


def scanned(x, combine):
    """S of the language, inclusive and forward."""
    result, before = [], None
    for c in range(0, len(x), CHUNK):
        carry, chunk = None, []
        for b in range(c, min(c + CHUNK, len(x)), LANES):
            p = list(x[b:min(b + LANES, c + CHUNK)])
            for s in (1, 2, 4, 8, 16):
                p = [combine(p[l - s], p[l]) if l >= s else p[l] for l in range(len(p))]
            chunk += p if carry is None else [combine(carry, v) for v in p]
            carry = chunk[-1]
        result += chunk if before is None else [combine(before, v) for v in chunk]
        before = carry if before is None else combine(before, carry)
    return result


@cache
def scans(reverse):
    @intent.kernel
    def scans(x: I.In[I.f32, ("N",)], s: I.Out[I.f32, ("N",)], e: I.Out[I.f32, ("N",)], g: I.Out[I.f32, ("N",)]):
        v = x[:]
        s[:] = I.cumsum(v, axis=0, reverse=reverse)
        e[:] = I.cumsum(v, axis=0, inclusive=False, reverse=reverse)
        g[:] = I.scan(v, axis=0, identity=I.cast(0.0, I.f32), combine=halve, reverse=reverse)

    return scans


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", LENGTHS)
def test_scans_round_in_the_fixed_order(n, reverse, rng):
    def generic(a, b):
        return fma(b, np.float32(0.5), a) if reverse else fma(a, np.float32(0.5), b)

    x = normal(rng, n)
    source = list(x[::-1] if reverse else x)
    inclusive = scanned(source, add)
    want = [inclusive, ([np.float32(0)] + inclusive)[:n], scanned(source, generic)]
    got = check(scans(reverse), [x, out(n, "f32"), out(n, "f32"), out(n, "f32")], layouts=("contiguous", "strided", "reversed"))
    for name, g, w in zip(("inclusive", "exclusive", "generic"), got, want):
        w = np.array(w, np.float32).reshape(n)
        assert_same_bits(g, w[::-1] if reverse else w, name)


@intent.kernel
def products(a: I.In[I.f32, ("M", "K")], b: I.In[I.f32, ("K", "N")], c: I.Out[I.f32, ("M", "N")], d: I.Out[I.f32, ("M",)],
             e: I.Out[I.f32, ()]):
    c[:, :] = I.matmul(a[:, :], b[:, :], acc_dtype=I.f32)
    d[:] = I.matvec(a[:, :], b[:, 0], acc_dtype=I.f32)
    e[()] = I.dot(a[0, :], b[:, 0], acc_dtype=I.f32)


@pytest.mark.parametrize("k", [0, 1, 7, 33, 1024, 1025, 2100])
def test_products_round_in_the_fixed_order(k, rng):
    def chain(u, v):
        acc = np.float32(0)
        for start in range(0, len(u), KBLOCK):
            p = np.float32(0)
            for x, y in zip(u[start:start + KBLOCK], v[start:start + KBLOCK]):
                p = fma(x, y, p)
            acc = p if start == 0 else acc + p
        return acc

    def by_tree(u, v):
        lanes = [np.float32(0)] * LANES
        for i, (x, y) in enumerate(zip(u, v)):
            lanes[i % LANES] = fma(x, y, lanes[i % LANES])
        return combine_lanes(lanes, add)

    a, b = normal(rng, (3, k)), normal(rng, (k, 2))
    got = check(products, [a, b, out((3, 2), "f32"), out(3, "f32"), out((), "f32")])
    assert_same_bits(got[0], np.array([[chain(r, c) for c in b.T] for r in a], np.float32), "matmul")
    column = b.T[0]
    assert_same_bits(got[1], np.array([by_tree(r, column) for r in a], np.float32), "matvec")
    assert_same_bits(got[2], np.asarray(by_tree(a[0], column)), "dot")


@intent.fn
def swapped(p, q):
    return q[0], p[0]


@intent.kernel
def components(x: I.In[I.i64, ("M", "N")], first: I.Out[I.i64, ("M",)], second: I.Out[I.i64, ("M",)], scan: I.Out[I.i64, ("M", "N")]):
    v = x[:, :]
    r = I.reduce((v, v), axis=1, identity=(0, 0), combine=swapped)
    first[:] = r[0]
    second[:] = r[1]
    scan[:, :] = I.scan((v, v), axis=1, identity=(0, 0), combine=swapped)[1]


@pytest.mark.parametrize("n", [3, 32, 33, 100, 4100])
def test_components_of_a_combine_change_together(n):
    x = np.stack([np.arange(n), np.arange(n)[::-1]])

    def oracle(x):
        r = [tree([(v, v) for v in row.tolist()], lambda p, q: (q[0], p[0]), None) for row in x]
        y = [[p[1] for p in scanned([(v, v) for v in row.tolist()], lambda p, q: (q[0], p[0]))] for row in x]
        return np.array([p[0] for p in r]), np.array([p[1] for p in r]), np.array(y)
    check(components, [x, *[out((2,), "i64")] * 2, out((2, n), "i64")], oracle, layouts=("contiguous",))


@intent.kernel
def long_rows(x: I.In[I.f32, ("M", "N")], y: I.Out[I.f32, ("M",)], z: I.Out[I.f32, ("M",)]):
    v = x[:, :]
    y[:] = I.reduce.sum(v, axis=1)
    z[:] = I.contract(v, v, reduce=((1, 1),), batch=((0, 0),), acc_dtype=I.f32)


def test_no_rows_of_many_chunks():
    check(long_rows, [np.zeros((0, 4097), np.float32), *[out((0,), "f32")] * 2], layouts=("contiguous",))
