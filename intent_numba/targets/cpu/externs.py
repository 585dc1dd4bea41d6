"""How a kernel calls an ``@njit`` function of scalars: Numba compiles it for the types of the call and we link its library.

Numba returns a value through a pointer and a status as the result; the kernel's text calls a plain function. The wrapper between them
ignores the status: a call that raises gives zero, effects inside it are the author's responsibility.
"""
from __future__ import annotations

from numba import types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.target_extension import target_override

from ..llvm.values import MEMORY, REGISTER

NUMBA = {"bool": types.boolean, "index": types.int64, "i8": types.int8, "i16": types.int16, "i32": types.int32, "i64": types.int64,
         "u8": types.uint8, "u16": types.uint16, "u32": types.uint32, "u64": types.uint64, "f32": types.float32, "f64": types.float64}
"""Dtypes that an ``@njit`` function can take and give."""


def link(program) -> tuple[list[tuple[str, str]], list]:
    """For every extern a task program calls: LLVM text of the function it calls, and the Numba library with the code.
    Returns ([(symbol, text)], libraries)."""
    calls = {}
    for node in program.graph._nodes.values():
        if node.op == "call":
            signature = (tuple(a.dt for a in node.args), node.dt)
            if calls.setdefault(node.attr, signature) != signature:
                raise RuntimeError(f"internal error: extern {node.attr} is called with two signatures")
    wrappers, libraries = [], []
    for symbol, (args, result) in calls.items():
        compiled = _compiled(program.externs[symbol], args, result)
        wrappers.append((symbol, _wrapper(symbol, args, result, compiled.fndesc.llvm_func_name)))
        if compiled.library not in libraries:
            libraries.append(compiled.library)
    return wrappers, libraries


def _compiled(dispatcher, args, result):
    """Numba's compile result for these argument dtypes. Under another target Numba would lose its CPU templates."""
    signature = tuple(NUMBA[dt] for dt in args)
    with global_compiler_lock, target_override("cpu"):
        dispatcher.compile(signature)
        compiled = dispatcher.overloads[signature]
    if types.unliteral(compiled.signature.return_type) != NUMBA[result]:
        raise RuntimeError(f"internal error: {dispatcher.py_func.__name__} returns {compiled.signature.return_type}, not {NUMBA[result]}")
    return compiled


def _wrapper(symbol: str, args, result: str, target: str) -> str:
    """Text of ``symbol``: register types in, register type out."""
    params = ", ".join(f"{REGISTER[dt]} %a{k}" for k, dt in enumerate(args))
    memory = MEMORY[result]
    lines = [f"declare i32 @\"{target}\"(ptr, ptr{''.join(f', {MEMORY[dt]}' for dt in args)})",
             f"define {REGISTER[result]} @{symbol}({params}) {{",
             f"  %result = alloca {memory}", "  %error = alloca ptr", f"  store {memory} zeroinitializer, ptr %result"]
    passed = ""
    for k, dt in enumerate(args):
        if dt == "bool":
            lines.append(f"  %b{k} = zext i1 %a{k} to i8")
        passed += f", {MEMORY[dt]} %{'b' if dt == 'bool' else 'a'}{k}"
    lines += [f"  %status = call i32 @\"{target}\"(ptr %result, ptr %error{passed})", f"  %r = load {memory}, ptr %result"]
    if result == "bool":
        lines += ["  %t = icmp ne i8 %r, 0", "  ret i1 %t"]
    else:
        lines.append(f"  ret {REGISTER[result]} %r")
    return "\n".join([*lines, "}"]) + "\n"
