"""From a group of uses to phases and a stage: names, storage of what the group produces, merging of phases.

A produced value is scratch when only this group reads it, else workspace. Phases with the same loops are merged when neither
reads what the other completes only at its end. A kept value read nowhere but in its own phase is not stored at all.
"""
from __future__ import annotations

from dataclasses import replace

from ..kir import Extent
from ..kir.ops import CHUNK
from ..task import Axis, Contract, Graph, Node, Phase, Reduce, Resource, Scan, Stage, Store, Update
from .uses import Group, Renamer, accesses, count_nodes, load_coords, loads, phase_loops, sink_nodes, targets


def build_phases(group: Group, graph: Graph, fresh, extents, dims, scratch: list[str], lift: bool, local: set[str]):
    """(task axes, phases, scratch layout) of a group. ``dims``: resource -> its axes when produced. ``fresh()`` gives axis names.
    ``local``: what nobody outside of the group reads."""
    classes = group.classes
    rep = {}
    for u in group.uses:
        for a in u.axes:
            rep.setdefault(classes.find(a), None)
    for c in rep:
        rep[c] = fresh()
    names = {a: rep[classes.find(a)] for u in group.uses for a in u.axes}
    lifted = tuple(rep[c] for c in group.lifted) if lift else ()
    axes = tuple(Axis(rep[c], extents[c]) for c in group.lifted) if lift else ()
    perms, layout = {}, {}
    for r in scratch:
        order = [names[a] for a in dims[r]]
        perm = [order.index(a) for a in lifted] + [i for i, a in enumerate(order) if a not in lifted]
        perms[r] = tuple(perm)
        layout[r] = (tuple(extents[dims[r][i]] for i in perm), lifted)
    rename = Renamer(graph, names, perms)
    phases: list[Phase] = []
    for u in group.uses:
        loops = phase_loops(u, names, lifted, extents)
        sink = rename.sink(u.sink)
        if not (phases and _merge(phases[-1], loops, sink)):
            phases.append(Phase(loops, [sink]))
    dropped = _inline_kept(phases, graph, {r for r in local if r[0] == "t"})
    return axes, phases, {r: v for r, v in layout.items() if r not in dropped}


def _merge(phase: Phase, loops, sink) -> bool:
    """Append ``sink`` to the phase if that changes nothing."""
    if {a.name for a in loops} != {a.name for a in phase.loops} or isinstance(sink, (Contract, Scan)):
        return False
    if any(isinstance(s, Update) for s in (sink, *phase.sinks)):
        return _independent(phase, loops, sink)
    reading = [(n.attr, load_coords(n)) for n in loads(sink_nodes(sink))]
    seen: set[str] = set()
    for s in phase.sinks:
        seen.update(n.attr for n in loads(sink_nodes(s)))
        if isinstance(s, (Contract, Scan)):
            return False
        if isinstance(s, Reduce) and (isinstance(sink, Reduce) and sink.axis != s.axis or any(n in s.targets for n, _ in reading)):
            return False
        if isinstance(s, Store):
            if any(n == s.resource and (c != s.coords or n in seen) for n, c in reading):
                return False                                 # one expression has one value in a phase
            if s.resource in targets(sink) and s.coords != sink.coords:
                return False
        earlier = [(n.attr, load_coords(n)) for n in loads(sink_nodes(s))]
        if any(n in targets(sink) and c != sink.coords for n, c in earlier):
            return False
    phase.sinks.append(sink)
    return True


def _independent(phase: Phase, loops, sink) -> bool:
    """Append ``sink`` where it and the phase's own sinks, updates among them, touch nothing in common that is written."""
    if loops != phase.loops or any(not isinstance(s, (Store, Update)) for s in (sink, *phase.sinks)):
        return False
    reads, writes = ({n for n, _ in part} for part in accesses(sink))
    for s in phase.sinks:
        before, done = ({n for n, _ in part} for part in accesses(s))
        if done & (reads | writes) or before & writes:
            return False
    phase.sinks.append(sink)
    return True


def _inline_kept(phases: list[Phase], graph: Graph, kept: set[str]) -> set[str]:
    """Kept values that only their own phase reads become expressions again."""
    home = {s.resource: p for p in phases for s in p.sinks if isinstance(s, Store) and s.resource in kept}
    for p in phases:
        for s in p.sinks:
            for n in loads(sink_nodes(s)):
                if n.attr in home and home[n.attr] is not p:
                    del home[n.attr]
    if not home:
        return set()
    for p in phases:
        written = {t for s in p.sinks for t in targets(s)}
        value = {s.resource: s.value for s in p.sinks if isinstance(s, Store) and home.get(s.resource) is p and s.valid is None
                 and not any(n.attr in written - {s.resource} and n.attr not in home for n in loads([s.value]))}
        for r in [r for r, q in home.items() if q is p and r not in value]:
            del home[r]
        if not value:
            continue
        sub = _Substitute(graph, value)
        p.sinks = [sub.sink(s) for s in p.sinks if not (isinstance(s, Store) and s.resource in value)]
    return set(home)


class _Substitute(Renamer):
    """Replaces loads of some resources by the values stored there."""

    def __init__(self, graph: Graph, value: dict[str, Node]):
        super().__init__(graph, {}, {})
        self.value = value

    again = True

    def replaced(self, n: Node) -> Node | None:
        return self.value[n.attr] if n.op == "load" and n.attr in self.value else None


def split_reduction(stage: Stage, resources: list[Resource], graph: Graph, fresh, name):
    """A whole reduction to one element as two stages: leaves of CHUNK elements in parallel, then their combination. Section 12
    defines the tree that way and the order-free kinds do not mind, so the bits are the same. ``resources`` are the targets'.
    Returns (statements, new resources), or None where the stage is something else."""
    if stage.tasks or len(stage.body) != 1:
        return None
    (phase,) = stage.body
    if len(phase.loops) != 1 or len(phase.sinks) != 1:
        return None
    (axis,), (sink,) = phase.loops, phase.sinks
    if not isinstance(sink, Reduce) or axis.extent.const is not None and axis.extent.const <= CHUNK:
        return None
    g = graph
    chunk, inner, again = fresh(), fresh(), fresh()
    count, length = "%" + name("n"), "%" + name("l")
    const = lambda v: g("const", (), v)      # noqa: E731
    total = g("extent", (), axis.extent) if axis.extent.const is None else const(axis.extent.const)
    chunks = g("floordiv", (g("add", (total, const(CHUNK - 1))), const(CHUNK)))
    here = g("axis", (), chunk)
    start = g("mul", (here, const(CHUNK)))
    parts = [Resource(name("p"), "workspace", r.dt, (Extent.of(count),), why="leaves of a whole reduction") for r in resources]
    at = _AxisAt(g, axis.name, g("add", (start, g("axis", (), inner))))
    leaf = replace(at.sink(sink), targets=tuple(p.name for p in parts), coords=(here,), axis=inner)
    first = Stage(name("stage"), (Axis(chunk, Extent.of(count)),),
                  [Phase((), [Store(length, (), g("minimum", (g("sub", (total, start)), const(CHUNK))))]),
                   Phase((Axis(inner, Extent.of(length)),), [leaf])],
                  [Resource(length, "cell", "index", why="length of a leaf")], cost=stage.cost)
    kind = "sum" if sink.kind == "fma" else sink.kind
    arg = kind in ("argmax", "argmin")
    values = tuple(g("load", (g("axis", (), again),), p.name, p.dt) for p in (parts[:1] if arg else parts))
    join = replace(sink, axis=again, kind=kind, values=values)
    second = Stage(name("stage"), (), [Phase((Axis(again, Extent.of(count)),), [join])], cost=1)
    if arg:
        where = name("c")
        second.resources.append(Resource(where, "cell", "index", why="the winning leaf"))
        second.body[0].sinks[0] = replace(join, targets=(sink.targets[0], where), coords=())
        winner = g("load", (), where)
        some = g("lt", (winner, g("extent", (), Extent.of(count))), None, "bool")
        inside = g("gload", (some, const(0), winner), parts[1].name)
        index = g("select", (some, g("add", (g("mul", (winner, const(CHUNK))), inside)), winner))
        second.body.append(Phase((), [Store(sink.targets[1], sink.coords, index)]))
    cell = Resource(count, "cell", "index", why="number of leaves")
    return [Phase((), [Store(count, (), chunks)]), first, second], [cell, *parts]


class _AxisAt(Renamer):
    """Replaces one axis by an expression."""

    def __init__(self, graph: Graph, axis: str, value: Node):
        super().__init__(graph, {}, {})
        self.axis, self.value = axis, value

    def replaced(self, n: Node) -> Node | None:
        return self.value if n.op == "axis" and n.attr == self.axis else super().replaced(n)


def stage_cost(phases) -> int:
    return max(1, sum(count_nodes(sink_nodes(s)) for p in phases for s in p.sinks))


def outside(body, inside: set[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(resources read, resources written) by statements, those of the stage itself left out."""
    reads: dict[str, None] = {}
    writes: dict[str, None] = {}

    def walk(stmts):
        for s in stmts:
            if isinstance(s, Phase):
                for k in s.sinks:
                    for found, names in zip(accesses(k), (reads, writes)):
                        names.update((n, None) for n, _ in found)
            else:
                nodes = [getattr(s, f) for f in ("cond", "begin", "step") if hasattr(s, f)]
                reads.update((n.attr, None) for n in loads(nodes))
                for f in ("body", "then", "orelse"):
                    walk(getattr(s, f, ()))
    walk(body)
    return tuple(n for n in reads if n not in inside), tuple(n for n in writes if n not in inside)
