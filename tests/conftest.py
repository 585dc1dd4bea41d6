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
    seed, nightly = os.environ["INTENT_FUZZ_SEED"], terminalreporter.config.option.markexpr == "nightly"
    count = os.environ.get("INTENT_FUZZ_EXAMPLES") or ("100000" if nightly else "2000")
    kernels = "each of whole kernels and of programs with a mistake" if nightly else "of which half are whole kernels"
    terminalreporter.write_line(f"fuzz: {count} examples in a whole run, {kernels}; INTENT_FUZZ_SEED={seed} repeats them")
