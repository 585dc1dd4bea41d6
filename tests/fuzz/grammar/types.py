"""What a generated program knows about its values: dtypes, shapes as texts of extents, and how shapes meet.

An extent is the text that names it inside the program: a digit, a dimension such as ``M``, a domain's name, or a product.
"""
from __future__ import annotations

from dataclasses import dataclass, field

FLOATS = ("f32", "f64", "f16", "bf16", "f8e5m2", "f8e4m3fn")
SIGNED = ("i8", "i16", "i32", "i64")
UNSIGNED = ("u8", "u16", "u32", "u64")
INTEGERS = (*SIGNED, *UNSIGNED)
STORED = (*FLOATS, *INTEGERS, "bool")
WIDTH = {"bool": 8, "index": 64, "f8e4m3fn": 8, "f8e5m2": 8, "bf16": 16, **{dt: int(dt[1:]) for dt in (*INTEGERS, "f16", "f32", "f64")}}
WIDENED = {"i8": "i32", "i16": "i32", "u8": "u32", "u16": "u32", **{dt: "f32" for dt in FLOATS if WIDTH[dt] < 32}}
"""Accumulators of sums, where they are not the operand's dtype."""


def is_float(dt: str) -> bool:
    return dt in FLOATS


def is_integer(dt: str) -> bool:
    return dt in INTEGERS or dt == "index"


@dataclass(frozen=True)
class Value:
    """An expression of the program. A scalar has shape None; ``()`` is a tensor of rank zero."""
    text: str
    dt: str
    shape: tuple[str, ...] | None = None

    @property
    def rank(self) -> int:
        return len(self.shape or ())


@dataclass(frozen=True)
class Place:
    """A view or buffer. ``fixed`` holds, for each axis, the coordinate that accesses must use, or None where they are free."""
    name: str
    dt: str
    shape: tuple[str, ...]
    fixed: tuple[str | None, ...]
    readable: bool = True
    writable: bool = False

    @property
    def free(self) -> tuple[str, ...]:
        return tuple(e for e, f in zip(self.shape, self.fixed) if f is None)


@dataclass(frozen=True)
class Parameter:
    """``kind`` is in, inout, out, scalar or constexpr; a Constexpr's dtype is its Python type's name."""
    kind: str
    name: str
    dt: str
    shape: tuple[str, ...] | None = None

    def annotation(self) -> str:
        if self.kind == "constexpr":
            return f"I.Constexpr[{self.dt}]"
        if self.kind == "scalar":
            return f"I.{self.dt}"
        extents = "".join(f"{e if e.isdigit() else repr(e)}, " for e in self.shape)
        return f"I.{dict(inout='InOut', out='Out')[self.kind] if self.kind != 'in' else 'In'}[I.{self.dt}, ({extents})]"


@dataclass
class Program:
    """A kernel as text, with what a caller must know to run it."""
    source: str
    parameters: list[Parameter]
    policy: str = "strict"
    nests: set[tuple[str, ...]] = field(default_factory=set)
    """The extents of each nest of loops: they decide which data a program can be given."""
    unordered: bool = False
    """Are there points without an order? Then views that are written must not overlap others."""


def shape_text(shape) -> str:
    return f"({''.join(f'{e}, ' for e in shape)})"


def meet(a, b):
    """The shape of two operands broadcast together, or False. A scalar meets everything."""
    if a is None or b is None:
        return b if a is None else a
    rank = max(len(a), len(b))
    a, b = ("1",) * (rank - len(a)) + a, ("1",) * (rank - len(b)) + b
    if any(x != y and "1" not in (x, y) for x, y in zip(a, b)):
        return False
    return tuple(y if x == "1" else x for x, y in zip(a, b))


def fits(a, limit) -> bool:
    """Does a value of shape ``a`` broadcast into ``limit``?"""
    return meet(a, limit) == limit


def of(template: str, dt: str, *operands: Value) -> Value:
    """A template filled in; only the operands that it names decide the shape."""
    shape = None
    for i, x in enumerate(operands):
        if f"{{{i}}}" in template or "{}" in template:
            shape = meet(shape, x.shape)
    return Value(template.format(*(x.text for x in operands)), dt, shape)


def accumulators(dt: str) -> list[str]:
    """Decision 23: what may accumulate ``dt``, and holds each of its values or an infinity."""
    if is_float(dt):
        return [a for a in FLOATS if WIDTH[a] >= WIDTH[dt] and a in (dt, *FLOATS[:-1])]
    return [a for a in INTEGERS if WIDTH[a] >= WIDTH[dt]] + ["f32", "f64"]
