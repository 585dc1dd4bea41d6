"""Reads the text that ``print_program`` writes: ``parse_program(print_program(p))`` prints the same again."""
from __future__ import annotations

import re

from ..kir.types import Extent
from .program import (Axis, Combine, Contract, For, Free, Graph, If, Loop, Node, Param, Phase, Program, Reduce, Resource, Scan,
                      Stage, Store, Update)

_NUMBER = re.compile(r"-?(?:\d+\.?\d*(?:e[+-]?\d+)?|inf|nan)(?![\w.])")
_NAME = re.compile(r"%?[A-Za-z_]\w*|%\w+")


class ParseError(ValueError):
    """The text is not a task program."""


class _Reader:
    def __init__(self, text: str):
        self.text, self.i, self.g = text, 0, Graph()
        self.lets: dict[str, Node] = {}

    # -- characters
    def skip(self):
        while self.i < len(self.text) and self.text[self.i].isspace():
            self.i += 1

    def at(self, s: str) -> bool:
        self.skip()
        return self.text.startswith(s, self.i)

    def word_at(self, s: str) -> bool:
        return self.at(s) and not re.match(r"\w", self.text[self.i + len(s):self.i + len(s) + 1])

    def take(self, s: str) -> bool:
        if self.at(s):
            self.i += len(s)
            return True
        return False

    def word(self, s: str) -> bool:
        if self.word_at(s):
            self.i += len(s)
            return True
        return False

    def need(self, s: str):
        if not self.take(s):
            raise ParseError(f"line {self.text.count(chr(10), 0, self.i) + 1}: {s!r} expected at {self.text[self.i:self.i + 30]!r}")

    def match(self, pattern, what: str) -> str:
        self.skip()
        m = pattern.match(self.text, self.i)
        if not m:
            raise ParseError(f"line {self.text.count(chr(10), 0, self.i) + 1}: {what} expected at {self.text[self.i:self.i + 30]!r}")
        self.i = m.end()
        return m[0]

    def name(self) -> str:
        return self.match(_NAME, "a name")

    def until(self, stops: str) -> str:
        self.skip()
        j = self.i
        while self.text[j] not in stops:
            j += 1
        out, self.i = self.text[self.i:j].strip(), j
        return out

    def several(self, item, close: str) -> tuple:
        out = []
        while not self.take(close):
            out.append(item())
            self.take(",")
        return tuple(out)

    def comma(self, item) -> tuple:
        out = [item()]
        while self.take(","):
            out.append(item())
        return tuple(out)

    # -- pieces
    def extent(self) -> Extent:
        return Extent.parse(self.until(",)]{\n"))

    def axis(self) -> Axis:
        n = self.name()
        self.need(":")
        return Axis(n, self.extent())

    def dt(self) -> str:
        self.need(":")
        return self.name()

    def node(self) -> Node:
        self.skip()
        if self.text[self.i].isdigit() or self.text[self.i] == "-" or self.word_at("inf") or self.word_at("nan"):
            t = self.match(_NUMBER, "a number")
            v = float(t) if not re.fullmatch(r"-?\d+", t) else int(t)
            return self.g("const", (), v, self.dt())
        for t, v in (("True", True), ("False", False)):
            if self.word(t):
                return self.g("const", (), v, self.dt())
        if self.word("call"):
            fn = self.until("(")
            self.need("(")
            args = self.several(self.node, ")")
            return self.g("call", args, fn, self.dt())
        n = self.name()
        if self.take("["):
            args = []
            while not self.take("]"):
                if self.word("if"):
                    valid = self.node()
                    if not self.word("else"):
                        raise ParseError("else expected")
                    fill = self.node()
                    self.need("]")
                    return self.g("gload", (valid, fill, *args), n, self.dt())
                args.append(self.node())
                self.take(",")
            return self.g("load", args, n, self.dt())
        if self.take("("):
            if n == "extent":
                e = Extent.parse(self.until(")"))
                self.need(")")
                return self.g("extent", (), e)
            if n == "param":
                p = self.name()
                self.need(")")
                return self.g("param", (), p, self.dt())
            if n == "hole":
                p = int(self.match(_NUMBER, "a number"))
                self.need(")")
                return self.g("hole", (), p, self.dt())
            args, attrs = [], []
            while not self.take(")"):
                flag = next((f for f in ("approximate", "ftz") if self.word(f)), None)
                if flag:
                    attrs.append((flag, True))
                else:
                    args.append(self.node())
                self.take(",")
            return self.g(n, args, frozenset(attrs) or None, self.dt())
        return self.lets.get(n) or self.g("axis", (), n)

    def place(self):
        names = self.comma(self.name)
        self.need("[")
        return names, self.several(self.node, "]")

    def paren(self, item) -> tuple:
        self.need("(")
        return self.several(item, ")")

    def optional_combine(self):
        ids = self.paren(self.node) if self.word("identity") else ()
        combine = None
        if self.word("combine"):
            self.need("(")
            left = self.several(self.node, ";")
            right = self.several(self.node, "->")
            combine = Combine(left, right, self.several(self.node, ")"))
        return ids, combine

    def sink(self):
        if self.word("store"):
            (r,), coords = self.place()
            self.need("=")
            value = self.node()
            return Store(r, coords, value, self.node() if self.word("where") else None)
        if self.take("update."):
            return self.update()
        if self.take("reduce."):
            kind, form = self.until(" ").split(".")
            names, coords = self.place()
            self.need("over")
            axis = self.name()
            self.need("of")
            values = self.paren(self.node)
            return Reduce(names, coords, axis, kind, form, values, *self.optional_combine())
        if self.take("scan."):
            kind, form = self.until(" ").split(".")
            inclusive = self.word("inclusive")
            if not inclusive:
                self.need("exclusive")
            reverse = self.word("reverse")
            names, coords = self.place()
            self.need("over")
            axis = self.name()
            self.need("of")
            values = self.paren(self.node)
            return Scan(names, coords, axis, kind, form, values, inclusive, reverse, *self.optional_combine())
        self.need("contract")
        (t,), coords = self.place()
        self.need("over")
        axes = self.comma(self.name)
        self.need("of")
        a = self.node()
        self.need("*")
        b = self.node()
        self.need("m")
        m = self.paren(self.name)
        self.need("n")
        n = self.paren(self.name)
        batch = self.paren(self.name) if self.word("batch") else ()
        keep = not self.word("dropped")
        epilogue = []
        while self.word("epilogue"):
            epilogue.append(self.sink())
        return Contract(t, coords, axes, a, b, m, n, batch, tuple(epilogue), keep)

    def update(self) -> Update:
        kind, order = self.until(" ").split(".")
        ascending = self.word("ascending")
        (r,), at = self.place()
        self.need("with")
        values = self.paren(self.node)
        valid = self.node() if self.word("where") else None
        _, combine = self.optional_combine()
        found, coords = {}, ()
        for word in ("old", "success"):
            if self.word(word):
                (found[word],), coords = self.place()
        return Update(r, at, kind, None if order == "alone" else order, values, valid, ascending, combine, found.get("old"),
                      found.get("success"), coords)

    def resource(self) -> Resource | None:
        for kind in ("cell", "workspace", "scratch"):
            if self.word(kind):
                n = self.name()
                dt = self.dt()
                if kind == "cell":
                    return Resource(n, kind, dt)
                self.need("[")
                shape = self.several(self.extent, "]")
                axes = self.paren(self.name) if self.word("tasks") else ()
                why = self.until("\n") if self.take(";") else ""
                return Resource(n, kind, dt, shape, axes, why)
        return None

    def block(self) -> list:
        self.need("{")
        out = []
        while not self.take("}"):
            out.append(self.statement())
        return out

    def statement(self):
        if self.word("phase"):
            loops = self.paren(self.axis)
            self.lets = {}
            while self.word("let"):
                name = self.name()
                self.need("=")
                self.lets[name] = self.node()
            sinks = []
            while any(self.at(w) for w in ("store ", "reduce.", "scan.", "contract ", "update.")):
                sinks.append(self.sink())
            return Phase(loops, sinks)
        if self.word("for"):
            var = self.name()
            self.need("from")
            begin = self.node()
            self.need("step")
            step = self.node()
            self.need("times")
            text = self.until("{")
            stop = None
            if " until " in text:
                text, stop = text.split(" until ")
            return For(var, begin, step, Extent.parse(text.strip()), self.block(), stop and stop.strip())
        if self.word("loop"):
            self.need("while")
            return Loop(self.name(), self.block())
        if self.word("if"):
            cond = self.node()
            then = self.block()
            self.need("else")
            return If(cond, then, self.block())
        if self.word("free"):
            return Free(self.name())
        self.need("stage")
        name = self.name()
        self.need("tasks")
        tasks = self.paren(self.axis)
        kind = self.name()
        self.need("cost=")
        cost = int(self.match(_NUMBER, "a number"))
        self.need("{")
        resources = []
        while (r := self.resource()) is not None:
            resources.append(r)
        body = []
        while not self.take("}"):
            body.append(self.statement())
        return Stage(name, tasks, body, resources, kind, cost=cost)

    def param(self) -> Param:
        n = self.name()
        dt = self.dt()
        if not self.take("["):
            return Param(n, "scalar", dt)
        shape = self.several(self.extent, "]")
        return Param(n, "view", dt, shape, self.name())

    def program(self) -> Program:
        self.need("program")
        name = self.name()
        params = list(self.paren(self.param))
        self.need("{")
        resources = []
        while (r := self.resource()) is not None:
            resources.append(r)
        body, pairs = [], set()
        while not self.take("}"):
            if self.word("inplace"):
                pairs.add((self.name(), self.name()))
            else:
                body.append(self.statement())
        symbols: dict = {}
        for p in params:
            for i, e in enumerate(p.shape):
                if e.symbol is not None:
                    symbols.setdefault(e.symbol, (p.name, i))
        return Program(name, params, symbols, resources, body, self.g, inplace=frozenset(pairs))


def parse_program(text: str) -> Program:
    """The program a text describes; raises ParseError. Externs, bounds and read/write summaries are not part of the text."""
    return _Reader(text).program()


__all__ = ["ParseError", "parse_program"]
