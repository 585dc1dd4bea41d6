"""Region fold and region scan (002 section 9): what may be captured, what a slice may be, and that no cut shows.

Each program gives the same bits by the reference, compiled, and under every forced segmentation; data is exact.
"""
from __future__ import annotations

import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from tests.language.test_region import everywhere, plus, total
from tests.support import integers, out

WEIGHT = 3


class Direction(I.Enum):
    UP = "up"
    DOWN = "down"


# --- captures ----------------------------------------------------------------------------------------------------------

@intent.fn
def dispatched(x, at, extra, table, POWER, SQUARE, WHICH):
    """Constexprs choose code, an axis and an exponent; a record and a tensor come along whole."""
    v = x * x if SQUARE else x
    v = v ** POWER
    if WHICH == Direction.DOWN:
        v = -v
    picked = I.gather(table, index=at % table.shape[0])
    return I.reduce.sum(v * picked + extra.bias * WEIGHT, axis=0) * extra.scale[1]


@intent.kernel
def captures(x: I.In[I.i64, ("N",)], table: I.In[I.i64, ("T",)], bias: I.i64, y: I.Out[I.i64, (2,)],
             POWER: I.Constexpr[int], SQUARE: I.Constexpr[bool], WHICH: I.Constexpr[Direction]):
    at = I.indices(I.domain(0, x.shape[0]))
    extra = I.record(bias=bias, scale=(bias, bias + 1))
    y[0] = I.region_fold(source=(x[:], at), axis=0, summarize=dispatched, combine=plus, identity=0,
                         operands=(extra, table[:], POWER, SQUARE, WHICH))
    y[1] = I.region_fold(source=(x[:], at), axis=0, summarize=dispatched, combine=plus, identity=0,
                         operands=(extra, table[:], 2, False, Direction.UP))


@pytest.mark.parametrize("power, square, which", [(1, True, Direction.UP), (3, False, Direction.DOWN)])
@pytest.mark.parametrize("n", [0, 5, 130])
def test_operands_are_runtime_values_and_constexprs(n, power, square, which, rng):
    x, table = integers(rng, n, "i64", -9, 9), integers(rng, 7, "i64", -9, 9)

    def oracle(x, table, bias):
        def fold(power, square, which):
            v = (x * x if square else x) ** power * (-1 if which == Direction.DOWN else 1)
            return (v * table[np.arange(n) % 7] + bias * WEIGHT).sum() * (bias + 1)
        return np.array([fold(power, square, which), fold(2, False, Direction.UP)])
    everywhere(captures, [x, table, np.int64(4), out(2, "i64")], oracle, exact=True, POWER=power, SQUARE=square, WHICH=which)


# --- mixed ranks -------------------------------------------------------------------------------------------------------

@intent.fn
def summary(x, keep, at):
    n = I.reduce.sum(I.cast(keep, I.i64), axis=0)
    kept = I.select(keep[:, None], x, 0)
    gram = I.contract(kept, x, reduce=((0, 0),), acc_dtype=I.i64)
    last = I.reduce.max(I.select(keep, I.cast(at, I.i64), -1), axis=0)
    return I.record(n=n, sums=I.reduce.sum(kept, axis=0), more=(gram, I.record(last=last)))


@intent.fn
def joined(a, b):
    return I.record(n=a.n + b.n, sums=a.sums + b.sums, more=(a.more[0] + b.more[0],
                                                             I.record(last=I.maximum(a.more[1].last, b.more[1].last))))


@intent.kernel
def mixed(x: I.In[I.i64, ("N", "D")], keep: I.In[I.bool, ("N",)], n: I.Out[I.i64, ()], sums: I.Out[I.i64, ("D",)],
          gram: I.Out[I.i64, ("D", "D")], last: I.Out[I.i64, ()]):
    N, D = x.shape
    s = I.region_fold(source=(x[:, :], keep[:], I.indices(I.domain(0, N))), axis=0, summarize=summary, combine=joined,
                      identity=I.record(n=0, sums=I.zeros((D,), I.i64), more=(I.zeros((D, D), I.i64), I.record(last=-1))))
    n[()], sums[:], gram[:, :], last[()] = s.n, s.sums, s.more[0], s.more[1].last


@pytest.mark.parametrize("n", [0, 1, 64, 65, 150])
def test_summaries_of_mixed_rank(n, rng):
    def oracle(x, keep):
        return (np.array(keep.sum()), (x * keep[:, None]).sum(0), (x * keep[:, None]).T @ x,
                np.array(np.flatnonzero(keep)[-1] if keep.any() else -1))
    args = [integers(rng, (n, 3), "i64", -9, 9), rng.integers(0, 2, n) > 0, out((), "i64"), out(3, "i64"), out((3, 3), "i64"), out((),
                                                                                                                                   "i64")]
    everywhere(mixed, args, oracle, exact=True)


# --- inside other constructs ---------------------------------------------------------------------------------------------

@intent.fn
def prefixes(x, state):
    return I.cumsum(x, axis=-1) + state[:, None]


@intent.fn
def along_rows(x):
    return I.reduce.sum(x, axis=-1)


@intent.kernel
def placed(x: I.In[I.i64, ("B", "N", "D")], begin: I.index, end: I.index, y: I.Out[I.i64, ("B", "D", "N")], z: I.Out[I.i64, ("B", "D")],
           w: I.Out[I.i64, ("B",)]):
    """In a loop over points, along an inner axis of a part of the source, under a condition, with its results used at once."""
    B, N, D = x.shape
    cols = I.domain(0, N)
    part = cols[begin:end]
    for b in I.parallel(I.domain(0, B)):
        turned = I.transpose(x[b, part, :])
        state = x[b, 0, :]
        if b % 2 == 0:
            o, state = I.region_scan(source=turned, axis=1, summarize=along_rows, combine=plus, identity=I.zeros((D,), I.i64),
                                     initial_state=x[b, 0, :], apply=plus, emit=prefixes)
            y[b, :, part] = o
        z[b, :] = state
        w[b] = I.region_fold(source=(x[b, part, 0] * 2 + I.cast(I.indices(part), I.i64),), axis=-1, summarize=total, combine=plus,
                             identity=0)


@pytest.mark.parametrize("begin, end", [(0, 100), (3, 9), (4, 4), (30, 100)])
def test_parts_points_and_branches(begin, end, rng):
    x = integers(rng, (3, 100, 2), "i64", -99, 99)

    def oracle(x):
        y, z = np.full((3, 2, 100), -6510615555426900571), x[:, 0, :].copy()             # what nothing wrote stays
        for b in (0, 2):
            y[b, :, begin:end] = np.cumsum(x[b, begin:end], axis=0).T + x[b, 0][:, None]
            z[b] += x[b, begin:end].sum(0)
        return y, z, (x[:, begin:end, 0] * 2 + np.arange(begin, end)).sum(1)
    everywhere(placed, [x, begin, end, out((3, 2, 100), "i64"), out((3, 2), "i64"), out(3, "i64")], lambda x, *_: oracle(x), exact=True)


# --- states and outputs of different schema -------------------------------------------------------------------------------

@intent.fn
def counts(x, at):
    return I.record(n=I.reduce.sum(I.cast(x > 0, I.i32), axis=0), peak=I.reduce.max(x, axis=0))


@intent.fn
def later(a, b):
    return I.record(n=a.n + b.n, peak=I.maximum(a.peak, b.peak))


@intent.fn
def advance(t, state):
    """A state that is not a transition: (positives so far, highest so far as f32)."""
    return state[0] + I.cast(t.n, I.i64), I.maximum(state[1], I.cast(t.peak, I.f32))


@intent.fn
def ranks(x, at, state):
    seen = I.cumsum(I.cast(x > 0, I.i64), axis=0) + state[0]
    return I.select(x > 0, seen, -1), I.cast(I.maximum(I.cummax(x, axis=0), I.cast(state[1], I.i16)), I.f32), at


@intent.kernel
def ranked(x: I.In[I.i16, ("N",)], rank: I.Out[I.i64, ("N",)], peak: I.Out[I.f32, ("N",)], where: I.Out[I.index, ("N",)],
           n: I.Out[I.i64, ()], top: I.Out[I.f32, ()]):
    at = descending(x.shape[0], I.indices(I.domain(0, x.shape[0])))
    o, s = I.region_scan(source=(x[:], at), axis=0, summarize=counts, combine=later, identity=I.record(n=0, peak=-32768),
                         initial_state=(10, -5.0), apply=advance, emit=ranks)
    rank[:], peak[:], where[:] = o
    n[()], top[()] = s


@intent.fn
def descending(n, at):
    return n - 1 - at


@pytest.mark.parametrize("n", [0, 1, 70, 200])
def test_states_differ_from_transitions(n, rng):
    def oracle(x):
        seen = 10 + np.cumsum(x > 0)
        peak = np.maximum(np.maximum.accumulate(x), -5).astype("f4") if n else np.zeros(0, "f4")
        return (np.where(x > 0, seen, -1), peak, np.arange(n)[::-1], np.array(10 + (x > 0).sum()), np.array(max([-5.0, *x])))
    x = integers(rng, n, "i16", -99, 99)
    everywhere(ranked, [x, out(n, "i64"), out(n, "f32"), out(n, "index"), out((), "i64"), out((), "f32")], oracle, exact=True)


# --- masked segments (decision 47) -----------------------------------------------------------------------------------------

@intent.fn
def weighted(x, keep, v):
    w = I.select(keep, x, 0.0)
    return I.matmul(w[None, :], v, acc_dtype=I.f32)


@intent.kernel
def masked_product(x: I.In[I.f32, ("N",)], keep: I.In[I.bool, ("N",)], v: I.In[I.f32, ("N", "D")], y: I.Out[I.f32, (1, "D")]):
    y[:, :] = I.region_fold(source=(x[:], keep[:], v[:, :]), axis=0, summarize=weighted, combine=plus, identity=I.zeros((1, v.shape[1]),
                                                                                                                        I.f32))


def test_masked_segments_still_matter():
    """A weight of zero times infinity is NaN, also where a whole segment is masked out."""
    x, v = np.ones(200, "f4"), np.ones((200, 3), "f4")
    keep = np.arange(200) < 10
    v[150, 1], v[100, 2] = np.inf, np.nan
    (y,) = everywhere(masked_product, [x, keep, v, out((1, 3), "f32")], lambda *a: np.array([[10, np.nan, np.nan]], "f4"), exact=True)
    assert y[0, 0] == 10
