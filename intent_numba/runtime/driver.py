"""From a Python function to code that can be launched: front end, lowering, code generation, or one read of the cache.

A ``Build`` is one specialisation (Constexpr values, policy, options, target) of one kernel; it makes a ``Compiled`` for each
set of view pairs that must keep program order. Nothing but Intent's own errors leaves this file.
"""
from __future__ import annotations

import os
import re
import uuid
from dataclasses import dataclass, field
from typing import Any

from .. import errors
from ..kir.ir import Kernel, walk
from ..kir.ops import OVERFLOW_MESSAGE
from ..kir.types import View
from . import cache, fingerprint, targets
from .binding import Facts
from .interface import Interface
from .options import CompileOptions

SUPPORTED_POLICIES = ("strict", "range_preserving", "checked")

_MOST_PLACES = 6
"""Operations that an error lists when it cannot know which one it was."""


@dataclass(eq=False)
class Compiled:
    """Code for one aliasing class. ``origin`` says where it came from: "compiled" or "cache"."""
    symbol: str
    code: Any
    facts: Facts
    kir: str
    origin: str


@dataclass(eq=False)
class Build:
    """What is compiled, and what came of it so far."""
    pyfunc: object
    interface: Interface
    constexprs: tuple
    policy: str
    options: CompileOptions
    target: str
    variants: dict = field(default_factory=dict)
    _kernel: Kernel | None = None
    _key: str | None = None
    _rehearsed: Kernel | None = None

    @property
    def name(self) -> str:
        return self.pyfunc.__name__

    def compiled(self, alias: frozenset = frozenset()) -> Compiled:
        """The code for a set of overlapping pairs; compiled or loaded on first use."""
        found = self.variants.get(alias)
        if found is None:
            with _compiler_lock():
                found = self.variants.get(alias)
                if found is None:
                    found = self.variants[alias] = self._make(alias)
        return found

    def kernel(self) -> Kernel:
        """The KIR. A specialisation that came from the cache reads it from the text kept there, since captured values are
        those of the first compilation."""
        if self._kernel is None:
            with _compiler_lock(), _own_errors(self):
                base = self.variants.get(frozenset())
                self._kernel = _parse(base.kir) if base is not None else self._front_end()
        return self._kernel

    def rehearsed(self) -> Kernel:
        """The KIR with positions and with checks of the author's words."""
        if self._rehearsed is None:
            with _compiler_lock(), _own_errors(self):
                self._rehearsed = self._front_end(obligations=True)
        return self._rehearsed

    def program(self, alias: frozenset = frozenset()):
        """The task program."""
        with _compiler_lock(), _own_errors(self):
            from ..lowering import lower
            return lower(self.kernel(), alias)

    def overflow(self) -> str:
        """The text of an integer overflow of this kernel, with the operations that can raise it. They are found by the front end, since
        the program text in the cache has no positions."""
        message = f"{self.name}: {OVERFLOW_MESSAGE}"
        try:
            checks = dict.fromkeys(op.loc for op in walk(self._front_end().body) if op.kind == "check" and op.loc is not None)
        except errors.CompileError:
            checks = {}
        if len(checks) == 1:
            return errors.diagnostic(*checks, message).render()
        return errors.diagnostic(None, message, notes=tuple((loc, "it may be this one") for loc in list(checks)[:_MOST_PLACES])).render()

    def generate(self, alias: frozenset = frozenset()) -> Compiled:
        """Code compiled here and now, whatever the cache holds; under a symbol of its own."""
        base = self.compiled(alias)
        with _compiler_lock():
            return self._compile(None, base.symbol + "_linked", alias)

    def _front_end(self, obligations: bool = False) -> Kernel:
        from ..frontend import build_kernel
        values = dict(zip((p.name for p in self.interface.constexprs), self.constexprs))
        return build_kernel(self.pyfunc, values, self.policy, obligations)

    def _make(self, alias: frozenset) -> Compiled:
        _supported(self)
        if not self.variants:
            target = (self.target, *targets.module(self.target).fingerprint())
            self._key = fingerprint.kernel_key(self.pyfunc, self.interface, self.constexprs, self.policy, self.options, target)
        key = fingerprint.variant_key(self._key, alias)
        symbol = f"intent_{_identifier(self.name)}_{(key or uuid.uuid4().hex)[:24]}"
        return self._load(key, symbol) or self._compile(key, symbol, alias)

    def _load(self, key: str | None, symbol: str) -> Compiled | None:
        entry = cache.load(key) if key is not None else None
        if entry is None:
            return None
        try:
            code = targets.module(self.target).load_object(entry.code, symbol)
            header = entry.header
            facts = Facts(frozenset(map(frozenset, header["inplace"])), frozenset(header["plain_writes"]))
            return Compiled(symbol, code, facts, header["kir"], "cache")
        except Exception:                                       # whatever it is, compiling afresh is right
            cache.discard(key)
            return None

    def _compile(self, key: str | None, symbol: str, alias: frozenset) -> Compiled:
        kernel = self.kernel()
        program = self.program(alias)
        with _own_errors(self):
            from ..kir.text import print_kernel
            code = targets.module(self.target).compile_program(program, symbol)
            facts = Facts(frozenset(map(frozenset, program.inplace)), plain_writes(kernel))
            compiled = Compiled(symbol, code, facts, print_kernel(kernel), "compiled")
        if key is not None and not kernel.externs:
            header = {"inplace": sorted(map(sorted, facts.inplace)), "plain_writes": sorted(facts.plain_writes),
                      "kir": compiled.kir, "name": self.name, "target": self.target}
            cache.store(key, cache.Entry(header, code.object_code()))
        return compiled


def plain_writes(kernel: Kernel) -> frozenset:
    """Views that an ordinary store writes: such a view's elements must be distinct memory."""
    return frozenset(op.args[0].name for op in walk(kernel.body) if op.kind == "write" and isinstance(op.args[0].type, View))


def _supported(build: Build) -> None:
    if build.policy not in SUPPORTED_POLICIES:
        raise _unsupported(build, f"kernel {build.name}: policy {build.policy!r} is not available")


def _unsupported(build: Build, message: str, hint: str = "") -> errors.UnsupportedError:
    from ..kir.ir import Loc
    code = build.pyfunc.__code__
    return errors.UnsupportedError(errors.diagnostic(Loc(code.co_filename, code.co_firstlineno), message, hint))


def _parse(text: str) -> Kernel:
    from ..kir.text import parse_kernel
    return parse_kernel(text)


def _identifier(name: str) -> str:
    return re.sub(r"\W", "_", name, flags=re.ASCII)


def _compiler_lock():
    """Numba's own lock: a kernel may be compiled while Numba compiles its caller, so a second lock could deadlock."""
    from numba.core.compiler_lock import global_compiler_lock
    return global_compiler_lock


class _own_errors:
    """Turns what no user should meet into UnsupportedError at the kernel's first line; INTENT_DEBUG=1 lets it through."""

    def __init__(self, build: Build):
        self.build = build

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if not isinstance(error, Exception) or isinstance(error, (errors.IntentError, MemoryError)):
            return False
        if os.environ.get("INTENT_DEBUG") == "1":
            return False
        message = f"kernel {self.build.name} is beyond this compiler: its code generation stopped"
        raise _unsupported(self.build, message, "set INTENT_DEBUG=1 to see where") from None
