"""CUDA: PTX of every stage and the plan of the launch, for ``intent.generate``; nothing is launched here. See docs/targets.md.

A target's name is ``cuda``, ``cuda:sm_90`` or ``cuda:sm_90:nvvm``: the architecture, and the code generator (LLVM's NVPTX backend, or
libNVVM of the extra ``[cuda]``).
"""
from __future__ import annotations


def variant(name: str):
    """The target of one architecture and code generator, with the functions of a target module. Raises UnsupportedError for a
    name that is none."""
    from .codegen import Target
    from .device import parse

    return Target(*parse(name))
