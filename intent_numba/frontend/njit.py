"""Calls of ``@numba.njit`` functions of scalars: one KIR ``call`` with the dispatcher as an extern of the kernel."""
from __future__ import annotations

import hashlib

from ..kir import Scalar


def call_njit(fb, dispatcher, values, dts, result: str):
    """``kernel.externs[symbol] = (dispatcher, argument dtypes, result dtype)``."""
    e = fb.e
    args = [e.value(v, dt) for v, dt in zip(values, dts)]
    symbol = f"{dispatcher.py_func.__name__}_{_digest(dispatcher, dts)}"
    fb.session.externs[symbol] = dispatcher
    return e.one("call", args, Scalar(result), fn=symbol)


def _digest(dispatcher, dts) -> str:
    code = dispatcher.py_func.__code__
    return hashlib.sha256(repr((code.co_code, code.co_consts, code.co_names, dispatcher.py_func.__qualname__, dts)).encode()).hexdigest()[:12]
