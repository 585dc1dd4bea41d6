"""A stage whose work-items run one task point each, as the vector mapper's scalar code for one point.

Point bodies, and stages whose lanes would run over a task axis. Where every work-item needs memory of its own, fewer of them are started
than there are points, and they step through the grid.
"""
from __future__ import annotations

from contextlib import ExitStack, contextmanager

from ...task.program import Axis, Stage
from ..llvm.memory import Pointer
from ..llvm.values import Val
from ..mapping import control
from ..mapping.env import index
from . import scratch
from .env import Env
from .machine import Machine


def in_arena(stage: Stage, machine: Machine) -> list[scratch.Piece]:
    """What each work-item needs in the arena."""
    return [p for p in scratch.pieces(stage) if not scratch.is_private(p, machine.private_bytes)]


def emit(env: Env, stage: Stage, far: list[scratch.Piece]) -> None:
    """The body of the kernel; ``far`` lies in the arena."""
    o, fn = env.o, env.fn
    mine = o.add(o.mul(env.group, index(env.size)), env.item)
    scratch.bind_scalars(env, stage)
    for p in scratch.pieces(stage):
        if p not in far:
            scratch.bind_private(env, p)
    if far:
        scratch.bind_arena(env, far, Pointer("%arena", env.machine.global_space), mine)
    if far:
        with fn.loop(mine.text, "%points", o.mul(env.groups, index(env.size)).text) as lp, env.scope():
            _run(env, stage, Val("index", lp.index))
    else:
        with fn.if_(o.lt(mine, Val("index", "%points")).text), env.scope():
            _run(env, stage, mine)
    fn.ret()


def _run(env: Env, stage: Stage, number: Val) -> None:
    with point(env, stage.tasks, number):
        control.run(env, stage.body)


@contextmanager
def point(env: Env, axes: tuple[Axis, ...], number: Val):
    """Axes bound to the coordinates of a point of their row-major grid, given its number, and a scope."""
    o, places = env.o, {}
    for axis in reversed(axes[1:]):
        n = env.extent(axis.extent)
        above = Val("index", env.fn.ins(f"udiv i64 {number.text}, {n.text}"))
        places[axis.name] = o.sub(number, o.mul(above, n))
        number = above
    if axes:
        places[axes[0].name] = number
    with ExitStack() as stack:
        for axis in axes:
            stack.enter_context(env.bound(axis.name, places[axis.name]))
        yield
