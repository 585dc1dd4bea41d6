"""Programs under ``checked``: exact integers that raise, binary32 steps in order, by the reference and by compiled code."""
import math

import numba
import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from intent_numba import kir
from intent_numba.frontend import build_kernel
from tests.support.arrays import out
from tests.support.harness import check, interpret, kir_of

kernel = intent.kernel(policy="checked")
LAYOUTS = ("contiguous", "mixed")
LOW, HIGH = -2 ** 31, 2 ** 31 - 1


def same(k, args, oracle=None, **options):
    return check(k, args, oracle, layouts=LAYOUTS, **options)


def overflows(k, args):
    """By every road."""
    with pytest.raises(OverflowError):
        interpret(k, args)
    real = [np.zeros(a.shape, a.dtype) if hasattr(a, "shape") and not isinstance(a, np.ndarray) else a for a in args]
    with pytest.raises(OverflowError):
        k(*real)


@kernel
def arithmetic(a: I.In[I.i32, ("N",)], b: I.In[I.i32, ("N",)], s: I.Out[I.i32, ("N",)], d: I.Out[I.i32, ("N",)], m: I.Out[I.i32, ("N",)]):
    s[:] = a[:] + b[:]
    d[:] = a[:] - b[:]
    m[:] = a[:] * b[:]


def test_integers_are_exact_or_raise():
    a, b = np.array([5, -7, 46340, LOW, 0] * 9, np.int32), np.array([3, 4, 46341, 0, HIGH] * 9, np.int32)
    outs = [out((45,), np.int32)] * 3
    same(arithmetic, [a, b, *outs], lambda a, b: (a + b, a - b, a * b))
    for x, y in ((HIGH, 1), (LOW, -1), (LOW, 1), (65536, 32768), (-2, -2 ** 30), (LOW, -1)):
        c = a.copy()
        d = b.copy()
        c[31], d[31] = x, y
        overflows(arithmetic, [c, d, *outs])


@kernel
def guarded(a: I.In[I.i32, ("N",)], y: I.Out[I.i32, ("N",)], z: I.Out[I.i32, ("N",)]):
    for i in I.parallel(I.domain(0, a.shape[0])):
        if a[i] < 1000:
            y[i] = a[i] * a[i]
        else:
            y[i] = 0
        z[i] = a[i] * a[i] if a[i] < 1000 else 1


def test_what_does_not_run_does_not_raise():
    a = np.arange(0, 1 << 20, 1 << 9, dtype=np.int32)
    same(guarded, [a, out(a.shape, np.int32), out(a.shape, np.int32)],
         lambda a: (np.where(a < 1000, a * a, 0), np.where(a < 1000, a * a, 1)))
    a[3] = -50000
    overflows(guarded, [a, out(a.shape, np.int32), out(a.shape, np.int32)])


@kernel
def unused(a: I.In[I.i32, ("N",)], y: I.Out[I.i32, ("N",)]):
    t = a[:] + a[:]             # noqa: F841
    y[:] = a[:]


def test_an_unused_result_still_raises():
    same(unused, [np.array([1, 2], np.int32), out((2,), np.int32)], lambda a: a)
    overflows(unused, [np.array([HIGH, 2], np.int32), out((2,), np.int32)])


@kernel
def carried(a: I.In[I.i32, ("N",)], y: I.Out[I.i32, ()], f: I.Out[I.f32, ()]):
    total = I.cast(0, I.i32)
    half = 0.0
    for i in I.domain(0, a.shape[0]):
        total = total + a[i]
        half = half + a[i] / 2
    y[()] = total
    f[()] = half


def test_loops_at_the_top_raise_too():
    same(carried, [np.array([HIGH - 1, 1, LOW], np.int32), out((), np.int32), out((), np.float32)],
         lambda a: (np.int32(-1), np.float32(np.float32(np.float32(HIGH - 1) / 2 + np.float32(0.5)) - np.float32(2 ** 30))))
    overflows(carried, [np.array([HIGH, 1, -5], np.int32), out((), np.int32), out((), np.float32)])


@kernel
def weak(a: I.In[I.i32, ("N",)], x: I.In[I.f32, ("N",)], i: I.Out[I.i32, ("N",)], f: I.Out[I.f32, ("N",)], g: I.Out[I.f32, ("N",)],
         d: I.Out[I.f32, ("N",)], c: I.Out[I.bool, ("N",)]):
    tenth = 0.1
    i[:] = a[:] * 2 - 1
    f[:] = a[:] * 2.0 + a[:] * True
    g[:] = x[:] * tenth + a[:]
    d[:] = a[:] / 3
    c[:] = (a[:] < 2) & (x[:] >= a[:])


def test_weak_scalars_select_the_branch():
    a, x = np.array([1, -5, 1 << 29], np.int32), np.array([1, 2.5, -3], np.float32)
    f = a.astype(np.float32)
    same(weak, [a, x, out((3,), np.int32), *[out((3,), np.float32)] * 3, out((3,), np.bool_)],
         lambda a, x: (a * 2 - 1, f * 2 + f, x * np.float32(0.1) + f, f / np.float32(3), (a < 2) & (x >= f)))
    kinds = [op.kind for op in kir.walk(kir_of(weak).body)]
    assert "fma" not in kinds and kinds.count("check") == 2


@kernel
def powers(a: I.In[I.i32, ("N",)], y: I.Out[I.i32, ("N",)], z: I.Out[I.i32, ("N",)], f: I.Out[I.f32, ("N",)]):
    y[:] = a[:] ** 31
    z[:] = a[:] ** 0
    f[:] = a[:] ** -1


def test_powers():
    a = np.array([-2, -1, 0, 1], np.int32)
    same(powers, [a, *[out((4,), np.int32)] * 2, out((4,), np.float32)],
         lambda a: (np.array([LOW, -1, 0, 1], np.int32), np.ones(4, np.int32), np.array([-0.5, -1, np.inf, 1], np.float32)))
    overflows(powers, [np.array([2, 1], np.int32), *[out((2,), np.int32)] * 2, out((2,), np.float32)])


@kernel
def casts(x: I.In[I.f32, ("N",)], n: I.i32, y: I.Out[I.i32, ("N",)], b: I.Out[I.bool, ("N",)], f: I.Out[I.f32, ()]):
    y[:] = I.cast(x[:], I.i32)
    b[:] = I.cast(x[:], I.bool)
    f[()] = I.cast(n, I.f32)


def test_casts_to_i32_raise_out_of_range():
    x = np.array([-2147483648.0, 2147483520.0, -0.9, 1e-40], np.float32)
    same(casts, [x, 7, out((4,), np.int32), out((4,), np.bool_), out((), np.float32)],
         lambda x, n: (np.trunc(x.astype(np.float64)).astype(np.int32), x != 0, np.float32(7)))
    for bad in (2147483648.0, -2147483904.0, np.nan, np.inf):
        overflows(casts, [np.array([0, bad], np.float32), 7, out((2,), np.int32), out((2,), np.bool_), out((), np.float32)])


@kernel
def sums(a: I.In[I.i32, ("M", "K")], b: I.In[I.i32, ("K", "N")], s: I.Out[I.i32, ("M",)], p: I.Out[I.i32, ("M", "N")],
         d: I.Out[I.i32, ("M",)]):
    s[:] = I.reduce.sum(a[:, :], axis=1)
    p[:, :] = I.matmul(a[:, :], b[:, :], acc_dtype=I.i32)
    for m in I.domain(0, a.shape[0]):
        d[m] = I.dot(a[m, :], a[m, :] - a[m, :], acc_dtype=I.i32)[()]


def test_integer_sums_are_exact_in_between():
    a = np.array([[HIGH, HIGH, LOW, LOW, 2, 0], [1, 2, 3, 4, 5, 6]], np.int32)
    b = np.array([[HIGH, 1], [HIGH, 1], [HIGH, 1], [HIGH, 1], [HIGH, -1], [5, 5]], np.int32)
    b[4, 0] = 0
    outs = lambda n: [out((2,), np.int32), out((2, n), np.int32), out((2,), np.int32)]      # noqa: E731
    exact = [[sum(int(x) * int(y) for x, y in zip(row, col)) for col in b.T] for row in a]
    assert exact[0][0] == -2 * HIGH and exact[0][1] == -4
    same(sums, [a, b[:, 1:], *outs(1)], lambda a,
         b: (np.array([0, 21], np.int32), np.array([[r[1]] for r in exact], np.int32), np.zeros(2, np.int32)))
    overflows(sums, [a, b, *outs(2)])
    big = np.full((2, 6), LOW, np.int32)
    assert 6 * int(LOW) ** 2 > 2 ** 64
    balanced = np.array([LOW, LOW, LOW, HIGH, HIGH, HIGH], np.int32)[:, None]
    overflows(sums, [big, balanced, *outs(1)])
    big[:, :] = [[HIGH] * 3 + [-HIGH] * 3, [1, -1, 0, 0, 0, 0]]
    same(sums, [big, np.full((6, 1), HIGH, np.int32), *outs(1)], lambda a,
         b: (np.zeros(2, np.int32), np.zeros((2, 1), np.int32), np.zeros(2, np.int32)))


@kernel
def floats(x: I.In[I.f32, ("M", "K")], y: I.In[I.f32, ("K", "M")], i: I.In[I.i32, ("M", "K")], s: I.Out[I.f32, ("M",)],
           w: I.Out[I.f32, ("M",)],
           p: I.Out[I.f32, ("M",)], q: I.Out[I.f32, ()], c: I.Out[I.f32, ("M", "K")], r: I.Out[I.f32, ("M", "K")], j: I.Out[I.i32, ("M",)],
           mm: I.Out[I.f32, ("M", "M")], mw: I.Out[I.f32, ("M", "M")], mi: I.Out[I.f32, ("M", "M")]):
    s[:] = I.reduce.sum(x[:, :], axis=1)
    w[:] = I.reduce.sum(x[:, :], axis=1, acc_dtype=I.f64)
    p[:] = I.reduce.prod(x[:, :], axis=1)
    q[()] = I.reduce.prod(x[:, :], axis=(0, 1))
    c[:, :] = I.cumsum(x[:, :], axis=1)
    r[:, :] = I.cumsum(x[:, :], axis=1, inclusive=False, reverse=True)
    best, where = I.arg_reduce.max(x[:, :], axis=1)
    j[:] = where
    mm[:, :] = I.matmul(x[:, :], y[:, :], acc_dtype=I.f32)
    mw[:, :] = I.matmul(x[:, :], y[:, :], acc_dtype=I.f64)
    mi[:, :] = I.matmul(i[:, :], y[:, :], acc_dtype=I.f32)


def test_float_accumulation_rounds_where_the_plan_says():
    rng = np.random.default_rng(5)
    x, y = rng.standard_normal((3, 40)).astype(np.float32), rng.standard_normal((40, 3)).astype(np.float32)
    i = rng.integers(-99, 99, (3, 40)).astype(np.int32)
    f = np.float32
    outs = [out((3,), f), out((3,), f), out((3,), f), out((), f), out((3, 40), f), out((3, 40), f), out((3,), np.int32),
            *[out((3, 3), f)] * 3]
    got = same(floats, [x, y, i, *outs])
    assert np.array_equal(got[1], x.astype(np.float64).sum(1).astype(f))

    def chain(values, start, step):
        out_ = [start]
        for v in values:
            out_.append(f(step(out_[-1], v)))
        return out_[1:]
    assert np.array_equal(got[2], [chain(row, f(1), lambda a, b: a * b)[-1] for row in x])
    assert got[3] == chain(x.ravel(), f(1), lambda a, b: a * b)[-1]
    assert np.array_equal(got[4], [chain(row, f(0), lambda a, b: a + b) for row in x])
    assert np.array_equal(got[5], [([f(0), *chain(row[::-1], f(0), lambda a, b: a + b)][:-1])[::-1] for row in x])
    assert np.array_equal(got[6], x.argmax(1))
    terms = x[:, :, None] * y[None]
    assert np.allclose(got[7], terms.sum(1), rtol=1e-5, atol=1e-5)
    assert np.array_equal(got[8], np.array([[math.fsum(t) for t in m] for m in terms.transpose(0, 2, 1).astype(np.float64)]).astype(f))
    assert np.allclose(got[9], (i.astype(f)[:, :, None] * y[None]).sum(1), rtol=1e-5, atol=1e-3)
    assert not {"fma", "contract"} & {op.kind for op in kir.walk(kir_of(floats).body)}


def test_minus_zero_and_empty_axes():
    @kernel
    def edges(x: I.In[I.f32, ("M", "K")], c: I.Out[I.f32, ("M", "K")], p: I.Out[I.f32, ("M",)], j: I.Out[I.i32, ("M",)]):
        c[:, :] = I.cumsum(x[:, :], axis=1)
        p[:] = I.reduce.prod(x[:, :], axis=1)
        best, where = I.arg_reduce.min(x[:, :], axis=1)
        j[:] = where
    for width in (0, 1, 2):
        x = np.full((2, width), -0.0, np.float32)
        got = same(edges, [x, out(x.shape, np.float32), out((2,), np.float32), out((2,), np.int32)])
        assert np.signbit(got[0]).all() and (got[2] == (0 if width else HIGH)).all() and (width or (got[1] == 1).all())


@kernel
def indices(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, ("N",)], k: I.Out[I.i32, ("N",)]):
    n = x.shape[0]
    for i in I.domain(0, n):
        y[n - 1 - i] = x[(i * 3 + 1) % n]
        k[i] = I.cast(i * 2, I.i32)


def test_index_arithmetic_is_strict():
    x = np.arange(7, dtype=np.float32)
    same(indices, [x, out((7,), np.float32), out((7,), np.int32)],
         lambda x: (x[(np.arange(7) * 3 + 1) % 7][::-1], np.arange(7, dtype=np.int32) * 2))


def test_overflow_through_every_form_of_call():
    bad, y = np.array([HIGH, 1], np.int32), np.zeros(2, np.int32)
    art = intent.compile(unused)
    prepared = art.prepare(bad, outputs=(y,))
    for call in (lambda: unused(bad, y), lambda: unused.run(bad), lambda: art(bad, y), lambda: art.run(bad), lambda: art.interpret(bad, y)):
        for _ in range(5):                      # native entries take over from repeated calls
            with pytest.raises(OverflowError):
                call()
    for _ in range(5):
        with pytest.raises(OverflowError):
            prepared.launch()
            prepared.result()

    @numba.njit
    def outer(a, y):
        unused(a, y)
    with pytest.raises(OverflowError):
        outer(bad, y)
    outer(np.array([1, 2], np.int32), y)
    assert y.tolist() == [1, 2]


@pytest.mark.parametrize("body, error", [
    ("y[:] = a[:] // a[:]", NotImplementedError), ("y[:] = -a[:]", TypeError), ("y[:] = a[:] + 2147483648", TypeError),
                                         ("y[:] = a[:] * 0.5", TypeError),
    ("y[:] = I.maximum(a[:], a[:])", TypeError), ("z[:] = I.fma(x[:], x[:], x[:])", NotImplementedError),
                                         ("z[:] = h[:] + h[:]", NotImplementedError),
    ("z[:] = I.select(x[:], x[:], x[:])", TypeError), ("y[:] = I.cumsum(a[:], axis=0)", TypeError),
                                         ("y[:] = I.cast(4294967296, I.i32)", TypeError),
    ("y[0] = I.reduce(a[:], axis=0, identity=0, combine=I.add)", NotImplementedError), ("z[:] = I.cast(x[:], I.f16)", NotImplementedError),
    ("y[:] = I.select(x[:] > 0, a[:], a[:])", TypeError), ("I.atomic.add(y[0], a[0], order='relaxed')", NotImplementedError)])
def test_what_has_no_plan_is_refused(body, error):
    scope = {"I": I}
    exec("def k(a: I.In[I.i32, ('N',)], x: I.In[I.f32, ('N',)], h: I.In[I.f16, ('N',)], y: I.Out[I.i32, ('N',)], "
         "z: I.Out[I.f32, ('N',)]):\n"
         f"    {body}\n", scope)
    with pytest.raises(error) as caught:
        build_kernel(scope["k"], {}, "checked")
    assert isinstance(caught.value, intent.CompileError)


def test_masks_and_literals():
    @kernel
    def masked(x: I.In[I.f32, ("N",)], m: I.In[I.bool, ("N",)], y: I.Out[I.f32, ("N",)], z: I.Out[I.f32, ("N",)]):
        y[:] = I.select(m[:] & (x[:] > 0), x[:], 0.0)
        z[:] = I.clamp(I.relu(x[:]), 0, 2.5)
    x, m = np.array([1, -2, 9], np.float32), np.array([True, True, False])
    same(masked, [x, m, out((3,), np.float32), out((3,), np.float32)], lambda x, m: (np.where(m & (x > 0), x, 0), np.clip(x, 0, 2.5)))


def test_overflow_on_an_opencl_device():
    from intent_numba.targets.spirv.loader import queue
    try:
        queue()
    except intent.UnsupportedError:
        pytest.skip("no OpenCL device takes SPIR-V")
    for k, count in ((unused, 1), (guarded, 2)):
        art, a = intent.compile(k, target="spirv"), np.array([1, 2, 3], np.int32)
        assert np.array_equal(art.run(a) if count == 1 else art.run(a)[0], a if count == 1 else a * a)
        a[1] = HIGH if count == 1 else -HIGH
        with pytest.raises(OverflowError):
            art.run(a)
