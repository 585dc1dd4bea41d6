"""Elementwise operations as KIR: explicit broadcasts, one dtype, and the FMA of decision 17."""
from __future__ import annotations

from ..kir import Scalar, Tensor
from ..typing.operations import KIND_OF
from ..typing.policy import DOMAINS, default_dtype, literal_problem
from . import build_checked, build_planned
from .emitter import Emitter
from .shapes import broadcast_shapes, is_tensor, place, shape_of
from .values import Deferred, Idx, Lit, Product

FUSED = ("f32", "f64")
COMPARISONS = {"eq", "ne", "lt", "le", "gt", "ge"}
INDEX_POLYNOMIAL = {"add", "sub", "mul", "neg"}


def operand_dtype(e: Emitter, args) -> str:
    """The common dtype; a weak integer counts as index, and as i64 beside one."""
    dts = [dt for dt in map(e.dtype, args) if dt is not None]
    if not dts:
        return default_dtype(args[0].value)
    return next((dt for dt in dts if dt != "index"), "index") if "index" in dts else dts[0]


def elementwise(e: Emitter, kind: str, args, what: str = "", **attrs):
    """An elementwise operation on front values; gives a KIR value, an index polynomial or a product that may be fused."""
    if e.policy.promotes:
        return build_planned.elementwise(e, kind, args, what, **attrs)
    return same_dtype(e, kind, args, what, **attrs)


def same_dtype(e: Emitter, kind: str, args, what: str = "", **attrs):
    """The operation on operands of one dtype; literals take it."""
    dt = operand_dtype(e, args)
    tensor = any(map(is_tensor, args))
    if dt == "index" and not tensor and kind in INDEX_POLYNOMIAL:
        return e.index_arithmetic(kind, *args)
    shape = broadcast_shapes(e, [shape_of(a) for a in args], what or kind) if tensor else ()
    if kind in ("add", "sub") and dt in FUSED:
        fused = _fma(e, kind, args, dt, shape, tensor)
        if fused is not None:
            return fused
    operands = [place(e, a, dt, shape, tensor) for a in args]
    result = _type("bool" if kind in COMPARISONS else dt, shape, tensor)
    if kind == "mul" and dt in FUSED:
        return Product(operands[0], operands[1], result, e.b.loc)
    if not tensor and dt in DOMAINS["i"] and kind not in COMPARISONS:
        # One value for one integer expression, so that extents made by it are known to be equal.
        v = e.shared((kind, *operands), lambda: e.one(kind, operands, result))
        if dt == "index" and kind == "floordiv" and isinstance(args[0], Idx):
            e.note_quotient(v, args[0].extent, e.extent(args[1]))
        return v
    return e.one(kind, operands, result, **attrs)


def _type(dt: str, shape, tensor: bool):
    return Tensor(dt, tuple(shape)) if tensor else Scalar(dt)


def _fma(e: Emitter, kind: str, args, dt: str, shape, tensor: bool):
    """``x + y`` and ``x - y`` fuse y when it is a product of this very expression and shape, else x."""
    x, y = args
    result = _type(dt, shape, tensor)

    def product(v):
        return isinstance(v, Product) and v.value is None and v.type == result and e.policy.contracts
    if product(y):
        a, b, c = y.a, y.b, place(e, x, dt, shape, tensor)
        if kind == "sub":
            a = e.one("neg", (a,), result)
    elif product(x):
        a, b, c = x.a, x.b, place(e, y, dt, shape, tensor)
        if kind == "sub":
            c = e.one("neg", (c,), result)
    else:
        return None
    return e.one("fma", (a, b, c), result)


def named(name: str):
    kind = KIND_OF.get(name, name)

    def build(fb, result, *args):
        return elementwise(fb.e, kind, args, f"I.{name}")
    return build


def clamp(fb, result, value, low, high):
    """Both bounds take part in one dtype; the shape is that of all three."""
    args = _operands(fb.e, "clamp", (value, low, high))
    args = _unify(fb.e, args, "I.clamp")
    return same_dtype(fb.e, "minimum", (same_dtype(fb.e, "maximum", args[:2]), args[2]))


def _operands(e: Emitter, operation: str, args):
    """Operands of an operation that is built from others, converted where the policy says so."""
    return build_planned.operands(e, operation, args)[1] if e.policy.promotes else args


def _unify(e: Emitter, args, what: str):
    dt, tensor = operand_dtype(e, args), any(map(is_tensor, args))
    shape = broadcast_shapes(e, [shape_of(a) for a in args], what) if tensor else ()
    return [place(e, a, dt, shape, tensor) for a in args]


def relu(fb, result, value):
    (value,) = _operands(fb.e, "relu", (value,))
    return same_dtype(fb.e, "maximum", (value, Lit(0)))


def logical_not(fb, result, value):
    return same_dtype(fb.e, "not", _operands(fb.e, "logical_not", (value,)))


def options(**names):
    return {name: True for name, lit in names.items() if lit.value}


def fdiv(fb, result, lhs, rhs, approximate, flush_to_zero):
    return elementwise(fb.e, "div", (lhs, rhs), "I.fdiv", **options(approximate=approximate, ftz=flush_to_zero))


def exp2(fb, result, value, approximate, flush_to_zero):
    return elementwise(fb.e, "exp2", (value,), **options(approximate=approximate, ftz=flush_to_zero))


def tanh(fb, result, value, approximate):
    return elementwise(fb.e, "tanh", (value,), **options(approximate=approximate))


def select(fb, result, cond, a, b, what="I.select"):
    return choose(fb.e, cond, a, b, getattr(result, "dt", "index"), what)


def choose(e: Emitter, cond, a, b, dt: str, what: str = "I.select"):
    """``select`` of front values, in dtype ``dt``."""
    tensor = any(map(is_tensor, (cond, a, b)))
    shape = broadcast_shapes(e, [shape_of(x) for x in (cond, a, b)], what) if tensor else ()
    if isinstance(cond, Lit) and not tensor:
        return a if cond.value else b
    args = [place(e, cond, "bool", shape, tensor)] + [place(e, x, dt, shape, tensor) for x in (a, b)]
    return e.one("select", args, _type(dt, shape, tensor))


def mask(fb, result, value, valid, fill):
    return select(fb, result, valid, value, fill, "I.mask")


def convert(kind: str):
    def build(fb, result, value, dtype):
        if fb.e.policy.raises and kind == "cast":
            return build_checked.cast(fb.e, value, dtype.name)
        return conversion(fb.e, kind, value, dtype.name)
    return build


def conversion(e: Emitter, kind: str, value, dt: str):
    """``cast``, ``saturating_cast`` or ``bitcast`` of a front value."""
    if isinstance(value, Lit) and value.dt is None and kind == "cast":
        if literal_problem(value.value, dt) is None:
            return Idx(e.extent(value)) if dt == "index" else e.const(value.value, dt)
        if isinstance(value.value, bool):
            return e.const(int(value.value), dt)
        if dt in DOMAINS["f"] and isinstance(value.value, float):
            value = Lit(value.value, "f64")
    if isinstance(value, Deferred) and kind == "cast" and dt in DOMAINS["f"]:
        return e.value(value, dt)
    if e.dtype(value) == dt and kind != "bitcast":
        return value if not isinstance(value, Product) else e.product(value)
    v = e.value(value)
    if v.type.dt == dt:
        return v
    t = Tensor(dt, v.type.shape) if isinstance(v.type, Tensor) else Scalar(dt)
    if isinstance(v.type, Scalar) and kind == "cast" and v.type.dt in DOMAINS["i"] and dt == "index":
        return e.index(v)
    return e.one(kind, (v,), t)


def power(e: Emitter, a, b):
    """``**``: power on integers, pow on floats (decision 14)."""
    if e.policy.promotes:
        return build_planned.elementwise(e, "pow", (a, b), "**")
    return elementwise(e, "pow" if operand_dtype(e, (a, b)) in DOMAINS["f"] else "power", (a, b), "**")


BUILD = {
    **{name: named(name) for name in ("add", "subtract", "multiply", "floor_divide", "remainder", "power", "pow", "maximum", "minimum",
                                      "maximum_num", "minimum_num", "fma", "abs", "exp", "log", "log1p", "lgamma", "sin", "asin",
                                      "cos", "floor", "ceil", "sqrt", "rsqrt", "erf", "erfc", "i0", "sigmoid")},
    "clamp": clamp, "relu": relu, "logical_not": logical_not, "fdiv": fdiv, "exp2": exp2, "tanh": tanh, "select": select,
    "mask": mask, "cast": convert("cast"), "saturating_cast": convert("saturating_cast"), "bitcast": convert("bitcast"),
}

