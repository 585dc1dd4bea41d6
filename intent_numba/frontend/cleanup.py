"""Which operations does nothing need? Pure operations without a used result are dropped, inner regions included."""
from __future__ import annotations

from ..kir import Region, walk
from ..kir.ops import UPDATES

EFFECTS = {"read", "write", "call", "for", "loop", "parallel", "check", *UPDATES}
"""Kept whether used or not: memory, checks, author's functions, and loops (they may hold effects or never end)."""

OWING = {"floordiv", "mod", "shl", "shr", "power", "cast", "random_bits", "gather", "domain", "reshape", "broadcast", "buffer",
         "histogram"}
"""What owes something to the language although it has no effect: a rehearsal keeps it."""


def drop_dead(body: Region, obligations: bool = False) -> None:
    """``obligations``: for a rehearsal."""
    _region(body, set(), EFFECTS | OWING if obligations else EFFECTS)


def _region(region: Region, used: set, kept_kinds: set) -> None:
    """``used`` grows by the values that the region's operations read, and by the symbols ("%name") of their extents."""
    used.update(region.yields)
    kept = []
    for op in reversed(region.ops):
        if op.kind == "if":
            _drop_results(op, used)
        elif not _kept(op, kept_kinds) and not any(_is_used(r, used) for r in op.results):
            continue
        for r in op.regions:
            _region(r, used, kept_kinds)
        if op.kind == "if" and not op.results and not any(r.ops for r in op.regions):
            continue
        used.update(op.args)
        used.update(_symbols(op))
        kept.append(op)
    region.ops[:] = kept[::-1]


def _kept(op, kept_kinds: set) -> bool:
    """Whatever uses it: for its own sake, or for what its combine owes."""
    return op.kind in kept_kinds or any(inner.kind in kept_kinds for r in op.regions for inner in walk(r))


def _is_used(value, used: set) -> bool:
    return value in used or f"%{value.name}" in used


def _drop_results(op, used: set) -> None:
    """A branch keeps only the results that something needs, so that what its sides compute for the others goes too."""
    live = [i for i, r in enumerate(op.results) if _is_used(r, used)]
    op.results = tuple(op.results[i] for i in live)
    for region in op.regions:
        region.yields = tuple(region.yields[i] for i in live)


def _symbols(op) -> list:
    """Symbols of index values in the operation's types and extents."""
    found = []
    for r in op.results:
        for extent in getattr(r.type, "shape", ()) or ((r.type.extent,) if hasattr(r.type, "extent") else ()):
            found += [s for s in extent.symbols if s.startswith("%")]
    if "e" in op.attrs:
        found += [s for s in op.attrs["e"].symbols if s.startswith("%")]
    return found
