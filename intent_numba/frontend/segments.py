"""Where are the slices of region operations cut? Section 12 fixes it; tests force other extents with ``segmentation``.

Segments of SEGMENT members start at the source's begin. Summaries are folded left inside groups of GROUP segments, then the
groups are folded left.
"""
from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar

SEGMENT, GROUP = 64, 16
WHOLE = "whole"
"""One segment that is the whole source."""

_chosen: ContextVar = ContextVar("segment", default=SEGMENT)


@contextmanager
def segmentation(extent: int | str):
    """Kernels built inside use segments of ``extent`` members, or one of all members for "whole". Results may differ in their
    roundings only: this exists so that tests can show that slices are not observable. It is part of the cache key."""
    if extent != WHOLE and not (type(extent) is int and extent > 0):
        raise ValueError(f"a segment extent is a positive integer or {WHOLE!r}, not {extent!r}")
    token = _chosen.set(extent)
    try:
        yield
    finally:
        _chosen.reset(token)


def chosen() -> int | str:
    """The extent that is in force: SEGMENT, a forced one, or "whole"."""
    return _chosen.get()
