"""What does a caller of a kernel have to pass? Parameters in signature order, and the arrangement of a call's arguments.

Everything follows from the signature alone, so that a kernel loaded from the disk cache needs no front end.
"""
from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..errors import CallError
from ..language.annotations import ConstexprAnnotation, Constraints, Enum, ViewAnnotation
from ..language.dtypes import DType
from ..language.signature import REQUIRED

MISSING = object()
"""The default of a parameter that has none."""


@dataclass(frozen=True)
class Parameter:
    """``kind`` view: dtype, shape (names and integers), access, constraints. ``kind`` scalar: dtype. ``kind`` constexpr:
    ``type`` is bool, int, float or an enum type."""
    name: str
    kind: str
    dt: str = ""
    shape: tuple = ()
    access: str = ""
    constraints: Constraints = Constraints()
    type: object = None
    default: object = MISSING
    keyword_only: bool = False

    @property
    def written(self) -> bool:
        return self.access in ("out", "inout")

    def __str__(self):
        match self.kind:
            case "view":
                shape = ", ".join(map(str, self.shape)) + ("," if len(self.shape) == 1 else "")
                return f"{self.name}: {self.access} {self.dt} ({shape})"
            case "scalar":
                return f"{self.name}: {self.dt}"
        return f"{self.name}: constexpr {self.type.__name__}"


@dataclass(frozen=True)
class Interface:
    """The parameters of one kernel, whose name stands in every error message."""
    kernel: str
    params: tuple[Parameter, ...]

    @cached_property
    def by_name(self) -> dict[str, Parameter]:
        return {p.name: p for p in self.params}

    @cached_property
    def runtime(self) -> tuple[Parameter, ...]:
        """Views and scalars: what a compiled kernel takes."""
        return tuple(p for p in self.params if p.kind != "constexpr")

    @cached_property
    def constexprs(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.params if p.kind == "constexpr")

    @cached_property
    def views(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.params if p.kind == "view")

    @cached_property
    def outs(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.params if p.access == "out")

    @cached_property
    def inputs(self) -> tuple[Parameter, ...]:
        """What ``run`` takes: runtime parameters that are not Outs."""
        return tuple(p for p in self.runtime if p.access != "out")

    @cached_property
    def out_shapes(self) -> tuple | None:
        """(name, dtype, shape) of every Out, an extent being an integer or (input view, axis); None if some extent is neither."""
        sources = {}
        for p in self.inputs:
            for axis, extent in enumerate(p.shape):
                sources.setdefault(extent, (p.name, axis))
        if any(isinstance(e, str) and e not in sources for p in self.outs for e in p.shape):
            return None
        return tuple((p.name, p.dt, tuple(e if isinstance(e, int) else sources[e] for e in p.shape)) for p in self.outs)

    @cached_property
    def symbols(self) -> dict[str, tuple[str, int]]:
        """Shape name -> (view, axis) that first mentions it."""
        found: dict = {}
        for p in self.views:
            for axis, extent in enumerate(p.shape):
                if isinstance(extent, str):
                    found.setdefault(extent, (p.name, axis))
        return found

    def error(self, message: str) -> CallError:
        return CallError(f"{self.kernel}: {message}")

    def mismatch(self, param: Parameter, expected: str, came: str) -> CallError:
        return self.error(f"parameter '{param.name}': expected {expected}, got {came}")


def from_signature(name: str, signature) -> Interface:
    """The interface of a kernel whose resolved signature (language.signature) is given."""
    return Interface(name, tuple(map(_parameter, signature.parameters)))


def _parameter(p) -> Parameter:
    default = MISSING if p.default is REQUIRED else p.default
    match p.annotation:
        case ViewAnnotation(access, dtype, shape, constraints):
            return Parameter(p.name, "view", dtype.name, shape, access, constraints, default=default, keyword_only=p.keyword_only)
        case DType(token):
            return Parameter(p.name, "scalar", token, default=default, keyword_only=p.keyword_only)
        case ConstexprAnnotation(type_):
            return Parameter(p.name, "constexpr", type=type_, default=default, keyword_only=p.keyword_only)
    raise AssertionError(f"parameter {p.name} has no Intent annotation")


def arrange(interface: Interface, params, args: tuple, kwargs: dict) -> dict:
    """Parameter name -> argument, as Python would assign them to ``params``. Raises CallError; defaults fill the rest."""
    positional = [p for p in params if not p.keyword_only]
    if len(args) > len(positional):
        names = ", ".join(p.name for p in positional)
        raise interface.error(f"expected at most {len(positional)} positional arguments ({names}), got {len(args)}"
                              + _allocated(interface, params))
    values = {p.name: a for p, a in zip(positional, args)}
    accepted = {p.name for p in params}
    for name, value in kwargs.items():
        if name not in accepted:
            raise interface.error(_unknown(interface, name, params))
        if name in values:
            raise interface.error(f"parameter '{name}': given by position and by keyword" + _allocated(interface, params))
        values[name] = value
    missing = []
    for p in params:
        if p.name not in values:
            if p.default is MISSING:
                missing.append(p)
            else:
                values[p.name] = p.default
    if missing:
        raise interface.error("; ".join(f"parameter '{p.name}': expected {expectation(p)}, got nothing" for p in missing))
    return values


def _allocated(interface: Interface, params) -> str:
    """Which parameters a call that allocates the Outs takes."""
    made = ", ".join(f"'{p.name}'" for p in interface.outs if p not in params)
    return f"; run makes {made} itself and takes {', '.join(p.name for p in params)}" if made else ""


def _unknown(interface: Interface, name: str, params) -> str:
    known = interface.by_name.get(name)
    if known is None:
        return f"no parameter '{name}'; the parameters are {', '.join(p.name for p in params)}"
    if known.kind == "constexpr":
        return f"parameter '{name}': fixed when the artifact was compiled"
    return f"parameter '{name}': allocated by this call, it cannot be passed"


def expectation(p: Parameter) -> str:
    """What a parameter wants, in a phrase."""
    match p.kind:
        case "view":
            article = "a writable" if p.written else "an" if p.dt[0] in "fi" else "a"
            return f"{article} {p.dt} array of rank {len(p.shape)}"
        case "scalar":
            return "a bool" if p.dt == "bool" else f"a number that {p.dt} holds"
    return f"a compile-time {p.type.__name__}"


def split_constexprs(interface: Interface, values: dict) -> tuple[tuple, dict]:
    """Take the Constexprs out of arranged values: (canonical constexpr values in signature order, the others)."""
    fixed = tuple(constexpr(interface, p, values[p.name]) for p in interface.constexprs)
    rest = {name: v for name, v in values.items() if interface.by_name[name].kind != "constexpr"}
    return fixed, rest


def constexpr(interface: Interface, p: Parameter, value):
    """The canonical value of a Constexpr: an exact bool, int, float or member of its enum. Raises CallError."""
    wanted = p.type
    if wanted is bool and isinstance(value, (bool, np.bool_)):
        return bool(value)
    is_bool = isinstance(value, (bool, np.bool_))
    if wanted is int and isinstance(value, (int, np.integer)) and not is_bool:
        return int(value)
    if wanted is float and isinstance(value, (float, int, np.floating, np.integer)) and not is_bool:
        return float(value)
    if issubclass(wanted, Enum) and isinstance(value, wanted):
        return value
    raise interface.mismatch(p, expectation(p), f"{value!r} of type {type(value).__name__}")


def constexpr_key(value) -> tuple:
    """Distinguishes what == confuses: True and 1, 1 and 1.0, the zeros; and equates NaNs."""
    if isinstance(value, float):
        return ("float", "nan" if math.isnan(value) else value.hex())
    if isinstance(value, Enum):
        return ("enum", value)
    return (type(value).__name__, value)
