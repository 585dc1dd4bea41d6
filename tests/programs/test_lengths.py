"""Tasks whose scratch has extents that the task itself computes: ragged groups, lengths read from memory, lengths that grow."""
from __future__ import annotations

import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from tests.support import check, normal, out


@intent.kernel
def ragged_softmax(x: I.In[I.f32, ("N",)], offsets: I.In[I.i32, ("G1",)], y: I.Out[I.f32, ("N",)]):
    members = I.domain(0, x.shape[0])
    for g in I.parallel(I.domain(0, offsets.shape[0] - 1)):
        part = members[offsets[g]:offsets[g + 1]]
        v = x[part]
        e = I.exp(v - I.reduce.max(v, axis=0))
        y[part] = e / I.reduce.sum(e, axis=0)


@pytest.mark.parametrize("offsets", [[0, 3, 3, 40, 1000], [0, 0], [0, 5000]])
def test_softmax_of_ragged_groups(offsets, rng):
    def oracle(x, offsets):
        y = np.zeros(len(x))
        for a, b in zip(offsets, offsets[1:]):
            e = np.exp(x[a:b].astype("f8") - x[a:b].max(initial=-np.inf))
            y[a:b] = e / e.sum()
        return y
    check(ragged_softmax, [normal(rng, (offsets[-1],)), np.array(offsets, "i4"), out(offsets[-1], "f32")], oracle, ulps=8, floor=1,
          layouts=("contiguous", "mixed"))


@intent.kernel
def lengths(n: I.In[I.i32, ("G",)], y: I.Out[I.i64, ("G",)], z: I.Out[I.i64, ("G",)]):
    for g in I.parallel(I.domain(0, n.shape[0])):
        at = I.cast(I.indices(I.domain(0, n[g])), I.i64)
        run = I.cumsum(at, axis=0)
        total = I.reduce.sum(run, axis=0)
        y[g] = I.reduce.max(run * total, axis=0)
        square = I.outer(at, at + 1)
        turned = I.cumsum(square, axis=0) + I.cumsum(square, axis=1)
        z[g] = I.reduce.sum(turned, axis=(0, 1))


def test_lengths_read_from_memory():
    n = np.array([3, 40, 0, 1, 33, 2], "i4")

    def oracle(n):
        y, z = [], []
        for k in n:
            at = np.arange(k)
            run = np.cumsum(at)
            y.append((run * run.sum()).max(initial=-2 ** 63))
            square = np.outer(at, at + 1)
            z.append((np.cumsum(square, 0) + np.cumsum(square, 1)).sum())
        return np.array(y), np.array(z)
    check(lengths, [n, out(6, "i64"), out(6, "i64")], oracle, layouts=("contiguous", "mixed"))


@intent.kernel
def growing(rounds: I.In[I.i32, ("G",)], y: I.Out[I.f32, ("G",)]):
    for g in I.parallel(I.domain(0, rounds.shape[0])):
        acc = I.cast(0.0, I.f32)
        for r in I.domain(0, rounds[g]):
            v = I.cumsum(I.full((r * r,), 1.0, I.f32), axis=0)
            acc = acc + I.reduce.sum(v, axis=0) / I.cast(r + 1, I.f32)
        y[g] = acc


def test_scratch_grows_inside_a_loop():
    def oracle(rounds):
        return np.array([sum(r * r * (r * r + 1) / 2 / (r + 1) for r in range(k)) for k in rounds])
    check(growing, [np.array([0, 1, 5, 12], "i4"), out(4, "f32")], oracle, ulps=8, layouts=("contiguous",))


@intent.kernel
def reversed_runs(x: I.In[I.i32, ("N",)], offsets: I.In[I.i32, ("G1",)], y: I.Out[I.i32, ("N",)]):
    for g in I.parallel(I.domain(0, offsets.shape[0] - 1)):
        begin = I.cast(offsets[g], I.index)
        n = I.cast(offsets[g + 1], I.index) - begin
        b = I.buffer((n,), I.i32)
        for i in I.domain(0, n):
            b[n - 1 - i] = x[begin + i]
        for i in I.domain(0, n):
            y[begin + i] = b[i]


def test_buffers_of_unknown_length(rng):
    offsets = np.array([0, 4, 4, 90, 100], "i4")
    x = rng.integers(-99, 99, 100).astype("i4")

    def oracle(x, offsets):
        return np.concatenate([x[a:b][::-1] for a, b in zip(offsets, offsets[1:])])
    check(reversed_runs, [x, offsets, out(100, "i32")], oracle, layouts=("contiguous", "mixed"))
