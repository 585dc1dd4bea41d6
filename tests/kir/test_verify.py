"""Does the verifier accept what is well-formed, and name each fault of what is not?"""
import pytest

from intent_numba.kir import VerifyError, parse_kernel, verify

HEAD = """\
kernel k(%x: view<f32, [M, N], in>, %y: view<f32, [M, N], out>, %v: view<i32, [M], in>, %s: f32, %i: index, %c: bool) externs "f" {
  %zero = const {value=0} : index
  %one = const {value=1} : index
  %m = extent {e=`M`} : index
  %n = extent {e=`N`} : index
  %dm = domain %zero, %m, %one : domain<M>
  %dn = domain %zero, %n, %one : domain<N>
  %a = read %x, %dm, %dn : tensor<f32, [M, N]>
  %w = read %v, %dm : tensor<i32, [M]>
  %row = read %x, %zero, %dn : tensor<f32, [N]>
"""


def kernel(body: str):
    return parse_kernel(HEAD + body + "\n}\n")


def faults(body: str) -> tuple[str, ...]:
    with pytest.raises(VerifyError) as error:
        verify(kernel(body))
    assert str(error.value).startswith("kernel k: ")
    return error.value.faults


GOOD = [
    "  %0 = add %a, %a : tensor<f32, [M, N]>",
    "  %0 = fma %s, %s, %s : f32",
    "  %0 = lt %w, %w : tensor<bool, [M]>",
    "  %0 = select %c, %s, %s : f32",
    "  %0 = cast %a : tensor<i8, [M, N]>",
    "  %0 = bitcast %s : u32",
    "  %0 = div %s, %s {approximate=True, ftz=True} : f32",
    "  %0 = broadcast %s : tensor<f32, []>",
    "  %0 = broadcast %row : tensor<f32, [M, N]>",
    "  %0 = expand %row {axis=1} : tensor<f32, [N, 1]>\n  %1 = broadcast %0 : tensor<f32, [N, M]>",
    "  %0 = reshape %a : tensor<f32, [M*N]>",
    "  %0 = reshape %a : tensor<f32, [%i, 4]>",
    "  %0 = transpose %a {perm=(1, 0)} : tensor<f32, [N, M]>",
    "  %0 = join %row, %row : tensor<f32, [N, 2]>",
    "  %0 = indices %dm : tensor<index, [M]>\n  %1 = read %x, %0, %zero : tensor<f32, [M]>",
    "  %0 = indices %dm : tensor<index, [M]>\n  %1 = gather %a, %0, %dn : tensor<f32, [M, N]>",
    "  %0 = gather %a, %i, %i : f32",
    "  %0 = read %x, %i, %i, %c, %s {guard=True} : f32",
    "  write %y, %dm, %dn, %a",
    "  write %y, %i, %i, %s, %c {guard=True, unique=True}",
    "  %0 = buffer %s : buffer<f32, [M, 3]>\n  %1 = read %0, %i, %i : f32",
    "  %0 = reduce %a {axis=1, kind=\"sum\"} : tensor<f32, [M]>",
    "  %0 = reduce %row {axis=0, kind=\"max\"} : f32",
    "  %0 = reduce %row, %s {axis=0, kind=\"generic\"} : f32 {\n  ^(%p: f32, %q: f32):\n    %r = mul %p, %q : f32\n    yield %r\n  }",
    "  %z = broadcast %s : tensor<f32, [M]>\n  %0 = reduce %a, %z {axis=1, kind=\"generic\", over=(0,)} : tensor<f32, [M]> {\n"
    "  ^(%p: f32, %q: f32):\n    %r = mul %p, %q : f32\n    yield %r\n  }",
    "  %0, %1 = arg_reduce %a {axis=0, kind=\"max\"} : tensor<f32, [N]>, tensor<index, [N]>",
    "  %0 = scan %a {axis=0, inclusive=True, kind=\"sum\", reverse=False} : tensor<f32, [M, N]>",
    "  %0 = contract %a, %a {batch=(), form=\"chain\", reduce=((1, 1),)} : tensor<f32, [M, M]>",
    "  %0 = contract %a, %row {batch=(), form=\"tree\", reduce=((1, 0),)} : tensor<f32, [M]>",
    "  %0 = contract %row, %row {batch=(), form=\"tree\", reduce=((0, 0),)} : tensor<f32, []>",
    "  %0 = contract %a, %a {batch=((0, 0),), form=\"tree\", reduce=((1, 1),)} : tensor<f32, [M]>",
    "  %0 = call %s, %i {fn=\"f\"} : f64",
    "  %0 = for %dm, %s : f32 {\n  ^(%p: index, %q: f32):\n    yield %q\n  }",
    "  %0 = for %dm, %s {breaks=True} : f32 {\n  ^(%p: index, %q: f32):\n    yield %c, %q\n  }",
    "  %0 = loop %s : f32 {\n  ^(%q: f32):\n    yield %c, %q\n  }",
    "  %0 = if %c : f32 {\n    yield %s\n  } {\n    yield %s\n  }",
    "  parallel %dm, %dn {\n  ^(%p: index, %q: index):\n    write %y, %p, %q, %s\n  }",
    "  %e = domain %zero, %i, %one : domain<%i>\n  %0 = domain %zero, %i, %one, %e : domain<%0>\n  %1 = indices %0 : tensor<index, [%0]>",
]

BAD = [
    ("  %0 = frobnicate %s : f32", "%0 = frobnicate: unknown operation"),
    ("  %0 = add %s : f32", "1 operands, expected 2"),
    ("  %0 = add %a, %s : tensor<f32, [M, N]>", "operand 1 is a f32, expected the shape of operand 0, tensor<f32, [M, N]>"),
    ("  %0 = add %s, %i : f32", "operands of dtypes f32 and index"),
    ("  %0 = add %c, %c : bool", "operands of dtype bool, expected numeric"),
    ("  %0 = div %i, %i : index", "operands of dtype index, expected floating"),
    ("  %0 = floordiv %s, %s : f32", "operands of dtype f32, expected integer"),
    ("  %0 = and %s, %s : f32", "operands of dtype f32, expected integer or bool"),
    ("  %0 = add %s, %s : f64", "result 0 is a f64, expected f32"),
    ("  %0 = eq %s, %s : f32", "result 0 is a f32, expected bool"),
    ("  %0 = select %s, %s, %s : f32", "the condition is f32, expected bool"),
    ("  %0 = add %dm, %dm : f32", "operand 0 %dm is a domain<M>, expected a scalar or tensor"),
    ("  %0 = bitcast %s : f64", "bitcast from f32 to f64 changes the width"),
    ("  %0 = bitcast %c : u8", "bool cannot be bitcast"),
    ("  %0 = exp2 %s {ftz=True} : f32", "ftz needs approximate"),
    ("  %0 = tanh %s {approximate=True, ftz=True} : f32", "tanh takes no ftz"),
    ("  %0 = exp %s {approximate=True} : f32", "unknown attribute approximate"),
    ("  %0 = const {value=128} : i8", "value 128 is no i8"),
    ("  %0 = const {value=1.5} : i8", "value 1.5 is no i8"),
    ("  %0 = const {value=1} : bool", "value 1 is no bool"),
    ("  %0 = const {value=inf} : f8e4m3fn", "f8e4m3fn has no infinity"),
    ("  %0 = const : f32", "attribute value is missing"),
    ("  %0 = domain %zero, %s, %one : domain<M>", "end %s is a f32, expected index"),
    ("  %0 = indices %dm : tensor<index, [N]>", "result 0 is a tensor<index, [N]>, expected tensor<index, [M]>"),
    ("  %0 = broadcast %row : tensor<f32, [N, M]>", "extent N does not broadcast to M"),
    ("  %0 = broadcast %a : tensor<f32, [N]>", "has more axes than"),
    ("  %0 = broadcast %s : tensor<f64, [N]>", "expected dtype f32"),
    ("  %0 = expand %row {axis=2} : tensor<f32, [N, 1]>", "axis=2 does not fit rank 2"),
    ("  %z = broadcast %s : tensor<f32, [3, 4]>\n  %0 = reshape %z : tensor<f32, [5, 2]>",
     "tensor<f32, [3, 4]> has 12 elements, tensor<f32, [5, 2]> has 10"),
    ("  %0 = transpose %a {perm=(0, 0)} : tensor<f32, [M, M]>", "perm=(0, 0) is no permutation"),
    ("  %0 = join %row, %s : tensor<f32, [N, 2]>", "operand 1 %s is a f32"),
    ("  %0 = read %x, %i : f32", "1 indices for 2 axes"),
    ("  %0 = read %x, %i, %s : f32", "index 1 %s has dtype f32, expected index"),
    ("  %0 = read %x, %dm, %dn : tensor<f32, [N, M]>", "the result %0 is a tensor<f32, [N, M]>, expected tensor<f32, [M, N]>"),
    ("  %0 = read %a, %i, %i : f32", "the source %a is a tensor<f32, [M, N]>"),
    ("  %0 = gather %x, %i, %i : f32", "the source %x is a view"),
    ("  %0 = indices %dm : tensor<index, [M]>\n  %1 = indices %dn : tensor<index, [N]>\n  %2 = read %x, %0, %1 : tensor<f32, [M]>",
     "index 1 %1 is a tensor<index, [N]>, expected the shape of the first tensor index"),
    ("  %0 = read %x, %i, %i, %s, %s {guard=True} : f32", "valid %s is a f32, expected bool"),
    ("  write %x, %i, %i, %s", "the destination %x is read-only"),
    ("  write %y, %i, %dn, %s", "the value %s is a f32, expected tensor<f32, [N]>"),
    ("  write %y, %i, %i, %s, %s {guard=True}", "valid %s is a f32, expected bool"),
    ("  %0 = buffer %i : buffer<f32, [M]>", "the initial value %i is a index"),
    ("  %0 = reduce %a {axis=2, kind=\"sum\"} : tensor<f32, [M]>", "axis=2 does not fit rank 2"),
    ("  %0 = reduce %a {axis=0, kind=\"median\"} : tensor<f32, [N]>", "kind=\"median\" is unknown"),
    ("  %0 = reduce %a {axis=0, kind=\"any\"} : tensor<f32, [N]>", "source 0 of dtype f32, expected bool"),
    ("  %0 = reduce %a {axis=0, kind=\"sum\"} : tensor<f32, [M]>", "result 0 %0 is a tensor<f32, [M]>, expected tensor<f32, [N]>"),
    ("  %0 = reduce %row, %s {axis=0, kind=\"generic\", over=(0,)} : f32 {\n  ^(%p: f32, %q: f32):\n    yield %p\n  }",
     "%0 = reduce: over=(0,) does not fit the results"),
    ("  %0 = reduce %row, %i {axis=0, kind=\"generic\"} : f32 {\n  ^(%p: f32, %q: f32):\n    yield %p\n  }",
     "identity 0 %i is a index, expected f32"),
    ("  %0 = reduce %row, %s {axis=0, kind=\"generic\"} : f32 {\n  ^(%p: f32):\n    yield %p\n  }",
     "the combine takes (f32), expected (f32, f32)"),
    ("  %0 = reduce %row, %s {axis=0, kind=\"generic\"} : f32 {\n  ^(%p: f32, %q: f32):\n    yield %i\n  }",
     "the combine yields (index), expected (f32)"),
    ("  %0 = reduce %row, %s {axis=0, kind=\"generic\"} : f32 {\n  ^(%p: f32, %q: f32):\n    %r = read %x, %i, %i : f32\n    yield %r\n  }",
     "the combine contains a read; it must be pure"),
    ("  %0, %1 = arg_reduce %a {axis=0, kind=\"max\"} : tensor<f32, [N]>, tensor<i32, [N]>", "expected tensor<index, [N]>"),
    ("  %0 = scan %a {axis=0, inclusive=1, kind=\"sum\", reverse=False} : tensor<f32, [M, N]>", "inclusive=1, expected a bool"),
    ("  %0 = contract %a, %a {batch=(), form=\"chain\", reduce=((1, 0),)} : tensor<f32, [M, N]>", "the axes (1, 0) have extents N and M"),
    ("  %0 = contract %a, %a {batch=(), form=\"tree\", reduce=((1, 1),)} : tensor<f32, [M, M]>", "form=\"tree\", expected \"chain\""),
    ("  %0 = contract %a, %a {batch=(), form=\"chain\", reduce=()} : tensor<f32, [M, M]>", "no reduced axes"),
    ("  %0 = contract %a, %a {batch=((1, 0),), form=\"tree\", reduce=((1, 1),)} : tensor<f32, [M]>", "axes [1, 1] of operand 0 repeat"),
    ("  %0 = call %s {fn=\"g\"} : f64", "fn=\"g\" is no extern of the kernel"),
    ("  %0 = for %dm, %s : f32 {\n  ^(%p: index):\n    yield %s\n  }", "the body takes (index), expected (index, f32)"),
    ("  %0 = for %dm, %s : f32 {\n  ^(%p: index, %q: f32):\n    yield %p\n  }", "the body yields (index), expected (f32)"),
    ("  %0 = loop %s : f32 {\n  ^(%q: f32):\n    yield %q\n  }", "the body yields (f32), expected (bool, f32)"),
    ("  %0 = if %s : f32 {\n    yield %s\n  } {\n    yield %s\n  }", "the condition %s is a f32, expected bool"),
    ("  %0 = if %c : f32 {\n    yield %s\n  } {\n    yield %i\n  }", "the second branch yields (index), expected (f32)"),
    ("  parallel %dm {\n  ^(%p: index, %q: index):\n  }", "the body takes (index, index), expected (index)"),
    ("  %0 = neg %s : f32 {\n  }", "takes no regions"),
    ("  %0 = broadcast %s : tensor<f32, [Q]>", "the extent symbol Q of %0 is no shape name of the kernel"),
    ("  %0 = broadcast %s : tensor<f32, [%q]>", "the extent symbol %q of %0 is not a visible value"),
    ("  %0 = broadcast %s : tensor<f32, [%s]>", "the extent symbol %s of %0 is not an index scalar"),
]


@pytest.mark.parametrize("body", GOOD)
def test_accepted(body):
    verify(kernel(body))


@pytest.mark.parametrize("body, message", BAD)
def test_rejected(body, message):
    found = faults(body)
    assert any(message.replace('"', "'") in f.replace('"', "'") for f in found), found


def test_all_faults_are_listed():
    found = faults("  %0 = add %s, %i : f32\n  write %x, %i, %i, %s\n  %1 = exp %i : index")
    assert len(found) == 3


def test_a_value_of_a_region_is_not_visible_outside():
    k = kernel("  %0 = if %c : f32 {\n    %r = neg %s : f32\n    yield %r\n  } {\n    yield %s\n  }\n  %1 = neg %s : f32")
    inner = k.body.ops[-2].regions[0].ops[0].results[0]
    k.body.ops[-1].args = (inner,)
    with pytest.raises(VerifyError, match="%r is used where it is not defined"):
        verify(k)


def test_use_before_definition_and_repeated_names():
    k = kernel("  %0 = neg %s : f32\n  %1 = neg %0 : f32")
    k.body.ops[-1], k.body.ops[-2] = k.body.ops[-2], k.body.ops[-1]
    with pytest.raises(VerifyError, match="%0 is used where it is not defined"):
        verify(k)
    k = kernel("  %0 = neg %s : f32\n  %1 = neg %0 : f32")
    k.body.ops.append(k.body.ops[-1])
    with pytest.raises(VerifyError, match="%1 is defined twice"):
        verify(k)


def test_the_line_of_the_source_is_named():
    from intent_numba.kir import Loc
    k = kernel("  %0 = add %s, %i : f32")
    k.body.ops[-1].loc = Loc("f.py", 7)
    with pytest.raises(VerifyError, match=r"%0 = add \(line 7\): operands of dtypes f32 and index"):
        verify(k)
