"""Where an element lies and how a tile of elements is read or written.

A tile whose lanes are consecutive elements is one vector access. A tile at another stride, or one with lanes missing, goes
through a 64-byte aligned staging buffer: the access is the same vector load or store, only its pointer differs, so one loop
serves every stride and every tail. Elements of absent lanes are never touched. Coordinates that are not linear in the
lane are gathered and scattered element by element.
"""
from __future__ import annotations

from dataclasses import dataclass

from ...kir.types import Extent
from ...task.program import Node, Resource
from ..llvm.text import Module
from ..llvm.values import BYTES, MEMORY, Val
from .env import ONE, ZERO, Env, index
from .plan import PHASE_LANES


STREAM_BYTES = 24 << 20
"""Size of an output that is written around the caches."""
STREAM_ALIGN = 16
"""What NumPy's large arrays are aligned to."""


@dataclass(frozen=True)
class Storage:
    """A resource's memory: ``strides`` in elements for the dimensions behind the first ``skip``. ``lanes``: interleaved, element
    (coords, lane). ``padded``: private rows long enough for whole tiles that start at the dimension's begin. Without ``base``
    the pointer stands in the launch frame and may change."""
    resource: Resource
    base: str
    strides: tuple[Val, ...]
    skip: int = 0
    lanes: int = 0
    padded: bool = False


def load(env: Env, node: Node) -> Val:
    """The value of a ``load`` node: a scalar if no lane differs."""
    if not node.args and node.attr not in env.storage:
        return env.load_cell(node.attr, node.dt)
    st = env.storage[node.attr]
    coords = node.args[st.skip:]
    if any(map(env.varies, coords)):
        line = linear_offset(env, st, coords) if not st.lanes else None
        if line is not None:
            return _load_tile(env, st, coords, *line, env.mask)
        return _gather(env, st, coords, env.mask)
    return env.o.load(st.resource.dt, element(env, st, coords), st.lanes)


def guarded_load(env: Env, node: Node, value) -> Val:
    """The value of a ``gload`` node; ``value`` evaluates a node."""
    o, st = env.o, env.storage[node.attr]
    valid_node, fill_node, *coords = node.args
    coords = coords[st.skip:]
    valid, fill = value(valid_node), value(fill_node)
    if not valid.lanes and not any(map(env.varies, coords)):
        lanes = st.lanes or fill.lanes                       # one element for all lanes, another fill in each
        with env.fn.if_else(valid.text) as branch:
            with env.scope():
                x = o.splat(o.load(st.resource.dt, element(env, st, coords), st.lanes), lanes)
            branch.yields((x.type, x.text))
            branch.orelse()
            branch.yields((x.type, o.splat(fill, lanes).text))
        return Val(node.dt, branch.results[0], lanes)
    mask = env.logic("and", env.wide(valid), env.live())
    line = linear_offset(env, st, coords) if not st.lanes else None
    if line is not None:
        x = _load_tile(env, st, coords, *line, mask)
    else:
        x = _gather(env, st, coords, mask)
    return o.select(env.wide(valid), x, fill)


def store(env: Env, name: str, coords, x: Val, valid: Val | None = None) -> None:
    """resource[coords] = x where ``valid`` and the control mask hold."""
    o, st = env.o, env.storage.get(name)
    if st is None:                                           # a launch cell, written by the host code of the entry
        return o.store(x, env.slot_pointer(env.layout.cells[name]))
    coords = coords[st.skip:]
    if env.tile is None:
        if valid is None:
            return o.store(x, element(env, st, coords))
        with env.fn.if_(valid.text), env.scope():
            o.store(x, element(env, st, coords))
        return None
    mask = env.mask if valid is None else env.logic("and", env.live(), env.wide(valid))
    if any(map(env.varies, coords)):
        line = linear_offset(env, st, coords) if not st.lanes else None
        if line is not None:
            return _store_tile(env, st, coords, *line, env.wide(x), mask)
        return _scatter(env, st, coords, env.wide(x), mask)
    pointer = element(env, st, coords)
    if st.lanes:
        x = env.wide(x)
        if mask is None or not st.resource.shape:
            return o.store(x if mask is None else o.select(mask, x, o.load(x.dt, pointer, st.lanes)), pointer)
        # Opaque to LLVM: it would make one masked store of this, which some machines run from microcode.
        again = env.fn.ins(f'call ptr asm "", "=r,0"(ptr {pointer})')
        return o.store(o.select(mask, x, o.load(x.dt, pointer, st.lanes)), again)
    if mask is None and not x.lanes:
        return o.store(x, pointer)
    if not st.resource.shape and not x.lanes and valid is None:      # a cell that is the same in all lanes
        return o.store(x, pointer)
    return _scatter(env, st, coords, env.wide(x), mask)


# --- addresses -------------------------------------------------------------------------------------------------------

def element(env: Env, st: Storage, coords) -> str:
    """The address of the element (of lane 0 when interleaved) at coordinates that no lane changes."""
    o, offset = env.o, ZERO
    for c, s in zip(coords, st.strides if st.base else row_major(env, st.resource.shape)):
        offset = o.add(offset, term(env, c, s))
    if st.lanes:
        offset = o.mul(offset, index(st.lanes))
    base = st.base or env.fn.ins(f"load ptr, ptr {env.slot_pointer(env.layout.pointers[st.resource.name])}")
    return o.gep(st.resource.dt, base, offset)


def row_major(env: Env, shape: tuple[Extent, ...], last: Val | None = None) -> tuple[Val, ...]:
    """Strides in elements; ``last`` replaces the last extent (a padded pitch)."""
    strides, step = [], ONE
    for k, e in reversed(list(enumerate(shape))):
        strides.append(step)
        n = last if last is not None and k == len(shape) - 1 else env.extent(e)
        step = env.o.mul(step, n)
    return tuple(reversed(strides))


def whole_tiles(env: Env, e: Extent) -> Val:
    """The extent rounded up to whole tiles of lanes."""
    if e.const is not None:
        return index(-(-e.const // PHASE_LANES) * PHASE_LANES)
    return env.o.and_(env.o.add(env.extent(e), index(PHASE_LANES - 1)), index(-PHASE_LANES))


def term(env: Env, coord: Node, stride: Val) -> Val:
    """coord * stride, remembered: hoisting computes the terms that an outer loop fixes."""
    from .expr import value
    if stride.text == "1":
        return value(env, coord)
    return env.once(("term", id(coord), stride.text), lambda: env.o.mul(value(env, coord), stride))


def linear(env: Env, node: Node) -> tuple[Val, Val] | None:
    """A coordinate as (value in lane 0, step from lane to lane), None if it is not of this form."""
    from .expr import value
    o = env.o
    if not env.varies(node):
        return value(env, node), ZERO
    if node.op == "axis":
        return env.tile.base, ONE
    if node.op not in ("add", "sub", "mul"):
        return None
    parts = [linear(env, a) for a in node.args]
    if None in parts:
        return None
    (a, da), (b, db) = parts
    if node.op != "mul":
        f = o.add if node.op == "add" else o.sub
        return f(a, b), f(da, db)
    if da.text == "0":
        return o.mul(a, b), o.mul(a, db)
    return (o.mul(a, b), o.mul(da, b)) if db.text == "0" else None


def linear_offset(env: Env, st: Storage, coords) -> tuple[Val, Val] | None:
    """(offset of lane 0, offset from lane to lane) in elements."""
    o, offset, step = env.o, ZERO, ZERO
    for c, s in zip(coords, st.strides):
        if not env.varies(c):
            offset = o.add(offset, term(env, c, s))
            continue
        line = linear(env, c)
        if line is None:
            return None
        offset = o.add(offset, o.mul(line[0], s))
        step = o.add(step, o.mul(line[1], s))
    return offset, step


def member(env: Env, st: Storage, offset: Val):
    """The address of the element at an offset that ``offsets`` gave."""
    base = st.base or env.fn.ins(f"load ptr, ptr {env.slot_pointer(env.layout.pointers[st.resource.name])}")
    return env.o.gep(st.resource.dt, base, offset)


def offsets(env: Env, st: Storage, coords) -> Val:
    """Element offsets lane by lane."""
    from .expr import value
    o, offset = env.o, ZERO
    for c, s in zip(coords, st.strides):
        offset = o.add(offset, o.mul(value(env, c), s) if env.varies(c) else term(env, c, s))
    if st.lanes:
        offset = o.add(o.mul(env.wide(offset), index(st.lanes)), o.iota(st.lanes))
    return env.wide(offset)


# --- tiles -----------------------------------------------------------------------------------------------------------

def _whole(env: Env, st: Storage, coords, step: Val, mask: Val | None) -> bool:
    """Whether the tile may be accessed whole although lanes are missing: private padded rows from their begin."""
    if not (st.padded and mask is None and step.text == "1") or env.tile.descends:
        return False
    return coords[-1].op == "axis" and coords[-1].attr == env.tile.axis


def _direct(env: Env, step: Val, mask: Val | None) -> Val:
    """Scalar bool: every lane acts and lanes are consecutive elements."""
    o = env.o
    if mask is None:
        every = env.tile.full
    else:
        every = Val("bool", env.fn.ins(f"icmp eq i{mask.lanes} {env.bits(mask)}, -1"))
    if step.text == "1":
        return every
    if step.text in env.fn.cache.values():                   # a stride of the launch frame
        unit = env.entry_bool(f"icmp eq i64 {step.text}, 1")
    else:
        unit = env.once(("unit", step.text), lambda: o.eq(step, ONE))
    if mask is not None:
        return o.and_(every, unit)
    return env.once(("direct", env.tile.full.text, step.text), lambda: o.and_(every, unit))


def _load_tile(env: Env, st: Storage, coords, offset: Val, step: Val, mask: Val | None) -> Val:
    o, dt, lanes = env.o, st.resource.dt, env.tile.width
    pointer = o.gep(dt, st.base, offset)
    if _whole(env, st, coords, step, mask):
        return o.load(dt, pointer, lanes)
    with env.fn.if_else(_direct(env, step, mask).text) as branch:
        branch.yields(("ptr", pointer))
        branch.orelse()
        stage = _stage(env, dt, lanes)
        _help(env, "copy_in", dt, [("ptr", stage), ("ptr", pointer), ("i64", step.text), ("i64", _bits64(env, mask))])
        branch.yields(("ptr", stage))
    return o.load(dt, branch.results[0], lanes)


def _store_tile(env: Env, st: Storage, coords, offset: Val, step: Val, x: Val, mask: Val | None) -> None:
    o, dt = env.o, st.resource.dt
    pointer = o.gep(dt, st.base, offset)
    if _whole(env, st, coords, step, mask):
        return o.store(x, pointer)
    if mask is None and _streams(env, st, x.lanes):
        with env.fn.if_else(_streaming(env, st, pointer, step).text) as branch:
            o.store(x, pointer, align=STREAM_ALIGN, nontemporal=True)
            branch.orelse()
            _store_cached(env, st, pointer, step, x, mask)
        return None
    return _store_cached(env, st, pointer, step, x, mask)


def _store_cached(env: Env, st: Storage, pointer: str, step: Val, x: Val, mask: Val | None) -> None:
    o, dt = env.o, st.resource.dt
    stage = _stage(env, dt, x.lanes)
    direct = _direct(env, step, mask).text
    o.store(x, env.fn.ins(f"select i1 {direct}, ptr {pointer}, ptr {stage}"))
    staged = env.fn.ins(f"xor i1 {direct}, true")
    with env.fn.if_(staged):
        _help(env, "copy_out", dt, [("ptr", stage), ("ptr", pointer), ("i64", step.text), ("i64", _bits64(env, mask))])
    return None


def _streams(env: Env, st: Storage, lanes: int) -> bool:
    """Whether stores to a resource may go around the caches: outputs, in aligned pieces."""
    return st.resource.kind == "view" and lanes * BYTES[st.resource.dt] % STREAM_ALIGN == 0


def _streaming(env: Env, st: Storage, pointer: str, step: Val) -> Val:
    """Whether this store does: the view is larger than the caches, so that fetching its lines before they are overwritten is a third
    of the traffic of a copy; and the tile is whole and aligned."""
    o, fn = env.o, env.fn
    key = ("large", st.resource.name)
    if key not in fn.cache:
        size = str(BYTES[st.resource.dt])
        for k in range(len(st.resource.shape)):
            size = fn.entry(f"mul i64 {size}, {env.slot(env.layout.extents[st.resource.name, k])}")
        fn.cache[key] = fn.entry(f"icmp sgt i64 {size}, {STREAM_BYTES}")
        env.streamed = True
    low = fn.ins(f"and i64 {fn.ins(f'ptrtoint ptr {pointer} to i64')}, {STREAM_ALIGN - 1}")
    aligned = Val("bool", fn.ins(f"icmp eq i64 {low}, 0"))
    return o.and_(o.and_(_direct(env, step, None), Val("bool", fn.cache[key])), aligned)


def _gather(env: Env, st: Storage, coords, mask: Val | None) -> Val:
    o, dt, lanes = env.o, st.resource.dt, env.tile.width
    places = offsets(env, st, coords)
    if lanes == 1:
        return o.load(dt, o.gep(dt, st.base, places), 1)
    stage, at = _stage(env, dt, lanes), _stage(env, "index", lanes, "places")
    o.store(places, at)
    _help(env, "gather", dt, [("ptr", stage), ("ptr", st.base), ("ptr", at), ("i64", _bits64(env, mask))])
    return o.load(dt, stage, lanes)


def _scatter(env: Env, st: Storage, coords, x: Val, mask: Val | None) -> None:
    o, dt, lanes = env.o, st.resource.dt, env.tile.width
    stage, at = _stage(env, dt, lanes), _stage(env, "index", lanes, "places")
    o.store(offsets(env, st, coords), at)
    o.store(x, stage)
    _help(env, "scatter", dt, [("ptr", stage), ("ptr", st.base), ("ptr", at), ("i64", _bits64(env, mask))])


def _stage(env: Env, dt: str, lanes: int, role: str = "elements") -> str:
    """The function's staging buffer for elements of a dtype, or for their places: its contents last for one access only. Lanes that do
    not exist hold zeros or earlier elements: what else lies on a stack reads as subnormal numbers, which are slow to compute with."""
    key = ("stage", MEMORY[dt], lanes, role)
    if key not in env.fn.cache:
        env.fn.cache[key] = env.fn.zeroed(MEMORY[dt], 64, lanes)
    return env.fn.cache[key]


def _bits64(env: Env, mask: Val | None) -> str:
    return env.fn.ins(f"zext i{env.tile.width} {env.bits(mask)} to i64")


# --- helper functions of the module ------------------------------------------------------------------------------------

_HELPERS = {
    "copy_in": ([("ptr", "near"), ("ptr", "far"), ("i64", "step"), ("i64", "bits")], False, True),
    "copy_out": ([("ptr", "near"), ("ptr", "far"), ("i64", "step"), ("i64", "bits")], False, False),
    "gather": ([("ptr", "near"), ("ptr", "far"), ("ptr", "at"), ("i64", "bits")], True, True),
    "scatter": ([("ptr", "near"), ("ptr", "far"), ("ptr", "at"), ("i64", "bits")], True, False),
}
"""Name -> parameters, whether offsets come from memory, whether elements go from far to near."""


def _help(env: Env, kind: str, dt: str, args) -> None:
    env.fn.call("void", _helper(env.fn.module, kind, BYTES[dt]), args)


def _helper(module: Module, kind: str, size: int) -> str:
    """A function that moves the elements of the set bits between consecutive (near) and scattered (far) places, lowest first."""
    name = module.helpers.get((kind, size))
    if name is not None:
        return name
    params, indirect, inward = _HELPERS[kind]
    name = module.helpers[kind, size] = f"@tile.{kind}.{size}"
    fn = module.function(name[1:], "void", params, head="internal", attrs="nounwind noinline")
    kind_ = f"i{8 * size}"
    module.declare("i64", "llvm.cttz.i64", "i64, i1")
    nonzero = fn.ins("icmp ne i64 %bits, 0")
    with fn.if_(nonzero):
        with fn.repeat([("i64", "%bits")]) as lp:
            lane = fn.ins(f"call i64 @llvm.cttz.i64(i64 {lp.carried[0]}, i1 true)")
            near = fn.ins(f"getelementptr {kind_}, ptr %near, i64 {lane}")
            if indirect:
                offset = fn.ins(f"load i64, ptr {fn.ins(f'getelementptr i64, ptr %at, i64 {lane}')}")
            else:
                offset = fn.ins(f"mul i64 {lane}, %step")
            far = fn.ins(f"getelementptr {kind_}, ptr %far, i64 {offset}")
            source, target = (far, near) if inward else (near, far)
            fn.do(f"store {kind_} {fn.ins(f'load {kind_}, ptr {source}')}, ptr {target}")
            less = fn.ins(f"add i64 {lp.carried[0]}, -1")
            lp.next[0] = fn.ins(f"and i64 {lp.carried[0]}, {less}")
            lp.again = fn.ins(f"icmp ne i64 {lp.next[0]}, 0")
    fn.ret()
    return name
