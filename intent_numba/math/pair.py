"""How is twice the precision reached with one? Unevaluated sums of two numbers, high + low.

The error-free steps of Knuth, Dekker and FMA. A pair is normalised when the high part is the rounded sum.
"""
from __future__ import annotations

from dataclasses import dataclass

from intent_numba.math.logarithm import LOG, split_exponent
from intent_numba.math.term import Term, fma, hexes, horner, two


def two_sum(a: Term, b: Term) -> tuple[Term, Term]:
    """The rounded sum and its exact error."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def fast_two_sum(a: Term, b: Term) -> tuple[Term, Term]:
    """The same where |a| >= |b| or a is zero."""
    s = a + b
    return s, b - (s - a)


def two_product(a: Term, b: Term) -> tuple[Term, Term]:
    """The rounded product and its exact error, while nothing underflows."""
    p = a * b
    return p, fma(a, b, -p)


@dataclass(frozen=True)
class SeriesTable:
    two_thirds: tuple[float, float]
    rest: tuple[float, ...]
    """2 atanh(s) = 2 s + s (2/3 z + z^2 rest(z)) with z = s^2."""


SERIES = {
    "f32": SeriesTable(two("0x1.555556p-1 -0x1.555556p-26"), hexes("0x1.999ap-2 0x1.245278p-2 0x1.dfa2ep-3")),
    "f64": SeriesTable(two("0x1.5555555555555p-1 0x1.5555555555555p-55"),
                       hexes("0x1.9999999999b3p-2 0x1.2492492457d42p-2 0x1.c71c722d6c351p-3 0x1.745ce9e0498eap-3 0x1.3b1eecc336d04p-3"
                             " 0x1.0f7fd57ca85cbp-3 0x1.0e43824d73814p-3")),
}


def log_pair(x: Term) -> tuple[Term, Term]:
    """log x for a positive finite x as a normalised pair, relative error about 2^-36 (f32), 2^-65 (f64)."""
    e, m = split_exponent(x)
    t, ln2 = SERIES[x.dt], LOG[x.dt].ln2
    f = m - 1.0
    below, below_low = fast_two_sum(f.const(2.0), f)
    s = f / below
    s_low = (fma(-s, below, f) - s * below_low) / below
    z, z_low = two_product(s, s)
    z_low = fma(s + s, s_low, z_low)
    third, third_low = z * t.two_thirds[0], fma(z, t.two_thirds[1], z_low * t.two_thirds[0])
    third_low = fma(z, t.two_thirds[0], -third) + third_low
    tail, tail_low = fast_two_sum(third, z * z * horner(z, t.rest))
    tail_low = tail_low + third_low
    u, u_low = two_product(s, tail)
    u_low = fma(s, tail_low, fma(s_low, tail, u_low))
    high, low = fast_two_sum(s + s, u)
    low = low + (s_low + s_low + u_low)
    total, error = fast_two_sum(e * ln2[0], high)
    return fast_two_sum(total, error + fma(e, ln2[1], low))
