"""Sparse contractions as KIR: only stored positions are multiplied.

The contraction is an ordinary one of the logical operand, whose compression axis may be reduced, in a batch or free. Where both
operands have free axes the result is section 12 C over the logical positions with absent ones left out: an ordered loop in blocks of
KBLOCK logical positions, over the stored ones where the compression axis is reduced last and they stand in this order. Otherwise it is
the tree R, where an absent position adds zero times zero. Spec: 000 section 7, 002 section 12, decision 27.
"""
from __future__ import annotations

from dataclasses import dataclass

from ..errors import IntentShapeError
from ..kir import Domain, Extent, Scalar, Tensor, Value
from ..kir.ops import KBLOCK
from ..kir.types import is_float
from ..language.formats import SparseFormat
from . import build_obligations
from .build_pointwise import conversion
from .build_scaled import Bits
from .build_structured import contract_values
from .emitter import Emitter
from .shapes import expand, extent_text, make_domain, place, product, require_same, retype, transpose, whole_axis
from .values import Dom, Idx, Lit, Rec

INDEX = Scalar("index")
GROUP = {"one_of_two": 2, "two_of_four": 4}
"""Logical positions of a group; half of them are stored."""


@dataclass(frozen=True)
class Operand:
    """The compressed operand with the compression axis last: ``values`` [..., stored], ``places`` the metadata [..., groups]."""
    kind: str
    values: Value
    places: tuple[Value, ...]
    logical: Extent

    @property
    def stored(self) -> Extent:
        return self.values.type.shape[-1]

    @property
    def lead(self) -> tuple:
        return self.values.type.shape[:-1]


def operand_of(e: Emitter, what: str, compressed: Value, metadata, format: SparseFormat) -> Operand:
    """Checks extents: what can be seen to be wrong is refused, the rest is the caller's obligation."""
    rank = len(compressed.type.shape)
    axis = format.compression_axis % rank
    logical = e.extent(format.logical_extent if not isinstance(format.logical_extent, int) else Lit(format.logical_extent))
    group = GROUP[format.kind]
    if logical.const is not None and (logical.const < 0 or logical.const % group):
        e.fail(IntentShapeError, f"{what}: the logical extent {logical} is not divisible by {group}")
    last = (*(i for i in range(rank) if i != axis), axis)
    places = [metadata.fields[n] for n in ("first", "second")] if isinstance(metadata, Rec) else [metadata]
    places = [e.value(p) for p in places]
    for p in places:
        for i in range(rank):
            if i != axis:
                require_same(e, compressed.type.shape[i], p.type.shape[i], f"{what}: metadata")
    stored = compressed.type.shape[axis]
    for have, per, name in [(stored, 2, "compressed operand")] + [(p.type.shape[axis], group, "metadata") for p in places]:
        if e.different(have * per, logical):
            e.fail(IntentShapeError, f"{what}: the {name} has extent {extent_text(have)} along the compression axis, a logical extent of "
                                     f"{extent_text(logical)} needs {extent_text(logical)} / {per}")
    values = transpose(e, compressed, last)
    lead = values.type.shape[:-1]
    places = tuple(_spelled(e, transpose(e, p, last), lead) for p in places)
    if e.obligations:
        for have, per in [(stored, 2)] + [(p.type.shape[-1], group) for p in places]:
            build_obligations.equal_extents(e, have * per, logical, what, f"the logical extent is not {per} times a stored one")
        build_obligations.metadata(e, format.kind, places, what)
    return Operand(format.kind, values, places, logical)


def _spelled(e: Emitter, v: Value, lead) -> Value:
    shape = (*lead, v.type.shape[-1])
    return v if v.type.shape == shape else retype(e, v, shape)


def sparse_values(e: Emitter, what: str, compressed, metadata, rhs, format: SparseFormat, reduced, batch, acc: str) -> Value:
    """``reduced`` and ``batch``: pairs of axes, those of the compressed operand as if it were whole."""
    a = operand_of(e, what, e.value(conversion(e, "cast", compressed, acc)), metadata, format)
    b = e.value(conversion(e, "cast", rhs, acc))
    rank = len(a.values.type.shape)
    axis = format.compression_axis % rank
    whole = (*a.lead[:axis], a.logical, *a.lead[axis:])
    for pairs, name in ((reduced, "contraction"), (batch, "batch")):
        for i, j in pairs:
            require_same(e, whole[i], b.type.shape[j], f"{what}: {name}")
    lead = tuple(i for i in range(rank) if i not in {i for i, _ in reduced})
    free = tuple(j for j in range(len(b.type.shape)) if j not in {j for _, j in (*reduced, *batch)})
    b = transpose(e, b, (*(j for _, j in batch), *(j for _, j in reduced), *free))          # [batch..., K..., free...]
    b = _merged(e, b, len(batch), len(batch) + len(reduced))
    batched = tuple(lead.index(i) for i, _ in batch)
    chain = free and len(batched) < len(lead)
    if reduced[-1][0] == axis:                                   # stored positions of a row of groups follow one another
        order = (*lead, *(i for i, _ in reduced[:-1]))
        a = _rows_merged(e, a, tuple(i - (i > axis) for i in order), len(lead))
        if chain:
            return _chain(e, _Stored(e, a, b, batched))
        value, present = logical(e, a, acc)
    else:
        back = [*range(rank - 1)]
        back.insert(axis, rank - 1)
        order = [back[i] for i in (*lead, *(i for i, _ in reduced))]
        value, present = (_merged(e, transpose(e, v, order), len(lead), rank) for v in logical(e, a, acc))
        if chain:
            return _chain(e, _Masked(e, value, present, b, batched))
    return _tree(e, value, present, b, batched, acc)


def _merged(e: Emitter, v: Value, begin: int, end: int) -> Value:
    """Axes begin .. end-1 as one."""
    if end - begin == 1:
        return v
    shape = v.type.shape
    return retype(e, v, (*shape[:begin], product(shape[begin:end]), *shape[end:]))


def _rows_merged(e: Emitter, a: Operand, order, lead: int) -> Operand:
    """Leading axes in ``order``; those behind the first ``lead`` are joined with the compressed axis."""
    rank = len(order) + 1
    values, *places = (_merged(e, transpose(e, v, (*order, rank - 1)), lead, rank) for v in (a.values, *a.places))
    return Operand(a.kind, values, tuple(places), product(a.lead[i] for i in order[lead:]) * a.logical)


# --- free axes on both sides ------------------------------------------------------------------------------------------------

class _Stored:
    """The stored positions, one after the other: what each adds to a sum over the result."""

    def __init__(self, e: Emitter, a: Operand, b: Value, batched):
        self.e, self.a, self.b, self.batched = e, a, b, batched
        self.count, self.block = a.stored, KBLOCK // 2
        self.type = Tensor(b.type.dt, (*a.lead, *b.type.shape[len(batched) + 1:]))

    def step(self, at: Value, p: Value) -> Value:
        row = _rows(self.e, self.b, _position(self.e, self.a, at), self.a.lead, self.batched)
        return _multiplied(self.e, _column(self.e, self.a.values, at), row, p)


class _Masked:
    """All logical positions, one after the other; absent ones leave the sum alone."""

    def __init__(self, e: Emitter, value: Value, present: Value, b: Value, batched):
        self.e, self.value, self.present, self.b, self.batched = e, value, present, b, batched
        self.count, self.block = value.type.shape[-1], KBLOCK
        self.lead = value.type.shape[:-1]
        self.type = Tensor(b.type.dt, (*self.lead, *b.type.shape[len(batched) + 1:]))

    def step(self, at: Value, p: Value) -> Value:
        e, rank = self.e, len(self.lead)
        here = place(e, e.one("broadcast", (at,), Tensor("index", ())), None, self.lead, True)
        row = _rows(e, self.b, here, self.lead, self.batched)
        present = _column(e, self.present, at)
        for axis in range(rank, len(p.type.shape)):
            present = expand(e, present, axis)
        new = _multiplied(e, _column(e, self.value, at), row, p)
        return e.one("select", (place(e, present, None, p.type.shape, True), new, p), p.type)


def _chain(e: Emitter, walk: _Stored | _Masked) -> Value:
    """acc and p of section 12 C as tensors over the result, one position at a time."""
    t, shape = walk.type, walk.type.shape
    zero = e.one("broadcast", (e.const(0.0 if is_float(t.dt) else 0, t.dt),), t)
    if walk.count.const is not None and walk.count.const <= walk.block:
        return _positions(e, walk, whole_axis(e, walk.count), zero)
    domain = make_domain(e, Lit(0), Idx(walk.count), Lit(walk.block))
    region = e.b.block([INDEX, t])
    with e.inside(region):
        begin, acc = region.params
        e.bind_coordinate(begin, domain)
        rest = e.index(e.index_arithmetic("sub", Idx(walk.count), begin))
        size = e.one("minimum", (e.const(walk.block, "index"), rest), INDEX)
        args = (begin, e.index(e.index_arithmetic("add", begin, size)), e.const(1, "index"))
        here = Dom(e.one("domain", args, Domain(e.extent(size))), begin, args[1], Lit(1))
        part = _positions(e, walk, here, zero)
        first = place(e, e.one("eq", (begin, e.const(0, "index")), Scalar("bool")), None, shape, True)
        region.yields = (e.one("select", (first, part, e.one("add", (acc, part), t)), t),)
    (out,) = e.emit("for", (domain.value, zero), (t,), (region,))
    return out


def _positions(e: Emitter, walk: _Stored | _Masked, domain, zero: Value) -> Value:
    """p after the positions of a domain in order."""
    region = e.b.block([INDEX, zero.type])
    with e.inside(region):
        at, p = region.params
        e.bind_coordinate(at, domain)
        region.yields = (walk.step(at, p),)
    (out,) = e.emit("for", (domain.value, zero), (zero.type,), (region,))
    return out


def _multiplied(e: Emitter, value: Value, row: Value, p: Value) -> Value:
    """p + value * row, the product exact: ``value`` has the leading axes only."""
    t = p.type
    for axis in range(len(value.type.shape), len(t.shape)):
        value = expand(e, value, axis)
    value = place(e, value, None, t.shape, True)
    if is_float(t.dt):
        return e.one("fma", (value, row, p), t)
    return e.one("add", (p, e.one("mul", (value, row), t)), t)


def _column(e: Emitter, v: Value, at: Value) -> Value:
    """``v[..., at]``."""
    lead = v.type.shape[:-1]
    return e.one("gather", (v, *(whole_axis(e, x).value for x in lead), at), Tensor(v.type.dt, lead))


def _position(e: Emitter, a: Operand, at: Value) -> Value:
    """Logical position of stored position ``at``, for every leading coordinate."""
    if a.kind == "one_of_two":
        begin = e.one("mul", (at, e.const(2, "index")), INDEX)
        offset = _column(e, a.places[0], at)
    else:
        group = e.one("shr", (at, e.const(1, "index")), INDEX)
        begin = e.one("mul", (group, e.const(4, "index")), INDEX)
        odd = e.one("eq", (e.one("and", (at, e.const(1, "index")), INDEX), e.const(1, "index")), Scalar("bool"))
        first, second = (_column(e, p, group) for p in a.places)
        offset = Bits(e, first).choose(place(e, odd, None, first.type.shape, True), second, first, "index")
    t = Bits(e, offset)
    return t.op("add", place(e, begin, None, offset.type.shape, True), offset)


def _rows(e: Emitter, b: Value, position: Value, lead, batched) -> Value:
    """b[batch..., position, :...] with the shape of the leading axes, then the free axes."""
    indices = []
    for i in batched:
        line = e.one("indices", (whole_axis(e, lead[i]).value,), Tensor("index", (lead[i],)))
        for _ in range(len(lead) - 1 - i):
            line = expand(e, line, len(line.type.shape))
        indices.append(place(e, line, None, position.type.shape, True))
    rest = b.type.shape[len(batched) + 1:]
    args = (b, *indices, position, *(whole_axis(e, x).value for x in rest))
    return e.one("gather", args, Tensor(b.type.dt, (*lead, *rest)))


# --- everything else -----------------------------------------------------------------------------------------------------------

def logical(e: Emitter, a: Operand, acc: str) -> tuple[Value, Value]:
    """The operand over all logical positions, zero where nothing is stored, and where something is."""
    at = e.one("indices", (whole_axis(e, a.logical).value,), Tensor("index", (a.logical,)))
    p = Bits(e, at)
    group = GROUP[a.kind]
    number, inside = p.op("floordiv", at, group), p.op("mod", at, group)
    full = (*a.lead, a.logical)

    def over(v: Value, where: Value) -> Value:
        return e.one("gather", (v, *(whole_axis(e, x).value for x in a.lead), where), Tensor(v.type.dt, full))
    present, value = None, None
    for k, places in enumerate(a.places):
        member = over(places, number)
        t = Bits(e, member)
        here = t.op("eq", member, place(e, inside, None, full, True), dt="bool")
        stored = over(a.values, p.op("add", p.op("mul", number, len(a.places)), k))
        value = t.choose(here, stored, 0.0 if value is None and is_float(acc) else 0 if value is None else value, acc)
        present = here if present is None else t.op("or", present, here, dt="bool")
    return value, present


def _tree(e: Emitter, value: Value, present: Value, b: Value, batched, acc: str) -> Value:
    """A contraction of both operands with zero where nothing is stored; every leading axis is a batch axis."""
    *lead, total = value.type.shape
    free = b.type.shape[len(batched) + 1:]
    order = (*batched, *(i for i in range(len(lead)) if i not in batched))
    value, present = (transpose(e, v, (*order, len(order))) for v in (value, present))
    for _ in range(len(lead) - len(batched)):
        b = expand(e, b, len(batched))
    b = place(e, b, None, (*(lead[i] for i in order), total, *free), True)
    for _ in free:
        present = expand(e, present, len(present.type.shape))
    b = Bits(e, b).choose(place(e, present, None, b.type.shape, True), b, 0.0 if is_float(acc) else 0, acc)
    n = len(lead)
    out = contract_values(e, value, b, ((n, n),), tuple((i, i) for i in range(n)), acc)
    back = [order.index(i) for i in range(n)]
    return transpose(e, out, (*back, *range(n, n + len(free))))


def sparse_contract(fb, result, compressed, metadata, dense_rhs, format, reduce, batch, acc_dtype):
    e = fb.e
    ranks = len(e.value(compressed).type.shape), len(e.value(dense_rhs).type.shape)

    def pairs(t):
        return tuple((i.value % ranks[0], j.value % ranks[1]) for i, j in t)
    return sparse_values(e, "I.sparse_contract", compressed, metadata, dense_rhs, format, pairs(reduce), pairs(batch), acc_dtype.name)


def sparse_matmul(fb, result, compressed, metadata, rhs, format, acc_dtype):
    return sparse_values(fb.e, "I.sparse_matmul", compressed, metadata, rhs, format, ((1, 0),), (), acc_dtype.name)


def sparse_format(kind: str):
    def build(fb, result, compression_axis, logical_extent):
        return SparseFormat(kind, compression_axis.value, logical_extent)
    return build


BUILD = {"sparse_contract": sparse_contract, "sparse_matmul": sparse_matmul, "sparse.one_of_two": sparse_format("one_of_two"),
         "sparse.two_of_four": sparse_format("two_of_four")}
