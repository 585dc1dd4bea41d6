"""Which dtypes does an operation take, what does it give, and in which arithmetic? Immutable data, no Numba.

One table says it per operation; typing rules consult it, and the plans of spec 004 (one record per operand, arithmetic,
accumulation, result) are resolved from it. Spec: 004, 000 sections 3 to 6, SUPPLEMENT 10 and 11.
"""
from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

from .plans import (Accumulation, Arithmetic, OperandPlan, OperandRole, OperationOverload, OperationPlan, OperationSpec, Policy,
                    enumerate_operands, resolve, role_signatures, tensor_domains)

__all__ = ["Accumulation", "Arithmetic", "OperandPlan", "OperandRole", "OperationExecutionOptions", "OperationOverload", "OperationPlan",
           "OperationSpec", "Policy", "operation_execution_options",
           "plan_accumulator_variants", "policy_named", "registered_operations", "resolvable_plans", "resolve_operation_plan"]

FLOATS = ("f16", "bf16", "f32", "f64", "f8e4m3fn", "f8e5m2")
SIGNED = ("i8", "i16", "i32", "i64", "index")
UNSIGNED = ("u8", "u16", "u32", "u64")
INTEGERS = SIGNED + UNSIGNED
NUMERIC = INTEGERS + FLOATS
BOOL = ("bool",)
WIDTH = {"bool": 8, "index": 64, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "u8": 8, "u16": 16, "u32": 32, "u64": 64,
         "f16": 16, "bf16": 16, "f32": 32, "f64": 64, "f8e4m3fn": 8, "f8e5m2": 8}
DOMAINS = {"n": NUMERIC, "f": FLOATS, "i": INTEGERS, "b": BOOL, "ib": INTEGERS + BOOL, "nb": NUMERIC + BOOL}


@dataclass(frozen=True)
class Pointwise:
    """An elementwise rule: ``domain`` names the operand dtypes (a key of DOMAINS), ``result`` is same or bool."""
    arity: int
    domain: str
    result: str = "same"


POINTWISE: dict[str, Pointwise] = {
    "add": Pointwise(2, "n"), "sub": Pointwise(2, "n"), "mul": Pointwise(2, "n"), "div": Pointwise(2, "f"),
    "floordiv": Pointwise(2, "i"), "mod": Pointwise(2, "i"), "floor_divide": Pointwise(2, "f"), "remainder": Pointwise(2, "f"),
    "power": Pointwise(2, "i"), "pow": Pointwise(2, "f"), "neg": Pointwise(1, "n"), "abs": Pointwise(1, "n"),
    "fma": Pointwise(3, "f"), "and": Pointwise(2, "ib"), "or": Pointwise(2, "ib"), "xor": Pointwise(2, "ib"),
    "not": Pointwise(1, "ib"), "shl": Pointwise(2, "i"), "shr": Pointwise(2, "i"),
    "eq": Pointwise(2, "nb", "bool"), "ne": Pointwise(2, "nb", "bool"), "lt": Pointwise(2, "n", "bool"),
    "le": Pointwise(2, "n", "bool"), "gt": Pointwise(2, "n", "bool"), "ge": Pointwise(2, "n", "bool"),
    "maximum": Pointwise(2, "n"), "minimum": Pointwise(2, "n"), "maximum_num": Pointwise(2, "n"),
    "minimum_num": Pointwise(2, "n"), "clamp": Pointwise(3, "n"), "relu": Pointwise(1, "n"),
    "logical_not": Pointwise(1, "b", "bool"),
    **{name: Pointwise(1, "f") for name in ("exp", "exp2", "log", "log1p", "lgamma", "sin", "asin", "cos", "tanh", "floor", "ceil",
                                            "sqrt", "rsqrt", "erf", "erfc", "i0", "sigmoid")},
}

WIDEN = {"i8": "i32", "i16": "i32", "u8": "u32", "u16": "u32", "f8e4m3fn": "f32", "f8e5m2": "f32", "f16": "f32", "bf16": "f32"}
"""Accumulator of sum, prod and cumsum where none is given; other dtypes keep themselves."""


def widen(dt: str) -> str:
    return WIDEN.get(dt, dt)


def accumulator_problem(operand: str, acc: str) -> str | None:
    """Why ``acc`` cannot accumulate ``operand`` (decision 23), or None when it can."""
    if operand == "bool" or acc == "bool":
        return "bool cannot be accumulated"
    if operand in FLOATS and acc not in FLOATS:
        return f"a float operand of {operand} needs a float accumulator"
    if operand not in FLOATS and acc in FLOATS:
        return None
    if WIDTH[acc] < WIDTH[operand]:
        return f"an accumulator must not be narrower than its operand {operand}"
    return None


# --- literals (SUPPLEMENT 3, decision 6) ----------------------------------------------------------------------------

@dataclass(frozen=True)
class FloatFormat:
    """Stored significand bits, least and greatest exponents of normal numbers, largest finite value."""
    bits: int
    low: int
    high: int
    largest: float


FORMATS = {
    "f64": FloatFormat(52, -1022, 1023, 1.7976931348623157e308), "f32": FloatFormat(23, -126, 127, 3.4028234663852886e38),
    "f16": FloatFormat(10, -14, 15, 65504.0), "bf16": FloatFormat(7, -126, 127, 3.3895313892515355e38),
    "f8e4m3fn": FloatFormat(3, -6, 8, 448.0), "f8e5m2": FloatFormat(2, -14, 15, 57344.0),
}


def int_range(dt: str) -> tuple[int, int]:
    n = WIDTH[dt]
    return (-(1 << n - 1), (1 << n - 1) - 1) if dt in SIGNED else (0, (1 << n) - 1)


def round_float(value: float, dt: str) -> float:
    """``value`` rounded to nearest even in ``dt``; infinity where that overflows."""
    if value == 0 or math.isinf(value) or math.isnan(value) or dt == "f64":
        return value
    f = FORMATS[dt]
    exponent = max(math.frexp(value)[1] - 1, f.low) - f.bits
    rounded = math.ldexp(round(math.ldexp(value, -exponent)), exponent)
    return math.copysign(math.inf, value) if abs(rounded) > f.largest else math.copysign(rounded, value)


def literal_problem(value, dt: str) -> str | None:
    """Why the literal cannot be of dtype ``dt``, or None when it can."""
    if isinstance(value, str):
        return f"a string cannot be a value of {dt}"
    if isinstance(value, bool) or dt == "bool":
        return None if isinstance(value, bool) and dt == "bool" else f"the literal {value!r} cannot be {_article(dt)}"
    if isinstance(value, int):
        if dt in FLOATS:
            if abs(value) <= 1 << FORMATS[dt].bits + 1:
                exact = abs(value) <= FORMATS[dt].largest
            else:
                exact = abs(value) <= FORMATS[dt].largest and _exact_int(value, FORMATS[dt])
            return None if exact else f"the literal {value!r} is not exact in {dt}"
        low, high = int_range(dt)
        return None if low <= value <= high else f"the literal {value!r} does not fit {dt} ({low} .. {high})"
    if dt not in FLOATS:
        return f"the float literal {value!r} cannot be {_article(dt)}"
    if math.isinf(value):
        return f"{dt} has no infinity" if dt == "f8e4m3fn" else None
    return f"the literal {value!r} overflows {dt}" if math.isinf(round_float(value, dt)) else None


def _exact_int(value: int, f: FloatFormat) -> bool:
    magnitude = abs(value)
    return magnitude.bit_length() - (magnitude & -magnitude).bit_length() <= f.bits


def _article(dt: str) -> str:
    return ("an " if dt[0] in "aif" else "a ") + dt


def literal_value(value, dt: str):
    """The literal as it is stored in ``dt``: a bool, an exact int, or a rounded float."""
    return round_float(float(value), dt) if dt in FLOATS else value


def default_dtype(value) -> str:
    """Dtype of a literal that meets nothing."""
    return "bool" if isinstance(value, bool) else "i64" if isinstance(value, int) else "f64"


@cache
def domain_of(operation: str) -> frozenset[str]:
    return frozenset(DOMAINS[POINTWISE[operation].domain])


@dataclass(frozen=True)
class Reduction:
    """A reducing operation: operand domain, how floats and integers accumulate, whether the default widens."""
    operands: int
    domain: str
    floating: Accumulation | None
    integral: Accumulation | None
    widens: bool = False
    configurable: bool = False
    output: str = "accumulator"


REDUCTIONS: dict[str, Reduction] = {
    "reduce_sum": Reduction(1, "n", Accumulation.TREE, Accumulation.MODULAR_SUM, True, True),
    "reduce_prod": Reduction(1, "n", Accumulation.TREE_PRODUCT, Accumulation.MODULAR_PRODUCT, True, True),
    "reduce_max": Reduction(1, "n", Accumulation.MAXIMUM, Accumulation.MAXIMUM, configurable=True),
    "reduce_min": Reduction(1, "n", Accumulation.MINIMUM, Accumulation.MINIMUM, configurable=True),
    "reduce_any": Reduction(1, "b", None, Accumulation.DISJUNCTION),
    "reduce_all": Reduction(1, "b", None, Accumulation.CONJUNCTION),
    "arg_reduce_max": Reduction(1, "n", Accumulation.ARGMAX, Accumulation.ARGMAX, output="index"),
    "arg_reduce_min": Reduction(1, "n", Accumulation.ARGMIN, Accumulation.ARGMIN, output="index"),
    "cumsum": Reduction(1, "n", Accumulation.PREFIX, Accumulation.MODULAR_SUM, True, True),
    "cummax": Reduction(1, "n", Accumulation.PREFIX_MAXIMUM, Accumulation.PREFIX_MAXIMUM, configurable=True),
    "contract": Reduction(2, "n", Accumulation.CONTRACTION, Accumulation.MODULAR_SUM, configurable=True),
    "matmul": Reduction(2, "n", Accumulation.CONTRACTION, Accumulation.MODULAR_SUM, configurable=True),
}
"""dot, matvec, vecmat and outer contractions have the plan of contract."""

CONFIGURABLE = frozenset(name for name, rule in REDUCTIONS.items() if rule.configurable)
WEAK_SCALAR_PROBES = (1, 0.5, True)


def arithmetic(dt: str) -> Arithmetic:
    """The arithmetic of a dtype where nothing narrower is said."""
    return Arithmetic.IEEE if dt in FLOATS else Arithmetic.LOGICAL if dt == "bool" else Arithmetic.MODULAR


def operand_plans(operands, convert_to) -> tuple[OperandPlan, ...]:
    """Plans of operands that are all computed in one dtype, or in the dtypes of a sequence."""
    targets = [convert_to] * len(operands) if isinstance(convert_to, str) else convert_to
    return tuple(OperandPlan(OperandRole.TENSOR, x, c) if isinstance(x, str) else OperandPlan(OperandRole.WEAK_SCALAR, None, c)
                 for x, c in zip(operands, targets))


def make_plan(name: str, operands, convert_to, output: str, accumulation=None, accumulator=None, compute=None) -> OperationPlan:
    """A plan; its arithmetic is that of the last operand's compute dtype unless given."""
    plans = operand_plans(operands, convert_to)
    return OperationPlan(name, plans, compute or arithmetic(plans[-1].convert_to), accumulation, accumulator, output)


def refuse_accumulator(name: str, accumulator) -> None:
    if accumulator is not None:
        raise TypeError(f"{name} accumulates nothing")


def fit_literals(name: str, operands, dt: str) -> None:
    """Raises for a literal that cannot have dtype ``dt``: OverflowError where its value is too large, else TypeError."""
    for x in operands:
        problem = None if isinstance(x, str) else literal_problem(x, dt)
        if problem:
            raise (OverflowError if "fit" in problem or "overflow" in problem else TypeError)(f"{name}: {problem}")


# --- the strict policy: dtypes are equal, nothing converts -------------------------------------------------------------

def _equal(name: str, operands) -> str:
    dts = {x for x in operands if isinstance(x, str)}
    if len(dts) > 1:
        raise TypeError(f"{name}: {' and '.join(sorted(dts))} do not mix; there is no implicit promotion")
    return dts.pop()


def _pointwise_rule(name: str, rule: Pointwise):
    def resolve_rule(operands, accumulator):
        refuse_accumulator(name, accumulator)
        dt = _equal(name, operands)
        if dt not in DOMAINS[rule.domain]:
            raise TypeError(f"{name} is not defined for {dt}")
        fit_literals(name, operands, dt)
        return make_plan(name, operands, dt, "bool" if rule.result == "bool" else dt)
    return resolve_rule


def _select_rule(operands, accumulator):
    refuse_accumulator("select", accumulator)
    cond, *branches = operands
    if cond != "bool":
        raise TypeError(f"select: the condition must be bool, not {cond}")
    dt = _equal("select", branches)
    fit_literals("select", branches, dt)
    return make_plan("select", operands, ["bool", dt, dt], dt)


def reduction_rule(name: str, rule: Reduction, promote=_equal):
    """``promote(name, operands)`` gives the dtype of the terms."""
    def resolve_rule(operands, accumulator):
        dt = promote(name, operands)
        if dt not in DOMAINS[rule.domain]:
            raise TypeError(f"{name} is not defined for {dt}")
        acc = accumulator or (widen(dt) if rule.widens else dt)
        if accumulator is not None:
            problem = accumulator_problem(dt, acc) if rule.configurable else "its accumulator is fixed"
            if problem:
                raise TypeError(f"{name}: {problem}")
        kind = rule.floating if acc in FLOATS else rule.integral
        return make_plan(name, operands, acc, "index" if rule.output == "index" else acc, kind, acc)
    return resolve_rule


def reduction_spec(name: str, rule: Reduction, resolve_rule, domain) -> OperationSpec:
    return OperationSpec(name, (OperationOverload((OperandRole.TENSOR,) * rule.operands, resolve_rule, (domain,) * rule.operands),))


def cast_rule(operands, accumulator):
    """cast(value, destination): any dtype to any."""
    refuse_accumulator("cast", accumulator)
    return make_plan("cast", operands, operands[1], operands[1])


def _store_rule(operands, accumulator):
    """store(destination, value)."""
    refuse_accumulator("store", accumulator)
    dt = _equal("store", operands)
    fit_literals("store", operands, dt)
    return make_plan("store", operands, dt, dt)


def _join_rule(operands, accumulator):
    """join(value, value): what a name is where control flow meets."""
    refuse_accumulator("join", accumulator)
    dt = _equal("join", operands)
    fit_literals("join", operands, dt)
    return make_plan("join", operands, dt, dt)


def _condition_rule(operands, accumulator):
    refuse_accumulator("condition", accumulator)
    return make_plan("condition", operands, "bool", "bool")


def literal_rule(default):
    """A literal that meets nothing; ``default(value)`` is its dtype."""
    def resolve_rule(operands, accumulator):
        refuse_accumulator("literal", accumulator)
        dt = default(operands[0])
        return make_plan("literal", operands, dt, dt)
    return resolve_rule


def specs_of(rules: dict, domain_of_operation) -> list[OperationSpec]:
    """Elementwise specifications: name -> (arity, rule); every mixture of roles."""
    return [OperationSpec(name, tuple(OperationOverload(roles, rule, tensor_domains(roles, domain_of_operation(name)))
                                      for roles in role_signatures(arity))) for name, (arity, rule) in rules.items()]


def conversion_specs(cast, store, join, condition, literal, domains=None) -> list[OperationSpec]:
    """The entries that are no operations of the language: conversions, names, conditions and literals."""
    tensor, weak = OperandRole.TENSOR, OperandRole.WEAK_SCALAR
    every = DOMAINS["nb"] if domains is None else domains
    pairs = ((tensor, tensor), (tensor, weak))
    return [OperationSpec("cast", (OperationOverload((tensor, tensor), cast, (every, every)),), public=domains is not None),
            OperationSpec("store", tuple(OperationOverload(r, store, tensor_domains(r, every)) for r in pairs), public=False),
            OperationSpec("join", tuple(OperationOverload(r, join, tensor_domains(r, every)) for r in pairs), public=False),
            OperationSpec("condition", (OperationOverload((tensor,), condition, ((BOOL if condition is _condition_rule else every),)),),
                          public=False),
            OperationSpec("literal", (OperationOverload((weak,), literal, ()),), public=False)]


def in_name_order(specs) -> tuple[OperationSpec, ...]:
    return tuple(sorted(specs, key=lambda s: s.name))


def _strict() -> Policy:
    tensor = OperandRole.TENSOR
    specs = specs_of({name: (rule.arity, _pointwise_rule(name, rule)) for name, rule in POINTWISE.items()},
                     lambda name: DOMAINS[POINTWISE[name].domain])
    specs += [reduction_spec(name, rule, reduction_rule(name, rule), DOMAINS[rule.domain]) for name, rule in REDUCTIONS.items()]
    everything = DOMAINS["nb"]
    specs.append(OperationSpec("select", tuple(OperationOverload((tensor, *roles), _select_rule, (BOOL, *tensor_domains(roles, everything)))
                                               for roles in role_signatures(2))))
    specs += conversion_specs(cast_rule, _store_rule, _join_rule, _condition_rule, literal_rule(default_dtype))
    return Policy("strict", in_name_order(specs), tensor_dtypes=tuple(WIDTH), accumulators=tuple(WIDTH), configurable=CONFIGURABLE,
                  weak_probes=WEAK_SCALAR_PROBES)


# --- the registry ------------------------------------------------------------------------------------------------------

@cache
def policy_named(name: str) -> Policy:
    """The policy of that name. Raises NotImplementedError for one that is not there."""
    match name:
        case "strict":
            return _strict()
        case "range_preserving":
            from .range_preserving import make_policy
            return make_policy()
        case "checked":
            from .checked_rules import make_policy
            return make_policy()
    raise NotImplementedError(f"no policy {name!r}; there are 'strict', 'range_preserving' and 'checked'")


def registered_operations(policy: str = "strict") -> tuple[OperationSpec, ...]:
    """Every registered operation, in name order."""
    return policy_named(policy).specs


def resolve_operation_plan(operation: str, *operands, accumulator_dtype=None, options=None, policy: str = "strict") -> OperationPlan:
    """The plan of one operation. Tensors are given by dtype (a name or ``I.f32``), weak scalars as Python numbers.

    Raises NotImplementedError for an unknown operation, TypeError for wrong operands, OverflowError for a literal that does not fit.
    """
    if accumulator_dtype is not None and options is not None:
        raise TypeError("give accumulator_dtype or options, not both")
    if options is not None:
        if options.operation != operation:
            raise ValueError(f"the options are for {options.operation!r}, not {operation!r}")
        accumulator_dtype = options.accumulator_dtype
    p, plain = policy_named(policy), tuple(_operand(operation, x) for x in operands)
    acc = None if accumulator_dtype is None else _operand(operation, accumulator_dtype)
    if "index" in plain and p.index_policy is not None and operation != "cast":
        return resolve(policy_named(p.index_policy).spec(operation), plain, _is_dtype, acc)
    spec = p.spec(operation)
    missing = [x for x in plain if isinstance(x, str) and p.implemented and x not in p.implemented]
    if missing and not (operation in ("store", "join") and len(set(plain)) == 1):
        raise NotImplementedError(f"{operation}: the policy {policy!r} has no operations on {missing[0]}")
    return resolve(spec, plain, _is_dtype, acc)


@dataclass(frozen=True)
class OperationExecutionOptions:
    """Validated options of an operation whose accumulator can be chosen. Raises TypeError for another operation or what is no dtype,
    NotImplementedError for a dtype that the policy does not accumulate in."""
    operation: str
    accumulator_dtype: str | None = None
    policy: str = "strict"

    def __post_init__(self):
        p = policy_named(self.policy)
        if self.operation not in p.configurable:
            raise TypeError(f"{self.operation} has no configurable accumulator under the policy {p.name!r}")
        if self.accumulator_dtype is not None and _operand(self.operation, self.accumulator_dtype) not in p.accumulators:
            raise NotImplementedError(f"{self.operation}: no accumulator {self.accumulator_dtype} under the policy {p.name!r}")


def operation_execution_options(operation: str, *, accumulator_dtype=None, policy: str = "strict") -> OperationExecutionOptions:
    """Immutable validated options; see ``OperationExecutionOptions`` for the errors."""
    name = None if accumulator_dtype is None else getattr(accumulator_dtype, "name", accumulator_dtype)
    return OperationExecutionOptions(operation, name, policy)


def _is_dtype(x) -> bool:
    return isinstance(x, str)


def _operand(operation: str, x):
    name = getattr(x, "name", x)
    if isinstance(name, str):
        if name not in WIDTH:
            raise TypeError(f"{operation}: {x!r} is no dtype")
        return name
    if isinstance(x, (bool, int, float)):
        return x
    raise TypeError(f"{operation}: a dtype or a real number is expected, not {x!r}")


def plan_accumulator_variants(plan: OperationPlan, policy: str = "strict") -> tuple[OperationPlan, ...]:
    """The plan, then the same operation with every other accumulator that the policy supports for it."""
    p = policy_named(policy)
    if plan.operation not in p.configurable:
        return (plan,)
    operands = tuple(o.dtype for o in plan.operands)
    found = {plan: None}
    for acc in p.accumulators:
        try:
            found.setdefault(resolve_operation_plan(plan.operation, *operands, accumulator_dtype=acc, policy=policy))
        except TypeError:
            continue
    return tuple(found)


@cache
def resolvable_plans(tensor_dtypes: tuple[str, ...] | None = None, weak_scalars: tuple | None = None,
                     policy: str = "strict") -> tuple[OperationPlan, ...]:
    """Every distinct plan over these dtypes and probes (None: the policy's own), accumulator variants included, in registry order."""
    p = policy_named(policy)
    dtypes = p.tensor_dtypes if tensor_dtypes is None else tuple(tensor_dtypes)
    probes = p.weak_probes if weak_scalars is None else tuple(weak_scalars)
    choose = enumerate_operands if p.promotes else _uniform_operands
    found: dict = {}
    for spec in p.specs:
        for overload in spec.overloads:
            for operands in choose(overload, dtypes, probes):
                try:
                    plan = resolve_operation_plan(spec.name, *operands, policy=policy)
                except (TypeError, OverflowError, NotImplementedError):
                    continue
                for variant in plan_accumulator_variants(plan, policy):
                    found.setdefault(variant)
    return tuple(found)


def _uniform_operands(overload: OperationOverload, tensor_dtypes, weak_scalars):
    """Operands of one overload where dtypes must be equal: mixed ones have no plan and are left out, casts apart."""
    if overload.rule is cast_rule:
        yield from enumerate_operands(overload, tensor_dtypes, weak_scalars)
        return
    for dt in tensor_dtypes if OperandRole.TENSOR in overload.roles else (None,):
        for probe in weak_scalars if OperandRole.WEAK_SCALAR in overload.roles else (None,):
            domains = iter(overload.tensor_domains)
            yield tuple((dt if dt in (d := next(domains)) or len(d) > 1 else d[0]) if r is OperandRole.TENSOR else probe
                        for r in overload.roles)
