"""Integer programs: generators, hashes, bit counts, packed data, modular arithmetic."""
from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from tests.support import check, integers, out


@intent.kernel
def xorshift(seed: I.In[I.u32, ("N",)], rounds: I.i32, y: I.Out[I.u32, ("N",)]):
    state = seed[:]
    for _ in range(rounds):
        state = state ^ (state << 13)
        state = state ^ (state >> 17)
        state = state ^ (state << 5)
    y[:] = state


@pytest.mark.parametrize("n", [64, 37, 0])
def test_xorshift(n, rng):
    def oracle(s, rounds):
        for _ in range(rounds):
            s = s ^ (s << np.uint32(13))
            s = s ^ (s >> np.uint32(17))
            s = s ^ (s << np.uint32(5))
        return s

    check(xorshift, [integers(rng, n, "u32"), np.int32(9), out(n, "u32")], oracle)


@cache
def popcount(dt):
    @intent.kernel
    def popcount(x: I.In[dt, ("N",)], y: I.Out[I.i32, ("N",)], leading: I.Out[I.i32, ("N",)]):
        for n in I.parallel(I.domain(0, x.shape[0])):
            v = x[n]
            count = I.cast(0, I.i32)
            while v != 0:
                v = v & (v - 1)
                count += 1
            y[n] = count
            width = I.cast(0, I.i32)
            w = x[n]
            while w != 0:
                w = w >> 1
                width += 1
            leading[n] = width

    return popcount


@pytest.mark.parametrize("n", [64, 19, 0])
@pytest.mark.parametrize("dt", [I.u8, I.u16, I.u32, I.u64], ids=lambda d: d.name)
def test_popcount(dt, n, rng):
    check(popcount(dt), [integers(rng, n, dt), out(n, "i32"), out(n, "i32")],
          lambda x: (np.array([bin(int(v)).count("1") for v in x], np.int32), np.array([int(v).bit_length() for v in x], np.int32)))


@intent.kernel
def fnv_hash(text: I.In[I.u8, ("M", "N")], y: I.Out[I.u64, ("M",)]):
    M, N = text.shape
    for m in I.parallel(I.domain(0, M)):
        h = I.cast(14695981039346656037, I.u64)
        for n in I.domain(0, N):
            h = (h ^ I.cast(text[m, n], I.u64)) * 1099511628211
        y[m] = h


@pytest.mark.parametrize("shape", [(9, 8), (4, 0), (0, 3)])
def test_fnv_hash(shape, rng):
    def oracle(text):
        result = []
        for row in text:
            h = 14695981039346656037
            for byte in row:
                h = ((h ^ int(byte)) * 1099511628211) & (1 << 64) - 1
            result.append(h)
        return np.array(result, np.uint64)

    check(fnv_hash, [integers(rng, shape, "u8"), out(shape[0], "u64")], oracle)


@intent.kernel
def unpack_nibbles(packed: I.In[I.u8, ("M", "N")], scale: I.In[I.f32, ("M",)], y: I.Out[I.f32, ("M", "N", 2)]):
    M, N = packed.shape
    p = packed[:, :]
    low = I.bitcast(p << 4, I.i8) >> 4
    high = I.bitcast(p, I.i8) >> 4
    both = I.join(low, high)
    y[:, :, :] = I.cast(both, I.f32) * scale[:][:, None, None]


@pytest.mark.parametrize("shape", [(3, 32), (2, 7), (0, 4)])
def test_unpack_nibbles(shape, rng):
    def oracle(p, s):
        n = np.stack([p & 15, p >> 4], -1).astype(np.int32)
        return (n - 16 * (n > 7)).astype(np.float32) * s[:, None, None]

    check(unpack_nibbles, [integers(rng, shape, "u8"), rng.random(shape[0]).astype(np.float32), out((*shape, 2), "f32")], oracle)


@cache
def arithmetic(dt):
    @intent.kernel
    def arithmetic(a: I.In[dt, ("N",)], b: I.In[dt, ("N",)], s: I.In[dt, ("N",)], y: I.Out[dt, (14, "N")], c: I.Out[I.bool, (6, "N")]):
        p, q, n = a[:], b[:], s[:]
        y[0, :] = p + q
        y[1, :] = p - q
        y[2, :] = p * q
        y[3, :] = p // q
        y[4, :] = p % q
        y[5, :] = p & q
        y[6, :] = p | q
        y[7, :] = p ^ q
        y[8, :] = ~p
        y[9, :] = -p
        y[10, :] = I.abs(p)
        y[11, :] = p << n
        y[12, :] = p >> n
        y[13, :] = I.maximum(p, q) - I.minimum(p, q)
        c[0, :] = p == q
        c[1, :] = p != q
        c[2, :] = p < q
        c[3, :] = p <= q
        c[4, :] = p > q
        c[5, :] = p >= q

    return arithmetic


def wrap(values, dtype):
    width = np.dtype(dtype).itemsize * 8
    return np.array([v & (1 << width) - 1 for v in values], np.uint64).astype(f"uint{width}").view(dtype)


@pytest.mark.parametrize("n", [64, 37, 0])
@pytest.mark.parametrize("dt", [I.i8, I.u8, I.i16, I.u16, I.i32, I.u32, I.i64, I.u64], ids=lambda d: d.name)
def test_arithmetic(dt, n, rng):
    a, b = integers(rng, n, dt), integers(rng, n, dt)
    width = a.dtype.itemsize * 8
    if n:
        small = rng.random(n) < 0.4
        b[small] = b[small] & a.dtype.type(7)
        low, high = np.iinfo(a.dtype).min, np.iinfo(a.dtype).max
        a[:4], b[:4] = [low, high, low, 0], [1, high, 2, high]
    b[b == 0] = 3
    if dt.name[0] == "i":
        b[(b == -1) & (a == np.iinfo(a.dtype).min)] = 5
    s = integers(rng, n, dt, 0, width)

    def oracle(a, b, s):
        p, q, n = ([int(v) for v in t] for t in (a, b, s))
        rows = [[x + y for x, y in zip(p, q)], [x - y for x, y in zip(p, q)], [x * y for x, y in zip(p, q)], [x // y for x, y in zip(p, q)],
                [x % y for x, y in zip(p, q)], [x & y for x, y in zip(p, q)], [x | y for x, y in zip(p, q)], [x ^ y for x, y in zip(p, q)],
                [~x for x in p], [-x for x in p], [abs(x) for x in p], [x << k for x, k in zip(p, n)], [x >> k for x, k in zip(p, n)],
                [max(x, y) - min(x, y) for x, y in zip(p, q)]]
        tests = np.array([a == b, a != b, a < b, a <= b, a > b, a >= b])
        return np.array([wrap(r, a.dtype) for r in rows]), tests

    check(arithmetic(dt), [a, b, s, out((14, n), dt), out((6, n), "bool")], oracle)


INTEGERS = ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64")


@cache
def casts(dt):
    @intent.kernel
    def casts(x: I.In[dt, ("N",)], a: I.Out[I.i8, ("N",)], b: I.Out[I.u8, ("N",)], c: I.Out[I.i16, ("N",)], d: I.Out[I.u16, ("N",)],
              e: I.Out[I.i32, ("N",)], f: I.Out[I.u32, ("N",)], g: I.Out[I.i64, ("N",)], h: I.Out[I.u64, ("N",)],
              i: I.Out[I.f32, ("N",)], j: I.Out[I.f64, ("N",)], k: I.Out[I.bool, ("N",)],
              s: I.Out[I.i8, ("N",)], t: I.Out[I.u16, ("N",)], u: I.Out[I.f16, ("N",)]):
        v = x[:]
        a[:] = I.cast(v, I.i8)
        b[:] = I.cast(v, I.u8)
        c[:] = I.cast(v, I.i16)
        d[:] = I.cast(v, I.u16)
        e[:] = I.cast(v, I.i32)
        f[:] = I.cast(v, I.u32)
        g[:] = I.cast(v, I.i64)
        h[:] = I.cast(v, I.u64)
        i[:] = I.cast(v, I.f32)
        j[:] = I.cast(v, I.f64)
        k[:] = I.cast(v, I.bool)
        s[:] = I.saturating_cast(v, I.i8)
        t[:] = I.saturating_cast(v, I.u16)
        u[:] = I.cast(v, I.f16)

    return casts


@pytest.mark.parametrize("n", [64, 21])
@pytest.mark.parametrize("dt", INTEGERS)
def test_casts(dt, n, rng):
    x = integers(rng, n, dt)
    x[:5] = [0, 1, np.iinfo(x.dtype).max, np.iinfo(x.dtype).min, 77]

    def oracle(x):
        exact = [int(v) for v in x]
        narrow = [wrap(exact, {"i": "int", "u": "uint"}[t[0]] + t[1:]) for t in INTEGERS]
        return (*narrow, x.astype(np.float32), x.astype(np.float64), x != 0, np.array([min(max(v, -128), 127) for v in exact], np.int8),
                np.array([min(max(v, 0), 65535) for v in exact],
                         np.uint16), x.astype(np.float16))

    args = [x, *(out(n, t) for t in INTEGERS), out(n, "f32"), out(n, "f64"), out(n, "bool"), out(n, "i8"), out(n, "u16"), out(n, "f16")]
    check(casts(I.dtype(dt)), args, oracle)


@intent.kernel
def modular_power(base: I.In[I.u64, ("N",)], exponent: I.In[I.u32, ("N",)], modulus: I.u64, y: I.Out[I.u64, ("N",)],
                  z: I.Out[I.u64, ("N",)]):
    for n in I.parallel(I.domain(0, base.shape[0])):
        result = I.cast(1, I.u64) % modulus
        b = base[n] % modulus
        e = exponent[n]
        while e > 0:
            if e & 1 == 1:
                result = result * b % modulus
            b = b * b % modulus
            e = e >> 1
        y[n] = result
        z[n] = base[n] ** I.cast(exponent[n] & 15, I.u64)


@pytest.mark.parametrize("n", [32, 9, 0])
def test_modular_power(n, rng):
    base, exponent = integers(rng, n, "u64"), integers(rng, n, "u32")
    check(modular_power, [base, exponent, np.uint64(998244353), out(n, "u64"), out(n, "u64")],
          lambda b, e, m: (np.array([pow(int(p), int(q), int(m)) for p, q in zip(b, e)], np.uint64),
                           np.array([pow(int(p), int(q) & 15, 1 << 64) for p, q in zip(b, e)], np.uint64)))


@intent.kernel
def count_in_ranges(x: I.In[I.i32, ("N",)], edges: I.In[I.i32, ("K1",)], y: I.Out[I.i32, ("K",)]):
    v = x[:]
    for k in I.parallel(I.domain(0, y.shape[0])):
        y[k] = I.reduce.sum(I.cast((v >= edges[k]) & (v < edges[k + 1]), I.i32), axis=0)


@pytest.mark.parametrize("n,k", [(64, 5), (37, 3), (0, 4), (5, 0), (9000, 3)])
def test_counts_without_a_histogram(n, k, rng):
    edges = np.linspace(-50, 50, k + 1).astype(np.int32)
    check(count_in_ranges, [integers(rng, n, "i32", -60, 60), edges, out(k, "i32")],
          lambda x, e: np.array([((x >= a) & (x < b)).sum() for a, b in zip(e, e[1:])], np.int32))
