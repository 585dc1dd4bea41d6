"""floordiv, mod, power on integers: how does Python's integer arithmetic look on fixed widths?

Division rounds to minus infinity and the remainder has the sign of the divisor. Beyond the caller's obligations nothing
traps: x // 0 and x % 0 are 0, min // -1 is min, min % -1 is 0. power is exact modulo 2^N. Exact for every integer dtype.
"""
from __future__ import annotations

from intent_numba.math.term import Term, where

SIGNED = ("i8", "i16", "i32", "i64", "index")
UNSIGNED = ("u8", "u16", "u32", "u64")
WIDTH = {"i8": 8, "i16": 16, "i32": 32, "i64": 64, "index": 64, "u8": 8, "u16": 16, "u32": 32, "u64": 64}


def floordiv(a: Term, b: Term) -> Term:
    zero = b.eq(0)
    if a.dt in UNSIGNED:
        return where(zero, 0, a.tdiv(where(zero, 1, b)))
    minus_one = b.eq(-1)
    safe = where(zero | minus_one, 1, b)
    q = a.tdiv(safe)
    rest = a - q * safe
    q = where(_wrong_sign(rest, safe), q - 1, q)
    return where(zero, 0, where(minus_one, -a, q))


def mod(a: Term, b: Term) -> Term:
    """A divisor of 0 or -1 is replaced by 1, whose remainder is the 0 that both ask for."""
    if a.dt in UNSIGNED:
        return a.trem(where(b.eq(0), 1, b))
    safe = where(b.eq(0) | b.eq(-1), 1, b)
    rest = a.trem(safe)
    return where(_wrong_sign(rest, safe), rest + safe, rest)


def _wrong_sign(rest: Term, divisor: Term) -> Term:
    """A nonzero rest whose sign is not the divisor's. The exclusive or of a zero rest can be negative too."""
    return ((rest ^ divisor) < 0) & rest.ne(0)


def power(a: Term, b: Term) -> Term:
    """a ** b modulo 2^N, b read as an unsigned 64-bit number.

    Odd a repeats with a period that divides 2^(N-2), so N - 2 bits of b decide; even a gives 0 from b = N on.
    """
    width = WIDTH[a.dt]
    exponent = (b.cast("i64") if b.dt in SIGNED else b).cast("u64")
    result, square = a.const(1), a
    for i in range(width - 2):
        bit = ((exponent >> i) & 1).ne(0)
        result = where(bit, result * square, result)
        square = square * square
    return where((a & 1).eq(0) & (exponent >= width), 0, result)
