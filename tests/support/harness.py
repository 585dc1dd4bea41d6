"""Does a kernel compute the right thing, by every road? ``check`` answers for one kernel and one set of arguments.

The road of the reference interpreter and the road of compiled code must give the same bits, on every memory layout,
and both must agree with an oracle that shares nothing with either (NumPy, SciPy or plain Python).
``INTENT_TEST_BACKEND=reference`` leaves the compiled road out, ``compiled`` the oracle's other one is always run.
``INTENT_TEST_TARGET`` names the target of the compiled road; it is ``cpu``.
A program that keeps the obligations of its caller runs silently under ``checks=True``, with the same bits; see ``rehearsal``.
"""
from __future__ import annotations

import os
from functools import lru_cache

import numpy as np

import intent_numba as intent
from intent_numba import reference
from intent_numba.frontend import build_kernel
from intent_numba.kir.types import View

from . import rehearsal
from .arrays import LAYOUTS, Out, place, poison
from .compare import assert_close, assert_same_bits

BACKEND = os.environ.get("INTENT_TEST_BACKEND", "both")
TARGET = os.environ.get("INTENT_TEST_TARGET", "cpu")


@lru_cache(maxsize=512)
def kir_of(kernel, constexprs=()):
    """The KIR of a kernel for one set of Constexprs, a tuple of (name, value), under the kernel's policy."""
    return build_kernel(kernel.pyfunc, dict(constexprs), kernel.policy)


@lru_cache(maxsize=512)
def compiled(kernel, constexprs=()):
    """The artifact of a kernel for the target under test."""
    return intent.compile(kernel, target=TARGET, constexprs=dict(constexprs))


def _allocate(args):
    return [poison(a.shape, a.dtype) if isinstance(a, Out) else a for a in args]


def _copy(args):
    return [np.array(a, order="C", copy=True) if isinstance(a, np.ndarray) else a for a in args]


def interpret(kernel, args, constexprs=None) -> list:
    """Run the reference on copies; returns the written views in parameter order."""
    kir = kir_of(kernel, tuple((constexprs or {}).items()))
    own = _copy(_allocate(args))
    rehearsed = rehearsal.of(kernel.pyfunc, constexprs or {}, kernel.policy, own)
    reference.run(kir, own)
    rehearsal.compare(rehearsed, own)
    return [a for a, p in zip(own, kir.params) if _written(p)]


def execute(kernel, args, constexprs=None, layout="contiguous") -> list:
    """Run compiled code on guarded copies in ``layout`` ("mixed": another layout for each array); returns copies of the
    written views. Inputs must come back unchanged and no byte outside an array may change."""
    key = tuple((constexprs or {}).items())
    kir = kir_of(kernel, key)
    allocated = _allocate(args)
    placed = []
    for position, arg in enumerate(allocated):
        where = LAYOUTS[position % len(LAYOUTS)] if layout == "mixed" else layout
        placed.append(place(arg, where) if isinstance(arg, np.ndarray) else arg)
    compiled(kernel, key)(*[p.array if hasattr(p, "array") else p for p in placed])
    results = []
    for p, parameter, given in zip(placed, kir.params, allocated):
        if not isinstance(given, np.ndarray):
            continue
        p.check_guards(f"{parameter.name} ({layout})")
        if _written(parameter):
            results.append(p.array.copy())
        else:
            assert_same_bits(p.array, given, f"input {parameter.name} ({layout})")
    return results


def _written(parameter) -> bool:
    return isinstance(parameter.type, View) and parameter.type.access != "in"


def check(kernel, args, oracle=None, *, constexprs=None, ulps=0.0, floor=0.0, layouts=(*LAYOUTS, "mixed")):
    """Assert that ``kernel(*args)`` is right. ``args`` are in parameter order without Constexprs; an output is ``out(shape,
    dtype)``. ``oracle`` takes the arguments that are not ``out`` and gives the expected written views: one array or a tuple.
    Integers must be equal; floats within ``ulps`` relative and ``floor`` absolute units (see ``assert_close``)."""
    expected = interpret(kernel, args, constexprs)
    if oracle is not None:
        with np.errstate(all="ignore"):
            want = oracle(*_copy([a for a in args if not isinstance(a, Out)]))
        want = want if isinstance(want, (tuple, list)) else (want,)
        assert len(want) == len(expected), f"the oracle gives {len(want)} results, the kernel {len(expected)}"
        for i, (g, w) in enumerate(zip(expected, want)):
            assert_close(g, w, ulps, floor, f"reference against oracle, output {i}")
    if BACKEND == "reference":
        return expected
    for layout in layouts:
        for i, (g, w) in enumerate(zip(execute(kernel, args, constexprs, layout), expected)):
            assert_same_bits(g, w, f"compiled against reference, {layout}, output {i}")
    return expected
