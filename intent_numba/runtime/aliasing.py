"""Which memory do two views share, and which code may therefore run?

A kernel's fast code assumes disjoint views, except for the pairs that it may compute in place. Everything else that
overlaps, and is written, needs the variant that keeps program order; so does a view that overlaps itself, as a pair with itself.
Doubt counts as overlap.
"""
from __future__ import annotations

import math

import numpy as np

from .arrays import address, byte_range, element_strides

_TooHard = np.exceptions.TooHardError if hasattr(np, "exceptions") else np.TooHardError
_WORK = 10_000                 # steps of NumPy's exact overlap solver before doubt counts as overlap
_EXHAUSTIVE = 1 << 22          # elements up to which self-overlap is decided by listing every offset


def ordered_pairs(views, inplace) -> frozenset:
    """The pairs that need program order. ``views``: (name, written, array) each; ``inplace``: frozensets of two names."""
    found = set()
    for i, (name, written, array) in enumerate(views):
        for other_name, other_written, other in views[i + 1:]:
            if (written or other_written) and overlap(array, other):
                pair = frozenset((name, other_name))
                if not (pair in inplace and identical(array, other)):
                    found.add(pair)
    return frozenset(found)


def overlap(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether some byte belongs to both; True when that is too hard to tell."""
    if not ranges_meet(a, b):
        return False
    try:
        return np.shares_memory(a, b, max_work=_WORK)
    except _TooHard:
        return True


def ranges_meet(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether the address ranges meet, gaps between elements included."""
    (alo, ahi), (blo, bhi) = byte_range(a), byte_range(b)
    return alo < bhi and blo < ahi


def identical(a: np.ndarray, b: np.ndarray) -> bool:
    """The same elements at the same coordinates."""
    return (address(a) == address(b) and a.dtype == b.dtype and a.shape == b.shape and element_strides(a) == element_strides(b))


def owner(array: np.ndarray) -> object:
    """The object that owns the allocation an array looks into."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    if array.base is None:
        return array
    return array.base.obj if isinstance(array.base, memoryview) else array.base


def overlaps_itself(array: np.ndarray) -> bool:
    """Whether two coordinates name the same byte. Exact up to a size; beyond it doubt counts as overlap."""
    axes = sorted((abs(s), n) for s, n in zip(array.strides, array.shape) if n > 1)
    if array.size == 0 or not axes:
        return False
    if axes[0][0] == 0:
        return True
    if _nested(axes, array.itemsize):
        return False
    if len(axes) == 2 and all(stride % array.itemsize == 0 for stride, _ in axes):
        (s, n), (t, m) = axes
        common = math.gcd(s, t)
        return t // common < n and s // common < m
    if math.prod(n for _, n in axes) > _EXHAUSTIVE:
        return True
    offsets = np.zeros(1, np.int64)
    for stride, extent in axes:
        offsets = (offsets[:, None] + np.arange(extent) * stride).ravel()
    offsets.sort()
    return bool((np.diff(offsets) < array.itemsize).any())


def _nested(axes, itemsize: int) -> bool:
    """Every stride, smallest first, steps over all that the smaller ones span."""
    span = itemsize
    for stride, extent in axes:
        if stride < span:
            return False
        span += stride * (extent - 1)
    return True
