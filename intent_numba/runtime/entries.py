"""Which calls deserve machine code? Forms of call that repeat: a count of positional arguments, keyword names, Constexpr objects.

Each gets an entry of its own (stub.py). Entries are chained, newest first: one that does not recognise a call hands it to
the next, and the last to the Python path.
"""
from __future__ import annotations

from dataclasses import dataclass

from .driver import Build
from .interface import Parameter

_REPEATED = 6
"""Calls of one form before it gets its entry: a program that calls once does not pay for it."""
_MOST = 8
"""Entries of one callable; further forms stay with Python."""


@dataclass(frozen=True)
class Form:
    """``sources``: where each runtime parameter is found, a position or a keyword. ``fixed``: the same for the Constexprs
    passed, with the very object; an equal object of another identity goes to the next entry."""
    positional: int
    keywords: tuple[str, ...]
    sources: tuple[tuple[Parameter, int | str], ...]
    fixed: tuple[tuple[int | str, object], ...]

    @staticmethod
    def of(params, args: tuple, kwargs: dict) -> "Form | None":
        """The form of a call that Python accepted; None when it leaves a runtime parameter to its default."""
        by_position = [p.name for p in params if not p.keyword_only]
        place: dict = {**dict(zip(by_position, range(len(args)))), **{name: name for name in kwargs}}
        if any(p.name not in place for p in params if p.kind != "constexpr"):
            return None
        sources = tuple((p, place[p.name]) for p in params if p.kind != "constexpr")
        fixed = tuple((at, args[at] if isinstance(at, int) else kwargs[at])
                      for at in (place.get(p.name) for p in params if p.kind == "constexpr") if at is not None)
        return Form(len(args), tuple(kwargs), sources, fixed)

    def key(self) -> tuple:
        return (self.positional, self.keywords, *(id(obj) for _, obj in self.fixed))


class Entries:
    """The native entries of one callable object, whose class carries the newest as ``__call__``."""

    def __init__(self, owner, params):
        self.owner, self.params = owner, params
        self.head = None                                  # a builtin, or None while every call goes to Python
        self._base = type(owner)
        self._counts: dict = {}
        self._made = 0

    def launched(self, build: Build, args: tuple, kwargs: dict) -> None:
        """The Python path has served this call: count its form, and make an entry for one that repeats."""
        if self._made == _MOST:
            return
        form = Form.of(self.params, args, kwargs)
        if form is None:
            return
        key = (id(build), form.key())
        count = self._counts[key] = self._counts.get(key, 0) + 1
        if count == _REPEATED:
            self._add(build, form)
        elif len(self._counts) > 64:                      # Constexpr objects that are new each time
            self._counts.clear()

    def _add(self, build: Build, form: Form) -> None:
        from . import stub
        entry = stub.make(build, form, self.head or self._base.__call__.__get__(self.owner))
        if entry is None:
            self._made = _MOST
            return
        self.head = entry
        self._made += 1
        use_builtin(self.owner, self._base, entry)


def use_builtin(obj, cls: type, builtin) -> None:
    """Make ``obj(...)`` call ``builtin`` directly. A builtin in a class is no method, so the call skips Python altogether."""
    obj.__class__ = type(cls.__name__, (cls,), {"__call__": builtin, "__module__": cls.__module__, "__doc__": cls.__doc__})
