"""Prefix sums and maxima, scans with a combine of the author's, and statistics by generic reduction."""
from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from tests.support import check, integers, normal, out

LENGTHS = [64, 37, 0, 1, 32, 33, 4097]


@cache
def prefix(dt, acc, axis, inclusive, reverse):
    @intent.kernel
    def prefix(x: I.In[dt, ("M", "N")], s: I.Out[acc, ("M", "N")], m: I.Out[dt, ("M", "N")]):
        v = x[:, :]
        s[:, :] = I.cumsum(v, axis=axis, inclusive=inclusive, reverse=reverse)
        m[:, :] = I.cummax(v, axis=axis, inclusive=inclusive, reverse=reverse)

    return prefix


def scan_oracle(ufunc, x, axis, inclusive, reverse, identity):
    x = np.flip(x, axis) if reverse else x
    y = ufunc.accumulate(x, axis=axis)
    if not inclusive:
        y = np.roll(y, 1, axis)
        y[tuple(0 if i == axis % x.ndim else slice(None) for i in range(x.ndim))] = identity
    return np.flip(y, axis) if reverse else y


@pytest.mark.parametrize("shape", [(3, 64), (2, 37), (37, 2), (0, 3), (1, 4200)])
@pytest.mark.parametrize("inclusive,reverse", [(True, False), (False, False), (True, True), (False, True)])
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("dt,acc", [(I.f32, I.f32), (I.i8, I.i32), (I.u64, I.u64), (I.f16, I.f32)], ids=lambda d: d.name)
def test_prefix(dt, acc, axis, inclusive, reverse, shape, rng):
    floating = dt.name[0] == "f"
    x = normal(rng, shape, dt) if floating else integers(rng, shape, dt)

    def oracle(x):
        wide = x.astype(np.float64 if floating else {"i32": np.int32, "u64": np.uint64}[acc.name])
        low = -np.inf if floating else np.iinfo(x.dtype).min
        if not x.size:
            return wide, x
        return scan_oracle(np.add, wide, axis, inclusive, reverse, 0), scan_oracle(np.maximum, x, axis, inclusive, reverse, low)

    check(prefix(dt, acc, axis, inclusive, reverse), [x, out(shape, acc), out(shape, dt)], oracle, floor=8.0 * (shape[axis] + 1))


@intent.fn
def compose(f, g):
    return f[0] * g[0], f[1] * g[0] + g[1]


@intent.kernel
def affine_scan(a: I.In[I.f32, ("N",)], b: I.In[I.f32, ("N",)], x0: I.f32, x: I.Out[I.f32, ("N",)]):
    slope, offset = I.scan((a[:], b[:]), axis=0, identity=(1.0, 0.0), combine=compose)
    x[:] = slope * x0 + offset


@pytest.mark.parametrize("n", LENGTHS)
def test_scan_of_affine_maps_solves_a_recurrence(n, rng):
    a, b = rng.uniform(-0.9, 0.9, n).astype(np.float32), normal(rng, n)

    def oracle(a, b, x):
        states, x = [], float(x)
        for s, t in zip(a.astype(float), b.astype(float)):
            x = s * x + t
            states.append(x)
        return np.array(states)

    check(affine_scan, [a, b, np.float32(1.5), out(n, "f32")], oracle, ulps=64, floor=64)


@intent.fn
def keep_last(a, b):
    return I.record(value=I.select(b.set, b.value, a.value), set=a.set | b.set)


@intent.kernel
def forward_fill(x: I.In[I.i32, ("M", "N")], known: I.In[I.bool, ("M", "N")], y: I.Out[I.i32, ("M", "N")], z: I.Out[I.i32, ("M", "N")]):
    source = I.record(value=I.select(known[:, :], x[:, :], -1), set=known[:, :])
    y[:, :] = I.scan(source, axis=1, identity=I.record(value=-1, set=False), combine=keep_last).value
    z[:, :] = I.scan(source, axis=1, identity=I.record(value=-1, set=False), combine=keep_last, inclusive=False).value


@pytest.mark.parametrize("shape", [(2, 64), (3, 37), (2, 0), (1, 4100)])
def test_forward_fill_is_not_commutative(shape, rng):
    def oracle(x, known):
        y, z = np.empty_like(x), np.empty_like(x)
        for i in range(x.shape[0]):
            last = -1
            for j in range(x.shape[1]):
                z[i, j] = last
                last = x[i, j] if known[i, j] else last
                y[i, j] = last
        return y, z

    check(forward_fill, [integers(rng, shape, "i32"), rng.random(shape) < 0.3, out(shape, "i32"), out(shape, "i32")], oracle)


@intent.fn
def merge(a, b):
    n = a.n + b.n
    safe = I.maximum(n, 1.0)
    d = b.mean - a.mean
    return I.record(n=n, mean=a.mean + d * (b.n / safe), m2=a.m2 + b.m2 + d * d * (a.n * b.n / safe))


@intent.kernel
def welford(x: I.In[I.f32, ("M", "N")], mean: I.Out[I.f32, ("M",)], variance: I.Out[I.f32, ("M",)]):
    v = x[:, :]
    stats = I.reduce(I.record(n=I.full(v.shape, 1.0, I.f32), mean=v, m2=I.zeros(v.shape, I.f32)), axis=1,
                     identity=I.record(n=0.0, mean=0.0, m2=0.0), combine=merge)
    mean[:] = stats.mean
    variance[:] = stats.m2 / I.maximum(stats.n, 1.0)


@pytest.mark.parametrize("shape", [(4, 64), (3, 37), (2, 4500), (3, 1), (3, 0), (0, 4)])
def test_welford(shape, rng):
    x = normal(rng, shape) + np.float32(3)
    check(welford, [x, out(shape[0], "f32"), out(shape[0], "f32")],
          lambda x: (x.mean(1, dtype="d"), x.var(1, dtype="d")) if x.size else (np.zeros(len(x)),) * 2, ulps=64, floor=16)


@intent.fn
def complex_product(a, b):
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


@intent.kernel
def product_of_rotations(angle: I.In[I.f64, ("N",)], re: I.Out[I.f64, ()], im: I.Out[I.f64, ()]):
    v = angle[:]
    c, s = I.reduce((I.cos(v), I.sin(v)), axis=0, identity=(1.0, 0.0), combine=complex_product)
    re[()] = c
    im[()] = s


@pytest.mark.parametrize("n", LENGTHS)
def test_complex_product(n, rng):
    check(product_of_rotations, [rng.uniform(-3, 3, n), out((), "f64"), out((), "f64")],
          lambda a: (np.asarray(np.cos(a.sum())), np.asarray(np.sin(a.sum()))), floor=4.0 * (n + 8))


@intent.fn
def gcd(a, b):
    while b != 0:
        a, b = b, a % b
    return a


@intent.kernel
def gcd_of_rows(x: I.In[I.u32, ("M", "N")], y: I.Out[I.u32, ("M",)]):
    M, N = x.shape
    for m in I.parallel(I.domain(0, M)):
        g = I.cast(0, I.u32)
        for n in I.domain(0, N):
            g = gcd(g, x[m, n])
        y[m] = g


@pytest.mark.parametrize("shape", [(5, 4), (3, 0), (0, 2)])
def test_gcd_by_a_helper_with_a_loop(shape, rng):
    check(gcd_of_rows, [integers(rng, shape, "u32", 0, 300) * np.uint32(6), out(shape[0], "u32")],
          lambda x: np.gcd.reduce(x, axis=1, initial=np.uint32(0)))


@intent.kernel
def builtin_combines(x: I.In[I.u16, ("M", "N")], y: I.Out[I.u16, ("M", 4)], z: I.Out[I.u16, ("M", "N")]):
    v = x[:, :]
    ones = I.cast(65535, I.u16)
    zero = I.cast(0, I.u16)
    y[:, 0] = I.reduce(v, axis=1, identity=zero, combine=I.add)
    y[:, 1] = I.reduce(v, axis=1, identity=ones, combine=I.minimum)
    y[:, 2] = I.reduce(v, axis=1, identity=zero, combine=I.maximum)
    y[:, 3] = I.reduce(v, axis=1, identity=I.cast(1, I.u16), combine=I.multiply)
    z[:, :] = I.scan(v, axis=1, identity=I.cast(1, I.u16), combine=I.multiply)


@pytest.mark.parametrize("shape", [(3, 64), (2, 37), (2, 0)])
def test_builtin_combines(shape, rng):
    def oracle(x):
        y = np.stack([x.sum(1, dtype=np.uint16), x.min(1, initial=65535), x.max(1, initial=0), x.prod(1, dtype=np.uint16)], axis=1)
        return y, np.cumprod(x, axis=1, dtype=np.uint16)

    check(builtin_combines, [integers(rng, shape, "u16") | np.uint16(1), out((shape[0], 4), "u16"), out(shape, "u16")], oracle)


@intent.kernel
def compaction(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, ("N",)], count: I.Out[I.i32, (1,)]):
    N, = x.shape
    n = I.domain(0, N)
    v = x[n]
    keep = v > 0.0
    place = I.cumsum(I.cast(keep, I.i32), axis=0, inclusive=False)
    I.scatter_unique(y, index=(place,), value=v, valid=keep)
    count[0] = I.reduce.sum(I.cast(keep, I.i32), axis=0)


@pytest.mark.parametrize("n", [64, 37, 0, 5000])
def test_stream_compaction(n, rng):
    x = normal(rng, n)
    kept = x[x > 0]
    got = check(compaction, [x, out(n, "f32"), out(1, "i32")])
    assert got[1][0] == len(kept) and np.array_equal(got[0][:len(kept)], kept)
    assert (got[0][len(kept):].view(np.uint8) == 0xA5).all(), "elements that nothing wrote keep their contents (decision 34)"
