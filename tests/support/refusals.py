"""Refused programs as text: the body of a kernel, carets under the place, and the error.

    t = x[:] + n
        ^^^^^^^^
    IntentTypeError: +: f32 and i32 do not mix; there is no implicit promotion

Blocks are separated by empty lines. ``kernel(…)`` before the body gives it a signature of its own; ``at …`` instead of the carets
quotes the place where it is in a helper. Lines that begin with # are headings.
"""
from __future__ import annotations

import linecache
from dataclasses import dataclass
from pathlib import Path

import pytest

import intent_numba as intent
from intent_numba.frontend import build_kernel

from .sources import kernel_of


@dataclass(frozen=True)
class Refusal:
    """``carets`` is (line of the body from 0, column, length), or the quoted source of a place elsewhere, or None for the whole kernel."""
    heading: str
    signature: str
    body: str
    error: str
    message: str
    carets: tuple[int, int, int] | str | None

    def __str__(self):
        return f"{self.heading}: {self.signature or self.body}".replace("\n", "; ")


def read_refusals(path: Path) -> list[Refusal]:
    """All blocks of a file."""
    found, heading = [], ""
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        lines = block.strip("\n").split("\n")
        while lines and lines[0].startswith("#"):
            heading = lines.pop(0).strip("# ")
        if lines and lines[0]:
            found.append(_block(heading, lines))
    return found


def _block(heading: str, lines: list[str]) -> Refusal:
    error, message = lines.pop().split(": ", 1)
    own = lines.pop(0)[len("kernel("):-1] if lines[0].startswith("kernel(") else ""
    place = next((i for i, line in enumerate(lines) if line.strip(" ^") == "" or line.startswith("at ")), None)
    carets: tuple[int, int, int] | str | None = None
    if place is not None:
        mark = lines.pop(place)
        carets = mark[3:] if mark.startswith("at ") else (place - 1, mark.index("^"), mark.count("^"))
    return Refusal(heading, own, "\n".join(lines), error, message, carets)


def assert_refused(case: Refusal, signature: str, world: dict) -> None:
    """The kernel is refused with this class, message, line, column and length."""
    kernel, _ = kernel_of(case.signature or signature, case.body, world)
    with pytest.raises(intent.CompileError) as caught:
        build_kernel(kernel)
    first = caught.value.diagnostics[0]
    assert (type(caught.value).__name__, first.message) == (case.error, case.message)
    match case.carets:
        case (line, column, length):
            assert (first.line, first.col, first.loc.end_col) == (line + 2, column + 4, column + 4 + length), str(caught.value)
        case str(text):
            assert linecache.getline(first.loc.file, first.line)[first.col:].startswith(text), str(caught.value)
