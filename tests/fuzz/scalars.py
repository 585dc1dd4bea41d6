"""Random scalar programs with control flow as Python source: over small integers, where CPython is an oracle, and over variables of
several dtypes.

A generator takes any object with the interface of ``random.Random`` (Hypothesis supplies one that it can shrink). Programs are legal
by construction: divisors are never zero, shift amounts are in range, float to integer conversions saturate.
"""
from __future__ import annotations

from .grammar import Parameter, Program
from .grammar.types import WIDTH, is_float

IMPORTS = "import intent_numba as intent\nimport intent_numba.language as I\n\n\n"


class Scalars:
    """Grows one scalar program with control flow over small non-negative integers; it means the same to Python itself."""

    def __init__(self, rnd):
        self.rnd = rnd
        self.depth = 0
        self.loops = 0

    def expression(self, names, depth=0):
        r = self.rnd.random()
        if depth > 2 or r < 0.35:
            return self.rnd.choice([*names, *names, str(self.rnd.randint(0, 9)), "x[i]"])
        if r < 0.45:
            return f"b[{self.expression(names, 3)} & 7]"
        if r < 0.55:
            return f"({self.expression(names, depth + 1)} if {self.condition(names, depth + 1)} else {self.expression(names, depth + 1)})"
        a, b = self.expression(names, depth + 1), self.expression(names, depth + 1)
        return self.rnd.choice([f"(({a} + {b}) & 1023)", f"(({a} * {b}) & 1023)", f"({a} ^ {b})", f"({a} // (({b} & 3) + 1))",
                                f"({a} % (({b} & 7) + 1))",
                                f"I.maximum({a}, {self.rnd.choice(names)})", f"({a} | {b})"])

    def condition(self, names, depth=0):
        r = self.rnd.random()
        # One side holds a run-time value, so that no comparison is between two literals.
        a, b = self.rnd.choice(names), self.expression(names, 2)
        if depth > 1 or r < 0.7:
            return f"{a} {self.rnd.choice(['<', '>', '==', '!=', '<=', '>='])} {b}"
        inner = self.condition(names, depth + 1), self.condition(names, depth + 1)
        return self.rnd.choice([f"({inner[0]} and {inner[1]})", f"({inner[0]} or {inner[1]})", f"(not {inner[0]})",
                                f"({a} < {b} <= {self.rnd.choice(names)})"])

    def assignment(self, names) -> str:
        if self.rnd.random() < 0.2:
            return f"b[{self.expression(names, 2)} & 7] = I.cast({self.expression(names, 1)}, I.i64)"
        return f"{self.rnd.choice(names)} = I.cast({self.expression(names)}, I.i64)"

    def bound(self, names) -> str:
        return self.rnd.choice(["3", "5", f"{self.rnd.choice(names)} & 3", "1, 7, 2"])

    def after_loop(self, names, k) -> str:
        return f"{self.rnd.choice(names)} = I.cast({k}, I.i64) + {self.rnd.choice(names)}"

    def block(self, names, indent, looping, budget):
        pad = "    " * indent
        lines = []
        for _ in range(self.rnd.randint(1, 3)):
            r = self.rnd.random()
            if r < 0.5 or budget <= 0 or indent > 5:
                lines.append(pad + self.assignment(names))
            elif r < 0.7:
                lines.append(f"{pad}if {self.condition(names)}:")
                lines += self.block(names, indent + 1, looping, budget - 1)
                if self.rnd.random() < 0.3:
                    lines.append(f"{pad}elif {self.condition(names)}:")
                    lines += self.block(names, indent + 1, looping, budget - 1)
                lines += self.otherwise(names, indent, looping, budget - 1, 0.5)
            elif r < 0.8 and looping:
                lines.append(f"{pad}if {self.condition(names)}:")
                lines.append(f"{pad}    {self.rnd.choice(['break', 'continue'])}")
            elif r < 0.92:
                self.loops += 1
                lines.append(f"{pad}for k{self.loops} in range({self.bound(names)}):")
                k = f"k{self.loops}"
                lines += self.block(names, indent + 1, True, budget - 2)
                if self.rnd.random() < 0.3:
                    lines.append(f"{pad}    {self.after_loop(names, k)}")
                lines += self.otherwise(names, indent, looping, budget - 2, 0.3)
            else:
                self.loops += 1
                w = f"w{self.loops}"
                lines += [f"{pad}{w} = I.cast({self.rnd.randint(1, 6)}, I.i64)", f"{pad}while {w} > 0:", f"{pad}    {w} = {w} - 1"]
                lines += self.block(names, indent + 1, True, budget - 2)
                lines += self.otherwise(names, indent, looping, budget - 2, 0.3)
        return lines

    def otherwise(self, names, indent, looping, budget, chance):
        return ["    " * indent + "else:", *self.block(names, indent + 1, looping, budget)] if self.rnd.random() < chance else []

    def program(self, budget) -> str:
        names = ["p", "q", "r"]
        body = ["    for i in I.parallel(I.domain(0, x.shape[0])):", "        b = I.buffer((8,), I.i64, init=0)", "        p = x[i]",
                "        q = I.cast(i, I.i64)", "        r = I.cast(3, I.i64)", *self.block(names, 2, False, budget),
                *self.block(names, 2, False, budget)]
        if self.rnd.random() < 0.3:
            body += [f"        if {self.condition(names)}:", "            y[i, 0] = -1", "            continue"]
        body += [f"        y[i, {j}] = {n}" for j, n in enumerate(names)] + ["        y[i, 3] = b[q & 7]"]
        text = "\n".join(body)
        return f'{IMPORTS}@intent.kernel\ndef kernel(x: I.In[I.i64, ("N",)], y: I.Out[I.i64, ("N", 4)]):\n{text}\n'


class TypedScalars(Scalars):
    """The same control flow over one variable of each of several dtypes, with wrapping integers and rounding floats."""

    DTYPES = {"p": "i32", "q": "u8", "r": "i64", "f": "f32", "g": "f64", "h": "f16", "s": "i8", "t": "u32", "c": "bool"}

    def of(self, dt, depth=0):
        """An expression of this dtype."""
        names = [n for n, d in self.DTYPES.items() if d == dt]
        r = self.rnd.random()
        if depth > 2 or r < 0.3:
            return self.rnd.choice(names)
        if r < 0.4:
            return f"({self.of(dt, depth + 1)} if {self.condition(None, depth + 1)} else {self.of(dt, depth + 1)})"
        if r < 0.5:
            return f"b_{dt}[r & 3]" if dt in ("i32", "f32") else names[0]
        if r < 0.65:
            other = self.rnd.choice([d for d in self.DTYPES.values() if d != dt])
            narrow = dt in WIDTH and is_float(other)
            return f"I.{'saturating_cast' if narrow else 'cast'}({self.of(other, depth + 1)}, I.{dt})"
        a, b = self.of(dt, depth + 1), self.of(dt, depth + 1)
        if dt == "bool":
            return self.rnd.choice([f"({a} & {b})", f"({a} ^ {b})", f"(~{a})", self.condition(None, depth + 1)])
        if is_float(dt):
            return self.rnd.choice([f"({a} + {b})", f"({a} - {b} * {a})", f"({a} * {b} + {names[0]})", f"({a} / {b})", f"I.sqrt({a})",
                                    f"I.minimum({a}, {b})",
                                    f"I.fma({a}, {b}, {names[0]})", f"(-{a})", f"I.floor({a} * 0.5)", f"I.tanh({a})"])
        return self.rnd.choice([f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} ^ {b})", f"({a} // (({b} & 7) | 1))",
                                f"({a} % (({b} & 7) | 1))",
                                f"({a} << ({b} & 7))", f"({a} >> ({b} & 7))", f"I.maximum({a}, {b})", f"(~{a})", f"(-{a})", f"I.abs({a})"])

    def condition(self, names, depth=0):
        dt = self.rnd.choice([d for d in self.DTYPES.values() if d != "bool"])
        if depth > 1 or self.rnd.random() < 0.7:
            return f"({self.of(dt, 2)} {self.rnd.choice(['<', '>', '==', '!=', '<=', '>='])} {self.of(dt, 2)})"
        a, b = self.condition(names, depth + 1), self.condition(names, depth + 1)
        return self.rnd.choice([f"({a} and {b})", f"({a} or {b})", f"(not {a})", "c"])

    def assignment(self, names) -> str:
        if self.rnd.random() < 0.2:
            dt = self.rnd.choice(["i32", "f32"])
            return f"b_{dt}[r & 3] = {self.of(dt, 1)}"
        name, dt = self.rnd.choice(list(self.DTYPES.items()))
        return f"{name} = {self.of(dt)}"

    def bound(self, names) -> str:
        return self.rnd.choice(["3", "q & 3", "r & 3", "1, 7, 2"])

    def after_loop(self, names, k) -> str:
        return f"p = p + I.cast({k}, I.i32)"

    def program(self, budget) -> Program:
        parameters = [Parameter(kind, f"{x}{n}", dt, ("N",)) for kind, x in (("in", "x"), ("out", "y")) for n, dt in self.DTYPES.items()]
        signature = ", ".join(f"{p.name}: {p.annotation()}" for p in parameters)
        body = ["for i in I.parallel(I.domain(0, xp.shape[0])):", "    b_i32 = I.buffer((4,), I.i32, init=1)",
                "    b_f32 = I.buffer((4,), I.f32, init=0.5)",
                *(f"    {n} = x{n}[i]" for n in self.DTYPES), *(line for _ in range(2) for line in self.block(None, 1, False, budget)),
                *(f"    y{n}[i] = {n}" for n in self.DTYPES)]
        text = "\n    ".join(body)
        return Program(f"{IMPORTS}@intent.kernel\ndef kernel({signature}):\n    {text}\n", parameters, unordered=True)
