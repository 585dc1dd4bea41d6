"""Numba's typing context with Intent's rules only: every Numba hook of the typing stage is in this file.

``resolve_value_type`` is the one door for constants; operations, helpers and ``@njit`` functions are callable types whose
``get_call_type`` consults the rules. Numba's own numeric conversions cannot apply, because none of its registries are here.
"""
from __future__ import annotations

import operator
import types as pytypes

import numpy as np
from numba.core import target_extension, types
from numba.core.dispatcher import Dispatcher
from numba.core.typeconv import Conversion
from numba.core.typeconv.typeconv import TypeManager
from numba.core.typing import BaseContext, signature

from ..errors import InvalidOption, LanguageError, UnsupportedError
from ..language.annotations import Enum
from ..language.dtypes import DType, dtype
from ..language.functions import Helper
from ..language.operation import Operation
from . import (operations, operations_atomics, operations_formats, operations_index, operations_random, operations_region,
               operations_structured)
from .active import ACTIVE
from .binding import Default, bind
from .merge import explain, merge, settles
from .policy import default_dtype
from .problems import Refusal, refuse
from .types import (NONE, DTypeT, EllipsisT, EnumT, Lit, NamedFloat, Record, Scalar, Slice, Static, Weak, describe, dtype_of,
                    is_tuple)

RULES = {**operations.RULES, **operations_index.RULES, **operations_structured.RULES,
         **operations_random.RULES, **operations_atomics.RULES, **operations_formats.RULES}
CONTEXT_RULES = {**operations_structured.CONTEXT_RULES, **operations_region.CONTEXT_RULES, **operations_atomics.CONTEXT_RULES}


class Literal:
    """A Python constant inside ``ir.Const`` that Numba does not recognise. ``named``: bound to a name by the program."""
    __slots__ = ("value", "named")

    def __init__(self, value, named: bool = False):
        self.value, self.named = value, named

    def __repr__(self):
        return repr(self.value)


class _Callable(types.Callable):
    """Base of callable types: one rule, no candidate lists in messages."""

    def __init__(self, obj, name: str):
        self.obj, self.label = obj, name
        super().__init__(f"{type(self).__name__}({name})")

    @property
    def key(self):
        return id(self.obj)

    def __str__(self):
        return self.label

    def get_call_signatures(self):
        return [], True

    def get_impl_key(self, sig):
        return self.obj


class OperationT(_Callable):
    """``I.name``."""

    def __init__(self, op: Operation):
        super().__init__(op, f"I.{op.name}")

    def get_call_type(self, ctx, args, kws):
        return signature(ctx.operation(self.obj, args, kws), *args, *kws.values())


class OperatorT(_Callable):
    """A Python operator or builtin."""

    def __init__(self, fn, name: str, rule):
        self.rule = rule
        super().__init__(fn, name)

    def get_call_type(self, ctx, args, kws):
        if kws:
            refuse(f"{self.label} takes no keyword arguments")
        return signature(self.rule(*args), *args)


class HelperT(_Callable):
    """An ``@intent.fn`` helper."""

    def __init__(self, helper: Helper):
        super().__init__(helper, helper.__name__)

    def get_call_type(self, ctx, args, kws):
        return signature(ctx.session.helper_type(self.obj, args, kws), *args, *kws.values())


class NjitT(_Callable):
    """An ``@numba.njit`` function of scalars."""

    def __init__(self, dispatcher: Dispatcher):
        super().__init__(dispatcher, dispatcher.py_func.__name__)

    def get_call_type(self, ctx, args, kws):
        return signature(ctx.session.njit_type(self.obj, args, kws), *args, *kws.values())


def _truth(*args):
    if len(args) != 1:
        refuse(f"bool takes one argument, {len(args)} given")
    return operations.truth(*args)


def _slice(*bounds):
    if not 1 <= len(bounds) <= 3:
        refuse(f"slice takes 1 to 3 arguments, {len(bounds)} given")
    bounds = (NONE, *bounds) if len(bounds) == 1 else bounds
    return Slice(*bounds, *[NONE] * (3 - len(bounds)))


def _len(*args):
    if len(args) != 1:
        refuse(f"len takes one argument, {len(args)} given")
    (t,) = args
    if is_tuple(t):
        return Lit(len(t.types))
    refuse(f"len: a tuple is expected, not {describe(t)}", "x.shape[0] is an extent")


def _tuple(*args):
    if len(args) == 1 and is_tuple(args[0]):
        return args[0]
    refuse("tuple: one tuple is expected", "write the components, (a, b)")


def _dtype(*args):
    """A token as the dtype it names."""
    match args:
        case (DTypeT() as t,):
            return t
        case (Lit(value=str() as token),):
            try:
                return DTypeT(dtype(token).name)
            except InvalidOption as e:
                refuse(f"I.dtype: {e}")
    refuse("I.dtype: one token such as \"f32\" is expected", "write I.f32")


def _operators():
    for fn in operations.BINARY:
        yield fn, fn.__name__, lambda a, b, fn=fn: operations.binary(fn, a, b)
    for inplace, fn in operations.INPLACE.items():
        yield inplace, fn.__name__, lambda a, b, fn=fn: operations.binary(fn, a, b)
    for fn in operations.UNARY:
        yield fn, fn.__name__, lambda a, fn=fn: operations.unary(fn, a)
    for fn in (operator.is_, operator.is_not):
        yield fn, fn.__name__, lambda a, b, fn=fn: operations.identity_test(fn, a, b)
    yield operator.not_, "not", operations.python_not
    yield bool, "bool", _truth
    for fn, (name, operation, arity, hint) in operations.BUILTINS.items():
        yield fn, name, operations.builtin(name, operation, arity, hint)
    yield operator.matmul, "@", operations.no_operator("@", "write I.matmul(a, b, acc_dtype=I.f32)")
    yield operator.imatmul, "@=", operations.no_operator("@=", "write I.matmul(a, b, acc_dtype=I.f32)")
    yield operator.contains, "in", operations.no_operator("in", "compare explicitly")
    yield operator.getitem, "getitem", operations_index.getitem
    yield operator.setitem, "setitem", operations_index.setitem
    yield operator.delitem, "del", operations.no_operator("del", "")
    yield range, "range", operations_index.python_range
    yield enumerate, "enumerate", operations_index.python_enumerate
    yield slice, "slice", _slice
    yield len, "len", _len
    yield tuple, "tuple", _tuple
    yield dtype, "I.dtype", _dtype


OPERATORS = {fn: OperatorT(fn, name, rule) for fn, name, rule in _operators()}


class IntentTarget(target_extension.Generic):
    """The front end is a target of its own, so that nothing is looked up for a CPU."""


target_extension.target_registry["intent"] = IntentTarget


class IntentTypingContext(BaseContext):
    """``session`` is the compilation in progress; it types helper and ``@njit`` calls."""
    session = None

    def init(self):
        self.tm = TypeManager()
        self._operations: dict = {}

    def _load_builtins(self):
        pass

    def load_additional_registries(self):
        pass

    def refresh(self):
        pass

    def can_convert(self, fromty, toty):
        if fromty == toty:
            return Conversion.exact
        return Conversion.promote if fromty is types._undef_var else None

    def unify_types(self, *typelist):
        """The type of several returns."""
        typelist = sorted(typelist, key=str)
        unified = typelist[0]
        for t in typelist[1:]:
            unified = self.unify_pairs(unified, t)
        for t in typelist:
            if not settles(t, unified):
                raise Mismatch(unified, t)
        return unified

    def unify_pairs(self, first, second):
        for a, b in ((first, second), (second, first)):
            if a is types.undefined or a is types._undef_var:
                return b
        unified = merge(first, second)
        if unified is None:
            raise Mismatch(first, second)
        return unified

    def resolve_value_type(self, val):
        if type(val) is Literal:
            named = val.named and isinstance(val.value, float) and not ACTIVE.policy.weak_floats
            return NamedFloat(val.value) if named else Lit(val.value)
        if isinstance(val, Operation):
            found = self._operations.get(val)
            if found is None:
                found = self._operations[val] = OperationT(val)
            return found
        if val is None:
            return NONE
        if val is Ellipsis:
            return EllipsisT()
        if isinstance(val, (pytypes.FunctionType, pytypes.BuiltinFunctionType, type)) and val in OPERATORS:
            return OPERATORS[val]
        match val:
            case Helper():
                return HelperT(val)
            case DType():
                return DTypeT(val.name)
            case Enum():
                return EnumT(val)
            case Dispatcher():
                return NjitT(val)
            case tuple():
                return types.Tuple(tuple(map(self.resolve_value_type, val)))
            case bool() | int() | float() | str():
                return Lit(val)
        return Static(val)

    def resolve_function_type(self, func, args, kws):
        if isinstance(func, types.Callable):
            return func.get_call_type(self, args, kws)
        if not isinstance(func, (str, types.Type)) and func in OPERATORS:
            return OPERATORS[func].get_call_type(self, args, dict(kws))
        match func:
            case "getiter":
                return signature(operations_index.getiter(*args), *args)
            case "iternext":
                return signature(operations_index.iternext(*args), *args)
            case "static_getitem":
                value, index = args
                return signature(operations_index.getitem(value, self.resolve_value_type(index)), value)
        if isinstance(func, Static) and getattr(func.obj, "__intent_kernel__", False):
            refuse(f"a kernel cannot call the kernel {getattr(func.obj, '__name__', '')}".rstrip(),
                   "share code through an @intent.fn helper", LanguageError)
        if isinstance(func, Static) and isinstance(func.obj, type):
            dt = np.dtype(func.obj).name if issubclass(func.obj, np.generic) else ""
            known = {"float": "f", "int": "i", "uint": "u"}.get(dt.rstrip("0123456789"))
            refuse(f"the class {func.obj.__name__} cannot be called in a kernel",
                   f"write I.cast(x, I.{known}{dt.lstrip('abcdefghijklmnopqrstuvwxyz')})" if known else "its attributes can be read",
                   LanguageError)
        if isinstance(func, DTypeT):
            refuse(f"the dtype I.{func.dt} cannot be called in a kernel", f"write I.cast(x, I.{func.dt})", LanguageError)
        refuse(f"{describe(func) if isinstance(func, types.Type) else func} cannot be called in a kernel",
               "call I. operations, @intent.fn helpers or @numba.njit functions of scalars", LanguageError)

    def resolve_setitem(self, target, index, value):
        return signature(operations_index.setitem(target, index, value), target, index, value)

    def resolve_getattr(self, typ, attr):
        if isinstance(typ, Static):
            found = getattr(typ.obj, attr, None)
            return self.resolve_value_type(found)
        return operations_index.attribute(typ, attr)

    # --- used by the rules -------------------------------------------------------------------------------------------

    def operation(self, op: Operation, args, kws):
        """Type of a call of an ``I.`` operation."""
        if op.name == "record":
            return self._record(args, kws)
        rule, with_context = RULES.get(op.name), CONTEXT_RULES.get(op.name)
        if rule is None and with_context is None:
            refuse(f"I.{op.name} is not supported by this compiler", cls=UnsupportedError)
        bound = [self.resolve_value_type(a.value) if isinstance(a, Default) else a
                 for a in bind(f"I.{op.name}", op.signature, args, kws)]
        return rule(*bound) if rule is not None else with_context(self, *bound)

    def _record(self, args, kws):
        if args:
            refuse("I.record takes named fields only", "write I.record(field=value, ...)")
        if not kws:
            refuse("I.record needs at least one field")
        for name, t in kws.items():
            _component(f"I.record: field {name!r}", t)
        return Record(tuple(kws.items()))

    def call(self, fn, args, what: str):
        """Result type of calling ``fn`` (a helper or a primitive) with ``args``."""
        if isinstance(fn, (HelperT, OperationT, OperatorT)):
            return self.resolve_function_type(fn, args, {}).return_type
        refuse(f"{what} must be an @intent.fn helper or a primitive such as I.add, not {describe(fn)}")


def _component(what: str, t) -> None:
    if isinstance(t, (Scalar, NamedFloat, Weak, Lit, Record)) or is_tuple(t) or dtype_of(t):
        return
    refuse(f"{what} cannot be {describe(t)}", "components are scalars, tensors, tuples and records")


class Mismatch(Refusal):
    """Two types that a name cannot have at once."""

    def __init__(self, first, second):
        self.first, self.second = first, second
        message, hint = explain(first, second)
        super().__init__(message, hint)


class IntentTargetContext:
    """The few attributes of a target context that type inference touches; a real one takes half a second to refresh."""
    target, target_name, call_conv, enable_nrt = IntentTarget, "intent", None, False

    def __init__(self, typing_context):
        self.typing_context = typing_context

    def refresh(self):
        pass

    def subtarget(self, **kwargs):
        return self


def default_scalar(value) -> Scalar:
    return Scalar(default_dtype(value))
