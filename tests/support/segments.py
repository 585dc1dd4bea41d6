"""Can anyone see where region operations cut their slices? ``everywhere`` runs a program under several forced segmentations."""
from __future__ import annotations

from functools import lru_cache

import numpy as np

from intent_numba import reference
from intent_numba.frontend import build_kernel
from intent_numba.frontend.segments import segmentation

from .arrays import Out, poison
from .compare import assert_close, assert_same_bits
from .harness import check

EXTENTS = (1, 3, 64, "whole")


def under(extent, kernel, args, **constexprs) -> list:
    """Run the reference with another segmentation; the written views."""
    kir = _kir(extent, kernel, tuple(constexprs.items()))
    own = [poison(a.shape, a.dtype) if isinstance(a, Out) else np.array(a, copy=True) if isinstance(a, np.ndarray) else a for a in args]
    reference.run(kir, own)
    return [a for a, given in zip(own, args) if isinstance(given, Out)]


@lru_cache(maxsize=64)
def _kir(extent, kernel, constexprs):
    with segmentation(extent):
        return build_kernel(kernel.pyfunc, dict(constexprs), kernel.policy)


def everywhere(kernel, args, oracle, *, exact=False, ulps=0.0, floor=0.0, layouts=("contiguous", "mixed"), **constexprs):
    """``check``, then the same answer under every segmentation: bit for bit where the data is exact."""
    expected = check(kernel, args, oracle, constexprs=constexprs, ulps=ulps, floor=floor, layouts=layouts)
    for extent in EXTENTS:
        for i, (got, want) in enumerate(zip(under(extent, kernel, args, **constexprs), expected)):
            if exact or extent == 64:
                assert_same_bits(got, want, f"extent {extent}, output {i}")
            else:
                assert_close(got, want, 2 * ulps, 2 * floor, f"extent {extent}, output {i}")
    return expected
