"""Which accesses of a parallel loop provably conflict? Only proof refuses a program: what cannot be decided is the author's word.

Two points conflict when one writes an element that the other writes or reads, unless both do it by updates: atomics and
scatter_reduce are made to meet. Accesses under an ``if`` are not
considered, because the condition may exclude one of the points; data-dependent indices are not either (decision 33).
"""
from __future__ import annotations

from dataclasses import dataclass

from ..errors import LanguageError
from ..kir import Buffer, Extent, Op, Region, Scalar, View, walk
from ..kir import Domain as KDomain
from ..kir.ops import UPDATES, WRITING
from .emitter import Emitter


@dataclass
class Access:
    op: Op
    writes: bool
    dims: tuple

    @property
    def updates(self) -> bool:
        return self.op.kind in UPDATES


def check_races(e: Emitter, region: Region, domains, loc) -> None:
    """Refuse the parallel region when two of its points provably conflict."""
    symbols = [next(iter(e.extent(p).symbols)) for p in region.params]
    accesses: dict = {}
    own = {f"%{r.name}" for op in walk(region) for r in op.results} - set(symbols)
    _collect(e, region, accesses, set(), symbols, own)
    for target, found in accesses.items():
        for i, a in enumerate(found):
            for b in found[i:]:
                if (a.writes or b.writes) and not (a.updates and b.updates) and _conflict(e, a, b, symbols, domains, own):
                    _refuse(e, a, b, target, loc)


def _collect(e: Emitter, region: Region, accesses: dict, private: set, symbols, own: set) -> None:
    """Unconditional accesses by memory. ``own`` grows by the loop variables and carries that differ from point to point."""
    for op in region.ops:
        if op.kind == "buffer":
            private.add(op.result)
        if op.kind in ("read", "write", *UPDATES) and op.args[0] not in private and isinstance(op.args[0].type, (View, Buffer)):
            if not op.attrs.get("guard") and not op.attrs.get("unique"):
                rank = len(op.args[0].type.shape)
                accesses.setdefault(op.args[0], []).append(Access(op, op.kind in WRITING, op.args[1:1 + rank]))
        if op.kind in ("for", "loop", "parallel") and not op.attrs.get("breaks"):
            for inner in op.regions:
                domains = [d for d in op.args if isinstance(d.type, KDomain)]
                shared = [not _moves(e, d, symbols, own) for d in domains]
                for i, p in enumerate(inner.params):
                    if i >= len(shared) or not shared[i]:
                        own.add(f"%{p.name}")
                _collect(e, inner, accesses, private, symbols, own)


def _conflict(e: Emitter, a: Access, b: Access, symbols, domains, own) -> bool:
    """True when some two different points touch one element."""
    shift: dict = {}                        # symbol -> distance between the two points
    for x, y in zip(a.dims, b.dims):
        if isinstance(x.type, KDomain) or isinstance(y.type, KDomain):
            if x is not y or _moves(e, x, symbols, own):
                return False
            continue
        if not (isinstance(x.type, Scalar) and isinstance(y.type, Scalar)):
            return False
        left, right = _linear(e.extent(x), symbols), _linear(e.extent(y), symbols)
        if left is None or right is None or left[0] != right[0] or len(left[0]) > 1:
            return False
        if not _same_everywhere(e, left[1], right[1], own):
            return False
        distance = (right[1] - left[1]).const
        if distance is None:
            return False
        if not left[0]:
            if distance:
                return False
            continue
        (symbol, coefficient), = left[0].items()
        if distance % coefficient or shift.setdefault(symbol, distance // coefficient) != distance // coefficient:
            return False
    for symbol, d in zip(symbols, domains):
        extent = d.extent.const
        if symbol not in shift:
            if extent is None or extent > 1:
                return True
        elif shift[symbol] and e.extent(d.step).const == 1 and (extent is None or extent > abs(shift[symbol])):
            return True
    return False


def _moves(e: Emitter, domain, symbols, own) -> bool:
    """The domain's own bounds depend on the point."""
    bounds = [e.extent(v) for v in e.domains[domain] if isinstance(v.type, Scalar)]
    return any(x.symbols & set(symbols) or not _same_everywhere(e, x, x, own) for x in bounds)


def _linear(x: Extent, symbols):
    """(coefficients of the points' coordinates, rest), or None when it is not linear in them."""
    coefficients: dict = {}
    rest = Extent(())
    for monomial, c in x.terms:
        inside = [s for s in monomial if s in symbols]
        if not inside:
            rest = rest + Extent(((monomial, c),))
        elif len(monomial) == 1:
            coefficients[monomial[0]] = coefficients.get(monomial[0], 0) + c
        else:
            return None
    return coefficients, rest


def _same_everywhere(e: Emitter, a: Extent, b: Extent, own: set) -> bool:
    """The extents use only values that both points have alike: shape names, what was made outside of the loop, and the
    coordinates of inner loops, which both points run through."""
    return all(not s.startswith("%") or s not in own for s in a.symbols | b.symbols)


def _refuse(e: Emitter, a: Access, b: Access, target, loc) -> None:
    write = a if a.writes else b
    other = b if write is a else a
    name = repr(target.name) if isinstance(target.type, View) else "the buffer"
    e.b.loc = write.op.loc
    if other is write:
        message = f"the points of a parallel loop write the same element of {name}"
    else:
        message = f"a parallel loop writes an element of {name} that another point {'writes' if other.writes else 'reads'}"
    notes = [(loc, "the parallel loop")]
    if other is not write and other.op.loc != write.op.loc:
        notes.insert(0, (other.op.loc, "the other access"))
    e.fail(LanguageError, message, "use an ordered loop, I.reduce, or an index that differs for each point", tuple(notes))
