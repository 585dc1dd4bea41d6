"""I's pointwise operations on scalars inside @numba.njit code: the bits of a kernel."""
from __future__ import annotations

import numba
import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from tests.support.compare import assert_same_bits

VALUES = np.array([0.0, -0.0, 1.0, -1.5, 0.3, 20.0, -80.0, 1e-20, 3e38, np.inf, -np.inf, np.nan], "f4")


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "sin", "sqrt", "floor", "erf", "sigmoid", "abs", "relu"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_unary_operations_have_a_kernel_s_bits(name, dtype):
    operation, token = getattr(I, name), I.f32 if dtype is np.float32 else I.f64
    x = VALUES.astype(dtype)

    @numba.njit
    def apply(x, y):
        for i in range(x.size):
            y[i] = operation(x[i])

    @intent.kernel
    def whole(x: I.In[token, ("N",)], y: I.Out[token, ("N",)]):
        y[:] = operation(x[:])
    y = np.zeros_like(x)
    apply(x, y)
    assert_same_bits(y, whole.run(x), name)


def test_operations_of_several_operands():
    @numba.njit
    def f(a, b, c):
        return I.maximum(a, b), I.minimum(a, b), I.fma(a, b, c), I.select(a < b, a, c), I.clamp(a, b, c), I.pow(a, b)
    nan = np.float32("nan")
    a, b, c = np.float32(-0.0), np.float32(0.0), np.float32(2)
    got = f(a, b, c)
    assert got[0] == 0 and not np.signbit(got[0]) and np.signbit(got[1]) and got[2] == 2 and got[3] == 2
    assert np.isnan(f(nan, b, c)[0]) and all(isinstance(v, float) for v in got)


def test_literals_options_and_conversions():
    @numba.njit
    def f(x, n):
        return (I.maximum(x, 0), I.exp2(x, approximate=True), I.cast(x, I.i32), I.saturating_cast(x, I.i8), I.bitcast(x, I.u32),
                I.cast(n, I.f64), I.power(n, n), I.mask(x, valid=n > 100, fill=x), I.logical_not(n > 1))
    got = f(np.float32(300.5), 3)
    assert got[0] == 300.5 and got[2] == 300 and got[3] == 127 and got[4] == np.float32(300.5).view("u4")
    assert got[5] == 3.0 and got[6] == 27 and got[7] == 300.5 and got[8] is False


def test_mistakes_are_typing_errors():
    @numba.njit
    def mixed(a, b):
        return I.maximum(a, b)
    with pytest.raises(numba.TypingError, match="I.maximum"):
        mixed(np.float32(1), np.float64(1))

    @numba.njit
    def text(a):
        return I.exp("a")
    with pytest.raises(numba.TypingError, match="I.exp"):
        text(1.0)

    @numba.njit
    def structured(a):
        return I.dot(a, a)
    with pytest.raises(numba.TypingError, match="I.dot"):
        structured(1.0)

    @numba.njit
    def missing(a):
        return I.fma(a, a)
    with pytest.raises(numba.TypingError, match="I.fma"):
        missing(1.0)


def test_outside_numba_and_kernels_they_refuse():
    with pytest.raises(intent.LanguageError, match="exp"):
        I.exp(1.0)
