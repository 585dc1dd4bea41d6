"""KIR to task program: the walk over blocks and control.

A block is worked through in program order. Straight ``parallel`` regions, and ordered loops whose iterations cannot meet,
dissolve into axes of their sinks. At the top level sinks are grouped into stages; inside a task they become phases. Scalars
read from memory get a cell at the place of the read, so that an expression never sees a later write.
"""
from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..kir import Extent, Op, Region, Scalar, Tensor, Value, View
from ..kir.ops import FIXED_ORDER
from ..kir.types import is_float
from ..task import (Axis, Contract, For, Free, Graph, If, Loop, Node, Param, Phase, Program, Reduce, Resource, Scan, Stage, Stmt,
                    Store, Update)
from .analysis import END, PURE, analyse, independent, scalar_only, selectable, straight, used_symbols
from .bounds import Bounds
from .inplace import inplace_pairs
from .interchange import interchange
from .lift import lift
from .pull import Kept, Puller
from .stages import build_phases, outside, split_reduction, stage_cost
from .updates import UPDATES, check, histogram, in_turn, update
from .uses import Group, Use, accesses, count_nodes, extend, load_coords, loads, sink_nodes, targets, unordered

OUTSIDE = -1
"""The position of a use that stands for no operation of its block."""


@dataclass
class Context:
    """Where statements go. ``top``: host level of the launch, else inside a task."""
    top: bool
    stmts: list[Stmt]
    resources: list[Resource]
    group: Group = field(default_factory=Group)
    touched: dict[Value, tuple[str, ...]] = field(default_factory=dict)
    made: list[str] = field(default_factory=list)


class Lowering:
    def __init__(self, kernel, alias):
        self.kernel = kernel
        self.alias = frozenset(frozenset(p) for p in alias)
        self.g = Graph()
        self.pull = Puller(self.g)
        self.symbols = used_symbols(kernel)
        self.bounds = Bounds(kernel.body)
        self.extents: dict[str, Extent] = {}
        self.dims: dict[str, tuple[str, ...]] = {}
        self.dt: dict[str, str] = {}
        self.wanted: dict[str, Value] = {}       # produced resource -> the value it holds
        self.sinks: dict[Value, set[int]] = {}
        self.cells: set[str] = set()
        self.n = 0

    # -- names
    def fresh(self, prefix: str) -> str:
        self.n += 1
        return f"{prefix}{self.n}"

    def axis(self, extent: Extent) -> str:
        a = self.fresh("a")
        self.extents[a] = extent
        return a

    def capacity(self, shape) -> tuple[Extent, ...]:
        """Extents that scratch of this shape needs: bounds where a cell decides."""
        return tuple(self.bounds.upper(e) or e for e in shape)

    def nodes(self, axes) -> tuple[Node, ...]:
        return tuple(self.pull.axis(a) for a in axes)

    def conflicts(self, a: str, b: str) -> bool:
        return a == b or frozenset((a, b)) in self.alias

    # -- the kernel
    def run(self) -> Program:
        k = self.kernel
        params = []
        for p in k.params:
            if isinstance(p.type, View):
                params.append(Param(p.name, "view", p.type.dt, p.type.shape, p.type.access))
            else:
                params.append(Param(p.name, "scalar", p.type.dt))
                self.pull.bind[p] = self.g("param", (), p.name, p.type.dt)
        ctx = Context(True, [], [])
        for p in k.params:
            if isinstance(p.type, Scalar):
                self.symbol_cell(p, ctx)
        self.block(k.body, ctx)
        self.flush(ctx)
        prog = Program(k.name, params, k.symbols(), ctx.resources, ctx.stmts, self.g, dict(k.externs))
        prog.inplace = inplace_pairs(prog)
        decided = {e for e in self.extents.values() if any(s[0] == "%" for s in e.symbols)}
        prog.bounds = {e: bound for e in decided if (bound := self.bounds.upper(e)) is not None}
        return prog

    # -- blocks
    def block(self, region: Region, ctx: Context):
        items: list[tuple[Op, tuple[str, ...]]] = []
        self.flatten(region.ops, (), items)
        facts = analyse([op for op, _ in items], region.yields, self.conflicts, self.symbols)
        for v, where in facts.sinks.items():
            self.sinks.setdefault(v, where)          # values of outer blocks keep what the outer block says
        for pos, (op, par) in enumerate(items):
            self.item(op, par, pos, ctx, facts.keep)

    def flatten(self, ops, par, items):
        for op in ops:
            for r in op.results:
                self.pull.define[r] = op
            points = op.kind == "parallel" or independent(op, self.alias)
            if points and straight(op.regions[0], self.symbols, self.alias):
                axes = tuple(self.axis(d.type.extent) for d in op.args)
                items.append((Op("enter", op.args, {"axes": axes, "params": op.regions[0].params}, (), (), op.loc), par + axes))
                self.flatten(op.regions[0].ops, par + axes, items)
            else:
                items.append((op, par))

    def item(self, op: Op, par, pos: int, ctx: Context, keep):
        match op.kind:
            case "enter":
                for v, d, a in zip(op.attrs["params"], op.args, op.attrs["axes"]):
                    self.pull.bind[v] = self.pull.member(d, self.pull.axis(a))
            case "reduce" | "arg_reduce" | "scan":
                self.reduction(op, par, pos, ctx)
            case "contract":
                self.contract(op, par, pos, ctx)
            case "write":
                self.write(op, par, pos, ctx)
            case "histogram":
                histogram(self, op, par, pos, ctx)
            case "check":
                check(self, op, par, pos, ctx)
            case k if k in UPDATES:
                update(self, op, par, pos, ctx)
            case "buffer":
                self.buffer(op, pos, ctx)
            case "for" | "loop" | "if" | "parallel":
                self.control(op, pos, ctx)
            case "call":
                v = op.result
                self.pull.bind[v] = self.g("call", [self.pull.scalar(a) for a in op.args], op.attrs["fn"], v.type.dt)
                self.remember(v, par, pos, ctx)
            case "read" if isinstance(op.result.type, Scalar) and (not par or op.result in keep):
                self.remember(op.result, par, pos, ctx)
            case _ if op.kind in PURE:
                for r in op.results:
                    if r in keep:
                        self.keep(r, par, pos, ctx)
            case k:
                raise AssertionError(f"no lowering for {k}")
        for r in op.results:
            if not par:
                self.symbol_cell(r, ctx)

    def symbol_cell(self, v: Value, ctx: Context):
        """A scalar that stands in an extent lives in the cell of that name."""
        name = f"%{v.name}"
        if name in self.symbols and isinstance(v.type, Scalar) and name not in self.cells:
            self.assign_cell(name, v.type.dt, self.pull.scalar(v), ctx)
            self.pull.bind[v] = self.g("load", (), name, v.type.dt)

    def remember(self, v: Value, par, pos, ctx: Context):
        """Fix a scalar's value at this place of the program."""
        if par:
            return self.keep(v, par, pos, ctx)
        name = f"%{v.name}" if f"%{v.name}" in self.symbols else self.fresh("c")
        self.assign_cell(name, v.type.dt, self.pull.scalar(v), ctx)
        self.pull.bind[v] = self.g("load", (), name, v.type.dt)

    def cell(self, name: str, dt: str, ctx: Context) -> str:
        if name not in self.cells:
            self.cells.add(name)
            self.dt[name] = dt
            ctx.resources.append(Resource(name, "cell", dt))
        return name

    def assign_cell(self, name: str, dt: str, value: Node, ctx: Context):
        self.cell(name, dt, ctx)
        self.settle(ctx, [value])
        self.phase(ctx, [Store(name, (), value)])

    def phase(self, ctx: Context, stores: list[Store]):
        """Cell assignments join the phase before them when they do not read what it assigns."""
        last = ctx.stmts[-1] if ctx.stmts else None
        if isinstance(last, Phase) and not last.loops:
            done = {t for s in last.sinks for t in targets(s)}
            reading = {n.attr for s in stores for n in loads(sink_nodes(s))}
            if not any(self.conflicts(d, r) for d in done for r in reading | {s.resource for s in stores}):
                last.sinks += stores
                return
        ctx.stmts.append(Phase((), list(stores)))

    def settle(self, ctx: Context, nodes):
        """Flush the open group if some expression reads what it writes."""
        written = ctx.group.written()
        if any(self.conflicts(n.attr, w) for n in loads(nodes) for w in written):
            self.flush(ctx)

    # -- sinks
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

    # -- flushing
    def flush(self, ctx: Context):
        group = ctx.group
        if not group.uses:
            return
        ctx.group, ctx.touched = Group(), {}
        produced = [n for u in group.uses for n in u.produced]
        # The targets of one sink have one layout: they are scratch together or not at all.
        scratch = [n for u in group.uses for n in u.produced if not ctx.top or all(self.only_here(m, group) for m in u.produced)]
        phases_axes, phases, layout = build_phases(group, self.g, lambda: self.fresh("i"), self.extents, self.dims, scratch, ctx.top,
                                                    {n for n in scratch if self.only_here(n, group)})
        fresh = [Resource(n, "scratch", self.dt[n], shape[:len(axes)] + self.capacity(shape[len(axes):]), axes)
                 for n, (shape, axes) in layout.items()]
        for n in produced:
            if n not in scratch:
                ctx.resources.append(Resource(n, "workspace", self.dt[n], tuple(self.extents[a] for a in self.dims[n])))
                ctx.made.append(n)
        if not ctx.top:
            ctx.resources += fresh
            for p in phases:
                if p.loops or any(not isinstance(s, Store) for s in p.sinks):
                    ctx.stmts.append(p)
                else:
                    self.phase(ctx, p.sinks)
            return
        stage = Stage(self.fresh("stage"), phases_axes, phases, fresh, cost=stage_cost(phases))
        pieces = None
        if not fresh and produced and not set(produced) & set(scratch):
            made = [r for r in ctx.resources if r.name in produced]
            pieces = split_reduction(stage, made, self.g, lambda: self.fresh("i"), self.fresh)
        if pieces:
            stages, more = pieces
            ctx.resources += more
            ctx.made += [r.name for r in more if r.kind == "workspace"]
            for s in stages:
                self.emit_stage(s, ctx)
        else:
            self.emit_stage(stage, ctx)

    def emit_stage(self, stage, ctx: Context):
        if isinstance(stage, Stage):
            stage.reads, stage.writes = outside(stage.body, {r.name for r in stage.resources})
        ctx.stmts.append(stage)

    def only_here(self, name: str, group: Group) -> bool:
        """Does only this group read what it produces under this name?"""
        readers = {u.pos for u in group.uses if not (len(u.produced) == 1 and u.produced[0][0] == "u")}
        v = self.wanted.get(name)
        if v is None:
            return any(n == name for u in group.uses for n, _ in u.reads)
        return bool(self.sinks.get(v)) and self.sinks[v] <= readers and f"%{v.name}" not in self.symbols

    # -- memory and control
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
            return self.select(op)
        self.flush(ctx)
        if op.kind == "parallel" or ctx.top and independent(op, self.alias):
            return self.parallel(op, pos, ctx)
        if ctx.top and scalar_only(op):
            return self.alone(op, pos, ctx)
        {"for": self.for_, "loop": self.loop, "if": self.if_}[op.kind](op, pos, ctx)

    def select(self, op: Op):
        cond = self.pull.scalar(op.args[0])
        for r in op.regions:
            for o in r.ops:
                for v in o.results:
                    self.pull.define[v] = o
                if o.kind == "if":
                    self.select(o)
        for v, a, b in zip(op.results, op.regions[0].yields, op.regions[1].yields):
            self.pull.bind[v] = self.g("select", (cond, self.pull.scalar(a), self.pull.scalar(b)), None, v.type.dt)

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
