"""Is this function legal, and what type has everything in it? Bytecode, statics, pruning, SSA, Numba's type inference.

A ``Session`` is one kernel's compilation: it specialises each helper once for each tuple of argument types and refuses
recursion. All independent type errors of a function are reported together.
"""
from __future__ import annotations

import os
import re
from dataclasses import dataclass

from numba.core import errors as nberrors
from numba.core import ir, target_extension, typeinfer, types

from ..errors import CompileError, IntentShapeError, IntentTypeError, LanguageError, UnsupportedError, diagnostic
from ..language.annotations import ConstexprAnnotation, ViewAnnotation
from ..language.dtypes import DType
from ..language.signature import function_loc
from ..typing import planned
from ..typing.active import ACTIVE
from ..typing.binding import Default, bind
from ..typing.context import (HelperT, IntentTarget, IntentTargetContext, IntentTypingContext, Mismatch, NjitT, OperationT, OperatorT)
from ..typing.merge import settles
from ..typing.operations import cast_hint, check_literal, operand_problem
from ..typing.policy import default_dtype
from ..typing.problems import Refusal, refuse
from ..typing.types import (Buffer, DTypeT, EllipsisT, EnumT, Lit, NamedFloat, NoneT, Scalar, Static, Tensor, Weak, describe, is_product,
                            items_of)
from .bytecode import kir_loc, to_ssa, untyped_ir
from .constexpr import prune, take
from .hints import FOREIGN, logic_hint, with_operand
from .literals import report_statics, resolve_statics
from .locals import joined_locals
from .logic import values_of_logic
from .structure import is_phi, names_read

TYPING = IntentTypingContext()
TARGET = IntentTargetContext(TYPING)


NOT_SUPPORTED = "this construct is not supported in a kernel"


@dataclass
class Typed:
    """A function specialised for argument types."""
    pyfunc: object
    func_ir: ir.FunctionIR
    args: tuple
    typemap: dict
    return_type: types.Type


class Session:
    """Types functions on demand; ``externs`` collects the ``@njit`` functions used."""

    def __init__(self, policy: str, shape_names: frozenset):
        self.policy, self.shape_names = policy, shape_names
        self.typed: dict = {}
        self.active: list = []
        self.externs: dict = {}

    def specialize(self, pyfunc, args: tuple) -> Typed:
        key = (pyfunc, args)
        found = self.typed.get(key)
        if found is None:
            if any(f is pyfunc for f, _ in self.active):
                refuse(f"{pyfunc.__name__} calls itself: recursion does not exist in the language", "write a loop", LanguageError)
            self.active.append(key)
            try:
                found = self.typed[key] = infer(self, pyfunc, args)
            finally:
                self.active.pop()
        return found

    def helper_arguments(self, helper, args, kws) -> tuple:
        """Argument types in parameter order, as the helper sees them."""
        params = helper.signature.parameters
        bound = bind(helper.__name__, _python_signature(helper), args, kws)
        return tuple(self._parameter(helper.__name__, p, TYPING.resolve_value_type(t.value) if isinstance(t, Default) else t)
                     for p, t in zip(params, bound))

    def _parameter(self, helper: str, p, t):
        what = f"{helper}: parameter {p.name!r}"
        match p.annotation:
            case ConstexprAnnotation(type=kind):
                return _constexpr_argument(what, kind, t)
            case DType(name=dt):
                operand_problem(what, t)
                if planned.promotes(t):
                    planned.plan(what, "store", (Scalar(dt), t))
                elif isinstance(t, Lit):
                    check_literal(what, t.value, dt)
                elif not (isinstance(t, Weak) and dt in ("index", "i64")) and getattr(t, "dt", None) != dt:
                    refuse(f"{what}: {dt} is expected, not {describe(t)}", cast_hint(t, dt))
                return Tensor(dt, t.rank) if isinstance(t, Tensor) else Scalar(dt)
            case ViewAnnotation(dtype=dtype, shape=shape):
                if getattr(t, "dt", None) != dtype.name or getattr(t, "rank", None) != len(shape):
                    refuse(f"{what}: {p.annotation!r} is expected, not {describe(t)}")
                return t
        if isinstance(t, Lit) and type(t.value) is float and not ACTIVE.policy.weak_floats:
            return NamedFloat(t.value)
        return t

    def helper_type(self, helper, args, kws):
        arguments = self.helper_arguments(helper, args, kws)
        try:
            typed = self.specialize(helper.pyfunc, arguments)
            if _holds_a_buffer(typed.return_type):
                raise LanguageError(diagnostic(returned_value_loc(typed),
                                               f"{helper.__name__}: a buffer lives where it is made and cannot be "
                                               "returned", "make it in the caller and pass it to the helper"))
            return typed.return_type
        except CompileError as e:
            raise Refusal(str(e), located=e) from None

    def njit_arguments(self, dispatcher, args, kws) -> tuple[str, ...]:
        """Dtypes of the scalar arguments, in parameter order."""
        import inspect
        name = dispatcher.py_func.__name__
        bound = bind(name, inspect.signature(dispatcher.py_func), args, kws)
        dts = []
        for t in bound:
            t = TYPING.resolve_value_type(t.value) if isinstance(t, Default) else t
            operand_problem(f"{name}: argument", t)
            if isinstance(t, Tensor):
                refuse(f"{name}: an @njit function takes scalars, not {describe(t)}", "call it in a loop over elements")
            dts.append(default_dtype(t.value) if isinstance(t, Lit) else "i64" if isinstance(t, Weak) else t.dt)
        return tuple(dts)

    def njit_type(self, dispatcher, args, kws):
        dts = self.njit_arguments(dispatcher, args, kws)
        name = dispatcher.py_func.__name__
        missing = [dt for dt in dts if dt not in NUMBA_OF]
        if missing:
            refuse(f"{name}: an @njit function cannot take {missing[0]}", "cast to f32 first")
        key = tuple(NUMBA_OF[dt] for dt in dts)
        try:
            with target_extension.target_override("cpu"):
                dispatcher.compile(key)
        except nberrors.NumbaError as e:
            refuse(f"{name}: Numba cannot compile it for ({', '.join(dts)}): {_reason(e)}")
        result = dispatcher.overloads[key].signature.return_type
        if isinstance(result, types.Literal):
            result = result.literal_type
        if result not in INTENT_OF:
            refuse(f"{name}: an @njit function must return a scalar, not {result}")
        return Scalar(INTENT_OF[result])


def _reason(e: nberrors.NumbaError) -> str:
    """The line of a Numba error that says what is wrong."""
    lines = [re.sub("\x1b\\[[0-9;]*m", "", line).strip() for line in str(e).splitlines()]
    return next((line for line in lines if line and not line.startswith("Failed in")), "it fails")


NUMBA_OF = {"bool": types.boolean, "index": types.int64, "i8": types.int8, "i16": types.int16, "i32": types.int32, "i64": types.int64,
            "u8": types.uint8, "u16": types.uint16, "u32": types.uint32, "u64": types.uint64, "f32": types.float32, "f64": types.float64}
INTENT_OF = {nb: dt for dt, nb in NUMBA_OF.items() if dt != "index"}


def _python_signature(helper):
    found = helper.__dict__.get("_python_signature")
    if found is None:
        import inspect
        found = helper._python_signature = inspect.signature(helper.pyfunc)
    return found


def _constexpr_argument(what: str, kind: type, t):
    if isinstance(t, EnumT) and isinstance(t.member, kind):
        return t
    if isinstance(t, (Lit, NamedFloat)):
        value = t.value
        if type(value) is kind:
            return Lit(value)
        if kind is float and type(value) is int:
            return Lit(float(value))
    refuse(f"{what}: a compile-time {kind.__name__} is expected, not {describe(t)}", "pass a literal or a Constexpr")


def static_value(t):
    """(True, object) when the type fixes the value, else (False, None)."""
    match t:
        case Lit():
            return True, t.value
        case NoneT():
            return True, None
        case DTypeT():
            return True, DType(t.dt)
        case EnumT():
            return True, t.member
        case HelperT() | OperationT() | OperatorT() | NjitT() | Static():
            return True, t.obj
        case EllipsisT():
            return True, Ellipsis
    return False, None


def infer(session: Session, pyfunc, args: tuple, deciding: bool = True) -> Typed:
    """Specialise one function. Branches whose conditions turn out to be literals are taken at once when ``deciding``."""
    func_ir = untyped_ir(pyfunc)
    if ACTIVE.policy.joins:
        values_of_logic(func_ir)
    known = {}
    for name, t in zip(func_ir.arg_names, args):
        static, value = static_value(t)
        if static:
            known[name] = value
    problems = resolve_statics(func_ir, known, session.shape_names)
    prune(func_ir)
    report_statics(func_ir, problems)
    to_ssa(func_ir)
    if ACTIVE.policy.joins:                             # the assignments of a dead branch have a say in a local's dtype
        typemap, return_type = _join_locals(func_ir, args, *_infer_types(func_ir, args))
        return Typed(pyfunc, func_ir, args, typemap, return_type)
    taken = _Taken() if deciding else None
    found = None
    while found is None:
        found = _infer_types(func_ir, args, taken=taken)
    typemap, return_type = found
    if taken is not None and not taken.still(typemap):
        return infer(session, pyfunc, args, deciding=False)
    return Typed(pyfunc, func_ir, args, typemap, return_type)


class _Taken:
    """Branches that inference has decided. Each was decided from what was known then, other branches taken among it, so what was
    decided must still hold in the end."""

    def __init__(self):
        self.truths: dict[str, bool] = {}

    def more(self, func_ir, inferer) -> bool:
        """Take the branches that are decided now; False when there are none."""
        decided = {}
        for label, block in func_ir.blocks.items():
            end = block.body[-1]
            if isinstance(end, ir.Branch):
                variable = inferer.typevars[end.cond.name]
                if variable.defined and isinstance(variable.type, Lit):
                    decided[label] = self.truths[end.cond.name] = bool(variable.type.value)
        if decided:
            take(func_ir, decided)
        return bool(decided)

    def still(self, typemap) -> bool:
        return all(isinstance(t, Lit) and bool(t.value) is truth
                   for t, truth in ((typemap.get(name), truth) for name, truth in self.truths.items()) if t is not None)


class _Constraints(typeinfer.ConstraintNetwork):
    """Numba's constraints, keeping the rules' own refusals."""

    def propagate(self, inferer):
        found = []
        for constraint in self.constraints:
            try:
                constraint(inferer)
            except nberrors.TypingError as e:
                e.at, e.constraint = constraint.loc, constraint
                found.append(e)
        return found


MAX_JOIN_ROUNDS = 8


def _join_locals(func_ir, args, typemap, return_type):
    """Give each local the one dtype that all its assignments have together, and infer again until that changes nothing."""
    declared: dict = {}
    for _ in range(MAX_JOIN_ROUNDS):
        wanted = joined_locals(func_ir, typemap)
        if all(declared.get(name) == t for name, t in wanted.items()):
            break
        declared.update(wanted)
        typemap, return_type = _infer_types(func_ir, args, declared)
    return typemap, return_type


class _Inferer(typeinfer.TypeInferer):
    """Numba's inference, with types for some variables given beforehand."""
    declared: dict = {}

    def declare(self, declared: dict) -> None:
        self.declared = declared
        for name, t in declared.items():
            self.add_type(name, t, loc=self.func_ir.loc)

    def lock_type(self, var, tp, loc, literal_value=typeinfer.NOTSET):
        super().lock_type(var, self.declared.get(var, tp), loc, literal_value)


def _infer_types(func_ir, args, declared=None, taken: _Taken | None = None):
    """(typemap, return type); None when branches were taken, so that types may be others."""
    warnings = nberrors.WarningsFixer(nberrors.NumbaWarning)
    inferer = _Inferer(TYPING, func_ir, warnings)
    inferer.constraints = _Constraints()
    with TYPING.callstack.register(IntentTarget, inferer, func_ir.func_id, args), warnings:
        for index, (name, t) in enumerate(zip(func_ir.arg_names, args)):
            inferer.seed_argument(name, index, t)
        try:
            inferer.build_constraint()
            inferer.declare(declared or {})
            found = inferer.propagate(raise_errors=False) or _settle(func_ir, inferer)
        except nberrors.NumbaError as e:
            found = [e]
        if taken is not None and taken.more(func_ir, inferer):
            return None
        if found:
            raise _report(func_ir, inferer, found)
        try:
            typemap, return_type, _ = inferer.unify(raise_errors=True)
        except Mismatch as e:
            loc = kir_loc(_last_return(func_ir))
            message = f"the returns of {func_ir.func_id.func_name} have no common schema: {e.message}"
            raise IntentTypeError(diagnostic(loc, message, e.hint)) from None
        except nberrors.NumbaError as e:
            raise _report(func_ir, inferer, [e]) from None
    return typemap, return_type


def _settle(func_ir, inferer) -> list:
    """Literals that one merge has made a run-time value take the dtype of the merge that it feeds. Gives the mistakes left: values
    that cannot stand for the type of their merge."""
    phis = {s.target.name: s for block in func_ir.blocks.values() for s in block.body if is_phi(s)}

    def unsettled():
        for name, phi in phis.items():
            for v in phi.value.incoming_values:
                if v is not ir.UNDEFINED and inferer.typevars[v.name].defined:
                    t, whole = inferer.typevars[v.name].type, inferer.typevars[name].type
                    if not settles(t, whole):
                        yield name, _through_copies(func_ir, v.name), v.name, whole, t
    while True:
        inner = [(source, whole) for _, source, _, whole, _ in unsettled() if source in phis]
        if not inner:
            break
        for source, whole in inner:
            inferer.add_type(source, whole, loc=phis[source].loc)
        found = inferer.propagate(raise_errors=False)
        if found:
            return found
    mistakes = []
    for name, _, incoming, whole, t in unsettled():
        e = Mismatch(whole, t)
        e.at, e.constraint = phis[name].loc, typeinfer.Propagate(name, incoming, phis[name].loc)
        mistakes.append(e)
    return mistakes


def _through_copies(func_ir, name: str) -> str:
    """The variable whose value ``name`` takes over from a temporary or from another version of itself."""
    while True:
        found = func_ir._definitions.get(name, ())
        if len(found) != 1 or not isinstance(found[0], ir.Var):
            return name
        source = found[0].name
        if not source.startswith("$") and source.split(".")[0] != name.split(".")[0]:
            return name
        name = source


def _holds_a_buffer(t) -> bool:
    return isinstance(t, Buffer) or is_product(t) and any(map(_holds_a_buffer, items_of(t)))


def returned_value_loc(typed: Typed):
    """Where a function returns something other than None."""
    func_ir = typed.func_ir
    for block in func_ir.blocks.values():
        for s in block.body:
            if isinstance(s, ir.Return) and s.loc.line > func_ir.func_id.firstlineno and _gives_value(func_ir, s.value.name):
                return kir_loc(s.loc)
    return kir_loc(_last_return(func_ir))


def _gives_value(func_ir, name: str) -> bool:
    found = _assignment(func_ir, name)
    if isinstance(found, ir.Expr) and found.op == "cast":
        found = _assignment(func_ir, found.value.name)
    return not (isinstance(found, ir.Const) and found.value is None)


def _last_return(func_ir):
    return [inst.loc for block in func_ir.blocks.values() for inst in block.body if isinstance(inst, ir.Return)][-1]


def _report(func_ir, inferer, found) -> CompileError:
    """One error with a diagnostic for each independent mistake, in source order."""
    entries = [entry for e in _independent(func_ir, found) for entry in _diagnose(func_ir, inferer, e)]
    entries = [entry for entry in entries if entry[1].message != NOT_SUPPORTED] or entries      # the others may follow from these
    seen, unique = set(), []
    for cls, d in sorted(entries, key=lambda entry: (entry[1].line or 0, entry[1].col or 0)):
        key = (d.line, d.col, d.message)
        if key not in seen:
            seen.add(key)
            unique.append((cls, d))
    return unique[0][0]([d for _, d in unique])


def _independent(func_ir, found) -> list:
    """Without what only follows from a name that has no schema."""
    tainted = {e.constraint.dst for e in found if isinstance(e, Mismatch) and getattr(e, "constraint", None) is not None}
    if not tainted:
        return found
    for _ in func_ir.blocks:
        before = len(tainted)
        for block in func_ir.blocks.values():
            tainted.update(s.target.name for s in block.body if isinstance(s, ir.Assign) and not tainted.isdisjoint(names_read(s)))
        if len(tainted) == before:
            break
    return [e for e in found if isinstance(e, Mismatch) or tainted.isdisjoint(_inputs(getattr(e, "constraint", None)))]


def _inputs(constraint) -> list[str]:
    """Names of the variables that a call or store reads."""
    match constraint:
        case typeinfer.CallConstraint():
            return [v.name for v in (*constraint.args, *dict(constraint.kws).values())]
        case typeinfer.SetItemConstraint():
            return [constraint.target.name, constraint.index.name, constraint.value.name]
    return []


def _operands(constraint) -> list[str]:
    """The operands that a hint may be about: of a store only the value."""
    return [constraint.value.name] if isinstance(constraint, typeinfer.SetItemConstraint) else _inputs(constraint)


def _diagnose(func_ir, inferer, e):
    loc = getattr(e, "at", None) or getattr(e, "loc", None)
    where = kir_loc(loc) if loc is not None else function_loc(func_ir.func_id.func)
    match e:
        case Mismatch():
            yield _mismatch(func_ir, inferer, e, where)
        case Refusal(located=None):
            yield e.cls, diagnostic(where, e.message, _quoting(func_ir, inferer, e, where))
        case Refusal(located=inner):
            for d in inner.diagnostics:
                yield type(inner), diagnostic(d.loc, d.message, d.hint, (*d.notes, (where, "called here")))
        case _:
            text = str(e)
            if os.environ.get("INTENT_DEBUG"):
                raise e
            if "unpack" in text or "wrong tuple length" in text:
                yield IntentShapeError, diagnostic(where, "this value does not have as many components as there are names", "")
            else:
                yield UnsupportedError, diagnostic(where, NOT_SUPPORTED, "")


def _quoting(func_ir, inferer, e: Refusal, where) -> str:
    """The hint of a refusal, with the author's own operands in it."""
    if e.message.startswith("a condition must be a bool scalar, not a bool tensor"):
        return logic_hint(where) or e.hint
    if isinstance(e.constraint, typeinfer.GetAttrConstraint):
        return FOREIGN.get(e.constraint.attr, e.hint)
    return with_operand(func_ir, inferer, _operands(e.constraint), e.hint, e.message)


def _mismatch(func_ir, inferer, cause: Mismatch, where):
    """A name that is two things: say which name, and point at the assignment that breaks the schema."""
    name = getattr(getattr(cause, "constraint", None), "dst", None)
    for phi in (s for block in func_ir.blocks.values() for s in block.body if is_phi(s) and s.target.name == name):
        incoming = [v for v in phi.value.incoming_values if v is not ir.UNDEFINED and inferer.typevars[v.name].defined]
        culprit = next((v for v in incoming if inferer.typevars[v.name].type == cause.second), None)
        if culprit is None:
            continue
        plain = phi.target.unversioned_name.split(".")[0]
        assignment = _assignment(func_ir, culprit.name)
        label = "the value" if plain.startswith("$") else repr(plain)
        return IntentTypeError, diagnostic(kir_loc(assignment.loc) if assignment is not None else where,
                                           f"{label} must keep one schema: {cause.message}", cause.hint)
    return IntentTypeError, diagnostic(where, f"a name must keep one schema: {cause.message}", cause.hint)


def _assignment(func_ir, name: str):
    """The statement or expression that gives a variable its value, through temporaries but not through names."""
    statements = {s.target.name: s for block in func_ir.blocks.values() for s in block.body if isinstance(s, ir.Assign)}
    found = statements.get(name)
    while found is not None and isinstance(found.value, ir.Var):
        if not found.value.name.startswith("$") and found.value.unversioned_name != found.target.unversioned_name:
            return found
        found = statements.get(found.value.name)
    return None if found is None else found.value
