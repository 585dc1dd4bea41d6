"""The object that ``@intent.kernel`` makes, and ``intent.compile``."""
from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from ..errors import CallError, CompileError
from ..language.functions import Helper
from . import targets
from .interface import Interface, arrange, constexpr_key, from_signature, split_constexprs
from .options import CompileOptions, check_policy
from .tracebacks import entry

if TYPE_CHECKING:
    from .artifact import Artifact
    from .entries import Entries

_DEFAULT_OPTIONS = CompileOptions()


class Kernel:
    """One logical kernel computation. Spec: 002 section 1, SUPPLEMENT 8.

    Calling it compiles on first use and takes every parameter, Outs too, in signature order or by keyword; Constexprs are
    part of the specialisation. It pickles by name, like a function, and may be called from ``@numba.njit`` code.
    Raises CompileError when the function is not a legal kernel, CallError when arguments break their annotations.
    """
    __intent_kernel__ = True
    __name__: str
    __qualname__: str

    def __init__(self, pyfunc, policy: str = "strict"):
        functools.update_wrapper(self, pyfunc)
        self.pyfunc = pyfunc
        self.policy = check_policy(policy)
        self._artifacts: dict = {}
        self._entries: Entries | None = None
        self._interface: Interface | None = None
        _settle_annotations(pyfunc)

    @property
    def signature(self):
        """The resolved signature; annotations are evaluated on first use, so they may name what is defined later."""
        from ..language.signature import resolve_signature
        return resolve_signature(self.pyfunc)

    @property
    def interface(self) -> Interface:
        if self._interface is None:
            self._interface = from_signature(self.__name__, self.signature)
        return self._interface

    @entry
    def __call__(self, *args, **kwargs) -> None:
        artifact, rest = self._specialise(self.interface.params, args, kwargs)
        artifact._launch(artifact._bind(rest, None))
        if self._entries is None:
            from .entries import Entries
            self._entries = Entries(self, self.interface.params)
        self._entries.launched(artifact._build, args, kwargs)

    @entry
    def run(self, *args, extents: dict | None = None, **kwargs):
        """Allocate the Outs with zeros, launch, and return them: None, the one array, or a tuple in signature order.

        ``args`` are the other parameters in signature order; ``extents`` gives the shape names that only Outs have.
        """
        artifact, rest = self._specialise([p for p in self.interface.params if p.access != "out"], args, kwargs)
        return artifact._run(rest, extents)

    def _specialise(self, params, args: tuple, kwargs: dict) -> tuple[Artifact, dict]:
        values = arrange(self.interface, params, args, kwargs)
        fixed, rest = split_constexprs(self.interface, values)
        return self._artifact(fixed, _DEFAULT_OPTIONS, targets.following(rest.values())), rest

    def _artifact(self, constexprs: tuple, options: CompileOptions, target: str) -> Artifact:
        key = (*map(constexpr_key, constexprs), options, target)
        artifact = self._artifacts.get(key)
        if artifact is None:
            from .artifact import Artifact                      # the compiler's side loads when something is compiled
            from .driver import Build
            build = Build(self.pyfunc, self.interface, constexprs, self.policy, options, target)
            artifact = self._artifacts.setdefault(key, Artifact(build, self))
        return artifact

    @property
    def _numba_type_(self):
        """Numba asks a value it meets for its type: this is how ``@njit`` code comes to know kernels."""
        from .njit import kernel_type
        return kernel_type(self)

    def __reduce__(self):
        return self.__qualname__

    def __repr__(self):
        return f"<intent kernel {self.__name__}({', '.join(self.pyfunc.__code__.co_varnames[:self.pyfunc.__code__.co_argcount])})>"


def kernel(pyfunc=None, *, policy: str = "strict"):
    """Make a kernel of a function whose parameters carry Intent annotations. ``@intent.kernel`` or
    ``@intent.kernel(policy="strict" | "range_preserving" | "checked")``. Raises InvalidOption for an unknown policy."""
    check_policy(policy)
    if pyfunc is None:
        return functools.partial(kernel, policy=policy)
    return Kernel(_function(pyfunc, "kernel"), policy)


def fn(pyfunc) -> Helper:
    """Make a helper: a typed function that kernels and helpers call, inlined where it is called. It takes its caller's policy;
    its parameters need no annotations. Spec: 002 section 1."""
    return Helper(_function(pyfunc, "fn"))


@entry
def compile(kernel: Kernel, target: str | None = None, constexprs: dict | None = None,
            options: CompileOptions | None = None) -> Artifact:
    """Compile one specialisation now. ``target=None`` is the host; ``constexprs`` maps every Constexpr without a default to
    its value. Raises CallError for a wrong Constexpr, UnsupportedError for an unavailable target, CompileError otherwise."""
    return specialise(kernel, targets.launchable(targets.resolve(target)), constexprs, options)


def specialise(kernel: Kernel, target: str, constexprs: dict | None, options: CompileOptions | None) -> Artifact:
    """The artifact for a target's name as ``targets.resolve`` gives it, whether or not its code can be launched here."""
    if not isinstance(kernel, Kernel):
        raise CallError(f"intent.compile takes a kernel made by @intent.kernel, got {kernel!r}")
    if options is not None and not isinstance(options, CompileOptions):
        raise CallError(f"options is an intent.CompileOptions, got {options!r}")
    if constexprs is not None and not isinstance(constexprs, dict):
        raise CallError(f"constexprs is a dict such as {{'N': 8}}, got {constexprs!r}")
    interface = kernel.interface
    values = arrange(interface, interface.constexprs, (), dict(constexprs or {}))
    fixed, _ = split_constexprs(interface, values)
    return kernel._artifact(fixed, options or _DEFAULT_OPTIONS, target)


def _settle_annotations(pyfunc) -> None:
    """Evaluate string annotations while the function that encloses the kernel still runs: its locals are gone later. What
    cannot be evaluated yet stays a string and is tried again at the first call."""
    if not any(isinstance(a, str) for a in pyfunc.__annotations__.values()):
        return
    from ..language.signature import resolve_signature
    try:
        signature = resolve_signature(pyfunc)
    except CompileError:
        return
    pyfunc.__annotations__.update((p.name, p.annotation) for p in signature.parameters)


def _function(pyfunc, what: str):
    if not hasattr(pyfunc, "__code__"):
        raise CallError(f"@intent.{what} decorates a function, got {pyfunc!r}")
    return pyfunc
