"""How elements are read and written: contiguous, masked, and through indices."""
from __future__ import annotations

from dataclasses import dataclass

from .convert import carrier, from_memory, to_memory
from .values import BYTES, MEMORY, REGISTER, SMALL, Val, memory_type, scalar_literal, vector


@dataclass(frozen=True)
class Pointer:
    """An address in an address space. Plain text stands for space 0."""
    text: str
    space: int = 0

    def __str__(self):
        return self.text


def pointer_type(ptr) -> str:
    space = getattr(ptr, "space", 0)
    return f"ptr addrspace({space})" if space else "ptr"


def gep(o, dt: str, ptr, index):
    index = str(index.text if isinstance(index, Val) else index)
    if index == "0":
        return ptr
    text = o.fn.ins(f"getelementptr {MEMORY[dt]}, {pointer_type(ptr)} {ptr}, i64 {index}")
    return Pointer(text, ptr.space) if isinstance(ptr, Pointer) else text


def load(o, dt: str, ptr, lanes: int, align: int | None) -> Val:
    text = o.fn.ins(f"load {memory_type(dt, lanes)}, {pointer_type(ptr)} {ptr}, align {align or BYTES[dt]}")
    return from_memory(o, Val(carrier(dt), text, lanes), dt)


def store(o, x: Val, ptr, align: int | None, nontemporal: bool) -> None:
    raw = to_memory(o, x)
    hint = f", !nontemporal {o.module.metadata('!{i32 1}')}" if nontemporal else ""
    o.fn.do(f"store {raw.type} {raw.text}, {pointer_type(ptr)} {ptr}, align {align or BYTES[x.dt]}{hint}")


def masked_load(o, dt: str, ptr, mask: Val, passthru: Val | None, align: int | None) -> Val:
    lanes = mask.lanes
    if not lanes:
        return _guarded(o, dt, mask, passthru, lambda: load(o, dt, ptr, 0, align))
    kind = memory_type(dt, lanes)
    text = _masked(o, kind, f"load.{_suffix(dt, lanes)}.{_space(ptr)}",
                   [(pointer_type(ptr), ptr), ("i32", align or BYTES[dt]), (mask.type, mask.text), (kind, "zeroinitializer")])
    return _fill(o, from_memory(o, Val(carrier(dt), text, lanes), dt), mask, passthru)


def masked_store(o, x: Val, ptr, mask: Val, align: int | None) -> None:
    lanes = mask.lanes
    if not lanes:
        with o.fn.if_(mask.text):
            store(o, x, ptr, align, False)
        return
    raw = to_memory(o, o.splat(x, lanes))
    _masked(o, "void", f"store.{_suffix(x.dt, lanes)}.{_space(ptr)}",
            [(raw.type, raw.text), (pointer_type(ptr), ptr), ("i32", align or BYTES[x.dt]), (mask.type, mask.text)])


def gather(o, dt: str, ptr, offsets: Val, mask: Val | None, passthru: Val | None) -> Val:
    lanes = offsets.lanes
    if not lanes:
        if mask is None:
            return load(o, dt, gep(o, dt, ptr, offsets), 0, None)
        return _guarded(o, dt, mask, passthru, lambda: load(o, dt, gep(o, dt, ptr, offsets), 0, None))
    addresses, space = _addresses(o, dt, ptr, offsets)
    kind = memory_type(dt, lanes)
    guard = o.splat(mask, lanes).text if mask else "splat (i1 true)"
    text = _masked(o, kind, f"gather.{_suffix(dt, lanes)}.v{lanes}{_space(ptr)}",
                   [(space, addresses), ("i32", BYTES[dt]), (_mask(lanes), guard), (kind, "zeroinitializer")])
    x = from_memory(o, Val(carrier(dt), text, lanes), dt)
    return _fill(o, x, mask, passthru) if mask else x


def scatter(o, x: Val, ptr, offsets: Val, mask: Val | None) -> None:
    lanes = max(offsets.lanes, x.lanes, mask.lanes if mask else 0)
    if not lanes:
        if mask is None:
            store(o, x, gep(o, x.dt, ptr, offsets), None, False)
            return
        with o.fn.if_(mask.text):
            store(o, x, gep(o, x.dt, ptr, offsets), None, False)
        return
    addresses, space = _addresses(o, x.dt, ptr, o.splat(offsets, lanes))
    raw = to_memory(o, o.splat(x, lanes))
    guard = o.splat(mask, lanes).text if mask else "splat (i1 true)"
    _masked(o, "void", f"scatter.{_suffix(x.dt, lanes)}.v{lanes}{_space(ptr)}",
            [(raw.type, raw.text), (space, addresses), ("i32", BYTES[x.dt]), (_mask(lanes), guard)])


def table(o, values: tuple, dt: str, index: Val) -> Val:
    """A constant global read at ``index``; small floats are kept as f32, their register form."""
    kept = "f32" if dt in SMALL else dt
    element = REGISTER[kept] if kept != "bool" else "i8"
    items = ", ".join(f"{element} {scalar_literal(v, kept) if kept != 'bool' else int(v)}" for v in values)
    name = o.module.constant(f"[{len(values)} x {element}]", f"[{items}]", BYTES[kept])
    space = o.dialect.constant_space
    ptr = Pointer(name, space) if space else name
    if index.dt not in ("i64", "u64", "index"):
        index = o.convert(index, "i64")
    return o.relabel(gather(o, kept, ptr, index, None, None), dt)


def _masked(o, ret: str, name: str, args) -> str | None:
    """Call ``llvm.masked.name`` on (type, text) pairs."""
    callee = o.module.declare(ret, f"llvm.masked.{name}", ", ".join(t for t, _ in args))
    return o.fn.call(ret, callee, args)


def _guarded(o, dt: str, mask: Val, passthru: Val | None, read) -> Val:
    fill = passthru or o.const(0, dt)
    with o.fn.if_else(mask.text) as branch:
        x = read()
        branch.yields((x.type, x.text))
        branch.orelse()
        branch.yields((x.type, fill.text))
    return Val(dt, branch.results[0])


def _fill(o, x: Val, mask: Val, passthru: Val | None) -> Val:
    return x if passthru is None else o.select(mask, x, passthru)


def _addresses(o, dt: str, ptr, offsets: Val) -> tuple[str, str]:
    """A vector of pointers and its type."""
    kind = pointer_type(ptr)
    text = o.fn.ins(f"getelementptr {MEMORY[dt]}, {kind} {ptr}, {offsets.type} {offsets.text}")
    return text, vector(kind, offsets.lanes)


def _suffix(dt: str, lanes: int) -> str:
    element = {"float": "f32", "double": "f64"}.get(MEMORY[dt], MEMORY[dt])
    return f"v{lanes}{element}"


def _space(ptr) -> str:
    return f"p{getattr(ptr, 'space', 0)}"


def _mask(lanes: int) -> str:
    return f"<{lanes} x i1>"
