"""Which dtypes does an operation take, what does it give, and in which arithmetic? Immutable data, no Numba.

One table says it per operation; typing rules consult it, and the plans of spec 004 (one record per operand, arithmetic,
accumulation, result) are resolved from it. Spec: 004, 000 sections 3 to 6, SUPPLEMENT 10 and 11.
"""
from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from functools import cache

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


# --- operation plans (spec 004) ----------------------------------------------------------------------------------------

class OperandRole(enum.Enum):
    """How an operand takes part in a plan."""
    TENSOR = "tensor"
    WEAK_SCALAR = "weak_scalar"


class Arithmetic(enum.Enum):
    """What one computed term is. The first three are 004's; the strict policy computes each format in itself."""
    BINARY32 = "binary32"
    INT32_EXACT_CHECKED = "int32_exact_checked"
    INT32_EXACT = "int32_exact"
    IEEE = "ieee"                       # one rounding to nearest even in the operand's own format
    MODULAR = "modular"                 # two's complement modulo 2^width
    LOGICAL = "logical"


class Accumulation(enum.Enum):
    """How terms are combined. The first seven are 004's; the others are the fixed forms of SUPPLEMENT 12."""
    FLOATING = "floating"
    SEQUENTIAL_BINARY32 = "sequential_binary32"
    SEQUENTIAL_BINARY32_PRODUCT = "sequential_binary32_product"
    MAXIMUM = "maximum"
    MINIMUM = "minimum"
    ARGMAX = "argmax"
    ARGMIN = "argmin"
    EXACT_INTEGER = "exact_integer"
    TREE = "tree"                       # R: 32 lanes, chunks of 4096
    TREE_PRODUCT = "tree_product"
    PREFIX = "prefix"                   # S
    PREFIX_MAXIMUM = "prefix_maximum"
    CONTRACTION = "contraction"         # C, or R with an FMA leaf
    MODULAR_SUM = "modular_sum"
    MODULAR_PRODUCT = "modular_product"
    DISJUNCTION = "disjunction"
    CONJUNCTION = "conjunction"


@dataclass(frozen=True)
class OperandPlan:
    """One positional operand: its source dtype (None for a weak scalar) and the dtype it is computed in."""
    role: OperandRole
    dtype: str | None
    convert_to: str


@dataclass(frozen=True)
class OperationPlan:
    """The whole dtype decision of one operation: conversions, arithmetic, accumulation, result."""
    operation: str
    operands: tuple[OperandPlan, ...]
    compute: Arithmetic
    accumulation: Accumulation | None
    accumulator_dtype: str | None
    output: str


@dataclass(frozen=True)
class OperationOverload:
    """One signature of roles and the rule that resolves it; ``tensor_domains`` has a dtype domain for each tensor role."""
    roles: tuple[OperandRole, ...]
    rule: object
    tensor_domains: tuple[tuple[str, ...], ...] | None = None

    def __post_init__(self):
        if self.tensor_domains is not None:
            if len(self.tensor_domains) != sum(r is OperandRole.TENSOR for r in self.roles) or not all(self.tensor_domains):
                raise ValueError("tensor_domains needs one non-empty dtype domain for each tensor role")


@dataclass(frozen=True)
class OperationSpec:
    """A registered operation with every accepted signature."""
    name: str
    overloads: tuple[OperationOverload, ...]
    public: bool = True
    dtype_operand_positions: tuple[int, ...] | None = None

    def __post_init__(self):
        signatures = [o.roles for o in self.overloads]
        if not signatures or len(set(signatures)) != len(signatures):
            raise ValueError(f"{self.name}: overloads must be non-empty, each with a signature of its own")
        positions = self.dtype_operand_positions
        if positions is not None:
            ordered = list(positions) == sorted(set(positions)) and all(p >= 0 for p in positions)
            if not ordered or any(len(s) != len(positions) for s in signatures):
                raise ValueError(f"{self.name}: dtype_operand_positions must be increasing, non-negative, one for each operand")

    @property
    def roles(self):
        return self._only().roles

    @property
    def rule(self):
        return self._only().rule

    def _only(self) -> OperationOverload:
        if len(self.overloads) != 1:
            raise AttributeError(f"{self.name} has {len(self.overloads)} overloads")
        return self.overloads[0]


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
}
"""dot, matvec, vecmat and matmul are contractions with the same plan."""

WEAK_SCALAR_PROBES = (1, 0.5, True)


@dataclass(frozen=True)
class Policy:
    """A named table: ``specs`` in name order."""
    name: str
    specs: tuple[OperationSpec, ...]

    def spec(self, operation: str) -> OperationSpec:
        found = next((s for s in self.specs if s.name == operation), None)
        if found is None:
            raise NotImplementedError(f"no operation {operation!r} is registered under the policy {self.name!r}")
        return found


def _arithmetic(dt: str) -> Arithmetic:
    return Arithmetic.IEEE if dt in FLOATS else Arithmetic.LOGICAL if dt == "bool" else Arithmetic.MODULAR


def _plan(name: str, operands, dt: str, accumulation, accumulator, output: str) -> OperationPlan:
    plans = tuple(OperandPlan(OperandRole.TENSOR, x, accumulator or dt) if isinstance(x, str)
                  else OperandPlan(OperandRole.WEAK_SCALAR, None, dt) for x in operands)
    return OperationPlan(name, plans, _arithmetic(accumulator or dt), accumulation, accumulator, output)


def _pointwise_rule(name: str, rule: Pointwise):
    def resolve(operands, accumulator_dtype):
        if accumulator_dtype is not None:
            raise TypeError(f"{name} accumulates nothing")
        dts = {x for x in operands if isinstance(x, str)}
        if len(dts) > 1:
            raise TypeError(f"{name}: {' and '.join(sorted(dts))} do not mix; there is no implicit promotion")
        dt = dts.pop()
        if dt not in DOMAINS[rule.domain]:
            raise TypeError(f"{name} is not defined for {dt}")
        for x in operands:
            if not isinstance(x, str):
                problem = literal_problem(x, dt)
                if problem:
                    raise (OverflowError if "fit" in problem or "overflow" in problem else TypeError)(f"{name}: {problem}")
        return _plan(name, operands, dt, None, None, "bool" if rule.result == "bool" else dt)
    return resolve


def _select_rule(operands, accumulator_dtype):
    if accumulator_dtype is not None:
        raise TypeError("select accumulates nothing")
    cond, *branches = operands
    dts = {x for x in branches if isinstance(x, str)}
    if cond != "bool" or len(dts) != 1:
        raise TypeError(f"select: bool and two branches of one dtype are expected, not {', '.join(map(str, operands))}")
    (dt,) = dts
    for x in branches:
        problem = None if isinstance(x, str) else literal_problem(x, dt)
        if problem:
            raise TypeError(f"select: {problem}")
    plan = _plan("select", operands, dt, None, None, dt)
    return OperationPlan("select", (OperandPlan(OperandRole.TENSOR, "bool", "bool"), *plan.operands[1:]), plan.compute, None, None, dt)


def _reduction_rule(name: str, rule: Reduction):
    def resolve(operands, accumulator_dtype):
        if len(set(operands)) > 1:
            raise TypeError(f"{name}: {' and '.join(operands)} do not mix; there is no implicit promotion")
        dt = operands[0]
        if dt not in DOMAINS[rule.domain]:
            raise TypeError(f"{name} is not defined for {dt}")
        acc = accumulator_dtype or (widen(dt) if rule.widens else dt)
        if accumulator_dtype is not None:
            problem = accumulator_problem(dt, acc) if rule.configurable else "its accumulator is fixed"
            if problem:
                raise TypeError(f"{name}: {problem}")
        return _plan(name, operands, dt, rule.floating if acc in FLOATS else rule.integral, acc, "index" if rule.output == "index" else acc)
    return resolve


def _roles(arity: int):
    """Every mixture of tensors and weak scalars with at least one tensor."""
    for bits in range((1 << arity) - 1):
        yield tuple(OperandRole.WEAK_SCALAR if bits >> i & 1 else OperandRole.TENSOR for i in range(arity))


def _domains(roles, domain):
    return tuple(domain for r in roles if r is OperandRole.TENSOR)


def _strict() -> Policy:
    specs = [OperationSpec(name, tuple(OperationOverload(roles, _pointwise_rule(name, rule), _domains(roles, DOMAINS[rule.domain]))
                                       for roles in _roles(rule.arity)))
             for name, rule in POINTWISE.items()]
    tensor = OperandRole.TENSOR
    specs += [OperationSpec(name, (OperationOverload((tensor,) * rule.operands, _reduction_rule(name, rule),
                                                     (DOMAINS[rule.domain],) * rule.operands),))
              for name, rule in REDUCTIONS.items()]
    branches = [(tensor, *roles) for roles in _roles(2)]
    everything = DOMAINS["nb"]
    specs.append(OperationSpec("select", tuple(OperationOverload(roles, _select_rule, (BOOL, *_domains(roles[1:], everything)))
                                               for roles in branches)))
    return Policy("strict", tuple(sorted(specs, key=lambda s: s.name)))


@cache
def policy_named(name: str) -> Policy:
    """The policy of that name. Raises NotImplementedError for one that is not there."""
    if name == "strict":
        return _strict()
    raise NotImplementedError(f"no policy {name!r}; there is 'strict'")


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
    spec = policy_named(policy).spec(operation)
    plain = tuple(_operand(operation, x) for x in operands)
    roles = tuple(OperandRole.TENSOR if isinstance(x, str) else OperandRole.WEAK_SCALAR for x in plain)
    overload = next((o for o in spec.overloads if o.roles == roles), None)
    if overload is None:
        raise TypeError(f"{operation} takes no operands ({', '.join(r.value for r in roles)})")
    acc = None if accumulator_dtype is None else _operand(operation, accumulator_dtype)
    plan = overload.rule(plain, acc)
    assert plan.operation == operation and len(plan.operands) == len(operands)
    return plan


def _operand(operation: str, x):
    name = getattr(x, "name", x)
    if isinstance(name, str):
        if name not in WIDTH:
            raise TypeError(f"{operation}: {x!r} is no dtype")
        return name
    if isinstance(x, (bool, int, float)):
        return x
    raise TypeError(f"{operation}: a dtype or a real number is expected, not {x!r}")


@cache
def resolvable_plans(tensor_dtypes: tuple[str, ...] = tuple(WIDTH), weak_scalars: tuple = WEAK_SCALAR_PROBES,
                     policy: str = "strict") -> tuple[OperationPlan, ...]:
    """Every distinct plan over these dtypes and probes, accumulator variants included, in registry order."""
    found: dict = {}
    for spec in registered_operations(policy):
        for overload in spec.overloads:
            for operands in _enumerate(overload, tensor_dtypes, weak_scalars):
                for acc in (None, *(tensor_dtypes if _configurable(spec.name) else ())):
                    try:
                        found.setdefault(resolve_operation_plan(spec.name, *operands, accumulator_dtype=acc, policy=policy))
                    except (TypeError, OverflowError):
                        continue
    return tuple(found)


def _configurable(name: str) -> bool:
    return name in REDUCTIONS and REDUCTIONS[name].configurable


def _enumerate(overload: OperationOverload, tensor_dtypes, weak_scalars):
    """Operands of one overload. The strict policy wants one dtype, so mixed dtypes are not enumerated; a domain of one dtype
    (the condition of select) has its own."""
    for dt in tensor_dtypes:
        for probe in weak_scalars if OperandRole.WEAK_SCALAR in overload.roles else (None,):
            domains = iter(overload.tensor_domains)
            yield tuple(_choice(next(domains), dt) if role is OperandRole.TENSOR else probe for role in overload.roles)


def _choice(domain: tuple[str, ...], dt: str) -> str:
    return domain[0] if len(domain) == 1 else dt
