"""Atomics: every kind, dtype, order and form; what they find; what is refused; programs that count, route and claim."""
from __future__ import annotations

import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from intent_numba.kir import walk
from tests.support import check, compiled, execute, interpret, kir_of, numpy_dtype, out, special_floats

RNG = np.random.default_rng(7)


# --- the case of the list ------------------------------------------------------------------------------------------------

@intent.kernel
def count(e: I.In[I.i64, ("N",)], counts: I.InOut[I.i32, ("K",)]):
    N, = e.shape
    for i in I.parallel(I.domain(0, N)):
        I.atomic.add(counts[e[i]], 1, order="relaxed")


def test_counting():
    counts, = check(count, [np.array([0, 0, 1]), np.zeros(2, np.int32)], lambda e, c: c + np.bincount(e, minlength=len(c)).astype(np.int32))
    assert counts.tolist() == [2, 1]
    e = RNG.integers(0, 50, 20_000)
    check(count, [e, np.arange(50, dtype=np.int32)], lambda e, c: c + np.bincount(e, minlength=50).astype(np.int32))


def test_no_plain_read_of_the_resource():
    for op in walk(kir_of(count).body):
        assert op.kind != "read" or op.args[0].name != "counts"


def test_many_threads_lose_nothing():
    e = np.zeros(1_000_000, np.int64)
    counts = np.zeros(1, np.int32)
    compiled(count)(e, counts)
    assert counts[0] == len(e)


# --- every kind on every dtype -------------------------------------------------------------------------------------------

def of_kind(kind, dt):
    operate = getattr(I.atomic, kind)

    @intent.kernel
    def each(at: I.In[I.i64, ("N",)], x: I.In[dt, ("N",)], y: I.InOut[dt, ("K",)]):
        N, = x.shape
        for i in I.parallel(I.domain(0, N)):
            operate(y[at[i]], x[i], order="relaxed")

    @intent.kernel
    def whole(at: I.In[I.i64, ("N",)], x: I.In[dt, ("N",)], y: I.InOut[dt, ("K",)]):
        operate(y, index=at[:], value=x[:], order="relaxed")
    return each, whole


INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
COMBINE = {"add": np.add, "max": np.maximum, "min": np.minimum, "and_": np.bitwise_and, "or_": np.bitwise_or, "xor": np.bitwise_xor}


@pytest.mark.parametrize("kind", COMBINE)
@pytest.mark.parametrize("dt", INTEGERS)
def test_integers(kind, dt):
    numpy_dt = numpy_dtype(dt)
    info = np.iinfo(numpy_dt)
    x = RNG.integers(info.min, info.max, 300, numpy_dt, endpoint=True)
    y = RNG.integers(info.min, info.max, 7, numpy_dt, endpoint=True)
    at = RNG.integers(0, 7, 300)

    def oracle(at, x, y):
        COMBINE[kind].at(y, at, x)
        return y
    for kernel in of_kind(kind, I.dtype(dt)):
        check(kernel, [at, x, y], oracle, layouts=("contiguous", "strided"))


@pytest.mark.parametrize("kind", ("and_", "or_", "xor"))
def test_bools(kind):
    x, y, at = RNG.integers(0, 2, 300) > 0, np.array([True, False, True]), RNG.integers(0, 3, 300)

    def oracle(at, x, y):
        {"and_": np.logical_and, "or_": np.logical_or, "xor": np.logical_xor}[kind].at(y, at, x)
        return y
    for kernel in of_kind(kind, I.bool):
        check(kernel, [at, x, y], oracle)


@pytest.mark.parametrize("dt", ("f16", "bf16", "f32", "f64", "f8e4m3fn", "f8e5m2"))
def test_float_sums_round_every_step_in_order(dt):
    """On a CPU a float sum is that of ascending points, whatever the number of threads."""
    numpy_dt = numpy_dtype(dt)
    n = 5000 if dt in ("f32", "f64") else 300
    x = (RNG.standard_normal(n) * 4).astype(numpy_dt)
    at = RNG.integers(0, 3, n)

    def oracle(at, x, y):
        for i, v in zip(at, x):
            y[i] = (np.float64(y[i]) + np.float64(v)).astype(numpy_dt)      # exact, then one rounding
        return y
    for kernel in of_kind("add", I.dtype(dt)):
        check(kernel, [at, x, np.zeros(3, numpy_dt)], oracle)


@pytest.mark.parametrize("kind", ("max", "min"))
@pytest.mark.parametrize("dt", ("f16", "bf16", "f32", "f64"))
def test_float_extremes_propagate_nan_and_order_zeros(kind, dt):
    values = special_floats(dt)
    n = len(values)
    y0 = np.repeat(values, n)
    x, at = np.tile(values, n), np.arange(n * n)

    def oracle(at, x, y):
        a, b = y.astype(np.float64), x.astype(np.float64)
        first = (a > b) | (a == b) & np.signbit(b) if kind == "max" else (a < b) | (a == b) & ~np.signbit(b)
        return np.where(np.isnan(a) | np.isnan(b), np.nan, np.where(first, a, b)).astype(y.dtype)
    for kernel in of_kind(kind, I.dtype(dt)):
        check(kernel, [at, x, y0], oracle, layouts=("contiguous",))


@pytest.mark.parametrize("dt", ("bool", "i8", "u64", "index", "f16", "bf16", "f8e5m2", "f32", "f64"))
def test_load_store_exchange(dt):
    d = I.dtype(dt)

    @intent.kernel
    def move(x: I.In[d, ("N",)], y: I.InOut[d, ("N",)], seen: I.Out[d, ("N",)], after: I.Out[d, ("N",)]):
        N, = x.shape
        for i in I.parallel(I.domain(0, N)):
            seen[i] = I.atomic.exchange(y[i], I.atomic.load(x[i], order="acquire"), order="acq_rel")
            v = I.atomic.load(y[i], order="relaxed")
            I.atomic.store(y[i], seen[i], order="release")
            after[i] = v

    x, y = (RNG.integers(0, 2 if dt == "bool" else 100, 50).astype(numpy_dtype(dt)) for _ in range(2))
    check(move, [x, y, out(50, dt), out(50, dt)], lambda x, y: (y, y, x))


# --- what is found -------------------------------------------------------------------------------------------------------

@intent.kernel
def tickets(who: I.In[I.i64, ("N",)], next_ticket: I.InOut[I.i64, ("K",)], mine: I.Out[I.i64, ("N",)]):
    N, = who.shape
    for i in I.parallel(I.domain(0, N)):
        mine[i] = I.atomic.add(next_ticket[who[i]], 1, order="relaxed")


@pytest.mark.parametrize("n", [0, 1, 33, 100_000])
def test_old_values_are_a_modification_order(n):
    who = RNG.integers(0, 4, n)
    begin = np.array([0, 10, 20, -5])
    after, mine = execute(tickets, [who, begin, out(n, "i64")])
    assert np.array_equal(after, begin + np.bincount(who, minlength=4))
    for k in range(4):
        assert np.array_equal(np.sort(mine[who == k]), np.arange(begin[k], after[k]))


@intent.kernel
def claim(wanted: I.In[I.i64, ("N",)], owner: I.InOut[I.i32, ("K",)], won: I.Out[I.bool, ("N",)], found: I.Out[I.i32, ("N",)]):
    N, = wanted.shape
    for i in I.parallel(I.domain(0, N)):
        r = I.atomic.compare_exchange(owner[wanted[i]], -1, I.cast(i, I.i32), order="acq_rel")
        won[i] = r.success
        found[i] = r.old_value


def test_compare_exchange_has_one_winner():
    n, k = 20_000, 37
    wanted = RNG.integers(0, k, n)
    owner = np.full(k, -1, np.int32)
    owner[3] = 99
    after, won, found = execute(claim, [wanted, owner, out(n, "bool"), out(n, "i32")])
    for place in range(k):
        winners = np.flatnonzero(won & (wanted == place))
        losers = ~won & (wanted == place)
        if place == 3:
            assert len(winners) == 0 and (found[losers] == 99).all() and after[3] == 99
        else:
            assert len(winners) == 1 and after[place] == winners[0] and found[winners[0]] == -1
            assert (found[losers] == winners[0]).all()


def test_compare_exchange_compares_bits():
    @intent.kernel
    def swap(y: I.InOut[I.f32, ("N",)], expected: I.In[I.f32, ("N",)], done: I.Out[I.bool, ("N",)]):
        r = I.atomic.compare_exchange(y, index=I.domain(0, y.shape[0]), expected=expected[:], desired=7.0, order="relaxed")
        done[:] = r.success

    y = np.array([0.0, -0.0, 1.0, np.nan], np.float32)
    expected = np.array([-0.0, -0.0, 1.0, np.nan], np.float32)
    check(swap, [y, expected, out(4, "bool")],
          lambda y, e: (np.array([0, 7, 7, 7], np.float32), np.array([False, True, True, True])))


# --- forms ---------------------------------------------------------------------------------------------------------------

@intent.kernel
def forms(y: I.InOut[I.i32, ("M", "N")], total: I.InOut[I.i32, ()], rows: I.In[I.i64, ("K",)], cols: I.In[I.i64, ("K",)],
          ok: I.In[I.bool, ("K",)], old: I.Out[I.i32, ("K",)], block: I.Out[I.i32, ("M", "N")]):
    M, N = y.shape
    I.atomic.add(y[0, 1], 5, order="relaxed")
    I.atomic.add(y, index=(1, 0), value=6, order="acquire")
    old[:] = I.atomic.add(y[rows[:], cols[:]], 100, order="release", valid=ok[:])
    block[:, :] = I.atomic.add(y[:, :], I.cast(1, I.i32), order="acq_rel")
    I.atomic.add(total[()], 3, order="relaxed")
    I.atomic.max(total, index=(), value=2, order="relaxed")
    I.atomic.store(y[0, 0], I.atomic.load(total[()], order="acquire"), order="release", valid=total[()] > 1000)


def test_forms():
    def oracle(y, total, rows, cols, ok):
        y[0, 1] += 5
        y[1, 0] += 6
        old = np.zeros(len(rows), np.int32)
        for k, (r, c) in enumerate(zip(rows, cols)):
            if ok[k]:
                old[k] = y[r, c]
                y[r, c] += 100
        block = y.copy()
        total = np.array(max(total + 3, 2), np.int32)
        return y + 1, total, old, block
    rows, cols = np.array([0, 1, 2, 2]), np.array([3, 0, 1, 99])
    args = [np.arange(12, dtype=np.int32).reshape(3, 4), np.array(4, np.int32), rows, cols, np.array([True, True, True, False]),
            out(4, "i32"), out((3, 4), "i32")]
    check(forms, args, oracle)


@intent.fn
def bump(counts, at, by):
    return I.atomic.add(counts[at], by, order="relaxed")


def test_helpers_and_buffers():
    @intent.kernel
    def digits(x: I.In[I.i64, ("M", "N")], y: I.Out[I.i32, ("M", 10)], top: I.Out[I.i32, ("M",)]):
        M, N = x.shape
        d = I.domain(0, 10)
        for m in I.parallel(I.domain(0, M)):
            seen = I.buffer((10,), I.i32, init=0)
            best = I.cast(0, I.i32)
            for n in I.domain(0, N):
                if bump(seen, x[m, n], 1) >= best:
                    best = best + 1
            y[m, d] = seen[d]
            top[m] = best

    def oracle(x):
        y = np.stack([np.bincount(row, minlength=10) for row in x]).astype(np.int32)
        return y, y.max(axis=1)
    check(digits, [RNG.integers(0, 10, (50, 40)), out((50, 10), "i32"), out(50, "i32")], oracle)


def test_a_buffer_shared_by_all_points():
    @intent.kernel
    def shared(x: I.In[I.i64, ("N",)], y: I.Out[I.i32, ("K",)]):
        K, = y.shape
        seen = I.buffer((K,), I.i32, init=0)
        for i in I.parallel(I.domain(0, x.shape[0])):
            I.atomic.add(seen[x[i]], 1, order="relaxed")
        y[:] = seen[:]
    check(shared, [RNG.integers(0, 9, 30_000), out(9, "i32")], lambda x: np.bincount(x, minlength=9).astype(np.int32))


def test_program_order_around_atomics():
    @intent.kernel
    def steps(x: I.In[I.i64, ("N",)], y: I.InOut[I.i32, ("K",)], before: I.Out[I.i32, ("K",)], between: I.Out[I.i32, ("K",)]):
        N, = x.shape
        before[:] = y[:]
        kept = y[:]
        for i in I.parallel(I.domain(0, N)):
            I.atomic.add(y[x[i]], 1, order="relaxed")
        between[:] = y[:] - kept
        for i in I.parallel(I.domain(0, N)):
            I.atomic.max(y[x[i]], 3, order="relaxed")
        y[:] = y[:] * 2

    def oracle(x, y):
        n = np.bincount(x, minlength=len(y)).astype(np.int32)
        after = np.where(n > 0, np.maximum(y + n, 3), y)
        return after * 2, y, n
    check(steps, [RNG.integers(0, 5, 3000), np.zeros(8, np.int32), out(8, "i32"), out(8, "i32")], oracle)


def test_ordered_loops_keep_their_order():
    @intent.kernel
    def history(x: I.In[I.i64, ("N",)], y: I.InOut[I.i64, ("K",)], old: I.Out[I.i64, ("N",)]):
        for i in I.domain(0, x.shape[0]):
            old[i] = I.atomic.exchange(y[x[i]], I.cast(i, I.i64), order="relaxed")

    def oracle(x, y):
        old = np.empty_like(x)
        for i, k in enumerate(x):
            old[i], y[k] = y[k], i
        return y, old
    check(history, [RNG.integers(0, 5, 200), np.full(5, -1), out(200, "i64")], oracle)


def test_rounds_of_atomics_do_not_mix():
    @intent.kernel
    def rounds(x: I.In[I.i64, ("N",)], y: I.InOut[I.i64, ("K",)], seen: I.Out[I.i64, ("R", "N")]):
        R, N = seen.shape
        for r in I.domain(0, R):
            for i in I.parallel(I.domain(0, N)):
                seen[r, i] = I.atomic.max(y[x[i]], I.cast(r, I.i64), order="relaxed")

    x = RNG.integers(0, 3, 2000)
    after, seen = execute(rounds, [x, np.full(3, -1), out((6, 2000), "i64")])
    assert (after == 5).all()
    for r in range(6):
        for k in range(3):
            assert set(seen[r][x == k]) <= {r - 1, r} and (seen[r][x == k] == r - 1).sum() == 1


def test_overlapping_elements_may_be_updated():
    y = np.zeros(3, np.int32)
    repeated = np.lib.stride_tricks.as_strided(y, (4, 3), (0, 4))

    @intent.kernel
    def tally(y: I.InOut[I.i32, ("M", "N")]):
        M, N = y.shape
        for i, j in I.parallel((I.domain(0, M), I.domain(0, N))):
            I.atomic.add(y[i, j], I.cast(j, I.i32), order="relaxed")
    tally(repeated)
    assert y.tolist() == [0, 4, 8]


# --- refusals ------------------------------------------------------------------------------------------------------------

CASES = [
    (lambda y, x: I.atomic.load(y[0], order="release"), "order must be 'relaxed' or 'acquire', not 'release'"),
    (lambda y, x: I.atomic.store(y[0], 1, order="acquire"), "order must be 'relaxed' or 'release', not 'acquire'"),
    (lambda y, x: I.atomic.store(y[0], 1, order="acq_rel"), "order must be"),
    (lambda y, x: I.atomic.add(y[0], 1, order="seq_cst"), "order must be"),
    (lambda y, x: I.atomic.add(y[0], 1), "order"),
    (lambda y, x: I.atomic.add(y, 1, order="relaxed"), "which element"),
    (lambda y, x: I.atomic.add(x[0], 1, order="relaxed"), "read-only"),
    (lambda y, x: I.atomic.add(x, index=0, value=1, order="relaxed"), "read-only"),
    (lambda y, x: I.atomic.add(y[0] + 1, 1, order="relaxed"), "place itself"),
    (lambda y, x: I.atomic.add(y[0], 1.5, order="relaxed"), "float literal 1.5"),
    (lambda y, x: I.atomic.add(y[0], I.cast(1, I.i64), order="relaxed"), "i32 is expected"),
    (lambda y, x: I.atomic.add(y[0], order="relaxed"), "value is missing"),
    (lambda y, x: I.atomic.add(y[0], x[:], order="relaxed"), "rank"),
    (lambda y, x: I.atomic.add(y[0], 1, order="relaxed", valid=x[:] > 0), "valid"),
    (lambda y, x: I.atomic.compare_exchange(y[0], 1, order="relaxed"), "desired is missing"),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_refusals(case):
    body, text = CASES[case]
    helper = intent.fn(body)

    @intent.kernel
    def kernel(y: I.InOut[I.i32, ("N",)], x: I.In[I.i32, ("N",)]):
        helper(y, x)
    with pytest.raises(intent.CompileError) as caught:
        kir_of(kernel)
    assert text in str(caught.value), caught.value


def test_bitwise_on_floats_is_refused():
    @intent.kernel
    def kernel(y: I.InOut[I.f32, ("N",)]):
        I.atomic.xor(y[0], 1.0, order="relaxed")
    with pytest.raises(intent.IntentTypeError, match="not defined for f32"):
        kir_of(kernel)


def test_a_named_element_is_a_value():
    @intent.kernel
    def kernel(y: I.InOut[I.i32, ("N",)]):
        slot = y[0]
        I.atomic.add(slot, 1, order="relaxed")
    with pytest.raises(intent.LanguageError, match="place itself"):
        kir_of(kernel)


def test_a_plain_access_races_with_an_atomic():
    @intent.kernel
    def reads(y: I.InOut[I.i32, ("N",)], z: I.Out[I.i32, ("N",)]):
        for i in I.parallel(I.domain(0, y.shape[0])):
            I.atomic.add(y[0], 1, order="relaxed")
            z[i] = y[0]

    @intent.kernel
    def own_element(y: I.InOut[I.i32, ("N",)], z: I.Out[I.i32, ("N",)]):
        for i in I.parallel(I.domain(0, y.shape[0])):
            I.atomic.add(y[i], 1, order="relaxed")
            z[i] = y[i]

    with pytest.raises(intent.LanguageError, match="another point reads"):
        kir_of(reads)
    y = np.arange(100, dtype=np.int32)
    check(own_element, [y, out(100, "i32")], lambda y: (y + 1, y + 1))


def test_combines_do_not_update():
    @intent.fn
    def counting(a, b):
        seen = I.buffer((1,), I.i32, init=0)
        I.atomic.add(seen[0], 1, order="relaxed")
        return a + b

    @intent.kernel
    def counted(x: I.In[I.i32, ("N",)], y: I.InOut[I.i32, (1,)]):
        y[0] = I.reduce(x[:], axis=0, identity=0, combine=counting)

    with pytest.raises(intent.LanguageError, match="pure"):
        kir_of(counted)


# --- programs ------------------------------------------------------------------------------------------------------------

@intent.kernel
def route(scores: I.In[I.f32, ("T", "E")], capacity: I.index, x: I.In[I.f32, ("T", "D")], load: I.InOut[I.i64, ("E",)],
          slots: I.InOut[I.i64, ("E", "C")], y: I.InOut[I.f32, ("E", "D")], expert: I.Out[I.i64, ("T",)], slot: I.Out[I.i64, ("T",)]):
    """Mixture of experts, top one: a token takes the next slot of its expert, or is dropped when the expert is full."""
    T, E = scores.shape
    for t in I.parallel(I.domain(0, T)):
        _, best = I.arg_reduce.max(scores[t, :], axis=0)
        place = I.atomic.add(load[best], 1, order="relaxed")
        expert[t] = I.cast(best, I.i64)
        slot[t] = place
        if place < I.cast(capacity, I.i64):
            slots[best, place] = I.cast(t, I.i64)
            I.atomic.add(y[best, :], x[t, :], order="relaxed")


def test_mixture_of_experts_routing():
    T, E, D, C = 700, 6, 5, 100
    scores = RNG.standard_normal((T, E)).astype(np.float32)
    x = RNG.integers(-8, 8, (T, D)).astype(np.float32)                  # sums are exact in any order
    for layout in ("contiguous", "mixed"):
        load, slots, y, expert, slot = execute(route, [scores, np.int64(C), x, np.zeros(E, np.int64), np.full((E, C), -1),
                                                       np.zeros((E, D), np.float32), out(T, "i64"), out(T, "i64")], layout=layout)
        best = scores.argmax(axis=1)
        assert np.array_equal(expert, best) and np.array_equal(load, np.bincount(best, minlength=E))
        want = np.zeros((E, D), np.float32)
        for e in range(E):
            mine = np.flatnonzero(best == e)
            assert np.array_equal(np.sort(slot[mine]), np.arange(len(mine)))
            kept = mine[slot[mine] < C]
            assert np.array_equal(slots[e][slot[kept]], kept)
            want[e] = x[kept].sum(axis=0)
        assert np.array_equal(y, want)


@intent.kernel
def connected(a: I.In[I.i64, ("E",)], b: I.In[I.i64, ("E",)], label: I.InOut[I.i64, ("V",)], rounds: I.Out[I.i64, (1,)]):
    """Connected components by propagating the least label until nothing changes."""
    E, = a.shape
    count, changed = I.cast(0, I.i64), True
    flag = I.buffer((1,), I.i32, init=0)
    while changed:
        flag[0] = 0
        for e in I.parallel(I.domain(0, E)):
            u, v = I.atomic.load(label[a[e]], order="relaxed"), I.atomic.load(label[b[e]], order="relaxed")
            if u != v:
                I.atomic.min(label[a[e]], v, order="relaxed")
                I.atomic.min(label[b[e]], u, order="relaxed")
                I.atomic.or_(flag[0], 1, order="relaxed")
        changed = flag[0] != 0
        count = count + 1
    rounds[0] = count


def test_connected_components():
    V, E = 200, 260
    a, b = RNG.integers(0, V, E), RNG.integers(0, V, E)
    want = np.arange(V)
    for _ in range(V):
        for u, v in zip(a, b):
            want[u] = want[v] = min(want[u], want[v])
    label, rounds = execute(connected, [a, b, np.arange(V), out(1, "i64")])
    assert np.array_equal(label, want) and 1 < rounds[0] <= V
    label, _ = interpret(connected, [a, b, np.arange(V), out(1, "i64")])
    assert np.array_equal(label, want)
