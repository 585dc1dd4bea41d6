"""What one straight-line block of KIR needs to remember: snapshots of memory, and values too dear to compute twice.

A block is a list of (operation, parallel axes around it). Values are virtual (index functions, inlined into whoever uses
them) unless this analysis, or the kind of the operation, says they are kept. It does not decide where they are kept.
"""
from __future__ import annotations

from dataclasses import dataclass

from ..kir import Buffer, Domain, Op, Scalar, Tensor, Value, walk
from ..kir.ops import CONTROL, ELEMENTWISE, ORDERS, SHAPING, UPDATES, WRITING
from .updates import interleaved

COST = {"exp": 12, "exp2": 10, "log": 18, "log1p": 24, "lgamma": 80, "sin": 40, "cos": 40, "asin": 30, "tanh": 16, "erf": 24,
        "erfc": 40, "i0": 30, "sigmoid": 16, "pow": 60, "power": 64, "rsqrt": 8, "sqrt": 6, "div": 5, "floordiv": 12, "mod": 12,
        "floor_divide": 40, "remainder": 40, "random_bits": 60}
"""Rough operations of one element; whatever is absent costs one."""

DEAR = 8
"""From this cost on, a value wanted by several sinks is kept instead of computed again."""

END = 1 << 30
"""The position of a block's yields."""

PURE = frozenset(ELEMENTWISE) | frozenset(SHAPING) | {"gather", "read"}
"""Operations that are index functions (a read of memory is one as long as the memory does not change)."""


def memory_written(op: Op) -> set[str]:
    """Names of the views and buffers that an operation, or one inside it, writes."""
    out = {op.args[0].name} if op.kind in WRITING else set()
    for r in op.regions:
        for o in walk(r):
            if o.kind in WRITING:
                out.add(o.args[0].name)
    return out


def free_values(op: Op):
    """Values of the outside that the regions of an operation use."""
    inside = {v for r in op.regions for v in r.params}
    for r in op.regions:
        for o in walk(r):
            inside.update(o.results)
            for q in o.regions:
                inside.update(q.params)
    seen = set()
    for r in op.regions:
        for o in walk(r):
            for v in list(o.args) + [y for q in o.regions for y in q.yields]:
                if v not in inside and v not in seen:
                    seen.add(v)
                    yield v
        for v in r.yields:
            if v not in inside and v not in seen:
                seen.add(v)
                yield v


def used_symbols(kernel) -> frozenset[str]:
    """Every ``%name`` that stands in an extent of the kernel."""
    out: set[str] = set()

    def look(v: Value):
        t = v.type
        for e in (t.extent,) if hasattr(t, "extent") else t.shape:
            out.update(s for s in e.symbols if s[0] == "%")
    for p in kernel.params:
        look(p)
    for o in walk(kernel.body):
        for v in o.results:
            look(v)
        for r in o.regions:
            for v in r.params:
                look(v)
        if o.kind == "extent":
            out.update(s for s in o.attrs["e"].symbols if s[0] == "%")
    return frozenset(out)


@dataclass(frozen=True)
class BlockFacts:
    """``keep``: virtual values that must be stored when they are defined, with the reason. ``sinks``: for every value the positions
    of the block at which it is finally evaluated."""
    keep: dict[Value, str]
    sinks: dict[Value, set[int]]


def analyse(block: list[tuple[Op, tuple[str, ...]]], yields: tuple[Value, ...], conflicts, symbols) -> BlockFacts:
    """``block``: operations with the parallel axes around them. ``conflicts(a, b)`` tells whether two memory names may be the same
    memory."""
    items = [op for op, _ in block]
    define = {r: op for op in items for r in op.results}
    depth = {r: len(par) for op, par in block for r in op.results}
    sinks: dict[Value, set[int]] = {}
    users: dict[Value, list[Op]] = {}
    repeated: set[Value] = set()
    crossing: set[Value] = set()
    for v in yields:
        sinks.setdefault(v, set()).add(END)
    for pos in range(len(items) - 1, -1, -1):
        op = items[pos]
        virtual = op.kind in PURE or selectable(op, symbols)
        where = set().union(*(sinks.get(r, ()) for r in op.results)) if virtual else {pos}
        inner = list(free_values(op)) if op.regions else []
        for a in list(op.args) + inner:
            sinks.setdefault(a, set()).update(where)
            users.setdefault(a, []).append(op)
        if op.kind in ("for", "loop", "parallel"):
            repeated.update(inner)
            crossing.update(inner)
        elif op.kind != "gather":                            # which may take another part at every point
            crossing.update(a for a in op.args if depth.get(a, len(block[pos][1])) < len(block[pos][1]))
        if virtual and any(r in repeated for r in op.results):
            repeated.update(op.args)
    writes = [(pos, names) for pos, op in enumerate(items) if (names := memory_written(op))]
    keep: dict[Value, str] = {}
    for pos, op in enumerate(items):
        if op.kind == "read":
            last = max(sinks.get(op.result) or {pos})
            for w, names in writes:
                if pos < w and (w < last or w == last and items[w].kind in CONTROL) and any(conflicts(op.args[0].name, n) for n in names):
                    keep[op.result] = "snapshot"
        elif op.kind in PURE and op.result in crossing and op.result not in keep and isinstance(op.result.type, Tensor):
            if _dear(op, define, keep):
                keep[op.result] = "recomputing at every point costs more"
        if _slow_in_lanes(op):
            v = _downstream(op.result, users, yields)
            if v not in keep and _repeated_by_rows(v, users):
                keep[v] = "every row would compute it again"
        if op.kind == "gather" or op.kind in ELEMENTWISE:
            if COST.get(op.kind, 1) < DEAR or not isinstance(op.result.type, Tensor):
                continue
            v = _downstream(op.result, users, yields)
            if v not in keep and (len(sinks.get(v, ())) > 1 or v in repeated or _widened(v, users)):
                keep[v] = "recomputing costs more"
    return BlockFacts(keep, sinks)


def _downstream(v: Value, users, yields) -> Value:
    """The last value of the elementwise chain that leads away from ``v``: keeping it keeps the whole chain."""
    while True:
        us = users.get(v, ())
        if v in yields or len(us) != 1 or us[0].kind not in ELEMENTWISE or us[0].result.type.shape != v.type.shape:
            return v
        v = us[0].result


def _dear(op: Op, define: dict[Value, Op], keep) -> bool:
    """Do the operations that lead to a value cost much together?"""
    total, todo, seen = 0, [op], set()
    while todo:
        o = todo.pop()
        if id(o) in seen or o.kind not in PURE:
            continue
        seen.add(id(o))
        total += COST.get(o.kind, 1) if o.kind in ELEMENTWISE or o.kind == "gather" else 0
        if total >= DEAR:
            return True
        todo += [define[a] for a in o.args if a in define and a not in keep]
    return False


def _slow_in_lanes(op: Op) -> bool:
    """Is this a division, or a read whose last axis is not the last one of memory?"""
    if op.kind in ("read", "gather"):
        rank = len(op.args[0].type.shape)
        return rank > 0 and isinstance(op.result.type, Tensor) and not isinstance(op.args[rank].type, Domain)
    return op.kind == "div" and isinstance(op.result.type, Tensor)


def _repeated_by_rows(v: Value, users) -> bool:
    """Does a broadcast repeat the value for every row of something? Its last axis, along which lanes lie, stays."""
    return bool(v.type.shape) and any(src and src[-1].const != 1 and _gains_axes(src, dst) for src, dst in _broadcasts(v, users))


def _widened(v: Value, users) -> bool:
    """Does a broadcast repeat the value along new axes?"""
    return any(_gains_axes(src, dst) for src, dst in _broadcasts(v, users))


def _gains_axes(src, dst) -> bool:
    new = len(dst) - len(src)
    return any(e.const != 1 for e in dst[:new]) or any(a.const == 1 and b.const != 1 for a, b in zip(src, dst[new:]))


def _broadcasts(v: Value, users):
    """(shape before, shape after) of every broadcast that a value reaches through changes of shape alone."""
    todo = list(users.get(v, ()))
    while todo:
        u = todo.pop()
        if u.kind == "broadcast":
            yield u.args[0].type.shape, u.result.type.shape
        if u.kind in ("expand", "broadcast"):
            todo += users.get(u.result, ())


SELECT_COST = 40
"""A branch without effects up to this cost is computed on both sides and selected."""


def selectable(op: Op, symbols) -> bool:
    """Is this an ``if`` over scalars that touches nothing and is cheap enough to compute both sides?"""
    if op.kind != "if":
        return False
    cost = 0
    for r in op.regions:
        for o in r.ops:
            if o.kind in ("read", "gather") or not (o.kind in PURE or selectable(o, symbols)):
                return False
            if any(isinstance(v.type, Tensor) for v in o.results):
                return False
            cost += COST.get(o.kind, 1)
    named = [v for r in op.regions for o in r.ops for v in o.results] + list(op.results)
    return cost <= SELECT_COST and all(isinstance(v.type, Scalar) for v in op.results) and not any(f"%{v.name}" in symbols for v in named)


def scalar_only(op: Op) -> bool:
    """No tensors and no parallel points inside: a program for one lane."""
    for r in op.regions:
        for v in r.params:
            if isinstance(v.type, Tensor):
                return False
        for o in walk(r):
            if o.kind == "parallel":
                return False
            if any(isinstance(v.type, Tensor) for v in o.results):
                return False
            if o.kind == "write" and isinstance(o.args[-2 if o.attrs.get("guard") else -1].type, Tensor):
                return False
            if (o.kind in UPDATES or o.kind == "check") and any(isinstance(v.type, (Tensor, Domain)) for v in o.args):
                return False
            if any(isinstance(v.type, Tensor) for q in o.regions for v in q.params):
                return False
    return not any(isinstance(v.type, Tensor) for v in (*op.args, *op.results))


def straight(region, outer_symbols: frozenset[str], alias=frozenset()) -> bool:
    """Can a parallel region be dissolved into axes of its sinks? Only without control, buffers and extents of its own."""
    if interleaved(region):
        return False
    for o in walk(region):
        if o.kind in ("loop", "buffer") or o.kind == "if" and not selectable(o, outer_symbols):
            return False
        if o.kind == "for" and not independent(o, alias):
            return False
        if any(isinstance(v.type, Buffer) for v in o.results):
            return False
        for v in o.results:
            if isinstance(v.type, Scalar) and f"%{v.name}" in outer_symbols:
                return False
        for q in o.regions if o.kind in ("parallel", "for") else ():
            if any(f"%{v.name}" in outer_symbols for v in q.params):
                return False
    return not any(f"%{v.name}" in outer_symbols for v in region.params)


def independent(op: Op, alias) -> bool:
    """Is this an ordered loop whose iterations cannot meet? It carries nothing, and wherever it touches memory that it writes, its
    own coordinate stands at one common position of the index."""
    if op.kind != "for" or len(op.args) > 1 or op.attrs.get("breaks"):
        return False
    (region,) = op.regions
    iv = region.params[0]
    own = {v for o in walk(region) for v in o.results if isinstance(v.type, Buffer)}
    places: dict[Value, set[int]] = {}
    written: set[Value] = set()
    for o in walk(region):
        if o.kind in ORDERS:
            return False
        if o.kind in ("read", "write", "scatter_reduce") and o.args[0] not in own:
            memory = o.args[0]
            here = {i for i, a in enumerate(o.args[1:1 + len(memory.type.shape)]) if a is iv}
            places[memory] = places.get(memory, here) & here
            if o.kind in WRITING:
                written.add(memory)
    names = {m.name for m in places}
    return all(places[m] for m in written) and not any(frozenset((m.name, n)) in alias for m in written for n in names)
