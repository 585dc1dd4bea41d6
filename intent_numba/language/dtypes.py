"""Dtypes as authors write them: ``I.f32``. Spec: 000 section 1."""
from __future__ import annotations

from dataclasses import dataclass

from ..errors import InvalidOption

NAMES = ("bool", "index", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64",
         "f16", "bf16", "f32", "f64", "f8e4m3fn", "f8e5m2")


@dataclass(frozen=True)
class DType:
    """An element type. As an annotation it declares a runtime scalar parameter."""
    name: str

    def __repr__(self):
        return f"I.{self.name}"


FOREIGN = {"float16": "f16", "float32": "f32", "float64": "f64", "bfloat16": "bf16", "int8": "i8", "int16": "i16", "int32": "i32",
           "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool_": "bool", "float": "f32", "int": "i64",
           "float8_e4m3fn": "f8e4m3fn", "float8_e5m2": "f8e5m2"}
"""What Python, NumPy and others call a dtype."""

ALL = {name: DType(name) for name in NAMES}


def dtype_hint(obj) -> str:
    """``write I.f32`` for NumPy's float32, "f32" and the like; empty for anything else."""
    name = obj if isinstance(obj, str) else getattr(obj, "__name__", None) or getattr(obj, "name", None)
    name = FOREIGN.get(name, name) if isinstance(name, str) else ""
    return f"write I.{name}" if name in NAMES else ""


def dtype(token: "str | DType") -> DType:
    """The dtype named by a token: ``I.dtype("f32") is I.f32``. Raises InvalidOption for an unknown token."""
    if isinstance(token, DType):
        return token
    try:
        return ALL[token]
    except (KeyError, TypeError):
        hint = dtype_hint(token)
        raise InvalidOption(f"unknown dtype {token!r}; {hint or 'the dtypes are ' + ', '.join(NAMES)}") from None
