"""Contractions inside a task: one contraction's rows in blocks, by the register tiles of ``tiles``.

A stage that is no panel may still multiply matrices: the state of a recurrence, an update inside an ordered loop. Its right operand
is packed whole and its left one block by block, in memory that all contractions of the task share.
"""
from __future__ import annotations

from dataclasses import dataclass

from ...task.program import Axis, Contract, Phase, Program, Stage
from ..llvm.values import BYTES, Val
from ..mapping.env import ZERO, Env, index
from ..mapping.memory import whole_tiles
from ..mapping.phases import nest
from ..mapping.plan import PHASE_LANES, walk_phases, walks
from . import tiles

ROWS_BLOCK = 48
FEW = 1024
"""Multiplications that are not worth packing operands for."""


@dataclass(frozen=True)
class Blocked:
    """A contraction of a phase that runs in blocks."""
    product: tiles.Product

    def run(self, env: Env, loops: tuple[Axis, ...]) -> None:
        """The whole nest; no reduced axis is empty."""
        p = self.product
        around = [a for a in loops if a not in p.reduced and a is not p.m and a is not p.n]
        nest(env, around, None, (), frozenset(), lambda: _product(env, p))


def declare(env: Env, program: Program, stage: Stage) -> None:
    """Tell the phases which contractions of the stage run in blocks."""
    private = {r.name for r in stage.resources}
    for ph in walk_phases(stage.body):
        for s in ph.sinks:
            if isinstance(s, Contract) and tiles.supports(s.a.dt) and (p := _seen_as_product(ph, s)) is not None:
                if tiles.sized(program, [p], private):
                    env.products[id(s)] = Blocked(p)


def _seen_as_product(ph: Phase, s: Contract) -> tiles.Product | None:
    """The last free axes of both sides as rows and columns, the columns where results are consecutive."""
    sides = [[a for a in ph.loops if a.name in names] for names in (s.m_axes, s.n_axes)]
    if not all(sides):
        return None
    m, n = (side[-1] for side in sides)
    if m.name in walks(s.coords[-1]):
        m, n = n, m
    p = tiles.product(ph, s, m, n)
    return None if _few((m, n, *p.reduced)) else p


def _few(axes: tuple[Axis, ...]) -> bool:
    total = 1
    for a in axes:
        if a.extent.const is None:
            return False
        total *= a.extent.const
    return total <= FEW


def arena(env: Env) -> Val:
    """Bytes that the largest of the products needs."""
    o, most = env.o, ZERO
    for blocked in env.products.values():
        with env.sizing():
            *_, size = _places(env, blocked.product)
        most = o.select(o.lt(most, size), size, most)
    return most


def _places(env: Env, p: tiles.Product) -> list[Val]:
    """Where the packed operands, the chains and the results lie in the arena, and the end."""
    o, width = env.o, whole_tiles(env, p.n.extent)
    places = [ZERO]
    for elements in (*tiles.sizes(env, p, ROWS_BLOCK, width), o.mul(index(ROWS_BLOCK), width)):
        size = o.mul(o.add(elements, index(PHASE_LANES)), index(BYTES[p.dt]))
        places.append(o.add(places[-1], o.and_(o.add(size, index(63)), index(-64))))
    return places


def _product(env: Env, p: tiles.Product) -> None:
    """All rows and columns of a product whose other axes are bound."""
    o, m, n = env.o, env.extent(p.m.extent), env.extent(p.n.extent)
    with env.fn.if_(o.and_(o.gt(m, ZERO), o.gt(n, ZERO)).text), env.scope():
        _multiply(env, p, m, n)


def _multiply(env: Env, p: tiles.Product, m: Val, n: Val) -> None:
    o, fn, width = env.o, env.fn, whole_tiles(env, p.n.extent)
    a, b, chains, c = (fn.ins(f"getelementptr i8, ptr {env.arena_of_products}, i64 {place.text}") for place in _places(env, p)[:-1])
    buffers = tiles.Buffers(a, b, chains, width)
    with env.scope():
        tiles.pack_b(env, p, ZERO, n, b)
    with fn.loop("0", m.text, ROWS_BLOCK) as down, env.scope():
        first = Val("index", down.index)
        left = o.sub(m, first)
        rows = o.select(o.lt(left, index(ROWS_BLOCK)), left, index(ROWS_BLOCK))
        with env.scope():
            tiles.pack_a(env, p, first, rows, ROWS_BLOCK, a, lambda i: env.scope())
        tiles.multiply(env, p, rows, tiles.packed_steps(env, p, ROWS_BLOCK), n, buffers, c, width)
        tiles.finish(env, p, (first, rows), (ZERO, n), (c, width))
