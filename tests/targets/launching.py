"""Runs a task program on the CPU, on NumPy arrays of any strides: what the binder does, without a kernel around it."""
from __future__ import annotations

import ctypes
import hashlib

import numpy as np

from intent_numba.targets import cpu
from intent_numba.targets.map_vector import emit_program


def compile_map(program) -> "ctypes._CFuncPtr":
    """The entry function of a program's launch."""
    text = emit_program(program, "entry_point")
    symbol = "m" + hashlib.sha256(text.encode()).hexdigest()[:24]
    code = cpu.compile_text(text.replace("entry_point", symbol), symbol)
    return ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(code.address)


def frame_of(program, args, threads: int = 1) -> np.ndarray:
    """Arrays for views (narrow floats as their bits), numbers for scalars, in parameter order."""
    slots = [threads]
    for p, a in zip(program.params, args):
        if p.kind == "view":
            slots += [a.ctypes.data, *a.shape, *(s // a.itemsize for s in a.strides)]
        else:
            raw = np.zeros(1, np.int64)
            raw.view(a.dtype if isinstance(a, np.generic) else np.int64)[0] = a
            slots.append(int(raw[0]))
    return np.array(slots, np.int64)


def launch(program, args, threads: int = 1) -> None:
    """Run; the written views are changed in place."""
    frame = frame_of(program, args, threads)
    assert compile_map(program)(frame.ctypes.data) == 0
