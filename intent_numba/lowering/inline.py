"""A region's operations once more, over other values: what inlining a combine into a loop needs.

Every value that the region defines gets a fresh name, in its uses and in the extents that it decides.
"""
from __future__ import annotations

from dataclasses import replace

from ..kir import Builder, Domain, Extent, Op, Region, Value


class Inliner:
    """One copy of a region. ``known`` maps values of the original to those that stand for them."""

    def __init__(self, builder: Builder, known: dict[Value, Value]):
        self.b, self.known = builder, dict(known)
        self.symbols: dict[str, str] = {}
        for old, new in known.items():
            self._rename(old, new)

    def ops(self, region: Region) -> tuple[list[Op], tuple[Value, ...]]:
        """The copied operations and yields."""
        return [self._op(op) for op in region.ops], self._values(region.yields)

    def _op(self, op: Op) -> Op:
        args = self._values(op.args)
        results = tuple(map(self._define, op.results))
        regions = tuple(map(self._region, op.regions))
        attrs = {n: self._extent(a) if isinstance(a, Extent) else a for n, a in op.attrs.items()}
        return Op(op.kind, args, attrs, results, regions, op.loc)

    def _region(self, region: Region) -> Region:
        params = tuple(map(self._define, region.params))
        return Region(params, *self.ops(region))

    def _values(self, values) -> tuple[Value, ...]:
        return tuple(self.known.get(v, v) for v in values)

    def _define(self, v: Value) -> Value:
        new = self.b.fresh(v.type)
        self._rename(v, new)                             # the extent of a domain may be named after the domain itself
        new = self.known[v] = Value(new.name, self._type(v.type))
        return new

    def _rename(self, old: Value, new: Value) -> None:
        self.symbols[f"%{old.name}"] = f"%{new.name}"

    def _type(self, t):
        if isinstance(t, Domain):
            return Domain(self._extent(t.extent))
        return replace(t, shape=tuple(map(self._extent, t.shape))) if t.shape else t

    def _extent(self, e: Extent) -> Extent:
        found = e.symbols & self.symbols.keys()
        return e.substitute({s: self.symbols[s] for s in found}) if found else e
