"""From a task program to PTX, and back from the cache."""
from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache

from ...errors import UnsupportedError
from .. import child
from .device import PTX_VERSIONS, dialect, machine

VERSION = "1"
"""Part of every cache key; raise it when the same program becomes other text or another plan."""
_MAGIC = b"INTENTPTX1\n"


@dataclass(eq=False)
class Code:
    """One generated launch: PTX, and the plan of its host (map_simt/launch.py). It has no entry to call."""
    symbol: str
    plan: dict
    ptx: str
    text: str = ""

    def object_code(self) -> bytes:
        """The plan and the PTX, for ``load_object``."""
        plan = json.dumps(self.plan, separators=(",", ":")).encode()
        return _MAGIC + len(plan).to_bytes(8, "little") + plan + self.ptx.encode()

    def asm(self) -> str:
        """The PTX."""
        return self.ptx

    def llvm(self) -> str:
        """What the code generator read; empty for code that was loaded from the cache."""
        return self.text

    @property
    def launch(self) -> dict:
        """How a host starts the kernels, as data."""
        from .interface import launch_facts

        return launch_facts(self.plan, self.ptx)


@dataclass(frozen=True)
class Target:
    """A target module's functions for one architecture and code generator."""
    architecture: str
    generator: str

    def compile_program(self, program, symbol: str) -> Code:
        """Generate a launch. No device is needed. Raises UnsupportedError for what the target cannot do."""
        from ..map_simt import emit_program
        from . import descriptor  # noqa: F401  (registers the target with Numba)

        launch = emit_program(program, machine(self.architecture, self.generator))
        return Code(symbol, launch.plan, translated(launch.text, self.architecture, self.generator), launch.text)

    def load_object(self, data: bytes, symbol: str) -> Code:
        """The launch of an earlier ``Code.object_code()``."""
        if not data.startswith(_MAGIC):
            raise ValueError("not a generated launch")
        at = len(_MAGIC) + 8
        size = int.from_bytes(data[len(_MAGIC):at], "little")
        return Code(symbol, json.loads(data[at:at + size]), data[at + size:].decode())

    def fingerprint(self) -> tuple[str, ...]:
        """What the code depends on besides the program."""
        import llvmlite

        return "cuda", VERSION, llvmlite.__version__, self.architecture, self.generator

    def require_device(self) -> None:
        """Raises UnsupportedError: kernels for CUDA are generated, not launched."""
        from .driver import device_count

        if not device_count():
            raise UnsupportedError("no CUDA device; intent.generate makes the program of a kernel without one")
        raise UnsupportedError("kernels are not launched on CUDA devices; intent.generate makes the program of a kernel")


@lru_cache(maxsize=64)
def translated(text: str, architecture: str, generator: str) -> str:
    """PTX of LLVM text."""
    name = {"nvptx": "the NVPTX backend of LLVM", "nvvm": "libNVVM"}[generator]
    if generator == "nvvm":
        from .nvvm_text import for_nvvm

        text = for_nvvm(text, modern=dialect(architecture, generator).freeze)
    ptx = child.run(__package__, f"{generator}.py", (architecture,), text, name).decode()
    if generator == "nvvm":
        ptx = re.sub(r"^\.version .*$", f".version {PTX_VERSIONS[architecture]}", ptx, count=1, flags=re.MULTILINE)
    missing = re.search(r"\.extern \.func[^;]*?(\w+)\s*(?:\(|;)", ptx)
    if missing:
        raise UnsupportedError(f"{name} left a call of {missing[1]} without a definition")
    return ptx
