"""What an ``I.`` operation is outside a kernel: an object with a signature and a docstring that refuses to run."""
from __future__ import annotations

import functools
import inspect

from ..errors import LanguageError


class Operation:
    """An operation of the language. Its stub function gives signature and documentation; the compiler gives its meaning.
    ``pointwise`` marks the pure elementwise operations."""

    def __init__(self, stub, name: str, pointwise: bool = False):
        functools.update_wrapper(self, stub)
        self.stub, self.name, self.pointwise = stub, name, pointwise

    def __call__(self, *args, **kwargs):
        raise LanguageError(f"I.{self.name} can be used only inside an @intent.kernel or @intent.fn function")

    def __repr__(self):
        return f"I.{self.name}"

    def __reduce__(self):
        return _find, (self.name,)

    def __deepcopy__(self, memo):
        return self

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.stub)


def operation(stub=None, *, name: str | None = None, pointwise: bool = False):
    """Decorator: the function below is the stub of ``I.<name>``."""
    if stub is None:
        return lambda f: operation(f, name=name, pointwise=pointwise)
    return Operation(stub, name or stub.__name__.rstrip("_"), pointwise)


class Namespace:
    """A group of operations such as ``I.atomic``."""

    def __init__(self, name: str, **members):
        self.name = name
        self.__dict__.update(members)

    def __repr__(self):
        return f"I.{self.name}"

    def __reduce__(self):
        return _find, (self.name,)


def _find(name: str):
    import intent_numba.language as language
    return functools.reduce(getattr, name.split("."), language)
