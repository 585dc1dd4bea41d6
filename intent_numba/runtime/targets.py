"""Which module compiles for a target? One line per family; a module is imported when its target is first asked for.

A target module offers ``compile_program(program, symbol) -> Code``, ``load_object(data, symbol) -> Code`` and
``fingerprint() -> tuple of str`` (what its object code depends on). A Code has ``address``, a C function ``int32_t f(int64_t *frame)``
that takes the frame of binding.py, and ``llvm()``, ``asm()`` and ``object_code()``. A family of targets, such as "cuda:sm_90", offers
``variant(name)`` instead, which gives an object with these functions. A target that only generates code has ``require_device()``,
which raises, and its Code has no address.
"""
from __future__ import annotations

import importlib

from ..errors import InvalidOption, UnsupportedError
from .arrays import is_device_array

TARGETS = {
    "cpu": "intent_numba.targets.cpu",
    "spirv": "intent_numba.targets.spirv",
    "cuda": "intent_numba.targets.cuda",
}


def resolve(target: str | None) -> str:
    """The target's name; None is the host. Raises UnsupportedError for a target that this build lacks."""
    if target is None:
        return "cpu"
    if not isinstance(target, str):
        raise InvalidOption(f"a target is a name such as 'cpu', got {target!r}")
    if target.partition(":")[0] not in TARGETS:
        raise UnsupportedError(f"target {target!r} is not available; the targets are {', '.join(map(repr, TARGETS))}")
    return target


def following(arguments) -> str:
    """The target of a call that names none: where its arrays are."""
    return "spirv" if any(map(is_device_array, arguments)) else "cpu"


def module(target: str):
    family, _, name = target.partition(":")
    found = importlib.import_module(TARGETS[family])
    return found.variant(name) if hasattr(found, "variant") else found


def launchable(target: str) -> str:
    """The target itself. Raises UnsupportedError for one whose code cannot be launched here."""
    require = getattr(module(target), "require_device", None)
    if require is not None:
        require()
    return target
