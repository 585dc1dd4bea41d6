"""A few kernels on an installed package, with nothing but NumPy: ``python tests/smoke.py``. Used for the Pythons that CI does not
run the whole suite on."""
import sys

import numpy as np

import intent_numba as intent
import intent_numba.language as I


@intent.fn
def swish(x):
    return x * I.sigmoid(x)


@intent.kernel
def gate(x: I.In[I.f32, ("M", "N")], g: I.In[I.f32, ("M", "N")], y: I.Out[I.f32, ("M", "N")]):
    y[:, :] = x[:, :] * swish(g[:, :])


@intent.kernel
def softmax(x: I.In[I.f32, ("M", "N")], y: I.Out[I.f32, ("M", "N")]):
    v = x[:, :]
    e = I.exp(v - I.reduce.max(v, axis=1)[:, None])
    y[:, :] = e / I.reduce.sum(e, axis=1)[:, None]


@intent.kernel
def dense(x: I.In[I.f32, ("M", "K")], w: I.In[I.f32, ("K", "N")], b: I.In[I.f32, ("N",)], y: I.Out[I.f32, ("M", "N")],
          RELU: I.Constexpr[bool] = False):
    v = I.matmul(x[:, :], w[:, :], acc_dtype=I.f32) + b[:]
    y[:, :] = I.relu(v) if RELU else v


@intent.kernel
def collatz(n: I.In[I.i64, ("N",)], steps: I.Out[I.i32, ("N",)]):
    N, = n.shape
    for i in I.parallel(I.domain(0, N)):
        value = n[i]
        count = I.cast(0, I.i32)
        while value != 1:
            value = value // 2 if value % 2 == 0 else 3 * value + 1
            count += 1
        steps[i] = count


def refused(call, error):
    try:
        call()
    except error:
        return
    raise AssertionError(f"{error.__name__} expected")


def main():
    rng = np.random.default_rng(1)
    x, g = rng.standard_normal((2, 37, 53)).astype(np.float32)

    np.testing.assert_allclose(gate.run(x, g), x * g / (1 + np.exp(-g)), rtol=1e-5, atol=1e-6)
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(softmax.run(x), e / e.sum(1, keepdims=True), rtol=1e-5)
    assert np.array_equal(softmax.run(x), softmax.run(np.asfortranarray(x)))
    w, b = rng.standard_normal((53, 19)).astype(np.float32), np.ones(19, np.float32)
    np.testing.assert_allclose(dense.run(x, w, b), x @ w + b, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(dense.run(x, w, b, RELU=True), np.maximum(x @ w + b, 0), rtol=1e-4, atol=1e-4)
    assert collatz.run(np.array([1, 6, 27])).tolist() == [0, 8, 111]
    refused(lambda: gate.run(x, g[:1]), intent.CallError)
    refused(lambda: gate.run(x.astype(np.float64), g), intent.CallError)
    print(f"smoke: all kernels agree on Python {sys.version.split()[0]}, NumPy {np.__version__}")


if __name__ == "__main__":
    main()
