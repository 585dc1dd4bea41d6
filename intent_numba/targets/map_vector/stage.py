"""A stage as a function over a range of its linearised grid: ``void @name(i64 lo, i64 hi, ptr frame)``.

The grid is row-major over the planned order of task axes. A range is walked row by row: the leading coordinates are decoded once
per row, then the last axis runs point by point, or tile by tile when the lanes run over it.
"""
from __future__ import annotations

from dataclasses import replace

from ...task.program import Program, Resource, Stage
from ..llvm.text import Module
from ..llvm.values import BYTES, MEMORY, Val
from ..mapping import control, growing
from ..mapping.env import ZERO, Env, index
from ..mapping.expr import hoist
from ..mapping.layout import Layout
from ..mapping.memory import Storage, row_major
from ..mapping.plan import PHASE_LANES, StagePlan, plan_lanes, runs_points, sink_roots, walk_phases
from . import grouped, pointwise, products
from . import panel as panels

SMALL_SCRATCH = 8192
"""Bytes of scratch that still go on the stack."""


def plan_stage(program: Program, stage: Stage) -> StagePlan:
    """How a stage is run: in blocks if it multiplies matrices, else over lanes or points."""
    if any(growing.grows(stage, r) for r in stage.resources):
        return StagePlan(stage.tasks)
    found = panels.find_panel(program, stage)
    if found is None:
        plan = plan_lanes(program, stage)
        return plan if plan.lanes is None else replace(plan, crossing=pointwise.crossing_axis(stage, plan.order))
    if found.n is None:
        return StagePlan(stage.tasks, panel=found)
    return StagePlan(stage.tasks, found.n.name, PHASE_LANES, found.varying, found)


def plan_short(program: Program, stage: Stage, plan: StagePlan) -> StagePlan | None:
    """How else a stage is run when its rows turn out short at the call: one per lane. None where the launch cannot tell."""
    extents = loop_extents(stage)
    private = {name for r in stage.resources if not r.shape for name in (r.name, r.name.lstrip("%"))}
    decided = any(s.lstrip("%") in private for e in extents for s in e.symbols if s[0] == "%")
    if plan.lanes is not None or plan.panel is not None or not stage.tasks or all(e.const is not None for e in extents) or decided:
        return None
    if any(growing.grows(stage, r) for r in stage.resources):
        return None
    other = plan_lanes(program, stage, True)
    return None if other.lanes is None else other


def loop_extents(stage: Stage) -> list:
    """Extents of all loops of a stage's phases."""
    return list(dict.fromkeys(a.extent for ph in walk_phases(stage.body) for a in ph.loops))


def emit_stage(program: Program, module: Module, layout: Layout, stage: Stage, plan: StagePlan, name: str) -> None:
    fn = module.function(name, "void", [("i64", "lo"), ("i64", "hi"), ("ptr", "frame")], head="internal",
                         attrs='nounwind noinline "intent-opt"="full"' if runs_points(stage) else "nounwind noinline")
    env = Env(program, layout, fn, "%frame", "%frame", plan.width)
    env.varying = plan.varying
    env.private = frozenset(r.name for r in stage.resources)
    bind_shared(env)
    failed = growing.FAILED
    if plan.panel is not None:
        sizes = panels.scratch_sizes(env, stage, plan.panel)
        block, pointers = _allocate(env, [size for _, size in sizes], failed)
        panels.run(env, stage, plan.panel, dict(zip((key for key, _ in sizes), pointers)))
    else:
        if plan.lanes is None:
            products.declare(env, program, stage)
        block = _bind_private(env, stage, plan, failed)
        _walk(env, stage, plan)
    if block is not None:
        fn.call("void", module.declare("void", "free", "ptr"), [("ptr", block)])
    growing.release(env)
    if env.streamed:
        fn.do("fence seq_cst")
    fn.ret()
    if block is not None or env.growing:
        fn.label(failed)
        fn.do(f"store i64 1, ptr {env.slot_pointer(layout.error)}")
        fn.ret()


def bind_shared(env: Env) -> None:
    """Views and workspace as this function sees them."""
    program, layout = env.program, env.layout
    for p in program.params:
        if p.kind == "view":
            strides = tuple(Val("index", env.slot(layout.strides[p.name, k])) for k in range(len(p.shape)))
            env.storage[p.name] = Storage(Resource(p.name, "view", p.dt, p.shape), env.slot(layout.pointers[p.name], "ptr"), strides)
    for r in program.resources:
        if r.kind == "workspace":
            env.storage[r.name] = Storage(r, env.slot(layout.pointers[r.name], "ptr"), row_major(env, r.shape))


def _bind_private(env: Env, stage: Stage, plan: StagePlan, failed: str) -> str | None:
    """Cells and scratch: on the stack where small and of known size, else in one block of memory, which is returned."""
    o, fn = env.o, env.fn
    large = []
    if grouped.can_group(stage) and plan.lanes is not None:
        large.append(("groups", (), 0, index(grouped.arena(stage, plan.width))))
    if env.products:
        large.append(("products", (), 0, products.arena(env)))
    for r in stage.resources:
        shape = r.shape[len(r.axes):]
        if growing.grows(stage, r):
            growing.declare(env, r)
            continue
        lanes = plan.width if r.name in plan.varying else 0
        if not shape:
            copies = grouped.GROUP if lanes and grouped.can_group(stage) else 1
            env.storage[r.name] = Storage(r, fn.alloca(MEMORY[r.dt], 64, max(lanes, 1) * copies), (), len(r.axes), lanes)
            continue
        pitch = None
        if not lanes:
            pitch = panels.whole_tiles(env, shape[-1])
        strides = row_major(env, shape, pitch)
        rows = pitch if pitch is not None and len(shape) == 1 else env.extent(shape[0])
        elements = o.add(o.mul(o.mul(strides[0], rows), index(max(lanes, 1))), index(PHASE_LANES))
        count = int(elements.text) if not elements.text.startswith("%") else None
        if count is not None and count * BYTES[r.dt] <= SMALL_SCRATCH:
            env.storage[r.name] = Storage(r, fn.alloca(MEMORY[r.dt], 64, count), strides, len(r.axes), lanes, not lanes)
        else:
            large.append((r, strides, lanes, o.mul(elements, index(BYTES[r.dt]))))
    if not large:
        return None
    block, pointers = _allocate(env, [size for *_, size in large], failed)
    for (r, strides, lanes, _), pointer in zip(large, pointers):
        if r == "groups":
            env.arena = pointer
        elif r == "products":
            env.arena_of_products = pointer
        else:
            env.storage[r.name] = Storage(r, pointer, strides, len(r.axes), lanes, not lanes)
    return block


def _allocate(env: Env, sizes: list[Val], failed: str) -> tuple[str, list[str]]:
    """One block of memory with aligned parts of the given bytes."""
    o, fn, offset, places = env.o, env.fn, ZERO, []
    for k, size in enumerate(sizes):
        places.append(offset)
        size = o.add(o.and_(o.add(size, index(63)), index(-64)), index(64 * (1 + 5 * k % 16)))      # stagger against 4 KB aliasing
        offset = o.add(offset, size)
    malloc = fn.module.declare("ptr", "malloc", "i64")
    block = fn.call("ptr", malloc, [("i64", o.add(offset, index(64)).text)])
    fine = fn.fresh_label("allocated")
    fn.cond_br(fn.ins(f"icmp eq ptr {block}, null"), failed, fine)
    fn.label(fine)
    base = _aligned(fn, fn.ins(f"ptrtoint ptr {block} to i64"))
    return block, [fn.ins(f"getelementptr i8, ptr {base}, i64 {place.text}") for place in places]


def _aligned(fn, address: str) -> str:
    up = fn.ins(f"add i64 {address}, 63")
    down = fn.ins(f"and i64 {up}, -64")
    return fn.ins(f"inttoptr i64 {down} to ptr")


def _walk(env: Env, stage: Stage, plan: StagePlan) -> None:
    o, fn = env.o, env.fn
    lo, hi = Val("index", "%lo"), Val("index", "%hi")
    if not plan.order:
        with fn.loop("%lo", "%hi"), env.scope():
            control.run(env, stage.body)
        return
    if plan.crossing is not None:
        return pointwise.run_crossing(env, stage, plan)
    *outer, last = plan.order
    flat = pointwise.flat_resources(env.program, stage, plan.order) if plan.lanes is not None else None
    n = env.extent(last.extent) if flat is None else pointwise.row_length(env, plan.order, flat)
    with fn.if_(o.lt(lo, hi).text), env.scope():
        with fn.repeat([("i64", "%lo")]) as rows, env.scope():
            point = Val("index", rows.carried[0])
            rest = point
            first = point
            if outer:
                rest = panels.divide(env, point, n)
                first = o.sub(point, o.mul(rest, n))
            coordinates = {}
            for axis in reversed(outer[1:]):
                size = env.extent(axis.extent)
                above = panels.divide(env, rest, size)
                coordinates[axis.name] = o.sub(rest, o.mul(above, size))
                rest = above
            if outer:
                coordinates[outer[0].name] = rest
            env.axes.update(coordinates)
            end = o.add(first, o.sub(hi, point))
            end = o.select(o.lt(end, n), end, n)
            _row(env, stage, plan, last.name, first, end)
            for name in coordinates:
                del env.axes[name]
            following = o.add(point, o.sub(end, first))
            rows.next[0] = following.text
            rows.again = o.lt(following, hi).text
    return None


def _row(env: Env, stage: Stage, plan: StagePlan, axis: str, first: Val, end: Val) -> None:
    """Points first .. end-1 of the last task axis, at least one."""
    fn = env.fn
    if pointwise.is_pointwise(stage):
        stores = [s for ph in stage.body for s in ph.sinks]
        roots = [r for s in stores for r in sink_roots(s)]
        hoist(env, roots, frozenset(s.resource for s in stores) | {r.name for r in stage.resources})
    if plan.lanes is None:
        with fn.loop(first.text, end.text) as lp, env.bound(axis, Val("index", lp.index)):
            control.run(env, stage.body)
        return
    if grouped.can_group(stage):
        with fn.loop(first.text, end.text, plan.width * grouped.GROUP) as lp, env.scope():
            base = Val("index", lp.index)
            stop = env.o.add(base, index(plan.width * grouped.GROUP))
            stop = env.o.select(env.o.lt(stop, end), stop, end)
            grouped.run(env, stage.body, grouped.Tiles(env, axis, base, stop))
        return
    with fn.loop(first.text, end.text, plan.width) as lp:
        with env.tiled(env.make_tile(axis, Val("index", lp.index), end, plan.width)):
            env.prepare_masks()
            control.run(env, stage.body)
