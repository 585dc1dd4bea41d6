"""Every illegal program is refused with the right class, words, line and caret, and nothing of the compiler's inside shows.

A case is (signature, body, error class, part of the message, source text under the caret). ``$`` in the body marks nothing; the
caret text is looked up in the body's line.
"""
import numba
import numpy as np
import pytest

import intent_numba.language as I
from intent_numba.errors import (CompileError, IntentNameError, IntentShapeError, IntentTypeError, LanguageError,
                                 UnsupportedError)
from intent_numba.frontend import build_kernel
from intent_numba.language.functions import Helper
from intent_numba.language.operation import Namespace, Operation
from intent_numba.typing.context import CONTEXT_RULES, RULES
from tests.support import sources

VIEWS = 'x: I.In[I.f32, ("N",)], z: I.In[I.f32, ("M",)], k: I.In[I.i32, ("N",)], y: I.Out[I.f32, ("N",)], n: I.i32, s: I.f32, b: I.bool'


class Mode(I.Enum):
    A = 0
    B = 1


class Other(I.Enum):
    A = 0


@Helper
def recursive(v):
    return recursive(v)


@Helper
def mutual(v):
    return other_half(v)


@Helper
def other_half(v):
    return mutual(v)


@Helper
def impure(a, b):
    t = I.buffer((2,), I.f32)
    t[0] = a
    return t[0] + b


@Helper
def two(a, *, scale):
    return a * scale


@Helper
def wants_i32(a: I.i32):
    return a


@numba.njit
def scalar_njit(a):
    return a + 1


class FakeKernel:
    __intent_kernel__ = True
    __name__ = "inner"


WORLD = {"I": I, "Mode": Mode, "Other": Other, "recursive": recursive, "mutual": mutual, "impure": impure, "two": two, "np": np,
         "wants_i32": wants_i32, "scalar_njit": scalar_njit, "inner": FakeKernel(), "ARRAY": np.zeros(3), "LIST": [1, 2],
         "plain": lambda v: v}


def kernel_of(signature: str, body: str):
    return sources.kernel_of(signature, body, WORLD)


CASES = [
    # dtypes
    ("y[:] = x[:] + n", IntentTypeError, "f32 and i32 do not mix", "x[:] + n"),
    ("y[:] = x[:] + 16777217", IntentTypeError, "not exact in f32", "x[:] + 16777217"),
    ("y[:] = x[:] + True", IntentTypeError, "True cannot be an f32", "x[:] + True"),
    ("t = k[:] + 1.0", IntentTypeError, "float literal 1.0 cannot be an i32", "k[:] + 1.0"),
    ("t = n / 2", IntentTypeError, "/ is not defined for i32", "n / 2"),
    ("t = s % 2.0", IntentTypeError, "% is not defined for f32", "s % 2.0"),
    ("t = s // 2.0", IntentTypeError, "// is not defined for f32", "s // 2.0"),
    ("t = b + b", IntentTypeError, "+ is not defined for bool", "b + b"),
    ("t = s & s", IntentTypeError, "& is not defined for f32", "s & s"),
    ("t = I.exp(n)", IntentTypeError, "I.exp is not defined for i32", "I.exp(n)"),
    ("t = I.select(n, s, s)", IntentTypeError, "condition must be bool", "I.select(n, s, s)"),
    ("t = I.bitcast(s, I.i64)", IntentTypeError, "32 bits", "I.bitcast(s, I.i64)"),
    ("t = I.bitcast(b, I.u8)", IntentTypeError, "bool has no bit pattern", "I.bitcast(b, I.u8)"),
    ("y[0] = n", IntentTypeError, "f32 is expected, the value is i32", "y[0]"),
    ("y[0] = x.shape[0]", IntentTypeError, "the value is index", "y[0]"),
    ("y[0] = I.cast(1e39, I.i8) + 1", IntentTypeError, "i8", "y[0]"),
    ("t = x + s", IntentTypeError, "is memory, not a value", "x + s"),
    ("acc = 0.0\nfor i in I.domain(0, 3):\n    acc = acc + x[i]", IntentTypeError, "f64 and f32 do not mix", "acc + x[i]"),
    ("acc = 0.0\nfor i in I.domain(0, 3):\n    acc = x[i]\ny[0] = acc", IntentTypeError, "must keep one schema", "x[i]"),
    ("i = 1\nwhile i < n:\n    i = i * 2", IntentTypeError, "meets i32", "i < n"),
    ("t = I.exp2(I.cast(s, I.f64), approximate=True)", IntentTypeError, "approximate is for f32 only", None),
    ("t = I.fdiv(s, s, flush_to_zero=True)", IntentTypeError, "flush_to_zero needs approximate", None),
    ("t = I.exp2(s, approximate=b)", IntentTypeError, "compile-time bool", None),
    # literals
    ("t = I.cast(1, I.i8) + 128", IntentTypeError, "does not fit i8", "I.cast(1, I.i8) + 128"),
    ("t = I.cast(1.0, I.f16) + 1e5", IntentTypeError, "overflows f16", None),
    ("t = 1 // 0", IntentTypeError, "zero", "1 // 0"),
    ("t = I.zeros((4,), I.u8) + -1", IntentTypeError, "does not fit u8", None),
    # shapes
    ("y[:] = x[:] + z[:]", IntentShapeError, "extents N and M are not known to be equal", "x[:] + z[:]"),
    ("t = I.zeros((3,), I.f32) + I.zeros((4,), I.f32)", IntentShapeError, "extents 3 and 4 differ", None),
    ("y[:] = I.zeros((4, 4), I.f32)", IntentShapeError, "rank 2 does not fit 1", "y[:]"),
    ("t = x[0, 0]", IntentShapeError, "1 index is expected", "x[0, 0]"),
    ("t = x[-1]", IntentShapeError, "negative index -1", "x[-1]"),
    ("t = x[-2:]", IntentShapeError, "negative slice bound", None),
    ("t = x[0:4:2]", LanguageError, "slice with a step", "x[0:4:2]"),
    ("t = I.reduce.sum(x[:], axis=1)", IntentShapeError, "axis 1 does not exist in rank 1", "I.reduce.sum(x[:], axis=1)"),
    ("t = I.reduce.sum(I.zeros((2, 3), I.f32), axis=(0, 0))", IntentShapeError, "named twice", None),
    ("t = I.reduce.sum(I.zeros((2, 3), I.f32), axis=())", IntentShapeError, "empty", None),
    ("t = I.reduce.sum(x[:], axis=n)", IntentTypeError, "compile-time integer", None),
    ("t = I.transpose(I.zeros((2, 3), I.f32), (0, 0))", IntentShapeError, "not a permutation", None),
    ("t = I.reshape(I.zeros((2, 3), I.f32), (7,))", IntentShapeError, "has 6 elements", None),
    ("t = I.matmul(I.zeros((2, 1), I.f32), I.zeros((5, 3), I.f32), acc_dtype=I.f32)", IntentShapeError, "extents 1 and 5 differ", None),
    ("t = I.dot(x[:], z[:], acc_dtype=I.f32)", IntentShapeError, "not known to be equal", None),
    ("t = I.dot(x[:], k[:], acc_dtype=I.f32)", IntentTypeError, "f32 and i32 do not mix", None),
    ("t = I.dot(x[:], x[:], acc_dtype=I.f16)", IntentTypeError, "narrower", None),
    ("t = I.dot(x[:], x[:], acc_dtype=I.i32)", IntentTypeError, "float accumulator", None),
    ("t = s.shape", IntentTypeError, "has no .shape", "s.shape"),
    ("t = (s, s).shape", IntentTypeError, "has no .shape", None),
    ("t = I.zeros((-1,), I.f32)", IntentShapeError, "cannot be negative", None),
    ("acc = I.zeros((3,), I.f32)\nfor i in I.domain(0, 3):\n    acc = acc + I.zeros((2, 3), I.f32)", IntentTypeError, "one schema", None),
    ("acc = I.zeros((1,), I.f32)\nfor i in I.domain(0, 3):\n    acc = acc + x[:]", IntentShapeError, "keep its shape", "acc + x[:]"),
    ("a, c = (s, s, s)", IntentShapeError, "as many components", None),
    ("t = x.shape[1]", IntentShapeError, "position 1 of a tuple of 1", "x.shape[1]"),
    # memory and order
    ("x[0] = 1.0", LanguageError, "read-only", "x[0]"),
    ("t = x[:]\nt[0] = 1.0", LanguageError, "immutable", "t[0] = 1.0"),
    ("acc = I.cast(0, I.f32)\nfor i in I.parallel(I.domain(0, 3)):\n    acc = acc + x[i]\ny[0] = acc",
     LanguageError, "carried over a parallel loop", None),
    ("for i in I.parallel(I.domain(0, 3)):\n    if x[i] > 0.0:\n        break\n    y[i] = 0.0",
     LanguageError, "break cannot leave a parallel loop", None),
    ("for i in I.parallel(I.domain(0, 3)):\n    y[i] = 0.0\n    break", LanguageError, "every path leaves this parallel loop",
     "for i in I.parallel(I.domain(0, 3)):"),
    ("for i in I.parallel(I.domain(0, 3)):\n    y[i] = x[i]\n    y[i + 1] = 0.0", LanguageError, "another point writes", None),
    ("for i, j in I.parallel((I.domain(0, 3), I.domain(0, 4))):\n    y[i] = x[j]", LanguageError, "same element", "y[i]"),
    ("t = I.buffer((4,), I.f32)\nfor i in I.parallel(I.domain(0, 3)):\n    t[i] = t[i + 1]", LanguageError, "another point reads", None),
    ("for i in I.parallel(I.domain(0, 3)):\n    y[0] = x[i]", LanguageError, "write the same element of 'y'", "y[0]"),
    # names
    ("y[0] = nothing", IntentNameError, "'nothing' is not defined", "nothing"),
    ("for i in I.domain(0, N):\n    y[i] = 0.0", IntentNameError, "shape name", "N"),
    ("if b:\n    t = s\ny[0] = t", IntentNameError, "'t' may have no value here", None),
    ("t = I.nothing(s)", IntentNameError, "no member 'nothing'", "I.nothing"),
    ("t = I.reduce.summ(x[:], axis=0)", IntentNameError, "no member 'summ'", "I.reduce.summ"),
    # calls
    ("t = I.exp(s, s)", IntentTypeError, "takes 1 positional argument", "I.exp(s, s)"),
    ("t = I.exp()", IntentTypeError, "'value' is missing", "I.exp()"),
    ("t = I.reduce.sum(x[:], axes=0)", IntentTypeError, "no parameter 'axes'", None),
    ("t = I.reduce.sum(x[:])", IntentTypeError, "'axis' is missing", None),
    ("t = two(s, 2.0)", IntentTypeError, "takes 1 positional argument", "two(s, 2.0)"),
    ("t = two(s)", IntentTypeError, "'scale' is missing", "two(s)"),
    ("t = wants_i32(s)", IntentTypeError, "i32 is expected", "wants_i32(s)"),
    ("t = recursive(s)", LanguageError, "recursion", None),
    ("t = mutual(s)", LanguageError, "recursion", None),
    ("inner(x)", LanguageError, "kernel cannot call", "inner(x)"),
    ("t = plain(s)", LanguageError, "ordinary Python function", "plain"),
    ("t = np.exp(s)", LanguageError, "ordinary Python", "np.exp"),
    ("t = abs(s)", LanguageError, "Python's abs", "abs"),
    ("t = max(s, s)", LanguageError, "I.maximum", "max"),
    ("print(s)", LanguageError, "print", None),
    ("t = ARRAY[0]", LanguageError, "'ARRAY' is a ndarray", "ARRAY"),
    ("t = LIST[0]", LanguageError, "'LIST' is a list", "LIST"),
    ("t = scalar_njit(x[:])", IntentTypeError, "takes scalars", None),
    # conditions and operators
    ("if n:\n    y[0] = 1.0", IntentTypeError, "condition must be a bool scalar", None),
    ("if x[:] > 0.0:\n    y[0] = 1.0", IntentTypeError, "condition must be a bool scalar", None),
    ("while s:\n    y[0] = 1.0", IntentTypeError, "condition must be a bool scalar", None),
    ("t = s @ s", LanguageError, "I.matmul", "s @ s"),
    ("t = s in (s, s)", LanguageError, "operator in", None),
    ("t = s is n", IntentTypeError, "None only", None),
    ("t = 'text'\nu = t + s", IntentTypeError, "strings do not exist", None),
    # enums
    ("t = Mode.A == 0", IntentTypeError, "do not compare", "Mode.A == 0"),
    ("t = Mode.A + 1", IntentTypeError, "no arithmetic", "Mode.A + 1"),
    ("t = Mode.A == Other.A", IntentTypeError, "do not compare", "Mode.A == Other.A"),
    ("t = I.cast(Mode.A, I.i32)", IntentTypeError, "enum", None),
    ("if Mode.A:\n    y[0] = 1.0", IntentTypeError, "enum member has no truth value", None),
    ("y[0] = Mode.A", IntentTypeError, "enum", None),
    # Python that is not there
    ("t = [s, s]", LanguageError, "lists do not exist", "[s, s]"),
    ("t = {s: s}", LanguageError, "dicts do not exist", None),
    ("t = [i for i in I.domain(0, 3)]", LanguageError, "", None),
    ("t = f'{s}'", LanguageError, "", None),
    ("with s:\n    y[0] = 1.0", CompileError, "", None),
    ("try:\n    y[0] = 1.0\nfinally:\n    y[1] = 1.0", CompileError, "", None),
    ("raise ValueError", LanguageError, "cannot raise", None),
    ("yield s", LanguageError, "generator", None),
    ("def g():\n    return s\nt = g()", LanguageError, "", None),
    ("t = lambda v: v", LanguageError, "functions cannot be defined", None),
    ("global ZZZ\nZZZ = s", CompileError, "", None),
    ("import os\n", CompileError, "", None),
    ("t = 3j", UnsupportedError, "complex", None),
    ("t = I.cast(x[0], I.dtype('float32'))", IntentTypeError, "unknown dtype 'float32'; write I.f32", "I.dtype('float32')"),
    ("t = I.cast(x[0], I.dtype(x[0]))", IntentTypeError, 'I.dtype: one token such as "f32" is expected', "I.dtype(x[0])"),
    ("del y[0]", LanguageError, "deleted", None),
    ("assert b", CompileError, "", None),
    ("return s", LanguageError, "a kernel returns nothing", None),
    ("while True:\n    y[0] = 1.0", LanguageError, "never ends", None),
    ("for v in x:\n    y[0] = v", IntentTypeError, "cannot be iterated", None),
    ("for v in (s, s):\n    y[0] = v", CompileError, "cannot be iterated", None),
    ("for i in I.domain(0, 5, 0):\n    y[i] = 0.0", IntentTypeError, "step must be positive", None),
    ("for i in range(5, 0, -1):\n    y[i] = 0.0", IntentTypeError, "step must be positive", None),
    ("d = I.domain(0, 5)\ne = d[0:4:2]", LanguageError, "no step", None),
    ("d = I.domain(0, 5)\nt = d.shape", IntentTypeError, "has no .shape", None),
    # structured
    ("t = I.reduce(x[:], axis=0, identity=I.cast(0, I.f32), combine=impure)", LanguageError, "must be pure", None),
    ("t = I.reduce(x[:], axis=0, identity=0, combine=plain)", LanguageError, "ordinary Python", None),
    ("t = I.reduce(x[:], axis=0, identity=I.cast(0, I.i32), combine=I.add)", IntentTypeError, "identity", None),
    ("t = I.reduce((x[:], z[:]), axis=0, identity=(0.0, 0.0), combine=two)", IntentTypeError, "", None),
    ("t = I.contract(x[:], x[:], reduce=(), acc_dtype=I.f32)", IntentShapeError, "at least one pair", None),
    ("t = I.contract(x[:], x[:], reduce=((0, 1),), acc_dtype=I.f32)", IntentShapeError, "axis 1 does not exist", None),
    ("t = I.record()", IntentTypeError, "at least one field", None),
    ("t = I.record(a=x)", IntentTypeError, "cannot be", None),
    ("t = I.record(a=s)\nu = t.b", IntentTypeError, "no field 'b'", "t.b"),
    ("t = I.buffer((4,), I.f32, init=n)", IntentTypeError, "init", None),
]


@pytest.mark.parametrize("body, cls, message, under", CASES, ids=[c[0].replace("\n", "; ")[:60] for c in CASES])
def test_rejected(body, cls, message, under):
    kernel, lines = kernel_of(VIEWS, body)
    with pytest.raises(cls) as caught:
        build_kernel(kernel, {})
    error = caught.value
    assert message in str(error)
    for word in ("numba.core", "Lit(", "Traceback", "$", "TypingError"):
        assert word not in str(error), str(error)
    assert error.line is not None
    if under is not None:
        d = error.diagnostics[0]
        line = lines[d.line - 1]
        if d.col is not None:
            assert line[d.col:].startswith(under), (line[d.col:], str(error))


LEGAL = [
    "for i in I.parallel(I.domain(0, 3)):\n    for j in I.domain(i * 4, i * 4 + 4):\n        y[j] = 0.0",
    "for i in I.parallel(I.domain(0, 3)):\n    k = i * 2\n    while k < i * 2 + 2:\n        y[k] = 0.0\n        k = k + 1",
    "for i in I.parallel(I.domain(0, 3)):\n    y[i // 2] = 0.0",
    "for i in I.parallel(I.domain(0, 3)):\n    if i == 0:\n        y[0] = 0.0",
    "for i in I.parallel(I.domain(0, 6, 2)):\n    y[i] = 0.0\n    y[i + 1] = 0.0",
    "for i in I.parallel(I.domain(0, 3)):\n    y[k[i]] = x[i]",
    "for i in I.parallel(I.domain(0, 3)):\n    y[2 * i] = 0.0\n    y[2 * i + 1] = 0.0",
    "for i in I.parallel(I.domain(0, 3)):\n    y[i] = y[i] + 1.0",
    "for i in I.parallel(I.domain(0, 3)):\n    t = I.buffer((4,), I.f32)\n    t[0] = x[i]\n    y[i] = t[0]",
    "for i in I.parallel(I.domain(0, 1)):\n    y[0] = 0.0",
    "for i in I.parallel(I.domain(0, 3)):\n    r = I.domain(0, 10)[i * 2:i * 2 + 2]\n    y[r] = 0.0",
]


@pytest.mark.parametrize("body", LEGAL)
def test_what_is_not_provably_wrong_is_accepted(body):
    kernel, _ = kernel_of(VIEWS.replace("y: I.Out", "y: I.InOut"), body)
    build_kernel(kernel, {})


def operations_of(namespace, prefix="I"):
    """Every ``I.`` operation with the text that names it."""
    for name, value in vars(namespace).items():
        if isinstance(value, Operation):
            yield f"{prefix}.{name}", value
        if not name.startswith("_") and (isinstance(value, (Operation, Namespace)) or value is I.arg_reduce):
            yield from operations_of(value, f"{prefix}.{name}")


UNSUPPORTED = [(text, op) for text, op in operations_of(I) if op.name not in {**RULES, **CONTEXT_RULES, "record": None}]


@pytest.mark.parametrize("text", [text for text, _ in UNSUPPORTED] or [None])
def test_names_of_the_language_that_are_not_built_are_refused_by_name(text):
    if text is None:
        return
    kernel, _ = kernel_of(VIEWS, f"t = {text}(x[:])")
    with pytest.raises(UnsupportedError, match=text.replace(".", r"\.")) as caught:
        build_kernel(kernel, {})
    assert caught.value.line == 2
