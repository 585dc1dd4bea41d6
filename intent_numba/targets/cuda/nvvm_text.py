"""LLVM text as libNVVM reads it: annotations, other names, and for architectures before sm_100 the IR of LLVM 7.

LLVM 7 has typed pointers, no ``fneg`` and no alignment of atomic operations. A pointer becomes ``i8*`` of its address space and is
cast where it is used, so no type has to be known across instructions.
"""
from __future__ import annotations

import re

LAYOUT = ("e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-v16:16:16-v32:32:32-v64:64:64-"
          "v128:128:128-n16:32:64")
VERSION = (2, 0)
"""Of NVVM IR: 2.0 is the form that every libNVVM reads."""

_NAMES = {"llvm.fabs.f32": "llvm.nvvm.fabs.f", "llvm.fabs.f64": "llvm.nvvm.fabs.d",
          "llvm.rint.f32": "llvm.nvvm.round.f", "llvm.rint.f64": "llvm.nvvm.round.d"}
"""Intrinsics that libNVVM knows by another name."""
_POINTER = r"ptr(?: addrspace\(\d+\))?"
_KERNEL = re.compile(r'^define ptx_kernel void @(\w+)\((.*)\) (.*?) ?"nvvm\.reqntid"="(\d+),1,1" \{$', re.MULTILINE)
_GLOBAL = re.compile(r"^(@\S+) = .*?addrspace\((\d+)\) (?:constant|global) (\[\d+ x \w+\])", re.MULTILINE)


def for_nvvm(text: str, modern: bool) -> str:
    """NVVM IR of emitted text. ``modern``: libNVVM reads opaque pointers for this architecture."""
    kernels = _KERNEL.findall(text)
    types = [re.sub(r" %\w+", "", parameters) for _, parameters, _, _ in kernels]
    text = _KERNEL.sub(r"define void @\1(\2) \3 {", text)
    text = re.sub(r"@(llvm\.(?:fabs|rint)\.\w+)", lambda m: f"@{_NAMES[m[1]]}", text)
    if not modern:
        text = _typed(text)
        types = [", ".join(map(_kind, t.split(", "))) for t in types]
    nodes, names = [], []
    first = 1 + max(map(int, re.findall(r"^!(\d+) =", text, re.MULTILINE)), default=-1)
    for (name, _, _, size), parameters in zip(kernels, types):
        function = f"ptr @{name}" if modern else f"void ({parameters})* @{name}"
        facts = {"kernel": 1, "reqntidx": int(size), "reqntidy": 1, "reqntidz": 1}
        names.append(f"!{first + len(nodes)}")
        nodes.append(f"{names[-1]} = !{{{function}, " + ", ".join(f'!"{key}", i32 {value}' for key, value in facts.items()) + "}")
    version = f"!{first + len(nodes)}"
    nodes.append(f"{version} = !{{i32 {VERSION[0]}, i32 {VERSION[1]}}}")
    head = f'target triple = "nvptx64-nvidia-cuda"\ntarget datalayout = "{LAYOUT}"\n'
    return head + text + "\n".join([*nodes, f"!nvvm.annotations = !{{{', '.join(names)}}}", f"!nvvmir.version = !{{{version}}}"]) + "\n"


def _kind(pointer: str) -> str:
    """The typed form of a pointer type; other types stay."""
    return re.sub(r"\bptr\b( addrspace\(\d+\))?", lambda m: f"i8{m[1] or ''}*", pointer)


def _typed(text: str) -> str:
    arrays = {name: (space, kind) for name, space, kind in _GLOBAL.findall(text)}
    lines = []
    for number, line in enumerate(text.split("\n")):
        line = re.sub(r' syncscope\("\w+"\)', "", line)
        for rule, rewrite in _RULES:
            found = rule.match(line)
            if found:
                name, *parts = found.groups()
                lines += rewrite(name or f"%to.{number}", *parts)
                break
        else:
            lines.append(line)
    return "\n".join(_line(line, arrays) for line in lines)


def _line(line: str, arrays) -> str:
    """What every line needs: types of pointers, and globals as pointers to bytes."""
    if not line or line[0] in "@!":
        return line
    line = _kind(line)

    def address(found):
        space, kind = arrays[found[1]]
        return f"i8 addrspace({space})* bitcast ({kind} addrspace({space})* {found[1]} to i8 addrspace({space})*)"
    return re.sub(r"i8 addrspace\(\d+\)\* (@[\w.$]+)(?![\w.$(])", lambda m: address(m) if m[1] in arrays else m[0], line)


def _to(pointer: str, kind: str) -> str:
    """A type of pointers to ``kind`` in a pointer's address space."""
    return kind + pointer.removeprefix("ptr") + "*"


def _cast(name: str, pointer: str, operand: str, kind: str) -> str:
    return f"  {name} = bitcast {pointer} {operand} to {_to(pointer, kind)}"


def _gep(result, kind, pointer, base, index):
    return [_cast(f"{result}.from", pointer, base, kind),
            f"  {result}.at = getelementptr {kind}, {_to(pointer, kind)} {result}.from, i64 {index}",
            f"  {result} = bitcast {_to(pointer, kind)} {result}.at to {pointer}"]


def _load(result, kind, pointer, base, rest):
    return [_cast(f"{result}.from", pointer, base, kind), f"  {result} = load {kind}, {_to(pointer, kind)} {result}.from{rest}"]


def _store(name, kind, value, pointer, base, rest):
    return [_cast(name, pointer, base, kind), f"  store {kind} {value}, {_to(pointer, kind)} {name}{rest}"]


def _alloca(result, kind, rest):
    return [f"  {result}.of = alloca {kind}{rest}", f"  {result} = bitcast {kind}* {result}.of to i8*"]


def _rmw(result, operation, pointer, base, kind, value, order):
    return [_cast(f"{result}.from", pointer, base, kind),
            f"  {result} = atomicrmw {operation} {_to(pointer, kind)} {result}.from, {kind} {value} {order}"]


def _cmpxchg(result, pointer, base, kind, rest):
    return [_cast(f"{result}.from", pointer, base, kind), f"  {result} = cmpxchg {_to(pointer, kind)} {result}.from, {kind} {rest}"]


def _fneg(result, kind, value):
    """The sign's bit alone, which is what negation is; a subtraction would lose a NaN's."""
    bits, sign = ("i64", -1 << 63) if kind == "double" else ("i32", -1 << 31)
    return [f"  {result}.from = bitcast {kind} {value} to {bits}", f"  {result}.bits = xor {bits} {result}.from, {sign}",
            f"  {result} = bitcast {bits} {result}.bits to {kind}"]


_RULES = [(re.compile(pattern.replace("PTR", f"({_POINTER})") + "$"), rewrite) for pattern, rewrite in (
    (r"  (\S+) = getelementptr ([^,]+), PTR (\S+), i64 (\S+)", _gep),
    (r"  (\S+) = load ([^,]+), PTR ([^\s,]+)(.*)", _load),
    (r"  ()store (\S+) (\S+), PTR ([^\s,]+)(.*)", _store),
    (r"  (\S+) = alloca ([^,]+)(.*)", _alloca),
    (r"  (\S+) = atomicrmw (\w+) PTR (\S+), (\w+) (\S+) (\w+), align \d+", _rmw),
    (r"  (\S+) = cmpxchg PTR (\S+), (\w+) (.*)", _cmpxchg),
    (r"  (\S+) = fneg (\w+) (\S+)", _fneg),
)]
