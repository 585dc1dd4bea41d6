"""The state of emission inside one kernel, as one work-item sees it.

Everything that does not depend on the machine (scopes, axes, expressions, extents) is the vector mapper's environment without
tiles: a work-item computes scalars. Here stand the launch frame in global memory, the work-item's name, and local memory.
"""
from __future__ import annotations

from contextlib import contextmanager

from ...task.program import Program, Resource
from ..llvm.memory import Pointer
from ..llvm.text import Function, Module
from ..llvm.values import BYTES, MEMORY, Val
from ..mapping.env import Env as MappingEnv
from ..mapping.expr import hoist
from ..mapping.layout import Layout
from ..mapping.memory import Storage, row_major
from ..mapping.plan import sink_roots, sink_targets
from .machine import Builtin, Machine


class Env(MappingEnv):
    """``size``: work-items of a group. ``changing``: resources that work-items of a group share and write. ``local_bytes``: what the
    kernel keeps in local memory besides its arena."""

    tiles = False

    def __init__(self, program: Program, layout: Layout, fn: Function, machine: Machine):
        super().__init__(program, layout, fn, "%frame", "%frame")
        self.machine, self.size = machine, machine.group_size
        self.changing: frozenset[str] = frozenset()
        self.local_bytes = 0
        self._shared: dict = {}
        self._shared_used: list = []

    # --- launch frame ---

    def slot_pointer(self, slot: int) -> Pointer:
        key = ("slot", slot)
        if key not in self.fn.cache:
            text = self.fn.entry(f"getelementptr i64, {self.machine.pointer(self.machine.global_space)} %frame, i64 {slot}")
            self.fn.cache[key] = Pointer(text, self.machine.global_space)
        return self.fn.cache[key]

    def slot(self, slot: int, type: str = "i64") -> str:
        key = ("slot", slot, type)
        if key not in self.fn.cache:
            pointer = self.slot_pointer(slot)
            self.fn.cache[key] = self.fn.entry(f"load {type}, {self.machine.pointer(pointer.space)} {pointer}")
        return self.fn.cache[key]

    # --- who am I ---

    def builtin(self, b: Builtin) -> Val:
        """An i64 that does not change while the kernel runs."""
        key = ("builtin", b.name)
        if key not in self.fn.cache:
            types = ", ".join(a.split()[0] for a in b.arguments.split(", ") if a)
            callee = self.fn.module.declare(f"{b.head}{b.result}", b.name, types, "nounwind")
            text = self.fn.entry(f"call {b.head}{b.result} {callee}({b.arguments})")
            self.fn.cache[key] = text if b.result == "i64" else self.fn.entry(f"zext {b.result} {text} to i64")
        return Val("index", self.fn.cache[key])

    @property
    def item(self) -> Val:
        """This work-item's number in its group."""
        return self.builtin(self.machine.local_id)

    @property
    def group(self) -> Val:
        return self.builtin(self.machine.group_id)

    @property
    def groups(self) -> Val:
        return self.builtin(self.machine.group_count)

    @property
    def leader(self) -> Val:
        """Whether this is the group's first work-item."""
        self.builtin(self.machine.local_id)
        return self.entry_bool(f"icmp eq i64 {self.item.text}, 0")

    def barrier(self) -> None:
        """All work-items of the group meet here; what they wrote before is seen by all behind."""
        b = self.machine.barrier
        types = ", ".join(a.split()[0] for a in b.arguments.split(", ") if a)
        callee = self.fn.module.declare(f"{b.head}{b.result}", b.name, types, "convergent nounwind")
        self.fn.do(f"call {b.head}{b.result} {callee}({b.arguments}) convergent nounwind")

    @contextmanager
    def led(self):
        """What stands inside is done by the leader alone, and a scope."""
        with self.fn.if_(self.leader.text), self.scope():
            yield

    # --- local memory of a group ---

    def shared(self, dt: str, count: int) -> Pointer:
        """Local memory of ``count`` elements, free for reuse when the ``shared_scope`` ends."""
        size = (MEMORY[dt], count)
        n = sum(1 for u in self._shared_used if u == size)
        self._shared_used.append(size)
        pool = self._shared.setdefault(size, [])
        while len(pool) <= n:
            space = self.machine.local_space
            name = f"@{self.fn.name}.shared.{sum(map(len, self._shared.values()))}"
            self.fn.module.define_global(f"{name} = internal addrspace({space}) global [{count} x {MEMORY[dt]}] undef, align 16")
            self.local_bytes += -(-count * BYTES[dt] // 16) * 16
            pool.append(Pointer(name, space))
        return pool[n]

    def get_all(self, dts, memory, at: Val) -> list[Val]:
        """Element ``at`` of arrays that stand side by side."""
        return [self.o.load(dt, self.o.gep(dt, m, at)) for dt, m in zip(dts, memory)]

    def put_all(self, memory, at: Val, values) -> None:
        for m, x in zip(memory, values):
            self.o.store(x, self.o.gep(x.dt, m, at))

    def arena_in(self, space: int) -> Pointer:
        """Where the memory begins that the launch gives."""
        name = self.machine.local_arena
        if space != self.machine.local_space or not name:
            return Pointer("%arena", space)
        if name not in self.fn.module.helpers:
            self.fn.module.helpers[name] = f"@{name}"
            self.fn.module.define_global(f"@{name} = external addrspace({space}) global [0 x i8], align 64")
        return Pointer(f"@{name}", space)

    @contextmanager
    def shared_scope(self):
        mark = len(self._shared_used)
        yield
        del self._shared_used[mark:]


def start(program: Program, layout: Layout, module: Module, machine: Machine, name: str, uses, parameters=()) -> Env:
    """A kernel ``name(frame, one pointer for each resource of uses, parameters...)`` with its shared resources bound. ``parameters`` are
    (type, name) pairs."""
    shared = machine.pointer(machine.global_space)
    params = [(shared, "frame"), *((shared, f"r{k}") for k in range(len(uses))), *parameters]
    attrs = "nounwind"
    if machine.group_attribute:
        attrs += f' "{machine.group_attribute}"="{machine.group_size},1,1"'
    if machine.group_metadata:
        attrs += f" !{machine.group_metadata} {module.metadata(f'!{{i32 {machine.group_size}, i32 1, i32 1}}')}"
    fn = module.function(name, "void", params, machine.kernel_head, attrs)
    env = Env(program, layout, fn, machine)
    views = {p.name: p for p in program.params if p.kind == "view"}
    workspace = {r.name: r for r in program.resources if r.kind == "workspace"}
    for k, used in enumerate(uses):
        if used in views:
            p = views[used]
            base = Pointer(fn.entry(f"getelementptr i8, {shared} %r{k}, i64 {env.slot(layout.pointers[used])}"), machine.global_space)
            strides = tuple(Val("index", env.slot(layout.strides[used, axis])) for axis in range(len(p.shape)))
            env.storage[used] = Storage(Resource(used, "view", p.dt, p.shape), base, strides)
        else:
            r = workspace[used]
            env.storage[used] = Storage(r, Pointer(f"%r{k}", machine.global_space), row_major(env, r.shape))
    return env


def hoist_sinks(env: Env, sinks) -> None:
    """Compute what the sinks need and the axes bound so far determine, before loops that run at least once."""
    hoist(env, [r for s in sinks for r in sink_roots(s)], frozenset(t for s in sinks for t in sink_targets(s)))
