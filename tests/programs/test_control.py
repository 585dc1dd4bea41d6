"""Ordered loops, while, branches, early return, Constexpr and Enum choices, and loop carries that are tensors."""
from __future__ import annotations

import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from tests.support import check, integers, normal, out


@intent.kernel
def mandelbrot(x: I.In[I.f64, ("W",)], y: I.In[I.f64, ("H",)], limit: I.i32, n: I.Out[I.i32, ("H", "W")]):
    H, W = n.shape
    for i, j in I.parallel((I.domain(0, H), I.domain(0, W))):
        zr = I.cast(0.0, I.f64)
        zi = I.cast(0.0, I.f64)
        count = I.cast(0, I.i32)
        while count < limit:
            rr = zr * zr
            ii = zi * zi
            if rr + ii > 4.0:
                break
            cross = zr * zi
            zr = rr - ii + x[j]
            zi = cross + cross + y[i]
            count += 1
        n[i, j] = count


@pytest.mark.parametrize("shape", [(6, 32), (5, 13), (0, 4), (3, 0)])
def test_mandelbrot(shape):
    H, W = shape

    def oracle(x, y, limit):
        n = np.zeros(shape, np.int32)
        for i in range(H):
            for j in range(W):
                zr = zi = 0.0
                for _ in range(limit):
                    rr, ii = zr * zr, zi * zi
                    if rr + ii > 4:
                        break
                    cross = zr * zi
                    zr, zi = rr - ii + x[j], cross + cross + y[i]
                    n[i, j] += 1
        return n

    check(mandelbrot, [np.linspace(-2, 0.6, W), np.linspace(-1.2, 1.2, H), np.int32(50), out(shape, "i32")], oracle)


@intent.fn
def classify(v, low, high):
    if v < low:
        return I.cast(-1, I.i8)
    if v > high:
        return I.cast(1, I.i8)
    return I.cast(0, I.i8)


@intent.kernel
def early_return(x: I.In[I.f32, ("N",)], low: I.f32, high: I.f32, y: I.Out[I.i8, ("N",)]):
    for n in I.parallel(I.domain(0, x.shape[0])):
        y[n] = classify(x[n], high=high, low=low)


@pytest.mark.parametrize("n", [64, 19, 0])
def test_helper_with_early_return(n, rng):
    x = normal(rng, n)
    if n:
        x[n // 2] = np.nan
    check(early_return, [x, np.float32(-0.5), np.float32(0.5), out(n, "i8")],
          lambda x, lo, hi: np.where(x < lo, -1, np.where(x > hi, 1, 0)).astype(np.int8))


@intent.fn
def first_match(row, key):
    for n in I.domain(0, row.shape[0]):
        if row[n] == key:
            return I.cast(n, I.i64)
    return I.cast(-1, I.i64)


@intent.kernel
def search(x: I.In[I.i32, ("M", "N")], key: I.In[I.i32, ("M",)], y: I.Out[I.i64, ("M",)]):
    for m in I.parallel(I.domain(0, x.shape[0])):
        y[m] = first_match(x[m, :], key[m])


@pytest.mark.parametrize("shape", [(8, 32), (5, 7), (4, 0), (0, 4)])
def test_return_from_inside_a_loop(shape, rng):
    x, key = integers(rng, shape, "i32", 0, 9), integers(rng, shape[0], "i32", 0, 9)
    check(search, [x, key, out(shape[0], "i64")],
          lambda x, k: np.array([next((j for j, v in enumerate(r) if v == q), -1) for r, q in zip(x, k)], np.int64).reshape(len(k)))


class Activation(I.Enum):
    NONE = 0
    RELU = 1
    SQUARE = 2


@intent.fn
def activate(v, kind: I.Constexpr[Activation]):
    if kind == Activation.RELU:
        return I.relu(v)
    elif kind == Activation.SQUARE:
        return v * v
    return v


@intent.kernel
def activated(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, ("N",)], KIND: I.Constexpr[Activation] = Activation.NONE,
              SCALE: I.Constexpr[float] = 1.0,
              TWICE: I.Constexpr[bool] = False, STEP: I.Constexpr[int] = 1):
    v = activate(x[:], KIND) * SCALE
    if TWICE:
        v = activate(v, KIND)
    for _ in range(STEP):
        v = v + 1.0
    y[:] = v


@pytest.mark.parametrize("n", [32, 9, 0])
@pytest.mark.parametrize("constexprs", [{}, {"KIND": Activation.RELU}, {"KIND": Activation.SQUARE, "TWICE": True, "SCALE": 0.5},
                                        {"STEP": 3}, {"STEP": 0}])
def test_constexpr_variants(constexprs, n, rng):
    kind, steps = constexprs.get("KIND", Activation.NONE), constexprs.get("STEP", 1)

    def oracle(x):
        f = {Activation.NONE: lambda v: v, Activation.RELU: lambda v: np.maximum(v, 0), Activation.SQUARE: lambda v: v * v}[kind]
        v = f(x) * np.float32(constexprs.get("SCALE", 1.0))
        v = f(v) if constexprs.get("TWICE") else v
        for _ in range(steps):
            v = v + np.float32(1)
        return v

    full = {"KIND": Activation.NONE, "SCALE": 1.0, "TWICE": False, "STEP": 1, **constexprs}
    check(activated, [normal(rng, n), out(n, "f32")], oracle, constexprs=full)


@intent.kernel
def power_iteration(a: I.In[I.f64, ("N", "N")], start: I.In[I.f64, ("N",)], steps: I.i32, vector: I.Out[I.f64, ("N",)],
                    value: I.Out[I.f64, ()]):
    m = a[:, :]
    v = start[:]
    rayleigh = I.cast(0.0, I.f64)
    for _ in range(steps):
        w = I.matvec(m, v, acc_dtype=I.f64)
        rayleigh = I.reduce.sum(w * v, axis=0)
        v = w * I.rsqrt(I.reduce.sum(w * w, axis=0))
    vector[:] = v
    value[()] = rayleigh


@pytest.mark.parametrize("n,steps", [(16, 40), (5, 30), (3, 0)])
def test_power_iteration(n, steps, rng):
    q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    a = (q * np.r_[4.0, np.linspace(0.1, 1, n - 1)]) @ q.T
    start = np.ones(n) / np.sqrt(n)

    def oracle(a, v, steps):
        lam = 0.0
        for _ in range(steps):
            w = a @ v
            lam = w @ v
            v = w / np.linalg.norm(w)
        return v, np.asarray(lam)

    check(power_iteration, [a, start, np.int32(steps), out(n, "f64"), out((), "f64")], oracle, floor=4096)


@intent.kernel
def jacobi(x: I.In[I.f32, ("M", "N")], tolerance: I.f32, limit: I.i32, y: I.Out[I.f32, ("M", "N")], steps: I.Out[I.i32, (1,)]):
    M, N = x.shape
    rows, columns = I.domain(0, M), I.domain(0, N)
    i, j = I.indices(rows)[:, None], I.indices(columns)[None, :]
    inner = (i > 0) & (i < M - 1) & (j > 0) & (j < N - 1)
    state = x[rows, columns]
    count = I.cast(0, I.i32)
    while count < limit:
        up = I.gather(state, index=(i - 1, j), valid=inner, fill=0.0)
        down = I.gather(state, index=(i + 1, j), valid=inner, fill=0.0)
        left = I.gather(state, index=(i, j - 1), valid=inner, fill=0.0)
        right = I.gather(state, index=(i, j + 1), valid=inner, fill=0.0)
        new = I.select(inner, (up + down + (left + right)) * 0.25, state)
        change = I.reduce.max(I.abs(new - state), axis=(0, 1))
        state = new
        count += 1
        if change <= tolerance:
            break
    y[rows, columns] = state
    steps[0] = count


@pytest.mark.parametrize("shape", [(5, 32), (6, 7), (1, 3)])
def test_jacobi(shape, rng):
    def oracle(x, tol, limit):
        n = 0
        while n < limit:
            new = x.copy()
            if min(x.shape) > 2:
                new[1:-1, 1:-1] = (x[:-2, 1:-1] + x[2:, 1:-1] + (x[1:-1, :-2] + x[1:-1, 2:])) * np.float32(0.25)
            change, x, n = np.abs(new - x).max(), new, n + 1
            if change <= tol:
                break
        return x, np.array([n], np.int32)

    check(jacobi, [normal(rng, shape), np.float32(1e-2), np.int32(60), out(shape, "f32"), out(1, "i32")], oracle)


@intent.kernel
def collatz(start: I.In[I.i64, ("N",)], y: I.Out[I.i32, ("N",)]):
    for n in I.parallel(I.domain(0, start.shape[0])):
        v = start[n]
        steps = I.cast(0, I.i32)
        while v != 1:
            v = v // 2 if v % 2 == 0 else 3 * v + 1
            steps = steps + 1
        y[n] = steps


@pytest.mark.parametrize("n", [32, 27, 0])
def test_collatz(n):
    def steps(v):
        count = 0
        while v != 1:
            v, count = (v // 2 if v % 2 == 0 else 3 * v + 1), count + 1
        return count

    check(collatz, [np.arange(1, n + 1), out(n, "i32")], lambda s: np.array([steps(int(v)) for v in s], np.int32))


@intent.kernel
def newton_roots(a: I.In[I.f64, ("N",)], y: I.Out[I.f64, ("N",)], steps: I.Out[I.i32, ("N",)]):
    for n in I.parallel(I.domain(0, a.shape[0])):
        v = a[n]
        if v <= 0.0:
            y[n] = 0.0
            steps[n] = 0
            continue
        g = v
        k = I.cast(0, I.i32)
        for k_index in range(60):
            nxt = 0.5 * (g + v / g)
            done = I.abs(nxt - g) <= 1e-12 * g
            g = nxt
            k = I.cast(k_index, I.i32)
            if done:
                break
        y[n] = g
        steps[n] = k


@pytest.mark.parametrize("n", [32, 11, 0])
def test_newton_with_continue_and_break(n, rng):
    a = rng.uniform(-1, 50, n)
    roots, steps = check(newton_roots, [a, out(n, "f64"), out(n, "i32")])
    assert np.allclose(roots, np.sqrt(np.maximum(a, 0)), rtol=1e-14) and (steps < 20).all()


@intent.kernel
def sieve(y: I.Out[I.bool, ("N",)]):
    N, = y.shape
    y[:] = I.full((N,), True, I.bool)
    for n in I.domain(0, I.minimum(N, 2)):
        y[n] = False


def test_constant_fill_and_loop_over_a_minimum():
    for n in (0, 1, 2, 33):
        (y,) = check(sieve, [out(n, "bool")])
        assert y.tolist() == [i >= 2 for i in range(n)]


@intent.kernel
def eratosthenes(y: I.InOut[I.bool, ("N",)]):
    N, = y.shape
    step = 2
    while step * step < N:
        if y[step]:
            for m in I.domain(step * step, N, step):
                y[m] = False
        step = step + 1


@pytest.mark.parametrize("n", [64, 101, 4, 0])
def test_eratosthenes_in_place(n):
    def oracle(y):
        return np.array([all(v % d for d in range(2, int(v ** 0.5) + 1)) for v in range(n)], np.bool_)

    check(eratosthenes, [np.ones(n, np.bool_)], oracle)


@intent.kernel
def nested_breaks(x: I.In[I.i32, ("A", "B", "C")], limit: I.i32, y: I.Out[I.i32, ("A",)]):
    A, B, C = x.shape
    for a in I.parallel(I.domain(0, A)):
        total = I.cast(0, I.i32)
        for b in I.domain(0, B):
            if x[a, b, 0] < 0:
                continue
            part = I.cast(0, I.i32)
            for c in I.domain(0, C):
                v = x[a, b, c]
                if v == 7:
                    break
                if v % 2 == 0:
                    continue
                part += v
            else:
                part = part + 1000
            total += part
            if total > limit:
                break
        y[a] = total


@pytest.mark.parametrize("shape", [(9, 5, 6), (4, 3, 1), (0, 2, 2), (3, 0, 2)])
def test_nested_loops_with_break_continue_else(shape, rng):
    def oracle(x, limit):
        y = np.zeros(len(x), np.int32)
        for a, plane in enumerate(x):
            total = 0
            for row in plane:
                if row[0] < 0:
                    continue
                part = 0
                for v in row:
                    if v == 7:
                        break
                    if v % 2 == 0:
                        continue
                    part += v
                else:
                    part += 1000
                total += part
                if total > limit:
                    break
            y[a] = total
        return y

    check(nested_breaks, [integers(rng, shape, "i32", -2, 9), np.int32(1500), out(shape[0], "i32")], oracle)


@intent.kernel
def branch_on_scalar(x: I.In[I.f32, ("M", "N")], flag: I.bool, k: I.i32, y: I.Out[I.f32, ("M", "N")]):
    v = x[:, :]
    if flag and k > 0:
        r = v * 2.0
    elif flag or k < -5:
        r = v + 1.0
    else:
        r = I.zeros(v.shape, I.f32)
    y[:, :] = r


@pytest.mark.parametrize("flag,k", [(True, 1), (True, -1), (False, -9), (False, 3)])
def test_branches_with_tensor_merges(flag, k, rng):
    for shape in ((3, 32), (2, 7), (0, 3)):
        x = normal(rng, shape)
        check(branch_on_scalar, [x, flag, np.int32(k), out(shape, "f32")],
              lambda x, f, k: x * 2 if f and k > 0 else x + np.float32(1) if f or k < -5 else np.zeros_like(x))


def test_a_buffer_that_a_branch_may_not_have_written_is_still_memory():
    """Its elements are any values, but reading them is harmless."""
    def kernel(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, (2,)]):
        b = I.buffer((4,), I.f32)
        if x[0] > 5.0:
            b[:] = I.full((4,), 2.0, I.f32)
        y[0] = b[0]
        if b[1] > 1.0:
            y[1] = 3.0
    k = intent.kernel(kernel)
    k.run(np.ones(3, np.float32))
    assert k.run(np.full(3, 9, np.float32)).tolist() == [2, 3]


@intent.fn
def first_or(x, other):
    for i in I.domain(0, x.shape[0]):
        return x[i]
    return other


@intent.kernel
def loops_that_never_repeat(x: I.In[I.i32, ("N",)], y: I.Out[I.i32, (5,)], z: I.Out[I.i32, ("N",)]):
    N, = x.shape
    y[:] = I.full((5,), -1, I.i32)
    for i in I.domain(0, N):
        y[0] = x[i]
        break
    else:
        y[0] = 100
    for k, i in enumerate(I.domain(2, N, 3)):
        y[1] = x[i] + I.cast(k, I.i32)
        if x[i] > 5:
            y[2] = x[i]
            break
        else:
            break
    y[3] = first_or(x[:], I.cast(-7, I.i32))
    total = I.cast(0, I.i32)
    for i in I.domain(0, N):
        for j in range(i, N):
            total = total + x[j]
            if total % 2 == 0:
                break
            total = total + 1
            break
        z[i] = total
    for i in I.domain(0, N):
        while True:
            if x[i] > 3:
                y[4] = x[i]
            break
        return


@pytest.mark.parametrize("n", [0, 1, 3, 40])
def test_loops_that_never_repeat(n, rng):
    def oracle(x):
        y, z, total = np.full(5, -1, np.int32), np.empty_like(x), 0
        y[0], y[3] = (x[0], x[0]) if n else (100, -7)
        if n > 2:
            y[1] = x[2]
            y[2] = x[2] if x[2] > 5 else -1
        for i in range(n):
            total += x[i]
            z[i] = total = total + total % 2
        if n and x[0] > 3:
            y[4] = x[0]
        return y, z
    check(loops_that_never_repeat, [integers(rng, n, "i32", -20, 20), out(5, "i32"), out(n, "i32")], oracle)
