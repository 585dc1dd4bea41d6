"""The operation dtype policy exactly as spec 004 states it: DTypes instead of names, its signatures and its errors.

The plans are those of the policy ``checked`` in ``policy``; here they carry dtype descriptors, which are matched by identity. Categories
and compound dtypes are refused before any rule is asked.
"""
from __future__ import annotations

import numbers
from dataclasses import dataclass, replace
from functools import cache

from . import plans as _plans
from .checked_rules import HIDDEN, PLANNED_ONLY, WEAK_SCALAR_PROBES
from .plans import Accumulation, Arithmetic, OperandPlan, OperandRole, OperationOverload, OperationPlan, OperationSpec
from .policy import policy_named

__all__ = ["Accumulation", "Arithmetic", "CompoundDType", "DType", "DTypeCategory", "OperandPlan", "OperandRole",
           "OperationExecutionOptions", "OperationOverload", "OperationPlan", "OperationSpec", "PLANNED_ONLY",
           "SUPPORTED_ACCUMULATOR_DTYPES", "SUPPORTED_TENSOR_DTYPES", "SimpleDType", "WEAK_SCALAR_PROBES",
           "operation_execution_options", "plan_accumulator_variants", "registered_operations", "resolvable_plans",
           "resolve_operation_plan"]


@dataclass(frozen=True, eq=False)
class SimpleDType:
    """A storage dtype, equal to itself alone. ``token`` is the language's name of it."""
    name: str
    token: str

    def __repr__(self):
        return f"DType.{self.name}"


@dataclass(frozen=True, eq=False)
class DTypeCategory:
    """A set of dtypes, never one of them."""
    name: str

    def __repr__(self):
        return f"DType.{self.name}"


@dataclass(frozen=True, eq=False)
class CompoundDType:
    """Several fields in one element; planning for them is deferred."""
    name: str
    fields: tuple = ()


class DType:
    """The descriptors. Float32, Int32 and Bool have operations; the other simple dtypes are registered without; Any, Floating and
    Integer are categories."""
    Float32, Float64 = SimpleDType("Float32", "f32"), SimpleDType("Float64", "f64")
    Float16, BFloat16 = SimpleDType("Float16", "f16"), SimpleDType("BFloat16", "bf16")
    Float8E4M3FN, Float8E5M2 = SimpleDType("Float8E4M3FN", "f8e4m3fn"), SimpleDType("Float8E5M2", "f8e5m2")
    Int8, Int16, Int32, Int64 = (SimpleDType(f"Int{n}", f"i{n}") for n in (8, 16, 32, 64))
    UInt8, UInt16, UInt32, UInt64 = (SimpleDType(f"UInt{n}", f"u{n}") for n in (8, 16, 32, 64))
    Bool = SimpleDType("Bool", "bool")
    Any, Floating, Integer = DTypeCategory("Any"), DTypeCategory("Floating"), DTypeCategory("Integer")


SIMPLE = tuple(x for x in vars(DType).values() if isinstance(x, SimpleDType))
OF_TOKEN = {x.token: x for x in SIMPLE}
IMPLEMENTED = (DType.Float32, DType.Int32, DType.Bool)
SUPPORTED_TENSOR_DTYPES = (DType.Float32, DType.Int32)
SUPPORTED_ACCUMULATOR_DTYPES = (DType.Float32, DType.Float64)
CONFIGURABLE_OPERATIONS = ("matmul", "reduce_sum")


@dataclass(frozen=True)
class OperationExecutionOptions:
    """Validated options of reduce_sum or matmul. Raises TypeError for an operation that has none or an accumulator that is no simple
    dtype, NotImplementedError for a simple dtype that cannot accumulate."""
    operation: str
    accumulator_dtype: SimpleDType | None = None

    def __post_init__(self):
        check_accumulator(self.operation, self.accumulator_dtype)


def operation_execution_options(operation, *, accumulator_dtype=None) -> OperationExecutionOptions:
    """Immutable validated options; see ``OperationExecutionOptions`` for the errors."""
    return OperationExecutionOptions(operation, accumulator_dtype)


def check_accumulator(operation, accumulator) -> None:
    if operation not in CONFIGURABLE_OPERATIONS:
        raise TypeError(f"{operation} has no configurable accumulator; {' and '.join(CONFIGURABLE_OPERATIONS)} have")
    if accumulator is None or any(accumulator is x for x in SUPPORTED_ACCUMULATOR_DTYPES):
        return
    if not isinstance(accumulator, SimpleDType):
        raise TypeError(f"{operation}: an accumulator must be a simple dtype, not {accumulator!r}")
    raise NotImplementedError(f"{operation}: {accumulator!r} is not implemented as a floating accumulator")


# --- the registry --------------------------------------------------------------------------------------------------------

@cache
def registered_operations() -> tuple[OperationSpec, ...]:
    """Every registered specification, in name order."""
    return tuple(_described(s) for s in policy_named("checked").specs if s.name not in HIDDEN)


def _described(spec: OperationSpec) -> OperationSpec:
    """A specification over descriptors."""
    def overload(o: OperationOverload) -> OperationOverload:
        def rule(operands, accumulator):
            tokens = tuple(x.token if isinstance(x, SimpleDType) else x for x in operands)
            return _translated(o.rule(tokens, None if accumulator is None else accumulator.token))
        domains = o.tensor_domains and tuple(tuple(OF_TOKEN[x] for x in domain) for domain in o.tensor_domains)
        return OperationOverload(o.roles, rule, domains)
    return replace(spec, overloads=tuple(map(overload, spec.overloads)))


def _translated(plan: OperationPlan) -> OperationPlan:
    operands = tuple(OperandPlan(o.role, OF_TOKEN.get(o.dtype), OF_TOKEN[o.convert_to]) for o in plan.operands)
    return replace(plan, operands=operands, accumulator_dtype=OF_TOKEN.get(plan.accumulator_dtype), output=OF_TOKEN[plan.output])


def resolve_operation_plan(operation, *operands, accumulator_dtype=None, options=None) -> OperationPlan:
    """The plan of one operation over storage dtypes and weak Python scalars.

    Raises NotImplementedError for an unknown operation, a compound dtype or a simple dtype without operations; TypeError for operands that
    match no signature, categories and values that are neither; OverflowError for a weak integer that an Int32 plan cannot hold; TypeError
    when both accumulator_dtype and options are given, ValueError when the options are another operation's.
    """
    if accumulator_dtype is not None and options is not None:
        raise TypeError("give accumulator_dtype or options, not both")
    spec = next((s for s in registered_operations() if s.name == operation), None)
    if spec is None:
        raise NotImplementedError(f"no operation {operation!r} is registered")
    if options is not None:
        if options.operation != operation:
            raise ValueError(f"the options are for {options.operation!r}, not {operation!r}")
        accumulator_dtype = options.accumulator_dtype
    if accumulator_dtype is not None:
        check_accumulator(operation, accumulator_dtype)
    plain = tuple(_operand(operation, x) for x in operands)
    return _plans.resolve(spec, plain, lambda x: isinstance(x, SimpleDType), accumulator_dtype)


def _operand(operation: str, x):
    match x:
        case DTypeCategory():
            raise TypeError(f"{operation}: {x!r} is an abstract category, not an operation storage dtype")
        case CompoundDType():
            raise NotImplementedError(f"{operation}: planning for the compound dtype {x.name} is deferred until it is representation-aware")
        case SimpleDType():
            if any(x is dt for dt in IMPLEMENTED):
                return x
            if any(x is dt for dt in SIMPLE):
                raise NotImplementedError(f"{operation}: {x!r} has no operation implementation")
            raise TypeError(f"{operation}: {x!r} is not a registered dtype")
        case bool():
            return x
        case numbers.Integral():
            return int(x)
        case numbers.Real():
            return float(x)
    raise TypeError(f"{operation}: a dtype or a real number is expected, not {x!r}")


def plan_accumulator_variants(plan: OperationPlan) -> tuple[OperationPlan, ...]:
    """The plan, then its other accumulators where it is a floating plan of a configurable operation."""
    if plan.operation not in CONFIGURABLE_OPERATIONS or plan.accumulator_dtype is None:
        return (plan,)
    return (plan, *(replace(plan, accumulator_dtype=x) for x in SUPPORTED_ACCUMULATOR_DTYPES if x is not plan.accumulator_dtype))


def resolvable_plans(tensor_dtypes=SUPPORTED_TENSOR_DTYPES, weak_scalars=WEAK_SCALAR_PROBES) -> tuple[OperationPlan, ...]:
    """Every distinct plan of every overload over these dtypes and probes, in registry and operand order, each followed by its
    accumulator variants."""
    found: dict = {}
    for spec in registered_operations():
        for overload in spec.overloads:
            for operands in _plans.enumerate_operands(overload, tensor_dtypes, weak_scalars):
                try:
                    plan = resolve_operation_plan(spec.name, *operands)
                except (TypeError, OverflowError, NotImplementedError):
                    continue
                for variant in plan_accumulator_variants(plan):
                    found.setdefault(variant)
    return tuple(found)
