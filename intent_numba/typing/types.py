"""What Numba's type inference knows of a value: dtype, rank, access, product schema, or a compile-time value.

Extents are absent: shapes exist only in KIR. ``Lit < Weak < a dtype`` is the order in which literals merge.
"""
from __future__ import annotations

from types import ModuleType

from numba.core import types


class IntentType(types.Type):
    """Fields are the identity of a type."""
    fields: tuple[str, ...] = ()

    def __init__(self, *values):
        for name, value in zip(self.fields, values):
            setattr(self, name, value)
        super().__init__(f"{type(self).__name__}({', '.join(map(repr, values))})")

    @property
    def key(self):
        return tuple(getattr(self, f) for f in self.fields)


class Scalar(IntentType):
    """A run-time scalar."""
    fields = ("dt",)
    rank = 0

    def __str__(self):
        return self.dt


class Tensor(IntentType):
    """An immutable tensor; rank zero differs from a scalar."""
    fields = ("dt", "rank")

    def __str__(self):
        return f"{self.dt} tensor of rank {self.rank}"


class View(IntentType):
    """A parameter's external memory."""
    fields = ("dt", "rank", "access")

    def __str__(self):
        return f"{self.dt} view of rank {self.rank}"


class Buffer(IntentType):
    """Kernel-local mutable memory."""
    fields = ("dt", "rank")

    def __str__(self):
        return f"{self.dt} buffer of rank {self.rank}"


class Lit(IntentType):
    """A literal: its value is known and it takes the dtype it meets. Strings stand for option names only."""
    fields = ("value",)
    rank = 0

    @property
    def key(self):
        return type(self.value).__name__, repr(self.value)

    def __str__(self):
        return f"the literal {self.value!r}"


class NamedFloat(IntentType):
    """A float literal bound to a name: f64 at once. The value is kept for the error message alone."""
    fields = ("value",)
    rank = 0
    dt = "f64"

    @property
    def key(self):
        return repr(self.value)

    def __str__(self):
        return "f64"


class MergedFloat(NamedFloat):
    """Float literals that control flow merged: f64, unless a dtype of the same merge claims them."""


class Weak(IntentType):
    """A run-time integer that came from literals only: 64 bits, signed; index to index and i64 to i64. ``value`` is the least
    of its literals, for messages."""
    fields = ("value",)
    rank = 0

    def __str__(self):
        return "weak integer"


class WeakFloat(IntentType):
    """A float that literals alone made, by control flow or a function: it takes the float dtype it meets, and is ``dt`` where it meets
    none. Only policies with weak floats have it."""
    rank = 0
    dt = "f32"

    def __str__(self):
        return "weak float"


class Domain(IntentType):
    """``kind``: domain (ordered), parallel, product (parallel over several), enumerate. ``rank`` counts the coordinates."""
    fields = ("kind", "rank")

    def __str__(self):
        return {"domain": "domain", "enumerate": "enumeration"}.get(self.kind, "parallel domain")


class DomainIter(IntentType):
    fields = ("kind", "rank")


class Ragged(IntentType):
    """``I.ragged(...)``; mapped says that it has indices."""
    fields = ("mapped",)

    def __str__(self):
        return "ragged groups"


class Group(IntentType):
    """``r[i]`` of a ragged with indices."""

    def __str__(self):
        return "ragged group"


class Slice(IntentType):
    """``a:b`` inside an index; bounds are types, NoneT where absent."""
    fields = ("start", "stop", "step")

    def __str__(self):
        return "slice"


class NoneT(IntentType):
    def __str__(self):
        return "None"


class NothingT(NoneT):
    """What a statement such as I.store gives: nothing that could be used."""


class EllipsisT(IntentType):
    def __str__(self):
        return "..."


class DTypeT(IntentType):
    """A dtype used as a value."""
    fields = ("dt",)

    def __str__(self):
        return f"the dtype I.{self.dt}"


class EnumT(IntentType):
    """An enum member."""
    fields = ("member",)

    @property
    def key(self):
        return type(self.member), self.member.name

    def __str__(self):
        return str(self.member)


class Static(IntentType):
    """Any other compile-time object: module, namespace, enum class, format."""
    fields = ("obj",)

    @property
    def key(self):
        return id(self.obj)

    def __str__(self):
        name = getattr(self.obj, "__name__", None)
        kind = "module" if isinstance(self.obj, ModuleType) else "class" if isinstance(self.obj, type) else None
        return f"the {kind} {name}" if kind else repr(self.obj)


class Record(IntentType):
    """Named product: pairs (field, type) in order."""
    fields = ("items",)

    def get(self, name):
        return dict(self.items).get(name)

    def __str__(self):
        return "record(" + ", ".join(f"{n}: {t}" for n, t in self.items) + ")"


NONE, NOTHING = NoneT(), NothingT()
WEAK_FLOAT = WeakFloat()
BOOL = Scalar("bool")
INDEX = Scalar("index")


def shaped(dt: str, rank: int) -> IntentType:
    """A scalar for rank zero, else a tensor: the rule of reads and full reductions."""
    return Tensor(dt, rank) if rank else Scalar(dt)


def is_tuple(t) -> bool:
    return isinstance(t, types.BaseTuple)


def items_of(t) -> tuple:
    """Component types of a tuple or record."""
    return tuple(t.types) if is_tuple(t) else tuple(x for _, x in t.items)


def product_of(like, parts):
    """A product shaped like ``like`` with other component types."""
    if isinstance(like, Record):
        return Record(tuple((n, p) for (n, _), p in zip(like.items, parts)))
    return types.Tuple(tuple(parts))


def is_product(t) -> bool:
    return is_tuple(t) or isinstance(t, Record)


def dtype_of(t) -> str | None:
    """The dtype of a run-time value, None for anything else (weak integers and literals included)."""
    return t.dt if isinstance(t, (Scalar, Tensor, NamedFloat)) else None


def article(t) -> str:
    """``a bool tensor of rank 1``, ``an f32 view of rank 2``."""
    text = describe(t)
    return f"an {text}" if text[:1] in "aeio" or text[:2] in ("f1", "f3", "f6", "f8") else f"a {text}"


def describe(t) -> str:
    """A type as an author would name it."""
    if is_tuple(t):
        return "(" + ", ".join(map(describe, t.types)) + ("," if len(t.types) == 1 else "") + ")"
    if isinstance(t, types.NoneType):
        return "None"
    return str(t)
