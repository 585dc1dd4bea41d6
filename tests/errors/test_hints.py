"""What an error tells the author to write instead, where its caret stands, and that one mistake is one error.

A case is (body, part of the hint or message, source text under the caret or None where it depends on the version of Python).
"""
import linecache
import textwrap

import numba
import numpy as np
import pytest

import intent_numba.language as I
from intent_numba.errors import CompileError, UnsupportedError
from intent_numba.frontend import build_kernel


class Config:
    SCALE = 3.0
    TABLE = [1.0]


@numba.njit
def broken(a):
    return undefined_thing + a


WORLD = {"I": I, "np": np, "Config": Config, "broken": broken, "NUMBER": np.float32(2.5), "THING": object()}
HEAD = 'def kernel(x: I.In[I.f32, ("N",)], w: I.In[I.i32, ("N",)], y: I.InOut[I.f32, ("N",)], z: I.Out[I.f32, ("N",)]):\n'


def define(text: str):
    file = f"<hint {len(linecache.cache)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope = dict(WORLD)
    exec(compile(text, file, "exec"), scope)
    return scope["kernel"], text.splitlines()


def refusal(body: str, head: str = HEAD):
    kernel, lines = define(head + textwrap.indent(body, "    ") + "\n")
    with pytest.raises(CompileError) as caught:
        build_kernel(kernel)
    return caught.value, lines


CASES = [
    # names of other libraries
    ("y[:] = I.where(x[:] > 0.0, x[:], 0.0)", "I.select(cond, a, b)", "I.where"),
    ("y[0] = I.sum(x[:])", "I.reduce.sum", "I.sum"),
    ("y[0] = I.max(x[:])", "I.reduce.max", "I.max"),
    ("y[0] = I.mean(x[:])", "I.reduce.sum", "I.mean"),
    ("y[0] = I.reduce.mean(x[:])", "I.reduce.sum", "I.reduce.mean"),
    ("for i in I.prange(3):\n    y[i] = 0.0", "I.parallel", "I.prange"),
    ("t = I.arange(3)", "I.indices(I.domain(0, n))", "I.arange"),
    ("t = I.einsum(x[:], x[:])", "I.contract", "I.einsum"),
    ("t = I.reduce_sum(x[:], axis=0)", "I.reduce.sum", "I.reduce_sum"),
    ("t = I.maximun(x[:], x[:])", "did you mean I.maximum?", "I.maximun"),
    ("t = np.exp(x[:])", "write I.exp", "np.exp"),
    ("t = np.where(x[:] > 0.0, x[:], 0.0)", "I.select", "np.where"),
    ("t = np.float32(w[:])", "write I.cast(w[:], I.f32)", "np.float32(w[:])"),
    ("t = Config(1)", "the class Config cannot be called", "Config(1)"),
    ("t = x[:].sum()", "I.reduce.sum", "x[:].sum"),
    ("t = w[:].astype(I.f32)", "I.cast(v, I.f32)", "w[:].astype"),
    # the operand in question
    ("for i in I.domain(0, 3):\n    y[i] = x[i] * i", "write I.cast(i, I.f32)", "x[i] * i"),
    ("y[:] = w[:]", "write I.cast(w[:], I.f32)", "y[:]"),
    ("y[0] = I.dot(x[:], w[:], acc_dtype=I.f32)[()]", "write I.cast(w[:], I.f32)", "I.dot"),
    ("v = w[:]\ny[:] = x[:] << v", "write I.cast(v, I.f32)", "x[:] << v"),
    ("y[:] = (x[:] > 0.0) * x[:]", "write I.cast(x[:] > 0.0, I.f32)", "(x[:] > 0.0) * x[:]"),
    ("y[:] = x[:] & 1", "I.bitcast(x, I.i32)", "x[:] & 1"),
    ("v = x[:]\ny[:] = I.select(v > 0.0 and v < 1.0, v, 0.0)", "write (v > 0.0) & (v < 1.0)", "v > 0.0 and v < 1.0"),
    ("v = x[:]\ny[:] = I.select(0.0 < v < 1.0, v, 0.0)", "write (0.0 < v) & (v < 1.0)", "0.0 < v < 1.0"),
    ("y[:] = x[:] * NUMBER", "write NUMBER = float(NUMBER)", "NUMBER"),
    ("y[:] = x[:] * THING", "only bool, int, float and enum values", "THING"),
    ("y[:] = x[:] * Config.TABLE[0]", "'Config.TABLE' is a list", "Config.TABLE"),
    ("y[:] = x[:] * Config.NOTHING", "Config has no member 'NOTHING'", "Config.NOTHING"),
    ("y[0] = broken(x[0])", "name 'undefined_thing' is not defined", "broken(x[0])"),
    # statements
    ("import math", "cannot import", "import math"),
    ("global ZZ\nZZ = 3", "cannot assign the global name 'ZZ'", "ZZ = 3"),
    ("a, *b = (1.0, 2.0, 3.0)", "starred name", "a, *b"),
    ("class A:\n    pass", "classes cannot be defined", "class A"),
    ("t = I.exp(**{'value': 1.0})", "**", "I.exp"),
    ("t = f'{w[0]:3}'", "strings do not exist", None),
    ("with x:\n    y[0] = 1.0", "with does not exist", None),
    ("y[0] = 0.0\ntry:\n    y[:] = x[:]\nexcept Exception:\n    y[:] = 0.0", "try does not exist", "try:"),
    ("try:\n    y[:] = x[:]\nfinally:\n    y[:] = 0.0", "try does not exist", "try:"),
    ("y[:] = x[:]\nreturn x[:]", "a kernel returns nothing", "return x[:]"),
    ("y[:] = x[:]\nyield 3", "a generator", "yield 3"),
    ("for i in I.parallel(I.domain(0, 3)):\n    if x[i] > 0.0:\n        break\n    y[i] = x[i]", "break cannot leave", "break"),
    ("for i in I.parallel(I.domain(0, 3)):\n    if x[i] > 0.0:\n        break\n    y[i] = x[i]\ny[3] = 1.0",
     "break cannot leave", "break"),
    ("for i in I.parallel(I.domain(0, 3)):\n    y[i] = x[i]\n    if x[i] > 0.0:\n        return\ny[3] = 1.0",
     "return cannot leave", "return"),
    ("z = x[:] * 2.0", "write z[:] = ...", "z = x[:] * 2.0"),
    ("b = I.buffer((4,), I.f32)\ny[0] = b[0]", "give it an init=", "b[0]"),
    ("z[:] = z[:] + x[:]", "annotate it with I.InOut", "z[:] + x[:]"),
    ("y[:] = t\nt = x[:]", "assign it before this use", "t"),
]


@pytest.mark.parametrize("body, words, under", CASES, ids=[c[0].replace("\n", "; ")[:60] for c in CASES])
def test_one_mistake_is_one_error_with_a_repair(body, words, under):
    error, lines = refusal(body)
    assert len(error.diagnostics) == 1, str(error)
    assert words in str(error) or error.col is None and words.startswith("write ")     # an operand is quoted by its columns
    for inside in ("Lit(", "Traceback", "$", "INTENT_DEBUG", "numba.core"):
        assert inside not in str(error)
    (d,) = error.diagnostics
    if d.col is not None and under is not None:
        assert lines[d.line - 1][d.col:].startswith(under), str(error)


def test_attributes_of_a_class_are_captured_values():
    kernel, _ = define(HEAD + "    y[:] = x[:] * Config.SCALE\n")
    consts = [op.attrs["value"] for op in build_kernel(kernel).body.ops if op.kind == "const"]
    assert 3.0 in consts


def test_outs_may_be_read_once_something_may_have_written_them():
    for body in ("z[:] = x[:]\ny[:] = z[:]", "for i in I.domain(0, 3):\n    if i > 0:\n        y[i] = z[i - 1]\n    z[i] = x[i]",
                 "if x[0] > 0.0:\n    z[0] = 1.0\ny[0] = z[0]", "z[:] = x[:]\nz = x[:]"):
        kernel, _ = define(HEAD + textwrap.indent(body, "    ") + "\n")
        build_kernel(kernel)


def test_helpers_that_nest_too_deeply_are_named():
    text = "".join(f"@intent.fn\ndef f{i}(x): return {f'f{i - 1}(x)' if i else 'x'}\n" for i in range(400))
    kernel, _ = define("import intent_numba as intent\n" + text + HEAD + "    y[:] = f399(x[:])\n")
    with pytest.raises(UnsupportedError, match="nest too deeply"):
        build_kernel(kernel)


@pytest.mark.parametrize("annotation, words", [("np.float32", "I.f32"), ("", "has no annotation"), ("3", "a dtype or I.Constexpr")])
def test_a_wrong_annotation_is_shown_where_it_stands(annotation, words):
    error, lines = refusal("y[0] = s", 'def kernel(x: I.In[I.f32, ("N",)],\n           s' + (f": {annotation}" if annotation else "") +
                           ', y: I.Out[I.f32, ("N",)]):\n')
    (d,) = error.diagnostics
    assert words in str(error) and d.line == 2 and (d.col is None or lines[1][d.col:].startswith("s"))
