"""Choosing among elements: top-k, nucleus cut-off, non-maximum suppression, compaction, the best path."""
from __future__ import annotations

import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from tests.support import check, integers, normal, out


# --- top-k ----------------------------------------------------------------------------------------------------------------

@intent.kernel
def top_k_by_rounds(x: I.In[I.f32, ("B", "N")], value: I.Out[I.f32, ("B", "K")], index: I.Out[I.i64, ("B", "K")]):
    """The largest, K times; the row without those taken is carried."""
    B, N = x.shape
    _, K = value.shape
    n = I.domain(0, N)
    for b in I.parallel(I.domain(0, B)):
        row, open = x[b, :], I.full((N,), True, I.bool)
        for k in I.domain(0, K):
            v, at = I.arg_reduce.max(I.select(open, row, -I.inf), axis=0)
            value[b, k] = v
            index[b, k] = I.cast(at, I.i64)
            open = open & (I.indices(n) != at)


@intent.kernel
def top_k_by_insertion(x: I.In[I.f32, ("B", "N")], value: I.Out[I.f32, ("B", "K")], index: I.Out[I.i64, ("B", "K")]):
    """One pass over the row with a sorted list of the best so far."""
    B, N = x.shape
    _, K = value.shape
    for b in I.parallel(I.domain(0, B)):
        best, where = I.buffer((K,), I.f32, init=-I.inf), I.buffer((K,), I.i64, init=0)
        for i in I.domain(0, N):
            v = x[b, i]
            if v > best[K - 1]:
                j = K - 1
                while j > 0:
                    if best[j - 1] >= v:
                        break
                    best[j] = best[j - 1]
                    where[j] = where[j - 1]
                    j = j - 1
                best[j] = v
                where[j] = I.cast(i, I.i64)
        value[b, :] = best[:]
        index[b, :] = where[:]


@intent.kernel
def top_k_by_rank(x: I.In[I.f32, ("B", "N")], value: I.Out[I.f32, ("B", "K")], index: I.Out[I.i64, ("B", "K")]):
    """An element's place is the number of elements that go before it."""
    B, N = x.shape
    _, K = value.shape
    n = I.indices(I.domain(0, N))
    for b in I.parallel(I.domain(0, B)):
        v = x[b, :]
        before = (v[:, None] > v[None, :]) | ((v[:, None] == v[None, :]) & (n[:, None] < n[None, :]))
        rank = I.reduce.sum(I.cast(before, I.i64), axis=0)
        I.scatter_unique(value, index=(b, rank), value=v, valid=rank < I.cast(K, I.i64))
        I.scatter_unique(index, index=(b, rank), value=I.cast(n, I.i64), valid=rank < I.cast(K, I.i64))


@pytest.mark.parametrize("kernel", [top_k_by_rounds, top_k_by_insertion, top_k_by_rank])
@pytest.mark.parametrize("b,n,k", [(5, 33, 4), (40, 3, 3), (1, 1, 1), (0, 5, 2), (2, 300, 9), (33, 40, 1)])
def test_top_k(kernel, b, n, k, rng):
    """Equal elements keep their order."""
    def oracle(x):
        at = np.argsort(-x, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(x, at, axis=1), at

    x = integers(rng, (b, n), "i32", -n, n).astype(np.float32)
    check(kernel, [x, out((b, k), "f32"), out((b, k), "i64")], oracle, layouts=("contiguous", "transposed", "mixed"))


# --- nucleus (top-p) ------------------------------------------------------------------------------------------------------

@intent.kernel
def nucleus_by_sorting(p: I.In[I.f64, ("B", "N")], limit: I.f64, q: I.Out[I.f64, ("B", "N")], kept: I.Out[I.i64, ("B",)]):
    """The smallest set of likeliest tokens whose mass reaches the limit, normalised."""
    B, N = p.shape
    n = I.indices(I.domain(0, N))
    for b in I.parallel(I.domain(0, B)):
        v = p[b, :]
        before = (v[:, None] > v[None, :]) | ((v[:, None] == v[None, :]) & (n[:, None] < n[None, :]))
        rank = I.reduce.sum(I.cast(before, I.i64), axis=0)
        sorted = I.buffer((N,), I.f64)
        I.scatter_unique(sorted, index=rank, value=v)
        mass = I.cumsum(sorted[:], axis=0, inclusive=False)
        chosen = mass[rank] < limit
        kept[b] = I.reduce.sum(I.cast(chosen, I.i64), axis=0)
        total = I.reduce.sum(I.select(chosen, v, 0.0), axis=0)
        q[b, :] = I.select(chosen, v / total, 0.0)


@intent.kernel
def nucleus_by_bisection(p: I.In[I.f64, ("B", "N")], limit: I.f64, q: I.Out[I.f64, ("B", "N")], kept: I.Out[I.i64, ("B",)]):
    """The same without sorting: the threshold is found by halving. Elements equal to it are all kept."""
    B, _ = p.shape
    for b in I.parallel(I.domain(0, B)):
        v = p[b, :]
        low, high = I.cast(0.0, I.f64), I.maximum(I.reduce.max(v, axis=0), 0.0)
        while True:
            middle = low + (high - low) * 0.5
            if middle <= low or middle >= high:
                break
            if I.reduce.sum(I.select(v > middle, v, 0.0), axis=0) < limit:
                high = middle
            else:
                low = middle
        chosen = v >= high
        kept[b] = I.reduce.sum(I.cast(chosen, I.i64), axis=0)
        total = I.reduce.sum(I.mask(v, valid=chosen, fill=0.0), axis=0)
        q[b, :] = I.mask(v / total, valid=chosen, fill=0.0)


@pytest.mark.parametrize("kernel", [nucleus_by_sorting, nucleus_by_bisection])
@pytest.mark.parametrize("b,n,limit", [(5, 33, 0.9), (33, 7, 0.5), (2, 200, 0.99), (3, 1, 0.3), (0, 4, 0.5), (4, 20, 0.0)])
def test_nucleus(kernel, b, n, limit, rng):
    if limit == 0.0 and kernel is nucleus_by_bisection:
        pytest.skip("the threshold is the largest element: there is always one")
    p = np.exp(rng.standard_normal((b, n)) * 2)
    p /= p.sum(axis=1, keepdims=True)

    def oracle(p, limit):
        q = np.zeros((b, n))
        for row, to in zip(p, q):
            mass = 0.0
            for i in np.argsort(-row, kind="stable"):
                if mass >= limit:
                    break
                to[i] = row[i]
                mass += row[i]
        kept = (q > 0).sum(axis=1)
        with np.errstate(invalid="ignore"):
            return np.nan_to_num(q / q.sum(axis=1, keepdims=True)), kept

    check(kernel, [p, np.float64(limit), out((b, n), "f64"), out(b, "i64")], oracle, ulps=8, layouts=("contiguous", "transposed", "mixed"))


# --- greedy non-maximum suppression ---------------------------------------------------------------------------------------

@intent.fn
def overlap(a, b):
    """Intersection over union of boxes (left, top, right, bottom): one scalar box against all."""
    width = I.maximum(I.minimum(a[2], b[2]) - I.maximum(a[0], b[0]), 0.0)
    height = I.maximum(I.minimum(a[3], b[3]) - I.maximum(a[1], b[1]), 0.0)
    both = width * height
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


@intent.kernel
def greedy_nms(box: I.In[I.f64, ("N", 4)], score: I.In[I.f32, ("N",)], limit: I.f64, keep: I.Out[I.i64, ("N",)], count: I.Out[I.i64, ()]):
    """The best box that is left stays and removes all that overlap it."""
    N, _ = box.shape
    n = I.domain(0, N)
    at, all = I.indices(n), (box[:, 0], box[:, 1], box[:, 2], box[:, 3])
    left, kept = I.full((N,), True, I.bool), I.cast(0, I.i64)
    while I.reduce.any(left, axis=0):
        _, best = I.arg_reduce.max(I.select(left, score[:], -I.inf), axis=0)
        keep[kept] = I.cast(best, I.i64)
        kept += 1
        one = (box[best, 0], box[best, 1], box[best, 2], box[best, 3])
        left = left & (at != best) & (overlap(one, all) <= limit)
    count[()] = kept


@intent.kernel
def nms_of_sorted_boxes(box: I.In[I.f64, ("N", 4)], limit: I.f64, keep: I.Out[I.bool, ("N",)]):
    """Boxes come best first: all overlaps at once, then one pass."""
    N, _ = box.shape
    n = I.domain(0, N)
    a = tuple_of_columns(box)
    over = overlap((a[0][:, None], a[1][:, None], a[2][:, None], a[3][:, None]), a) > limit
    later = I.indices(n)
    alive = I.full((N,), True, I.bool)
    for i in n:
        if alive[i]:
            alive = alive & I.logical_not(over[i, :] & (later > i))
    keep[:] = alive


@intent.fn
def tuple_of_columns(box):
    return box[:, 0], box[:, 1], box[:, 2], box[:, 3]


@pytest.mark.parametrize("n", [0, 1, 33, 150])
def test_non_maximum_suppression(n, rng):
    corner, size = rng.integers(0, 40, (n, 2)), rng.integers(5, 20, (n, 2))
    box, score = np.hstack([corner, corner + size]).astype(np.float64), rng.permutation(n).astype(np.float32)

    def iou(a, b):
        w, h = (max(0.0, min(a[i + 2], b[i + 2]) - max(a[i], b[i])) for i in (0, 1))
        return w * h / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - w * h)

    order, chosen = list(np.argsort(-score)), []
    while order:
        chosen.append(order.pop(0))
        order = [i for i in order if iou(box[chosen[-1]], box[i]) <= 0.4]

    got, count = check(greedy_nms, [box, score, np.float64(0.4), out(n, "i64"), out((), "i64")])
    assert got[:count].tolist() == chosen

    best_first = box[np.argsort(-score)]
    keep = np.isin(np.argsort(-score), chosen)
    check(nms_of_sorted_boxes, [best_first, np.float64(0.4), out(n, "bool")], lambda *_: keep)


# --- compaction -----------------------------------------------------------------------------------------------------------

@intent.kernel
def compact_records(key: I.In[I.i32, ("N",)], row: I.In[I.f32, ("N", "D")], rest: I.i32, kept: I.Out[I.f32, ("N", "D")],
                    source: I.Out[I.i64, ("N",)], count: I.Out[I.i64, ()]):
    """Stable partition: rows with the wanted key in front, the others behind, in their order."""
    N, D = row.shape
    n = I.domain(0, N)
    wanted = key[:] % 3 == rest
    ahead = I.cumsum(I.cast(wanted, I.i64), axis=0, inclusive=False)
    total = I.reduce.sum(I.cast(wanted, I.i64), axis=0)
    place = I.select(wanted, ahead, total + I.cast(I.indices(n), I.i64) - ahead)
    I.scatter_unique(kept, index=(place, I.domain(0, D)), value=row[:, :])
    I.scatter_unique(source, index=place, value=I.cast(I.indices(n), I.i64))
    count[()] = total


@pytest.mark.parametrize("n,d", [(0, 3), (1, 1), (33, 5), (4097, 3), (9000, 2)])
def test_stable_partition(n, d, rng):
    def oracle(key, row, rest):
        order = np.r_[np.flatnonzero(key % 3 == rest), np.flatnonzero(key % 3 != rest)]
        return row[order], order, np.array((key % 3 == rest).sum())

    check(compact_records, [integers(rng, n, "i32", -50, 50), normal(rng, (n, d)), np.int32(1), out((n, d), "f32"), out(n, "i64"),
                            out((), "i64")], oracle, layouts=("contiguous", "strided", "mixed"))


# --- Viterbi --------------------------------------------------------------------------------------------------------------

@intent.kernel
def viterbi(start: I.In[I.f32, ("S",)], move: I.In[I.f32, ("S", "S")], emit: I.In[I.f32, ("S", "O")], seen: I.In[I.i32, ("B", "T")],
            path: I.Out[I.i32, ("B", "T")], score: I.Out[I.f32, ("B",)]):
    """The likeliest states behind what was seen, in log probabilities: forward with back pointers, then backward along them."""
    S, _ = move.shape
    B, T = seen.shape
    for b in I.parallel(I.domain(0, B)):
        back = I.buffer((T, S), I.i32)
        best = start[:] + emit[:, seen[b, 0]]
        for t in I.domain(1, T):
            peak, source = I.arg_reduce.max(best[:, None] + move[:, :], axis=0)
            best = peak + emit[:, seen[b, t]]
            back[t, :] = I.cast(source, I.i32)
        top, last = I.arg_reduce.max(best, axis=0)
        score[b] = top
        state = I.cast(last, I.i32)
        for ordinal in I.domain(0, T):
            t = T - 1 - ordinal
            path[b, t] = state
            if t > 0:
                state = back[t, state]


@pytest.mark.parametrize("b,t,s,o", [(5, 12, 4, 3), (33, 1, 2, 2), (2, 40, 33, 7), (0, 3, 2, 2), (1, 300, 1, 1)])
def test_viterbi(b, t, s, o, rng):
    """Small integers as log probabilities: scores are exact and ties are frequent."""
    def oracle(start, move, emit, seen):
        paths, scores = np.zeros((b, t), np.int32), np.zeros(b)
        for p in range(b):
            best, back = [float(start[i] + emit[i, seen[p, 0]]) for i in range(s)], []
            for w in seen[p, 1:]:
                from_ = [max(range(s), key=lambda i: (best[i] + move[i, j], -i)) for j in range(s)]
                best = [float(best[from_[j]] + move[from_[j], j] + emit[j, w]) for j in range(s)]
                back.append(from_)
            at = max(range(s), key=lambda i: (best[i], -i))
            scores[p] = best[at]
            paths[p, -1] = at
            for k, from_ in zip(range(t - 2, -1, -1), back[::-1]):
                at = from_[at]
                paths[p, k] = at
        return paths, scores

    start, move, emit = (rng.integers(-5, 1, shape).astype(np.float32) for shape in (s, (s, s), (s, o)))
    check(viterbi, [start, move, emit, integers(rng, (b, t), "i32", 0, o), out((b, t), "i32"), out(b, "f32")], oracle,
          layouts=("contiguous", "transposed", "mixed"))
