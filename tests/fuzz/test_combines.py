"""Reductions and scans of random records by random combines: compiled code has the bits of the reference.

Components have ranks 0 to 2 and two dtypes; a combine makes each from components of both sides by products, reductions, transposes,
branches and loops. It need not be associative: the order is fixed. The operation stands alone, in parallel points, in a loop or a branch.
"""
from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import intent_numba as intent
import intent_numba.language as I
from tests.support import check, numpy_dtype

from .settings import fuzz

D = 3
FLOAT, INT = "f32", "i32"


class Writer:
    """Expressions of a wanted rank and dtype over the components of two records."""

    def __init__(self, draw, fields):
        self.draw, self.fields = draw, fields

    def pick(self, options):
        return self.draw(st.sampled_from(options))

    def field(self, rank: int, dt: str) -> str:
        found = [f"{side}.c{i}" for i, f in enumerate(self.fields) if f == (rank, dt) for side in "ab"]
        shape = {0: "", 1: f"({D},), ", 2: f"({D}, {D}), "}[rank]
        constant = f"I.cast(2, I.{dt})" if rank == 0 else f"I.full({shape}2, I.{dt})" if dt == INT else f"I.full({shape}0.5, I.{dt})"
        return self.pick(found + [constant] if not found else found)

    def make(self, rank: int, dt: str, depth: int) -> str:
        if depth == 0:
            return self.field(rank, dt)
        inner = lambda r: self.make(r, dt, depth - 1)      # noqa: E731
        same = [lambda: f"({inner(rank)} + {inner(rank)})", lambda: f"({inner(rank)} - {inner(rank)})",
                lambda: f"I.maximum({inner(rank)}, {inner(rank)})", lambda: f"({inner(rank)} * {inner(0)})",
                lambda: f"I.select({inner(rank)} < {inner(rank)}, {inner(rank)}, {inner(rank)})"]
        acc = f"acc_dtype=I.{dt}"
        other = {0: [lambda: f"I.reduce.sum({inner(1)}, axis=0)", lambda: f"I.reduce.max({inner(2)}, axis=(0, 1))",
                     lambda: f"({inner(0)} if {inner(0)} > {inner(0)} else {inner(0)})", lambda: f"counted({inner(0)}, {inner(0)})"],
                 1: [lambda: f"I.matvec({inner(2)}, {inner(1)}, {acc})", lambda: f"I.reduce.min({inner(2)}, axis={self.pick([0, 1])})",
                     lambda: f"I.cumsum({inner(1)}, axis=0)", lambda: f"I.reduce({inner(2)}, axis=0, identity={inner(1)}, combine=mixed)"],
                 2: [lambda: f"I.matmul({inner(2)}, {inner(2)}, {acc})", lambda: f"I.transpose({inner(2)})",
                     lambda: f"I.outer({inner(1)}, {inner(1)})", lambda: f"({inner(1)}[:, None] + {inner(1)})"]}
        return self.pick(same + other[rank] * 2)()


HELPERS = """
@intent.fn
def counted(a, b):
    for i in I.domain(0, 3):
        a = a + b
        if a > b:
            break
    return a

@intent.fn
def mixed(a, b):
    return a + I.reduce.max(b, axis=0)
"""


@st.composite
def programs(draw):
    fields = draw(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([FLOAT, FLOAT, INT])), min_size=1, max_size=3))
    writer = Writer(draw, fields)
    results = ", ".join(f"c{i}={writer.make(*f, draw(st.integers(1, 2)))}" for i, f in enumerate(fields))
    kind = draw(st.sampled_from(["reduce", "scan", "scan"]))
    where = draw(st.sampled_from(["alone", "parallel", "loop", "branch"]))
    flags = f", inclusive={draw(st.booleans())}, reverse={draw(st.booleans())}" if kind == "scan" else ""
    axis = draw(st.integers(0, min(rank for rank, _ in fields)))       # one argument for all components
    indent = "    " * (where != "alone")
    views, lines = [], {"alone": [], "parallel": ["for m in I.parallel(I.domain(0, M)):"], "loop": ["for m in I.domain(0, M):"],
                        "branch": ["for m in I.domain(0, M):", "    if m != 1:"]}[where]
    indent += "    " * (where == "branch")
    at = "0" if where == "alone" else "m"

    def spelled(rank):
        inside = [str(D)] * rank
        inside.insert(axis, "'N'")
        return inside
    for i, (rank, dt) in enumerate(fields):
        views.append(f"x{i}: I.In[I.{dt}, ('M', {', '.join(spelled(rank))})], e{i}: I.In[I.{dt}, ({(str(D) + ', ') * rank})]")
    for i, (rank, dt) in enumerate(fields):
        shape = spelled(rank) if kind == "scan" else [str(D)] * rank
        views.append(f"y{i}: I.InOut[I.{dt}, ('M', {', '.join(shape)})]")
    part = ", ".join(f"c{i}=x{i}[{at}{', :' * (rank + 1)}]" for i, (rank, _) in enumerate(fields))
    start = ", ".join(f"c{i}=e{i}[{', '.join(':' * rank) or '()'}]" for i, (rank, _) in enumerate(fields))
    body = [f"r = I.{kind}(I.record({part}), axis={axis}, identity=I.record({start}), combine=combine{flags})"]
    body += [f"y{i}[{at}{', :' * (rank + (kind == 'scan'))}] = r.c{i}" for i, (rank, _) in enumerate(fields)]
    text = HELPERS + f"""
@intent.fn
def combine(a, b):
    return I.record({results})

def kernel({', '.join(views)}):
    M = x0.shape[0]
""" + "\n".join("    " + line for line in [*lines, *(indent + line for line in body)]) + "\n"
    return text, fields, axis, kind


@fuzz(0.015)
@given(programs(), st.integers(1, 3), st.sampled_from([0, 1, 2, 7, 31, 33, 70]), st.integers(0, 2**32 - 1))
def test_combine(program, m, n, seed):
    text, fields, axis, kind = program
    scope = {"I": I, "intent": intent}
    exec(text, scope)
    rng, inputs, outs = np.random.default_rng(seed), [], []
    for rank, dt in fields:
        inside = [D] * rank
        inside.insert(axis, n)
        inputs += [rng.integers(-3, 4, (m, *inside)).astype(numpy_dtype(dt)), rng.integers(-3, 4, (D,) * rank).astype(numpy_dtype(dt))]
        outs.append(np.zeros((m, *(inside if kind == "scan" else (D,) * rank)), numpy_dtype(dt)))
    check(intent.kernel(scope["kernel"]), [*inputs, *outs], layouts=("mixed",))
