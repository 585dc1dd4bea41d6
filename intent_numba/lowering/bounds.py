"""How large can an extent become? Scratch is laid out before the task has computed its cells, so it wants an upper bound.

The bound of ``minimum(64, n - begin)`` is 64, whatever n is; that of ``minimum(begin + 32, n) - begin`` is 32; that of a domain
that indexes an axis is the extent of the axis.
"""
from __future__ import annotations

from ..kir import Domain, Extent, Op, Region, Scalar, Value, walk

DEPTH = 6


class Bounds:
    """Upper bounds of a kernel's extents."""

    def __init__(self, body: Region):
        self.defining: dict[str, Op] = {}           # "%name" -> the operation that defines the index scalar
        self.spans: dict[Extent, Extent] = {}       # extent of a domain -> that of what it indexes
        for op in walk(body):
            for v in op.results:
                if v.type == Scalar("index"):
                    self.defining[f"%{v.name}"] = op
            if op.kind in ("read", "gather", "write"):
                for a, axis in zip(op.args[1:], op.args[0].type.shape):
                    if isinstance(a.type, Domain):
                        self.spans.setdefault(a.type.extent, axis)

    def upper(self, e: Extent, depth: int = DEPTH) -> Extent | None:
        """An extent without cells that ``e`` cannot exceed, a constant if possible; None where none is found."""
        cells = sorted(s for s in e.symbols if s[0] == "%")
        if not cells:
            return e
        if not depth:
            return None
        best = None
        for larger in self._candidates(e, cells, depth):
            found = self.upper(larger, depth - 1)
            if found is not None and found.const is not None:
                return found
            best = found if best is None else best
        return best

    def _candidates(self, e: Extent, cells, depth: int):
        """Extents that are not below ``e``, with one of its cells replaced."""
        for s in cells:
            equal = self._polynomial_of(s)
            if equal is not None:
                yield e.substitute({s: equal})
            elif all(c > 0 and [x for x in m if x[0] == "%"] == [s] for m, c in e.terms if s in m):
                yield from (e.substitute({s: larger}) for larger in self._not_below(s, depth))
        axis = self.spans.get(e)
        if axis is not None and axis != e:
            yield axis

    def _not_below(self, s: str, depth: int) -> list[Extent]:
        op = self.defining.get(s)
        match op.kind if op is not None else None:
            case "minimum":
                return [self._polynomial(a) for a in op.args]
            case "maximum":
                sides = [self.upper(self._polynomial(a), depth - 1) for a in op.args]
                if all(x is not None and x.const is not None for x in sides):
                    return [Extent.of(max(x.const for x in sides))]
        return []

    def _polynomial_of(self, s: str) -> Extent | None:
        """What a cell equals, where that says more than its name."""
        op = self.defining.get(s)
        return self._polynomial(op.result) if op is not None and op.kind in ("add", "sub", "mul", "extent", "const") else None

    def _polynomial(self, v: Value) -> Extent:
        """An index scalar as an extent, through sums and products."""
        op = self.defining.get(f"%{v.name}")
        match op.kind if op is not None else None:
            case "const":
                return Extent.of(op.attrs["value"])
            case "extent":
                return op.attrs["e"]
            case "add":
                return self._polynomial(op.args[0]) + self._polynomial(op.args[1])
            case "sub":
                return self._polynomial(op.args[0]) - self._polynomial(op.args[1])
            case "mul":
                return self._polynomial(op.args[0]) * self._polynomial(op.args[1])
        return Extent.of(f"%{v.name}")
