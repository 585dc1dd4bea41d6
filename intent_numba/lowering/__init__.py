"""KIR to task program: index functions, axis classes, keep or recompute, stages, tasks and bodies.

``combines`` first writes loops for combines that are no functions of elements, ``inline`` their bodies. ``blocks`` walks a kernel in
program order, with ``sinks`` for what computes and ``control`` for what branches and repeats. ``analysis`` finds snapshots and dear
values, ``pull`` inlines index functions, ``uses`` forms axis classes and groups, ``stages`` makes phases. ``interchange`` and ``lift``
move loops and rows into tasks, ``bounds`` sizes what a cell decides, ``updates`` are the effects on single elements, ``inplace`` judges
shared memory. Nothing here chooses a tile, a lane or a layout.
"""
from __future__ import annotations


def lower(kernel, alias=frozenset()):
    """The task program of a verified kernel. ``alias`` holds pairs of view names that may overlap (a single name: a view that
    overlaps itself); accesses to them then keep program order."""
    from .blocks import Lowering
    from .combines import spread
    return Lowering(spread(kernel), alias).run()


__all__ = ["lower"]
