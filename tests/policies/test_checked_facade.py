"""Every scenario of spec 004 that is about planning, as written there, through the facade with its own descriptors."""
import dataclasses
import inspect

import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from intent_numba.typing import checked, plans
from intent_numba.typing.checked import (CompoundDType, DType, DTypeCategory, OperationExecutionOptions, SimpleDType,
                                         operation_execution_options,
                                         plan_accumulator_variants, registered_operations, resolvable_plans, resolve_operation_plan)
from intent_numba.typing.checked import Accumulation as Acc
from intent_numba.typing.checked import Arithmetic as Ar
from intent_numba.typing.checked import OperandPlan, OperandRole, OperationOverload, OperationPlan, OperationSpec

F, N, B = DType.Float32, DType.Int32, DType.Bool
T, W = OperandRole.TENSOR, OperandRole.WEAK_SCALAR
CATEGORIES = (DType.Any, DType.Floating, DType.Integer, DTypeCategory("Extension"))


def resolved(*args, **options):
    plan = resolve_operation_plan(*args, **options)
    return tuple(o.convert_to for o in plan.operands), plan.compute, plan.output


def test_inspect_a_mixed_add_plan():
    plan = resolve_operation_plan("add", N, F)
    assert plan == OperationPlan("add", (OperandPlan(T, N, F), OperandPlan(T, F, F)), Ar.BINARY32, None, None, F)
    assert hash(plan) == hash(resolve_operation_plan("add", N, F))
    with pytest.raises(dataclasses.FrozenInstanceError):
        plan.output = N


def test_distinguish_exact_reduction_accumulation():
    plan = resolve_operation_plan("reduce_sum", N)
    assert (plan.accumulation, plan.accumulator_dtype, plan.output) == (Acc.EXACT_INTEGER, None, N)
    assert (floating := resolve_operation_plan("reduce_sum", F)).accumulation is Acc.FLOATING and floating.accumulator_dtype is F


def test_keep_non_dtype_parameters_out_of_planning():
    positions = {s.name: s.dtype_operand_positions for s in registered_operations()}
    assert positions["reduce_sum"] == (0,) and positions["scatter"] == (0, 2) and positions["add"] is None
    with pytest.raises(TypeError):
        resolve_operation_plan("reduce_sum", F, 0)


def test_enumerate_policy_coverage():
    plans = resolvable_plans()
    assert len(set(plans)) == len(plans) and plans == resolvable_plans()
    signatures = {(p.operation, tuple(o.role for o in p.operands)) for p in plans}
    assert signatures == {(s.name, o.roles) for s in registered_operations() for o in s.overloads}
    for name in ("reduce_sum", "matmul"):
        found = [p.accumulator_dtype for p in plans if p.operation == name and all(o.dtype is F for o in p.operands)]
        assert found == [F, DType.Float64]
    assert {p.operation for p in plans if p.accumulator_dtype} == {"reduce_sum", "matmul"}
    assert (checked.SUPPORTED_TENSOR_DTYPES, checked.SUPPORTED_ACCUMULATOR_DTYPES) == ((F, N), (F, DType.Float64))


def test_registry_order():
    names = [s.name for s in registered_operations()]
    assert names == sorted(set(names))


def test_select_tensor_and_scalar_overloads_separately():
    for name in ("mul", "pow"):
        spec = next(s for s in registered_operations() if s.name == name)
        assert {(T, T), (T, W)} <= {o.roles for o in spec.overloads}
    assert resolved("pow", N, N) == ((F, F), Ar.BINARY32, F)
    assert resolved("pow", N, 2) == ((N, N), Ar.INT32_EXACT_CHECKED, N)
    assert resolved("pow", 2, N) == ((F, F), Ar.BINARY32, F)


def test_reject_an_unknown_operation():
    with pytest.raises(NotImplementedError):
        resolve_operation_plan("transmogrify", F)


def test_treat_bool_as_a_weak_floating_scalar():
    plan = resolve_operation_plan("mul", N, True)
    assert plan.output is F and plan.operands[1] == OperandPlan(W, None, F)


def test_reject_an_out_of_range_integer_scalar_on_an_integer_path():
    for x in (2 ** 31, -2 ** 31 - 1):
        with pytest.raises(OverflowError):
            resolve_operation_plan("mul", N, x)
        assert resolved("mul", F, x)[2] is F
    assert resolved("mul", N, 2 ** 31 - 1)[2] is N and resolved("mul", N, -2 ** 31)[2] is N


def test_integral_is_by_type():
    assert resolved("mul", N, 2.0)[2] is F and resolved("mul", N, np.int64(2))[2] is N


def test_preserve_an_integer_exponent_exactly():
    for exponent in (0, 2 ** 24 + 1, 2 ** 31 - 1):
        assert resolved("pow", N, exponent) == ((N, N), Ar.INT32_EXACT_CHECKED, N)
    for exponent in (-1, 2 ** 31, 0.5, True):
        assert resolved("pow", N, exponent)[2] is F


def test_plan_integer_division_as_floating():
    for a in (F, N):
        for b in (F, N):
            assert resolved("div", a, b) == ((F, F), Ar.BINARY32, F)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "elementwise_mul"])
def test_promotion_family(name):
    assert resolved(name, N, N) == ((N, N), Ar.INT32_EXACT_CHECKED, N)
    for pair in ((F, N), (N, F), (F, F)):
        assert resolved(name, *pair) == ((F, F), Ar.BINARY32, F)


def test_unary_families():
    assert resolved("relu", N)[2] is N and resolved("relu", F)[2] is F
    assert resolved("sigmoid", N) == ((F,), Ar.BINARY32, F)
    assert resolved("exp", F)[2] is F and resolved("lt", F, F)[2] is B and resolved("logical_not", B)[2] is B
    for call in (("exp", N), ("maximum", N, N), ("logical_not", N), ("add", B, B), ("mul", B, F), ("relu", B), ("lt", B, B)):
        with pytest.raises(TypeError):
            resolve_operation_plan(*call)


def test_plan_a_masked_selection():
    plan = resolve_operation_plan("select", B, F, F)
    assert (plan.compute, plan.accumulation, plan.output) == (Ar.BINARY32, None, F)


def test_refuse_a_wrong_structured_operand_dtype():
    for call in (("select", F, F, F), ("select", B, N, F), ("clamp", N, 0, 1), ("clamp", F, N, 1), ("gather", N), ("scatter", F, N),
                 ("conv_general", N, F), ("reduce_prod", N), ("cumsum", N), ("reduce_max", N), ("reduce_sum", B), ("matmul", B, F)):
        with pytest.raises(TypeError):
            resolve_operation_plan(*call)


def test_structured_families():
    assert [resolved("clamp", F, *bounds)[2] for bounds in ((F, F), (F, 1), (0.5, F), (0, True))] == [F] * 4
    for name, accumulation, output in (("reduce_prod", Acc.SEQUENTIAL_BINARY32_PRODUCT, F), ("cumsum", Acc.SEQUENTIAL_BINARY32, F),
                                       ("reduce_max", Acc.MAXIMUM, F), ("reduce_min", Acc.MINIMUM, F), ("arg_reduce_max", Acc.ARGMAX, N),
                                       ("arg_reduce_min", Acc.ARGMIN, N), ("gather", None, F), ("sort_values", None, F),
                                       ("sort_indices", None, N),
                                       ("topk_values", None, F), ("topk_indices", None, N)):
        plan = resolve_operation_plan(name, F)
        assert (plan.accumulation, plan.accumulator_dtype, plan.output) == (accumulation, None, output)
    for name in ("conv_general", "scatter_add"):
        assert resolve_operation_plan(name, F, F).accumulation is Acc.SEQUENTIAL_BINARY32
    assert resolved("matmul", F, N) == ((F, F), Ar.BINARY32, F)
    assert resolve_operation_plan("matmul", N, N).accumulation is Acc.EXACT_INTEGER


def test_operations_that_have_a_plan_and_no_execution():
    assert checked.PLANNED_ONLY == ("conv_general", "scatter_add", "sort_indices", "sort_values", "topk_indices", "topk_values")
    assert {s.name for s in registered_operations() if not s.public} == {n for n in checked.PLANNED_ONLY if "_i" in n or "_v" in n}


def test_widen_a_float32_reduction_accumulator():
    options = operation_execution_options("reduce_sum", accumulator_dtype=DType.Float64)
    base, plan = resolve_operation_plan("reduce_sum", F), resolve_operation_plan("reduce_sum", F, options=options)
    assert plan == dataclasses.replace(base, accumulator_dtype=DType.Float64)
    assert plan_accumulator_variants(base) == (base, plan) and plan_accumulator_variants(plan) == (plan, base)
    add = resolve_operation_plan("add", F, F)
    assert plan_accumulator_variants(add) == (add,)
    exact = resolve_operation_plan("matmul", N, N)
    assert plan_accumulator_variants(exact) == (exact,)


def test_options_refuse():
    assert operation_execution_options("matmul") == OperationExecutionOptions("matmul", None)
    for error, call in ((TypeError, ("add", F)), (TypeError, ("reduce_sum", DType.Floating)),
                        (TypeError, ("reduce_sum", CompoundDType("pair"))),
                        (TypeError, ("reduce_sum", "Float32")), (NotImplementedError, ("matmul", DType.Float16)),
                        (NotImplementedError, ("matmul", N))):
        with pytest.raises(error):
            operation_execution_options(call[0], accumulator_dtype=call[1])
    options = operation_execution_options("reduce_sum", accumulator_dtype=F)
    with pytest.raises(TypeError):
        resolve_operation_plan("reduce_sum", F, accumulator_dtype=F, options=options)
    with pytest.raises(ValueError):
        resolve_operation_plan("matmul", F, F, options=options)
    for call in (("reduce_sum", N), ("matmul", N, N), ("add", F, F)):
        with pytest.raises(TypeError):
            resolve_operation_plan(*call, accumulator_dtype=F)


@pytest.mark.parametrize("category", CATEGORIES, ids=lambda c: c.name)
def test_refuse_an_abstract_category_uniformly(category):
    for spec in registered_operations():
        for overload in spec.overloads:
            operands = [category if role is T else 1 for role in overload.roles]
            with pytest.raises(TypeError, match="abstract category"):
                resolve_operation_plan(spec.name, *operands)


def test_refuse_an_unimplemented_simple_encoding():
    for dt in (DType.Float16, DType.Float64, DType.Int8, DType.UInt32):
        with pytest.raises(NotImplementedError):
            resolve_operation_plan("add", dt, F)


def test_refuse_compound_planning_separately():
    with pytest.raises(NotImplementedError, match="representation-aware"):
        resolve_operation_plan("add", CompoundDType("pair", (F, N)), F)


def test_dtypes_match_by_identity():
    for impostor in (SimpleDType("Float32", "f32"), "f32", np.float32, np.dtype("f4")):
        with pytest.raises(TypeError):
            resolve_operation_plan("add", impostor, F)
    for call in (("add", F), ("add", F, F, F), ("add", F, 1j), ("add", F, None), ("add", 1, 2)):
        with pytest.raises(TypeError):
            resolve_operation_plan(*call)


def test_specifications_check_themselves():
    overload = OperationOverload((T,), None)
    for build in (lambda: OperationSpec("x", ()), lambda: OperationSpec("x", (overload, overload)),
                  lambda: OperationOverload((T,), None, ((),)),
                  lambda: OperationOverload((T, W), None, ((F,), (F,))), lambda: OperationSpec("x", (overload,), True, (0, 1)),
                  lambda: OperationSpec("x", (overload,), True, (-1,)),
                  *(lambda p=p: OperationSpec("x", (OperationOverload((T, T), None),), True, p) for p in ((0, 0), (1, 0), (0,)))):
        with pytest.raises(ValueError):
            build()
    one = OperationSpec("x", (overload,))
    assert one.public and one.dtype_operand_positions is None and one.roles == (T,)
    two = OperationSpec("x", (overload, OperationOverload((T, T), None)))
    for name in ("roles", "rule"):
        with pytest.raises(AttributeError):
            getattr(two, name)


def test_records_and_signatures_are_those_of_the_text():
    fields = {OperandPlan: "role dtype convert_to", OperationPlan: "operation operands compute accumulation accumulator_dtype output",
              OperationOverload: "roles rule tensor_domains", OperationSpec: "name overloads public dtype_operand_positions",
              OperationExecutionOptions: "operation accumulator_dtype"}
    for record, names in fields.items():
        assert " ".join(f.name for f in dataclasses.fields(record)) == names
        assert record.__dataclass_params__.frozen and record.__hash__ is not None
    text = {function: str(inspect.signature(function)).split(" ->")[0] for function in (
        resolve_operation_plan, operation_execution_options, plan_accumulator_variants, registered_operations)}
    assert list(text.values()) == ["(operation, *operands, accumulator_dtype=None, options=None)", "(operation, *, accumulator_dtype=None)",
                                   "(plan: 'OperationPlan')", "()"]
    defaults = {name: p.default for name, p in inspect.signature(resolvable_plans).parameters.items()}
    assert defaults == {"tensor_dtypes": checked.SUPPORTED_TENSOR_DTYPES, "weak_scalars": checked.WEAK_SCALAR_PROBES}
    defaults = [(c, {n: p.default for n, p in inspect.signature(c).parameters.items() if p.default is not p.empty}) for c in fields]
    assert defaults[2:] == [(OperationOverload, {"tensor_domains": None}),
                            (OperationSpec, {"public": True, "dtype_operand_positions": None}),
                            (OperationExecutionOptions, {"accumulator_dtype": None})]
    assert {a.name for a in Ar} >= {"BINARY32", "INT32_EXACT_CHECKED", "INT32_EXACT"} and {r.name for r in OperandRole} == {"TENSOR",
                                                                                                                           "WEAK_SCALAR"}
    assert {a.name for a in Acc} >= {"FLOATING", "SEQUENTIAL_BINARY32", "SEQUENTIAL_BINARY32_PRODUCT", "MAXIMUM", "MINIMUM", "ARGMAX",
                                     "ARGMIN", "EXACT_INTEGER"}


def test_enumeration_follows_its_domains():
    """A smaller domain gives a part of the plans, in the same order; a pinned domain stays."""
    everything, some = resolvable_plans(), resolvable_plans((F,), (0.5,))
    assert set(some) < set(everything) and some == tuple(p for p in everything if p in set(some))
    assert {o.dtype for p in some for o in p.operands} == {F, B, N, None}       # Bool of select, Int32 of casts
    assert all(p.operation == "cast" for p in some if N in {o.dtype for o in p.operands})
    assert resolvable_plans((), ()) == tuple(p for p in everything if all(
        o.tensor_domains for s in registered_operations() if s.name == p.operation for o in s.overloads) and all(
        o.role is T for o in p.operands))
    for plan in everything:                                                      # each is what resolution gives for its operands
        if all(o.role is T for o in plan.operands):
            variants = plan_accumulator_variants(resolve_operation_plan(plan.operation, *(o.dtype for o in plan.operands)))
            assert plan in variants


def test_a_rule_that_disagrees_with_its_registration():
    def wrong(operands, accumulator):
        return resolve_operation_plan("sub", *operands)
    spec = OperationSpec("add", (OperationOverload((T, T), wrong),))
    with pytest.raises(RuntimeError, match="does not agree"):
        plans.resolve(spec, (F, F), lambda x: isinstance(x, SimpleDType))


def test_nothing_is_computed_when_resolution_fails():
    @intent.kernel(policy="checked")
    def refused(a: I.In[I.i32, ("N",)], y: I.Out[I.i32, ("N",)], z: I.Out[I.i32, ("N",)]):
        y[:] = a[:] + a[:]
        z[:] = a[:] + 2147483648
    y = np.full(2, 7, np.int32)
    with pytest.raises(intent.IntentTypeError, match="2147483648 does not fit i32"):
        refused(np.array([1, 2], np.int32), y, y.copy())
    assert y.tolist() == [7, 7]
