"""A compiled specialisation as its user sees it: call it, let it allocate, prepare a launch, look inside.

The first calls bind arguments in Python. For forms of call that repeat a native entry takes over (entries.py); what it does
not recognise comes back here.
"""
from __future__ import annotations

import numpy as np

from . import binding, launch
from ..errors import IntegerOverflow, InvalidInput
from .arrays import numpy_dtype
from .driver import Build
from .entries import Entries
from .interface import Interface, arrange
from .tracebacks import entry


class Artifact:
    """One kernel with its Constexpr values, options and target. Made by ``intent.compile`` or on a kernel's first call.

    Calling it takes every runtime parameter, Outs included, in signature order or by keyword, and returns None.
    Raises CallError when the arguments break an annotation (and then nothing was written), CompileError when a variant
    for overlapping views cannot be compiled, MemoryError when the workspace cannot be allocated.
    """

    def __init__(self, build: Build, kernel):
        self._build = build
        self._kernel = kernel
        self.interface: Interface = build.interface
        self.__name__ = build.name
        self._entries = Entries(self, build.interface.runtime)
        build.compiled()
        if build.options.checks:
            build.rehearsed()

    @entry
    def __call__(self, *args, **kwargs) -> None:
        self._launch(self._bind(arrange(self.interface, self.interface.runtime, args, kwargs), None))
        self._repeats(args, kwargs)

    @entry
    def run(self, *args, extents: dict | None = None, **kwargs):
        """Allocate the Outs with zeros, launch, and return them: None, the one array, or a tuple in signature order.

        ``extents`` gives the shape names that only Outs have, such as ``{"P": 56}``.
        """
        return self._run(arrange(self.interface, self.interface.inputs, args, kwargs), extents)

    @entry
    def prepare(self, *args, outputs: tuple | None = None, extents: dict | None = None, **kwargs) -> "Prepared":
        """Check and bind arguments once, for any number of launches. ``args`` are the parameters that are not Outs;
        ``outputs`` the Outs in signature order, allocated with zeros if it is None."""
        values = arrange(self.interface, self.interface.inputs, args, kwargs)
        outs = self.interface.outs
        if outputs is not None:
            outputs = tuple(outputs) if isinstance(outputs, (tuple, list)) else (outputs,)
            if len(outputs) != len(outs):
                raise self.interface.error(f"outputs: expected {len(outs)} ({', '.join(p.name for p in outs)}), got {len(outputs)}")
            values.update((p.name, o) for p, o in zip(outs, outputs))
        bound = self._bind(values, extents)
        return Prepared(self, bound, outputs if outputs is not None else tuple(bound.views[p.name] for p in outs))

    @entry
    def interpret(self, *args, **kwargs) -> None:
        """Run the reference interpreter on the same arguments, in place. Raises InvalidInput for an index that leaves its axis and for
        a reshape to another count."""
        from ..reference import run
        bound = self._bind(arrange(self.interface, self.interface.runtime, args, kwargs), None)
        try:
            run(self._build.kernel(), self._values(bound))
        except IndexError as error:
            raise InvalidInput(f"{self.__name__}: {error}") from None
        except IntegerOverflow:
            if self._build.compiled().origin == "compiled":
                raise
            raise IntegerOverflow(self._build.overflow()) from None             # what the cache keeps has no positions

    @entry
    def inspect(self, stage: str) -> str:
        """One form of the program as text: "kir", "task", "numba-ir", on a CPU "llvm" and "asm", for SPIR-V "llvm" and "spirv".
        Raises InvalidOption for another name."""
        from .inspection import inspect
        return inspect(self._build, stage)

    @property
    def extents(self) -> dict[str, tuple[str, int]]:
        """Shape name -> (parameter, axis) that gives its value."""
        return dict(self.interface.symbols)

    @property
    def constexprs(self) -> dict[str, object]:
        """The Constexpr values that this code was made for."""
        return dict(zip((p.name for p in self.interface.constexprs), self._build.constexprs))

    @property
    def options(self):
        return self._build.options

    @property
    def target(self) -> str:
        return self._build.target

    @property
    def _numba_type_(self):
        """Numba asks a value it meets for its type: this is how ``@njit`` code comes to know artifacts."""
        from .njit import kernel_type
        return kernel_type(self)

    def _bind(self, values: dict, extents: dict | None) -> binding.Bound:
        return binding.bind(self.interface, self._build.compiled().facts, values, extents=extents)

    def _entry(self, bound: binding.Bound) -> int:
        return self._build.compiled(bound.ordered).code.address

    def _repeats(self, args: tuple, kwargs: dict) -> None:
        """A call was served here. With checks, every call is."""
        if not self._build.options.checks:
            self._entries.launched(self._build, args, kwargs)

    def _rehearse(self, bound: binding.Bound) -> None:
        """With checks=True: raise InvalidInput for the first obligation that a launch on these arguments breaks. Nothing is written."""
        if self._build.options.checks:
            from ..reference import rehearse
            bound.stage_in()
            rehearse(self._build.rehearsed(), self._values(bound), self._build.options.numerics == "relaxed_normalization")

    def _values(self, bound: binding.Bound) -> list:
        """The arguments as the interpreter takes them."""
        from .scalars import numpy_scalar
        return [bound.views[p.name] if p.kind == "view" else numpy_scalar(p.dt, bound.scalars[p.name]) for p in self.interface.runtime]

    def _launch(self, bound: binding.Bound) -> None:
        self._rehearse(bound)
        launch.run(self._entry(bound), bound, self.__name__, self._build.overflow)

    def _run(self, values: dict, extents: dict | None):
        outs, native = self.interface.outs, self._entries.head
        if native is not None and not extents and self._allocate_outs(values):
            native(*[values[p.name] for p in self.interface.runtime])
            return unpack(tuple([values[p.name] for p in outs]))
        bound = self._bind(values, extents)
        self._launch(bound)
        values.update((p.name, bound.views[p.name]) for p in outs)
        self._repeats(tuple(values[p.name] for p in self.interface.runtime), {})
        return unpack(tuple(bound.views[p.name] for p in outs))

    def _allocate_outs(self, values: dict) -> bool:
        """Add zeroed Outs to ``values``; False where the shapes do not follow plainly from the arguments."""
        plan = self.interface.out_shapes
        if plan is None:
            return False
        try:
            for name, dtype, shape in plan:
                values[name] = np.zeros([e if isinstance(e, int) else values[e[0]].shape[e[1]] for e in shape], numpy_dtype(dtype))
        except (AttributeError, IndexError, TypeError):
            for p in self.interface.outs:
                values.pop(p.name, None)
            return False
        return True

    def __reduce__(self):
        if self._kernel is None:
            raise TypeError(f"the artifact of {self.__name__} cannot be pickled")
        from .kernel import compile
        return _restore, (compile, self._kernel, self.target, self.constexprs, self.options)

    def __repr__(self):
        fixed = "".join(f", {name}={value!r}" for name, value in self.constexprs.items())
        return f"<intent artifact {self.__name__} for {self.target}{fixed}>"


class Prepared:
    """Arguments bound once. ``launch()`` runs the kernel on them and may be repeated; ``result()`` returns the Outs."""

    def __init__(self, artifact: Artifact, bound: binding.Bound, outputs: tuple):
        self._name, self._outputs = artifact.__name__, outputs
        self._artifact, self._bound = artifact, bound
        self._start = launch.Repeated(artifact._entry(bound), bound, artifact.__name__, artifact._build.overflow)
        self._launched = False

    @entry
    def launch(self) -> "Prepared":
        """Run the kernel. Raises MemoryError when the workspace cannot be allocated, and InvalidInput with ``checks=True``."""
        self._artifact._rehearse(self._bound)
        self._start()
        self._launched = True
        return self

    def result(self):
        """The Outs of the last launch: None, the one object, or a tuple. Raises RuntimeError before the first launch."""
        if not self._launched:
            raise RuntimeError(f"{self._name}: launch() comes before result()")
        return unpack(self._outputs)


def unpack(outputs: tuple):
    """None of none, the one of one, a tuple of several."""
    if not outputs:
        return None
    return outputs[0] if len(outputs) == 1 else outputs


def _restore(compile_, kernel, target, constexprs, options):
    return compile_(kernel, target, constexprs, options)

