"""Stages that multiply matrices: blocks of task points whose contractions are products of blocks.

A task is a block of points of one task axis (the rows m of every contraction of the stage), and where the columns n are a task
axis too, a block of those. Operands that nothing in the stage changes are packed once: a right one for all the row blocks that a
thread runs in a row, a left one for the block. Loops and branches that all points take alike run for the block; whatever else
the stage does is done point by point, or column tile by column tile.
"""
from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace

from ...task.program import Axis, Contract, For, If, Loop, Phase, Program, Stage, Store
from ..llvm.values import BYTES, MEMORY, Val
from ..mapping import control
from ..mapping.env import ONE, ZERO, Env, index
from ..mapping.memory import Storage, element, row_major, whole_tiles
from ..mapping.phases import nest, phase
from ..mapping.plan import PHASE_LANES, sink_targets, varying_resources, walk_nodes, walk_phases, walks
from . import tiles

ROWS_BLOCK, COLUMNS_BLOCK = 96, 128
"""Where columns are tasks. A block of rows 1024 deep and a block of columns fit the second cache together."""
FEW_ROWS = 24
"""Where each point has rows of its own in scratch, and right operands are packed outside."""


@dataclass(frozen=True)
class Panel:
    """``n`` is None where the columns are loops of the contractions' phases. ``varying``: private resources that differ between points;
    the others are cells that all points of a block share. ``early``: (id of contraction, "a" or "b") packed outside loops."""
    m: Axis
    n: Axis | None
    rows: int
    products: dict[int, tiles.Product]
    others: tuple[Axis, ...]
    varying: frozenset[str]
    early: frozenset[tuple[int, str]]


def find_panel(program: Program, stage: Stage) -> Panel | None:
    """How a stage can be run in blocks, None if it cannot."""
    phases = list(walk_phases(stage.body))
    contracts = [(ph, s) for ph in phases for s in ph.sinks if isinstance(s, Contract)]
    if stage.kind != "phases" or not contracts:
        return None
    if any(len(ph.sinks) != 1 or not tiles.supports(s.a.dt) for ph, s in contracts):
        return None
    return _task_columns(program, stage, contracts) or _loop_columns(program, stage, contracts)


def _task_columns(program: Program, stage: Stage, contracts) -> Panel | None:
    """Rows and columns are both task axes: the columns are those that stores walk."""
    by_name = {a.name: a for a in stage.tasks}
    names = list(by_name)
    sides = [(set(s.m_axes) & by_name.keys(), set(s.n_axes) & by_name.keys()) for _, s in contracts]
    if not all(m and n for m, n in sides) or not all(len(r.shape) == len(r.axes) for r in stage.resources):
        return None
    votes = _column_votes(stage)
    columns = max(set.union(*(m | n for m, n in sides)), key=lambda a: (votes.get(a, 0), names.index(a)))
    rows = [a for a in names if all(_opposite(s, columns, a) for _, s in contracts)]
    if not rows:
        return None
    n, m = by_name[columns], by_name[rows[-1]]
    varying = varying_resources(program, stage, m.name) | varying_resources(program, stage, n.name)
    products = {id(s): tiles.product(ph, s, m, n) for ph, s in contracts}
    if any(_reads(p.a, varying) or _reads(p.b, varying) for p in products.values()):
        return None
    return _panel(program, stage, m, n, ROWS_BLOCK, products, varying)


def _loop_columns(program: Program, stage: Stage, contracts) -> Panel | None:
    """Only the rows are a task axis; each point has its columns in scratch, or stores them."""
    shared = [a for a in stage.tasks if all(a.name in s.m_axes or a.name in s.n_axes for _, s in contracts)]
    if not shared:
        return None
    m, products = shared[-1], {}
    varying = varying_resources(program, stage, m.name)
    for ph, s in contracts:
        across = [a for a in ph.loops if a.name in (s.n_axes if m.name in s.m_axes else s.m_axes)]
        if not across:
            return None
        p = tiles.product(ph, s, m, across[-1])
        products[id(s)] = replace(p, rows_apart=_reads(p.a, varying))
    if any(_reads(p.b, varying) for p in products.values()):
        return None
    panel = _panel(program, stage, m, None, FEW_ROWS, products, varying)
    if panel is not None and any((key, "b") not in panel.early for key in products):
        return replace(panel, rows=ROWS_BLOCK)               # right operands are packed for every block: let it be worth it
    return panel


def _panel(program: Program, stage: Stage, m: Axis, n: Axis | None, rows: int, products, varying: frozenset[str]) -> Panel | None:
    private = {r.name for r in stage.resources}
    scratch_varies = all(r.name in varying for r in stage.resources if len(r.shape) > len(r.axes))
    if not scratch_varies or not tiles.sized(program, products.values(), private) or not _uniform(stage.body, varying):
        return None
    changes = private | {t for ph in walk_phases(stage.body) for s in ph.sinks for t in sink_targets(s)}
    early = frozenset((key, side) for key, p in products.items() for side in "ab" if not _reads(getattr(p, side), changes))
    return Panel(m, n, rows, products, tuple(a for a in stage.tasks if a is not m and a is not n), varying, early)


def _column_votes(stage: Stage) -> dict[str, int]:
    votes: dict[str, int] = {}
    for ph in walk_phases(stage.body):
        for s in ph.sinks:
            if isinstance(s, Store) and s.coords:
                for a in walks(s.coords[-1]):
                    votes[a] = votes.get(a, 0) + 1
    return votes


def _opposite(s: Contract, n: str, m: str) -> bool:
    return (n in s.n_axes and m in s.m_axes) or (n in s.m_axes and m in s.n_axes)


def _reads(root, names) -> bool:
    return any(n.op in ("load", "gload") and n.attr in names or n.op == "extent" and tiles.cells(n.attr) & names for n in walk_nodes(root))


def _uniform(body, varying: frozenset[str]) -> bool:
    """Whether all points of a block take the same way."""
    for s in body:
        match s:
            case For():
                apart = _reads(s.begin, varying) or _reads(s.step, varying) or tiles.cells(s.extent) & varying
                if apart or {s.stop, s.var} & varying or not _uniform(s.body, varying):
                    return False
            case Loop():
                if s.again in varying or not _uniform(s.body, varying):
                    return False
            case If():
                if _reads(s.cond, varying) or not _uniform(s.then, varying) or not _uniform(s.orelse, varying):
                    return False
            case Phase():
                if any(tiles.cells(a.extent) & varying for a in s.loops):
                    return False
    return True


# --- memory ------------------------------------------------------------------------------------------------------------

def scratch_sizes(env: Env, stage: Stage, panel: Panel) -> list[tuple[object, Val]]:
    """(key, bytes) of everything a block needs: private resources, and per product its buffers and result block."""
    o, out = env.o, []
    for r in stage.resources:
        if r.name not in panel.varying:
            continue
        shape = r.shape[len(r.axes):]
        if panel.n is not None:
            elements = index(panel.rows * COLUMNS_BLOCK)
        else:
            elements = o.mul(index(panel.rows), _point_size(env, shape))
        out.append((r.name, o.mul(o.add(elements, index(PHASE_LANES)), index(BYTES[r.dt]))))
    for key, p in panel.products.items():
        with env.sizing():
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


def width_of(env: Env, panel: Panel, p: tiles.Product) -> Val:
    return index(COLUMNS_BLOCK) if panel.n is not None else whole_tiles(env, p.n.extent)


# --- the walk ------------------------------------------------------------------------------------------------------------

class Block:
    """One block of points: ``m0`` and ``rows``, and with task columns ``n0`` and ``columns``."""

    def __init__(self, env: Env, stage: Stage, panel: Panel, places: dict):
        self.env, self.stage, self.panel, self.places = env, stage, panel, places
        self.m0 = self.rows = self.n0 = self.columns = ZERO
        self.sizes = {}
        self.varying = [r for r in stage.resources if r.name in panel.varying]
        self.outer = {id(s): [a for a in ph.loops if a not in p.reduced and a is not p.n]
                      for ph in walk_phases(stage.body) for s in ph.sinks if (p := panel.products.get(id(s))) is not None}
        for r in stage.resources:
            shape = r.shape[len(r.axes):]
            if r.name not in panel.varying:
                env.storage[r.name] = Storage(r, env.fn.alloca(MEMORY[r.dt], 64), (), len(r.axes))
            elif panel.n is not None:
                env.storage[r.name] = Storage(r, places[r.name], (), len(r.axes), PHASE_LANES)
            else:
                pitch = whole_tiles(env, shape[-1]) if shape else None
                self.sizes[r.name] = _point_size(env, shape)
                env.storage[r.name] = Storage(r, places[r.name], row_major(env, shape, pitch), len(r.axes), 0, bool(shape))

    def buffers(self, p: tiles.Product) -> tiles.Buffers:
        key = id(p.sink)
        return tiles.Buffers(self.places[key, "a"], self.places[key, "b"], self.places[key, "chains"], width_of(self.env, self.panel, p))

    def early(self, p: tiles.Product, side: str) -> bool:
        """Whether an operand is packed outside: nothing changes it, and no loops stand around the product."""
        return (id(p.sink), side) in self.panel.early and not self.outer[id(p.sink)]

    def columns_of(self, p: tiles.Product) -> tuple[Val, Val]:
        return (self.n0, self.columns) if self.panel.n is not None else (ZERO, self.env.extent(p.n.extent))

    @contextmanager
    def point(self, i: Val, j: Val | None = None):
        """The private storage of row i (and of columns j ...)."""
        env, o = self.env, self.env.o
        saved = dict(env.storage)
        for r in self.varying:
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
            end = _least(env, o.add(first, o.sub(hi, unit)), row_blocks)
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
        if block.early(p, "b"):
            with env.scope():
                tiles.pack_b(env, p, *block.columns_of(p), block.buffers(p).b)
    m = env.extent(panel.m.extent)
    with env.fn.loop(first.text, end.text) as lp, env.scope():
        block.m0 = o.mul(Val("index", lp.index), index(panel.rows))
        block.rows = _least(env, o.sub(m, block.m0), index(panel.rows))
        for p in panel.products.values():
            if block.early(p, "a"):
                with env.scope():
                    _pack_a(env, block, p)
        env.runner = lambda body: _statements(env, block, body)
        _statements(env, block, block.stage.body)
        env.runner = None


def _statements(env: Env, block: Block, body) -> None:
    """In order; runs of phases without contractions together, point by point."""
    points: list[Phase] = []
    for s in body:
        if isinstance(s, Phase) and not isinstance(s.sinks[0], Contract) and not _shared(block, s):
            points.append(s)
            continue
        _points(env, block, points)
        points = []
        if not isinstance(s, Phase):
            control.compound(env, s)
        elif isinstance(s.sinks[0], Contract):
            _contract(env, block, s)
        else:
            phase(env, s)
    _points(env, block, points)


def _shared(block: Block, ph: Phase) -> bool:
    """Whether a phase only sets cells that all points share."""
    private = {r.name for r in block.stage.resources}
    return all(t in private and t not in block.panel.varying for s in ph.sinks for t in sink_targets(s))


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


# --- contractions --------------------------------------------------------------------------------------------------------

def _contract(env: Env, block: Block, ph: Phase) -> None:
    (s,) = ph.sinks
    p = block.panel.products[id(s)]
    with env.scope():
        nest(env, block.outer[id(s)], None, (), frozenset(), lambda: _one_product(env, block, p))


def _one_product(env: Env, block: Block, p: tiles.Product) -> None:
    o, s = env.o, p.sink
    first, count = block.columns_of(p)
    buffers = block.buffers(p)
    kept = _result_place(env, block, p)
    c, pitch = kept or (block.places[id(s), "c"], buffers.width)
    with env.fn.if_else(o.gt(tiles.depth(env, p), ZERO).text) as branch:
        with env.scope():
            if not block.early(p, "b"):
                tiles.pack_b(env, p, first, count, buffers.b)
            lying = _lying_rows(env, block, p)
            if lying is None:
                steps = tiles.packed_steps(env, p, block.panel.rows)
                if not block.early(p, "a"):
                    _pack_a(env, block, p)
            else:
                address, steps = lying
                tiles.clear_rest(env, p, block.rows, address, steps[0])
                buffers = replace(buffers, a=address)
            tiles.multiply(env, p, block.rows, steps, count, buffers, c, pitch)
        branch.orelse()
        with env.scope():
            tiles.clear(env, p.dt, block.rows, count, c, pitch)
    if kept is None or s.epilogue:
        columns = block.panel.n is not None
        tiles.finish(env, p, (block.m0, block.rows), (first, count), (c, pitch),
                     lambda i, j: block.point(i, j if columns else None), kept is not None)


def _pack_a(env: Env, block: Block, p: tiles.Product) -> None:
    point = block.point if block.panel.n is None else lambda i: env.scope()
    tiles.pack_a(env, p, block.m0, block.rows, block.panel.rows, block.buffers(p).a, point)


def _lying_rows(env: Env, block: Block, p: tiles.Product) -> tuple[str, tuple[Val, Val]] | None:
    """(address, steps) of a left operand that lies in the points' scratch as it is wanted: it needs no packing."""
    st = env.storage.get(p.a.attr) if p.a.op == "load" else None
    if st is None or p.a.attr not in block.sizes or st.resource.dt != p.dt or len(p.reduced) != 1:
        return None
    coords = p.a.args[st.skip:]
    if not coords or coords[-1].op != "axis" or coords[-1].attr != p.reduced[0].name:
        return None
    if any(n.op == "axis" and n.attr in (p.reduced[0].name, p.m.name) for c in coords[:-1] for n in walk_nodes(c)):
        return None
    with env.bound(p.reduced[0].name, ZERO):
        return element(env, st, coords), (block.sizes[p.a.attr], ONE)


def _result_place(env: Env, block: Block, p: tiles.Product) -> tuple[str, Val] | None:
    """(address, pitch between rows) of the block's results if they may be written where they belong."""
    s, panel = p.sink, block.panel
    st = env.storage.get(s.target)
    if not s.keep or s.target not in {r.name for r in block.stage.resources}:
        return None
    if panel.n is not None:
        return st.base, index(COLUMNS_BLOCK)
    coords = s.coords[st.skip:]
    if not coords or coords[-1].op != "axis" or coords[-1].attr != p.n.name:
        return None
    if st.resource.shape[-1] not in (p.n.extent, env.program.bounds.get(p.n.extent)):
        return None
    if any(n.op == "axis" and n.attr in (p.n.name, p.m.name) for c in coords[:-1] for n in walk_nodes(c)):
        return None
    with env.bound(p.n.name, ZERO):
        return element(env, st, coords), block.sizes[s.target]


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
