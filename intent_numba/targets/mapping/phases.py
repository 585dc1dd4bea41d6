"""A phase: its loop nest, which loop is tiled by lanes, and what happens at each point.

Sinks that share a nest run together; reductions over different axes and contractions get nests of their own, in order.
Loops that a reduction does not consume are outside; the tile loop is the innermost of them unless the lanes run over the reduced
axis itself.
"""
from __future__ import annotations

from ...task.program import Axis, Contract, Phase, Reduce, Scan, Store, Update
from . import contraction, reductions, scans, turning, updates
from .env import ZERO, Env
from .expr import hoist, value
from .memory import store
from .plan import PHASE_LANES, lane_loop, sink_roots, sink_targets


def phase(env: Env, ph: Phase) -> None:
    if not ph.loops:
        with env.scope():
            for s in ph.sinks:
                perform(env, s)
        return
    for sinks in groups(ph.sinks):
        with env.scope():
            _group(env, ph.loops, sinks)


def perform(env: Env, s: Store | Update) -> None:
    """Store an expression's value here; later sinks of this point use the value. Or update an element."""
    if isinstance(s, Update):
        return updates.update(env, s)
    x = value(env, s.value)
    valid = value(env, s.valid) if s.valid is not None else None
    if id(s) in env.turned:
        env.o.store(env.wide(x), env.turned[id(s)])
    else:
        store(env, s.resource, s.coords, x, valid)
    if valid is None:
        env.remember(id(env.graph("load", s.coords, s.resource, x.dt)), x)
    return None


def groups(sinks) -> list[list]:
    """Runs of sinks that one nest can perform."""
    out: list[list] = []
    kind = None
    for s in sinks:
        own = None if isinstance(s, (Store, Update)) else (type(s), s.axis) if isinstance(s, (Reduce, Scan)) else id(s)
        other = kind is not None and (isinstance(kind, int) or own not in (None, kind))
        if not out or other or isinstance(s, Contract):
            out.append([])
            kind = None
        out[-1].append(s)
        kind = own if own is not None else kind
    return out


def _group(env: Env, loops: tuple[Axis, ...], sinks) -> None:
    structured, inner = structure(loops, sinks)
    reduced = {a.name for a in inner}
    lane = None if env.tile or not env.tiles else lane_loop(loops, sinks, env.private)
    free = [a for a in loops if a.name not in reduced and a.name != lane]
    free += [a for a in loops if a.name == lane and a.name not in reduced]
    roots = [r for s in sinks for r in sink_roots(s)]
    written = frozenset(t for s in sinks for t in sink_targets(s))
    blocked = env.products.get(id(structured)) if env.tile is None else None

    def full():
        if blocked is not None:
            return blocked.run(env, loops)
        nest(env, free, lane, roots, written, lambda: consume(env, structured, inner, lane, sinks),
             sinks if all(isinstance(s, Store) for s in sinks) else ())

    def empty():
        nest(env, free, lane, (), written, lambda: nothing(env, sinks, perform))

    with env.scope():
        either(env, structured, inner, full, empty)


def structure(loops: tuple[Axis, ...], sinks) -> tuple[Reduce | Scan | Contract | None, list[Axis]]:
    """The sink that gives a nest its form, None for points that stand alone, and the loops that it consumes, in its order."""
    sink = next((s for s in sinks if not isinstance(s, (Store, Update))), None)
    consumed = () if sink is None else sink.axes if isinstance(sink, Contract) else (sink.axis,)
    by_name = {a.name: a for a in loops}
    return sink, [by_name[a] for a in consumed]


def consume(env: Env, structured, inner: list[Axis], lane: str | None, sinks) -> None:
    """The innermost part of a nest: the loops ``inner`` of the structured sink, or the sinks of one point."""
    match structured:
        case None:
            for s in sinks:
                perform(env, s)
        case Reduce():
            reductions.reduce(env, inner[0], lane == inner[0].name, sinks, perform)
        case Scan():
            scans.scan(env, inner[0], lane == inner[0].name, sinks, perform)
        case Contract():
            contraction.contract(env, structured, inner, perform)


def either(env: Env, structured, inner: list[Axis], full, empty) -> None:
    """``full()`` where the consumed loops have elements, which a constant extent or a scan need not ask, else ``empty()``."""
    if structured is None or isinstance(structured, Scan) or all(a.extent.const for a in inner):
        return full()
    o = env.o
    some = o.const(True, "bool")
    for a in inner:
        some = o.and_(some, o.gt(env.extent(a.extent), ZERO))
    with env.fn.if_else(some.text) as branch:
        with env.scope():
            full()
        branch.orelse()
        with env.scope():
            empty()
    return None


def nothing(env: Env, sinks, perform, keep=store) -> None:
    """What reductions and products over no element give. ``keep`` stores a reduction's result."""
    for s in sinks:
        match s:
            case Reduce():
                for target, x in zip(s.targets, reductions.of_nothing(env, s)):
                    keep(env, target, s.coords, x)
            case Contract():
                contraction.finish(env, s, env.o.const(0, s.a.dt), perform)


def nest(env: Env, axes, lane: str | None, roots, written, leaf, sinks=()) -> None:
    """The loops, outermost first, around ``leaf()``. What the roots need is computed as far out as it is known. ``sinks`` are
    those that the innermost loop performs directly."""
    o = env.o
    some = None
    for a in axes:
        if a.extent.const is None:
            n = env.extent(a.extent)
            if not n.lanes:
                c = o.gt(n, ZERO)
                some = c if some is None else o.and_(some, c)
        elif a.extent.const <= 0:
            return
    if some is None:
        return _nest(env, axes, lane, roots, written, leaf, sinks)
    with env.fn.if_(some.text), env.scope():
        _nest(env, axes, lane, roots, written, leaf, sinks)


def _nest(env: Env, axes, lane: str | None, roots, written, leaf, sinks=()) -> None:
    if not axes:
        return leaf()
    o, (axis, *inner) = env.o, axes
    n = env.extent(axis.extent)
    if n.lanes:
        return _ragged(env, axis, n, inner, lane, written, leaf)
    hoist(env, roots, written)
    if axis.name == lane:
        with env.fn.loop("0", n.text, PHASE_LANES) as lp:
            with env.tiled(env.make_tile(axis.name, o.relabel(_index(lp), "index"), n, PHASE_LANES)):
                _nest(env, inner, lane, roots, written, leaf, sinks)
        return None
    if not inner and sinks:
        with turning.loop(env, axis, ZERO, n, sinks):
            return leaf()
    with env.fn.loop("0", n.text) as lp, env.bound(axis.name, _index(lp)):
        _nest(env, inner, lane, roots, written, leaf, sinks)
    return None


def _ragged(env: Env, axis: Axis, n, inner, lane, written, leaf) -> None:
    """A loop whose extent differs between lanes: it runs while a lane has elements left. Nothing is hoisted out of it."""
    o = env.o
    start = env.keep(env.live())
    with env.fn.repeat([("i64", "0")]) as lp:
        i = _index(lp, lp.carried[0])
        mask = env.logic("and", env.kept(start), o.lt(i, n))
        some, kept = o.any(mask), env.keep(mask)
        with env.fn.if_(some.text), env.masked(kept), env.bound(axis.name, i):
            _nest(env, inner, lane, (), written, leaf)
        lp.next[0] = o.add(i, o.const(1, "index")).text
        lp.again = some.text


def _index(lp, text: str | None = None):
    from ..llvm.values import Val
    return Val("index", text or lp.index)
