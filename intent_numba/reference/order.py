"""In which order are members combined?  SUPPLEMENT section 12: R (reductions), S (scans) and C (contractions).

Members stand on axis 0 of their arrays. A combine takes and gives lists of component arrays that have any number of
leading axes, so one call combines many independent pairs at once; the pairing is exactly that of section 12.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..kir.ops import CHUNK, KBLOCK, LANES

Components = list[np.ndarray]
Combine = Callable[[Components, Components], Components]


def tree(members: Sequence[np.ndarray], combine: Combine, start: Components | None, step: Combine | None = None) -> Components:
    """R over n >= 1 members. ``start`` fills the lanes of a sum or product and is None for a generic combine. ``step`` replaces
    the combine of lane and member in the first leaves: the FMA of a contraction, whose members are the two factors."""
    n = len(members[0])
    if n <= CHUNK:
        return _leaf(members, combine, start, step or combine)
    whole = n // CHUNK * CHUNK
    # All full chunks at once: members of a chunk on axis 0, chunks on axis 1.
    stacked = [m[:whole].reshape(whole // CHUNK, CHUNK, *m.shape[1:]).swapaxes(0, 1) for m in members]
    parts = _leaf(stacked, combine, start, step or combine)
    if whole < n:
        last = _leaf([m[whole:] for m in members], combine, start, step or combine)
        parts = [np.concatenate([p, x[None]]) for p, x in zip(parts, last)]
    return tree(parts, combine, start)


def _leaf(members, combine, start, step) -> Components:
    m = len(members[0])
    if start is None:
        present = min(m, LANES)
        lanes = [x[:LANES].copy() for x in members]
        begin = LANES
    else:
        present = LANES
        shape = np.broadcast_shapes(*(x.shape[1:] for x in members))
        lanes = [np.full((LANES, *shape), s) for s in start]
        begin = 0
    for i in range(begin, m, LANES):
        block = [x[i:i + LANES] for x in members]
        width = len(block[0])
        _assign([lane[:width] for lane in lanes], step([lane[:width] for lane in lanes], block))
    h = LANES // 2
    while h:
        width = min(h, present - h)  # absent lanes are skipped
        if width > 0:
            low, high = [lane[:width] for lane in lanes], [lane[h:h + width] for lane in lanes]
            _assign(low, combine(low, high))
        present = min(present, h)
        h //= 2
    return [lane[0] for lane in lanes]


def _assign(places: Components, values: Components) -> None:
    """Together: a component of a combine's result may be another component of its operands, which lie in these places."""
    if len(places) > 1:
        values = [np.array(v) for v in values]
    for place, value in zip(places, values):
        place[...] = value


def prefixes(members: Components, combine: Combine, reverse: bool = False) -> Components:
    """S: every inclusive prefix of n >= 1 members; with ``reverse`` every suffix, operands kept in source order."""
    if reverse:
        flipped = prefixes([m[::-1] for m in members], lambda a, b: combine(b, a))
        return [y[::-1] for y in flipped]
    out, total = [], None
    for c in range(0, len(members[0]), CHUNK):
        y = _chunk_prefixes([m[c:c + CHUNK] for m in members], combine)
        t = [part[-1] for part in y]
        if total is None:
            total = t
        else:
            y = combine(_repeat(total, y), y)
            total = combine(total, t)
        out.append(y)
    return [np.concatenate(parts) for parts in zip(*out)]


def _chunk_prefixes(members, combine) -> Components:
    n = len(members[0])
    whole = n // LANES
    full = [m[:whole * LANES].reshape(whole, LANES, *m.shape[1:]).swapaxes(0, 1) for m in members]     # all full blocks at once
    full = _block_prefixes(full, combine) if whole else full
    blocks = [[x[:, b] for x in full] for b in range(whole)]
    if whole * LANES < n:
        blocks.append(_block_prefixes([m[whole * LANES:] for m in members], combine))
    for b in range(1, len(blocks)):
        blocks[b] = combine(_repeat([x[-1] for x in blocks[b - 1]], blocks[b]), blocks[b])
    return [np.concatenate(parts) for parts in zip(*blocks)]


def _block_prefixes(p, combine) -> Components:
    """Lanes on axis 0. No pair is combined that the language does not name: a combine may have obligations."""
    p = [x.copy() for x in p]
    s = 1
    while s < len(p[0]):
        _assign([x[s:] for x in p], combine([x[:-s] for x in p], [x[s:] for x in p]))
        s *= 2
    return p


def _repeat(one: Components, many: Components) -> Components:
    return [np.broadcast_to(a, b.shape) for a, b in zip(one, many)]


def chain(a: np.ndarray, b: np.ndarray, fma: Callable, add: Callable, zero) -> np.ndarray:
    """C: a[k] and b[k] broadcast to the result; ascending FMA chains of KBLOCK members, whose sums are added in order."""
    n = len(a)
    total = None
    for begin in range(0, n, KBLOCK):
        p = zero
        for k in range(begin, min(begin + KBLOCK, n)):
            p = fma(a[k], b[k], p)
        total = p if total is None else add(total, p)
    return zero if total is None else total
