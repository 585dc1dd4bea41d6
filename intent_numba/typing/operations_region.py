"""Typing rules of region fold and region scan: what does each helper get, and which schema must it keep?

Summaries, states and outputs are tensors, scalars, tuples or records whose components may differ in rank. What a helper
returns fixes the schema; identities and initial states instantiate their literals to it. Spec: 002 section 9.
"""
from __future__ import annotations

from numba.core import types

from ..errors import IntentShapeError
from .operations_index import axis_argument, tensor_argument
from .operations_structured import components, conform, rebuild
from .problems import Refusal, refuse
from .types import (Buffer, Lit, NamedFloat, NoneT, Scalar, Tensor, View, Weak, describe, is_product, is_tuple, items_of)


def source_arguments(what: str, source, axis) -> tuple:
    """Types of the source components as the helpers get them: the parts of a tuple or record, else the one tensor."""
    parts = items_of(source) if is_product(source) else (source,)
    leaves = [leaf for part in parts for leaf in components(part)]
    if not leaves:
        refuse(f"{what}: the tuple of sources is empty")
    for leaf in leaves:
        tensor_argument(f"{what}: source", leaf)
        if is_tuple(axis):
            refuse(f"{what}: one axis is expected, not {describe(axis)}", cls=IntentShapeError)
        axis_argument(what, axis, leaf.rank)
    return tuple(parts)


def operand_arguments(what: str, operands) -> tuple:
    if not is_tuple(operands):
        refuse(f"{what}: operands must be a tuple, not {describe(operands)}", "write operands=(x,) for a single one")
    for i, t in enumerate(operands.types):
        for leaf in components(t):
            if isinstance(leaf, (View, Buffer)):
                refuse(f"{what}: operand {i} is a {describe(leaf)}: memory cannot be passed to a pure helper",
                       "pass its value, with one ':' for each axis: x[:, :]")
    return tuple(operands.types)


def schema_of(what: str, t):
    """The schema that a helper's result fixes; a component without a dtype of its own is refused."""
    if isinstance(t, (types.NoneType, NoneT)):
        refuse(f"{what} is nothing", "the helper must return its result")
    leaves = components(t)
    if not leaves:
        refuse(f"{what} has no components")
    return rebuild(t, iter([_settled(what, leaf) for leaf in leaves]))


def _settled(what: str, t):
    match t:
        case NamedFloat():
            return Scalar("f64")
        case Weak():
            return Scalar("i64")
        case Scalar() | Tensor():
            return t
        case Lit() if not isinstance(t.value, str):
            refuse(f"{what}: the literal {t.value!r} has no dtype of its own", f"write I.cast({t.value!r}, I.f32) with the dtype you mean")
    refuse(f"{what} cannot hold {describe(t)}", "components are scalars and tensors")


def _summary(ctx, what: str, parts, operands, summarize, combine, identity):
    schema = schema_of(f"{what}: the result of summarize", ctx.call(summarize, (*parts, *operands), f"{what}: summarize"))
    conform(f"{what}: identity", identity, schema)
    merged = ctx.call(combine, (schema, schema), f"{what}: combine")
    conform(f"{what}: the result of combine", merged, schema)
    return schema


def region_fold(ctx, source, axis, summarize, combine, identity, operands):
    what = "I.region_fold"
    parts, captures = source_arguments(what, source, axis), operand_arguments(what, operands)
    return _summary(ctx, what, parts, captures, summarize, combine, identity)


def region_scan(ctx, source, axis, summarize, combine, identity, initial_state, apply, emit, operands):
    what = "I.region_scan"
    parts, captures = source_arguments(what, source, axis), operand_arguments(what, operands)
    summary = _summary(ctx, what, parts, captures, summarize, combine, identity)
    state = _state(ctx, what, summary, initial_state, apply)
    emitted = ctx.call(emit, (*parts, state, *captures), f"{what}: emit")
    outputs = schema_of(f"{what}: the result of emit", emitted)
    for leaf in components(outputs):
        if not isinstance(leaf, Tensor) or leaf.rank == 0:
            refuse(f"{what}: emit must return tensors with an axis of the slice's members, not {describe(leaf)}", cls=IntentShapeError)
    return types.Tuple((outputs, state))


def _state(ctx, what: str, summary, initial, apply):
    """The schema of the state: what apply returns, given an initial state whose literals have no dtype yet. They are taken to have
    those of the summary where the two look alike; where apply says otherwise it sees the literals themselves."""
    first = None
    for argument in dict.fromkeys((_like_summary(what, initial, summary), initial)):
        try:
            state = schema_of(f"{what}: the result of apply", ctx.call(apply, (summary, argument), f"{what}: apply"))
            conform(f"{what}: initial_state", initial, state)
            conform(f"{what}: the result of apply", ctx.call(apply, (summary, state), f"{what}: apply"), state)
            return state
        except Refusal as refusal:
            first = first or refusal
    raise first


def _like_summary(what: str, t, summary):
    """The initial state with the summary's dtypes for its literals, where it has as many components."""
    leaves, twins = components(t), components(summary)
    for leaf in leaves:
        if not isinstance(leaf, (Scalar, Tensor, NamedFloat, Weak, Lit)):
            refuse(f"{what}: initial_state cannot hold {describe(leaf)}", "components are scalars and tensors; read memory first, x[:, :]")
    if len(leaves) != len(twins) or is_product(t) != is_product(summary):
        return t
    return rebuild(t, iter([twin if isinstance(leaf, Lit) and twin.rank == 0 else leaf for leaf, twin in zip(leaves, twins)]))


CONTEXT_RULES = {"region_fold": region_fold, "region_scan": region_scan}
