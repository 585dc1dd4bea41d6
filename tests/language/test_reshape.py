"""When do two shapes have the same count? Proved at compile time, through the extents that reshape inferred itself."""
import numpy as np
import pytest

import intent_numba.language as I
from intent_numba.errors import IntentShapeError, InvalidInput
from intent_numba.frontend import build_kernel

from .front import f32, interpret


def test_an_inferred_extent_keeps_the_count_it_came_from():
    def group_centre(x: I.In[I.f32, ("N", "C", "H")], y: I.Out[I.f32, ("N", "C", "H")], G: I.Constexpr[int]):
        N, C, H = x.shape
        v = I.reshape(x[:, :, :], (N, G, -1))
        c = v - I.reduce.max(v, axis=2)[:, :, None]
        y[:, :, :] = I.reshape(c, (N, C, H))
    x = np.arange(60, dtype="f4").reshape(2, 6, 5) % 7
    y = np.zeros_like(x)
    interpret(group_centre, x, y, G=3)
    groups = x.reshape(2, 3, 10)
    assert np.array_equal(y, (groups - groups.max(2, keepdims=True)).reshape(x.shape))


@pytest.mark.unchecked
def test_a_quotient_times_its_divisor_is_a_count():
    def grouped(x: I.In[I.f32, ("M", "K")], y: I.Out[I.f32, ("M", 4)], G: I.Constexpr[int] = 4):
        M, K = x.shape
        pairs = I.reshape(x[:, :], (M, K // 2, 2))
        y[:, :] = I.reduce.sum(I.reshape(pairs, (M, K // G, G)), axis=1)
    x, y = np.arange(24, dtype="f4").reshape(2, 12), np.zeros((2, 4), "f4")
    interpret(grouped, x, y)
    assert np.array_equal(y, x.reshape(2, 3, 4).sum(1))
    with pytest.raises(InvalidInput, match="reshape of 20 elements"):
        interpret(grouped, np.zeros((2, 10), "f4"), y)


@pytest.mark.parametrize("shape", ["(A, B)", "(3, 3)", "(A, -1, B)"])
def test_counts_that_nothing_relates_are_refused(shape):
    scope = {"I": I}
    exec("def kernel(x: I.In[I.f32, ('N',)], y: I.Out[I.f32, ('A', 'B')]):\n    A, B = y.shape\n"
         f"    v = I.reshape(x[:], {shape})\n    y[:, :] = I.reshape(v, (A, B))", scope)
    with pytest.raises(IntentShapeError, match="not known to have the same count"):
        build_kernel(scope["kernel"])


@pytest.mark.unchecked
def test_an_extent_that_does_not_divide_is_found_by_the_interpreter():
    def total(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, (1,)]):
        y[0] = I.reduce.sum(I.reshape(x[:], (-1, 3)), axis=(0, 1))
    y = np.zeros(1, "f4")
    interpret(total, f32(1, 2, 3, 4, 5, 6), y)
    assert y[0] == 21
    with pytest.raises(InvalidInput, match="reshape of 8 elements"):
        interpret(total, np.ones(8, "f4"), y)
