"""Task programs on SIMT machines: work-item distribution, barriers and local memory, as LLVM text and a plan for the host."""
from __future__ import annotations

from .machine import Builtin, Machine

__all__ = ["Builtin", "Machine", "emit_program"]


def emit_program(program, machine: Machine):
    """Kernels and host plan of a launch of ``program`` (see launch.py), as a ``Launch`` with ``text`` and ``plan``."""
    from .launch import emit_program as emit

    return emit(program, machine)
