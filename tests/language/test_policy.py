"""The operation plans of the strict policy, and that the typing rules give what the plans say."""
import numpy as np
import pytest

import intent_numba.language as I
from intent_numba.errors import CompileError
from intent_numba.frontend import build_kernel
from intent_numba.kir import walk
from intent_numba.typing import policy
from intent_numba.typing.policy import (Accumulation, Arithmetic, OperandPlan, OperandRole, OperationOverload, OperationSpec,
                                        registered_operations, resolvable_plans, resolve_operation_plan)


def test_registry_is_ordered_and_unique():
    names = [s.name for s in registered_operations()]
    assert names == sorted(set(names))
    assert {"add", "select", "reduce_sum", "contract"} <= set(names)


def test_plans_are_immutable_and_hashable():
    plan = resolve_operation_plan("add", I.f32, 1)
    assert plan.operands == (OperandPlan(OperandRole.TENSOR, "f32", "f32"), OperandPlan(OperandRole.WEAK_SCALAR, None, "f32"))
    assert (plan.compute, plan.accumulation, plan.output) == (Arithmetic.IEEE, None, "f32")
    assert len({plan, resolve_operation_plan("add", "f32", 2)}) == 1
    with pytest.raises(AttributeError):
        plan.output = "f64"


def test_resolution_refuses():
    for error, call in ((NotImplementedError, ("sort", "f32")), (TypeError, ("add", "f32", "f64")), (TypeError, ("add", "f32")),
                        (TypeError, ("add", "float", "f32")), (TypeError, ("div", "i32", "i32")), (OverflowError, ("add", "i8", 128)),
                        (TypeError, ("add", "i8", 1j)), (TypeError, ("add", 1, 2))):
        with pytest.raises(error):
            resolve_operation_plan(*call)
    with pytest.raises(TypeError):
        resolve_operation_plan("reduce_sum", "f32", accumulator_dtype="f16")
    with pytest.raises(NotImplementedError):
        resolve_operation_plan("add", "f32", "f32", policy="unknown")


def test_widening_and_accumulators():
    widened = {"i8": "i32", "u16": "u32", "f16": "f32", "bf16": "f32", "f64": "f64", "i64": "i64"}
    assert {dt: resolve_operation_plan("reduce_sum", dt).output for dt in widened} == widened
    plan = resolve_operation_plan("contract", "f16", "f16", accumulator_dtype=I.f32)
    assert (plan.output, plan.accumulation) == ("f32", Accumulation.CONTRACTION)
    assert resolve_operation_plan("contract", "i8", "i8", accumulator_dtype="i32").accumulation is Accumulation.MODULAR_SUM


def test_specs_check_themselves():
    overload = OperationOverload((OperandRole.TENSOR,), None)
    with pytest.raises(ValueError):
        OperationSpec("x", ())
    with pytest.raises(ValueError):
        OperationSpec("x", (overload, overload))
    with pytest.raises(ValueError):
        OperationSpec("x", (overload,), dtype_operand_positions=(1, 0))
    with pytest.raises(ValueError):
        OperationOverload((OperandRole.TENSOR,), None, ((),))
    with pytest.raises(AttributeError):
        _ = policy.policy_named("strict").spec("add").rule


def test_every_plan_of_the_registry_resolves_to_itself():
    plans = resolvable_plans()
    assert len(plans) > 500 and len(set(plans)) == len(plans)


def binary_kernel(kind: str, dt: str, out: str):
    symbol = {"add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "and": "&", "or": "|", "xor": "^", "shl": "<<",
              "shr": ">>", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}[kind]
    scope = {"I": I}
    exec(f"def kernel(a: I.In[I.{dt}, ('N',)], b: I.In[I.{dt}, ('N',)], y: I.Out[I.{out}, ('N',)]):\n"
         f"    y[:] = a[:] {symbol} b[:]\n", scope)
    return scope["kernel"]


@pytest.mark.parametrize("kind", ["add", "div", "floordiv", "mod", "and", "shl", "eq", "lt"])
def test_operators_follow_their_plans(kind):
    for dt in policy.WIDTH:
        try:
            plan = resolve_operation_plan(kind, dt, dt)
        except TypeError:
            with pytest.raises(CompileError):
                build_kernel(binary_kernel(kind, dt, dt))
            continue
        kernel = build_kernel(binary_kernel(kind, dt, plan.output))
        (op,) = [op for op in walk(kernel.body) if op.kind == kind]
        assert op.result.type.dt == plan.output


def test_literal_rounding_is_the_formats():
    import ml_dtypes
    formats = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f8e5m2": ml_dtypes.float8_e5m2}
    rng = np.random.default_rng(1)
    values = [*(rng.standard_normal(300) * 10.0 ** rng.integers(-9, 5, 300)), 2.0 ** -149, 2.0 ** -24, 2.0 ** -25, 6e-8, 65519.0, 57344.0]
    for dt, numpy_dtype in formats.items():
        for v in values:
            ours, theirs = policy.round_float(float(v), dt), float(np.float64(v).astype(numpy_dtype))
            assert ours == theirs or np.isinf(ours) and np.isinf(theirs), (dt, v)
