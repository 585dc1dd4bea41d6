"""What type has a name where control flow joins? Literals instantiate to the schema they must match; nothing converts."""
from __future__ import annotations

from numba.core import types

from .active import ACTIVE
from .planned import join
from .policy import literal_problem
from .types import (BOOL, Buffer, Domain, Lit, MergedFloat, NamedFloat, Record, Scalar, Tensor, View, Weak, WeakFloat, is_product,
                    is_tuple, items_of, product_of)


def merge(a, b):
    """The common type of two incoming values, or None when they have no schema in common.

    It does not matter in which order the values of one merge are met: literals that met one another first still take the dtype
    of a value met later. Whether each value may then stand for the result is what ``settles`` says.
    """
    if a == b:
        return a
    if is_product(a) and is_product(b):
        return _products(a, b)
    if ACTIVE.policy.joins and all(isinstance(t, (Lit, Scalar, NamedFloat, Tensor, WeakFloat)) for t in (a, b)):
        return join(a, b)
    for x, y in ((a, b), (b, a)):
        if isinstance(x, MergedFloat):
            return _merged(x, y)
    for x, y in ((a, b), (b, a)):
        if isinstance(x, Lit):
            return _literal(x, y)
    for x, y in ((a, b), (b, a)):
        if isinstance(x, Weak):
            if isinstance(y, Weak):
                return Weak(min(x.value, y.value))
            return y if isinstance(y, (Scalar, NamedFloat)) and literal_problem(x.value, y.dt) is None else None
    if isinstance(a, (NamedFloat, Scalar)) and isinstance(b, (NamedFloat, Scalar)) and a.dt == b.dt:
        return Scalar(a.dt)
    return None


def settles(t, whole) -> bool:
    """A value of type ``t`` may stand where the merged type is ``whole``: a literal instantiates, a run-time value stays itself."""
    if t == whole or ACTIVE.policy.joins:
        return True
    if is_product(t) and is_product(whole):
        return all(map(settles, items_of(t), items_of(whole)))
    match t:
        case Lit():
            return not isinstance(whole, (Scalar, NamedFloat)) or literal_problem(t.value, whole.dt) is None
        case Weak():
            return isinstance(whole, Weak) or getattr(whole, "dt", None) in ("index", "i64")
        case NamedFloat():
            return getattr(whole, "dt", None) == "f64"
    return True


def _products(a, b):
    if isinstance(a, Record) != isinstance(b, Record) or len(items_of(a)) != len(items_of(b)):
        return None
    if isinstance(a, Record) and [n for n, _ in a.items] != [n for n, _ in b.items]:
        return None
    parts = [merge(x, y) for x, y in zip(items_of(a), items_of(b))]
    if any(p is None for p in parts):
        return None
    return product_of(a, parts) if not is_tuple(a) else types.Tuple(tuple(parts))


def _merged(x: MergedFloat, y):
    if isinstance(y, MergedFloat) or isinstance(y, Lit) and type(y.value) is float:
        return MergedFloat(min(x.value, y.value, key=repr))
    if isinstance(y, (Scalar, NamedFloat)):
        return None if literal_problem(x.value, y.dt) else Scalar(y.dt)
    return None


def _literal(x: Lit, y):
    if isinstance(y, (Scalar, NamedFloat)):
        return None if literal_problem(x.value, y.dt) else Scalar(y.dt)
    if isinstance(y, Weak):
        return Weak(min(x.value, y.value)) if type(x.value) is int else None
    if isinstance(y, Lit) and type(x.value) is type(y.value):
        match x.value:
            case bool():
                return BOOL
            case int():
                return Weak(min(x.value, y.value))
            case float():
                return Scalar(ACTIVE.default_float) if ACTIVE.policy.weak_floats else MergedFloat(min(x.value, y.value, key=repr))
    return None


def explain(a, b) -> tuple[str, str]:
    """Why two types do not merge, and what to write instead."""
    from .types import describe, dtype_of
    for x, y in ((a, b), (b, a)):
        if isinstance(x, Lit) and dtype_of(y) and y.rank == 0 and not isinstance(y, Tensor):
            problem = literal_problem(x.value, y.dt)
            return problem or "", f"write I.cast({x.value!r}, I.{y.dt})"
        if isinstance(x, NamedFloat) and dtype_of(y) and y.rank == 0 and not isinstance(y, Tensor):
            return (f"it is f64 (a float literal bound to a name) on one path and {y.dt} on the other",
                    f"write I.cast({x.value!r}, I.{y.dt})")
        if isinstance(x, Weak) and dtype_of(y) and y.rank == 0 and not isinstance(y, Tensor):
            return f"it is an integer of literals on one path and {y.dt} on the other", f"write I.cast({x.value!r}, I.{y.dt})"
    if dtype_of(a) and dtype_of(b) and dtype_of(a) != dtype_of(b):
        return f"it is {describe(a)} on one path and {describe(b)} on the other", f"write I.cast(x, I.{dtype_of(a)})"
    if isinstance(a, Domain) and isinstance(b, Domain):
        return "a parallel domain and an ordered one cannot merge", ""
    if isinstance(a, (View, Buffer)) and isinstance(b, (View, Buffer)):
        return ("it is one view or buffer on one path and another on the other",
                "which memory a name stands for cannot be decided at run time: select between values")
    hint = "I.full((), value, dtype) makes a rank-zero tensor" if {type(a), type(b)} == {Tensor, Scalar} else ""
    return f"it is {describe(a)} on one path and {describe(b)} on the other", hint
