"""lgamma: how is log|Gamma(x)| computed so that its zeros at 1 and 2 stay exact?

With d the distance from 1 and L(d) = log Gamma(1 + d) = d G(d) on [-1/4, 3/4], a polynomial whose leading steps are pairs:
  [-1/4, 3/4)  L(x) - log|x|         [3/4, 7/4)  L(x - 1)        [7/4, 11/4)  L(x - 2) + log(x - 1)
  from 11/4    (x - 1/2)(log x - 1) + (log 2 pi - 1)/2 + S(1/x^2)/x, Stirling's form, which overflows only with the result
  below -1/4   log pi - log(a sin(pi a)) - log Gamma(a) with a = -x; a sin(pi a) is a pair too
All of it is one expression A log w + B with A, w and B selected.
Bounds: within 1 ULP in f32 and f64 for x >= -1/4. Below, the error is that of pairs relative to the terms, which the
result's other zeros cancel: within 1 ULP where |result| exceeds 2^-10 (f32), 2 ULP above 2^-6 (f64).
"""
from __future__ import annotations

from dataclasses import dataclass

from intent_numba.math.pair import fast_two_sum, log_pair, two_product, two_sum
from intent_numba.math.term import INF, Term, fma, hexes, horner, where

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
    stirling: tuple[float, ...]
    """S in powers of 1/x^2."""
    sine: PairPolynomial
    """sin(pi r) / r in powers of r^2."""
    half_log: Pair
    """(log(2 pi) - 1) / 2."""
    log_pi: Pair


GAMMA = {
    "f32": GammaTable(
        near=PairPolynomial(
            heads=hexes("-0x1.2788dp-1 0x1.d75798p-28 0x1.a51a66p-1 -0x1.97ae7ap-30 -0x1.9a4d5cp-2 0x1.71261ap-27 0x1.151368p-2"
                        " -0x1.a2f034p-27 -0x1.a8b7f8p-3 0x1.da5238p-28"),
            tail=hexes("0x1.5b261ep-3 -0x1.26f0f8p-3 0x1.02c2p-3 -0x1.d2bd34p-4 0x1.969d4ap-4 -0x1.246002p-4 0x1.16c78p-5"
                       " -0x1.f132bep-8")),
        stirling=hexes("0x1.555554p-4 -0x1.6c12cap-9 0x1.9e2786p-11 -0x1.1aee98p-11 0x1.a9956p-12"),
        sine=PairPolynomial(
            heads=hexes("0x1.921fb6p+1 -0x1.777a94p-24 -0x1.4abbcep+2 -0x1.891f6ep-24 0x1.466bc6p+1 0x1.b707a2p-25 -0x1.32d2cap-1"
                        " 0x1.2a824cp-26"),
            tail=hexes("0x1.5076fep-4 -0x1.e297b8p-8 0x1.d4ea4p-12")),
        half_log=hexes("0x1.acfe3ap-2 -0x1.e6d052p-27"), log_pi=hexes("0x1.250d04p+0 0x1.1cf438p-25")),
    "f64": GammaTable(
        near=PairPolynomial(
            heads=hexes("-0x1.2788cfc6fb619p-1 0x1.6998538b7dep-58 0x1.a51a6625307d3p-1 0x1.94f5376bd3822p-59 -0x1.9a4d55beab2d5p-2"
                        " -0x1.350b94be29c95p-57 0x1.151322ac7d8c8p-2 -0x1.ffe27e221685p-56 -0x1.a8b9c17aa67c7p-3"
                        " -0x1.8b383e91551c3p-57"),
            tail=hexes("0x1.5b40cb1002582p-3 -0x1.2703a1dca308ep-3 0x1.010b36b1f4893p-3 -0x1.c806709b1e87dp-4 0x1.9a01e31b81604p-4"
                       " -0x1.748c2b91ee292p-4 0x1.556aceb63333p-4 -0x1.3b1e31a520541p-4 0x1.2499017b13902p-4 -0x1.110f5a50b7a2cp-4"
                       " 0x1.ffb6392a23737p-5 -0x1.e16d40a9518a4p-5 0x1.c8912070e9853p-5 -0x1.b689a37a3d36bp-5 0x1.a458fb42384aap-5"
                       " -0x1.7c68df421b2b1p-5 0x1.2a4ddef8a885dp-5 -0x1.71a736596cd27p-6 0x1.487a0d7e257a9p-7 -0x1.6e1308b9c0d7dp-9"
                       " 0x1.7d3de9eaef29dp-12")),
        stirling=hexes("0x1.555555555554p-4 -0x1.6c16c16bc3522p-9 0x1.a01a00aa41c7fp-11 -0x1.381321ee5a53ap-11 0x1.b93b40e3d3245p-11"
                       " -0x1.f4df02d309c9dp-10 0x1.9727d38910df7p-8 -0x1.9ee2243d26f63p-6 0x1.bf37acaf3370fp-4 -0x1.ade99f9bebdbp-2"
                       " 0x1.3c8b671139732p+0 -0x1.2e3a436ea7681p+1 0x1.11ced591936b2p+1"),
        sine=PairPolynomial(
            heads=hexes("0x1.921fb54442d18p+1 0x1.1a6262f8a588ap-53 -0x1.4abbce625be53p+2 0x1.055183500d80cp-52 0x1.466bc6775aae2p+1"
                        " -0x1.6eb9f4399ac19p-54 -0x1.32d2cce62bd86p-1 0x1.7ca4abd29f363p-55"),
            tail=hexes("0x1.50783487ee765p-4 -0x1.e3074fde86616p-8 0x1.e8f434ce9f06bp-12 -0x1.6fadb94384b82p-16 0x1.aaebcbbc48b51p-21"
                       " -0x1.8a1a4f35d98d8p-26 0x1.208885bf171c6p-31")),
        half_log=hexes("0x1.acfe390c97d69p-2 0x1.3494bc9001442p-56"), log_pi=hexes("0x1.250d048e7a1bdp+0 0x1.7abf2ad8d5088p-57")),
}


def _direct(x: Term, size: Term) -> tuple[Term, Term]:
    """log|Gamma| as a pair, of x where x >= -1/4, else of size = |x|."""
    t = GAMMA[x.dt]
    y = where(x >= -0.25, x, size)
    small, middle, large = y < 0.75, y < 1.75, y >= 2.75
    d = where(small, y, where(middle, y - 1.0, where(large, 0.0, y - 2.0)))
    g, g_low = t.near.at(d)
    b, b_low = two_product(d, g)
    b_low = fma(d, g_low, b_low)

    inverse = 1.0 / where(large, y, 2.75)
    tail = inverse * horner(inverse * inverse, t.stirling)
    c, c_low = fast_two_sum(tail.const(t.half_log[0]), tail)
    b, b_low = where(large, c, b), where(large, c_low + t.half_log[1], b_low)

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
    """log pi - log(a |sin(pi a)|) minus the pair log Gamma(a), for a > 1/4."""
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
    return where(r.eq(0.0), INF, result)


def lgamma(x: Term) -> Term:
    size = abs(x)
    high, low = _direct(x, size)
    direct = where(x.eq(0.0) | high.eq(INF), INF, high + low)
    result = where(x < -0.25, _reflected(size, high, low), direct)
    return where(size < INF, result, size)
