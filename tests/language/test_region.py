"""Region fold and region scan: what the slices give when put together, that nobody can see where they were cut, and what is refused.

Every program runs by the reference and compiled (equal bits), against NumPy, and under forced segment extents. Spec: 002
section 9, SUPPLEMENT 6, 12 and decisions 26, 29, 46.
"""
from __future__ import annotations

import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from intent_numba.errors import IntentShapeError, IntentTypeError, LanguageError
from intent_numba.frontend import build_kernel
from intent_numba.frontend.segments import segmentation
from tests.support import assert_same_bits, check, everywhere, integers, normal, out, under

LENGTHS = (0, 1, 63, 64, 65, 200, 1024, 1025, 2100)


# --- fold: members, coordinates, sources -------------------------------------------------------------------------------

@intent.fn
def total(c):
    return I.reduce.sum(c, axis=0)


@intent.fn
def plus(a, b):
    return a + b


@intent.kernel
def coordinate_sum(x: I.In[I.f32, ("N",)], y: I.Out[I.i64, ()]):
    (N,) = x.shape
    cols = I.domain(0, N)
    y[()] = I.region_fold(source=I.cast(I.indices(cols[3:9]), I.i64), axis=0, summarize=total, combine=plus, identity=0)


def test_coordinates_are_absolute():
    everywhere(coordinate_sum, [np.zeros(12, "f4"), out((), "i64")], lambda x: np.array(33), exact=True)


@intent.fn
def join(a, b):
    return I.record(count=a.count + b.count, total=a.total + b.total)


@intent.kernel
def masked_rows(x: I.In[I.i64, ("N", "D")], rows: I.In[I.i32, ("K",)], keep: I.In[I.bool, ("K",)], scale: I.i64,
                count: I.Out[I.i64, ()], y: I.Out[I.i64, ("D",)]):
    N, D = x.shape
    (K,) = rows.shape
    descending = K - 1 - I.indices(I.domain(0, K))
    picked = x[rows[:], :]
    s = I.region_fold(source=(picked, keep[:][:, None], descending[:, None]), axis=0, summarize=weighted_rows, combine=join,
                      identity=I.record(count=0, total=I.zeros((D,), I.i64)), operands=(scale,))
    count[()] = s.count
    y[:] = s.total


@intent.fn
def weighted_rows(values, keep, where, scale):
    kept = I.select(keep, values * I.cast(where, I.i64), 0)
    counts = I.reduce.sum(I.cast(keep, I.i64), axis=(0, 1))
    return I.record(count=counts, total=I.reduce.sum(kept, axis=0) * scale)


@pytest.mark.parametrize("members", [0, 5, 130, 1100])
def test_masks_repeated_rows_and_descending_coordinates(members, rng):
    x, rows, keep = integers(rng, (7, 5), "i64"), rng.integers(0, 7, members).astype("i4"), rng.integers(0, 2, members).astype(bool)

    def oracle(x, rows, keep, scale):
        where = np.arange(members)[::-1]
        with np.errstate(over="ignore"):
            return np.array(keep.sum()), ((x[rows] * where[:, None] * keep[:, None]).sum(0) * scale)
    everywhere(masked_rows, [x, rows, keep, 3, out((), "i64"), out(5, "i64")], oracle, exact=True)


# --- fold: the bits of section 12 -----------------------------------------------------------------------------------------

@intent.kernel
def folded_sum(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, ()]):
    y[()] = I.region_fold(source=(x[:],), axis=0, summarize=total, combine=plus, identity=I.cast(-7.0, I.f32))


def leaf(x):
    lanes = np.zeros(32, "f4")
    for i, v in enumerate(x):
        lanes[i & 31] += v
    for half in (16, 8, 4, 2, 1):
        lanes[:half] += lanes[half:2 * half]
    return lanes[0]


def segmented(x):
    """Section 12 by hand: segments of 64, groups of 16; the identity only where there is no member."""
    def left(parts):
        acc = parts[0]
        for p in parts[1:]:
            acc = np.float32(acc + p)
        return acc
    if not len(x):
        return np.float32(-7.0)
    sums = [leaf(x[i:i + 64]) for i in range(0, len(x), 64)]
    return left([left(sums[g:g + 16]) for g in range(0, len(sums), 16)])


@pytest.mark.parametrize("members", LENGTHS)
def test_segments_and_groups_fold_as_section_12_says(members, rng):
    x = normal(rng, (members,))
    got = check(folded_sum, [x, out((), "f32")], layouts=("contiguous", "strided"))
    assert_same_bits(got[0], np.asarray(segmented(x)).reshape(()))


@intent.kernel
def ordered(x: I.In[I.i32, ("N",)], y: I.Out[I.i32, (2,)]):
    """Composition of maps v -> 3 v + x is not commutative: order shows."""
    a, b = I.region_fold(source=(x[:],), axis=0, summarize=affine_of_slice, combine=after, identity=(1, 0))
    y[0] = a
    y[1] = b


@intent.fn
def after(f, g):
    return f[0] * g[0], f[1] * g[0] + g[1]


@intent.fn
def affine_of_slice(x):
    a = I.full((x.shape[0],), 3, I.i32)
    fa, fb = I.scan((a, x), axis=0, identity=(1, 0), combine=after)
    last = x.shape[0] - 1
    return fa[last], fb[last]


@pytest.mark.parametrize("members", [0, 1, 100, 1200])
def test_order_of_slices(members, rng):
    def oracle(x):
        a, b = 1, 0
        for v in x.tolist():
            a, b = a * 3, b * 3 + v
        return np.array([a % 2 ** 32, b % 2 ** 32], "u4").astype("i4")
    everywhere(ordered, [integers(rng, (members,), "i32"), out(2, "i32")], oracle, exact=True)


# --- fold: statistics and normalised summaries --------------------------------------------------------------------------

@intent.fn
def moments(x):
    ones = I.full(x.shape, 1.0, I.f32)
    n = I.reduce.sum(ones, axis=0)
    mean = I.reduce.sum(x, axis=0) / n
    d = x - mean[None, :]
    return I.record(n=n, mean=mean, m2=I.reduce.sum(d * d, axis=0))


@intent.fn
def pool(a, b):
    n = a.n + b.n
    safe = I.maximum(n, 1.0)
    delta = b.mean - a.mean
    share = b.n / safe
    return I.record(n=n, mean=a.mean + delta * share, m2=a.m2 + b.m2 + delta * delta * (a.n * share))


@intent.kernel
def mean_variance(x: I.In[I.f32, ("N", "D")], mean: I.Out[I.f32, ("D",)], var: I.Out[I.f32, ("D",)]):
    N, D = x.shape
    zero = I.zeros((D,), I.f32)
    s = I.region_fold(source=x[:, :], axis=0, summarize=moments, combine=pool, identity=I.record(n=zero, mean=zero, m2=zero))
    mean[:] = s.mean
    var[:] = s.m2 / I.maximum(s.n, 1.0)


@pytest.mark.parametrize("shape", [(0, 3), (1, 4), (65, 5), (1500, 3)])
def test_running_mean_and_variance(shape, rng):
    x = normal(rng, shape) + np.float32(10)

    def oracle(x):
        x = x.astype("f8")
        return (x.mean(0), x.var(0)) if len(x) else (np.zeros(shape[1]), np.zeros(shape[1]))
    everywhere(mean_variance, [x, out(shape[1], "f32"), out(shape[1], "f32")], oracle, ulps=64)


@intent.fn
def best(x):
    valid = x > -I.inf
    return I.record(top=I.reduce.max(x, axis=0), some=I.reduce.any(valid, axis=0))


@intent.fn
def better(a, b):
    return I.record(top=I.select(a.some & b.some, I.maximum(a.top, b.top), I.select(a.some, a.top, b.top)), some=a.some | b.some)


@intent.kernel
def running_maximum(x: I.In[I.f32, ("N",)], top: I.Out[I.f32, ()], some: I.Out[I.bool, ()]):
    s = I.region_fold(source=(x[:],), axis=0, summarize=best, combine=better, identity=I.record(top=-I.inf, some=False))
    top[()] = s.top
    some[()] = s.some


@pytest.mark.parametrize("members", [0, 70, 1100])
def test_running_maximum_of_nothing_valid_is_the_identity(members, rng):
    none = np.full(members, -np.inf, "f4")
    everywhere(running_maximum, [none, out((), "f32"), out((), "bool")], lambda x: (np.array(-np.inf), np.array(False)), exact=True)
    if members:
        some = none.copy()
        some[members // 2] = 1.5
        everywhere(running_maximum, [some, out((), "f32"), out((), "bool")], lambda x: (np.array(1.5), np.array(True)), exact=True)


@intent.fn
def attend(k, v, valid, at, q, rows, scale, CAUSAL):
    s = I.matmul(q, k, acc_dtype=I.f32, transpose_rhs=True) * scale
    ok = valid[None, :]
    if CAUSAL:
        ok = ok & (at[None, :] <= rows[:, None])
    s = I.select(ok, s, -I.inf)
    some = I.reduce.any(ok & (s > -I.inf), axis=1)
    top = I.select(some, I.reduce.max(s, axis=1), 0.0)
    p = I.select(ok, I.exp(s - top[:, None]), 0.0)
    return I.record(some=some, top=top, mass=I.reduce.sum(p, axis=1), acc=I.matmul(p, v, acc_dtype=I.f32))


@intent.fn
def merge(a, b):
    some = a.some | b.some
    top = I.select(a.some & b.some, I.maximum(a.top, b.top), I.select(a.some, a.top, b.top))
    fa = I.select(a.some, I.exp(I.select(a.some, a.top - top, 0.0)), 0.0)
    fb = I.select(b.some, I.exp(I.select(b.some, b.top - top, 0.0)), 0.0)
    return I.record(some=some, top=top, mass=a.mass * fa + b.mass * fb, acc=a.acc * fa[:, None] + b.acc * fb[:, None])


@intent.kernel
def flash_attention(q: I.In[I.f32, ("H", "M", "D")], k: I.In[I.f32, ("H", "N", "D")], v: I.In[I.f32, ("H", "N", "D")],
                    valid: I.In[I.bool, ("N",)], scale: I.f32, y: I.Out[I.f32, ("H", "M", "D")], CAUSAL: I.Constexpr[bool]):
    H, M, D = q.shape
    N = k.shape[1]
    rows, keys = I.domain(0, M), I.domain(0, N)
    for h in I.parallel(I.domain(0, H)):
        empty = I.record(some=I.full((M,), False, I.bool), top=I.zeros((M,), I.f32), mass=I.zeros((M,), I.f32), acc=I.zeros((M, D), I.f32))
        s = I.region_fold(source=(k[h, keys, :], v[h, keys, :], valid[keys], I.indices(keys)), axis=0, summarize=attend, combine=merge,
                          identity=empty, operands=(q[h, rows, :], I.indices(rows), scale, CAUSAL))
        y[h, :, :] = I.select(s.some[:, None], s.acc / I.select(s.some, s.mass, 1.0)[:, None], 0.0)


def attention_oracle(causal):
    def oracle(q, k, v, valid, scale):
        q, k, v = (a.astype("f8") for a in (q, k, v))
        s = np.einsum("hmd,hnd->hmn", q, k) * float(scale)
        ok = np.broadcast_to(valid[None, None, :], s.shape).copy()
        if causal:
            ok &= np.arange(s.shape[2])[None, None, :] <= np.arange(s.shape[1])[None, :, None]
        s = np.where(ok, s, -np.inf)
        some = ok.any(-1)
        top = np.where(some, s.max(-1, initial=-np.inf), 0)
        p = np.where(ok, np.exp(s - top[..., None]), 0)
        mass = np.where(some, p.sum(-1), 1)
        return np.where(some[..., None], np.einsum("hmn,hnd->hmd", p, v) / mass[..., None], 0)
    return oracle


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("keys", [0, 40, 150, 1100])
def test_flash_attention(causal, keys, rng):
    q, k, v = normal(rng, (2, 9, 8)), normal(rng, (2, keys, 8)), normal(rng, (2, keys, 8))
    valid = rng.integers(0, 4, keys) > 0
    valid[:3] = False                                           # causal: the first rows see nothing
    args = [q, k, v, valid, np.float32(0.5), out((2, 9, 8), "f32")]
    got = everywhere(flash_attention, args, attention_oracle(causal), ulps=64, floor=16, CAUSAL=causal)
    assert not causal or not got[0][:, :3].any()


@intent.kernel
def plain_attention(q: I.In[I.f32, ("M", "D")], k: I.In[I.f32, ("N", "D")], v: I.In[I.f32, ("N", "D")], y: I.Out[I.f32, ("M", "D")]):
    """No parallel loop around: the compiler finds the independent rows."""
    M, D = q.shape
    (N, _) = k.shape
    keys = I.domain(0, N)
    empty = I.record(some=I.full((M,), False, I.bool), top=I.zeros((M,), I.f32), mass=I.zeros((M,), I.f32), acc=I.zeros((M, D), I.f32))
    s = I.region_fold(source=(k[:, :], v[:, :], I.full((N,), True, I.bool), I.indices(keys)), axis=0, summarize=attend, combine=merge,
                      identity=empty, operands=(q[:, :], I.indices(I.domain(0, M)), I.cast(0.25, I.f32), False))
    y[:, :] = s.acc / s.mass[:, None]


@pytest.mark.parametrize("keys", [1, 129, 1100])
def test_attention_over_whole_tensors(keys, rng):
    q, k, v = normal(rng, (20, 8)), normal(rng, (keys, 8)), normal(rng, (keys, 8))

    def oracle(q, k, v):
        return attention_oracle(False)(q[None], k[None], v[None], np.ones(keys, bool), 0.25)[0]
    everywhere(plain_attention, [q, k, v, out((20, 8), "f32")], oracle, ulps=64, floor=16)


# --- scan ---------------------------------------------------------------------------------------------------------------

@intent.fn
def outer_sum(q, k, v, at):
    return I.matmul(k, v, acc_dtype=I.f32, transpose_lhs=True)


@intent.fn
def linear_slice(q, k, v, at, state):
    scores = I.matmul(q, k, acc_dtype=I.f32, transpose_rhs=True)
    near = I.select(at[None, :] <= at[:, None], scores, 0.0)
    return I.matmul(q, state, acc_dtype=I.f32) + I.matmul(near, v, acc_dtype=I.f32)


@intent.kernel
def linear_attention(q: I.In[I.f32, ("H", "S", "D")], k: I.In[I.f32, ("H", "S", "D")], v: I.In[I.f32, ("H", "S", "E")],
                     s0: I.In[I.f32, ("H", "D", "E")], y: I.Out[I.f32, ("H", "S", "E")], s1: I.Out[I.f32, ("H", "D", "E")]):
    H, S, D = q.shape
    E = v.shape[2]
    seq = I.domain(0, S)
    for h in I.parallel(I.domain(0, H)):
        o, last = I.region_scan(source=(q[h, seq, :], k[h, seq, :], v[h, seq, :], I.indices(seq)), axis=0, summarize=outer_sum,
                                combine=plus, identity=I.zeros((D, E), I.f32), initial_state=s0[h, :, :], apply=plus, emit=linear_slice)
        y[h, :, :] = o
        s1[h, :, :] = last


def linear_oracle(q, k, v, s0):
    q, k, v, s = (a.astype("f8") for a in (q, k, v, s0))
    y = np.zeros(v.shape)
    for t in range(q.shape[1]):
        s = s + np.einsum("hd,he->hde", k[:, t], v[:, t])
        y[:, t] = np.einsum("hd,hde->he", q[:, t], s)
    return y, s


@pytest.mark.parametrize("members", [0, 1, 64, 150])
def test_causal_linear_attention(members, rng):
    def whole(shape):
        return rng.integers(-3, 4, shape).astype("f4")
    args = [whole((2, members, 4)), whole((2, members, 4)), whole((2, members, 5)), whole((2, 4, 5)),
            out((2, members, 5), "f32"), out((2, 4, 5), "f32")]
    everywhere(linear_attention, args, linear_oracle, exact=True)
    args[:4] = [normal(rng, a.shape) for a in args[:4]]
    everywhere(linear_attention, args, linear_oracle, ulps=32, floor=400)


@intent.fn
def decay_and_input(x, b, c, a, at):
    run = I.cumsum(a, axis=0)
    whole = I.reduce.sum(a, axis=0)
    weight = I.exp(I.cast(whole, I.f32) - run)
    return I.record(decay=whole, add=I.matmul(b * weight[:, None], x, acc_dtype=I.f32, transpose_lhs=True))


@intent.fn
def compose(f, g):
    return I.record(decay=f.decay + g.decay, add=f.add * I.exp(g.decay) + g.add)


@intent.fn
def act(f, state):
    return state * I.exp(f.decay) + f.add


@intent.fn
def state_space_slice(x, b, c, a, at, state):
    run = I.cumsum(a, axis=0)
    span = I.select(at[None, :] <= at[:, None], run[:, None] - run[None, :], -I.inf)
    scores = I.matmul(c, b, acc_dtype=I.f32, transpose_rhs=True) * I.exp(span)
    return I.matmul(scores, x, acc_dtype=I.f32) + I.matmul(c * I.exp(run)[:, None], state, acc_dtype=I.f32)


@intent.kernel
def state_space(x: I.In[I.f32, ("S", "P")], b: I.In[I.f32, ("S", "K")], c: I.In[I.f32, ("S", "K")], a: I.In[I.f32, ("S",)],
                y: I.Out[I.f32, ("S", "P")], h: I.Out[I.f32, ("K", "P")]):
    S, P = x.shape
    K = b.shape[1]
    o, last = I.region_scan(source=(x[:, :], b[:, :], c[:, :], a[:], I.indices(I.domain(0, S))), axis=0, summarize=decay_and_input,
                            combine=compose, identity=I.record(decay=0.0, add=I.zeros((K, P), I.f32)),
                            initial_state=I.zeros((K, P), I.f32), apply=act, emit=state_space_slice)
    y[:, :] = o
    h[:, :] = last


@intent.kernel
def state_space_by_chunks(x: I.In[I.f32, ("S", "P")], b: I.In[I.f32, ("S", "K")], c: I.In[I.f32, ("S", "K")], a: I.In[I.f32, ("S",)],
                          y: I.Out[I.f32, ("S", "P")], h: I.Out[I.f32, ("K", "P")]):
    """The chunk boundary is the program's own: an ordered carry over subregions."""
    S, P = x.shape
    K = b.shape[1]
    seq = I.domain(0, S)
    state = I.zeros((K, P), I.f32)
    for begin in I.domain(0, S, 32):
        part = seq[begin:I.minimum(begin + 32, S)]
        y[part, :] = state_space_slice(x[part, :], b[part, :], c[part, :], a[part], I.indices(part), state)
        state = act(decay_and_input(x[part, :], b[part, :], c[part, :], a[part], I.indices(part)), state)
    h[:, :] = state


def state_space_oracle(x, b, c, a):
    x, b, c, a = (v.astype("f8") for v in (x, b, c, a))
    h, y = np.zeros((b.shape[1], x.shape[1])), np.zeros(x.shape)
    for t in range(len(x)):
        h = h * np.exp(a[t]) + np.outer(b[t], x[t])
        y[t] = c[t] @ h
    return y, h


@pytest.mark.parametrize("members", [0, 5, 140])
def test_mamba_state_space(members, rng):
    args = [normal(rng, (members, 6)), normal(rng, (members, 4)), normal(rng, (members, 4)),
            -rng.random(members).astype("f4"), out((members, 6), "f32"), out((4, 6), "f32")]
    everywhere(state_space, args, state_space_oracle, ulps=256, floor=256)
    check(state_space_by_chunks, args, state_space_oracle, ulps=256, floor=256, layouts=("contiguous", "mixed"))


@intent.fn
def delta_transition(q, k, v, beta, gate):
    D, E = k.shape[1], v.shape[1]
    eye = I.select(I.indices(I.domain(0, D))[:, None] == I.indices(I.domain(0, D))[None, :], I.full((D, D), 1.0, I.f32), 0.0)
    turn, add = eye, I.zeros((D, E), I.f32)
    for t in range(k.shape[0]):
        kt = k[t, :]
        step = (eye - I.outer(kt, kt) * beta[t]) * gate[t]
        turn = I.matmul(step, turn, acc_dtype=I.f32)
        add = I.matmul(step, add, acc_dtype=I.f32) + I.outer(kt, v[t, :]) * beta[t]
    return turn, add


@intent.fn
def delta_compose(f, g):
    return I.matmul(g[0], f[0], acc_dtype=I.f32), I.matmul(g[0], f[1], acc_dtype=I.f32) + g[1]


@intent.fn
def delta_apply(f, state):
    return I.matmul(f[0], state, acc_dtype=I.f32) + f[1]


@intent.fn
def delta_slice(q, k, v, beta, gate, state):
    rows = I.indices(I.domain(0, k.shape[0]))
    y = I.zeros(v.shape, I.f32)
    for t in range(k.shape[0]):
        kt = k[t, :]
        state = state * gate[t]
        error = (v[t, :] - I.vecmat(kt, state, acc_dtype=I.f32)) * beta[t]
        state = state + I.outer(kt, error)
        y = I.select(rows[:, None] == t, I.vecmat(q[t, :], state, acc_dtype=I.f32)[None, :], y)
    return y


@intent.kernel
def gated_delta(q: I.In[I.f32, ("S", "D")], k: I.In[I.f32, ("S", "D")], v: I.In[I.f32, ("S", "E")], beta: I.In[I.f32, ("S",)],
                gate: I.In[I.f32, ("S",)], y: I.Out[I.f32, ("S", "E")], last: I.Out[I.f32, ("D", "E")]):
    S, D = q.shape
    E = v.shape[1]
    at = I.indices(I.domain(0, D))
    eye = I.select(at[:, None] == at[None, :], I.full((D, D), 1.0, I.f32), 0.0)
    o, s = I.region_scan(source=(q[:, :], k[:, :], v[:, :], beta[:], gate[:]), axis=0, summarize=delta_transition,
                         combine=delta_compose, identity=(eye, I.zeros((D, E), I.f32)), initial_state=I.zeros((D, E), I.f32),
                         apply=delta_apply, emit=delta_slice)
    y[:, :] = o
    last[:, :] = s


def delta_oracle(q, k, v, beta, gate):
    q, k, v, beta, gate = (a.astype("f8") for a in (q, k, v, beta, gate))
    s, y = np.zeros((k.shape[1], v.shape[1])), np.zeros(v.shape)
    for t in range(len(q)):
        s = s * gate[t]
        s = s + np.outer(k[t], (v[t] - k[t] @ s) * beta[t])
        y[t] = q[t] @ s
    return y, s


@pytest.mark.parametrize("members", [0, 3, 80])
def test_gated_delta_rule(members, rng):
    k = normal(rng, (members, 4))
    k /= np.maximum(np.linalg.norm(k, axis=1, keepdims=True), 1e-3).astype("f4")
    args = [normal(rng, (members, 4)), k, normal(rng, (members, 3)), rng.random(members).astype("f4"),
            (0.8 + 0.2 * rng.random(members)).astype("f4"), out((members, 3), "f32"), out((4, 3), "f32")]
    everywhere(gated_delta, args, delta_oracle, ulps=256, floor=128)


@intent.fn
def prefix_slice(x, state):
    run = I.cumsum(x, axis=1) + state[:, None]
    return I.record(run=run, turned=I.transpose(run), odd=(run & 1) == 1)


@intent.fn
def row_total(x):
    return I.reduce.sum(x, axis=1)


@intent.kernel
def several_outputs(x: I.In[I.i32, ("M", "N")], run: I.Out[I.i32, ("M", "N")], turned: I.Out[I.i32, ("N", "M")],
                    odd: I.Out[I.bool, ("M", "N")], last: I.Out[I.i32, ("M",)]):
    """The members' axis is found wherever emit puts it; equal extents of other axes do not confuse it."""
    M, N = x.shape
    zero = I.zeros((M,), I.i32)
    o, s = I.region_scan(source=x[:, :], axis=-1, summarize=row_total, combine=plus, identity=zero, initial_state=zero + 1, apply=plus,
                         emit=prefix_slice)
    run[:, :] = o.run
    turned[:, :] = o.turned
    odd[:, :] = o.odd
    last[:] = s


@pytest.mark.parametrize("shape", [(64, 64), (3, 0), (2, 150), (1, 1)])
def test_several_emitted_tensors(shape, rng):
    def oracle(x):
        run = np.cumsum(x, axis=1, dtype="i4") + np.int32(1)
        return run, run.T, (run & 1) == 1, x.sum(1, dtype="i4") + np.int32(1)
    M, N = shape
    everywhere(several_outputs, [integers(rng, shape, "i32"), out((M, N), "i32"), out((N, M), "i32"), out((M, N), "bool"), out(M, "i32")],
               oracle, exact=True)


@intent.fn
def inner_total(x):
    return I.region_fold(source=x, axis=0, summarize=total, combine=plus, identity=I.cast(0, I.i64))


@intent.fn
def inner_prefix(x, state):
    o, _ = I.region_scan(source=x, axis=0, summarize=total, combine=plus, identity=I.cast(0, I.i64), initial_state=state, apply=plus,
                         emit=shifted)
    return o


@intent.fn
def shifted(x, state):
    return I.cumsum(x, axis=0) + state


@intent.kernel
def nested(x: I.In[I.i64, ("N",)], y: I.Out[I.i64, ("N",)], z: I.Out[I.i64, ()]):
    o, s = I.region_scan(source=x[:], axis=0, summarize=inner_total, combine=plus, identity=0, initial_state=0, apply=plus,
                         emit=inner_prefix)
    y[:] = o
    z[()] = s


@pytest.mark.parametrize("members", [0, 7, 131])
def test_nested_region_operations(members, rng):
    x = rng.integers(-99, 99, members)
    everywhere(nested, [x, out(members, "i64"), out((), "i64")], lambda x: (np.cumsum(x), np.array(x.sum())), exact=True)


# --- what is refused --------------------------------------------------------------------------------------------------------

@intent.fn
def reads(x, y):
    return I.reduce.sum(x, axis=0) + y[0]


@intent.fn
def total_f64(x):
    return I.reduce.sum(I.cast(x, I.f64), axis=0)


@intent.fn
def minus_first(a, b):
    return a, b


@intent.fn
def gone(x, state):
    return I.full((4,), 0.0, I.f32) + state


@intent.fn
def square(x, state):
    return x[:, None] + x[None, :] + state


@intent.fn
def bare(x):
    return 0.0


def scan_with(emit):
    def kernel(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, ("N",)]):
        o, s = I.region_scan(source=x[:], axis=0, summarize=total, combine=plus, identity=0.0, initial_state=0.0, apply=plus, emit=emit)
        y[0] = s
    return kernel


def fold_with(summarize=total, combine=plus, identity=0.0):
    def kernel(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, ("N",)]):
        y[0] = I.region_fold(source=x[:], axis=0, summarize=summarize, combine=combine, identity=identity)
    return kernel


def view_operand(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, ("N",)]):
    y[0] = I.region_fold(source=x[:], axis=0, summarize=reads, combine=plus, identity=0.0, operands=(x,))


def view_source(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, ("N",)]):
    y[0] = I.region_fold(source=x, axis=0, summarize=total, combine=plus, identity=0.0)


def loose_operand(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, ("N",)]):
    y[0] = I.region_fold(source=x[:], axis=0, summarize=reads, combine=plus, identity=0.0, operands=x[:])


def unequal_sources(x: I.In[I.f32, ("N",)], z: I.In[I.f32, ("M",)], y: I.Out[I.f32, ("N",)]):
    y[0] = I.region_fold(source=(x[:], z[:]), axis=0, summarize=reads, combine=plus, identity=0.0)


def wrong_axis(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, ("N",)]):
    y[0] = I.region_fold(source=x[:], axis=1, summarize=total, combine=plus, identity=0.0)


@intent.fn
def makes_buffer(x):
    b = I.buffer((1,), I.f32, init=0.0)
    b[0] = I.reduce.sum(x, axis=0)
    return b[0]


REFUSED = [
    (view_operand, IntentTypeError, "memory cannot be passed"), (view_source, IntentTypeError, "read it first"),
    (loose_operand, IntentTypeError, "operands must be a tuple"), (unequal_sources, IntentShapeError, "source components along the axis"),
    (wrong_axis, IntentShapeError, "axis 1 does not exist"),
    (fold_with(summarize=total_f64), IntentTypeError, "f32 is expected, the value is f64"),
    (fold_with(combine=minus_first), IntentTypeError, "the result of combine"),
    (fold_with(identity=(0.0, 0.0)), IntentTypeError, "identity"), (fold_with(identity=True), IntentTypeError, "identity"),
    (fold_with(summarize=bare), IntentTypeError, "has no dtype of its own"),
    (fold_with(summarize=makes_buffer), LanguageError, "summarize must be pure"),
    (scan_with(gone), IntentShapeError, "no axis of an emitted tensor carries"), (scan_with(square), IntentShapeError, "both carry"),
    (scan_with(total), IntentTypeError, "takes 1 positional argument"),
]


@pytest.mark.parametrize("kernel, error, text", REFUSED)
def test_refused(kernel, error, text):
    with pytest.raises(error) as caught:
        build_kernel(kernel)
    assert text in str(caught.value)
    assert caught.value.line is not None


def test_forced_extents_are_positive():
    for bad in (0, -1, 2.5, True, "all"):
        with pytest.raises(ValueError), segmentation(bad):
            pass


def test_a_forced_extent_has_code_of_its_own(rng):
    x = normal(rng, (500,))
    with segmentation(3):
        artifact = intent.compile(intent.kernel(folded_sum.pyfunc))
        got = artifact.run(x)
    (want,) = under(3, folded_sum, [x, out((), "f32")])
    assert_same_bits(np.asarray(got), want)
    assert_same_bits(np.asarray(folded_sum.run(x)), np.asarray(segmented(x)).reshape(()))
