"""What all tests share: a random generator whose seed follows from the test's name, so that a failure repeats."""
from __future__ import annotations

import zlib

import numpy as np
import pytest


@pytest.fixture
def rng(request):
    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))
