"""How many examples, and from which seed. ``INTENT_FUZZ_EXAMPLES`` and ``INTENT_FUZZ_SEED`` override the defaults."""
from __future__ import annotations

import os

from hypothesis import HealthCheck, seed, settings

SEED = int(os.environ.get("INTENT_FUZZ_SEED") or 0)
"""A new seed for every run, chosen and printed by ``tests/conftest.py``."""


def examples(share: float, factor: int = 1) -> int:
    """A share of the examples of a whole run, 2,000 in all, times ``factor``."""
    return max(1, int(int(os.environ.get("INTENT_FUZZ_EXAMPLES") or 2000) * share * factor))


def fuzz(share: float, factor: int = 1):
    """A decorator: run a Hypothesis test on so many examples."""
    count = examples(share, factor)

    def decorate(test):
        return seed(SEED)(settings(max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck),
                                   print_blob=False)(test))

    return decorate
