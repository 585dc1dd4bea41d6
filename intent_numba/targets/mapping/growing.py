"""Scratch whose extents the task itself computes: memory that grows when a statement needs more.

Ragged groups and data-dependent lengths leave no bound to lay memory out for. Such scratch has a pointer and a size on the stack;
before every statement that touches it, it is made as large as the cells now say. Stages with such scratch run point by point.
"""
from __future__ import annotations

from ...task.program import For, If, Loop, Phase, Resource, Stage
from ..llvm.values import BYTES
from .env import Env, index
from .memory import Storage, row_major, whole_tiles
from .plan import PHASE_LANES, sink_roots, sink_targets, walk_nodes

FAILED = "out_of_memory"


def grows(stage: Stage, r: Resource) -> bool:
    """Whether cells of the stage decide how large its scratch is."""
    cells = {c.name for c in stage.resources if not c.shape}
    return any(name in cells for e in r.shape[len(r.axes):] for s in e.symbols if s[0] == "%" for name in (s, s[1:]))


def declare(env: Env, r: Resource) -> None:
    """An empty place for the resource."""
    fn = env.fn
    pointer, size = fn.alloca("ptr", 8), fn.alloca("i64", 8)
    fn.do(f"store ptr null, ptr {pointer}")
    fn.do(f"store i64 0, ptr {size}")
    env.growing[r.name] = r, pointer, size


def prepare(env: Env, s: Phase | For | Loop | If) -> None:
    """Room for what a statement touches, its body left out."""
    if not env.growing:
        return
    match s:
        case Phase():
            roots = [root for k in s.sinks for root in sink_roots(k)]
            names = {t for k in s.sinks for t in sink_targets(k)}
        case For():
            roots, names = [s.begin, s.step], set()
        case If():
            roots, names = [s.cond], set()
        case _:
            return
    names |= {n.attr for n in walk_nodes(*roots) if n.op in ("load", "gload")}
    for name in sorted(names & env.growing.keys()):
        _prepare(env, *env.growing[name])


def _prepare(env: Env, r: Resource, pointer: str, held: str) -> None:
    o, fn = env.o, env.fn
    shape = r.shape[len(r.axes):]
    pitch = whole_tiles(env, shape[-1])
    strides = row_major(env, shape, pitch)
    rows = pitch if len(shape) == 1 else env.extent(shape[0])
    size = o.mul(o.add(o.mul(strides[0], rows), index(PHASE_LANES)), index(BYTES[r.dt]))
    with fn.if_(fn.ins(f"icmp sgt i64 {size.text}, {fn.ins(f'load i64, ptr {held}')}")), env.scope():
        fn.call("void", fn.module.declare("void", "free", "ptr"), [("ptr", fn.ins(f"load ptr, ptr {pointer}"))])
        block = fn.call("ptr", fn.module.declare("ptr", "malloc", "i64"), [("i64", o.add(size, index(64)).text)])
        fn.do(f"store ptr {block}, ptr {pointer}")
        fine = fn.fresh_label("allocated")
        fn.cond_br(fn.ins(f"icmp eq ptr {block}, null"), FAILED, fine)
        fn.label(fine)
        fn.do(f"store i64 {size.text}, ptr {held}")
    block = fn.ins(f"load ptr, ptr {pointer}")
    up = fn.ins(f"add i64 {fn.ins(f'ptrtoint ptr {block} to i64')}, 63")
    base = fn.ins(f"inttoptr i64 {fn.ins(f'and i64 {up}, -64')} to ptr")
    env.storage[r.name] = Storage(r, base, strides, len(r.axes), 0, True)


def release(env: Env) -> None:
    for _, pointer, _ in env.growing.values():
        env.fn.call("void", env.fn.module.declare("void", "free", "ptr"), [("ptr", env.fn.ins(f"load ptr, ptr {pointer}"))])
