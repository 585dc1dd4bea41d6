"""sin, cos, asin: how is an angle reduced over the full range of a format?

|x| = m 2^e is multiplied by 2/pi modulo 4, after Payne and Hanek: the bits of 2/pi that give multiples of four whatever
the significand is are left out, the next ones are stored as four numbers of the format for every eighth exponent, and the
product is summed without error down to about 2^-68 (f32) or 2^-150 (f64), far below the distance of any number of the
format from a multiple of pi/2. Quadrant and reduced angle (a pair) come out of the same branch-free steps for every size;
below 1/2 the angle is taken as it is.
asin: a polynomial up to 1/2, beyond it pi/2 - 2 asin(sqrt((1 - x) / 2)) with the root as a pair.
Polynomial errors, relative: 2^-28 (f32), 2^-58 (f64). Bounds: sin, cos, asin within 1 ULP in f32 and f64.
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import ldexp

from intent_numba.math.pair import fast_two_sum, two_product, two_sum
from intent_numba.math.term import FORMATS, INF, Term, fma, hexes, horner, two, where, with_sign_of

TWO_OVER_PI = int(
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e006492eea09d1921cfe1deb1cb129a7"
    "3ee88235f52ebb4484e99c7026b45f7e413991d639835339f49c845f8bbdf9283b1ff897ffde05980fef2f118b5a0a6d1f6d367ecf27cb"
    "09b74f463f669e5fea2d7527bac7ebe5f17b3d0739f78a5292ea6bfb5fb11f8d5d0856033046fc7b6bac", 16)
"""2/pi times 2^1216."""
TWO_OVER_PI_SCALE = 1216

GROUP = 8
"""Exponents that share one row of the table."""


@dataclass(frozen=True)
class TrigTable:
    half_pi: tuple[float, float]
    sin: tuple[float, ...]
    """sin r = r + r^3 S(r^2)."""
    cos: tuple[float, ...]
    """cos r = 1 - r^2 / 2 + r^4 C(r^2)."""
    asin: tuple[float, ...]
    """asin x = x + x^3 A(x^2) for |x| <= 1/2."""


TRIG = {
    "f32": TrigTable(
        half_pi=two("0x1.921fb6p+0 -0x1.777a5cp-25"),
        sin=hexes("-0x1.555546p-3 0x1.110778p-7 -0x1.995382p-13"),
        cos=hexes("0x1.55554ap-5 -0x1.6c0c1ap-10 0x1.99e0e8p-16"),
        asin=hexes("0x1.5555cap-3 0x1.330164p-4 0x1.748b52p-5 0x1.8ba578p-6 0x1.59dce8p-5")),
    "f64": TrigTable(
        half_pi=two("0x1.921fb54442d18p+0 0x1.1a62633145c07p-54"),
        sin=hexes("-0x1.5555555555549p-3 0x1.111111110f88p-7 -0x1.a01a019c0e6ecp-13 0x1.71de3572ab775p-19 -0x1.ae5e60eea18c4p-26"
                  " 0x1.5d91284fe4407p-33"),
        cos=hexes("0x1.555555555554bp-5 -0x1.6c16c16c15005p-10 0x1.a01a019c8b874p-16 -0x1.27e4f7ed5d93ap-22 0x1.1ee9d7df95653p-29"
                  " -0x1.8fa3f02dda8cfp-37"),
        asin=hexes("0x1.5555555555384p-3 0x1.333333336fe35p-4 0x1.6db6db4196677p-5 0x1.f1c72c822244ep-6 0x1.6e89ed6dd688fp-6"
                   " 0x1.1c6c48044c27dp-6 0x1.c6f5e598a9d77p-7 0x1.8ef65614ad6fcp-7 0x1.aa154cec2cac2p-8 0x1.4121c3d1ae11dp-6"
                   " -0x1.0ba9b59cb71bep-6 0x1.060e15c595b9p-5")),
}


@cache
def two_over_pi_rows(dt: str) -> tuple[tuple[float, ...], ...]:
    """Four columns: row k holds, as a sum of four numbers of falling size, 2/pi 2^(8k - 1) modulo 2^(mant + 2)."""
    f = FORMATS[dt]
    scale = TWO_OVER_PI_SCALE + 1
    period = f.mant + 2 + scale
    columns: list[list[float]] = [[], [], [], []]
    for k in range((f.bias + 1) // GROUP + 1):
        rest = TWO_OVER_PI << (GROUP * k)
        rest -= _nearest(rest, period) << period
        for column in columns:
            drop = max(rest.bit_length() - (f.mant + 1), 0)
            piece = _nearest(rest, drop)
            column.append(ldexp(piece, drop - scale))
            rest -= piece << drop
    return tuple(tuple(c) for c in columns)


def _nearest(n: int, drop: int) -> int:
    """n / 2^drop rounded to an integer."""
    return (n + (1 << drop >> 1)) >> drop


def _reduce(x: Term) -> tuple[Term, Term, Term]:
    """For finite x >= 0: an integer n modulo 4 (in its two low bits) and the pair x - n pi/2, at most about pi/4."""
    f, t = x.fmt, TRIG[x.dt]
    code = x.bits()
    exponent = (code >> f.mant) - (f.bias - 1)
    exponent = where(exponent < 0, 0, exponent)
    scale = ((exponent & (GROUP - 1)) + f.bias) << f.mant
    y = ((code & ((1 << f.mant) - 1)) | scale).as_float()
    row = exponent >> 3
    c = [row.pick(column, x.dt) for column in two_over_pi_rows(x.dt)]

    high, high_low = two_product(y, c[0])
    high = fma((high * 0.25).rint(), -4.0, high)
    second, second_low = two_product(y, c[1])
    third, third_low = two_product(y, c[2])
    middle, error_1 = two_sum(high_low, second)
    total, error_2 = two_sum(high, middle)
    n = total.rint()
    fraction = total - n
    a, error_3 = two_sum(error_1, error_2)
    b, error_4 = two_sum(second_low, third)
    d, error_5 = two_sum(a, b)
    fraction, error_6 = two_sum(fraction, d)
    low = error_6 + (error_5 + (error_3 + (error_4 + fma(y, c[3], third_low))))
    fraction, low = two_sum(fraction, low)

    r, r_low = two_product(fraction, fraction.const(t.half_pi[0]))
    r_low = fma(fraction, t.half_pi[1], fma(low, t.half_pi[0], r_low))
    r, r_low = fast_two_sum(r, r_low)
    small = x < 0.5
    zero = x.const(0.0)
    return where(small, 0, n.cast(f.signed)), where(small, x, r), where(small, zero, r_low)


def _circular(x: Term, quarter_turns: int, sign: Term) -> Term:
    """sin(|x| + quarter_turns pi/2), its sign bit flipped by ``sign``."""
    f, t = x.fmt, TRIG[x.dt]
    size = abs(x)
    n, r, low = _reduce(size)
    n = n + quarter_turns if quarter_turns else n
    z = r * r
    sine = r + fma(r * z, horner(z, t.sin), low)
    half = z * 0.5
    head = 1.0 - half
    tail = fma(z * z, horner(z, t.cos), fma(-r, low, (1.0 - head) - half))
    cosine = head + tail
    result = where((n & 1).ne(0), cosine, sine)
    result = (result.bits() ^ sign ^ ((n & 2) << (f.width - 2))).as_float()
    return where(size < INF, result, x - x)


def sin(x: Term) -> Term:
    return _circular(x, 0, x.bits() & x.const(-x.fmt.sign_bit, x.fmt.signed))


def cos(x: Term) -> Term:
    return _circular(x, 1, x.const(0, x.fmt.signed))


def asin(x: Term) -> Term:
    """NaN outside [-1, 1] comes from the square root."""
    t = TRIG[x.dt]
    size = abs(x)
    small = size <= 0.5
    z = where(small, size * size, fma(size, -0.5, 0.5))
    s = z.sqrt()
    # The root's error counts twice in the result; at 1 there is none.
    s_low = where(z > 0.0, fma(-s, s, z) / (s + s), 0.0)
    base = where(small, size, s)
    cubic = base * z * horner(z, t.asin)
    head, head_low = fast_two_sum(x.const(t.half_pi[0]), -(s + s))
    large = head + (head_low + (t.half_pi[1] - 2.0 * (s_low + cubic)))
    return with_sign_of(where(small, size + cubic, large), x)
