"""Which axis the lanes of a stage run over, how many there are, and which private values differ between them.

``lanes is None``: one task point at a time, and every phase picks a lane axis among its own loops. Else the lane axis is a task
axis: every statement works on ``width`` points at once, control flow under masks. The choice counts accesses: an access votes for
the axis that walks its last coordinate, where elements are presumed consecutive.
"""
from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ...kir.types import BITS
from ...task.program import Axis, Contract, For, If, Loop, Node, Phase, Program, Reduce, Scan, Stage, Store, Update

PHASE_LANES = 32
"""Lanes of a phase: section 12's tree has 32 leaves, and 32 elements amortise a loop."""
CHEAP = {"axis", "const", "extent", "param", "load", "add", "sub", "mul", "neg", "abs", "fma", "and", "or", "xor", "not", "shl", "shr",
         "eq", "ne", "lt", "le", "gt", "ge", "maximum", "minimum", "select", "cast", "bitcast"}
"""Operations of a few cycles."""
SHORT = 16
"""Rows this short are better run one per lane."""


@dataclass(frozen=True)
class StagePlan:
    """``order``: the task axes as the launch linearises them, the lane axis last. ``panel``: the stage runs in blocks
    (map_vector/panel.py); ``crossing``: in blocks of two axes (map_vector/pointwise.py)."""
    order: tuple[Axis, ...]
    lanes: str | None = None
    width: int = 0
    varying: frozenset[str] = frozenset()
    panel: object = None
    crossing: Axis | None = None


def plan_lanes(program: Program, stage: Stage, short: bool = False) -> StagePlan:
    """The plan of a stage that runs point by point or lane by lane. ``short``: its phases' loops are known to be."""
    lane = _lane_axis(program, stage, short)
    if lane is None:
        return StagePlan(stage.tasks)
    order = tuple(a for a in stage.tasks if a.name != lane) + tuple(a for a in stage.tasks if a.name == lane)
    width = _point_width(stage) if runs_points(stage) else PHASE_LANES
    varying = varying_resources(program, stage, lane)
    if _ragged(stage, varying):
        return StagePlan(stage.tasks)
    return StagePlan(order, lane, width, varying)


def _ragged(stage: Stage, varying: frozenset[str]) -> bool:
    """Whether a structured operation has another extent in every lane: lanes cannot share its tree."""
    structured = [ph for ph in walk_phases(stage.body) if not all(isinstance(s, (Store, Update)) for s in ph.sinks)]
    symbols = {s for ph in structured for a in ph.loops for s in a.extent.symbols if s.startswith("%")}
    return any(s in varying or s[1:] in varying for s in symbols)


def _lane_axis(program: Program, stage: Stage, short: bool) -> str | None:
    if not stage.tasks:
        return None
    last = stage.tasks[-1].name
    if runs_points(stage):
        return last
    phases = list(walk_phases(stage.body))
    votes = Counter()
    private = {r.name for r in stage.resources}
    for ph in phases:
        for s in ph.sinks:
            for axis, depth in _votes(s, private, ph.loops):
                votes[axis] += 1 + 4 * depth
    tasks = [a.name for a in stage.tasks]
    loops = {a.name: a for ph in phases for a in ph.loops}
    best_task = max(tasks, key=lambda a: (votes[a], a == last))
    if short or all(a.extent.const is not None and a.extent.const <= SHORT for a in loops.values()):
        return best_task
    best_loop = max(votes[a] for a in loops)
    return best_task if votes[best_task] > best_loop else None


def runs_points(stage: Stage) -> bool:
    """Whether the work is scalars in ordered loops: nothing inside a task to vectorise along. Phases with loops of their own then only
    fill or empty a buffer, at a lesser depth."""
    if stage.kind == "point":
        return True
    scalars, loops = _depths(stage.body, 0)
    return 0 < scalars >= loops


def _depths(body, around: int) -> tuple[int, int]:
    """The deepest nesting of phases without loops, and of phases with loops (their own count)."""
    scalars = loops = 0
    for s in body:
        match s:
            case Phase(loops=()):
                scalars = max(scalars, around)
            case Phase():
                loops = max(loops, around + len(s.loops))
            case For() | Loop():
                a, b = _depths(s.body, around + 1)
                scalars, loops = max(scalars, a), max(loops, b)
            case If():
                for side in (s.then, s.orelse):
                    a, b = _depths(side, around)
                    scalars, loops = max(scalars, a), max(loops, b)
    return scalars, loops


def lane_loop(ph_loops: tuple[Axis, ...], sinks, private) -> str | None:
    """The loop a phase's lanes run over when the stage has none: most votes, the later on ties. A contraction's chain is
    sequential, so its reduced axes cannot be. Updates are done one by one and in order; lanes along the last loop pay for operands that
    are dear. Scratch counts here: its rows lie along its last axis."""
    barred = {a for s in sinks if isinstance(s, Contract) for a in s.axes}
    loops = [a.name for a in ph_loops if a.name not in barred]
    if not loops:
        return None
    if any(isinstance(s, Update) and s.kind != "raise" for s in sinks):
        cheap = all(n.op in CHEAP or n.op == "gload" for s in sinks for n in walk_nodes(*sink_roots(s)))
        return None if cheap else loops[-1]
    votes = Counter()
    for s in sinks:
        for axis, depth in _votes(s, ()):
            votes[axis] += 1 + 4 * depth
        for axis, depth in _votes(s, private):               # but what others laid out counts more
            votes[axis] += 4 * depth
    return max(loops, key=lambda a: (votes[a], loops.index(a)))


def _votes(sink, private, loops: tuple[Axis, ...] | None = None):
    """(axis, loops around the access, or 1) for every access of a sink to memory that is not private. A reduction's results are stored
    outside the reduced loop; an operand of a product that the reduced loop does not change, as the number of a row, is read outside it."""
    coords, around = sink.coords, 1 if loops is None else len(loops)
    match sink:
        case Update():
            targets, depth, coords = (sink.resource,), around, sink.at
        case Store():
            targets, depth = (sink.resource,), around
        case Scan():
            targets, depth = sink.targets, around
        case Reduce():
            targets, depth = sink.targets, around - 1
        case Contract():
            targets, depth = (sink.target,), around - len(sink.axes)
    if targets[0] not in private:
        yield from ((a, depth) for c in coords[-1:] for a in walks(c))
    depths = _depths_of_nodes(sink_roots(sink), [a.name for a in loops]) if loops and isinstance(sink, Contract) else {}
    for n in walk_nodes(*sink_roots(sink)):
        if n.op in ("load", "gload") and n.args and n.attr not in private:
            yield from ((a, depths.get(id(n), around)) for a in walks(n.args[-1]))


def _depths_of_nodes(roots, loops: list[str]) -> dict[int, int]:
    """How many of the loops, counted from the outermost, decide each expression."""
    known: dict[int, int] = {}
    stack = list(roots)
    while stack:
        n = stack[-1]
        if id(n) in known:
            stack.pop()
            continue
        open_ = [a for a in n.args if id(a) not in known]
        if open_:
            stack += open_
            continue
        own = loops.index(n.attr) + 1 if n.op == "axis" and n.attr in loops else 0
        known[id(n)] = max([own, *(known[id(a)] for a in n.args)])
        stack.pop()
    return known


def walks(coord: Node):
    """Axes that step through a coordinate one by one."""
    if coord.op == "axis":
        yield coord.attr
    elif coord.op in ("add", "sub"):
        yield from walks(coord.args[0])
        if coord.op == "add":
            yield from walks(coord.args[1])


def _point_width(stage: Stage) -> int:
    """Eight vector registers' worth of the widest dtype, at most 16 lanes."""
    widest = max((BITS[r.dt] for r in stage.resources if r.dt != "index"), default=32)
    return 8 if widest > 32 else 16


# --- walking ---------------------------------------------------------------------------------------------------------

def sink_roots(sink) -> tuple[Node, ...]:
    """The expressions a sink evaluates, coordinates included."""
    match sink:
        case Store():
            return (*sink.coords, sink.value) + ((sink.valid,) if sink.valid is not None else ())
        case Update():
            return (*sink.coords, *sink.at, *sink.values) + ((sink.valid,) if sink.valid is not None else ())
        case Contract():
            return (*sink.coords, sink.a, sink.b, *(r for s in sink.epilogue for r in sink_roots(s)))
        case _:
            return (*sink.coords, *sink.values, *sink.identities)


def sink_targets(sink) -> tuple[str, ...]:
    match sink:
        case Store():
            return (sink.resource,)
        case Update():
            return (sink.resource, *sink.targets)
        case Contract():
            return ((sink.target,) if sink.keep else ()) + tuple(s.resource for s in sink.epilogue)
        case _:
            return sink.targets


def walk_nodes(*roots: Node):
    seen, stack = set(), list(roots)
    while stack:
        n = stack.pop()
        if id(n) not in seen:
            seen.add(id(n))
            yield n
            stack += n.args


def walk_phases(body):
    for s in body:
        match s:
            case Phase():
                yield s
            case For() | Loop():
                yield from walk_phases(s.body)
            case If():
                yield from walk_phases(s.then)
                yield from walk_phases(s.orelse)
            case Stage():
                yield from walk_phases(s.body)


# --- what differs between lanes ----------------------------------------------------------------------------------------

def varying_resources(program: Program, stage: Stage, lane: str) -> frozenset[str]:
    """Scratch always differs; a cell does if it is given a lane's value, or is assigned where lanes diverge."""
    varying = {r.name for r in stage.resources if r.shape}
    private = {r.name for r in stage.resources}

    def varies(*roots: Node) -> bool:
        return any(n.op == "axis" and n.attr == lane or n.op in ("load", "gload") and n.attr in varying
                   or n.op == "extent" and extent_varies(n.attr) for n in walk_nodes(*roots))

    def extent_varies(e) -> bool:
        return any(s in varying or s[1:] in varying for s in e.symbols if s.startswith("%"))

    def visit(body, divergent: bool) -> None:
        for s in body:
            match s:
                case Phase():
                    ragged = any(extent_varies(a.extent) for a in s.loops)
                    for sink in s.sinks:
                        targets = private.intersection(sink_targets(sink))
                        apart = divergent or ragged or isinstance(sink, Update)
                        if targets and (apart or varies(*sink_roots(sink)) or _combine_varies(sink, varies)):
                            varying.update(targets)
                case For():
                    apart = divergent or extent_varies(s.extent) or s.stop in varying
                    if varies(s.begin, s.step):
                        varying.add(s.var)
                    visit(s.body, apart)
                case Loop():
                    visit(s.body, divergent or s.again in varying)
                case If():
                    apart = divergent or varies(s.cond)
                    visit(s.then, apart)
                    visit(s.orelse, apart)

    before = -1
    while before != len(varying):
        before = len(varying)
        visit(stage.body, False)
    return frozenset(varying)


def _combine_varies(sink, varies) -> bool:
    combine = getattr(sink, "combine", None)
    return combine is not None and varies(*combine.results)


def raises(program: Program) -> bool:
    """Whether the launch can end with the status of a check."""
    return any(isinstance(s, Update) and s.kind == "raise" for ph in walk_phases(program.body) for s in ph.sinks)
