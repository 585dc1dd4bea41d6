"""pyopencl arrays: a call follows them to the SPIR-V target."""
from __future__ import annotations

import numpy as np
import pytest

import intent_numba as intent

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
