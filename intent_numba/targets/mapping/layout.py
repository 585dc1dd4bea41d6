"""Where things lie in the launch frame: one array of 8-byte slots that every function of a launch reads.

The first slots are the caller's frame as it came (threads, then the parameters); behind it are the workspace pointers,
the launch cells and the error flag.
"""
from __future__ import annotations

from dataclasses import dataclass, field

from ...task.program import Program


@dataclass
class Layout:
    """Slot numbers. ``extents[view, axis]``, ``strides[view, axis]``; a workspace has its aligned pointer in ``pointers``, what
    malloc gave in ``raw`` and how much was asked for in ``bytes``."""
    pointers: dict[str, int] = field(default_factory=dict)
    extents: dict[tuple[str, int], int] = field(default_factory=dict)
    strides: dict[tuple[str, int], int] = field(default_factory=dict)
    scalars: dict[str, int] = field(default_factory=dict)
    raw: dict[str, int] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)
    cells: dict[str, int] = field(default_factory=dict)
    arguments: int = 0
    error: int = 0
    size: int = 0


def frame_layout(program: Program) -> Layout:
    layout, slot = Layout(), 1
    for p in program.params:
        if p.kind != "view":
            layout.scalars[p.name] = slot
            slot += 1
            continue
        rank = len(p.shape)
        layout.pointers[p.name] = slot
        for k in range(rank):
            layout.extents[p.name, k] = slot + 1 + k
            layout.strides[p.name, k] = slot + 1 + rank + k
        slot += 1 + 2 * rank
    layout.arguments = slot
    for r in program.resources:
        if r.kind == "workspace":
            layout.pointers[r.name], layout.raw[r.name], layout.bytes[r.name] = slot, slot + 1, slot + 2
            slot += 3
        else:
            layout.cells[r.name] = slot
            slot += 1
    layout.error, layout.size = slot, slot + 1
    return layout
