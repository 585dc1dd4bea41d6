"""The CPU as a Numba target named ``intent_cpu``.

It inherits from Numba's own ``cpu``: overloads and ``@njit`` functions made for the CPU hold here too and are compiled by
Numba's CPU dispatcher, because they are linked into our code as they are. Only the typing context and the code
generator are ours; Numba's CPU context is not even created, which saves its half-second refresh.
"""
from __future__ import annotations

from numba.core import target_extension
from numba.core.cpu import CPUTargetOptions
from numba.core.decorators import jit
from numba.core.descriptors import TargetDescriptor
from numba.core.registry import CPUDispatcher

NAME = "intent_cpu"


class IntentCPU(target_extension.CPU):
    """Marks templates and overloads of this target."""


class TargetContext:
    """The part of Numba's target context that typing and code generation ask for."""

    target = IntentCPU
    target_name = NAME
    call_conv = None
    enable_nrt = False

    def __init__(self, typing_context):
        self.typing_context = typing_context

    def codegen(self):
        """The JIT engine of this process, which Numba's libraries link into."""
        from .library import codegen

        return codegen()

    def refresh(self):
        """Nothing is looked up in registries: KIR is emitted directly."""

    def subtarget(self, **options):
        """Options of Numba's contexts do not apply."""
        return self


class Descriptor(TargetDescriptor):
    """Typing context and target context, each made when first asked for."""

    options = CPUTargetOptions

    def __init__(self):
        super().__init__(NAME)
        self._typing = self._target = None

    @property
    def typing_context(self):
        if self._typing is None:
            from ...typing.context import IntentTypingContext

            self._typing = IntentTypingContext()
        return self._typing

    @property
    def target_context(self):
        if self._target is None:
            self._target = TargetContext(self.typing_context)
        return self._target


descriptor = Descriptor()


def register() -> None:
    """Put the target into Numba's registries, once."""
    if NAME not in target_extension.target_registry:
        target_extension.target_registry[NAME] = IntentCPU
        target_extension.dispatcher_registry[IntentCPU] = CPUDispatcher
        target_extension.jit_registry[IntentCPU] = jit


register()
