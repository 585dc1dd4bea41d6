"""Exact i32 and binary32 operations of the policy ``checked`` as KIR.

An i32 result is computed without loss, in i64 or in two limbs, and narrowed; a ``check`` then fails the launch if the value did not
survive. Ordered float accumulation is a loop, products of a contraction are rounded before they are added. Spec: 004, SUPPLEMENT 11.
"""
from __future__ import annotations

from ..errors import IntentTypeError, UnsupportedError
from ..kir import Buffer, Scalar, Tensor, Value
from ..kir.types import int_range
from .emitter import Emitter
from .shapes import broadcast_shapes, expand, is_tensor, place, reshape, shape_of, transpose, whole_axis
from .values import Lit, SliceValue

LIMB = 32
"""Bits of the lower limb of an exact sum of products."""
UNCHECKED = {"atomic.add": "an atomic sum", "scatter_reduce": "a combining scatter"}
"""Operations of the language whose integer forms wrap and have no plan: refused instead."""


def same_dtype(e: Emitter, kind: str, *args) -> Value:
    from . import build_pointwise
    return e.value(build_pointwise.same_dtype(e, kind, args))


def cast_to(e: Emitter, v: Value, dt: str) -> Value:
    return v if v.type.dt == dt else e.one("cast", (v,), Tensor(dt, v.type.shape) if isinstance(v.type, Tensor) else Scalar(dt))


def check(e: Emitter, ok: Value) -> None:
    """Fail the launch with an OverflowError where ``ok`` is False."""
    e.emit("check", (ok,), (), error="overflow")


def narrowed(e: Emitter, wide: Value) -> Value:
    """An i64 or index value as i32, checked."""
    result = cast_to(e, wide, "i32")
    check(e, same_dtype(e, "eq", cast_to(e, result, wide.type.dt), wide))
    return result


# --- elementwise ---------------------------------------------------------------------------------------------------------

def elementwise(e: Emitter, operation: str, values, args, what: str) -> Value:
    """``values``: the operands as i32; ``args``: as they were given."""
    if operation == "pow":
        return power(e, e.value(values[0]), args[1].value)
    kind = {"elementwise_mul": "mul"}.get(operation, operation)
    return exact(e, kind, *map(e.value, values))


def exact(e: Emitter, kind: str, a: Value, b: Value) -> Value:
    """add, sub or mul of i32 values: exact in i64."""
    if is_tensor(a) or is_tensor(b):
        shape = broadcast_shapes(e, [shape_of(a), shape_of(b)], kind)
        a, b = (place(e, x, "i32", shape, True) for x in (a, b))
    return narrowed(e, same_dtype(e, kind, cast_to(e, a, "i64"), cast_to(e, b, "i64")))


def power(e: Emitter, base: Value, exponent: int) -> Value:
    """By squaring. Every square made is a factor of the result, so one that overflows means that the result does."""
    result = None
    while exponent:
        if exponent & 1:
            result = base if result is None else exact(e, "mul", result, base)
        exponent >>= 1
        if exponent:
            base = exact(e, "mul", base, base)
    if result is None:
        one = e.const(1, "i32")
        result = place(e, one, "i32", base.type.shape, True) if isinstance(base.type, Tensor) else one
    return result


def cast(e: Emitter, value, dt: str):
    """``I.cast``: to i32 the value must be in range."""
    from .build_pointwise import conversion
    if isinstance(value, Lit):
        return conversion(e, "cast", _literal(e, value.value, dt), dt)
    v = e.value(value)
    if dt != "i32" or v.type.dt not in ("f32", "index"):
        return conversion(e, "cast", value, dt)
    if v.type.dt == "index":
        return narrowed(e, v)
    low, high = int_range("i32")
    check(e, same_dtype(e, "and", same_dtype(e, "ge", v, Lit(float(low))), same_dtype(e, "lt", v, Lit(float(high + 1)))))
    return cast_to(e, v, "i32")


def _literal(e: Emitter, value, dt: str) -> Lit:
    if dt == "i32" and not isinstance(value, bool):
        low, high = int_range("i32")
        if not low <= value < high + 1:
            e.fail(IntentTypeError, f"I.cast: {value!r} does not fit i32")
        value = int(value)
    return Lit(value)


# --- reductions ----------------------------------------------------------------------------------------------------------

def reduce(e: Emitter, v: Value, axes, kind: str, acc_dtype) -> Value:
    """``axes``: the last first. Sums in their accumulator, integer sums exactly, products one by one; the rest as ever."""
    from .build_structured import reduce_axes
    if kind == "prod":
        return _ordered_product(e, _as_one_axis(e, v, axes))
    if kind != "sum":
        return reduce_axes(e, v, axes, kind)
    if v.type.dt == "i32":
        return narrowed(e, reduce_axes(e, cast_to(e, v, "i64"), axes, "sum"))
    acc = "f32" if acc_dtype is None else acc_dtype.name
    return cast_to(e, reduce_axes(e, cast_to(e, v, acc), axes, "sum"), "f32")


def _as_one_axis(e: Emitter, v: Value, axes) -> Value:
    """The reduced axes as one, the last."""
    shape, reduced = v.type.shape, sorted(axes)
    kept = [i for i in range(len(shape)) if i not in reduced]
    v = transpose(e, v, (*kept, *reduced))
    count = shape[reduced[0]]
    for i in reduced[1:]:
        count = count * shape[i]
    return reshape(e, v, (*(shape[i] for i in kept), count)) if len(reduced) > 1 else v


def _ordered_product(e: Emitter, v: Value) -> Value:
    *rest, count = v.type.shape
    start = place(e, e.const(1.0, "f32"), "f32", tuple(rest), bool(rest))
    d = whole_axis(e, count)
    region = e.b.block([Scalar("index"), start.type])
    with e.inside(region):
        k, total = region.params
        region.yields = (same_dtype(e, "mul", total, _member(e, v, k, len(rest))),)
    return e.emit("for", (d.value, start), (start.type,), (region,))[0]


def _member(e: Emitter, v: Value, k: Value, axis: int) -> Value:
    from .build_index import getitem
    index = [SliceValue(None, None)] * len(v.type.shape)
    index[axis] = k
    return e.value(getitem(e, v, tuple(index)))


def cumsum(e: Emitter, v: Value, axis: int, inclusive: bool, reverse: bool) -> Value:
    """In ascending logical order, each sum rounded. -0 is what leaves every first element as it is."""
    from .build_index import setitem
    shape = v.type.shape
    rest = shape[:axis] + shape[axis + 1:]
    start = place(e, e.const(-0.0, "f32"), "f32", rest, bool(rest))
    d, results = whole_axis(e, shape[axis]), e.one("buffer", (), Buffer("f32", shape))
    region = e.b.block([Scalar("index"), start.type])
    with e.inside(region):
        k, total = region.params
        at = k
        if reverse:
            at = e.index(e.index_arithmetic("sub", e.index_arithmetic("sub", e.scalar_of(shape[axis]), Lit(1)), k))
        following = same_dtype(e, "add", total, _member(e, v, at, axis))
        index = [SliceValue(None, None)] * len(shape)
        index[axis] = at
        stored = following if inclusive else same_dtype(e, "add", total, place(e, e.const(0.0, "f32"), "f32", rest, bool(rest)))
        setitem(e, results, tuple(index), stored)
        region.yields = (following,)
    e.emit("for", (d.value, start), (start.type,), (region,))
    return e.one("read", (results, *(whole_axis(e, n).value for n in shape)), Tensor("f32", shape))


def positions(e: Emitter, index: Value) -> Value:
    """Positions of arg_reduce as i32; that of an empty axis is the largest i32."""
    none = place(e, e.const(int_range("index")[1], "index"), "index", shape_of(index), is_tensor(index))
    last = place(e, e.const(int_range("i32")[1], "index"), "index", shape_of(index), is_tensor(index))
    chosen = e.one("select", (same_dtype(e, "eq", index, none), last, index), index.type)
    return narrowed(e, chosen)


# --- contractions ----------------------------------------------------------------------------------------------------------

def contract(e: Emitter, a: Value, b: Value, pairs, batch, acc: str) -> Value:
    """Products over all axes of the result and then the reduced ones, summed."""
    reduced_a, reduced_b = [i for i, _ in pairs], [j for _, j in pairs]
    of_b = dict(batch)
    left = [i for i in range(len(a.type.shape)) if i not in reduced_a]
    right = [j for j in range(len(b.type.shape)) if j not in reduced_b and j not in of_b.values()]
    integers = a.type.dt == b.type.dt == "i32"
    term = "i64" if integers else "f32"
    x = _spread(e, cast_to(e, a, term), [*left, *([None] * len(right)), *reduced_a])
    y = _spread(e, cast_to(e, b, term), [*(of_b.get(i) for i in left), *right, *reduced_b])
    axes = [len(left) + len(right) + n for n in range(len(pairs))][::-1]
    products = same_dtype(e, "mul", x, y)
    result = _exact_sum(e, products, axes) if integers else _rounded_sum(e, products, axes, acc)
    shape = result.type.shape
    return result if isinstance(result.type, Tensor) else place(e, result, None, shape, True)


def _spread(e: Emitter, v: Value, axes) -> Value:
    """The axes in this order, None for an axis of extent 1."""
    v = transpose(e, v, [i for i in axes if i is not None])
    for position, i in enumerate(axes):
        if i is None:
            v = expand(e, v, position)
    return v


def _rounded_sum(e: Emitter, products: Value, axes, acc: str) -> Value:
    from .build_structured import reduce_axes
    return cast_to(e, reduce_axes(e, cast_to(e, products, acc), axes, "sum"), "f32")


def _exact_sum(e: Emitter, products: Value, axes) -> Value:
    """Products of i32 in i64 are exact, their sum need not be: the halves are summed apart and put together in the end."""
    from .build_structured import reduce_axes
    mask = Lit((1 << LIMB) - 1)
    high = reduce_axes(e, same_dtype(e, "shr", products, Lit(LIMB)), axes, "sum")
    low = reduce_axes(e, same_dtype(e, "and", products, mask), axes, "sum")
    high = same_dtype(e, "add", high, same_dtype(e, "shr", low, Lit(LIMB)))
    low = same_dtype(e, "and", low, mask)
    signs = same_dtype(e, "shr", same_dtype(e, "shl", low, Lit(LIMB)), Lit(63))
    check(e, same_dtype(e, "eq", high, signs))
    return cast_to(e, low, "i32")


def refuse_primitive(e: Emitter, kind: str, dt: str, what: str) -> None:
    """A builtin sum or product of integers as a combine would wrap."""
    if dt != "f32" and kind in ("sum", "prod"):
        e.fail(UnsupportedError, f"{what}: a {kind} of {dt} is not supported under this policy", "use I.reduce.sum")
