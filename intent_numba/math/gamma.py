"""lgamma: how is log|Gamma(x)| computed so that its zeros stay exact?

With d the distance from 1 and L(d) = log Gamma(1 + d) = d G(d) on [-1/2, 1/2], a polynomial whose leading steps are pairs:
  [-1/2, 1/2)  L(x) - log|x|         [1/2, 3/2)  L(x - 1)        [3/2, 5/2)  L(x - 2) + log(x - 1)
  from 5/2     (x - 1/2)(log x - 1) + (log 2 pi - 1)/2 + S(1/x^2)/x, Stirling's form, which overflows only with the result
  below -1/2   log pi - log(a sin(pi a)) - log Gamma(a) with a = -x; a sin(pi a) is a pair too
All of it is one expression A log w + B with A, w and B selected.
The reflection's error is about 2^-34 (f32) and 2^-64 (f64) absolute; next to the result's zeros below -2, where that shows,
gamma_zeros takes over.
Bounds: within 1 ULP in f32 and f64.
"""
from __future__ import annotations

from dataclasses import dataclass

from intent_numba.math.gamma_zeros import near_zero
from intent_numba.math.pair import fast_two_sum, log_pair, two_product, two_sum
from intent_numba.math.term import INF, Term, fma, hexes, horner, two, where

Pair = tuple[float, float]


@dataclass(frozen=True)
class PairPolynomial:
    """A polynomial whose lowest coefficients are pairs: ``heads`` lists them as high, low, high, low, ..."""
    heads: tuple[float, ...]
    tail: tuple[float, ...]

    def at(self, x: Term, x_low: Term | None = None) -> tuple[Term, Term]:
        """The value as a pair; every head must exceed what is added to it."""
        high, low = horner(x, self.tail), x.const(0.0)
        for c, c_low in reversed(list(zip(self.heads[::2], self.heads[1::2]))):
            product, error = two_product(x, high)
            error = fma(x, low, error)
            if x_low is not None:
                error = fma(x_low, high, error)
            high, low = fast_two_sum(x.const(c), product)
            low = low + (error + c_low)
        return high, low


@dataclass(frozen=True)
class GammaTable:
    near: PairPolynomial
    """G(d)."""
    stirling: PairPolynomial
    """S(z)."""
    sine: PairPolynomial
    """sin(pi r) / r in powers of r^2."""
    half_log: Pair
    """(log(2 pi) - 1) / 2."""
    log_pi: Pair


GAMMA = {
    "f32": GammaTable(
        near=PairPolynomial(
            heads=hexes("-0x1.2788dp-1 0x1.c878a6p-28 0x1.a51a66p-1 0x1.fa4068p-29 -0x1.9a4d56p-2 0x1.1520fcp-29 0x1.15132ap-2"
                        " 0x1.db2018p-27 -0x1.a8b9b6p-3 -0x1.c02508p-29 0x1.5b3d3cp-3 0x1.3f1232p-31 -0x1.27038ep-3 -0x1.c68cf2p-29"
                        " 0x1.0162acp-3 0x1.2b4cf6p-28"),
            tail=hexes("-0x1.c845bep-4 0x1.913444p-4 -0x1.6f955p-4 0x1.948ad2p-4 -0x1.672748p-4 0x1.61475ap-7 -0x1.2fda08p-6"
                       " 0x1.6c0f14p-3 -0x1.45622ap-3")),
        stirling=PairPolynomial(
            heads=hexes("0x1.555556p-4 -0x1.85c324p-29 -0x1.6c1598p-9 -0x1.a39968p-34"),
            tail=hexes("0x1.9f739p-11 -0x1.2c658ap-11 0x1.4291dep-11 -0x1.05b284p-11")),
        sine=PairPolynomial(
            heads=hexes("0x1.921fb6p+1 -0x1.777a94p-24 -0x1.4abbcep+2 -0x1.891f6ep-24 0x1.466bc6p+1 0x1.b707a2p-25 -0x1.32d2cap-1"
                        " 0x1.2a824cp-26"),
            tail=hexes("0x1.5076fep-4 -0x1.e297b8p-8 0x1.d4ea4p-12")),
        half_log=two("0x1.acfe3ap-2 -0x1.e6d052p-27"), log_pi=two("0x1.250d04p+0 0x1.1cf438p-25")),
    "f64": GammaTable(
        near=PairPolynomial(
            heads=hexes("-0x1.2788cfc6fb619p-1 0x1.6cd9805393fbdp-58 0x1.a51a6625307d3p-1 0x1.0fc7dcbaefc35p-56 -0x1.9a4d55beab2d7p-2"
                        " -0x1.bb5b86deb6defp-61 0x1.151322ac7d84ep-2 0x1.52169b4410d1cp-56 -0x1.a8b9c17aa612bp-3"
                        " -0x1.23713a4ea63d6p-59 0x1.5b40cb100b8c3p-3 0x1.267e4560a2a4bp-58 -0x1.2703a1dceaf8ep-3"
                        " -0x1.fd60a4f957d24p-60 0x1.010b36afc6ba7p-3 -0x1.3e8384c8e0c37p-58 -0x1.c806706d16004p-4"
                        " 0x1.bf747c1775639p-59 0x1.9a01e368fdff8p-4 -0x1.074d47abd7b03p-58"),
            tail=hexes("-0x1.748c3314e927cp-4 0x1.556ada4749cf9p-4 -0x1.3b1d97a7498e1p-4 0x1.24967ba148e1ep-4 -0x1.1113157677e4p-4"
                       " 0x1.0007b82ffed02p-4 -0x1.e1e8cd64b839bp-5 0x1.c675db746d1f4p-5 -0x1.aeccf5b847567p-5 0x1.9f8a52698d182p-5"
                       " -0x1.89d89f4a4eebfp-5 0x1.4c9a4f3e6cb22p-5 -0x1.48647992dc8c9p-5 0x1.0be22ff3bd43dp-4 -0x1.da664c5363785p-5"
                       " -0x1.6dc84af33998dp-5 0x1.e528c1841c6e5p-6 0x1.e2b8e52163fadp-3 -0x1.9fcad58e12c1ap-3 -0x1.15309d26c745p-2"
                       " 0x1.e1355ec4b6bf7p-3 0x1.133691d85b5a9p-2 -0x1.fa321314be014p-3")),
        stirling=PairPolynomial(
            heads=hexes("0x1.5555555555554p-4 -0x1.17c0e7087720bp-58 -0x1.6c16c16c0efbcp-9 -0x1.dbbd28fd1299ep-63"),
            tail=hexes("0x1.a01a0184123eap-11 -0x1.381373d56a00dp-11 0x1.b94dedec927a6p-11 -0x1.f645addf724ccp-10"
                       " 0x1.a07394cf15f8ap-8 -0x1.cac825bfb2156p-6 0x1.2a988c29a0c3ap-3 -0x1.915cf6a0a4377p-1 0x1.ee0f57b4300e5p+1"
                       " -0x1.fb6a0edf2e7fdp+3 0x1.92688a3441a3ep+5 -0x1.c569344b9a73fp+6 0x1.3fb7608a0ac49p+7 -0x1.a5bf4d85bf924p+6")),
        sine=PairPolynomial(
            heads=hexes("0x1.921fb54442d18p+1 0x1.1a6262f8a588ap-53 -0x1.4abbce625be53p+2 0x1.055183500d80cp-52 0x1.466bc6775aae2p+1"
                        " -0x1.6eb9f4399ac19p-54 -0x1.32d2cce62bd86p-1 0x1.7ca4abd29f363p-55"),
            tail=hexes("0x1.50783487ee765p-4 -0x1.e3074fde86616p-8 0x1.e8f434ce9f06bp-12 -0x1.6fadb94384b82p-16 0x1.aaebcbbc48b51p-21"
                       " -0x1.8a1a4f35d98d8p-26 0x1.208885bf171c6p-31")),
        half_log=two("0x1.acfe390c97d69p-2 0x1.3494bc9001442p-56"), log_pi=two("0x1.250d048e7a1bdp+0 0x1.7abf2ad8d5088p-57")),
}


def _direct(x: Term, size: Term) -> tuple[Term, Term]:
    """log|Gamma| as a pair, of x where x >= -1/2, else of size = |x|."""
    t = GAMMA[x.dt]
    y = where(x >= -0.5, x, size)
    small, middle, large = y < 0.5, y < 1.5, y >= 2.5
    d = where(small, y, where(middle, y - 1.0, where(large, 0.0, y - 2.0)))
    g, g_low = t.near.at(d)
    b, b_low = two_product(d, g)
    b_low = fma(d, g_low, b_low)

    far = where(large, y, 2.5)
    inverse = 1.0 / far
    inverse_low = inverse * fma(-far, inverse, 1.0)
    z, z_low = two_product(inverse, inverse)
    c, c_low = t.stirling.at(z, fma(inverse + inverse, inverse_low, z_low))
    tail, tail_low = two_product(c, inverse)
    tail_low = fma(c_low, inverse, fma(c, inverse_low, tail_low))
    c, c_low = fast_two_sum(tail.const(t.half_log[0]), tail)
    b, b_low = where(large, c, b), where(large, c_low + (tail_low + t.half_log[1]), b_low)

    factor, factor_low = fast_two_sum(y, y.const(-0.5))
    factor = where(small, y.const(-1.0), where(middle, 0.0, where(large, factor, 1.0)))
    factor_low = where(large, factor_low, 0.0)
    log, log_low = log_pair(where(small, abs(y), where(large, y, where(middle, 1.0, y - 1.0))))
    less, less_low = two_sum(log, log.const(-1.0))
    log, log_low = where(large, less, log), where(large, less_low + log_low, log_low)
    p, p_low = two_product(factor, log)
    p_low = fma(factor, log_low, fma(factor_low, log, p_low))
    s, s_low = two_sum(p, b)
    return s, s_low + (p_low + b_low)


def _reflected(a: Term, high: Term, low: Term) -> Term:
    """log pi - log(a |sin(pi a)|) minus the pair log Gamma(a), for a > 1/2."""
    t = GAMMA[a.dt]
    r = abs(a - a.rint())
    z, z_low = two_product(r, r)
    s, s_low = t.sine.at(z, z_low)
    s, s_error = two_product(s, r)
    s_low = fma(s_low, r, s_error)
    w, w_low = two_product(s, a)
    w_low = fma(s_low, a, w_low)
    log, log_low = log_pair(w)
    log_low = log_low + w_low / w
    first, first_low = two_sum(a.const(t.log_pi[0]), -log)
    total, total_low = two_sum(first, -high)
    result = total + (total_low + (first_low + (t.log_pi[1] - log_low - low)))
    near, value = near_zero(a)
    return where(r.eq(0.0), INF, where(near, value, result))


def lgamma(x: Term) -> Term:
    size = abs(x)
    high, low = _direct(x, size)
    direct = where(x.eq(0.0) | high.eq(INF), INF, high + low)
    result = where(x < -0.5, _reflected(size, high, low), direct)
    return where(size < INF, result, size)
