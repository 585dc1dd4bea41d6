"""Which operands does the language forbid?  For each kind of operation, the elements that break an obligation of its caller.

Each rule gives (message, mask) pairs; the mask is True where the obligation is broken, and aligns with the operation's result.
Spec: 000 sections 3 to 5, SUPPLEMENT decisions 10, 11 and 20.
"""
from __future__ import annotations

import numpy as np

from ..kir.ir import Op
from ..kir.types import BITS, SIGNED, int_range, is_float, is_int

LARGEST_ROUNDED = 464.0
"""The largest magnitude that f8e4m3fn rounds to its largest number, 448."""

SPELLING = {"floordiv": "//", "mod": "%", "shl": "<<", "shr": ">>", "power": "**", "random_bits": "I.random", "write": "store",
            "atomic_rmw": "I.atomic", "atomic_load": "I.atomic.load", "atomic_store": "I.atomic.store",
            "atomic_compare_exchange": "I.atomic.compare_exchange", "scatter_reduce": "I.scatter_reduce", "histogram": "I.histogram",
            "domain": "I.domain", "reshape": "I.reshape", "buffer": "I.buffer", "broadcast": "I.full", "cast": "I.cast"}
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
