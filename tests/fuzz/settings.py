"""How many examples, and from which seed. ``INTENT_FUZZ_EXAMPLES`` and ``INTENT_FUZZ_SEED`` override the defaults."""
from __future__ import annotations

import os

from hypothesis import HealthCheck, seed, settings

SEED = int(os.environ["INTENT_FUZZ_SEED"])
"""A new seed for every run, chosen and printed by ``tests/conftest.py``."""


def fuzz(share: float, factor: int = 1):
    """A decorator: run a Hypothesis test on ``share`` of the examples (2,000 in all), times ``factor``."""
    count = max(1, int(int(os.environ.get("INTENT_FUZZ_EXAMPLES") or 2000) * share * factor))

    def decorate(test):
        return seed(SEED)(settings(max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck),
                                   print_blob=False)(test))

    return decorate
