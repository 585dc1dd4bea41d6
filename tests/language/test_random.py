"""Philox4x32-10: the known words, the uniform values, and programs that draw. The oracle is plain Python integers."""
from __future__ import annotations

import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from tests.support import check, kir_of, out

MASK = 0xFFFFFFFF
SEED = 0x123456789ABCDEF0


def word(seed: int, counter: int) -> int:
    """One word, straight from 000 section 12."""
    block = counter // 4
    c = [block & MASK, block >> 32, 0, 0]
    k = [seed & MASK, seed >> 32]
    for _ in range(10):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [q >> 32 ^ c[1] ^ k[0], q & MASK, p >> 32 ^ c[3] ^ k[1], p & MASK]
        k = [(k[0] + 0x9E3779B9) & MASK, (k[1] + 0xBB67AE85) & MASK]
    return c[counter % 4]


def words(seed, counters) -> np.ndarray:
    return np.array([word(int(seed), int(c)) for c in np.ravel(counters)], np.uint32).reshape(np.shape(counters))


def uniforms(seed, counters) -> np.ndarray:
    return (words(seed, counters) >> 8).astype(np.float32) * np.float32(2.0 ** -24)


# --- words -------------------------------------------------------------------------------------------------------------

@intent.kernel
def draw(seed: I.u64, counters: I.In[I.u64, ("N",)], y: I.Out[I.u32, ("N",)]):
    y[:] = I.random.bits(seed, counters[:])


@intent.kernel
def draw_points(seed: I.u64, counters: I.In[I.u64, ("N",)], y: I.Out[I.u32, ("N",)]):
    N, = counters.shape
    for i in I.parallel(I.domain(0, N)):
        y[i] = I.random.bits(seed, counters[i])


@pytest.mark.parametrize("kernel", [draw, draw_points])
def test_known_words(kernel):
    zero, = check(kernel, [np.uint64(0), np.arange(4, dtype=np.uint64), out(4, "u32")], words)
    assert [f"{w:08x}" for w in zero] == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]
    case, = check(kernel, [np.uint64(SEED), np.array([5, 2 ** 34 + 7, 2 ** 64 - 1], np.uint64), out(3, "u32")], words)
    assert [f"{w:08X}" for w in case] == ["609CF517", "F9F9ADEB", "D98A803B"]


@pytest.mark.parametrize("n", [0, 1, 31, 33, 200])
def test_any_counters(n):
    counters = np.random.default_rng(n).integers(0, 2 ** 64, n, np.uint64, endpoint=False)
    check(draw, [np.uint64(2 ** 64 - 1), counters, out(n, "u32")], words)


@intent.kernel
def grid(seeds: I.In[I.u64, ("S",)], y: I.Out[I.u32, ("S", "N")], u: I.Out[I.f32, ("S", "N")]):
    _, N = y.shape
    counters = I.indices(I.domain(0, N))
    y[:, :] = I.random.bits(seeds[:][:, None], counters)
    u[:, :] = I.random.uniform(seeds[:][:, None], counters)


def test_seeds_and_counters_broadcast():
    seeds = np.array([0, 1, SEED, 2 ** 64 - 1], np.uint64)
    n = 37
    check(grid, [seeds, out((4, n), "u32"), out((4, n), "f32")],
          lambda s: (np.array([words(x, np.arange(n)) for x in s]), np.array([uniforms(x, np.arange(n)) for x in s])))


@intent.kernel
def literals(y: I.Out[I.u32, (3,)]):
    y[0] = I.random.bits(0xFFFFFFFFFFFFFFFF, 7)
    step = 2
    while step < 10:
        step = step * 2
    y[1] = I.random.bits(1, step)
    y[2] = I.random.bits(1, I.cast(0xFFFFFFFFFFFFFFFF, I.u64))


def test_literals_and_weak_integers():
    check(literals, [out(3, "u32")], lambda: np.array([word(2 ** 64 - 1, 7), word(1, 16), word(1, 2 ** 64 - 1)], np.uint32))


def test_uniform_bounds():
    @intent.kernel
    def draw_uniform(counters: I.In[I.u64, ("N",)], y: I.Out[I.f32, ("N",)]):
        y[:] = I.random.uniform(SEED, counters[:], dtype=I.f32)

    counters = np.arange(5000, dtype=np.uint64)
    values, = check(draw_uniform, [counters, out(5000, "f32")], lambda c: uniforms(SEED, c), layouts=("contiguous",))
    assert values.min() >= 0 and values.max() < 1 and abs(values.mean() - 0.5) < 0.02


# --- refusals ------------------------------------------------------------------------------------------------------------

def refused(kernel, text):
    with pytest.raises(intent.IntentTypeError) as caught:
        kir_of(kernel)
    assert text in str(caught.value)


def test_dtypes_are_refused():
    @intent.kernel
    def signed_seed(s: I.i64, y: I.Out[I.u32, (1,)]):
        y[0] = I.random.bits(s, 0)

    @intent.kernel
    def signed_counter(c: I.i32, y: I.Out[I.u32, (1,)]):
        y[0] = I.random.bits(0, c)

    @intent.kernel
    def negative(y: I.Out[I.u32, (1,)]):
        y[0] = I.random.bits(0, -1)

    @intent.kernel
    def double(y: I.Out[I.f64, (1,)]):
        y[0] = I.random.uniform(0, 0, dtype=I.f64)

    refused(signed_seed, "seed must be u64")
    refused(signed_counter, "counter must be u64 or index")
    refused(negative, "-1")
    refused(double, "only f32")


def test_combines_do_not_draw():
    @intent.fn
    def noisy(a, b):
        return a + b + I.random.bits(0, 1)

    @intent.kernel
    def folded(x: I.In[I.u32, ("N",)], y: I.Out[I.u32, (1,)]):
        y[0] = I.reduce(x[:], axis=0, identity=I.cast(0, I.u32), combine=noisy)

    with pytest.raises(intent.LanguageError, match="pure"):
        kir_of(folded)


# --- programs ------------------------------------------------------------------------------------------------------------

@intent.kernel
def dropout(x: I.In[I.f32, ("M", "N")], seed: I.u64, rate: I.f32, y: I.Out[I.f32, ("M", "N")]):
    M, N = x.shape
    rows, cols = I.domain(0, M), I.domain(0, N)
    counter = I.indices(rows)[:, None] * N + I.indices(cols)[None, :]
    y[rows, cols] = I.select(I.random.uniform(seed, counter) >= rate, x[rows, cols] / (1.0 - rate), 0.0)


def test_dropout():
    x = np.random.default_rng(1).standard_normal((9, 70)).astype(np.float32)

    def oracle(x, seed, rate):
        keep = uniforms(seed, np.arange(x.size).reshape(x.shape)) >= rate
        return np.where(keep, x / (np.float32(1) - rate), np.float32(0))

    y, = check(dropout, [x, np.uint64(99), np.float32(0.25), out(x.shape, "f32")], oracle)
    assert 0.15 < (y == 0).mean() < 0.35


@intent.fn
def normal(seed, counter):
    """Box and Muller, from two words of one counter."""
    u = I.random.uniform(seed, counter * 2)
    v = I.random.uniform(seed, counter * 2 + 1)
    return I.sqrt(-2.0 * I.log(1.0 - u)) * I.cos(6.2831855 * v)


@intent.kernel
def barrier_option(seed: I.u64, steps: I.index, spot: I.f32, strike: I.f32, barrier: I.f32, drift: I.f32, volatility: I.f32,
                   payoff: I.Out[I.f32, ("P",)]):
    P, = payoff.shape
    for p in I.parallel(I.domain(0, P)):
        price, alive = spot, True
        for t in I.domain(0, steps):
            price = price * I.exp(drift + volatility * normal(seed, p * steps + t))
            if price >= barrier:
                alive = False
                break
        payoff[p] = I.maximum(price - strike, 0.0) if alive else 0.0


def test_monte_carlo_barrier_option():
    paths, steps = 300, 20

    def oracle(seed, steps, spot, strike, barrier, drift, volatility):
        steps = int(steps)
        u = np.array([[uniforms(seed, np.array([2 * (p * steps + t), 2 * (p * steps + t) + 1])) for t in range(steps)]
                      for p in range(paths)], np.float64)
        z = np.sqrt(-2 * np.log(1 - u[..., 0])) * np.cos(np.float64(np.float32(6.2831855)) * u[..., 1])
        price = float(spot) * np.exp(np.cumsum(float(drift) + float(volatility) * z, axis=1))
        alive = (price < barrier).all(axis=1)
        return np.where(alive, np.maximum(price[:, -1] - strike, 0), 0).astype(np.float32)

    args = [np.uint64(5), np.int64(steps), np.float32(100), np.float32(100), np.float32(115), np.float32(0.0002), np.float32(0.02)]
    got, = check(barrier_option, [*args, out(paths, "f32")])
    want = oracle(*args)
    assert np.allclose(got, want, rtol=1e-4, atol=1e-3) and 0 < (want > 0).mean() < 1
