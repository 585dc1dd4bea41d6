"""Elementwise operations where the policy converts operands: explicit casts from the plan, then the operation on one dtype."""
from __future__ import annotations

from ..errors import IntentTypeError, UnsupportedError
from ..kir import Scalar, Value
from ..typing.active import plan_operation
from ..typing.planned import SOME_FLOAT
from ..typing.plans import Arithmetic, OperationPlan
from ..typing.policy import FLOATS
from . import build_checked
from .emitter import Emitter
from .shapes import is_tensor, place, shape_of
from .values import Deferred, Lit, Negated, Product

ON_FLOATS = {"floordiv": "floor_divide", "mod": "remainder", "power": "pow"}
ON_INTEGERS = {"pow": "power", "floor_divide": "floordiv", "remainder": "mod"}
"""KIR kind of an operation whose plan computes in floats, and in integers."""


def operand_of(e: Emitter, x):
    """What a plan is asked with: a dtype name, or the value of a literal."""
    if isinstance(x, Negated):
        return "bool"
    if isinstance(x, Deferred):
        return SOME_FLOAT
    return x.value if isinstance(x, Lit) and x.dt is None else e.dtype(x)


def plan_of(e: Emitter, operation: str, args, accumulator=None) -> OperationPlan:
    """The plan for front values. Type inference has asked the same question, so a refusal here is rare."""
    try:
        return plan_operation(operation, [operand_of(e, x) for x in args], accumulator)
    except NotImplementedError as error:
        e.fail(UnsupportedError, str(error))
    except (TypeError, OverflowError) as error:
        e.fail(IntentTypeError, str(error))


def converted(e: Emitter, x, dt: str):
    """A front value in the dtype that a plan computes in; a product of that dtype may still be fused."""
    from .build_pointwise import conversion
    if isinstance(x, Product) and x.type.dt == dt and x.value is None:
        return x
    if isinstance(x, Lit) and dt == "index":
        return x
    if isinstance(x, (Lit, Deferred)):
        return e.value(x, dt)
    return conversion(e, "cast", e.value(x) if isinstance(x, (Product, Negated)) else x, dt)


def operands(e: Emitter, operation: str, args):
    """(plan, operands in the dtypes the plan computes in)."""
    plan = plan_of(e, operation, args)
    return plan, [converted(e, x, o.convert_to) for x, o in zip(args, plan.operands)]


def elementwise(e: Emitter, operation: str, args, what: str = "", **attrs):
    """An elementwise operation on front values, as the active policy plans it."""
    from .build_pointwise import conversion, same_dtype
    if e.policy.joins and not attrs and all(isinstance(x, (Lit, Deferred)) for x in args):
        plan = plan_of(e, operation, args)
        if plan.output in FLOATS and any(isinstance(x, Deferred) or isinstance(x.value, float) for x in args):
            return Deferred(operation, tuple(args))
    plan, values = operands(e, operation, args)
    if plan.compute is Arithmetic.INT32_EXACT_CHECKED:
        return build_checked.elementwise(e, operation, values, args, what)
    computed = plan.operands[-1].convert_to
    kind = (ON_FLOATS if computed in FLOATS else ON_INTEGERS).get(operation, operation)
    result = same_dtype(e, kind, values, what, **attrs)
    if e.obligations and e.policy.joins and computed in FLOATS:
        _divisor(e, operation, args, values[-1], result)
    if plan.output == "bool" or e.dtype(result) == plan.output:
        return result
    return conversion(e, "cast", result, plan.output)


SIGNS = {"div": "/", "floordiv": "//", "mod": "%"}


def _divisor(e: Emitter, operation: str, args, divisor, result) -> None:
    """Of ``/`` between integers, and of ``//`` and ``%`` on floats, it is not zero (003, caller constraints)."""
    from .build_obligations import owe
    from .build_pointwise import same_dtype
    if operation in ("floordiv", "mod") or operation == "div" and all(_integral(operand_of(e, x)) for x in args):
        ok = same_dtype(e, "ne", [divisor, Lit(0.0)])
        owe(e, place(e, ok, "bool", shape_of(result), is_tensor(result)), SIGNS[operation], "the divisor is zero")


def _integral(operand) -> bool:
    return operand not in FLOATS and not isinstance(operand, float)


def evaluate(e: Emitter, x: Deferred, dt: str | None) -> Value:
    """A weak float in the float dtype it met, or in its own where that is none."""
    from .build_pointwise import same_dtype
    dt = dt if dt in FLOATS else e.policy.default_float
    if x.kind is None:
        (value,) = x.args
        return value if dt == "f64" else e.one("cast", (value,), Scalar(dt))
    return e.value(same_dtype(e, ON_FLOATS.get(x.kind, x.kind), [e.value(a, dt) for a in x.args]))
