"""Random structured programs: the KIR run by the reference gives what Python gives for the same text."""
import random
import types

import numpy as np
import pytest

import intent_numba.language as I
from intent_numba.language.functions import Helper

from .front import interpret

NAMES = ("a", "b", "c")


class Writer:
    """Grows one function body; every loop is bounded by a counter of its own."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.loops = 0
        self.budget = 14

    def expression(self) -> str:
        r = self.random
        kind = r.randrange(6)
        a, b = r.choice(NAMES), r.choice(NAMES)
        if kind == 0:
            return f"{a} + {r.randrange(-3, 9)}"
        if kind == 1:
            return f"({a} * 3 - {b}) % 53"
        if kind == 2:
            return f"{a} if {self.condition()} else {b} + 1"
        if kind == 3:
            return f"x[{a} % 4] + {b}"
        if kind == 4:
            return f"-{a} // 2"
        return f"{a} ^ {b}"

    def condition(self) -> str:
        r = self.random
        simple = f"{r.choice(NAMES)} {r.choice(('<', '>', '==', '!=', '<='))} {r.choice((*NAMES, '3', '0', '7'))}"
        kind = r.randrange(6)
        if kind == 0:
            return f"{simple} and x[{r.choice(NAMES)} % 4] > {r.choice(NAMES)}"
        if kind == 1:
            return f"{simple} or {r.choice(NAMES)} % 3 == 1"
        if kind == 2:
            return f"not ({simple})"
        if kind == 3:
            return f"0 <= {r.choice(NAMES)} < 20"
        return simple

    def block(self, depth: int, inside: bool) -> None:
        indent = "    " * depth
        start = len(self.lines)
        for _ in range(self.random.randrange(1, 4)):
            self.budget -= 1
            kind = self.random.randrange(10) if self.budget > 0 and depth < 5 else 0
            if kind <= 3:
                self.lines.append(f"{indent}{self.random.choice(NAMES)} = {self.expression()}")
            elif kind <= 5:
                self.lines.append(f"{indent}if {self.condition()}:")
                self.block(depth + 1, inside)
                if self.random.random() < 0.6:
                    self.lines.append(f"{indent}else:")
                    self.block(depth + 1, inside)
            elif kind == 6:
                self.loops += 1
                self.lines.append(f"{indent}for i{self.loops} in range({self.random.randrange(0, 5)}):")
                self.lines.append(f"{indent}    b = b + I.cast(i{self.loops}, I.i64)")
                self.block(depth + 1, True)
                if self.random.random() < 0.3:
                    self.lines.append(f"{indent}else:")
                    self.block(depth + 1, inside)
            elif kind == 7:
                self.loops += 1
                k = f"k{self.loops}"
                self.lines.append(f"{indent}{k} = 0")
                self.lines.append(f"{indent}while {k} < 4 and ({self.condition()}):")
                self.lines.append(f"{indent}    {k} = {k} + 1")
                self.block(depth + 1, True)
            elif kind == 8 and inside and self.random.random() < 0.3:       # the end of this path, whatever it met
                self.lines.append(f"{indent}{self.random.choice(('break', 'continue', 'return b, a'))}")
                return
            elif kind == 8 and inside:
                self.lines.append(f"{indent}if {self.condition()}:")
                self.lines.append(f"{indent}    {self.random.choice(('break', 'continue'))}")
            elif kind == 9:
                self.lines.append(f"{indent}if {self.condition()}:")
                self.lines.append(f"{indent}    return a, c + {self.random.randrange(5)}")
        if len(self.lines) == start:
            self.lines.append(f"{indent}pass")

    def text(self) -> str:
        self.block(1, False)
        return "\n".join(["def f(x, a, b, c):", *self.lines, "    return b, c"]) + "\n"


PYTHON_I = types.SimpleNamespace(cast=lambda v, dt: v, i64=None)


@pytest.mark.parametrize("seed", range(40))
def test_random_program(seed):
    text = Writer(seed).text()
    ours, theirs = {"I": I}, {"I": PYTHON_I}
    exec(text, ours)
    exec(text, theirs)
    f = Helper(ours["f"])

    def kernel(x: I.In[I.i64, (4,)], s: I.In[I.i64, (3,)], y: I.Out[I.i64, (2,)]):
        p, q = f(x, s[0], s[1], s[2])
        y[0] = p
        y[1] = q
    for start in ((0, 1, 2), (5, -3, 8), (17, 4, 4)):
        x, y = np.array([3, 0, -5, 9]), np.zeros(2, "i8")
        want = theirs["f"]([int(v) for v in x], *start)
        interpret(kernel, x, np.array(start), y)
        assert tuple(y) == want, text
