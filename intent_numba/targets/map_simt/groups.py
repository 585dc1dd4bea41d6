"""A stage whose groups run one task each: phases are spread over the group's work-items, with a barrier behind each.

Control flow is the task's own and therefore the same in all work-items: they all compute the task's scalars, in private memory, and
only one of them stores what the others can see. A phase's loops are one index range dealt out in turn; a reduction or scan
that has the phase for itself is done together, one inside other loops by the work-item that owns the point.
"""
from __future__ import annotations

from ...errors import UnsupportedError
from ...task.program import Axis, For, If, Loop, Phase, Reduce, Scan, Stage, Store, Update
from ..llvm.memory import Pointer
from ..llvm.values import Val
from ..mapping.control import assign
from ..mapping.env import ONE, ZERO
from ..mapping.expr import hoist, reads, value
from ..mapping.memory import store
from ..mapping.phases import consume, either, nest, nothing, perform, structure
from ..mapping.phases import groups as nests
from ..mapping.plan import sink_roots, sink_targets, walk_phases
from ..mapping.updates import at_point, update
from . import reductions, scans, scratch
from .env import Env
from .items import point


def emit(env: Env, stage: Stage, parts: list[scratch.Piece], space: int | None) -> None:
    """The body of the kernel; the task's rows lie in an arena in an address space."""
    fn = env.fn
    scratch.bind_scalars(env, stage)
    if space is not None:
        owner = env.group if space == env.machine.global_space else None
        scratch.bind_arena(env, parts, env.arena_in(space), owner)
    env.changing = _changing(env, stage)
    if space == env.machine.global_space:          # as many groups as have memory step through the grid
        with fn.loop(env.group.text, "%points", env.groups.text) as lp, env.scope():
            with point(env, stage.tasks, Val("index", lp.index)):
                run(env, stage.body)
                env.barrier()
    else:
        with point(env, stage.tasks, env.group):
            run(env, stage.body)
    fn.ret()


def _changing(env: Env, stage: Stage) -> frozenset[str]:
    """Shared memory that the stage writes. Views may be the same memory, so one that is written counts for all."""
    written = {t for ph in walk_phases(stage.body) for s in ph.sinks for t in sink_targets(s) if not is_scalar(env, t)}
    views = {name for name, st in env.storage.items() if st.resource.kind == "view"}
    return frozenset(written | views if written & views else written)


# --- uniform control ---------------------------------------------------------------------------------------------------

def run(env: Env, body) -> None:
    for s in body:
        match s:
            case Phase():
                _phase(env, s)
            case For():
                _for(env, s)
            case Loop():
                with env.fn.repeat() as lp, env.scope():
                    run(env, s.body)
                    lp.again = env.load_cell(s.again, "bool").text
            case If():
                with env.scope():
                    cond = value(env, s.cond)
                    _settle(env, s.cond)
                    with env.fn.if_else(cond.text) as branch:
                        with env.scope():
                            run(env, s.then)
                        branch.orelse()
                        with env.scope():
                            run(env, s.orelse)


def _settle(env: Env, *roots) -> None:
    """What was read from changing memory must be in every work-item before one of them goes on to write."""
    if any(reads(env, root) & env.changing for root in roots):
        env.barrier()


def _for(env: Env, s: For) -> None:
    o = env.o
    with env.scope():
        begin, step, n = value(env, s.begin), value(env, s.step), env.extent(s.extent)
        _settle(env, s.begin, s.step)
    if s.stop is None:
        with env.fn.loop("0", n.text) as lp, env.scope():
            assign(env, s.var, o.add(begin, o.mul(Val("index", lp.index), step)))
            run(env, s.body)
        return
    assign(env, s.stop, o.const(False, "bool"))
    with env.fn.if_(o.gt(n, ZERO).text), env.scope():
        with env.fn.repeat([("i64", "0")]) as lp:
            i = Val("index", lp.carried[0])
            assign(env, s.var, o.add(begin, o.mul(i, step)))
            with env.scope():
                run(env, s.body)
            following = o.add(i, ONE)
            lp.next[0] = following.text
            lp.again = o.and_(o.not_(env.load_cell(s.stop, "bool")), o.lt(following, n)).text


# --- phases --------------------------------------------------------------------------------------------------------------

def is_scalar(env: Env, name: str) -> bool:
    """Whether every work-item has its own copy: a cell of the task, or scratch of one element."""
    st = env.storage.get(name)
    return st is not None and st.resource.kind != "view" and not isinstance(st.base, Pointer)


def put(env: Env, target: str, coords, x: Val, valid: Val | None = None) -> None:
    """target[coords] = x where every work-item has the same x: scalars in each, shared memory by the leader."""
    if is_scalar(env, target):
        return store(env, target, coords, x, valid)
    with env.led():
        store(env, target, coords, x, valid)


def _phase(env: Env, ph: Phase) -> None:
    if not ph.loops:
        with env.scope():
            for s in ph.sinks:
                if isinstance(s, Update):
                    _update_once(env, s)
                else:
                    assert isinstance(s, Store)              # whatever else needs a loop
                    _once(env, s)
            if not all(is_scalar(env, t) for s in ph.sinks for t in sink_targets(s)):
                return env.barrier()
            _settle(env, *(r for s in ph.sinks for r in sink_roots(s)))
        return None
    for sinks in nests(ph.sinks):
        with env.scope():
            _nest(env, ph.loops, sinks)
        env.barrier()
    return None


def _once(env: Env, s: Store) -> None:
    """A store of the task as a whole, which later sinks of the phase see."""
    x = value(env, s.value)
    valid = value(env, s.valid) if s.valid is not None else None
    if any(s.resource in reads(env, r) for r in sink_roots(s)) and not is_scalar(env, s.resource):
        env.barrier()                                        # all have read before the leader writes
    put(env, s.resource, s.coords, x, valid)
    if valid is None:
        env.remember(id(env.graph("load", s.coords, s.resource, x.dt)), x)
    elif not is_scalar(env, s.resource):
        env.barrier()


def _update_once(env: Env, s: Update) -> None:
    """An update by the task as a whole; what was found reaches every work-item through local memory."""
    if s.kind == "raise":
        return update(env, s)
    found = [t for t in ((s.old, 0), (s.success, 1)) if t[0] is not None]
    if is_scalar(env, s.resource):
        results = at_point(env, s)
        for target, k in found:
            put(env, target, s.coords, results[k])
        return
    with env.shared_scope():
        dts = (env.storage[s.resource].resource.dt, "bool")
        slots = [env.shared(dts[k], 1) for _, k in found]
        env.barrier()                                        # all have read before the leader writes
        with env.led():
            results = at_point(env, s)
            env.put_all(slots, ZERO, [results[k] for _, k in found])
        env.barrier()
        values = env.get_all([dts[k] for _, k in found], slots, ZERO)
    for (target, _), x in zip(found, values):
        put(env, target, s.coords, x)
    env.barrier()


def acts_alone(sink) -> bool:
    """Whether the points of a phase must take turns at a sink: they may meet in an element, or have an order."""
    return isinstance(sink, Update) and (sink.order is None or sink.ascending)


def _nest(env: Env, loops: tuple[Axis, ...], sinks) -> None:
    structured, inner = structure(loops, sinks)
    free = tuple(a for a in loops if a not in inner)
    roots = [r for s in sinks for r in sink_roots(s)]
    written = frozenset(t for s in sinks for t in sink_targets(s))
    if free and any(is_scalar(env, t) for t in written):
        raise UnsupportedError("internal error: a task's scalar is stored inside the loops of a phase")

    def point_by_point():
        consume(env, structured, inner, None, sinks)

    def full():
        if any(map(acts_alone, sinks)):
            with env.led():
                nest(env, list(free), None, roots, written, point_by_point)
        elif free:
            spread(env, free, roots, written, point_by_point)
        elif isinstance(structured, Reduce):
            reductions.reduce(env, inner[0], sinks, perform, put)
        elif isinstance(structured, Scan):
            scans.scan(env, inner[0], sinks, perform)
        else:
            raise UnsupportedError("internal error: a contraction of one element is spread over a group")

    def empty():
        if free:
            spread(env, free, (), written, lambda: nothing(env, sinks, perform))
        else:
            nothing(env, sinks, perform, put)

    either(env, structured, inner, full, empty)


def spread(env: Env, axes: tuple[Axis, ...], roots, written, leaf) -> None:
    """``leaf()`` at every point of the loops, dealt to the work-items in turn: neighbours get neighbours of the last axis."""
    o, total = env.o, ONE
    for a in axes:
        total = o.mul(total, env.extent(a.extent))
    with env.fn.if_(o.gt(total, ZERO).text), env.scope():
        hoist(env, roots, written)
        with env.fn.loop(env.item.text, total.text, env.size) as lp, env.scope():
            with point(env, axes, Val("index", lp.index)):
                leaf()
