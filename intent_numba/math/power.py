"""pow on floats: how does x^y keep its precision?

|x|^y = exp(y log |x|) with the logarithm and the product as pairs, so that the error of the exponent stays below a small
part of an ULP of the result. Special values are those of C99, annex F.
Bounds: within 1 ULP in f32, 2 ULP in f64.
"""
from __future__ import annotations

from intent_numba.math.exponential import EXP, clamp, reduce_exp
from intent_numba.math.pair import log_pair
from intent_numba.math.term import INF, NAN, Term, fma, horner, where


def pow(x: Term, y: Term) -> Term:
    f, t = x.fmt, EXP[x.dt]
    size = abs(x)
    high, low = log_pair(size)
    # The logarithms of 0, infinity and NaN; the product below then gives the right limits.
    high = where(size < INF, where(size.eq(0.0), -INF, high), size)
    product = y * high
    # Beyond the clamps, and where y is so small that the error of the product underflows, the low part is immaterial.
    moderate = (product > t.low) & (product < t.high)
    rest = where(moderate, fma(y, low, fma(y, high, -product)), 0.0)
    r, power = reduce_exp(clamp(product, t.low, t.high), rest)
    result = power.times(horner(r, t.exp))
    whole = y.rint().eq(y)
    half = y * 0.5
    odd = whole & half.rint().ne(half)
    sign = x.bits() & x.const(-f.sign_bit, f.signed)
    result = (result.bits() ^ where(odd, sign, 0)).as_float()
    result = where((x < 0.0) & (size < INF) & ~whole, NAN, result)
    # 1 to any power and any number to the power 0 are 1, NaN included; so is (-1) to an infinite power.
    one = x.eq(1.0) | y.eq(0.0) | (size.eq(1.0) & abs(y).eq(INF))
    return where(one, 1.0, result)
