"""What does ``numerics="relaxed_normalization"`` ask to be finite? The valid scores and the values of a normalised summary.

Such a summary is a maximum of scores, exponentials of the scores less their maximum, and a contraction of these weights with values.
What the author spells as a region operation follows its own contract. Spec: 000 section 5.6, decision 32.
"""
from __future__ import annotations

import numpy as np

from ..kir.ir import Kernel, Op, Region, Value

SHAPING = {"cast": (0,), "expand": (0,), "broadcast": (0,), "reshape": (0,), "transpose": (0,)}
THROUGH = SHAPING | {"select": (1, 2), "div": (0,), "mul": (0, 1)}
"""Operations that leave scores and weights what they are: the operands to look behind."""


def conditions(kernel: Kernel) -> dict[Op, list]:
    """For each operation, (message, value that must be finite, condition or None that says where)."""
    made = {r: op for op in _outside_of_regions(kernel, kernel.body) for r in op.results}
    found: dict = {}
    for op in dict.fromkeys(made.values()):
        for weights, values in (op.args, op.args[::-1]) if op.kind == "contract" else ():
            for maximum in filter(None, (_maximum(made, e) for e in _behind(made, weights, THROUGH, ("exp", "exp2")))):
                found[maximum] = [_scores(made, maximum.args[0])]
                found.setdefault(op, []).append(("a value of the weighted contraction is not finite", values, None))
    return found


def _outside_of_regions(kernel: Kernel, region: Region):
    for op in region.ops:
        yield op
        for r in op.regions:
            if not set(r.params) & set(kernel.segments.values()):
                yield from _outside_of_regions(kernel, r)


def _behind(made: dict, value: Value, through: dict, kinds: tuple) -> list[Op]:
    """The operations of some kinds that ``value`` comes from."""
    found, seen, open_ = [], set(), [value]
    while open_:
        op = made.get(open_.pop())
        if op is None or op in seen:
            continue
        seen.add(op)
        if op.kind in kinds:
            found.append(op)
        else:
            open_ += [op.args[at] for at in through.get(op.kind, ())]
    return found


def _maximum(made: dict, exponential: Op) -> Op | None:
    """The reduction that the exponent subtracts."""
    for less in _behind(made, exponential.args[0], THROUGH, ("sub", "fma")):
        shift = less.args[-1]
        for top in _behind(made, shift, SHAPING | {"neg": (0,), "mul": (0, 1), "select": (1, 2)}, ("reduce",)):
            if top.attrs["kind"] == "max":
                return top
    return None


def _scores(made: dict, scores: Value) -> tuple:
    """A score that a select replaces by a constant is not valid."""
    message, op = "a valid score is not finite", made.get(scores)
    if op is not None and op.kind == "select":
        condition, a, b = op.args
        for kept, other, where in ((a, b, (condition, True)), (b, a, (condition, False))):
            if _behind(made, other, SHAPING, ("const",)):
                return message, kept, where
    return message, scores, None


def broken(value: np.ndarray, where) -> np.ndarray:
    """``where`` is None or (condition, what it is where the value counts)."""
    wrong = ~np.isfinite(value)
    return wrong if where is None else wrong & (where[0] == where[1])
