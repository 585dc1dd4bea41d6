"""Combines that are no functions of single elements: matrices, records of mixed rank, loops and calls inside of them.

Exact data gives what any order gives, which plain Python or NumPy computes; on all data compiled code has the bits of section 12.
"""
from __future__ import annotations

from functools import cache

import numba
import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from intent_numba import reference
from intent_numba.kir import verify
from intent_numba.lowering import combines
from tests.support import check, compiled, integers, kir_of, normal, out
from tests.support.compare import assert_same_bits

LENGTHS = [0, 1, 2, 31, 33, 70]
FEW = ("contiguous", "mixed")
FORMS = [(True, False), (False, False), (True, True), (False, True)]


@intent.fn
def times(a, b):
    return I.matmul(a, b, acc_dtype=I.i64)


@cache
def matrices(inclusive, reverse):
    @intent.kernel
    def matrices(x: I.In[I.i64, ("N", "K", "K")], c: I.In[I.i64, ("N", "K", "K")], e: I.In[I.i64, ("K", "K")],
                 total: I.Out[I.i64, ("K", "K")], y: I.Out[I.i64, ("N", "K", "K")]):
        total[:, :] = I.reduce(c[:, :, :], axis=0, identity=e[:, :], combine=times)
        y[:, :, :] = I.scan(x[:, :, :], axis=0, identity=e[:, :], combine=times, inclusive=inclusive, reverse=reverse)
    return matrices


def circulant(rows):
    """Matrices that commute: a reduction may reorder its members."""
    k = rows.shape[-1]
    return np.stack([np.roll(rows, i, -1) for i in range(k)], -2)


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("inclusive,reverse", FORMS)
def test_products_of_matrices(inclusive, reverse, n, rng):
    def oracle(x, c, e):
        y, p, total = np.empty_like(x), e, e
        for i in range(n)[::-1 if reverse else 1]:
            before, p = p, x[i] @ p if reverse else p @ x[i]
            y[i] = p if inclusive else before
        for m in c:
            total = total @ m
        return total, y
    x, c = integers(rng, (n, 3, 3), "i64"), circulant(integers(rng, (n, 3), "i64"))
    check(matrices(inclusive, reverse), [x, c, np.eye(3, dtype=np.int64), out((3, 3), "i64"), out(x.shape, "i64")], oracle, layouts=FEW)


@intent.fn
def affine(f, g):
    """First f, then g."""
    return I.record(a=I.matmul(g.a, f.a, acc_dtype=I.i32), b=I.matvec(g.a, f.b, acc_dtype=I.i32) + g.b)


@intent.kernel
def affine_maps(a: I.In[I.i32, (3, "N", 3)], b: I.In[I.i32, ("N", 3)], one: I.In[I.i32, (3, 3)], y: I.Out[I.i32, ("N", 3)]):
    maps = I.record(a=I.transpose(a[:, :, :], (1, 0, 2)), b=b[:, :])
    none = I.record(a=one[:, :], b=I.zeros((3,), I.i32))
    y[:, :] = I.scan(maps, axis=0, identity=none, combine=affine).b


@pytest.mark.parametrize("n", LENGTHS)
def test_affine_maps_solve_a_recurrence(n, rng):
    def oracle(a, b, one):
        y, state = np.empty_like(b), np.zeros(3, np.int32)
        for i in range(len(b)):
            state = a[:, i] @ state + b[i]
            y[i] = state
        return y
    args = [integers(rng, (3, n, 3), "i32"), integers(rng, (n, 3), "i32"), np.eye(3, dtype=np.int32)]
    check(affine_maps, [*args, out((n, 3), "i32")], oracle, layouts=FEW)


@intent.fn
def soften(a, b):
    top = I.maximum(a.top, b.top)
    left, right = I.exp(a.top - top), I.exp(b.top - top)
    return I.record(top=top, mass=a.mass * left + b.mass * right, sum=a.sum * left + b.sum * right)


@intent.kernel
def online_softmax(s: I.In[I.f32, ("M", "N")], v: I.In[I.f32, ("N", "D")], y: I.Out[I.f32, ("M", "D")]):
    M, N = s.shape
    D = v.shape[1]
    for m in I.parallel(I.domain(0, M)):
        none = I.record(top=-1e30, mass=0.0, sum=I.zeros((D,), I.f32))
        parts = I.record(top=s[m, :], mass=I.full((N,), 1.0, I.f32), sum=v[:, :])
        found = I.reduce(parts, axis=0, identity=none, combine=soften)
        y[m, :] = found.sum / I.maximum(found.mass, 1e-30)


@pytest.mark.parametrize("m,n,d", [(3, 70, 5), (2, 1, 40), (1, 4099, 3), (2, 0, 2), (0, 3, 2)])
def test_softmax_by_one_reduction(m, n, d, rng):
    def oracle(s, v):
        w = np.exp(s.astype("d") - s.max(1, keepdims=True, initial=-1e30))
        return w @ v / np.maximum(w.sum(1, keepdims=True), 1e-30)
    check(online_softmax, [normal(rng, (m, n)), normal(rng, (n, d)), out((m, d), "f32")], oracle, floor=64, layouts=FEW)


@intent.fn
def merge(a, b):
    n = a.n + b.n
    share = b.n / I.maximum(n, 1.0)
    d = b.mean - a.mean
    return I.record(n=n, mean=a.mean + d * share, spread=a.spread + b.spread + I.outer(d, d) * (a.n * share))


@intent.kernel
def covariance(x: I.In[I.f32, ("P", "N", "D")], lengths: I.In[I.i32, ("P",)], mean: I.Out[I.f32, ("P", "D")],
               spread: I.Out[I.f32, ("P", "D", "D")]):
    P, N, D = x.shape
    members = I.domain(0, N)
    for p in I.parallel(I.domain(0, P)):
        v = x[p, members[0:lengths[p]], :]
        none = I.record(n=0.0, mean=I.zeros((D,), I.f32), spread=I.zeros((D, D), I.f32))
        parts = I.record(n=I.full((v.shape[0],), 1.0, I.f32), mean=v, spread=I.zeros((v.shape[0], D, D), I.f32))
        found = I.reduce(parts, axis=0, identity=none, combine=merge)
        mean[p, :] = found.mean
        spread[p, :, :] = found.spread


def test_covariance_of_ragged_parts(rng):
    x, lengths = normal(rng, (5, 90, 3)), np.array([90, 0, 1, 37, 64], np.int32)

    def oracle(x, lengths):
        parts = [p[:n].astype("d") for p, n in zip(x, lengths)]
        means = [p.mean(0) if len(p) else np.zeros(3) for p in parts]
        return np.array(means), np.array([(p - m).T @ (p - m) for p, m in zip(parts, means)])
    check(covariance, [x, lengths, out((5, 3), "f32"), out((5, 3, 3), "f32")], oracle, floor=512, layouts=FEW)


@intent.fn
def tropical(a, b):
    return I.reduce.max(a[:, :, None] + b[None, :, :], axis=1)


@intent.kernel
def longest_paths(x: I.In[I.i32, ("K", "A", "K", "B")], none: I.In[I.i32, ("K", "K")], y: I.Out[I.i32, ("K", "K")],
                  z: I.Out[I.i32, ("A", "K", "B", "K")]):
    A = x.shape[1]
    state = none[:, :]
    for _ in I.domain(0, 2):
        state = tropical(state, I.reduce(x[:, :, :, :], axis=(1, 3), identity=none[:, :], combine=tropical))
    y[:, :] = state
    for a in I.domain(0, A):
        z[a, :, :, :] = I.scan(I.transpose(x[:, a, :, :], (0, 2, 1)), axis=1, identity=none[:, :], combine=tropical)


@pytest.mark.parametrize("a,b", [(3, 34), (1, 1), (2, 0), (0, 3)])
def test_longest_paths_over_two_axes_inside_a_loop(a, b, rng):
    x = circulant(integers(rng, (a, b, 2), "i32", -100, 100)).transpose(2, 0, 3, 1)
    none = np.where(np.eye(2, dtype=bool), 0, -10**6).astype(np.int32)

    def longest(p, q):
        return (p[:, :, None] + q[None]).max(1)

    def oracle(x, none):
        total, z = none, np.empty((a, 2, b, 2), np.int32)
        for i in range(a):
            row = none
            for j in range(b):
                row = longest(row, x[:, i, :, j])
                z[i, :, j] = row
            total = longest(total, row)
        return longest(longest(none, total), total), z
    check(longest_paths, [x, none, out((2, 2), "i32"), out((a, 2, b, 2), "i32")], oracle, layouts=FEW)


@intent.fn
def total_of(x):
    return I.reduce.sum(x, axis=0)


@intent.fn
def sums_so_far(x, state):
    return I.cumsum(x, axis=0) + state


@intent.fn
def convolved(a, b):
    """The prefix sums of one side, by a region scan, added to the other side turned by two of its members."""
    zero = I.cast(0, I.i64)
    far, _ = I.region_scan(source=a, axis=0, summarize=total_of, combine=I.add, identity=zero, initial_state=zero, apply=I.add,
                           emit=sums_so_far)
    at = I.cast(I.indices(I.domain(0, 3)), I.i64)
    return far + I.gather(b, index=((at + 2) % 3,))


@intent.kernel
def walks(x: I.In[I.i64, ("N", 3)], y: I.Out[I.i64, ("N", 3)]):
    y[:, :] = I.scan(x[:, :], axis=0, identity=I.zeros((3,), I.i64), combine=convolved)


@pytest.mark.parametrize("n", [0, 1, 2, 33])
def test_region_operations_inside_of_a_combine(n, rng):
    def oracle(x):
        """By the steps of section 12, since this combine is not associative."""
        def join(a, b):
            return np.cumsum(a) + b[(np.arange(3) + 2) % 3]
        y = x.copy()
        for begin in range(0, n, 32):
            block = y[begin:begin + 32]
            for s in (1, 2, 4, 8, 16):
                for j in range(len(block) - 1, s - 1, -1):
                    block[j] = join(block[j - s], block[j])
            for j in range(len(block)) if begin else ():
                block[j] = join(y[begin - 1], block[j])
        return y
    check(walks, [integers(rng, (n, 3), "i64"), out((n, 3), "i64")], oracle, layouts=FEW)


@numba.njit
def larger(x, y):
    return x if x > y else y


@intent.fn
def gcd(a, b):
    while b != 0:
        a, b = b, a % b
    return a


@intent.fn
def later(a, b):
    if b[1]:
        return b
    return a[0], a[1]


@intent.fn
def greatest(a, b):
    return larger(a, b)


@intent.fn
def through_loop(a, b):
    for _ in I.domain(0, 3):
        a = a * 0.3 + b
    return a


@intent.kernel
def scalar_programs(x: I.In[I.u32, ("N", "M")], known: I.In[I.bool, ("N", "M")], g: I.Out[I.u32, ("M",)], s: I.Out[I.u32, ("N", "M")],
                    last: I.Out[I.u32, ("N", "M")], h: I.Out[I.u32, ("M",)]):
    zero = I.cast(0, I.u32)
    for m in I.parallel(I.domain(0, x.shape[1])):
        v = x[:, m]
        g[m] = I.reduce(v, axis=0, identity=zero, combine=gcd)
        s[:, m] = I.scan(v, axis=0, identity=zero, combine=gcd)
        last[:, m] = I.scan((v, known[:, m]), axis=0, identity=(zero, False), combine=later)[0]
        h[m] = I.reduce(v, axis=0, identity=zero, combine=greatest)


@pytest.mark.parametrize("n,m", [(40, 3), (1, 33), (0, 2), (5, 0)])
def test_scalar_combines_with_loops_branches_and_calls(n, m, rng):
    x = integers(rng, (n, m), "u32", 0, 300) * np.uint32(6)

    def oracle(x, known):
        last, now = np.empty_like(x), x[0] if n else None
        for i in range(n):
            now = np.where(known[i], x[i], now)
            last[i] = now
        zero = np.uint32(0)
        return np.gcd.reduce(x, axis=0, initial=zero), np.gcd.accumulate(x, axis=0), last, x.max(0, initial=zero)
    check(scalar_programs, [x, rng.random((n, m)) < 0.3, out(m, "u32"), out((n, m), "u32"), out((n, m), "u32"), out(m, "u32")], oracle)


@intent.kernel
def scattered(i: I.In[I.i32, ("N", "M")], x: I.In[I.u32, ("N", "M")], use: I.In[I.bool, ("N", "M")], y: I.InOut[I.u32, ("K",)],
              z: I.InOut[I.u32, ("K", "M")], w: I.InOut[I.f32, ("K",)]):
    N, M = x.shape
    I.scatter_reduce(y, index=(i[:, :],), value=x[:, :], combine=gcd, valid=use[:, :])
    I.scatter_reduce(z, index=(i[:, 0], I.domain(0, M)), value=x[:, :], combine=gcd)
    for n in I.parallel(I.domain(0, N)):
        I.scatter_reduce(w, index=(i[n, :],), value=I.cast(x[n, :], I.f32), combine=through_loop)


@pytest.mark.parametrize("n,m", [(40, 3), (1, 5), (0, 2)])
def test_scattering_by_a_loop(n, m, rng):
    def oracle(i, x, use, y, z, w):
        for a, b in np.ndindex(x.shape):
            if use[a, b]:
                y[i[a, b]] = np.gcd(y[i[a, b]], x[a, b])
            z[i[a, 0], b] = np.gcd(z[i[a, 0], b], x[a, b])
            k = i[a, b]
            for _ in range(3):
                w[k] = w[k] * np.float32(0.3) + np.float32(x[a, b])
        return y, z, w
    args = [integers(rng, (n, m), "i32", 0, 6), integers(rng, (n, m), "u32", 0, 300) * np.uint32(6), rng.random((n, m)) < 0.7]
    check(scattered, [*args, np.zeros(6, "u4"), np.zeros((6, m), "u4"), np.zeros(6, "f4")], oracle, ulps=64, layouts=FEW)


@intent.fn
def together(a, b):
    return a[0] * b[0], a[1] * b[0] + b[1], a[2] + b[2]


@cache
def long_sources(inclusive, reverse):
    @intent.kernel
    def long_sources(a: I.In[I.f32, ("N",)], b: I.In[I.f32, (2, "N")], y: I.Out[I.f32, (2,)], z: I.Out[I.f32, (2, "N")],
                     n: I.Out[I.u16, ()], VARIANT: I.Constexpr[int] = 0):
        parts = (a[:], I.transpose(b[:, :]), I.full(a.shape, 1, I.u16))
        none = (1.0, I.zeros((2,), I.f32), 0)
        _, total, count = I.reduce(parts, axis=0, identity=none, combine=together)
        y[:] = total
        n[()] = count
        z[:, :] = I.transpose(I.scan(parts, axis=0, identity=none, combine=together, inclusive=inclusive, reverse=reverse)[1])
    return long_sources


@pytest.mark.parametrize("n", [4095, 4096, 4097, 9000])
@pytest.mark.parametrize("inclusive,reverse", [(True, False), (False, True)])
def test_chunks(inclusive, reverse, n, rng):
    """The first chunk alone, and several of them."""
    a, b = rng.uniform(-1, 1, n).astype("f4"), normal(rng, (2, n))
    got = check(long_sources(inclusive, reverse), [a, b, out(2, "f32"), out((2, n), "f32"), out((), "u16")], layouts=("contiguous",))
    assert got[2] == n and np.isfinite(got[1]).all()


@pytest.mark.parametrize("n", [0, 1, 33, 1100])
def test_leaves_of_leaves(n, rng, monkeypatch):
    """With a short chunk, leaves of leaves of leaves: the loops, run by the interpreter and compiled, against the operation itself."""
    monkeypatch.setattr(combines, "CHUNK", 32)
    monkeypatch.setattr(reference.order, "CHUNK", 32)
    monkeypatch.setenv("INTENT_CACHE", "0")
    kernel, variant = long_sources(True, False), (("VARIANT", 32),)      # a specialisation that nothing else compiles
    args = [rng.uniform(-1, 1, n).astype("f4"), normal(rng, (2, n)), np.zeros(2, "f4"), np.zeros((2, n), "f4"), np.zeros((), "u2")]
    kir, written = kir_of(kernel, variant), []
    for run in (lambda *a: reference.run(kir, list(a)), lambda *a: reference.run(verify(combines.spread(kir)), list(a)),
                compiled(kernel, variant)):
        own = [a.copy() for a in args]
        run(*own)
        written.append(own[2:])
    for found in written[1:]:
        for g, w in zip(found, written[0]):
            assert_same_bits(g, w)
