"""Are Outs and buffers written before they are read? Names rebound by mistake and reads of what nothing has written, where the program
proves it."""
from __future__ import annotations

from numba.core import ir

from ..errors import LanguageError, diagnostic
from ..kir import Kernel, Region, View
from ..kir.ir import walk
from .bytecode import kir_loc

READS = {"read", "atomic_load"}
LOOPS = {"for", "loop", "parallel"}


def check_outs(kernel: Kernel, func_ir: ir.FunctionIR, private) -> None:
    """Raise LanguageError with every such mistake. ``private``: buffers that the program does not know of."""
    outs = {p.name: p for p in kernel.params if isinstance(p.type, View) and p.type.access == "out"}
    empty = {name: (f"{name!r} is an Out view, which holds nothing before it is written",
                    f"annotate it with I.InOut to read what the caller passes, or write {name} first") for name in outs}
    empty.update((op.result.name, ("this buffer holds nothing before it is written", "write it first, or give it an init="))
                 for op in walk(kernel.body) if op.kind == "buffer" and not op.args and op.result not in private)
    found = [*_rebound(kernel, func_ir, outs), *_unwritten_reads(kernel.body, empty, set())]
    if found:
        raise LanguageError(sorted(found, key=lambda d: (d.line, d.col or 0)))


def _rebound(kernel: Kernel, func_ir, outs: dict):
    """``y = x[:]`` where ``y[:] = x[:]`` was meant: the name is assigned and the view is never written."""
    written = {op.args[0].name for op in walk(kernel.body) if op.args and op.kind not in READS}
    for block in func_ir.blocks.values():
        for s in block.body:
            name = s.target.unversioned_name if isinstance(s, ir.Assign) else None
            if name in outs and name not in written and not isinstance(s.value, ir.Arg) and not _is_merge(s):
                yield diagnostic(kir_loc(s.loc), f"this binds the name {name!r} anew and leaves the Out view as it is",
                                 f"write {name}[{', '.join(':' * len(outs[name].type.shape)) or '()'}] = ...")


def _is_merge(s: ir.Assign) -> bool:
    return isinstance(s.value, ir.Expr) and s.value.op == "phi"


def _unwritten_reads(region: Region, empty: dict, written: set):
    """Reads before the first statement that writes. Inside a loop, an earlier iteration may have written."""
    for op in region.ops:
        name = op.args[0].name if op.args else None
        if name in empty and op.kind == "read" and name not in written:
            yield diagnostic(op.loc, *empty[name])
            written.add(name)
        if op.kind in LOOPS:
            written.update(inner.args[0].name for r in op.regions for inner in walk(r) if inner.args and inner.kind not in READS)
        for inner in op.regions:
            yield from _unwritten_reads(inner, empty, written)
        if name in empty and op.kind not in READS:
            written.add(name)
