"""The registry as spec 004 names it, over all policies."""
import pytest

import intent_numba.language as I
from intent_numba.typing.policy import (WIDTH, Accumulation, Arithmetic, OperandRole, operation_execution_options,
                                        plan_accumulator_variants,
                                        policy_named, registered_operations, resolvable_plans, resolve_operation_plan)

POLICIES = ("strict", "range_preserving", "checked")
CONVERSIONS = {"cast", "store", "join", "condition", "literal"}


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_is_an_ordered_table(policy):
    names = [s.name for s in registered_operations(policy)]
    assert names == sorted(set(names)) and CONVERSIONS | {"add", "select", "reduce_sum", "matmul"} <= set(names)
    plans = resolvable_plans(policy=policy)
    assert len(set(plans)) == len(plans) and {p.operation for p in plans} == set(names)
    assert plans == tuple(sorted(plans, key=lambda p: names.index(p.operation)))


@pytest.mark.parametrize("policy", POLICIES)
def test_plans_are_consistent(policy):
    for plan in resolvable_plans(policy=policy):
        assert {o.role for o in plan.operands} <= set(OperandRole) and isinstance(plan.compute, Arithmetic)
        assert all((o.dtype is None) == (o.role is OperandRole.WEAK_SCALAR) for o in plan.operands)
        assert all(dt in WIDTH for dt in (plan.output, *(o.convert_to for o in plan.operands)))
        assert plan.accumulation is None or isinstance(plan.accumulation, Accumulation)
        assert plan.accumulator_dtype is None or plan.accumulation is not None


def test_strict_converts_nothing():
    for plan in resolvable_plans():
        if plan.operation not in ("cast", "condition") and plan.accumulation is None:
            assert all(o.dtype in (None, o.convert_to) for o in plan.operands), plan


def test_policies_as_data():
    strict, ranges, exact = map(policy_named, POLICIES)
    assert (strict.promotes, ranges.promotes, exact.promotes) == (False, True, True)
    assert (strict.contracts, ranges.contracts, exact.contracts) == (True, True, False)
    assert (exact.raises, ranges.joins, ranges.builtins) == (True, True, {"abs", "max", "min", "pow"})
    with pytest.raises(NotImplementedError):
        policy_named("lenient")


def promoted(a, b):
    return resolve_operation_plan("add", a, b, policy="range_preserving").output


@pytest.mark.parametrize("a, b, result", [
    ("i8", "u8", "i16"), ("i8", "u16", "i32"), ("i32", "u32", "i64"), ("i16", "u32", "i64"), ("u8", "u64", "u64"), ("i64", "f32", "f32"),
    ("f32", "f64", "f64"), ("f16", "f16", "f16"), ("f16", "bf16", "f32"), ("f8e5m2", "f64", "f64"), ("f16", "i8", "f32"),
                                          ("index", "i32", "i64"),
    ("index", "index", "index"), ("bool", "i8", "i32"), ("bool", "bool", "i32"), ("u64", "f16", "f32")])
def test_promotion(a, b, result):
    assert promoted(a, b) == promoted(b, a) == result


@pytest.mark.parametrize("signed", ["i8", "i16", "i32", "i64", "index"])
def test_no_integer_holds_signed_and_u64(signed):
    with pytest.raises(TypeError, match="explicit integer cast"):
        promoted(signed, "u64")


def test_promotion_is_associative_where_it_exists():
    for a in WIDTH:
        for b in WIDTH:
            for c in WIDTH:
                results = set()
                for x, y, z in ((a, b, c), (b, c, a), (a, c, b)):
                    try:
                        results.add(promoted(promoted(x, y), z))
                    except TypeError:
                        results.add(None)
                if not any(x.startswith(("f", "b")) for x in (a, b, c)):
                    assert len(results - {None}) <= 1, (a, b, c)


def test_options():
    assert operation_execution_options("reduce_sum", accumulator_dtype=I.f64).accumulator_dtype == "f64"
    options = operation_execution_options("matmul", accumulator_dtype="f64", policy="checked")
    plan = resolve_operation_plan("matmul", "f32", "i32", options=options, policy="checked")
    assert (plan.accumulator_dtype, plan.output) == ("f64", "f32")
    assert len(plan_accumulator_variants(plan, "checked")) == 2
    for error, arguments in ((TypeError, dict(operation="add")), (TypeError, dict(operation="reduce_sum", accumulator_dtype="float")),
                             (NotImplementedError, dict(operation="reduce_sum", accumulator_dtype="f16", policy="checked"))):
        with pytest.raises(error):
            operation_execution_options(**arguments)


def test_index_arithmetic_is_strict_under_checked():
    assert resolve_operation_plan("floordiv", "index", 2, policy="checked").output == "index"
    with pytest.raises(TypeError):
        resolve_operation_plan("add", "index", "i32", policy="checked")
    with pytest.raises(NotImplementedError):
        resolve_operation_plan("add", "f16", "f16", policy="checked")
