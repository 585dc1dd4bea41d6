"""What does a user see above an error of their program? Their own call, not the frames of this package."""
from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import TypeVar

from ..errors import IntentError

F = TypeVar("F", bound=Callable)


def entry(function: F) -> F:
    """A function that users call: Intent's own errors leave it without the frames below. INTENT_DEBUG=1 keeps them."""
    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except IntentError as error:
            if os.environ.get("INTENT_DEBUG") == "1":
                raise
            raise error.with_traceback(None) from None
    return call                                                     # type: ignore[return-value]
