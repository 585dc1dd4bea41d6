"""Types of operations under the policies that convert operands: the active policy's plan decides, its refusals become ours."""
from __future__ import annotations

from ..errors import UnsupportedError
from .active import ACTIVE, plan_operation
from .plans import OperationPlan
from .policy import FLOATS
from .problems import refuse
from .types import WEAK_FLOAT, DTypeT, Lit, NoneT, Scalar, Tensor, Weak, WeakFloat, describe, dtype_of


SOME_FLOAT = 0.5
"""Stands for a weak float where a plan wants a literal: every float literal selects the same plan."""
AT_ONCE = frozenset({"clamp", "relu", "select"})
"""Operations of literals alone that are computed in the dtype of the literals."""


def promotes(*args) -> bool:
    """Whether the active policy converts such operands. Weak integers keep their own rules."""
    return ACTIVE.policy.promotes and not any(isinstance(t, Weak) for t in args)


def operand_of(t):
    """What a plan is asked with: a dtype name, or the value of a literal."""
    return t.value if isinstance(t, Lit) else SOME_FLOAT if isinstance(t, WeakFloat) else dtype_of(t)


def plan(what: str, operation: str, args, accumulator=None) -> OperationPlan:
    """The plan for argument types, or a refusal in the plan's words."""
    operands = [operand_of(t) for t in args]
    for t, x in zip(args, operands):
        if x is None or isinstance(t, Lit) and isinstance(x, str):
            refuse(f"{what}: {describe(t)} is not a value")
    try:
        return plan_operation(operation, operands, accumulator)
    except NotImplementedError as e:
        refuse(_words(what, operation, e), cls=UnsupportedError)
    except (TypeError, OverflowError) as e:
        refuse(_words(what, operation, e))


def _words(what: str, operation: str, error: Exception) -> str:
    text = str(error)
    return what + text[len(operation):] if text.startswith(operation) else f"{what}: {text}"


def shaped_like(dt: str, args):
    """The result type of elementwise arguments."""
    ranks = [t.rank for t in args if isinstance(t, Tensor)]
    return Tensor(dt, max(ranks)) if ranks else Scalar(dt)


def elementwise(what: str, operation: str, args):
    output = plan(what, operation, args).output
    return WEAK_FLOAT if output in FLOATS and operation not in AT_ONCE and stays_weak(args) else shaped_like(output, args)


def stays_weak(args) -> bool:
    """Are these literals alone, a float among them, under a policy where names have one dtype?"""
    literals = all(isinstance(t, (Lit, WeakFloat)) for t in args)
    return ACTIVE.policy.joins and literals and any(isinstance(t, WeakFloat) or isinstance(t.value, float) for t in args)


def reduction(what: str, operation: str, args, acc_dtype) -> OperationPlan:
    """The plan of an operation that combines terms. ``acc_dtype`` is the type of that argument; the dtype that an exact integer sum
    has anyway asks for nothing."""
    acc = None
    if not isinstance(acc_dtype, NoneT):
        if not isinstance(acc_dtype, DTypeT):
            refuse(f"{what}: a dtype such as I.f32 expected, not {describe(acc_dtype)}")
        exact = ACTIVE.policy.raises and acc_dtype.dt == "i32" and all(t.dt == "i32" for t in args)
        acc = None if exact else acc_dtype.dt
    return plan(what, operation, args, acc)


def join(a, b):
    """The common type of two values of one name, or None: their dtypes joined as the plan says."""
    if stays_weak((a, b)):
        return WEAK_FLOAT
    if isinstance(a, Tensor) != isinstance(b, Tensor) or isinstance(a, Tensor) and a.rank != b.rank:
        return None
    try:
        dt = plan_operation("join", [operand_of(t) for t in sorted((a, b), key=lambda t: isinstance(t, (Lit, WeakFloat)))]).output
    except (TypeError, NotImplementedError, OverflowError):
        return None
    return Tensor(dt, a.rank) if isinstance(a, Tensor) else Scalar(dt)
