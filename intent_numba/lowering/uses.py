"""Sinks with their axes, and the groups of sinks that one stage can run.

A use is one thing to compute: a reduction, a scan, a contraction, a store. Iteration axes belong to uses. Classes of axes are
formed by union-find where one use reads, at a plain axis, what another produced along an axis, or where both evaluate the same
value. A union that would put two axes of one use into one class is refused. A class that every use of a group carries, and along
which all their memory accesses agree, is lifted: the group's tasks are independent along it.
"""
from __future__ import annotations

from dataclasses import dataclass, field

from ..task import Axis, Combine, Contract, Graph, Node, Reduce, Scan, Store, Update


@dataclass
class Use:
    """``par``: axes of the parallel points around it; ``own``: its other axes; ``fixed``: axes that cannot be lifted.
    ``sink`` is written in the use's own axes. ``dims``: for every resource produced here, its axes in order."""
    sink: Store | Reduce | Scan | Contract
    par: tuple[str, ...]
    own: tuple[str, ...]
    fixed: frozenset[str] = frozenset()
    produced: tuple[str, ...] = ()
    links: list[tuple[str, str]] = field(default_factory=list)
    reads: list[tuple[str, tuple[Node, ...]]] = field(default_factory=list)
    writes: list[tuple[str, tuple[Node, ...]]] = field(default_factory=list)
    cost: int = 1
    pos: int = -1

    @property
    def axes(self) -> tuple[str, ...]:
        return self.par + self.own

    @property
    def chain(self) -> bool:
        return isinstance(self.sink, Contract)


def sink_nodes(sink) -> list[Node]:
    """Every expression a sink evaluates, coordinates of its targets included."""
    match sink:
        case Store():
            out = [*sink.coords, sink.value]
            return out if sink.valid is None else out + [sink.valid]
        case Contract():
            return [*sink.coords, sink.a, sink.b]
        case Update():
            out = [*sink.at, *sink.coords, *sink.values] + ([] if sink.valid is None else [sink.valid])
            return out + list(sink.combine.results) if sink.combine else out
        case _:
            out = [*sink.coords, *sink.values, *sink.identities]
            return out + list(sink.combine.results) if sink.combine else out


def targets(sink) -> tuple[str, ...]:
    match sink:
        case Store():
            return (sink.resource,)
        case Contract():
            return (sink.target,)
        case Update():
            return sink.targets if sink.kind == "load" else (sink.resource, *sink.targets)
        case _:
            return sink.targets


def accesses(sink) -> tuple[list, list]:
    """What a sink reads and what it writes, as (resource, coordinates) pairs. An update does both at its element."""
    reads = [(n.attr, load_coords(n)) for n in loads(sink_nodes(sink))]
    if not isinstance(sink, Update):
        return reads, [(t, sink.coords) for t in targets(sink)]
    here = [(sink.resource, sink.at)]
    return reads + here, [(t, sink.coords) for t in sink.targets] + ([] if sink.kind == "load" else here)


def unordered(sink) -> bool:
    """An atomic whose points may act in any order, and so in any tasks."""
    return isinstance(sink, Update) and not sink.ascending


def loads(roots) -> list[Node]:
    """The load and gload nodes under some expressions, each once."""
    seen: set[int] = set()
    out, todo = [], list(roots)
    while todo:
        n = todo.pop()
        if id(n) in seen:
            continue
        seen.add(id(n))
        if n.op in ("load", "gload"):
            out.append(n)
        todo.extend(n.args)
    return out


def load_coords(n: Node) -> tuple[Node, ...]:
    return n.args if n.op == "load" else n.args[2:]


def count_nodes(roots) -> int:
    from .analysis import COST
    seen: set[int] = set()
    total, todo = 0, list(roots)
    while todo:
        n = todo.pop()
        if id(n) in seen:
            continue
        seen.add(id(n))
        total += COST.get(n.op, 1)
        todo.extend(n.args)
    return total


class Classes:
    """Union-find over axis names with the refusal rule."""

    def __init__(self, parent=None):
        self.parent = dict(parent or {})

    def copy(self) -> "Classes":
        return Classes(self.parent)

    def add(self, axis: str):
        self.parent.setdefault(axis, axis)

    def find(self, a: str) -> str:
        p = self.parent
        while p.get(a, a) != a:
            a = p[a]
        return a

    def union(self, a: str, b: str, uses, extents) -> bool:
        a, b = self.find(a), self.find(b)
        if a == b:
            return True
        if extents[a] != extents[b]:
            return False
        for u in uses:
            classes = {self.find(x) for x in u.axes}
            if a in classes and b in classes:
                return False
        self.parent[b] = a
        return True


@dataclass
class Group:
    """Uses that run as one stage, the classes of their axes and the lifted classes in order."""
    uses: list[Use] = field(default_factory=list)
    classes: Classes = field(default_factory=Classes)
    lifted: tuple[str, ...] = ()

    def written(self) -> set[str]:
        return {name for u in self.uses for name, _ in u.writes} | {u.sink.resource for u in self.uses if unordered(u.sink)}


def extend(group: Group, use: Use, extents, aliases) -> Group | None:
    """The group with ``use`` added, or None when they cannot (or should not) share a stage."""
    uses = group.uses + [use]
    classes = group.classes.copy()
    for a in use.axes:
        classes.add(a)
    accesses, together = _shared_accesses(uses)
    written = set(accesses) | set(together)
    for a, b in use.links:
        if a in classes.parent and b in classes.parent:
            classes.union(a, b, uses, extents)
    for seen in accesses.values():
        for coords in seen[1:]:
            for x, y in zip(map(shifted, seen[0]), map(shifted, coords)):
                if x is not None and y is not None and x[1] == y[1]:
                    classes.union(x[0], y[0], uses, extents)
    lifted = _lifted(uses, classes, accesses, together)
    for name in written:
        for u in uses:
            for other in [n for n, _ in u.reads] + [n for n, _ in u.writes] + ([u.sink.resource] if unordered(u.sink) else []):
                if frozenset((name, other)) in aliases and not (other == name and name in together):
                    return None if group.uses else Group(uses, classes, ())
    if group.uses:
        if not lifted:
            return None
        if use.chain and len(lifted) < max(len(group.lifted), len(_free(use, classes))):
            made = {n for u in group.uses for n in u.produced}
            rank = max((len(c) for n, c in use.reads if n in made), default=0)
            if rank <= len(lifted):
                return None
        if _turns(use, group.uses, classes, set(lifted)):
            return None
    return Group(uses, classes, lifted)


def _turns(use: Use, before, classes: Classes, lifted: set[str]) -> bool:
    """Would sharing a stage make a store walk its target against memory order, only to save a pass over values of lower rank?"""
    if not isinstance(use.sink, Store) or not use.sink.coords or use.sink.coords[-1].op != "axis":
        return False
    last, free = classes.find(use.sink.coords[-1].attr), set(_free(use, classes))
    return last in lifted and not free <= lifted and all({classes.find(a) for a in u.axes} <= lifted for u in before)


def _shared_accesses(uses) -> tuple[dict, dict]:
    """(written resource -> coordinates of all its accesses, resource -> the unordered updates that are its only accesses)."""
    written: dict[str, list] = {}
    atomic: dict[str, list] = {}
    for u in uses:
        for name, coords in u.writes:
            written.setdefault(name, []).append(coords)
        if unordered(u.sink):
            atomic.setdefault(u.sink.resource, []).append(u)
    reads = [r for u in uses for r in u.reads]
    for name in list(atomic):
        if name in written or any(n == name for n, _ in reads):
            written.setdefault(name, []).extend(u.sink.at for u in atomic.pop(name))
    for name, coords in reads:
        if name in written:
            written[name].append(coords)
    return written, atomic


def _free(use: Use, classes: Classes) -> list[str]:
    return [classes.find(a) for a in use.axes if a not in use.fixed]


def _lifted(uses, classes: Classes, accesses, together) -> tuple[str, ...]:
    order = _free(uses[-1] if isinstance(uses[-1].sink, Store) else uses[0], classes)
    common = [c for c in dict.fromkeys(order)]
    for u in uses:
        free = set(_free(u, classes))
        common = [c for c in common if c in free]
    made = {n for u in uses for n in (*u.produced, *(n for n, _ in u.writes))}
    for seen in accesses.values():
        if len(seen) == 1:                                   # one store: its elements are distinct, wherever they lie (decision 33)
            continue
        apart = {_class_of_all(at, classes, made) for at in zip(*seen)}
        common = [c for c in common if c in apart]
    for several in together.values():
        if len(several) > 1:                                 # one point's updates keep their order, other points' have none
            points = set.intersection(*(set(u.par) for u in several))
            common = [c for c in common if c in {classes.find(a) for a in points}]
    return tuple(common)


def _class_of_all(coords: tuple[Node, ...], classes: Classes, made: set[str]) -> str | None:
    """The class that moves all these coordinates one by one, from one offset that the group does not change."""
    places = [shifted(c) for c in coords]
    if None in places:
        return None
    kinds = {(classes.find(axis), offset) for axis, offset in places}
    if len(kinds) > 1 or made & {n.attr for n in loads(coords)}:
        return None
    return kinds.pop()[0]


def shifted(coord: Node) -> tuple[str, tuple] | None:
    """(axis, offset) where a coordinate is an axis and an offset that no axis decides. Equal offsets are equal tuples."""
    if coord.op == "axis":
        return coord.attr, ()
    axis, offset, todo = None, [], [(coord, 1)]
    while todo:
        n, sign = todo.pop()
        if n.op in ("add", "sub"):
            todo += [(n.args[0], sign), (n.args[1], sign if n.op == "add" else -sign)]
        elif n.op != "axis":
            offset.append((sign, n))
        elif axis is None and sign > 0:
            axis = n.attr
        else:
            return None
    if axis is None or not all(_uniform(n) for _, n in offset):
        return None
    return axis, tuple(sorted((sign, id(n)) for sign, n in offset))


def _uniform(root: Node) -> bool:
    """Is an expression made of constants and cells only?"""
    todo = [root]
    while todo:
        n = todo.pop()
        if n.op in ("axis", "gload") or n.op == "load" and n.args:
            return False
        todo += n.args
    return True


class Renamer:
    """Rewrites expressions of a group: every axis to its class, coordinates of the group's scratch to lifted axes first."""

    def __init__(self, graph: Graph, names: dict[str, str], perms: dict[str, tuple[int, ...]]):
        self.g, self.names, self.perms = graph, names, perms
        self.memo: dict[int, Node] = {}

    def node(self, n: Node) -> Node:
        memo, stack = self.memo, [n]
        while stack:                                     # long chains of operations would exhaust recursion
            m = stack[-1]
            if id(m) in memo:
                stack.pop()
                continue
            m2 = self.replaced(m)
            if m2 is not None:
                if m2 is not m and id(m2) not in memo and self.again:
                    stack.append(m2)
                    continue
                memo[id(m)] = memo.get(id(m2), m2) if self.again else m2
                continue
            missing = [a for a in m.args if id(a) not in memo]
            if missing:
                stack += missing
                continue
            memo[id(m)] = self.rebuilt(m, [memo[id(a)] for a in m.args])
        return memo[id(n)]

    again = False
    """Whether what ``replaced`` gives is to be rewritten itself."""

    def replaced(self, n: Node) -> Node | None:
        """What stands for a node without a look at its operands, or None."""
        if n.op == "axis":
            return self.g("axis", (), self.names.get(n.attr, n.attr))
        return None if n.args or n.op in ("load", "gload") else n

    def rebuilt(self, n: Node, args: list[Node]) -> Node:
        if n.op in ("load", "gload") and n.attr in self.perms:
            k = 0 if n.op == "load" else 2
            args = args[:k] + self.order(n.attr, args[k:])
        return self.g(n.op, args, n.attr, n.dt)

    def order(self, resource: str, coords) -> list[Node]:
        perm = self.perms.get(resource)
        return list(coords) if perm is None else [coords[i] for i in perm]

    def coords(self, resource: str, coords) -> tuple[Node, ...]:
        return tuple(self.order(resource, [self.node(c) for c in coords]))

    def nodes(self, ns) -> tuple[Node, ...]:
        return tuple(map(self.node, ns))

    def sink(self, s):
        ax = lambda a: self.names.get(a, a)      # noqa: E731
        match s:
            case Store():
                return Store(s.resource, self.coords(s.resource, s.coords), self.node(s.value), s.valid and self.node(s.valid))
            case Reduce():
                return Reduce(s.targets, self.coords(s.targets[0], s.coords), ax(s.axis), s.kind, s.form, self.nodes(s.values),
                              self.nodes(s.identities), self._combine(s.combine))
            case Scan():
                return Scan(s.targets, self.coords(s.targets[0], s.coords), ax(s.axis), s.kind, s.form, self.nodes(s.values),
                            s.inclusive, s.reverse, self.nodes(s.identities), self._combine(s.combine))
            case Update():
                at, coords = self.coords(s.resource, s.at), self.coords(s.targets[0], s.coords) if s.targets else ()
                return Update(s.resource, at, s.kind, s.order, self.nodes(s.values), s.valid and self.node(s.valid), s.ascending,
                              self._combine(s.combine), s.old, s.success, coords)
            case Contract():
                names = lambda axes: tuple(map(ax, axes))      # noqa: E731
                return Contract(s.target, self.coords(s.target, s.coords), names(s.axes), self.node(s.a), self.node(s.b),
                                names(s.m_axes), names(s.n_axes), names(s.batch_axes), s.epilogue, s.keep)

    def _combine(self, c: Combine | None):
        return c and Combine(c.left, c.right, self.nodes(c.results))


def phase_loops(use: Use, names, lifted, extents) -> tuple[Axis, ...]:
    out = []
    for a in use.axes:
        n = names.get(a, a)
        if n not in lifted:
            out.append(Axis(n, extents[a]))
    return tuple(out)
