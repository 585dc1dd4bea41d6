"""Ordered control flow inside a task or in the host code of a launch.

A condition that is the same in all lanes branches. Where lanes disagree both sides run under masks, each only if a lane
wants it, and a loop runs while a lane is still in it; whatever is assigned under a mask keeps the other lanes' values.
"""
from __future__ import annotations

from ...task.program import For, If, Loop, Phase
from ..llvm.values import Val
from .env import ONE, ZERO, Env
from .expr import value
from .phases import phase


def run(env: Env, body, extra=None) -> None:
    """Emit statements in order. ``extra(statement)`` emits what only the launch knows."""
    for s in body:
        match s:
            case Phase():
                phase(env, s)
            case For():
                _for(env, s, extra)
            case Loop():
                _loop(env, s, extra)
            case If():
                _if(env, s, extra)
            case _:
                extra(s)


def assign(env: Env, cell: str, x: Val) -> None:
    """Cell = x in the lanes that act."""
    st = env.storage.get(cell)
    if st is None:
        env.o.store(x, env.slot_pointer(env.layout.cells[cell]))
    elif st.lanes and env.mask is not None:
        env.o.store(env.o.select(env.mask, x, env.o.load(x.dt, st.base, st.lanes)), st.base)
    else:
        env.o.store(env.o.splat(x, st.lanes), st.base)


def _if(env: Env, s: If, extra) -> None:
    o = env.o
    with env.scope():
        cond = value(env, s.cond)
        if not cond.lanes:
            with env.fn.if_else(cond.text) as branch:
                with env.scope():
                    run(env, s.then, extra)
                branch.orelse()
                with env.scope():
                    run(env, s.orelse, extra)
            return
        live = env.live()
        sides = ((s.then, o.and_(live, cond)), (s.orelse, o.and_(live, o.not_(cond))))
        for body, mask in sides:
            if body:
                with env.fn.if_(o.any(mask).text), env.masked(mask):
                    run(env, body, extra)


def _for(env: Env, s: For, extra) -> None:
    o = env.o
    with env.scope():
        begin, step, n = value(env, s.begin), value(env, s.step), env.extent(s.extent)
    if s.stop is not None:
        assign(env, s.stop, o.const(False, "bool"))
    if n.lanes or (s.stop is not None and s.stop in env.varying):
        return _for_lanes(env, s, begin, step, n, extra)
    if s.stop is None:
        with env.fn.loop("0", n.text) as lp, env.scope():
            assign(env, s.var, o.add(begin, o.mul(Val("index", lp.index), step)))
            run(env, s.body, extra)
        return None
    with env.fn.if_(o.gt(n, ZERO).text), env.scope():
        with env.fn.repeat([("i64", "0")]) as lp:
            i = Val("index", lp.carried[0])
            assign(env, s.var, o.add(begin, o.mul(i, step)))
            with env.scope():
                run(env, s.body, extra)
            following = o.add(i, ONE)
            lp.next[0] = following.text
            lp.again = o.and_(o.not_(env.load_cell(s.stop, "bool")), o.lt(following, n)).text
    return None


def _for_lanes(env: Env, s: For, begin: Val, step: Val, n: Val, extra) -> None:
    o = env.o
    n = env.wide(n)
    start = o.and_(env.live(), o.gt(n, ZERO))
    with env.fn.if_(o.any(start).text), env.scope():
        with env.fn.repeat([("i64", "0"), (start.type, start.text)]) as lp:
            i, alive = Val("index", lp.carried[0]), Val("bool", lp.carried[1], env.width)
            with env.masked(alive):
                assign(env, s.var, o.add(begin, o.mul(i, step)))
                run(env, s.body, extra)
            following = o.add(i, ONE)
            alive = o.and_(alive, o.lt(following, n))
            if s.stop is not None:
                alive = o.and_(alive, o.not_(env.load_cell(s.stop, "bool")))
            lp.next[:] = [following.text, alive.text]
            lp.again = o.any(alive).text


def _loop(env: Env, s: Loop, extra) -> None:
    o = env.o
    if s.again not in env.varying:
        with env.fn.repeat() as lp, env.scope():
            run(env, s.body, extra)
            lp.again = env.load_cell(s.again, "bool").text
        return
    start = env.live()
    with env.fn.repeat([(start.type, start.text)]) as lp:
        alive = Val("bool", lp.carried[0], env.width)
        with env.masked(alive):
            run(env, s.body, extra)
        alive = o.and_(alive, env.load_cell(s.again, "bool"))
        lp.next[0] = alive.text
        lp.again = o.any(alive).text
