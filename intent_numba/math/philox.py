"""random_bits: which word does Philox4x32-10 give for a seed and a counter?

The counter names one 32-bit word: block counter // 4, word counter % 4. Ten rounds of two 32 x 32 -> 64 bit products, on integers
only, so every target gives the same stream. Spec: 000 section 12.
"""
from __future__ import annotations

from intent_numba.math.term import Term, where

ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)


def random_bits(seed: Term, counter: Term) -> Term:
    """One u32 word; ``seed`` and ``counter`` are u64."""
    block, word = counter >> 2, counter & 3
    state = (_low(block), _high(block), None, None)
    keys = (_low(seed), _high(seed))
    for _ in range(ROUNDS):
        state = _round(state, keys)
        keys = tuple(k + step for k, step in zip(keys, KEY_STEPS))
    first = where((word & 1).eq(0), state[0], state[1])
    second = where((word & 1).eq(0), state[2], state[3])
    return where((word & 2).eq(0), first, second)


def _round(state, keys):
    """One round. None stands for the zero of the initial state's upper half."""
    c0, c1, c2, c3 = state
    wide0 = c0.cast("u64") * MULTIPLIERS[0]
    if c2 is None:
        return c1 ^ keys[0], c1.const(0), _high(wide0) ^ keys[1], _low(wide0)
    wide1 = c2.cast("u64") * MULTIPLIERS[1]
    return _high(wide1) ^ c1 ^ keys[0], _low(wide1), _high(wide0) ^ c3 ^ keys[1], _low(wide0)


def _low(x: Term) -> Term:
    return x.cast("u32")


def _high(x: Term) -> Term:
    return (x >> 32).cast("u32")
