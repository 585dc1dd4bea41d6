"""Sinks: reductions, scans, contractions and stores as uses of the open group.

Part of ``blocks.Lowering``. A sink pulls the expressions it needs, declares what it produces, and joins the open group or starts a
new one; a store that would read other elements of its own target computes its values first.
"""
from __future__ import annotations

from dataclasses import replace

from ..kir import Extent, Op, Value
from ..kir.ops import FIXED_ORDER
from ..kir.types import is_float
from ..task import Contract, Node, Reduce, Scan, Store, Update
from .context import Context
from .pull import Kept
from .uses import accesses, count_nodes, extend, load_coords, loads, sink_nodes, unordered, Use


class Sinks:
    """Operations that compute something at every point of their axes."""

    def produce(self, v: Value, axes, prefix: str = "s") -> str:
        """Declare the storage of a value over ``axes`` (its kind is settled when its group is flushed)."""
        name = self.fresh(prefix)
        self.dims[name], self.dt[name] = tuple(axes), v.type.dt
        self.wanted[name] = v
        return name

    def keep(self, v: Value, par, pos, ctx: Context):
        own = tuple(self.axis(e) for e in v.type.shape)
        self.pull.trace = trace = []
        node = self.pull.pull(v, self.nodes(own))
        name = self.produce(v, par + own, "t")
        self.use(Store(name, self.nodes(par + own), node), par, own, (), (name,), pos, ctx, trace)
        self.pull.bind[v] = Kept(name, self.nodes(par))

    def reduction(self, op: Op, par, pos, ctx: Context):
        scan, arg = op.kind == "scan", op.kind == "arg_reduce"
        generic = op.attrs["kind"] == "generic"
        k = len(op.args) // 2 if generic else 1
        src = op.args[:k]
        own = tuple(self.axis(e) for e in src[0].type.shape)
        ax = op.attrs["axis"]
        rest = own[:ax] + own[ax + 1:]
        self.pull.trace = trace = []
        values = tuple(self.pull.pull(s, self.nodes(own)) for s in src)
        ids = tuple(self.pull.pull(i, self.nodes(rest) if i.type.shape else ()) for i in op.args[k:])
        combine = self.pull.combine(op) if generic else None
        kind = "arg" + op.attrs["kind"] if arg else op.attrs["kind"]
        form = "tree" if kind == "generic" or kind in FIXED_ORDER and is_float(src[0].type.dt) else "free"
        held = par + (own if scan else rest)
        names = tuple(self.produce(r, held) for r in op.results)
        at = self.nodes(held)
        if scan:
            inclusive, reverse = op.attrs.get("inclusive", True), op.attrs.get("reverse", False)
            sink = Scan(names, at, own[ax], kind, form, values, inclusive, reverse, ids, combine)
        else:
            sink = Reduce(names, at, own[ax], kind, form, values, ids, combine)
        self.use(sink, par, own, (own[ax],), names, pos, ctx, trace)
        for r, n in zip(op.results, names):
            self.pull.bind[r] = Kept(n, self.nodes(par))

    def contract(self, op: Op, par, pos, ctx: Context):
        a, b = op.args
        reduce, batch = op.attrs["reduce"], op.attrs["batch"]
        red_l, red_r = [i for i, _ in reduce], [j for _, j in reduce]
        bat = {j: i for i, j in batch}
        total = Extent.of(1)
        for i in red_l:
            total = total * a.type.shape[i]
        kk = self.axis(total)
        left = {i: self.axis(e) for i, e in enumerate(a.type.shape) if i not in red_l}
        right = {j: left[bat[j]] if j in bat else self.axis(e) for j, e in enumerate(b.type.shape) if j not in red_r}
        flat, parts = self.pull.axis(kk), []
        for i in reversed(red_l[1:]):
            flat, rest = self.pull._divmod(flat, a.type.shape[i])
            parts.append(rest)
        parts = [flat] + parts[::-1]
        la = tuple(self.pull.axis(left[i]) if i in left else parts[red_l.index(i)] for i in range(len(a.type.shape)))
        rb = tuple(self.pull.axis(right[j]) if j in right else parts[red_r.index(j)] for j in range(len(b.type.shape)))
        self.pull.trace = trace = []
        x, y = self.pull.pull(a, la), self.pull.pull(b, rb)
        shared = tuple(left[i] for i, _ in batch)
        m = tuple(n for n in left.values() if n not in shared)
        n_axes = tuple(right[j] for j in right if j not in bat)
        held = par + tuple(left.values()) + n_axes
        name = self.produce(op.result, held)
        if op.attrs["form"] == "chain":
            sink = Contract(name, self.nodes(held), (kk,), x, y, m, n_axes, shared)
        else:
            sink = Reduce((name,), self.nodes(held), kk, "fma", "tree" if is_float(op.result.type.dt) else "free", (x, y))
        self.use(sink, par, held[len(par):] + (kk,), (kk,), (name,), pos, ctx, trace)
        self.pull.bind[op.result] = Kept(name, self.nodes(par))

    def write(self, op: Op, par, pos, ctx: Context):
        dst, idx, (valid, value) = self.pull.split(op)
        own = tuple(self.axis(e) for e in value.type.shape)
        at = self.nodes(own)
        self.pull.trace = trace = []
        coords = self.pull._full(dst, self.pull.coords(dst, idx, at))
        node = self.pull.pull(value, at)
        ok = None if valid is None else self.pull.pull(valid, at)
        self.use(Store(self.pull._resource(dst), coords, node, ok), par, own, (), (), pos, ctx, trace)

    def use(self, sink, par, own, fixed, produced, pos, ctx: Context, trace):
        """Add a sink to the open group, or start a new one. A store that would read other elements of its own target computes its
        values first."""
        if isinstance(sink, (Store, Update)):
            sink = self.separate(sink, par, own, pos, ctx, trace)
        u = Use(sink, par, own, frozenset(fixed), produced, cost=count_nodes(sink_nodes(sink)))
        reads, writes = accesses(sink)
        free = {sink.resource} if unordered(sink) else ()
        u.reads = [(n, co) for n, co in reads if n not in self.cells and n not in free]
        u.writes = [(n, co) for n, co in writes if n not in free]
        u.pos = pos
        for v, co in trace:
            if all(c.op == "axis" for c in co):
                names = tuple(c.attr for c in co)
                first = ctx.touched.setdefault(v, names)
                u.links += zip(first, names)
        group = extend(ctx.group, u, self.extents, self.alias)
        if group is None:
            self.flush(ctx)
            for v, co in trace:
                if all(c.op == "axis" for c in co):
                    ctx.touched[v] = tuple(c.attr for c in co)
            group = extend(ctx.group, u, self.extents, self.alias)
        ctx.group = group

    def separate(self, sink: Store | Update, par, own, pos, ctx: Context, trace) -> Store | Update:
        """An update reads and writes at once, so whatever else it reads of its target is computed before."""
        plain = isinstance(sink, Store)

        def clash(n):
            return any(self.conflicts(x.attr, sink.resource) and not (plain and x.attr == sink.resource and load_coords(x) == sink.coords)
                       for x in loads([n]))
        at = self.nodes(par + own)

        def first(n: Node) -> Node:
            name = self.fresh("u")
            self.dims[name], self.dt[name] = par + own, n.dt
            self.use(Store(name, at, n), par, own, (), (name,), pos, ctx, list(trace))
            return self.g("load", at, name, n.dt)
        if not plain:
            at_, values = (tuple(first(n) if clash(n) else n for n in part) for part in (sink.at, sink.values))
            valid = first(sink.valid) if sink.valid is not None and clash(sink.valid) else sink.valid
            return replace(sink, at=at_, values=values, valid=valid)
        value = first(sink.value) if clash(sink.value) else sink.value
        valid = first(sink.valid) if sink.valid is not None and clash(sink.valid) else sink.valid
        coords = tuple(first(c) if clash(c) else c for c in sink.coords)
        return Store(sink.resource, coords, value, valid)
