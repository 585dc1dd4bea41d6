"""What a SIMT machine is called in LLVM text: the facts that the mapper reads and never decides itself."""
from __future__ import annotations

from dataclasses import dataclass

from ..llvm.text import Dialect


@dataclass(frozen=True)
class Builtin:
    """A function without side effects that names a work-item; ``result`` is i32 or i64, ``arguments`` literal text."""
    result: str
    name: str
    arguments: str = ""
    head: str = ""


@dataclass(frozen=True)
class Machine:
    """``group_size``: work-items of a group, fixed when a kernel is generated. ``local_bytes``: local memory that one group may
    use. ``group_metadata``: the metadata kind that fixes a kernel's group size; ``group_attribute``: the same as a function's string
    attribute. ``barrier`` orders local and global memory within a group. ``local_arena``: the external array that stands for local
    memory of a size which the launch gives; where it is empty, a kernel takes a pointer to that memory. ``private_bytes``: the
    largest array that may be a work-item's private memory, 0 where none may."""
    dialect: Dialect
    preamble: str
    group_size: int
    local_bytes: int
    kernel_head: str
    local_id: Builtin
    group_id: Builtin
    group_count: Builtin
    barrier: Builtin
    group_metadata: str = ""
    group_attribute: str = ""
    local_arena: str = ""
    private_bytes: int = 4096
    global_space: int = 1
    local_space: int = 3

    def pointer(self, space: int) -> str:
        return f"ptr addrspace({space})"
