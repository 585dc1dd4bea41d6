"""The checks of a call as LLVM text: equal extents, stride constraints, distinct elements, disjoint memory.

Two entries are built from them: the C-API stub of a Python call (stub.py) and the entry that ``@njit`` code calls (njit.py).
They differ in what a failed check leads to: ``failure(kind, *views)`` names the label.
"""
from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from ..kir.types import BITS
from .interface import Parameter


def pointer(address: int) -> str:
    """An address of this process as a constant."""
    return f"inttoptr (i64 {address} to ptr)"


@dataclass(eq=False)
class ViewText:
    """One view: its parameter and the SSA names of its address, extents and strides in bytes. ``low`` and ``high`` bound
    its bytes once ``Checks.byte_range`` has run."""
    param: Parameter
    data: str
    extents: list[str]
    strides: list[str]
    low: str = ""
    high: str = ""

    @property
    def size(self) -> int:
        return BITS[self.param.dt] // 8


@dataclass(eq=False)
class Text:
    """A function body under construction."""
    lines: list[str] = field(default_factory=list)
    externals: dict[str, str] = field(default_factory=dict)
    count: int = 0

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def let(self, text: str) -> str:
        self.count += 1
        self.line(f"%v{self.count} = {text}")
        return f"%v{self.count}"

    def label(self) -> str:
        self.count += 1
        return f"b{self.count}"

    def block(self, label: str) -> None:
        self.lines.append(f"{label}:")

    def at(self, base: str, offset: int) -> str:
        return self.let(f"getelementptr i8, ptr {base}, i64 {offset}")

    def load(self, base: str, offset: int, type_: str = "i64") -> str:
        return self.let(f"load {type_}, ptr {self.at(base, offset)}")

    def guard(self, condition: str, failure: str) -> None:
        """Go on if the i1 holds, else to the label ``failure``."""
        ok = self.label()
        self.line(f"br i1 {condition}, label %{ok}, label %{failure}")
        self.block(ok)

    def call(self, type_: str, name: str, *typed_args: str) -> str:
        """Call an external function; returns the SSA name of its result."""
        signature = ", ".join(a.split(" ")[0] for a in typed_args)
        self.externals[name] = f"declare {type_} @{name}({signature})"
        text = f"call {type_} @{name}({', '.join(typed_args)})"
        if type_ == "void":
            self.line(text)
            return ""
        return self.let(text)

    def all(self, conditions) -> str:
        result = "true"
        for c in conditions:
            result = c if result == "true" else self.let(f"and i1 {result}, {c}")
        return result

    def function(self, head: str) -> str:
        """The module: declarations, then ``head`` with the body."""
        return "\n".join([*self.externals.values(), f"{head} {{", "entry:", *self.lines, "}", ""])


class Checks(Text):
    """Relations between the views of a call. ``failure`` is given by the entry that is built."""

    def failure(self, kind: str, *names) -> str:
        raise NotImplementedError

    def element_strides(self, v: ViewText) -> list[str]:
        """Strides in elements; strides that are no whole elements fail."""
        if v.size == 1 or not v.strides:
            return v.strides
        joined = v.strides[0]
        for s in v.strides[1:]:
            joined = self.let(f"or i64 {joined}, {s}")
        self.guard(self.let(f"icmp eq i64 {self.let(f'and i64 {joined}, {v.size - 1}')}, 0"), self.failure("stride", v))
        return [self.let(f"ashr exact i64 {s}, {v.size.bit_length() - 1}") for s in v.strides]

    def same_extents(self, views: list[ViewText]) -> None:
        known: dict[str, str] = {}
        for v in views:
            for axis, (name, extent) in enumerate(zip(v.param.shape, v.extents)):
                expected = known.setdefault(name, extent) if isinstance(name, str) else str(name)
                if expected != extent:
                    self.guard(self.let(f"icmp eq i64 {extent}, {expected}"), self.failure("extent", v, axis))

    def stride_constraints(self, views: list[ViewText]) -> None:
        """Along an axis of at most one member, and in an empty view, a stride moves nothing and may be any number; the stub
        asks for the number all the same."""
        known: dict[str, str] = {}
        for v in views:
            for axis, (wanted, stride) in enumerate(zip(v.param.constraints.strides or (), v.strides)):
                if wanted is None:
                    continue
                elements = self.let(f"sdiv i64 {stride}, {v.size}")
                expected = known.setdefault(wanted, elements) if isinstance(wanted, str) else str(wanted)
                if expected != elements:
                    self.guard(self.let(f"icmp eq i64 {elements}, {expected}"), self.failure("constraint", v, axis))

    def distinct_elements(self, v: ViewText, known: str = "false") -> None:
        """No two coordinates share memory, unless the i1 ``known`` tells so already."""
        if v.strides:
            self.guard(self.distinct(v, known), self.failure("distinct", v))

    def distinct(self, v: ViewText, known: str = "false") -> str:
        """An i1 for that, of a view that has axes: taking them by growing stride, each steps over all that the ones before it span.
        Axes of one member count for nothing."""
        single = [self.let(f"icmp sle i64 {e}, 1") for e in v.extents]
        lengths = [self.let(f"select i1 {one}, i64 {1 << 62}, i64 {self.magnitude(s)}") for one, s in zip(single, v.strides)]
        extents = [self.let(f"select i1 {one}, i64 1, i64 {e}") for one, e in zip(single, v.extents)]
        ok, span = [], str(v.size)
        for extent, length in self.sorted_by_length(list(zip(extents, lengths))):
            ok.append(self.let(f"icmp uge i64 {length}, {span}"))
            reach = self.let(f"mul i64 {self.let(f'sub i64 {extent}, 1')}, {length}")
            span = self.let(f"add i64 {span}, {reach}")
        nested = self.all(ok)
        empty = [self.let(f"icmp eq i64 {e}, 0") for e in v.extents]
        for fine in (known, *empty):
            nested = self.let(f"or i1 {nested}, {fine}")
        return nested

    def sorted_by_length(self, axes: list) -> list:
        """A sorting network over (extent, length) pairs."""
        axes = list(axes)
        for end in range(len(axes) - 1, 0, -1):
            for i in range(end):
                (e, s), (f, t) = axes[i], axes[i + 1]
                swap = self.let(f"icmp ugt i64 {s}, {t}")
                pick = lambda a, b, c=swap: self.let(f"select i1 {c}, i64 {a}, i64 {b}")
                axes[i], axes[i + 1] = (pick(f, e), pick(t, s)), (pick(e, f), pick(s, t))
        return axes

    def magnitude(self, value: str) -> str:
        negative = self.let(f"icmp slt i64 {value}, 0")
        return self.let(f"select i1 {negative}, i64 {self.let(f'sub i64 0, {value}')}, i64 {value}")

    def memory(self, views: list[ViewText], inplace: frozenset) -> list[tuple[ViewText, ViewText, str]]:
        """For every pair that matters (one is written, or noalias) an i1: disjoint, or the same memory used in place."""
        pairs = [(a, b) for a, b in itertools.combinations(views, 2)
                 if a.param.written or b.param.written or a.param.constraints.noalias or b.param.constraints.noalias]
        for v in {id(v): v for pair in pairs for v in pair}.values():
            self.byte_range(v)
        return [(a, b, self.apart(a, b, inplace)) for a, b in pairs]

    def apart(self, a: ViewText, b: ViewText, inplace: frozenset) -> str:
        ok = self.let(f"or i1 {self.let(f'icmp ule i64 {a.high}, {b.low}')}, {self.let(f'icmp ule i64 {b.high}, {a.low}')}")
        noalias = a.param.constraints.noalias or b.param.constraints.noalias
        alike = a.param.dt == b.param.dt and len(a.extents) == len(b.extents)
        if noalias or not alike or frozenset((a.param.name, b.param.name)) not in inplace:
            return ok
        same = [self.let(f"icmp eq i64 {x}, {y}") for x, y in zip([a.data, *a.extents, *a.strides], [b.data, *b.extents, *b.strides])]
        return self.let(f"or i1 {ok}, {self.all(same)}")

    def byte_range(self, v: ViewText) -> None:
        low, high, empty = v.data, self.let(f"add i64 {v.data}, {v.size}"), "false"
        for extent, stride in zip(v.extents, v.strides):
            reach = self.let(f"mul i64 {self.let(f'sub i64 {extent}, 1')}, {stride}")
            down = self.let(f"icmp slt i64 {reach}, 0")
            low = self.let(f"add i64 {low}, {self.let(f'select i1 {down}, i64 {reach}, i64 0')}")
            high = self.let(f"add i64 {high}, {self.let(f'select i1 {down}, i64 0, i64 {reach}')}")
            empty = self.let(f"or i1 {empty}, {self.let(f'icmp eq i64 {extent}, 0')}")
        v.low = self.let(f"select i1 {empty}, i64 {v.data}, i64 {low}")
        v.high = self.let(f"select i1 {empty}, i64 {v.data}, i64 {high}")
