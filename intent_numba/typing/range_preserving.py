"""What do mixed dtypes become under ``range_preserving``? The promotion of spec 003 as plan rules; no Numba.

A promoted dtype holds every value of both operands, or the operation is refused; integers wrap at the width they have then. Integer
literals are i32, i64 or u64 by value, float literals take the float they meet. ``index`` counts as i64 and stays index among literals
and itself; bool counts as the i32 values 0 and 1 wherever a number is wanted. Spec: 003, SUPPLEMENT 11.
"""
from __future__ import annotations

from functools import reduce

from .plans import OperandRole, OperationOverload, OperationSpec, Policy, role_signatures, tensor_domains
from .policy import (CONFIGURABLE, DOMAINS, FLOATS, INTEGERS, POINTWISE, REDUCTIONS, SIGNED, WIDTH, cast_rule, conversion_specs,
                     in_name_order, int_range, literal_problem, literal_rule, make_plan, reduction_rule, reduction_spec,
                     refuse_accumulator, specs_of)

NUMBER_OF_BOOL = "i32"
"""What a bool is in arithmetic."""


def promote_pair(what: str, a: str, b: str) -> str:
    """The dtype that holds the values of both. Raises TypeError when no integer dtype does."""
    if a == b:
        return a
    if "bool" in (a, b):
        return promote_pair(what, *(NUMBER_OF_BOOL if x == "bool" else x for x in (a, b)))
    if a in FLOATS or b in FLOATS:
        return _float({x if x in FLOATS else "f32" for x in (a, b)})
    a, b = ("i64" if x == "index" else x for x in (a, b))
    if (a in SIGNED) == (b in SIGNED):
        return max(a, b, key=WIDTH.get)
    signed, unsigned = (a, b) if a in SIGNED else (b, a)
    bits = max(WIDTH[signed], 2 * WIDTH[unsigned])
    if bits > 64:
        raise TypeError(f"{what}: no integer dtype holds the values of both {a} and {b}; "
                        f"use an explicit integer cast, I.cast(x, I.{signed})")
    return f"i{bits}"


def literal_dtype(value) -> str:
    """A literal that meets nothing: bool, the integer dtype of its value, f32. Raises TypeError for an integer beyond 64 bits."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, float):
        return "f32"
    for dt in ("i32", "i64", "u64"):
        low, high = int_range(dt)
        if low <= value <= high:
            return dt
    raise TypeError(f"the literal {value!r} fits neither i64 nor u64")


def promote(what: str, operands) -> str:
    """The common dtype of dtypes and literals; float literals count only where no operand is a float. Raises TypeError."""
    dts = [x for x in operands if isinstance(x, str)]
    if any(x in FLOATS for x in dts):
        integral = any(x not in FLOATS if isinstance(x, str) else isinstance(x, int) for x in operands)
        dt = _float({x for x in dts if x in FLOATS} | ({"f32"} if integral else set()))
    elif any(isinstance(x, float) for x in operands):
        dt = "f32"
    else:
        dt = reduce(lambda x, y: promote_pair(what, x, y), dts) if dts else None
        for own in (literal_dtype(x) for x in operands if isinstance(x, int)):
            if dt != "index" or own == "u64":
                dt = own if dt is None else promote_pair(what, dt, own)
    for x in operands:
        problem = literal_problem(x, dt) if isinstance(x, float) else None
        if problem:
            raise TypeError(f"{what}: {problem}")
    return dt


def _float(dts: set) -> str:
    """The float dtype for operands of these: a narrow one only among itself."""
    return next(iter(dts)) if len(dts) == 1 else "f64" if "f64" in dts else "f32"


def number(what: str, operands) -> str:
    """Like promote, but never bool."""
    dt = promote(what, operands)
    return NUMBER_OF_BOOL if dt == "bool" else dt


def floating(what: str, operands) -> str:
    """Functions of floats: integers alone give f32."""
    floats = any(x in FLOATS if isinstance(x, str) else isinstance(x, float) for x in operands)
    return promote(what, operands) if floats else "f32"


def integer(what: str, operands) -> str:
    dt = number(what, operands)
    if dt not in INTEGERS:
        raise TypeError(f"{what} is not defined for {dt}; use an explicit cast, or the operation on floats")
    return dt


def _computed_in(choose, result: str = "same"):
    """Operands are converted to one dtype, and the result has it."""
    def rule(name):
        def resolve(operands, accumulator):
            refuse_accumulator(name, accumulator)
            dt = choose(name, operands)
            return make_plan(name, operands, dt, "bool" if result == "bool" else dt)
        return resolve
    return rule


def _bits(name):
    """Bitwise on integers, logical on bools."""
    def resolve(operands, accumulator):
        refuse_accumulator(name, accumulator)
        dt = promote(name, operands)
        if dt in FLOATS:
            raise TypeError(f"{name} is not defined for {dt}")
        return make_plan(name, operands, dt, dt)
    return resolve


def _equality(name):
    def resolve(operands, accumulator):
        refuse_accumulator(name, accumulator)
        return make_plan(name, operands, promote(name, operands), "bool")
    return resolve


def _shift(name):
    """The left operand's dtype; the count does not widen it."""
    def resolve(operands, accumulator):
        refuse_accumulator(name, accumulator)
        integer(name, operands[1:])
        dt = integer(name, operands[:1])
        return make_plan(name, operands, dt, dt)
    return resolve


def _power(name):
    """Of integers: the base's dtype, the exact power modulo 2^N, computed in 64 bits so that the exponent keeps its value."""
    def resolve(operands, accumulator):
        refuse_accumulator(name, accumulator)
        kinds = [promote(name, (x,)) for x in operands]
        if any(k in FLOATS for k in kinds):
            if name == "power":
                integer(name, operands)
            dt = floating(name, operands)
            return make_plan(name, operands, dt, dt)
        if isinstance(operands[1], int) and operands[1] < 0:
            raise TypeError(f"{name}: a negative exponent of an integer; cast the base to a float, I.cast(x, I.f32)")
        return make_plan(name, operands, "i64", integer(name, operands[:1]))
    return resolve


def _logical_not(name):
    def resolve(operands, accumulator):
        refuse_accumulator(name, accumulator)
        return make_plan(name, operands, "bool", "bool")
    return resolve


RULES = {
    **{name: _computed_in(floating) for name, rule in POINTWISE.items() if rule.domain == "f"},
    **{name: _computed_in(number) for name in ("add", "sub", "mul", "floordiv", "mod", "neg", "abs", "maximum", "minimum", "maximum_num",
                                               "minimum_num", "clamp", "relu")},
    **{name: _bits for name in ("and", "or", "xor", "not")}, **{name: _equality for name in ("eq", "ne")},
    **{name: _computed_in(number, "bool") for name in ("lt", "le", "gt", "ge")}, "shl": _shift, "shr": _shift, "power": _power,
    "pow": _power, "logical_not": _logical_not,
}
"""Rule maker of every elementwise operation."""


def _select(operands, accumulator):
    refuse_accumulator("select", accumulator)
    dt = promote("select", operands[1:])
    return make_plan("select", operands, ["bool", dt, dt], dt)


def _store(operands, accumulator):
    """store(destination, value): integers wrap; whatever would lose part of a float needs a cast."""
    refuse_accumulator("store", accumulator)
    dt, value = operands
    source = promote("store", (value,)) if isinstance(value, str) else literal_dtype(value)
    if isinstance(value, float):
        if dt not in FLOATS or literal_problem(value, dt):
            raise TypeError(f"store: {literal_problem(value, dt)}")
    elif source in FLOATS and dt != source and (dt not in FLOATS or not _holds(dt, source)):
        raise TypeError(f"store: {source} does not fit {dt} without loss; use an explicit cast, I.cast(x, I.{dt})")
    return make_plan("store", operands, dt, dt)


def _holds(wide: str, narrow: str) -> bool:
    """Whether every value of one float dtype is a value of the other."""
    order = {"f8e4m3fn": 0, "f8e5m2": 0, "f16": 1, "bf16": 1, "f32": 2, "f64": 3}
    return order[wide] > order[narrow]


def _join(operands, accumulator):
    """join(value, value): the dtype of a local is that of all its assignments."""
    refuse_accumulator("join", accumulator)
    dt = promote("join", operands)
    return make_plan("join", operands, dt, dt)


def _condition(operands, accumulator):
    """A number is true unless it is zero; NaN is true."""
    refuse_accumulator("condition", accumulator)
    return make_plan("condition", operands, "bool", "bool")


def _reduced(rule):
    """Dtype of a reduction's terms: bools are numbers, or conditions where the reduction is logical."""
    return (lambda what, operands: "bool") if rule.domain == "b" else number


def make_policy() -> Policy:
    every, tensor = DOMAINS["nb"], OperandRole.TENSOR
    specs = specs_of({name: (rule.arity, RULES[name](name)) for name, rule in POINTWISE.items()}, lambda name: every)
    specs += [reduction_spec(name, rule, reduction_rule(name, rule, _reduced(rule)), every) for name, rule in REDUCTIONS.items()]
    specs.append(OperationSpec("select", tuple(OperationOverload((tensor, *roles), _select, (every, *tensor_domains(roles, every)))
                                               for roles in role_signatures(2))))
    specs += conversion_specs(cast_rule, _store, _join, _condition, literal_rule(literal_dtype))
    return Policy("range_preserving", in_name_order(specs), promotes=True, weak_floats=True, joins=True, default_float="f32",
                  tensor_dtypes=tuple(WIDTH), weak_probes=(1, 1 << 40, 0.5, True), accumulators=tuple(WIDTH), configurable=CONFIGURABLE,
                  builtins=frozenset({"min", "max", "abs", "pow"}))
