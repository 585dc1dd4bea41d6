"""Several tiles of the lane axis as one task, where lanes run over a task axis.

A reduction down a column visits another memory page at every element. With one tile per task a page gives 128 bytes; with a group of
tiles walked inside the reduction it gives ``GROUP`` times as much, and every tile keeps its own accumulators. Other phases run
tile after tile. The elements of one lane are combined in the same order, so the bits are the same.
"""
from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

from ...kir.ops import CHUNK, LANES
from ...task.program import Phase, Reduce, Stage
from ..llvm.values import BYTES, SMALL, Val
from ..mapping import reductions as red
from ..mapping.env import ZERO, Env, Variable, index
from ..mapping.phases import groups, phase

GROUP = 32
BUNDLE = 4
"""Elements of a slot taken at once: they are 32 rows apart."""
PITCH = LANES + 1
"""Slots from tile to tile: at 32 the same slot of all tiles would fall into one set of the first cache."""


def can_group(stage: Stage) -> bool:
    """Straight phases over scalars, with a reduction that walks memory."""
    scalars = all(len(r.shape) == len(r.axes) for r in stage.resources)
    return stage.kind == "phases" and scalars and all(isinstance(s, Phase) for s in stage.body) and any(map(interchanges, stage.body))


def interchanges(ph: Phase) -> bool:
    """Whether the phase is one loop that only reduces."""
    return len(ph.loops) == 1 and all(isinstance(s, Reduce) for s in ph.sinks) and len(groups(ph.sinks)) == 1


class Tiles:
    """The tiles first .. end-1 of the lane axis; ``each`` emits a loop over them."""

    def __init__(self, env: Env, axis: str, first: Val, end: Val):
        self.env, self.axis, self.first, self.end = env, axis, first, end

    @contextmanager
    def each(self):
        """Yields the number of the tile, inside its lanes and with its private storage."""
        env, o = self.env, self.env.o
        with env.fn.loop(self.first.text, self.end.text, env.width) as lp, env.scope():
            base = Val("index", lp.index)
            number = o.sub(base, self.first)                 # a multiple of the width
            saved = dict(env.storage)
            with env.tiled(env.make_tile(self.axis, base, self.end, env.width)):
                for name in env.varying:
                    st = saved[name]
                    env.storage[name] = replace(st, base=o.gep(st.resource.dt, st.base, number))
                yield number
            env.storage.clear()
            env.storage.update(saved)


def run(env: Env, body, tiles: Tiles) -> None:
    for ph in body:
        if interchanges(ph):
            _reduce(env, ph, tiles)
        else:
            with tiles.each():
                phase(env, ph)


def _reduce(env: Env, ph: Phase, tiles: Tiles) -> None:
    o, (axis,) = env.o, ph.loops
    n = env.extent(axis.extent)
    with env.scope(), env.fn.if_else(o.gt(n, ZERO).text) as branch:
        with env.scope():
            _elements(env, axis, n, ph.sinks, tiles)
        branch.orelse()
        with tiles.each():
            for s in ph.sinks:
                for target, x in zip(s.targets, red.of_nothing(env, s)):
                    red.store(env, target, s.coords, x)


def _elements(env: Env, axis, n: Val, sinks, tiles: Tiles) -> None:
    o = env.o
    chunked = axis.extent.const is None or axis.extent.const > CHUNK
    accs = _accumulators(env, sinks)
    trees = [a for a in accs if a.tree]

    def reset(which):
        with tiles.each() as number:
            for a in which:
                red.reset(env, _of_tile(env, a, number))

    def sweep(lo: Val, hi: Val):
        if any(s.kind == "generic" or s.kind.startswith("arg") for s in sinks):
            return rows(lo, lo, hi)                          # order matters, or the first element does
        whole = o.and_(o.sub(hi, lo), index(-LANES * BUNDLE))
        middle = o.add(lo, whole)
        with env.fn.loop(lo.text, middle.text, LANES * BUNDLE) as blocks, env.fn.loop("0", str(LANES)) as lp, env.scope():
            first, slot = Val("index", blocks.index), Val("index", lp.index)
            places = [o.add(o.add(first, index(LANES * r)), slot) for r in range(BUNDLE)]
            with tiles.each() as number:
                _bundle(env, axis, [_of_tile(env, a, number) for a in accs], slot, places)
        return rows(lo, middle, hi)

    def rows(lo: Val, start: Val, hi: Val):
        with env.fn.loop(start.text, hi.text) as lp:
            i = Val("index", lp.index)
            with env.bound(axis.name, i), tiles.each() as number:
                for a in accs:
                    red.feed(env, _of_tile(env, a, number), o.sub(i, lo), i)

    def close(which, count: Val, c: Val | None = None, chunks: Val | None = None):
        with tiles.each() as number:
            for a in which:
                own = _of_tile(env, a, number)
                part = red.fold(env, own, count)
                if chunks is None:
                    red.assign(own.results, part)
                    continue
                with env.fn.if_else(o.eq(chunks, index(1)).text) as branch:
                    red.assign(own.results, part)
                    branch.orelse()
                    red.push(env, own, part, c, chunks)

    reset(accs)
    if not chunked or not trees:
        sweep(ZERO, n)
        close(accs, n)
    else:
        chunks = o.shr(o.add(n, index(CHUNK - 1)), index(12))
        with env.fn.loop("0", chunks.text) as lp, env.scope():
            c = Val("index", lp.index)
            lo = o.shl(c, index(12))
            hi = red.minimum(env, o.add(lo, index(CHUNK)), n)
            reset(trees)
            sweep(lo, hi)
            close(trees, o.sub(hi, lo), c, chunks)
        close([a for a in accs if not a.tree], n)
    with tiles.each() as number:
        for a in accs:
            red.finish(env, _of_tile(env, a, number), axis)


def _bundle(env: Env, axis, accs, slot: Val, places) -> None:
    """Elements of one slot, of several rows, while its accumulator is in registers."""
    held = [[v.get() for v in a.current] if a.current else red.get(env, a.dts, a.slots, slot, a.lanes) for a in accs]
    for i in places:
        with env.bound(axis.name, i):
            held = [red.combined(env, a, old, red.operands(env, a, i)) for a, old in zip(accs, held)]
    for a, x in zip(accs, held):
        if a.current:
            red.assign(a.current, x)
        else:
            red.put(env, a.dts, a.slots, slot, a.lanes, x)


def arena(stage: Stage, width: int) -> int:
    """Bytes that the accumulators of one phase of the stage take."""
    return max(sum(size for s in ph.sinks for _, _, size in _rooms(s, width)) for ph in stage.body if interchanges(ph))


def _rooms(s: Reduce, width: int):
    """(purpose, number of the carried value, bytes) of a reduction's accumulators, GROUP times everything."""
    tree = s.form == "tree" or s.kind == "generic"
    for k, dt in enumerate(red.carried(s, False)):
        lane = GROUP * width * BYTES[_register(dt)]
        yield "results", k, lane
        if tree:
            yield "slots", k, lane * PITCH
            yield "levels", k, lane * red.LEVELS * LANES
        else:
            yield "current", k, lane


def _accumulators(env: Env, sinks) -> list[red.Accumulator]:
    out, used = [], 0
    for s in sinks:
        a = red.Accumulator(s, red.carried(s, False), False, env.width, env.width, s.form == "tree" or s.kind == "generic")
        for purpose, k, size in _rooms(s, env.width):
            pointer = env.fn.ins(f"getelementptr i8, ptr {env.arena}, i64 {used}")
            used += size
            if purpose in ("slots", "levels"):
                getattr(a, purpose).append(pointer)
            else:
                getattr(a, purpose).append(Variable(env, a.dts[k], env.width, pointer))
        out.append(a)
    return out


def _of_tile(env: Env, a: red.Accumulator, number: Val) -> red.Accumulator:
    """The accumulator of one tile; ``number`` counts lanes from the group's first."""
    def at(pointer: str, dt: str, elements: int) -> str:
        return env.fn.ins(f"getelementptr i8, ptr {pointer}, i64 {env.o.mul(number, index(BYTES[dt] * elements)).text}")

    def variables(those):
        return [replace(v, pointer=at(v.pointer, _register(v.dt), 1)) for v in those]

    return replace(a, current=variables(a.current), results=variables(a.results),
                   slots=[at(m, dt, PITCH) for m, dt in zip(a.slots, a.dts)],
                   levels=[at(m, dt, red.LEVELS * LANES) for m, dt in zip(a.levels, a.dts)])


def _register(dt: str) -> str:
    """A dtype whose elements are as wide in memory as ``dt`` is in a register."""
    return "f32" if dt in SMALL else dt
