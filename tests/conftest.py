"""What all tests share: a random generator whose seed follows from the test's name, so that a failure repeats, and one printed seed
for everything random that is new in each run."""
from __future__ import annotations

import os
import random
import zlib

import numpy as np
import pytest

from tests.support import rehearsal


@pytest.fixture(autouse=True)
def _obligations(request, monkeypatch):
    monkeypatch.setattr(rehearsal, "unchecked", request.node.get_closest_marker("unchecked") is not None)


@pytest.fixture
def rng(request):
    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))


def pytest_configure(config):
    """Before workers start: they inherit the seed."""
    os.environ.setdefault("INTENT_FUZZ_SEED", str(random.SystemRandom().randrange(1 << 32)))


def pytest_terminal_summary(terminalreporter):
    seed, count = os.environ["INTENT_FUZZ_SEED"], os.environ.get("INTENT_FUZZ_EXAMPLES", "2000")
    terminalreporter.write_line(f"fuzz: {count} examples in a whole run, INTENT_FUZZ_SEED={seed} repeats them")
