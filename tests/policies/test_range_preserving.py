"""Programs under ``range_preserving``: promotion, literals, locals, stores and conditions of spec 003, compiled and interpreted."""
import ml_dtypes
import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from intent_numba import kir
from intent_numba.frontend import build_kernel
from tests.support.arrays import out
from tests.support.harness import check, kir_of

kernel = intent.kernel(policy="range_preserving")
LAYOUTS = ("contiguous", "mixed")


def same(k, args, oracle, **options):
    return check(k, args, oracle, layouts=LAYOUTS, **options)


@kernel
def sums(a: I.In[I.i8, ("N",)], b: I.In[I.u8, ("N",)], c: I.In[I.u32, ("N",)], y: I.Out[I.i16, ("N",)], z: I.Out[I.i64, ("N",)],
         narrow: I.Out[I.i8, ("N",)]):
    y[:] = a[:] + b[:]
    z[:] = a[:] - c[:]
    narrow[:] = a[:] * b[:]


def test_promotion_preserves_ranges_and_stores_wrap():
    a, b, c = np.array([-128, 127, -1], np.int8), np.array([255, 255, 0], np.uint8), np.array([2 ** 32 - 1, 0, 5], np.uint32)
    wide = a.astype(np.int64)
    same(sums, [a, b, c, out((3,), np.int16), out((3,), np.int64), out((3,), np.int8)],
         lambda a, b, c: ((wide + b).astype(np.int16), wide - c, (wide * b).astype(np.int8)))


@kernel
def divisions(a: I.In[I.i32, ("N",)], b: I.In[I.u64, ("N",)], x: I.In[I.f64, ("N",)], q: I.Out[I.f32, ("N",)], d: I.Out[I.f64, ("N",)],
              f: I.Out[I.f64, ("N",)], m: I.Out[I.f64, ("N",)]):
    q[:] = a[:] / b[:]
    d[:] = a[:] / x[:]
    f[:] = x[:] // 0.1
    m[:] = a[:] % x[:]


def test_true_division_is_float_and_floor_division_of_floats_is_pythons():
    a, b, x = np.array([7, -7, 1 << 24], np.int32), np.array([2, 3, 5], np.uint64), np.array([0.5, 1.0, -2.5])
    same(divisions, [a, b, x, out((3,), np.float32), out((3,), np.float64), out((3,), np.float64), out((3,), np.float64)],
         lambda a, b, x: (a.astype(np.float32) / b.astype(np.float32), a / x, np.array([v // 0.1 for v in x.tolist()]),
                          np.array([float(v) % w for v, w in zip(a.tolist(), x.tolist())])))


@kernel
def powers(a: I.In[I.i8, ("N",)], u: I.In[I.u8, ("N",)], e: I.In[I.u64, ("N",)], y: I.Out[I.i8, ("N",)], z: I.Out[I.u8, ("N",)],
           x: I.In[I.f32, ("N",)], w: I.Out[I.f32, ("N",)]):
    y[:] = a[:] ** e[:]
    z[:] = I.pow(u[:], 2)
    w[:] = x[:] ** 2


def test_integer_power_keeps_the_dtype_of_the_base():
    a, u, e = np.array([3, -3, 0, 2], np.int8), np.array([20, 255, 0, 16], np.uint8), np.array([5, 300, 0, 7], np.uint64)
    x = np.array([1.5, -2, 0, 3], np.float32)
    same(powers, [a, u, e, out((4,), np.int8), out((4,), np.uint8), x, out((4,), np.float32)],
         lambda a, u, e, x: (np.array([pow(int(v), int(n), 256) for v, n in zip(a, e)]).astype(np.uint8).view(np.int8),
                             np.array([v * v % 256 for v in u.tolist()], np.uint8), x * x))
    assert pow(3, 5, 256) - 256 == -13


@kernel
def literals(x: I.In[I.f64, ("N",)], i: I.In[I.i64, ("N",)], h: I.In[I.f16, ("N",)], a: I.Out[I.f64, ("N",)], b: I.Out[I.f32, ("N",)],
             c: I.Out[I.f16, ("N",)], d: I.Out[I.f32, ("N",)], e: I.Out[I.f64, ("N",)]):
    tenth = 0.1
    a[:] = x[:] * (1.0 / 3.0) + tenth
    b[:] = i[:] * 0.1
    c[:] = h[:] * 0.1
    d[:] = h[:] * 2
    e[:] = I.cast(0.1, I.f64) + 0 * x[:]


def test_float_literals_take_the_precision_they_meet():
    x, i, h = np.array([0.1, 2, 1e300]), np.array([1, 3, 1 << 40]), np.array([1, 0.1, 60000], np.float16)
    got = same(literals,
               [x, i, h, out((3,), np.float64), out((3,), np.float32), out((3,), np.float16), out((3,), np.float32), out((3,), np.float64)],
               None)
    tenth = np.float32(0.1)
    assert np.allclose(got[0], x * (1 / 3) + 0.1, rtol=1e-15, atol=0) and got[4].tolist() == [0.1] * 3
    assert np.array_equal(got[1], i.astype(np.float32) * tenth) and np.array_equal(got[2], h * np.float16(0.1))
    assert np.array_equal(got[3], h.astype(np.float32) * 2)


@kernel
def locals_join(x: I.In[I.f64, ("N",)], a: I.In[I.i8, ("N",)], s: I.Out[I.f64, ()], t: I.Out[I.i32, ()], w: I.Out[I.i64, ("N",)]):
    total = 0.0
    count = 0
    for i in I.domain(0, x.shape[0]):
        total = total + x[i]
        if a[i]:
            count += a[i]
        v = a[i]
        w[i] = v + v
        v = I.cast(1 << 40, I.i64)
        w[i] = w[i] + (v >> 40)
    s[()] = total
    t[()] = count


def test_a_local_has_one_dtype_over_all_assignments():
    x, a = np.array([0.1, 1e-9, 7.0]), np.array([127, 0, -128], np.int8)
    same(locals_join, [x, a, out((), np.float64), out((), np.int32), out((3,), np.int64)],
         lambda x, a: (np.float64(sum(x.tolist())), np.int32(a.sum(dtype=np.int32)), 2 * a.astype(np.int64) + 1))


@kernel
def truths(x: I.In[I.f32, ("N",)], y: I.In[I.i32, ("N",)], c: I.Out[I.i32, ("N",)], m: I.Out[I.f32, ("N",)], n: I.Out[I.i32, ("N",)],
           s: I.Out[I.i32, ("N",)]):
    for i in I.domain(0, x.shape[0]):
        c[i] = (x[i] < 1) + (y[i] == 2) * 2
        m[i] = min(x[i], y[i], 5.0)
        if x[i] and not y[i]:
            n[i] = 1
        else:
            n[i] = x[i] >= y[i]
    s[:] = I.select(x[:], y[:], I.cast(-1, I.i8))


def test_numbers_are_conditions_and_conditions_numbers():
    x, y = np.array([np.nan, 0.0, -0.0, 3, -np.inf], np.float32), np.array([0, 2, -1, 7, 0], np.int32)
    truth = x != 0

    def oracle(x, y):
        smallest = np.fmin(np.fmin(x, y.astype(np.float32)), np.float32(5))
        picked = np.where(truth & (y == 0), 1, x >= y), np.where(truth, y, -1)
        return ((x < 1) + (y == 2) * 2).astype(np.int32), smallest, *(v.astype(np.int32) for v in picked)
    same(truths, [x, y, *(out((5,), dt) for dt in (np.int32, np.float32, np.int32, np.int32))], oracle)


@kernel
def compared(a: I.In[I.i32, ("N",)], b: I.In[I.u32, ("N",)], y: I.Out[I.bool, ("N",)], m: I.Out[I.i64, ("N",)], k: I.Out[I.i8, ("N",)],
             small: I.In[I.i8, ("N",)], by: I.In[I.i64, ("N",)]):
    y[:] = a[:] < b[:]
    m[:] = I.maximum(a[:], b[:])
    k[:] = small[:] << by[:]


def test_comparisons_are_of_values_and_shifts_keep_the_left_dtype():
    a, b = np.array([-1, 5, 2 ** 31 - 1], np.int32), np.array([1, 5, 2 ** 32 - 1], np.uint32)
    small, by = np.array([1, -128, 3], np.int8), np.array([7, 1, 6])
    same(compared, [a, b, out((3,), np.bool_), out((3,), np.int64), out((3,), np.int8), small, by],
         lambda a, b, s, by: (a.astype(np.int64) < b, np.maximum(a.astype(np.int64), b), (s.astype(np.int64) << by).astype(np.int8)))


@kernel
def narrow_floats(h: I.In[I.f16, ("N",)], b: I.In[I.bf16, ("N",)], y: I.Out[I.f32, ("N",)], z: I.Out[I.f16, ("N",)],
                  r: I.Out[I.f32, ("N",)]):
    y[:] = h[:] * b[:]
    z[:] = h[:] * h[:]
    r[:] = I.sqrt(I.cast(h[:], I.i32)) - h[:]


def test_narrow_floats_stay_among_themselves():
    h, b = np.array([1.5, 300, 0.1], np.float16), np.array([2, 0.3, -1], ml_dtypes.bfloat16)
    same(narrow_floats, [h, b, out((3,), np.float32), out((3,), np.float16), out((3,), np.float32)],
         lambda h, b: (h.astype(np.float32) * b.astype(np.float32), h * h,
                       np.sqrt(h.astype(np.int32).astype(np.float32)) - h.astype(np.float32)))


@kernel
def structured(a: I.In[I.i8, ("N", "K")], b: I.In[I.f16, ("K", "M")], x: I.In[I.f32, ("N",)], n: I.Out[I.i32, ()],
               c: I.Out[I.f32, ("N", "M")],
               s: I.Out[I.i32, ("N",)], e: I.Out[I.bool, ()]):
    n[()] = I.reduce.sum(x[:] > 0, axis=0)
    c[:, :] = I.matmul(a[:, :], b[:, :], acc_dtype=I.f32)
    s[:] = I.reduce.sum(a[:, :], axis=1)
    e[()] = I.reduce.any(x[:], axis=0)


def test_reductions_and_contractions_promote():
    rng = np.random.default_rng(3)
    a, b, x = rng.integers(-128, 127, (3, 5)).astype(np.int8), rng.integers(-4, 4, (5, 2)).astype(np.float16), np.array([1, -1, np.nan],
                                                                                                                        np.float32)
    same(structured, [a, b, x, out((), np.int32), out((3, 2), np.float32), out((3,), np.int32), out((), np.bool_)],
         lambda a, b, x: (np.int32((x > 0).sum()), a.astype(np.float32) @ b.astype(np.float32), a.sum(1, dtype=np.int32), np.bool_(True)))


@kernel
def guarded(a: I.In[I.i32, ("N",)], b: I.In[I.i32, ("N",)], y: I.Out[I.i32, ("N",)], z: I.Out[I.f32, ("N",)], x: I.In[I.f32, ("N",)]):
    for i in I.domain(0, a.shape[0]):
        y[i] = a[i] // b[i] if b[i] != 0 else 0
    z[:] = (x[:] - x[:]) + x[:] * 0


def test_guards_are_honoured_and_nothing_is_folded():
    a, b, x = np.array([7, -7, 5], np.int32), np.array([0, 3, -2], np.int32), np.array([np.inf, np.nan, -1], np.float32)
    same(guarded, [a, b, out((3,), np.int32), out((3,), np.float32), x],
         lambda a, b, x: (np.array([0, -3, -3], np.int32), (x - x) + x * np.float32(0)))


def test_what_has_no_dtype_is_refused():
    def build(parameters, body):
        scope = {"I": I}
        exec(f"def k({parameters}):\n    {body}\n", scope)
        return lambda: build_kernel(scope["k"], {}, "range_preserving")
    view = "a: I.In[I.{}, ('N',)], b: I.In[I.{}, ('N',)], y: I.Out[I.{}, ('N',)]"
    for dts, body, words in ((("i64", "u64", "f32"), "y[:] = a[:] + b[:]", "explicit integer cast"),
                             (("u64", "u64", "u64"), "y[:] = a[:] + 1", "u64 and i32"),
                             (("i32", "i32", "f32"), "y[:] = a[:] ** -1", "negative exponent"),
                             (("f32", "f32", "i32"), "y[:] = a[:]", "explicit cast"),
                             (("f64", "f64", "f32"), "y[:] = a[:]", "explicit cast"),
                             (("i8", "i8", "i8"), "y[:] = a[:] + (1 << 64)", "neither i64 nor u64")):
        with pytest.raises(intent.IntentTypeError, match=words):
            build(view.format(*dts), body)()
    assert build(view.format("i64", "u64", "f32"), "y[:] = a[:] / b[:]")() is not None


@kernel
def shapes(x: I.In[I.f32, ("M", "N")], y: I.Out[I.f32, ("M",)], p: I.Out[I.i64, ("M",)]):
    M, N = x.shape
    last = N - 1
    for m in I.parallel(I.domain(0, M)):
        y[m] = x[m, last] + x[m, (m + 1) % N]
        p[m] = m * 2 + N


def test_index_arithmetic_stays_index():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    same(shapes, [x, out((3,), np.float32), out((3,), np.int64)],
         lambda x: (x[:, 3] + x[np.arange(3), (np.arange(3) + 1) % 4], np.arange(3) * 2 + 4))


@intent.fn
def early(x, y):
    if x > 0:
        return x
    return y * 0.5


@intent.fn
def annotated(x: I.f32, y):
    return x + y


@kernel
def helpers(a: I.In[I.i32, ("N",)], y: I.Out[I.f32, ("N",)], z: I.Out[I.f32, ("N",)]):
    for i in I.domain(0, a.shape[0]):
        y[i] = early(a[i], a[i])
        z[i] = annotated(a[i], 2)


def test_helpers_take_the_policy_of_their_caller():
    same(helpers, [np.array([-3, 4, 0], np.int32), out((3,), np.float32), out((3,), np.float32)],
         lambda a: (np.where(a > 0, a, a * np.float32(0.5)).astype(np.float32), (a + 2).astype(np.float32)))


@kernel
def control(n: I.i32, x: I.In[I.f64, ("N",)], steps: I.Out[I.i64, ()], f: I.Out[I.f64, ()], r: I.Out[I.f32, ()]):
    k = n
    count = 0
    while k:
        k = k >> 1
        count += 1
    steps[()] = count
    s = 0.0
    if n > 3:
        s = 0.1
    f[()] = s
    best = I.record(s=0, m=0.0)
    for i in I.domain(0, x.shape[0]):
        best = I.record(s=best.s + (x[i] > 0), m=max(best.m, I.cast(x[i], I.f32)))
    r[()] = best.s + best.m


def test_loops_merges_and_records():
    same(control, [9, np.array([0.5, -1, 2.25]), out((), np.int64), out((), np.float64), out((), np.float32)],
         lambda n, x: (np.int64(4), np.float64(0.1), np.float32(4.25)))


@kernel
def updates(a: I.In[I.i8, ("N",)], y: I.InOut[I.i32, (4,)], r: I.InOut[I.f32, (4,)], g: I.Out[I.i64, ("N",)]):
    for i in I.parallel(I.domain(0, a.shape[0])):
        I.atomic.add(y[a[i]], a[i], order="relaxed")
    I.scatter_reduce(r, index=(a[:],), value=a[:], combine=I.add)
    g[:] = I.gather(a, index=(I.indices(I.domain(0, a.shape[0])),), valid=a[:] > 1, fill=-1) + 0


def test_updates_convert_like_stores():
    a = np.array([0, 1, 3, 1], np.int8)
    same(updates, [a, np.zeros(4, np.int32), np.zeros(4, np.float32), out((4,), np.int64)],
         lambda a, y, r: (np.array([0, 2, 0, 3], np.int32), np.array([0, 2, 0, 3], np.float32), np.where(a > 1, a, -1).astype(np.int64)))


@kernel
def constants(x: I.In[I.f32, ("M", "N")], rows: I.Out[I.f32, ("M",)], columns: I.Out[I.f32, ("N",)]):
    axis = 1
    rows[:] = I.reduce.sum(x[:, :], axis=axis)
    axis = 0
    columns[:] = I.reduce.sum(x[:, :], axis=axis)


def test_a_name_of_small_literals_stays_known():
    same(constants, [np.arange(6, dtype=np.float32).reshape(2, 3), out((2,), np.float32), out((3,), np.float32)],
         lambda x: (x.sum(1), x.sum(0)))


@kernel
def weak_expressions(x: I.In[I.f64, ("N",)], f: I.In[I.f32, ("N",)], c: I.In[I.bool, ("N",)], a: I.Out[I.f64, ("N",)],
                     b: I.Out[I.f32, ("N",)],
                     d: I.Out[I.f64, ("N",)], e: I.Out[I.f32, ("N",)], g: I.Out[I.f64, ("N",)]):
    root = I.sqrt(2.0) * 0.1
    a[:] = x[:] * root
    b[:] = f[:] * root
    for i in I.domain(0, x.shape[0]):
        d[i] = x[i] * (0.1 if c[i] else 0.7)
        e[i] = f[i] * (0.1 if c[i] else 0.7)
        t = 0.3
        if c[i]:
            t = 0.2
        g[i] = t


def test_weak_expressions_are_computed_in_the_dtype_they_meet():
    x, c = np.array([1.0, 3.0]), np.array([True, False])
    f, single = x.astype(np.float32), np.float32
    same(weak_expressions, [x, f, c, *(out((2,), dt) for dt in (np.float64, np.float32, np.float64, np.float32, np.float64))],
         lambda x, f, c: (x * (np.sqrt(2.0) * 0.1), f * (np.sqrt(single(2)) * single(0.1)), x * np.where(c, 0.1, 0.7),
                          f * np.where(c, single(0.1), single(0.7)), np.where(c, 0.2, 0.3)))
    kinds = {op.result.type.dt for op in kir.walk(kir_of(weak_expressions).body) if op.kind == "sqrt"}
    assert kinds == {"f32", "f64"}
