"""Matrix products inside a task: in ordered loops, of carried states, over any shape, dtype and layout, and what is computed once."""
from __future__ import annotations

import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from tests.support import NUMPY, check, compiled, integers, out


def powers(dt):
    """A carried matrix: state = a state + b, whose result is also stored at every step."""
    @intent.kernel
    def kernel(a: I.In[dt, ("B", "M", "M")], b: I.In[dt, ("M", "N")], steps: I.index, y: I.Out[dt, ("B", "M", "N")],
               z: I.Out[dt, ("B", "M", "N")]):
        B, M, N = y.shape
        for p in I.parallel(I.domain(0, B)):
            state = I.zeros((M, N), dt)
            for t in I.domain(0, steps):
                z[p, :, :] = state
                state = I.matmul(a[p, :, :], state, acc_dtype=dt) + b[:, :]
            y[p, :, :] = state
    return kernel


@pytest.mark.parametrize("dt", ["f32", "f64", "i32", "u8"])
@pytest.mark.parametrize("shape", [(2, 0, 3), (1, 5, 0), (1, 1, 1), (2, 49, 33), (1, 100, 17)])
def test_carried_products(dt, shape, rng):
    B, M, N = shape
    a, b = (integers(rng, s, "i8", -2, 3).astype(NUMPY[dt]) for s in ((B, M, M), (M, N)))

    def oracle(a, b, steps):
        state = before = np.zeros(shape, NUMPY[dt])
        for _ in range(steps):
            before, state = state, (a @ state + b).astype(NUMPY[dt])
        return state, before
    check(powers(I.dtype(dt)), [a, b, np.int64(3), out(shape, dt), out(shape, dt)], oracle, layouts=("contiguous", "mixed"))


@intent.kernel
def two_sided(x: I.In[I.f32, ("T", "M", "K")], w: I.In[I.f32, ("N", "K")], scale: I.In[I.f32, ("K",)], y: I.InOut[I.f32, ("M", "N")],
              turned: I.Out[I.f32, ("N", "M")], g: I.Out[I.f32, ("M", 4, "N")]):
    """Operands that are expressions, a transposed result, several free axes, and more k than one chain."""
    T, M, K = x.shape
    N = w.shape[0]
    for t in I.domain(0, T):
        v = x[t, :, :] * scale[:][None, :]
        p = I.matmul(v, w[:, :], acc_dtype=I.f32, transpose_rhs=True)
        y[:, :] = y[:, :] + p
        turned[:, :] = I.transpose(p)
        parts, others = I.reshape(v, (M, K // 4, 4)), I.reshape(w[:, :], (N, K // 4, 4))
        g[:, :, :] = I.contract(parts, others[:, :, 0], reduce=((1, 1),), batch=(), acc_dtype=I.f32)


@pytest.mark.parametrize("T, M, N, K", [(2, 3, 5, 8), (1, 50, 40, 4), (2, 7, 3, 0), (1, 13, 18, 2600)])
def test_operands_and_results_of_any_form(T, M, N, K, rng):
    x, w, scale = (rng.integers(-3, 4, s).astype("f4") for s in ((T, M, K), (N, K), (K,)))
    y, last = rng.integers(-3, 4, (M, N)).astype("f4"), T - 1

    def oracle(x, w, scale, y):
        v = x * scale
        p = v @ w.T
        g = np.einsum("mkf,nk->mfn", v[last].reshape(M, K // 4, 4), w.reshape(N, K // 4, 4)[..., 0])
        return y + p.sum(0), p[last].T, g
    check(two_sided, [x, w, scale, y, out((N, M), "f32"), out((M, 4, N), "f32")], oracle, layouts=("contiguous", "mixed"))


@intent.kernel
def decoded_rows(w: I.In[I.u8, ("R", "K")], x: I.In[I.f32, ("K",)], y: I.Out[I.f32, ("R",)]):
    """What is computed before a loop is used at each of its points, and costs once."""
    R, K = w.shape
    v = x[:]
    codes = I.saturating_cast(((v * 3.0 + 1.0) * v - 2.0) * v / 5.0 - 0.5 * v * v, I.i8)
    for r in I.parallel(I.domain(0, R)):
        total = I.cast(0.0, I.f32)
        for k in I.domain(0, K):
            total = total + I.cast(w[r, k], I.f32) * I.cast(codes[k], I.f32)
        y[r] = total


def test_a_long_chain_before_a_loop_is_evaluated_once(rng):
    w, x = integers(rng, (37, 70), "u8"), rng.integers(-3, 4, 70).astype("f4")

    def oracle(w, x):
        codes = np.clip(np.trunc(((x * 3 + 1) * x - 2) * x / np.float32(5) - np.float32(0.5) * x * x), -128, 127)
        return w.astype("f8") @ codes.astype("f8")
    check(decoded_rows, [w, x, out(37, "f32")], oracle, layouts=("contiguous", "mixed"))
    assert compiled(decoded_rows).inspect("task").count("saturating_cast") == 1


@intent.kernel
def fading(x: I.In[I.f32, ("T", "N")], y: I.Out[I.f32, ("T",)], last: I.Out[I.f32, ("N",)]):
    """The new state is wanted by the sum and by the next step."""
    T, N = x.shape
    state = I.zeros((N,), I.f32)
    for t in I.domain(0, T):
        state = state * I.exp(-x[t, :]) + 1.0
        y[t] = I.reduce.sum(state * x[t, :], axis=0)
    last[:] = state


def test_a_carried_value_that_is_also_summed_is_evaluated_once(rng):
    x = rng.random((9, 40)).astype("f4")

    def oracle(x):
        state, y = np.zeros(40), []
        for row in x.astype("f8"):
            state = state * np.exp(-row) + 1
            y.append((state * row).sum())
        return np.array(y), state
    check(fading, [x, out(9, "f32"), out(40, "f32")], oracle, ulps=32, layouts=("contiguous", "mixed"))
    assert compiled(fading).inspect("task").count("exp(") == 1
