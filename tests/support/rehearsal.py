"""Are clean programs silent under ``checks=True``, with the same bits? Whatever the tests interpret may be rehearsed as well.

``INTENT_TEST_CHECKS=n`` rehearses every n-th kernel function, chosen by its name: 1 all of them, 0 none. A test of what happens
where obligations are broken is marked ``unchecked``.
"""
from __future__ import annotations

import os
import zlib
from functools import lru_cache

import numpy as np

from intent_numba import reference
from intent_numba.frontend import build_kernel

from .compare import assert_same_bits

EVERY = int(os.environ.get("INTENT_TEST_CHECKS") or 10)

unchecked = False
"""The test that runs is marked so."""


def of(pyfunc, constexprs: dict, policy: str, args: list) -> list | None:
    """The arguments as a rehearsal leaves them; None where this function is not chosen. Raises InvalidInput for a program that breaks an
    obligation."""
    if unchecked or not EVERY or zlib.crc32(pyfunc.__qualname__.encode()) % EVERY:
        return None
    return reference.rehearse(_kernel(pyfunc, tuple(constexprs.items()), policy), args)


def compare(rehearsed: list | None, args: list) -> None:
    for i, (got, want) in enumerate(zip(rehearsed or (), args)):
        if isinstance(want, np.ndarray):
            assert_same_bits(got, want, f"rehearsed against interpreted, argument {i}")


@lru_cache(maxsize=512)
def _kernel(pyfunc, constexprs: tuple, policy: str):
    return build_kernel(pyfunc, dict(constexprs), policy, obligations=True)
