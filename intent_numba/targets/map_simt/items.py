"""A stage whose work-items run one task point each, as the vector mapper's scalar code for one point.

Point bodies, and stages whose lanes would run over a task axis. Work-items step through the grid by the number of work-items, so
a launch may start fewer of them than there are points.
"""
from __future__ import annotations

from contextlib import ExitStack, contextmanager

from ...task.program import Axis, Stage
from ..llvm.memory import Pointer
from ..llvm.values import Val
from ..map_vector import control
from ..map_vector.env import index
from . import scratch
from .env import Env


def emit(env: Env, stage: Stage) -> list[scratch.Piece]:
    """The body of the kernel. Returns what it expects in the arena, for each work-item."""
    o, fn = env.o, env.fn
    mine = o.add(o.mul(env.group, index(env.size)), env.item)
    parts = scratch.pieces(stage)
    far = [p for p in parts if not scratch.is_private(p)]
    scratch.bind_scalars(env, stage)
    for p in parts:
        if p not in far:
            scratch.bind_private(env, p)
    if far:
        scratch.bind_arena(env, far, Pointer("%arena", env.machine.global_space), mine)
    with fn.loop(mine.text, "%points", o.mul(env.groups, index(env.size)).text) as lp, env.scope():
        with at_point(env, stage.tasks, Val("index", lp.index)):
            control.run(env, stage.body)
    fn.ret()
    return far


@contextmanager
def at_point(env: Env, axes: tuple[Axis, ...], point: Val):
    """Axes bound to the coordinates of a point of their row-major grid, and a scope."""
    o, places = env.o, {}
    for axis in reversed(axes[1:]):
        n = env.extent(axis.extent)
        above = Val("index", env.fn.ins(f"udiv i64 {point.text}, {n.text}"))
        places[axis.name] = o.sub(point, o.mul(above, n))
        point = above
    if axes:
        places[axes[0].name] = point
    with ExitStack() as stack:
        for axis in axes:
            stack.enter_context(env.bound(axis.name, places[axis.name]))
        yield
