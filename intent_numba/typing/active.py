"""Which policy is the kernel compiled under? One at a time: compilation holds Numba's lock. No Numba here.

``plan_operation`` is what typing rules and builders ask; both give it the same operands, so both see the same plan.
"""
from __future__ import annotations

from contextlib import contextmanager

from .plans import NoSignature, OperationPlan, Policy
from .policy import policy_named, resolve_operation_plan


class _Active:
    """``default_float`` is the dtype of a local that only float literals are assigned to."""
    policy: Policy = policy_named("strict")
    default_float: str = "f64"


ACTIVE = _Active()


@contextmanager
def policy_in_force(name: str, parameter_dtypes=()):
    """Compile under the policy ``name`` a kernel whose views and scalars have ``parameter_dtypes``."""
    saved = ACTIVE.policy, ACTIVE.default_float
    policy = policy_named(name)
    ACTIVE.policy = policy
    ACTIVE.default_float = "f64" if policy.joins and "f64" in parameter_dtypes else policy.default_float
    try:
        yield policy
    finally:
        ACTIVE.policy, ACTIVE.default_float = saved


def materialized(operands) -> tuple:
    """Literals replaced by the dtype they have alone."""
    name = ACTIVE.policy.name
    return tuple(x if isinstance(x, str) else resolve_operation_plan("literal", x, policy=name).output for x in operands)


def plan_operation(operation: str, operands, accumulator=None) -> OperationPlan:
    """The plan under the active policy. Literals alone count as values of their own dtype, and so do literals where the operation has
    no signature for weak scalars. Raises as ``resolve_operation_plan`` does."""
    name, operands = ACTIVE.policy.name, tuple(operands)
    literal = any(not isinstance(x, str) for x in operands)
    if literal and operation != "literal" and not any(isinstance(x, str) for x in operands):
        return resolve_operation_plan(operation, *materialized(operands), accumulator_dtype=accumulator, policy=name)
    try:
        return resolve_operation_plan(operation, *operands, accumulator_dtype=accumulator, policy=name)
    except NoSignature:
        if not literal:
            raise
        return resolve_operation_plan(operation, *materialized(operands), accumulator_dtype=accumulator, policy=name)
