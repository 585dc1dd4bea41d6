"""What do operations on f32, i32 and bool mean under ``checked``? The plans of spec 004 as rules; no Numba.

Integers are exact and leave i32 only with an OverflowError; floats are binary32, each operation rounded by itself. Weak scalars select a
branch: an integer (by type) the integer one, a float or bool the floating one. Added to 004: weak scalars of add, sub and comparisons,
comparisons of i32, casts, and the logic of bools. Index arithmetic stays strict. Spec: 004, SUPPLEMENT 11.
"""
from __future__ import annotations

from .plans import Accumulation, Arithmetic, OperandRole, OperationOverload, OperationSpec, Policy, role_signatures, tensor_domains
from .policy import conversion_specs, fit_literals, in_name_order, int_range, literal_rule, make_plan, refuse_accumulator

T, W = OperandRole.TENSOR, OperandRole.WEAK_SCALAR
F32, I32, BOOLEAN = ("f32",), ("i32",), ("bool",)
ACCUMULATORS = ("f32", "f64")
CONFIGURABLE = frozenset({"reduce_sum", "matmul"})
LARGEST_EXPONENT = 2 ** 31 - 1
WEAK_SCALAR_PROBES = (2, -1, 2 ** 31, 0.5, True)
"""One for every branch: an i32 value, a negative one, one beyond i32, a float, a bool."""

EXACT = Arithmetic.INT32_EXACT_CHECKED
PLANNED_ONLY = ("conv_general", "scatter_add", "sort_indices", "sort_values", "topk_indices", "topk_values")
"""Operations of 004 that the language does not have: plans without execution."""


def is_integral(x) -> bool:
    """Whether a weak scalar selects the integer branch: by type, so 2.0 does not."""
    return isinstance(x, int) and not isinstance(x, bool)


def check_range(name: str, operands) -> None:
    """Raises OverflowError for a weak integer that an integer plan would have to hold as i32."""
    low, high = int_range("i32")
    for x in operands:
        if is_integral(x) and not low <= x <= high:
            raise OverflowError(f"{name}: the literal {x!r} does not fit i32 ({low} .. {high})")


def _numbers(name: str, operands) -> None:
    if "bool" in operands:
        raise TypeError(f"{name} is not defined for bool")


def _integer_branch(operands) -> bool:
    return all(x == "i32" if isinstance(x, str) else is_integral(x) for x in operands)


def _arithmetic(name: str):
    """Integers stay integers and are checked; any float makes both float."""
    def rule(operands, accumulator):
        refuse_accumulator(name, accumulator)
        _numbers(name, operands)
        if _integer_branch(operands):
            check_range(name, operands)
            return make_plan(name, operands, "i32", "i32", compute=EXACT)
        return make_plan(name, operands, "f32", "f32", compute=Arithmetic.BINARY32)
    return rule


def _comparison(name: str):
    def rule(operands, accumulator):
        refuse_accumulator(name, accumulator)
        _numbers(name, operands)
        if _integer_branch(operands):
            check_range(name, operands)
            return make_plan(name, operands, "i32", "bool", compute=Arithmetic.INT32_EXACT)
        return make_plan(name, operands, "f32", "bool", compute=Arithmetic.BINARY32)
    return rule


def _floating(name: str):
    """Operands become f32."""
    def rule(operands, accumulator):
        refuse_accumulator(name, accumulator)
        _numbers(name, operands)
        return make_plan(name, operands, "f32", "f32", compute=Arithmetic.BINARY32)
    return rule


def _only_float(name: str, output: str = "f32"):
    """f32 and nothing else; weak scalars are materialised as f32."""
    def rule(operands, accumulator):
        refuse_accumulator(name, accumulator)
        wrong = [x for x in operands if isinstance(x, str) and x != "f32"]
        if wrong:
            raise TypeError(f"{name}: f32 is required, not {wrong[0]}")
        return make_plan(name, operands, "f32", output, compute=Arithmetic.BINARY32)
    return rule


def _power(name: str):
    """An i32 base stays i32 for a weak integer exponent that is not negative and fits i32; the exponent keeps its value."""
    def rule(operands, accumulator):
        refuse_accumulator(name, accumulator)
        _numbers(name, operands)
        base, exponent = operands
        if base == "i32" and is_integral(exponent) and 0 <= exponent <= LARGEST_EXPONENT:
            return make_plan(name, operands, "i32", "i32", compute=EXACT)
        return make_plan(name, operands, "f32", "f32", compute=Arithmetic.BINARY32)
    return rule


def _relu(operands, accumulator):
    refuse_accumulator("relu", accumulator)
    _numbers("relu", operands)
    (dt,) = operands
    return make_plan("relu", operands, dt, dt, compute=Arithmetic.INT32_EXACT if dt == "i32" else Arithmetic.BINARY32)


def _logical(name: str):
    def rule(operands, accumulator):
        refuse_accumulator(name, accumulator)
        wrong = [x for x in operands if x != "bool" and not isinstance(x, bool)]
        if wrong:
            raise TypeError(f"{name}: bool is required, not {wrong[0]}")
        return make_plan(name, operands, "bool", "bool")
    return rule


def _select(operands, accumulator):
    refuse_accumulator("select", accumulator)
    if operands != ("bool", "f32", "f32"):
        raise TypeError(f"select takes (bool, f32, f32), not ({', '.join(map(str, operands))})")
    return make_plan("select", operands, ["bool", "f32", "f32"], "f32", compute=Arithmetic.BINARY32)


def _accumulated(name: str, floating: Accumulation, integral: Accumulation | None = None, output: str | None = None):
    """Terms combined: f32 in an accumulator of their own, i32 exactly."""
    def rule(operands, accumulator):
        _numbers(name, operands)
        if set(operands) == {"i32"}:
            if integral is None:
                raise TypeError(f"{name}: f32 is required, not i32")
            if accumulator is not None:
                raise TypeError(f"{name}: an exact integer sum has no floating accumulator")
            return make_plan(name, operands, "i32", "i32", integral, compute=EXACT)
        if integral is None and set(operands) != {"f32"}:
            raise TypeError(f"{name}: f32 is required, not {' and '.join(operands)}")
        if name in CONFIGURABLE:
            chosen = accumulator or "f32"
            if chosen not in ACCUMULATORS:
                raise NotImplementedError(f"{name}: no floating accumulator {chosen}")
        elif accumulator is not None:
            raise TypeError(f"{name}: its accumulation is fixed")
        else:
            chosen = None
        return make_plan(name, operands, "f32", output or "f32", floating, chosen, Arithmetic.BINARY32)
    return rule


def _cast(operands, accumulator):
    """cast(value, destination): a float or an index outside i32 raises."""
    refuse_accumulator("cast", accumulator)
    source, dt = operands
    if {source, dt} == {"f32", "index"}:
        raise TypeError("cast: f32 becomes index by way of i32")
    compute = EXACT if dt == "i32" and source in ("f32", "index") else \
        Arithmetic.BINARY32 if dt == "f32" else Arithmetic.LOGICAL if dt == "bool" else Arithmetic.INT32_EXACT
    return make_plan("cast", operands, dt, dt, compute=compute)


def _same(name: str):
    """store and join: nothing converts, literals are materialised."""
    def rule(operands, accumulator):
        refuse_accumulator(name, accumulator)
        dts = {x for x in operands if isinstance(x, str)}
        if len(dts) > 1:
            raise TypeError(f"{name}: {' and '.join(sorted(dts))} do not mix; use an explicit cast")
        (dt,) = dts
        literals = [x for x in operands if not isinstance(x, str)]
        if dt == "f32":
            literals = [x for x in literals if not is_integral(x)]
        fit_literals(name, literals, dt)
        return make_plan(name, operands, dt, dt)
    return rule


def _condition(operands, accumulator):
    refuse_accumulator("condition", accumulator)
    if operands != ("bool",):
        raise TypeError(f"condition: bool is required, not {operands[0]}")
    return make_plan("condition", operands, "bool", "bool")


def literal_dtype(value) -> str:
    """bool, i32 or f32. Raises OverflowError for an integer that does not fit i32."""
    check_range("literal", (value,))
    return "bool" if isinstance(value, bool) else "i32" if isinstance(value, int) else "f32"


def _spec(name: str, rule, signatures, domain=None, positions=None, public=True) -> OperationSpec:
    """``domain``: one dtype domain for every tensor (None: the caller's)."""
    return OperationSpec(name, tuple(OperationOverload(s, rule, None if domain is None else tensor_domains(s, domain)) for s in signatures),
                         public, positions)


def _specs():
    pair, one = ((T, T),), ((T,),)
    with_weak = tuple(role_signatures(2))
    for name in ("add", "sub", "mul"):
        yield _spec(name, _arithmetic(name), with_weak)
    yield _spec("elementwise_mul", _arithmetic("elementwise_mul"), pair)
    yield _spec("div", _floating("div"), with_weak)
    yield _spec("pow", _power("pow"), with_weak)
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        yield _spec(name, _comparison(name), with_weak)
    yield _spec("relu", _relu, one)
    for name in ("sigmoid", "tanh"):
        yield _spec(name, _floating(name), one)
    for name in ("neg", "abs", "exp", "exp2", "log", "log1p", "lgamma", "sin", "asin", "cos", "floor", "ceil", "sqrt", "rsqrt", "erf",
                 "erfc", "i0"):
        yield _spec(name, _only_float(name), one, F32)
    for name in ("maximum", "minimum", "maximum_num", "minimum_num", "floor_divide", "remainder"):
        yield _spec(name, _only_float(name), pair, F32)
    yield _spec("logical_not", _logical("logical_not"), one, BOOLEAN)
    for name in ("and", "or", "xor"):
        yield _spec(name, _logical(name), with_weak, BOOLEAN, public=False)
    yield _spec("not", _logical("not"), one, BOOLEAN, public=False)
    yield OperationSpec("select", (OperationOverload((T, T, T), _select, (BOOLEAN, F32, F32)),))
    yield _spec("clamp", _only_float("clamp"), ((T, T, T), (T, T, W), (T, W, T), (T, W, W)), F32)
    yield _spec("gather", _only_float("gather"), one, F32, (0,))
    yield _spec("scatter", _only_float("scatter"), pair, F32, (0, 2))
    exact = Accumulation.EXACT_INTEGER
    yield _spec("reduce_sum", _accumulated("reduce_sum", Accumulation.FLOATING, exact), one, None, (0,))
    yield _spec("matmul", _accumulated("matmul", Accumulation.FLOATING, exact), pair)
    yield _spec("reduce_prod", _accumulated("reduce_prod", Accumulation.SEQUENTIAL_BINARY32_PRODUCT), one, F32, (0,))
    for name, rule in (("max", Accumulation.MAXIMUM), ("min", Accumulation.MINIMUM)):
        yield _spec(f"reduce_{name}", _accumulated(f"reduce_{name}", rule), one, F32, (0,))
    for name, rule in (("max", Accumulation.ARGMAX), ("min", Accumulation.ARGMIN)):
        yield _spec(f"arg_reduce_{name}", _accumulated(f"arg_reduce_{name}", rule, output="i32"), one, F32, (0,))
    yield _spec("cumsum", _accumulated("cumsum", Accumulation.SEQUENTIAL_BINARY32), one, F32, (0,))
    yield _spec("conv_general", _accumulated("conv_general", Accumulation.SEQUENTIAL_BINARY32), pair, F32, (0, 1))
    yield _spec("scatter_add", _accumulated("scatter_add", Accumulation.SEQUENTIAL_BINARY32), pair, F32, (0, 2))
    for name in ("sort", "topk"):
        yield _spec(f"{name}_values", _only_float(f"{name}_values"), one, F32, (0,), public=False)
        yield _spec(f"{name}_indices", _only_float(f"{name}_indices", "i32"), one, F32, (0,), public=False)
    domains = ("f32", "i32", "bool")
    yield from conversion_specs(_cast, _same("store"), _same("join"), _condition, literal_rule(literal_dtype), domains)


HIDDEN = frozenset({"and", "or", "xor", "not", "store", "join", "condition", "literal"})
"""Entries that the facade of 004 leaves out."""


def make_policy() -> Policy:
    return Policy("checked", in_name_order(_specs()), promotes=True, contracts=False, weak_floats=True, raises=True, default_float="f32",
                  tensor_dtypes=("f32", "i32"), weak_probes=WEAK_SCALAR_PROBES, accumulators=ACCUMULATORS, configurable=CONFIGURABLE,
                  implemented=frozenset(("f32", "i32", "bool", "index")), index_policy="strict")
