"""Region fold and region scan as KIR: one ordered loop over segments, with the helpers inlined for each slice.

Section 12 fixes the bits. Fold: summaries are folded left inside groups of segments, groups are folded left; the identity is
the result of an empty source and takes part in nothing else. Scan: a segment's incoming state is ``apply`` of the left fold
of all summaries before it, and the initial state for the first segment; emitted slices are put together in a buffer.
"""
from __future__ import annotations

from dataclasses import dataclass

from ..errors import IntentShapeError, LanguageError
from ..kir import Buffer, Domain, Extent, Region, Scalar, Tensor, Value, walk
from ..language.operation import Operation
from ..language.structured import region_fold, region_scan
from ..typing.binding import Default, bind
from ..typing.operations_region import schema_of
from ..typing.types import is_product, items_of
from .build_structured import IMPURE, impure, pick
from .emitter import Emitter
from .pipeline import TYPING
from .plain_regions import may_be_plain, plain_fold, plain_scan
from .products import fit, flatten, leaves_of, text, unflatten
from .segments import GROUP, WHOLE, chosen
from .shapes import make_domain, require_same, whole_axis
from .values import Dom, Idx, Lit, Rec

INDEX = Scalar("index")


@dataclass(frozen=True)
class Source:
    """The source components as front values with their types, and what they share: the axis argument and its extent."""
    parts: tuple
    kinds: tuple
    axis: int
    members: Extent

    @property
    def leaves(self) -> list:
        return [leaf for part in self.parts for leaf in leaves_of(part)]


@dataclass(frozen=True)
class Segments:
    """The walk over segments: ``domain`` has their begins, ``step`` members each; ``group`` members make a group."""
    domain: Dom
    step: Value
    group: Value
    several: bool


def source_of(fb, what: str, source, axis, kind) -> Source:
    e = fb.e
    parts = tuple(source.fields.values()) if isinstance(source, Rec) else source if isinstance(source, tuple) else (source,)
    parts = tuple(_tensors(e, p) for p in parts)
    extents = [leaf.type.shape[axis.value % len(leaf.type.shape)] for p in parts for leaf in leaves_of(p)]
    for extent in extents[1:]:
        require_same(e, extents[0], extent, f"{what}: the source components along the axis")
    return Source(parts, items_of(kind) if is_product(kind) else (kind,), axis.value, extents[0])


def _tensors(e: Emitter, x):
    if isinstance(x, tuple):
        return tuple(_tensors(e, y) for y in x)
    return Rec({n: _tensors(e, y) for n, y in x.fields.items()}) if isinstance(x, Rec) else e.value(x)


def segments_of(e: Emitter, members: Extent) -> Segments:
    extent, n = chosen(), e.value(Idx(members))
    if extent == WHOLE:
        step = e.one("maximum", (n, e.const(1, "index")), INDEX)
        return Segments(make_domain(e, Lit(0), Idx(members), step), step, step, False)
    several = members.const is None or members.const > extent * GROUP
    domain = make_domain(e, Lit(0), Idx(members), Lit(extent))
    return Segments(domain, e.const(extent, "index"), e.const(extent * GROUP, "index"), several)


def cut(e: Emitter, source: Source, at: Value, step: Value) -> tuple[tuple, Dom]:
    """The slices of one segment, and its members as a domain of source coordinates. The extent is a symbol of its own even
    where it could be known: it tells which emitted axis carries the members, and no helper can depend on it."""
    rest = e.index(e.index_arithmetic("sub", Idx(source.members), at))
    size = e.one("minimum", (step, rest), INDEX)
    length = e.extent(size)
    e.low[length.symbol] = Extent.of(1)
    if e.obligations:
        e.b.kernel.segments[length.symbol] = at
    args = (at, e.index(e.index_arithmetic("add", at, size)), e.const(1, "index"))
    here = Dom(e.one("domain", args, Domain(length)), at, args[1], Lit(1))

    def slice_of(x):
        if isinstance(x, tuple):
            return tuple(map(slice_of, x))
        if isinstance(x, Rec):
            return Rec({n: slice_of(y) for n, y in x.fields.items()})
        axis = source.axis % len(x.type.shape)
        shape = (*x.type.shape[:axis], length, *x.type.shape[axis + 1:])
        return e.one("gather", (x, *_all_but(e, x.type.shape, axis, here)), Tensor(x.type.dt, shape))
    return tuple(map(slice_of, source.parts)), here


def _all_but(e: Emitter, shape, axis: int, here: Dom):
    """Whole axes but one, which is ``here``."""
    return [here.value if i == axis else whole_axis(e, extent).value for i, extent in enumerate(shape)]


class Helpers:
    """Calls of the author's helpers over KIR values of known types, refused where they turn out to be impure."""

    def __init__(self, fb, what: str, operands, kinds):
        self.fb, self.e, self.what, self.loc = fb, fb.e, what, fb.e.b.loc
        self.operands, self.kinds = tuple(operands), tuple(kinds)

    def call(self, name: str, helper, values, kinds, schema, types=None) -> list[Value]:
        """The leaves of the result; ``types`` are those that they must keep."""
        region, start = self.e.b.region, len(self.e.b.region.ops)
        out = self.fb.apply(helper, tuple(values), tuple(kinds))
        self.e.b.loc = self.loc
        self._pure(name, region, start)
        leaves = flatten(self.e, out, schema)
        if types is None:
            return leaves
        return [fit(self.e, v, t, f"{self.what}: the result of {name}") for v, t in zip(leaves, types)]

    def _pure(self, name: str, region: Region, start: int) -> None:
        e = self.e
        for op in walk(Region((), region.ops[start:])):
            if impure(op) and (*op.args, *op.results)[0] not in e.private:
                loc, e.b.loc = e.b.loc, op.loc or e.b.loc
                e.fail(LanguageError, f"{self.what}: {name} must be pure, it cannot {IMPURE[op.kind]}",
                       "pass what it needs as source components or operands", ((loc, f"it is the {name} of this operation"),))

    def summarize(self, helper, parts, source: Source, schema, types):
        return self.call("summarize", helper, (*parts, *self.operands), (*source.kinds, *self.kinds), schema, types)

    def combine(self, helper, lhs, rhs, schema, types):
        pair = [unflatten(self.e, schema, iter(side)) for side in (lhs, rhs)]
        return self.call("combine", helper, pair, (schema, schema), schema, types)


def build_fold(fb, result, source, axis, summarize, combine, identity, operands):
    e, what = fb.e, "I.region_fold"
    kinds = argument_types(fb, region_fold)
    src = source_of(fb, what, source, axis, kinds["source"])
    helpers = Helpers(fb, what, operands, items_of(kinds["operands"]))
    start = flatten(e, identity, result)
    types, k = [v.type for v in start], len(start)
    seg = segments_of(e, src.members)
    bool_ = Scalar("bool")
    region = e.b.block([INDEX, *types, *(types if seg.several else ())])
    with e.inside(region):
        at, group, total = region.params[0], region.params[1:k + 1], region.params[k + 1:]
        e.bind_coordinate(at, seg.domain)
        parts, _ = cut(e, src, at, seg.step)
        summary = helpers.summarize(summarize, parts, src, result, types)
        inside = at if not seg.several else e.one("mod", (at, seg.group), INDEX)
        opens = e.one("eq", (inside, e.const(0, "index")), bool_)
        yields = pick(e, opens, summary, helpers.combine(combine, group, summary, result, types))
        if seg.several:
            first = e.one("le", (at, seg.group), bool_)
            closed = pick(e, first, group, helpers.combine(combine, total, group, result, types))
            yields += pick(e, opens, closed, total)
        region.yields = tuple(yields)
    plain = plain_fold(helpers, src, summarize, combine, result, start) if may_be_plain(e, region) else None
    if plain is not None:
        return unflatten(e, result, iter(plain))
    out = e.emit("for", (seg.domain.value, *start, *(start if seg.several else ())), [v.type for v in region.params[1:]], (region,))
    group, total = out[:k], out[k:]
    if seg.several:
        one = e.one("le", (e.value(Idx(src.members)), seg.group), bool_)
        group = pick(e, one, group, helpers.combine(combine, total, group, result, types))
    return unflatten(e, result, iter(group))


def build_scan(fb, result, source, axis, summarize, combine, identity, initial_state, apply, emit, operands):
    e, what = fb.e, "I.region_scan"
    kinds = argument_types(fb, region_scan)
    src = source_of(fb, what, source, axis, kinds["source"])
    helpers = Helpers(fb, what, operands, items_of(kinds["operands"]))
    outputs, state_schema = result.types
    summary_schema = _summary_schema(summarize, (*src.kinds, *helpers.kinds))
    prefix0, state0 = flatten(e, identity, summary_schema), flatten(e, initial_state, state_schema)
    types, states, k = [v.type for v in prefix0], [v.type for v in state0], len(prefix0)
    initial = unflatten(e, state_schema, iter(state0))
    seg = segments_of(e, src.members)
    region = e.b.block([INDEX, *types, *states])
    with e.inside(region) as scope:
        at, prefix, state = region.params[0], region.params[1:k + 1], region.params[k + 1:]
        e.bind_coordinate(at, seg.domain)
        parts, here = cut(e, src, at, seg.step)
        incoming = unflatten(e, state_schema, iter(state))
        emitted = helpers.call("emit", emit, (*parts, incoming, *helpers.operands), (*src.kinds, state_schema, *helpers.kinds), outputs)
        summary = helpers.summarize(summarize, parts, src, summary_schema, types)
        first = e.one("eq", (at, e.const(0, "index")), Scalar("bool"))
        prefix = pick(e, first, summary, helpers.combine(combine, prefix, summary, summary_schema, types))
        transition = unflatten(e, summary_schema, iter(prefix))
        state = helpers.call("apply", apply, (transition, initial), (summary_schema, state_schema), state_schema, states)
        region.yields = (*prefix, *state)
    axes = [_member_axis(e, what, v, here.extent) for v in emitted]
    if may_be_plain(e, region):
        helper = {"summarize": summarize, "combine": combine, "apply": apply, "emit": emit}
        plain = plain_scan(helpers, src, helper, (summary_schema, state_schema, outputs), prefix0, state0)
        if plain is not None:
            return tuple(unflatten(e, schema, iter(values)) for schema, values in zip((outputs, state_schema), plain))
    buffers = [_output_buffer(e, what, v, axis, src.members) for v, axis in zip(emitted, axes)]
    with e.inside(region, scope):
        for buffer, v, axis in zip(buffers, emitted, axes):
            op = (buffer, *_all_but(e, v.type.shape, axis, here), v)
            e.emit("write", op, ())
    out = e.emit("for", (seg.domain.value, *prefix0, *state0), [*types, *states], (region,))
    whole = [e.one("read", (b, *(whole_axis(e, x).value for x in b.type.shape)), Tensor(b.type.dt, b.type.shape)) for b in buffers]
    return unflatten(e, outputs, iter(whole)), unflatten(e, state_schema, iter(out[k:]))


def _member_axis(e: Emitter, what: str, v: Value, members: Extent) -> int:
    """The emitted axis that carries the slice's members (decision 26)."""
    found = [i for i, extent in enumerate(v.type.shape) if e.same(extent, members)]
    if len(found) == 1:
        return found[0]
    if found:
        e.fail(IntentShapeError, f"{what}: axes {' and '.join(map(str, found))} of an emitted tensor both carry the slice's members",
               "emit must return them on one axis only")
    e.fail(IntentShapeError, f"{what}: no axis of an emitted tensor carries the slice's members",
           "one axis of what emit returns must be that of its source slice")


def _output_buffer(e: Emitter, what: str, v: Value, axis: int, members: Extent) -> Value:
    shape = (*v.type.shape[:axis], members, *v.type.shape[axis + 1:])
    for extent in shape:
        for s in extent.symbols:
            if s.startswith("%") and not any(e.symbols[s] in scope.defined for scope in e.scopes):
                e.fail(IntentShapeError, f"{what}: an emitted tensor, {text(v.type)}, has an extent that depends on the slice")
    buffer = e.one("buffer", (), Buffer(v.type.dt, shape))
    e.private.add(buffer)
    return buffer


def _summary_schema(summarize, kinds):
    return schema_of("summarize", TYPING.call(TYPING.resolve_value_type(summarize), tuple(kinds), "summarize"))


def argument_types(fb, op: Operation) -> dict:
    """Types of the arguments of the call that is being built, by parameter."""
    bound = bind(f"I.{op.name}", op.signature, *fb.argument_types)
    return {p: TYPING.resolve_value_type(a.value) if isinstance(a, Default) else a for p, a in zip(op.signature.parameters, bound)}


BUILD = {"region_fold": build_fold, "region_scan": build_scan}
