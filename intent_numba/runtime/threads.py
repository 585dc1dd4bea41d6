"""How many threads may a launch use, and may it run now?

Threads are Numba's (``numba.set_num_threads``, NUMBA_NUM_THREADS, NUMBA_THREADING_LAYER). A forked child of a process whose
thread pool had started runs serially: OpenMP would abort it. The workqueue layer bears one launch at a time.
"""
from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
from functools import cache

serial = ctypes.c_int64(0)
"""Nonzero in a process that must not start parallel work. Generated entries read it at its address."""

serial_when_nested = ctypes.c_int64(0)
"""The same for launches from compiled callers, which cannot take turns: also set under workqueue."""

_launches = threading.Lock()
_FREE = contextlib.nullcontext()


def count() -> int:
    """Threads for a launch from this thread: ``numba.get_num_threads()``, or 1 where parallel work is not possible."""
    if serial.value:
        return 1
    from numba.np.ufunc import parallel
    return parallel.get_num_threads()


@cache
def layer() -> str:
    """The threading layer, started if need be: omp, tbb or workqueue. It never changes in a process."""
    from numba.np.ufunc import parallel
    parallel._launch_threads()
    return parallel.threading_layer()


def free() -> bool:
    """Whether launches may run at any time, also together."""
    return layer() != "workqueue"


def turn():
    """A context in which a launch may run."""
    return _FREE if serial.value or free() else _launches


def _after_fork() -> None:
    global _launches
    _launches = threading.Lock()
    parallel = sys.modules.get("numba.np.ufunc.parallel")
    if parallel is not None and parallel._is_initialized:
        serial.value = serial_when_nested.value = 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
