"""Point programs over buffers and indexed loops: sorting, FFT, dynamic programming, factorisation, games of life."""
from __future__ import annotations

import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from tests.support import check, integers, normal, out


@intent.kernel
def bitonic_sort(x: I.In[I.f32, ("M", "N")], y: I.Out[I.f32, ("M", "N")]):
    M, N = x.shape
    columns = I.domain(0, N)
    for r in I.parallel(I.domain(0, M)):
        b = I.buffer((N,), I.f32, init=x[r, columns])
        size = 2
        while size <= N:
            stride = size // 2
            while stride > 0:
                for i in I.domain(0, N):
                    partner = i ^ stride
                    if partner > i:
                        u = b[i]
                        v = b[partner]
                        ascending = (i & size) == 0
                        if (u > v) == ascending:
                            b[i] = v
                            b[partner] = u
                stride = stride // 2
            size = size * 2
        y[r, columns] = b[columns]


@pytest.mark.parametrize("shape", [(9, 32), (33, 8), (3, 1), (0, 8), (3, 0), (1, 128)])
def test_bitonic_sort(shape, rng):
    check(bitonic_sort, [normal(rng, shape), out(shape, "f32")], lambda x: np.sort(x, axis=1))


@intent.kernel
def insertion_sort(x: I.In[I.i16, ("M", "N")], y: I.Out[I.i16, ("M", "N")], moves: I.Out[I.i32, ("M",)]):
    M, N = x.shape
    for r in I.parallel(I.domain(0, M)):
        b = I.buffer((N,), I.i16, init=x[r, :])
        count = I.cast(0, I.i32)
        for i in I.domain(1, N):
            v = b[i]
            j = i - 1
            while j >= 0:
                if b[j] <= v:
                    break
                b[j + 1] = b[j]
                count += 1
                j = j - 1
            b[j + 1] = v
        y[r, :] = b[:]
        moves[r] = count


@pytest.mark.parametrize("shape", [(9, 16), (4, 7), (3, 0), (0, 3)])
def test_insertion_sort(shape, rng):
    def oracle(x):
        return np.sort(x, axis=1), np.array([sum(int(r[i] > r[j]) for j in range(len(r)) for i in range(j)) for r in x], np.int32)

    check(insertion_sort, [integers(rng, shape, "i16"), out(shape, "i16"), out(shape[0], "i32")], oracle)


@intent.kernel
def fft(x: I.In[I.f64, ("B", "N", 2)], y: I.Out[I.f64, ("B", "N", 2)], LOG: I.Constexpr[int]):
    B, N, _ = x.shape
    for r in I.parallel(I.domain(0, B)):
        re = I.buffer((N,), I.f64)
        im = I.buffer((N,), I.f64)
        for i in I.domain(0, N):
            j = i - i
            for bit in range(LOG):
                j = (j << 1) | ((i >> bit) & 1)
            re[j] = x[r, i, 0]
            im[j] = x[r, i, 1]
        for stage in range(LOG):
            half = I.cast(1, I.index) << stage
            for k in I.domain(0, N // 2):
                low = k & (half - 1)
                a = ((k - low) << 1) + low
                b = a + half
                angle = -I.pi * I.cast(low, I.f64) / I.cast(half, I.f64)
                c = I.cos(angle)
                s = I.sin(angle)
                tr = re[b] * c - im[b] * s
                ti = re[b] * s + im[b] * c
                ur = re[a]
                ui = im[a]
                re[a] = ur + tr
                im[a] = ui + ti
                re[b] = ur - tr
                im[b] = ui - ti
        y[r, :, 0] = re[:]
        y[r, :, 1] = im[:]


@pytest.mark.parametrize("batch,log", [(9, 3), (33, 2), (2, 6), (0, 2), (3, 0)])
def test_fft(batch, log, rng):
    n = 1 << log

    def oracle(x):
        z = np.fft.fft(x[..., 0] + 1j * x[..., 1], axis=1)
        return np.stack([z.real, z.imag], axis=-1)

    check(fft, [rng.standard_normal((batch, n, 2)), out((batch, n, 2), "f64")], oracle, constexprs={"LOG": log}, floor=64.0 * n)


@intent.kernel
def smith_waterman(a: I.In[I.u8, ("B", "N")], b: I.In[I.u8, ("B", "M")], match: I.i32, mismatch: I.i32, gap: I.i32,
                   best: I.Out[I.i32, ("B",)]):
    B, N = a.shape
    _, M = b.shape
    for p in I.parallel(I.domain(0, B)):
        row = I.buffer((M + 1,), I.i32, init=0)
        top = I.cast(0, I.i32)
        for i in I.domain(0, N):
            diagonal = I.cast(0, I.i32)
            left = I.cast(0, I.i32)
            for j in I.domain(0, M):
                up = row[j + 1]
                score = diagonal + (match if a[p, i] == b[p, j] else mismatch)
                h = I.maximum(I.maximum(score, 0), I.maximum(up + gap, left + gap))
                diagonal = up
                row[j + 1] = h
                left = h
                top = I.maximum(top, h)
        best[p] = top


@pytest.mark.parametrize("size", [(9, 12, 17), (33, 5, 4), (2, 0, 3), (2, 3, 0), (0, 3, 3)])
def test_smith_waterman(size, rng):
    B, N, M = size

    def oracle(a, b, match, mismatch, gap):
        result = np.zeros(B, np.int32)
        for p in range(B):
            h = np.zeros((N + 1, M + 1), np.int64)
            for i in range(N):
                for j in range(M):
                    s = match if a[p, i] == b[p, j] else mismatch
                    h[i + 1, j + 1] = max(0, h[i, j] + s, h[i, j + 1] + gap, h[i + 1, j] + gap)
            result[p] = h.max()
        return result

    check(smith_waterman, [integers(rng, (B, N), "u8", 0, 4), integers(rng, (B, M), "u8", 0, 4), np.int32(3), np.int32(-2), np.int32(-2),
                           out(B, "i32")], oracle)


@intent.kernel
def edit_distance(a: I.In[I.u8, ("B", "N")], b: I.In[I.u8, ("B", "M")], d: I.Out[I.i32, ("B",)]):
    B, N = a.shape
    M = b.shape[1]
    for p in I.parallel(I.domain(0, B)):
        table = I.buffer((2, M + 1), I.i32)
        for j in I.domain(0, M + 1):
            table[0, j] = I.cast(j, I.i32)
        for i in I.domain(0, N):
            now = (i + 1) & 1
            old = i & 1
            table[now, 0] = I.cast(i + 1, I.i32)
            for j in I.domain(0, M):
                change = table[old, j] + I.cast(a[p, i] != b[p, j], I.i32)
                table[now, j + 1] = I.minimum(change, I.minimum(table[old, j + 1], table[now, j]) + 1)
        d[p] = table[N & 1, M]


@pytest.mark.parametrize("size", [(9, 8, 11), (3, 0, 4), (2, 5, 0)])
def test_edit_distance(size, rng):
    B, N, M = size

    def oracle(a, b):
        result = np.zeros(B, np.int32)
        for p in range(B):
            row = list(range(M + 1))
            for i in range(N):
                new = [i + 1]
                for j in range(M):
                    new.append(min(row[j] + int(a[p, i] != b[p, j]), row[j + 1] + 1, new[j] + 1))
                row = new
            result[p] = row[M]
        return result

    check(edit_distance, [integers(rng, (B, N), "u8", 0, 3), integers(rng, (B, M), "u8", 0, 3), out(B, "i32")], oracle)


@intent.kernel
def cholesky(a: I.In[I.f64, ("B", "N", "N")], l: I.Out[I.f64, ("B", "N", "N")]):
    B, N, _ = a.shape
    for p in I.parallel(I.domain(0, B)):
        w = I.buffer((N, N), I.f64, init=0.0)
        for i in I.domain(0, N):
            for j in I.domain(0, i + 1):
                s = a[p, i, j]
                for k in I.domain(0, j):
                    s = s - w[i, k] * w[j, k]
                if i == j:
                    w[i, j] = I.sqrt(s)
                else:
                    w[i, j] = s / w[j, j]
        l[p, :, :] = w[:, :]


@pytest.mark.parametrize("b,n", [(9, 5), (2, 12), (0, 3), (2, 0), (40, 3)])
def test_cholesky(b, n, rng):
    g = rng.standard_normal((b, n, n))
    a = g @ g.swapaxes(1, 2) + 4 * np.eye(n)
    check(cholesky, [a, out((b, n, n), "f64")], lambda a: np.linalg.cholesky(a) if a.size else a, floor=1024)


@intent.kernel
def life(x: I.In[I.u8, ("M", "N")], y: I.Out[I.u8, ("M", "N")]):
    M, N = x.shape
    for i, j in I.parallel((I.domain(0, M), I.domain(0, N))):
        alive = I.cast(0, I.u8)
        for di in range(3):
            for dj in range(3):
                alive = alive + x[(i + M + di - 1) % M, (j + N + dj - 1) % N]
        self = x[i, j]
        alive = alive - self
        y[i, j] = I.cast((alive == 3) | ((alive == 2) & (self == 1)), I.u8)


@pytest.mark.parametrize("shape", [(6, 32), (5, 7), (1, 1), (0, 3)])
def test_life(shape, rng):
    def oracle(x):
        n = sum(np.roll(x, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1)) - x if x.size else x
        return ((n == 3) | ((n == 2) & (x == 1))).astype(np.uint8)

    check(life, [integers(rng, shape, "u8", 0, 2), out(shape, "u8")], oracle)


@intent.kernel
def tridiagonal(a: I.In[I.f64, ("B", "N")], b: I.In[I.f64, ("B", "N")], c: I.In[I.f64, ("B", "N")], d: I.In[I.f64, ("B", "N")],
                x: I.Out[I.f64, ("B", "N")]):
    B, N = a.shape
    for p in I.parallel(I.domain(0, B)):
        cp = I.buffer((N,), I.f64)
        dp = I.buffer((N,), I.f64)
        for i in I.domain(0, N):
            if i == 0:
                cp[i] = c[p, i] / b[p, i]
                dp[i] = d[p, i] / b[p, i]
            else:
                m = b[p, i] - a[p, i] * cp[i - 1]
                cp[i] = c[p, i] / m
                dp[i] = (d[p, i] - a[p, i] * dp[i - 1]) / m
        later = I.cast(0.0, I.f64)
        for back in I.domain(0, N):
            i = N - 1 - back
            v = dp[i] - cp[i] * later
            x[p, i] = v
            later = v


@pytest.mark.parametrize("b,n", [(9, 16), (33, 5), (0, 3), (2, 0)])
def test_tridiagonal(b, n, rng):
    a, c, d = (rng.standard_normal((b, n)) for _ in range(3))
    diagonal = 4 + rng.random((b, n))

    def oracle(a, m, c, d):
        x = np.zeros((b, n))
        for p in range(b):
            full = np.diag(m[p]) + np.diag(a[p, 1:], -1) + np.diag(c[p, :-1], 1) if n else np.zeros((0, 0))
            x[p] = np.linalg.solve(full, d[p]) if n else 0
        return x

    check(tridiagonal, [a, diagonal, c, d, out((b, n), "f64")], oracle, floor=256)


@intent.kernel
def warshall(x: I.In[I.i32, ("N", "N")], y: I.Out[I.i32, ("N", "N")]):
    N, _ = x.shape
    d = x[:, :]
    for k in I.domain(0, N):
        d = I.minimum(d, d[:, k][:, None] + d[k, :][None, :])
    y[:, :] = d


@pytest.mark.parametrize("n", [16, 7, 1, 0])
def test_shortest_paths(n, rng):
    def oracle(x):
        d = x.copy()
        for k in range(n):
            d = np.minimum(d, d[:, k:k + 1] + d[k:k + 1])
        return d

    check(warshall, [integers(rng, (n, n), "i32", 1, 100), out((n, n), "i32")], oracle)


@intent.kernel
def stencil_in_time(x: I.In[I.f32, ("N",)], steps: I.i32, y: I.Out[I.f32, ("N",)]):
    N, = x.shape
    grid = I.buffer((2, N), I.f32)
    n = I.domain(0, N)
    grid[0, n] = x[n]
    grid[1, n] = x[n]
    for t in range(steps):
        old = t & 1
        for i in I.parallel(I.domain(1, N - 1)):
            grid[1 - old, i] = (grid[old, i - 1] + grid[old, i + 1]) * 0.5
    y[n] = grid[steps & 1, n]


@pytest.mark.parametrize("n,steps", [(64, 5), (33, 4), (2, 3), (40, 0)])
def test_stencil_with_a_shared_buffer(n, steps, rng):
    def oracle(x, steps):
        for _ in range(steps):
            x = np.concatenate([x[:1], (x[:-2] + x[2:]) * np.float32(0.5), x[-1:]]) if n > 2 else x
        return x

    check(stencil_in_time, [normal(rng, n), np.int32(steps), out(n, "f32")], oracle)
