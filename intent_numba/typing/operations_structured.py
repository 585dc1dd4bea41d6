"""Typing rules of reductions, scans and contractions: schemas, axes and accumulators."""
from __future__ import annotations

from numba.core import types

from ..errors import IntentShapeError
from . import planned
from .operations import cast_hint, check_literal, common_dtype, converts, dtype_argument, operand_problem, option
from .operations_index import axis_argument, tensor_argument
from .policy import DOMAINS, accumulator_problem, widen
from .problems import refuse
from .types import (Lit, NoneT, Record, Scalar, Tensor, Weak, describe, is_product, is_tuple, items_of,
                    product_of, shaped)

NUMERIC = frozenset(DOMAINS["n"])

BUILTIN_COMBINE = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "and": "and", "or": "or", "xor": "xor"}
"""Primitives that are a builtin reduction when they serve as combine (SUPPLEMENT 12)."""


def axes_argument(what: str, t, rank: int) -> tuple[int, ...]:
    """Axes of a reduction: an integer or a non-empty tuple, normalised, ascending."""
    if not is_tuple(t):
        return (axis_argument(what, t, rank),)
    if not t.types:
        refuse(f"{what}: the tuple of axes is empty", cls=IntentShapeError)
    axes = tuple(axis_argument(what, x, rank) for x in t.types)
    if len(set(axes)) != len(axes):
        refuse(f"{what}: an axis is named twice in {tuple(x.value for x in t.types)}", cls=IntentShapeError)
    return tuple(sorted(axes))


def accumulator(what: str, dt: str, acc) -> str:
    if isinstance(acc, NoneT):
        return dt
    acc_dt = dtype_argument(what, acc)
    problem = accumulator_problem(dt, acc_dt)
    if problem:
        refuse(f"{what}: acc_dtype={acc_dt}: {problem}")
    return acc_dt


def _builtin(name: str, widens: bool):
    what = f"I.reduce.{name}"

    def rule(value, axis, acc_dtype):
        tensor_argument(what, value)
        axes = axes_argument(what, axis, value.rank)
        if planned.promotes(value):
            return shaped(planned.reduction(what, f"reduce_{name}", (value,), acc_dtype).output, value.rank - len(axes))
        if value.dt not in NUMERIC:
            refuse(f"{what} is not defined for bool", "use I.reduce.any or I.reduce.all, or cast, I.cast(x, I.i32)")
        dt = accumulator(what, value.dt, acc_dtype)
        if widens and isinstance(acc_dtype, NoneT):
            dt = widen(dt)
        return shaped(dt, value.rank - len(axes))
    return rule


def _logical(name: str):
    what = f"I.reduce.{name}"

    def rule(value, axis):
        tensor_argument(what, value)
        if value.dt != "bool" and not converts(f"reduce_{name}", value.dt):
            refuse(f"{what}: a bool tensor is expected, not {value.dt}", "compare explicitly, x != 0")
        return shaped("bool", value.rank - len(axes_argument(what, axis, value.rank)))
    return rule


def _arg(name: str):
    what = f"I.arg_reduce.{name}"

    def rule(value, axis):
        tensor_argument(what, value)
        axis_argument(what, axis, value.rank)
        if planned.promotes(value):
            plan = planned.plan(what, f"arg_reduce_{name}", (value,))
            return types.Tuple((shaped(plan.operands[0].convert_to, value.rank - 1), shaped(plan.output, value.rank - 1)))
        if value.dt not in NUMERIC:
            refuse(f"{what} is not defined for bool")
        return types.Tuple((shaped(value.dt, value.rank - 1), shaped("index", value.rank - 1)))
    return rule


# --- generic reduce and scan ------------------------------------------------------------------------------------------

def components(t) -> list:
    """Leaves of a product in order; the value itself otherwise."""
    return [leaf for part in items_of(t) for leaf in components(part)] if is_product(t) else [t]


def rebuild(like, leaves):
    """A type shaped like ``like`` over new leaves (an iterator)."""
    if is_product(like):
        return product_of(like, [rebuild(part, leaves) for part in items_of(like)])
    return next(leaves)


def conform(what: str, t, schema, spread: bool = False) -> None:
    """Refuse a value whose type is not the schema; literals instantiate to it. ``spread``: a scalar may stand for a tensor."""
    if is_product(schema):
        if isinstance(schema, Record) != isinstance(t, Record) or not is_product(t) or len(items_of(t)) != len(items_of(schema)):
            refuse(f"{what}: {describe(schema)} is expected, not {describe(t)}")
        if isinstance(schema, Record) and [n for n, _ in schema.items] != [n for n, _ in t.items]:
            refuse(f"{what}: the fields {', '.join(n for n, _ in schema.items)} are expected in this order, not "
                   f"{', '.join(n for n, _ in t.items)}")
        for part, wanted in zip(items_of(t), items_of(schema)):
            conform(what, part, wanted, spread)
        return
    if spread and isinstance(schema, Tensor) and not isinstance(t, Tensor):
        return conform(what, t, Scalar(schema.dt))
    if isinstance(t, Lit) and schema.rank == 0:
        return check_literal(what, t.value, schema.dt)
    if isinstance(t, Weak) and schema.dt in ("index", "i64") and schema.rank == 0:
        return
    if is_product(t):
        refuse(f"{what}: {describe(schema)} is expected, not {describe(t)}")
    operand_problem(what, t)
    if isinstance(t, Lit):
        refuse(f"{what}: {describe(schema)} is expected, not {describe(t)}", "I.full(shape, value, dtype) makes a tensor", IntentShapeError)
    dt = "index" if isinstance(t, Weak) else t.dt
    if dt != schema.dt:
        refuse(f"{what}: {schema.dt} is expected, not {dt}", cast_hint(t, schema.dt))
    if t.rank != schema.rank or isinstance(t, Tensor) != isinstance(schema, Tensor):
        refuse(f"{what}: {describe(schema)} is expected, not {describe(t)}", cls=IntentShapeError)


def _sources(what: str, value) -> list:
    leaves = components(value)
    if not leaves:
        refuse(f"{what}: the tuple of sources is empty")
    for leaf in leaves:
        tensor_argument(what, leaf)
    return leaves


def _schema(value, leaves, removed: int):
    return rebuild(value, iter([shaped(t.dt, t.rank - removed) for t in leaves]))


def _combine(ctx, what: str, combine, schema) -> None:
    result = ctx.call(combine, (schema, schema), f"{what}: combine")
    conform(f"{what}: the result of combine", result, schema)


def reduce(ctx, value, axis, identity, combine):
    what = "I.reduce"
    leaves = _sources(what, value)
    axes = [axes_argument(what, axis, t.rank) for t in leaves]
    if len(set(axes)) > 1:
        refuse(f"{what}: axis {describe(axis)} means different axes of the components", cls=IntentShapeError)
    schema = _schema(value, leaves, len(axes[0]))
    conform(f"{what}: identity", identity, schema, spread=True)
    _combine(ctx, what, combine, schema)
    return schema


def scan(ctx, value, axis, identity, combine, inclusive, reverse):
    what = "I.scan"
    leaves = _sources(what, value)
    if len({axis_argument(what, axis, t.rank) for t in leaves}) > 1:
        refuse(f"{what}: axis {describe(axis)} means different axes of the components", cls=IntentShapeError)
    option(what, "inclusive", inclusive)
    option(what, "reverse", reverse)
    schema = _schema(value, leaves, 1)
    conform(f"{what}: identity", identity, schema, spread=True)
    _combine(ctx, what, combine, schema)
    return value


def _prefix(name: str, widens: bool):
    what = f"I.{name}"

    def rule(value, axis, inclusive, reverse, acc_dtype):
        tensor_argument(what, value)
        axis_argument(what, axis, value.rank)
        option(what, "inclusive", inclusive)
        option(what, "reverse", reverse)
        if planned.promotes(value):
            return Tensor(planned.reduction(what, name, (value,), acc_dtype).output, value.rank)
        if value.dt not in NUMERIC:
            refuse(f"{what} is not defined for bool", "cast first, I.cast(x, I.i32)")
        dt = accumulator(what, value.dt, acc_dtype)
        return Tensor(widen(dt) if widens and isinstance(acc_dtype, NoneT) else dt, value.rank)
    return rule


# --- contractions ------------------------------------------------------------------------------------------------------

def _multiply(what: str, lhs, rhs, acc_dtype) -> str:
    tensor_argument(what, lhs)
    tensor_argument(what, rhs)
    if planned.promotes(lhs, rhs):
        return planned.reduction(what, "matmul", (lhs, rhs), acc_dtype).output
    if lhs.dt != rhs.dt:
        refuse(f"{what}: {lhs.dt} and {rhs.dt} do not mix", f"write I.cast(x, I.{lhs.dt})")
    acc = dtype_argument(what, acc_dtype)
    problem = accumulator_problem(lhs.dt, acc)
    if problem:
        refuse(f"{what}: acc_dtype={acc}: {problem}")
    return acc


def _ranks(what: str, lhs, rhs, low: tuple[int, int]) -> None:
    for side, t, least in (("left", lhs, low[0]), ("right", rhs, low[1])):
        if t.rank < least:
            refuse(f"{what}: the {side} operand needs rank {least} or more, it has rank {t.rank}", cls=IntentShapeError)


def dot(lhs, rhs, acc_dtype):
    acc = _multiply("I.dot", lhs, rhs, acc_dtype)
    if (lhs.rank, rhs.rank) != (1, 1):
        refuse(f"I.dot: two tensors of rank 1 are expected, not ranks {lhs.rank} and {rhs.rank}", cls=IntentShapeError)
    return Tensor(acc, 0)


def matvec(matrix, vector, acc_dtype, transpose):
    acc = _multiply("I.matvec", matrix, vector, acc_dtype)
    _ranks("I.matvec", matrix, vector, (2, 1))
    option("I.matvec", "transpose", transpose)
    return Tensor(acc, max(matrix.rank - 1, vector.rank))


def vecmat(vector, matrix, acc_dtype, transpose):
    acc = _multiply("I.vecmat", vector, matrix, acc_dtype)
    _ranks("I.vecmat", vector, matrix, (1, 2))
    option("I.vecmat", "transpose", transpose)
    return Tensor(acc, max(matrix.rank - 1, vector.rank))


def matmul(lhs, rhs, acc_dtype, transpose_lhs, transpose_rhs):
    acc = _multiply("I.matmul", lhs, rhs, acc_dtype)
    _ranks("I.matmul", lhs, rhs, (2, 2))
    option("I.matmul", "transpose_lhs", transpose_lhs)
    option("I.matmul", "transpose_rhs", transpose_rhs)
    return Tensor(acc, max(lhs.rank, rhs.rank))


def outer(lhs, rhs):
    tensor_argument("I.outer", lhs)
    tensor_argument("I.outer", rhs)
    if (lhs.rank, rhs.rank) != (1, 1):
        refuse(f"I.outer: two tensors of rank 1 are expected, not ranks {lhs.rank} and {rhs.rank}", cls=IntentShapeError)
    dt = common_dtype("I.outer", (lhs, rhs))
    if dt not in NUMERIC:
        refuse("I.outer is not defined for bool")
    return Tensor(dt, 2)


def axis_pairs(what: str, name: str, t, lhs_rank: int, rhs_rank: int) -> tuple[tuple[int, int], ...]:
    """A tuple of (lhs axis, rhs axis) pairs, normalised; each axis at most once."""
    if not is_tuple(t) or not all(is_tuple(p) and len(p.types) == 2 for p in t.types):
        refuse(f"{what}: {name} must be a tuple of axis pairs such as ((1, 0),), not {describe(t)}", cls=IntentShapeError)
    pairs = tuple((axis_argument(f"{what}: {name}", a, lhs_rank), axis_argument(f"{what}: {name}", b, rhs_rank))
                  for a, b in (p.types for p in t.types))
    for side in (0, 1):
        if len({p[side] for p in pairs}) != len(pairs):
            refuse(f"{what}: {name} names an axis twice", cls=IntentShapeError)
    return pairs


def contract(lhs, rhs, reduce, batch, acc_dtype):
    what = "I.contract"
    acc = _multiply(what, lhs, rhs, acc_dtype)
    pairs = axis_pairs(what, "reduce", reduce, lhs.rank, rhs.rank)
    batches = axis_pairs(what, "batch", batch, lhs.rank, rhs.rank)
    if not pairs:
        refuse(f"{what}: reduce must name at least one pair of axes", cls=IntentShapeError)
    for side in (0, 1):
        if {p[side] for p in pairs} & {p[side] for p in batches}:
            refuse(f"{what}: an axis is both reduced and batched", cls=IntentShapeError)
    return Tensor(acc, lhs.rank + rhs.rank - 2 * len(pairs) - len(batches))


RULES = {
    "reduce.sum": _builtin("sum", True), "reduce.prod": _builtin("prod", True), "reduce.max": _builtin("max", False),
    "reduce.min": _builtin("min", False), "reduce.any": _logical("any"), "reduce.all": _logical("all"),
    "arg_reduce.max": _arg("max"), "arg_reduce.min": _arg("min"), "cumsum": _prefix("cumsum", True),
    "cummax": _prefix("cummax", False), "dot": dot, "matvec": matvec, "vecmat": vecmat, "matmul": matmul, "outer": outer,
    "contract": contract,
}

CONTEXT_RULES = {"reduce": reduce, "scan": scan}
"""Rules that call helpers and so need the typing context first."""

