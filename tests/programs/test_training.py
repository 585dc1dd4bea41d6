"""Training: optimizers in place, normalisation with running statistics, dropout and its gradient, losses, and a network that learns."""
from __future__ import annotations

import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from tests.support import check, normal, out

LAYOUTS = ("contiguous", "transposed", "mixed")
SHAPES = [(0, 3), (1, 1), (5, 7), (3, 65), (70, 33)]


# --- optimizers --------------------------------------------------------------------------------------------------------------

@intent.kernel
def adam(p: I.InOut[I.f32, ("M", "N")], m: I.InOut[I.f32, ("M", "N")], v: I.InOut[I.f32, ("M", "N")], g: I.In[I.bf16, ("M", "N")],
         step: I.i32, rate: I.f32, beta1: I.f32, beta2: I.f32, eps: I.f32, decay: I.f32, AMSGRAD: I.Constexpr[bool] = False):
    """AdamW: gradients come in bf16, moments and parameters stay in f32 and change in place."""
    gradient = I.cast(g[:, :], I.f32)
    first = beta1 * m[:, :] + (1.0 - beta1) * gradient
    second = beta2 * v[:, :] + (1.0 - beta2) * gradient * gradient
    if AMSGRAD:
        second = I.maximum(second, v[:, :])
    m[:, :] = first
    v[:, :] = second
    t = I.cast(step, I.f32)
    unbiased1, unbiased2 = 1.0 - I.pow(beta1, t), 1.0 - I.pow(beta2, t)
    old = p[:, :] * (1.0 - rate * decay)
    p[:, :] = old - rate * (first / unbiased1) / (I.sqrt(second / unbiased2) + eps)


def adam_oracle(amsgrad):
    def oracle(p, m, v, g, step, rate, beta1, beta2, eps, decay):
        p, m, v, g, rate, beta1, beta2, eps, decay = (np.float64(a) if a.ndim == 0 else a.astype("f8")
                                                      for a in map(np.asarray, (p, m, v, g, rate, beta1, beta2, eps, decay)))
        m = beta1 * m + (1 - beta1) * g
        new = beta2 * v + (1 - beta2) * g * g
        v = np.maximum(new, v) if amsgrad else new
        return p * (1 - rate * decay) - rate * (m / (1 - beta1 ** step)) / (np.sqrt(v / (1 - beta2 ** step)) + eps), m, v
    return oracle


@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_adam(shape, amsgrad, rng):
    p, m, v, g = normal(rng, shape), normal(rng, shape), rng.random(shape).astype("f4"), normal(rng, shape, "bf16")
    hyper = [np.int32(7), *map(np.float32, (1e-2, 0.9, 0.999, 1e-8, 0.1))]
    check(adam, [p, m, v, g, *hyper], adam_oracle(amsgrad), constexprs={"AMSGRAD": amsgrad}, ulps=600, floor=8, layouts=LAYOUTS)


@intent.kernel
def clip_by_global_norm(g: I.InOut[I.f32, ("N",)], limit: I.f32, norm: I.Out[I.f32, ()]):
    v = g[:]
    total = I.sqrt(I.reduce.sum(v * v, axis=0))
    norm[()] = total
    g[:] = v * I.minimum(1.0, limit / (total + 1e-6))


@pytest.mark.parametrize("n", [0, 1, 100, 9000])
def test_clip_by_global_norm(n, rng):
    def oracle(g, limit):
        g = g.astype("f8")
        norm = np.sqrt((g * g).sum())
        return g * min(1, float(limit) / (norm + 1e-6)), np.array(norm)
    for limit in (0.5, 1e6):
        args = [normal(rng, (n,)), np.float32(limit), out((), "f32")]
        check(clip_by_global_norm, args, oracle, ulps=32, layouts=("contiguous", "reversed"))


# --- batch norm --------------------------------------------------------------------------------------------------------------

@intent.kernel
def batch_norm(x: I.In[I.f32, ("B", "C", "H", "W")], gain: I.In[I.f32, ("C",)], shift: I.In[I.f32, ("C",)],
               running_mean: I.InOut[I.f32, ("C",)], running_var: I.InOut[I.f32, ("C",)], momentum: I.f32, eps: I.f32,
               y: I.Out[I.f32, ("B", "C", "H", "W")],
               save_mean: I.Out[I.f32, ("C",)], save_inverse: I.Out[I.f32, ("C",)], TRAINING: I.Constexpr[bool]):
    B, C, H, W = x.shape
    v = x[:, :, :, :]
    if TRAINING:
        count = I.cast(B * H * W, I.f32)
        mean = I.reduce.sum(v, axis=(0, 2, 3)) / count
        centred = v - mean[:, None, None]
        var = I.reduce.sum(centred * centred, axis=(0, 2, 3)) / count
        running_mean[:] = (1.0 - momentum) * running_mean[:] + momentum * mean
        running_var[:] = (1.0 - momentum) * running_var[:] + momentum * (var * count / (count - 1.0))
    else:
        mean, var = running_mean[:], running_var[:]
        centred = v - mean[:, None, None]
    inverse = I.rsqrt(var + eps)
    save_mean[:] = mean
    save_inverse[:] = inverse
    y[:, :, :, :] = centred * (inverse * gain[:])[:, None, None] + shift[:][:, None, None]


def batch_norm_oracle(training):
    def oracle(x, gain, shift, mean0, var0, momentum, eps):
        x, gain, shift, mean0, var0, momentum, eps = (np.asarray(a).astype("f8") for a in (x, gain, shift, mean0, var0, momentum, eps))
        mean, var = mean0, var0
        if training:
            mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
            mean0 = (1 - momentum) * mean0 + momentum * mean
            var0 = (1 - momentum) * var0 + momentum * x.var((0, 2, 3), ddof=1)
        inverse = 1 / np.sqrt(var + eps)
        wide = (a[:, None, None] for a in (mean, inverse, gain, shift))
        m, i, g, s = wide
        return mean0, var0, (x - m) * i * g + s, mean, inverse
    return oracle


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (1, 1, 1, 2), (4, 2, 1, 33), (8, 5, 17, 31), (2, 0, 3, 3)])
def test_batch_norm(shape, training, rng):
    C = shape[1]
    args = [normal(rng, shape) + np.float32(3), normal(rng, (C,)), normal(rng, (C,)), normal(rng, (C,)), rng.random(C).astype("f4"),
            np.float32(0.1), np.float32(1e-5), out(shape, "f32"), out(C, "f32"), out(C, "f32")]
    check(batch_norm, args, batch_norm_oracle(training), constexprs={"TRAINING": training}, ulps=512, floor=512,
          layouts=("contiguous", "mixed"))


@intent.kernel
def batch_norm_gradient(x: I.In[I.f32, ("N", "C")], dy: I.In[I.f32, ("N", "C")], gain: I.In[I.f32, ("C",)], eps: I.f32,
                        dx: I.Out[I.f32, ("N", "C")], dgain: I.Out[I.f32, ("C",)], dshift: I.Out[I.f32, ("C",)]):
    n = I.cast(x.shape[0], I.f32)
    v, d = x[:, :], dy[:, :]
    mean = I.reduce.sum(v, axis=0) / n
    inverse = I.rsqrt(I.reduce.sum((v - mean) * (v - mean), axis=0) / n + eps)
    unit = (v - mean) * inverse
    per_gain, per_shift = I.reduce.sum(d * unit, axis=0), I.reduce.sum(d, axis=0)
    dx[:, :] = gain[:] * inverse * (d - (unit * per_gain + per_shift) / n)
    dgain[:] = per_gain
    dshift[:] = per_shift


@pytest.mark.parametrize("shape", [(1, 1), (9, 5), (130, 3), (40, 70)])
def test_batch_norm_gradient(shape, rng):
    def oracle(x, dy, gain, eps):
        x, dy, gain, eps = (np.asarray(a).astype("f8") for a in (x, dy, gain, eps))
        inverse = 1 / np.sqrt(x.var(0) + eps)
        unit = (x - x.mean(0)) * inverse
        return gain * inverse * (dy - dy.mean(0) - unit * (dy * unit).mean(0)), (dy * unit).sum(0), dy.sum(0)
    args = [normal(rng, shape), normal(rng, shape), normal(rng, shape[1:]), np.float32(1e-3), out(shape, "f32"), out(shape[1:], "f32"),
            out(shape[1:], "f32")]
    check(batch_norm_gradient, args, oracle, ulps=256, floor=4096, layouts=LAYOUTS)


# --- dropout -------------------------------------------------------------------------------------------------------------------

@intent.fn
def kept(seed, rows, columns, width, rate):
    """Which elements stay: a number of each element's own, whatever the order of evaluation."""
    return I.random.uniform(seed, rows[:, None] * width + columns[None, :]) >= rate


@intent.kernel
def dropout(x: I.In[I.f32, ("M", "N")], seed: I.u64, rate: I.f32, y: I.Out[I.f32, ("M", "N")], mask: I.Out[I.bool, ("M", "N")]):
    M, N = x.shape
    keep = kept(seed, I.indices(I.domain(0, M)), I.indices(I.domain(0, N)), N, rate)
    mask[:, :] = keep
    y[:, :] = I.select(keep, x[:, :] / (1.0 - rate), 0.0)


@intent.kernel
def dropout_gradient(dy: I.In[I.f32, ("M", "N")], seed: I.u64, rate: I.f32, dx: I.Out[I.f32, ("M", "N")]):
    """No mask is stored: point by point it is drawn again."""
    M, N = dy.shape
    for j, i in I.parallel((I.domain(0, N), I.domain(0, M))):
        dx[i, j] = dy[i, j] / (1.0 - rate) if I.random.uniform(seed, i * N + j) >= rate else 0.0


def philox(seed: int, counters: np.ndarray) -> np.ndarray:
    """The words of Philox4x32-10, all counters at once in 64-bit arithmetic."""
    low = np.uint64(0xFFFFFFFF)
    block = counters.astype("u8") // np.uint64(4)
    c = [block & low, block >> np.uint64(32), np.zeros_like(block), np.zeros_like(block)]
    k = [np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)]
    for _ in range(10):
        p, q = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [q >> np.uint64(32) ^ c[1] ^ k[0], q & low, p >> np.uint64(32) ^ c[3] ^ k[1], p & low]
        k = [k[0] + np.uint64(0x9E3779B9) & low, k[1] + np.uint64(0xBB67AE85) & low]
    return np.choose(counters % 4, c).astype("u4")


def uniforms(seed, counters):
    return (philox(int(seed), counters) >> np.uint32(8)).astype("f4") * np.float32(2.0 ** -24)


@pytest.mark.parametrize("shape", [(0, 4), (1, 1), (7, 33), (40, 130)])
@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5])
def test_dropout_and_its_gradient_draw_the_same_mask(shape, rate, rng):
    x, seed, p = normal(rng, shape), np.uint64(rng.integers(2 ** 63)), np.float32(rate)
    keep = uniforms(seed, np.arange(x.size).reshape(shape)) >= p

    def scaled(x, *_):
        return np.where(keep, x / (np.float32(1) - p), np.float32(0))
    check(dropout, [x, seed, p, out(shape, "f32"), out(shape, "bool")], lambda *a: (scaled(*a), keep), layouts=LAYOUTS)
    if x.size < 1000:                                        # points cost the reference much
        check(dropout_gradient, [x, seed, p, out(shape, "f32")], scaled, layouts=LAYOUTS)
    else:
        assert np.array_equal(dropout_gradient.run(x, seed, p), scaled(x))
    assert rate or keep.all()


# --- losses and a whole network ---------------------------------------------------------------------------------------------------

@intent.kernel
def cross_entropy(logits: I.In[I.f32, ("N", "K")], target: I.In[I.i32, ("N",)], smoothing: I.f32, loss: I.Out[I.f32, ()],
                  dlogits: I.Out[I.f32, ("N", "K")]):
    N, K = logits.shape
    v = logits[:, :]
    top = I.reduce.max(v, axis=1)
    e = I.exp(v - top[:, None])
    mass = I.reduce.sum(e, axis=1)
    log_p = v - (top + I.log(mass))[:, None]
    hit = I.indices(I.domain(0, K))[None, :] == I.cast(target[:], I.index)[:, None]
    want = I.select(hit, 1.0 - smoothing, 0.0) + smoothing / I.cast(K, I.f32)
    count = I.cast(N, I.f32)
    loss[()] = -I.reduce.sum(want * log_p, axis=(0, 1)) / count
    dlogits[:, :] = (e / mass[:, None] - want) / count


@pytest.mark.parametrize("n, k", [(1, 2), (7, 5), (33, 70)])
def test_cross_entropy_with_smoothing(n, k, rng):
    def oracle(logits, target, smoothing):
        z = logits.astype("f8")
        log_p = z - np.log(np.exp(z - z.max(1, keepdims=True)).sum(1, keepdims=True)) - z.max(1, keepdims=True)
        want = np.eye(k)[target] * (1 - float(smoothing)) + float(smoothing) / k
        return np.array(-(want * log_p).sum() / n), (np.exp(log_p) - want) / n
    args = [normal(rng, (n, k), scale=5), rng.integers(0, k, n).astype("i4"), np.float32(0.1), out((), "f32"), out((n, k), "f32")]
    check(cross_entropy, args, oracle, ulps=128, floor=4, layouts=LAYOUTS)


@intent.kernel
def forward(x: I.In[I.f32, ("N", "K")], w1: I.In[I.f32, ("K", "H")], b1: I.In[I.f32, ("H",)], w2: I.In[I.f32, ("H", "C")],
            b2: I.In[I.f32, ("C",)], hidden: I.Out[I.f32, ("N", "H")], logits: I.Out[I.f32, ("N", "C")]):
    h = I.tanh(I.matmul(x[:, :], w1[:, :], acc_dtype=I.f32) + b1[:])
    hidden[:, :] = h
    logits[:, :] = I.matmul(h, w2[:, :], acc_dtype=I.f32) + b2[:]


@intent.kernel
def backward(x: I.In[I.f32, ("N", "K")], hidden: I.In[I.f32, ("N", "H")], w2: I.In[I.f32, ("H", "C")], dz: I.In[I.f32, ("N", "C")],
             dw1: I.Out[I.f32, ("K", "H")], db1: I.Out[I.f32, ("H",)], dw2: I.Out[I.f32, ("H", "C")], db2: I.Out[I.f32, ("C",)]):
    h, d = hidden[:, :], dz[:, :]
    dw2[:, :] = I.matmul(h, d, acc_dtype=I.f32, transpose_lhs=True)
    db2[:] = I.reduce.sum(d, axis=0)
    dh = I.matmul(d, w2[:, :], acc_dtype=I.f32, transpose_rhs=True) * (1.0 - h * h)
    dw1[:, :] = I.matmul(x[:, :], dh, acc_dtype=I.f32, transpose_lhs=True)
    db1[:] = I.reduce.sum(dh, axis=0)


@intent.kernel
def sgd(p: I.InOut[I.f32, ("M", "N")], velocity: I.InOut[I.f32, ("M", "N")], g: I.In[I.f32, ("M", "N")], rate: I.f32, momentum: I.f32):
    velocity[:, :] = momentum * velocity[:, :] + g[:, :]
    p[:, :] = p[:, :] - rate * velocity[:, :]


def test_a_network_learns_a_spiral_as_numpy_does(rng):
    """200 steps of five kernels; gradients and losses follow the same network in f64."""
    turn = np.linspace(0.3, 1, 60)
    x = np.concatenate([np.stack([turn * np.cos(9 * turn + a), turn * np.sin(9 * turn + a)], 1) for a in (0, np.pi)]).astype("f4")
    target = np.repeat([0, 1], 60).astype("i4")
    weights = [normal(rng, (2, 32)), normal(rng, (1, 32)), normal(rng, (32, 2), scale=0.2), np.zeros((1, 2), "f4")]
    velocity, shadow = [np.zeros_like(w) for w in weights], [w.astype("f8") for w in weights]
    momenta = [np.zeros_like(w) for w in shadow]
    losses = []
    for step in range(200):
        w1, b1, w2, b2 = weights
        hidden, logits = forward.run(x, w1, b1[0], w2, b2[0])
        loss, dz = cross_entropy.run(logits, target, 0.0)
        gradients = backward.run(x, hidden, w2, dz)
        for w, v, g in zip(weights, velocity, gradients):
            sgd(w, v, g.reshape(w.shape), 0.3, 0.9)
        h = np.tanh(x @ shadow[0] + shadow[1])
        z = h @ shadow[2] + shadow[3]
        p = np.exp(z - z.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        want = -np.log(p[np.arange(120), target]).mean()
        dz = (p - np.eye(2)[target]) / 120
        dh = (dz @ shadow[2].T) * (1 - h * h)
        for k, g in enumerate((x.T @ dh, dh.sum(0, keepdims=True), h.T @ dz, dz.sum(0, keepdims=True))):
            momenta[k] = 0.9 * momenta[k] + g
            shadow[k] = shadow[k] - 0.3 * momenta[k]
        losses.append(float(loss))
        if step < 50:                                        # later the two trajectories part by themselves
            assert abs(losses[-1] - want) <= 1e-4 * max(want, 1e-2), step
    assert losses[-1] < 0.4 < losses[0]
