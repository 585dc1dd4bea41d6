"""Literals, dtypes, FMA scope, shapes, indexing and structured operations, run by the reference interpreter."""
import ml_dtypes
import numpy as np
import pytest

import intent_numba.language as I
from intent_numba.errors import IntentShapeError, IntentTypeError
from intent_numba.frontend import build_kernel
from intent_numba.kir import walk
from intent_numba.language.functions import Helper

from .front import f32, i32, interpret, kinds

ALL = {"i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8", "f16": "f2", "f32": "f4",
       "f64": "f8", "bf16": ml_dtypes.bfloat16, "f8e5m2": ml_dtypes.float8_e5m2, "f8e4m3fn": ml_dtypes.float8_e4m3fn}


# --- literals ----------------------------------------------------------------------------------------------------------

def literal_kernel(dt, value):
    def kernel(x: I.In[dt, (1,)], y: I.Out[dt, (1,)], v: I.Constexpr[type(value)]):
        y[0] = x[0] + v
    return build_kernel(kernel, {"v": value})


@pytest.mark.parametrize("dt, value, fine", [
    ("i8", 128, False), ("i8", -128, True), ("u8", 255, True), ("u8", 256, False), ("u8", -1, False), ("f32", 16777217, False),
    ("f32", 1, True), ("i32", 1.0, False), ("f16", 1e5, False), ("f16", 65504.0, True), ("f32", True, False),
    ("u64", 18446744073709551615, True), ("i64", 9223372036854775808, False), ("f64", 9007199254740993, False), ("bf16", 257, False),
    ("bf16", 256, True), ("f8e4m3fn", float("inf"), False), ("f32", float("inf"), True), ("f32", 0.1, True), ("bool", True, None)])
def test_literals_take_the_dtype_they_meet(dt, value, fine):
    if fine is None:
        with pytest.raises(IntentTypeError, match="not defined for bool"):
            literal_kernel(I.dtype(dt), value)
    elif fine:
        literal_kernel(I.dtype(dt), value)
    else:
        with pytest.raises(IntentTypeError):
            literal_kernel(I.dtype(dt), value)


def test_literals_are_rounded_into_their_dtype():
    for dt, numpy_dtype in ALL.items():
        if dt[0] not in "fb":
            continue
        kernel = literal_kernel(I.dtype(dt), 0.1)
        (value,) = [op.attrs["value"] for op in walk(kernel.body) if op.kind == "const" and op.result.type.dt == dt]
        assert value == float(np.dtype(numpy_dtype).type(0.1))


def test_a_named_float_is_f64():
    def kernel(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, (1,)]):
        acc = 0.0
        for i in range(x.shape[0]):
            acc = acc + x[i]
        y[0] = acc
    with pytest.raises(IntentTypeError, match=r"I.cast\(0.0, I.f32\)"):
        build_kernel(kernel)


def test_named_integers_stay_known():
    def kernel(x: I.In[I.f32, (2,)], k: I.In[I.u8, (2,)], y: I.Out[I.f32, (2,)], z: I.Out[I.u8, (2,)]):
        n = 2
        y[:] = x[:] * n
        z[:] = k[:] + n
    y, z = np.zeros(2, "f4"), np.zeros(2, "u1")
    interpret(kernel, f32(1, 2), np.array([3, 255], "u1"), y, z)
    assert y.tolist() == [2, 4] and z.tolist() == [5, 1]


def test_index_is_not_i64():
    def kernel(x: I.In[I.i64, ("N",)], y: I.Out[I.i64, ("N",)]):
        for i in range(x.shape[0]):
            y[i] = x[i] + i
    with pytest.raises(IntentTypeError, match="i64 and index do not mix"):
        build_kernel(kernel)


def test_a_weak_integer_meets_index_and_i64():
    def kernel(y: I.Out[I.i64, (1,)], z: I.Out[I.index, (1,)]):
        n = 0
        for i in range(4):
            n = n + 3
        y[0] = I.cast(1, I.i64) + n
        z[0] = n + y.shape[0]
    y, z = np.zeros(1, "i8"), np.zeros(1, "i8")
    interpret(kernel, y, z)
    assert (y[0], z[0]) == (13, 13)


@pytest.mark.parametrize("dt", list(ALL))
def test_every_dtype_goes_through(dt):
    d = I.dtype(dt)

    def kernel(x: I.In[d, (3,)], y: I.Out[d, (3,)], z: I.Out[I.bool, (3,)], w: I.Out[I.f32, (3,)]):
        v = x[:]
        y[:] = v * 2 - 1 + I.full((3,), 1, d)
        z[:] = v > 2
        w[:] = I.cast(I.select(v == 1, v, 3), I.f32)
    x = np.array([1, 2, 3]).astype(ALL[dt])
    y, z, w = np.zeros_like(x), np.zeros(3, bool), np.zeros(3, "f4")
    interpret(kernel, x, y, z, w)
    assert [float(v) for v in y] == [2, 4, 6] and z.tolist() == [False, False, True] and w.tolist() == [1, 3, 3]


def test_integer_arithmetic_is_pythons():
    def kernel(a: I.In[I.i8, ("N",)], b: I.In[I.i8, ("N",)], q: I.Out[I.i8, ("N",)], r: I.Out[I.i8, ("N",)]):
        q[:] = a[:] // b[:]
        r[:] = a[:] % b[:]
    a, b = np.array([-7, 7, -7, 7], "i1"), np.array([3, -3, -3, 3], "i1")
    q, r = np.zeros_like(a), np.zeros_like(a)
    interpret(kernel, a, b, q, r)
    assert q.tolist() == [-3, -3, 2, 2] and r.tolist() == [2, -2, -1, 1]


def test_power_shift_and_logic():
    def kernel(a: I.In[I.i32, ("N",)], x: I.In[I.f32, ("N",)], y: I.Out[I.i32, (5, "N")], z: I.Out[I.f32, ("N",)], b: I.In[I.bool, ("N",)],
               c: I.Out[I.bool, ("N",)]):
        v = a[:]
        y[0, :] = v ** 3
        y[1, :] = v << 2
        y[2, :] = v >> 1
        y[3, :] = ~v ^ 5
        y[4, :] = -v | 1
        z[:] = x[:] ** 2.0
        c[:] = ~b[:] & True
    a, x, b = i32(-3, 0, 5), f32(1, 2, 3), np.array([True, False, True])
    y, z, c = np.zeros((5, 3), "i4"), np.zeros(3, "f4"), np.zeros(3, bool)
    interpret(kernel, a, x, y, z, b, c)
    assert y.tolist() == [(a ** 3).tolist(), (a << 2).tolist(), (a >> 1).tolist(), (~a ^ 5).tolist(), (-a | 1).tolist()]
    assert z.tolist() == [1, 4, 9] and c.tolist() == [False, True, False]


# --- FMA, decision 17 --------------------------------------------------------------------------------------------------

A = np.float32(1 + 2.0 ** -12)
C = np.float32(-(1 + 2.0 ** -11))


def test_fma_stays_inside_one_expression():
    def kernel(a: I.f32, c: I.f32, y: I.Out[I.f32, (4,)]):
        p = a * a
        s = p + c
        y[0] = s
        y[1] = p
        y[2] = p - p
        y[3] = a * a + c
    y = np.zeros(4, "f4")
    interpret(kernel, A, C, y)
    assert y.tolist() == [0, 1 + 2.0 ** -11, 0, 2.0 ** -24]


@Helper
def times(a, b):
    return a * b


FMA = [
    ("y[0] = a * b + c", "fma"), ("y[0] = c + a * b", "fma"), ("y[0] = c - a * b", "fma"), ("y[0] = a * b - c", "fma"),
    ("y[0] = a * b + a * c", "fma"), ("c += a * b\n    y[0] = c", "fma"), ("y[0] = I.add(I.multiply(a, b), c)", "fma"),
    ("y[0] = I.subtract(c, a * b)", "fma"), ("y[0] = (a * b) + c", "fma"), ("y[0] = a * b + (c if c > 0.0 else a)", "fma"),
    ("p = a * b\n    y[0] = p + c", None), ("y[0] = (p := a * b) + c", None), ("y[0] = -(a * b) + c", None),
    ("y[0] = times(a, b) + c", None), ("y[0] = (a * b if c > 0.0 else a) + c", None), ("t = (a * b, c)\n    y[0] = t[0] + t[1]", None),
    ("y[0] = I.reduce.sum(I.full((3,), a, I.f32) * b, axis=0)", None), ("v[:] = a * b + v[:]", None), ("v[:] = v[:] * b + c", "fma"),
    ("h[0] = h[0] * h[1] + h[2]", None),
]


@pytest.mark.parametrize("body, fused", FMA, ids=[b.replace("\n    ", "; ") for b, _ in FMA])
def test_where_an_fma_forms(body, fused):
    scope = {"I": I, "times": times}
    exec("def kernel(a: I.f32, b: I.f32, c: I.f32, y: I.Out[I.f32, (1,)], v: I.InOut[I.f32, ('N',)], h: I.InOut[I.f16, (3,)]):\n    "
         + body + "\n", scope)
    found = kinds(scope["kernel"])
    assert ("fma" in found) == (fused is not None)
    if fused:
        assert found.count("mul") == (1 if body.count("*") == 2 and "a * c" in body else 0)


def test_fma_operand_signs():
    def kernel(a: I.f32, b: I.f32, c: I.f32, y: I.Out[I.f32, (5,)]):
        y[0] = a * b + c
        y[1] = a * b - c
        y[2] = c - a * b
        y[3] = a * b - b * c
        y[4] = a * b + b * c
    y = np.zeros(5, "f4")
    interpret(kernel, np.float32(2), np.float32(3), np.float32(10), y)
    assert y.tolist() == [16, -4, 4, -24, 36]


# --- shapes ------------------------------------------------------------------------------------------------------------

def test_shape_operations():
    def kernel(x: I.In[I.f32, ("M", "N")], t: I.Out[I.f32, ("N", "M")], f: I.Out[I.f32, ("K",)], j: I.Out[I.f32, ("M", "N", 2)],
               e: I.Out[I.f32, ("M", 1, "N")], s: I.Out[I.f32, ()]):
        M, N = x.shape
        v = x[:, :]
        t[:, :] = I.transpose(v)
        f[0:M * N] = I.reshape(v, (-1,))
        j[:, :, :] = I.join(v, v * 2)
        e[:, :, :] = v[:, None, :]
        s[()] = I.reduce.sum(I.permute(v, (1, 0)), axis=(0, 1))
    x = np.arange(6, dtype="f4").reshape(2, 3)
    t, f, j, e, s = np.zeros((3, 2), "f4"), np.zeros(6, "f4"), np.zeros((2, 3, 2), "f4"), np.zeros((2, 1, 3), "f4"), np.zeros((), "f4")
    interpret(kernel, x, t, f, j, e, s)
    assert (t == x.T).all() and (f == x.ravel()).all() and (j[..., 1] == 2 * x).all() and (e[:, 0] == x).all() and s == 15


def test_domains_as_extents_and_infer():
    def kernel(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, ("N",)]):
        N, = x.shape
        rows = I.domain(0, N)
        part = rows[1:4]
        z = I.zeros((rows, 2), I.f32) + I.reshape(x[rows], (rows, 1))
        y[part] = I.reduce.sum(z, axis=1)[part] + I.full((part,), 100, I.f32)
    y = np.zeros(5, "f4")
    interpret(kernel, f32(1, 2, 3, 4, 5), y)
    assert y.tolist() == [0, 104, 106, 108, 0]


def test_empty_and_dynamic_domains():
    def kernel(n: I.i32, y: I.Out[I.i32, (3,)]):
        count = I.cast(0, I.i32)
        for i in I.domain(5, n):
            count = count + 1
        y[0] = count
        d = I.domain(0, n)
        y[1] = I.reduce.sum(I.full((d,), 2, I.i32), axis=0)
        y[2] = I.cast(I.reduce.sum(I.indices(I.domain(1, n, 3)), axis=0), I.i32)
    for n in (-2, 0, 5, 9):
        y = i32(7, 7, 7)
        interpret(kernel, n, y)
        assert y.tolist() == [max(0, n - 5), 2 * max(0, n), sum(range(1, n, 3))]


def test_equal_extents_by_the_same_value():
    def kernel(x: I.In[I.f32, ("N",)], n: I.index, y: I.Out[I.f32, ("N",)]):
        a = x[0:n]
        b = x[1:n + 1]
        y[0:n] = a + b + I.zeros((n,), I.f32)
    y = np.zeros(4, "f4")
    interpret(kernel, f32(1, 2, 3, 4), 3, y)
    assert y.tolist() == [3, 5, 7, 0]


def test_one_integer_expression_is_one_extent():
    def kernel(x: I.In[I.f32, ("N",)], n: I.i32, y: I.Out[I.f32, ("N",)]):
        half = x.shape[0] // 2
        y[0:half] = x[0:x.shape[0] // 2] + I.zeros((half,), I.f32)
        m = I.cast(n, I.index)
        y[4:4 + m // 3] = I.full((I.cast(n, I.index) // 3,), 5, I.f32)
    y = np.zeros(8, "f4")
    interpret(kernel, f32(1, 2, 3, 4, 5, 6, 7, 8), 7, y)
    assert y.tolist() == [1, 2, 3, 4, 5, 5, 0, 0]


def test_an_element_of_rank_zero_is_a_scalar():
    def kernel(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, (5,)]):
        square = I.dot(x[:], x[:], acc_dtype=I.f32)
        y[0] = square[()] if square[()] > 1.0 else I.cast(0.0, I.f32)
        if square[...] > 1.0:
            y[1] = I.sqrt(square)[()]
        at = I.full((), 1, I.i32)
        y[2] = x[at] if x[at] > 0.0 else -x[at]
        cell = I.buffer((), I.f32, init=square)
        while cell[()] > 10.0:
            cell[()] = cell[()] - 10.0
        y[3] = cell[()]
        y[4] = I.gather(square, index=(), valid=square[()] > 30.0, fill=7.0)
    y = np.zeros(5, "f4")
    interpret(kernel, f32(3, -4), y)
    assert y.tolist() == [25, 5, 4, 5, 7]


def test_unrelated_extents_are_refused():
    def kernel(x: I.In[I.f32, ("N",)], n: I.index, m: I.index, y: I.Out[I.f32, ("N",)]):
        y[0:n] = x[0:m]
    with pytest.raises(IntentShapeError, match="not known to be equal"):
        build_kernel(kernel)


# --- indexing ------------------------------------------------------------------------------------------------------------

def test_data_dependent_indices():
    def kernel(x: I.In[I.f32, ("M", "N")], r: I.In[I.i32, ("K",)], c: I.In[I.i32, ("K",)], pair: I.Out[I.f32, ("K",)],
               grid: I.Out[I.f32, ("K", "K")], mixed: I.Out[I.f32, ("K", "N")], tail: I.Out[I.f32, ("M", "K")]):
        pair[:] = x[r[:], c[:]]
        grid[:, :] = x[r[:][:, None], c[:][None, :]]
        mixed[:, :] = x[r[:], :]
        tail[:, :] = x[:, c[:]]
    x = np.arange(12, dtype="f4").reshape(3, 4)
    r, c = i32(2, 0), i32(1, 3)
    pair, grid, mixed, tail = np.zeros(2, "f4"), np.zeros((2, 2), "f4"), np.zeros((2, 4), "f4"), np.zeros((3, 2), "f4")
    interpret(kernel, x, r, c, pair, grid, mixed, tail)
    assert (pair == x[r, c]).all() and (grid == x[np.ix_(r, c)]).all() and (mixed == x[r]).all() and (tail == x[:, c]).all()


def test_gather_guards_the_access():
    def kernel(x: I.In[I.f32, ("N",)], i: I.In[I.i32, ("K",)], y: I.Out[I.f32, ("K",)], z: I.Out[I.f32, ("K",)]):
        at = i[:]
        y[:] = I.gather(x, index=at, valid=at >= 0, fill=-1)
        z[:] = I.gather(x[:] * 2, index=(at,), valid=at >= 0)
    y, z = np.zeros(3, "f4"), np.zeros(3, "f4")
    interpret(kernel, f32(5, 6), i32(1, -7, 0), y, z)
    assert y.tolist() == [6, -1, 5] and z.tolist() == [12, 0, 10]


def test_writes():
    def kernel(x: I.In[I.f32, ("K",)], i: I.In[I.i32, ("K",)], y: I.InOut[I.f32, ("N",)]):
        I.scatter_unique(y, index=i[:], value=x[:], valid=x[:] > 0)
        b = I.buffer((2, 2), I.f32, init=1.5)
        I.store(b, (0, 1), 3, valid=y.shape[0] > 100)
        I.store(b, (1, 0), 4)
        y[4:6] = b[1, :]
        y[6] += I.mutable_load(b, (0, 1))
    y = np.zeros(7, "f4")
    interpret(kernel, f32(1, -2, 3), i32(3, 0, 1), y)
    assert y.tolist() == [0, 3, 0, 1, 4, 1.5, 1.5]


def test_transposing_coordinate_read():
    def kernel(m: I.InOut[I.f32, ("N", "N")]):
        N = m.shape[0]
        r = I.indices(I.domain(0, N))
        m[:, :] = m[r[None, :], r[:, None]]
    m = np.arange(9, dtype="f4").reshape(3, 3)
    want = m.T.copy()
    interpret(kernel, m)
    assert (m == want).all()


def test_reads_are_snapshots():
    def kernel(a: I.InOut[I.f32, ("N",)], y: I.Out[I.f32, (2,)]):
        t = a[0]
        whole = a[:]
        a[0] = 9
        y[0] = t
        y[1] = whole[0]
    y = np.zeros(2, "f4")
    interpret(kernel, f32(4, 5), y)
    assert y.tolist() == [4, 4]


def test_subregions_keep_absolute_coordinates():
    def kernel(y: I.Out[I.index, ("N",)], z: I.Out[I.index, (1,)]):
        cols = I.domain(0, y.shape[0])
        part = cols[2:5]
        y[part] = I.indices(part) * 10
        inner = part[3:5]
        z[0] = I.reduce.sum(I.indices(inner), axis=0)
    y, z = np.zeros(6, "i8"), np.zeros(1, "i8")
    interpret(kernel, y, z)
    assert y.tolist() == [0, 0, 20, 30, 40, 0] and z[0] == 7


def test_ragged_groups():
    def kernel(x: I.In[I.f32, ("R",)], offsets: I.In[I.i32, ("G1",)], order: I.In[I.i32, ("R",)], y: I.Out[I.f32, ("G",)],
               z: I.Out[I.f32, ("G",)]):
        plain = I.ragged(I.domain(0, y.shape[0]), I.domain(0, x.shape[0]), offsets)
        mapped = I.ragged(I.domain(0, y.shape[0]), I.domain(0, x.shape[0]), offsets, order)
        for g in I.parallel(plain.outer):
            y[g] = I.reduce.sum(x[plain[g]], axis=0)
            z[g] = I.reduce.sum(x[I.members(mapped[g])], axis=0)
    y, z = np.zeros(3, "f4"), np.zeros(3, "f4")
    interpret(kernel, f32(1, 2, 4, 8), i32(0, 1, 1, 4), i32(3, 2, 1, 0), y, z)
    assert y.tolist() == [1, 0, 14] and z.tolist() == [8, 0, 7]


# --- structured --------------------------------------------------------------------------------------------------------

@Helper
def peak_and_total(a, b):
    return I.record(peak=I.maximum(a.peak, b.peak), total=a.total + b.total)


@Helper
def longest(a, b):
    if a > b:
        return a
    return b


def test_reductions():
    def kernel(x: I.In[I.f32, ("M", "N")], h: I.In[I.f16, ("N",)], y: I.Out[I.f32, (8,)], k: I.Out[I.index, ("M",)],
               v: I.Out[I.f32, ("M",)]):
        t = x[:, :]
        y[0] = I.reduce.max(t, axis=(0, 1))
        y[1] = I.reduce.sum(h[:], axis=0)
        y[2] = I.reduce.prod(x[0, :], axis=0)
        y[3] = I.select(I.reduce.any(x[0, :] > 2, axis=0), 1.0, I.cast(0, I.f32))
        r = I.reduce(I.record(peak=t, total=t), axis=(0, 1), identity=I.record(peak=-I.inf, total=0), combine=peak_and_total)
        y[4] = r.peak
        y[5] = r.total
        y[6] = I.reduce(x[:, 0], axis=0, identity=-I.inf, combine=longest)
        y[7] = I.reduce(x[:, 0], axis=-1, identity=0, combine=I.add)
        v[:], k[:] = I.arg_reduce.max(t, axis=1)
    x = np.arange(6, dtype="f4").reshape(2, 3) + 1
    y, k, v = np.zeros(8, "f4"), np.zeros(2, "i8"), np.zeros(2, "f4")
    interpret(kernel, x, np.array([65504, 65504, 1], "f2"), y, k, v)
    assert y.tolist() == [6, 131009, 6, 1, 6, 21, 4, 5] and k.tolist() == [2, 2] and v.tolist() == [3, 6]


def test_scans():
    def kernel(x: I.In[I.i8, ("N",)], a: I.Out[I.i32, ("N",)], b: I.Out[I.i32, ("N",)], c: I.Out[I.i8, ("N",)], d: I.Out[I.i8, ("N",)]):
        v = x[:]
        a[:] = I.cumsum(v, axis=0)
        b[:] = I.cumsum(v, axis=0, inclusive=False, reverse=True)
        c[:] = I.cummax(v, axis=0, inclusive=False)
        d[:] = I.scan(v, axis=0, identity=-128, combine=longest)
    x = np.array([3, 1, 100, 100], "i1")
    a, b, c, d = np.zeros(4, "i4"), np.zeros(4, "i4"), np.zeros(4, "i1"), np.zeros(4, "i1")
    interpret(kernel, x, a, b, c, d)
    assert a.tolist() == [3, 4, 104, 204] and b.tolist() == [201, 200, 100, 0]
    assert c.tolist() == [-128, 3, 3, 100] and d.tolist() == [3, 3, 100, 100]


def test_contractions():
    def kernel(a: I.In[I.f32, ("B", "M", "K")], b: I.In[I.f32, ("K", "N")], y: I.Out[I.f32, ("B", "M", "N")], w: I.Out[I.f32, ("B", "M")],
               o: I.Out[I.f32, ("K", "K")], d: I.Out[I.i32, ()], q: I.In[I.i8, (2,)], u: I.Out[I.f32, ("N",)]):
        y[:, :, :] = I.matmul(a[:, :, :], b[:, :], acc_dtype=I.f32)
        w[:, :] = I.matvec(a[:, :, :], b[:, 0], acc_dtype=I.f32)
        o[:, :] = I.outer(b[:, 0], b[:, 1])
        d[()] = I.dot(q[:], q[:], acc_dtype=I.i32)
        u[:] = I.vecmat(a[0, 0, :], b[:, :], acc_dtype=I.f32)
    a, b = np.arange(12, dtype="f4").reshape(2, 2, 3), np.arange(6, dtype="f4").reshape(3, 2)
    y, w, o, d, u = np.zeros((2, 2, 2), "f4"), np.zeros((2, 2), "f4"), np.zeros((3, 3), "f4"), np.zeros((), "i4"), np.zeros(2, "f4")
    interpret(kernel, a, b, y, w, o, d, np.array([127, 127], "i1"), u)
    assert (y == a @ b).all() and (w == a @ b[:, 0]).all() and (o == np.outer(b[:, 0], b[:, 1])).all() and d == 32258
    assert (u == a[0, 0] @ b).all()


def test_generic_contract_and_batch_broadcast():
    def kernel(a: I.In[I.f32, (2, 3, 4)], b: I.In[I.f32, (3, 4, 5)], y: I.Out[I.f32, (2, 3, 5)], c: I.In[I.f32, (2, 1, 3, 4)],
               d: I.In[I.f32, (7, 4, 5)], z: I.Out[I.f32, (2, 7, 3, 5)], t: I.Out[I.f32, (5, 3)]):
        y[:, :, :] = I.contract(a[:, :, :], b[:, :, :], reduce=((2, 1),), batch=((1, 0),), acc_dtype=I.f32)
        z[:, :, :, :] = I.matmul(c[:, :, :, :], d[:, :, :], acc_dtype=I.f32)
        t[:, :] = I.matmul(d[0, :, :], a[0, :, :], acc_dtype=I.f32, transpose_lhs=True, transpose_rhs=True)
    rng = np.random.default_rng(0)
    a, b, c, d = (rng.integers(-4, 5, s).astype("f4") for s in ((2, 3, 4), (3, 4, 5), (2, 1, 3, 4), (7, 4, 5)))
    y, z, t = np.zeros((2, 3, 5), "f4"), np.zeros((2, 7, 3, 5), "f4"), np.zeros((5, 3), "f4")
    interpret(kernel, a, b, y, c, d, z, t)
    assert (y == np.einsum("bmk,mkn->bmn", a, b)).all() and (z == c @ d).all() and (t == d[0].T @ a[0].T).all()


def test_a_product_handed_to_reduce_is_rounded_first():
    def kernel(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, (1,)]):
        y[0] = I.reduce.sum(x[:] * x[:], axis=0)
    assert "mul" in kinds(kernel) and "contract" not in kinds(kernel)


def test_contract_forms():
    def kernel(a: I.In[I.f32, (3, 4)], b: I.In[I.f32, (4, 5)], y: I.Out[I.f32, (3, 5)], z: I.Out[I.f32, (3,)]):
        y[:, :] = I.matmul(a[:, :], b[:, :], acc_dtype=I.f32)
        z[:] = I.matvec(a[:, :], b[:, 0], acc_dtype=I.f32)
    forms = [op.attrs["form"] for op in walk(build_kernel(kernel).body) if op.kind == "contract"]
    assert forms == ["chain", "tree"]
