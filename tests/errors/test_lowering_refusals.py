"""What the compiled path refuses although the language allows it: class, line, and what to do instead."""
import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I


@intent.fn
def compose(a, b):
    return I.matmul(b, a, acc_dtype=I.f32)


@intent.kernel
def product(x: I.In[I.f32, ("N", 2, 2)], e: I.In[I.f32, (2, 2)], y: I.Out[I.f32, (2, 2)]):
    y[:, :] = I.reduce(x[:, :, :], axis=0, identity=e[:, :], combine=compose)


@intent.fn
def both(a, b):
    return a[0] + b[0], a[1] + b[1]


@intent.kernel
def mixed(x: I.In[I.f32, ("N", "D")], w: I.In[I.f32, ("N",)], y: I.Out[I.f32, ("D",)]):
    zero = I.zeros((x.shape[1],), I.f32)
    s, _ = I.reduce((x[:, :], w[:]), axis=0, identity=(zero, I.cast(0.0, I.f32)), combine=both)
    y[:] = s


def test_a_combine_across_axes():
    with pytest.raises(intent.UnsupportedError, match="across the axes of a tensor is not compiled") as e:
        product.run(np.ones((3, 2, 2), np.float32), np.eye(2, dtype=np.float32))
    assert e.value.line == compose.pyfunc.__code__.co_firstlineno + 2 and "ordered loop" in str(e.value)


def test_a_combine_of_components_of_different_shapes():
    with pytest.raises(intent.UnsupportedError, match="different shapes is not compiled") as e:
        mixed.run(np.ones((3, 2), np.float32), np.ones(3, np.float32))
    assert e.value.line == mixed.__wrapped__.__code__.co_firstlineno + 3
