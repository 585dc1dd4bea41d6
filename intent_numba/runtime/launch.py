"""How does compiled code start, and what does its status mean?"""
from __future__ import annotations

import ctypes

from ..kir.ops import ERRORS, OVERFLOW_MESSAGE
from . import native, threads

_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
_REPEATED = 3

OK, NO_MEMORY, OVERFLOW = 0, 1, ERRORS["overflow"]


def run(entry: int, bound, kernel: str) -> None:
    """Launch the code at address ``entry`` and wait. Raises MemoryError when it could not allocate its workspace, OverflowError when an
    integer of a checked kernel left its dtype."""
    bound.stage_in()
    with threads.turn():
        bound.frame[0] = threads.count()
        status = _ENTRY(entry)(ctypes.addressof(bound.frame))
    check(status, kernel)
    bound.stage_out()


class Repeated:
    """The same launch many times: from the fourth on it costs a builtin call and nothing else."""

    def __init__(self, entry: int, bound, kernel: str):
        self.entry, self.bound, self.kernel = entry, bound, kernel
        self.count, self.start = 0, None
        self.frame = ctypes.addressof(bound.frame)

    def __call__(self) -> None:
        if self.start is not None:
            check(self.start(self.entry, self.frame), self.kernel)
            return
        run(self.entry, self.bound, self.kernel)
        self.count += 1
        if self.count == _REPEATED and not self.bound.staged and threads.free():
            self.start = native.starter()


def check(status: int, kernel: str) -> None:
    if status == NO_MEMORY:
        raise MemoryError(f"{kernel}: no memory for the kernel's workspace")
    if status == OVERFLOW:
        raise OverflowError(f"{kernel}: {OVERFLOW_MESSAGE}")
    if status != OK:
        raise RuntimeError(f"{kernel}: the launch ended with status {status}")
