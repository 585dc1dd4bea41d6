"""Reductions: section 12 R over a loop, and the order-free kinds.

``horizontal``: the lanes of a tile are the 32 accumulators of the tree. Otherwise the loop is sequential, each lane (or the one
scalar) reduces its own elements, and the 32 accumulators of the tree lie in memory. Chunks of 4096 elements give partial results
that are reduced by the same rule, level by level, in a small memory state.
"""
from __future__ import annotations

import math
from dataclasses import dataclass, field

from ...kir.ops import CHUNK, LANES
from ...kir.types import BITS, int_range, is_float, is_int, is_signed
from ...task.program import Axis, Reduce, Scan, Store, Update
from ..llvm.values import Val
from .env import ZERO, Env, Variable, index
from .expr import hoist, value
from .memory import store
from .plan import sink_roots, sink_targets

OPERATION = {"sum": "add", "prod": "mul", "fma": "add", "max": "maximum", "min": "minimum", "any": "or", "all": "and",
             "and": "and", "or": "or", "xor": "xor"}
LEVELS = 3
"""Levels above the leaf: 4096^4 elements."""
NOWHERE = (1 << 63) - 1
"""The index of an arg reduction of no element."""


def identity(kind: str, dt: str):
    """The Python value that a builtin reduction of no element gives."""
    match kind:
        case "sum" | "or" | "xor" | "any" | "fma":
            return 0
        case "prod":
            return 1
        case "all" | "and":
            return 1 if dt == "bool" else -1 if is_signed(dt) else int_range(dt)[1]
        case "max" | "argmax":
            return int_range(dt)[0] if is_int(dt) else False if dt == "bool" else -_top(dt)
        case _:
            return int_range(dt)[1] if is_int(dt) else True if dt == "bool" else _top(dt)


def _top(dt: str) -> float:
    return 448.0 if dt == "f8e4m3fn" else math.inf


def of_nothing(env: Env, s: Reduce) -> list[Val]:
    """The results over an empty axis."""
    if s.kind == "generic":
        return [value(env, x) for x in s.identities]
    dt = s.values[0].dt
    unit = env.o.const(identity(s.kind, dt), dt)
    return [unit, index(NOWHERE)] if s.kind.startswith("arg") else [unit]


def merge(env: Env, s: Reduce | Scan, a: list[Val], b: list[Val]) -> list[Val]:
    """a ⊕ b."""
    o = env.o
    if s.kind == "generic":
        with env.scope():
            for hole, x in zip((*s.combine.left, *s.combine.right), (*a, *b)):
                env.remember(id(hole), x)
            return [value(env, r) for r in s.combine.results]
    if s.kind in ("argmax", "argmin"):                       # (key, index), or (value, key, index)
        (ka, ia), (kb, ib) = a[-2:], b[-2:]
        wins = o.or_(o.gt(kb, ka), o.and_(o.eq(kb, ka), o.lt(ib, ia)))
        return [o.select(wins, y, x) for x, y in zip(a, b)]
    return [o.elementwise(OPERATION[s.kind], (a[0], b[0]), a[0].dt)]


@dataclass
class Accumulator:
    """One reduction in progress. ``dts``: dtypes of what is carried; ``lanes``: of one element as it arrives; ``wide``: of a result."""
    sink: Reduce
    dts: list[str]
    horizontal: bool
    lanes: int
    wide: int
    tree: bool
    current: list[Variable] = field(default_factory=list)
    before: list[Variable] = field(default_factory=list)     # horizontal: as it was before the last tile
    slots: list[str] = field(default_factory=list)           # vertical tree: 32 elements in memory
    levels: list[str] = field(default_factory=list)
    results: list[Variable] = field(default_factory=list)


def reduce(env: Env, axis: Axis, horizontal: bool, sinks, perform) -> None:
    """Reduce over ``axis`` at the current point of the other loops, and store the results. The axis is not empty."""
    o = env.o
    n = env.extent(axis.extent)
    chunked = axis.extent.const is None or axis.extent.const > CHUNK
    accs = {id(s): accumulator(env, s, horizontal, chunked) for s in sinks if isinstance(s, Reduce)}
    trees = [a for a in accs.values() if a.tree]
    hoist(env, [r for s in sinks for r in sink_roots(s)], frozenset(t for s in sinks for t in sink_targets(s)))
    for a in accs.values():
        if not a.tree:
            reset(env, a)
    if not trees or not chunked:
        for a in trees:
            reset(env, a)
        _sweep(env, axis, horizontal, ZERO, n, sinks, accs, perform)
        for a in trees:
            assign(a.results, fold(env, a, n))
    else:
        chunks = o.shr(o.add(n, index(CHUNK - 1)), index(12))
        with env.fn.loop("0", chunks.text) as lp, env.scope():
            c = Val("index", lp.index)
            lo = o.shl(c, index(12))
            hi = minimum(env, o.add(lo, index(CHUNK)), n)
            for a in trees:
                reset(env, a)
            _sweep(env, axis, horizontal, lo, hi, sinks, accs, perform)
            for a in trees:
                part = fold(env, a, o.sub(hi, lo))
                with env.fn.if_else(o.eq(chunks, index(1)).text) as branch:
                    assign(a.results, part)
                    branch.orelse()
                    push(env, a, part, c, chunks)
    for a in accs.values():
        if not a.tree:
            assign(a.results, fold(env, a, n))
    for a in accs.values():
        finish(env, a, axis)


def finish(env: Env, a: Accumulator, axis: Axis) -> None:
    """Store the results."""
    results = [v.get() for v in a.results]
    if a.sink.kind.startswith("arg"):
        if a.horizontal:                                     # the value was not carried: it is the element at the index
            with env.bound(axis.name, results[-1]):
                results.insert(0, value(env, a.sink.values[0]))
        results = [results[0], results[-1]]
    for target, x in zip(a.sink.targets, results):
        store(env, target, a.sink.coords, x)


def accumulator(env: Env, s: Reduce, horizontal: bool, chunked: bool) -> Accumulator:
    dts = carried(s, horizontal)
    tree = s.form == "tree" or s.kind == "generic"
    lanes = LANES if horizontal else env.lanes
    wide = 0 if horizontal else env.lanes
    a = Accumulator(s, dts, horizontal, lanes, wide, tree)
    a.results = [env.variable(dt, lanes=wide) for dt in dts]
    running = [dts[0], "i32"] if horizontal and s.kind.startswith("arg") else dts        # the number of a tile fits
    if horizontal or not tree:
        a.current = [env.variable(dt, lanes=lanes) for dt in running]
    if horizontal:
        a.before = [env.variable(dt, lanes=lanes) for dt in running]
    elif tree:
        a.slots = [env.temp(dt, LANES * max(lanes, 1)) for dt in dts]
    if tree and chunked:
        a.levels = [env.temp(dt, LEVELS * LANES * max(wide, 1)) for dt in dts]
    return a


def carried(s: Reduce, horizontal: bool) -> list[str]:
    """Dtypes of what a reduction carries: arg reductions a key and an index, and the value where it cannot be read again."""
    dts = [v.dt for v in s.values]
    if s.kind.startswith("arg"):
        return [_key_dt(dts[0]), "index"] if horizontal else [dts[0], _key_dt(dts[0]), "index"]
    return dts[:1] if s.kind == "fma" else dts


def assign(variables, values) -> None:
    for v, x in zip(variables, values):
        v.set(x)


def _initial(env: Env, a: Accumulator) -> list[Val]:
    """What an accumulator holds before its first element. A generic one holds nothing: this is never combined."""
    o, s = env.o, a.sink
    if s.kind == "generic":
        return [o.const(0, dt) for dt in a.dts]
    if s.kind.startswith("arg"):                             # the lowest key, at the lane's first place: a tie there is no mistake
        dt, key = s.values[0].dt, _key_dt(s.values[0].dt)
        start = [o.const(int_range(key)[0], key), o.const(0, "i32" if a.horizontal else "index")]
        return start if a.horizontal else [o.const(identity(s.kind, dt), dt), *start]
    return [o.const(identity(s.kind, a.dts[0]), a.dts[0])]


def reset(env: Env, a: Accumulator) -> None:
    start = _initial(env, a)
    assign(a.current, start)
    assign(a.before, start)
    if a.slots and a.sink.kind != "generic":
        o = env.o
        with env.fn.loop("0", str(LANES)) as lp:
            put(env, a.dts, a.slots, Val("index", lp.index), a.lanes, [o.splat(x, a.lanes) for x in start])


# --- elements --------------------------------------------------------------------------------------------------------

def _sweep(env: Env, axis: Axis, horizontal: bool, lo: Val, hi: Val, sinks, accs, perform) -> None:
    """Feed elements lo .. hi-1."""
    o = env.o
    with env.fn.loop(lo.text, hi.text, LANES if horizontal else 1) as lp:
        i = Val("index", lp.index)
        here = env.tiled(env.make_tile(axis.name, i, hi, LANES)) if horizontal else env.bound(axis.name, i)
        with here:
            for s in sinks:
                if isinstance(s, (Store, Update)):
                    perform(env, s)
                else:
                    feed(env, accs[id(s)], o.sub(i, lo), i)
    if not horizontal:
        return
    last = o.add(o.and_(o.sub(o.sub(hi, lo), index(1)), index(LANES - 1)), index(1))
    there = o.lt(o.iota(LANES, "i32"), o.splat(Val("i32", env.fn.ins(f"trunc i64 {last.text} to i32")), LANES))
    for a in accs.values():
        for now, old in zip(a.current, a.before):
            now.set(o.select(there, now.get(), old.get()))


def feed(env: Env, a: Accumulator, at: Val, i: Val) -> None:
    """One element (of every lane); ``at`` counts from the leaf's begin."""
    o, x = env.o, operands(env, a, i)
    if a.current:
        old = [v.get() for v in a.current]
        new = combined(env, a, old, x)
        if a.sink.kind == "generic":
            first = o.eq(at, ZERO)
            new = [o.select(first, p, q) for p, q in zip(x, new)]
        assign(a.before, old)
        assign(a.current, new)
        return
    slot = o.and_(at, index(LANES - 1))
    if a.sink.kind != "generic":
        return put(env, a.dts, a.slots, slot, a.lanes, combined(env, a, get(env, a.dts, a.slots, slot, a.lanes), x))
    with env.fn.if_else(o.lt(at, index(LANES)).text) as branch:
        put(env, a.dts, a.slots, slot, a.lanes, x)
        branch.orelse()
        with env.scope():
            put(env, a.dts, a.slots, slot, a.lanes, combined(env, a, get(env, a.dts, a.slots, slot, a.lanes), x))


def operands(env: Env, a: Accumulator, i: Val) -> list[Val]:
    """What the element at ``i`` brings to the accumulator."""
    o, s = env.o, a.sink
    x = [value(env, v) for v in s.values]
    if a.lanes:
        x = [env.wide(v) for v in x]
    if not s.kind.startswith("arg"):
        return x
    key = _key(env, s.kind, x[0])
    if a.horizontal:
        return [key, o.splat(Val("i32", env.fn.ins(f"trunc i64 {o.shr(i, index(5)).text} to i32")), LANES)]
    return [x[0], key, o.splat(i, a.lanes)]


def combined(env: Env, a: Accumulator, old: list[Val], x: list[Val]) -> list[Val]:
    """The accumulator after an element."""
    o, s = env.o, a.sink
    if s.kind.startswith("arg"):                             # indices ascend: the older of two equals wins
        wins = o.gt(x[-2], old[-2])
        return [o.select(wins, new, kept) for new, kept in zip(x, old)]
    if s.kind == "fma":
        return [o.fma(x[0], x[1], old[0]) if is_float(x[0].dt) else o.add(o.mul(x[0], x[1]), old[0])]
    return merge(env, s, old, x)


def get(env: Env, dts, memory, slot: Val, lanes: int) -> list[Val]:
    o = env.o
    at = o.mul(slot, index(max(lanes, 1)))
    return [o.load(dt, o.gep(dt, m, at), lanes) for dt, m in zip(dts, memory)]


def put(env: Env, dts, memory, slot: Val, lanes: int, values) -> None:
    o = env.o
    at = o.mul(slot, index(max(lanes, 1)))
    for dt, m, x in zip(dts, memory, values):
        o.store(o.splat(x, lanes), o.gep(dt, m, at))


# --- folding ---------------------------------------------------------------------------------------------------------

def fold(env: Env, a: Accumulator, n: Val) -> list[Val]:
    """The leaf's result after ``n`` elements."""
    if not a.horizontal:
        if a.current:
            return [v.get() for v in a.current]
        _fold_slots(env, a, a.slots, ZERO, a.lanes, n)
        return get(env, a.dts, a.slots, ZERO, a.lanes)
    o, x = env.o, [v.get() for v in a.current]
    if a.sink.kind.startswith("arg"):
        x[1] = o.add(o.mul(o.convert(x[1], "index"), o.splat(index(LANES), LANES)), o.iota(LANES))
    half = LANES // 2
    while half:
        low, high = [o.slice(v, 0, half) for v in x], [o.slice(v, half, half) for v in x]
        if half == 1:
            low, high = [o.extract(v, 0) for v in low], [o.extract(v, 0) for v in high]
        new = merge(env, a.sink, low, high)
        if a.sink.kind == "generic":
            lanes = half if half > 1 else 0
            place = o.add(o.iota(half), index(half)) if lanes else index(1)
            there = o.lt(place, o.splat(n, lanes))
            new = [o.select(there, p, q) for p, q in zip(new, low)]
        x, half = new, half // 2
    return x


def _fold_slots(env: Env, a: Accumulator, memory, first: Val, lanes: int, n: Val) -> None:
    """Fold slots first .. first+31 into ``first``; after ``n`` elements only min(n, 32) of them hold something."""
    o = env.o
    with env.fn.repeat([("i64", str(LANES // 2))]) as outer:
        half = Val("index", outer.carried[0])
        with env.fn.loop("0", half.text) as inner:
            low = Val("index", inner.index)
            high = o.add(low, half)
            with env.fn.if_(o.lt(high, n).text), env.scope():
                p = get(env, a.dts, memory, o.add(first, low), lanes)
                q = get(env, a.dts, memory, o.add(first, high), lanes)
                put(env, a.dts, memory, o.add(first, low), lanes, merge(env, a.sink, p, q))
        following = o.shr(half, index(1))
        outer.next[0] = following.text
        outer.again = o.gt(following, ZERO).text


def push(env: Env, a: Accumulator, part: list[Val], c: Val, count: Val) -> None:
    """Element ``c`` of ``count`` > 1 partial results: reduce them by the same rule, level by level."""
    o, fn = env.o, env.fn
    carries = [("i64", "0"), ("i64", c.text), ("i64", count.text)] + [(p.type, p.text) for p in part]
    with fn.repeat(carries) as lp:
        level, i, n = (Val("index", t) for t in lp.carried[:3])
        x = [Val(p.dt, t, p.lanes) for p, t in zip(part, lp.carried[3:])]
        at = o.and_(i, index(CHUNK - 1))
        first = o.shl(level, index(5))
        slot = o.add(first, o.and_(at, index(LANES - 1)))
        with fn.if_else(o.lt(at, index(LANES)).text) as branch:
            put(env, a.dts, a.levels, slot, a.wide, x)
            branch.orelse()
            with env.scope():
                put(env, a.dts, a.levels, slot, a.wide, merge(env, a.sink, get(env, a.dts, a.levels, slot, a.wide), x))
        leaf_ends = o.or_(o.eq(at, index(CHUNK - 1)), o.eq(o.add(i, index(1)), n))
        with fn.if_else(leaf_ends.text) as branch:
            _fold_slots(env, a, a.levels, first, a.wide, o.add(at, index(1)))
            folded = get(env, a.dts, a.levels, first, a.wide)
            more = o.gt(n, index(CHUNK))
            with fn.if_(o.not_(more).text):
                assign(a.results, folded)
            branch.yields(("i1", more.text), *((p.type, p.text) for p in folded))
            branch.orelse()
            branch.yields(("i1", "false"), *((p.type, p.text) for p in x))
        up = o.shr(o.add(n, index(CHUNK - 1)), index(12))
        lp.next[:] = [o.add(level, index(1)).text, o.shr(i, index(12)).text, up.text, *branch.results[1:]]
        lp.again = branch.results[0]


def minimum(env: Env, a: Val, b: Val) -> Val:
    return env.o.select(env.o.lt(a, b), a, b)


# --- order of arg reductions -------------------------------------------------------------------------------------------

def _key_dt(dt: str) -> str:
    if is_float(dt):
        return "i64" if dt == "f64" else "i32"
    return "i8" if dt == "bool" else f"i{BITS[dt]}"


def _key(env: Env, kind: str, x: Val) -> Val:
    """A signed integer that grows with the rank of x: NaN first, then by value with -0 below +0."""
    o, dt = env.o, _key_dt(x.dt)
    if x.dt == "bool":
        key = o.convert(x, "i8")
    elif is_float(x.dt):
        raw = x if x.dt == "f64" else o.convert(x, "f32")
        bits = o.bitcast(raw, dt)
        sign = o.shr(bits, o.const(BITS[dt] - 1, dt))
        key = o.xor(bits, o.and_(sign, o.const(int_range(dt)[1], dt)))
    elif is_signed(x.dt):
        key = o.relabel(x, dt)
    else:
        key = o.xor(o.relabel(x, dt), o.const(int_range(dt)[0], dt))
    if kind == "argmin":
        key = o.not_(key)
    if is_float(x.dt):
        key = o.select(o.ne(x, x), o.const(int_range(dt)[1], dt), key)
    return key
