"""What a name stands for while KIR is being built: KIR values, or things KIR has no value for."""
from __future__ import annotations

from dataclasses import dataclass

from .. import kir
from ..kir import Extent


@dataclass(frozen=True)
class Lit:
    """A literal that has met no dtype yet; ``dt`` is set for a float bound to a name."""
    value: object
    dt: str | None = None


@dataclass(frozen=True)
class Idx:
    """An index scalar that is a polynomial of shape names; it becomes an ``extent`` operation where a value is needed."""
    extent: Extent


@dataclass(eq=False)
class Product:
    """A float product that one source expression has just formed: it may become part of an FMA (decision 17). ``value`` is
    the plain product once someone needed it."""
    a: kir.Value
    b: kir.Value
    type: kir.Scalar | kir.Tensor
    loc: object
    value: kir.Value | None = None


@dataclass(frozen=True, eq=False)
class Deferred:
    """A weak float: the operation ``kind`` on ``args``, literals or weak floats, once a dtype is known. ``kind`` None: an f64 value that
    control flow chose among literals, exact until it is rounded to the dtype."""
    kind: str | None
    args: tuple


@dataclass(frozen=True, eq=False)
class Dom:
    """A domain. ``begin`` and ``step`` are index scalars (front values); ``full`` marks 0 .. n-1 of step one."""
    value: kir.Value
    begin: object
    end: object
    step: object

    @property
    def extent(self) -> Extent:
        return self.value.type.extent


@dataclass(frozen=True, eq=False)
class Iteration:
    """What a for statement iterates: kind domain, parallel, product or enumerate, over domains."""
    kind: str
    domains: tuple


@dataclass(frozen=True, eq=False)
class Rec:
    """A record value."""
    fields: dict


@dataclass(frozen=True, eq=False)
class RaggedValue:
    outer: Dom
    members: Dom
    offsets: object
    indices: object


@dataclass(frozen=True, eq=False)
class GroupValue:
    """One group of a ragged with indices: the subregion and the mapping."""
    region: Dom
    indices: object


@dataclass(frozen=True)
class SliceValue:
    start: object
    stop: object


@dataclass(frozen=True)
class Negated:
    """``not value`` of a bool scalar, not yet an operation."""
    value: kir.Value


class Undefined:
    """Stands where a path leaves a merge variable without a value that anyone reads."""


UNDEFINED = Undefined()
