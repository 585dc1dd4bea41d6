"""KIR: structured SSA of logical operations. It knows no target, no tile and no storage.

The operations and their meaning are listed in ``ops.py``. Products (tuples, records) do not exist here: the front
end flattens them, so an operation may have several results and a region several parameters and yields.
"""
from __future__ import annotations

from dataclasses import dataclass, field

from .types import Type, View


@dataclass(eq=False, frozen=True)
class Value:
    """An SSA value. ``name`` is unique in its kernel; ``%name`` is the extent symbol of an index scalar."""
    name: str
    type: Type

    def __repr__(self):
        return f"%{self.name}"


@dataclass(frozen=True)
class Loc:
    """A source position: lines from 1, columns from 0; col is None where Python keeps none."""
    file: str
    line: int
    col: int | None = None
    end_line: int | None = None
    end_col: int | None = None


@dataclass(eq=False)
class Region:
    params: tuple[Value, ...]
    ops: list["Op"] = field(default_factory=list)
    yields: tuple[Value, ...] = ()


@dataclass(eq=False)
class Op:
    kind: str
    args: tuple[Value, ...] = ()
    attrs: dict = field(default_factory=dict)
    results: tuple[Value, ...] = ()
    regions: tuple[Region, ...] = ()
    loc: Loc | None = None

    @property
    def result(self) -> Value:
        (r,) = self.results
        return r


@dataclass(eq=False)
class Kernel:
    """``params`` are views and scalars in signature order, Constexprs removed. ``externs`` maps a symbol to the
    Numba dispatcher of an ``@njit`` scalar function that ``call`` operations name. ``segments``, for rehearsals: the symbol of the
    extent of a region operation's segment to the coordinate of the loop over them, where the segment begins.
    ``rotated``, for rehearsals: regions of loops that go on with the iterations of the loop around them, which the source has not."""
    name: str
    body: Region
    policy: str = "strict"
    externs: dict = field(default_factory=dict)
    segments: dict = field(default_factory=dict)
    rotated: set = field(default_factory=set)

    @property
    def params(self) -> tuple[Value, ...]:
        return self.body.params

    def symbols(self) -> dict[str, tuple[str, int]]:
        """Shape name -> (view parameter, axis) that first defines it."""
        out: dict = {}
        for p in self.params:
            if isinstance(p.type, View):
                for i, e in enumerate(p.type.shape):
                    if e.symbol is not None:
                        out.setdefault(e.symbol, (p.name, i))
        return out


def walk(region: Region):
    """Every operation, outer before inner."""
    for op in region.ops:
        yield op
        for r in op.regions:
            yield from walk(r)


class Builder:
    """Appends operations to the region that is open."""

    def __init__(self, name: str, params, policy: str = "strict"):
        self.kernel = Kernel(name, Region(tuple(params)), policy)
        self.region = self.kernel.body
        self.loc: Loc | None = None
        self._n = 0

    def fresh(self, type: Type) -> Value:
        v = Value(str(self._n), type)
        self._n += 1
        return v

    def emit(self, kind: str, /, args=(), types=(), regions=(), **attrs) -> tuple[Value, ...]:
        """Append an operation; returns its results."""
        results = tuple(self.fresh(t) for t in types)
        self.region.ops.append(Op(kind, tuple(args), attrs, results, tuple(regions), self.loc))
        return results

    def one(self, kind: str, /, args, type: Type, **attrs) -> Value:
        return self.emit(kind, args, (type,), **attrs)[0]

    def block(self, types=()) -> Region:
        """A new region with fresh parameters, not yet attached."""
        return Region(tuple(self.fresh(t) for t in types))

    def inside(self, region: Region):
        return _Inside(self, region)


class _Inside:
    def __init__(self, b: Builder, region: Region):
        self.b, self.region = b, region

    def __enter__(self):
        self.saved, self.b.region = self.b.region, self.region
        return self.region

    def __exit__(self, *exc):
        self.b.region = self.saved
        return False
