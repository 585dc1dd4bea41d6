"""How do the programs of this package write arithmetic?

A program is written over an operations object ``o`` (a NumPy interpreter, an emitter of LLVM text, ...), which knows
nothing but primitives. ``Term`` wraps one value of such an object so that a formula reads like a formula; every
operator is exactly one primitive, in the dtype of its operands. Python numbers met by a term become constants of its
dtype and must be exact in it: a rounded constant would hide which number the bits were proved for.
"""
from __future__ import annotations

import struct
from dataclasses import dataclass


@dataclass(frozen=True)
class Format:
    """A float format that programs are written in, with the integer dtypes of its width."""
    dt: str
    signed: str
    unsigned: str
    width: int
    mant: int
    bias: int

    @property
    def tiny(self) -> float:
        """The smallest normal number."""
        return 2.0 ** (1 - self.bias)

    @property
    def huge(self) -> float:
        """The largest finite number."""
        return (2.0 - 2.0 ** -self.mant) * 2.0 ** self.bias

    @property
    def magic(self) -> float:
        """Adding this rounds a small number to an integer, which stands in the low bits of the sum."""
        return 1.5 * 2.0 ** self.mant

    @property
    def one_bits(self) -> int:
        return self.bias << self.mant

    @property
    def sign_bit(self) -> int:
        return 1 << (self.width - 1)


F32 = Format("f32", "i32", "u32", 32, 23, 127)
F64 = Format("f64", "i64", "u64", 64, 52, 1023)
FORMATS = {"f32": F32, "f64": F64}

INF = float("inf")
NAN = float("nan")


class Term:
    """One value ``v`` of an operations object ``o``; ``dt`` is its dtype."""
    __slots__ = ("o", "v", "dt")

    def __init__(self, o, v, dt: str | None = None):
        self.o, self.v = o, v
        self.dt = o.dt(v) if dt is None else dt

    @property
    def fmt(self) -> Format:
        return FORMATS[self.dt]

    def const(self, number, dt: str | None = None) -> "Term":
        dt = self.dt if dt is None else dt
        if dt == "f32" and number == number and struct.unpack("f", struct.pack("f", number))[0] != number:
            raise ValueError(f"{number!r} is not an f32 number")
        return Term(self.o, self.o.const(number, dt), dt)

    def lift(self, other) -> "Term":
        return other if isinstance(other, Term) else self.const(other)

    def _same(self, name: str, other) -> "Term":
        return Term(self.o, getattr(self.o, name)(self.v, self.lift(other).v), self.dt)

    def _swapped(self, name: str, other) -> "Term":
        return Term(self.o, getattr(self.o, name)(self.lift(other).v, self.v), self.dt)

    def _test(self, name: str, other) -> "Term":
        return Term(self.o, getattr(self.o, name)(self.v, self.lift(other).v), "bool")

    def _one(self, name: str) -> "Term":
        return Term(self.o, getattr(self.o, name)(self.v), self.dt)

    def __add__(self, b):
        return self._same("add", b)

    def __sub__(self, b):
        return self._same("sub", b)

    def __mul__(self, b):
        return self._same("mul", b)

    def __truediv__(self, b):
        return self._same("div", b)

    def __and__(self, b):
        return self._same("and_", b)

    def __or__(self, b):
        return self._same("or_", b)

    def __xor__(self, b):
        return self._same("xor", b)

    def __lshift__(self, b):
        return self._same("shl", b)

    def __rshift__(self, b):
        return self._same("shr", b)

    def __radd__(self, a):
        return self._swapped("add", a)

    def __rsub__(self, a):
        return self._swapped("sub", a)

    def __rmul__(self, a):
        return self._swapped("mul", a)

    def __rtruediv__(self, a):
        return self._swapped("div", a)

    def __neg__(self):
        return self._one("neg")

    def __abs__(self):
        return self._one("abs")

    def __invert__(self):
        return self._one("not_")

    def __lt__(self, b):
        return self._test("lt", b)

    def __le__(self, b):
        return self._test("le", b)

    def __gt__(self, b):
        return self._test("gt", b)

    def __ge__(self, b):
        return self._test("ge", b)

    def eq(self, b):
        return self._test("eq", b)

    def ne(self, b):
        return self._test("ne", b)

    def is_nan(self):
        return self._test("ne", self)

    def sqrt(self):
        return self._one("sqrt")

    def floor(self):
        return self._one("floor")

    def rint(self):
        return self._one("rint")

    def tdiv(self, b):
        return self._same("tdiv", b)

    def trem(self, b):
        return self._same("trem", b)

    def cast(self, dt: str) -> "Term":
        return Term(self.o, self.o.cast(self.v, dt), dt)

    def bitcast(self, dt: str) -> "Term":
        return Term(self.o, self.o.bitcast(self.v, dt), dt)

    def bits(self) -> "Term":
        """The encoding of a float as a signed integer."""
        return self.bitcast(self.fmt.signed)

    def as_float(self) -> "Term":
        """The float that an integer of the same width encodes."""
        return self.bitcast("f32" if self.dt in ("i32", "u32") else "f64")

    def pick(self, values: tuple, dt: str) -> "Term":
        """The element of a constant table at this index, which must lie inside."""
        return Term(self.o, self.o.table(values, dt, self.v), dt)


def fma(a, b, c) -> Term:
    """``a * b + c`` rounded once; at least one of ``a`` and ``b`` is a term."""
    t = a if isinstance(a, Term) else b
    return Term(t.o, t.o.fma(t.lift(a).v, t.lift(b).v, t.lift(c).v), t.dt)


def where(cond: Term, a, b) -> Term:
    """``a`` where ``cond`` is true, else ``b``; at least one of them is a term."""
    t = a if isinstance(a, Term) else b
    return Term(cond.o, cond.o.select(cond.v, t.lift(a).v, t.lift(b).v), t.dt)


def horner(x: Term, coefficients) -> Term:
    """The polynomial with these coefficients, numbers or terms, lowest power first, by a chain of FMAs."""
    *rest, top = coefficients
    acc = x.lift(top)
    for c in reversed(rest):
        acc = fma(acc, x, c)
    return acc


def hexes(text: str) -> tuple[float, ...]:
    """Numbers written by ``float.hex``, separated by blanks."""
    return tuple(float.fromhex(word) for word in text.split())


def two(text: str) -> tuple[float, float]:
    """A pair of numbers, high and low part, written by ``float.hex``."""
    high, low = hexes(text)
    return high, low


def with_sign_of(magnitude: Term, source: Term) -> Term:
    """``magnitude`` (a number without sign) carrying the sign bit of ``source``."""
    sign = source.bits() & source.const(-source.fmt.sign_bit, source.fmt.signed)
    return (magnitude.bits() | sign).as_float()
