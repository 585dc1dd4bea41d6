"""Ordered control flow inside a task or in the host code of a launch.

A condition that is the same in all lanes branches. Where lanes disagree both sides run under masks, each only if a lane
wants it, and a loop runs while a lane is still in it; whatever is assigned under a mask keeps the other lanes' values.
"""
from __future__ import annotations

from ...task.program import For, If, Loop, Phase, Store
from ..llvm.values import Val
from . import growing
from .env import ONE, ZERO, Env
from .expr import value
from .phases import phase
from .plan import CHEAP, sink_roots, walk_nodes

LIGHT = 24
"""Nodes of a branch that is run under its mask without asking whether a lane wants it."""


def run(env: Env, body, extra=None) -> None:
    """Emit statements in order. ``extra(statement)`` emits what only the launch knows."""
    for s in body:
        match s:
            case Phase():
                growing.prepare(env, s)
                phase(env, s)
            case For() | Loop() | If():
                growing.prepare(env, s)
                compound(env, s, extra)
            case _:
                extra(s)


def compound(env: Env, s, extra=None) -> None:
    """A loop or a branch."""
    match s:
        case For():
            _for(env, s, extra)
        case Loop():
            _loop(env, s, extra)
        case If():
            _if(env, s, extra)


def inside(env: Env, body, extra) -> None:
    """A body inside a loop or branch, by whoever runs this stage's statements."""
    if env.runner is not None:
        env.runner(body)
    else:
        run(env, body, extra)


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
                    inside(env, s.then, extra)
                branch.orelse()
                with env.scope():
                    inside(env, s.orelse, extra)
            return
        live = env.live()
        sides = [(body, env.logic("and", live, mask)) for body, mask in ((s.then, cond), (s.orelse, env.logic("not", cond))) if _does(body)]
        if all(_light(env, body) for body, _ in sides):
            for (body, _), kept in zip(sides, [env.keep(mask) for _, mask in sides]):
                with env.masked(kept):
                    inside(env, body, extra)
            return
        for (body, mask), kept in zip(sides, [env.keep(mask) for _, mask in sides]):
            with env.fn.if_(o.any(mask).text), env.masked(kept):
                inside(env, body, extra)


def _does(body) -> bool:
    return any(not isinstance(s, If) or _does(s.then) or _does(s.orelse) for s in body)


def _light(env: Env, body) -> bool:
    """Whether running a side for nothing costs less than asking: few operations, all on private values."""
    if not all(isinstance(s, Phase) and not s.loops and all(isinstance(k, Store) for k in s.sinks) for s in body):
        return False
    sinks = [k for s in body for k in s.sinks]
    if not all(isinstance(k, Store) for k in sinks):
        return False
    nodes = list(walk_nodes(*(r for k in sinks for r in sink_roots(k))))
    private = {k.resource for k in sinks} | {n.attr for n in nodes if n.op in ("load", "gload")} <= env.private
    cheap = len(nodes) <= LIGHT and all(n.op in CHEAP for n in nodes)
    return private and cheap and not any(env.varies(c) for k in sinks for c in k.coords)


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
            inside(env, s.body, extra)
        return None
    with env.fn.if_(o.gt(n, ZERO).text), env.scope():
        with env.fn.repeat([("i64", "0")]) as lp:
            i = Val("index", lp.carried[0])
            assign(env, s.var, o.add(begin, o.mul(i, step)))
            with env.scope():
                inside(env, s.body, extra)
            following = o.add(i, ONE)
            lp.next[0] = following.text
            lp.again = o.and_(o.not_(env.load_cell(s.stop, "bool")), o.lt(following, n)).text
    return None


def _for_lanes(env: Env, s: For, begin: Val, step: Val, n: Val, extra) -> None:
    o = env.o
    n = env.wide(n)
    mask = env.logic("and", env.live(), o.gt(n, ZERO))
    start = env.keep(mask)
    with env.fn.if_(o.any(mask).text), env.scope():
        with env.fn.repeat([("i64", "0"), (start.type, start.text)]) as lp:
            i, still = Val("index", lp.carried[0]), Val("i32", lp.carried[1], env.width)
            with env.masked(still):
                assign(env, s.var, o.add(begin, o.mul(i, step)))
                inside(env, s.body, extra)
            following = o.add(i, ONE)
            alive = env.logic("and", env.kept(still), o.lt(following, n))
            if s.stop is not None:
                alive = env.logic("and", alive, env.logic("not", env.load_cell(s.stop, "bool")))
            lp.next[:] = [following.text, env.keep(alive).text]
            lp.again = o.any(alive).text


def _loop(env: Env, s: Loop, extra) -> None:
    o = env.o
    if s.again not in env.varying:
        with env.fn.repeat() as lp, env.scope():
            inside(env, s.body, extra)
            lp.again = env.load_cell(s.again, "bool").text
        return
    start = env.keep(env.live())
    with env.fn.repeat([(start.type, start.text)]) as lp:
        still = Val("i32", lp.carried[0], env.width)
        with env.masked(still):
            inside(env, s.body, extra)
        alive = env.logic("and", env.kept(still), env.load_cell(s.again, "bool"))
        lp.next[0] = env.keep(alive).text
        lp.again = o.any(alive).text
