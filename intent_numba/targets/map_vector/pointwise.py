"""Stages of plain stores: when a grid of points may be walked as one long axis, and when it must be walked in blocks.

``flat``: every access is at exactly the task axes, in order. If the memory turns out to be dense, the last axis simply runs on over
the rows: short rows cost nothing, and there is one tail instead of one per row.
``crossing``: accesses disagree on which axis is consecutive, as in a transpose. A tile of lanes then runs down ``CROSSING`` points
of the other axis, so that what a strided access brings into the cache is used before it is gone.
"""
from __future__ import annotations

from ...task.program import Axis, Phase, Program, Stage, Store
from ..llvm.values import Val
from ..mapping import control, turning
from ..mapping.env import ONE, Env, index
from ..mapping.expr import hoist
from ..mapping.plan import StagePlan, sink_roots, walk_nodes, walks

CROSSING = 32


def is_pointwise(stage: Stage) -> bool:
    return all(isinstance(s, Phase) and not s.loops and all(isinstance(k, Store) for k in s.sinks) for s in stage.body)


def _accesses(stage: Stage):
    """(resource, coordinates) of every store and load."""
    for ph in stage.body:
        for s in ph.sinks:
            yield s.resource, s.coords
            for n in walk_nodes(*sink_roots(s)):
                if n.op in ("load", "gload"):
                    yield n.attr, n.args if n.op == "load" else n.args[2:]


def flat_resources(program: Program, stage: Stage, order: tuple[Axis, ...]) -> list[str] | None:
    """What must be dense for the grid to be one axis; None if an access or an expression needs the coordinates themselves."""
    if len(order) < 2 or not is_pointwise(stage):
        return None
    names, private = [a.name for a in order], {r.name for r in stage.resources}
    shared, plain = [], set()
    for name, coords in _accesses(stage):
        if not coords:
            continue
        if name in private or [c.attr if c.op == "axis" else None for c in coords] != names:
            return None
        shared.append(name)
        plain.update(map(id, coords))
    roots = [r for ph in stage.body for s in ph.sinks for r in sink_roots(s)]
    for n in walk_nodes(*roots):
        if any(a.op == "axis" for a in n.args) and not (n.op == "load" and all(id(a) in plain for a in n.args)):
            return None
        if n.op == "gload":
            return None
    values = [r for ph in stage.body for s in ph.sinks for r in ((s.value,) if s.valid is None else (s.value, s.valid))]
    return None if any(v.op == "axis" for v in values) else sorted(set(shared))


def row_length(env: Env, order: tuple[Axis, ...], resources: list[str]) -> Val:
    """Points of the last axis: all of the grid where every resource is dense."""
    o = env.o
    extents = [env.extent(a.extent) for a in order]
    dense = o.const(True, "bool")
    for name in resources:
        strides = env.storage[name].strides
        for k in range(len(order) - 1):
            dense = o.and_(dense, o.eq(strides[k], o.mul(strides[k + 1], extents[k + 1])))
    whole = ONE
    for e in extents:
        whole = o.mul(whole, e)
    return o.select(dense, whole, extents[-1])


def crossing_axis(stage: Stage, order: tuple[Axis, ...]) -> Axis | None:
    """The other axis that accesses walk one by one, if there is one besides the lane axis."""
    if len(order) < 2 or not is_pointwise(stage):
        return None
    stepped = {a for _, coords in _accesses(stage) for c in coords[-1:] for a in walks(c)}
    crossing = [a for a in order[:-1] if a.name in stepped]
    return crossing[-1] if crossing else None


def units(env: Env, plan: StagePlan) -> Val:
    """Blocks of the grid of a crossing stage."""
    o, total = env.o, ONE
    for a in plan.order[:-1]:
        n = env.extent(a.extent)
        total = o.mul(total, _blocks(env, n) if a is plan.crossing else n)
    return total


def _blocks(env: Env, n: Val) -> Val:
    return Val("index", env.fn.ins(f"udiv i64 {env.o.add(n, index(CROSSING - 1)).text}, {CROSSING}"))


def run_crossing(env: Env, stage: Stage, plan: StagePlan) -> None:
    """Units %lo .. %hi-1: for every tile of the lane axis, ``CROSSING`` points of the other."""
    o, fn = env.o, env.fn
    lane = plan.order[-1]
    n = env.extent(lane.extent)
    stores = [s for ph in stage.body for s in ph.sinks]
    written = frozenset(s.resource for s in stores) | {r.name for r in stage.resources}
    roots = [r for s in stores for r in sink_roots(s)]
    with fn.loop("%lo", "%hi") as lp, env.scope():
        rest, bound, block = Val("index", lp.index), {}, None
        for a in reversed(plan.order[:-1]):
            size = env.extent(a.extent)
            count = _blocks(env, size) if a is plan.crossing else size
            above = Val("index", fn.ins(f"udiv i64 {rest.text}, {count.text}"))
            at = o.sub(rest, o.mul(above, count))
            if a is plan.crossing:
                first = o.mul(at, index(CROSSING))
                end = o.add(first, index(CROSSING))
                block = (first, o.select(o.lt(end, size), end, size))
            else:
                bound[a.name] = at
            rest = above
        env.axes.update(bound)
        with fn.loop("0", n.text, plan.width) as across:
            with env.tiled(env.make_tile(lane.name, Val("index", across.index), n, plan.width)):
                hoist(env, roots, written)
                with turning.loop(env, plan.crossing, *block, stores):
                    control.run(env, stage.body)
        for name in bound:
            del env.axes[name]
