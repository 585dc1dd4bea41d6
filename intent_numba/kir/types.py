"""What a KIR value is: dtypes, extents, and the types built from them.

Extents are polynomials over symbols. A symbol is a shape name of the kernel's annotations (``"M"``) or the
name of an SSA value of dtype index (``"%7"``). Two extents are equal when their normal forms are.
"""
from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

FLOATS = ("f16", "bf16", "f32", "f64", "f8e4m3fn", "f8e5m2")
SIGNED = ("i8", "i16", "i32", "i64", "index")
UNSIGNED = ("u8", "u16", "u32", "u64")
INTEGERS = SIGNED + UNSIGNED
DTYPES = ("bool",) + INTEGERS + FLOATS

BITS = {"bool": 8, "index": 64, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "u8": 8, "u16": 16, "u32": 32, "u64": 64,
        "f16": 16, "bf16": 16, "f32": 32, "f64": 64, "f8e4m3fn": 8, "f8e5m2": 8}
"""Storage width. A bool occupies one byte."""


def is_float(dt: str) -> bool:
    return dt in FLOATS


def is_int(dt: str) -> bool:
    return dt in INTEGERS


def is_signed(dt: str) -> bool:
    return dt in SIGNED


def int_range(dt: str) -> tuple[int, int]:
    """Smallest and largest value of an integer dtype."""
    n = BITS[dt]
    return (-(1 << n - 1), (1 << n - 1) - 1) if dt in SIGNED else (0, (1 << n) - 1)


@dataclass(frozen=True)
class Extent:
    """A polynomial with integer coefficients: ``terms`` maps sorted symbol tuples to nonzero coefficients."""
    terms: tuple[tuple[tuple[str, ...], int], ...]

    @staticmethod
    def of(value: "Extent | int | str") -> "Extent":
        if isinstance(value, Extent):
            return value
        if isinstance(value, str):
            return Extent((((value,), 1),))
        return Extent((((), int(value)),)) if value else Extent(())

    @property
    def const(self) -> int | None:
        """The value when it is known, else None."""
        if not self.terms:
            return 0
        if len(self.terms) == 1 and self.terms[0][0] == ():
            return self.terms[0][1]
        return None

    @property
    def symbols(self) -> frozenset[str]:
        return frozenset(s for mono, _ in self.terms for s in mono)

    @property
    def symbol(self) -> str | None:
        """The symbol when the extent is exactly one symbol, else None."""
        if len(self.terms) == 1 and self.terms[0][1] == 1 and len(self.terms[0][0]) == 1:
            return self.terms[0][0][0]
        return None

    def __add__(self, other):
        return _normal(self.terms + Extent.of(other).terms)

    def __neg__(self):
        return Extent(tuple((m, -c) for m, c in self.terms))

    def __sub__(self, other):
        return self + (-Extent.of(other))

    def __mul__(self, other):
        return _normal(tuple((tuple(sorted(m + n)), c * d) for m, c in self.terms for n, d in Extent.of(other).terms))

    __radd__, __rmul__ = __add__, __mul__

    def evaluate(self, env) -> int:
        """The value under ``env``, a mapping of symbols to integers."""
        total = 0
        for mono, coef in self.terms:
            for s in mono:
                coef *= int(env[s])
            total += coef
        return total

    def substitute(self, env) -> "Extent":
        """Replace symbols by extents; symbols absent from ``env`` stay."""
        total = Extent(())
        for mono, coef in self.terms:
            part = Extent.of(coef)
            for s in mono:
                part = part * Extent.of(env.get(s, s))
            total = total + part
        return total

    def __str__(self):
        out = ""
        for mono, coef in self.terms:
            body = "*".join(([str(abs(coef))] if abs(coef) != 1 or not mono else []) + list(mono))
            out += ("-" if coef < 0 else "+" if out else "") + body
        return out or "0"

    __repr__ = __str__

    @staticmethod
    def parse(text: str) -> "Extent":
        total = Extent(())
        for sign, body in re.findall(r"([+-]?)\s*([^+\-]+)", text.replace(" ", "")):
            part = Extent.of(-1 if sign == "-" else 1)
            for f in body.split("*"):
                part = part * (int(f) if f.isdigit() else f)
            total = total + part
        return total


@lru_cache(maxsize=4096)
def _normal(terms) -> Extent:
    acc: dict = {}
    for m, c in terms:
        acc[m] = acc.get(m, 0) + c
    return Extent(tuple(sorted((m, c) for m, c in acc.items() if c)))


def shape_of(*extents) -> tuple[Extent, ...]:
    return tuple(Extent.of(e) for e in extents)


def _shape_text(shape) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"


@dataclass(frozen=True)
class Scalar:
    """One element."""
    dt: str

    @property
    def shape(self):
        return ()

    def __str__(self):
        return self.dt


@dataclass(frozen=True)
class Tensor:
    """An immutable ranked value; rank zero is legal and differs from a scalar."""
    dt: str
    shape: tuple[Extent, ...]

    def __str__(self):
        return f"tensor<{self.dt}, {_shape_text(self.shape)}>"


@dataclass(frozen=True)
class View:
    """External memory: ``access`` is in, out or inout. ``alias``, ``noalias``, ``strides`` are the annotation's constraints."""
    dt: str
    shape: tuple[Extent, ...]
    access: str
    alias: str | None = None
    noalias: bool = False
    strides: tuple | None = None

    def __str__(self):
        extra = f", alias={self.alias}" if self.alias else ""
        extra += ", noalias" if self.noalias else ""
        extra += f", strides=({', '.join('_' if s is None else str(s) for s in self.strides)})" if self.strides is not None else ""
        return f"view<{self.dt}, {_shape_text(self.shape)}, {self.access}{extra}>"


@dataclass(frozen=True)
class Buffer:
    """Kernel-local mutable memory."""
    dt: str
    shape: tuple[Extent, ...]

    def __str__(self):
        return f"buffer<{self.dt}, {_shape_text(self.shape)}>"


@dataclass(frozen=True)
class Domain:
    """An ordered set of ``extent`` coordinates."""
    extent: Extent

    def __str__(self):
        return f"domain<{self.extent}>"


Type = Scalar | Tensor | View | Buffer | Domain


def tensor_or_scalar(dt: str, shape) -> Scalar | Tensor:
    """A scalar when ``shape`` is empty, else a tensor: the rule of reads and full reductions."""
    return Tensor(dt, tuple(shape)) if shape else Scalar(dt)
