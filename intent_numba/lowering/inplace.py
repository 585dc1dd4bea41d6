"""Which pairs of views may be the very same memory without changing what a program computes.

Only straight programs are judged. For an input X and an output Y that are one memory: after Y is written no later stage reads X;
in the stage that writes Y every task axis stands at one common position of all their accesses, no later phase reads X, and the
phase that writes Y reads X at the written coordinates only.
"""
from __future__ import annotations

from itertools import combinations

from ..task import Phase, Program, Stage
from .uses import accesses


def inplace_pairs(program: Program) -> frozenset:
    views = {p.name: p for p in program.params if p.kind == "view"}
    if not all(isinstance(s, (Stage, Phase)) for s in program.body):
        return frozenset()
    steps = [_accesses(s) for s in program.body]
    out = set()
    for x, y in combinations(views, 2):
        # Either may be the one that is read; a view that may not be written is never the other's output.
        ways = [(r, w) for r, w in ((x, y), (y, x)) if views[w].access != "in"]
        if ways and all(_safe(program.body, steps, r, w) for r, w in ways):
            out.add(ways[0])
    return frozenset(out)


def _accesses(stmt):
    """Per phase: (name, coords, is write), or None for a body that is not straight."""
    body = [stmt] if isinstance(stmt, Phase) else stmt.body
    if not all(isinstance(p, Phase) for p in body):
        return None
    out = []
    for p in body:
        acc = []
        for s in p.sinks:
            for found, write in zip(accesses(s), (False, True)):
                acc += [(name, coords, write) for name, coords in found]
        out.append(acc)
    return out


def _safe(stmts, steps, x, y) -> bool:
    written = False
    for stmt, phases in zip(stmts, steps):
        if phases is None:
            return False
        mine = [[a for a in acc if a[0] in (x, y)] for acc in phases]
        flat = [a for acc in mine for a in acc]
        if written and any(n == x for n, _, _ in flat):
            return False
        if not any(n == y and w for n, _, w in flat):
            continue
        if any(n == x and w for n, _, w in flat):
            return False
        if not any(n == x for n, _, _ in flat):
            written = True
            continue
        for axis in getattr(stmt, "tasks", ()):
            rank = min(len(c) for _, c, _ in flat)
            if not any(all(c[i].op == "axis" and c[i].attr == axis.name for _, c, _ in flat) for i in range(rank)):
                return False
        for acc in mine:
            here = [c for n, c, w in acc if n == y and w]
            for n, c, _ in acc:
                if n == x and (written or here and any(c != h for h in here)):
                    return False
            written = written or bool(here)
    return True
