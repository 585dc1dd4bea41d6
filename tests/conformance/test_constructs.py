"""The constructs of 002 that no other file here is about: helpers, scalars and rank zero, shapes, control; broken obligations."""
from __future__ import annotations

import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from intent_numba.frontend import build_kernel
from tests.support import BACKEND, check, execute, interpret, out

from .world import source


# --- scalars, rank zero, index -------------------------------------------------------------------------------------------------

@intent.kernel
def ranks(x: I.In[I.f32, ("N",)], r: I.In[I.f32, ()], n: I.i32, y: I.Out[I.f32, (6,)], z: I.Out[I.f32, ()], w: I.Out[I.f32, ("N",)]):
    total = I.reduce.sum(x[:], axis=0)                      # a scalar
    d = I.dot(x[:], x[:], acc_dtype=I.f32)                  # rank zero
    f = I.full((), total, I.f32)
    one = I.reshape(x[0], ())
    y[0], y[1], y[2] = total + r[()], d[()], f[()]
    y[3] = (d + f)[()]
    y[4] = one[()] + d[()]
    y[5] = I.reshape(d + total, (1,))[0]
    z[()] = d * 2.0
    w[:] = x[:] * d + f
    if n > 0:
        f = f + 1.0
    z[()] = z[()] + f


def test_rank_zero_and_scalars():
    x = np.array([1, 2, 4], "f4")

    def oracle(x, r, n):
        d, t = 21, 7
        return np.array([t + 10, d, t, d + t, 1 + d, d + t], "f4"), np.array(2 * d + t + 1, "f4"), x * d + t
    check(ranks, [x, np.array(10, "f4"), np.int32(1), out(6, "f32"), out((), "f32"), out(3, "f32")], oracle)
    for body in ("y[0] = I.reduce.sum(x[:], axis=0)[()]", "y[0] = x[0][()]", "t = x[0].shape", "t = s.shape"):
        with pytest.raises(intent.IntentError):
            build_kernel(source(body, 'x: I.In[I.f32, ("N",)], s: I.f32, y: I.Out[I.f32, ("N",)]').pyfunc)


@intent.kernel
def wraps(a: I.index, b: I.index, y: I.Out[I.index, (6,)], v: I.In[I.index, ("N",)], z: I.Out[I.index, (3, "N")]):
    y[0], y[1], y[2] = a + b, a * b, -a
    y[3], y[4] = a - b, a * 2 + b * 2
    y[5] = I.reduce.sum(v[:], axis=0)
    z[0, :], z[1, :], z[2, :] = v[:] + a, v[:] * b, I.cumsum(v[:], axis=0)


def test_index_wraps(rng):
    def signed(n):
        return (int(n) + 2 ** 63) % 2 ** 64 - 2 ** 63

    def oracle(a, b, v):
        a, b, v = int(a), int(b), [int(t) for t in v]
        total = [sum(v[:i + 1]) for i in range(len(v))]
        rows = [[t + a for t in v], [t * b for t in v], total]
        return (np.array([signed(t) for t in (a + b, a * b, -a, a - b, a * 2 + b * 2, total[-1])]),
                np.array([[signed(t) for t in row] for row in rows]))
    v = rng.integers(-2 ** 63, 2 ** 63, 40)
    for a, b in ((2 ** 63 - 1, 1), (-2 ** 63, -1), (2 ** 62 + 12345, -3 * 2 ** 61 - 7)):
        check(wraps, [a, b, out(6, "index"), v, out((3, 40), "index")], oracle, layouts=("contiguous", "strided"))


@intent.kernel
def from_the_end(x: I.In[I.f32, ("A", "B", "C")], y: I.Out[I.index, (4,)], z: I.Out[I.f32, ("A", "C")]):
    y[0], y[1] = x.shape[-1], x.shape[-3]
    y[2], y[3] = x[:, 0, :].shape[-1], len(x.shape)
    z[:, :] = I.reduce.sum(x[:, :, :], axis=-2)


def test_shapes_count_from_the_end(rng):
    x = rng.integers(-9, 9, (2, 3, 5)).astype("f4")
    check(from_the_end, [x, out(4, "index"), out((2, 5), "f32")], lambda x: (np.array([5, 2, 5, 3]), x.sum(1)))


@pytest.mark.parametrize("dt, base, exponent, want", [
    ("i32", -3, 3, -27), ("i8", 3, 5, 243 - 256), ("u8", 3, 5, 243), ("i64", 0, 0, 1), ("f32", 2.0, 0.5, np.float32(2 ** 0.5)),
    ("f32", -2.0, 3.0, -8.0), ("f64", 0.0, -1.0, np.inf)])
def test_the_power_operator(dt, base, exponent, want):
    kernel = source("v = x[:]\ny[0, :] = v ** e[:]\ny[1, :] = v ** POWER",
                    f'x: I.In[I.{dt}, ("N",)], e: I.In[I.{dt}, ("N",)], y: I.Out[I.{dt}, (2, "N")]', POWER=exponent)
    args = [np.full(40, base).astype(kernel_dtype(dt)), np.full(40, exponent).astype(kernel_dtype(dt)), out((2, 40), dt)]
    (y,) = check(kernel, args, layouts=("contiguous",))
    assert (y == np.asarray(want).astype(y.dtype)).all()


def kernel_dtype(dt):
    return {"i": "i", "u": "u", "f": "f"}[dt[0]] + str(int(dt[1:]) // 8)


# --- obligations that nobody checks --------------------------------------------------------------------------------------------

BROKEN = """v, d = x[:], e[:]
y[0, :] = v // d
y[1, :] = v % d
y[2, :] = v << d
y[3, :] = v >> d
y[4, :] = I.power(v, d)
for i in I.domain(0, x.shape[0]):
    y[5, i] = x[i] // e[i]
    y[6, i] = x[i] % e[i]
    y[7, i] = I.cast(f[i], I.DT)"""


@pytest.mark.parametrize("dt", ["i8", "u8", "i16", "i32", "u32", "i64", "u64", "index"])
def test_what_the_caller_broke_harms_nothing(dt):
    kernel = source(BROKEN.replace("DT", dt),
                    f'x: I.In[I.{dt}, ("N",)], e: I.In[I.{dt}, ("N",)], f: I.In[I.f64, ("N",)], y: I.Out[I.{dt}, (8, "N")]')
    kind = np.dtype("i8" if dt == "index" else kernel_dtype(dt))
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    left = np.array([low, low, high, 0, 5, low, high, 1] * 9, kind)
    right = np.array([0, -1 if low else high, 0, 0, low, high, high, 8 * kind.itemsize] * 9, object).astype(kind)
    floats = np.array([np.nan, np.inf, -np.inf, 1e300, -1e300, 2.0 ** 64, -2.0 ** 63, -1.0] * 9)
    args = [left, right, floats, out((8, 72), dt)]
    for y, in [interpret(kernel, args)] + ([execute(kernel, args)] if BACKEND != "reference" else []):
        if low:
            assert (y[1][left == low][right[left == low] == -1] == 0).all() and (y[6][1::8] == 0).all()


# --- definitions and control ------------------------------------------------------------------------------------------------------

@intent.fn
def poured(y, log, x, *, times: I.Constexpr[int] = 2, from_row=0):
    """Effects in a helper: stores, an atomic, an early return; the buffer and the views are the caller's."""
    if x[from_row] < 0.0:
        return 0
    for _ in I.domain(0, times):
        y[from_row] = y[from_row] + x[from_row]
    I.atomic.add(log[0], 1, order="relaxed")
    return times


@intent.kernel
def with_effects(x: I.In[I.f32, ("N",)], y: I.InOut[I.f32, ("N",)], used: I.Out[I.i64, ("N",)], calls: I.Out[I.i32, ()]):
    log = I.buffer((1,), I.i32, init=0)
    for i in I.domain(0, x.shape[0]):
        used[i] = poured(y, log, x, from_row=i) if i % 2 == 0 else poured(x=x, log=log, y=y, times=3, from_row=i)
    calls[()] = log[0]


def test_helpers_have_the_effects_of_their_call_site(rng):
    x = rng.standard_normal(21).astype("f4").round(1)

    def oracle(x, y):
        n = np.where(np.arange(len(x)) % 2 == 0, 2, 3) * (x >= 0)
        for i, k in enumerate(n):
            for _ in range(k):
                y[i] += x[i]
        return y, n, np.array((x >= 0).sum())
    check(with_effects, [x, np.ones(21, "f4"), out(21, "i64"), out((), "i32")], oracle)


@intent.fn
def coordinates_of(rows, cols):
    """Coordinates that went through a record, a reshape and a broadcast are still those of their source."""
    r = I.record(i=I.indices(rows)[:, None], j=I.indices(cols)[None, :])
    return I.record(pair=(r.i, r.j), flat=I.reshape(r.i * 10 + r.j, (-1,)))


@intent.kernel
def provenance(x: I.In[I.f32, ("M", "N")], begin: I.index, y: I.Out[I.f32, ("M", "N")], z: I.Out[I.index, ("K",)]):
    M, N = x.shape
    rows, cols = I.domain(0, M), I.domain(0, N)[begin:N]
    at = coordinates_of(rows, cols)
    i, j = at.pair
    y[i, j] = x[M - 1 - i, j]
    n = M * (N - begin)
    z[0:n] = at.flat


@pytest.mark.parametrize("begin", [0, 3, 7])
def test_coordinates_pass_through_helpers_and_records(begin):
    x = np.arange(28, dtype="f4").reshape(4, 7)

    def oracle(x, begin):
        y, z = np.full((4, 7), -7, "f4"), np.full(40, -7)
        y[:, begin:] = x[::-1, begin:]
        flat = np.add.outer(np.arange(4) * 10, np.arange(begin, 7)).ravel()
        z[:len(flat)] = flat
        return y, z
    kernel = source("fill(y, z)\nprovenance_body(x, begin, y, z)", PROVENANCE, provenance_body=as_helper(provenance), fill=fill)
    check(kernel, [x, begin, out((4, 7), "f32"), out(40, "index")], oracle, layouts=("contiguous", "mixed"))


PROVENANCE = 'x: I.In[I.f32, ("M", "N")], begin: I.index, y: I.Out[I.f32, ("M", "N")], z: I.Out[I.index, ("K",)]'


def as_helper(kernel):
    """The body of a kernel as a helper."""
    import types

    f = kernel.pyfunc
    return intent.fn(types.FunctionType(f.__code__, f.__globals__, f.__name__))


@intent.fn
def fill(y, z):
    y[:, :] = -7.0
    z[:] = -7


@intent.kernel
def control(x: I.In[I.i32, ("N",)], y: I.Out[I.i32, (5,)], z: I.Out[I.f32, (4,)]):
    N, = x.shape
    visited = 0
    last = I.cast(-1, I.i32)
    for k, i in enumerate(I.domain(1, N, 3)):
        if x[i] == 0:
            continue
        visited = visited + k
        last = I.cast(i, I.i32)
        if x[i] > 90:
            break
    else:
        visited = visited + 1000
    y[0], y[1] = I.cast(visited, I.i32), last
    state = I.zeros((4,), I.f32)
    n = 0
    while n < N and x[n] != 7:
        state = state + I.cast(x[n], I.f32)
        n = n + 1
    z[:] = state
    y[2] = I.cast(n, I.i32)
    total = I.cast(0, I.i32)
    for i in range(3):
        for j in range(i, 4):
            if (i + j) % 2 == 1:
                continue
            if j == 3:
                break
            total = total + x[j] * x[i]
    y[3] = total
    y[4] = x[0] if N > 0 and x[0] > 0 else -1 if N > 0 else -2


@pytest.mark.parametrize("values", [[5, 1, 2, 3, 4, 0, 7, 95, 1, 1, 1], [0, 0, 0, 0, 0], [3, 99, 7, 1, 91], [7, 2, 3, 4]])
def test_control_is_pythons(values):
    x = np.array(values, "i4")

    def oracle(x):
        visited, last = 0, -1
        for k, i in enumerate(range(1, len(x), 3)):
            if x[i] == 0:
                continue
            visited, last = visited + k, i
            if x[i] > 90:
                break
        else:
            visited += 1000
        n = next((i for i, v in enumerate(x) if v == 7), len(x))
        total = 0
        for i in range(3):
            for j in range(i, 4):
                if (i + j) % 2 == 1:
                    continue
                if j == 3:
                    break
                total += int(x[j]) * int(x[i])
        return np.array([visited, last, n, total, x[0] if x[0] > 0 else -1]), np.full(4, x[:n].sum(), "f4")
    check(control, [x, out(5, "i32"), out(4, "f32")], oracle, layouts=("contiguous", "strided"))


@intent.kernel
def points(x: I.In[I.i32, ("M", "N")], y: I.Out[I.i32, ("M", "N")], z: I.Out[I.i32, ("M",)], hits: I.InOut[I.i32, ("M", "N")]):
    M, N = x.shape
    rows, cols = I.domain(0, M), I.domain(0, N)
    for i, j in I.parallel((rows, cols[1:N])):
        y[i, j - 1] = x[i, j]
        I.atomic.add(hits[i, j], 1, order="relaxed")
    for i in I.parallel(I.domain(0, M, 2)):
        best = I.cast(-1, I.i32)
        for j in cols:
            if x[i, j] % 5 == 0:
                best = I.cast(j, I.i32)
                break
        if best < 0:
            continue
        z[i] = best
    for i in I.parallel(rows):
        y[i, N - 1] = x[i, 0]


@pytest.mark.parametrize("shape", [(1, 1), (5, 7), (40, 33)])
def test_each_point_runs_once(shape, rng):
    x = rng.integers(-50, 50, shape).astype("i4")

    def oracle(x, z, hits):
        for i in range(0, shape[0], 2):
            found = np.flatnonzero(x[i] % 5 == 0)
            z[i] = found[0] if len(found) else z[i]
        hits[:, 1:] += 1
        return np.roll(x, -1, axis=1), z, hits
    z = np.full(shape[0], -9, "i4")
    check(points, [x, out(shape, "i32"), z, np.zeros(shape, "i4")], oracle, layouts=("contiguous", "mixed"))
