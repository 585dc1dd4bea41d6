"""CUDA as a Numba target named ``intent_cuda``."""
from __future__ import annotations

from numba.core import target_extension

from ..accelerator import register

NAME = "intent_cuda"


class IntentCUDA(target_extension.GPU):
    """Marks templates and overloads of this target."""


descriptor = register(IntentCUDA, NAME)
