"""Kernel functions from text, whose source Python can find."""
from __future__ import annotations

import itertools
import linecache
import textwrap

import intent_numba.language as I

_COUNT = itertools.count()


def kernel_of(signature: str, body: str, world: dict):
    """The function ``kernel(signature)`` with this body, which sees ``I`` and ``world``, and its lines."""
    text = f"def kernel({signature}):\n" + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n"
    file = f"<kernel {next(_COUNT)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope = {"I": I, **world}
    exec(compile(text, file, "exec"), scope)
    return scope["kernel"], text.splitlines()
