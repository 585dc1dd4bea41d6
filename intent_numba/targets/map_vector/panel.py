"""Stages that multiply matrices: blocks of task points whose contractions are products of blocks.

A task is a block of ``ROWS_BLOCK`` points of one task axis (the rows m of every contraction of the stage), and where the columns n
are a task axis too, a block of ``COLUMNS_BLOCK`` of them. The right operands are packed once for all the row blocks that a
thread runs in a row. Whatever else the stage does is done point by point, or column tile by column tile, on the finished block.
"""
from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace

from ...task.program import Axis, Contract, Phase, Stage, Store
from ..llvm.values import BYTES, Val
from . import tiles
from .env import ONE, ZERO, Env, index
from .memory import Storage, element, row_major, store
from .phases import nest, perform, phase
from .plan import PHASE_LANES, walk_nodes, walks

ROWS_BLOCK, COLUMNS_BLOCK = 96, 128
"""Where columns are tasks. A block of rows 1024 deep and a block of columns fit the second cache together."""
FEW_ROWS = 24
"""Where each point has rows of its own in scratch."""


@dataclass(frozen=True)
class Panel:
    """``n`` is None where the columns are loops of the contractions' phases."""
    m: Axis
    n: Axis | None
    rows: int
    products: dict[int, tiles.Product]
    others: tuple[Axis, ...]


def find_panel(stage: Stage) -> Panel | None:
    """How a stage can be run in blocks, None if it cannot."""
    if stage.kind != "phases" or not all(isinstance(s, Phase) for s in stage.body):
        return None
    contracts = [(ph, s) for ph in stage.body for s in ph.sinks if isinstance(s, Contract)]
    if not contracts or any(len(ph.sinks) != 1 or not tiles.supports(s.a.dt) for ph, s in contracts):
        return None
    private = {r.name for r in stage.resources}
    task_names = [a.name for a in stage.tasks]
    by_name = {a.name: a for a in stage.tasks}
    sides = [(set(s.m_axes) & set(task_names), set(s.n_axes) & set(task_names)) for _, s in contracts]
    if all(m and n for m, n in sides) and all(len(r.shape) == len(r.axes) for r in stage.resources):
        votes = _column_votes(stage)
        choices = sorted(set.union(*(m | n for m, n in sides)), key=lambda a: (votes.get(a, 0), task_names.index(a)))
        columns = choices[-1]
        rows = [a for a in task_names if all(_opposite(s, columns, a) for _, s in contracts)]
        if rows:
            n, m = by_name[columns], by_name[rows[-1]]
            products = {id(s): _product(ph, s, m, n) for ph, s in contracts}
            if not any(_reads(p.a, private) or _reads(p.b, private) for p in products.values()) and _fixed(products, private):
                return Panel(m, n, ROWS_BLOCK, products, tuple(a for a in stage.tasks if a not in (m, n)))
    shared = [a for a in task_names if all(a in s.m_axes or a in s.n_axes for _, s in contracts)]
    if not shared:
        return None
    m = by_name[shared[-1]]
    products = {}
    for ph, s in contracts:
        across = [a for a in ph.loops if a.name in (s.n_axes if m.name in s.m_axes else s.m_axes)]
        if not across:
            return None
        products[id(s)] = _product(ph, s, m, across[-1])
    if any(_reads(p.b, private) for p in products.values()) or not _fixed(products, private):
        return None
    return Panel(m, None, FEW_ROWS, products, tuple(a for a in stage.tasks if a is not m))


def _column_votes(stage: Stage) -> dict[str, int]:
    votes: dict[str, int] = {}
    for ph in stage.body:
        for s in ph.sinks:
            if isinstance(s, Store) and s.coords:
                for a in walks(s.coords[-1]):
                    votes[a] = votes.get(a, 0) + 1
    return votes


def _opposite(s: Contract, n: str, m: str) -> bool:
    return (n in s.n_axes and m in s.m_axes) or (n in s.m_axes and m in s.n_axes)


def _product(ph: Phase, s: Contract, m: Axis, n: Axis) -> tiles.Product:
    """Multiplication commutes, so either operand may be the left one."""
    loops = {a.name: a for a in ph.loops}
    a, b = (s.a, s.b) if m.name in s.m_axes else (s.b, s.a)
    return tiles.Product(s, a, b, m, n, tuple(loops[k] for k in s.axes))


def _reads(root, names: set[str]) -> bool:
    return any(n.op in ("load", "gload") and n.attr in names for n in walk_nodes(root))


def _fixed(products, private: set[str]) -> bool:
    """Buffers are sized before the first point: no extent may be a private cell."""
    extents = [a.extent for p in products.values() for a in (p.n, *p.reduced)]
    return not any(s in private or s[1:] in private for e in extents for s in e.symbols if s.startswith("%"))


# --- memory ------------------------------------------------------------------------------------------------------------

def scratch_sizes(env: Env, stage: Stage, panel: Panel) -> list[tuple[object, Val]]:
    """(key, bytes) of everything a block needs: private resources, and per product its buffers and result block."""
    o, out = env.o, []
    for r in stage.resources:
        shape = r.shape[len(r.axes):]
        if panel.n is not None:
            elements = index(panel.rows * COLUMNS_BLOCK)
        else:
            elements = o.mul(index(panel.rows), _point_size(env, shape))
        out.append((r.name, o.mul(o.add(elements, index(PHASE_LANES)), index(BYTES[r.dt]))))
    for key, p in panel.products.items():
        width = width_of(env, panel, p)
        parts = (*tiles.sizes(env, p, panel.rows, width), o.mul(index(panel.rows), width))
        for name, elements in zip(("a", "b", "chains", "c"), parts):
            out.append(((key, name), o.mul(o.add(elements, index(PHASE_LANES)), index(BYTES[p.dt]))))
    return out


def _point_size(env: Env, shape) -> Val:
    """Elements of one point's scratch: rows are whole tiles."""
    if not shape:
        return ONE
    strides = row_major(env, shape, whole_tiles(env, shape[-1]))
    first = whole_tiles(env, shape[0]) if len(shape) == 1 else env.extent(shape[0])
    return env.o.mul(strides[0], first)


def whole_tiles(env: Env, e) -> Val:
    """The extent rounded up to whole tiles of lanes."""
    if e.const is not None:
        return index(-(-e.const // PHASE_LANES) * PHASE_LANES)
    return env.o.and_(env.o.add(env.extent(e), index(PHASE_LANES - 1)), index(-PHASE_LANES))


def width_of(env: Env, panel: Panel, p: tiles.Product) -> Val:
    return index(COLUMNS_BLOCK) if panel.n is not None else whole_tiles(env, p.n.extent)


# --- the walk ------------------------------------------------------------------------------------------------------------

class Block:
    """One block of points: ``m0`` and ``rows``, and with task columns ``n0`` and ``columns``."""

    def __init__(self, env: Env, stage: Stage, panel: Panel, places: dict):
        self.env, self.stage, self.panel, self.places = env, stage, panel, places
        self.m0 = self.rows = self.n0 = self.columns = ZERO
        self.sizes = {}
        for r in stage.resources:
            shape = r.shape[len(r.axes):]
            if panel.n is not None:
                env.storage[r.name] = Storage(r, places[r.name], (), len(r.axes), PHASE_LANES)
                continue
            pitch = whole_tiles(env, shape[-1]) if shape else None
            self.sizes[r.name] = _point_size(env, shape)
            env.storage[r.name] = Storage(r, places[r.name], row_major(env, shape, pitch), len(r.axes), 0, bool(shape))

    def buffers(self, p: tiles.Product) -> tiles.Buffers:
        key = id(p.sink)
        return tiles.Buffers(self.places[key, "a"], self.places[key, "b"], self.places[key, "chains"], width_of(self.env, self.panel, p))

    @contextmanager
    def point(self, i: Val, j: Val | None = None):
        """The private storage of row i (and of columns j ...)."""
        env, o = self.env, self.env.o
        saved = dict(env.storage)
        for r in self.stage.resources:
            st = saved[r.name]
            size = index(COLUMNS_BLOCK) if self.panel.n is not None else self.sizes[r.name]
            at = o.mul(i, size)
            env.storage[r.name] = replace(st, base=o.gep(r.dt, st.base, at if j is None else o.add(at, j)))
        with env.scope():
            yield
        env.storage.clear()
        env.storage.update(saved)


def run(env: Env, stage: Stage, panel: Panel, places: dict) -> None:
    """Blocks %lo .. %hi-1 of the grid (others, column blocks, row blocks)."""
    o, fn = env.o, env.fn
    block = Block(env, stage, panel, places)
    hi = Val("index", "%hi")
    row_blocks = ceil(env, env.extent(panel.m.extent), panel.rows)
    with fn.if_(o.lt(Val("index", "%lo"), hi).text), env.scope():
        with fn.repeat([("i64", "%lo")]) as lp, env.scope():
            unit = Val("index", lp.carried[0])
            rest = divide(env, unit, row_blocks)
            first = o.sub(unit, o.mul(rest, row_blocks))
            end = o.add(first, o.sub(hi, unit))
            end = o.select(o.lt(end, row_blocks), end, row_blocks)
            bound = {}
            if panel.n is not None:
                n = env.extent(panel.n.extent)
                column_blocks = ceil(env, n, COLUMNS_BLOCK)
                above = divide(env, rest, column_blocks)
                block.n0 = o.mul(o.sub(rest, o.mul(above, column_blocks)), index(COLUMNS_BLOCK))
                block.columns = _least(env, o.sub(n, block.n0), index(COLUMNS_BLOCK))
                rest = above
            for axis in reversed(panel.others):
                size = env.extent(axis.extent)
                above = divide(env, rest, size)
                bound[axis.name] = o.sub(rest, o.mul(above, size))
                rest = above
            env.axes.update(bound)
            _row_of_blocks(env, block, first, end)
            for name in bound:
                del env.axes[name]
            following = o.add(unit, o.sub(end, first))
            lp.next[0] = following.text
            lp.again = o.lt(following, hi).text


def _row_of_blocks(env: Env, block: Block, first: Val, end: Val) -> None:
    o, panel = env.o, block.panel
    for p in panel.products.values():
        if _packs_early(block, p):
            with env.scope():
                tiles.pack_b(env, p, *_columns(env, block, p), block.buffers(p).b)
    m = env.extent(panel.m.extent)
    with env.fn.loop(first.text, end.text) as lp, env.scope():
        block.m0 = o.mul(Val("index", lp.index), index(panel.rows))
        block.rows = _least(env, o.sub(m, block.m0), index(panel.rows))
        others = []
        for ph in block.stage.body:
            if isinstance(ph.sinks[0], Contract):
                _points(env, block, others)
                others = []
                _contract(env, block, ph)
            else:
                others.append(ph)
        _points(env, block, others)


def _packs_early(block: Block, p: tiles.Product) -> bool:
    """Whether b is the same for all row blocks: no loops around the product."""
    return block.panel.n is not None or not _outer(block, p)


def _outer(block: Block, p: tiles.Product) -> list[Axis]:
    ph = next(ph for ph in block.stage.body if p.sink in ph.sinks)
    return [a for a in ph.loops if a not in p.reduced and a is not p.n]


def _columns(env: Env, block: Block, p: tiles.Product) -> tuple[Val, Val]:
    return (block.n0, block.columns) if block.panel.n is not None else (ZERO, env.extent(p.n.extent))


def _points(env: Env, block: Block, phases: list[Phase]) -> None:
    """Phases without contractions, on every point of the block."""
    if not phases:
        return
    o, panel = env.o, block.panel
    with env.fn.loop("0", block.rows.text) as lp:
        i = Val("index", lp.index)
        with env.bound(panel.m.name, o.add(block.m0, i)):
            if panel.n is None:
                with block.point(i):
                    for ph in phases:
                        phase(env, ph)
                return
            with env.fn.loop("0", block.columns.text, PHASE_LANES) as across:
                j = Val("index", across.index)
                tile = env.make_tile(panel.n.name, o.add(block.n0, j), o.add(block.n0, block.columns), PHASE_LANES)
                with env.tiled(tile), block.point(i, j):
                    for ph in phases:
                        phase(env, ph)


def _contract(env: Env, block: Block, ph: Phase) -> None:
    (s,) = ph.sinks
    p = block.panel.products[id(s)]
    outer = _outer(block, p)
    with env.scope():
        nest(env, outer, None, (), frozenset(), lambda: _one_product(env, block, p, bool(outer)))


def _one_product(env: Env, block: Block, p: tiles.Product, late: bool) -> None:
    o, s, panel = env.o, p.sink, block.panel
    first, count = _columns(env, block, p)
    buffers = block.buffers(p)
    kept = _result_place(env, block, p)
    c, pitch = kept or (block.places[id(s), "c"], buffers.width)
    with env.fn.if_else(o.gt(tiles.depth(env, p), ZERO).text) as branch:
        with env.scope():
            if late and not _packs_early(block, p):
                tiles.pack_b(env, p, first, count, buffers.b)
            point = block.point if panel.n is None else lambda i: env.scope()
            tiles.pack_a(env, p, block.m0, block.rows, panel.rows, buffers.a, point)
            tiles.multiply(env, p, block.rows, panel.rows, count, buffers, c, pitch)
        branch.orelse()
        with env.scope():
            tiles.clear(env, p.dt, block.rows, count, c, pitch)
    if kept is None or s.epilogue:
        _finish(env, block, p, first, count, c, pitch, kept is not None)


def _result_place(env: Env, block: Block, p: tiles.Product) -> tuple[str, Val] | None:
    """(address, pitch between rows) of the block's results if they may be written where they belong."""
    s, panel = p.sink, block.panel
    st = env.storage.get(s.target)
    if not s.keep or s.target not in {r.name for r in block.stage.resources}:
        return None
    if panel.n is not None:
        return st.base, index(COLUMNS_BLOCK)
    coords = s.coords[st.skip:]
    if not coords or coords[-1].op != "axis" or coords[-1].attr != p.n.name or st.resource.shape[-1] != p.n.extent:
        return None
    if any(n.op == "axis" and n.attr in (p.n.name, p.m.name) for c in coords[:-1] for n in walk_nodes(c)):
        return None
    with env.bound(p.n.name, ZERO):
        return element(env, st, coords), block.sizes[s.target]


def _finish(env: Env, block: Block, p: tiles.Product, first: Val, count: Val, c: str, pitch: Val, stored: bool) -> None:
    """Store the elements, run the epilogue."""
    o, s, panel = env.o, p.sink, block.panel
    with env.fn.loop("0", block.rows.text) as down:
        i = Val("index", down.index)
        with env.bound(panel.m.name, o.add(block.m0, i)), env.fn.loop("0", count.text, PHASE_LANES) as across:
            j = Val("index", across.index)
            tile = env.make_tile(p.n.name, o.add(first, j), o.add(first, count), PHASE_LANES)
            with env.tiled(tile), block.point(i, j if panel.n is not None else None):
                x = o.load(p.dt, o.gep(p.dt, c, o.add(o.mul(i, pitch), j)), PHASE_LANES)
                if s.keep and not stored:
                    store(env, s.target, s.coords, x)
                env.remember(id(env.graph("load", s.coords, s.target, x.dt)), x)
                for e in s.epilogue:
                    perform(env, e)


def units(env: Env, panel: Panel) -> Val:
    """Blocks of the grid."""
    o, total = env.o, ceil(env, env.extent(panel.m.extent), panel.rows)
    if panel.n is not None:
        total = o.mul(total, ceil(env, env.extent(panel.n.extent), COLUMNS_BLOCK))
    for axis in panel.others:
        total = o.mul(total, env.extent(axis.extent))
    return total


def ceil(env: Env, a: Val, b: int) -> Val:
    return Val("index", env.fn.ins(f"udiv i64 {env.o.add(a, index(b - 1)).text}, {b}"))


def divide(env: Env, a: Val, b: Val) -> Val:
    """a / b of non-negative numbers, b > 0."""
    return Val("index", env.fn.ins(f"udiv i64 {a.text}, {b.text}"))


def _least(env: Env, a: Val, b: Val) -> Val:
    return env.o.select(env.o.lt(a, b), a, b)
