"""Mixture of experts: a gate picks two experts for each token, tokens take slots, experts work, tokens gather what was made."""
from __future__ import annotations

import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from tests.support import LAYOUTS, check, execute, interpret, normal, out


@intent.fn
def top_two(logits):
    """The two largest logits of a row with their softmax weights."""
    a, first = I.arg_reduce.max(logits, axis=0)
    others = I.select(I.indices(I.domain(0, logits.shape[0])) == first, -I.inf, logits)
    b, second = I.arg_reduce.max(others, axis=0)
    weight = 1.0 / (1.0 + I.exp(b - a))
    return I.record(first=first, second=second, weight=weight)


@intent.kernel
def route_by_atomics(logits: I.In[I.f32, ("T", "E")], count: I.InOut[I.i32, ("E",)], token: I.InOut[I.i32, ("E", "C")],
                     expert: I.Out[I.i32, ("T", 2)], slot: I.Out[I.i32, ("T", 2)], weight: I.Out[I.f32, ("T", 2)]):
    """Slots in order of arrival; a token that comes too late is dropped by that expert."""
    T, _ = logits.shape
    _, C = token.shape
    for t in I.parallel(I.domain(0, T)):
        g = top_two(logits[t, :])
        for j in range(2):
            e = g.first if j == 0 else g.second
            place = I.atomic.add(count[e], 1, order="relaxed")
            expert[t, j] = I.cast(e, I.i32)
            slot[t, j] = place
            weight[t, j] = g.weight if j == 0 else 1.0 - g.weight
            if place < I.cast(C, I.i32):
                token[e, place] = I.cast(t, I.i32)


@intent.kernel
def route_by_scan(logits: I.In[I.f32, ("T", "E")], count: I.Out[I.i32, ("E",)], token: I.InOut[I.i32, ("E", "C")],
                  expert: I.Out[I.i32, ("T", 2)], slot: I.Out[I.i32, ("T", 2)], weight: I.Out[I.f32, ("T", 2)]):
    """Slots in order of tokens: a token's place is the number of those before it that chose the same expert."""
    T, E = logits.shape
    _, C = token.shape
    experts = I.indices(I.domain(0, E))
    a, first = I.arg_reduce.max(logits[:, :], axis=1)
    b, second = I.arg_reduce.max(I.select(experts[None, :] == first[:, None], -I.inf, logits[:, :]), axis=1)
    chosen = (experts[None, :] == first[:, None]) | (experts[None, :] == second[:, None])
    place = I.cumsum(I.cast(chosen, I.i32), axis=0, inclusive=False)
    t = I.indices(I.domain(0, T))
    both = I.join(first, second)
    places = place[t[:, None], both]
    expert[:, :] = I.cast(both, I.i32)
    slot[:, :] = places
    w = 1.0 / (1.0 + I.exp(b - a))
    weight[:, :] = I.join(w, 1.0 - w)
    count[:] = I.reduce.sum(I.cast(chosen, I.i32), axis=0)
    I.scatter_unique(token, index=(both, places), value=I.cast(t, I.i32)[:, None], valid=places < I.cast(C, I.i32))


@intent.kernel
def experts_of_tokens(x: I.In[I.f32, ("T", "D")], w: I.In[I.f32, ("E", "D", "H")], count: I.In[I.i32, ("E",)],
                      token: I.In[I.i32, ("E", "C")], h: I.InOut[I.f32, ("E", "C", "H")]):
    """Each expert multiplies the tokens in its slots."""
    E, C, _ = h.shape
    for e in I.parallel(I.domain(0, E)):
        used = I.domain(0, I.minimum(count[e], I.cast(C, I.i32)))
        h[e, used, :] = I.relu(I.matmul(x[token[e, used], :], w[e, :, :], acc_dtype=I.f32))


@intent.kernel
def combine(h: I.In[I.f32, ("E", "C", "H")], expert: I.In[I.i32, ("T", 2)], slot: I.In[I.i32, ("T", 2)], weight: I.In[I.f32, ("T", 2)],
            y: I.Out[I.f32, ("T", "H")]):
    _, C, H = h.shape
    kept = slot[:, :] < I.cast(C, I.i32)
    rows = I.gather(h, index=(expert[:, :], slot[:, :], I.domain(0, H)), valid=kept[:, :, None], fill=0.0)
    y[:, :] = I.reduce.sum(rows * weight[:, :][:, :, None], axis=1)


SIZES = [(0, 3, 4), (1, 2, 1), (33, 4, 10), (500, 8, 90), (5000, 3, 4000)]


def gate(logits):
    order = np.argsort(-logits, axis=1, kind="stable")[:, :2]
    top = np.take_along_axis(logits.astype("f8"), order, axis=1)
    e = np.exp(top - top[:, :1]) if len(top) else top
    return order, e / e.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("t,e,c", SIZES)
def test_slots_by_scan(t, e, c, rng):
    def oracle(logits, token):
        expert, weight = gate(logits)
        count, slot = np.zeros(e, int), np.zeros((t, 2), int)
        for i in range(t):
            for j in range(2):
                k = expert[i, j]
                slot[i, j] = count[k]
                count[k] += 1
                if slot[i, j] < c:
                    token[k, slot[i, j]] = i
        return count, token, expert, slot, weight

    check(route_by_scan, [normal(rng, (t, e)), out(e, "i32"), np.full((e, c), -1, np.int32), out((t, 2), "i32"), out((t, 2), "i32"),
                          out((t, 2), "f32")], oracle, floor=4, layouts=("contiguous", "strided", "mixed"))


@pytest.mark.parametrize("t,e,c", SIZES)
def test_slots_by_atomics(t, e, c, rng):
    """Whatever the order of arrival: every slot below the capacity is taken once, by a token that chose its expert."""
    logits = normal(rng, (t, e))
    expert, weight = gate(logits)
    args = [logits, np.zeros(e, np.int32), np.full((e, c), -1, np.int32), out((t, 2), "i32"), out((t, 2), "i32"), out((t, 2), "f32")]
    for got in [interpret(route_by_atomics, args), *(execute(route_by_atomics, args, layout=layout) for layout in LAYOUTS)]:
        count, token, chosen, slot, w = got
        assert np.array_equal(chosen, expert) and np.allclose(w, weight, rtol=0, atol=4e-7)
        assert np.array_equal(count, np.bincount(expert.ravel(), minlength=e))
        for k in range(e):
            mine, column = np.nonzero(expert == k)
            places = slot[mine, column]
            assert np.array_equal(np.sort(places), np.arange(len(mine)))
            kept = places < c
            assert np.array_equal(token[k, places[kept]], mine[kept]) and (token[k, kept.sum():] == -1).all()


def test_routed_layer(rng):
    """Three kernels together against every token's two experts applied one by one."""
    t, e, c, d, h = 70, 4, 64, 9, 33
    x, w, logits = normal(rng, (t, d)), normal(rng, (e, d, h)), normal(rng, (t, e))
    count, token, expert, slot, weight = check(route_by_scan, [logits, out(e, "i32"), np.zeros((e, c), np.int32), out((t, 2), "i32"),
                                                               out((t, 2), "i32"), out((t, 2), "f32")], layouts=("contiguous",))
    assert count.max() < c
    made, = check(experts_of_tokens, [x, w, count, token, np.zeros((e, c, h), np.float32)])
    each = np.maximum(np.einsum("td,edh->teh", x.astype("f8"), w.astype("f8")), 0)
    order, gates = gate(logits)
    want = sum(gates[:, j, None] * each[np.arange(t), order[:, j]] for j in range(2))
    check(combine, [made, expert, slot, weight, out((t, h), "f32")], lambda *_: want, floor=64)
    dropped, = check(combine, [made, expert, np.where(slot < 5, slot, c), weight, out((t, h), "f32")], layouts=("contiguous", "mixed"))
    assert np.isfinite(dropped).all()
