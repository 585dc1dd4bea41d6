"""CUDA as a Numba target named ``intent_cuda``, beside Numba's own GPU targets. ``@njit`` functions are not compiled for it."""
from __future__ import annotations

from numba.core import target_extension

from ..cpu.descriptor import Descriptor as HostDescriptor
from ..cpu.descriptor import TargetContext as HostContext

NAME = "intent_cuda"


class IntentCUDA(target_extension.GPU):
    """Marks templates and overloads of this target."""


class TargetContext(HostContext):
    """The part of Numba's target context that typing asks for; there is no JIT engine."""

    target: type = IntentCUDA
    target_name = NAME

    def codegen(self):
        raise NotImplementedError("Numba generates no code for intent_cuda")


class Descriptor(HostDescriptor):
    """Typing context and target context, each made when first asked for."""

    def __init__(self):
        super().__init__()
        self._target_name = NAME

    @property
    def target_context(self):
        if self._target is None:
            self._target = TargetContext(self.typing_context)
        return self._target


descriptor = Descriptor()


def register() -> None:
    """Put the target into Numba's registry, once."""
    if NAME not in target_extension.target_registry:
        target_extension.target_registry[NAME] = IntentCUDA


register()
