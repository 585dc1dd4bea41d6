"""What lowering and mappers may know about a machine. Facts only change speed: bits never depend on them."""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TargetModel:
    """``lanes`` elements form one vector value of a mapper; ``vector_bytes`` is a hardware register. Cache sizes, ``scratch_bytes``
    (what one task may keep near) and ``line_bytes`` in bytes. ``threads`` is the most that run at once; ``serial_cost`` the
    number of elementary operations below which starting threads costs more than it gains."""
    name: str
    lanes: int = 32
    vector_bytes: int = 32
    l1_bytes: int = 32 << 10
    l2_bytes: int = 512 << 10
    l3_bytes: int = 8 << 20
    line_bytes: int = 64
    scratch_bytes: int = 256 << 10
    threads: int = 1
    serial_cost: int = 1 << 15
