"""What does a stage of the compilation look like? One text per stage, of the disjoint-views variant."""
from __future__ import annotations

import contextlib
import io

from .driver import Build


def inspect(build: Build, stage: str) -> str:
    """The text of one stage. Raises ValueError for a stage that the target does not have."""
    if stage not in _STAGES:
        raise ValueError(f"stage is one of {', '.join(map(repr, _STAGES))}, got {stage!r}")
    return _STAGES[stage](build)


def _kir(build: Build) -> str:
    return build.compiled().kir


def _task(build: Build) -> str:
    from ..task.text import print_program
    return print_program(build.program())


def _llvm(build: Build) -> str:
    from ..targets.map_vector import emit_program
    return emit_program(build.program(), build.compiled().symbol)


def _asm(build: Build) -> str:
    """A cached object has lost its assembly text, so it is generated again."""
    from . import targets
    compiled = build.compiled()
    if compiled.origin == "cache":
        return targets.module(build.target).compile_program(build.program(), compiled.symbol + "_text").asm()
    return compiled.code.asm()


def _numba_ir(build: Build) -> str:
    """Numba's untyped IR of the function: what the front end reads."""
    from numba.core import compiler
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        compiler.run_frontend(build.pyfunc).dump(file=text)
    return text.getvalue()


_STAGES = {"kir": _kir, "task": _task, "llvm": _llvm, "asm": _asm, "numba-ir": _numba_ir}
