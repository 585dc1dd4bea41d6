"""Which dtypes does an operation take, what does it give, and in which arithmetic? Immutable data, no Numba.

One table says it per operation; typing rules consult it, and the plans of spec 004 (one record per operand, arithmetic,
accumulation, result) are resolved from it. Spec: 004, 000 sections 3 to 6, SUPPLEMENT 10 and 11.
"""
from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

FLOATS = ("f16", "bf16", "f32", "f64", "f8e4m3fn", "f8e5m2")
SIGNED = ("i8", "i16", "i32", "i64", "index")
UNSIGNED = ("u8", "u16", "u32", "u64")
INTEGERS = SIGNED + UNSIGNED
NUMERIC = INTEGERS + FLOATS
BOOL = ("bool",)
WIDTH = {"bool": 8, "index": 64, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "u8": 8, "u16": 16, "u32": 32, "u64": 64,
         "f16": 16, "bf16": 16, "f32": 32, "f64": 64, "f8e4m3fn": 8, "f8e5m2": 8}
DOMAINS = {"n": NUMERIC, "f": FLOATS, "i": INTEGERS, "b": BOOL, "ib": INTEGERS + BOOL, "nb": NUMERIC + BOOL}


@dataclass(frozen=True)
class Pointwise:
    """An elementwise rule: ``domain`` names the operand dtypes (a key of DOMAINS), ``result`` is same or bool."""
    arity: int
    domain: str
    result: str = "same"


POINTWISE: dict[str, Pointwise] = {
    "add": Pointwise(2, "n"), "sub": Pointwise(2, "n"), "mul": Pointwise(2, "n"), "div": Pointwise(2, "f"),
    "floordiv": Pointwise(2, "i"), "mod": Pointwise(2, "i"), "floor_divide": Pointwise(2, "f"), "remainder": Pointwise(2, "f"),
    "power": Pointwise(2, "i"), "pow": Pointwise(2, "f"), "neg": Pointwise(1, "n"), "abs": Pointwise(1, "n"),
    "fma": Pointwise(3, "f"), "and": Pointwise(2, "ib"), "or": Pointwise(2, "ib"), "xor": Pointwise(2, "ib"),
    "not": Pointwise(1, "ib"), "shl": Pointwise(2, "i"), "shr": Pointwise(2, "i"),
    "eq": Pointwise(2, "nb", "bool"), "ne": Pointwise(2, "nb", "bool"), "lt": Pointwise(2, "n", "bool"),
    "le": Pointwise(2, "n", "bool"), "gt": Pointwise(2, "n", "bool"), "ge": Pointwise(2, "n", "bool"),
    "maximum": Pointwise(2, "n"), "minimum": Pointwise(2, "n"), "maximum_num": Pointwise(2, "n"),
    "minimum_num": Pointwise(2, "n"), "clamp": Pointwise(3, "n"), "relu": Pointwise(1, "n"),
    "logical_not": Pointwise(1, "b", "bool"),
    **{name: Pointwise(1, "f") for name in ("exp", "exp2", "log", "log1p", "lgamma", "sin", "asin", "cos", "tanh", "floor", "ceil",
                                            "sqrt", "rsqrt", "erf", "erfc", "i0", "sigmoid")},
}

WIDEN = {"i8": "i32", "i16": "i32", "u8": "u32", "u16": "u32", "f8e4m3fn": "f32", "f8e5m2": "f32", "f16": "f32", "bf16": "f32"}
"""Accumulator of sum, prod and cumsum where none is given; other dtypes keep themselves."""


def widen(dt: str) -> str:
    return WIDEN.get(dt, dt)


def accumulator_problem(operand: str, acc: str) -> str | None:
    """Why ``acc`` cannot accumulate ``operand`` (decision 23), or None when it can."""
    if operand == "bool" or acc == "bool":
        return "bool cannot be accumulated"
    if operand in FLOATS and acc not in FLOATS:
        return f"a float operand of {operand} needs a float accumulator"
    if operand not in FLOATS and acc in FLOATS:
        return None
    if WIDTH[acc] < WIDTH[operand]:
        return f"an accumulator must not be narrower than its operand {operand}"
    return None


# --- literals (SUPPLEMENT 3, decision 6) ----------------------------------------------------------------------------

@dataclass(frozen=True)
class FloatFormat:
    """Stored significand bits, least and greatest exponents of normal numbers, largest finite value."""
    bits: int
    low: int
    high: int
    largest: float


FORMATS = {
    "f64": FloatFormat(52, -1022, 1023, 1.7976931348623157e308), "f32": FloatFormat(23, -126, 127, 3.4028234663852886e38),
    "f16": FloatFormat(10, -14, 15, 65504.0), "bf16": FloatFormat(7, -126, 127, 3.3895313892515355e38),
    "f8e4m3fn": FloatFormat(3, -6, 8, 448.0), "f8e5m2": FloatFormat(2, -14, 15, 57344.0),
}


def int_range(dt: str) -> tuple[int, int]:
    n = WIDTH[dt]
    return (-(1 << n - 1), (1 << n - 1) - 1) if dt in SIGNED else (0, (1 << n) - 1)


def round_float(value: float, dt: str) -> float:
    """``value`` rounded to nearest even in ``dt``; infinity where that overflows."""
    if value == 0 or math.isinf(value) or math.isnan(value) or dt == "f64":
        return value
    f = FORMATS[dt]
    exponent = max(math.frexp(value)[1] - 1, f.low) - f.bits
    rounded = math.ldexp(round(math.ldexp(value, -exponent)), exponent)
    return math.copysign(math.inf, value) if abs(rounded) > f.largest else math.copysign(rounded, value)


def literal_problem(value, dt: str) -> str | None:
    """Why the literal cannot be of dtype ``dt``, or None when it can."""
    if isinstance(value, str):
        return f"a string cannot be a value of {dt}"
    if isinstance(value, bool) or dt == "bool":
        return None if isinstance(value, bool) and dt == "bool" else f"the literal {value!r} cannot be {_article(dt)}"
    if isinstance(value, int):
        if dt in FLOATS:
            if abs(value) <= 1 << FORMATS[dt].bits + 1:
                exact = abs(value) <= FORMATS[dt].largest
            else:
                exact = abs(value) <= FORMATS[dt].largest and _exact_int(value, FORMATS[dt])
            return None if exact else f"the literal {value!r} is not exact in {dt}"
        low, high = int_range(dt)
        return None if low <= value <= high else f"the literal {value!r} does not fit {dt} ({low} .. {high})"
    if dt not in FLOATS:
        return f"the float literal {value!r} cannot be {_article(dt)}"
    if math.isinf(value):
        return f"{dt} has no infinity" if dt == "f8e4m3fn" else None
    return f"the literal {value!r} overflows {dt}" if math.isinf(round_float(value, dt)) else None


def _exact_int(value: int, f: FloatFormat) -> bool:
    magnitude = abs(value)
    return magnitude.bit_length() - (magnitude & -magnitude).bit_length() <= f.bits


def _article(dt: str) -> str:
    return ("an " if dt[0] in "aif" else "a ") + dt


def literal_value(value, dt: str):
    """The literal as it is stored in ``dt``: a bool, an exact int, or a rounded float."""
    return round_float(float(value), dt) if dt in FLOATS else value


def default_dtype(value) -> str:
    """Dtype of a literal that meets nothing."""
    return "bool" if isinstance(value, bool) else "i64" if isinstance(value, int) else "f64"


@lru_cache(maxsize=None)
def domain_of(operation: str) -> frozenset[str]:
    return frozenset(DOMAINS[POINTWISE[operation].domain])
