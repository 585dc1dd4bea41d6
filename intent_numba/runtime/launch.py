"""How does compiled code start, and what does its status mean?"""
from __future__ import annotations

import ctypes

from . import threads

_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)

OK, NO_MEMORY = 0, 1


def entry_at(address: int):
    """A callable ``entry(frame) -> status`` over generated code; it releases the interpreter lock."""
    return _ENTRY(address)


def run(entry, bound, kernel: str) -> None:
    """Launch and wait. Raises MemoryError when the code could not allocate its workspace."""
    bound.stage_in()
    with threads.turn():
        bound.frame[0] = threads.count()
        status = entry(ctypes.addressof(bound.frame))
    check(status, kernel)
    bound.stage_out()


def check(status: int, kernel: str) -> None:
    if status == NO_MEMORY:
        raise MemoryError(f"{kernel}: no memory for the kernel's workspace")
    if status != OK:
        raise RuntimeError(f"{kernel}: the launch ended with status {status}")
