"""Control flow and the memory it needs: carries, branch results, buffers, parallel points.

Part of ``blocks.Lowering``. At the top level a loop or branch contains stages; inside a task it contains phases. Control over scalars
only becomes a stage of one task. Carries are assigned simultaneously.
"""
from __future__ import annotations

from ..kir import Op, Region, Scalar, Tensor, Value
from ..task import Axis, For, Free, If, Loop, Phase, Resource, Stage, Store
from .analysis import END, independent, scalar_only, selectable
from .context import Context, OUTSIDE
from .interchange import interchange
from .lift import lift
from .pull import Kept
from .updates import in_turn
from .uses import count_nodes, loads, sink_nodes


class Control:
    """Operations with regions, and named places for the values that cross them."""

    def storage(self, v_type, ctx: Context, prefix: str, why: str) -> str:
        """A named place for a value of this type in this context."""
        if isinstance(v_type, Scalar):
            return self.cell(self.fresh(prefix), v_type.dt, ctx)
        name = self.fresh(prefix)
        self.dt[name] = v_type.dt
        shape = v_type.shape if ctx.top else self.capacity(v_type.shape)
        ctx.resources.append(Resource(name, "workspace" if ctx.top else "scratch", v_type.dt, shape, (), why))
        if ctx.top:
            ctx.made.append(name)
        return name

    def place(self, v: Value, name: str):
        """``v`` is what is stored under ``name``."""
        self.pull.bind[v] = self.g("load", (), name, v.type.dt) if isinstance(v.type, Scalar) else Kept(name)

    def put(self, name: str, v: Value, ctx: Context, pos: int = OUTSIDE):
        """name[...] = v"""
        if isinstance(v.type, Scalar):
            self.settle(ctx, [node := self.pull.scalar(v)])
            self.phase(ctx, [Store(name, (), node)])
        else:
            self.put_tensor(name, v, ctx, pos)

    def put_tensor(self, name, v, ctx: Context, pos: int):
        own = tuple(self.axis(e) for e in v.type.shape)
        self.pull.trace = trace = []
        node = self.pull.pull(v, self.nodes(own))
        self.use(Store(name, self.nodes(own), node), (), own, (), (), pos, ctx, trace)

    def buffer(self, op: Op, pos, ctx: Context):
        t = op.result.type
        name = self.fresh("b")
        self.dt[name] = t.dt
        shape = t.shape if ctx.top else self.capacity(t.shape)
        ctx.resources.append(Resource(name, "workspace" if ctx.top else "scratch", t.dt, shape, (), "buffer"))
        if ctx.top:
            ctx.made.append(name)
        self.pull.bind[op.result] = Kept(name)
        if op.args:
            (v,) = op.args
            own = tuple(self.axis(e) for e in t.shape)
            self.pull.trace = trace = []
            node = self.pull.pull(v, self.nodes(own) if v.type.shape else ())
            self.use(Store(name, self.nodes(own), node), (), own, (), (), pos, ctx, trace)

    def control(self, op: Op, pos, ctx: Context):
        if selectable(op, self.symbols):
            return self.pull.select(op)
        self.flush(ctx)
        if op.kind == "parallel" or ctx.top and independent(op, self.alias):
            return self.parallel(op, pos, ctx)
        if ctx.top and scalar_only(op):
            return self.alone(op, pos, ctx)
        {"for": self.for_, "loop": self.loop, "if": self.if_}[op.kind](op, pos, ctx)

    def alone(self, op: Op, pos, ctx: Context):
        """A control statement over scalars only runs as a stage of one task; its results come back through workspace."""
        inner = Context(False, [], [])
        self.control(op, pos, inner)
        self.flush(inner)
        outs = []
        for v in op.results:
            name = self.fresh("r")
            self.dt[name] = v.type.dt
            ctx.resources.append(Resource(name, "workspace", v.type.dt))
            ctx.made.append(name)
            outs.append((v, name))
        for v, name in outs:
            inner.stmts.append(Phase((), [Store(name, (), self.pull.scalar(v))]))
            self.pull.bind[v] = self.g("load", (), name, v.type.dt)
        self.emit_stage(Stage(self.fresh("stage"), (), inner.stmts, inner.resources, "point"), ctx)

    def parallel(self, op: Op, pos, ctx: Context):
        (region,) = op.regions
        if ctx.top and in_turn(region, self.alias):
            inner = Context(False, [], [])
            self.parallel(op, pos, inner)
            self.emit_stage(Stage(self.fresh("stage"), (), inner.stmts, inner.resources, cost=_body_cost(inner.stmts)), ctx)
            return
        if ctx.top:
            axes = tuple(self.axis(d.type.extent) for d in op.args)
            inner = Context(False, [], [])
            for v, d, a in zip(region.params, op.args, axes):
                self.pull.bind[v] = self.pull.member(d, self.pull.axis(a))
                self.symbol_cell(v, inner)
            self.block(region, inner)
            self.flush(inner)
            kind = "point" if scalar_only(op) else "phases"
            tasks = tuple(Axis(a, self.extents[a]) for a in axes)
            stage = Stage(self.fresh("stage"), tasks, inner.stmts, inner.resources, kind, cost=_body_cost(inner.stmts))
            self.emit_stage(stage if self.alias else lift(stage, self.g, lambda: self.fresh("a")), ctx)
            return
        body, outer = ctx.stmts, ctx.stmts
        for v, d in zip(region.params, op.args):
            begin, _, step = self.pull.define[d].args[:3]
            var = self.cell(f"%{v.name}", "index", ctx)
            loop = For(var, self.pull.scalar(begin), self.pull.scalar(step), d.type.extent)
            self.pull.bind[v] = self.g("load", (), var, "index")
            body.append(loop)
            body = loop.body
        inner = Context(False, body, ctx.resources)
        self.block(region, inner)
        self.flush(inner)
        assert ctx.stmts is outer

    def for_(self, op: Op, pos, ctx: Context):
        (region,) = op.regions
        domain, inits = op.args[0], op.args[1:]
        names = self.carries(inits, region.params[1:], pos, ctx)
        begin, _, step = self.pull.define[domain].args[:3]
        before = {r.name for r in ctx.resources}
        var = self.cell(f"%{region.params[0].name}", "index", ctx)
        stmt = For(var, self.pull.scalar(begin), self.pull.scalar(step), domain.type.extent)
        self.pull.bind[region.params[0]] = self.g("load", (), var, "index")
        yields = region.yields
        if op.attrs.get("breaks"):
            stmt.stop = self.cell(self.fresh("c"), "bool", ctx)
        self.body(region, stmt.body, names, yields[1:] if stmt.stop else yields, ctx, flag=stmt.stop and (stmt.stop, yields[0]))
        turned = ctx.top and interchange(stmt, ctx.resources, before)
        if turned:
            stage, frees = turned
            ctx.stmts += [stage, *frees]
        else:
            ctx.stmts.append(stmt)
        for v, n in zip(op.results, names):
            self.place(v, n)

    def loop(self, op: Op, pos, ctx: Context):
        (region,) = op.regions
        names = self.carries(op.args, region.params, pos, ctx)
        stmt = Loop(self.cell(self.fresh("c"), "bool", ctx))
        self.body(region, stmt.body, names, region.yields[1:], ctx, flag=(stmt.again, region.yields[0]))
        ctx.stmts.append(stmt)
        for v, n in zip(op.results, names):
            self.place(v, n)

    def carries(self, inits, params, pos, ctx: Context) -> list[str]:
        names = []
        for v, p in zip(inits, params):
            name = self.storage(p.type, ctx, "k", "carry")
            self.put(name, v, ctx)
            self.place(p, name)
            names.append(name)
        self.flush(ctx)
        for p in params:
            self.symbol_later(p, ctx)
        return names

    def symbol_later(self, p: Value, ctx: Context):
        """A carried scalar that stands in extents needs its cell under its own name: set at the start of every iteration."""
        if f"%{p.name}" in self.symbols:
            self.cell(f"%{p.name}", p.type.dt, ctx)

    def body(self, region: Region, stmts, names, yields, ctx: Context, flag=None):
        inner = Context(ctx.top, stmts, ctx.resources)
        for p, n in zip(region.params[-len(names):] if names else (), names):
            if f"%{p.name}" in self.symbols and isinstance(p.type, Scalar):
                self.phase(inner, [Store(f"%{p.name}", (), self.g("load", (), n, p.type.dt))])
                self.pull.bind[p] = self.g("load", (), f"%{p.name}", p.type.dt)
        self.block(region, inner)
        if flag:
            name, v = flag
            node = self.pull.scalar(v)
            self.settle(inner, [node])
            self.phase(inner, [Store(name, (), node)])
        self.assign(names, yields, inner)
        self.flush(inner)
        inner.stmts += [Free(n) for n in inner.made]

    def assign(self, names, values, ctx: Context):
        """Simultaneous assignment of carries. Where one new value reads another carry, all go through temporaries."""
        current = [self.pull.g("load", (), n, v.type.dt) if isinstance(v.type, Scalar) else Kept(n) for n, v in zip(names, values)]
        todo = [(n, v) for n, v, c in zip(names, values, current) if self.pull.bind.get(v) != c]
        reads: dict[str, set[str]] = {}
        for n, v in todo:
            probe = [self.axis(e) for e in v.type.shape]
            self.pull.trace = None
            node = self.pull.pull(v, self.nodes(probe))
            reads[n] = {x.attr for x in loads([node])}
        crossing = any(n in reads[m] for n, _ in todo for m, _ in todo if m != n)
        if any(isinstance(v.type, Scalar) for _, v in todo):
            self.flush(ctx)                              # the open group may still read the carries' old values
        # The last assignment stands for the end of the block: whoever shares its group need not outlive it.
        last = END if todo and isinstance(todo[-1][1].type, Tensor) else OUTSIDE
        if not crossing:
            for n, v in todo:
                self.put(n, v, ctx, last if n == todo[-1][0] else OUTSIDE)
            return
        temps = []
        for n, v in todo:
            if isinstance(v.type, Scalar):
                t = self.storage(v.type, ctx, "k", "next value of a carry")
                self.put(t, v, ctx)
            else:
                t = self.next_value(v, ctx)
            temps.append((n, t, v))
        if any(isinstance(v.type, Scalar) for _, v in todo):
            self.flush(ctx)
        for n, t, v in temps:
            if isinstance(v.type, Scalar):
                self.phase(ctx, [Store(n, (), self.g("load", (), t, v.type.dt))])
            else:
                own = tuple(self.axis(e) for e in v.type.shape)
                self.use(Store(n, self.nodes(own), self.g("load", self.nodes(own), t, v.type.dt)), (), own, (), (),
                         last if n == todo[-1][0] else OUTSIDE, ctx, [])

    def next_value(self, v: Value, ctx: Context) -> str:
        """A carry's next value, stored until all carries are assigned."""
        own = tuple(self.axis(e) for e in v.type.shape)
        self.pull.trace = trace = []
        node = self.pull.pull(v, self.nodes(own))
        name = self.fresh("u")
        self.dims[name], self.dt[name] = own, v.type.dt
        self.use(Store(name, self.nodes(own), node), (), own, (), (name,), OUTSIDE, ctx, trace)
        return name

    def if_(self, op: Op, pos, ctx: Context):
        cond = self.pull.scalar(op.args[0])
        names = [self.storage(v.type, ctx, "k", "branch result") for v in op.results]
        stmt = If(cond)
        for region, stmts in zip(op.regions, (stmt.then, stmt.orelse)):
            inner = Context(ctx.top, stmts, ctx.resources)
            self.block(region, inner)
            for n, v in zip(names, region.yields):
                self.put(n, v, inner)
            self.flush(inner)
            inner.stmts += [Free(n) for n in inner.made]
        ctx.stmts.append(stmt)
        for v, n in zip(op.results, names):
            self.place(v, n)


def _body_cost(stmts) -> int:
    total = 0
    for s in stmts:
        if isinstance(s, Phase):
            total += sum(count_nodes(sink_nodes(k)) for k in s.sinks)
        elif isinstance(s, (For, Loop)):
            total += 8 * _body_cost(s.body)
        elif isinstance(s, If):
            total += _body_cost(s.then) + _body_cost(s.orelse)
    return max(1, total)
