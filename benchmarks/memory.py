"""Whether a kernel makes a temporary as large as an operand: the peak memory of a child process over one large call."""
from __future__ import annotations

import json
import os
import resource
import subprocess
import sys

from .harness import Result

SIDE = 8192
OPERAND = SIDE * SIDE * 4
LIMIT = 0.25
CASES = ("softmax", "layer_norm", "attention")


def results() -> list[Result]:
    """For each case the growth of the peak as a share of the largest matrix (the operand; the scores of attention)."""
    out = []
    for name in CASES:
        child = subprocess.run([sys.executable, "-m", "benchmarks.memory", name], capture_output=True, text=True)
        if child.returncode:
            raise RuntimeError(f"memory check of {name}: {child.stderr.strip()}")
        grown = json.loads(child.stdout)["grown"]
        detail = f"grew by {grown / 2**20:.1f} MiB, whole matrix {OPERAND / 2**20:.0f} MiB"
        out.append(Result(f"memory of {name}", grown / OPERAND, "of a matrix", LIMIT, False, detail))
    return out


def resident() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def arguments(name: str, side: int):
    import numpy as np

    def full(*shape):
        return np.ones(shape, np.float32)
    match name:
        case "softmax":
            return full(side, side), full(side, side)
        case "layer_norm":
            return full(side, side), full(side), full(side), full(side, side)
        case "attention":
            return tuple(full(1, side, 64) for _ in range(4))


def grown(name: str) -> int:
    """Bytes by which the peak rises during one large call, the kernel being compiled and its threads started before."""
    import numpy as np

    from . import kernels
    kernel = getattr(kernels, name)
    kernel(*arguments(name, 256))
    large = arguments(name, SIDE)
    # What compiling had used and given back must not hide a temporary: fill it, so that now is the peak.
    ballast = np.ones(max(0, peak() - resident()), np.uint8)
    before = peak()
    kernel(*large)
    del ballast
    return peak() - before


if __name__ == "__main__":
    os.environ.setdefault("NUMBA_NUM_THREADS", "2")
    print(json.dumps({"grown": grown(sys.argv[1])}))
