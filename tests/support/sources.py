"""Kernels from text, and what their refusal must say: error class, words, line and the source under the caret."""
from __future__ import annotations

import itertools
import linecache
import textwrap

import pytest

import intent_numba.language as I
from intent_numba.frontend import build_kernel

_COUNT = itertools.count()


def kernel_of(signature: str, body: str, world: dict):
    """The function ``kernel(signature)`` with this body, whose source Python can find, and its lines."""
    text = f"def kernel({signature}):\n" + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n"
    file = f"<kernel {next(_COUNT)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope = {"I": I, **world}
    exec(compile(text, file, "exec"), scope)
    return scope["kernel"], text.splitlines()


def assert_refused(signature: str, body: str, cls: type, message: str, under: str, world: dict, **constexprs):
    """The kernel is refused with this class and message, at the first place of the body that reads ``under``."""
    kernel, lines = kernel_of(signature, body, world)
    with pytest.raises(cls) as caught:
        build_kernel(kernel, constexprs)
    assert message in str(caught.value)
    first = caught.value.diagnostics[0]
    line = next(n for n, text in enumerate(lines[1:], 2) if under in text)
    assert (first.line, first.col) == (line, lines[line - 1].index(under)), str(caught.value)
