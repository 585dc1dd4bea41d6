"""``checks=True``: every broken obligation is reported with its line, operation and coordinates; clean programs run as ever."""
from __future__ import annotations

import inspect

import ml_dtypes
import numba
import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I

CHECKS = intent.CompileOptions(checks=True)


def checked(kernel, *args, constexprs=None):
    """Run with checks on copies; the written arrays hold the bits of the unchecked kernel."""
    own, plain = ([a.copy() if isinstance(a, np.ndarray) else a for a in args] for _ in range(2))
    intent.compile(kernel, constexprs=constexprs, options=CHECKS)(*own)
    intent.compile(kernel, constexprs=constexprs)(*plain)
    for a, b in zip(own, plain):
        if isinstance(a, np.ndarray):
            assert a.tobytes() == b.tobytes()
    return own


def reported(kernel, *args, operation: str, at: tuple, text: str, line: str):
    """The violation: operation, coordinates, part of the message, and a part of the source line. No array changes."""
    own = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    with pytest.raises(intent.InvalidInput) as caught:
        intent.compile(kernel, options=CHECKS)(*own)
    e = caught.value
    source, first = inspect.getsourcelines(kernel.pyfunc)
    assert (e.operation, e.coordinates) == (operation, at), str(e)
    assert text in str(e) and kernel.__name__ in str(e)
    assert line in source[e.loc.line - first], str(e)
    for a, b in zip(own, args):
        if isinstance(a, np.ndarray):
            assert a.tobytes() == b.tobytes()


def i8(*values):
    return np.array(values, "i1")


def zeros(n, dt="f4"):
    return np.zeros(n, dt)


# ---- elementwise


@intent.kernel
def quotients(x: I.In[I.i8, ("N",)], d: I.In[I.i8, ("N",)], q: I.Out[I.i8, ("N",)], r: I.Out[I.i8, ("N",)]):
    a = x[:]
    r[:] = a - a
    q[:] = a // d[:]
    r[:] = a % d[:]


def test_division():
    q, r = checked(quotients, i8(-7, 7, -128, 5), i8(3, -3, 1, 5), i8(0, 0, 0, 0), i8(0, 0, 0, 0))[2:]
    assert q.tolist() == [-3, -3, -128, 1] and r.tolist() == [2, -2, 0, 0]
    out = i8(9, 9, 9), i8(9, 9, 9)
    reported(quotients, i8(1, 2, 3), i8(1, 0, 0), *out, operation="//", at=(1,), text="divisor is zero", line="q[:] = a // d[:]")
    reported(quotients, i8(1, 2, -128), i8(1, 1, -1), *out, operation="//", at=(2,), text="-128 // -1", line="q[:] = a // d[:]")


@intent.kernel
def remainders(x: I.In[I.i8, ("N",)], d: I.In[I.i8, ("N",)], r: I.Out[I.i8, ("N",)]):
    r[:] = x[:] % d[:]


def test_remainder():
    assert checked(remainders, i8(-128, 7), i8(-1, 7), i8(0, 0))[2].tolist() == [0, 0]
    reported(remainders, i8(1), i8(0), i8(0), operation="%", at=(0,), text="divisor is zero", line="%")


@intent.kernel
def guarded(a: I.In[I.i32, ("N",)], b: I.In[I.i32, ("N",)], y: I.Out[I.i32, ("N",)]):
    for i in I.parallel(I.domain(0, a.shape[0])):
        y[i] = a[i] // b[i] if b[i] != 0 else I.cast(0, I.i32)


@intent.kernel
def selected(a: I.In[I.i32, ("N",)], b: I.In[I.i32, ("N",)], y: I.Out[I.i32, ("N",)]):
    y[:] = I.select(b[:] != 0, a[:] // b[:], 0)


def test_what_a_guard_skips_is_not_checked():
    a, b, y = np.array([5, 5], "i4"), np.array([0, 2], "i4"), np.zeros(2, "i4")
    assert checked(guarded, a, b, y)[2].tolist() == [0, 2]
    reported(selected, a, b, y, operation="//", at=(0,), text="zero", line="a[:] // b[:]")


@intent.kernel
def narrowed(x: I.In[I.f32, ("M", "N")], y: I.Out[I.i8, ("M", "N")], z: I.Out[I.u8, ("M", "N")]):
    y[:, :] = I.cast(x[:, :], I.i8)
    z[:, :] = I.cast(x[:, :] + 1.0, I.u8)


def test_float_to_integer():
    x, y, z = np.array([[127.9, -0.5], [3.0, -1.9]], "f4"), np.zeros((2, 2), "i1"), np.zeros((2, 2), "u1")
    assert checked(narrowed, x, y, z)[1].tolist() == [[127, 0], [3, -1]]
    for bad, text in ((128.0, "range of i8"), (np.nan, "NaN"), (-np.inf, "range of i8")):
        broken = x.copy()
        broken[1, 0] = bad
        reported(narrowed, broken, y, z, operation="I.cast", at=(1, 0), text=text, line="I.cast(x[:, :], I.i8)")
    x[0, 1] = -2.0
    reported(narrowed, x, y, z, operation="I.cast", at=(0, 1), text="range of u8", line="I.u8")


@intent.kernel
def to_f8(x: I.In[I.f32, ("N",)], y: I.Out[I.f8e4m3fn, ("N",)]):
    y[:] = I.cast(x[:], I.f8e4m3fn)


@intent.kernel
def shifted(x: I.In[I.u32, ("N",)], n: I.In[I.u32, ("N",)], y: I.Out[I.u32, ("N",)]):
    for i in I.parallel(I.domain(0, x.shape[0])):
        y[i] = x[i] << n[i]
        if n[i] < 32 and (x[i] << n[i]) > 4:
            y[i] = x[i] >> n[i]


@intent.kernel
def powers(x: I.In[I.i32, ("N",)], n: I.In[I.i32, ("N",)], y: I.Out[I.i32, ("N",)]):
    y[:] = x[:] ** n[:]


@intent.kernel
def draws(n: I.index, y: I.Out[I.u32, ("N",)]):
    y[:] = I.random.bits(7, I.indices(I.domain(0, y.shape[0])) + n)


def test_other_operands():
    y = np.zeros(3, ml_dtypes.float8_e4m3fn)
    assert checked(to_f8, np.array([448, 464, np.nan], "f4"), y)[1].astype("f4")[:2].tolist() == [448, 448]
    for bad in (464.5, -1e9, np.inf):
        reported(to_f8, np.array([1, bad, 1], "f4"), y, operation="I.cast", at=(1,), text="448", line="f8e4m3fn")
    u, v = np.array([1, 2], "u4"), np.zeros(2, "u4")
    checked(shifted, u, np.array([31, 0], "u4"), v)
    reported(shifted, u, np.array([0, 32], "u4"), v, operation="<<", at=(1,), text="0 .. 31", line="y[i] = x[i] << n[i]")
    a, b = np.array([2, 3], "i4"), np.zeros(2, "i4")
    assert checked(powers, a, np.array([0, 4], "i4"), b)[2].tolist() == [1, 81]
    reported(powers, a, np.array([0, -1], "i4"), b, operation="**", at=(1,), text="negative", line="**")
    checked(draws, 0, v)
    reported(draws, -1, v, operation="I.random", at=(0,), text="counter", line="I.random.bits")


# ---- indices, domains, shapes


@intent.kernel
def walks(x: I.In[I.f32, ("M", "N")], at: I.In[I.index, ("K",)], begin: I.index, end: I.index, step: I.index, y: I.Out[I.f32, ("K",)]):
    M, N = x.shape
    K = at.shape[0]
    total = I.cast(0.0, I.f32)
    for i in I.domain(begin, end, step):
        total += I.reduce.sum(x[i, :], axis=0)
    columns = x[0, :]
    for k in I.parallel(I.domain(0, K)):
        y[k] = columns[at[k]] + total


def test_domains_and_indices():
    x, at, y = np.arange(12, dtype="f4").reshape(3, 4), np.array([3, 0, 2, 1, 3]), zeros(5)
    checked(walks, x, at, 0, 3, 2, y)
    reported(walks, x, at, 0, 3, 0, y, operation="I.domain", at=(), text="step is 0", line="I.domain(begin, end, step)")
    reported(walks, x, at, 0, 5, 2, y, operation="read", at=(4, 0), text="index 4 is outside axis 0 of 'x'", line="x[i, :]")
    at[3], at[1] = 4, -1
    reported(walks, x, at, 0, 3, 2, y, operation="gather", at=(1,), text="index -1", line="columns[at[k]]")


@intent.kernel
def groups(x: I.In[I.f32, ("R",)], offsets: I.In[I.index, ("O",)], y: I.Out[I.f32, ("G",)]):
    G = y.shape[0]
    members = I.ragged(I.domain(0, G), I.domain(0, x.shape[0]), offsets=offsets)
    for g in I.parallel(I.domain(0, G)):
        y[g] = I.reduce.sum(x[members[g]], axis=0)


@intent.kernel
def folded(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, (3,)]):
    y[:] = I.reduce.sum(I.reshape(x[:], (-1, 3)), axis=0)


@intent.kernel
def sliced(x: I.In[I.f32, ("N",)], a: I.index, b: I.index, y: I.Out[I.f32, ()]):
    y[()] = I.reduce.sum(x[a:b], axis=0)


def test_regions_and_shapes():
    x, y = np.arange(6, dtype="f4"), zeros(2)
    checked(groups, x, np.array([0, 2, 6]), y)
    reported(groups, x, np.array([0, 2, 7]), y, operation="a subregion", at=(1,), text="2 .. 7", line="members[g]")
    reported(groups, x, np.array([0, 4, 3]), y, operation="a subregion", at=(1,), text="4 .. 3", line="members[g]")
    checked(folded, x, zeros(3))
    reported(folded, np.zeros(7, "f4"), zeros(3), operation="I.reshape", at=(), text="7 elements", line="I.reshape")
    checked(sliced, x, 1, 6, zeros(()))
    reported(sliced, x, 4, 2, zeros(()), operation="I.domain", at=(), text="4:2", line="x[a:b]")
    reported(sliced, x, 2, 9, zeros(()), operation="read", at=(4,), text="index 6", line="x[a:b]")


@intent.kernel
def assumed(x: I.In[I.f32, ("N",)], at: I.In[I.index, ("K",)], y: I.Out[I.f32, ("K",)]):
    for k in I.parallel(I.domain(0, at.shape[0])):
        i = at[k]
        I.assume_in_bounds(i, x, axis=0)
        y[k] = x[i]


@intent.kernel
def counted(e: I.In[I.index, ("N",)], valid: I.In[I.bool, ("N",)], y: I.Out[I.i32, (4,)]):
    y[:] = I.histogram(e[:], bins=4, valid=valid[:], count_dtype=I.i32)


@intent.kernel
def added(e: I.In[I.index, ("N",)], counts: I.InOut[I.i32, ("K",)]):
    for i in I.parallel(I.domain(0, e.shape[0])):
        I.atomic.add(counts, index=e[i], value=1, order="relaxed")


def test_assumptions_histograms_atomics():
    x, y = np.arange(3, dtype="f4"), zeros(2)
    checked(assumed, x, np.array([2, 0]), y)
    reported(assumed, x, np.array([2, 3]), y, operation="I.assume_in_bounds", at=(1,), text="axis 0", line="assume_in_bounds")
    e, valid = np.array([0, 9, 3, 3]), np.array([True, False, True, True])
    assert checked(counted, e, valid, np.zeros(4, "i4"))[2].tolist() == [1, 0, 0, 2]
    reported(counted, np.array([0, 9, 3, 4]), valid, np.zeros(4, "i4"), operation="I.histogram", at=(3,), text="0 .. 3", line="histogram")
    assert checked(added, np.array([0, 0, 1]), np.zeros(2, "i4"))[1].tolist() == [2, 1]
    reported(added, np.array([0, 2, 1]), np.zeros(2, "i4"), operation="I.atomic", at=(1,), text="index 2", line="atomic.add")


# ---- formats


@intent.kernel
def sparse(a: I.In[I.f32, ("M", "H")], first: I.In[I.index, ("M", "Q")], second: I.In[I.index, ("M", "Q")], b: I.In[I.f32, ("K", "N")],
           y: I.Out[I.f32, ("M", "N")]):
    places = I.record(first=first[:, :], second=second[:, :])
    y[:, :] = I.sparse_matmul(a[:, :], places, b[:, :], format=I.sparse.two_of_four(compression_axis=1, logical_extent=b.shape[0]),
                              acc_dtype=I.f32)


@intent.kernel
def to_q8(x: I.In[I.f32, ("G", 256)], y: I.Out[I.u8, ("G", 292)]):
    y[:, :] = I.quantize(x[:, :], format=I.quant.q8_k)


@intent.kernel
def dot(w: I.In[I.u8, ("G", 144)], x: I.In[I.u8, ("G", 292)], y: I.Out[I.f32, ()]):
    y[()] = I.quantized_dot(w[:, :], x[:, :], lhs_format=I.quant.q4_k, rhs_format=I.quant.q8_k, acc_dtype=I.f32)[()]


def test_formats(rng):
    a, b, y = np.ones((2, 4), "f4"), np.ones((8, 3), "f4"), np.zeros((2, 3), "f4")
    first, second = np.array([[0, 1], [2, 0]]), np.array([[3, 2], [3, 1]])
    checked(sparse, a, first, second, b, y)
    low, high = first.copy(), second.copy()
    low[1, 0], high[0, 1] = 3, 4
    what = "I.sparse_matmul"
    reported(sparse, a, low, second, b, y, operation=what, at=(1, 0), text="ascend", line=what)
    reported(sparse, a, first, high, b, y, operation=what, at=(0, 1), text="0 .. 3", line=what)
    reported(sparse, a[:, :3].copy(), first, second, b, y, operation=what, at=(), text="logical extent", line=what)

    x = rng.standard_normal((3, 256)).astype("f4")
    _, records = checked(to_q8, x, np.zeros((3, 292), "u1"))
    x[1, 7] = np.inf
    reported(to_q8, x, records, operation="I.quantize", at=(1, 7), text="not finite", line="I.quantize")
    x[1] = 1e-45
    reported(to_q8, x, records, operation="I.quantize", at=(1,), text="inverse", line="I.quantize")
    w = np.zeros((3, 144), "u1")
    checked(dot, w, records, zeros(()))
    records[2, 264] ^= 1
    reported(dot, w, records, zeros(()), operation="I.quantized_dot", at=(2, 2), text="bsum", line="I.quantized_dot")


# ---- memory


@intent.kernel
def stored_once(n: I.index, y: I.Out[I.i32, ("N",)]):
    for i in I.domain(0, y.shape[0]):
        b = I.buffer((2,), dtype=I.i32)
        if i < n:
            b[0] = 1
        t = b[0]
        b[0] = 2
        y[i] = t


@intent.kernel
def prefix(x: I.In[I.i32, ("N",)], first: I.index, y: I.Out[I.i32, ("N",)]):
    for i in I.domain(first, x.shape[0]):
        if i == 0:
            y[i] = x[i]
        else:
            y[i] = y[i - 1] + x[i]


def test_reads_of_what_nothing_wrote():
    y, x = np.zeros(3, "i4"), np.arange(3, dtype="i4")
    assert checked(stored_once, 3, y)[1].tolist() == [1, 1, 1]
    reported(stored_once, 1, y, operation="read", at=(1,), text="the buffer that nothing wrote", line="t = b[0]")
    assert checked(prefix, x, 0, y)[2].tolist() == [0, 1, 3]
    reported(prefix, x, 1, y, operation="read", at=(1,), text="'y' that nothing wrote", line="y[i - 1]")


@intent.kernel
def placed(x: I.In[I.f32, ("N",)], at: I.In[I.index, ("N",)], valid: I.In[I.bool, ("N",)], y: I.Out[I.f32, ("K",)]):
    y[:] = I.full(y.shape, 0.0, dtype=I.f32)
    I.scatter_unique(y, index=at[:], value=x[:], valid=valid[:])


@intent.kernel
def lonely(x: I.In[I.f32, ("N",)], at: I.In[I.index, ("N",)], y: I.Out[I.f32, ("K",)]):
    for i in I.parallel(I.domain(0, x.shape[0])):
        y[at[i]] = x[i]


@intent.kernel
def shifting(y: I.InOut[I.f32, ("N",)], by: I.index):
    for i in I.parallel(I.domain(2, y.shape[0])):
        y[i] = y[i - by] + 1.0


def test_places():
    x, y, valid = np.arange(4, dtype="f4"), zeros(5), np.array([True, True, False, True])
    checked(placed, x, np.array([4, 0, 4, 1]), valid, y)
    reported(placed, x, np.array([4, 1, 4, 1]), valid, y, operation="I.scatter_unique", at=(3,), text="one place", line="scatter_unique")
    checked(lonely, x, np.array([4, 0, 3, 1]), y)
    reported(lonely, x, np.array([4, 0, 4, 0]), y, operation="store", at=(2,), text="point (0,)", line="y[at[i]]")
    checked(shifting, y, 0)
    reported(shifting, y, 1, operation="read", at=(3,), text="no order", line="y[i - by]")


@intent.kernel
def last_arrives(x: I.In[I.i32, ("N",)], part: I.InOut[I.i32, ("N",)], done: I.InOut[I.i32, (1,)], y: I.InOut[I.i32, (1,)]):
    n = x.shape[0]
    for i in I.parallel(I.domain(0, n)):
        part[i] = x[i] * 2
        before = I.atomic.add(done, index=0, value=1, order="acq_rel")
        if before == I.cast(n, I.i32) - 1:
            y[0] = I.reduce.sum(part[:], axis=0)


def test_order_made_by_atomics_is_order():
    x = np.arange(5, dtype="i4")
    assert checked(last_arrives, x, np.zeros(5, "i4"), np.zeros(1, "i4"), np.zeros(1, "i4"))[3].tolist() == [20]


# ---- order, ways of calling


@intent.kernel
def several(x: I.In[I.i32, ("M", "N")], y: I.Out[I.i32, ("M", "N")]):
    M, N = x.shape
    for i in I.parallel(I.domain(0, M)):
        for j in I.domain(0, N):
            a = 8 // x[i, j]
            y[i, j] = 1 << x[i, j] + a


def test_the_first_in_program_order_then_in_coordinates():
    x, y = np.ones((3, 4), "i4"), np.zeros((3, 4), "i4")
    checked(several, x, y)
    x[0, 0] = 40
    reported(several, x, y, operation="<<", at=(0, 0), text="0 .. 31", line="1 << x[i, j]")
    x[2, 1] = x[1, 3] = 0
    reported(several, x, y, operation="//", at=(1, 3), text="zero", line="8 // x[i, j]")


@intent.kernel
def unused(x: I.In[I.i32, ("N",)], y: I.Out[I.i32, ("N",)]):
    z = 4 // x[:]  # noqa: F841
    y[:] = x[:]


@intent.kernel(policy="checked")
def squares(x: I.In[I.i32, ("N",)], y: I.Out[I.i32, ("N",)]):
    y[:] = x[:] * x[:]


def test_results_that_nothing_needs_and_the_other_policy():
    reported(unused, np.array([1, 0], "i4"), zeros(2, "i4"), operation="//", at=(1,), text="zero", line="4 // x[:]")
    checked(squares, np.array([1, 9], "i4"), zeros(2, "i4"))
    with pytest.raises(intent.IntegerOverflow, match="squares"):
        intent.compile(squares, options=CHECKS).run(np.array([1, 100000], "i4"))


def test_where_checks_cannot_go_they_are_refused():
    with pytest.raises(intent.UnsupportedError, match="no checks"):
        intent.generate(remainders, options=CHECKS)
    art = intent.compile(remainders, options=CHECKS)

    @numba.njit
    def caller(x, d, r):
        art(x, d, r)
    with pytest.raises(numba.TypingError, match="checks=True"):
        caller(i8(1), i8(1), i8(0))


def test_every_way_of_calling():
    art = intent.compile(remainders, options=CHECKS)
    good, bad = (i8(7, 7), i8(2, 3)), (i8(7, 7), i8(2, 0))
    for _ in range(40):                                        # no native entry takes over
        assert art.run(*good).tolist() == [1, 1]
        with pytest.raises(intent.InvalidInput, match="zero"):
            art.run(*bad)
    d = i8(2, 3)
    call = art.prepare(good[0], d)
    assert call.launch().result().tolist() == [1, 1]
    d[1] = 0
    with pytest.raises(intent.InvalidInput, match="zero"):
        call.launch()
    assert intent.compile(remainders).run(*bad)[0] == 1        # unchecked: some value, and the process lives


@pytest.mark.parametrize("layout", [lambda a: a, lambda a: a[::-1], lambda a: np.repeat(a, 2)[::2]])
def test_layouts_and_overlap(layout):
    base = np.arange(8, dtype="f4")
    y = layout(base)
    assert np.array_equal(checked(shifting, y, 0)[0][2:], y[2:] + 1)
    both = np.arange(6, dtype="i4")
    intent.compile(prefix, options=CHECKS)(both[1:], 0, both[:-1])
    plain = np.arange(6, dtype="i4")
    prefix(plain[1:], 0, plain[:-1])
    assert np.array_equal(both, plain)
