"""Finance: options by simulation on Philox draws, by trees and in closed form, volatilities, risk. Oracles in f64 on the same words."""
from __future__ import annotations

from math import comb

import numpy as np
import pytest
from scipy import stats

import intent_numba as intent
import intent_numba.language as I
from tests.support import check, normal, out

from .test_training import uniforms

LAYOUTS = ("contiguous", "mixed")


@intent.fn
def gauss_pair(seed, counter):
    """Box and Muller: two normal numbers from two words."""
    u, v = I.random.uniform(seed, 2 * counter), I.random.uniform(seed, 2 * counter + 1)
    radius, angle = I.sqrt(-2.0 * I.log(1.0 - u)), 2.0 * I.pi * v
    return radius * I.cos(angle), radius * I.sin(angle)


def gauss_pairs(seed, counters):
    u, v = uniforms(seed, 2 * counters).astype("f8"), uniforms(seed, 2 * counters + 1).astype("f8")
    radius, angle = np.sqrt(-2 * np.log(1 - u)), 2 * np.pi * v
    return radius * np.cos(angle), radius * np.sin(angle)


class Barrier(I.Enum):
    UP_AND_OUT = 1
    DOWN_AND_IN = 2


@intent.kernel
def barrier_option(seed: I.u64, paths: I.index, steps: I.index, spot: I.f32, strike: I.f32, barrier: I.f32, rate: I.f32, sigma: I.f32,
                   years: I.f32, price: I.Out[I.f32, ()], error: I.Out[I.f32, ()], KIND: I.Constexpr[Barrier]):
    """All paths at once: an ordered loop over time carries the tensor of logarithms, with its mirror image; then one mean."""
    dt = years / I.cast(steps, I.f32)
    drift, volatility = (rate - 0.5 * sigma * sigma) * dt, sigma * I.sqrt(dt)
    path = I.indices(I.domain(0, paths))
    level = I.log(barrier / spot)
    a, b = I.zeros((paths,), I.f32), I.zeros((paths,), I.f32)
    met_a, met_b = I.full((paths,), False, I.bool), I.full((paths,), False, I.bool)
    for t in I.domain(0, steps):
        z, _ = gauss_pair(seed, path * steps + t)
        a, b = a + drift + volatility * z, b + drift - volatility * z
        if KIND == Barrier.UP_AND_OUT:
            met_a, met_b = met_a | (a >= level), met_b | (b >= level)
        else:
            met_a, met_b = met_a | (a <= level), met_b | (b <= level)
    counts_if_met = KIND == Barrier.DOWN_AND_IN
    pay_a = I.select(met_a == counts_if_met, I.maximum(spot * I.exp(a) - strike, 0.0), 0.0)
    pay_b = I.select(met_b == counts_if_met, I.maximum(spot * I.exp(b) - strike, 0.0), 0.0)
    pay = I.exp(-rate * years) * 0.5 * (pay_a + pay_b)
    n = I.cast(paths, I.f32)
    mean = I.reduce.sum(pay, axis=0) / n
    price[()] = mean
    error[()] = I.sqrt(I.reduce.sum((pay - mean) * (pay - mean), axis=0) / n / I.maximum(n - 1.0, 1.0))


def barrier_oracle(kind):
    def oracle(seed, paths, steps, spot, strike, barrier, rate, sigma, years):
        spot, strike, barrier, rate, sigma, years = map(float, (spot, strike, barrier, rate, sigma, years))
        z, _ = gauss_pairs(seed, np.arange(paths * steps).reshape(paths, steps))
        dt, pays = years / steps, 0
        for sign in (1, -1):
            x = np.cumsum((rate - sigma * sigma / 2) * dt + sign * sigma * np.sqrt(dt) * z, axis=1)
            met = (spot * np.exp(x) >= barrier if kind == Barrier.UP_AND_OUT else spot * np.exp(x) <= barrier).any(1)
            pays = pays + np.where(met == (kind == Barrier.DOWN_AND_IN), np.maximum(spot * np.exp(x[:, -1]) - strike, 0), 0)
        pay = np.exp(-rate * years) * pays / 2
        return pay.mean(), pay.std(ddof=1) / np.sqrt(paths) if paths > 1 else 0.0
    return oracle


@pytest.mark.parametrize("kind, barrier", [(Barrier.UP_AND_OUT, 130), (Barrier.DOWN_AND_IN, 92)], ids=str)
@pytest.mark.parametrize("paths, steps", [(1, 1), (100, 12), (5000, 8)])
def test_barrier_option(kind, barrier, paths, steps):
    args = [np.uint64(2026), np.int64(paths), np.int64(steps), *map(np.float32, (100, 95, barrier, 0.03, 0.25, 0.75))]
    check(barrier_option, [*args, out((), "f32"), out((), "f32")], barrier_oracle(kind), constexprs={"KIND": kind}, ulps=256,
          floor=2048 if paths > 1 else 4e7, layouts=("contiguous",))


def test_a_barrier_out_of_reach_gives_the_formula_of_black_and_scholes():
    spot, strike, rate, sigma, years = 100, 95, 0.03, 0.25, 0.75
    price, error = barrier_option.run(7, 200_000, 4, spot, strike, 1e9, rate, sigma, years, KIND=Barrier.UP_AND_OUT)
    d = (np.log(spot / strike) + (rate + sigma ** 2 / 2) * years) / sigma / np.sqrt(years)
    formula = spot * stats.norm.cdf(d) - strike * np.exp(-rate * years) * stats.norm.cdf(d - sigma * np.sqrt(years))
    assert abs(price - formula) < 4 * error and 0 < error < 0.05


@intent.kernel
def asian_basket(seed: I.u64, steps: I.index, weight: I.In[I.f64, ("A",)], spot: I.In[I.f64, ("A",)], sigma: I.In[I.f64, ("A",)],
                 root: I.In[I.f64, ("A", "A")], strike: I.f64, dt: I.f64, pay: I.Out[I.f64, ("P",)]):
    """Correlated assets: independent numbers through the root of the correlations; the mean over time decides."""
    A, P = weight.shape[0], pay.shape[0]
    asset = I.indices(I.domain(0, A))
    for p in I.parallel(I.domain(0, P)):
        x, total = I.zeros((A,), I.f64), I.cast(0.0, I.f64)
        for t in I.domain(0, steps):
            z, _ = gauss_pair(seed, (p * steps + t) * A + asset)
            shock = I.matvec(root[:, :], I.cast(z, I.f64), acc_dtype=I.f64)
            x = x + sigma[:] * I.sqrt(dt) * shock - 0.5 * sigma[:] * sigma[:] * dt
            total = total + I.reduce.sum(weight[:] * spot[:] * I.exp(x), axis=0)
        pay[p] = I.maximum(total / I.cast(steps, I.f64) - strike, 0.0)


@pytest.mark.parametrize("paths, steps, assets", [(0, 3, 2), (33, 4, 3), (1, 1, 1)])
def test_asian_basket(paths, steps, assets, rng):
    m = rng.standard_normal((assets, assets + 2))
    cov = m @ m.T
    root = np.linalg.cholesky(cov / np.sqrt(np.outer(np.diag(cov), np.diag(cov))))
    weight, spot, sigma = np.full(assets, 1 / assets), rng.uniform(90, 110, assets), rng.uniform(0.1, 0.4, assets)

    def oracle(seed, steps, weight, spot, sigma, root, strike, dt):
        z = gauss_pairs(seed, np.arange(paths * steps * assets).reshape(paths, steps, assets))[0].astype("f4").astype("f8")
        x = np.cumsum(sigma * np.sqrt(dt) * np.einsum("ab,ptb->pta", root, z) - sigma * sigma * dt / 2, axis=1)
        return np.maximum((weight * spot * np.exp(x)).sum(2).mean(1) - strike, 0)
    args = [np.uint64(11), np.int64(steps), weight, spot, sigma, root, 99.0, 0.1, out(paths, "f64")]
    got, = check(asian_basket, args, layouts=LAYOUTS)
    np.testing.assert_allclose(got, oracle(*args[:-1]), rtol=1e-5, atol=1e-4)       # the draws are rounded to f32


# --- trees, formulas, roots -------------------------------------------------------------------------------------------------------

@intent.kernel
def american_put(spot: I.In[I.f64, ("N",)], strike: I.f64, up: I.f64, odds: I.f64, discount: I.f64, y: I.Out[I.f64, ("N",)],
                 STEPS: I.Constexpr[int]):
    """A binomial tree backwards in time: at each node the better of holding and exercising."""
    N, = spot.shape
    for n in I.parallel(I.domain(0, N)):
        value = I.buffer((STEPS + 1,), I.f64)
        for j in I.domain(0, STEPS + 1):
            value[j] = I.maximum(strike - spot[n] * I.pow(up, I.cast(2 * j - STEPS, I.f64)), 0.0)
        for back in I.domain(0, STEPS):
            depth = STEPS - 1 - back
            for j in I.domain(0, depth + 1):
                hold = discount * (odds * value[j + 1] + (1.0 - odds) * value[j])
                value[j] = I.maximum(hold, strike - spot[n] * I.pow(up, I.cast(2 * j - depth, I.f64)))
        y[n] = value[0]


@pytest.mark.parametrize("steps", [0, 1, 11])
def test_american_put(steps, rng):
    spot = rng.uniform(60, 140, 18)

    def oracle(spot, strike, up, odds, discount):
        value = np.maximum(strike - spot[:, None] * up ** (2.0 * np.arange(steps + 1) - steps), 0)
        for depth in range(steps - 1, -1, -1):
            hold = discount * (odds * value[:, 1:depth + 2] + (1 - odds) * value[:, :depth + 1])
            value = np.maximum(hold, strike - spot[:, None] * up ** (2.0 * np.arange(depth + 1) - depth))
        return value[:, 0]
    up, growth = np.exp(0.3 * np.sqrt(0.02)), np.exp(0.05 * 0.02)
    odds = (growth - 1 / up) / (up - 1 / up)
    check(american_put, [spot, 100.0, up, odds, 1 / growth, out(18, "f64")], oracle, constexprs={"STEPS": steps}, ulps=64, floor=4096,
          layouts=LAYOUTS)


@intent.fn
def normal_cdf(x):
    return 0.5 * I.erfc(-x * I.cast(0.7071067811865476, I.f64))


@intent.fn
def call_price(spot, strike, rate, sigma, years):
    spread = sigma * I.sqrt(years)
    d = (I.log(spot / strike) + (rate + 0.5 * sigma * sigma) * years) / spread
    density = I.exp(-0.5 * d * d) / I.sqrt(I.cast(2.0 * I.pi, I.f64))
    return spot * normal_cdf(d) - strike * I.exp(-rate * years) * normal_cdf(d - spread), spot * I.sqrt(years) * density


@intent.kernel
def implied_volatility(price: I.In[I.f64, ("N",)], spot: I.f64, strike: I.In[I.f64, ("N",)], rate: I.f64, years: I.f64,
                       sigma: I.Out[I.f64, ("N",)], rounds: I.Out[I.i32, ("N",)]):
    """Newton from the inflection point, each option with as many rounds as it needs."""
    N, = price.shape
    for n in I.parallel(I.domain(0, N)):
        s = I.sqrt(2.0 * I.abs(I.log(spot / strike[n]) + rate * years) / years) + 0.01
        count = I.cast(0, I.i32)
        while count < 60:
            value, vega = call_price(spot, strike[n], rate, s, years)
            change = (value - price[n]) / vega
            s = s - change
            count += 1
            if I.abs(change) < 1e-12:
                break
        sigma[n] = s
        rounds[n] = count


@pytest.mark.parametrize("n", [0, 1, 37])
def test_implied_volatility(n, rng):
    spot, rate, years = 100.0, 0.02, 0.5
    sigma, strike = rng.uniform(0.15, 0.6, n), rng.uniform(80, 125, n)
    d = (np.log(spot / strike) + (rate + sigma ** 2 / 2) * years) / sigma / np.sqrt(years)
    price = spot * stats.norm.cdf(d) - strike * np.exp(-rate * years) * stats.norm.cdf(d - sigma * np.sqrt(years))
    got, rounds = check(implied_volatility, [price, spot, strike, rate, years, out(n, "f64"), out(n, "i32")], layouts=LAYOUTS)
    np.testing.assert_allclose(got, sigma, rtol=1e-9)
    assert (rounds < 60).all()


@intent.kernel
def garch(returns: I.In[I.f64, ("A", "T")], omega: I.f64, alpha: I.f64, beta: I.f64, likelihood: I.Out[I.f64, ("A",)],
          variance: I.Out[I.f64, ("A", "T")]):
    A, T = returns.shape
    for a in I.parallel(I.domain(0, A)):
        v = omega / (1.0 - alpha - beta)
        total = I.cast(0.0, I.f64)
        for t in I.domain(0, T):
            variance[a, t] = v
            r = returns[a, t]
            total = total - 0.5 * (I.log(v) + r * r / v)
            v = omega + alpha * r * r + beta * v
        likelihood[a] = total


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (5, 80), (33, 7)])
def test_garch(shape, rng):
    def oracle(r, omega, alpha, beta):
        v, total, path = np.full(shape[0], omega / (1 - alpha - beta)), np.zeros(shape[0]), np.zeros(shape)
        for t in range(shape[1]):
            path[:, t] = v
            total -= 0.5 * (np.log(v) + r[:, t] ** 2 / v)
            v = omega + alpha * r[:, t] ** 2 + beta * v
        return total, path
    check(garch, [normal(rng, shape, "f64", 0.01), 1e-6, 0.1, 0.85, out(shape[0], "f64"), out(shape, "f64")], oracle, ulps=64, floor=64,
          layouts=LAYOUTS)


@intent.kernel
def rainbow_lattice(y: I.Out[I.u64, ("N", "N")]):
    """Paths to each node of a lattice: a wavefront, exact in integers."""
    N, _ = y.shape
    for i in I.domain(0, N):
        for j in I.domain(0, N):
            if i == 0 or j == 0:
                y[i, j] = I.cast(1, I.u64)
            else:
                y[i, j] = y[i - 1, j] + y[i, j - 1]


@pytest.mark.parametrize("n", [1, 2, 30])
def test_lattice_paths(n):
    check(rainbow_lattice, [out((n, n), "u64")], lambda: np.array([[comb(i + j, i) for j in range(n)] for i in range(n)], "u8"),
          layouts=LAYOUTS)
