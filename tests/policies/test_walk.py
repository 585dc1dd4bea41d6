"""Every plan of every policy: type inference gives what the plan says, compiled code gives the bits of the reference, and both give what
NumPy gives in the dtypes that the plan names.

The types are compared for all plans. Programs are made of batches of plans; ``INTENT_WALK=all`` runs every batch (an hour), otherwise a
sample that holds every operation runs, with ``INTENT_WALK_SAMPLES`` plans of each.
"""
from __future__ import annotations

import operator
import os

import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from intent_numba.typing import operations, operations_structured
from intent_numba.typing.active import policy_in_force
from intent_numba.typing.checked_rules import PLANNED_ONLY
from intent_numba.typing.plans import OperandRole
from intent_numba.typing.policy import FLOATS, POINTWISE, SIGNED, int_range, policy_named, resolvable_plans, resolve_operation_plan
from intent_numba.typing.types import DTypeT, Lit, NoneT, Tensor
from tests.support import assert_same_bits, check, numpy_dtype, out

POLICIES = ("strict", "range_preserving", "checked")
ALL = os.environ.get("INTENT_WALK") == "all"
BATCH, COUNT = 24, 11
SAMPLES = int(os.environ.get("INTENT_WALK_SAMPLES") or 4)
"""Plans of each operation in a sample."""
OPERATORS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "floordiv": "//", "mod": "%", "and": "&", "or": "|", "xor": "^", "shl": "<<",
             "shr": ">>", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
PREFIX = {"neg": "-", "not": "~"}
NAMES = {"elementwise_mul": "multiply"}
TYPED_ONLY = {"literal"}
"""Plans of values that are in every program."""


def plans_of(policy: str) -> list:
    dtypes = ("f32", "i32", "bool") if policy == "checked" else None
    return [p for p in resolvable_plans(dtypes, policy=policy) if p.operation not in PLANNED_ONLY]


def operands_of(plan, policy: str) -> list:
    """Dtypes, and for weak scalars the probe that selects this plan."""
    if all(o.role is OperandRole.TENSOR for o in plan.operands):
        return [o.dtype for o in plan.operands]
    for probe in policy_named(policy).weak_probes:
        operands = [probe if o.dtype is None else o.dtype for o in plan.operands]
        try:
            if resolve_operation_plan(plan.operation, *operands, policy=policy) == plan:
                return operands
        except (TypeError, OverflowError):
            continue
    raise AssertionError(plan)


# --- types ---------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("policy", POLICIES)
def test_type_inference_gives_what_plans_say(policy):
    count = 0
    with policy_in_force(policy):
        for plan in plans_of(policy):
            found = inferred(plan, [Tensor(x, 1) if isinstance(x, str) else Lit(x) for x in operands_of(plan, policy)])
            if found is not None:
                assert found == plan.output, plan
                count += 1
    assert count > {"strict": 2000, "range_preserving": 20000, "checked": 150}[policy]


def inferred(plan, args):
    """The dtype that the typing rules give, None for plans that are no operation."""
    name, acc = plan.operation, NoneT() if plan.accumulator_dtype is None else DTypeT(plan.accumulator_dtype)
    if name == "pow" and plan.operands[-1].convert_to not in FLOATS:
        return operations.binary(operator.pow, *args).dt
    if name in POINTWISE:
        return operations.elementwise(name, args).dt
    if name == "select":
        return operations.select(*args).dt
    if name == "cast":
        return operations.cast(args[0], DTypeT(args[1].dt)).dt
    zero, rules = Lit(0), operations_structured.RULES
    if name in ("reduce_any", "reduce_all"):
        return rules[name.replace("_", ".")](args[0], zero).dt
    if name.startswith("reduce_"):
        return rules[name.replace("_", ".")](args[0], zero, acc).dt
    if name.startswith("arg_reduce_"):
        return rules["arg_reduce." + name[-3:]](args[0], zero).types[1].dt
    if name in ("cumsum", "cummax"):
        return rules[name](args[0], zero, Lit(True), Lit(False), acc).dt
    if name in ("contract", "matmul"):
        return rules["dot"](*args, DTypeT("i32") if plan.accumulator_dtype is None else acc).dt
    return None


# --- programs ------------------------------------------------------------------------------------------------------------

def data(position: int, dt: str, small: bool) -> np.ndarray:
    """First operands have everything; the others are positive and small: divisors, counts, exponents."""
    if dt == "bool":
        return np.arange(COUNT) * (position + 1) % 3 == 0
    if position or small:
        values = [1, 2, 3, 5, 7, 4, 6, 1, 2, 3, 5]
        return np.roll(np.array(values, np.float64), position).astype(numpy_dtype(dt))
    if dt in FLOATS:
        return np.array([-2.5, 0.5, 0.0, -0.0, 3.0, 100.0, np.nan, np.inf if dt != "f8e4m3fn" else 448.0, -7.0, 0.1,
                         1.0]).astype(numpy_dtype(dt))
    low, high = int_range(dt)
    values = [0, 1, 2, 3, 7, 100, high, high - 1, low, 55, 9] if dt not in SIGNED else [-5, -1, 0, 3, 7, 100, high, low, low + 1, -77, 9]
    return np.array(values, numpy_dtype(dt))


def statement(n: int, plan, operands, policy: str):
    """(lines, dtype and shape of the output, views used) of one plan."""
    small = policy == "checked" or plan.operation in ("cast", "store")
    views = {f"{'s' if small else 'x'}{k}_{x}": (k, x, small) for k, x in enumerate(operands) if isinstance(x, str)}
    text = [f"{'s' if small else 'x'}{k}_{x}[:]" if isinstance(x, str) else repr(x) for k, x in enumerate(operands)]
    element = [t.replace("[:]", "[i]") for t in text]
    name, acc = plan.operation, plan.accumulator_dtype
    y, shape = f"y{n}", (COUNT,)
    acc_text = "" if acc is None else f", acc_dtype=I.{acc}"
    if name == "pow" and (plan.operands[-1].convert_to not in FLOATS or policy == "checked"):
        value = f"{text[0]} ** {text[1]}"
    elif name in OPERATORS:
        value = f"{text[0]} {OPERATORS[name]} {text[1]}"
    elif name in PREFIX:
        value = f"{PREFIX[name]}{text[0]}"
    elif name == "select" or name in POINTWISE or name in NAMES:
        value = f"I.{NAMES.get(name, name)}({', '.join(text)})"
    elif name == "cast":
        value = f"I.cast({text[0]}, I.{operands[1]})"
    elif name == "store":
        views = {v: k for v, k in views.items() if k[0] == 1}
        value = text[1]
    elif name == "gather":
        value = f"I.gather({text[0][:-3]}, index=(I.indices(I.domain(0, {text[0][:-3]}.shape[0])),))"
    elif name == "scatter":
        return [f"I.scatter_unique({y}, index=(I.indices(I.domain(0, {y}.shape[0])),), value={text[1]})"], (plan.output, shape), views
    elif name in ("join", "condition"):
        chosen = f"{element[0]} if i % 2 == 0 else {element[1]}" if name == "join" else f"True if {element[0]} else False"
        return ["for i in I.domain(0, c.shape[0]):", f"    {y}[i] = {chosen}"], (plan.output, shape), views
    elif name in ("cumsum", "cummax"):
        value = f"I.{name}({text[0]}, axis=0{acc_text})"
    else:
        shape = ()
        if name in ("contract", "matmul"):
            value = f"I.dot({', '.join(text)}, acc_dtype=I.{acc or 'i32'})[()]"
        else:
            kind, at = name.rsplit("_", 1)
            any_all = at in ("any", "all")
            value = f"I.{kind}.{at}({text[0]}, axis=0{'' if kind == 'arg_reduce' or any_all else acc_text})"
            value += "[1]" if kind == "arg_reduce" else ""
    return [f"{y}[{':' if shape else '()'}] = {value}"], (plan.output, shape), views


BY_NUMPY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "elementwise_mul": np.multiply, "div": np.divide, "eq": np.equal,
            "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "and": np.bitwise_and,
            "or": np.bitwise_or, "xor": np.bitwise_xor, "shl": np.left_shift, "shr": np.right_shift, "neg": np.negative, "abs": np.abs,
            "not": np.invert, "logical_not": np.logical_not, "sqrt": np.sqrt, "select": np.where, "store": lambda to, x: x,
            "floordiv": np.floor_divide, "mod": np.remainder, "condition": lambda x: x,
            "join": lambda x, y: np.where(np.arange(COUNT) % 2 == 0, x, y)}
"""What the words of a plan mean, for operations that NumPy has in every dtype; f8 is left to the tests of conversions."""


def by_plan(plan, operands, policy: str):
    """The result that the plan describes: operands converted, one operation, the result converted."""
    dtypes = {plan.output, *(o.dtype for o in plan.operands), *(o.convert_to for o in plan.operands)}
    if plan.operation not in BY_NUMPY or any(str(dt).startswith("f8") for dt in dtypes):
        return None
    on_floats = plan.operation in ("floordiv", "mod") and plan.operands[-1].convert_to in FLOATS
    if on_floats or plan.operation == "shl" and plan.operands[0].dtype != plan.operands[0].convert_to:
        return None
    small = policy == "checked" or plan.operation == "store"
    values = []
    for k, (x, o) in enumerate(zip(operands, plan.operands)):
        x = data(k, x, small) if isinstance(x, str) else np.array(x)
        values.append(x != 0 if o.convert_to == "bool" else x.astype(numpy_dtype(o.convert_to)))
    with np.errstate(all="ignore"):
        return np.broadcast_to(BY_NUMPY[plan.operation](*values), (COUNT,)).astype(numpy_dtype(plan.output))


def batches(policy: str) -> list:
    found = [p for p in plans_of(policy) if p.operation not in TYPED_ONLY]
    if not ALL:
        by_name: dict = {}
        for p in found:
            by_name.setdefault(p.operation, []).append(p)
        found = [p for plans in by_name.values() for p in plans[::max(1, len(plans) // SAMPLES)]]
    return [found[i:i + BATCH] for i in range(0, len(found), BATCH)]


@pytest.mark.parametrize("policy, batch", [pytest.param(p, i, id=f"{p}-{i}") for p in POLICIES for i in range(len(batches(p)))])
def test_compiled_plans_give_the_bits_of_the_reference(policy, batch):
    lines, outs, views, plans = [], [], {}, batches(policy)[batch]
    for n, plan in enumerate(plans):
        body, result, used = statement(n, plan, operands_of(plan, policy), policy)
        lines += body
        outs.append(result)
        views.update(used)
    params = ["c: I.In[I.f32, ('N',)]"] + [f"{v}: I.In[I.{dt}, ('N',)]" for v, (_, dt, _) in views.items()]
    params += [f"y{n}: I.Out[I.{dt}, {shape and ('N',)}]" for n, (dt, shape) in enumerate(outs)]
    scope = {"I": I}
    exec(f"def walked({', '.join(params)}):\n    " + "\n    ".join(lines) + "\n", scope)
    args = [np.zeros(COUNT, np.float32), *(data(*key) for key in views.values()), *(out(shape, dt) for dt, shape in outs)]
    try:
        results = check(intent.kernel(policy=policy)(scope["walked"]), args, layouts=("mixed",))
        for got, plan in zip(results, plans):
            want = by_plan(plan, operands_of(plan, policy), policy)
            if want is not None:
                assert_same_bits(got, want, str(plan))
    except BaseException:
        print("\n".join(lines))
        raise
