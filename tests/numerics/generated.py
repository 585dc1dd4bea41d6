"""Kernels written from tables: one elementwise expression per output. ``results`` runs them by every road."""
from __future__ import annotations

from functools import cache

import numpy as np

import intent_numba as intent
import intent_numba.language as I
from tests.support import BACKEND, assert_same_bits, execute, interpret, numpy_dtype, out

UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


@cache
def pointwise(inputs: tuple, lines: tuple):
    """``inputs``: (name, dtype) of one-dimensional views, whole in the expressions; ``lines``: (expression, result dtype)."""
    views = [f"{name}_: I.In[I.{dt}, ('N',)]" for name, dt in inputs] + [f"y{n}: I.Out[I.{dt}, ('N',)]" for n, (_, dt) in enumerate(lines)]
    body = [f"{name} = {name}_[:]" for name, _ in inputs] + [f"y{n}[:] = {text}" for n, (text, _) in enumerate(lines)]
    scope = {"I": I}
    exec(f"def pointwise({', '.join(views)}):\n    " + "\n    ".join(body) + "\n", scope)
    return intent.kernel(scope["pointwise"])


def results(inputs: dict, lines, layouts=("contiguous",)):
    """(road, [pattern or value arrays]) of a table on the arrays ``inputs``: name -> (array, dtype)."""
    kernel = pointwise(tuple((name, dt) for name, (_, dt) in inputs.items()), tuple(lines))
    arrays = [array for array, _ in inputs.values()]
    args = [*arrays, *(out(arrays[0].shape, dt) for _, dt in lines)]
    with np.errstate(all="ignore"):
        yield "reference", interpret(kernel, args)
        if BACKEND != "reference":
            for layout in layouts:
                yield f"compiled, {layout}", execute(kernel, args, layout=layout)


def from_patterns(patterns, dt: str) -> np.ndarray:
    target = numpy_dtype(dt)
    return np.ascontiguousarray(np.asarray(patterns).astype(UNSIGNED[target.itemsize])).view(target)


def patterns(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).view(UNSIGNED[array.dtype.itemsize]).astype(np.uint64).view(np.int64)


def hold(inputs: dict, lines, wants, layouts=("contiguous",)) -> None:
    """Every road gives the patterns ``wants`` (one array per line; NaN equals NaN)."""
    for road, got in results(inputs, lines, layouts):
        for (text, dt), g, want in zip(lines, got, wants):
            assert_same_bits(g, from_patterns(want, dt), f"{text} to {dt}, {road}")
