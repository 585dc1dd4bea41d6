"""Exact i32 arithmetic as KIR: computed in i64, narrowed, and a ``check`` that the value survived."""
from __future__ import annotations

from ..errors import UnsupportedError
from .emitter import Emitter


def elementwise(e: Emitter, operation: str, values, args, what: str):
    e.fail(UnsupportedError, f"{what or operation}: checked integer arithmetic is not supported by this compiler")
