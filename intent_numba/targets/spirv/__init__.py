"""SPIR-V through OpenCL: kernels for every stage, run by pyopencl on NumPy arrays. See docs/targets.md."""
from __future__ import annotations


def compile_program(program, symbol: str):
    """Generate a launch: a ``Code`` with ``address``, ``entry``, ``asm()`` and ``object_code()``. Needs no device."""
    from .codegen import compile_program as compile_

    return compile_(program, symbol)


def load_object(data: bytes, symbol: str):
    from .codegen import load_object as load

    return load(data, symbol)


def fingerprint() -> tuple[str, ...]:
    """What object code depends on besides the program."""
    from .codegen import fingerprint as describe

    return describe()
