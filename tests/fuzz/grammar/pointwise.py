"""Expressions of a wanted dtype, elementwise over what a block can see. Nothing here breaks an obligation of the caller.

``expression`` gives a value whose shape broadcasts into a limit; ``exact`` one of exactly a dtype and shape.
"""
from __future__ import annotations

from . import checked
from .block import Block
from .types import SIGNED, WIDTH, Value, fits, is_float, of, shape_text

CHEAP = ("sqrt", "floor", "ceil", "abs", "relu")
COSTLY = ("exp", "exp2", "log", "log1p", "sin", "cos", "tanh", "rsqrt", "erf", "sigmoid", "asin", "erfc", "i0", "lgamma")
ORDERINGS = ("<", "<=", ">", ">=", "==", "!=")


def expression(b: Block, dt: str, limit, depth: int = 2) -> Value:
    if b.writer.policy == "checked":
        return checked.expression(b, dt, limit, depth)
    if depth <= 0 or b.chance(0.25):
        return leaf(b, dt, limit)
    if b.chance(0.12):
        return choice(b, dt, limit, depth)
    if b.chance(0.12):
        return conversion(b, dt, limit, depth)
    if dt == "bool":
        return boolean(b, limit, depth)
    return (floating if is_float(dt) else integral)(b, dt, limit, depth)


def leaf(b: Block, dt: str, limit) -> Value:
    found = b.find(lambda v: v.dt == dt and fits(v.shape, limit))
    if found is not None:
        return found
    other = b.find(lambda v: fits(v.shape, limit) and v.dt != dt)
    if other is not None and b.chance(0.8):
        return converted(b, other, dt)
    return Value(f"I.cast({b.literal(dt)}, I.{dt})", dt)


def operand(b: Block, dt: str, limit, depth: int) -> Value:
    """An expression, or now and then a literal, which takes the dtype of what it meets."""
    if b.chance(0.15) and dt != "bool":
        return Value(b.literal(dt), dt)
    return expression(b, dt, limit, depth)


def floating(b: Block, dt: str, limit, depth: int) -> Value:
    x = expression(b, dt, limit, depth - 1)
    kind = b.pick(("unary", "binary", "binary", "binary", "product", "order", "costly", "rare"))
    if kind == "unary":
        return of(b.pick(("(-{})", *(f"I.{f}({{}})" for f in CHEAP))), dt, x)
    if kind == "costly" and b.writer.costly:
        b.writer.costly -= 1
        if b.chance(0.3):
            return of(b.pick(("I.pow({0}, {1})", "I.floor_divide({0}, {1})", "I.remainder({0}, {1})", "({0} ** {1})")), dt, x,
                      expression(b, dt, limit, depth - 1))
        approximate = ", approximate=True" if dt == "f32" and b.chance(0.3) else ""
        flush = ", flush_to_zero=True" if approximate and b.chance(0.5) else ""
        if approximate:
            return of(b.pick((f"I.exp2({{}}{approximate}{flush})", f"I.tanh({{}}{approximate})")), dt, x)
        return of(f"I.{b.pick(COSTLY)}({{}})", dt, x)
    y = operand(b, dt, limit, depth - 1)
    if kind == "product":
        z = operand(b, dt, limit, depth - 1)
        forms = ("({0} * {1} + {2})", "({2} + {1} * {0})", "({0} * {1} - {2})", "({2} - {0} * {1})", "({0} * {0} + {1} * {2})",
                 "I.fma({0}, {1}, {2})", "I.add(I.multiply({0}, {1}), {2})", "({0} * {1} * {2})")
        return of(b.pick(forms), dt, x, typed(b, y), typed(b, z))
    if kind == "order":
        f = b.pick(("maximum", "minimum", "maximum_num", "minimum_num"))
        return of(b.pick((f"I.{f}({{0}}, {{1}})", f"I.{f}({{1}}, {{0}})")), dt, x, y)
    if kind == "rare":
        if dt == "f32" and b.chance(0.5):
            return of(f"I.fdiv({{0}}, {{1}}, approximate=True{b.pick(('', ', flush_to_zero=True'))})", dt, x, y)
        return of(b.pick(("I.clamp({0}, -2.0, 3.0)", "I.fdiv({0}, {1})", "I.subtract({0}, {1})")), dt, x, y)
    return of(b.pick(("({0} + {1})", "({0} - {1})", "({1} - {0})", "({0} * {1})", "({0} / {1})", "({1} / {0})")), dt, x, y)


def typed(b: Block, x: Value) -> Value:
    """A literal given its dtype: two literals may not meet."""
    return Value(f"I.cast({x.text}, I.{x.dt})", x.dt) if x.text.lstrip("-")[0].isdigit() else x


def integral(b: Block, dt: str, limit, depth: int) -> Value:
    x = expression(b, dt, limit, depth - 1)
    kind = b.pick(("unary", "arithmetic", "arithmetic", "bits", "shift", "divide", "order", "rare"))
    if kind == "unary":
        return of(b.pick(("(-{})", "(~{})", "I.abs({})", "I.clamp({}, 3, 100)", "I.relu({})")), dt, x)
    if kind in ("shift", "divide", "rare"):
        y = expression(b, dt, limit, depth - 1)
        if kind == "shift":
            return of(b.pick((f"({{0}} << ({{1}} & {WIDTH[dt] - 1}))", f"({{0}} >> ({{1}} & {WIDTH[dt] - 1}))",
                              f"({{0}} << {b.writer.rnd.randrange(WIDTH[dt])})", f"({{0}} >> {b.writer.rnd.randrange(WIDTH[dt])})")), dt,
                      x, y)
        if kind == "divide":
            divisors = ["(({1} & 7) | 1)", "5", "1"] + (["(({1} & 6) - 8)", "-3"] if dt in SIGNED else [])
            return of(f"({{0}} {b.pick(('//', '%'))} {b.pick(divisors)})", dt, x, y)
        return of(b.pick(("I.power({0}, {1} & 7)", "({0} ** 2)", "({0} ** ({1} & 3))", "I.multiply({0}, {1})")), dt, x, y)
    y = operand(b, dt, limit, depth - 1)
    if kind == "order":
        return of(b.pick(("I.maximum({0}, {1})", "I.minimum({1}, {0})", "I.maximum_num({0}, {1})")), dt, x, y)
    if kind == "bits":
        return of(f"({{0}} {b.pick('&|^')} {{1}})", dt, x, y)
    return of(b.pick(("({0} + {1})", "({0} - {1})", "({1} - {0})", "({0} * {1})", "({0} * {1} + {0})")), dt, x, y)


def boolean(b: Block, limit, depth: int) -> Value:
    kind = b.pick(("compare", "compare", "compare", "logic", "logic", "not", "chain"))
    if kind == "compare":
        return comparison(b, limit, depth)
    x, y = expression(b, "bool", limit, depth - 1), expression(b, "bool", limit, depth - 1)
    if kind == "not":
        return of(b.pick(("(~{0})", "I.logical_not({0})", "({0} == {1})", "({0} != {1})")), "bool", x, y)
    if x.shape is None and y.shape is None and b.chance(0.5):
        return of(b.pick(("({0} and {1})", "({0} or {1})", "(not {0})")), "bool", x, y)
    if kind == "chain" and limit is None:
        dt = numeric(b, limit)
        return of(f"({{0}} {b.pick(ORDERINGS[:4])} {{1}} {b.pick(ORDERINGS)} {{2}})", "bool", leaf(b, dt, None), leaf(b, dt, None),
                  leaf(b, dt, None))
    return of(f"({{0}} {b.pick('&|^')} {{1}})", "bool", x, y)


def numeric(b: Block, limit) -> str:
    """A dtype that something visible has."""
    found = b.find(lambda v: fits(v.shape, limit) and v.dt != "bool")
    return found.dt if found is not None else b.pick([dt for dt in b.writer.dtypes if dt != "bool"])


def comparison(b: Block, limit, depth: int) -> Value:
    dt = numeric(b, limit)
    x, y = expression(b, dt, limit, depth - 1), operand(b, dt, limit, depth - 1)
    return of(f"({{0}} {b.pick(ORDERINGS)} {{1}})", "bool", x, y)


def choice(b: Block, dt: str, limit, depth: int) -> Value:
    x, y = expression(b, dt, limit, depth - 1), expression(b, dt, limit, depth - 1)
    if x.shape is None and y.shape is None and b.chance(0.5):
        return of("({1} if {0} else {2})", dt, comparison(b, None, 1), x, y)
    c = expression(b, "bool", limit, depth - 1)
    if b.chance(0.15):
        return of("I.mask({1}, valid={0}, fill={2})", dt, c, x, y)
    return of("I.select({0}, {1}, {2})", dt, c, x, y)


def conversion(b: Block, dt: str, limit, depth: int) -> Value:
    source = b.pick([d for d in (*b.writer.dtypes, "index") if d != dt])
    return converted(b, expression(b, source, limit, depth - 1), dt)


def converted(b: Block, x: Value, dt: str) -> Value:
    """``x`` as another dtype, by a conversion that is defined for every value."""
    if x.dt == dt:
        return x
    if "bool" not in (x.dt, dt) and "index" not in (x.dt, dt):
        if WIDTH[x.dt] == WIDTH[dt] and b.chance(0.3) and b.writer.policy == "strict":
            # The bits of a NaN are not observable: no NaN is looked at.
            x = of("I.select({0} == {0}, {0}, I.cast(0.5, I." + x.dt + "))", x.dt, x) if is_float(x.dt) else x
            return of(f"I.bitcast({{}}, I.{dt})", dt, x)
        if dt == "f8e4m3fn" or is_float(x.dt) and not is_float(dt) or b.chance(0.1):
            return of(f"I.saturating_cast({{}}, I.{dt})", dt, x)
    if dt == "index" and is_float(x.dt):
        return of("I.cast(I.saturating_cast({}, I.i64), I.index)", dt, x)
    if dt == "f8e4m3fn" and x.dt == "index":
        return of("I.saturating_cast(I.cast({}, I.i64), I.f8e4m3fn)", dt, x)
    return of(f"I.cast({{}}, I.{dt})", dt, x)


def exact(b: Block, dt: str, shape, depth: int = 2) -> Value:
    """A value of exactly this type. Where the block cannot spell the shape, something visible must have it."""
    if b.chance(0.3):
        found = b.find(lambda v: v.dt == dt and v.shape == shape)
        if found is not None:
            return found
    x = expression(b, dt, shape, depth)
    if x.shape == shape:
        return x
    if not b.nameable(shape) or b.chance(0.3) and b.writer.policy != "checked":
        like = b.witness(shape)
        if like is not None:
            return Value(f"I.select({like.text} == {like.text}, {x.text}, {x.text})", dt, shape)
    if x.shape is None and b.chance(0.4):
        return Value(f"I.full({shape_text(shape)}, {x.text}, I.{dt})", dt, shape)
    if dt == "bool":
        return Value(f"({x.text} | I.full({shape_text(shape)}, False, I.bool))", dt, shape)
    return Value(f"({x.text} + I.zeros({shape_text(shape)}, I.{dt}))", dt, shape)


def condition(b: Block) -> str:
    """A scalar condition of control flow: run-time, or known when the kernel is specialised."""
    static = [p for p in b.writer.parameters if p.kind == "constexpr"] if b.kernel else []
    if static and b.chance(0.15):
        p = b.pick(static)
        return {"bool": f"{p.name}", "int": f"{p.name} > 2", "Mode": f"{p.name} == Mode.B"}[p.dt]
    return expression(b, "bool", None, 2).text


def index_of(b: Block, x: Value, extent: str) -> str:
    """An integer value folded into ``0 .. extent - 1``; the extent is positive wherever x has an element."""
    wide = x.text if x.dt == "i64" else f"I.cast({x.text}, I.i64)"
    return f"({wide} % {extent})" if extent.isdigit() else f"({wide} % I.cast({extent}, I.i64))"


def any_dtype(b: Block, numeric_only: bool = False) -> str:
    found = b.find(lambda v: v.dt != "index" and not (numeric_only and v.dt == "bool"))
    if found is not None and b.chance(0.7):
        return found.dt
    return b.pick([d for d in b.writer.dtypes if not (numeric_only and d == "bool")])
