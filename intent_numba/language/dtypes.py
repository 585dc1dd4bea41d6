"""Dtypes as authors write them: ``I.f32``. Spec: 000 section 1."""
from __future__ import annotations

from dataclasses import dataclass

NAMES = ("bool", "index", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64",
         "f16", "bf16", "f32", "f64", "f8e4m3fn", "f8e5m2")


@dataclass(frozen=True)
class DType:
    """An element type. As an annotation it declares a runtime scalar parameter."""
    name: str

    def __repr__(self):
        return f"I.{self.name}"


ALL = {name: DType(name) for name in NAMES}


def dtype(token: "str | DType") -> DType:
    """The dtype named by a token: ``I.dtype("f32") is I.f32``. Raises ValueError for an unknown token."""
    if isinstance(token, DType):
        return token
    try:
        return ALL[token]
    except (KeyError, TypeError):
        raise ValueError(f"unknown dtype {token!r}; the dtypes are {', '.join(NAMES)}") from None
