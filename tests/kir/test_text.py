"""Is the text of a kernel the kernel?"""
import math

import numpy as np
import pytest

from intent_numba import reference
from intent_numba.kir import (
    Builder, Domain, Extent, Loc, ParseError, Scalar, Tensor, Value, View, parse_kernel, print_kernel, shape_of, verify,
)


def same(text: str):
    kernel = parse_kernel(text)
    assert print_kernel(kernel) == text
    return kernel


SOFTMAX = """\
kernel softmax(%x: view<f32, [M, N], in>, %y: view<f32, [M, N], out>) {
  %0 = const {value=0} : index
  %1 = const {value=1} : index
  %2 = extent {e=`M`} : index
  %3 = domain %0, %2, %1 : domain<M>
  %4 = extent {e=`N`} : index
  %5 = domain %0, %4, %1 : domain<N>
  parallel %3 {
  ^(%6: index):
    %7 = read %x, %6, %5 : tensor<f32, [N]>
    %8 = reduce %7 {axis=0, kind="max"} : f32
    %9 = broadcast %8 : tensor<f32, [N]>
    %10 = sub %7, %9 : tensor<f32, [N]>
    %11 = exp %10 : tensor<f32, [N]>
    %12 = reduce %11 {axis=0, kind="sum"} : f32
    %13 = broadcast %12 : tensor<f32, [N]>
    %14 = div %11, %13 : tensor<f32, [N]>
    write %y, %6, %5, %14
  }
}
"""

EVERYTHING = """\
kernel all_forms(%a: view<f16, [], in, alias=g>, %b: view<bf16, [M, 4], inout, noalias, strides=(_, 1)>, \
%c: view<i8, [M], in, strides=(s,)>, %s: f8e4m3fn, %t: index) policy "checked" externs "f", "g$1" {
  %0 = const {value=True} : bool
  %1 = if %0 : index {
    yield %t
  } {
    %2 = extent {e=`-1+2*M*M`} : index
    yield %2
  }
  %3 = const {value=2} : index
  %4 = loop %3 : index {
  ^(%5: index):
    %6 = mul %5, %5 : index
    %7 = gt %6, %t : bool
    yield %7, %6
  }
  loop {
    yield %0
  }
  loop {
  }
  parallel {
  }
  call {fn="f"}
  unknown_kind %3, %4 {empty=(), nested=((2, 1), (0, 1)), none=None, one=(3,), text="a \\"quote\\" // {"}
  %8 = buffer : buffer<u8, [%t, 2]>
  %9, %10 = two : domain<%4>, tensor<bool, []>
}
"""


def test_softmax_round_trip():
    verify(same(SOFTMAX))


def test_every_form_round_trips():
    kernel = same(EVERYTHING.replace("strides=(s,)", "strides=(s)"))
    assert kernel.policy == "checked" and list(kernel.externs) == ["f", "g$1"]
    assert kernel.params[1].type == View("bf16", shape_of("M", 4), "inout", noalias=True, strides=(None, 1))
    op = next(o for o in kernel.body.ops if o.kind == "unknown_kind")
    assert op.attrs == {"empty": (), "nested": ((2, 1), (0, 1)), "none": None, "one": (3,), "text": 'a "quote" // {'}


def test_parsed_types_are_the_printed_ones():
    kernel = parse_kernel(SOFTMAX)
    assert [str(p.type) for p in kernel.params] == ["view<f32, [M, N], in>", "view<f32, [M, N], out>"]
    assert kernel.body.ops[3].result.type == Domain(Extent.of("M"))
    assert kernel.body.ops[-1].regions[0].ops[0].result.type == Tensor("f32", shape_of("N"))


@pytest.mark.parametrize("value", [0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, 1e22, 0.1, 2.0 ** 53, -1.5,
                                   1, -(2 ** 63), 2 ** 64 - 1, True, False])
def test_constants_round_trip_exactly(value):
    b = Builder("k", ())
    b.one("const", (), Scalar("f64"), value=value)
    back = parse_kernel(print_kernel(b.kernel)).body.ops[0].attrs["value"]
    assert type(back) is type(value)
    assert repr(back) == repr(value)


def test_locations_are_comments():
    b = Builder("k", ())
    b.loc = Loc("file.py", 12, 4)
    b.one("const", (), Scalar("f32"), value=1.0)
    b.loc = Loc("file.py", 13)
    b.one("const", (), Scalar("f32"), value=2.0)
    text = print_kernel(b.kernel, locs=True)
    assert "value=1.0} : f32  // 12:4\n" in text and "value=2.0} : f32  // 13\n" in text
    assert print_kernel(parse_kernel(text)) == print_kernel(b.kernel)


@pytest.mark.parametrize("text, message", [
    ("kernel k() {\n  %0 = add %1, %1 : f32\n}", "line 2: %1 is not defined"),
    ("kernel k(%x: f32, %x: f32) {\n}", "line 1: %x is defined twice"),
    ("kernel k() {\n  %0 = const {value=1} f32\n}", "line 2: expected ':', got 'f32'"),
    ("kernel k() {\n  %0 = const {value=1} : f31\n}", "line 2: expected a type, got 'f31'"),
    ("kernel k(%x: view<f31, [], in>) {\n}", "line 1: expected a dtype, got 'f31'"),
    ("kernel k() {\n", "line 2: expected a name, got 'the end'"),
    ("kernel k() {\n  !\n}", "line 2: unexpected '!'"),
])
def test_bad_text_names_its_line(text, message):
    with pytest.raises(ParseError) as error:
        parse_kernel(text)
    assert message in str(error.value)


def test_a_parsed_kernel_runs():
    text = SOFTMAX.replace("exp ", "neg ").replace("div ", "add ")
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    y = np.zeros_like(x)
    reference.run(verify(parse_kernel(text)), [x, y])
    assert y.tolist() == [[5.0, 4.0, 3.0]] * 2


def test_names_may_be_words():
    b = Builder("k", (Value("x.1", Scalar("f32")), Value("y$2", Scalar("f32"))))
    text = print_kernel(b.kernel)
    assert print_kernel(parse_kernel(text)) == text
