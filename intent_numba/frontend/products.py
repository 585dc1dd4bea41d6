"""How does a typed front value become KIR values and back? Products are flattened: KIR has none."""
from __future__ import annotations

from numba.core.types import Callable

from ..errors import IntentShapeError, LanguageError
from ..kir import Scalar as KScalar
from ..kir import Tensor as KTensor
from ..kir import Value
from ..language.dtypes import DType
from ..typing.types import (Buffer, Domain, DTypeT, EllipsisT, EnumT, Group, NamedFloat, NoneT, Record, Scalar, Static, Tensor, View,
                            Weak, WeakFloat, is_tuple)
from ..typing.types import Lit as LitT
from .emitter import Emitter
from .shapes import make_domain, retype, shape_text
from .values import Deferred, Dom, Idx, Lit, Rec


def flatten(e: Emitter, value, t) -> list[Value]:
    """KIR values of a front value of type ``t``; its literals instantiate to the type."""
    if is_tuple(t):
        return [leaf for v, part in zip(value, t.types) for leaf in flatten(e, v, part)]
    match t:
        case Record():
            return [leaf for name, part in t.items for leaf in flatten(e, value.fields[name], part)]
        case Scalar() | NamedFloat():
            return [e.value(value, t.dt)]
        case Tensor():
            return [e.value(value, t.dt)]
        case Weak():
            return [e.index(value)]
        case WeakFloat():
            return [e.value(value, "f64")]
        case Domain(kind="domain"):
            return [e.index(value.begin), e.index(value.end), e.index(value.step)]
        case Buffer() | View():
            e.fail(LanguageError, "which view or buffer a name stands for cannot be decided at run time",
                   "select between values, not memory")
        case LitT() | NoneT() | DTypeT() | EnumT() | Static():
            return []
        case Group() | Domain():
            e.fail(LanguageError, "such a domain cannot be merged or carried", "merge its bounds and build the domain after")
    return []


def unflatten(e: Emitter, t, leaves):
    """The front value of type ``t`` over an iterator of KIR values."""
    if is_tuple(t):
        return tuple(unflatten(e, part, leaves) for part in t.types)
    match t:
        case Record():
            return Rec({name: unflatten(e, part, leaves) for name, part in t.items})
        case Scalar() | NamedFloat() | Tensor() | Weak():
            return next(leaves)
        case WeakFloat():
            return Deferred(None, (next(leaves),))
        case Domain(kind="domain"):
            begin, end, step = next(leaves), next(leaves), next(leaves)
            return make_domain(e, begin, end, step)
    return static(t)


def static(t):
    """The front value of a type that fixes it."""
    match t:
        case LitT():
            return Lit(t.value)
        case DTypeT():
            return DType(t.dt)
        case EnumT():
            return t.member
        case Static() | Callable():
            return t.obj
        case EllipsisT():
            return Ellipsis
    return None


def is_static(t) -> bool:
    """True when the type fixes the value, so that nothing need be carried."""
    if is_tuple(t):
        return all(map(is_static, t.types))
    if isinstance(t, Record):
        return all(is_static(x) for _, x in t.items)
    return isinstance(t, (LitT, NoneT, DTypeT, EnumT, EllipsisT, Static, Callable))


def identical(a, b) -> bool:
    """One and the same value on both paths."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    match a:
        case Lit():
            return (type(a.value), repr(a.value), a.dt) == (type(b.value), repr(b.value), b.dt)
        case Idx():
            return a.extent == b.extent
        case tuple():
            return len(a) == len(b) and all(map(identical, a, b))
        case Rec():
            return list(a.fields) == list(b.fields) and all(identical(a.fields[n], b.fields[n]) for n in a.fields)
    return False


def instantiated(value, t):
    """The front value with its literals in the dtypes of ``t``, which control flow gave them. Bools stay decided."""
    match value:
        case Lit(dt=None) if isinstance(t, (Scalar, NamedFloat)) and t.dt != "bool":
            return Lit(value.value, t.dt)
        case tuple() if is_tuple(t) and len(t.types) == len(value):
            return tuple(map(instantiated, value, t.types))
        case Rec() if isinstance(t, Record):
            return Rec({name: instantiated(value.fields[name], part) for name, part in t.items})
    return value


def leaves_of(value) -> list[Value]:
    """The KIR values inside a front value that already has them."""
    match value:
        case Value():
            return [value]
        case tuple():
            return [leaf for v in value for leaf in leaves_of(v)]
        case Rec():
            return [leaf for v in value.fields.values() for leaf in leaves_of(v)]
        case Dom():
            return [value.value]
    return []


def fit(e: Emitter, value: Value, wanted, what: str) -> Value:
    """``value`` under the type ``wanted``: equal dtype and rank, shapes provably equal."""
    if value.type == wanted:
        return value
    if isinstance(value.type, KTensor) and isinstance(wanted, KTensor) and len(value.type.shape) == len(wanted.shape):
        if all(map(e.same, value.type.shape, wanted.shape)):
            return retype(e, value, wanted.shape)
    e.fail(IntentShapeError, f"{what} must keep its shape: {text(wanted)} becomes {text(value.type)}",
           "extents must be provably equal on every path")


def text(t) -> str:
    if isinstance(t, KTensor):
        return f"{t.dt} of shape {shape_text(t.shape)}"
    return t.dt if isinstance(t, KScalar) else str(t)


def dummy(e: Emitter, t) -> Value:
    """Some value of the type, for a path on which nobody reads it."""
    zero = e.const(False if t.dt == "bool" else 0, t.dt)
    return zero if isinstance(t, KScalar) else e.one("broadcast", (zero,), t)
