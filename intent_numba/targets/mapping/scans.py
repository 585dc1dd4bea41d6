"""Prefix scans: section 12 S over a loop, and the order-free kinds.

``horizontal``: a tile of 32 lanes is one block, combined by shuffles. Otherwise the loop is sequential: order-free kinds carry one
value, the tree form collects a block of 32 elements in memory. Positions count in scan order; a reverse scan walks the axis
from its end and swaps the operands of the combine.
"""
from __future__ import annotations

from dataclasses import dataclass

from ...kir.ops import CHUNK, LANES
from ...task.program import Axis, Scan, Store, Update
from ..llvm.values import Val
from .env import ONE, ZERO, Env, Variable, index
from .expr import hoist, value
from .memory import store
from .plan import sink_roots, sink_targets
from .reductions import identity, merge


@dataclass
class State:
    """``carry``: the last result inside the chunk; ``total``: everything before the chunk; ``last``: the last result of all."""
    sink: Scan
    dts: list[str]
    tree: bool
    carry: list[Variable]
    total: list[Variable]
    last: list[Variable]
    units: list[Val]


def scan(env: Env, axis: Axis, horizontal: bool, sinks, perform) -> None:
    o = env.o
    n = env.extent(axis.extent)
    scans = [s for s in sinks if isinstance(s, Scan)]
    if horizontal:
        with env.fn.if_(o.gt(n, ZERO).text), env.scope():
            states = _states(env, scans, 0)
            _hoist(env, sinks)
            _horizontal(env, axis, n, sinks, states, perform)
        return
    lanes = env.lanes
    with env.fn.if_(o.gt(n, ZERO).text), env.scope():
        states = _states(env, scans, lanes)
        _hoist(env, sinks)
        if any(s.tree for s in states.values()):
            _blocks(env, axis, n, sinks, states, perform)
        else:
            _running(env, axis, n, sinks, states, perform)


def _hoist(env: Env, sinks) -> None:
    hoist(env, [r for s in sinks for r in sink_roots(s)], frozenset(t for s in sinks for t in sink_targets(s)))


def _states(env: Env, scans, lanes: int) -> dict[int, State]:
    out = {}
    for s in scans:
        dts = [v.dt for v in s.values]
        if s.kind == "generic":
            units = [value(env, x) for x in s.identities]
        else:
            units = [env.o.const(identity(s.kind, dts[0]), dts[0])]
        three = [[env.variable(dt, u, lanes) for dt, u in zip(dts, units)] for _ in range(3)]
        out[id(s)] = State(s, dts, s.form == "tree" or s.kind == "generic", *three, units)
    return out


def _ordered(env: Env, s: Scan, a: list[Val], b: list[Val]) -> list[Val]:
    """a ⊕ b where a comes first in scan order."""
    return merge(env, s, b, a) if s.reverse else merge(env, s, a, b)


def _choose(env: Env, c: Val, a: list[Val], b: list[Val]) -> list[Val]:
    return [env.o.select(c, x, y) for x, y in zip(a, b)]


def _get(variables) -> list[Val]:
    return [v.get() for v in variables]


def _set(variables, values) -> None:
    for v, x in zip(variables, values):
        v.set(x)


def _enter_chunk(env: Env, state: State, position: Val) -> None:
    """At a block's first position: when a chunk begins, the one before it joins the total."""
    o = env.o
    begins = o.and_(o.eq(o.and_(position, index(CHUNK - 1)), ZERO), o.gt(position, ZERO))
    with env.fn.if_(begins.text), env.scope():
        carry = _get(state.carry)
        joined = _ordered(env, state.sink, _get(state.total), carry)
        _set(state.total, _choose(env, o.eq(position, index(CHUNK)), carry, joined))


def _place(env: Env, s: Scan, n: Val, position: Val) -> Val:
    return env.o.sub(env.o.sub(n, ONE), position) if s.reverse else position


# --- lanes over the scanned axis -----------------------------------------------------------------------------------------

def _horizontal(env: Env, axis: Axis, n: Val, sinks, states, perform) -> None:
    o = env.o
    reverse = next(iter(states.values())).sink.reverse
    with env.fn.loop("0", n.text, LANES) as lp:
        position = Val("index", lp.index)
        for state in states.values():
            if state.tree:
                _enter_chunk(env, state, position)
        if reverse:
            end = o.sub(n, position)
            base = o.select(o.gt(end, index(LANES)), o.sub(end, index(LANES)), ZERO)
            tile = env.make_tile(axis.name, base, end, LANES, descends=True)
        else:
            tile = env.make_tile(axis.name, position, n, LANES)
        with env.tiled(tile):
            for s in sinks:
                if isinstance(s, (Store, Update)):
                    perform(env, s)
                else:
                    _tile(env, states[id(s)], position)


def _tile(env: Env, state: State, position: Val) -> None:
    o, s = env.o, state.sink
    x = [env.wide(value(env, v)) for v in s.values]
    if s.reverse:
        x = [_reversed(env, v) for v in x]
    step = 1
    while step < LANES:
        moved = [o.shuffle(v, [max(k - step, -1) for k in range(LANES)]) for v in x]
        joined = _ordered(env, s, moved, x)
        x = [o.shuffle(old, [k if k < step else LANES + k for k in range(LANES)], new) for old, new in zip(x, joined)]
        step *= 2
    start = position if not state.tree else o.and_(position, index(CHUNK - 1))
    carried = _ordered(env, s, [o.splat(c, LANES) for c in _get(state.carry)], x)
    y = _choose(env, o.eq(start, ZERO), x, carried)
    _set(state.carry, [o.extract(v, LANES - 1) for v in y])
    if state.tree:
        whole = _ordered(env, s, [o.splat(t, LANES) for t in _get(state.total)], y)
        y = _choose(env, o.lt(position, index(CHUNK)), y, whole)
    if not s.inclusive:
        last = _get(state.last)
        _set(state.last, [o.extract(v, LANES - 1) for v in y])
        y = [o.insert(o.shuffle(v, [0, *range(LANES - 1)]), t, 0) for v, t in zip(y, last)]
    if s.reverse:
        y = [_reversed(env, v) for v in y]
    for target, v in zip(s.targets, y):
        store(env, target, s.coords, v)


def _reversed(env: Env, x: Val) -> Val:
    """The tile's existing lanes in reverse order, from lane 0 on."""
    o = env.o
    room = env.temp(x.dt, 2 * LANES)
    o.store(o.shuffle(x, range(LANES - 1, -1, -1)), room)
    return o.load(x.dt, o.gep(x.dt, room, o.sub(index(LANES), env.tile.count)), LANES)


# --- lanes elsewhere, or none ----------------------------------------------------------------------------------------------

def _running(env: Env, axis: Axis, n: Val, sinks, states, perform) -> None:
    """Order-free kinds: one carried value."""
    o = env.o
    reverse = next(iter(states.values())).sink
    with env.fn.loop("0", n.text) as lp:
        position = Val("index", lp.index)
        with env.bound(axis.name, _place(env, reverse, n, position)):
            for s in sinks:
                if isinstance(s, (Store, Update)):
                    perform(env, s)
                    continue
                state = states[id(s)]
                x = [env.wide(value(env, v)) for v in s.values]
                before = _get(state.carry)
                y = _choose(env, o.eq(position, ZERO), x, _ordered(env, s, before, x))
                _set(state.carry, y)
                for target, v in zip(s.targets, y if s.inclusive else before):
                    store(env, target, s.coords, v)


def _blocks(env: Env, axis: Axis, n: Val, sinks, states, perform) -> None:
    """Tree form: blocks of 32 elements in memory, each element as wide as the lanes."""
    o, lanes = env.o, env.lanes
    some = next(iter(states.values())).sink
    size = index(max(lanes, 1))
    rooms = {key: [env.temp(dt, LANES * max(lanes, 1)) for dt in st.dts] for key, st in states.items()}

    def at(state: State, room, k: Val) -> list[Val]:
        return [o.load(dt, o.gep(dt, m, o.mul(k, size)), lanes) for dt, m in zip(state.dts, room)]

    def put(state: State, room, k: Val, values) -> None:
        for dt, m, x in zip(state.dts, room, values):
            o.store(o.splat(x, lanes), o.gep(dt, m, o.mul(k, size)))

    with env.fn.loop("0", n.text, LANES) as outer, env.scope():
        start = Val("index", outer.index)
        left = o.sub(n, start)
        count = o.select(o.lt(left, index(LANES)), left, index(LANES))
        for state in states.values():
            _enter_chunk(env, state, start)
        with env.fn.loop("0", count.text) as lp:
            k = Val("index", lp.index)
            with env.bound(axis.name, _place(env, some, n, o.add(start, k))):
                for s in sinks:
                    if isinstance(s, (Store, Update)):
                        perform(env, s)
                    else:
                        put(states[id(s)], rooms[id(s)], k, [value(env, v) for v in s.values])
        for key, state in states.items():
            _prefix(env, state, rooms[key], count, at, put)
            _emit_block(env, axis, n, state, rooms[key], start, count, at)


def _prefix(env: Env, state: State, room, count: Val, at, put) -> None:
    """Distances 1, 2, 4, 8, 16 in place; from the last element down, so that an element reads what the round began with."""
    o = env.o
    with env.fn.repeat([("i64", "1")]) as rounds:
        step = Val("index", rounds.carried[0])
        with env.fn.loop("0", o.sub(count, step).text) as lp, env.scope():
            k = o.sub(o.sub(count, ONE), Val("index", lp.index))
            put(state, room, k, _ordered(env, state.sink, at(state, room, o.sub(k, step)), at(state, room, k)))
        following = o.shl(step, ONE)
        rounds.next[0] = following.text
        rounds.again = o.lt(following, index(LANES)).text


def _emit_block(env: Env, axis: Axis, n: Val, state: State, room, start: Val, count: Val, at) -> None:
    o, s = env.o, state.sink
    carry, total, last = _get(state.carry), _get(state.total), state.last
    first_block = o.eq(o.and_(start, index(CHUNK - 1)), ZERO)
    first_chunk = o.lt(start, index(CHUNK))
    with env.fn.loop("0", count.text) as lp:
        k = Val("index", lp.index)
        with env.bound(axis.name, _place(env, s, n, o.add(start, k))):
            x = at(state, room, k)
            y = _choose(env, first_block, x, _ordered(env, s, carry, x))
            _set(state.carry, y)
            y = _choose(env, first_chunk, y, _ordered(env, s, total, y))
            out = y
            if not s.inclusive:
                out = _get(last)
                _set(last, y)
            for target, v in zip(s.targets, out):
                store(env, target, s.coords, v)
