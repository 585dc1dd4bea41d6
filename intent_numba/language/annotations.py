"""Parameter annotations: ``I.In[I.f32, ("M", "N")]``, ``I.Constexpr[bool]``, ``I.Enum``. Spec: 002 section 2, SUPPLEMENT 2."""
from __future__ import annotations

import enum
from dataclasses import dataclass

from ..errors import IntentShapeError, IntentTypeError
from .dtypes import DType, dtype_hint


@dataclass(frozen=True)
class Constraints:
    """Relations of a view's memory: views of one ``alias`` group share their base allocation; a ``noalias`` view overlaps no
    other; ``strides`` in elements: None is free, an integer exact, a name shared between views."""
    alias: str | None = None
    noalias: bool = False
    strides: tuple | None = None


def constraints(*, alias: str | None = None, noalias: bool = False, strides=None) -> Constraints:
    """The optional third item of a view annotation. Raises IntentShapeError when alias and noalias are both given."""
    if alias is not None and noalias:
        raise IntentShapeError("a view cannot be in an alias group and noalias at once")
    return Constraints(alias, bool(noalias), None if strides is None else tuple(strides))


@dataclass(frozen=True)
class ViewAnnotation:
    """``shape`` holds names (equal names: equal extents) and non-negative integers (exact extents)."""
    access: str
    dtype: DType
    shape: tuple
    constraints: Constraints = Constraints()

    def __repr__(self):
        return f"I.{dict(zip(('in', 'out', 'inout'), ('In', 'Out', 'InOut')))[self.access]}[{self.dtype!r}, {self.shape!r}]"


class _ViewKind:
    """Subscribe with (dtype, shape) or (dtype, shape, constraints)."""

    def __init__(self, access: str, name: str):
        self.access, self.name = access, name

    def __repr__(self):
        return f"I.{self.name}"

    def __getitem__(self, item) -> ViewAnnotation:
        if not isinstance(item, tuple) or len(item) not in (2, 3):
            raise IntentTypeError(f"I.{self.name}[dtype, shape] expected, with an optional I.constraints(...)")
        dt, shape = item[:2]
        if not isinstance(dt, DType):
            hint = dtype_hint(dt)
            raise IntentTypeError(f"I.{self.name}: a dtype such as I.f32 expected first, got {dt!r}" + (f"; {hint}" if hint else ""))
        if not isinstance(shape, tuple):
            raise IntentTypeError(f'I.{self.name}: the shape is a tuple such as ("M", "N") or (), got {shape!r}')
        for e in shape:
            if isinstance(e, bool) or not isinstance(e, (str, int)) or (isinstance(e, str) and not e.isidentifier()):
                raise IntentTypeError(f"I.{self.name}: a shape holds names and non-negative integers, got {e!r}")
            if isinstance(e, int) and e < 0:
                raise IntentShapeError(f"I.{self.name}: a shape extent cannot be negative, got {e}")
        extra = item[2] if len(item) == 3 else Constraints()
        if not isinstance(extra, Constraints):
            raise IntentTypeError(f"I.{self.name}: the third item is I.constraints(...), got {extra!r}")
        if extra.strides is not None and len(extra.strides) != len(shape):
            raise IntentShapeError(f"I.{self.name}: {len(extra.strides)} strides for rank {len(shape)}")
        return ViewAnnotation(self.access, dt, shape, extra)


In, Out, InOut = _ViewKind("in", "In"), _ViewKind("out", "Out"), _ViewKind("inout", "InOut")


@dataclass(frozen=True)
class ConstexprAnnotation:
    """A compile-time parameter: part of the specialization key, never of the runtime interface."""
    type: type

    def __repr__(self):
        return f"I.Constexpr[{self.type.__name__}]"


class _ConstexprKind:
    def __repr__(self):
        return "I.Constexpr"

    def __getitem__(self, item) -> ConstexprAnnotation:
        if item in (int, float, bool) or (isinstance(item, type) and issubclass(item, Enum)):
            return ConstexprAnnotation(item)
        raise IntentTypeError(f"I.Constexpr[int | float | bool | an I.Enum type] expected, got {item!r}")


Constexpr = _ConstexprKind()


class _EnumMeta(enum.EnumMeta):
    def __new__(meta, name, bases, namespace, **kwargs):
        cls = super().__new__(meta, name, bases, namespace, **kwargs)
        if any(isinstance(b, _EnumMeta) for b in bases):
            members: dict = dict(cls.__members__)
            if not members:
                raise IntentTypeError(f"enum {name}: at least one member is needed")
            if len(set(members)) != len(list(cls)):
                twins = [n for n, m in members.items() if m.name != n]
                raise IntentTypeError(f"enum {name}: values must be unique; {', '.join(twins)} repeat another member's value")
        return cls


class Enum(enum.Enum, metaclass=_EnumMeta):
    """A closed, non-empty set of named compile-time values. Members are compared with == and != within one type; they take no
    arithmetic, cast or truth test in a kernel. Duplicate values raise IntentTypeError. Spec: 002 section 2, decision 41."""
