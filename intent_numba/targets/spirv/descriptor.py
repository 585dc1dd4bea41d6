"""SPIR-V as a Numba target named ``intent_spirv``."""
from __future__ import annotations

from numba.core import target_extension

from ..accelerator import register

NAME = "intent_spirv"


class IntentSPIRV(target_extension.GPU):
    """Marks templates and overloads of this target."""


descriptor = register(IntentSPIRV, NAME)
