"""Elementwise operations of the language: stubs with their documentation.

Operands broadcast from the right, share one dtype (a literal takes it) and give that dtype unless said otherwise.
Errors: IntentTypeError for mixed or unsupported dtypes, IntentShapeError for extents that are not provably equal.
Spec: 002 section 4, 000 sections 4 and 5, SUPPLEMENT 2.
"""
from __future__ import annotations

from .operation import operation


def _pointwise(stub):
    return operation(stub, pointwise=True)


@_pointwise
def add(lhs, rhs):
    """``lhs + rhs``. Numeric dtypes; integers wrap. Usable as ``combine=``, where it is the builtin sum."""


@_pointwise
def subtract(lhs, rhs):
    """``lhs - rhs``. Numeric dtypes; integers wrap."""


@_pointwise
def multiply(lhs, rhs):
    """``lhs * rhs``. Numeric dtypes; integers wrap. Usable as ``combine=``, where it is the builtin product."""


@_pointwise
def fdiv(lhs, rhs, *, approximate=False, flush_to_zero=False):
    """Float division, ``lhs / rhs``. ``approximate`` and ``flush_to_zero`` are compile-time bools for f32 only;
    flush_to_zero needs approximate. Spec: 000 section 5.1."""


@_pointwise
def floor_divide(lhs, rhs):
    """Floor of the quotient of two floats, by the algorithm of 003, "Floating floor division and remainder"."""


@_pointwise
def remainder(lhs, rhs):
    """Float remainder with the divisor's sign, by the algorithm of 003, "Floating floor division and remainder"."""


@_pointwise
def power(base, exponent):
    """Integer power modulo 2^N; ``**`` on integers. Spec: 003, "Integer power"."""


@_pointwise
def pow(base, exponent):
    """Float power with C99 special values; ``**`` on floats."""


@_pointwise
def maximum(lhs, rhs):
    """The larger operand; a NaN in either gives NaN, and -0 is below +0."""


@_pointwise
def minimum(lhs, rhs):
    """The smaller operand; a NaN in either gives NaN, and -0 is below +0."""


@_pointwise
def maximum_num(lhs, rhs):
    """The larger operand, ignoring a single NaN; -0 is below +0."""


@_pointwise
def minimum_num(lhs, rhs):
    """The smaller operand, ignoring a single NaN; -0 is below +0."""


@_pointwise
def clamp(value, low, high):
    """``minimum(maximum(value, low), high)``, so a NaN stays NaN. Numeric dtypes."""


@_pointwise
def relu(value):
    """``maximum(value, 0)``. Numeric dtypes."""


@_pointwise
def logical_not(value):
    """``not value`` for bool scalars and tensors."""


@_pointwise
def fma(a, b, c):
    """``a * b + c`` rounded once, for every float dtype."""


@_pointwise
def abs(value):
    """Absolute value; the most negative integer stays itself. Numeric dtypes."""


@_pointwise
def exp(value):
    """e to the power of value. Float dtypes; below f32 it is the f32 function rounded."""


@_pointwise
def exp2(value, *, approximate=False, flush_to_zero=False):
    """2 to the power of value. The compile-time options are for f32 only; flush_to_zero needs approximate."""


@_pointwise
def log(value):
    """Natural logarithm. Float dtypes."""


@_pointwise
def log1p(value):
    """log(1 + value) without rounding the sum first. Float dtypes."""


@_pointwise
def lgamma(value):
    """log|Gamma(value)|; +inf at the poles. Float dtypes."""


@_pointwise
def sin(value):
    """Sine in radians. Float dtypes."""


@_pointwise
def asin(value):
    """Principal arcsine in radians; NaN outside [-1, 1]. Float dtypes."""


@_pointwise
def cos(value):
    """Cosine in radians. Float dtypes."""


@_pointwise
def tanh(value, *, approximate=False):
    """Hyperbolic tangent. ``approximate`` is a compile-time bool for f32 only."""


@_pointwise
def floor(value):
    """Largest integral value not above; keeps the float dtype and -0."""


@_pointwise
def ceil(value):
    """Smallest integral value not below; keeps the float dtype, and gives -0 for (-1, 0)."""


@_pointwise
def sqrt(value):
    """Correctly rounded square root. Float dtypes."""


@_pointwise
def rsqrt(value):
    """1 / sqrt(value). Float dtypes."""


@_pointwise
def erf(value):
    """Error function. Float dtypes."""


@_pointwise
def erfc(value):
    """Complementary error function. Float dtypes."""


@_pointwise
def i0(value):
    """Modified Bessel function of the first kind, order zero. Float dtypes."""


@_pointwise
def sigmoid(value):
    """1 / (1 + exp(-value)). Float dtypes."""


@_pointwise
def cast(value, dtype):
    """Numeric conversion to ``dtype``. Float to integer truncates and must be in range (an obligation of the caller);
    narrowing floats round to nearest even; to bool it is ``value != 0``. Spec: 000 section 5.2."""


@_pointwise
def saturating_cast(value, dtype):
    """Like cast, clamped to the finite range of ``dtype``; NaN goes to 0 for integers. Decision 21."""


@_pointwise
def bitcast(value, dtype):
    """The same bits as another dtype of equal width; bool has no bits to cast. Spec: 000 section 5.2."""


@_pointwise
def select(cond, a, b):
    """Elementwise ``a`` where the bool ``cond`` holds, else ``b``. All three broadcast together; both sides are evaluated."""


@_pointwise
def mask(value, *, valid, fill):
    """``select(valid, value, fill)``. It suppresses no access; ``gather`` with ``valid`` does."""
