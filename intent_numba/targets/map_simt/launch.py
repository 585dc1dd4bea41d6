"""What the host does for one launch: which kernels run in which order, with which arguments, and over how many work-items.

The steps are plain data (JSON), executed by the target's adapter. Scalars that steer the launch live in a frame of 8-byte slots in
global memory: the caller's arguments, the program's cells, and conditions and bounds, which kernels of one work-item compute.
Extents are polynomials over slots, so the host evaluates them without a kernel.

    {"do": "run", "kernel": name, "uses": [resource...]}                             one work-item
    {"do": "stage", "kernel": name, "uses": [...], "grid": [extent...], "by": "items" | "groups", "arena": [[bytes, [extent...]]...],
     "space": "global" | "local" | null, "local": bytes, "instead": the same stage with its arena in local memory}
     A kernel takes the frame, a pointer for each of "uses", one to its arena if it has a "space", and the number of points. With an arena
     in global memory it steps through the grid, else it wants a work-item or group for every point.
    {"do": "for", "var": slot, "begin": slot, "step": slot, "extent": extent, "stop": slot | null, "body": [...]}
    {"do": "loop", "again": slot, "body": [...]}      {"do": "if", "cond": slot, "then": [...], "else": [...]}
    {"do": "free", "resource": name}
    extent: [[coefficient, [slot...]]...]
"""
from __future__ import annotations

from dataclasses import dataclass, replace

from ...errors import UnsupportedError
from ...kir.types import Extent
from ...task.program import Contract, For, Free, If, Loop, Node, Phase, Program, Reduce, Scan, Stage, Update
from ..llvm.text import Module
from ..llvm.values import BYTES
from ..mapping import control
from ..mapping.expr import value
from ..mapping.layout import Layout, frame_layout
from ..mapping.plan import plan_lanes, raises, sink_roots, sink_targets, walk_nodes, walk_phases
from . import groups, items, scratch
from .env import Env, start
from .machine import Machine


@dataclass(frozen=True)
class Launch:
    """``text``: LLVM text of all kernels. ``plan``: JSON data: the steps, the frame, views and workspaces."""
    text: str
    plan: dict


def emit_program(program: Program, machine: Machine) -> Launch:
    """Raises UnsupportedError for what work-items cannot do."""
    if program.externs:
        raise UnsupportedError(f"kernel {program.name}: a call of {next(iter(program.externs))} cannot run on this target; "
                               "only cpu calls @numba.njit functions")
    host = _Host(program, machine)
    steps = host.body(program.body)
    layout = host.layout
    views = [{"name": p.name, "slot": layout.pointers[p.name], "rank": len(p.shape), "bytes": BYTES[p.dt], "written": p.access != "in"}
             for p in program.params if p.kind == "view"]
    workspace = [{"name": r.name, "bytes": BYTES[r.dt], "shape": [host.extent(e) for e in r.shape]}
                 for r in program.resources if r.kind == "workspace"]
    plan = {"name": program.name, "group": machine.group_size, "arguments": layout.arguments, "slots": host.slots,
            "changes": bool(host.layout.cells), "error": layout.error if raises(program) else None,
            "views": views, "workspace": workspace, "steps": steps}
    return Launch(machine.preamble + host.module.text(), plan)


class _Host:
    """Kernels emitted so far, and the slots behind the frame of the program."""

    def __init__(self, program: Program, machine: Machine):
        self.program, self.machine = program, machine
        self.module = Module(machine.dialect)
        self.layout: Layout = frame_layout(program)
        self.slots = self.layout.size
        self.count = 0
        self.shared = {p.name for p in program.params if p.kind == "view"} | {r.name for r in program.resources if r.kind == "workspace"}

    def extent(self, e: Extent) -> list:
        return [[coef, [self._symbol(s) for s in mono]] for mono, coef in e.terms]

    def _symbol(self, s: str) -> int:
        if not s.startswith("%"):
            return self.layout.extents[self.program.symbols[s]]
        slot = self.layout.cells.get(s, self.layout.cells.get(s[1:]))
        if slot is None:
            raise UnsupportedError(f"kernel {self.program.name}: memory of a size that each task computes cannot be had on this target; "
                                   "cpu has it")
        return slot

    # --- statements ---

    def body(self, statements) -> list[dict]:
        return [step for s in statements for step in self.statement(s)]

    def statement(self, s) -> list[dict]:
        match s:
            case Phase():
                return [self._single([r for k in s.sinks for r in sink_roots(k)], lambda env: control.run(env, [s]),
                                     [t for k in s.sinks for t in sink_targets(k)])]
            case For():
                begin, step = self._slot(), self._slot()
                return [self._scalars({begin: s.begin, step: s.step}),
                        {"do": "for", "var": self.layout.cells[s.var], "begin": begin, "step": step, "extent": self.extent(s.extent),
                         "stop": None if s.stop is None else self.layout.cells[s.stop], "body": self.body(s.body)}]
            case Loop():
                return [{"do": "loop", "again": self.layout.cells[s.again], "body": self.body(s.body)}]
            case If():
                cond = self._slot()
                return [self._scalars({cond: s.cond}),
                        {"do": "if", "cond": cond, "then": self.body(s.then), "else": self.body(s.orelse)}]
            case Free():
                return [{"do": "free", "resource": s.resource}]
            case Stage():
                return [self._stage(s)]
        raise TypeError(s)

    def _slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    def _name(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count - 1}"

    # --- kernels of one work-item ---

    def _scalars(self, nodes: dict[int, Node]) -> dict:
        """A kernel that computes expressions into slots."""
        def fill(env):
            for slot, node in nodes.items():
                env.o.store(value(env, node), env.slot_pointer(slot))
        return self._single(list(nodes.values()), fill)

    def _single(self, roots, emit, targets=()) -> dict:
        name, uses = self._name("scalars"), self._uses(roots, targets)
        env = start(self.program, self.layout, self.module, replace(self.machine, group_size=1), name, uses)
        env.host = True
        with env.scope():
            emit(env)
        env.fn.ret()
        return {"do": "run", "kernel": name, "uses": uses}

    def _uses(self, roots, targets) -> list[str]:
        names = set(targets) | {n.attr for n in walk_nodes(*roots) if n.op in ("load", "gload")}
        return sorted(names & self.shared)

    # --- stages ---

    def _stage(self, s: Stage) -> dict:
        plan = plan_lanes(self.program, s)
        phases = list(walk_phases(s.body))
        roots = _all_nodes(s)
        uses = self._uses(roots, [t for ph in phases for k in ph.sinks for t in sink_targets(k)])
        if plan.lanes is not None or any(map(_needs_item, phases)):
            return self._by_items(replace(s, tasks=plan.order), uses)
        return self._by_groups(s, uses)

    def _by_items(self, s: Stage, uses: list[str]) -> dict:
        name, parts = self._name("stage"), items.in_arena(s, self.machine)
        space = self.machine.global_space if parts else None
        items.emit(self._start(name, uses, space), s, parts)
        return self._step(s, name, uses, "items", parts, space, 0)

    def _by_groups(self, s: Stage, uses: list[str]) -> dict:
        parts, machine = scratch.pieces(s), self.machine
        known = [p.constant for p in parts]
        fits = all(size is not None for size in known) and sum(size or 0 for size in known) <= machine.local_bytes // 2
        step = self._groups_in(s, uses, parts, None if not parts else machine.local_space if fits else machine.global_space)
        if None in known:                                    # the launch decides
            step["instead"] = self._groups_in(s, uses, parts, machine.local_space)
        return step

    def _groups_in(self, s: Stage, uses: list[str], parts, space: int | None) -> dict:
        name = self._name("stage")
        env = self._start(name, uses, space)
        groups.emit(env, s, parts, space)
        return self._step(s, name, uses, "groups", parts, space, env.local_bytes)

    def _start(self, name: str, uses: list[str], space: int | None) -> Env:
        named = space is None or space == self.machine.local_space and self.machine.local_arena
        parameters = [("i64", "points")] if named else [(self.machine.pointer(space), "arena"), ("i64", "points")]
        return start(self.program, self.layout, self.module, self.machine, name, uses, parameters)

    def _step(self, s: Stage, name: str, uses: list[str], by: str, parts, space: int | None, local: int) -> dict:
        place = None if space is None else "local" if space == self.machine.local_space else "global"
        return {"do": "stage", "kernel": name, "uses": uses, "grid": [self.extent(a.extent) for a in s.tasks], "by": by, "space": place,
                "arena": [[BYTES[p.resource.dt], [self.extent(e) for e in p.shape]] for p in parts], "local": local, "instead": None}


def _needs_item(ph: Phase) -> bool:
    """Whether a group would have nothing to share: a contraction of one element, or updates in turn among structured sinks."""
    structured = [k for k in ph.sinks if isinstance(k, (Reduce, Scan, Contract))]
    single = any(isinstance(k, Contract) and {a.name for a in ph.loops} <= set(k.axes) for k in structured)
    return single or bool(structured) and any(map(groups.acts_alone, ph.sinks))


def _all_nodes(s: Stage) -> list[Node]:
    """Every expression of a stage, those of its control flow included."""
    roots: list[Node] = []

    def visit(body):
        for x in body:
            match x:
                case Phase():
                    roots.extend(r for k in x.sinks for r in sink_roots(k))
                    roots.extend(r for k in x.sinks if isinstance(k, (Reduce, Scan, Update)) and k.combine for r in k.combine.results)
                case For():
                    roots.extend((x.begin, x.step))
                    visit(x.body)
                case Loop():
                    visit(x.body)
                case If():
                    roots.append(x.cond)
                    visit(x.then)
                    visit(x.orelse)
    visit(s.body)
    return roots
