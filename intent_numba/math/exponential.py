"""exp, exp2, sigmoid, tanh: how is an exponential computed in its own precision?

exp(x) = 2^n e^r with n = rint(x / ln 2), |r| <= 0.35 by a two-part ln 2 (the first step is exact through FMA), and a
minimax polynomial for e^r. 2^n is applied as two factors, so that overflow and subnormal results come out of ordinary
multiplication, and arguments are clamped just outside the range of the result, so that infinities need no test.
Polynomial errors, relative: exp 2^-28 (f32), 2^-57 (f64); tanh 2^-27, 2^-57.
Bounds: exp, exp2, sigmoid, tanh within 1 ULP in f32 and f64.
"""
from __future__ import annotations

from dataclasses import dataclass

from intent_numba.math.term import Format, Term, fma, hexes, horner, two, where, with_sign_of


@dataclass(frozen=True)
class ExpTable:
    log2e: float
    ln2: tuple[float, float]
    exp: tuple[float, ...]
    exp2: tuple[float, ...]
    low: float
    high: float
    low2: float
    high2: float


EXP = {
    "f32": ExpTable(
        log2e=float.fromhex("0x1.715476p+0"), ln2=two("0x1.62e43p-1 -0x1.05c61p-29"),
        exp=hexes("1 1 0x1.fffffcp-2 0x1.55548cp-3 0x1.55585ap-5 0x1.123d5p-7 0x1.6ab718p-10"),
        exp2=hexes("1 0x1.62e43p-1 0x1.ebfbdcp-3 0x1.c6af84p-5 0x1.3b2dbp-7 0x1.5f071cp-10 0x1.41aedap-13"),
        low=-104.0, high=89.0, low2=-151.0, high2=129.0),
    "f64": ExpTable(
        log2e=float.fromhex("0x1.71547652b82fep+0"), ln2=two("0x1.62e42fefa39efp-1 0x1.abc9e3b39803fp-56"),
        exp=hexes("1 1 0x1.000000000000ap-1 0x1.555555555536bp-3 0x1.5555555550148p-5 0x1.1111111190c7dp-7 0x1.6c16c1864d92p-10"
                  " 0x1.a019fee0e98d4p-13 0x1.a019934d0a0d9p-16 0x1.71e45553f40a2p-19 0x1.28b44531b2c93p-22 0x1.a53aaa468a8a6p-26"),
        exp2=hexes("1 0x1.62e42fefa39efp-1 0x1.ebfbdff82c5a1p-3 0x1.c6b08d704a053p-5 0x1.3b2ab6fba09b5p-7 0x1.5d87fe78c4836p-10"
                   " 0x1.4309130d4fdbdp-13 0x1.ffcbfbb9380acp-17 0x1.62bfcafe982a1p-20 0x1.b5267a0e0c538p-24 0x1.e6162c81acdbp-28"
                   " 0x1.e786fd00f2959p-32"),
        low=-746.0, high=710.0, low2=-1077.0, high2=1025.0),
}


@dataclass(frozen=True)
class Power2:
    """2^n as the product of two normal numbers, for every n that a clamped argument can give."""
    first: Term
    second: Term

    def times(self, p: Term) -> Term:
        return p * self.first * self.second


def clamp(x: Term, low: float, high: float) -> Term:
    """x inside [low, high]; NaN stays."""
    x = where(x < low, low, x)
    return where(x > high, high, x)


def _split(x: Term, scale: float) -> tuple[Term, Term]:
    """n = rint(x * scale) as a number, and the encoding of magic + n + 2 bias, whose low bits hold n + 2 bias."""
    f = x.fmt
    magic = f.magic + 2 * f.bias
    sum_ = fma(x, scale, magic) if scale != 1.0 else x + magic
    return sum_ - magic, sum_.bitcast(f.unsigned)


def _power2(code: Term, f: Format) -> Power2:
    half = code >> 1
    return Power2((half << f.mant).as_float(), ((code - half) << f.mant).as_float())


def reduce_exp(x: Term, low: Term | None = None) -> tuple[Term, Power2]:
    """r and 2^n with exp(x + low) = e^r 2^n, for x inside the clamps and a small ``low``."""
    t = EXP[x.dt]
    n, code = _split(x, t.log2e)
    r = fma(n, -t.ln2[0], x)
    r = fma(n, -t.ln2[1], r) if low is None else r + fma(n, -t.ln2[1], low)
    return r, _power2(code, x.fmt)


def exp(x: Term) -> Term:
    t = EXP[x.dt]
    r, power = reduce_exp(clamp(x, t.low, t.high))
    return power.times(horner(r, t.exp))


def exp2(x: Term) -> Term:
    t = EXP[x.dt]
    x = clamp(x, t.low2, t.high2)
    n, code = _split(x, 1.0)
    return _power2(code, x.fmt).times(horner(x - n, t.exp2))


def exp_pair(r: Term) -> tuple[Term, Term]:
    """e^r for a reduced argument as an unevaluated sum, whose error is hardly more than that of r."""
    high = 1.0 + r
    low = fma(horner(r, EXP[r.dt].exp[2:]), r * r, r - (high - 1.0))
    total = high + low
    return total, low - (total - high)


def sigmoid(x: Term) -> Term:
    """With e = exp(-|x|) as a pair: 1 / (1 + e), or e / (1 + e) for negative x, the quotient corrected once."""
    t = EXP[x.dt]
    size = abs(x)
    r, power = reduce_exp(-where(size > -t.low, -t.low, size))
    p, p_low = exp_pair(r)
    e, e_low = power.times(p), power.times(p_low)
    total = 1.0 + e
    total_low = (1.0 - total) + e + e_low
    negative = x < 0.0
    top, top_low = where(negative, e, 1.0), where(negative, e_low, 0.0)
    inverse = 1.0 / total
    q = top * inverse
    rest = fma(-q, total, top) + fma(-q, total_low, top_low)
    return fma(rest, inverse, q)


@dataclass(frozen=True)
class TanhTable:
    limit: float
    """Below it the odd polynomial is used, above it 1 - 2 / (exp(2 |x|) + 1)."""
    odd: tuple[float, ...]
    top: float
    """An argument from which on the result is 1."""


TANH = {
    "f32": TanhTable(
        0.96875, hexes("-0x1.55553cp-2 0x1.110be4p-3 -0x1.b9623cp-5 0x1.6009bep-6 -0x1.046046p-7 0x1.2da104p-9"
                       " -0x1.77cedp-12"), 10.0),
    "f64": TanhTable(
        0.640625, hexes("-0x1.555555555554dp-2 0x1.1111111110651p-3 -0x1.ba1ba1b9820aap-5 0x1.664f48606d9cap-6 -0x1.226e30dec8d35p-7"
                    " 0x1.d6d3103bbc05dp-9 -0x1.7d9899ae99d69p-10 0x1.34edcac37cc81p-11 -0x1.efd0129ee2191p-13 0x1.7bc527e3a0902p-14"
                    " -0x1.e9b2abad1530dp-16 0x1.78ae6d6ee7fcbp-18"), 20.0),
}


def tanh(x: Term) -> Term:
    t, e = TANH[x.dt], EXP[x.dt]
    size = abs(x)
    y = where(size > t.top, t.top, size)
    f = x.fmt
    magic = f.magic + f.bias
    sum_ = fma(y, 2 * e.log2e, magic)
    n = sum_ - magic
    r = fma(n, -e.ln2[1], fma(n, -e.ln2[0], y + y))
    power = (sum_.bitcast(f.unsigned) << f.mant).as_float()
    tail = fma(horner(r, e.exp[2:]), r * r, r)
    large = 1.0 - 2.0 / (power + fma(power, tail, 1.0))
    z = size * size
    small = fma(horner(z, t.odd), z * size, size)
    return with_sign_of(where(size < t.limit, small, large), x)
