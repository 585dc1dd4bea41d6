"""KIR to task program: the walk over blocks and control.

A block is worked through in program order. Straight ``parallel`` regions, and ordered loops whose iterations cannot meet,
dissolve into axes of their sinks. At the top level sinks are grouped into stages; inside a task they become phases. Scalars
read from memory get a cell at the place of the read, so that an expression never sees a later write.
"""
from __future__ import annotations

from ..kir import Extent, Op, Region, Scalar, Value, View
from ..task import Graph, Node, Param, Phase, Program, Resource, Stage, Store
from .analysis import analyse, independent, PURE, straight, used_symbols
from .bounds import Bounds
from .context import Context
from .control import Control
from .inplace import inplace_pairs
from .pull import Puller
from .sinks import Sinks
from .stages import build_phases, outside, split_reduction, stage_cost
from .updates import check, histogram, update, UPDATES
from .uses import Group, loads, sink_nodes, targets


class Lowering(Sinks, Control):
    """The lowering of one kernel: names, cells, the walk over blocks, and the flushing of groups."""

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
        facts = analyse(items, region.yields, self.conflicts, self.symbols)
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
