"""Calls of ``@numba.njit`` functions of scalars: one KIR ``call`` with the dispatcher as an extern of the kernel."""
from __future__ import annotations

from ..kir import Scalar


def call_njit(fb, dispatcher, values, dts, result: str):
    """``kernel.externs[symbol]`` is the dispatcher; the call's operand types say for which dtypes it is compiled."""
    e = fb.e
    args = [e.value(v, dt) for v, dt in zip(values, dts)]
    return e.one("call", args, Scalar(result), fn=_symbol(fb.session.externs, dispatcher))


def _symbol(externs: dict, dispatcher) -> str:
    """One symbol for each function, also when two share a name."""
    for symbol, known in externs.items():
        if known is dispatcher:
            return symbol
    symbol = f"{dispatcher.py_func.__name__}_{len(externs)}"
    externs[symbol] = dispatcher
    return symbol
