"""Which parameters does a kernel or helper have? Annotations are resolved as decision 48 says: against the function's
globals and closure, also when they are strings, and where dtypes come from an enclosing function."""
from __future__ import annotations

import ast
import inspect
import linecache
from dataclasses import dataclass
from types import FrameType

from ..errors import IntentNameError, IntentTypeError, LanguageError, diagnostic
from .annotations import ConstexprAnnotation, Enum, ViewAnnotation
from .dtypes import DType, dtype_hint

REQUIRED = inspect.Parameter.empty


@dataclass(frozen=True)
class Parameter:
    """``annotation`` is a ViewAnnotation, a DType (runtime scalar), a ConstexprAnnotation, or None (helpers only).
    ``default`` is REQUIRED when there is none."""
    name: str
    annotation: object
    default: object = REQUIRED
    keyword_only: bool = False

    @property
    def is_constexpr(self) -> bool:
        return isinstance(self.annotation, ConstexprAnnotation)


@dataclass(frozen=True)
class Signature:
    parameters: tuple[Parameter, ...]

    def __getitem__(self, name: str) -> Parameter:
        return next(p for p in self.parameters if p.name == name)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.parameters)

    @property
    def runtime(self) -> tuple[Parameter, ...]:
        """The parameters a call passes as arrays and scalars."""
        return tuple(p for p in self.parameters if not p.is_constexpr)

    @property
    def constexprs(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.parameters if p.is_constexpr)


def resolve_signature(pyfunc, helper: bool = False) -> Signature:
    """Parameters of a kernel (of a helper when ``helper``) with resolved annotations.

    Raises IntentTypeError for a missing or foreign annotation, IntentNameError for one that names nothing, LanguageError for
    ``*args`` and ``**kwargs``.
    """
    known = pyfunc.__dict__.get("__intent_signature__")
    if known is None:
        # Kept, because names of an enclosing function can be found only while it runs (see _callers).
        known = pyfunc.__intent_signature__ = _resolve_all(pyfunc, helper)
    return known


def _resolve_all(pyfunc, helper: bool) -> Signature:
    out = []
    for p in inspect.signature(pyfunc).parameters.values():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            raise LanguageError(_at(pyfunc, f"{pyfunc.__name__}: *args and **kwargs cannot be parameters"))
        annotation = None if p.annotation is p.empty else _resolve(pyfunc, p.name, p.annotation)
        if annotation is None and not helper:
            raise IntentTypeError(_at(pyfunc, f"{pyfunc.__name__}: parameter {p.name!r} has no annotation",
                                      'write I.In[I.f32, ("N",)], I.f32 for a runtime scalar, or I.Constexpr[int]', p.name))
        if annotation is not None and not isinstance(annotation, (ViewAnnotation, DType, ConstexprAnnotation)):
            if isinstance(annotation, type) and issubclass(annotation, Enum):
                hint = f"write I.Constexpr[{annotation.__name__}]"
            else:
                hint = dtype_hint(annotation) or "a view, a dtype or I.Constexpr[...] is expected"
            message = f"{pyfunc.__name__}: parameter {p.name!r} cannot be annotated with {annotation!r}"
            raise IntentTypeError(_at(pyfunc, message, hint, p.name))
        out.append(Parameter(p.name, annotation, p.default, p.kind is p.KEYWORD_ONLY))
    return Signature(tuple(out))


def _resolve(pyfunc, name: str, annotation):
    if not isinstance(annotation, str):
        return annotation
    scope = dict(pyfunc.__globals__)
    for cell_name, cell in zip(pyfunc.__code__.co_freevars, pyfunc.__closure__ or ()):
        try:
            scope[cell_name] = cell.cell_contents
        except ValueError:
            continue
    scope = {**_callers(pyfunc, annotation, scope), **scope}
    try:
        return eval(annotation, scope)
    except NameError as e:
        raise IntentNameError(_at(pyfunc, f"{pyfunc.__name__}: the annotation of {name!r} names something undefined: {e}",
                                  parameter=name)) from None
    except (TypeError, ValueError, AttributeError, SyntaxError) as e:
        raise IntentTypeError(_at(pyfunc, f"{pyfunc.__name__}: the annotation of {name!r} is wrong: {e}", parameter=name)) from None


def _callers(pyfunc, annotation: str, known: dict) -> dict:
    """Under ``from __future__ import annotations`` a local of the enclosing function that only annotations name is not in
    the closure. While that function still runs (the decorator is being applied) its frame has it."""
    import sys
    outer = pyfunc.__qualname__.rpartition(".<locals>.")[0].rpartition(".")[2]
    if not outer:
        return {}
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == outer and frame.f_globals is pyfunc.__globals__:
            return dict(frame.f_locals)
        frame = frame.f_back
    return {}


def _at(pyfunc, message: str, hint: str = "", parameter: str = ""):
    return diagnostic(parameter and parameter_loc(pyfunc, parameter) or function_loc(pyfunc), message, hint)


@dataclass(frozen=True)
class _FunctionLoc:
    file: str
    line: int
    col: int | None = None
    end_line: int | None = None
    end_col: int | None = None


def parameter_loc(pyfunc, name: str) -> _FunctionLoc | None:
    """Where the parameter stands in the source, None where there is no source."""
    code = pyfunc.__code__
    lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1:]
    try:
        block = inspect.getblock(lines)
        indent = len(block[0]) - len(block[0].lstrip())
        tree = ast.parse(("if 1:\n" if indent else "\n") + "".join(block)).body[0]
        function = tree.body[0] if isinstance(tree, ast.If) else tree
        arguments = function.args                               # type: ignore[attr-defined]
    except (SyntaxError, IndexError, AttributeError):
        return None
    for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        if a.arg == name:
            first = code.co_firstlineno - 2
            return _FunctionLoc(code.co_filename, first + a.lineno, a.col_offset, first + a.end_lineno, a.end_col_offset)
    return None


def function_loc(pyfunc) -> _FunctionLoc:
    code = pyfunc.__code__
    return _FunctionLoc(code.co_filename, code.co_firstlineno)
