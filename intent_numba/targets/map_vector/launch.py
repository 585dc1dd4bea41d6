"""The entry of a launch: ``i32 @symbol(ptr frame)``, the host code between stages.

It copies the caller's frame into the launch frame, runs the program's top level, allocates workspace before the first stage that
mentions it, and starts each stage: over the threading layer if there is enough to do, else by a plain call.
"""
from __future__ import annotations

from ...task.program import For, Free, If, Loop, Phase, Program, Resource, Stage
from ..llvm.text import Module
from ..llvm.values import BYTES, Val
from ..mapping import control
from ..mapping.env import ONE, ZERO, Env, index
from ..mapping.layout import Layout, frame_layout
from ..mapping.memory import Storage
from ..mapping.plan import SHORT, StagePlan, raises, sink_roots, sink_targets, walk_nodes, walk_phases
from . import grouped, panel, pointwise
from .stage import bind_shared, emit_stage, loop_extents, plan_short, plan_stage

SERIAL_WORK = 1 << 16
"""Element operations below which starting threads costs more than it gains."""
CHUNKS_PER_THREAD = 4
UNKNOWN_TRIPS = 16
"""Iterations assumed of a loop whose count the launch does not know."""


def emit_launch(program: Program, symbol: str, module: Module) -> None:
    layout = frame_layout(program)
    fn = module.function(symbol, "i32", [("ptr", "frame")])
    launch = fn.alloca("i64", 64, layout.size)
    env = Env(program, layout, fn, "%frame", launch)
    env.host = True
    module.declare("void", "llvm.memcpy.p0.p0.i64", "ptr, ptr, i64, i1")
    fn.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {launch}, ptr %frame, i64 {8 * layout.arguments}, i1 false)")
    for slot in (*layout.raw.values(), layout.error):
        fn.do(f"store i64 0, ptr {env.slot_pointer(slot)}")
    bind_shared_host(env)
    host = _Host(program, symbol, module, layout, env)
    loaded = set(_loaded(program.body))
    host.prepare({r.name for r in host.fixed()} & loaded)
    control.run(env, program.body, host.statement)
    raising = raises(program)
    if raising:
        fine = fn.fresh_label("fine")
        fn.cond_br(fn.ins(f"icmp ne i64 {fn.ins(f'load i64, ptr {env.slot_pointer(layout.error)}')}, 0"), "failed", fine)
        fn.label(fine)
    host.release()
    fn.ret("i32", "0")
    fn.label("failed")
    host.release()
    if not raising:
        return fn.ret("i32", "1")
    status = fn.ins(f"call i64 @llvm.umax.i64(i64 {fn.ins(f'load i64, ptr {env.slot_pointer(layout.error)}')}, i64 1)")
    module.declare("i64", "llvm.umax.i64", "i64, i64")
    return fn.ret("i32", fn.ins(f"trunc i64 {status} to i32"))


def bind_shared_host(env: Env) -> None:
    """Views as they came; workspace through the pointers in the frame, which change."""
    workspace = [r for r in env.program.resources if r.kind == "workspace"]
    views = Program(env.program.name, env.program.params, env.program.symbols, [], [], env.graph)
    whole, env.program = env.program, views
    bind_shared(env)
    env.program = whole
    for r in workspace:
        env.storage[r.name] = Storage(r, "", ())


class _Host:
    """Stages and workspace of one launch."""

    def __init__(self, program: Program, symbol: str, module: Module, layout: Layout, env: Env):
        self.program, self.symbol, self.module, self.layout, self.env = program, symbol, module, layout, env
        self.count = 0

    def statement(self, s) -> None:
        match s:
            case Stage():
                self.stage(s)
            case Free():
                self.free(s.resource)

    # --- workspace ---

    def prepare(self, names) -> None:
        """Memory for the workspaces a stage mentions, where they have none: an earlier mention may stand in a branch not taken."""
        for r in self.program.resources:
            if r.kind == "workspace" and r.name in names:
                self.allocate(r)

    def fixed(self) -> list[Resource]:
        """Workspaces whose size is known from the start."""
        workspace = [r for r in self.program.resources if r.kind == "workspace"]
        return [r for r in workspace if not any(s.startswith("%") for e in r.shape for s in e.symbols)]

    def allocate(self, r: Resource) -> None:
        """A workspace whose size depends on a cell may come back in a loop with another size, and is a new value then."""
        env, o, fn, layout = self.env, self.env.o, self.env.fn, self.layout
        raw_slot, bytes_slot = env.slot_pointer(layout.raw[r.name]), env.slot_pointer(layout.bytes[r.name])
        missing = fn.ins(f"icmp eq ptr {fn.ins(f'load ptr, ptr {raw_slot}')}, null")
        size = index(BYTES[r.dt])
        for e in r.shape:
            size = o.mul(size, env.extent(e))
        if any(s.startswith("%") for e in r.shape for s in e.symbols):
            grown = fn.ins(f"icmp sgt i64 {size.text}, {fn.ins(f'load i64, ptr {bytes_slot}')}")
            missing = fn.ins(f"or i1 {missing}, {grown}")
        with fn.if_(missing), env.scope():
            self.free(r.name)
            raw = fn.call("ptr", self.module.declare("ptr", "malloc", "i64"), [("i64", o.add(size, index(128)).text)])
            fine = fn.fresh_label("allocated")
            fn.cond_br(fn.ins(f"icmp eq ptr {raw}, null"), "failed", fine)
            fn.label(fine)
            up = fn.ins(f"add i64 {fn.ins(f'ptrtoint ptr {raw} to i64')}, 63")
            aligned = fn.ins(f"and i64 {up}, -64")
            fn.do(f"store ptr {raw}, ptr {raw_slot}")
            fn.do(f"store i64 {size.text}, ptr {bytes_slot}")
            fn.do(f"store i64 {aligned}, ptr {env.slot_pointer(layout.pointers[r.name])}")

    def free(self, name: str) -> None:
        fn, slot = self.env.fn, self.env.slot_pointer(self.layout.raw[name])
        fn.call("void", self.module.declare("void", "free", "ptr"), [("ptr", fn.ins(f"load ptr, ptr {slot}"))])
        fn.do(f"store ptr null, ptr {slot}")

    def release(self) -> None:
        for name in self.layout.raw:
            self.free(name)

    # --- stages ---

    def stage(self, s: Stage) -> None:
        env, o, fn = self.env, self.env.o, self.env.fn
        name = f"{self.symbol}.s{self.count}"
        self.count += 1
        plan = plan_stage(self.program, s)
        short = plan_short(self.program, s, plan)
        emit_stage(self.program, self.module, self.layout, s, plan, name)
        if short is not None:
            emit_stage(self.program, self.module, self.layout, s, short, f"{name}.short")
        with env.scope():
            self.prepare(_mentioned(s))
            points = ONE
            for a in plan.order:
                points = o.mul(points, env.extent(a.extent))
            with fn.if_(o.gt(points, ZERO).text), env.scope():
                if short is None:
                    self.start(s, plan, name, points)
                else:
                    with fn.if_else(self.rows_are_short(s, short).text) as branch:
                        self.start(s, short, f"{name}.short", points)
                        branch.orelse()
                        self.start(s, plan, name, points)
            bad = fn.ins(f"load i64, ptr {env.slot_pointer(self.layout.error)}")
            fine = fn.fresh_label("ran")
            fn.cond_br(fn.ins(f"icmp ne i64 {bad}, 0"), "failed", fine)
            fn.label(fine)

    def rows_are_short(self, s: Stage, plan: StagePlan) -> Val:
        """Whether no loop of the phases is longer than ``SHORT``, and more rows than that lie side by side."""
        env, o = self.env, self.env.o
        longest = ONE
        for e in loop_extents(s):
            n = env.extent(e)
            longest = o.select(o.lt(longest, n), n, longest)
        rows = env.extent(plan.order[-1].extent)
        return o.and_(o.le(longest, index(SHORT)), o.gt(rows, o.add(longest, longest)))

    def start(self, s: Stage, plan: StagePlan, name: str, points: Val) -> None:
        with self.env.scope():
            units = points
            if plan.panel is not None:
                units = panel.units(self.env, plan.panel)
            elif plan.crossing is not None:
                units = pointwise.units(self.env, plan)
            self.run_stage(s, plan, name, points, units)

    def run_stage(self, s: Stage, plan: StagePlan, name: str, points: Val, units: Val) -> None:
        """``units``: what the stage function counts: points, or blocks of them."""
        env, o, fn = self.env, self.env.o, self.env.fn

        def serial():
            fn.call("void", "@" + name, [("i64", "0"), ("i64", units.text), ("ptr", env.frame)])
        if not plan.order:
            return serial()
        threads = Val("index", env.slot(0))
        per_point = _work(env, s.body, index(max(s.cost, 1)))
        enough = o.ge(o.mul(points, per_point), index(SERIAL_WORK))
        parallel = o.and_(o.and_(enough, o.gt(threads, ONE)), o.gt(units, ONE))
        with fn.if_else(parallel.text) as branch:
            self.run_threads(s, plan, name, units, threads)
            branch.orelse()
            serial()
        return None

    def run_threads(self, s: Stage, plan: StagePlan, name: str, points: Val, threads: Val) -> None:
        """Contiguous ranges of whole rows where there are enough rows, else of whole tiles."""
        env, o, fn, module = self.env, self.env.o, self.env.fn, self.module
        wanted = o.mul(threads, index(CHUNKS_PER_THREAD))
        unit = ONE
        if plan.lanes is not None and plan.panel is None and plan.crossing is None:
            row = env.extent(plan.order[-1].extent)
            unit = index(plan.width)
            if grouped.can_group(s):                         # whole groups, if that leaves work for every thread
                fair = o.mul(_ceil(env, _ceil(env, points, threads), unit), unit)
                group = index(plan.width * grouped.GROUP)
                unit = o.select(o.lt(fair, group), fair, group)
            unit = o.select(o.ge(points, o.mul(row, wanted)), row, unit)
        share = _ceil(env, _ceil(env, points, wanted), unit)
        share = o.mul(share, unit)
        chunks = _ceil(env, points, share)
        data = fn.alloca("i64", 64, 5)
        fields = (("i64", points.text), ("i64", share.text), ("ptr", env.frame), ("i64", chunks.text), ("i64", "0"))
        for k, (kind, x) in enumerate(fields):
            fn.do(f"store {kind} {x}, ptr {fn.ins(f'getelementptr i64, ptr {data}, i64 {k}')}")
        args, dims, steps = (fn.alloca("i64", 8) for _ in range(3))
        for place, x in ((args, "0"), (dims, threads.text), (steps, "1")):
            fn.do(f"store i64 {x}, ptr {place}")
        callee = module.declare("void", "numba_parallel_for", "ptr, ptr, ptr, ptr, ptr, i64, i64, i64")
        _worker(module, name)
        fn.call("void", callee, [("ptr", f"@{name}.worker"), ("ptr", args), ("ptr", dims), ("ptr", steps), ("ptr", data),
                                 ("i64", "0"), ("i64", "1"), ("i64", threads.text)])


def _worker(module: Module, name: str) -> None:
    """What every thread calls: it takes the next chunk until none is left, so a thread that the system delays holds up nobody.
    data: points, points of a chunk, frame, chunks, the next chunk."""
    fn = module.function(f"{name}.worker", "void", [("ptr", "args"), ("ptr", "dims"), ("ptr", "steps"), ("ptr", "data")], head="internal")
    field = [fn.ins(f"getelementptr i64, ptr %data, i64 {k}") for k in range(5)]
    points, share, frame, chunks = (fn.ins(f"load {kind}, ptr {p}") for kind, p in zip(("i64", "i64", "ptr", "i64"), field))
    with fn.repeat() as lp:
        chunk = fn.ins(f"atomicrmw add ptr {field[4]}, i64 1 monotonic")
        lp.again = fn.ins(f"icmp slt i64 {chunk}, {chunks}")
        with fn.if_(lp.again):
            lo = fn.ins(f"mul i64 {chunk}, {share}")
            hi = fn.ins(f"add i64 {lo}, {share}")
            hi = fn.ins(f"select i1 {fn.ins(f'icmp slt i64 {hi}, {points}')}, i64 {hi}, i64 {points}")
            fn.call("void", "@" + name, [("i64", lo), ("i64", hi), ("ptr", frame)])
    fn.ret()


def _ceil(env: Env, a: Val, b: Val) -> Val:
    up = env.o.sub(env.o.add(a, b), ONE)
    return Val("index", env.fn.ins(f"udiv i64 {up.text}, {b.text}"))


def _loaded(body):
    """What statements outside stages load. A program may read what no stage has written: any value will do, but there must be memory."""
    for s in body:
        match s:
            case Phase():
                roots = [root for sink in s.sinks for root in sink_roots(sink)]
            case For():
                roots = [s.begin, s.step]
                yield from _loaded(s.body)
            case Loop():
                roots = []
                yield from _loaded(s.body)
            case If():
                roots = [s.cond]
                yield from _loaded(s.then)
                yield from _loaded(s.orelse)
            case _:
                roots = []
        yield from (n.attr for n in walk_nodes(*roots) if n.op in ("load", "gload"))


def _mentioned(s: Stage) -> set[str]:
    names = {*s.reads, *s.writes}
    for ph in walk_phases([s]):
        for sink in ph.sinks:
            names.update(sink_targets(sink))
            names.update(n.attr for n in walk_nodes(*sink_roots(sink)) if n.op in ("load", "gload"))
    return names


def _work(env: Env, body, base: Val) -> Val:
    """Element operations of one point, as far as the launch can tell."""
    o, total = env.o, base
    for s in body:
        match s:
            case Phase():
                nodes = sum(1 for _ in walk_nodes(*(r for k in s.sinks for r in sink_roots(k))))
                work = index(max(nodes // 4, 1))
                for a in s.loops:
                    work = o.mul(work, _trips(env, a.extent))
                total = o.add(total, work)
            case For():
                total = o.add(total, o.mul(_trips(env, s.extent), _work(env, s.body, ZERO)))
            case Loop():
                total = o.add(total, o.mul(index(UNKNOWN_TRIPS), _work(env, s.body, ZERO)))
            case If():
                total = o.add(total, o.add(_work(env, s.then, ZERO), _work(env, s.orelse, ZERO)))
    return total


def _trips(env: Env, e) -> Val:
    """An extent, if the launch knows its symbols."""
    known = env.program.symbols.keys() | env.layout.cells.keys() | {"%" + c for c in env.layout.cells}
    return env.extent(e) if e.symbols <= known else index(UNKNOWN_TRIPS)
