"""Typing rules of operators and elementwise operations: which dtypes meet, what a literal becomes, what comes out.

A rule is a function of the bound argument types; it returns the result type or refuses with words for the author.
"""
from __future__ import annotations

import operator

from numba.core import types

from ..errors import LanguageError
from ..language.dtypes import dtype_hint
from . import planned
from .active import ACTIVE, plan_operation
from .policy import DOMAINS, POINTWISE, WIDTH, default_dtype, domain_of, literal_problem
from .problems import refuse
from .types import (BOOL, Buffer, Domain, DTypeT, EnumT, Lit, MergedFloat, NamedFloat, NoneT, Record, Scalar, Tensor, View, Weak,
                    WeakFloat, article, describe, dtype_of, is_tuple)

SYMBOL = {"add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "power": "**", "pow": "**", "and": "&",
          "or": "|", "xor": "^", "shl": "<<", "shr": ">>", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
          "neg": "unary -", "not": "~", "pos": "unary +"}

BINARY = {operator.add: "add", operator.sub: "sub", operator.mul: "mul", operator.truediv: "div", operator.floordiv: "floordiv",
          operator.mod: "mod", operator.pow: "**", operator.and_: "and", operator.or_: "or", operator.xor: "xor",
          operator.lshift: "shl", operator.rshift: "shr", operator.eq: "eq", operator.ne: "ne", operator.lt: "lt",
          operator.le: "le", operator.gt: "gt", operator.ge: "ge"}
INPLACE = {operator.iadd: operator.add, operator.isub: operator.sub, operator.imul: operator.mul,
           operator.itruediv: operator.truediv, operator.ifloordiv: operator.floordiv, operator.imod: operator.mod,
           operator.ipow: operator.pow, operator.iand: operator.and_, operator.ior: operator.or_, operator.ixor: operator.xor,
           operator.ilshift: operator.lshift, operator.irshift: operator.rshift}
UNARY = {operator.neg: "neg", operator.pos: "pos", operator.invert: "not"}

KIND_OF = {"subtract": "sub", "multiply": "mul", "fdiv": "div"}
"""Named operations whose KIR kind has another name."""

MAX_FOLDED_BITS = 4096


def operand_problem(what: str, t) -> None:
    """Refuse what is not a number or bool value."""
    match t:
        case View() | Buffer():
            refuse(f"{what}: {article(t)} is memory, not a value", "read it first, with one index for each axis: x[i], x[:, :]")
        case Domain():
            refuse(f"{what}: a {describe(t)} is not a value", "its coordinates are I.indices(d)")
        case EnumT():
            refuse(f"{what}: enum members have no arithmetic", "compare them with == or != within one enum type")
        case Record():
            refuse(f"{what}: a record is not a number", "select a field")
        case NoneT():
            refuse(f"{what}: None is not a value")
        case DTypeT():
            refuse(f"{what}: {describe(t)} is not a value", f"I.cast(x, I.{t.dt}) converts")
    if is_tuple(t):
        refuse(f"{what}: a tuple is not a number", "select a component")
    if isinstance(t, Lit) and isinstance(t.value, str):
        refuse(f"{what}: strings do not exist in a kernel")
    if not isinstance(t, (Scalar, Tensor, NamedFloat, Weak, WeakFloat, Lit)):
        refuse(f"{what}: {describe(t)} is not a value")


def cast_hint(t, dt: str) -> str:
    """The repair for a value of type ``t`` that should have dtype ``dt``."""
    if isinstance(t, (NamedFloat, Weak)):
        return f"write I.cast({t.value!r}, I.{dt})"
    return f"write I.cast(x, I.{dt})"


def common_dtype(what: str, args) -> str | None:
    """The one dtype of the operands; "weak" when only weak integers (and literals) meet; None for literals alone."""
    typed = [t for t in args if dtype_of(t) is not None]
    weak = [t for t in args if isinstance(t, Weak)]
    if typed:
        first = typed[0]
        for t in typed[1:]:
            if t.dt != first.dt:
                cause, target = (first, t) if isinstance(first, NamedFloat) or first.dt == "bool" else (t, first)
                refuse(f"{what}: {first.dt} and {t.dt} do not mix; there is no implicit promotion", cast_hint(cause, target.dt))
        for t in weak:
            if first.dt not in ("index", "i64"):
                refuse(f"{what}: an integer that control flow made a run-time value meets {first.dt}", cast_hint(t, first.dt))
        dt = first.dt
    elif weak:
        dt = "weak"
    else:
        return None
    for t in args:
        if isinstance(t, Lit):
            check_literal(what, t.value, "i64" if dt == "weak" else dt)
    return dt


def check_literal(what: str, value, dt: str) -> None:
    problem = literal_problem(value, dt)
    if problem:
        refuse(f"{what}: {problem}", _literal_hint(value, dt))


def _literal_hint(value, dt: str) -> str:
    if isinstance(value, bool):
        return "True and False are not numbers" if dt != "bool" else ""
    if dt == "bool":
        return "compare explicitly"
    if isinstance(value, float) and dt in DOMAINS["i"]:
        whole = value.is_integer()
        return f"write {int(value)}, or cast the other operand to a float" if whole else "cast the other operand to a float"
    return ""


def elementwise(kind: str, args, what: str | None = None):
    """Type of an elementwise operation of ``POINTWISE``."""
    what = what or SYMBOL.get(kind) or f"I.{kind}"
    for t in args:
        operand_problem(what, t)
    if planned.promotes(*args):
        return planned.elementwise(what, kind, args)
    dt = common_dtype(what, args)
    literals = all(isinstance(t, (Lit, MergedFloat)) for t in args)
    if dt is None:
        dts = {default_dtype(t.value) for t in args}
        if len(dts) > 1:
            refuse(f"{what}: the literals {', '.join(repr(t.value) for t in args)} have different kinds")
        dt = dts.pop()
    rule = POINTWISE[kind]
    real = "index" if dt == "weak" else dt
    if real not in domain_of(kind):
        refuse(f"{what} is not defined for {real}", _domain_hint(kind, real))
    if literals:
        return _of_literals("bool" if rule.result == "bool" else dt, args[0].value)
    if dt == "weak":
        return BOOL if rule.result == "bool" else Weak(min(t.value for t in args if isinstance(t, Weak)))
    return result_type("bool" if rule.result == "bool" else dt, args)


def _of_literals(dt: str, value):
    """A first run-time value without context: f64 or a 64-bit integer. While a loop is still being typed its carries may be
    literals, so the result gives way to the dtype that they turn out to have."""
    return MergedFloat(value) if dt == "f64" else Weak(value) if dt == "i64" else BOOL


def result_type(dt: str, args):
    tensors = [t.rank for t in args if isinstance(t, Tensor)]
    return Tensor(dt, max(tensors)) if tensors else Scalar(dt)


def _domain_hint(kind: str, dt: str) -> str:
    if kind == "div":
        return "/ divides floats: cast with I.cast(x, I.f32), or use // for floor division"
    if kind == "mod" and dt in DOMAINS["f"]:
        return "use I.remainder(x, y) for floats"
    if kind == "floordiv" and dt in DOMAINS["f"]:
        return "use I.floor_divide(x, y) for floats"
    if kind == "power":
        return "use I.pow for floats"
    if kind in ("and", "or", "xor", "shl", "shr") and dt in DOMAINS["f"]:
        return f"I.bitcast(x, I.i{WIDTH[dt]}) gives the bits"
    if dt == "bool":
        return "use & | ^ ~ on bool, or cast it, I.cast(x, I.i32)"
    if POINTWISE[kind].domain == "f":
        return "cast to a float first, I.cast(x, I.f32)"
    return ""


# --- operators -------------------------------------------------------------------------------------------------------

def binary(fn, a, b):
    kind = BINARY[fn]
    if isinstance(a, Lit) and isinstance(b, Lit):
        return _fold(SYMBOL.get(kind, kind), fn, a, b)
    if isinstance(a, EnumT) or isinstance(b, EnumT):
        return _enum_comparison(kind, a, b)
    if kind == "add" and is_tuple(a) and is_tuple(b):
        return types.Tuple(tuple(a.types) + tuple(b.types))
    if kind == "**":
        kind = "pow" if planned.promotes(a, b) or any(dtype_of(t) in DOMAINS["f"] for t in (a, b)) else "power"
    return elementwise(kind, (a, b))


def _fold(what: str, fn, *literals):
    """Constant expressions are Python's (decision 7)."""
    values = [t.value for t in literals]
    if any(isinstance(v, str) for v in values):
        refuse(f"{what}: strings do not exist in a kernel")
    if fn in (operator.pow, operator.lshift) and isinstance(values[1], int) and abs(values[1]) > MAX_FOLDED_BITS:
        refuse(f"{what}: the constant is too large")
    try:
        value = fn(*values)
    except (ArithmeticError, ValueError, TypeError) as e:
        refuse(f"{what} of {' and '.join(map(repr, values))}: {e}")
    if not isinstance(value, (bool, int, float)):
        refuse(f"{what} of {' and '.join(map(repr, values))} is not a bool, int or float")
    return Lit(value)


def _enum_comparison(kind: str, a, b):
    if kind not in ("eq", "ne"):
        refuse(f"{SYMBOL.get(kind, kind)}: enum members have no arithmetic and no order", "compare them with == or != within one enum type")
    if not (isinstance(a, EnumT) and isinstance(b, EnumT) and type(a.member) is type(b.member)):
        refuse(f"{SYMBOL[kind]}: {describe(a)} and {describe(b)} do not compare", "compare members of one enum type")
    return Lit((a.member is b.member) == (kind == "eq"))


def unary(fn, a):
    kind = UNARY[fn]
    if isinstance(a, Lit):
        if fn is operator.invert and isinstance(a.value, bool):
            return Lit(not a.value)
        return _fold(SYMBOL[kind], fn, a)
    if kind == "pos":
        operand_problem("unary +", a)
        if dtype_of(a) == "bool":
            refuse("unary + is not defined for bool")
        return a if not isinstance(a, NamedFloat) else Scalar("f64")
    return elementwise(kind, (a,))


def python_not(a):
    if isinstance(a, Lit):
        return Lit(not a.value)
    if isinstance(a, Scalar) and a.dt == "bool":
        return BOOL
    if isinstance(a, Tensor) and a.dt == "bool":
        refuse("not: a tensor has no single truth value", "write ~x or I.logical_not(x)")
    return truth(a)


def truth(a):
    """A condition: a bool scalar or a compile-time value (decision 5)."""
    if isinstance(a, Lit) and not isinstance(a.value, str):
        return a if isinstance(a.value, bool) else Lit(bool(a.value))
    if isinstance(a, Scalar) and a.dt == "bool" or isinstance(a, Scalar) and converts("condition", a.dt):
        return BOOL
    if isinstance(a, Tensor):
        refuse(f"a condition must be a bool scalar, not {article(a)}",
               "use I.select for elementwise choice, I.reduce.any or I.reduce.all to decide once")
    if isinstance(a, EnumT):
        refuse("an enum member has no truth value", "compare it with ==")
    refuse(f"a condition must be a bool scalar, not {describe(a)}", "compare explicitly, x != 0")


def converts(*operation) -> bool:
    """Whether the active policy converts operands and has a plan for this."""
    try:
        return ACTIVE.policy.promotes and plan_operation(operation[0], operation[1:]) is not None
    except (TypeError, NotImplementedError):
        return False


def identity_test(fn, a, b):
    if not (isinstance(a, NoneT) or isinstance(b, NoneT)):
        refuse("'is' compares with None only", "write == for values")
    return Lit((isinstance(a, NoneT) and isinstance(b, NoneT)) == (fn is operator.is_))


def no_operator(name: str, hint: str):
    def rule(*args):
        refuse(f"the operator {name} does not exist in the language", hint, LanguageError)
    return rule


def builtin(name: str, operation: str, arity: int | None, hint: str):
    """A builtin of Python that some policies know; ``arity`` None: two or more."""
    def rule(*args):
        if name not in ACTIVE.policy.builtins:
            refuse(f"Python's {name} cannot be used in a kernel", hint, LanguageError)
        if len(args) < 2 if arity is None else len(args) != arity:
            refuse(f"{name} takes {arity or '2 or more'} arguments, {len(args)} given")
        result = args[0] if arity is None else elementwise(operation, args, name)
        for t in args[1:] if arity is None else ():
            result = elementwise(operation, (result, t), name)
        return result
    return rule


BUILTINS = {min: ("min", "minimum_num", None, "use I.minimum or I.reduce.min"),
            max: ("max", "maximum_num", None, "use I.maximum or I.reduce.max"),
            abs: ("abs", "abs", 1, "use I.abs"), pow: ("pow", "pow", 2, "use I.pow or I.power")}
"""Builtin -> (name, operation, arity, what to write where the policy does not have it)."""


# --- named elementwise operations -----------------------------------------------------------------------------------

def named(name: str):
    """The rule of ``I.<name>`` for operations without options."""
    kind = KIND_OF.get(name, name)

    def rule(*args):
        return elementwise(kind, args, f"I.{name}")
    return rule


def option(what: str, name: str, t) -> bool:
    if not (isinstance(t, Lit) and isinstance(t.value, bool)):
        refuse(f"{what}: {name} must be a compile-time bool, not {describe(t)}")
    return t.value


def approximable(name: str, arity: int, ftz: bool):
    """fdiv, exp2 and tanh: options are compile-time, for f32 only, and flush_to_zero needs approximate (000 section 5.1)."""
    def rule(*args):
        operands, options = args[:arity], args[arity:]
        what = f"I.{name}"
        result = elementwise(KIND_OF.get(name, name), operands, what)
        approximate = option(what, "approximate", options[0])
        flush = option(what, "flush_to_zero", options[1]) if ftz else False
        if flush and not approximate:
            refuse(f"{what}: flush_to_zero needs approximate=True")
        if approximate and result.dt != "f32":
            refuse(f"{what}: approximate is for f32 only, not {result.dt}")
        return result
    return rule


def select(cond, a, b, what="I.select"):
    operand_problem(what, cond)
    if planned.promotes(cond, a, b):
        for t in (a, b):
            operand_problem(what, t)
        return planned.elementwise(what, "select", (cond, a, b))
    if not (dtype_of(cond) == "bool" or isinstance(cond, Lit) and isinstance(cond.value, bool)):
        refuse(f"{what}: the condition must be bool, not {describe(cond)}", "compare explicitly, x != 0")
    for t in (a, b):
        operand_problem(what, t)
    dt = common_dtype(what, (a, b))
    if dt is None:
        dts = {default_dtype(t.value) for t in (a, b)}
        if len(dts) > 1:
            refuse(f"{what}: the literals {a.value!r} and {b.value!r} have different kinds")
        dt = dts.pop()
    if dt == "weak" and not any(isinstance(t, Tensor) for t in (cond, a, b)):
        return Weak(min(t.value for t in (a, b) if isinstance(t, Weak)))
    return result_type("index" if dt == "weak" else dt, (cond, a, b))


def mask(value, valid, fill):
    return select(valid, value, fill, "I.mask")


def dtype_argument(what: str, t) -> str:
    if isinstance(t, NoneT):
        refuse(f"{what}: a dtype such as I.f32 is missing")
    if not isinstance(t, DTypeT):
        foreign = t.value if isinstance(t, Lit) else getattr(t, "obj", None)
        refuse(f"{what}: a dtype such as I.f32 expected, not {describe(t)}", dtype_hint(foreign))
    return t.dt


def cast(value, dtype, what="I.cast"):
    operand_problem(what, value)
    dt = dtype_argument(what, dtype)
    if planned.promotes(value) and what == "I.cast" and dtype_of(value):
        planned.plan(what, "cast", (value, Scalar(dt)))
    if isinstance(value, Lit) and not isinstance(value.value, bool):
        if isinstance(value.value, int) and literal_problem(value.value, dt) and literal_problem(value.value, "i64"):
            refuse(f"{what}: the literal {value.value!r} does not fit {dt}")
    return Tensor(dt, value.rank) if isinstance(value, Tensor) else Scalar(dt)


def saturating_cast(value, dtype):
    return cast(value, dtype, "I.saturating_cast")


def bitcast(value, dtype):
    result = cast(value, dtype, "I.bitcast")
    source = dtype_of(value) or ("index" if isinstance(value, Weak) else default_dtype(value.value))
    if "bool" in (source, result.dt):
        refuse("I.bitcast: bool has no bit pattern to reinterpret", "use I.cast")
    if WIDTH[source] != WIDTH[result.dt]:
        refuse(f"I.bitcast: {source} has {WIDTH[source]} bits and {result.dt} has {WIDTH[result.dt]}",
               "bitcast keeps the width; use I.cast to convert")
    return result


RULES = {
    **{name: named(name) for name in ("add", "subtract", "multiply", "floor_divide", "remainder", "power", "pow", "maximum", "minimum",
                                      "maximum_num", "minimum_num", "clamp", "relu", "logical_not", "fma", "abs", "exp", "log", "log1p",
                                      "lgamma", "sin", "asin", "cos", "floor", "ceil", "sqrt", "rsqrt", "erf", "erfc", "i0", "sigmoid")},
    "fdiv": approximable("fdiv", 2, True), "exp2": approximable("exp2", 1, True), "tanh": approximable("tanh", 1, False),
    "cast": cast, "saturating_cast": saturating_cast, "bitcast": bitcast, "select": select, "mask": mask,
}
