"""Updates of shared memory as sinks: atomics, scatter_reduce and histogram. Which of them must keep the order of their points?

An atomic acts at every point of its axes and in no order, so the axes may be tasks. What depends on the order in more than the
values found, a float sum or a combine, acts in ascending order: its axes are tasks only where they tell its addresses apart.
"""
from __future__ import annotations

from ..kir import Op, Region, Value, walk
from ..kir.ops import ERRORS, UPDATES
from ..kir.types import is_float
from ..task import Store, Update
from .pull import Kept

KINDS = {"sum": "add", "prod": "mul", "any": "or", "all": "and"}
"""Kinds of scatter_reduce that a sink calls by another name."""


def ascending(op: Op) -> bool:
    """Does the order of the members decide what the memory holds in the end, bit by bit?"""
    return op.kind == "scatter_reduce" or op.kind == "atomic_rmw" and op.attrs["kind"] == "add" and is_float(op.args[0].type.dt)


def told_apart(op: Op, params) -> bool:
    """Do different points, the coordinates ``params``, update different elements?"""
    return all(p in indices(op) for p in params)


def indices(op: Op) -> tuple[Value, ...]:
    return op.args[1:1 + len(op.args[0].type.shape)]


def in_turn(region: Region, alias) -> bool:
    """Must the points of this parallel region run one after the other, in ascending order? In ``alias`` a view that overlaps itself
    is a pair with itself: coordinates do not tell its elements apart."""
    own = {v for o in walk(region) for v in o.results}
    met = [o for o in walk(region) if ascending(o) and o.args[0] not in own]
    return any(not told_apart(o, region.params) or frozenset((o.args[0].name,)) in alias for o in met)


def interleaved(region: Region) -> bool:
    """Do the points mix several ascending updates of one memory, so that each point must finish before the next?"""
    found = [o.args[0] for o in walk(region) if ascending(o)]
    return len(set(found)) < len(found)


def update(low, op: Op, par, pos: int, ctx) -> None:
    """One sink for the operation; results that are used are stored like those of a reduction."""
    memory, operands = op.args[0], op.args[1 + len(op.args[0].type.shape):]
    valid = None
    if op.attrs.get("guard"):
        *operands, valid = operands
    shape = next((v.type.shape for v in (*operands, *op.results)), ())
    own = tuple(low.axis(e) for e in shape)
    co = low.nodes(own)
    low.pull.trace = trace = []
    at = low.pull._full(memory, low.pull.coords(memory, indices(op), co))
    values = tuple(low.pull.pull(v, co) for v in operands)
    ok = None if valid is None else low.pull.pull(valid, co)
    wanted = [v for v in op.results if low.sinks.get(v) or f"%{v.name}" in low.symbols]
    names = {v: low.produce(v, par + own) for v in wanted}
    old, success = [names.get(v) for v in (*op.results, None, None)[:2]]
    kind = _kind(op)
    sink = Update(low.pull._resource(memory), at, kind, op.attrs.get("order"), values, ok, ascending(op),
                  low.pull.combine(op) if kind == "generic" else None, old, success, low.nodes(par + own))
    low.use(sink, par, own, (), tuple(names.values()), pos, ctx, trace)
    for v, name in names.items():
        low.pull.bind[v] = Kept(name, low.nodes(par))
    if op.attrs.get("order") in ("acquire", "acq_rel") and not par:
        low.flush(ctx)                                       # what is read behind it is not read before it


def _kind(op: Op) -> str:
    if op.kind in ("atomic_rmw", "scatter_reduce"):
        return KINDS.get(op.attrs["kind"], op.attrs["kind"])
    return op.kind.removeprefix("atomic_")


STATUS = "%status"
"""The name that stands for the status of the launch among resources."""


def check(low, op: Op, par, pos: int, ctx) -> None:
    """Where the operand is False the launch gets the error's status. Points may do that in any order."""
    (ok,) = op.args
    own = tuple(low.axis(e) for e in ok.type.shape)
    low.pull.trace = trace = []
    bad = low.g("not", (low.pull.pull(ok, low.nodes(own)),), None, "bool")
    sink = Update(STATUS, (), "raise", "relaxed", (low.pull.const(ERRORS[op.attrs["error"]], "index"),), bad)
    low.use(sink, par, own, (), (), pos, ctx, trace)


def histogram(low, op: Op, par, pos: int, ctx) -> None:
    """Zeros, then one count for each valid member."""
    v, dt = op.result, op.result.type.dt
    bins = tuple(low.axis(e) for e in v.type.shape)
    name = low.produce(v, par + bins)
    low.pull.trace = None
    low.use(Store(name, low.nodes(par + bins), low.pull.const(0, dt)), par, bins, (), (name,), pos, ctx, [])
    values, *valid = op.args
    own = tuple(low.axis(e) for e in values.type.shape)
    low.pull.trace = trace = []
    at = low.nodes(par) + (low.pull.pull(values, low.nodes(own)),)
    ok = low.pull.pull(valid[0], low.nodes(own)) if valid else None
    low.use(Update(name, at, "add", None, (low.pull.const(1, dt),), ok, True), par, own, (), (), pos, ctx, trace)
    low.pull.bind[v] = Kept(name, low.nodes(par))


__all__ = ["UPDATES", "ascending", "check", "histogram", "in_turn", "interleaved", "update"]
