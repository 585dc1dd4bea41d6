"""Task programs on vector CPUs: lane axis, tiles, scratch layout and threads, as LLVM text."""
from __future__ import annotations


def emit_program(program, symbol: str, dialect=None) -> str:
    """LLVM text of a launch of ``program``: defines ``i32 @symbol(ptr frame)``. The frame is an array of 8-byte slots: the number of
    threads to use (1: serial), then per parameter a view's data pointer, extents and strides in elements, or a scalar's bits.
    Returns 0, or 1 when memory ran out. ``dialect`` says what the code generator can be trusted with."""
    from ..llvm.text import Dialect, Module
    from .launch import emit_launch

    module = Module(dialect or Dialect())
    emit_launch(program, symbol, module)
    return module.text()
