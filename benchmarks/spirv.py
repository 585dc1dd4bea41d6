"""The same kernels through OpenCL: each case on arrays of the device against the CPU target on NumPy arrays, without a bar."""
from __future__ import annotations

from functools import lru_cache

import numpy as np

import intent_numba as intent

from . import kernels
from .harness import Case

RNG = np.random.default_rng(1)


@lru_cache(maxsize=1)
def missing() -> str:
    """Why there is no OpenCL device here, or nothing where there is one."""
    from intent_numba.targets.spirv.loader import queue
    try:
        queue()
    except intent.UnsupportedError as error:
        return str(error)
    return ""


def case(name: str, kernel, shapes: tuple, result: tuple, work: float, unit: str) -> Case:
    """Arguments are normal f32 arrays of ``shapes`` and then the result; every bit of the two results must agree."""
    def make():
        from intent_numba.targets.spirv.loader import queue
        _, commands = queue()
        import pyopencl.array

        inputs = [RNG.standard_normal(shape, np.float32) for shape in shapes]
        y = np.empty(result, np.float32)
        device = [pyopencl.array.to_device(commands, a) for a in (*inputs, np.zeros_like(y))]
        on_cpu, on_device = (intent.compile(kernel, target=target) for target in ("cpu", "spirv"))

        def check():
            on_cpu(*inputs, y)
            np.testing.assert_array_equal(device[-1].get(), y)
        return {"spirv": lambda: on_device(*device), "cpu": lambda: on_cpu(*inputs, y)}, check
    return Case(f"spirv {name}", make, "cpu", None, work, unit, "spirv")


SQUARE = (4096, 4096)
CASES = [
    case("copy f32 4096x4096", kernels.copy, (SQUARE,), SQUARE, 2 * 4096**2 * 4, "GB/s"),
    case("SwiGLU f32 4096x4096", kernels.swiglu, (SQUARE, SQUARE), SQUARE, 3 * 4096**2 * 4, "GB/s"),
    case("softmax rows f32 4096x4096", kernels.softmax, (SQUARE,), SQUARE, 2 * 4096**2 * 4, "GB/s"),
    case("GEMM f32 1024^3", kernels.gemm, ((1024, 1024),) * 2, (1024, 1024), 2 * 1024**3, "GFLOP/s"),
]
