"""What do reductions, scans and contractions give?  The bits follow section 12 through ``order``; what section 12 calls
order-free is computed by NumPy directly.
"""
from __future__ import annotations

import numpy as np

from ..kir.types import int_range, is_float
from . import exact, order
from .formats import FORMATS, largest_finite, round_to
from .operations import NUMPY, constant


def identity(kind: str, dt: str) -> np.ndarray:
    """The canonical identity of a builtin reduction, 0-d."""
    if kind in ("max", "min"):
        if is_float(dt):
            # E4M3FN has no infinity: its extremes are finite.
            value = largest_finite(dt) if dt == "f8e4m3fn" else np.inf
            return constant(-value if kind == "max" else value, dt)
        low, high = int_range(dt)
        return constant(low if kind == "max" else high, dt)
    if kind == "and" and dt != "bool":
        return constant(-1, dt)
    return constant({"sum": 0, "prod": 1, "any": 0, "all": 1, "and": 1, "or": 0, "xor": 0}[kind], dt)


def _builtin(kind: str, dt: str) -> order.Combine:
    """The combine of a float sum or product."""
    operate = np.add if kind == "sum" else np.multiply

    def combine(left, right):
        value = operate(left[0], right[0])
        return [round_to(value, dt) if dt in FORMATS else value]
    return combine


_UFUNCS = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum, "any": np.logical_or, "all": np.logical_and,
           "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


def reduce(x: np.ndarray, axis: int, kind: str, dt: str) -> np.ndarray:
    """A builtin reduction of one axis."""
    x = np.moveaxis(x, axis, 0)
    if len(x) == 0:
        return np.full(x.shape[1:], identity(kind, dt))
    if kind in ("sum", "prod") and is_float(dt):
        return order.tree([x], _builtin(kind, dt), [identity(kind, dt)])[0]
    if kind in ("max", "min") and is_float(dt):
        return _unkey(_UFUNCS[kind].reduce(_key(x, kind), axis=0))
    return _UFUNCS[kind].reduce(x, axis=0, dtype=x.dtype)


def reduce_generic(xs, axis: int, identities, combine: order.Combine, over=()) -> list[np.ndarray]:
    """A reduction by a combine region; ``identities`` are the results of an empty axis only. ``over`` names axes of the results that
    the combine does not see: they lead."""
    xs = [np.moveaxis(x, axis, 0) for x in xs]
    if not len(xs[0]):
        return list(identities)
    lead = range(len(over))
    xs = [np.moveaxis(x, [a + 1 for a in over], [a + 1 for a in lead]) for x in xs]
    return [np.moveaxis(x, list(lead), over) for x in order.tree(xs, combine, None)]


def arg_reduce(x: np.ndarray, axis: int, kind: str, dt: str) -> tuple[np.ndarray, np.ndarray]:
    """Decision 24: the element and its index inside the axis."""
    x = np.moveaxis(x, axis, 0)
    if len(x) == 0:
        return np.full(x.shape[1:], identity(kind, dt)), np.full(x.shape[1:], 2 ** 63 - 1, np.int64)
    keys = _key(x, kind) if is_float(dt) else x
    at = np.asarray((np.argmax if kind == "max" else np.argmin)(keys, axis=0))
    return np.take_along_axis(x, at[None], 0)[0], at


def scan(x: np.ndarray, axis: int, kind: str, dt: str, inclusive: bool, reverse: bool) -> np.ndarray:
    """A builtin scan of one axis."""
    x = np.moveaxis(x, axis, 0)
    if len(x):
        if kind in ("sum", "prod") and is_float(dt):
            y = order.prefixes([x], _builtin(kind, dt), reverse)[0]
        else:
            keyed = kind in ("max", "min") and is_float(dt)
            source = _key(x, kind) if keyed else x
            source = source[::-1] if reverse else source
            y = _UFUNCS[kind].accumulate(source, axis=0, dtype=source.dtype)
            y = y[::-1] if reverse else y
            y = _unkey(y) if keyed else y
        x = y if inclusive else _shift(y, identity(kind, dt), reverse)
    return np.moveaxis(x, 0, axis)


def scan_generic(xs, axis: int, identities, combine: order.Combine, inclusive: bool, reverse: bool) -> list[np.ndarray]:
    """A scan by a combine region; ``identities`` begin an exclusive scan."""
    xs = [np.moveaxis(x, axis, 0) for x in xs]
    if len(xs[0]):
        xs = order.prefixes(xs, combine, reverse)
        if not inclusive:
            xs = [_shift(x, i, reverse) for x, i in zip(xs, identities)]
    return [np.moveaxis(x, 0, axis) for x in xs]


def _shift(y: np.ndarray, first: np.ndarray, reverse: bool) -> np.ndarray:
    first = np.broadcast_to(first, y[:1].shape).astype(y.dtype)
    return np.concatenate([y[1:], first] if reverse else [first, y[:-1]])


def _key(x: np.ndarray, kind: str) -> np.ndarray:
    """Integers in the order of the floats: -0 below +0, and NaN beyond every number in the direction of ``kind``."""
    bits = x.view(np.int32 if x.dtype == np.float32 else np.int64)
    limits = np.iinfo(bits.dtype)
    keys = np.where(bits < 0, bits ^ limits.max, bits)
    return np.where(np.isnan(x), bits.dtype.type(limits.max if kind == "max" else limits.min), keys)


def _unkey(keys: np.ndarray) -> np.ndarray:
    keys = np.asarray(keys)
    limits = np.iinfo(keys.dtype)
    floats = np.float32 if keys.dtype == np.int32 else np.float64
    values = np.where(keys < 0, keys ^ limits.max, keys).view(floats)
    return np.where((keys == limits.max) | (keys == limits.min), floats(np.nan), values)


def contract(a: np.ndarray, b: np.ndarray, reduced, batch, form: str, dt: str) -> np.ndarray:
    """A contraction. Result axes: those of ``a`` that are not reduced, in order, then the free axes of ``b``."""
    batch_of = {i: j for i, j in batch}
    kept_a = [i for i in range(a.ndim) if i not in {i for i, _ in reduced}]
    free_b = [j for j in range(b.ndim) if j not in {j for _, j in (*reduced, *batch)}]
    n = int(np.prod([a.shape[i] for i, _ in reduced], dtype=np.int64))
    left = a.transpose([i for i, _ in reduced] + kept_a).reshape(n, *(a.shape[i] for i in kept_a), *(1 for _ in free_b))
    shared = [i for i in kept_a if i in batch_of]
    right = b.transpose([j for _, j in reduced] + [batch_of[i] for i in shared] + free_b)
    right = right.reshape(n, *(a.shape[i] if i in batch_of else 1 for i in kept_a), *(b.shape[j] for j in free_b))
    shape = np.broadcast_shapes(left.shape[1:], right.shape[1:])
    zero = np.zeros(shape, NUMPY[dt])
    if n == 0:
        return zero
    if not is_float(dt):
        return order.chain(left, right, lambda x, y, p: p + x * y, np.add, zero)
    add = _builtin("sum", dt)
    if form == "chain":
        return order.chain(left, right, lambda x, y, p: exact.fma(x, y, p, dt), lambda p, q: add([p], [q])[0], zero)
    return order.tree([left, right], add, [constant(0, dt)], lambda lane, uv: [exact.fma(*uv, *lane, dt)])[0]
