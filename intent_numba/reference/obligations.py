"""Which operands does the language forbid?  For each kind of operation, the elements that break an obligation of its caller.

Each rule gives (message, mask) pairs; the mask is True where the obligation is broken, and aligns with the operation's result.
Spec: 000 sections 3 to 5, SUPPLEMENT decisions 10, 11 and 20.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..kir.ir import Op
from ..kir.types import BITS, SIGNED, int_range, is_float, is_int


@dataclass(frozen=True)
class Obligation:
    """``duty``: what the caller sees to. ``spec``: where the language says so; numbers alone are decisions of SUPPLEMENT.
    ``message``: how its violation is reported; {} stands for what depends on the program."""
    spec: str
    duty: str
    message: str


CHECKED = {
    "zero divisor": Obligation("000 4; 11", "an integer divisor of `//` and `%` is not zero", "the divisor is zero"),
    "zero divisor, range_preserving": Obligation("003", "under `range_preserving` the divisor of `/` between integers and of `//` and `%` "
                                                        "on floats is not zero", "the divisor is zero"),
    "quotient": Obligation("000 4; 11", "the least signed integer is not divided by -1 with `//`", "the quotient {} // -1 does not fit {}"),
    "shift": Obligation("000 4; 11", "a shift amount is at least 0 and below the width", "the shift amount is outside 0 .. {}"),
    "exponent": Obligation("003", "the exponent of an integer is not negative", "the exponent is negative"),
    "NaN to integer": Obligation("000 5.2", "what is cast to an integer is not NaN", "NaN has no value in {}"),
    "float to integer": Obligation("000 5.2; 11", "what is cast to an integer fits once truncated", "the value is outside the range of {}"),
    "f8e4m3fn": Obligation("000 5.2; 20", "what is cast to `f8e4m3fn` rounds to at most 448", "the value rounds beyond 448, {}"),
    "counter": Obligation("000 12", "the counter of `I.random` is not negative", "the counter is negative"),
    "step": Obligation("002 3", "the step of a domain is positive", "the step is {}, it must be positive"),
    "slice": Obligation("4", "a slice does not end before it begins", "the slice {}:{} ends before it begins"),
    "subregion": Obligation("2", "a subregion lies inside of its source and does not end before it begins",
                            "{} .. {} is not inside of its source, {} .. {}"),
    "extent": Obligation("000 2", "extents of `I.full`, `I.zeros`, `I.buffer`, `I.reshape` are not negative",
                         "the extent of axis {} is {}, it must not be negative"),
    "reshape": Obligation("002 4", "what `I.reshape` is given fills a shape whose extents are inferred or quotients",
                          "{} elements do not fill the shape {}"),
    "inferred extent": Obligation("002 4", "the extents beside an inferred one of `I.reshape` are not zero",
                                  "the product of the extents beside -1 is zero"),
    "index": Obligation("000 8", "an index of a read, a store, an atomic, a scatter or `I.gather` lies inside of its axis where `valid` "
                                 "holds",
                        "index {} is outside axis {} of {}, whose extent is {}"),
    "assumption": Obligation("000 13", "`I.assume_in_bounds` is true", "the index is outside of axis {}"),
    "unwritten": Obligation("000 9", "an element of a buffer or of an `Out` is written before it is read",
                            "an element of {} that nothing wrote is read"),
    "repeated place": Obligation("000 10; 33", "a store through data and `I.scatter_unique` meet no element twice",
                                 "two elements are stored to one place of {}"),
    "unordered": Obligation("000 10; 33", "points of `I.parallel` meet in an element only by reads, atomics and `I.scatter_reduce`",
                            "this {} of {} and the {} of the same element at point {} have no order"),
    "bins": Obligation("000 7", "`I.histogram` has at least one bin", "the number of bins is {}, it must be positive"),
    "bin": Obligation("000 7", "active values of `I.histogram` are bins", "the value is outside of the bins 0 .. {}"),
    "one_of_two": Obligation("000 7", "positions of `one_of_two` are 0 or 1", "a position of the metadata is not 0 or 1"),
    "two_of_four": Obligation("000 7", "positions of `two_of_four` are 0 to 3", "a position of the metadata is outside 0 .. 3"),
    "ascending": Obligation("000 7", "positions of `two_of_four` ascend in their group", "the positions of a group do not ascend"),
    "logical extent": Obligation("000 7", "the compressed extent of a sparse operand belongs to its `logical_extent`",
                                 "the logical extent is not {} times a stored one"),
    "finite": Obligation("30", "values given to `I.quantize` are finite", "a value is not finite"),
    "inverse": Obligation("30", "the inverse of each block's extreme is finite", "the inverse of a block's extreme is not finite"),
    "bsum": Obligation("7", "each `bsum` of a Q8_K record is the sum of its values", "a bsum of rhs is not the sum of its values"),
    "score": Obligation("000 5.6; 32", "with `relaxed_normalization`, valid scores of a normalised summary are finite",
                        "a valid score is not finite"),
    "weighted value": Obligation("000 5.6; 32", "with `relaxed_normalization`, values of its weighted contraction are finite",
                                 "a value of the weighted contraction is not finite"),
}
"""Obligations whose violation ``checks=True`` reports."""

TRUSTED = {
    "laws": Obligation("000 6", "a combine is associative, for `I.reduce` commutative too, and its identity neutral; helpers of region "
                                "operations satisfy `summarize(A then B) == combine(summarize(A), summarize(B))` and their like", ""),
    "njit": Obligation("9", "effects inside of an `@njit` function that a kernel calls are as its author wants them (with `checks=True` it "
                            "runs twice)", ""),
}
"""Obligations that nothing checks."""

LARGEST_ROUNDED = 464.0
"""The largest magnitude that f8e4m3fn rounds to its largest number, 448."""

SPELLING = {"floordiv": "//", "mod": "%", "shl": "<<", "shr": ">>", "power": "**", "random_bits": "I.random", "write": "store",
            "atomic_rmw": "I.atomic", "atomic_load": "I.atomic.load", "atomic_store": "I.atomic.store",
            "atomic_compare_exchange": "I.atomic.compare_exchange", "scatter_reduce": "I.scatter_reduce", "histogram": "I.histogram",
            "domain": "I.domain", "reshape": "I.reshape", "buffer": "I.buffer", "broadcast": "I.full", "cast": "I.cast",
            "contract": "a contraction", "reduce": "I.reduce"}
"""Operations as programs write them."""


def name_of(op: Op) -> str:
    if op.kind == "write" and op.attrs.get("unique"):
        return "I.scatter_unique"
    if op.kind == "domain" and len(op.args) == 4:
        return "a subregion"
    return SPELLING.get(op.kind, op.kind)


def _division(op: Op, x, y):
    yield "the divisor is zero", y == 0
    if op.kind == "floordiv" and op.result.type.dt in SIGNED:
        low = int_range(op.result.type.dt)[0]
        yield f"the quotient {low} // -1 does not fit {op.result.type.dt}", (y == -1) & (x == low)


def _shift(op: Op, x, y):
    bits = BITS[op.args[0].type.dt]
    yield f"the shift amount is outside 0 .. {bits - 1}", (y >= bits) | (y < 0)


def _power(op: Op, x, y):
    if op.args[1].type.dt in SIGNED:
        yield "the exponent is negative", y < 0


def _cast(op: Op, x):
    source, target = op.args[0].type.dt, op.result.type.dt
    if is_float(source) and is_int(target):
        low, high = int_range(target)
        whole = np.trunc(x.astype(np.float64))
        yield f"NaN has no value in {target}", np.isnan(whole)
        yield f"the value is outside the range of {target}", (whole < float(low)) | (whole >= float(high + 1))
    elif target == "f8e4m3fn" and source not in ("bool", "f8e4m3fn"):
        yield "the value rounds beyond 448, the largest number of f8e4m3fn", np.abs(x.astype(np.float64)) > LARGEST_ROUNDED


ELEMENTWISE = {"floordiv": _division, "mod": _division, "shl": _shift, "shr": _shift, "power": _power, "cast": _cast}
