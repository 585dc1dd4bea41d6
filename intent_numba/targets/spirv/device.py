"""SPIR-V as a SIMT machine, in the words of OpenCL: builtins by their mangled names, address spaces, and what LLVM's backend must not see.

The backend has no 128-bit or odd integers and no vectors but of 2, 3, 4, 8 and 16 elements; it loses NaN in ``llvm.minimum``, gives +1 for
``sitofp i1``, and makes an atomic load or store a plain one. The emitter writes none of these: a work-item computes scalars, extrema
are compares and selects, a bool becomes a number by a select. Private arrays are not used: beside a kernel that has one, the CPU runtime
gave wrong values to, or crashed in, another kernel of the same module.
"""
from __future__ import annotations

from ..llvm.text import Dialect
from ..map_simt.machine import Builtin, Machine

TRIPLE = "spirv64-unknown-unknown"

DIALECT = Dialect("spirv", half=False, freeze=True, memory_none=False, constant_space=2, scope=' syncscope("device")', atomic_bytes=4,
                  atomic_access=False)

LOCAL_AND_GLOBAL = 3
"""Flags of OpenCL's barrier: CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE."""


def machine(group_size: int, local_bytes: int = 32 << 10) -> Machine:
    """The machine with groups of a size, and the local memory that every OpenCL device has."""
    word = {"result": "i64", "arguments": "i32 0", "head": "spir_func "}
    return Machine(DIALECT, f'target triple = "{TRIPLE}"\n', group_size, local_bytes, "spir_kernel",
                   local_id=Builtin(name="_Z12get_local_idj", **word), group_id=Builtin(name="_Z12get_group_idj", **word),
                   group_count=Builtin(name="_Z14get_num_groupsj", **word),
                   barrier=Builtin("void", "_Z7barrierj", f"i32 {LOCAL_AND_GLOBAL}", "spir_func "),
                   group_metadata="reqd_work_group_size", private_bytes=0)
