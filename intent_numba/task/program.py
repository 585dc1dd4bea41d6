"""The task program: how a kernel is computed, on any machine.

A program is a tree of statements run in order. ``Stage`` statements are grids of independent tasks; between stages,
values live in workspace; inside a task they live in scratch. Whatever computes is an expression of the shared,
hash-consed graph (``Node``), evaluated at the coordinates of the axes around it.

The lowering decides what is computed where and in which order; a mapper decides lane axis, tile and storage layout.
Bits are fixed already: every reduction, scan and contraction carries its form.
"""
from __future__ import annotations

from dataclasses import dataclass, field

from ..kir.types import Extent


@dataclass(frozen=True)
class Axis:
    """An iteration axis 0 .. extent-1. Names are unique in a program. The extent's symbols are shape names, or
    ``%cell`` names of index cells that are assigned before the axis is entered."""
    name: str
    extent: Extent

    def __str__(self):
        return f"{self.name}:{self.extent}"


@dataclass(frozen=True, eq=False)
class Node:
    """One expression. ``dt`` is the dtype of its value.

    op        args                     attr
    axis      -                        axis name (dt index)
    const     -                        Python value
    extent    -                        Extent (dt index)
    param     -                        scalar parameter's name
    load      coordinates              resource name
    gload     valid, fill, coords...   resource name: fill where valid is False, and then no access
    call      scalar arguments         extern symbol
    KIR elementwise kind, operands, attr = frozenset of (name, value) attributes such as approximate (or None)
    """
    op: str
    args: tuple["Node", ...] = ()
    attr: object = None
    dt: str = "index"


class Graph:
    """Hash-consing constructor of nodes: equal expressions are one object."""

    def __init__(self):
        self._nodes: dict = {}
        self._axes: dict = {}

    def __call__(self, op: str, args=(), attr=None, dt: str = "index") -> Node:
        args = tuple(args)
        key = (op, tuple(map(id, args)), type(attr), repr(attr) if isinstance(attr, float) else attr, dt)
        node = self._nodes.get(key)
        if node is None:
            node = self._nodes[key] = Node(op, args, attr, dt)
            self._axes[id(node)] = frozenset({attr}) if op == "axis" else frozenset().union(*(self._axes[id(a)] for a in args))
        return node

    def axes(self, node: Node) -> frozenset[str]:
        """Names of the axes an expression depends on."""
        return self._axes[id(node)]


@dataclass(frozen=True)
class Resource:
    """Memory with a logical shape, row-major unless it is a view.

    kind ``view``       a kernel parameter (base pointer, strides at run time)
         ``workspace``  lives for the launch; shared by stages. ``shape`` in extents
         ``scratch``    lives inside one task of stage; ``axes`` says which leading dimensions are the stage's task axes
         ``cell``       one scalar (shape ()), assigned and read like scratch; ``%name`` may stand in extents if dt is index.
                        Declared in a Stage it is private to the task point; declared in the Program it lives in the launch frame
                        and tasks only read it.
    """
    name: str
    kind: str
    dt: str
    shape: tuple[Extent, ...] = ()
    axes: tuple[str, ...] = ()
    why: str = ""


# --- sinks: what a phase does at each point of its loops -----------------------------------------------------------

@dataclass(frozen=True)
class Store:
    """resource[coords] = value, where valid (a bool node or None)."""
    resource: str
    coords: tuple[Node, ...]
    value: Node
    valid: Node | None = None


@dataclass(frozen=True)
class Reduce:
    """Reduction over ``axis`` (one of the phase's loops) of ``values``; the results are stored at ``coords``, which do not
    use ``axis``.

    kind   sum prod max min any all and or xor | argmax argmin | fma | generic
           argmax/argmin: one value, two targets (value, index). fma: two values u, v: the R tree with leaf a = fma(u, v, a).
           generic: k values, k identities, combine is a function graph (see Combine)
    form   "tree" (section 12 R) or "free" (order-free)
    """
    targets: tuple[str, ...]
    coords: tuple[Node, ...]
    axis: str
    kind: str
    form: str
    values: tuple[Node, ...]
    identities: tuple[Node, ...] = ()
    combine: "Combine | None" = None


@dataclass(frozen=True)
class Combine:
    """A pure scalar function of 2k values as expressions: ``left`` and ``right`` are placeholder nodes (op "hole"),
    ``results`` expressions over them."""
    left: tuple[Node, ...]
    right: tuple[Node, ...]
    results: tuple[Node, ...]


@dataclass(frozen=True)
class Scan:
    """Prefix over ``axis`` (one of the phase's loops). Results go to targets at ``coords`` (which use ``axis``).
    kind, combine, identities as in Reduce (sum prod max min and or xor any all generic); form "tree" is section 12 S."""
    targets: tuple[str, ...]
    coords: tuple[Node, ...]
    axis: str
    kind: str
    form: str
    values: tuple[Node, ...]
    inclusive: bool = True
    reverse: bool = False
    identities: tuple[Node, ...] = ()
    combine: Combine | None = None


@dataclass(frozen=True)
class Contract:
    """target[coords] = section 12 C over ``axis`` (one of the loops; several reduced axes are flattened by nesting: ``axes``
    lists them, outermost first) of a*b, ascending, in blocks of KBLOCK. ``a`` depends on m_axes, batch and the reduced axes;
    ``b`` on n_axes, batch and the reduced axes. Integer dtypes are exact modulo 2^N. ``epilogue`` are stores evaluated once the
    element is complete, in which the node ``load target[coords]`` is the element itself."""
    target: str
    coords: tuple[Node, ...]
    axes: tuple[str, ...]
    a: Node
    b: Node
    m_axes: tuple[str, ...]
    n_axes: tuple[str, ...]
    batch_axes: tuple[str, ...] = ()
    epilogue: tuple[Store, ...] = ()
    keep: bool = True                    # False: nothing but the epilogue reads target, so it needs no storage


@dataclass(frozen=True)
class Update:
    """resource[at] = kind(resource[at], values), where valid, at every point of the phase's loops.

    kind       raise: the launch ends with the status that is the value (the resource is only a name)
               | load store exchange add mul max min and or xor | compare_exchange: values expected, desired, compared by their bits
               | generic: combine of (the element, one value)
    order      relaxed acquire release acq_rel: one indivisible operation. None: the task has its elements to itself
    ascending  points act in the order of the loops, the first loop outermost
    old, success   resources that get the element as it was found, and whether compare_exchange stored; at ``coords``. Zero where
               not valid. None: nobody asks
    """
    resource: str
    at: tuple[Node, ...]
    kind: str
    order: str | None
    values: tuple[Node, ...]
    valid: Node | None = None
    ascending: bool = False
    combine: Combine | None = None
    old: str | None = None
    success: str | None = None
    coords: tuple[Node, ...] = ()

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(t for t in (self.old, self.success) if t is not None)


Sink = Store | Reduce | Scan | Contract | Update


# --- statements ------------------------------------------------------------------------------------------------------

@dataclass
class Phase:
    """A loop nest over ``loops`` (outermost first, any order is legal unless a sink says otherwise) that performs its sinks
    at every point. Sinks of one phase do not read what another sink of it writes, except a Store to a resource later sinks
    load at the very same coordinates (they then use the value). A phase without loops computes task scalars."""
    loops: tuple[Axis, ...]
    sinks: list[Sink] = field(default_factory=list)


@dataclass
class For:
    """Ordered loop: ``var`` is a cell that takes begin, begin+step, ... (``extent`` values). ``stop`` names a bool cell that
    the body may set; the loop ends after the iteration that set it."""
    var: str
    begin: Node
    step: Node
    extent: Extent
    body: list["Stmt"] = field(default_factory=list)
    stop: str | None = None


@dataclass
class Loop:
    """Repeat the body while the bool cell ``again`` is True after it; runs at least once."""
    again: str
    body: list["Stmt"] = field(default_factory=list)


@dataclass
class If:
    cond: Node
    then: list["Stmt"] = field(default_factory=list)
    orelse: list["Stmt"] = field(default_factory=list)


@dataclass
class Stage:
    """A grid of independent tasks over ``tasks`` (logical points; a mapper may give one task many points).

    body ``phases``  the statements are run for every point; phases vectorise along their own loops or along a task axis
         ``point``   only scalars and scratch: run one logical point per lane, with masks where control diverges
    ``point_coords``: nothing; the coordinates of a point are the axis nodes of ``tasks``.
    ``reads``/``writes``: resources outside the task. ``cost``: rough operations per point.
    """
    name: str
    tasks: tuple[Axis, ...]
    body: list["Stmt"]
    resources: list[Resource] = field(default_factory=list)
    kind: str = "phases"
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    cost: int = 1


@dataclass
class Free:
    """The workspace is not used any more."""
    resource: str


Stmt = Phase | For | Loop | If | Stage | Free
"""At the top level of a program a Phase has no loops: it assigns launch cells."""


@dataclass
class Param:
    """A runtime parameter. kind view (dt, rank, access; shape of extents) or scalar."""
    name: str
    kind: str
    dt: str
    shape: tuple[Extent, ...] = ()
    access: str = ""


@dataclass
class Program:
    """``symbols`` maps shape names to (view, axis). ``inplace`` lists pairs (input view, output view) that may be the very
    same memory without changing the result of this program. ``bounds`` maps extents that cells of a task decide to extents that
    they cannot exceed."""
    name: str
    params: list[Param]
    symbols: dict[str, tuple[str, int]]
    resources: list[Resource]            # workspace and launch cells
    body: list[Stmt]
    graph: Graph
    externs: dict = field(default_factory=dict)
    inplace: frozenset = frozenset()
    bounds: dict = field(default_factory=dict)
