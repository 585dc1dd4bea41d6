"""What is an operation plan? The records of spec 004: operands, arithmetic, accumulation, result; no tables, no Numba.

A ``Policy`` is a named table of operations. Each operation lists the signatures of roles it accepts, and for each a rule that turns
operands (dtype names, or Python numbers for weak scalars) into the plan.
"""
from __future__ import annotations

import enum
import itertools
from dataclasses import dataclass


class OperandRole(enum.Enum):
    """How an operand takes part in a plan."""
    TENSOR = "tensor"
    WEAK_SCALAR = "weak_scalar"


class Arithmetic(enum.Enum):
    """What one computed term is. The first three are 004's; the others compute each format in itself."""
    BINARY32 = "binary32"
    INT32_EXACT_CHECKED = "int32_exact_checked"
    INT32_EXACT = "int32_exact"
    IEEE = "ieee"                       # one rounding to nearest even in the operand's own format
    MODULAR = "modular"                 # two's complement modulo 2^width
    LOGICAL = "logical"


class Accumulation(enum.Enum):
    """How terms are combined. The first eight are 004's; the others are the fixed forms of SUPPLEMENT 12."""
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


TENSOR, WEAK = OperandRole.TENSOR, OperandRole.WEAK_SCALAR


@dataclass(frozen=True)
class OperandPlan:
    """One positional operand: its source dtype (None for a weak scalar) and the dtype it is computed in."""
    role: OperandRole
    dtype: object
    convert_to: object


@dataclass(frozen=True)
class OperationPlan:
    """The whole dtype decision of one operation: conversions, arithmetic, accumulation, result."""
    operation: str
    operands: tuple[OperandPlan, ...]
    compute: Arithmetic
    accumulation: Accumulation | None
    accumulator_dtype: object
    output: object


@dataclass(frozen=True)
class OperationOverload:
    """One signature of roles and the rule that resolves it; ``tensor_domains`` has a dtype domain for each tensor role. The rule
    takes the operands as a tuple, and the requested accumulator or None. Raises ValueError for domains that do not match."""
    roles: tuple[OperandRole, ...]
    rule: object
    tensor_domains: tuple[tuple, ...] | None = None

    def __post_init__(self):
        if self.tensor_domains is not None:
            if len(self.tensor_domains) != sum(r is TENSOR for r in self.roles) or not all(self.tensor_domains):
                raise ValueError("tensor_domains needs one non-empty dtype domain for each tensor role")


@dataclass(frozen=True)
class OperationSpec:
    """A registered operation with every accepted signature. ``public`` says whether the name is an operation of its own;
    ``dtype_operand_positions`` which forward arguments are planned (None: all). Raises ValueError for an inconsistent registration;
    ``roles`` and ``rule`` raise AttributeError unless there is exactly one overload."""
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
class Policy:
    """A named table, with what holds for every operation of it. ``specs`` are in name order.

    ``promotes``: operands are converted as plans say (otherwise dtypes must be equal). ``contracts``: a product and a sum of one
    expression round once (decision 17). ``weak_floats``: a float literal bound to a name stays a literal. ``joins``: a local has
    one dtype, that of all its assignments. ``default_float``: dtype of a float literal that meets nothing. ``raises``: integer overflow is
    an error. ``accumulators`` and ``configurable``: which accumulators may be asked for, and of which operations. ``implemented``: the
    dtypes that have operations at all (empty: every dtype). ``index_policy``: whose plans operations on ``index`` follow, when not its own.
    ``builtins``: Python's functions that a kernel may call.
    """
    name: str
    specs: tuple[OperationSpec, ...]
    promotes: bool = False
    contracts: bool = True
    weak_floats: bool = False
    joins: bool = False
    raises: bool = False
    default_float: str = "f64"
    tensor_dtypes: tuple[str, ...] = ()
    weak_probes: tuple = (1, 0.5, True)
    accumulators: tuple[str, ...] = ()
    configurable: frozenset[str] = frozenset()
    implemented: frozenset[str] = frozenset()
    index_policy: str | None = None
    builtins: frozenset[str] = frozenset()

    def spec(self, operation: str) -> OperationSpec:
        found = next((s for s in self.specs if s.name == operation), None)
        if found is None:
            raise NotImplementedError(f"no operation {operation!r} is registered under the policy {self.name!r}")
        return found


def role_signatures(arity: int):
    """Every mixture of tensors and weak scalars with at least one tensor."""
    for bits in range((1 << arity) - 1):
        yield tuple(WEAK if bits >> i & 1 else TENSOR for i in range(arity))


def tensor_domains(roles, domain) -> tuple:
    """The same domain for every tensor of a signature."""
    return tuple(domain for r in roles if r is TENSOR)


class NoSignature(TypeError):
    """The operation has no overload for these roles."""


def resolve(spec: OperationSpec, operands: tuple, is_tensor, accumulator=None) -> OperationPlan:
    """The plan of a specification for these operands. Raises TypeError when no signature matches, and whatever the rule raises."""
    roles = tuple(TENSOR if is_tensor(x) else WEAK for x in operands)
    overload = next((o for o in spec.overloads if o.roles == roles), None)
    if overload is None:
        raise NoSignature(f"{spec.name} takes no operands ({', '.join(r.value for r in roles)})")
    plan = overload.rule(operands, accumulator)
    if plan.operation != spec.name or tuple(o.role for o in plan.operands) != roles:
        raise RuntimeError(f"the plan of {plan.operation} does not agree with the registration of {spec.name}")
    return plan


def enumerate_operands(overload: OperationOverload, tensor_dtypes, weak_scalars):
    """Every choice of operands of a signature: its own domains where it has them, else those supplied."""
    domains = iter(overload.tensor_domains or tensor_domains(overload.roles, tuple(tensor_dtypes)))
    yield from itertools.product(*(next(domains) if r is TENSOR else tuple(weak_scalars) for r in overload.roles))
