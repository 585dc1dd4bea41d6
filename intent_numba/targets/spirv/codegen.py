"""From a task program to SPIR-V and back from the cache: the bytes of a compiled launch."""
from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field

from .. import child

VERSION = "3"
"""Part of every cache key; raise it when the same program becomes other text or another plan."""

_MAGIC = b"INTENTSPV1\n"


@dataclass
class Settings:
    """Choices that change no bit. ``group_size``: work-items of a group. ``buffers``: copy views to device buffers though the device could
    address the caller's memory."""
    group_size: int = 64
    buffers: bool = False


_settings = Settings()


def settings() -> Settings:
    return _settings


@contextmanager
def forced(**choices):
    """Other settings for what is compiled or launched inside; for tests."""
    global _settings
    before, _settings = _settings, Settings(**choices)
    try:
        yield
    finally:
        _settings = before


@dataclass(eq=False)
class Code:
    """One compiled launch. ``entry(frame address) -> status`` runs it; ``address`` is the same as a C function."""
    symbol: str
    plan: dict
    binary: bytes
    text: str = ""
    _made: dict = field(default_factory=dict, repr=False)

    def entry(self, frame: int) -> int:
        """Run on a frame (an array of 8-byte slots at an address). Returns 0, or 1 when memory ran out."""
        if "launcher" not in self._made:
            from .launcher import Launcher

            self._made["launcher"] = Launcher(self.plan, self.binary)
        return self._made["launcher"](frame)

    @property
    def address(self) -> int:
        if "address" not in self._made:
            from .launcher import c_function

            self._made["function"], self._made["address"] = c_function(self.entry)
        return self._made["address"]

    def object_code(self) -> bytes:
        """The plan and the SPIR-V module, for ``load_object``."""
        plan = json.dumps(self.plan, separators=(",", ":")).encode()
        return _MAGIC + len(plan).to_bytes(8, "little") + plan + self.binary

    def asm(self) -> str:
        """The SPIR-V module in readable form; empty for code that was loaded from the cache."""
        return translated(self.text, "assembly").decode() if self.text else ""

    def llvm(self) -> str:
        return self.text


def compile_program(program, symbol: str) -> Code:
    """Generate a launch. No device is needed. Raises UnsupportedError for what the target cannot do."""
    from ..map_simt import emit_program
    from . import descriptor  # noqa: F401  (registers the target with Numba)
    from .device import machine

    launch = emit_program(program, machine(settings().group_size))
    return Code(symbol, launch.plan, translated(launch.text, "object"), launch.text)


def load_object(data: bytes, symbol: str) -> Code:
    """The launch of an earlier ``Code.object_code()``."""
    if not data.startswith(_MAGIC):
        raise ValueError("not a compiled launch")
    at = len(_MAGIC) + 8
    size = int.from_bytes(data[len(_MAGIC):at], "little")
    return Code(symbol, json.loads(data[at:at + size]), data[at + size:])


def fingerprint() -> tuple[str, ...]:
    import llvmlite

    return ("spirv", VERSION, llvmlite.__version__, str(settings().group_size))


_done: dict[tuple[str, str], bytes] = {}
_lock = threading.Lock()


def translated(text: str, form: str) -> bytes:
    """SPIR-V of LLVM text: "object" or "assembly". Equal text is translated once."""
    with _lock:
        if (text, form) not in _done:
            _done[text, form] = child.run(__package__, "translate.py", (form,), text, "the spirv backend of LLVM")
        return _done[text, form]
