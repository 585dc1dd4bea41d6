"""What does one elementwise operation give?  ``Operations`` is the object that ``math`` programs are written over.

It has the primitives (correctly rounded, or exact integers) and, written independently of ``math``, the operations
that integers and comparisons define completely. Elementary functions come from ``math.program``.

Values the language leaves open (decisions 11 and 20) are fixed here, the same as in compiled code where that is free:
x // 0 and x % 0 are 0, min // -1 is min, a shift amount counts modulo the width, a float outside an integer's range
saturates and NaN becomes 0.
"""
from __future__ import annotations

from functools import lru_cache

import numpy as np

from .. import math
from ..kir.types import BITS, SIGNED, int_range, is_float, is_int
from . import exact
from .formats import FORMATS, decode, encode, largest_finite, round_to

NUMPY = {"bool": np.bool_, "index": np.int64, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
         "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
         "f16": np.float32, "bf16": np.float32, "f8e4m3fn": np.float32, "f8e5m2": np.float32, "f32": np.float32, "f64": np.float64}
"""The NumPy dtype in which values of a dtype are held: narrow floats as exactly representable float32."""


class MissingProgram(NotImplementedError):
    """``math`` has no program for an elementary function."""


class Typed:
    """An array with its Intent dtype: the values of ``Operations``."""
    __slots__ = ("dt", "array")

    def __init__(self, dt: str, array):
        self.dt, self.array = dt, np.asarray(array)

    def __repr__(self):
        return f"Typed({self.dt}, {self.array!r})"


def constant(value, dt: str) -> np.ndarray:
    """A Python number as a read-only 0-d array of ``dt``: integers wrap, floats round."""
    if isinstance(value, float) and value == 0:
        return _new_constant(value, dt)  # equal keys: the cache would mix up the zeros
    return _constant(value, dt)


@lru_cache(maxsize=4096, typed=True)
def _constant(value, dt: str) -> np.ndarray:
    return _new_constant(value, dt)


def _new_constant(value, dt: str) -> np.ndarray:
    array = np.array(_make_constant(value, dt))
    array.flags.writeable = False
    return array


def _make_constant(value, dt: str) -> np.ndarray:
    if is_int(dt):
        value = int(value) & (1 << BITS[dt]) - 1
        return np.asarray(value, np.uint64).astype(NUMPY[dt])
    if dt == "bool":
        return np.asarray(bool(value))
    return round_to(np.asarray(value, np.float64), dt)


def convert(a: np.ndarray, source: str, target: str) -> np.ndarray:
    """``cast``: 000 section 5.2 and decision 13."""
    if source == target:
        return a
    if target == "bool":
        return a != 0
    if is_float(target):
        if is_float(source):
            return a.astype(np.float64) if target == "f64" else round_to(a, target)
        return exact.integer_to_float(a.astype(np.uint8) if source == "bool" else a, target)
    if not is_float(source):
        return a.astype(NUMPY[target])
    low, high = int_range(target)
    whole = np.trunc(a.astype(np.float64))
    # The limits as floats: low is exact, high + 1 is a power of two.
    above, below = whole >= float(high + 1), whole < float(low)
    inside = np.where(above | below | np.isnan(whole), 0.0, whole).astype(NUMPY[target])
    return np.where(above, constant(high, target), np.where(below, constant(low, target), inside))


def saturate(a: np.ndarray, source: str, target: str) -> np.ndarray:
    """``saturating_cast``: decision 21."""
    if target == "bool" or source == "bool" or (is_float(source) and is_int(target)):
        return convert(a, source, target)  # a float outside the range of an integer saturates in any case
    limit = largest_finite(target) if is_float(target) else None
    if is_float(source):
        return convert(np.clip(a.astype(np.float64), -limit, limit), "f64", target)
    low, high = int_range(source)
    to_low, to_high = int_range(target) if limit is None else (-int(limit), int(limit))
    return convert(np.clip(a, max(low, to_low), min(high, to_high)), source, target)


def to_bits(a: np.ndarray, dt: str) -> np.ndarray:
    """The storage bits of held values, as an unsigned array."""
    if dt in FORMATS:
        return encode(a, dt)
    return a.view(f"u{BITS[dt] // 8}")


def from_bits(bits: np.ndarray, dt: str) -> np.ndarray:
    """The held values of storage bits."""
    return decode(bits, dt) if dt in FORMATS else bits.view(NUMPY[dt])


@lru_cache(maxsize=256, typed=True)
def _table(values: tuple, dt: str) -> np.ndarray:
    return np.array([_make_constant(v, dt) for v in values], NUMPY[dt])


class Operations:
    """Elementwise operations over ``Typed`` values; operands are of one dtype and broadcast as NumPy does."""

    def dt(self, x: Typed) -> str:
        return x.dt

    def const(self, value, dt: str) -> Typed:
        return Typed(dt, constant(value, dt))

    def _rounded(self, dt: str, array) -> Typed:
        """An f32 or f64 result as a value of ``dt``: + - * / and sqrt of a narrow float rounded to f32 first are exact
        enough that the second rounding is the only one that counts."""
        return Typed(dt, round_to(array, dt) if dt in FORMATS else array)

    # arithmetic

    def add(self, a, b):
        return self._rounded(a.dt, a.array + b.array)

    def sub(self, a, b):
        return self._rounded(a.dt, a.array - b.array)

    def mul(self, a, b):
        return self._rounded(a.dt, a.array * b.array)

    def div(self, a, b):
        return self._rounded(a.dt, a.array / b.array)

    def sqrt(self, a):
        return self._rounded(a.dt, np.sqrt(a.array))

    def fma(self, a, b, c):
        return Typed(a.dt, exact.fma(a.array, b.array, c.array, a.dt))

    def neg(self, a):
        return Typed(a.dt, np.negative(a.array))

    def abs(self, a):
        return Typed(a.dt, np.abs(a.array))

    def floor(self, a):
        return Typed(a.dt, np.floor(a.array))

    def ceil(self, a):
        return Typed(a.dt, np.ceil(a.array))

    def rint(self, a):
        return Typed(a.dt, np.rint(a.array))

    # comparison and choice

    def eq(self, a, b):
        return Typed("bool", a.array == b.array)

    def ne(self, a, b):
        return Typed("bool", a.array != b.array)

    def lt(self, a, b):
        return Typed("bool", a.array < b.array)

    def le(self, a, b):
        return Typed("bool", a.array <= b.array)

    def gt(self, a, b):
        return Typed("bool", a.array > b.array)

    def ge(self, a, b):
        return Typed("bool", a.array >= b.array)

    def select(self, c, a, b):
        return Typed(a.dt, np.where(c.array, a.array, b.array))

    def maximum(self, a, b):
        return Typed(a.dt, _extreme(a.array, b.array, a.dt, np.greater, np.signbit))

    def minimum(self, a, b):
        return Typed(a.dt, _extreme(a.array, b.array, a.dt, np.less, lambda x: ~np.signbit(x)))

    def maximum_num(self, a, b):
        return self._one_nan(a, b, self.maximum(a, b))

    def minimum_num(self, a, b):
        return self._one_nan(a, b, self.minimum(a, b))

    def _one_nan(self, a, b, result):
        if not is_float(a.dt):
            return result
        return Typed(a.dt, np.where(np.isnan(a.array), b.array, np.where(np.isnan(b.array), a.array, result.array)))

    # bits

    def and_(self, a, b):
        return Typed(a.dt, a.array & b.array)

    def or_(self, a, b):
        return Typed(a.dt, a.array | b.array)

    def xor(self, a, b):
        return Typed(a.dt, a.array ^ b.array)

    def not_(self, a):
        return Typed(a.dt, ~a.array)

    def shl(self, a, b):
        return Typed(a.dt, np.left_shift(a.array, b.array & NUMPY[a.dt](BITS[a.dt] - 1)))

    def shr(self, a, b):
        return Typed(a.dt, np.right_shift(a.array, b.array & NUMPY[a.dt](BITS[a.dt] - 1)))

    # conversion

    def cast(self, a, dt: str):
        return Typed(dt, convert(a.array, a.dt, dt))

    def saturating_cast(self, a, dt: str):
        return Typed(dt, saturate(a.array, a.dt, dt))

    def bitcast(self, a, dt: str):
        return Typed(dt, from_bits(to_bits(a.array, a.dt), dt))

    def table(self, values, dt: str, index):
        items = _table(tuple(values), dt)
        return Typed(dt, items[np.clip(index.array.astype(np.int64), 0, len(items) - 1)])

    # integer division and power

    def floordiv(self, a, b):
        return Typed(a.dt, self._division(a, b)[0])

    def mod(self, a, b):
        return Typed(a.dt, self._division(a, b)[1])

    def _division(self, a, b):
        """Floor quotient and remainder; the divisors 0 and -1 are kept away from the machine's division."""
        x, y = a.array, b.array
        zero = y == 0
        minus_one = (y == -1) if a.dt in SIGNED else np.zeros_like(zero)
        safe = np.where(zero | minus_one, y.dtype.type(1), y)
        q = np.where(zero, y.dtype.type(0), np.where(minus_one, np.negative(x), np.floor_divide(x, safe)))
        r = np.where(zero | minus_one, y.dtype.type(0), np.remainder(x, safe))
        return q, r

    def tdiv(self, a, b):
        return Typed(a.dt, self._truncating(a, b)[0])

    def trem(self, a, b):
        return Typed(a.dt, self._truncating(a, b)[1])

    def _truncating(self, a, b):
        q, r = self._division(a, b)
        round_up = (r != 0) & ((a.array < 0) != (b.array < 0))
        return q + round_up.astype(q.dtype), np.where(round_up, r - b.array, r)

    def power(self, a, b):
        wide = b.array.astype(np.int64).view(np.uint64) if b.dt in SIGNED else b.array.astype(np.uint64)
        base, exponent = np.broadcast_arrays(a.array, wide)
        result, square = np.ones_like(base), base
        while exponent.any():
            result = np.where(exponent & np.uint64(1) == 1, result * square, result)
            square, exponent = square * square, exponent >> np.uint64(1)
        return Typed(a.dt, result)


def _extreme(a, b, dt: str, better, worse_zero) -> np.ndarray:
    """Maximum or minimum of two arrays: NaN wins, and -0 stands below +0 (decision 15)."""
    result = np.where(better(a, b), a, b)
    if is_float(dt):
        result = np.where((a == b) & worse_zero(b), a, result)
        result = np.where(np.isnan(a), a, np.where(np.isnan(b), b, result))
    return result


# --- KIR kinds --------------------------------------------------------------------------------------------------------

OPERATIONS = Operations()

_METHODS = {k: k for k in (
    "add", "sub", "mul", "div", "neg", "abs", "fma", "sqrt", "floor", "ceil", "eq", "ne", "lt", "le", "gt", "ge", "select", "xor",
    "shl", "shr", "maximum", "minimum", "maximum_num", "minimum_num", "floordiv", "mod", "power")}
_METHODS |= {"and": "and_", "or": "or_", "not": "not_"}


def evaluate(kind: str, args, dt: str, approximate: bool = False, ftz: bool = False) -> np.ndarray:
    """The elementwise KIR operation ``kind`` on ``Typed`` operands; ``dt`` is the result dtype.

    Approximate forms are the exact operation with the special cases of 000 section 5.1. Raises MissingProgram.
    """
    o = OPERATIONS
    if kind in ("cast", "saturating_cast", "bitcast"):
        return getattr(o, kind)(args[0], dt).array
    if approximate:
        args = [Typed(a.dt, _flush(a.array)) for a in args] if ftz else args
        result = _approximate_div(*args) if kind == "div" else evaluate(kind, args, dt)
        return _flush(result) if ftz else result
    if kind in _METHODS:
        return getattr(o, _METHODS[kind])(*args).array
    return _program(kind, args[0].dt)(o, *args).array


def _program(kind: str, dt: str):
    program = math.program(kind, dt)
    if program is None:
        raise MissingProgram(f"math has no program for {kind} on {dt}")
    return program


def _flush(x: np.ndarray) -> np.ndarray:
    """f32 subnormals to zero of their sign."""
    return np.where(np.abs(x) < np.float32(2.0 ** -126), np.copysign(np.float32(0), x), x)


def _approximate_div(a: Typed, b: Typed) -> np.ndarray:
    """Quotient by reciprocal: a divisor beyond 2^126 has a reciprocal that counts as zero."""
    x, y = a.array, b.array
    vanishing = (np.abs(y) > np.float32(2.0 ** 126)) & np.isfinite(y)
    return np.where(vanishing, x * np.copysign(np.float32(0), y), x / y)
