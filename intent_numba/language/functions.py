"""What ``@intent.fn`` returns."""
from __future__ import annotations

import functools

from ..errors import LanguageError
from .signature import Signature, resolve_signature


class Helper:
    """A typed function used inside kernels; it is inlined where it is called. It cannot be called from Python."""
    __name__: str

    def __init__(self, pyfunc):
        functools.update_wrapper(self, pyfunc)
        self.pyfunc = pyfunc
        self.signature: Signature = resolve_signature(pyfunc, helper=True)

    def __call__(self, *args, **kwargs):
        raise LanguageError(f"{self.__name__} is an @intent.fn helper: it can be called only inside a kernel or helper")

    def __repr__(self):
        return f"<intent.fn {self.__name__}>"
