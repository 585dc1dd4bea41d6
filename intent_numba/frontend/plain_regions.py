"""Which region operations are reductions or scans by what their helpers do? These become plain ones, where no bit can change.

A fold is plain when every component of its summary is an order-free reduction of something pointwise, and combine is that same
operation component by component. A scan is plain when its summaries are so, apply too, and emit uses the state in inclusive or
exclusive prefixes of what is reduced, and is pointwise otherwise. Order-free are the reductions of integers and all extremes:
float sums keep the order of their segments (section 12).

The helpers are tried on the whole source, and what they emit is read. What they emit for a slice stays the judge of whether the
program is legal; nothing here is an error.
"""
from __future__ import annotations

from dataclasses import dataclass

from ..errors import CompileError
from ..kir import Op, Region, Tensor, Value, walk
from ..kir.ops import ELEMENTWISE
from ..typing.policy import FLOATS
from .build_structured import is_neutral, where_empty
from .products import unflatten
from .segments import SEGMENT, chosen

COMBINES = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum", "any": "or", "all": "and", "and": "and", "or": "or",
            "xor": "xor"}
"""The operation of two members that each reduction repeats."""

SLICING = {"domain", "gather"}
TRIED = ELEMENTWISE.keys() | SLICING | {"const", "extent", "broadcast", "expand", "reduce", "scan"}
"""What the region over slices may hold; anything else and nothing is tried."""


@dataclass(frozen=True)
class Trial:
    """What helpers emitted for the whole source: the operation behind each value."""
    producers: dict[Value, Op]
    axis: int
    shape: tuple

    def behind(self, v: Value, *kinds: str) -> Op | None:
        op = self.producers.get(v)
        return op if op is not None and op.kind in kinds else None

    def pointwise(self, v: Value) -> bool:
        """Made of elements in their own places, or given."""
        op = self.producers.get(v)
        if op is None or op.kind in ("const", "extent"):
            return True
        if op.kind == "broadcast" and isinstance(op.args[0].type, Tensor):
            return False
        return op.kind in (*ELEMENTWISE, "broadcast") and all(map(self.pointwise, op.args))

    def reduction(self, v: Value) -> tuple[str, Value] | None:
        """(kind, what is reduced) of an order-free reduction of something pointwise along the source's axis."""
        op = self.behind(v, "reduce")
        if op is None or op.regions or op.attrs["axis"] != self.axis:
            return None
        if op.args[0].type.shape != self.shape or not self.pointwise(op.args[0]):
            return None
        kind, dt = op.attrs["kind"], v.type.dt
        return (kind, op.args[0]) if kind not in ("sum", "prod") or dt not in FLOATS else None

    def same(self, a: Value, b: Value) -> bool:
        """Computed in the same way from the same values."""
        if a is b:
            return True
        p, q = self.producers.get(a), self.producers.get(b)
        return (p is not None and q is not None and (p.kind, p.attrs, a.type) == (q.kind, q.attrs, b.type) and not p.regions
                and len(p.args) == len(q.args) and all(map(self.same, p.args, q.args)))


def may_be_plain(e, region: Region) -> bool:
    """Is it worth a trial? ``region`` is that over slices. A forced segmentation is there to be seen."""
    return chosen() == SEGMENT and not e.obligations and not e.policy.raises and all(op.kind in TRIED for op in walk(region))


def plain_fold(helpers, source, summarize, combine, schema, identity) -> list[Value] | None:
    """The components of a plain fold."""
    e = helpers.e
    found = _reductions(helpers, source, summarize, combine, schema, identity)
    if found is None:
        return None
    _, values, kinds = found
    if all(is_neutral(e, v, kind) for v, (kind, _) in zip(identity, kinds)):
        return values
    return where_empty(e, [source.members], identity, values)


def plain_scan(helpers, source, helper, schemas, identity, initial) -> tuple[list[Value], list[Value]] | None:
    """(emitted components, final state) of a plain scan. ``helper`` has summarize, combine, apply and emit, ``schemas`` the schemas
    of summary, state and outputs."""
    e = helpers.e
    summary, state, outputs = schemas
    found = _reductions(helpers, source, helper["summarize"], helper["combine"], summary, identity)
    if found is None or len(initial) != len(identity):
        return None
    trial, values, kinds = found
    states = [v.type for v in initial]

    def apply(params):
        k = len(identity)
        sides = unflatten(e, summary, iter(params[:k])), unflatten(e, state, iter(params[k:]))
        return helpers.call("apply", helper["apply"], sides, (summary, state), state, states)
    if states != [v.type for v in identity] or not _componentwise(e, apply, states, kinds):
        return None
    incoming = unflatten(e, state, iter(initial))
    emitted = _tried(e, trial, lambda: helpers.call("emit", helper["emit"], (*source.parts, incoming, *helpers.operands),
                                                    (*source.kinds, state, *helpers.kinds), outputs))
    if emitted is None or not all(_prefixed(trial, v, initial, kinds) for v in emitted):
        return None
    return emitted, [e.one(COMBINES[kind], (a, r), a.type) for a, r, (kind, _) in zip(initial, values, kinds)]


def _reductions(helpers, source, summarize, combine, schema, identity):
    """(trial, reduced values, (kind, operand) of each), when summarize and combine are plain."""
    e, types = helpers.e, [v.type for v in identity]
    shapes = {leaf.type.shape for leaf in source.leaves}
    if len(shapes) != 1:
        return None
    (shape,) = shapes
    trial = Trial({}, source.axis % len(shape), shape)
    values = _tried(e, trial, lambda: helpers.summarize(summarize, source.parts, source, schema, types))
    kinds = [trial.reduction(v) for v in values] if values is not None else [None]
    if not all(kinds):
        return None

    def combined(params):
        k = len(types)
        return helpers.combine(combine, params[:k], params[k:], schema, types)
    return (trial, values, kinds) if _componentwise(e, combined, types, kinds) else None


def _tried(e, trial: Trial, call) -> list[Value] | None:
    """What the helper gives for the whole source; its operations join the trial. None where it does not fit."""
    ops, start = e.b.region.ops, len(e.b.region.ops)
    loc = e.b.loc
    try:
        values = call()
    except CompileError:
        return None
    finally:
        e.b.loc = loc
        trial.producers.update({r: op for op in ops[start:] for r in op.results})
    return values


def _componentwise(e, call, types, kinds) -> bool:
    """Does ``call`` of two groups of these types give, for each component, the operation that its reduction repeats?"""
    region = e.b.block([*types, *types])
    with e.inside(region):
        values = call(region.params)
    made = {r: op for op in region.ops for r in op.results}
    k = len(types)
    return all(v in made and made[v].kind == COMBINES[kind] and set(made[v].args) == {region.params[i], region.params[k + i]}
               for i, (v, (kind, _)) in enumerate(zip(values, kinds)))


def _prefixed(trial: Trial, v: Value, initial, kinds) -> bool:
    """Is the emitted value pointwise in members and in prefixes of what is reduced, each combined with the state of its component?"""
    op = trial.producers.get(v)
    if op is None:
        return not any(v is s for s in initial)
    for scan, other in (op.args, op.args[::-1]) if len(op.args) == 2 else ():
        prefix = trial.behind(scan, "scan")
        i = _state(trial, other, initial)
        if prefix is not None and i is not None and op.kind == COMBINES[kinds[i][0]]:
            kind, of = kinds[i]
            return (prefix.attrs["kind"], prefix.attrs["axis"], prefix.attrs["reverse"]) == (kind, trial.axis,
                                                                                             False) and trial.same(prefix.args[0], of)
    if op.kind == "broadcast" and isinstance(op.args[0].type, Tensor):
        return False
    return op.kind in (*ELEMENTWISE, "broadcast", "const", "extent") and all(_prefixed(trial, a, initial, kinds) for a in op.args)


def _state(trial: Trial, v: Value, initial) -> int | None:
    """Which component of the state is this, repeated along the members?"""
    while (op := trial.behind(v, "broadcast", "expand")) is not None and (op.kind == "broadcast" or op.attrs["axis"] == trial.axis):
        v = op.args[0]
    return next((i for i, s in enumerate(initial) if s is v), None)
