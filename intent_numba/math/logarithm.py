"""log, log1p: how is a logarithm computed in its own precision?

x = 2^e m with m in [sqrt(1/2), sqrt(2)), f = m - 1 exact, and log x = e ln 2 + f - f^2/2 + T(f). In f32 T is a polynomial
f^3 P(f); in f64, where that would be long, s = f / (2 + f) and T = s (f^2/2 + s^2 A(s^2)) by the series of 2 atanh s.
ln 2 is split so that e times its first part is exact. Subnormals are scaled up first. log1p does the same with 1 + x as
an exact pair, and with f = x where the pair lies in the first binade, so nothing is lost for small x.
Polynomial errors, relative: 2^-27 (f32), 2^-58 (f64).
Bounds: log and log1p within 1 ULP in f32 and f64.
"""
from __future__ import annotations

from dataclasses import dataclass

from intent_numba.math.term import INF, NAN, Term, fma, hexes, horner, two, where


@dataclass(frozen=True)
class LogTable:
    ln2: tuple[float, float]
    """The first part has trailing zeros enough to be multiplied by an exponent exactly."""
    sqrt_half: int
    """The encoding of sqrt(1/2), rounded down."""
    cubic: tuple[float, ...] = ()
    """P; when it is empty, the form with s is used."""
    atanh: tuple[float, ...] = ()
    """A, with 2 atanh(s) = 2 s + s^3 A(s^2)."""


LOG = {
    "f32": LogTable(two("0x1.62e4p-1 0x1.7f7d1cp-20"), 0x3F3504F3,
                    cubic=hexes("0x1.555554p-2 -0x1.00022ap-2 0x1.99a04ap-3 -0x1.54716cp-3 0x1.22d1dap-3 -0x1.0d865p-3"
                                " 0x1.05a6ccp-3 -0x1.39852p-4")),
    "f64": LogTable(two("0x1.62e42fefa38p-1 0x1.ef35793c7673p-45"), 0x3FE6A09E667F3BCD,
                    atanh=hexes("0x1.5555555555592p-1 0x1.999999997ff03p-2 0x1.24924941e369cp-2 0x1.c71c5211f50e4p-3"
                                " 0x1.74663d8d0c823p-3 0x1.39a1d50953257p-3 0x1.2f04a66656322p-3")),
}


def split_exponent(x: Term) -> tuple[Term, Term]:
    """e (as a float) and m in [sqrt(1/2), sqrt(2)) with x = 2^e m, for a positive finite x, subnormal or not."""
    f, t = x.fmt, LOG[x.dt]
    lift = f.mant + 2
    subnormal = x < f.tiny
    code = where(subnormal, x * 2.0 ** lift, x).bits()
    offset = code - t.sqrt_half
    exponent = offset >> f.mant
    m = (code - (exponent << f.mant)).as_float()
    e = exponent.cast(x.dt)
    return where(subnormal, e - float(lift), e), m


def _series(f: Term, low: Term, e: Term) -> Term:
    """log(1 + f + low) + e ln 2, where low already is divided by 1 + f."""
    t = LOG[f.dt]
    square, rest = f * f, fma(e, t.ln2[1], low)
    if t.cubic:
        tail = fma(square * f, horner(f, t.cubic), rest)
    else:
        s = f / (2.0 + f)
        z = s * s
        tail = fma(s, fma(square, 0.5, z * horner(z, t.atanh)), rest)
    return fma(e, t.ln2[0], f + fma(square, -0.5, tail))


def _finish(x: Term, result: Term, pole: float) -> Term:
    """Special values: +inf and NaN stay, the pole gives -inf, what lies below it NaN."""
    result = where(x < INF, result, x)
    return where(x <= pole, where(x.eq(pole), result.const(-INF), NAN), result)


def log(x: Term) -> Term:
    e, m = split_exponent(x)
    f = m - 1.0
    return _finish(x, _series(f, f.const(0.0), e), 0.0)


def log1p(x: Term) -> Term:
    u = 1.0 + x
    rest = u - x
    low = (1.0 - rest) + (x - (u - rest))
    e, m = split_exponent(u)
    near = e.eq(0.0)
    f = where(near, x, m - 1.0)
    correction = where(near, x.const(0.0), low / u)
    result = _finish(x, _series(f, correction, e), -1.0)
    return where(abs(x) < x.fmt.tiny, x, result)
