"""The CPU: LLVM text to running code, through Numba's engine. Nothing heavy is imported before code is made."""
from __future__ import annotations


def compile_program(program, symbol: str):
    """Machine code of a task program: its entry function is ``symbol`` (a content hash). Returns a ``Code``."""
    from ..map_vector import emit_program
    from .library import compile_text as compile_

    text = emit_program(program, symbol)
    if not program.externs:
        return compile_(text, symbol)
    from .externs import link

    wrappers, libraries = link(program)
    return compile_(text, symbol, "full", wrappers, libraries)


def compile_text(text: str, symbol: str, opt: str = "clean"):
    """Machine code of LLVM text that defines ``symbol``. ``opt``: "none", "clean" (a few cheap passes: the text is already
    vector code) or "full" (O2, for scalar code). Returns a ``Code``; text that LLVM refuses is a RuntimeError."""
    from .library import compile_text as compile_

    return compile_(text, symbol, opt)


def load_object(data: bytes, symbol: str):
    """Machine code from ``Code.object_code()`` of an earlier process on a machine of the same kind. Returns a ``Code``."""
    from .library import load_object as load

    return load(data, symbol)


def fingerprint() -> tuple[str, ...]:
    """What object code depends on besides its text: triple, CPU, features, LLVM and emitter versions. For cache keys."""
    from .library import fingerprint as describe

    return describe()


def model():
    """The ``TargetModel`` of this machine."""
    from .host import host_model

    return host_model()
