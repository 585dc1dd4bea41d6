"""Expressions under the policy ``checked``: the operations that 004 plans for f32, i32 and bool. Integers may overflow, which must
end the call by every road; dead and guarded operations are made on purpose.
"""
from __future__ import annotations

from .block import Block
from .types import Value, fits, of

DTYPES = ("i32", "i32", "f32", "bool")
FUNCTIONS = ("abs", "floor", "ceil", "sqrt", "relu", "exp", "log1p", "tanh", "sin", "sigmoid")


def expression(b: Block, dt: str, limit, depth: int) -> Value:
    if depth <= 0 or b.chance(0.2):
        return leaf(b, dt, limit)
    return {"i32": integer, "f32": floating, "bool": boolean}[dt](b, limit, depth)


def leaf(b: Block, dt: str, limit) -> Value:
    found = b.find(lambda v: v.dt == dt and fits(v.shape, limit))
    other = b.find(lambda v: v.dt in ("i32", "bool") and v.dt != dt and fits(v.shape, limit))
    if found is None and dt == "f32" and other is not None:
        return of("I.cast({}, I.f32)", dt, other)
    return found or Value(f"I.cast({b.literal(dt)}, I.{dt})", dt)


def operand(b: Block, dt: str, limit, depth: int) -> Value:
    return Value(b.literal(dt), dt) if b.chance(0.2) else expression(b, dt, limit, depth)


def integer(b: Block, limit, depth: int) -> Value:
    x, y = expression(b, "i32", limit, depth - 1), operand(b, "i32", limit, depth - 1)
    if x.shape is None and y.shape is None and b.chance(0.25):
        # What is guarded does not run, and does not overflow.
        return of("({0} if {1} else {2})", "i32", x, boolean(b, None, 1), expression(b, "i32", None, depth - 1))
    if b.chance(0.1):
        return of("I.cast({0}, I.i32)", "i32", expression(b, "f32", limit, depth - 1))
    return of(b.pick(("({0} + {1})", "({0} - {1})", "({1} - {0})", "({0} * {1})", "({0} * {1} + {0})", "({0} ** 2)", "I.relu({0})",
                      "I.add({0}, {1})", "I.multiply({0}, {1})")), "i32", x, y)


def floating(b: Block, limit, depth: int) -> Value:
    kind = b.pick(("binary", "binary", "mixed", "function", "select", "order", "divide"))
    x = expression(b, "f32", limit, depth - 1)
    if kind == "function":
        return of(f"I.{b.pick(FUNCTIONS)}({{}})", "f32", x)
    if kind == "select":
        return of("I.select({0}, {1}, {2})", "f32", boolean(b, limit, 1), x, expression(b, "f32", limit, depth - 1))
    if kind == "order":
        return of(f"I.{b.pick(('maximum', 'minimum', 'maximum_num', 'minimum_num'))}({{0}}, {{1}})", "f32", x,
                  expression(b, "f32", limit, depth - 1))
    if kind == "mixed":
        return of(b.pick(("({0} + {1})", "({1} - {0})", "({0} * {1})", "({1} / {0})")), "f32", x, leaf(b, "i32", limit))
    if kind == "divide":
        return of("({0} / {1})", "f32", leaf(b, "i32", limit), leaf(b, "i32", limit))
    y = operand(b, "f32", limit, depth - 1)
    return of(b.pick(("({0} + {1})", "({0} - {1})", "({0} * {1})", "({0} / {1})", "({0} * {1} + {0})", "({0} * {1} - {0})")), "f32", x, y)


def boolean(b: Block, limit, depth: int) -> Value:
    if depth > 1 and b.chance(0.4):
        x, y = boolean(b, limit, depth - 1), boolean(b, limit, depth - 1)
        scalars = ("({0} and {1})", "({0} or {1})", "(not {0})") if x.shape is None and y.shape is None else ()
        return of(b.pick(("({0} & {1})", "({0} | {1})", "({0} ^ {1})", "(~{0})", *scalars)), "bool", x, y)
    dt = b.pick(("i32", "f32"))
    return of(f"({{0}} {b.pick(('<', '<=', '>', '>=', '==', '!='))} {{1}})", "bool", expression(b, dt, limit, depth - 1),
              operand(b, dt, limit, depth - 1))
