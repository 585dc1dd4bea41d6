"""erf and erfc: how are the error functions computed in their own precision?

erf: x + x Q(x^2) near zero; beyond, 1 - exp(-|x| R(|x|)) with R fitted so that its error counts as
one of the result.
erfc: 1 - erf(x) near zero; beyond, exp(-x^2), with the square as a pair, times a polynomial in (x - k) / (x + k), divided
by 1 + 2 x; 2 - erfc(-x) for negative x.
Bounds: erf within 1 ULP in f32, 2 ULP in f64; erfc within 4 and 5 ULP (000 section 5).
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
    r, power = reduce_exp(-product, fma(-y, slope, product))
    large = with_sign_of(1.0 - power.times(horner(r, EXP[x.dt].exp)), x)
    small = fma(x, horner(x * x, t.odd), x)
    return where(size < t.limit, small, large)


@dataclass(frozen=True)
class ErfcTable:
    limit: float
    """Below it, 1 - erf(x) by the odd polynomial of erf."""
    centre: float
    scaled: tuple[float, ...]
    """(1 + 2 x) exp(x^2) erfc(x) in powers of (x - centre) / (x + centre)."""
    top: float
    """An argument whose result underflows to zero."""


ERFC = {
    "f32": ErfcTable(
        limit=0.46875, centre=2.0,
        scaled=hexes("0x1.46e80ep+0 -0x1.7bf582p-4 -0x1.540766p-3 0x1.4ff3dp-3 -0x1.bc3858p-5 -0x1.03e2a4p-7 0x1.1dc0eep-7"
                     " 0x1.e4886ep-11 -0x1.5fea14p-10"),
        top=10.5),
    "f64": ErfcTable(
        limit=0.46875, centre=4.0,
        scaled=hexes("0x1.3ba5916e9fd7fp+0 -0x1.1df1ad154a28ep-3 0x1.f7f5df66fd4f1p-7 0x1.16ecefcfa537cp-4 -0x1.9ddb23c3e78f5p-4"
                     " 0x1.7fee004e12aaep-4 -0x1.0fb06dfe711d7p-4 0x1.3079edf66fc32p-5 -0x1.0962387c8e612p-6 0x1.49c6728f711dp-8"
                     " -0x1.8d4aa26498fdap-11 -0x1.a1df3030e235dp-13 0x1.3be0e5db65405p-13 -0x1.9957567841adap-16"
                     " -0x1.78a637ddb71a9p-17 0x1.7f0cb648f983bp-18 0x1.42203c4f5a941p-22 -0x1.b9105f6fc3bfdp-21 0x1.1e419ca9c02e4p-24"
                     " 0x1.c29e45c95618cp-24 -0x1.9f691103cb84cp-27 -0x1.5f7e5e28c2498p-27"),
        top=28.0),
}


def erfc(x: Term) -> Term:
    t = ERFC[x.dt]
    size = abs(x)
    y = where(size > t.top, t.top, size)
    square = y * y
    r, power = reduce_exp(-square, fma(-y, y, square))
    # (y - k) / (y + k), with the rounding errors of its parts taken back.
    inverse = 1.0 / (y + t.centre)
    v = fma(inverse, -2.0 * t.centre, 1.0)
    v = fma(inverse, fma(-y, v, fma(1.0 + v, -t.centre, y)), v)
    top, below = horner(v, t.scaled), fma(y, 2.0, 1.0)
    inverse = 1.0 / below
    ratio = top * inverse
    rest = fma(-ratio, below, top) - ratio * fma(y, 2.0, 1.0 - below)
    ratio = fma(rest, inverse, ratio)
    result = power.times(horner(r, EXP[x.dt].exp) * ratio)
    result = where(x < 0.0, 2.0 - result, result)
    small = 1.0 - fma(x, horner(x * x, ERF[x.dt].odd), x)
    return where(size < t.limit, small, result)
