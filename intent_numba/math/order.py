"""maximum and minimum, and the forms that ignore a NaN: how are numbers ordered?

-0 lies below +0. maximum and minimum give NaN where an operand is NaN; the ``_num`` forms give the other operand.
Exact for every dtype.
"""
from __future__ import annotations

from intent_numba.math.term import FORMATS, Term, where


def _extreme(a: Term, b: Term, larger: bool) -> Term:
    """The larger or smaller one. b where a or b is NaN."""
    picked = where(a > b if larger else a < b, a, b)
    if a.dt not in FORMATS:
        return picked
    # Equal numbers differ in the sign of zero at most: + wins by and, - by or.
    p, q = a.bits(), b.bits()
    return where(a.eq(b), ((p & q) if larger else (p | q)).as_float(), picked)


def _propagating(a: Term, b: Term, larger: bool) -> Term:
    picked = _extreme(a, b, larger)
    return where(a.is_nan(), a, picked) if a.dt in FORMATS else picked


def _ignoring(a: Term, b: Term, larger: bool) -> Term:
    picked = _extreme(a, b, larger)
    return where(b.is_nan(), a, picked) if a.dt in FORMATS else picked


def maximum(a: Term, b: Term) -> Term:
    return _propagating(a, b, larger=True)


def minimum(a: Term, b: Term) -> Term:
    return _propagating(a, b, larger=False)


def maximum_num(a: Term, b: Term) -> Term:
    return _ignoring(a, b, larger=True)


def minimum_num(a: Term, b: Term) -> Term:
    return _ignoring(a, b, larger=False)
