"""The reference interpreter: what a kernel means, to the bit. It executes KIR with NumPy and exact arithmetic.

It shares nothing with the compiled path but the elementary functions of ``math``, which are programs over correctly
rounded operations. Where the language leaves a value open, ``operations`` lists what is given here; elements of a
buffer that nothing wrote read as zero.
"""
from .checked import rehearse
from .interpreter import InterpreterError, run
from .operations import MissingProgram, Operations, Typed

__all__ = ["MissingProgram", "Operations", "InterpreterError", "Typed", "rehearse", "run"]
