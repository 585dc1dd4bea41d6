"""What do atomics, scatter_reduce and histogram do?  One update for each member, in ascending order.

Members with distinct addresses cannot see each other, so they are updated together: round r holds the r-th member of every
address. Addresses are bytes, because a view whose elements overlap may be updated too.
"""
from __future__ import annotations

import numpy as np

from .formats import FORMATS, decode, encode
from .memory import Memory, resolve
from .operations import NUMPY, Typed, evaluate, to_bits

OPERATION = {"add": "add", "max": "maximum", "min": "minimum", "and": "and", "or": "or", "xor": "xor",
             "sum": "add", "prod": "mul", "any": "or", "all": "and"}
"""Kinds of atomic_rmw and scatter_reduce as elementwise operations."""


def update(memory: Memory, indices, valid, step) -> np.ndarray:
    """Replace each valid member by ``step(old, members)``, None leaving it alone; ``members`` selects from flat lists of the valid
    members (see ``flat``). Returns the old values, zero where invalid."""
    mask = np.asarray(True if valid is None else valid)
    where, shape = resolve(memory.storage.shape, indices, mask, memory.name)
    old = np.zeros(shape, NUMPY[memory.dt])
    if where is None:
        return old
    mask = np.broadcast_to(mask, shape)
    count = int(mask.sum())
    found = np.zeros(count, old.dtype)
    for members in _rounds(memory.storage, where, count):
        at = tuple(w[members] for w in where)
        bits = np.asarray(memory.storage[at]).reshape(len(members))
        found[members] = values = decode(bits, memory.dt) if memory.dt in FORMATS else bits
        new = step(values, members)
        if new is not None:
            new = encode(new, memory.dt) if memory.dt in FORMATS else new
            memory.storage[at] = new if at else new[0]
    old[mask] = found
    return old


def flat(value, valid, shape) -> np.ndarray:
    """The valid members of an operand as a list."""
    value = np.broadcast_to(value, shape)
    return value.reshape(-1) if valid is None else value[np.broadcast_to(valid, shape)]


def _rounds(storage: np.ndarray, where, count: int):
    """Positions of the members of each round."""
    if not where:
        return [np.array([i]) for i in range(count)]
    address = sum(w * s for w, s in zip(where, storage.strides))
    order = np.argsort(address, kind="stable")
    ordered = address[order]
    first = np.r_[True, ordered[1:] != ordered[:-1]]
    begins = np.maximum.accumulate(np.where(first, np.arange(count), 0))
    rank = np.empty(count, np.int64)
    rank[order] = np.arange(count) - begins
    by_rank = np.argsort(rank, kind="stable")
    return np.split(by_rank, np.cumsum(np.bincount(rank))[:-1])


def combined(kind: str, dt: str, values: np.ndarray):
    """The step of a builtin kind with its flat operand."""
    if kind == "exchange":
        return lambda old, members: values[members]
    return lambda old, members: evaluate(OPERATION[kind], (Typed(dt, old), Typed(dt, values[members])), dt)


def exchanged_where_equal(dt: str, expected: np.ndarray, desired: np.ndarray, success: np.ndarray):
    """The step of compare_exchange; ``success`` is filled."""
    def step(old, members):
        equal = to_bits(old, dt) == to_bits(expected[members], dt)
        success[members] = equal
        return np.where(equal, desired[members], old)
    return step


def histogram(values: np.ndarray, valid, bins: int, dt: str) -> np.ndarray:
    """Counts of the valid values, modulo the width of ``dt``. Raises IndexError for a valid value outside the bins."""
    active = values.reshape(-1) if valid is None else values[valid]
    if active.size and not 0 <= int(active.min()) <= int(active.max()) < bins:
        raise IndexError(f"histogram: a value outside 0 .. {bins - 1}")
    return np.bincount(active, minlength=bins).astype(NUMPY[dt])
