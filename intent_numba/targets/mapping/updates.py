"""Read-modify-write of single elements: atomics, histograms, scatters that combine.

Always element by element: a phase with updates has no lanes of its own, and where the lanes are task points the existing ones
take turns in a loop. An indivisible operation is an LLVM atomic where there is one for the dtype, else a compare-exchange loop.
"""
from __future__ import annotations

from contextlib import contextmanager

from ...kir.types import is_float, is_int, is_signed
from ...task.program import Update
from ..llvm.memory import Pointer, pointer_type
from ..llvm.values import BYTES, Val
from .env import ZERO, Env, index
from .expr import value
from .memory import Storage, element, store, term

ORDERS = {"relaxed": "monotonic", "acquire": "acquire", "release": "release", "acq_rel": "acq_rel"}
LOAD_ORDERS = {"relaxed": "monotonic", "acquire": "acquire", "release": "monotonic", "acq_rel": "acquire"}
STORE_ORDERS = {"relaxed": "monotonic", "acquire": "monotonic", "release": "release", "acq_rel": "release"}
OPERATIONS = {"add": "add", "mul": "mul", "max": "maximum", "min": "minimum", "and": "and", "or": "or", "xor": "xor"}


def update(env: Env, s: Update) -> None:
    """Perform the update at the current point, or at the points of the current tile."""
    if s.kind == "raise":
        return _raise(env, s)
    if env.tile is not None:
        return _at_lanes(env, s)
    for target, x in zip((s.old, s.success), at_point(env, s)):
        if target is not None:
            store(env, target, s.coords, x)
    return None


def _raise(env: Env, s: Update) -> None:
    """Leave the status in the launch frame; whoever runs the stages looks there."""
    bad = value(env, s.valid)
    if env.tile is not None:
        bad = env.o.any(env.logic("and", env.live(), env.wide(bad)))
    with env.fn.if_(bad.text), env.scope():
        env.o.store(value(env, s.values[0]), env.slot_pointer(env.layout.error))


def at_point(env: Env, s: Update) -> tuple[Val, Val]:
    """Perform the update at the current point. Gives (the element as found, whether compare_exchange stored); zeros where not valid."""
    o, st = env.o, env.storage[s.resource]
    dt = st.resource.dt
    valid = value(env, s.valid) if s.valid is not None else None
    if valid is None:
        return _perform(env, s, element(env, st, s.at[st.skip:]), dt, [value(env, v) for v in s.values])
    with env.fn.if_else(valid.text) as branch:
        with env.scope():
            old, success = _perform(env, s, element(env, st, s.at[st.skip:]), dt, [value(env, v) for v in s.values])
        branch.yields((old.type, old.text), ("i1", success.text))
        branch.orelse()
        branch.yields((old.type, o.const(0, dt).text), ("i1", "false"))
    return Val(dt, branch.results[0]), Val("bool", branch.results[1])


def _at_lanes(env: Env, s: Update) -> None:
    """Lane after lane, the lowest first; operands and results go through memory."""
    o, st, width = env.o, env.storage[s.resource], env.tile.width
    dt = st.resource.dt
    mask = env.live()
    if s.valid is not None:
        mask = env.logic("and", mask, env.wide(value(env, s.valid)))
    places = env.temp("index", width)
    o.store(env.wide(_offset(env, st, s.at[st.skip:])), places)
    operands = []
    for v in s.values:
        operands.append((v.dt, env.temp(v.dt, width)))
        o.store(env.wide(value(env, v)), operands[-1][1])
    results = []
    for target, kind in ((s.old, dt), (s.success, "bool")):
        results.append(env.temp(kind, width) if target is not None else None)
        if target is not None:
            o.store(o.const(0, kind, width), results[-1])
    with env.fn.loop("0", str(width)) as lp, env.scope():
        lane = Val("index", lp.index)
        bit = env.fn.ins(f"lshr i64 {env.fn.ins(f'zext i{width} {env.bits(mask)} to i64')}, {lane.text}")
        with env.fn.if_(env.fn.ins(f"trunc i64 {bit} to i1")), env.scope():
            at = o.load("index", o.gep("index", places, lane))
            values = [o.load(kind, o.gep(kind, p, lane)) for kind, p in operands]
            found = _perform(env, s, o.gep(dt, st.base, at), dt, values)
            for p, x in zip(results, found):
                if p is not None:
                    o.store(x, o.gep(x.dt, p, lane))
    for target, p, kind in ((s.old, results[0], dt), (s.success, results[1], "bool")):
        if target is not None:
            store(env, target, s.coords, o.load(kind, p, width))


def _offset(env: Env, st: Storage, coords) -> Val:
    o, offset = env.o, ZERO
    for c, stride in zip(coords, st.strides):
        offset = o.add(offset, o.mul(value(env, c), stride) if env.varies(c) else term(env, c, stride))
    if st.lanes:
        offset = o.add(o.mul(env.wide(offset), o.splat(index(st.lanes), st.lanes)), o.iota(st.lanes))
    return offset


# --- one element -----------------------------------------------------------------------------------------------------

def _perform(env: Env, s: Update, pointer, dt: str, values: list[Val]) -> tuple[Val, Val]:
    """(the element as found, whether compare_exchange stored)."""
    o, true = env.o, Val("bool", "true")
    if s.order is None:
        old = o.load(dt, pointer)
        if s.kind == "compare_exchange":
            same = _same_bits(env, old, values[0])
            o.store(o.select(same, values[1], old), pointer)
            return old, same
        if s.kind != "load":
            o.store(_new(env, s, old, values), pointer)
        return old, true
    dialect, size = o.dialect, 8 * BYTES[dt]
    alone = size >= 8 * dialect.atomic_bytes                 # the machine can change this element and no other
    if s.kind == "load":
        return _from_bits(env, dt, _load(env, pointer, size, LOAD_ORDERS[s.order])), true
    if s.kind == "store" and alone and dialect.atomic_access:
        env.fn.do(f"store atomic i{size} {_to_bits(env, values[0])}, {pointer_type(pointer)} {pointer}{dialect.scope} "
                  f"{STORE_ORDERS[s.order]}, align {size // 8}")
        return o.const(0, dt), true
    if s.kind == "compare_exchange":
        old, done = _exchange(env, s.order, pointer, size, _to_bits(env, values[0]), _to_bits(env, values[1]))
        return _from_bits(env, dt, old), Val("bool", done)
    native = _native(s.kind, dt)
    if native is not None and alone:
        return _from_bits(env, dt, _rmw(env, native, pointer, size, _to_bits(env, values[0]), ORDERS[s.order])), true
    start = _load(env, pointer, size, "monotonic")
    with env.fn.repeat([(f"i{size}", start)]) as lp, env.scope():
        old = _from_bits(env, dt, lp.carried[0])
        lp.next[0], done = _exchange(env, s.order, pointer, size, lp.carried[0], _to_bits(env, _new(env, s, old, values)))
        lp.again = env.fn.ins(f"xor i1 {done}, true")
    return _from_bits(env, dt, lp.results[0]), true


def _native(kind: str, dt: str) -> str | None:
    """The atomicrmw operation on the memory bits that does it."""
    if kind in ("exchange", "store"):
        return "xchg"
    if kind in ("and", "or", "xor") and not is_float(dt):
        return kind
    if kind == "add" and is_int(dt):
        return "add"
    if kind in ("max", "min") and is_int(dt):
        return kind if is_signed(dt) else "u" + kind
    return None


def _new(env: Env, s: Update, old: Val, values: list[Val]) -> Val:
    if s.kind in ("store", "exchange"):
        return values[0]
    if s.kind == "generic":
        with env.scope():
            for hole, x in zip((*s.combine.left, *s.combine.right), (old, values[0])):
                env.remember(id(hole), x)
            return value(env, s.combine.results[0])
    return env.o.elementwise(OPERATIONS[s.kind], (old, values[0]), old.dt)


def _rmw(env: Env, operation: str, pointer, size: int, bits: str, order: str) -> str:
    place = f"{pointer_type(pointer)} {pointer}"
    with _fenced(env, order) as order:
        return env.fn.ins(f"atomicrmw {operation} {place}, i{size} {bits}{env.o.dialect.scope} {order}, align {size // 8}")


@contextmanager
def _fenced(env: Env, order: str):
    """The order that an instruction inside is to have: the wanted one, or none between fences that give it."""
    name = env.o.dialect.fence
    if not name or order == "monotonic":
        yield order
        return
    fence = env.fn.module.declare("void", name, "", "convergent nounwind")
    env.fn.do(f"call void {fence}()")
    yield "monotonic"
    env.fn.do(f"call void {fence}()")


def _load(env: Env, pointer, size: int, order: str) -> str:
    """The bits in memory, read at once."""
    dialect = env.o.dialect
    if size < 8 * dialect.atomic_bytes:
        word, shift = _word(env, pointer)
        return _part(env, _load(env, word, 8 * dialect.atomic_bytes, order), shift, size)
    if not dialect.atomic_access:
        return _rmw(env, "or", pointer, size, "0", order)
    return env.fn.ins(f"load atomic i{size}, {pointer_type(pointer)} {pointer}{dialect.scope} {order}, align {size // 8}")


def _exchange(env: Env, order: str, pointer, size: int, expected: str, desired: str) -> tuple[str, str]:
    """(bits found, whether they were the expected ones and have been replaced)."""
    if size < 8 * env.o.dialect.atomic_bytes:
        return _exchange_part(env, order, pointer, size, expected, desired)
    with _fenced(env, ORDERS[order]) as success:
        failure = success if success == "monotonic" else LOAD_ORDERS[order]
        pair = env.fn.ins(f"cmpxchg {pointer_type(pointer)} {pointer}, i{size} {expected}, i{size} {desired}{env.o.dialect.scope} "
                          f"{success} {failure}")
    return env.fn.ins(f"extractvalue {{ i{size}, i1 }} {pair}, 0"), env.fn.ins(f"extractvalue {{ i{size}, i1 }} {pair}, 1")


def _exchange_part(env: Env, order: str, pointer, size: int, expected: str, desired: str) -> tuple[str, str]:
    """The same inside the smallest word that can be exchanged: again while only its other bytes have changed."""
    fn, bits = env.fn, 8 * env.o.dialect.atomic_bytes
    word, shift = _word(env, pointer)
    want = fn.ins(f"zext i{size} {desired} to i{bits}")
    placed = fn.ins(f"shl i{bits} {want}, {shift}")
    others = fn.ins(f"xor i{bits} {fn.ins(f'shl i{bits} {(1 << size) - 1}, {shift}')}, -1")
    with fn.repeat([(f"i{bits}", _load(env, word, bits, "monotonic"))]) as lp:
        whole = lp.carried[0]
        same = fn.ins(f"icmp eq i{size} {_part(env, whole, shift, size)}, {expected}")
        new = fn.ins(f"or i{bits} {fn.ins(f'and i{bits} {whole}, {others}')}, {placed}")
        # Where the element differs the word is put back as it was, which changes nothing.
        new = fn.ins(f"select i1 {same}, i{bits} {new}, i{bits} {whole}")
        lp.next[0], done = _exchange(env, order, word, bits, whole, new)
        lp.again = fn.ins(f"xor i1 {done}, true")
    return _part(env, lp.results[0], shift, size), same


def _word(env: Env, pointer) -> tuple[Pointer, str]:
    """The word around a small element, and how many bits of it lie below the element."""
    fn, size, kind = env.fn, env.o.dialect.atomic_bytes, pointer_type(pointer)
    address = fn.ins(f"ptrtoint {kind} {pointer} to i64")
    start = fn.ins(f"and i64 {address}, {-size}")
    below = fn.ins(f"shl i64 {fn.ins(f'and i64 {address}, {size - 1}')}, 3")
    shift = below if size == 8 else fn.ins(f"trunc i64 {below} to i{8 * size}")
    return Pointer(fn.ins(f"inttoptr i64 {start} to {kind}"), getattr(pointer, "space", 0)), shift


def _part(env: Env, word: str, shift: str, size: int) -> str:
    bits = 8 * env.o.dialect.atomic_bytes
    return env.fn.ins(f"trunc i{bits} {env.fn.ins(f'lshr i{bits} {word}, {shift}')} to i{size}")


def _to_bits(env: Env, x: Val) -> str:
    """A value as the integer that lies in memory: through a stack slot, which becomes a register move."""
    slot = env.temp(x.dt, 1)
    env.o.store(x, slot)
    return env.fn.ins(f"load i{8 * BYTES[x.dt]}, ptr {slot}")


def _from_bits(env: Env, dt: str, bits: str) -> Val:
    slot = env.temp(dt, 1)
    env.fn.do(f"store i{8 * BYTES[dt]} {bits}, ptr {slot}")
    return env.o.load(dt, slot)


def _same_bits(env: Env, a: Val, b: Val) -> Val:
    size = 8 * BYTES[a.dt]
    return Val("bool", env.fn.ins(f"icmp eq i{size} {_to_bits(env, a)}, {_to_bits(env, b)}"))
