"""Reductions, scans and contractions as KIR: accumulator casts first, several axes nested, the form that fixes the bits."""
from __future__ import annotations

import math

from ..errors import LanguageError
from ..kir import Extent, Scalar, Tensor, Value, tensor_or_scalar, walk
from ..kir.ops import UPDATES
from ..language.functions import Helper
from ..language.operation import Operation
from ..typing.operations import BINARY
from ..typing.operations_structured import BUILTIN_COMBINE
from ..typing.policy import FLOATS, FORMATS, int_range, literal_value
from . import build_checked
from .build_pointwise import conversion, elementwise
from .emitter import Emitter
from .products import fit, flatten, leaves_of, unflatten
from .values import Idx
from .shapes import broadcast_shapes, expand, place, require_same, transpose

IMPURE = {"read": "read", "write": "write", "buffer": "make a buffer", "random_bits": "draw random numbers", "check": "raise OverflowError",
          **{kind: "update memory" for kind in UPDATES}}
"""What a combine or a helper of a region operation cannot do (decision 29)."""


def impure(op) -> bool:
    return op.kind in IMPURE and op.attrs.get("error") != "input"


def axes_of(axis, rank: int) -> list[int]:
    """Normalised axes, the last first: the order of nested reductions."""
    axes = axis if isinstance(axis, tuple) else (axis,)
    return sorted((a.value % rank for a in axes), reverse=True)


def without(shape, axis: int) -> tuple:
    return shape[:axis] + shape[axis + 1:]


def reduce_axes(e: Emitter, v: Value, axes, kind: str) -> Value:
    for axis in axes:
        v = e.one("reduce", (v,), tensor_or_scalar(v.type.dt, without(v.type.shape, axis)), axis=axis, kind=kind)
    return v


def builtin(kind: str):
    def build(fb, result, value, axis, acc_dtype=None):
        e = fb.e
        if e.policy.raises:
            v = e.value(value)
            return build_checked.reduce(e, v, axes_of(axis, len(v.type.shape)), kind, acc_dtype)
        v = e.value(conversion(e, "cast", value, result.dt))
        return reduce_axes(e, v, axes_of(axis, len(v.type.shape)), kind)
    return build


def arg(kind: str):
    def build(fb, result, value, axis):
        e = fb.e
        v = e.value(conversion(e, "cast", value, result.types[0].dt))
        (at,) = axes_of(axis, len(v.type.shape))
        shape = without(v.type.shape, at)
        best, where = e.emit("arg_reduce", (v,), (tensor_or_scalar(v.type.dt, shape), tensor_or_scalar("index", shape)), axis=at, kind=kind)
        return best, build_checked.positions(e, where) if e.policy.raises else where
    return build


def prefix(kind: str):
    def build(fb, result, value, axis, inclusive, reverse, acc_dtype):
        e = fb.e
        v = e.value(conversion(e, "cast", value, result.dt))
        (at,) = axes_of(axis, len(v.type.shape))
        if e.policy.raises:
            return build_checked.cumsum(e, v, at, inclusive.value, reverse.value)
        return e.one("scan", (v,), v.type, axis=at, kind=kind, inclusive=inclusive.value, reverse=reverse.value)
    return build


# --- generic -------------------------------------------------------------------------------------------------------------

def primitive_kind(combine) -> str | None:
    """The builtin that a primitive combine stands for."""
    if isinstance(combine, Operation):
        return BUILTIN_COMBINE.get(combine.name)
    if isinstance(combine, Helper):
        return None
    name = BINARY.get(combine)
    return {"add": "sum", "mul": "prod", "and": "and", "or": "or", "xor": "xor"}.get(name)


def sources(fb, value, axis_shape_of) -> list[Value]:
    """The component tensors, with one equal extent along the axis."""
    e = fb.e
    leaves = [e.value(v) for v in _flat(value)]
    for v in leaves[1:]:
        for a in axis_shape_of(v):
            require_same(e, leaves[0].type.shape[a % len(leaves[0].type.shape)], v.type.shape[a], "the components along the axis")
    return leaves


def _flat(value) -> list:
    found = leaves_of(value)
    return found if found else [value]


def build_reduce(fb, result, value, axis, identity, combine):
    e = fb.e
    leaves = sources(fb, value, lambda v: axes_of(axis, len(v.type.shape)))
    axes = axes_of(axis, len(leaves[0].type.shape))
    kind = primitive_kind(combine)
    if kind is not None and len(leaves) == 1:
        if e.policy.raises:
            build_checked.refuse_primitive(e, kind, leaves[0].type.dt, "I.reduce")
        found = reduce_axes(e, leaves[0], axes, kind)
        (given,) = _identities(fb, identity, result, [found.type], "I.reduce: identity")
        if is_neutral(e, given, kind):
            return found
        (value,) = where_empty(e, [leaves[0].type.shape[at] for at in axes], [given], [found])
        return value
    members = [tensor_or_scalar(v.type.dt, [x for i, x in enumerate(v.type.shape) if i not in axes]) for v in leaves]
    neutral = _identities(fb, identity, result, members, "I.reduce: identity")
    for i, at in enumerate(axes):
        over = tuple(reversed(axes[i + 1:]))    # the combine knows nothing of the axes that are still to be reduced
        types = [tensor_or_scalar(v.type.dt, without(v.type.shape, at)) for v in leaves]
        parts = [_repeated(e, v, over, t) for v, t in zip(neutral, types)]
        region = combine_region(fb, combine, result, members, "I.reduce")
        attrs = {"over": over} if over else {}
        leaves = list(e.emit("reduce", (*leaves, *parts), types, (region,), axis=at, kind="generic", **attrs))
    return unflatten(e, result, iter(leaves))


def _repeated(e: Emitter, v: Value, axes, t) -> Value:
    """``v`` with further axes, as a value of type ``t``."""
    for axis in axes if isinstance(v.type, Tensor) else ():
        v = expand(e, v, axis)
    return place(e, v, None, t.shape, isinstance(t, Tensor))


def _without_axis(schema, types):
    """The schema of a scan's members: that of its source without the axis."""
    from ..typing.operations_structured import rebuild
    from ..typing.types import shaped
    return rebuild(schema, iter([shaped(t.dt, len(t.shape)) for t in types]))


def _identities(fb, identity, schema, types, what: str) -> list[Value]:
    e = fb.e
    values = flatten(e, identity, schema)
    out = []
    for v, t in zip(values, types):
        if isinstance(t, Tensor) and len(v.type.shape) < len(t.shape):
            v = place(e, v, None, t.shape, True)
        out.append(fit(e, v, t, what))
    return out


def build_scan(fb, result, value, axis, identity, combine, inclusive, reverse):
    e = fb.e
    leaves = sources(fb, value, lambda v: axes_of(axis, len(v.type.shape)))
    (at,) = axes_of(axis, len(leaves[0].type.shape))
    attrs = {"axis": at, "inclusive": inclusive.value, "reverse": reverse.value}
    kind = primitive_kind(combine)
    builtin = kind is not None and len(leaves) == 1
    if builtin and e.policy.raises:
        build_checked.refuse_primitive(e, kind, leaves[0].type.dt, "I.scan")
    types = [tensor_or_scalar(v.type.dt, without(v.type.shape, at)) for v in leaves]
    schema = _without_axis(result, types)
    parts = _identities(fb, identity, schema, types, "I.scan: identity")
    if builtin and (inclusive.value or is_neutral(e, parts[0], kind)):
        return e.one("scan", leaves, leaves[0].type, kind=kind, **attrs)
    region = combine_region(fb, combine, schema, types, "I.scan")
    out = e.emit("scan", (*leaves, *parts), [v.type for v in leaves], (region,), kind="generic", **attrs)
    return unflatten(e, result, iter(out))


def is_neutral(e: Emitter, identity: Value, kind: str) -> bool:
    """Is this known to be what the builtin of that kind gives for nothing?"""
    dt = identity.type.dt
    if identity not in e.constants:
        return False
    largest = FORMATS[dt].largest if dt == "f8e4m3fn" else math.inf
    if dt == "bool":
        return e.constants[identity] is (kind in ("all", "and"))
    least, most = (-largest, largest) if dt in FLOATS else int_range(dt)
    wanted = {"sum": 0, "prod": 1, "max": least, "min": most, "and": most if least == 0 else -1, "or": 0, "xor": 0}[kind]
    return repr(e.constants[identity]) == repr(literal_value(wanted, dt))


def where_empty(e: Emitter, extents, identity, values) -> list[Value]:
    """``values``, or the identity where a domain of these extents has no member."""
    count = Extent.of(1)
    for extent in extents:
        count = count * extent
    if count.const is not None:
        return list(values if count.const else identity)
    empty = e.one("eq", (e.value(Idx(count)), e.const(0, "index")), Scalar("bool"))
    return pick(e, empty, identity, values)


def pick(e: Emitter, cond: Value, a, b) -> list[Value]:
    """Componentwise ``a if cond else b``."""
    return [e.one("select", (place(e, cond, "bool", x.type.shape, isinstance(x.type, Tensor)), x, y), x.type) for x, y in zip(a, b)]


def combine_region(fb, combine, schema, types, what: str):
    """The combine as a region of 2k parameters and k yields; it must be pure (decision 29)."""
    e = fb.e
    region = e.b.block([*types, *types])
    k, loc = len(types), e.b.loc
    with e.inside(region):
        lhs = unflatten(e, schema, iter(region.params[:k]))
        rhs = unflatten(e, schema, iter(region.params[k:]))
        out = fb.apply(combine, (lhs, rhs), (schema, schema))
        e.b.loc = loc
        region.yields = tuple(fit(e, v, t, f"{what}: the result of combine") for v, t in zip(flatten(e, out, schema), types))
    for op in walk(region):
        if impure(op) and (*op.args, *op.results)[0] not in e.private:
            e.b.loc = op.loc or loc
            e.fail(LanguageError, f"{what}: combine must be pure, it cannot {IMPURE[op.kind]}",
                   "pass what it needs as components of the value", ((loc, "it is the combine of this operation"),))
    return region


# --- contractions ----------------------------------------------------------------------------------------------------------

def contract_values(e: Emitter, a, b, reduce, batch, acc: str) -> Value:
    """The contract operation; both operands are converted to the accumulator first."""
    a, b = (e.value(x if e.policy.raises else conversion(e, "cast", x, acc)) for x in (a, b))
    for i, j in (*reduce, *batch):
        require_same(e, a.type.shape[i], b.type.shape[j], "contraction")
    if e.policy.raises:
        return build_checked.contract(e, a, b, reduce, batch, acc)
    left = [i for i in range(len(a.type.shape)) if i not in {p for p, _ in reduce}]
    right = [j for j in range(len(b.type.shape)) if j not in {q for _, q in (*reduce, *batch)}]
    free = [i for i in left if i not in {p for p, _ in batch}]
    shape = tuple(a.type.shape[i] for i in left) + tuple(b.type.shape[j] for j in right)
    form = "chain" if free and right else "tree"
    return e.one("contract", (a, b), Tensor(acc, shape), reduce=tuple(reduce), batch=tuple(batch), form=form)


def build_contract(fb, result, lhs, rhs, reduce, batch, acc_dtype):
    e = fb.e
    ranks = len(e.value(lhs).type.shape), len(e.value(rhs).type.shape)

    def pairs(t):
        return tuple((p.value % ranks[0], q.value % ranks[1]) for p, q in t)
    return contract_values(e, lhs, rhs, pairs(reduce), pairs(batch), acc_dtype.name)


def dot(fb, result, lhs, rhs, acc_dtype):
    return contract_values(fb.e, lhs, rhs, ((0, 0),), (), acc_dtype.name)


def matmul(fb, result, lhs, rhs, acc_dtype, transpose_lhs, transpose_rhs):
    e = fb.e
    a, b = _matrix(e, lhs, transpose_lhs.value), _matrix(e, rhs, transpose_rhs.value)
    return _batched(e, a, b, 2, 2, acc_dtype.name, "I.matmul")


def matvec(fb, result, matrix, vector, acc_dtype, transpose):
    e = fb.e
    return _batched(e, _matrix(e, matrix, transpose.value), e.value(vector), 2, 1, acc_dtype.name, "I.matvec")


def vecmat(fb, result, vector, matrix, acc_dtype, transpose):
    e = fb.e
    return _batched(e, e.value(vector), _matrix(e, matrix, transpose.value), 1, 2, acc_dtype.name, "I.vecmat")


def _matrix(e: Emitter, x, swap: bool) -> Value:
    v = e.value(x)
    rank = len(v.type.shape)
    return transpose(e, v, (*range(rank - 2), rank - 1, rank - 2)) if swap else v


def _batched(e: Emitter, a: Value, b: Value, core_a: int, core_b: int, acc: str, what: str) -> Value:
    """Leading axes broadcast from the right and become batch pairs; axes that only one operand has stay free."""
    lead_a, lead_b = a.type.shape[:-core_a], b.type.shape[:-core_b]
    k_a = len(a.type.shape) - 1
    k_b = len(b.type.shape) - core_b
    require_same(e, a.type.shape[k_a], b.type.shape[k_b], f"{what}: K")
    lead = broadcast_shapes(e, [lead_a, lead_b], f"{what}: batch")
    if not lead:
        return contract_values(e, a, b, ((k_a, k_b),), (), acc)
    if not e.policy.raises:
        a, b = conversion(e, "cast", a, acc), conversion(e, "cast", b, acc)
    a = place(e, a, None, (*lead, *a.type.shape[-core_a:]), True)
    b = place(e, b, None, (*lead, *b.type.shape[-core_b:]), True)
    n = len(lead)
    return contract_values(e, a, b, ((n + core_a - 1, n),), tuple((i, i) for i in range(n)), acc)


def outer(fb, result, lhs, rhs):
    e = fb.e
    a, b = e.value(lhs), e.value(rhs)
    return e.value(elementwise(e, "mul", (expand(e, a, 1), expand(e, b, 0)), "I.outer"))


BUILD = {
    "reduce.sum": builtin("sum"), "reduce.prod": builtin("prod"), "reduce.max": builtin("max"), "reduce.min": builtin("min"),
    "reduce.any": builtin("any"), "reduce.all": builtin("all"), "arg_reduce.max": arg("max"), "arg_reduce.min": arg("min"),
    "cumsum": prefix("sum"), "cummax": prefix("max"), "reduce": build_reduce, "scan": build_scan, "contract": build_contract,
    "dot": dot, "matmul": matmul, "matvec": matvec, "vecmat": vecmat, "outer": outer,
}

