"""Obligations about domains, memory, order and formats, each broken at a late place of a program that does several things."""
from __future__ import annotations

import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from intent_numba import reference
from intent_numba.reference.obligations import CHECKED, TRUSTED
from tests.support import assert_same_bits

from .planted import interpreted, rehearsed
from .test_obligations import PLANTS, assert_reported, report


@intent.fn
def weighted(v, scale):
    total = I.reduce.sum(v * scale, axis=0)
    return total / I.maximum(scale, 1.0)


@intent.kernel
def pooled(x: I.In[I.f32, ("R", 4)], offsets: I.In[I.i32, ("G1",)], place: I.In[I.u16, ("R",)], step: I.In[I.i64, ("G",)],
           head: I.In[I.i32, ("G",)], y: I.Out[I.f32, ("G", 4)], z: I.InOut[I.f32, ("Z",)]):
    G = y.shape[0]
    rows = I.domain(0, x.shape[0])
    for g in I.parallel(I.domain(0, G)):
        members = rows[offsets[g]:offsets[g + 1]]
        y[g, :] = I.reduce.sum(x[members, :], axis=0)
        if head[g] > 0:
            front = place[0:head[g]]
            total = weighted(x[front, 0], I.cast(head[g], I.f32))
            for r in I.domain(0, head[g], step[g]):
                y[g, 1] = y[g, 1] + x[r, 1]
            y[g, 0] = y[g, 0] + total
    some = x[step[0]:step[2], 2]
    kept = I.zeros((head[0] + 2,), I.f32)
    wide = I.reshape(z[:], (-1, step[2] - 3))
    z[0] = I.reduce.sum(I.reduce.sum(wide, axis=0), axis=0) + I.reduce.sum(kept, axis=0) + I.reduce.sum(some, axis=0)
    for g in range(G):
        back = z[head[g]:head[g] + 2]
        z[g] = I.reduce.sum(back, axis=0)


def pooling():
    rng = np.random.default_rng(1)
    return {"x": rng.standard_normal((9, 4)).astype("f4"), "offsets": np.array([0, 3, 3, 7, 9], "i4"), "place": np.arange(9, dtype="u2"),
            "step": np.array([2, 1, 5, 3]), "head": np.array([3, 0, 5, 4], "i4"),
            "y": np.zeros((4, 4), "f4"), "z": rng.random(8).astype("f4")}


@intent.fn
def claimed(free, e, n):
    before = I.atomic.add(free[e], 1, order="relaxed")
    return e * n + I.cast(before, I.index)


@intent.kernel
def routed(x: I.In[I.f32, ("T",)], expert: I.In[I.i32, ("T",)], at: I.In[I.index, ("T",)], alive: I.In[I.bool, ("T",)],
           back: I.In[I.index, ("T",)], free: I.InOut[I.i32, ("E",)], slots: I.Out[I.f32, ("S",)], counts: I.Out[I.i32, ("E",)],
           order: I.Out[I.f32, ("T",)], sums: I.InOut[I.f32, ("E",)]):
    T = x.shape[0]
    E = free.shape[0]
    slots[:] = I.zeros((slots.shape[0],), I.f32)
    counts[:] = I.histogram(expert[:], bins=E, valid=alive[:], count_dtype=I.i32)
    I.scatter_unique(order, index=at[:], value=x[:], valid=alive[:])
    I.scatter_reduce(sums, index=expert[:], value=x[:], combine=I.add, valid=alive[:])
    for t in I.parallel(I.domain(0, T)):
        if alive[t]:
            slot = claimed(free, I.cast(expert[t], I.index), 8)
            slots[slot] = x[t]
            seen = I.buffer((4,), I.f32)
            for k in range(4):
                if k != back[t]:
                    seen[k] = x[t]
            total = I.cast(0.0, I.f32)
            for m in range(4):
                if m + 1 != T:
                    total = total + seen[m]
            I.atomic.max(sums[expert[t]], total, order="relaxed")
    for t in I.parallel(I.domain(0, T)):
        if alive[t] and back[t] > 4:
            order[at[t]] = order[at[t] - back[t] + 5] + 1.0


def routing():
    return {"x": np.arange(6, dtype="f4"), "expert": np.array([0, 1, 9, 1, 0, 2], "i4"), "at": np.array([0, 2, 0, 1, 4, 3]),
            "alive": np.array([1, 1, 0, 1, 1, 1], bool), "back": np.array([5, 5, 0, 5, 5, 4]), "free": np.zeros(3, "i4"),
            "slots": np.zeros(24, "f4"), "counts": np.zeros(3, "i4"), "order": np.zeros(6, "f4"), "sums": np.zeros(3, "f4")}


@intent.fn
def products(v, p, f, s, b):
    half = I.sparse_matmul(v, p, b, format=I.sparse.one_of_two(compression_axis=1, logical_extent=b.shape[0]), acc_dtype=I.f32)
    pair = I.sparse_matmul(v, I.record(first=f, second=s), b,
                           format=I.sparse.two_of_four(compression_axis=1, logical_extent=b.shape[0]), acc_dtype=I.f32)
    return I.reduce.sum(half + pair, axis=0)


@intent.fn
def added(p, q):
    return p + q


@intent.kernel
def packed(v: I.In[I.f32, ("M", 4)], p: I.In[I.index, ("M", 4)], f: I.In[I.index, ("M", 2)], s: I.In[I.index, ("M", 2)],
           b: I.In[I.f32, ("K", "N")], x: I.In[I.f32, ("B", "G", 256)], w: I.In[I.u8, ("B", "G", 144)], o: I.InOut[I.u8, ("B", "G", 292)],
           y: I.Out[I.f32, ("N",)], d: I.Out[I.f32, ("B",)]):
    y[:] = I.region_fold(source=(v[:, :], p[:, :], f[:, :], s[:, :]), axis=0, summarize=products, combine=added,
                         identity=I.zeros((b.shape[1],), I.f32), operands=(b[:, :],))
    for i in I.domain(0, x.shape[0]):
        lhs = w[i, :, :]
        d[i] = I.quantized_dot(lhs, o[i, :, :], lhs_format=I.quant.q4_k, rhs_format=I.quant.q8_k, acc_dtype=I.f32)[()]
        if i > 0:
            o[i - 1, :, :] = I.quantize(x[i, :, :], format=I.quant.q8_k)


def packing():
    rng = np.random.default_rng(2)
    x = rng.standard_normal((3, 2, 256)).astype("f4")
    x[1, 1] = 0.0
    return {"v": rng.standard_normal((70, 4)).astype("f4"), "p": rng.integers(0, 2, (70, 4)), "f": rng.integers(0, 2, (70, 2)),
            "s": rng.integers(2, 4, (70, 2)), "b": rng.standard_normal((8, 3)).astype("f4"), "x": x,
            "w": rng.integers(0, 100, (3, 2, 144)).astype("u1"), "o": np.zeros((3, 2, 292), "u1"),
            "y": np.zeros(3, "f4"), "d": np.zeros(3, "f4")}


PAIR, HALF = "I.sparse_matmul(v, I.record", "I.sparse_matmul(v, p"
CASES = [
    (pooled, {("offsets", 4): 10}, "a subregion", "rows[offsets[g]", "7 .. 10 is not inside of its source, 0 .. 9", (3,)),
    (pooled, {("offsets", 1): 4}, "a subregion", "rows[offsets[g]", "4 .. 3 is not inside of its source, 0 .. 9", (1,)),
    (pooled, {("head", 2): 10}, "read", "place[0:head[g]]", "index 9 is outside axis 0 of 'place', whose extent is 9", (2, 9)),
    (pooled, {("place", 3): 9}, "read", "x[front, 0]", "index 9 is outside axis 0 of 'x', whose extent is 9", (2, 3)),
    (pooled, {("step", 3): 0, ("step", 2): -1}, "I.domain", "I.domain(0, head[g], step[g])", "the step is -1, it must be positive", (2,)),
    (pooled, {("step", 0): 6}, "I.domain", "x[step[0]:step[2], 2]", "the slice 6:5 ends before it begins", ()),
    (pooled, {("head", 0): -3}, "I.full", "I.zeros((head[0] + 2,), I.f32)", "the extent of axis 0 is -1, it must not be negative", ()),
    (pooled, {("step", 2): 3}, "I.reshape", "I.reshape(z[:]", "the product of the extents beside -1 is zero", ()),
    (pooled, {("step", 2): 2}, "I.reshape", "I.reshape(z[:]", "the extent of axis 0 is -8, it must not be negative", ()),
    (pooled, {"z": np.ones(7, "f4")}, "I.reshape", "I.reshape(z[:]", "7 elements do not fill the shape (3, 2), which has 6", ()),
    (pooled, {("head", 3): -1}, "read", "z[head[g]:head[g] + 2]", "index -1 is outside axis 0 of 'z', whose extent is 8", (3, 0)),
    (pooled, {("head", 1): 7}, "read", "z[head[g]:head[g] + 2]", "index 8 is outside axis 0 of 'z', whose extent is 8", (1, 1)),
    (routed, {("alive", 2): True}, "I.histogram", "I.histogram(", "the value is outside of the bins 0 .. 2", (2,)),
    (routed, {("expert", 5): -1}, "I.histogram", "I.histogram(", "the value is outside of the bins 0 .. 2", (5,)),
    (routed, {"free": np.zeros(0, "i4"), "counts": np.zeros(0, "i4"), "sums": np.zeros(0, "f4")}, "I.histogram", "I.histogram(",
     "the number of bins is 0, it must be positive", ()),
    (routed, {("at", 5): 2}, "I.scatter_unique", "I.scatter_unique(", "two elements are stored to one place of 'order'", (5,)),
    (routed, {("at", 3): 6}, "I.scatter_unique", "I.scatter_unique(", "index 6 is outside axis 0 of 'order', whose extent is 6", (3,)),
    (routed, {"slots": np.zeros(12, "f4")}, "store", "slots[slot] = x[t]", "index 16 is outside axis 0 of 'slots', whose extent is 12",
     (5,)),
    (routed, {("free", 1): -8}, "store", "slots[slot] = x[t]",
     "this store of 'slots' and the store of the same element at point (0,) have no order",
     (1,)),
    (routed, {("back", 3): 2, ("back", 5): 3}, "read", "seen[m]", "an element of the buffer that nothing wrote is read", (3, 2)),
    (routed, {("back", 1): 6}, "store", "order[at[t]] =",
     "this store of 'order' and the read of the same element at point (1,) have no order", (3,)),
    (routed, {("back", 3): 6}, "read", "order[at[t] - back[t] + 5]",
     "this read of 'order' and the store of the same element at point (0,) have no order", (3,)),
    (routed, {("at", 4): 5, ("back", 4): 6}, "read", "order[at[t] - back[t] + 5]",
     "an element of 'order' that nothing wrote is read", (4,)),
    (packed, {("p", 69, 3): 2}, "I.sparse_matmul", HALF, "a position of the metadata is not 0 or 1", (69, 3)),
    (packed, {("f", 65, 1): -1}, "I.sparse_matmul", PAIR, "a position of the metadata is outside 0 .. 3", (65, 1)),
    (packed, {("s", 64, 0): 4}, "I.sparse_matmul", PAIR, "a position of the metadata is outside 0 .. 3", (64, 0)),
    (packed, {("f", 1, 1): 3, ("s", 1, 1): 3}, "I.sparse_matmul", PAIR, "the positions of a group do not ascend", (1, 1)),
    (packed, {"b": np.ones((12, 3), "f4")}, "I.sparse_matmul", HALF, "the logical extent is not 2 times a stored one", ()),
    (packed, {("x", 2, 1, 255): np.nan}, "I.quantize", "I.quantize(", "a value is not finite", (2, 1, 255)),
    (packed, {("x", 1, 1, 0): 1e-45}, "I.quantize", "I.quantize(", "the inverse of a block's extreme is not finite", (1, 1)),
    (packed, {("o", 2, 1, 291): 1}, "I.quantized_dot", "I.quantized_dot(", "a bsum of rhs is not the sum of its values", (2, 1, 15)),
]


MAKE = {pooled: pooling, routed: routing, packed: packing}


@pytest.mark.parametrize("kernel", MAKE, ids=lambda k: k.__name__)
def test_clean_programs_are_silent(kernel):
    args = list(MAKE[kernel]().values())
    for got, want in zip(reference.rehearse(rehearsed(kernel), args), interpreted(kernel, args)):
        assert_same_bits(got, want)
    checked, plain = ([a.copy() for a in args] for _ in range(2))
    intent.compile(kernel, options=intent.CompileOptions(checks=True))(*checked)
    kernel(*plain)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(checked, plain))


@pytest.mark.parametrize("kernel, changes, operation, mark, text, at", CASES)
def test_reported(kernel, changes, operation, mark, text, at):
    args = MAKE[kernel]()
    for what, value in changes.items():
        if isinstance(what, tuple):
            args[what[0]][what[1:]] = value
        else:
            args[what] = value
    lines = inspect.getsource(inspect.getmodule(kernel.pyfunc)).splitlines()
    assert_reported(report(kernel, list(args.values())), kernel, lines, operation, mark, text, at)


@intent.kernel
def attended(q: I.In[I.f32, ("M", "D")], k: I.In[I.f32, ("N", "D")], v: I.In[I.f16, ("N", "E")], ok: I.In[I.bool, ("M", "N")],
             y: I.Out[I.f32, ("M", "E")], z: I.Out[I.f16, ("M", "E")]):
    s = I.matmul(q[:, :], k[:, :], acc_dtype=I.f32, transpose_rhs=True)
    top = I.mask(s, valid=ok[:, :], fill=-I.inf)
    w = I.exp2((top - I.reduce.max(top, axis=1)[:, None]) * 1.5)
    y[:, :] = I.matmul(w, I.cast(v[:, :], I.f32), acc_dtype=I.f32) / I.reduce.sum(w, axis=1)[:, None]
    for i in I.parallel(I.domain(0, q.shape[0])):
        t = I.matvec(k[:, :], q[i, :], acc_dtype=I.f32)
        e = I.exp(t - I.reduce.max(t, axis=0))
        p = I.cast(e / I.reduce.sum(e, axis=0), I.f16)
        z[i, :] = I.cast(I.vecmat(p, v[:, :], acc_dtype=I.f32), I.f16)


SCORE, WEIGHTED = "a valid score is not finite", "a value of the weighted contraction is not finite"


@pytest.mark.parametrize("where, value, mark, text, at", [
    (None, 0, "", "", ()), (("ok", slice(None), 2), False, "", "", ()),
    (("k", 2, 0), np.inf, "I.reduce.max(top", SCORE, (0, 2)), (("q", 1, 1), np.nan, "I.reduce.max(top", SCORE, (1, 0)),
    (("v", 3, 1), -np.inf, "I.matmul(w", WEIGHTED, (3, 1))])
def test_relaxed_normalization_needs_finite_operands(where, value, mark, text, at):
    """What is not valid may be anything as a score, but takes part in the contraction."""
    rng = np.random.default_rng(3)
    args = {name: rng.standard_normal(shape).astype("f4") for name, shape in (("q", (3, 4)), ("k", (5, 4)), ("v", (5, 2)))}
    args |= {"v": args["v"].astype("f2"), "ok": np.ones((3, 5), bool), "y": np.zeros((3, 2), "f4"), "z": np.zeros((3, 2), "f2")}
    if where:
        args[where[0]][where[1:]] = value
    plain, relaxed = (intent.compile(attended, options=intent.CompileOptions(checks=True, numerics=n)) for n in
                      ("source", "relaxed_normalization"))
    want = plain.run(*list(args.values())[:4])
    if not text:
        assert all(a.tobytes() == b.tobytes() for a, b in zip(relaxed.run(*list(args.values())[:4]), want))
        return
    with pytest.raises(intent.InvalidInput) as caught:
        relaxed.run(*list(args.values())[:4])
    lines = inspect.getsource(inspect.getmodule(attended.pyfunc)).splitlines()
    assert_reported(caught.value, attended, lines, None, mark, text, at)


def test_every_obligation_is_broken_somewhere():
    texts = [p.text for p in PLANTS] + [case[4] for case in CASES] + [SCORE, WEIGHTED]
    for name, duty in CHECKED.items():
        pattern = re.escape(duty.message).replace(re.escape("{}"), ".*")
        assert any(re.match(pattern, text) for text in texts), name


def test_the_page_lists_every_obligation():
    page = (Path(__file__).parents[2] / "docs" / "numerics.md").read_text()
    for duty in (*CHECKED.values(), *TRUSTED.values()):
        assert f"| {duty.duty} |" in page, duty.duty
