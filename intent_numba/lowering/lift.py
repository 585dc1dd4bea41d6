"""An axis that every phase of a task carries becomes an axis of the grid.

``for h in I.parallel(heads)`` around whole-tensor statements gives tasks whose phases all loop over the rows of one head. Where the
rows never meet, in scratch or in memory, they are tasks as well: more of them, and a matrix stage can be run in blocks of rows.
Only stages that contract are worth it. Task scalars that no row decides are computed by every task.
"""
from __future__ import annotations

from dataclasses import dataclass, replace

from ..kir import Extent
from ..task import Axis, Contract, For, Graph, If, Loop, Phase, Reduce, Resource, Scan, Stage, Store
from .uses import Renamer, load_coords, loads, sink_nodes, targets


@dataclass
class Class:
    """``axes``: phase id -> the loop of it that is lifted; ``dims``: scratch -> the dimension that it indexes."""
    extent: Extent
    axes: dict[int, str]
    dims: dict[str, int]


def lift(stage: Stage, graph: Graph, name) -> Stage:
    """The stage with one more task axis, called ``name()``, or as it is."""
    phases = list(_phases(stage.body))
    sinks = [s for ph in phases for s in ph.sinks]
    if stage.kind != "phases" or not any(isinstance(s, Contract) for s in sinks):
        return stage
    if not all(isinstance(s, (Store, Reduce, Scan, Contract)) for s in sinks):
        return stage
    scratch = {r.name for r in stage.resources if r.shape and not r.axes}
    cells = {r.name for r in stage.resources if not r.shape}
    if any(n.attr in scratch for n in loads(_control(stage.body))):
        return stage
    for ph in phases:
        for s in ph.sinks:
            for a in (*s.m_axes, *s.n_axes) if isinstance(s, Contract) else ():
                found = _grow(phases, ph, a, scratch)
                if found is not None and not {x for s in found.extent.symbols for x in (s, s[1:])} & cells \
                        and all(_apart(p, found, scratch, cells) for p in phases) and _views_apart(phases, found, scratch | cells):
                    return _lifted(stage, found, graph, name())
    return stage


def _phases(body):
    for s in body:
        match s:
            case Phase():
                yield s
            case For() | Loop():
                yield from _phases(s.body)
            case If():
                yield from _phases(s.then)
                yield from _phases(s.orelse)


def _control(body):
    """What decides loops and branches."""
    for s in body:
        match s:
            case For():
                yield from (s.begin, s.step)
                yield from _control(s.body)
            case Loop():
                yield from _control(s.body)
            case If():
                yield s.cond
                yield from _control(s.then)
                yield from _control(s.orelse)


def _accesses(ph: Phase):
    """(resource, coordinates, written) of everything a phase touches."""
    for s in ph.sinks:
        yield from ((n.attr, load_coords(n), False) for n in loads(sink_nodes(s)))
        yield from ((t, s.coords, True) for t in targets(s))


def _grow(phases, start: Phase, axis: str, scratch) -> Class | None:
    """Everything that shares the axis through scratch; None where scratch is indexed along it by anything else."""
    extents = {a.name: a.extent for a in start.loops}
    found, todo = Class(extents[axis], {id(start): axis}, {}), [start]
    while todo:
        ph = todo.pop()
        a = found.axes[id(ph)]
        for r, coords, _ in _accesses(ph):
            if r not in scratch:
                continue
            at = [k for k, c in enumerate(coords) if c.op == "axis" and c.attr == a]
            if r in found.dims and at != [found.dims[r]] or len(at) > 1:
                return None
            if at and r not in found.dims:
                found.dims[r] = at[0]
                for other in phases:
                    known = _axis_of(other, r, at[0], found.extent)
                    if known is None:
                        continue
                    if not known or found.axes.setdefault(id(other), known) != known:
                        return None
                    todo.append(other)
    return found


def _axis_of(ph: Phase, resource: str, dim: int, extent: Extent) -> str | None:
    """The loop that indexes a dimension of scratch in this phase; None where the phase does not touch it, "" where it is no plain loop."""
    nodes = {coords[dim] for r, coords, _ in _accesses(ph) if r == resource}
    if not nodes:
        return None
    (node, *others) = nodes
    loop = [a for a in ph.loops if node.op == "axis" and a.name == node.attr and a.extent == extent]
    return loop[0].name if loop and not others else ""


def _apart(ph: Phase, found: Class, scratch, cells) -> bool:
    """Whether the rows of a phase are independent, or the phase only sets cells that all rows share."""
    a = found.axes.get(id(ph))
    if a is None:
        touched = list(_accesses(ph))
        return not ph.loops and all(r in cells for r, _, written in touched if written) and not any(r in scratch for r, _, _ in touched)
    if any(x.name in found.axes.values() for x in ph.loops if x.name != a):
        return False
    for s in ph.sinks:
        match s:
            case Reduce() | Scan():
                if s.axis == a:
                    return False
            case Contract():
                if a in s.axes:
                    return False
    return all(r in found.dims if r in scratch else r not in cells for r, _, written in _accesses(ph) if written) \
        and all(r in found.dims for r, _, _ in _accesses(ph) if r in scratch)


def _views_apart(phases, found: Class, private) -> bool:
    """Whether what is written outside of the task is indexed by the axis at one common position, wherever it is touched."""
    places: dict[str, set[int]] = {}
    written = set()
    for ph in phases:
        a = found.axes.get(id(ph))
        for r, coords, stored in _accesses(ph):
            if r not in private:
                here = {k for k, c in enumerate(coords) if c.op == "axis" and c.attr == a}
                places[r] = places.get(r, here) & here
                if stored:
                    written.add(r)
    return all(places[r] for r in written)


def _lifted(stage: Stage, found: Class, graph: Graph, name: str) -> Stage:
    perms = {}
    for r in stage.resources:
        if r.name in found.dims:
            k = found.dims[r.name]
            perms[r.name] = (k, *(i for i in range(len(r.shape)) if i != k))
    rename = Renamer(graph, {a: name for a in found.axes.values()}, perms)

    def resource(r: Resource) -> Resource:
        perm = perms.get(r.name)
        return r if perm is None else replace(r, shape=tuple(r.shape[i] for i in perm), axes=(name,))

    def walk(body):
        out = []
        for s in body:
            match s:
                case Phase():
                    a = found.axes.get(id(s))
                    out.append(Phase(tuple(x for x in s.loops if x.name != a), [rename.sink(k) for k in s.sinks]))
                case For() | Loop():
                    out.append(replace(s, body=walk(s.body)))
                case If():
                    out.append(replace(s, then=walk(s.then), orelse=walk(s.orelse)))
                case _:
                    out.append(s)
        return out
    tasks = (*stage.tasks, Axis(name, found.extent))
    return replace(stage, tasks=tasks, body=walk(stage.body), resources=[*map(resource, stage.resources)])
