"""Reductions and scans that all work-items of a group do together, with the bits of section 12 at any group size.

R: the 32 accumulators of the tree lie in local memory. A team of 32 work-items takes a chunk of 4096 elements, one chain of additions
each; several teams take several chunks at once; a group smaller than 32 runs several chains in each work-item. Partial results of
chunks are combined in order by the leader. S: a tile of elements is combined block by block in local memory.
"""
from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass

from ...kir.ops import CHUNK, LANES
from ...task.program import Axis, Reduce, Scan, Store
from ..llvm.values import Val
from ..map_vector import reductions
from ..map_vector.env import ONE, ZERO, Variable, index
from ..map_vector.expr import hoist, value
from ..map_vector.memory import store
from ..map_vector.plan import sink_roots, sink_targets
from ..map_vector.reductions import Accumulator, LEVELS, merge
from .env import Env


@dataclass
class _Part:
    """One reduction: its running accumulator in each work-item, and where the group's accumulators meet."""
    acc: Accumulator
    slots: list


def reduce(env: Env, axis: Axis, sinks, perform, put) -> None:
    """Reduce over an axis that is not empty; ``put`` stores a result that all work-items hold."""
    _hoist(env, sinks)
    with env.shared_scope():
        n = env.extent(axis.extent)
        parts = {id(s): _part(env, s, axis) for s in sinks if isinstance(s, Reduce)}
        trees = [p for p in parts.values() if p.acc.tree]
        free = [p for p in parts.values() if not p.acc.tree]
        for p in free:
            reductions.reset(env, p.acc)
        if trees:
            _chunks(env, axis, n, sinks, parts, trees, perform)
        else:
            with env.fn.loop(env.item.text, n.text, env.size) as lp:
                _visit(env, axis, Val("index", lp.index), sinks, parts, ZERO, perform)
        for p in free:
            _put_slots(env, p, env.item, [v.get() for v in p.acc.current])
        if free:
            env.barrier()
            _fold(env, free, env.size, lambda: [_lane(env, env.item, env.item)], index(env.size))
        results = [_get_slots(env, p, ZERO) for p in parts.values()]
        for p, result in zip(parts.values(), results):
            if p.acc.sink.kind.startswith("arg"):
                result = [result[0], result[-1]]
            for target, x in zip(p.acc.sink.targets, result):
                put(env, target, p.acc.sink.coords, x)


def _part(env: Env, s: Reduce, axis: Axis) -> _Part:
    dts = reductions.carried(s, False)
    tree = s.form == "tree" or s.kind == "generic"
    acc = Accumulator(s, dts, False, 0, 0, tree)
    acc.results = [env.variable(dt) for dt in dts]
    acc.current = [env.variable(dt) for dt in dts]
    if tree and (axis.extent.const is None or axis.extent.const > CHUNK):
        acc.levels = [env.temp(dt, LEVELS * LANES) for dt in dts]
    count = LANES * max(env.size // LANES, 1) if tree else env.size
    return _Part(acc, [env.shared(dt, count) for dt in dts])


def _chunks(env: Env, axis: Axis, n: Val, sinks, parts, trees, perform) -> None:
    """A round gives each team one chunk; all teams fold together; the leader takes the results in order."""
    o, fn = env.o, env.fn
    teams = max(env.size // LANES, 1)
    several = bool(trees[0].acc.levels)
    chunks = o.shr(o.add(n, index(CHUNK - 1)), index(12))
    team = o.shr(env.item, index(5)) if teams > 1 else ZERO
    with fn.loop("0", chunks.text, teams) as rounds, env.scope():
        first = Val("index", rounds.index)
        mine = o.add(first, team)
        lo = o.shl(mine, index(12))
        hi = reductions.minimum(env, o.add(lo, index(CHUNK)), n)
        count = o.sub(hi, lo)                                # not positive for a team without a chunk
        for lane in _lanes(env):
            with lane as (l, slot):
                for p in trees:
                    reductions.reset(env, p.acc)
                start = o.add(lo, l)
                with fn.loop(start.text, hi.text, LANES) as lp:
                    i = Val("index", lp.index)
                    _visit(env, axis, i, sinks, parts, o.sub(i, start), perform)
                for p in trees:
                    _put_slots(env, p, slot, [v.get() for v in p.acc.current])
        env.barrier()
        _fold(env, trees, LANES, lambda: _lanes(env), count)
        with env.led(), fn.loop("0", str(teams)) as lp, env.scope():
            t = Val("index", lp.index)
            c = o.add(first, t)
            with fn.if_(o.lt(c, chunks).text), env.scope():
                for p in trees:
                    part = _get_slots(env, p, o.shl(t, index(5)))
                    if not several:
                        reductions.assign(p.acc.results, part)
                        continue
                    with fn.if_else(o.eq(chunks, ONE).text) as branch:
                        reductions.assign(p.acc.results, part)
                        branch.orelse()
                        reductions.push(env, p.acc, part, c, chunks)
        env.barrier()
    with env.led():
        for p in trees:
            _put_slots(env, p, ZERO, [v.get() for v in p.acc.results])
    env.barrier()


@contextmanager
def _lane(env: Env, lane: Val, slot: Val):
    with env.scope():
        yield lane, slot


def _lanes(env: Env):
    """Contexts (lane of the team, slot of the group's accumulators), one for each lane that this work-item runs: emission is
    repeated for a group smaller than a team. Work-items beyond the last whole team have none."""
    o, size = env.o, env.size
    if size >= LANES:
        lane = o.and_(env.item, index(LANES - 1))
        if size % LANES == 0:
            return [_lane(env, lane, env.item)]
        return [_guarded(env, o.lt(env.item, index(size - size % LANES)), lane, env.item)]
    out = []
    for k in range(0, LANES, size):
        lane = o.add(env.item, index(k))
        out.append(_lane(env, lane, lane) if k + size <= LANES else _guarded(env, o.lt(lane, index(LANES)), lane, lane))
    return out


@contextmanager
def _guarded(env: Env, cond: Val, lane: Val, slot: Val):
    with env.fn.if_(cond.text), env.scope():
        yield lane, slot


def _visit(env: Env, axis: Axis, i: Val, sinks, parts, at: Val, perform) -> None:
    """One element, met by one work-item. ``at`` is zero at the first of its chain."""
    with env.bound(axis.name, i):
        for s in sinks:
            if isinstance(s, Store):
                perform(env, s)
            else:
                reductions.feed(env, parts[id(s)].acc, at, i)


def _fold(env: Env, parts, width: int, lanes, count: Val) -> None:
    """a[l] = a[l] ⊕ a[l + h] for h halving from ``width``, as far as ``count`` elements reached; barriers between and behind."""
    o = env.o
    half = 1 << (width - 1).bit_length() - 1
    while half:
        for lane in lanes():
            with lane as (l, slot):
                high = o.add(l, index(half))
                joins = o.and_(o.lt(l, index(half)), o.and_(o.lt(high, index(width)), o.lt(high, count)))
                with env.fn.if_(joins.text), env.scope():
                    for p in parts:
                        a, b = _get_slots(env, p, slot), _get_slots(env, p, o.add(slot, index(half)))
                        _put_slots(env, p, slot, merge(env, p.acc.sink, a, b))
        env.barrier()
        half //= 2


def _get_slots(env: Env, p: _Part, slot: Val) -> list[Val]:
    return _get(env, p.acc.dts, p.slots, slot)


def _put_slots(env: Env, p: _Part, slot: Val, values) -> None:
    _put(env, p.acc.dts, p.slots, slot, values)


def _hoist(env: Env, sinks) -> None:
    hoist(env, [r for s in sinks for r in sink_roots(s)], frozenset(t for s in sinks for t in sink_targets(s)))


# --- scans -------------------------------------------------------------------------------------------------------------

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
        _hoist(env, sinks)
        states = {id(s): _scan_state(env, s, tile) for s in sinks if isinstance(s, Scan)}
        reverse = next(iter(states.values())).sink.reverse
        with fn.loop("0", n.text, tile) as lp, env.scope():
            start = Val("index", lp.index)
            count = reductions.minimum(env, o.sub(n, start), index(tile))
            with _each(env, count) as k:
                with env.bound(axis.name, _place(env, reverse, n, o.add(start, k))):
                    for s in sinks:
                        if isinstance(s, Store):
                            perform(env, s)
                        else:
                            _put(env, states[id(s)].dts, states[id(s)].near, k, [value(env, v) for v in s.values])
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
                reductions.assign(before[key], _get(env, state.dts, state.last, ZERO))
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
        units = [env.o.const(reductions.identity(s.kind, dts[0]), dts[0])]
    with env.led():
        for memory in (state.carry, state.total, state.last):
            _put(env, dts, memory, ZERO, units)
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
    x = _get(env, state.dts, state.near, k)
    with env.fn.if_else(o.ge(o.and_(k, index(LANES - 1)), index(step)).text) as branch:
        with env.scope():
            joined = _ordered(env, state.sink, _get(env, state.dts, state.near, o.sub(k, index(step))), x)
        branch.yields(*((v.type, v.text) for v in joined))
        branch.orelse()
        branch.yields(*((v.type, v.text) for v in x))
    _put(env, state.dts, state.far, k, [Val(v.dt, text) for v, text in zip(x, branch.results)])


def _carry(env: Env, state: _Scan, start: Val, count: Val) -> None:
    """The leader's part of a tile: the value carried into each block, and what the next tile needs."""
    o, fn, dts = env.o, env.fn, state.dts
    begins = o.eq(o.and_(start, index(CHUNK - 1)), ZERO)
    with fn.if_(o.and_(begins, o.gt(start, ZERO)).text), env.scope():
        carry = _get(env, dts, state.carry, ZERO)
        joined = _ordered(env, state.sink, _get(env, dts, state.total, ZERO), carry)
        second = o.eq(start, index(CHUNK))
        _put(env, dts, state.total, ZERO, [o.select(second, c, j) for c, j in zip(carry, joined)])
    carry = [env.variable(dt, x) for dt, x in zip(dts, _get(env, dts, state.carry, ZERO))]
    with fn.loop("0", count.text, LANES) as lp, env.scope():
        k = Val("index", lp.index)
        now = [v.get() for v in carry]
        _put(env, dts, state.carries, o.shr(k, index(5)), now)
        end = reductions.minimum(env, o.add(k, index(LANES - 1)), o.sub(count, ONE))
        block = _get(env, dts, state.near, end)
        first = o.and_(begins, o.eq(k, ZERO))
        reductions.assign(carry, [o.select(first, x, y) for x, y in zip(block, _ordered(env, state.sink, now, block))])
    _put(env, dts, state.carry, ZERO, [v.get() for v in carry])
    _put(env, dts, state.last, ZERO, _with_total(env, state, start, [v.get() for v in carry]))


def _with_total(env: Env, state: _Scan, start: Val, y: list[Val]) -> list[Val]:
    """From a result inside the chunk to the result."""
    o = env.o
    whole = _ordered(env, state.sink, _get(env, state.dts, state.total, ZERO), y)
    return [o.select(o.lt(start, index(CHUNK)), a, b) for a, b in zip(y, whole)]


def _result(env: Env, state: _Scan, start: Val, k: Val) -> list[Val]:
    o = env.o
    x = _get(env, state.dts, state.near, k)
    carried = _ordered(env, state.sink, _get(env, state.dts, state.carries, o.shr(k, index(5))), x)
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


def _get(env: Env, dts, memory, at: Val) -> list[Val]:
    return [env.o.load(dt, env.o.gep(dt, m, at)) for dt, m in zip(dts, memory)]


def _put(env: Env, dts, memory, at: Val, values) -> None:
    for dt, m, x in zip(dts, memory, values):
        env.o.store(x, env.o.gep(dt, m, at))
