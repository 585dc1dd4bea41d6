"""Index relations (SUPPLEMENT 4, 000 section 10): one oracle of plain Python loops for reads, stores, gathers and updates."""
from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.support import check

from .world import source

EXTENTS = (4, 5, 3, 6)
ENVIRONMENT = {"r": np.array([2, 0, 3]), "c": np.array([1, 4, 0]), "g": np.array([[0, 2], [1, 1], [2, 0]]), "e": np.array([3]), "i": 2}
BIND = """M, N, K, P = x.shape
r, c, e, g = R[:], C[:], E[:], G[:, :]
rows, cols, deep = I.domain(0, M), I.domain(1, N), I.domain(0, K)
part, every = cols[2:4], I.domain(1, P, 2)
"""
DOMAINS = {"rows": range(4), "cols": range(1, 5), "deep": range(3), "part": range(2, 4), "every": range(1, 6, 2)}
INDICES = [
    ("i", "i", "i", "i"), (":", ":", ":", ":"), ("rows", "part", "deep", "every"), ("i", "cols", "i", ":"), (":", "1:4", "i", "every"),
    ("r", "i", "i", "i"), ("i", "c", ":", "i"), ("r", "c", "i", ":"), ("r", "c", "g[:, 0]", ":"), (":", "r", ":", "c"), ("r", ":", "i",
                                                                                                                         "c"),
    ("rows", "i", "g[0, :]", "i"), (":", "g", ":", "i"), ("g", "i", ":", "i"), ("r[:, None]", "c[None, :]", ":", "i"), ("r[:, None]", ":",
                                                                                                                        "g", "i"),
    ("i", "r[:, None]", "part_", "c[None, :]"), ("i", ":", "g", "every"), ("r", "e", ":", "i"), ("e", "i", ":", "e"), (":", "i", "g",
                                                                                                                       "c[:, None]"),
    ("I.indices(rows)[:, None]", "I.indices(part)[None, :]", "i", "i"), ("I.indices(rows)", ":", "i", "I.indices(rows) + 1"),
]


def relation(items):
    """(shape of the result, function from a result coordinate to a source coordinate), from the words of the rule."""
    axes, joint, place = [], (), None
    values = []
    for axis, text in enumerate(items):
        members = DOMAINS.get(text)
        if ":" in text and "[" not in text:
            bounds = slice(*(int(b) if b else None for b in text.split(":")))
            members = range(*bounds.indices(EXTENTS[axis]))
        if members is not None:
            values.append(("axis", len(axes), members))
            axes.append(len(members))
        elif text == "i":
            values.append(("scalar", None, ENVIRONMENT["i"]))
        else:
            scope = {**ENVIRONMENT, **{n: np.array(d) for n, d in DOMAINS.items()}, "I": Indices}
            array = eval(text, scope)
            if place is None:
                place = len(axes)
            joint = np.broadcast_shapes(joint, array.shape)
            values.append(("tensor", None, array))
    place = len(axes) if place is None else place
    shape = (*axes[:place], *joint, *axes[place:])

    def source(at):
        together, rest = at[place:place + len(joint)], at[:place] + at[place + len(joint):]
        coordinates = []
        for kind, position, value in values:
            if kind == "axis":
                coordinates.append(value[rest[position]])
            else:
                coordinates.append(value if kind == "scalar" else int(np.broadcast_to(value, joint)[together]))
        return tuple(coordinates)
    return shape, source


class Indices:
    @staticmethod
    def indices(d):
        return d


def program(items, statement, out_rank, more=""):
    text = ", ".join(spread(items))
    signature = ('x: I.InOut[I.i32, (4, 5, 3, 6)], R: I.In[I.i32, (3,)], C: I.In[I.u8, (3,)], E: I.In[I.i64, (1,)], '
                 'G: I.In[I.index, (3, 2)], i: I.i16, '
                 f'y: I.InOut[I.i32, ({", ".join(map(repr, out_rank))}{"," if len(out_rank) == 1 else ""})]' + more)
    called = ", ".join(f"I.domain({t.replace(':', ',')})" if t == "1:4" or t == "1:3" else f"I.domain(0, {EXTENTS[n]})" if t == ":" else t
                       for n, t in enumerate(spread(items)))
    body = BIND + statement.replace("(INDEX,)", f"({called},)").replace("INDEX", text).replace("ALL",
                                                                                               ", ".join(":" * len(out_rank)) or "()")
    return source(body, signature)


def arguments(y, *more):
    x = np.arange(np.prod(EXTENTS), dtype="i4").reshape(EXTENTS)
    e = ENVIRONMENT
    return [x, e["r"].astype("i4"), e["c"].astype("u1"), e["e"], e["g"], np.int16(e["i"]), y, *more]


def spread(items):
    return [t.replace("part_", "1:3") for t in items]


@pytest.mark.parametrize("items", INDICES, ids=", ".join)
def test_reads(items):
    shape, source = relation(spread(items))
    want = np.zeros(shape, "i4")
    for at in itertools.product(*map(range, shape)):
        want[at] = arguments(None)[0][source(at)]
    x, y = check(program(items, "y[ALL] = x[INDEX]", shape), arguments(np.zeros(shape, "i4")), layouts=("contiguous", "mixed"))
    assert np.array_equal(y, want)
    got = check(program(items, "v = x[:, :, :, :]\ny[ALL] = I.gather(v, index=(INDEX,))", shape), arguments(np.zeros(shape, "i4")),
                layouts=("mixed",))
    assert np.array_equal(got[1], want)


@pytest.mark.parametrize("items", INDICES, ids=", ".join)
def test_stores_and_updates(items):
    shape, source = relation(spread(items))
    places = [(at, source(at)) for at in itertools.product(*map(range, shape))]
    values = np.arange(1, 1 + len(places), dtype="i4").reshape(shape)
    stored, added = arguments(None)[0], arguments(None)[0]
    for at, place in places:
        stored[place] = values[at]
        added[place] += values[at]
    if len({p for _, p in places}) == len(places):                  # a store may not meet an element twice
        x, _ = check(program(items, "x[INDEX] = y[ALL]", shape), arguments(values), layouts=("contiguous", "mixed"))
        assert np.array_equal(x, stored)
        x, _ = check(program(items, "I.scatter_unique(x, index=(INDEX,), value=y[ALL])", shape), arguments(values), layouts=("mixed",))
        assert np.array_equal(x, stored)
    x, _ = check(program(items, "I.scatter_reduce(x, index=(INDEX,), value=y[ALL], combine=I.add)", shape), arguments(values),
                 layouts=("contiguous", "mixed"))
    assert np.array_equal(x, added)
    x, _ = check(program(items, "I.atomic.add(x[INDEX], y[ALL], order=\"relaxed\")", shape), arguments(values), layouts=("mixed",))
    assert np.array_equal(x, added)
