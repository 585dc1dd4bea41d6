"""How does compiled code start, and what does its status mean?"""
from __future__ import annotations

import ctypes

from ..errors import IntegerOverflow
from ..kir.ops import ERRORS, OVERFLOW_MESSAGE
from . import native, threads

_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
_REPEATED = 3

OK, NO_MEMORY, OVERFLOW = 0, 1, ERRORS["overflow"]


def run(entry: int, bound, kernel: str, explain=None) -> None:
    """Launch the code at address ``entry`` and wait. Raises MemoryError when it could not allocate its workspace, IntegerOverflow when
    an integer of a checked kernel left its dtype; ``explain`` gives that error's text."""
    bound.stage_in()
    with threads.turn():
        bound.frame[0] = threads.count()
        status = _ENTRY(entry)(ctypes.addressof(bound.frame))
    check(status, kernel, explain)
    bound.stage_out()


class Repeated:
    """The same launch many times: from the fourth on it costs a builtin call and nothing else."""

    def __init__(self, entry: int, bound, kernel: str, explain=None):
        self.entry, self.bound, self.kernel, self.explain = entry, bound, kernel, explain
        self.count, self.start = 0, None
        self.frame = ctypes.addressof(bound.frame)

    def __call__(self) -> None:
        if self.start is not None:
            check(self.start(self.entry, self.frame), self.kernel, self.explain)
            return
        run(self.entry, self.bound, self.kernel, self.explain)
        self.count += 1
        if self.count == _REPEATED and not self.bound.staged and threads.free():
            self.start = native.starter()


def check(status: int, kernel: str, explain=None) -> None:
    """Raise the error that a status stands for."""
    if status == NO_MEMORY:
        raise MemoryError(f"{kernel}: no memory for the kernel's workspace")
    if status == OVERFLOW:
        raise IntegerOverflow(explain() if explain is not None else f"{kernel}: {OVERFLOW_MESSAGE}")
    if status != OK:
        raise RuntimeError(f"{kernel}: the launch ended with status {status}")
