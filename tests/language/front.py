"""Front end and reference together: the meaning of a kernel function, without any compiled code."""
from __future__ import annotations

import numpy as np

from intent_numba import reference
from intent_numba.frontend import build_kernel
from intent_numba.kir import walk
from tests.support import rehearsal


def interpret(function, *args, policy="strict", **constexprs):
    """Run the kernel function on NumPy arrays and scalars, writing in place; gives its KIR."""
    kernel = build_kernel(function, constexprs, policy)
    rehearsed = rehearsal.of(function, constexprs, policy, list(args))
    reference.run(kernel, list(args))
    rehearsal.compare(rehearsed, list(args))
    return kernel


def kinds(function, **constexprs) -> list[str]:
    """Names of all KIR operations of a kernel function, in order."""
    return [op.kind for op in walk(build_kernel(function, constexprs).body)]


def f32(*values):
    return np.array(values, "f4")


def i32(*values):
    return np.array(values, "i4")
