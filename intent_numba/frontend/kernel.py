"""A kernel function and its Constexprs in, verified KIR out: the front end's only entry."""
from __future__ import annotations

import os

from numba.core import target_extension, types
from numba.core.compiler_lock import global_compiler_lock

from .. import kir
from ..errors import CompileError, IntentError, IntentTypeError, LanguageError, UnsupportedError, diagnostic
from ..kir import Value, shape_of
from ..language.annotations import ConstexprAnnotation, Enum, ViewAnnotation
from ..language.signature import REQUIRED, function_loc, resolve_signature
from ..typing.active import policy_in_force
from ..typing.problems import Refusal
from ..typing.types import EnumT, Lit, NoneT, Scalar, View, describe
from .build import FunctionBuilder, front
from .cleanup import drop_dead
from .emitter import Emitter
from .outs import check_outs
from .pipeline import TYPING, Session, returned_value_loc


def build_kernel(pyfunc, constexprs: dict | None = None, policy: str = "strict", obligations: bool = False) -> kir.Kernel:
    """The KIR of a kernel function, specialised for its Constexpr values. ``obligations``: for a rehearsal, with checks of what no other
    operation shows, such as an assumption or sparse metadata.

    Raises a ``CompileError`` for every illegal program; an unexpected failure inside is an ``UnsupportedError`` at the statement that
    was being compiled (set INTENT_DEBUG to see its cause).
    """
    signature = resolve_signature(pyfunc)
    values = constexpr_values(pyfunc, signature, constexprs or {})
    shape_names = frozenset(s for p in signature.parameters if isinstance(p.annotation, ViewAnnotation)
                            for s in p.annotation.shape if isinstance(s, str))
    session, emitter = Session(policy, shape_names), None
    dtypes = tuple(p.annotation.dtype.name for p in signature.runtime if isinstance(p.annotation, ViewAnnotation))
    with global_compiler_lock, target_extension.target_override("intent"), policy_in_force(policy, dtypes):
        previous, TYPING.session = TYPING.session, session
        try:
            typed = session.specialize(pyfunc, tuple(_argument_type(p, values) for p in signature.parameters))
            if not isinstance(typed.return_type, (NoneT, types.NoneType)):
                raise LanguageError(diagnostic(returned_value_loc(typed), f"{pyfunc.__name__}: a kernel returns nothing, this one returns "
                                               f"{describe(typed.return_type)}", "write results to Out views"))
            params = {p.name: Value(p.name, _parameter_type(p.annotation)) for p in signature.runtime}
            emitter = Emitter(pyfunc.__name__, params.values(), policy, obligations)
            args = [front(values[p.name]) if p.is_constexpr else params[p.name] for p in signature.parameters]
            FunctionBuilder(session, emitter, typed, args).build()
            kernel = emitter.b.kernel
            kernel.externs.update(session.externs)
            drop_dead(kernel.body, obligations)
            check_outs(kernel, typed.func_ir, emitter.private)
            return _verified(kernel)
        except IntentError:
            raise
        except Refusal as e:
            raise _from_refusal(e, emitter, pyfunc) from None
        except RecursionError:
            raise UnsupportedError(diagnostic(function_loc(pyfunc), f"{pyfunc.__name__}: helpers or expressions nest too deeply",
                                              "join some of the helpers that call one another")) from None
        except Exception:
            if os.environ.get("INTENT_DEBUG"):
                raise
            where = emitter.b.loc if emitter is not None and emitter.b.loc is not None else function_loc(pyfunc)
            raise UnsupportedError(diagnostic(where, "this construct is not supported in a kernel",
                                              "set INTENT_DEBUG=1 to see where the compiler stopped")) from None
        finally:
            TYPING.session = previous


def _from_refusal(e: Refusal, emitter, pyfunc) -> CompileError:
    if e.located is not None:
        return e.located
    where = emitter.b.loc if emitter is not None and emitter.b.loc is not None else function_loc(pyfunc)
    return e.cls(diagnostic(where, e.message, e.hint))


def _verified(kernel: kir.Kernel) -> kir.Kernel:
    from ..kir.verify import verify
    return verify(kernel)


def constexpr_values(pyfunc, signature, given: dict) -> dict:
    """Values of the Constexpr parameters, defaults applied. Raises IntentTypeError for wrong kinds and missing values."""
    out = {}
    for name in given:
        if name not in signature.names or not signature[name].is_constexpr:
            raise IntentTypeError(diagnostic(function_loc(pyfunc), f"{pyfunc.__name__} has no Constexpr parameter {name!r}"))
    for p in signature.constexprs:
        value = given.get(p.name, p.default)
        if value is REQUIRED:
            raise IntentTypeError(diagnostic(function_loc(pyfunc), f"{pyfunc.__name__}: the Constexpr {p.name!r} has no value",
                                             f"give it by keyword, {p.name}=..."))
        kind = p.annotation.type
        if kind is float and type(value) is int:
            value = float(value)
        if not isinstance(value, kind) or kind in (int, float) and type(value) is bool:
            message = f"{pyfunc.__name__}: the Constexpr {p.name!r} must be {kind.__name__}, got {value!r}"
            raise IntentTypeError(diagnostic(function_loc(pyfunc), message))
        out[p.name] = value
    return out


def _argument_type(p, values):
    match p.annotation:
        case ViewAnnotation(access=access, dtype=dtype, shape=shape):
            return View(dtype.name, len(shape), access)
        case ConstexprAnnotation():
            value = values[p.name]
            return EnumT(value) if isinstance(value, Enum) else Lit(value)
    return Scalar(p.annotation.name)


def _parameter_type(annotation):
    if isinstance(annotation, ViewAnnotation):
        c = annotation.constraints
        return kir.View(annotation.dtype.name, shape_of(*annotation.shape), annotation.access, c.alias, c.noalias, c.strides)
    return kir.Scalar(annotation.name)
