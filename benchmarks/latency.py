"""How long a user waits: the first call of a kernel, the first call from the disk cache, and the cost of a call."""
from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import timeit

from .harness import Result

RUNS = 5


def results() -> list[Result]:
    with tempfile.TemporaryDirectory() as shared:
        first = statistics.median(_child("first", tempfile.mkdtemp(dir=shared)) for _ in range(RUNS))
        _child("first", shared)
        cached = statistics.median(_child("first", shared) for _ in range(RUNS))
        call, own = _child("call", shared), _child("own", shared)
    detail = f"call of three arrays {call * 1e6:.2f} us, the kernel {own * 1e6:.2f} us"
    return [
        Result("first call of softmax", first * 1e3, "ms", 150, False, "after another kernel was compiled; empty cache"),
        Result("first call of softmax, cached", cached * 1e3, "ms", 20, False, "after another kernel was loaded; from disk"),
        Result("overhead of a call", (call - own) * 1e6, "us", 1, False, detail),
    ]


def _child(what: str, cache: str) -> float:
    environment = {**os.environ, "INTENT_CACHE": "1", "INTENT_CACHE_DIR": cache}
    child = subprocess.run([sys.executable, "-m", "benchmarks.latency", what], capture_output=True, text=True, env=environment)
    if child.returncode:
        raise RuntimeError(f"latency check {what}: {child.stderr.strip()}")
    return json.loads(child.stdout)


def first_call() -> float:
    import numpy as np

    from . import kernels
    x, y = np.ones((64, 64), np.float32), np.empty((64, 64), np.float32)
    kernels.swiglu(x, x, y)
    start = time.perf_counter()
    kernels.softmax(x, y)
    return time.perf_counter() - start


def call_time() -> float:
    """Seconds per call from Python on arrays of four elements."""
    import numpy as np

    from . import kernels
    x, y, z = (np.ones(4, np.float32) for _ in range(3))
    call = kernels.add
    call(x, y, z)
    n = 20_000
    empty = min(timeit.repeat("pass", number=n, repeat=9))
    return (min(timeit.repeat("call(x, y, z)", globals=locals(), number=n, repeat=9)) - empty) / n


def own_time() -> float:
    """Seconds per call where no Python stands between: the same kernel from compiled code."""
    import numba
    import numpy as np

    from . import kernels
    call = kernels.add

    @numba.njit
    def repeat(n, x, y, z):
        for _ in range(n):
            call(x, y, z)

    x, y, z = (np.ones(4, np.float32) for _ in range(3))
    repeat(1, x, y, z)
    n = 100_000
    return min(timeit.repeat(lambda: repeat(n, x, y, z), number=1, repeat=5)) / n


if __name__ == "__main__":
    print(json.dumps({"first": first_call, "call": call_time, "own": own_time}[sys.argv[1]]()))
