"""Contractions: section 12 C, one element (or one per lane) at a time, and what happens to a finished element.

This is the form that any contraction can take; ``tiles`` holds the fast one.
"""
from __future__ import annotations

from contextlib import ExitStack

from ...kir.ops import KBLOCK
from ...kir.types import is_float
from ...task.program import Axis, Contract
from ..llvm.values import Val
from .env import ONE, ZERO, Env, index
from .expr import hoist, value
from .memory import store
from .plan import sink_targets


def contract(env: Env, s: Contract, reduced: list[Axis], perform) -> None:
    """The element at the current point of the free loops. No reduced axis is empty."""
    hoist(env, (s.a, s.b), frozenset(sink_targets(s)))
    x = _float(env, s, reduced) if is_float(s.a.dt) else _integer(env, s, reduced)
    finish(env, s, x, perform)


def finish(env: Env, s: Contract, x: Val, perform) -> None:
    """Store the element and run the epilogue, which sees it as the target's value."""
    if s.keep:
        store(env, s.target, s.coords, x)
    env.remember(id(env.graph("load", s.coords, s.target, x.dt)), x)
    for e in s.epilogue:
        perform(env, e)


def _loops(env: Env, stack: ExitStack, reduced: list[Axis]) -> None:
    for axis in reduced:
        lp = stack.enter_context(env.fn.loop("0", env.extent(axis.extent).text))
        stack.enter_context(env.bound(axis.name, Val("index", lp.index)))


def _integer(env: Env, s: Contract, reduced: list[Axis]) -> Val:
    o = env.o
    total = env.variable(s.a.dt, o.const(0, s.a.dt), env.lanes)
    with ExitStack() as stack:
        _loops(env, stack, reduced)
        total.set(o.add(total.get(), o.mul(value(env, s.a), value(env, s.b))))
    return total.get()


def _float(env: Env, s: Contract, reduced: list[Axis]) -> Val:
    """Ascending FMA chains over blocks of KBLOCK, which are then added in order."""
    o, dt = env.o, s.a.dt
    zero = o.const(0, dt)
    block, total = env.variable(dt, zero, env.lanes), env.variable(dt, zero, env.lanes)
    done, blocks = env.variable("index", ZERO), env.variable("index", ZERO)

    def close():
        b = blocks.get()
        total.set(o.select(o.eq(b, ZERO), block.get(), o.add(total.get(), block.get())))
        blocks.set(o.add(b, ONE))
        block.set(zero)
        done.set(ZERO)

    with ExitStack() as stack:
        _loops(env, stack, reduced)
        block.set(o.fma(value(env, s.a), value(env, s.b), block.get()))
        count = o.add(done.get(), ONE)
        done.set(count)
        with env.fn.if_(o.eq(count, index(KBLOCK)).text), env.scope():
            close()
    with env.fn.if_(o.gt(done.get(), ZERO).text), env.scope():
        close()
    return total.get()
