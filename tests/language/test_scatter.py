"""scatter_reduce: repeated addresses combine in ascending source order; scatter_unique; valid= on writes."""
from __future__ import annotations

import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from tests.support import NUMPY, check, compiled, kir_of, numpy_dtype, out

RNG = np.random.default_rng(11)


# --- builtin combines ----------------------------------------------------------------------------------------------------

def scatter_of(dt, combine):
    @intent.kernel
    def scatter(at: I.In[I.i64, ("N",)], x: I.In[dt, ("N",)], y: I.InOut[dt, ("K",)]):
        I.scatter_reduce(y, index=at[:], value=x[:], combine=combine)
    return scatter


def in_order(f):
    def oracle(at, x, y):
        for i, v in zip(at, x):
            y[i] = f(y[i], v)
        return y
    return oracle


@pytest.mark.parametrize("n", [0, 1, 33, 3000])
@pytest.mark.parametrize("dt", ["f32", "f64"])
def test_float_sums_round_in_source_order(dt, n):
    x = (RNG.standard_normal(n) * 10.0 ** RNG.integers(-3, 4, n)).astype(numpy_dtype(dt))
    at = RNG.integers(0, 5, n)
    check(scatter_of(I.dtype(dt), I.add), [at, x, np.ones(5, x.dtype)], in_order(lambda a, b: a + b))


@pytest.mark.parametrize("dt", ["f16", "bf16", "f8e5m2"])
def test_narrow_sums_round_every_step(dt):
    numpy_dt = numpy_dtype(dt)
    x = RNG.standard_normal(200).astype(numpy_dt)
    check(scatter_of(I.dtype(dt), I.add), [RNG.integers(0, 4, 200), x, np.ones(4, numpy_dt)],
          in_order(lambda a, b: np.asarray(float(a) + float(b)).astype(numpy_dt)), layouts=("contiguous", "strided"))


@pytest.mark.parametrize("combine, f", [(I.multiply, lambda a, b: a * b), (I.maximum, max), (I.minimum, min),
                                        (I.add, lambda a, b: a + b)])
@pytest.mark.parametrize("dt", ["i8", "u16", "i32", "u64"])
def test_integers(combine, f, dt):
    numpy_dt = numpy_dtype(dt)
    info = np.iinfo(numpy_dt)
    x = RNG.integers(info.min, info.max, 400, numpy_dt, endpoint=True)
    y = RNG.integers(info.min, info.max, 9, numpy_dt, endpoint=True)
    check(scatter_of(I.dtype(dt), combine), [RNG.integers(0, 9, 400), x, y], in_order(f), layouts=("contiguous", "reversed"))


def test_maximum_propagates_nan():
    x = np.array([1, np.nan, 5, -0.0, 0.0, -0.0], np.float32)
    y, = check(scatter_of(I.f32, I.maximum), [np.array([0, 0, 0, 1, 1, 2]), x, np.array([0, -0.0, -1], np.float32)])
    assert np.isnan(y[0]) and not np.signbit(y[1]) and np.signbit(y[2])


# --- combines of the author ----------------------------------------------------------------------------------------------

@intent.fn
def decay(old, new):
    return old * 0.5 + new


@intent.fn
def hash_step(old, new):
    return (old ^ new) * 16777619


def test_helpers_see_source_order():
    """Neither helper is commutative."""
    check(scatter_of(I.f64, decay), [RNG.integers(0, 3, 500), RNG.standard_normal(500), np.zeros(3)],
          in_order(lambda a, b: float(np.longdouble(a) * np.longdouble(0.5) + np.longdouble(b))), ulps=1)
    x = RNG.integers(0, 2 ** 32, 500, np.uint32)
    check(scatter_of(I.u32, hash_step), [RNG.integers(0, 3, 500), x, np.full(3, 2166136261, np.uint32)],
          in_order(lambda a, b: np.uint32((int(a) ^ int(b)) * 16777619 & 0xFFFFFFFF)))


def test_wrong_combines_are_refused():
    @intent.fn
    def compares(a, b):
        return a < b

    @intent.fn
    def widens(a, b):
        return I.cast(a, I.f64) + I.cast(b, I.f64)

    with pytest.raises(intent.IntentTypeError, match="gives bool"):
        kir_of(scatter_of(I.f32, compares))
    with pytest.raises(intent.IntentTypeError, match="gives f64"):
        kir_of(scatter_of(I.f32, widens))


def test_impure_combines_are_refused():
    @intent.fn
    def draws(a, b):
        return a + I.random.bits(0, 0) + b

    with pytest.raises(intent.LanguageError, match="pure"):
        kir_of(scatter_of(I.u32, draws))


def test_an_input_cannot_be_a_destination():
    @intent.kernel
    def wrong(x: I.In[I.f32, ("N",)]):
        I.scatter_reduce(x, index=0, value=1.0, combine=I.add)
    with pytest.raises(intent.LanguageError, match="read-only"):
        kir_of(wrong)


# --- relations -----------------------------------------------------------------------------------------------------------

@intent.kernel
def rows(at: I.In[I.i32, ("N",)], x: I.In[I.f32, ("N", "D")], ok: I.In[I.bool, ("N",)], y: I.InOut[I.f32, ("K", "D")]):
    N, D = x.shape
    d = I.domain(0, D)
    I.scatter_reduce(y, index=(at[:], d), value=x[:, :], combine=I.add, valid=ok[:][:, None])


def test_rows_with_valid():
    N, D, K = 300, 37, 6
    at = RNG.integers(0, K, N).astype(np.int32)
    ok = RNG.random(N) < 0.7
    at[~ok] = 10 ** 6                                                   # an invalid member forms no address

    def oracle(at, x, ok, y):
        for n in range(N):
            if ok[n]:
                y[at[n]] += x[n]
        return y
    check(rows, [at, RNG.standard_normal((N, D)).astype(np.float32), ok, np.zeros((K, D), np.float32)], oracle)


@intent.kernel
def per_point(at: I.In[I.i64, ("B", "N")], x: I.In[I.f32, ("B", "N")], y: I.InOut[I.f32, ("B", "K")], z: I.InOut[I.f32, ("K",)]):
    B, N = x.shape
    n = I.domain(0, N)
    for b in I.parallel(I.domain(0, B)):
        I.scatter_reduce(y, index=(b, at[b, n]), value=x[b, n], combine=I.add)
        I.scatter_reduce(z, index=at[b, n], value=x[b, n], combine=I.add)


def test_points_that_meet_and_points_that_do_not():
    B, N, K = 40, 70, 9
    at, x = RNG.integers(0, K, (B, N)), RNG.standard_normal((B, N)).astype(np.float32)

    def oracle(at, x, y, z):
        for b in range(B):
            for k, v in zip(at[b], x[b]):
                y[b, k] += v
                z[k] += v
        return y, z
    check(per_point, [at, x, np.zeros((B, K), np.float32), np.zeros(K, np.float32)], oracle)


@intent.kernel
def branching(at: I.In[I.i64, ("N",)], x: I.In[I.f32, ("N",)], y: I.InOut[I.f32, ("K",)], z: I.InOut[I.f32, ("N",)]):
    N, = x.shape
    for i in I.parallel(I.domain(0, N)):
        if x[i] > 0.0:
            I.scatter_reduce(y, index=at[i], value=x[i], combine=I.add)
            I.scatter_reduce(z, index=i, value=x[i], combine=I.maximum)
        else:
            I.scatter_reduce(y, index=at[i], value=x[i] * 0.25, combine=I.add)


def test_points_under_control():
    def oracle(at, x, y, z):
        for i, (k, v) in enumerate(zip(at, x)):
            if v > 0:
                y[k] += v
                z[i] = max(z[i], v)
            else:
                y[k] += v * np.float32(0.25)
        return y, z
    check(branching, [RNG.integers(0, 4, 900), RNG.standard_normal(900).astype(np.float32), np.zeros(4, np.float32),
                      np.zeros(900, np.float32)], oracle)


def test_threads_do_not_change_the_sum():
    n = 300_000
    at, x = RNG.integers(0, 3, n), RNG.standard_normal(n).astype(np.float32)
    want = np.zeros(3, np.float32)
    np.add.at(want, at, x)                                              # one after the other
    y = np.zeros(3, np.float32)
    compiled(scatter_of(I.f32, I.add))(at, x, y)
    assert np.array_equal(y, want)


@intent.kernel
def dear(at: I.In[I.i64, ("M", "N")], x: I.In[I.f32, ("M", "N")], y: I.InOut[I.f32, ("K",)], seen: I.InOut[I.f32, ("M", "K")]):
    M, N = x.shape
    I.scatter_reduce(y, index=at[:, :], value=I.tanh(x[:, :]), combine=I.add, valid=I.exp(x[:, :]) > 0.5)
    for m in I.parallel(I.domain(0, M)):
        I.scatter_reduce(seen, index=(m, at[m, :]), value=I.tanh(x[m, :]), combine=decay)


@pytest.mark.parametrize("shape", [(1, 5), (3, 70), (70, 3), (40, 129)])
def test_values_computed_in_lanes_combine_in_order(shape):
    check(dear, [RNG.integers(0, 4, shape), RNG.standard_normal(shape).astype(np.float32), np.zeros(4, np.float32),
                 np.zeros((shape[0], 4), np.float32)])


def test_source_and_destination_overlap():
    """The values are read before the first update."""
    @intent.kernel
    def pile(y: I.InOut[I.f32, ("N",)]):
        N, = y.shape
        d = I.domain(1, N)
        I.scatter_reduce(y, index=I.indices(d) - 1, value=y[d], combine=I.add)

    def oracle(y):
        return y + np.r_[y[1:], 0].astype(np.float32)
    check(pile, [RNG.standard_normal(100).astype(np.float32)], oracle)


def test_overlapping_views():
    @intent.kernel
    def shift(x: I.In[I.f32, ("N",)], y: I.InOut[I.f32, ("N",)], at: I.In[I.i64, ("N",)]):
        I.scatter_reduce(y, index=at[:], value=x[:], combine=I.add)

    base = np.arange(8, dtype=np.float32)
    compiled(shift)(base[:-1], base[1:], np.arange(7))
    assert base.tolist() == [0, 1, 3, 5, 7, 9, 11, 13]


def test_elements_that_are_one_memory():
    """Rows that are one row in memory meet, although their coordinates differ."""
    @intent.kernel
    def pour(at: I.In[I.i64, ("M", "N")], x: I.In[I.f32, ("M", "N")], y: I.InOut[I.f32, ("M", "K")]):
        M, _ = at.shape
        for i in I.parallel(I.domain(0, M)):
            I.scatter_reduce(y, index=(i, at[i, :]), value=x[i, :], combine=I.add)

    M, N, K = 300, 200, 5
    at, x = RNG.integers(0, K, (M, N)), RNG.standard_normal((M, N)).astype(np.float32)
    want = np.zeros(K, np.float32)
    np.add.at(want, at, x)
    memory = np.zeros(K, np.float32)
    compiled(pour)(at, x, np.lib.stride_tricks.as_strided(memory, (M, K), (0, 4)))
    assert np.array_equal(memory, want)


def test_into_a_buffer():
    @intent.kernel
    def folded(at: I.In[I.i64, ("M", "N")], y: I.Out[I.i64, ("M", 4)]):
        M, N = at.shape
        d = I.domain(0, 4)
        for m in I.parallel(I.domain(0, M)):
            seen = I.buffer((4,), I.i64, init=0)
            I.scatter_reduce(seen, index=at[m, :], value=1, combine=I.add)
            y[m, d] = seen[d]
    check(folded, [RNG.integers(0, 4, (30, 50)), out((30, 4), "i64")], lambda at: np.stack([np.bincount(r, minlength=4) for r in at]))


# --- writes with valid ---------------------------------------------------------------------------------------------------

@intent.kernel
def guarded(at: I.In[I.i64, ("N",)], ok: I.In[I.bool, ("N",)], x: I.In[I.f32, ("N",)], y: I.InOut[I.f32, ("K",)],
            z: I.InOut[I.f32, ("N",)]):
    N, = x.shape
    I.scatter_unique(y, index=at[:], value=x[:], valid=ok[:])
    for i in I.parallel(I.domain(0, N)):
        I.store(z, i, x[i] * 2.0, valid=ok[i])


def test_invalid_writes_do_nothing():
    n = 70
    at = RNG.permutation(200)[:n]
    ok = RNG.random(n) < 0.5
    at[~ok] = -10 ** 9

    def oracle(at, ok, x, y, z):
        y[at[ok]] = x[ok]
        return y, np.where(ok, x * 2, z)
    check(guarded, [at, ok, RNG.standard_normal(n).astype(np.float32), np.zeros(200, np.float32), np.ones(n, np.float32)], oracle)


@pytest.mark.parametrize("dt", NUMPY)
def test_elements_of_every_dtype_at_scattered_places(dt):
    d = I.dtype(dt)

    @intent.kernel
    def spread(at: I.In[I.i64, ("N",)], x: I.In[d, ("N",)], y: I.Out[d, ("N",)], z: I.Out[d, ("N",)], where: I.Out[I.index, ("N",)]):
        N, = x.shape
        n = I.domain(0, N)
        I.scatter_unique(y, index=at[n], value=x[n])
        z[n] = x[at[n]]
        I.scatter_unique(where, index=at[n], value=I.indices(n))

    at, x = RNG.permutation(70), RNG.integers(0, 2, 70).astype(numpy_dtype(dt))
    check(spread, [at, x, out(70, dt), out(70, dt), out(70, "index")], lambda at, x: (x[np.argsort(at)], x[at], np.argsort(at)),
          layouts=("contiguous", "strided"))


# --- programs ------------------------------------------------------------------------------------------------------------

@intent.kernel
def compact(x: I.In[I.f32, ("N",)], limit: I.f32, y: I.InOut[I.f32, ("N",)], count: I.Out[I.i64, (1,)]):
    """Stream compaction: kept elements move to the front, in order."""
    keep = x[:] > limit
    place = I.cumsum(I.cast(keep, I.i64), axis=0)
    I.scatter_unique(y, index=place - 1, value=x[:], valid=keep)
    count[0] = I.reduce.sum(I.cast(keep, I.i64), axis=0)


@pytest.mark.parametrize("n", [1, 31, 5000])
def test_stream_compaction(n):
    def oracle(x, limit, y):
        kept = x[x > limit]
        y[:len(kept)] = kept
        return y, np.array([len(kept)])
    check(compact, [RNG.standard_normal(n).astype(np.float32), np.float32(0.3), np.full(n, -7, np.float32), out(1, "i64")], oracle,
          layouts=("contiguous", "strided", "mixed"))


@intent.kernel
def spmv_coo(row: I.In[I.i64, ("E",)], col: I.In[I.i64, ("E",)], value: I.In[I.f64, ("E",)], x: I.In[I.f64, ("N",)],
             y: I.InOut[I.f64, ("M",)]):
    I.scatter_reduce(y, index=row[:], value=value[:] * x[col[:]], combine=I.add)


@intent.kernel
def spmv_csr(offsets: I.In[I.i64, ("P",)], col: I.In[I.i64, ("E",)], value: I.In[I.f64, ("E",)], x: I.In[I.f64, ("N",)],
             y: I.Out[I.f64, ("M",)]):
    M, = y.shape
    E, = col.shape
    members = I.domain(0, E)
    groups = I.ragged(I.domain(0, M), members, offsets)
    for i in I.parallel(groups.outer):
        g = groups[i]
        y[i] = I.reduce.sum(value[g] * x[col[g]], axis=0)


def test_sparse_matrix_times_vector():
    M, N = 60, 50
    dense = np.where(RNG.random((M, N)) < 0.15, RNG.integers(-5, 5, (M, N)), 0).astype(np.float64)
    dense[7] = 0
    row, col = np.nonzero(dense)
    value, x = dense[row, col], RNG.integers(-9, 9, N).astype(np.float64)
    offsets = np.r_[0, np.cumsum(np.bincount(row, minlength=M))]
    check(spmv_coo, [row, col, value, x, np.zeros(M)], lambda r, c, v, x, y: dense @ x)
    check(spmv_csr, [offsets, col, value, x, out(M, "f64")], lambda o, c, v, x: dense @ x)


@intent.kernel
def jagged_mean(offsets: I.In[I.i32, ("P",)], order: I.In[I.i32, ("R",)], x: I.In[I.f32, ("V", "D")], y: I.Out[I.f32, ("G", "D")]):
    """The mean of each group's rows, reached through an index."""
    G, D = y.shape
    R, = order.shape
    groups = I.ragged(I.domain(0, G), I.domain(0, R), offsets, indices=order)
    d = I.domain(0, D)
    for g in I.parallel(groups.outer):
        rows = I.members(groups[g])
        n, = rows.shape
        total = I.reduce.sum(x[rows, d], axis=0)
        y[g, d] = total / I.maximum(I.cast(n, I.f32), 1.0)


def test_jagged_mean():
    G, R, V, D = 12, 90, 40, 7
    lengths = RNG.multinomial(R, np.ones(G) / G)
    lengths[3], lengths[4] = 0, lengths[3] + lengths[4]
    offsets, order = np.r_[0, np.cumsum(lengths)].astype(np.int32), RNG.integers(0, V, R).astype(np.int32)
    x = RNG.integers(-8, 8, (V, D)).astype(np.float32)

    def oracle(offsets, order, x):
        y = np.zeros((G, D), np.float32)
        for g in range(G):
            rows = x[order[offsets[g]:offsets[g + 1]]]
            y[g] = rows.sum(axis=0) / np.float32(max(len(rows), 1))
        return y
    check(jagged_mean, [offsets, order, x, out((G, D), "f32")], oracle)
