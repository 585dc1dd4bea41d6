"""Loops under lanes whose memory lies along the loop, not along the lanes: rows sorted in lanes, transposes.

A block of 32 steps of the loop is read at once: each lane's elements are consecutive, so 8 by 8 elements are turned in registers
into a buffer [step][lane]; stores go the other way. Without this every lane would touch another cache line at every step.
"""
from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass

from ...task.program import Axis, Node, Store
from ..llvm.ops import Ops
from ..llvm.text import Module
from ..llvm.values import BYTES, Val
from .env import Env, index
from .memory import Storage, element, linear
from .plan import sink_roots, sink_targets, walk_nodes

STEPS = 32
SQUARE = 8
_INTEGER = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}


@dataclass(frozen=True)
class Turned:
    """One access: its storage and coordinates, and the buffer [step][lane] that stands for it."""
    storage: Storage
    coords: tuple[Node, ...]
    buffer: str


@contextmanager
def loop(env: Env, axis: Axis, lo: Val, hi: Val, sinks):
    """``for axis in lo .. hi-1`` with the axis bound, for sinks that are performed at every step; yields the index."""
    loads, stores = _candidates(env, axis, sinks)
    fn, o = env.fn, env.o
    if not loads and not stores:
        with fn.loop(lo.text, hi.text) as lp, env.bound(axis.name, Val("index", lp.index)):
            yield Val("index", lp.index)
        return
    width = env.tile.width
    with fn.loop(lo.text, hi.text, STEPS) as blocks, env.scope():
        first = Val("index", blocks.index)
        left = o.sub(hi, first)
        steps = o.select(o.lt(left, index(STEPS)), left, index(STEPS))
        # Zeroed, as a staging buffer is (memory.py): lanes that do not exist are computed with.
        reads = {id(n): Turned(env.storage[n.attr], n.args[env.storage[n.attr].skip:], env.temp(n.dt, STEPS * width, zeroed=True))
                 for n in loads}
        writes = {id(s): Turned(env.storage[s.resource], s.coords[env.storage[s.resource].skip:],
                                env.temp(env.storage[s.resource].resource.dt, STEPS * width)) for s in stores}
        for t in reads.values():
            _move(env, axis, t, first, steps, inward=True)
        with fn.loop("0", steps.text) as lp, env.bound(axis.name, o.add(first, Val("index", lp.index))):
            at = o.mul(Val("index", lp.index), index(width))
            for key, t in reads.items():
                dt = t.storage.resource.dt
                env.remember(key, o.load(dt, o.gep(dt, t.buffer, at), width))
            old = env.turned
            env.turned = {key: o.gep(t.storage.resource.dt, t.buffer, at) for key, t in writes.items()}
            yield o.add(first, Val("index", lp.index))
            env.turned = old
        for t in writes.values():
            _move(env, axis, t, first, steps, inward=False)


def _candidates(env: Env, axis: Axis, sinks) -> tuple[list[Node], list[Store]]:
    """Loads and stores whose last coordinate is the loop's axis and of which one other coordinate is linear in the lane."""
    if env.tile is None or env.mask_is_set or env.tile.width % SQUARE or not all(isinstance(s, Store) for s in sinks):
        return [], []
    written = {t for s in sinks for t in sink_targets(s)}
    nodes = [n for n in walk_nodes(*(r for s in sinks for r in sink_roots(s))) if n.op == "load" and n.args]
    read = {n.attr for n in nodes}
    loads = [n for n in nodes if n.attr not in written and _lies_along(env, axis, n.attr, n.args)]
    stores = [s for s in sinks if isinstance(s, Store) and s.valid is None and s.resource not in read
              and sum(s.resource in sink_targets(k) for k in sinks) == 1 and _lies_along(env, axis, s.resource, s.coords)]
    return loads, stores


def _lies_along(env: Env, axis: Axis, name: str, coords) -> bool:
    st = env.storage.get(name)
    if st is None or st.lanes or name in env.private or not st.base:
        return False
    *others, last = coords[st.skip:] or (None,)
    if last is None or last.op != "axis" or last.attr != axis.name:
        return False
    lanes = [c for c in others if env.varies(c)]
    return len(lanes) == 1 and _by_one(env, lanes[0]) and all(env.node_axes(c) <= env.axes.keys() for c in others)


def _by_one(env: Env, coord: Node) -> bool:
    """Whether a coordinate grows by one from lane to lane."""
    if coord.op == "axis":
        return True
    if coord.op not in ("add", "sub"):
        return False
    a, b = coord.args
    if env.varies(b):
        return coord.op == "add" and not env.varies(a) and _by_one(env, b)
    return _by_one(env, a)


def _move(env: Env, axis: Axis, t: Turned, first: Val, steps: Val, inward: bool) -> None:
    o, st = env.o, t.storage
    with env.bound(axis.name, first):
        # The address in lane 0: the lane axis is bound to its tile's base, and every coordinate is linear in it.
        lane = next(k for k, c in enumerate(t.coords) if env.varies(c))
        base, _ = linear(env, t.coords[lane])
        rest = Storage(st.resource, st.base, tuple(s for k, s in enumerate(st.strides) if k != lane))
        pointer = element(env, rest, tuple(c for k, c in enumerate(t.coords) if k != lane))
        pointer = o.gep(st.resource.dt, pointer, o.mul(base, st.strides[lane]))
    name = _turner(env.fn.module, BYTES[st.resource.dt], env.tile.width, inward)
    env.fn.call("void", name, [("ptr", t.buffer), ("ptr", pointer), ("i64", st.strides[lane].text), ("i64", st.strides[-1].text),
                               ("i64", env.tile.count.text), ("i64", steps.text)])


def _turner(module: Module, size: int, width: int, inward: bool) -> str:
    """void @turn(buffer, memory, lane stride, step stride, lanes, steps): between buffer[step][lane] and memory, in whole squares where
    all lanes exist and steps are consecutive, the rest one by one."""
    key = ("turn", size, width, inward)
    name = module.helpers.get(key)
    if name is not None:
        return name
    name = module.helpers[key] = f"@tile.turn.{'in' if inward else 'out'}.{size}.{width}"
    params = [("ptr", "near"), ("ptr", "far"), ("i64", "lane"), ("i64", "step"), ("i64", "lanes"), ("i64", "steps")]
    fn = module.function(name[1:], "void", params, head="internal", attrs="nounwind noinline")
    o, dt = Ops(fn), _INTEGER[size]
    consecutive = fn.ins("icmp eq i64 %step, 1")
    every = fn.ins(f"icmp eq i64 %lanes, {width}")
    squares = fn.ins(f"select i1 {fn.ins(f'and i1 {consecutive}, {every}')}, i64 {fn.ins(f'and i64 %steps, {-SQUARE}')}, i64 0")
    with fn.loop("0", squares, SQUARE) as down, fn.loop("0", str(width), SQUARE) as across:
        k, lane = Val("index", down.index), Val("index", across.index)
        near = [o.gep(dt, "%near", o.add(o.mul(o.add(k, index(r)), index(width)), lane)) for r in range(SQUARE)]
        far = [o.gep(dt, "%far", o.add(o.mul(o.add(lane, index(r)), Val("index", "%lane")), k)) for r in range(SQUARE)]
        source, target = (far, near) if inward else (near, far)
        for x, p in zip(_turn_square(o, [o.load(dt, p, SQUARE) for p in source]), target):
            o.store(x, p)
    with fn.loop(squares, "%steps") as down, fn.loop("0", "%lanes") as across:
        k, lane = Val("index", down.index), Val("index", across.index)
        near = o.gep(dt, "%near", o.add(o.mul(k, index(width)), lane))
        far = o.gep(dt, "%far", o.add(o.mul(lane, Val("index", "%lane")), o.mul(k, Val("index", "%step"))))
        source, target = (far, near) if inward else (near, far)
        o.store(o.load(dt, source), target)
    fn.ret()
    return name


def _turn_square(o: Ops, rows: list[Val]) -> list[Val]:
    """Transpose 8 vectors of 8: pairs, then quadruples, then halves change places."""
    span = 1
    while span < SQUARE:
        low = [k if not k & span else k - span + SQUARE for k in range(SQUARE)]
        high = [k + span if not k & span else k + SQUARE for k in range(SQUARE)]
        new = list(rows)
        for r in range(SQUARE):
            if not r & span:
                new[r], new[r + span] = o.shuffle(rows[r], low, rows[r + span]), o.shuffle(rows[r], high, rows[r + span])
        rows, span = new, span * 2
    return rows
