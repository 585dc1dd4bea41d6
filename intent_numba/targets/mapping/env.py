"""The state of emission inside one function: bound axes, the tile of lanes, control masks, and what is already computed.

Values are remembered in a stack of scopes, one for each block that dominates what follows, so an expression is emitted once
where its operands are known and found again further in.
"""
from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass

from ...kir.types import Extent
from ...task.program import Node, Program
from ..llvm.ops import Ops
from ..llvm.text import Function
from ..llvm.values import MEMORY, Val
from .layout import Layout

ZERO, ONE = Val("index", "0"), Val("index", "1")


def index(k: int) -> Val:
    return Val("index", str(k))


@dataclass(frozen=True)
class Tile:
    """Lanes base .. base+width-1 of an axis, of which the first ``count`` (at least one) exist. ``full``: all do.
    ``bits``: the existing lanes as an integer of ``width`` bits. ``descends``: tiles come from the axis' end, so what lies behind a
    partial tile is done already."""
    axis: str
    base: Val
    width: int
    count: Val
    full: Val
    bits: str
    descends: bool = False


class Env:
    """``private``: resources of one task. ``varying``: those whose contents differ between lanes. ``width``: lanes when the lane axis
    is a task axis (0: scalars at statement level). ``tiles``: whether a phase may run its loops in tiles of lanes; a work-item cannot."""

    tiles = True

    def __init__(self, program: Program, layout: Layout, fn: Function, arguments: str, frame: str, width: int = 0):
        self.program, self.graph, self.layout, self.fn, self.width = program, program.graph, layout, fn, width
        self.arguments, self.frame = arguments, frame
        self.o = Ops(fn)
        self.axes: dict[str, Val] = {}
        self.tile: Tile | None = None
        self._mask: Val | None = None
        self.storage: dict = {}
        self.varying: frozenset[str] = frozenset()
        self.private: frozenset[str] = frozenset()
        self.turned: dict[int, str] = {}                     # id of a Store -> where it goes instead (see turning.py)
        self.runner = None                                   # runs the statements inside loops and branches (see map_vector/panel.py)
        self.arena = ""                                      # memory of grouped accumulators (see grouped.py)
        self.products: dict = {}                             # id of a Contract -> how it runs in blocks (see map_vector/products.py)
        self.arena_of_products = ""                          # memory of these
        self.streamed = False                                # stores went around the caches
        self.host = False
        self._scopes: list[dict] = [{}]
        self._varies: dict = {}
        self._axes: dict = {}
        self.reads_memo: dict = {}
        self._sizing = False
        self.growing: dict = {}                              # scratch that grows: name -> (resource, pointer, size), see growing.py
        self._words: set[str] = set()
        self._temps: dict = {}
        self._used: list = []

    # --- scopes ---

    @contextmanager
    def scope(self):
        """Everything remembered inside is forgotten behind it."""
        self._scopes.append({})
        mark = len(self._used)
        yield
        self._scopes.pop()
        del self._used[mark:]

    def known(self, key):
        for scope in reversed(self._scopes):
            v = scope.get(key)
            if v is not None:
                return v
        return None

    def remember(self, key, value):
        self._scopes[-1][key] = value
        return value

    def once(self, key, make):
        """The remembered value of ``key``, made here if there is none."""
        v = self.known(key)
        return self.remember(key, make()) if v is None else v

    @contextmanager
    def bound(self, axis: str, value: Val):
        """An axis with a value, and a scope."""
        old = self.axes.get(axis)
        self.axes[axis] = value
        with self.scope():
            yield
        if old is None:
            del self.axes[axis]
        else:
            self.axes[axis] = old

    @contextmanager
    def tiled(self, tile: Tile):
        """Lanes over ``tile.axis``, and a scope."""
        old, self.tile = self.tile, tile
        with self.bound(tile.axis, tile.base):
            yield
        self.tile = old

    @contextmanager
    def masked(self, kept: Val):
        """Only the lanes of a mask act, and a scope. ``kept`` comes from ``keep``."""
        old, self._mask = self._mask, kept
        with self.scope():
            yield
        self._mask = old

    # --- lanes ---

    @property
    def lanes(self) -> int:
        return self.tile.width if self.tile else 0

    def make_tile(self, axis: str, base: Val, limit: Val, width: int, descends: bool = False) -> Tile:
        """The tile at ``base`` of an axis that ends at ``limit`` > base."""
        o = self.o
        left = o.sub(limit, base)
        full = o.ge(left, index(width))
        count = o.select(full, index(width), left)
        missing = self.fn.ins(f"trunc i64 {o.sub(index(width), count).text} to i{width}")
        return Tile(axis, base, width, count, full, self.fn.ins(f"lshr i{width} -1, {missing}"), descends)

    # A vector of i1 is a comparison's result while it stays in the comparison's block; across blocks it would be packed into
    # bytes and unpacked at every use. Masks therefore live as vectors of i32 and become i1 by a comparison where they are used.

    def keep(self, mask: Val) -> Val:
        """A mask in the form that survives a block."""
        return Val("i32", self.fn.ins(f"sext {mask.type} {mask.text} to <{mask.lanes} x i32>"), mask.lanes)

    def kept(self, mask: Val) -> Val:
        """A mask from its surviving form."""
        return self.note_word(self.o.lt(mask, self.o.const(0, "i32", mask.lanes)))

    def logic(self, kind: str, *args: Val) -> Val:
        """and, or, xor, not of bool vectors. Where they come from comparisons of 32-bit numbers or wider they are combined as words: LLVM
        would pack each operand into bytes first."""
        name = {"and": "and_", "or": "or_", "not": "not_"}.get(kind, kind)
        lanes = max(a.lanes for a in args)
        if not lanes or not any(a.text in self._words for a in args):
            return getattr(self.o, name)(*args)
        words = [self.keep(self.o.splat(a, lanes)) for a in args]
        return self.note_word(self.kept(getattr(self.o, name)(*words)))

    def note_word(self, mask: Val) -> Val:
        """Remember that a bool vector is the result of a comparison at least a word wide."""
        self._words.add(mask.text)
        return mask

    @property
    def mask(self) -> Val | None:
        """Lanes that control flow has left on, None if it has not switched any off."""
        return None if self._mask is None else self.kept(self._mask)

    @property
    def mask_is_set(self) -> bool:
        return self._mask is not None

    def live(self) -> Val:
        """Bool vector: lanes that exist and that control flow has not switched off."""
        return self.existing() if self._mask is None else self.kept(self._mask)

    def existing(self) -> Val:
        lanes = self.tile.width
        return self.note_word(self.o.lt(self.o.iota(lanes, "i32"), self.once(("count", self.tile.base.text), self._count)))

    def prepare_masks(self) -> None:
        """Called in a tile's first block if masks will be wanted."""
        self.remember(("count", self.tile.base.text), self._count())

    def _count(self) -> Val:
        count = Val("i32", self.fn.ins(f"trunc i64 {self.tile.count.text} to i32"))
        return self.o.splat(count, self.tile.width)

    def bits(self, mask: Val | None) -> str:
        """Lanes that act, as an integer: those of ``mask`` (which includes existence) or all that exist."""
        if mask is None:
            return self.tile.bits
        return self.fn.ins(f"bitcast {mask.type} {mask.text} to i{mask.lanes}")

    def wide(self, x: Val) -> Val:
        """``x`` as a vector of the current tile; a splat is remembered, under its dtype too: after a cast one register has two."""
        lanes = self.lanes
        if not lanes or x.lanes:
            return x
        if x.text[0] != "%":
            return self.o.splat(x, lanes)
        if x.dt == "bool":                                   # as a comparison, which is what masks are made of
            word = Val("i32", self.fn.ins(f"sext i1 {x.text} to i32"))
            return self.kept(self.o.splat(word, lanes))
        return self.once(("splat", x.dt, x.text, lanes), lambda: self.o.splat(x, lanes))

    # --- launch frame ---

    def slot_pointer(self, slot: int) -> str:
        """The address of a launch frame slot; the arguments may lie elsewhere."""
        key = ("slot", slot)
        if key not in self.fn.cache:
            base = self.arguments if slot < self.layout.arguments else self.frame
            self.fn.cache[key] = self.fn.entry(f"getelementptr i64, ptr {base}, i64 {slot}")
        return self.fn.cache[key]

    def slot(self, slot: int, type: str = "i64") -> str:
        """A slot that does not change while this function runs."""
        key = ("slot", slot, type)
        if key not in self.fn.cache:
            self.fn.cache[key] = self.fn.entry(f"load {type}, ptr {self.slot_pointer(slot)}")
        return self.fn.cache[key]

    def entry_bool(self, text: str) -> Val:
        """A condition over entry values, computed in the entry block once."""
        key = ("entry", text)
        if key not in self.fn.cache:
            self.fn.cache[key] = self.fn.entry(text)
        return Val("bool", self.fn.cache[key])

    @contextmanager
    def sizing(self):
        """Extents are those that memory is laid out for: bounds where cells of the task will decide."""
        self._sizing = True
        with self.scope():
            yield
        self._sizing = False

    def extent(self, e: Extent) -> Val:
        """The value of an extent; a vector if it depends on a varying cell."""
        if self._sizing:
            e = self.program.bounds.get(e, e)
        if e.const is not None:
            return index(e.const)
        private = any(s.startswith("%") for s in e.symbols)
        if private:
            return self._polynomial(e)
        return self.once(("extent", e), lambda: self._polynomial(e))

    def _polynomial(self, e: Extent) -> Val:
        o, total = self.o, ZERO
        for mono, coef in e.terms:
            term = index(coef)
            for s in mono:
                term = o.mul(term, self.symbol(s))
            total = o.add(total, term)
        return total

    def symbol(self, s: str) -> Val:
        if s.startswith("%"):
            name = s if s in self.storage or s in self.layout.cells else s[1:]
            return self.load_cell(name, "index")
        view, axis = self.program.symbols[s]
        return Val("index", self.slot(self.layout.extents[view, axis]))

    def load_cell(self, name: str, dt: str) -> Val:
        """A private or launch cell's value now."""
        st = self.storage.get(name)
        if st is not None:
            return self.o.load(dt, st.base, st.lanes)
        slot = self.layout.cells[name]
        if self.host:
            return self.o.load(dt, self.slot_pointer(slot))
        return self.once(("cell", slot), lambda: self.o.load(dt, self.slot_pointer(slot)))

    # --- what depends on the lane ---

    def varies(self, root: Node) -> bool:
        """Whether lanes see different values: the node uses the lane axis or a varying resource."""
        if self.tile is None and not self.varying:
            return False
        memo = self._varies.setdefault(self.tile.axis if self.tile else None, {})
        axis = self.tile.axis if self.tile else None
        stack = [root]
        while stack:
            n = stack[-1]
            if id(n) in memo:
                stack.pop()
                continue
            if n.op == "axis":
                memo[id(n)] = n.attr == axis
            elif n.op in ("load", "gload") and n.attr in self.varying:
                memo[id(n)] = True
            elif n.op == "extent":
                memo[id(n)] = any(s in self.varying or s[1:] in self.varying for s in n.attr.symbols if s.startswith("%"))
            else:
                open_ = [a for a in n.args if id(a) not in memo]
                if open_:
                    stack += open_
                    continue
                memo[id(n)] = any(memo[id(a)] for a in n.args)
            stack.pop()
        return memo[id(root)]

    def node_axes(self, root: Node) -> frozenset[str]:
        """Names of the axes an expression depends on, without recursion: unrolled kernels nest deeply."""
        memo, stack = self._axes, [root]
        while stack:
            n = stack[-1]
            if id(n) not in memo:
                open_ = [a for a in n.args if id(a) not in memo]
                if open_:
                    stack += open_
                    continue
                memo[id(n)] = frozenset({n.attr}) if n.op == "axis" else frozenset().union(*(memo[id(a)] for a in n.args))
            stack.pop()
        return memo[id(root)]

    # --- temporary memory ---

    def temp(self, dt: str, count: int, align: int = 64, zeroed: bool = False) -> str:
        """Stack memory of ``count`` elements as stored, free for reuse when the scope ends. ``zeroed``: zeros, or what it held before."""
        size = (MEMORY[dt], count, zeroed)
        n = sum(1 for u in self._used if u == size)
        self._used.append(size)
        pool = self._temps.setdefault(size, [])
        while len(pool) <= n:
            pool.append((self.fn.zeroed if zeroed else self.fn.alloca)(MEMORY[dt], align, count))
        return pool[n]

    def variable(self, dt: str, init: Val | None = None, lanes: int = 0) -> "Variable":
        """A mutable local of the emitted code (a stack slot that mem2reg turns into registers)."""
        v = Variable(self, dt, lanes, self.fn.alloca(Val(dt, "", lanes).type))
        if init is not None:
            v.set(init)
        return v


@dataclass(frozen=True)
class Variable:
    """A register-typed stack slot."""
    env: Env
    dt: str
    lanes: int
    pointer: str

    def get(self) -> Val:
        return Val(self.dt, self.env.fn.ins(f"load {Val(self.dt, '', self.lanes).type}, ptr {self.pointer}"), self.lanes)

    def set(self, x: Val) -> None:
        x = self.env.o.splat(x, self.lanes)
        self.env.fn.do(f"store {x.type} {x.text}, ptr {self.pointer}")
