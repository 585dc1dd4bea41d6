"""rsqrt: how is a reciprocal square root rounded?

1 / sqrt(x) carries two roundings; one Newton step with an exact residual of x y^2 - 1 leaves little more than one.
Bounds: rsqrt within 1 ULP in f32 and f64 (0.51 measured).
"""
from __future__ import annotations

from intent_numba.math.term import Term, fma, where


def rsqrt(x: Term) -> Term:
    y = 1.0 / x.sqrt()
    product = x * y
    rest = fma(-product, y, 1.0) - fma(x, y, -product) * y
    # At 0, infinity, negative numbers and NaN the residual is NaN and y already is the result.
    return where(rest.eq(rest), fma(y * 0.5, rest, y), y)
