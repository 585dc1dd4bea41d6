"""Scans that all work-items of a group do together, with the bits of section 12 S at any group size.

A tile of elements lies in local memory. Its blocks of 32 are combined side by side at distances 1, 2, 4, 8, 16, in two buffers that take
turns; the leader then walks the blocks, since what is carried into a block depends on all before it; at last every element
joins what was carried to it.
"""
from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass

from ...kir.ops import CHUNK, LANES
from ...task.program import Axis, Scan
from ..llvm.values import Val
from ..mapping.env import ONE, ZERO, index
from ..mapping.expr import value
from ..mapping.memory import store
from ..mapping.reductions import assign, identity, merge, minimum
from .env import Env, hoist_sinks


@dataclass
class _Scan:
    """One scan: two buffers of a tile that take turns, the value carried into each block of the tile, and three values in local
    memory: the running carry, the total of the chunks before, and the last result of the tile before."""
    sink: Scan
    dts: list[str]
    near: list
    far: list
    carries: list
    carry: list
    total: list
    last: list


def scan(env: Env, axis: Axis, sinks, perform) -> None:
    """Prefixes over an axis. Positions count in scan order."""
    o, fn = env.o, env.fn
    n = env.extent(axis.extent)
    tile = 1 << min(max(env.size, LANES).bit_length() - 1, 12)                # whole blocks, and whole tiles in a chunk
    with fn.if_(o.gt(n, ZERO).text), env.scope(), env.shared_scope():
        hoist_sinks(env, sinks)
        states = {id(s): _scan_state(env, s, tile) for s in sinks if isinstance(s, Scan)}
        reverse = next(iter(states.values())).sink.reverse
        with fn.loop("0", n.text, tile) as lp, env.scope():
            start = Val("index", lp.index)
            count = minimum(env, o.sub(n, start), index(tile))
            with _each(env, count) as k:
                with env.bound(axis.name, _place(env, reverse, n, o.add(start, k))):
                    for s in sinks:
                        if isinstance(s, Scan):
                            env.put_all(states[id(s)].near, k, [value(env, v) for v in s.values])
                        else:
                            perform(env, s)
            env.barrier()
            for step in (1, 2, 4, 8, 16):
                with _each(env, count) as k:
                    for state in states.values():
                        _combine_at(env, state, k, step)
                env.barrier()
                for state in states.values():
                    state.near, state.far = state.far, state.near
            before = {key: [env.variable(dt) for dt in state.dts] for key, state in states.items()}
            for key, state in states.items():
                assign(before[key], env.get_all(state.dts, state.last, ZERO))
            env.barrier()                                    # read by all before the leader changes it
            with env.led():
                for state in states.values():
                    _carry(env, state, start, count)
            env.barrier()
            with _each(env, count) as k:
                with env.bound(axis.name, _place(env, reverse, n, o.add(start, k))):
                    for key, state in states.items():
                        _emit(env, state, start, k, [v.get() for v in before[key]])
            env.barrier()
            for state in states.values():                    # an odd number of steps: the next tile begins as this one did
                state.near, state.far = state.far, state.near


def _scan_state(env: Env, s: Scan, tile: int) -> _Scan:
    dts = [v.dt for v in s.values]
    room = lambda count: [env.shared(dt, count) for dt in dts]  # noqa: E731
    state = _Scan(s, dts, room(tile), room(tile), room(tile // LANES), room(1), room(1), room(1))
    if s.kind == "generic":
        units = [value(env, x) for x in s.identities]
    else:
        units = [env.o.const(identity(s.kind, dts[0]), dts[0])]
    with env.led():
        for memory in (state.carry, state.total, state.last):
            env.put_all(memory, ZERO, units)
    env.barrier()
    return state


def _place(env: Env, reverse: bool, n: Val, position: Val) -> Val:
    return env.o.sub(env.o.sub(n, ONE), position) if reverse else position


def _ordered(env: Env, s: Scan, a: list[Val], b: list[Val]) -> list[Val]:
    """a ⊕ b where a comes first in scan order."""
    return merge(env, s, b, a) if s.reverse else merge(env, s, a, b)


@contextmanager
def _each(env: Env, count: Val):
    """The elements of a tile that this work-item owns."""
    with env.fn.loop(env.item.text, count.text, env.size) as lp, env.scope():
        yield Val("index", lp.index)


def _combine_at(env: Env, state: _Scan, k: Val, step: int) -> None:
    """far[k] = near[k - step] ⊕ near[k] inside a block."""
    o = env.o
    x = env.get_all(state.dts, state.near, k)
    with env.fn.if_else(o.ge(o.and_(k, index(LANES - 1)), index(step)).text) as branch:
        with env.scope():
            joined = _ordered(env, state.sink, env.get_all(state.dts, state.near, o.sub(k, index(step))), x)
        branch.yields(*((v.type, v.text) for v in joined))
        branch.orelse()
        branch.yields(*((v.type, v.text) for v in x))
    env.put_all(state.far, k, [Val(v.dt, text) for v, text in zip(x, branch.results)])


def _carry(env: Env, state: _Scan, start: Val, count: Val) -> None:
    """The leader's part of a tile: the value carried into each block, and what the next tile needs."""
    o, fn, dts = env.o, env.fn, state.dts
    begins = o.eq(o.and_(start, index(CHUNK - 1)), ZERO)
    with fn.if_(o.and_(begins, o.gt(start, ZERO)).text), env.scope():
        carry = env.get_all(dts, state.carry, ZERO)
        joined = _ordered(env, state.sink, env.get_all(dts, state.total, ZERO), carry)
        second = o.eq(start, index(CHUNK))
        env.put_all(state.total, ZERO, [o.select(second, c, j) for c, j in zip(carry, joined)])
    running = [env.variable(dt, x) for dt, x in zip(dts, env.get_all(dts, state.carry, ZERO))]
    with fn.loop("0", count.text, LANES) as lp, env.scope():
        k = Val("index", lp.index)
        now = [v.get() for v in running]
        env.put_all(state.carries, o.shr(k, index(5)), now)
        end = minimum(env, o.add(k, index(LANES - 1)), o.sub(count, ONE))
        block = env.get_all(dts, state.near, end)
        first = o.and_(begins, o.eq(k, ZERO))
        assign(running, [o.select(first, x, y) for x, y in zip(block, _ordered(env, state.sink, now, block))])
    env.put_all(state.carry, ZERO, [v.get() for v in running])
    env.put_all(state.last, ZERO, _with_total(env, state, start, [v.get() for v in running]))


def _with_total(env: Env, state: _Scan, start: Val, y: list[Val]) -> list[Val]:
    """From a result inside the chunk to the result."""
    o = env.o
    whole = _ordered(env, state.sink, env.get_all(state.dts, state.total, ZERO), y)
    return [o.select(o.lt(start, index(CHUNK)), a, b) for a, b in zip(y, whole)]


def _result(env: Env, state: _Scan, start: Val, k: Val) -> list[Val]:
    o = env.o
    x = env.get_all(state.dts, state.near, k)
    carried = _ordered(env, state.sink, env.get_all(state.dts, state.carries, o.shr(k, index(5))), x)
    first = o.lt(o.and_(o.add(start, k), index(CHUNK - 1)), index(LANES))
    return _with_total(env, state, start, [o.select(first, a, b) for a, b in zip(x, carried)])


def _emit(env: Env, state: _Scan, start: Val, k: Val, before: list[Val]) -> None:
    o, s = env.o, state.sink
    if s.inclusive:
        y = _result(env, state, start, k)
    else:
        previous = o.sub(k, ONE)
        inside = o.gt(k, ZERO)
        y = _result(env, state, start, o.select(inside, previous, ZERO))
        y = [o.select(inside, a, b) for a, b in zip(y, before)]
    for target, x in zip(s.targets, y):
        store(env, target, s.coords, x)
