"""floor_divide and remainder on floats: how is CPython's algorithm computed exactly without a loop over quotient bits?

fmod is exact: with |a| = A 2^p and |b| = B 2^q, A and B integers of full significand width, the remainder is
(A 2^(p-q) mod B) 2^q. 2^d mod B comes from squaring and doubling along the bits of d, on residues kept in [-B/2, B/2]:
then the product of two residues as an FMA pair, its rounded quotient by B and the rest are all exact in the format.
Spec: 003, "Floating floor division and remainder". Exact (fmod), and floor_divide with the rounding of that text.
"""
from __future__ import annotations

from dataclasses import dataclass

from intent_numba.math.term import INF, NAN, Term, fma, where, with_sign_of

SQUARINGS = {"f32": 4, "f64": 6}
"""Bits of the exponent difference d left to squaring: the bits above give a power of two below B / 2 at once."""


@dataclass(frozen=True)
class Modulus:
    b: Term
    inverse: Term

    def wrap(self, r: Term) -> Term:
        """r modulo B in [-B/2, B/2], for |r| below 2 B."""
        return fma(-(r * self.inverse).rint(), self.b, r)

    def product(self, x: Term, y: Term) -> Term:
        """Some representative of x y modulo B below B in size, for residues x and y."""
        high = x * y
        low = fma(x, y, -high)
        return fma(-(high / self.b).rint(), self.b, high) + low


def _parts(x: Term) -> tuple[Term, Term]:
    """The significand as an integer of full width, held as a float, and the unbiased exponent of its last bit."""
    f = x.fmt
    subnormal = x < f.tiny
    code = where(subnormal, x * 2.0 ** (f.mant + 1), x).bits()
    field = code >> f.mant
    unit = (f.bias + f.mant) << f.mant
    significand = ((code & ((1 << f.mant) - 1)) | unit).as_float()
    return significand, field - where(subnormal, field.const(f.bias + 2 * f.mant + 1), f.bias + f.mant)


def _power_of_two(k: Term, f) -> Term:
    return ((k + f.bias) << f.mant).as_float()


def _scaled(x: Term, k: Term, f) -> Term:
    """x 2^k in two factors, exact where the result is a number of the format."""
    half = k >> 1
    return x * _power_of_two(half, f) * _power_of_two(k - half, f)


def fmod(a: Term, b: Term) -> Term:
    """The remainder of truncating division, with the sign of a."""
    f = a.fmt
    x, y = abs(a), abs(b)
    big, p = _parts(x)
    divisor, q = _parts(y)
    modulus = Modulus(divisor, 1.0 / divisor)
    steps = SQUARINGS[a.dt]
    d = p - q
    # Where |a| < |b| the result is a, and d can be anything: keep the exponent arithmetic in range.
    d = where(d < 0, 0, d) & ((1 << (steps + 6)) - 1)
    residue = _power_of_two(d >> steps, f)
    for i in reversed(range(steps)):
        square = modulus.product(residue, residue)
        residue = modulus.wrap(where(((d >> i) & 1).ne(0), square + square, square))
    residue = modulus.wrap(modulus.product(residue, modulus.wrap(big)))
    rest = _scaled(where(residue < 0.0, residue + divisor, residue), q, f)
    valid = (x < INF) & (y > 0.0)
    return with_sign_of(where(valid, where(x < y, x, where(y < INF, rest, y)), NAN), a)


def _corrected(a: Term, b: Term) -> tuple[Term, Term]:
    """fmod(a, b), and whether it is nonzero with a sign that is not the divisor's."""
    r = fmod(a, b)
    return r, r.ne(0.0) & ((r < 0.0) ^ (b < 0.0))


def remainder(a: Term, b: Term) -> Term:
    r, wrong = _corrected(a, b)
    return where(r.eq(0.0), with_sign_of(r.const(0.0), b), where(wrong, r + b, r))


def floor_divide(a: Term, b: Term) -> Term:
    r, wrong = _corrected(a, b)
    q = (a - r) / b
    q = where(wrong, q - 1.0, q)
    low = q.floor()
    result = where(q - low > 0.5, low + 1.0, low)
    return where(q.eq(0.0), with_sign_of(q.const(0.0), a / b), result)
