"""Where a task's own memory lies: registers, local memory, or an arena in global memory.

Scalars are private to the work-item (in a group every work-item computes the same ones). Rows and buffers of a group's task are
shared by its work-items: in local memory where they fit, which may be known only at the launch, else in the group's part of an arena.
"""
from __future__ import annotations

from dataclasses import dataclass

from ...kir.types import Extent
from ...task.program import Resource, Stage
from ..llvm.memory import Pointer
from ..llvm.values import BYTES, MEMORY, Val
from ..mapping.env import ZERO, index
from ..mapping.memory import Storage, row_major
from .env import Env

ALIGN = 64


@dataclass(frozen=True)
class Piece:
    """A resource of a task that needs memory: its shape without the task axes."""
    resource: Resource
    shape: tuple[Extent, ...]

    @property
    def constant(self) -> int | None:
        """Bytes, aligned, where they are known."""
        size = BYTES[self.resource.dt]
        for e in self.shape:
            if e.const is None:
                return None
            size *= e.const
        return -(-size // ALIGN) * ALIGN


def pieces(stage: Stage) -> list[Piece]:
    """The rows and buffers of a stage's task, in order."""
    return [Piece(r, r.shape[len(r.axes):]) for r in stage.resources if r.shape[len(r.axes):]]


def is_private(piece: Piece, limit: int) -> bool:
    """Whether a work-item's own piece may be private memory of so many bytes; what is larger would spill everywhere."""
    return piece.constant is not None and piece.constant <= limit


def bind_scalars(env: Env, stage: Stage) -> None:
    """Cells, and scratch that is one element for each task."""
    for r in stage.resources:
        if not r.shape[len(r.axes):]:
            env.storage[r.name] = Storage(r, env.fn.alloca(MEMORY[r.dt], BYTES[r.dt]), (), len(r.axes))


def bind_private(env: Env, piece: Piece) -> None:
    r = piece.resource
    pointer = env.fn.alloca(MEMORY[r.dt], ALIGN, max((piece.constant or 0) // BYTES[r.dt], 1))
    env.storage[r.name] = Storage(r, pointer, row_major(env, piece.shape), len(r.axes))


def bind_arena(env: Env, parts: list[Piece], base: Pointer, owner: Val | None) -> None:
    """Pieces one behind the other from ``base`` on; in a shared arena ``owner`` counts those before this one."""
    o, shared = env.o, env.machine.pointer(base.space)
    offsets, total = [], ZERO
    strides = [row_major(env, p.shape) for p in parts]
    for p, s in zip(parts, strides):
        offsets.append(total)
        size = o.mul(o.mul(s[0], env.extent(p.shape[0])), index(BYTES[p.resource.dt]))
        total = o.add(total, o.and_(o.add(size, index(ALIGN - 1)), index(-ALIGN)))
    start = o.mul(owner, total) if owner is not None else ZERO
    for p, s, offset in zip(parts, strides, offsets):
        text = env.fn.ins(f"getelementptr i8, {shared} {base}, i64 {o.add(start, offset).text}")
        env.storage[p.resource.name] = Storage(p.resource, Pointer(text, base.space), s, len(p.resource.axes))
