"""Reductions that all work-items of a group do together, with the bits of section 12 R at any group size.

The 32 accumulators of the tree lie in local memory. A team of 32 work-items takes a chunk of 4096 elements, one chain of additions
each; several teams take several chunks at once; a group smaller than 32 runs several chains in each work-item. Partial results of
chunks are combined in order by the leader.
"""
from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass

from ...kir.ops import CHUNK, LANES
from ...task.program import Axis, Reduce
from ..llvm.values import Val
from ..mapping import reductions
from ..mapping.env import ONE, ZERO, index
from ..mapping.reductions import LEVELS, Accumulator, merge
from .env import Env, hoist_sinks


@dataclass
class _Part:
    """One reduction: its running accumulator in each work-item, and where the group's accumulators meet."""
    acc: Accumulator
    slots: list


def reduce(env: Env, axis: Axis, sinks, perform, put) -> None:
    """Reduce over an axis that is not empty; ``put`` stores a result that all work-items hold."""
    hoist_sinks(env, sinks)
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
            if isinstance(s, Reduce):
                reductions.feed(env, parts[id(s)].acc, at, i)
            else:
                perform(env, s)


def _fold(env: Env, parts, width: int, lanes, count: Val) -> None:
    """a[l] = a[l] ⊕ a[l + h] for h halving from ``width``, as far as ``count`` elements reached; barriers between and behind."""
    o = env.o
    half = (1 << (width - 1).bit_length()) >> 1
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
    return env.get_all(p.acc.dts, p.slots, slot)


def _put_slots(env: Env, p: _Part, slot: Val, values) -> None:
    env.put_all(p.slots, slot, values)
