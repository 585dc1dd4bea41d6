"""Intent on Numba: numeric kernels that say what they compute. ``import intent_numba as intent``.

``kernel`` and ``fn`` make kernels and helpers, ``compile`` and ``CompileOptions`` control compilation; the language itself
is ``intent_numba.language``. Names load on first use.
"""
from __future__ import annotations

import importlib

from .language.dtypes import DType
from .language.operation import Operation

__version__ = "0.1.0"

_HOMES = {
    "kernel": "runtime.kernel", "compile": "runtime.kernel", "Kernel": "runtime.kernel",
    "Artifact": "runtime.artifact", "Prepared": "runtime.artifact",
    "CompileOptions": "runtime.options",
    "generate": "runtime.generated", "GeneratedProgram": "runtime.generated",
    "fn": "runtime.kernel",
    **dict.fromkeys(("Diagnostic", "IntentError", "CompileError", "IntentTypeError", "IntentShapeError", "IntentNameError",
                     "LanguageError", "UnsupportedError", "CallError", "InvalidInput", "InvalidOption",
                     "IntegerOverflow"), "errors"),
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str):
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'intent_numba' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted(set(globals()) | set(_HOMES))


def _on_first_use_in_njit(name: str):
    """Numba asks a value for its type by this attribute: how @njit code comes to know ``I.exp`` and ``I.f32``."""
    return property(lambda self: getattr(importlib.import_module(f"{__name__}.runtime.pointwise"), name)(self))


Operation._numba_type_ = _on_first_use_in_njit("operation_type")      # type: ignore[attr-defined]
DType._numba_type_ = _on_first_use_in_njit("dtype_type")              # type: ignore[attr-defined]
