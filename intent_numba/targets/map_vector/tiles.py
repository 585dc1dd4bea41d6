"""Products of blocks: contractions by register tiles over packed operands, section 12 C.

A block of rows of ``a`` is evaluated once into a buffer, a block of columns of ``b`` into panels of one register tile's width; so
whatever stands in the operands (conversions, scales, masks, gathers) is computed once per element and not once per
product. The micro-kernel keeps 6 rows by two registers of columns and runs up a chain of k; chains of 1024 are added in order.
"""
from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass

from ...kir.ops import KBLOCK
from ...kir.types import Extent, is_float, is_int
from ...task.program import Axis, Contract, Node, Phase, Program, Store
from ..llvm.ops import Ops
from ..llvm.text import Module
from ..llvm.values import BYTES, SMALL, Val
from ..mapping import turning
from ..mapping.env import ONE, ZERO, Env, index
from ..mapping.expr import hoist, value
from ..mapping.memory import store
from ..mapping.phases import perform
from ..mapping.plan import PHASE_LANES, walk_nodes, walks

ROWS = 6
DEPTH = 256
"""Elements of k between visits of a result tile: a panel of b this deep stays in the first cache."""


def columns(dt: str) -> int:
    """Columns of a register tile: two 32-byte registers."""
    return 16 if BYTES[dt] <= 4 else 8


def supports(dt: str) -> bool:
    """Accumulator dtypes that the micro-kernel takes; narrower floats round at every step."""
    return (is_float(dt) and dt not in SMALL) or is_int(dt)


@dataclass(frozen=True)
class Product:
    """A contraction seen as one matrix product over axes m and n; its other axes are bound outside. ``rows_apart``: ``a`` reads what
    every row has for itself, so no lanes may run along m in it."""
    sink: Contract
    a: Node
    b: Node
    m: Axis
    n: Axis
    reduced: tuple[Axis, ...]
    rows_apart: bool = False

    @property
    def dt(self) -> str:
        return self.a.dt

    @property
    def a_by_rows(self) -> bool:
        """Whether the elements of ``a`` are presumed consecutive along k, not along m."""
        return self.rows_apart or _steps(self.a)[self.reduced[-1].name] >= _steps(self.a)[self.m.name]

    @property
    def b_by_columns(self) -> bool:
        """Whether the elements of ``b`` are presumed consecutive along k, not along n."""
        return _steps(self.b)[self.reduced[-1].name] > _steps(self.b)[self.n.name]


def product(ph: Phase, s: Contract, m: Axis, n: Axis) -> Product:
    """The contraction over rows m and columns n. Multiplication commutes, so either operand may be the left one."""
    loops = {a.name: a for a in ph.loops}
    a, b = (s.a, s.b) if m.name in s.m_axes else (s.b, s.a)
    return Product(s, a, b, m, n, tuple(loops[k] for k in s.axes))


def sized(program: Program, products, private: set[str]) -> bool:
    """Buffers are sized before the first point: an extent that a private cell decides needs a bound."""
    decided = [a.extent for p in products for a in (p.n, *p.reduced) if cells(a.extent) & private]
    return all(e in program.bounds and program.bounds[e].const is not None for e in decided)


def cells(e: Extent) -> set[str]:
    """Names of the cells in an extent."""
    return {t for s in e.symbols if s.startswith("%") for t in (s, s[1:])}


def _steps(root: Node) -> Counter:
    votes = Counter()
    for n in walk_nodes(root):
        if n.op in ("load", "gload") and n.args:
            votes.update(walks(n.args[-1]))
    return votes


@dataclass(frozen=True)
class Buffers:
    """Packed operands and the running chains. ``width``: columns of the block, whole tiles (also the pitch of ``chains``)."""
    a: str
    b: str
    chains: str
    width: Val


def sizes(env: Env, p: Product, rows: int, width: Val) -> tuple[Val, Val, Val]:
    """Elements of the buffers for a, b and the chains, for blocks of ``rows`` by ``width``."""
    o, k = env.o, depth(env, p)
    if p.a_by_rows:
        a = o.mul(index(rows), a_pitch(env, p, rows))
    else:
        a = o.mul(k, a_pitch(env, p, rows))
    spare = index(2 * PHASE_LANES)
    return o.add(a, spare), o.add(o.mul(k, width), o.mul(spare, index(columns(p.dt)))), o.mul(index(rows), width)


def depth(env: Env, p: Product) -> Val:
    k = ONE
    for axis in p.reduced:
        k = env.o.mul(k, env.extent(axis.extent))
    return k


def a_pitch(env: Env, p: Product, rows: int) -> Val:
    """Elements between rows (by rows) or between columns of the packed a. Rows must not lie 4 KB apart: they would share cache sets."""
    if not p.a_by_rows:
        return index(-(-rows // PHASE_LANES) * PHASE_LANES)
    return env.o.add(env.o.and_(env.o.add(depth(env, p), index(PHASE_LANES - 1)), index(-PHASE_LANES)), index(16))


# --- packing ---------------------------------------------------------------------------------------------------------

def pack_a(env: Env, p: Product, first: Val, count: Val, rows: int, buffer: str, point) -> None:
    """Rows first .. first+count-1 of a. ``point(i)`` is a context with the private storage of row i."""
    o, fn, pitch = env.o, env.fn, a_pitch(env, p, rows)
    if p.a_by_rows:
        with fn.loop("0", count.text) as lp:
            i = Val("index", lp.index)
            with point(i), env.bound(p.m.name, o.add(first, i)):
                start = o.mul(i, pitch)
                _over_depth(env, p.reduced, (p.a,), lambda k: o.store(env.wide(value(env, p.a)), o.gep(p.dt, buffer, o.add(start, k))))
        return clear_rest(env, p, count, buffer, pitch)
    _over_scalars(env, p.reduced, (p.a,), lambda k: _over_tiles(
        env, p.m, first, count, lambda i: o.store(env.wide(value(env, p.a)), o.gep(p.dt, buffer, o.add(o.mul(k, pitch), i)))))


def clear_rest(env: Env, p: Product, count: Val, a: str, pitch: Val) -> None:
    """Zeros in the rows that fill up the last register tile: they are computed with, and what lies in fresh memory may be slow to."""
    o, fn = env.o, env.fn
    whole = o.mul(Val("index", fn.ins(f"udiv i64 {o.add(count, index(ROWS - 1)).text}, {ROWS}")), index(ROWS))
    with fn.loop(count.text, whole.text) as down, fn.loop("0", depth(env, p).text, PHASE_LANES) as along:
        at = o.add(o.mul(Val("index", down.index), pitch), Val("index", along.index))
        o.store(o.const(0, p.dt, PHASE_LANES), o.gep(p.dt, a, at))


def pack_b(env: Env, p: Product, first: Val, count: Val, buffer: str) -> None:
    """Columns first .. first+count-1 of b as panels: panel j, k, column."""
    o, nr = env.o, columns(p.dt)
    k_total = depth(env, p)

    def panel(j: Val, k: Val) -> Val:
        """The offset of column j at k, j a multiple of the panel's width."""
        return o.add(o.mul(j, k_total), o.mul(k, index(nr)))

    def spread(k: Val, j: Val):
        x = env.wide(value(env, p.b))
        for part in range(PHASE_LANES // nr):
            at = panel(o.add(j, index(part * nr)), k)
            o.store(o.slice(x, part * nr, nr), o.gep(p.dt, buffer, at))

    if not p.b_by_columns:
        _over_scalars(env, p.reduced, (p.b,), lambda k: _over_tiles(env, p.n, first, count, lambda j: spread(k, j)))
        return
    whole = Store("", (), p.b)                               # stands for the panel: what is performed at every step

    def down(j: Val):
        def step(k: Val):
            o.store(env.wide(value(env, p.b)), o.gep(p.dt, buffer, panel(j, k)))
        _over_turned(env, p.reduced, whole, step)

    _over_tiles(env, p.n, first, count, down, nr)


def _over_turned(env: Env, axes, sink: Store, body, flat: Val = ZERO) -> None:
    """Scalar loops over the reduced axes under lanes of n, the last one turned; ``body(k)`` gets the flat position."""
    o, (axis, *inner) = env.o, axes
    n = env.extent(axis.extent)
    flat = o.mul(flat, n)
    hoist(env, (sink.value,), frozenset())
    if inner:
        with env.fn.loop("0", n.text) as lp, env.bound(axis.name, Val("index", lp.index)):
            _over_turned(env, inner, sink, body, o.add(flat, Val("index", lp.index)))
        return
    with turning.loop(env, axis, ZERO, n, [sink]) as k:
        body(o.add(flat, k))


def _over_depth(env: Env, axes, roots, body, flat: Val = ZERO) -> None:
    """Tiles of lanes over the last reduced axis, scalar loops over the others; ``body(k)`` gets the flat position of lane 0."""
    o, (axis, *inner) = env.o, axes
    n = env.extent(axis.extent)
    flat = o.mul(flat, n)
    hoist(env, roots, frozenset())
    if inner:
        with env.fn.loop("0", n.text) as lp, env.bound(axis.name, Val("index", lp.index)):
            _over_depth(env, inner, roots, body, o.add(flat, Val("index", lp.index)))
        return
    with env.fn.loop("0", n.text, PHASE_LANES) as lp:
        with env.tiled(env.make_tile(axis.name, Val("index", lp.index), n, PHASE_LANES)):
            body(o.add(flat, Val("index", lp.index)))


def _over_scalars(env: Env, axes, roots, body, flat: Val = ZERO) -> None:
    """Scalar loops over the reduced axes; ``body(k)`` gets the flat position."""
    o = env.o
    hoist(env, roots, frozenset())
    if not axes:
        return body(flat)
    axis, *inner = axes
    n = env.extent(axis.extent)
    flat = o.mul(flat, n)
    with env.fn.loop("0", n.text) as lp, env.bound(axis.name, Val("index", lp.index)):
        _over_scalars(env, inner, roots, body, o.add(flat, Val("index", lp.index)))
    return None


def _over_tiles(env: Env, axis: Axis, first: Val, count: Val, body, width: int = PHASE_LANES) -> None:
    """Tiles of lanes over a range of a free axis; ``body(i)`` gets lane 0's place in the range."""
    o = env.o
    with env.fn.loop("0", count.text, width) as lp:
        i = Val("index", lp.index)
        with env.tiled(env.make_tile(axis.name, o.add(first, i), o.add(first, count), width)):
            body(i)


# --- multiplying -----------------------------------------------------------------------------------------------------

def packed_steps(env: Env, p: Product, rows: int) -> tuple[Val, Val]:
    """Elements from row to row and from k to k in the packed a."""
    return (a_pitch(env, p, rows), ONE) if p.a_by_rows else (ONE, a_pitch(env, p, rows))


def multiply(env: Env, p: Product, rows: Val, a_step: tuple[Val, Val], count: Val, buffers: Buffers, c: str, pitch: Val) -> None:
    """c[rows, count] = the product of the blocks. Whole register tiles of c are written. ``a_step``: as ``packed_steps``."""
    o, fn, dt = env.o, env.fn, p.dt
    nr, k_total = columns(dt), depth(env, p)
    several = o.gt(k_total, index(KBLOCK))
    chains = fn.ins(f"select i1 {several.text}, ptr {buffers.chains}, ptr {c}")
    chain_pitch = o.select(several, buffers.width, pitch)
    kernel = _micro_kernel(fn.module, dt)
    with fn.loop("0", k_total.text, KBLOCK) as outer, env.scope():
        k0 = Val("index", outer.index)
        k1 = _least(env, o.add(k0, index(KBLOCK)), k_total)
        with fn.loop(k0.text, k1.text, DEPTH) as middle, env.scope():
            k = Val("index", middle.index)
            length = _least(env, o.sub(k1, k), index(DEPTH))
            again = fn.ins(f"icmp ne i64 {k.text}, {k0.text}")
            with fn.loop("0", count.text, nr) as across:
                j = Val("index", across.index)
                b = o.gep(dt, buffers.b, o.add(o.mul(j, k_total), o.mul(k, index(nr))))
                with fn.loop("0", rows.text, ROWS) as down:
                    i = Val("index", down.index)
                    a = o.gep(dt, buffers.a, o.add(o.mul(i, a_step[0]), o.mul(k, a_step[1])))
                    at = o.gep(dt, chains, o.add(o.mul(i, chain_pitch), j))
                    fn.call("void", kernel, [("ptr", a), ("i64", a_step[0].text), ("i64", a_step[1].text), ("ptr", b), ("ptr", at),
                                             ("i64", chain_pitch.text), ("i64", length.text), ("i1", again)])
        with fn.if_(several.text), env.scope():
            _add_chains(env, dt, rows, count, c, pitch, chains, chain_pitch, o.eq(k0, ZERO))


@contextmanager
def _no_place(i: Val, j: Val):
    yield


def finish(env: Env, p: Product, down: tuple[Val, Val], across: tuple[Val, Val], c: tuple[str, Val], point=_no_place,
           stored: bool = False) -> None:
    """Store the elements of a block of results, run the epilogue. ``down``, ``across``: (first, count) of rows and columns; ``c``:
    (address, pitch) of the block; ``point(i, j)``: the private storage of the tile that begins there; ``stored``: they are already."""
    o, s = env.o, p.sink
    with env.fn.loop("0", down[1].text) as rows:
        i = Val("index", rows.index)
        with env.bound(p.m.name, o.add(down[0], i)), env.fn.loop("0", across[1].text, PHASE_LANES) as columns:
            j = Val("index", columns.index)
            tile = env.make_tile(p.n.name, o.add(across[0], j), o.add(across[0], across[1]), PHASE_LANES)
            with env.tiled(tile), point(i, j):
                x = o.load(p.dt, o.gep(p.dt, c[0], o.add(o.mul(i, c[1]), j)), PHASE_LANES)
                if s.keep and not stored:
                    store(env, s.target, s.coords, x)
                env.remember(id(env.graph("load", s.coords, s.target, x.dt)), x)
                for e in s.epilogue:
                    perform(env, e)


def clear(env: Env, dt: str, rows: Val, count: Val, c: str, pitch: Val) -> None:
    """c = 0: the product over nothing."""
    o, nr = env.o, columns(dt)
    with env.fn.loop("0", rows.text) as down, env.fn.loop("0", count.text, nr) as across:
        at = o.add(o.mul(Val("index", down.index), pitch), Val("index", across.index))
        o.store(o.const(0, dt, nr), o.gep(dt, c, at))


def _add_chains(env: Env, dt: str, rows: Val, count: Val, c: str, pitch: Val, chains: str, chain_pitch: Val, first: Val) -> None:
    o, nr = env.o, columns(dt)
    with env.fn.loop("0", rows.text) as down, env.fn.loop("0", count.text, nr) as across:
        i, j = Val("index", down.index), Val("index", across.index)
        target = o.gep(dt, c, o.add(o.mul(i, pitch), j))
        chain = o.load(dt, o.gep(dt, chains, o.add(o.mul(i, chain_pitch), j)), nr)
        with env.fn.if_else(first.text) as branch:
            o.store(chain, target)
            branch.orelse()
            o.store(o.add(o.load(dt, target, nr), chain), target)


def _least(env: Env, a: Val, b: Val) -> Val:
    return env.o.select(env.o.lt(a, b), a, b)


def _micro_kernel(module: Module, dt: str) -> str:
    """void @product.dt(a, row step, k step, panel of b, c, pitch of c, length, again): c (+)= a b, chains going on if ``again``."""
    name = module.helpers.get(("product", dt))
    if name is not None:
        return name
    name = module.helpers["product", dt] = f"@product.{dt}"
    fn = module.function(name[1:], "void", [("ptr", "a"), ("i64", "down"), ("i64", "along"), ("ptr", "b"), ("ptr", "c"), ("i64", "pitch"),
                                            ("i64", "length"), ("i1", "again")], head="internal", attrs="nounwind noinline")
    o, nr = Ops(fn), columns(dt)
    zero = o.const(0, dt, nr)
    # Opaque to LLVM: it would derive the six pointers from each other in the loop, a chain of additions as long as the arithmetic.
    a_rows = [fn.ins(f'call ptr asm "", "=r,0"(ptr {o.gep(dt, "%a", fn.ins(f"mul i64 %down, {r}"))})') for r in range(ROWS)]
    c_rows = [o.gep(dt, "%c", fn.ins(f"mul i64 %pitch, {r}")) for r in range(ROWS)]
    with fn.if_else("%again") as branch:
        branch.yields(*((zero.type, o.load(dt, c, nr).text) for c in c_rows))
        branch.orelse()
        branch.yields(*((zero.type, zero.text) for _ in c_rows))
    carries = [("i64", "0")] + [(zero.type, x) for x in branch.results]
    with fn.loop("0", "%length", carries=carries) as lp:
        b = o.load(dt, o.gep(dt, "%b", fn.ins(f"mul i64 {lp.index}, {nr}")), nr)
        for r in range(ROWS):
            x = o.splat(o.load(dt, o.gep(dt, a_rows[r], lp.carried[0])), nr)
            old = Val(dt, lp.carried[1 + r], nr)
            lp.next[1 + r] = (o.fma(x, b, old) if is_float(dt) else o.add(old, o.mul(x, b))).text
        lp.next[0] = fn.ins(f"add i64 {lp.carried[0]}, %along")
    for c, x in zip(c_rows, lp.results[1:]):
        o.store(Val(dt, x, nr), c)
    fn.ret()
    return name
