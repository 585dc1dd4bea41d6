"""Which values are known before types are? Constants, captured values and Constexpr parameters become static.

A captured value or Constexpr behaves like the literal written in its place; a float literal bound to a name is f64 at once
(``Literal.named``). Attribute chains on modules and namespaces are resolved here, so typing sees one constant per operation.
"""
from __future__ import annotations

import builtins
import types as pytypes

import numpy as np
from numba.core import ir
from numba.core.dispatcher import Dispatcher
from numba.core.ir_utils import build_definitions

from .. import language
from ..errors import CompileError, IntentNameError, LanguageError, UnsupportedError
from ..language.annotations import Enum
from ..language.dtypes import DType
from ..language.formats import Format, SparseFormat
from ..language.functions import Helper
from ..language.operation import Namespace, Operation
from ..language.structured import arg_reduce
from ..typing.context import OPERATORS, Literal
from .bytecode import fail
from .hints import FOREIGN, member_hint

BUILTIN_HINTS = {"sum": "use I.reduce.sum", "any": "use I.reduce.any", "all": "use I.reduce.all", "int": "use I.cast(x, I.i32)",
                 "float": "use I.cast(x, I.f32)", "round": "use I.floor(x + 0.5) or I.cast",
                 "divmod": "use // and %", "zip": "index with one domain", "print": "keep host work outside the kernel"}

NUMBERS = (bool, int, float)


def resolve_statics(func_ir: ir.FunctionIR, known: dict, shape_names: frozenset = frozenset()) -> list:
    """Rewrite constants in place. ``known``: parameter name -> static Python object. Gives the problems found, as pairs
    (statement, error): they count only if the statement survives pruning."""
    statics: dict = {}                      # temporaries and once-assigned names whose value is known
    definitions = func_ir._definitions
    found: list = []
    for block in func_ir.blocks.values():
        for inst in block.body:
            if isinstance(inst, ir.Assign):
                try:
                    _assign(inst, statics, definitions, known, shape_names)
                except CompileError as e:
                    found.append((inst, e))
    func_ir._definitions = build_definitions(func_ir.blocks)
    return found


def report_statics(func_ir: ir.FunctionIR, found: list) -> None:
    """Raise the problems of the statements that are left, together."""
    if found:
        alive = {id(inst) for block in func_ir.blocks.values() for inst in block.body}
        left = [e for inst, e in found if id(inst) in alive]
        if left:
            raise type(left[0])([d for e in left for d in e.diagnostics]) from None


def _assign(inst: ir.Assign, statics: dict, definitions, known: dict, shape_names) -> None:
    value, name = inst.value, inst.target.name
    temporary = name.startswith("$")
    once = len(definitions[name]) == 1
    match value:
        case ir.Arg():
            if value.name in known:
                _become(inst, known[value.name], named=False)
                if once:
                    statics[name] = known[value.name]
        case ir.Const():
            checked = _constant(value.value, inst.loc)
            _become(inst, checked, named=not temporary)
            if once and temporary:
                statics[name] = checked
        case ir.Global() | ir.FreeVar():
            obj = _captured(value, inst.loc, shape_names)
            _become(inst, obj, named=not temporary)
            if once:
                statics[name] = obj
        case ir.Var():
            if value.name in statics:
                obj = statics[value.name]
                if isinstance(obj, float) and not isinstance(obj, bool) and not temporary:
                    _become(inst, obj, named=True)
                elif once:
                    statics[name] = obj
        case ir.Expr():
            inst.loc = value.loc
            _expression(inst, value, statics, once, temporary)


def _expression(inst, e: ir.Expr, statics, once: bool, temporary: bool) -> None:
    name = inst.target.name
    if e.op == "getattr" and e.value.name in statics and _has_members(statics[e.value.name]):
        obj = _member(statics[e.value.name], e.attr, e.loc)
        _become(inst, obj, named=not temporary)
        if once:
            statics[name] = obj
    elif e.op == "exhaust_iter" and e.value.name in statics and once:
        statics[name] = statics[e.value.name]
    elif e.op == "build_tuple" and once and all(v.name in statics for v in e.items):
        statics[name] = tuple(statics[v.name] for v in e.items)
    elif e.op == "static_getitem" and isinstance(statics.get(e.value.name), tuple) and isinstance(e.index, int):
        items = statics[e.value.name]
        if e.index < len(items):
            if not temporary:
                _become(inst, items[e.index], named=True)
            elif once:
                statics[name] = items[e.index]


def _become(inst: ir.Assign, obj, named: bool) -> None:
    if isinstance(obj, NUMBERS):
        obj = Literal(obj, named)
    inst.value = ir.Const(obj, inst.value.loc, use_literal_type=False)


def _has_members(obj) -> bool:
    return isinstance(obj, (pytypes.ModuleType, Namespace, Operation)) or obj is arg_reduce or isinstance(obj, type)


def _member(obj, attr: str, loc):
    label = getattr(obj, "name", None) or getattr(obj, "__name__", repr(obj))
    label = f"I.{label}" if isinstance(obj, (Namespace, Operation)) or obj is arg_reduce else label
    label = "I" if label == "intent_numba.language" else label
    public = not attr.startswith("_") and (not isinstance(obj, Operation) or isinstance(obj.__dict__.get(attr), Operation))
    if not public or not hasattr(obj, attr):
        fail(IntentNameError, loc, f"{label} has no member {attr!r}", member_hint(label, attr, dir(obj)))
    return _allowed(getattr(obj, attr), f"{label}.{attr}", loc)


def _constant(value, loc):
    if value is None or value is Ellipsis or isinstance(value, (*NUMBERS, str)):
        return value
    if isinstance(value, tuple):
        return tuple(_constant(v, loc) for v in value)
    if isinstance(value, complex):
        fail(UnsupportedError, loc, "complex numbers do not exist in the language")
    if isinstance(value, (pytypes.CodeType, bytes, frozenset)):
        fail(LanguageError, loc, f"{type(value).__name__} constants do not exist in a kernel")
    return _allowed(value, repr(value), loc)


def _captured(value, loc, shape_names):
    """The object a global or closure name stands for."""
    name, obj = value.name, value.value
    if obj is ir.UNDEFINED:
        if name in shape_names:
            fail(IntentNameError, loc, f"{name!r} is a shape name of the annotations, not a value",
                 f"read it from a shape first, such as {name}, = x.shape or {name} = x.shape[0]")
        fail(IntentNameError, loc, f"the name {name!r} is not defined")
    return _allowed(obj, name, loc)


def _allowed(obj, name: str, loc):
    """Refuse captured objects that are no compile-time values (decision 9)."""
    if obj is None or obj is Ellipsis or isinstance(obj, (Operation, Namespace, Helper, DType, Enum, Dispatcher, Format, SparseFormat)):
        return obj
    if type(obj) in NUMBERS or isinstance(obj, (pytypes.ModuleType, str)) or obj is arg_reduce:
        return obj
    if isinstance(obj, tuple):
        return tuple(_allowed(v, f"{name}[{i}]", loc) for i, v in enumerate(obj))
    if isinstance(obj, type) and issubclass(obj, Enum) or getattr(obj, "__intent_kernel__", False):
        return obj
    if isinstance(obj, (pytypes.FunctionType, pytypes.BuiltinFunctionType, type)) and obj in OPERATORS:
        return obj
    if getattr(obj, "__module__", "") == "intent_numba.language.formats":
        return obj
    plain = getattr(obj, "__name__", name)
    if getattr(builtins, plain, None) is obj:
        fail(LanguageError, loc, f"Python's {plain} cannot be used in a kernel", BUILTIN_HINTS.get(plain, ""))
    if isinstance(obj, type):
        return obj                          # its attributes are captured values; calling it is refused when it is called
    if callable(obj):
        same = getattr(language, plain, None)
        fail(LanguageError, loc, f"{name!r} is an ordinary Python function; a kernel cannot call it",
             f"write I.{plain}" if isinstance(same, Operation) else FOREIGN[plain] if "." in name and plain in FOREIGN else
             "decorate it with @intent.fn, or @numba.njit if it works on scalars")
    if isinstance(obj, np.generic) and isinstance(obj.item(), NUMBERS):
        fail(LanguageError, loc, f"{name!r} is a NumPy {type(obj).__name__}: only Python's bool, int and float can be captured",
             f"write {name} = {type(obj.item()).__name__}({name}) outside the kernel")
    fail(LanguageError, loc, f"{name!r} is a {type(obj).__name__}: only bool, int, float and enum values can be captured",
         "pass arrays as parameters" if hasattr(obj, "__array__") or hasattr(obj, "__len__") else "bind the number itself to a name")
