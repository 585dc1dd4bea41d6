"""Random scalar programs that divide by zero and leave their buffer: a rehearsal reports what CPython stumbles over, and no more."""
from __future__ import annotations

import ast
import re
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import intent_numba as intent
from intent_numba import reference
from intent_numba.frontend import build_kernel
from tests.support import assert_same_bits, poison

from .execution import load
from .scalars import Scalars
from .settings import fuzz
from .test_scalars import PLAIN, by_python

X = np.array([0, 1, 2, 5, 9, 63, 500, 1023, 77, 8], np.int64)
GUARDS = ((r"& 3\) \+ 1\)\)", "& 3)))"), (r"& 7\) \+ 1\)\)", "& 7)))"), (r"& 7\]", "& 15]"))
"""What keeps a divisor above zero and an index inside of the buffer, and what does not."""


def unguarded(source: str, rnd) -> str:
    """Some guards taken away."""
    for guard, broken in GUARDS:
        source = re.sub(guard, lambda m, broken=broken: broken if rnd.random() < 0.25 else m.group(), source)
    return source


class Point:
    """CPython on one point of the parallel loop: the line and columns where it fails, and the coordinates of the loops around."""

    def __init__(self, source: str, i: int):
        self.failed, tree = False, ast.parse(source)
        body = source[source.index("def kernel"):].replace('x: I.In[I.i64, ("N",)], y: I.Out[I.i64, ("N", 4)]', "x, y")
        self.shift = source[:source.index("def kernel")].count("\n")
        scope = {"I": PLAIN}
        exec(compile(body.replace("I.domain(0, x.shape[0])", f"range({i}, {i + 1})"), "<python>", "exec"), scope)
        try:
            scope["kernel"]([int(v) for v in X], np.zeros((len(X), 4), np.int64))
        except (ZeroDivisionError, IndexError) as error:
            self.failed = True
            frame = error.__traceback__.tb_next
            line, _, col, _ = list(frame.tb_frame.f_code.co_positions())[frame.tb_lasti // 2]
            self.line, self.col = line + self.shift, col
            self.divides = isinstance(error, ZeroDivisionError)
            self.coordinates = tuple(_coordinates(tree, self.line, frame.tb_frame.f_locals, source.splitlines()))


def _coordinates(tree, line: int, values: dict, lines):
    """Of the loops whose bodies hold the line, outermost first."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.For, ast.While)) and node.body[0].lineno <= line <= node.body[-1].end_lineno:
            if isinstance(node, ast.For):
                yield values[node.target.id]
            else:                                           # counts down from a literal, first thing in its body
                name = node.test.left.id
                yield int(re.search(r"cast\((\d+)", lines[node.lineno - 2]).group(1)) - 1 - values[name]


def violated(rnd, budget):
    """Whether the program had a violation."""
    source = unguarded(Scalars(rnd).program(budget), rnd)
    try:
        kernel = load(source).kernel
        try:
            kir = build_kernel(kernel.pyfunc, {}, "strict", obligations=True)
        except (intent.IntentShapeError, intent.IntentTypeError):           # a literal index or divisor
            return False
        y = poison((len(X), 4), np.int64)
        failed = [p for p in (Point(source, i) for i in range(len(X))) if p.failed]
        if not failed:
            assert_same_bits(reference.rehearse(kir, [X, y])[1], by_python(source, X), "rehearsed against Python")
            return False
        with pytest.raises(intent.InvalidInput) as caught:
            reference.rehearse(kir, [X, y])
        e = caught.value
        first = min(p.line for p in failed)
        same = [p for p in failed if p.line == first and p.col == e.loc.col and p.divides == (e.operation in ("//", "%"))]
        assert e.loc.line == first and same, (str(e), [(p.line, p.col, p.coordinates) for p in failed])
        assert e.coordinates == min(p.coordinates for p in same), (str(e), [(p.line, p.col, p.coordinates) for p in failed])
        return True
    except Exception as error:
        error.add_note(source)
        raise


pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="code objects know columns from 3.11 on")


@fuzz(0.015)
@given(st.randoms(use_true_random=False), st.integers(0, 6))
def test_violations(rnd, budget):
    violated(rnd, budget)


@pytest.mark.nightly
@fuzz(0.015, factor=50)
@given(st.randoms(use_true_random=False), st.integers(0, 8))
def test_many_violations(rnd, budget):
    violated(rnd, budget)
