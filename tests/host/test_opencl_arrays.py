"""pyopencl arrays: a call follows them to the SPIR-V target."""
from __future__ import annotations

import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I

from . import kernels


@pytest.fixture(scope="module")
def on_device():
    pytest.importorskip("pyopencl")
    from intent_numba.targets.spirv.loader import queue
    try:
        _, commands = queue()
    except Exception as e:
        pytest.skip(f"no OpenCL device: {e}")
    import pyopencl.array
    return lambda a: pyopencl.array.to_device(commands, a)


def test_calls_follow_the_arrays(on_device, rng):
    x = rng.standard_normal((5, 7)).astype("f4")
    dx, dy = on_device(x), on_device(np.zeros_like(x))
    for n in range(10):
        kernels.scale(dx, float(n), dy)
        assert np.array_equal(dy.get(), x * np.float32(n))
    kernels.scale(dx, 2.0, y=dy)
    assert np.array_equal(kernels.scale.run(dy, 0.5), x)
    assert {a.target for a in kernels.scale._artifacts.values()} >= {"spirv"}


def test_mistakes(on_device):
    x = on_device(np.zeros((5, 7), "f8"))
    with pytest.raises(intent.CallError, match="'x': expected an f32 array"):
        kernels.scale(x, 1.0, on_device(np.zeros((5, 7), "f4")))
    y = on_device(np.zeros((5, 7), "f4"))
    with pytest.raises(intent.CallError, match="'y': expected a device allocation other"):
        kernels.scale(y, 1.0, y)


@intent.kernel
def picked(x: I.In[I.f32, ("N",)], at: I.In[I.i32, ("K",)], y: I.Out[I.f32, ("K",)]):
    y[:] = x[at[:]]


def test_checks(on_device):
    checked = intent.compile(picked, target="spirv", options=intent.CompileOptions(checks=True))
    x, good, bad = np.arange(4, dtype="f4"), np.array([3, 0], "i4"), np.array([3, 4], "i4")
    for place in (np.array, on_device):
        y = place(np.full(2, 7, "f4"))
        with pytest.raises(intent.InvalidInput, match=r"read at coordinates \(1,\): index 4 is outside axis 0 of 'x', whose extent is 4"):
            checked(place(x), place(bad), y)
        assert (y.get() if place is on_device else y).tolist() == [7, 7]
        checked(place(x), place(good), y)
        assert (y.get() if place is on_device else y).tolist() == [3, 0]
