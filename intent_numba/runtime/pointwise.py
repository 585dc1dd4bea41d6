"""How do ``I.exp(x)`` and the other pointwise operations work on scalars inside ``@numba.njit`` code?

A call becomes a tiny kernel, so typing rules, messages, code and bits are the language's own: the front end types it, and
its operations are emitted as one function that is linked into the caller. Literal integers and bools stay literals;
dtypes and options are taken from the call.
"""
from __future__ import annotations

import hashlib
import inspect
from functools import cache

import llvmlite.ir as ir
from numba.core import cgutils, errors, types
from numba.core.imputils import lower_constant
from numba.core.registry import cpu_target
from numba.core.typing import signature
from numba.core.extending import models, register_model

from ..errors import CompileError
from ..kir.ops import ELEMENTWISE
from ..language.dtypes import DType
from ..language.operation import Operation

_TOKENS = {types.boolean: "bool", types.int8: "i8", types.int16: "i16", types.int32: "i32", types.int64: "i64",
           types.uint8: "u8", types.uint16: "u16", types.uint32: "u32", types.uint64: "u64",
           types.float32: "f32", types.float64: "f64"}
_NUMBA = {**{token: type_ for type_, token in _TOKENS.items()}, "index": types.int64}


class OperationType(types.Callable, types.Opaque):
    """The Numba type of one pointwise operation."""

    def __init__(self, operation: Operation):
        self.operation = operation
        super().__init__(f"I.{operation.name}")

    @property
    def key(self):
        return self.operation.name

    def get_call_type(self, context, args, kws):
        if not self.operation.pointwise:
            raise errors.TypingError(f"{self} can be used only inside an @intent.kernel or @intent.fn function")
        bound = _bind(self.operation, args, dict(kws))
        result = _function(self.operation.name, _arguments(self.operation, bound, bound.values())).result
        return signature(_NUMBA[result], *bound.values()).replace(pysig=_signature_of(bound))

    def get_call_signatures(self):
        return [], True

    def get_impl_key(self, sig):
        return self.operation


class DTypeType(types.Opaque):
    """The Numba type of a dtype such as ``I.f32``, as an argument of ``I.cast``."""

    def __init__(self, dtype: DType):
        self.dtype = dtype
        super().__init__(f"I.{dtype.name}")


register_model(OperationType)(models.OpaqueModel)
register_model(DTypeType)(models.OpaqueModel)


@lower_constant(OperationType)
@lower_constant(DTypeType)
def _constant(context, builder, type_, value):
    return context.get_dummy_value()


@cache
def operation_type(operation: Operation) -> OperationType:
    """The type of an operation, its implementation made known to Numba's CPU target."""
    found = OperationType(operation)
    cpu_target.target_context.insert_func_defn([(_implementation(operation), operation, (types.VarArg(types.Any),))])
    return found


@cache
def dtype_type(dtype: DType) -> DTypeType:
    return DTypeType(dtype)


# --- typing --------------------------------------------------------------------------------------------------------------

def _bind(operation: Operation, args, kws: dict) -> dict:
    """Parameter name -> Numba type, for what the call gives."""
    try:
        return dict(operation.signature.bind(*args, **kws).arguments)
    except TypeError as e:
        raise errors.TypingError(f"I.{operation.name}: {e}") from None


def _signature_of(names) -> inspect.Signature:
    """What Numba needs to put the arguments of this very call in order."""
    return inspect.Signature([inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names])


def _arguments(operation: Operation, names, given) -> tuple:
    """(parameter, what it is) for every argument: the key of the function that does the work."""
    return tuple((name, _argument(operation, type_)) for name, type_ in zip(names, given))


def _argument(operation: Operation, type_) -> tuple:
    """What an argument is: ("dtype", token), ("literal", value) or ("value", token). Raises Numba's TypingError."""
    if isinstance(type_, DTypeType):
        return ("dtype", type_.dtype.name)
    if isinstance(type_, (types.IntegerLiteral, types.BooleanLiteral)):
        return ("literal", type_.literal_value)
    if type_ in _TOKENS:
        return ("value", _TOKENS[type_])
    raise errors.TypingError(f"I.{operation.name}: a number, a bool or a dtype expected, got {type_}")


# --- one function per operation and argument dtypes ------------------------------------------------------------------------

class _Function:
    """LLVM text of ``result f(values...)`` in a library of its own."""

    def __init__(self, name: str, arguments: tuple):
        kernel = _kernel(name, arguments)
        self.operands = [i for i, (_, (kind, _)) in enumerate(arguments) if kind == "value"]
        self.result = kernel.params[-1].type.dt
        text = _emit(kernel)
        self.symbol = "intent_op_" + hashlib.sha256(text.encode()).hexdigest()[:24]
        from ..targets.cpu import compile_text
        self.library = compile_text(text.replace(_PLACEHOLDER, self.symbol), self.symbol, "none").library


@cache
def _function(name: str, arguments: tuple) -> _Function:
    return _Function(name, arguments)


def _kernel(name: str, arguments: tuple):
    """KIR of a kernel whose only statement is the call. Raises Numba's TypingError with the front end's message."""
    from .. import language
    from ..frontend import build_kernel
    dtype = _result(name, arguments)
    if dtype not in _NUMBA:
        raise errors.TypingError(f"I.{name}: Numba has no scalar of dtype {dtype}")
    values = {f"a{i}": token for i, (_, (kind, token)) in enumerate(arguments) if kind == "value"}
    passed = ", ".join(f"{parameter}={_text(i, argument)}" for i, (parameter, argument) in enumerate(arguments))
    source = (f"def {name}({''.join(f'{a}: I.{token}, ' for a, token in values.items())}result: I.Out[I.{dtype}, ()]):\n"
              f"    result[()] = I.{name}({passed})\n")
    scope = {"I": language}
    exec(source, scope)
    try:
        return build_kernel(scope[name], {}, "strict")
    except CompileError as e:
        raise errors.TypingError(f"I.{name}: {e.diagnostics[0].message}") from None


def _text(index: int, argument: tuple) -> str:
    kind, what = argument
    return {"value": f"a{index}", "literal": repr(what), "dtype": f"I.{what}"}[kind]


def _result(name: str, arguments: tuple) -> str:
    """The dtype asked for, else that of the operands; a leading condition does not count."""
    for _, (kind, token) in arguments:
        if kind == "dtype":
            return token
    tokens = [token for parameter, (kind, token) in arguments if kind == "value" and parameter not in ("condition", "cond", "valid")]
    return tokens[0] if tokens else "bool"


_PLACEHOLDER = "intent_op_placeholder"


def _emit(kernel) -> str:
    """The kernel's scalar operations as one function that returns what the kernel would store."""
    from ..targets.llvm import Module, Ops, Val, register_type
    module = Module()
    *operands, out = kernel.params
    result = register_type(out.type.dt)
    fn = module.function(_PLACEHOLDER, result, [(register_type(p.type.dt), f"a{i}") for i, p in enumerate(operands)])
    ops = Ops(fn)
    values = {p: Val(p.type.dt, f"%a{i}") for i, p in enumerate(operands)}
    for op in kernel.body.ops:
        if op.kind == "write":
            stored = values[op.args[-1]]
            fn.ret(stored.type, stored.text)
        elif op.kind == "const":
            values[op.result] = ops.const(op.attrs["value"], op.result.type.dt)
        elif op.kind in ELEMENTWISE:
            values[op.result] = ops.elementwise(op.kind, [values[a] for a in op.args], op.result.type.dt, op.attrs)
        else:                                                   # a scalar made a rank-zero tensor
            values[op.result] = values[op.args[0]]
    return module.text()


# --- lowering ------------------------------------------------------------------------------------------------------------

def _implementation(operation: Operation):
    def lower_call(context, builder, sig, args):
        function = _function(operation.name, _arguments(operation, sig.pysig.parameters, sig.args))
        context.active_code_library.add_linking_library(function.library)
        values = [context.cast(builder, args[i], sig.args[i], types.unliteral(sig.args[i])) for i in function.operands]
        declared = ir.FunctionType(context.get_value_type(sig.return_type), [v.type for v in values])
        return builder.call(cgutils.get_or_insert_function(builder.module, declared, function.symbol), values)
    return lower_call
