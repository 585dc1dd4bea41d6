"""docs/internals.md shows one kernel in every form. The forms in it are exactly what the compiler prints today.

``python -m tests.test_internals`` writes them anew.
"""
import pathlib
import re

import intent_numba as intent
import intent_numba.language as I
from intent_numba.frontend import build_kernel
from intent_numba.lowering import lower
from intent_numba.targets.map_vector import emit_program

PAGE = pathlib.Path(__file__).parent.parent / "docs" / "internals.md"
BLOCK = re.compile(r"(<!-- form: ([\w-]+) -->\n```\w*\n)(.*?)(\n```)", re.S)


@intent.kernel
def softmax(x: I.In[I.f32, ("M", "N")], y: I.Out[I.f32, ("M", "N")]):
    v = x[:, :]
    e = I.exp(v - I.reduce.max(v, axis=1)[:, None])
    y[:, :] = e / I.reduce.sum(e, axis=1)[:, None]


def form(name: str) -> str:
    """The text of a stage, cut to what a page can hold."""
    if name != "llvm":
        return intent.compile(softmax).inspect(name).strip("\n")
    text = emit_program(lower(build_kernel(softmax.__wrapped__, {})), "softmax")
    text = text[text.index("define internal void @softmax.s0("):]
    lines = text[:text.index("\n}")].splitlines()
    first = next(i for i, s in enumerate(lines) if s.startswith("head.") and i > 60)
    return "\n".join(lines[:6] + ["  ..."] + lines[first:first + 24] + ["  ..."])


def test_the_page_shows_what_the_compiler_prints():
    blocks = BLOCK.findall(PAGE.read_text())
    assert [b[1] for b in blocks] == ["kir", "task", "llvm"]
    for _, name, shown, _ in blocks:
        assert shown == form(name), "docs/internals.md is out of date: run python -m tests.test_internals"


if __name__ == "__main__":
    PAGE.write_text(BLOCK.sub(lambda m: m[1] + form(m[2]) + m[4], PAGE.read_text()))
