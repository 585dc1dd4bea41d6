"""Index functions: the expression of a value at given coordinates.

``pull`` walks definitions backwards and stops at what is stored: views, buffers, kept values and cells. Reshapes, transposes,
broadcasts and reads become arithmetic on coordinates. It decides nothing about storage.
"""
from __future__ import annotations

from dataclasses import dataclass

from ..kir import Extent, Op, Region, Scalar, Value
from ..kir.ops import ELEMENTWISE
from ..task import Combine, Graph, Node


@dataclass(frozen=True)
class Kept:
    """A stored value: its elements are ``resource[prefix + coordinates]``."""
    resource: str
    prefix: tuple[Node, ...] = ()


class Puller:
    """Expressions of one kernel. ``bind`` holds what is known of a value: a Node (scalars) or Kept."""

    def __init__(self, graph: Graph):
        self.g = graph
        self.define: dict[Value, Op] = {}
        self.bind: dict[Value, Node | Kept] = {}
        self.trace: list | None = None           # (value, coords) of every tensor evaluated, for axis classes
        self._memo: dict = {}
        self._depth = 0

    # -- small constructors
    def const(self, v, dt="index") -> Node:
        return self.g("const", (), v, dt)

    def extent(self, e: Extent) -> Node:
        return self.const(e.const) if e.const is not None else self.g("extent", (), e)

    def axis(self, name: str) -> Node:
        return self.g("axis", (), name)

    def add(self, a: Node, b: Node) -> Node:
        if a.op == "const" and b.op == "const":
            return self.const(a.attr + b.attr)
        if a.op == "const" and a.attr == 0:
            return b
        if b.op == "const" and b.attr == 0:
            return a
        return self.g("add", (a, b))

    def mul(self, a: Node, b: Node) -> Node:
        if a.op == "const" and b.op == "const":
            return self.const(a.attr * b.attr)
        for x, y in ((a, b), (b, a)):
            if x.op == "const" and x.attr in (0, 1):
                return y if x.attr else x
        return self.g("mul", (a, b))

    def _divmod(self, a: Node, e: Extent) -> tuple[Node, Node]:
        if e.const == 1:
            return a, self.const(0)
        n = self.extent(e)
        return self.g("floordiv", (a, n)), self.g("mod", (a, n))

    # -- values
    def scalar(self, v: Value) -> Node:
        return self.pull(v, ())

    def pull(self, v: Value, co: tuple[Node, ...], guard: Node | None = None) -> Node:
        """The element of ``v`` at ``co`` (no coordinates for scalars). Under ``guard`` memory is touched only where it is True."""
        if self._depth == 0:
            self._memo = {}                              # what is known of values changes between pulls
        self._depth += 1
        try:
            return self._chain(v, co, guard)
        finally:
            self._depth -= 1

    def _chain(self, v: Value, co, guard) -> Node:
        """``pull`` with an explicit stack for elementwise chains, which may be long, and a memo, since they share."""
        memo, stack = self._memo, [v]
        while stack:
            w = stack[-1]
            if (w, co, guard) in memo:
                stack.pop()
                continue
            op = None if w in self.bind else self.define[w]
            if op is None or op.kind not in ELEMENTWISE:
                memo[w, co, guard] = self._element(w, co, guard)
                continue
            missing = [x for x in op.args if (x, co, guard) not in memo]
            if missing:
                stack += missing
                continue
            if co and self.trace is not None:
                self.trace.append((w, co))
            attrs = frozenset((n, x) for n, x in op.attrs.items() if x) or None
            memo[w, co, guard] = self.g(op.kind, [memo[x, co, guard] for x in op.args], attrs, w.type.dt)
        return memo[v, co, guard]

    def _element(self, v: Value, co, guard) -> Node:
        """Where the chain ends: what is stored, constants, reads and changes of shape."""
        b = self.bind.get(v)
        if b is not None:
            if isinstance(b, Node):
                return b
            return self.load(b.resource, b.prefix + tuple(co), v.type.dt, guard)
        op = self.define[v]
        if co and self.trace is not None:
            self.trace.append((v, co))
        k, a = op.kind, op.args
        match k:
            case "const":
                return self.const(op.attrs["value"], v.type.dt)
            case "extent":
                return self.extent(op.attrs["e"])
            case "broadcast":
                return self.pull(a[0], self._narrow(a[0].type.shape, v.type.shape, co), guard)
            case "expand":
                i = op.attrs["axis"]
                return self.pull(a[0], co[:i] + co[i + 1:], guard)
            case "transpose":
                src = [None] * len(co)
                for i, p in enumerate(op.attrs["perm"]):
                    src[p] = co[i]
                return self.pull(a[0], tuple(src), guard)
            case "reshape":
                return self.pull(a[0], self._reshape(a[0].type.shape, v.type.shape, co), guard)
            case "join":
                last = self.g("eq", (co[-1], self.const(0)), None, "bool")
                return self.g("select", (last, self.pull(a[0], co[:-1], guard), self.pull(a[1], co[:-1], guard)), None, v.type.dt)
            case "indices":
                return self.member(a[0], co[0])
            case "read" | "gather":
                return self._access(op, co, guard)
        raise AssertionError(f"{k} is no index function")

    def load(self, resource: str, coords, dt: str, guard: Node | None = None) -> Node:
        if guard is None:
            return self.g("load", coords, resource, dt)
        zero = self.const(False if dt == "bool" else 0.0 if dt[0] in "fb" else 0, dt)
        return self.g("gload", (guard, zero, *coords), resource, dt)

    def _access(self, op: Op, co, guard) -> Node:
        src, idx, (valid, fill) = self.split(op)
        dt = op.result.type.dt
        if valid is not None:
            ok, other = self.pull(valid, co, guard), self.pull(fill, co, guard)
            both = ok if guard is None else self.g("and", (guard, ok), None, "bool")
            coords = self.coords(src, idx, co, guard)
            if isinstance(self.bind.get(src), Kept) or src not in self.define:
                return self.g("gload", (both, other, *self._full(src, coords)), self._resource(src), dt)
            return self.g("select", (ok, self.pull(src, coords, both), other), None, dt)
        coords = self.coords(src, idx, co, guard)
        if op.kind == "gather":
            return self.pull(src, coords, guard)
        return self.load(self._resource(src), self._full(src, coords), dt, guard)

    def _resource(self, memory: Value) -> str:
        b = self.bind.get(memory)
        return b.resource if isinstance(b, Kept) else memory.name

    def _full(self, memory: Value, coords):
        b = self.bind.get(memory)
        return b.prefix + tuple(coords) if isinstance(b, Kept) else tuple(coords)

    def split(self, op: Op):
        """(source, index values, (valid, fill)) of a read or gather; (destination, indices, (valid, value)) of a write."""
        a = list(op.args)
        if op.kind == "write":
            valid = a.pop() if op.attrs.get("guard") else None
            value = a.pop()
            return a[0], a[1:], (valid, value)
        valid = fill = None
        if op.attrs.get("guard"):
            fill, valid = a.pop(), a.pop()
        return a[0], a[1:], (valid, fill)

    def coords(self, src: Value, idx, co, guard=None) -> tuple[Node, ...]:
        """Source coordinates of the result element ``co`` of an index relation."""
        out, pos, joint = [], 0, None
        for i in idx:
            t = i.type
            if hasattr(t, "extent"):
                out.append(self.member(i, co[pos]))
                pos += 1
            elif isinstance(t, Scalar):
                out.append(self.pull(i, (), guard))
            else:
                if joint is None:
                    joint = co[pos:pos + len(t.shape)]
                    pos += len(t.shape)
                out.append(self.pull(i, tuple(joint), guard))
        return tuple(out)

    def member(self, domain: Value, ordinal: Node) -> Node:
        """The coordinate of a domain's member."""
        begin, _, step = self.define[domain].args[:3]
        return self.add(self.pull(begin, ()), self.mul(ordinal, self.pull(step, ())))

    # -- shape arithmetic
    def _narrow(self, src, dst, co):
        n = len(dst) - len(src)
        return tuple(self.const(0) if s.const == 1 and d.const != 1 else c for s, d, c in zip(src, dst[n:], co[n:]))

    def _reshape(self, src, dst, co):
        """Coordinates in ``src`` of the element ``co`` of ``dst``. Axes are matched in the smallest groups of equal size, so a
        split or a merge of neighbouring axes leaves the others alone."""
        out: list[Node] = []
        for i0, i1, j0, j1 in match_axes(src, dst):
            flat = self.const(0)
            for j in range(j0, j1):
                flat = self.add(self.mul(flat, self.extent(dst[j])), co[j])
            part = []
            for i in range(i1 - 1, i0, -1):
                flat, rest = self._divmod(flat, src[i])
                part.append(rest)
            if i1 > i0:
                part.append(flat)
            out += reversed(part)
        return tuple(out)

    # -- functions of elements
    def select(self, op: Op) -> None:
        """A branch over scalars as selections between the values of both sides."""
        cond = self.scalar(op.args[0])
        for region in op.regions:
            self.defined(region)
        for v, a, b in zip(op.results, op.regions[0].yields, op.regions[1].yields):
            self.bind[v] = self.g("select", (cond, self.scalar(a), self.scalar(b)), None, v.type.dt)

    def defined(self, region: Region) -> None:
        """Make what a region of pure operations defines known."""
        for o in region.ops:
            for r in o.results:
                self.define[r] = o
            if o.kind == "if":
                self.select(o)

    def combine(self, op: Op) -> Combine:
        """The combine region of a generic operation, an element function, as a function of single elements."""
        (region,) = op.regions
        k = len(region.params) // 2
        holes = [self.g("hole", (), i, v.type.dt) for i, v in enumerate(region.params)]
        self.bind.update(zip(region.params, holes))
        saved, self.trace = self.trace, None
        self.defined(region)
        results = tuple(self.pull(y, tuple(self.const(0) for _ in y.type.shape)) for y in region.yields)
        self.trace = saved
        return Combine(tuple(holes[:k]), tuple(holes[k:]), results)


def match_axes(src, dst):
    """Groups (i0, i1, j0, j1) with prod(src[i0:i1]) == prod(dst[j0:j1]) by normal form; one group when nothing smaller is known."""
    groups, i, j = [], 0, 0
    while i < len(src) or j < len(dst):
        found = None
        for total in range(2, len(src) - i + len(dst) - j + 1):
            for p in range(1, total):
                q = total - p
                if i + p <= len(src) and j + q <= len(dst) and _prod(src[i:i + p]) == _prod(dst[j:j + q]):
                    found = (p, q)
                    break
            if found:
                break
        if found is None:
            groups.append((i, len(src), j, len(dst)))
            break
        p, q = found
        groups.append((i, i + p, j, j + q))
        i, j = i + p, j + q
    return groups


def _prod(extents) -> Extent:
    total = Extent.of(1)
    for e in extents:
        total = total * e
    return total
