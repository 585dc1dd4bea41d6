"""How does the interpreter come to call text of ours? A builtin function over machine code, for CPython on 64-bit machines.

Such text holds addresses of this process; it is assembled by LLVM's quickest path and never cached on disk.
"""
from __future__ import annotations

import ctypes
import sys
import sysconfig
from functools import cache

from . import threads
from .guards import Text, pointer

TUPLE_SIZE, TUPLE_ITEMS = 16, tuple.__basicsize__
"""Offsets in a tuple object: the number of items, and the first of them."""


@cache
def possible() -> bool:
    """Whether this interpreter lays out objects as the text expects."""
    return (sys.implementation.name == "cpython" and sys.byteorder == "little" and ctypes.sizeof(ctypes.c_void_p) == 8
            and not sysconfig.get_config_var("Py_GIL_DISABLED"))


def builtin(text: str, symbol: str, name: str, doc: str, module, keep: tuple):
    """A builtin ``name`` over ``symbol``, a C function of (self, args, kwargs). ``keep``: objects that must outlive it."""
    from numba import _dynfunc
    engine, address = _assemble(text, symbol)
    return _dynfunc.make_function(module, name, doc, address, _dynfunc.Environment({}), (engine, *keep))


def _assemble(text: str, symbol: str):
    """Without optimisation: a third of the compile time, and no slower for what is loads and branches."""
    import llvmlite.binding as llvm
    from numba.core.compiler_lock import global_compiler_lock
    with global_compiler_lock:
        llvm.initialize_native_target()                      # nothing else may have done it: other targets generate elsewhere
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(opt=0, jit=True)
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
        engine.finalize_object()
        return engine, engine.get_function_address(symbol)


def set_threads(text: Text) -> None:
    """Write the thread count into slot 0 of ``%frame``."""
    allowed = text.call("i64", "get_num_threads")
    serial = text.let(f"load i64, ptr {pointer(ctypes.addressof(threads.serial))}")
    alone = text.let(f"icmp ne i64 {serial}, 0")
    text.line(f"store i64 {text.let(f'select i1 {alone}, i64 1, i64 {allowed}')}, ptr %frame")


def released(text: Text, call: str) -> str:
    """The result of a call made without the interpreter lock."""
    thread = text.call("ptr", "PyEval_SaveThread")
    result = text.let(call)
    text.call("void", "PyEval_RestoreThread", f"ptr {thread}")
    return result


@cache
def starter():
    """A builtin ``start(entry address, frame address) -> status``: sets the thread count, then runs the entry without the
    interpreter lock. Worth its making for what is launched many times. None where builtins are not possible."""
    if not possible():
        return None
    text = Text()
    entry, frame = (text.load("%args", TUPLE_ITEMS + 8 * i, "ptr") for i in range(2))
    entry = text.call("ptr", "PyLong_AsVoidPtr", f"ptr {entry}")
    text.line(f"%frame = call ptr @PyLong_AsVoidPtr(ptr {frame})")
    set_threads(text)
    status = released(text, f"call i32 {entry}(ptr %frame)")
    wide = text.let(f"sext i32 {status} to i64")
    text.line(f"ret ptr {text.call('ptr', 'PyLong_FromLong', f'i64 {wide}')}")
    return builtin(text.function("define ptr @intent_start(ptr %self, ptr %args, ptr %kwargs)"), "intent_start", "start", "", sys, ())
