"""Lists built by scans and scatters: radix sort, runs of equal elements, breadth-first search."""
from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse

import intent_numba as intent
import intent_numba.language as I
from tests.support import check, integers, out


@intent.kernel
def radix_argsort(x: I.In[I.u16, ("N",)], y: I.Out[I.u16, ("N",)], order: I.Out[I.index, ("N",)]):
    """Four bits at a time: an element goes behind all of lower digits and those of its own digit before it."""
    N, = x.shape
    n, digits = I.domain(0, N), I.indices(I.domain(0, 16))
    keys, at = I.buffer((2, N), I.u16), I.buffer((2, N), I.index)
    keys[0, n] = x[n]
    at[0, n] = I.indices(n)
    for step in range(4):
        now = step % 2
        digit = I.cast((keys[now, n] >> I.cast(step * 4, I.u16)) & 15, I.index)
        mine = I.cast(digit[:, None] == digits[None, :], I.i32)
        base = I.cumsum(I.reduce.sum(mine, axis=0), axis=0, inclusive=False)
        place = base[digit] + I.cumsum(mine, axis=0, inclusive=False)[I.indices(n), digit]
        I.scatter_unique(keys, index=(1 - now, place), value=keys[now, n])
        I.scatter_unique(at, index=(1 - now, place), value=at[now, n])
    y[n] = keys[0, n]
    order[n] = at[0, n]


@pytest.mark.parametrize("n", [0, 1, 33, 5000])
def test_radix_sort_is_stable(n, rng):
    x = integers(rng, n, "u16")
    x[::3] = 7
    check(radix_argsort, [x, out(n, "u16"), out(n, "index")], lambda x: (np.sort(x), np.argsort(x, kind="stable")),
          layouts=("contiguous", "mixed"))


@intent.kernel
def run_lengths(x: I.In[I.i32, ("N",)], value: I.InOut[I.i32, ("N",)], length: I.InOut[I.i64, ("N",)], begin: I.InOut[I.index, ("N",)],
                runs: I.Out[I.i64, ()]):
    n = I.domain(0, x.shape[0])
    i = I.indices(n)
    head = (i == 0) | (x[n] != I.gather(x, index=i - 1, valid=i > 0))
    run = I.cumsum(I.cast(head, I.i64), axis=0) - 1
    I.scatter_unique(value, index=run, value=x[n], valid=head)
    I.scatter_unique(begin, index=run, value=i, valid=head)
    I.scatter_reduce(length, index=run, value=I.cast(1, I.i64), combine=I.add)
    runs[()] = I.reduce.sum(I.cast(head, I.i64), axis=0)


@pytest.mark.parametrize("n", [0, 1, 33, 9000])
def test_run_lengths(n, rng):
    def oracle(x, value, length, begin):
        found = [(k, len(list(group))) for k, group in itertools.groupby(x)]
        for i, (k, count) in enumerate(found):
            value[i], length[i], begin[i] = k, count, length[:i].sum()
        return value, length, begin, np.array(len(found))

    check(run_lengths, [integers(rng, n, "i32", 0, 3), np.zeros(n, np.int32), np.zeros(n, np.int64), np.zeros(n, np.int64), out((), "i64")],
          oracle, layouts=("contiguous", "mixed"))


@intent.kernel
def distances_by_queue(offsets: I.In[I.i32, ("P",)], other: I.In[I.i32, ("E",)], source: I.i32, distance: I.Out[I.i32, ("V",)]):
    V, = distance.shape
    distance[:] = I.full((V,), -1, I.i32)
    queue = I.buffer((V,), I.i32)
    queue[0] = source
    distance[source] = 0
    head, tail = 0, 1
    while head < tail:
        v = queue[head]
        head += 1
        for e in I.domain(offsets[v], offsets[v + 1]):
            w = other[e]
            if distance[w] >= 0:
                continue
            distance[w] = distance[v] + 1
            queue[tail] = w
            tail += 1


@intent.kernel
def distances_by_levels(offsets: I.In[I.i32, ("P",)], other: I.In[I.i32, ("E",)], source: I.i32, distance: I.Out[I.i32, ("V",)]):
    """Each round compacts the vertices of the last level, and they mark their neighbours together."""
    v = I.domain(0, distance.shape[0])
    distance[v] = I.select(I.cast(I.indices(v), I.i32) == source, I.cast(0, I.i32), -1)
    level = I.cast(0, I.i32)
    while True:
        here = distance[v] == level
        count = I.reduce.sum(I.cast(here, I.i64), axis=0)
        if count == 0:
            break
        frontier = I.buffer((v,), I.index)
        I.scatter_unique(frontier, index=I.cumsum(I.cast(here, I.i64), axis=0, inclusive=False), value=I.indices(v), valid=here)
        for f in I.parallel(I.domain(0, count)):
            u = frontier[f]
            for e in I.domain(offsets[u], offsets[u + 1]):
                I.atomic.compare_exchange(distance[other[e]], -1, level + 1, order="relaxed")
        level = level + 1


@pytest.mark.parametrize("kernel", [distances_by_queue, distances_by_levels])
@pytest.mark.parametrize("n,density", [(1, 0.0), (60, 0.03), (200, 0.01)])
def test_breadth_first_search(kernel, n, density, rng):
    m = scipy.sparse.csr_matrix(rng.random((n, n)) < density)
    source = n // 3

    def oracle(offsets, other, *_):
        distance, level = np.full(n, -1, np.int32), [source]
        for d in itertools.count():
            distance[level] = d
            level = [w for u in level for w in other[offsets[u]:offsets[u + 1]] if distance[w] < 0]
            if not level:
                return distance

    check(kernel, [m.indptr.astype(np.int32), m.indices.astype(np.int32), np.int32(source), out(n, "i32")], oracle)
