"""What does a stage of the compilation look like? One text per stage, of the disjoint-views variant."""
from __future__ import annotations

import contextlib
import io

from ..errors import InvalidOption
from .driver import Build


def inspect(build: Build, stage: str) -> str:
    """The text of one stage. Raises InvalidOption for a stage that the target does not have."""
    stages = {**_STAGES, **_MACHINE.get(build.target.partition(":")[0], {})}
    if stage not in stages:
        raise InvalidOption(f"stage is one of {', '.join(map(repr, stages))}, got {stage!r}")
    return stages[stage](build)


def _kir(build: Build) -> str:
    return build.compiled().kir


def _task(build: Build) -> str:
    from ..task.text import print_program
    return print_program(build.program())


def _llvm(build: Build) -> str:
    return _fresh(build).llvm()


def _asm(build: Build) -> str:
    return _fresh(build).asm()


def _kept(build: Build) -> str:
    """Machine text that code from the cache still has."""
    return build.compiled().code.asm()


def _fresh(build: Build):
    """Code that still knows its text: what came from the disk cache is generated again."""
    compiled = build.compiled()
    return compiled.code if compiled.origin == "compiled" else build.generate().code


def _numba_ir(build: Build) -> str:
    """Numba's untyped IR of the function: what the front end reads."""
    from numba.core import compiler
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        compiler.run_frontend(build.pyfunc).dump(file=text)
    return text.getvalue()


_STAGES = {"kir": _kir, "task": _task, "numba-ir": _numba_ir}
_MACHINE = {"cpu": {"llvm": _llvm, "asm": _asm}, "spirv": {"llvm": _llvm, "spirv": _asm}, "cuda": {"llvm": _llvm, "ptx": _kept}}
"""What every target has, and what each adds."""
