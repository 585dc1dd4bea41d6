"""When are two compilations the same? A hash of everything that can change the code of a kernel.

It covers the bytecode of the kernel and of every helper it reaches, captured values, annotations, Constexpr values,
policy, options, versions and the processor; it reads no source file and needs no front end. Line numbers do not count. A
capture whose content cannot be hashed makes the kernel uncacheable, never wrongly cached.
"""
from __future__ import annotations

import builtins
import dis
import hashlib
import os
import sys
import types
from functools import cache

from ..frontend import segments
from ..language.annotations import Enum
from ..language.dtypes import DType

_PACKAGE = __name__.split(".")[0]
_NOTHING = object()
_CAPTURED = (bool, int, float, str, Enum, DType, tuple, types.ModuleType, type)
"""What a kernel may read from a module or class; anything else there is refused when it is read."""


class Uncacheable(Exception):
    """Something reached has content that cannot be hashed."""


def kernel_key(pyfunc, interface, constexprs, policy: str, options, target: tuple) -> str | None:
    """A hex digest that names this specialisation, or None when the kernel cannot be cached."""
    try:
        reached = _Reached()
        reached.function(pyfunc)
        reached.feed("params", *(f"{p} {p.constraints}" for p in interface.params))
        for value in constexprs:
            reached.value(value)
    except Uncacheable:
        return None
    if segments.chosen() != segments.SEGMENT:
        reached.feed("segment", str(segments.chosen()))
    reached.feed("build", policy, repr(options), *target, environment())
    return reached.digest()


def variant_key(key: str | None, alias) -> str | None:
    """The name of the code for a set of overlapping pairs. It follows from the specialisation's own key, since captured values are those
    of the first compilation, whatever they are by now."""
    if key is None or not alias:
        return key
    pairs = sorted(sorted(pair) for pair in alias)
    return hashlib.sha256(f"{key} {pairs!r}".encode()).hexdigest()


class _Reached:
    """Walks what a function can see, feeding a hash with unambiguous tokens."""

    def __init__(self):
        self._hash = hashlib.sha256()
        self._seen: dict[int, int] = {}
        self._attributes: set[tuple[int, str]] = set()

    def digest(self) -> str:
        return self._hash.hexdigest()

    def feed(self, *tokens: str) -> None:
        for token in tokens:
            data = token.encode("utf-8", "surrogatepass")
            self._hash.update(b"%d:" % len(data) + data)

    def function(self, f) -> None:
        if self._again(f):
            return
        self.feed("function")
        self.code(f.__code__)
        self.value(f.__defaults__)
        self.value(tuple(sorted((f.__kwdefaults__ or {}).items())))
        names = _names(f.__code__)
        for name in sorted(_globals_read(f.__code__)):
            self.feed("global", name)
            self.value(f.__globals__.get(name, getattr(builtins, name, _NOTHING)), names)
        for name, cell in zip(f.__code__.co_freevars, f.__closure__ or ()):
            self.feed("free", name)
            try:
                self.value(cell.cell_contents, names)
            except ValueError:
                raise Uncacheable(name) from None

    def code(self, code) -> None:
        self.feed("code", code.co_name, code.co_code.hex(), repr(code.co_names), repr(code.co_varnames), repr(code.co_freevars),
                  repr(code.co_cellvars), f"{code.co_argcount} {code.co_kwonlyargcount} {code.co_posonlyargcount} {code.co_flags}",
                  getattr(code, "co_exceptiontable", b"").hex())
        for const in code.co_consts:
            self.value(const)

    def value(self, v, names: frozenset = frozenset()) -> None:
        """``names``: attribute names that the code mentions; only these are looked up in modules and classes."""
        match v:
            case None | bool() | int() | str() | bytes() | complex() if not isinstance(v, Enum):
                self.feed(type(v).__name__, repr(v))
            case float():
                self.feed("float", v.hex())
            case Enum():
                self._enum(type(v))
                self.feed("member", v.name)
            case DType():
                self.feed("dtype", v.name)
            case tuple():
                self.feed("tuple", str(len(v)))
                for item in v:
                    self.value(item, names)
            case frozenset():
                self.feed("frozenset", *sorted(map(repr, v)))
            case types.CodeType():
                self.code(v)
            case types.ModuleType():
                self._namespace("module", v.__name__, v, names)
            case type() if issubclass(v, Enum):
                self._enum(v)
            case type():
                self._namespace("class", f"{v.__module__}.{v.__qualname__}", v, names)
            case types.BuiltinFunctionType():
                self.feed("builtin", f"{v.__module__}.{v.__qualname__}")
            case types.FunctionType():
                self._own(v) or self.function(v)
            case _:
                self._object(v)

    def _object(self, v) -> None:
        if v is _NOTHING or v is Ellipsis:
            self.feed("nothing" if v is _NOTHING else "ellipsis")
        elif isinstance(getattr(v, "pyfunc", None), types.FunctionType):
            self.feed(type(v).__name__)
            self.function(v.pyfunc)
        elif not self._own(type(v)) or " at 0x" in repr(v):
            raise Uncacheable(type(v).__name__)
        else:
            self.feed("object", repr(v))

    def _own(self, v) -> bool:
        """Part of this package: the version and content of its files stand in the environment."""
        if v.__module__ is None or v.__module__.split(".")[0] != _PACKAGE:
            return False
        self.feed("own", f"{v.__module__}.{v.__qualname__}")
        return True

    def _enum(self, cls) -> None:
        self.feed("enum", cls.__module__, cls.__qualname__, *(f"{m.name}={m.value!r}" for m in cls))

    def _namespace(self, kind: str, name: str, holder, names) -> None:
        """A module or class: each attribute that some function names, once, whichever function names it."""
        self.feed(kind, name)
        if name.split(".")[0] == _PACKAGE:
            return
        for attribute in sorted(names):
            if (id(holder), attribute) in self._attributes:
                continue
            self._attributes.add((id(holder), attribute))
            v = _attribute(holder, attribute)
            if v is None or isinstance(v, _CAPTURED) or hasattr(v, "pyfunc"):
                self.feed("attribute", name, attribute)
                self.value(v, names)
            elif v is not _NOTHING and type(v).__module__.startswith("numba."):
                raise Uncacheable(attribute)

    def _again(self, v) -> bool:
        first = self._seen.get(id(v))
        if first is None:
            self._seen[id(v)] = len(self._seen)
            return False
        self.feed("again", str(first))
        return True


def _attribute(holder, name: str):
    """What ``holder.name`` is, _NOTHING if nothing. What is computed when it is asked for may differ the next time."""
    for place in holder.__mro__ if isinstance(holder, type) else (holder,):
        if name in vars(place):
            return vars(place)[name]
    if getattr(holder, name, _NOTHING) is not _NOTHING:
        raise Uncacheable(name)
    return _NOTHING


def _nested(code):
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _nested(const)


def _names(code) -> frozenset:
    return frozenset(name for c in _nested(code) for name in c.co_names)


def _globals_read(code) -> set:
    return {i.argval for c in _nested(code) for i in dis.get_instructions(c) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}


@cache
def environment() -> str:
    """Versions and the files of this package; the processor is the target's to tell."""
    import llvmlite
    import numba
    from .. import __version__
    return "|".join((__version__, _package_files(), numba.__version__, llvmlite.__version__, sys.version))


def _package_files() -> str:
    """Size and time of every source file: an edited checkout must not meet its own old code."""
    digest = hashlib.sha256()
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for directory, subdirectories, files in os.walk(root):
        subdirectories.sort()
        for name in sorted(files):
            if name.endswith((".py", ".so")):
                path = os.path.join(directory, name)
                stat = os.stat(path)
                digest.update(f"{path[len(root):]} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()
