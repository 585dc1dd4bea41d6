"""erf and erfc: how are the error functions computed in their own precision?

erf: x + x Q(x^2) near zero; beyond, 1 - exp(-|x| R(|x|)) with R fitted so that its error counts as
one of the result.
Bounds: erf within 1 ULP in f32 and f64.
"""
from __future__ import annotations

from dataclasses import dataclass

from intent_numba.math.exponential import EXP, reduce_exp
from intent_numba.math.term import Term, fma, hexes, horner, where, with_sign_of


@dataclass(frozen=True)
class ErfTable:
    limit: float
    """Where the odd polynomial hands over to the exponential."""
    odd: tuple[float, ...]
    """Q, with erf(x) = x + x Q(x^2)."""
    top: float
    """An argument from which on the result is 1."""
    slope: tuple[float, ...]
    """R, with log erfc(x) = -x R(x)."""


ERF = {
    "f32": ErfTable(
        0.96875, hexes("0x1.06eba8p-3 -0x1.81274p-2 0x1.ce2d28p-4 -0x1.b7fabp-6 0x1.540a4p-8 -0x1.a3ec6ep-11 0x1.48f0ecp-14"),
        4.0, hexes("0x1.20f03ep+0 0x1.45296ap-1 0x1.b39d66p-4 -0x1.86eb8p-6 0x1.e370e4p-9"
                   " -0x1.5e3cacp-12 0x1.9e25b4p-17")),
    "f64": ErfTable(
        1.0, hexes("0x1.06eba8214db69p-3 -0x1.812746b0379cbp-2 0x1.ce2f21a041301p-4 -0x1.b82ce3120c7cap-6 0x1.565bccfb09c21p-8"
                   " -0x1.c02db07ab2a3fp-11 0x1.f9a2bf9f81b9bp-14 -0x1.f4ca914df31e6p-17 0x1.b98230cf862eep-20"
                   " -0x1.5c146082a5df2p-23 0x1.d76f6f870ece5p-27 -0x1.ac985e55e1cd8p-31"),
        6.0, hexes("0x1.20dd7412595b8p+0 0x1.45f316ff9e56bp-1 0x1.a4f305216f667p-4 -0x1.3957e2f76c3afp-6"
                   " -0x1.bcb31d8490f1ep-13 0x1.bbb62b5c13f28p-10 -0x1.2d4bcd6017fc5p-11 -0x1.01d770bf3bf62p-20"
                   " 0x1.9076615ca2fcfp-14 -0x1.d60c8e27865bfp-15 0x1.55695a7480dbcp-16 -0x1.695d43f934197p-18"
                   " 0x1.2160705d869d7p-20 -0x1.5e0bdf4b792ffp-23 0x1.376f8c977b8f6p-26 -0x1.816c3fa289b84p-30"
                   " 0x1.289217d740f0bp-34 -0x1.ab66eec1d4fa3p-40")),
}


def erf(x: Term) -> Term:
    t = ERF[x.dt]
    size = abs(x)
    y = where(size > t.top, t.top, size)
    slope = horner(y, t.slope)
    product = y * slope
    r, power = reduce_exp(-product)
    r = r - fma(y, slope, -product)
    large = with_sign_of(1.0 - power.times(horner(r, EXP[x.dt].exp)), x)
    small = fma(x, horner(x * x, t.odd), x)
    return where(size < t.limit, small, large)
