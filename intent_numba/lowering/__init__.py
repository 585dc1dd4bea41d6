"""KIR to task program: index functions, axis classes, keep or recompute, stages, tasks and bodies.

``analysis`` finds snapshots and dear values, ``pull`` inlines index functions, ``uses`` forms axis classes and groups, ``stages``
makes phases, ``blocks`` walks blocks and control, ``inplace`` judges shared memory. Nothing here chooses a tile, a lane or a layout.
"""
from __future__ import annotations


def lower(kernel, alias=frozenset()):
    """The task program of a verified kernel. ``alias`` holds pairs of view names that may overlap: accesses to them then keep
    program order. A single name stands for a view whose elements may overlap one another. Raises UnsupportedError for constructs
    that are not lowered yet."""
    from .blocks import Lowering
    return Lowering(kernel, alias).run()


__all__ = ["lower"]
