"""A device as a target in Numba's registry, for the targets that ``map_simt`` serves.

It stands beside Numba's GPU targets, so overloads made for any target hold and those made for the CPU do not. Only the typing context
is ours to give: Numba generates no code for it, and ``@njit`` functions are not compiled, so a kernel that calls one is refused by name.
"""
from __future__ import annotations

from numba.core import target_extension

from .cpu.descriptor import Descriptor as HostDescriptor
from .cpu.descriptor import TargetContext as HostContext


class TargetContext(HostContext):
    """The part of Numba's target context that typing asks for; there is no JIT engine."""

    def __init__(self, typing_context, mark: type, name: str):
        super().__init__(typing_context)
        self.target, self.target_name = mark, name

    def codegen(self):
        raise NotImplementedError(f"Numba generates no code for {self.target_name}")


class Descriptor(HostDescriptor):
    """Typing context and target context, each made when first asked for."""

    def __init__(self, mark: type, name: str):
        super().__init__()
        self._mark, self._target_name = mark, name

    @property
    def target_context(self):
        if self._target is None:
            self._target = TargetContext(self.typing_context, self._mark, self._target_name)
        return self._target


def register(mark: type, name: str) -> Descriptor:
    """Put a target into Numba's registry, once. ``mark`` is the class that marks its templates and overloads."""
    target_extension.target_registry.setdefault(name, mark)
    return Descriptor(mark, name)
