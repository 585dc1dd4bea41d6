"""What a value in a register looks like in LLVM text, and what an element looks like in memory.

A float narrower than f32 lives in a register as a ``float`` that is exactly representable in its dtype: arithmetic
computes in f32 and rounds, so no target needs native small floats. A bool is ``i1`` in a register and a byte in memory.
"""
from __future__ import annotations

import math
import struct
from dataclasses import dataclass

REGISTER = {"bool": "i1", "index": "i64", "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64",
            "u8": "i8", "u16": "i16", "u32": "i32", "u64": "i64",
            "f16": "float", "bf16": "float", "f32": "float", "f64": "double", "f8e4m3fn": "float", "f8e5m2": "float"}
MEMORY = {**REGISTER, "bool": "i8", "f16": "i16", "bf16": "i16", "f8e4m3fn": "i8", "f8e5m2": "i8"}
BYTES = {"bool": 1, "index": 8, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "u8": 1, "u16": 2, "u32": 4, "u64": 8,
         "f16": 2, "bf16": 2, "f32": 4, "f64": 8, "f8e4m3fn": 1, "f8e5m2": 1}
SMALL = frozenset({"f16", "bf16", "f8e4m3fn", "f8e5m2"})
"""Floats held as ``float``."""


@dataclass(frozen=True)
class Val:
    """An operand: dtype, LLVM text (a name or a constant), and lanes. ``lanes == 0`` is a scalar, else a vector."""
    dt: str
    text: str
    lanes: int = 0

    @property
    def type(self) -> str:
        """The LLVM type in a register."""
        return register_type(self.dt, self.lanes)


def vector(element: str, lanes: int) -> str:
    return f"<{lanes} x {element}>" if lanes else element


def register_type(dt: str, lanes: int = 0) -> str:
    return vector(REGISTER[dt], lanes)


def memory_type(dt: str, lanes: int = 0) -> str:
    return vector(MEMORY[dt], lanes)


def float_literal(value: float, double: bool) -> str:
    """Hexadecimal literal of a float; for ``float`` LLVM wants the double that equals it."""
    if math.isnan(value):
        return "0x7FF8000000000000"
    if not double:
        value = _to_f32(value)
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def _to_f32(value: float) -> float:
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:                          # struct refuses what rounds to infinity
        return math.copysign(math.inf, value)


def scalar_literal(value, dt: str) -> str:
    """LLVM text of a Python number of dtype ``dt`` (small floats must be representable already)."""
    if dt == "bool":
        return "true" if value else "false"
    register = REGISTER[dt]
    if register in ("float", "double"):
        return float_literal(float(value), register == "double")
    return str(int(value))


def literal(value, dt: str, lanes: int = 0) -> str:
    """LLVM text of a constant, repeated over ``lanes`` when it is a vector."""
    text = scalar_literal(value, dt)
    return f"splat ({REGISTER[dt]} {text})" if lanes else text
