"""Is a kernel well-formed KIR?  Every fault is collected, then raised at once.

This file checks what holds across operations: unique names, definition before use, extent symbols. What one operation
must satisfy stands in ``rules.py``. The language's caller obligations (bounds, injective stores, initialised buffers)
are not judged.
"""
from __future__ import annotations

from .ir import Kernel, Op, Region
from .rules import Fault, check
from .types import DTYPES, Domain, Scalar, View


class VerifyError(ValueError):
    """The kernel is not well-formed. ``faults`` holds one line per fault; each names the operation and its source line."""

    def __init__(self, name: str, faults: list[str]):
        super().__init__(f"kernel {name}: " + "; ".join(faults))
        self.faults = tuple(faults)


def verify(kernel: Kernel) -> Kernel:
    """Return ``kernel`` when every rule holds; else raise VerifyError listing all faults."""
    faults: list[str] = []
    for p in kernel.params:
        if not isinstance(p.type, (View, Scalar)):
            faults.append(f"parameter %{p.name} is a {p.type}; views and scalars are allowed")
    if kernel.body.yields:
        faults.append("a kernel body yields nothing")
    _Scope(kernel, faults).region(kernel.body, {})
    if faults:
        raise VerifyError(kernel.name, faults)
    return kernel


class _Scope:
    """Walks regions with the set of visible values."""

    def __init__(self, kernel: Kernel, faults: list[str]):
        self.kernel, self.faults, self.names = kernel, faults, set()
        self.symbols = frozenset(kernel.symbols())

    def region(self, region: Region, visible: dict) -> None:
        visible = dict(visible)
        for p in region.params:
            self.define(p, visible, "a parameter")
        for op in region.ops:
            where = _where(op)
            for a in op.args:
                if visible.get(a.name) is not a:
                    self.faults.append(f"{where}: %{a.name} is used where it is not defined")
            for r in op.regions:
                self.region(r, visible)
            try:
                check(op, self.kernel)
            except Fault as fault:
                self.faults.append(f"{where}: {fault}")
            for v in op.results:
                self.define(v, visible, where)
        for v in region.yields:
            if visible.get(v.name) is not v:
                self.faults.append(f"yield: %{v.name} is used where it is not defined")

    def define(self, value, visible: dict, where: str) -> None:
        if value.name in self.names:
            self.faults.append(f"{where}: %{value.name} is defined twice")
        self.names.add(value.name)
        if not isinstance(value.type, Domain) and value.type.dt not in DTYPES:
            self.faults.append(f"{where}: {value.type.dt} is not a dtype")
        for s in _symbols(value.type):
            # The extent of a domain may be named after the domain itself.
            source = value if s == f"%{value.name}" and isinstance(value.type, Domain) else visible.get(s[1:])
            if s.startswith("%"):
                if source is None:
                    self.faults.append(f"{where}: the extent symbol {s} of %{value.name} is not a visible value")
                elif source.type != Scalar("index") and not isinstance(source.type, Domain):
                    self.faults.append(f"{where}: the extent symbol {s} of %{value.name} is not an index scalar")
            elif s not in self.symbols:
                self.faults.append(f"{where}: the extent symbol {s} of %{value.name} is no shape name of the kernel")
        visible[value.name] = value


def _symbols(type) -> set[str]:
    extents = (type.extent,) if isinstance(type, Domain) else type.shape
    return set().union(*(e.symbols for e in extents)) if extents else set()


def _where(op: Op) -> str:
    head = f"%{op.results[0].name} = {op.kind}" if op.results else op.kind
    return head + (f" (line {op.loc.line})" if op.loc else "")
