"""CUDA as a SIMT machine: builtins, address spaces, limits, and what its two code generators must not see.

NVPTX ignores the order of ``atomicrmw`` and kills the process on ``llvm.exp`` and its like; libNVVM below sm_100 reads LLVM 7 without
``freeze``, atomic loads and fences. The emitter writes none of these: atomic operations stand between the memory barriers that
both know, and elementary functions are programs over rounded operations, so no libdevice is needed.
"""
from __future__ import annotations

import re

from ...errors import UnsupportedError
from ..llvm.text import Dialect
from ..map_simt.machine import Builtin, Machine

PTX_VERSIONS = {**dict.fromkeys(("sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a"), "8.3"), "sm_88": "9.0",
                **dict.fromkeys(("sm_100", "sm_100a"), "8.6"), **dict.fromkeys(("sm_120", "sm_120a"), "8.7"),
                **dict.fromkeys(("sm_103", "sm_103a", "sm_121", "sm_121a"), "8.8"), **dict.fromkeys(("sm_110", "sm_110a"), "9.0")}
"""By architecture, the version that libNVVM's PTX is marked with: it always says its newest, which older assemblers refuse, and the
kernels of this target use nothing so new."""
ARCHITECTURES = tuple(sorted(PTX_VERSIONS, key=lambda a: (len(a.rstrip("a")), a)))
GENERATORS = ("nvptx", "nvvm")
GROUP_SIZE = 128
LOCAL_BYTES = 48 << 10
"""Shared memory that a block has without asking for more."""
GLOBAL, SHARED = 1, 3
SCOPE = ' syncscope("device")'

DIALECTS = {"nvptx": Dialect("nvptx", memory_none=True, freeze=True, constant_space=GLOBAL, scope=SCOPE, atomic_bytes=4,
                             atomic_access=False, fence="llvm.nvvm.membar.gl"),
            "nvvm": Dialect("nvvm", memory_none=False, freeze=True, constant_space=GLOBAL, scope=SCOPE, atomic_bytes=4,
                            atomic_access=False, fence="llvm.nvvm.membar.gl"),
            "nvvm7": Dialect("nvvm7", memory_none=False, freeze=False, constant_space=GLOBAL, scope=SCOPE, atomic_bytes=4,
                             atomic_access=False, fence="llvm.nvvm.membar.gl")}
"""Tables lie in global memory: constant memory serves one address at a time, and work-items look up different ones."""


def parse(name: str) -> tuple[str, str]:
    """(architecture, code generator) of what stands behind ``cuda:``. The oldest architecture's PTX runs on all later ones."""
    parts = [p for p in name.split(":") if p]
    architecture = parts[0] if parts else ARCHITECTURES[0]
    generator = parts[1] if len(parts) > 1 else GENERATORS[0]
    if architecture not in ARCHITECTURES:
        raise UnsupportedError(f"target 'cuda:{name}': the architectures are {', '.join(ARCHITECTURES)}")
    if generator not in GENERATORS or len(parts) > 2:
        raise UnsupportedError(f"target 'cuda:{name}': behind the architecture stands a code generator, {' or '.join(GENERATORS)}")
    return architecture, generator


def dialect(architecture: str, generator: str) -> Dialect:
    """``nvvm7`` is libNVVM where it reads the IR of LLVM 7."""
    old = generator == "nvvm" and int(re.sub(r"\D", "", architecture)) < 100
    return DIALECTS["nvvm7" if old else generator]


def machine(architecture: str, generator: str) -> Machine:
    """The machine, as seen by the code generator of an architecture."""
    sreg = "llvm.nvvm.read.ptx.sreg."
    return Machine(dialect(architecture, generator), "", GROUP_SIZE, LOCAL_BYTES, "ptx_kernel",
                   local_id=Builtin("i32", f"{sreg}tid.x"), group_id=Builtin("i32", f"{sreg}ctaid.x"),
                   group_count=Builtin("i32", f"{sreg}nctaid.x"), barrier=Builtin("void", "llvm.nvvm.barrier0"),
                   group_attribute="nvvm.reqntid", global_space=GLOBAL, local_space=SHARED, local_arena="local_arena")
