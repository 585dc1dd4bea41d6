"""Broadcasting and extents (SUPPLEMENT 3, 002 section 4)."""
import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from intent_numba.frontend import build_kernel
from tests.support import check, out

from .world import source


def plus(left, right, result):
    x, z, y = (f"{name}[{', '.join(':' * len(shape)) or '()'}]" for name, shape in (("x", left), ("z", right), ("y", result)))
    return source(f"{y} = {x} + {z}", f"x: I.In[I.f32, {left}], z: I.In[I.f32, {right}], y: I.Out[I.f32, {result}]")


@pytest.mark.parametrize("left, right", [((3, 1), (1, 4)), ((2, 3, 4), (4,)), ((2, 3, 4), (3, 1)), ((1,), (5,)), ((0,), (1,)), ((1, 0), (3,
                                                                                                                                         1)),
                                         ((), (2, 2)), ((0, 1), (1, 0))])
def test_extents_of_one_repeat_from_the_right(left, right, rng):
    shape = np.broadcast_shapes(left, right)
    check(plus(left, right, shape), [rng.standard_normal(left).astype("f4"), rng.standard_normal(right).astype("f4"), out(shape, "f32")],
          lambda x, z: x + z)


@pytest.mark.parametrize("left, right", [((0,), (3,)), ((2,), (3,)), ((3, 0), (3, 2)), ((2, 3), (2,))])
def test_zero_broadcasts_with_one_only(left, right):
    with pytest.raises(intent.IntentShapeError, match="differ"):
        build_kernel(plus(left, right, left).pyfunc)


@intent.kernel
def related(x: I.In[I.f32, ("N",)], z: I.In[I.f32, ("M",)], n: I.index, y: I.Out[I.f32, ("N",)], w: I.Out[I.f32, ("M",)]):
    """Extents are equal by a common domain, by one value, or through what was made from them."""
    N, = x.shape
    both = I.domain(0, n)
    y[both] = x[both] + z[both] + I.zeros((both,), I.f32) + I.full((n,), 1.0, I.f32)
    w[0:n] = x[N - n:N] * z[0:n] + I.reshape(I.reshape(x[both], (n, 1)), (-1,))
    m = n // 2
    w[n:n + m] = x[0:n // 2] - z[0:m]


@pytest.mark.parametrize("n", [0, 1, 6])
def test_extents_that_are_one_value(n, rng):
    x, z = rng.integers(-9, 9, 8).astype("f4"), rng.integers(-9, 9, 10).astype("f4")

    def oracle(x, z, n):
        y, w = np.full(8, POISON), np.full(10, POISON)
        y[:n] = x[:n] + z[:n] + 1
        w[:n] = x[8 - n:] * z[:n] + x[:n]
        w[n:n + n // 2] = x[:n // 2] - z[:n // 2]
        return y, w
    check(related, [x, z, np.int64(n), np.full(8, POISON), np.full(10, POISON)], lambda x, z, n, *_: oracle(x, z, int(n)),
          layouts=("contiguous", "mixed"))


POISON = np.float32(-77)
