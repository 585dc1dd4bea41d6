"""A grammar of whole kernels in which every program is legal by construction: typed as it grows, no obligation of a caller broken.

``whole_kernel(rnd)`` gives one program. Each file is one kind of statement; ``program`` weighs them.
"""
from .program import whole_kernel
from .types import Parameter, Program

__all__ = ["Parameter", "Program", "whole_kernel"]
