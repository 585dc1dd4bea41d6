"""Elementary functions as portable scalar programs: which program computes an elementwise operation?

``program(kind, dt)`` gives ``p(o, *args) -> value``, written over the primitives of an operations object ``o``. The
same program is run by the reference interpreter and emitted by every target, so all of them give the same bits. The
programs are straight-line: no branches, no loops over data, integer and float steps of the function's own precision.
Sub-f32 floats are computed by the f32 program between two casts. Spec: 000 sections 4 and 5, SUPPLEMENT section 10.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import cache

from intent_numba.math import bessel, convert, error, exponential, gamma, integers, logarithm, order, philox, power, remainder, roots, trig
from intent_numba.math.term import FORMATS, Term

FLOAT: dict[str, Callable[..., Term]] = {
    "exp": exponential.exp, "exp2": exponential.exp2, "sigmoid": exponential.sigmoid, "tanh": exponential.tanh,
    "log": logarithm.log, "log1p": logarithm.log1p, "rsqrt": roots.rsqrt, "erf": error.erf,
    "sin": trig.sin, "cos": trig.cos, "asin": trig.asin, "erfc": error.erfc, "i0": bessel.i0, "pow": power.pow,
    "lgamma": gamma.lgamma,
    "floor_divide": remainder.floor_divide, "remainder": remainder.remainder,
    "maximum": order.maximum, "minimum": order.minimum,
    "maximum_num": order.maximum_num, "minimum_num": order.minimum_num,
}
INTEGER: dict[str, Callable[..., Term]] = {
    "floordiv": integers.floordiv, "mod": integers.mod, "power": integers.power, "random_bits": philox.random_bits,
    "maximum": order.maximum, "minimum": order.minimum, "maximum_num": order.maximum, "minimum_num": order.minimum,
}
NARROW = ("f16", "bf16", "f8e4m3fn", "f8e5m2")


@cache
def program(kind: str, dt: str) -> Callable | None:
    """The program of an elementwise kind of KIR on operands of one dtype, or None where the kind is a primitive.

    ``saturating_cast`` takes the destination dtype as a second argument: ``p(o, x, dst)``.
    """
    if kind == "saturating_cast":
        return lambda o, x, dst: convert.saturating_cast(Term(o, x, dt), dst).v
    if dt in NARROW:
        return _widened(kind)
    function = FLOAT.get(kind) if dt in FORMATS else INTEGER.get(kind) if dt in integers.WIDTH else None
    if function is None:
        return None
    return lambda o, *args: function(*(Term(o, a, dt) for a in args)).v


def _widened(kind: str) -> Callable | None:
    inner = program(kind, "f32")
    if inner is None:
        return None
    return lambda o, *args: o.cast(inner(o, *(o.cast(a, "f32") for a in args)), o.dt(args[0]))
