"""How a typing rule refuses: an exception that Numba's inference carries to us with the position of the statement."""
from __future__ import annotations

from numba.core.errors import TypingError

from ..errors import CompileError, IntentTypeError


class Refusal(TypingError):
    """A rule's verdict. ``cls`` is the error class the author will see. A ``located`` refusal comes from inside a helper and
    already carries its diagnostics. ``at`` and ``constraint`` say which statement it is about, once known."""
    at = None
    constraint = None

    def __init__(self, message: str, hint: str = "", cls=IntentTypeError, located: CompileError | None = None):
        super().__init__(message)
        self.message, self.hint, self.cls, self.located = message, hint, cls, located


def refuse(message: str, hint: str = "", cls=IntentTypeError):
    raise Refusal(message, hint, cls)
