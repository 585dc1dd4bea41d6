"""Attention as it is deployed: grouped queries, masks of several kinds, paged caches, a backward pass, and retention with decay.

The oracles are NumPy in f64; what folds or scans over regions gives the same under every segmentation.
"""
from __future__ import annotations

import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from tests.support import check, everywhere, normal, out

CLOSE = {"ulps": 64, "floor": 64}


# --- one pass over the keys ------------------------------------------------------------------------------------------------

class Mask(I.Enum):
    NONE = "none"
    CAUSAL = "causal"
    WINDOW = "window"


@intent.fn
def visible(rows, keys, window, MASK):
    if MASK == Mask.NONE:
        return I.full((rows.shape[0], keys.shape[0]), True, I.bool)
    seen = keys[None, :] <= rows[:, None]
    if MASK == Mask.WINDOW:
        seen = seen & (rows[:, None] - keys[None, :] < window)
    return seen


@intent.fn
def part(k, v, valid, at, q, rows, scale, slope, window, MASK):
    """Top, mass and weighted values of some keys; ``some`` tells whether a row saw any of them."""
    scores = I.matmul(q, I.cast(k, I.f32), acc_dtype=I.f32, transpose_rhs=True) * scale
    scores = scores - slope * I.cast(rows[:, None] - at[None, :], I.f32)
    ok = visible(rows, at, window, MASK) & valid[None, :]
    some = I.reduce.any(ok, axis=1)
    top = I.select(some, I.reduce.max(I.select(ok, scores, -I.inf), axis=1), 0.0)
    p = I.select(ok, I.exp(scores - top[:, None]), 0.0)
    return I.record(some=some, top=top, mass=I.reduce.sum(p, axis=1), acc=I.matmul(p, I.cast(v, I.f32), acc_dtype=I.f32))


@intent.fn
def no_part(rows, width):
    zero = I.zeros((rows,), I.f32)
    return I.record(some=I.full((rows,), False, I.bool), top=zero, mass=zero, acc=I.zeros((rows, width), I.f32))


@intent.fn
def join_parts(a, b):
    some = a.some | b.some
    top = I.select(a.some & b.some, I.maximum(a.top, b.top), I.select(a.some, a.top, b.top))
    fa = I.select(a.some, I.exp(I.select(a.some, a.top - top, 0.0)), 0.0)
    fb = I.select(b.some, I.exp(I.select(b.some, b.top - top, 0.0)), 0.0)
    return I.record(some=some, top=top, mass=a.mass * fa + b.mass * fb, acc=a.acc * fa[:, None] + b.acc * fb[:, None])


@intent.kernel
def grouped_query_attention(q: I.In[I.bf16, ("B", "S", "HQ", "D")], k: I.In[I.bf16, ("B", "T", "HK", "D")],
                            v: I.In[I.bf16, ("B", "T", "HK", "E")],
                            valid: I.In[I.bool, ("B", "T")], scale: I.f32, alibi: I.f32, window: I.index, past: I.index,
                            y: I.Out[I.f32, ("B", "S", "HQ", "E")], lse: I.Out[I.f32, ("B", "HQ", "S")], MASK: I.Constexpr[Mask]):
    """Several query heads share a head of keys. Queries stand ``past`` positions into the keys; a row that sees nothing is zero."""
    B, S, HQ, D = q.shape
    _, T, HK, E = v.shape
    rows, keys = I.domain(0, S), I.domain(0, T)
    for b, h in I.parallel((I.domain(0, B), I.domain(0, HQ))):
        g = h * HK // HQ
        slope = alibi * I.exp2(-I.cast(h + 1, I.f32))
        nothing = no_part(S, E)
        s = I.region_fold(source=(k[b, keys, g, :], v[b, keys, g, :], valid[b, keys], I.indices(keys)), axis=0, summarize=part,
                          combine=join_parts, identity=nothing,
                          operands=(I.cast(q[b, rows, h, :], I.f32), I.indices(rows) + past, scale, slope, window, MASK))
        mass = I.select(s.some, s.mass, 1.0)
        y[b, :, h, :] = I.select(s.some[:, None], s.acc / mass[:, None], 0.0)
        lse[b, h, :] = I.select(s.some, s.top + I.log(mass), -I.inf)


def grouped_oracle(mask):
    def oracle(q, k, v, valid, scale, alibi, window, past):
        q, k, v = (a.astype("f8") for a in (q, k, v))
        B, S, HQ, D = q.shape
        T, HK = k.shape[1:3]
        y, lse = np.zeros((B, S, HQ, v.shape[3])), np.full((B, HQ, S), -np.inf)
        for b, h, i in np.ndindex(B, HQ, S):
            row = i + past
            js = [j for j in range(T) if valid[b, j] and (mask == Mask.NONE or j <= row) and (mask != Mask.WINDOW or row - j < window)]
            if not js:
                continue
            s = k[b, js, h * HK // HQ] @ q[b, i, h] * float(scale) - float(alibi) * 2.0 ** -(h + 1) * (row - np.array(js))
            p = np.exp(s - s.max())
            y[b, i, h], lse[b, h, i] = p / p.sum() @ v[b, js, h * HK // HQ], s.max() + np.log(p.sum())
        return y, lse
    return oracle


@pytest.mark.parametrize("B, S, T, HQ, HK, D, E, past, mask", [
    (1, 7, 0, 2, 1, 4, 4, 0, Mask.NONE), (2, 5, 70, 2, 2, 8, 5, 0, Mask.NONE), (1, 9, 9, 2, 2, 4, 3, 0, Mask.CAUSAL),
    (1, 3, 100, 2, 1, 16, 16, 90, Mask.CAUSAL), (1, 66, 66, 2, 1, 8, 8, 0, Mask.WINDOW), (1, 1, 140, 2, 1, 8, 4, 139, Mask.WINDOW),
    (1, 0, 5, 2, 1, 4, 4, 0, Mask.CAUSAL)], ids=str)
def test_grouped_query_attention(B, S, T, HQ, HK, D, E, past, mask, rng):
    q, k, v = (normal(rng, s, "bf16") for s in ((B, S, HQ, D), (B, T, HK, D), (B, T, HK, E)))
    valid = rng.random((B, T)) < 0.9
    valid[:, :2] = False
    args = [q, k, v, valid, np.float32(D ** -0.5), np.float32(0.125), np.int64(40), np.int64(past), out((B, S, HQ, E), "f32"),
            out((B, HQ, S), "f32")]
    y, lse = everywhere(grouped_query_attention, args, grouped_oracle(mask), **CLOSE, MASK=mask)
    if S and mask == Mask.CAUSAL and not past:
        assert not y[:, :2].any() and (lse[:, :, :2] == -np.inf).all()


@intent.kernel
def paged_decoding(q: I.In[I.f32, ("B", "H", "D")], pages: I.In[I.f16, ("P", 2, "H", "L", "D")], table: I.In[I.i32, ("B", "Q")],
                   length: I.In[I.i32, ("B",)], scale: I.f32, y: I.Out[I.f32, ("B", "H", "D")]):
    """One query against a cache whose pages lie anywhere; every sequence has a length of its own."""
    B, H, D = q.shape
    P, _, _, L, _ = pages.shape
    for b, h in I.parallel((I.domain(0, B), I.domain(0, H))):
        n = I.cast(length[b], I.index)
        at = I.indices(I.domain(0, n))
        page = table[b, at // L]
        k, v = pages[page, 0, h, at % L, :], pages[page, 1, h, at % L, :]
        nothing = no_part(1, D)
        s = I.region_fold(source=(k, v, I.full((n,), True, I.bool), at), axis=0, summarize=part, combine=join_parts, identity=nothing,
                          operands=(q[b, h, :][None, :], I.full((1,), n, I.index), scale, I.cast(0.0, I.f32), n, Mask.NONE))
        y[b, h, :] = I.select(s.some[:, None], s.acc / I.select(s.some, s.mass, 1.0)[:, None], 0.0)[0, :]


def test_paged_decoding(rng):
    B, H, D, P, L = 3, 2, 8, 30, 16
    q, pages, scale = normal(rng, (B, H, D)), normal(rng, (P, 2, H, L, D), "f16"), np.float32(0.3)
    table, length = rng.permutation(P)[:18].reshape(2, 9).astype("i4")[[0, 1, 0]], np.array([0, 130, 17], "i4")

    def oracle(q, pages, table, length, scale):
        y = np.zeros(q.shape)
        for b, h in np.ndindex(B, H):
            if length[b]:
                k, v = (np.concatenate([pages[p, c, h] for p in table[b]])[:length[b]].astype("f8") for c in (0, 1))
                s = k @ q[b, h].astype("f8") * float(scale)
                p = np.exp(s - s.max())
                y[b, h] = p / p.sum() @ v
        return y
    everywhere(paged_decoding, [q, pages, table, length, scale, out((B, H, D), "f32")], oracle, **CLOSE)


# --- backward ---------------------------------------------------------------------------------------------------------------

@intent.kernel
def attention_gradient(q: I.In[I.f32, ("H", "S", "D")], k: I.In[I.f32, ("H", "T", "D")], v: I.In[I.f32, ("H", "T", "D")],
                       dy: I.In[I.f32, ("H", "S", "D")], scale: I.f32, dq: I.Out[I.f32, ("H", "S", "D")], dk: I.Out[I.f32, ("H", "T", "D")],
                       dv: I.Out[I.f32, ("H", "T", "D")]):
    """The weights are computed again; every gradient is a product with them."""
    H, S, D = q.shape
    T = k.shape[1]
    seen = I.indices(I.domain(0, T))[None, :] <= I.indices(I.domain(0, S))[:, None]
    for h in I.parallel(I.domain(0, H)):
        scores = I.select(seen, I.matmul(q[h, :, :], k[h, :, :], acc_dtype=I.f32, transpose_rhs=True) * scale, -I.inf)
        e = I.exp(scores - I.reduce.max(scores, axis=1)[:, None])
        p = e / I.reduce.sum(e, axis=1)[:, None]
        dp = I.matmul(dy[h, :, :], v[h, :, :], acc_dtype=I.f32, transpose_rhs=True)
        ds = p * (dp - I.reduce.sum(dp * p, axis=1)[:, None]) * scale
        dv[h, :, :] = I.matmul(p, dy[h, :, :], acc_dtype=I.f32, transpose_lhs=True)
        dq[h, :, :] = I.matmul(ds, k[h, :, :], acc_dtype=I.f32)
        dk[h, :, :] = I.matmul(ds, q[h, :, :], acc_dtype=I.f32, transpose_lhs=True)


@pytest.mark.parametrize("H, S, D", [(2, 5, 4), (1, 1, 1), (3, 65, 8), (0, 3, 2), (1, 100, 33)])
def test_attention_gradient(H, S, D, rng):
    q, k, v, dy = (normal(rng, (H, S, D)) for _ in range(4))

    def oracle(q, k, v, dy, scale):
        q, k, v, dy, scale = (a.astype("f8") for a in (q, k, v, dy, scale))
        s = np.where(np.tri(S, dtype=bool), np.einsum("hsd,htd->hst", q, k) * scale, -np.inf)
        p = np.exp(s - s.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        dp = np.einsum("hsd,htd->hst", dy, v)
        ds = p * (dp - (dp * p).sum(-1, keepdims=True)) * scale
        return np.einsum("hst,htd->hsd", ds, k), np.einsum("hst,hsd->htd", ds, q), np.einsum("hst,hsd->htd", p, dy)
    args = [q, k, v, dy, np.float32(D ** -0.5), *(out((H, S, D), "f32") for _ in range(3))]
    check(attention_gradient, args, oracle, ulps=64, floor=1024, layouts=("contiguous", "transposed", "mixed"))


# --- linear attention with decay ------------------------------------------------------------------------------------------------

@intent.fn
def decayed_sum(q, k, v, at, decay):
    n = I.cast(k.shape[0], I.f32)
    last = I.cast(I.reduce.max(at, axis=0), I.f32)
    weight = I.exp(decay * (last - I.cast(at, I.f32)))
    return I.record(length=n, state=I.matmul(k * weight[:, None], v, acc_dtype=I.f32, transpose_lhs=True), decay=decay)


@intent.fn
def follow(a, b):
    return I.record(length=a.length + b.length, state=a.state * I.exp(b.decay * b.length) + b.state, decay=b.decay)


@intent.fn
def carry_on(prefix, state):
    return state * I.exp(prefix.decay * prefix.length) + prefix.state


@intent.fn
def retained(q, k, v, at, state, decay):
    first = I.reduce.min(at, axis=0)
    apart = at[:, None] - at[None, :]
    fade = I.select(apart >= 0, I.exp(decay * I.cast(apart, I.f32)), 0.0)
    near = I.matmul(I.matmul(q, k, acc_dtype=I.f32, transpose_rhs=True) * fade, v, acc_dtype=I.f32)
    into = I.exp(decay * I.cast(at - first + 1, I.f32))
    return near + I.matmul(q * into[:, None], state, acc_dtype=I.f32)


@intent.kernel
def retention(q: I.In[I.f32, ("B", "H", "S", "D")], k: I.In[I.f32, ("B", "H", "S", "D")], v: I.In[I.f32, ("B", "H", "S", "E")],
              log_decay: I.In[I.f32, ("H",)], state: I.InOut[I.f32, ("B", "H", "D", "E")], y: I.Out[I.f32, ("B", "H", "S", "E")]):
    """Each head forgets at its own rate; the state is kept for the next call."""
    B, H, S, D = q.shape
    E = v.shape[3]
    seq = I.domain(0, S)
    for b, h in I.parallel((I.domain(0, B), I.domain(0, H))):
        decay = log_decay[h]
        none = I.record(length=0.0, state=I.zeros((D, E), I.f32), decay=decay)
        o, last = I.region_scan(source=(q[b, h, seq, :], k[b, h, seq, :], v[b, h, seq, :], I.indices(seq)), axis=0, summarize=decayed_sum,
                                combine=follow, identity=none, initial_state=state[b, h, :, :], apply=carry_on, emit=retained,
                                operands=(decay,))
        y[b, h, :, :] = o
        state[b, h, :, :] = last


def retention_oracle(q, k, v, log_decay, state):
    q, k, v, log_decay, state = (a.astype("f8") for a in (q, k, v, log_decay, state))
    y = np.zeros(v.shape)
    for t in range(q.shape[2]):
        state = state * np.exp(log_decay)[None, :, None, None] + np.einsum("bhd,bhe->bhde", k[:, :, t], v[:, :, t])
        y[:, :, t] = np.einsum("bhd,bhde->bhe", q[:, :, t], state)
    return state, y


@pytest.mark.parametrize("B, H, S, D, E", [(1, 2, 0, 3, 4), (2, 1, 1, 4, 4), (1, 3, 64, 5, 2), (2, 2, 150, 4, 20), (1, 1, 1090, 4, 3)])
def test_retention(B, H, S, D, E, rng):
    q, k, v = (normal(rng, (B, H, S, n)) for n in (D, D, E))
    args = [q, k, v, -0.5 * rng.random(H).astype("f4"), normal(rng, (B, H, D, E)), out((B, H, S, E), "f32")]
    check(retention, args, retention_oracle, ulps=256, floor=512, layouts=("contiguous", "mixed"))


def test_retention_in_two_calls_goes_on_where_it_stopped(rng):
    q, k, v = (normal(rng, (1, 2, 100, 4)) for _ in range(3))
    rate, start = np.float32([-0.1, -0.3]), normal(rng, (1, 2, 4, 4))
    whole, parts = start.copy(), start.copy()
    y = retention.run(q, k, v, rate, whole)
    z = [retention.run(q[:, :, s], k[:, :, s], v[:, :, s], rate, parts) for s in (slice(0, 30), slice(30, 100))]
    np.testing.assert_allclose(np.concatenate(z, 2), y, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(parts, whole, rtol=1e-3, atol=1e-4)
