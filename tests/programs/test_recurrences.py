"""Recurrent layers over a sequence: selective state spaces, gated delta rule, RWKV, gated units; by scans, region scans and ordered loops.

Each has a step-by-step oracle in f64, and forms of one recurrence agree with one another.
"""
from __future__ import annotations

import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from tests.support import check, everywhere, normal, out

LAYOUTS = ("contiguous", "mixed")


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# --- Mamba: a selective state space, once as a scan of affine maps, once step by step ------------------------------------------

@intent.fn
def then(f, g):
    return f[0] * g[0], f[1] * g[0] + g[1]


@intent.fn
def softplus(x):
    return I.maximum(x, 0.0) + I.log1p(I.exp(-I.abs(x)))


@intent.kernel
def selective_scan(x: I.In[I.f32, ("B", "T", "C")], dt: I.In[I.f32, ("B", "T", "C")], a: I.In[I.f32, ("C", "N")],
                   bm: I.In[I.f32, ("B", "T", "N")], cm: I.In[I.f32, ("B", "T", "N")], d: I.In[I.f32, ("C",)],
                   z: I.In[I.f32, ("B", "T", "C")], y: I.Out[I.f32, ("B", "T", "C")]):
    B, T, C = x.shape
    for b in I.parallel(I.domain(0, B)):
        step = softplus(dt[b, :, :])
        u = x[b, :, :]
        decay = I.exp(step[:, :, None] * a[:, :][None, :, :])
        drive = (step * u)[:, :, None] * bm[b, :, :][:, None, :]
        _, h = I.scan((decay, drive), axis=0, identity=(1.0, 0.0), combine=then)
        gate = z[b, :, :]
        y[b, :, :] = (I.reduce.sum(h * cm[b, :, :][:, None, :], axis=2) + u * d[:][None, :]) * (gate * I.sigmoid(gate))


@intent.kernel
def selective_steps(x: I.In[I.f32, ("B", "T", "C")], dt: I.In[I.f32, ("B", "T", "C")], a: I.In[I.f32, ("C", "N")],
                    bm: I.In[I.f32, ("B", "T", "N")], cm: I.In[I.f32, ("B", "T", "N")], d: I.In[I.f32, ("C",)],
                    z: I.In[I.f32, ("B", "T", "C")], y: I.Out[I.f32, ("B", "T", "C")]):
    B, T, C = x.shape
    N = a.shape[1]
    for b in I.parallel(I.domain(0, B)):
        h = I.zeros((C, N), I.f32)
        for t in I.domain(0, T):
            step, u, gate = softplus(dt[b, t, :]), x[b, t, :], z[b, t, :]
            h = h * I.exp(step[:, None] * a[:, :]) + (step * u)[:, None] * bm[b, t, :][None, :]
            y[b, t, :] = (I.reduce.sum(h * cm[b, t, :][None, :], axis=1) + u * d[:]) * (gate * I.sigmoid(gate))


def selective_oracle(x, dt, a, bm, cm, d, z):
    x, dt, a, bm, cm, d, z = (v.astype("f8") for v in (x, dt, a, bm, cm, d, z))
    y, h, step = np.zeros(x.shape), np.zeros((x.shape[0], *a.shape)), np.logaddexp(dt, 0)
    for t in range(x.shape[1]):
        h = h * np.exp(step[:, t, :, None] * a) + (step[:, t] * x[:, t])[..., None] * bm[:, t, None, :]
        y[:, t] = (np.einsum("bcn,bn->bc", h, cm[:, t]) + x[:, t] * d) * z[:, t] * sigmoid(z[:, t])
    return y


@pytest.mark.parametrize("kernel", [selective_scan, selective_steps], ids=lambda k: k.__name__)
@pytest.mark.parametrize("B, T, C, N", [(2, 0, 3, 4), (1, 1, 1, 1), (2, 70, 5, 4), (1, 300, 33, 3)])
def test_selective_state_space(kernel, B, T, C, N, rng):
    args = [normal(rng, (B, T, C)), normal(rng, (B, T, C)), -rng.random((C, N)).astype("f4") * 4, normal(rng, (B, T, N)),
            normal(rng, (B, T, N)), normal(rng, (C,)), normal(rng, (B, T, C)), out((B, T, C), "f32")]
    check(kernel, args, selective_oracle, ulps=256, floor=256, layouts=LAYOUTS)


# --- Mamba 2: heads with a scalar decay, in chunks that nobody sees --------------------------------------------------------------

@intent.fn
def chunk_summary(x, b, c, log_decay):
    total = I.reduce.sum(log_decay, axis=0)
    weight = I.exp(total - I.cumsum(log_decay, axis=0))
    return I.record(log_decay=total, state=I.matmul(b * weight[:, None], x, acc_dtype=I.f32, transpose_lhs=True))


@intent.fn
def chunk_then(f, g):
    return I.record(log_decay=f.log_decay + g.log_decay, state=f.state * I.exp(g.log_decay) + g.state)


@intent.fn
def chunk_apply(f, state):
    return state * I.exp(f.log_decay) + f.state


@intent.fn
def chunk_output(x, b, c, log_decay, state):
    run = I.cumsum(log_decay, axis=0)
    at = I.indices(I.domain(0, x.shape[0]))
    fade = I.exp(I.select(at[None, :] <= at[:, None], run[:, None] - run[None, :], -I.inf))
    near = I.matmul(I.matmul(c, b, acc_dtype=I.f32, transpose_rhs=True) * fade, x, acc_dtype=I.f32)
    return near + I.matmul(c * I.exp(run)[:, None], state, acc_dtype=I.f32)


@intent.kernel
def mamba_chunks(x: I.In[I.bf16, ("B", "T", "H", "P")], dt: I.In[I.f32, ("B", "T", "H")], a: I.In[I.f32, ("H",)],
                 bm: I.In[I.bf16, ("B", "T", "G", "N")], cm: I.In[I.bf16, ("B", "T", "G", "N")], h0: I.In[I.f32, ("B", "H", "N", "P")],
                 y: I.Out[I.f32, ("B", "T", "H", "P")], h1: I.Out[I.f32, ("B", "H", "N", "P")]):
    B, T, H, P = x.shape
    _, _, G, N = bm.shape
    seq = I.domain(0, T)
    for b, h in I.parallel((I.domain(0, B), I.domain(0, H))):
        g = h * G // H
        step = softplus(dt[b, :, h])
        drive = I.cast(x[b, seq, h, :], I.f32) * step[:, None]
        none = I.record(log_decay=0.0, state=I.zeros((N, P), I.f32))
        o, last = I.region_scan(source=(drive, I.cast(bm[b, seq, g, :], I.f32), I.cast(cm[b, seq, g, :], I.f32), step * a[h]), axis=0,
                                summarize=chunk_summary, combine=chunk_then, identity=none, initial_state=h0[b, h, :, :],
                                apply=chunk_apply, emit=chunk_output)
        y[b, :, h, :] = o
        h1[b, h, :, :] = last


def mamba_oracle(x, dt, a, bm, cm, h0):
    x, dt, a, bm, cm, h = (v.astype("f8") for v in (x, dt, a, bm, cm, h0))
    per = x.shape[2] // bm.shape[2]
    bm, cm, step = np.repeat(bm, per, 2), np.repeat(cm, per, 2), np.logaddexp(dt, 0)
    y = np.zeros(x.shape)
    for t in range(x.shape[1]):
        h = h * np.exp(step[:, t] * a)[..., None, None] + np.einsum("bhn,bhp->bhnp", bm[:, t], x[:, t] * step[:, t, :, None])
        y[:, t] = np.einsum("bhn,bhnp->bhp", cm[:, t], h)
    return y, h


@pytest.mark.parametrize("B, T, H, G, P, N", [(1, 0, 2, 1, 3, 4), (2, 1, 2, 2, 4, 3), (1, 70, 2, 1, 5, 4), (1, 130, 1, 1, 20, 7)])
def test_mamba_chunks(B, T, H, G, P, N, rng):
    args = [normal(rng, (B, T, H, P), "bf16"), normal(rng, (B, T, H)), -rng.random(H).astype("f4"), normal(rng, (B, T, G, N), "bf16"),
            normal(rng, (B, T, G, N), "bf16"), normal(rng, (B, H, N, P)), out((B, T, H, P), "f32"), out((B, H, N, P), "f32")]
    everywhere(mamba_chunks, args, mamba_oracle, ulps=512, floor=1024)


# --- the gated delta rule, whose state is a matrix -------------------------------------------------------------------------------

@intent.fn
def solve_below(low, rhs):
    """x with x + low x = rhs, for a strictly lower triangular matrix: row after row."""
    at = I.indices(I.domain(0, rhs.shape[0]))
    x = I.zeros(rhs.shape, I.f32)
    for t in range(rhs.shape[0]):
        row = rhs[t, :] - I.vecmat(low[t, :], x, acc_dtype=I.f32)
        x = I.select(at[:, None] == t, row[None, :], x)
    return x


@intent.fn
def within(k, beta, log_gate):
    """(fade between members, the triangular system, fade from the begin, fade to the end) of a slice."""
    run = I.cumsum(log_gate, axis=0)
    at = I.indices(I.domain(0, k.shape[0]))
    fade = I.exp(I.select(at[None, :] <= at[:, None], run[:, None] - run[None, :], -I.inf))
    likeness = I.matmul(k, k, acc_dtype=I.f32, transpose_rhs=True)
    low = I.select(at[None, :] < at[:, None], beta[:, None] * fade * likeness, 0.0)
    return fade, low, I.exp(run), I.exp(I.reduce.sum(log_gate, axis=0) - run)


@intent.fn
def delta_summary(q, k, v, beta, log_gate):
    D = k.shape[1]
    fade, low, begin, end = within(k, beta, log_gate)
    add = solve_below(low, v * beta[:, None])
    turn = solve_below(low, k * (beta * begin)[:, None])
    at = I.indices(I.domain(0, D))
    eye = I.select(at[:, None] == at[None, :], I.full((D, D), 1.0, I.f32), 0.0)
    faded = k * end[:, None]
    return I.record(turn=eye * I.exp(I.reduce.sum(log_gate, axis=0)) - I.matmul(faded, turn, acc_dtype=I.f32, transpose_lhs=True),
                    add=I.matmul(faded, add, acc_dtype=I.f32, transpose_lhs=True))


@intent.fn
def delta_then(f, g):
    return I.record(turn=I.matmul(g.turn, f.turn, acc_dtype=I.f32), add=I.matmul(g.turn, f.add, acc_dtype=I.f32) + g.add)


@intent.fn
def delta_apply(f, state):
    return I.matmul(f.turn, state, acc_dtype=I.f32) + f.add


@intent.fn
def delta_output(q, k, v, beta, log_gate, state):
    fade, low, begin, end = within(k, beta, log_gate)
    known = I.matmul(k, state, acc_dtype=I.f32) * begin[:, None]
    u = solve_below(low, (v - known) * beta[:, None])
    near = I.matmul(I.matmul(q, k, acc_dtype=I.f32, transpose_rhs=True) * fade, u, acc_dtype=I.f32)
    return near + I.matmul(q, state, acc_dtype=I.f32) * begin[:, None]


@intent.kernel
def gated_delta(q: I.In[I.f32, ("H", "S", "D")], k: I.In[I.f32, ("H", "S", "D")], v: I.In[I.f32, ("H", "S", "E")],
                beta: I.In[I.f32, ("H", "S")], gate: I.In[I.f32, ("H", "S")], y: I.Out[I.f32, ("H", "S", "E")],
                last: I.Out[I.f32, ("H", "D", "E")]):
    """The corrections of a slice solve a triangular system: products of matrices instead of steps."""
    H, S, D = q.shape
    E = v.shape[2]
    at, seq = I.indices(I.domain(0, D)), I.domain(0, S)
    eye = I.select(at[:, None] == at[None, :], I.full((D, D), 1.0, I.f32), 0.0)
    for h in I.parallel(I.domain(0, H)):
        o, s = I.region_scan(source=(q[h, seq, :], k[h, seq, :], v[h, seq, :], beta[h, seq], I.log(gate[h, seq])), axis=0,
                             summarize=delta_summary, combine=delta_then, identity=I.record(turn=eye, add=I.zeros((D, E), I.f32)),
                             initial_state=I.zeros((D, E), I.f32), apply=delta_apply, emit=delta_output)
        y[h, :, :] = o
        last[h, :, :] = s


@intent.kernel
def gated_delta_steps(q: I.In[I.f32, ("H", "S", "D")], k: I.In[I.f32, ("H", "S", "D")], v: I.In[I.f32, ("H", "S", "E")],
                      beta: I.In[I.f32, ("H", "S")], gate: I.In[I.f32, ("H", "S")], y: I.Out[I.f32, ("H", "S", "E")],
                      last: I.Out[I.f32, ("H", "D", "E")]):
    H, S, D = q.shape
    E = v.shape[2]
    for h in I.parallel(I.domain(0, H)):
        state = I.zeros((D, E), I.f32)
        for t in I.domain(0, S):
            state = state * gate[h, t]
            missing = (v[h, t, :] - I.vecmat(k[h, t, :], state, acc_dtype=I.f32)) * beta[h, t]
            state = state + I.outer(k[h, t, :], missing)
            y[h, t, :] = I.vecmat(q[h, t, :], state, acc_dtype=I.f32)
        last[h, :, :] = state


def delta_oracle(q, k, v, beta, gate):
    q, k, v, beta, gate = (a.astype("f8") for a in (q, k, v, beta, gate))
    s, y = np.zeros((len(q), k.shape[2], v.shape[2])), np.zeros(v.shape)
    for t in range(q.shape[1]):
        s = s * gate[:, t, None, None]
        s = s + np.einsum("hd,he->hde", k[:, t], (v[:, t] - np.einsum("hd,hde->he", k[:, t], s)) * beta[:, t, None])
        y[:, t] = np.einsum("hd,hde->he", q[:, t], s)
    return y, s


def delta_arguments(rng, H, S, D, E):
    k = normal(rng, (H, S, D))
    k /= np.maximum(np.linalg.norm(k, axis=2, keepdims=True), 1e-3)
    return [normal(rng, (H, S, D)), k, normal(rng, (H, S, E)), rng.random((H, S)).astype("f4"),
            (0.8 + 0.2 * rng.random((H, S))).astype("f4"), out((H, S, E), "f32"), out((H, D, E), "f32")]


@pytest.mark.parametrize("H, S, D, E", [(2, 0, 3, 4), (2, 1, 1, 1), (3, 70, 4, 3), (1, 100, 16, 33)])
def test_gated_delta_rule_step_by_step(H, S, D, E, rng):
    check(gated_delta_steps, delta_arguments(rng, H, S, D, E), delta_oracle, ulps=256, floor=256, layouts=LAYOUTS)


@pytest.mark.parametrize("H, S, D, E", [(2, 0, 3, 4), (1, 1, 1, 1), (2, 70, 4, 3), (1, 130, 16, 5)])
def test_gated_delta_rule_by_slices(H, S, D, E, rng):
    everywhere(gated_delta, delta_arguments(rng, H, S, D, E), delta_oracle, ulps=512, floor=1024)


# --- RWKV: weighted means whose weights are kept as logarithms ----------------------------------------------------------------

@intent.fn
def mix(a, b):
    """(log weight, mean, elapsed decay): a is older, and fades by what b took."""
    faded = a[0] + b[2]
    top = I.maximum(faded, b[0])
    wa, wb = I.exp(faded - top), I.exp(b[0] - top)
    return top + I.log(wa + wb), (wa * a[1] + wb * b[1]) / (wa + wb), a[2] + b[2]


@intent.kernel
def wkv(k: I.In[I.f32, ("T", "C")], v: I.In[I.f32, ("T", "C")], decay: I.In[I.f32, ("C",)], bonus: I.In[I.f32, ("C",)],
        y: I.Out[I.f32, ("T", "C")]):
    T, C = k.shape
    w, mean, _ = I.scan((k[:, :], v[:, :], I.zeros((T, C), I.f32) - decay[:]), axis=0, identity=(-1e30, 0.0, 0.0), combine=mix,
                        inclusive=False)
    now = k[:, :] + bonus[:]
    top = I.maximum(w, now)
    old, new = I.exp(w - top), I.exp(now - top)
    y[:, :] = (old * mean + new * v[:, :]) / (old + new)


def wkv_oracle(k, v, decay, bonus):
    k, v, decay, bonus = (a.astype("f8") for a in (k, v, decay, bonus))
    y, num, den = np.zeros(k.shape), np.zeros(k.shape[1]), np.zeros(k.shape[1])
    for t in range(len(k)):
        e = np.exp(k[t] + bonus)
        y[t] = (num + e * v[t]) / (den + e)
        num, den = num * np.exp(-decay) + np.exp(k[t]) * v[t], den * np.exp(-decay) + np.exp(k[t])
    return y


@pytest.mark.parametrize("T, C", [(0, 3), (1, 1), (40, 5), (300, 2), (4200, 1)])
def test_wkv(T, C, rng):
    args = [normal(rng, (T, C)), normal(rng, (T, C)), rng.random(C).astype("f4"), normal(rng, (C,)), out((T, C), "f32")]
    check(wkv, args, wkv_oracle, ulps=256, floor=256, layouts=LAYOUTS)


# --- gated units ------------------------------------------------------------------------------------------------------------------

@intent.kernel
def lstm(x: I.In[I.f32, ("B", "T", "K")], w: I.In[I.f32, ("K", 4, "H")], u: I.In[I.f32, ("H", 4, "H")], bias: I.In[I.f32, (4, "H")],
         length: I.In[I.i32, ("B",)], y: I.Out[I.f32, ("B", "T", "H")], h1: I.Out[I.f32, ("B", "H")], c1: I.Out[I.f32, ("B", "H")]):
    """Sequences of their own length: the state stands still behind the end, the outputs are zero there."""
    B, T, _ = x.shape
    H = h1.shape[1]
    h, c = I.zeros((B, H), I.f32), I.zeros((B, H), I.f32)
    for t in I.domain(0, T):
        gates = (I.contract(x[:, t, :], w[:, :, :], reduce=((1, 0),), batch=(), acc_dtype=I.f32)
                 + I.contract(h, u[:, :, :], reduce=((1, 0),), batch=(), acc_dtype=I.f32) + bias[:, :][None, :, :])
        i, f, o = I.sigmoid(gates[:, 0, :]), I.sigmoid(gates[:, 1, :]), I.sigmoid(gates[:, 2, :])
        cell = f * c + i * I.tanh(gates[:, 3, :])
        on = (I.cast(t, I.i32) < length[:])[:, None]
        c = I.select(on, cell, c)
        h = I.select(on, o * I.tanh(cell), h)
        y[:, t, :] = I.select(on, h, 0.0)
    h1[:, :] = h
    c1[:, :] = c


def lstm_oracle(x, w, u, bias, length):
    x, w, u, bias = (a.astype("f8") for a in (x, w, u, bias))
    B, T, _ = x.shape
    h, c, y = np.zeros((B, u.shape[0])), np.zeros((B, u.shape[0])), np.zeros((B, T, u.shape[0]))
    for b in range(B):
        for t in range(length[b]):
            i, f, o, g = np.einsum("i,igh->gh", x[b, t], w) + np.einsum("k,kgh->gh", h[b], u) + bias
            c[b] = sigmoid(f) * c[b] + sigmoid(i) * np.tanh(g)
            h[b] = y[b, t] = sigmoid(o) * np.tanh(c[b])
    return y, h, c


@pytest.mark.parametrize("B, T, K, H", [(1, 0, 2, 3), (3, 7, 5, 4), (2, 40, 1, 33), (50, 3, 4, 2)])
def test_lstm(B, T, K, H, rng):
    args = [normal(rng, (B, T, K)), normal(rng, (K, 4, H)), normal(rng, (H, 4, H), scale=H ** -0.5), normal(rng, (4, H)),
            rng.integers(0, T + 1, B).astype("i4"), out((B, T, H), "f32"), out((B, H), "f32"), out((B, H), "f32")]
    check(lstm, args, lstm_oracle, ulps=128, floor=128, layouts=LAYOUTS)
