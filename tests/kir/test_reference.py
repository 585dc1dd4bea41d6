"""Does the reference interpreter do control, memory and shapes as the language says?"""
import itertools
import math

import ml_dtypes
import numpy as np
import pytest

from intent_numba import reference
from intent_numba.kir import parse_kernel, print_kernel, verify

CONSTS = """\
  %zero = const {value=0} : index
  %one = const {value=1} : index
  %two = const {value=2} : index
"""


def run(text: str, *args, externs=None):
    kernel = parse_kernel(text)
    assert print_kernel(parse_kernel(print_kernel(kernel))) == print_kernel(kernel)
    kernel.externs = externs or {}
    reference.run(verify(kernel), list(args))


def test_for_with_carries_and_break():
    text = """kernel k(%n: index, %limit: index, %y: view<index, [2], out>) {
""" + CONSTS + """  %d = domain %zero, %n, %one : domain<%n>
  %s, %last = for %d, %zero, %zero {breaks=True} : index, index {
  ^(%i: index, %acc: index, %seen: index):
    %new = add %acc, %i : index
    %stop = gt %new, %limit : bool
    yield %stop, %new, %i
  }
  write %y, %zero, %s
  write %y, %one, %last
}
"""
    y = np.zeros(2, np.int64)
    run(text, 10, 100, y)
    assert y.tolist() == [45, 9]
    run(text, 10, 5, y)
    assert y.tolist() == [6, 3]
    run(text, 0, 5, y)
    assert y.tolist() == [0, 0]


def test_loop_and_if():
    """The Collatz steps of a number."""
    text = """kernel k(%n: i64, %y: view<i64, [], out>) {
  %zero = const {value=0} : i64
  %one = const {value=1} : i64
  %two = const {value=2} : i64
  %three = const {value=3} : i64
  %last, %steps = loop %n, %zero : i64, i64 {
  ^(%v: i64, %k: i64):
    %r = mod %v, %two : i64
    %even = eq %r, %zero : bool
    %w = if %even : i64 {
      %h = floordiv %v, %two : i64
      yield %h
    } {
      %t = mul %v, %three : i64
      %u = add %t, %one : i64
      yield %u
    }
    %k1 = add %k, %one : i64
    %more = ne %w, %one : bool
    yield %more, %w, %k1
  }
  write %y, %steps
}
"""
    y = np.zeros((), np.int64)
    run(text, 27, y)
    assert y == 111


def test_parallel_points():
    text = """kernel k(%y: view<index, [M, N], out>) {
""" + CONSTS + """  %m = extent {e=`M`} : index
  %n = extent {e=`N`} : index
  %d = domain %one, %m, %two : domain<%dm>
  %e = domain %zero, %n, %one : domain<N>
  parallel %d, %e {
  ^(%i: index, %j: index):
    %p = mul %i, %n : index
    %v = add %p, %j : index
    write %y, %i, %j, %v
  }
}
"""
    text = text.replace("domain<%dm>", "domain<%d>")
    y = np.full((4, 3), -1)
    run(text, y)
    assert y.tolist() == [[-1] * 3, [3, 4, 5], [-1] * 3, [9, 10, 11]]


COPY = """kernel k(%x: view<f32, [M, N], in>, %y: view<f32, [M, N], out>) {
""" + CONSTS + """  %m = extent {e=`M`} : index
  %n = extent {e=`N`} : index
  %d = domain %zero, %m, %one : domain<M>
  %e = domain %zero, %n, %one : domain<N>
  %v = read %x, %d, %e : tensor<f32, [M, N]>
  write %y, %d, %e, %v
}
"""


def test_any_strides(rng):
    """Language case 22."""
    base = rng.standard_normal((9, 10)).astype(np.float32)
    for x in (base[::-1], base[:, ::-1], base.T, base[::2, 1::3], np.broadcast_to(base[0], (4, 10)), base[3:3], base[:0].T):
        out = np.zeros(x.shape[::-1], np.float32).T
        run(COPY, x, out)
        assert out.tolist() == x.tolist()


SHIFT = """kernel k(%a: view<i32, [N], in>, %b: view<i32, [N], inout>) {
""" + CONSTS + """  %n = extent {e=`N`} : index
  %r = domain %zero, %n, %one : domain<N>
BODY}
"""
AT_ONCE = """  %v = read %a, %r : tensor<i32, [N]>
  write %b, %r, %v
"""
IN_ORDER = """  for %r {
  ^(%i: index):
    %v = read %a, %i : i32
    write %b, %i, %v
  }
"""


@pytest.mark.parametrize("body, a, b, want", [
    (AT_ONCE, slice(0, 5), slice(1, 6), [0, 0, 1, 2, 3, 4]), (AT_ONCE, slice(1, 6), slice(0, 5), [1, 2, 3, 4, 5, 5]),
    (IN_ORDER, slice(0, 5), slice(1, 6), [0, 0, 0, 0, 0, 0]), (IN_ORDER, slice(1, 6), slice(0, 5), [1, 2, 3, 4, 5, 5]),
])
def test_overlapping_views(body, a, b, want):
    """Language case 17."""
    base = np.arange(6, dtype=np.int32)
    run(SHIFT.replace("BODY", body), base[a], base[b])
    assert base.tolist() == want


def test_transpose_in_place_by_coordinates():
    text = """kernel k(%m: view<i32, [N, N], inout>) {
""" + CONSTS + """  %n = extent {e=`N`} : index
  %r = domain %zero, %n, %one : domain<N>
  %p = indices %r : tensor<index, [N]>
  %c = expand %p {axis=1} : tensor<index, [N, 1]>
  %rows = broadcast %c : tensor<index, [N, N]>
  %cols = broadcast %p : tensor<index, [N, N]>
  %v = read %m, %cols, %rows : tensor<i32, [N, N]>
  write %m, %rows, %cols, %v
}
"""
    x = np.arange(9, dtype=np.int32).reshape(3, 3)
    want = x.T.copy()
    run(text, x)
    assert x.tolist() == want.tolist()


def test_a_read_is_a_snapshot():
    text = """kernel k(%a: view<i32, [N], inout>, %y: view<i32, [], out>) {
""" + CONSTS + """  %nine = const {value=9} : i32
  %t = read %a, %zero : i32
  write %a, %zero, %nine
  write %y, %t
  %b = buffer %nine : buffer<i32, [2]>
  %u = read %b, %one : i32
  write %b, %one, %t
  %w = read %b, %one : i32
  write %a, %one, %u
  write %a, %two, %w
}
"""
    a, y = np.array([5, 6, 7], np.int32), np.zeros((), np.int32)
    run(text, a, y)
    assert y == 5 and a.tolist() == [9, 9, 5]


INDEX_KINDS = ("scalar", "domain", "tensor")


@pytest.mark.parametrize("kinds", list(itertools.product(INDEX_KINDS, repeat=3)))
def test_index_relations(kinds, rng):
    """Every mixture of scalars, domains and tensors, against a loop over the result's coordinates."""
    lines, names, shape, joint = [], [], [], None
    for axis, kind in enumerate(kinds):
        if kind == "scalar":
            names.append("%two")
        elif kind == "domain":
            lines.append(f"  %d{axis} = domain %one, %four, %two : domain<2>")
            names.append(f"%d{axis}")
            shape.append("2")
        else:
            names.append("%rows" if axis % 2 else "%cols")
            if joint is None:
                joint = len(shape)
                shape += ["A", "B"]
    result = f"tensor<i32, [{', '.join(shape)}]>" if shape else "i32"
    text = f"""kernel k(%x: view<i32, [5, 6, 7], in>, %r: view<index, [A, B], in>, %c: view<index, [A, B], in>, \
%y: view<i32, [{', '.join(shape)}], out>, %z: view<i32, [5, 6, 7], out>, %ok: view<bool, [{', '.join(shape)}], in>, \
%g: view<i32, [{', '.join(shape)}], out>) {{
""" + CONSTS + """  %four = const {value=4} : index
  %a = extent {e=`A`} : index
  %b = extent {e=`B`} : index
  %da = domain %zero, %a, %one : domain<A>
  %db = domain %zero, %b, %one : domain<B>
  %rows = read %r, %da, %db : tensor<index, [A, B]>
  %cols = read %c, %da, %db : tensor<index, [A, B]>
""" + "\n".join(lines) + f"""
  %v = read %x, {', '.join(names)} : {result}
"""
    full = []
    for i, e in enumerate(shape):
        if e == "2":
            text += f"  %n{i} = const {{value=2}} : index\n"
        else:
            text += f"  %n{i} = extent {{e=`{e}`}} : index\n"
        text += f"  %full{i} = domain %zero, %n{i}, %one : domain<{e}>\n"
        full.append(f", %full{i}")
    places = "".join(full)
    text += f"""  write %y{places}, %v
  write %z, {', '.join(names)}, %v
  %valid = read %ok{places} : {result.replace('i32', 'bool')}
  %minus = const {{value=-1}} : i32
""" + (f"  %fill = broadcast %minus : {result}\n" if shape else "  %fill = neg %one : index\n") + f"""\
  %guarded = read %x, {', '.join(names)}, %valid, {'%fill' if shape else '%minus'} {{guard=True}} : {result}
  write %g{places}, %guarded
}}
"""
    if not shape:
        text = text.replace("  %fill = neg %one : index\n", "")
    x = rng.integers(0, 1000, (5, 6, 7)).astype(np.int32)
    rows, cols = rng.permutation(4).reshape(2, 2), rng.permutation(5)[:4].reshape(2, 2)
    sizes = [int(e) if e.isdigit() else 2 for e in shape]
    y, g, z = np.zeros(sizes, np.int32), np.zeros(sizes, np.int32), np.full((5, 6, 7), -7, np.int32)
    ok = rng.integers(0, 2, sizes).astype(bool)
    run(text, x, rows, cols, y, z, np.asarray(ok), g)
    want_z = np.full((5, 6, 7), -7, np.int32)
    for at in np.ndindex(*sizes):
        pair = at[joint:joint + 2] if joint is not None else None
        rest = list(at[:joint]) + list(at[joint + 2:]) if joint is not None else list(at)
        where = tuple(2 if kind == "scalar" else 1 + 2 * rest.pop(0) if kind == "domain" else (rows if axis % 2 else cols)[pair]
                      for axis, kind in enumerate(kinds))
        assert y[at] == x[where]
        assert g[at] == (x[where] if ok[at] else -1)
        want_z[where] = x[where]
    assert z.tolist() == want_z.tolist()


GATHER = """kernel k(%t: view<index, [K], in>, %y: view<f32, [K], inout>, %src: view<f32, [N], in>, %ok: view<bool, [K], in>) {
""" + CONSTS + """  %k = extent {e=`K`} : index
  %n = extent {e=`N`} : index
  %d = domain %zero, %k, %one : domain<K>
  %dn = domain %zero, %n, %one : domain<N>
  %at = read %t, %d : tensor<index, [K]>
  %valid = read %ok, %d : tensor<bool, [K]>
  %all = read %src, %dn : tensor<f32, [N]>
  %f = const {value=-1.5} : f32
  %fill = broadcast %f : tensor<f32, [K]>
  %v = gather %all, %at, %valid, %fill {guard=True} : tensor<f32, [K]>
  write %y, %at, %v, %valid {guard=True}
}
"""


def test_invalid_members_form_no_address():
    src = np.arange(4, dtype=np.float32) * 10
    y = np.zeros(4, np.float32)
    run(GATHER, np.array([2, 99, 0, -5]), y, src, np.array([True, False, True, False]))
    assert y.tolist() == [0.0, 0.0, 20.0, 0.0]
    run(GATHER, np.array([2, 99, 0, -5]), y, np.zeros(0, np.float32), np.zeros(4, bool))


def test_an_index_outside_raises():
    with pytest.raises(IndexError, match=r"%all: index 99 on axis 0 of extent 4"):
        run(GATHER, np.array([2, 99, 0, 1]), np.zeros(4, np.float32), np.zeros(4, np.float32), np.ones(4, bool))
    with pytest.raises(IndexError, match=r"index -1 on axis 0"):
        run(GATHER, np.array([2, -1, 0, 1]), np.zeros(4, np.float32), np.zeros(4, np.float32), np.ones(4, bool))


def test_shapes():
    text = """kernel k(%x: view<i32, [M, N], in>, %y: view<i32, [K, 2], out>) {
""" + CONSTS + """  %m = extent {e=`M`} : index
  %n = extent {e=`N`} : index
  %k = extent {e=`K`} : index
  %d = domain %zero, %m, %one : domain<M>
  %e = domain %zero, %n, %one : domain<N>
  %f = domain %zero, %k, %one : domain<K>
  %g = domain %zero, %two, %one : domain<2>
  %v = read %x, %d, %e : tensor<i32, [M, N]>
  %t = transpose %v {perm=(1, 0)} : tensor<i32, [N, M]>
  %flat = reshape %t : tensor<i32, [K]>
  %ext = expand %flat {axis=0} : tensor<i32, [1, K]>
  %back = reshape %ext : tensor<i32, [K]>
  %neg = neg %back : tensor<i32, [K]>
  %j = join %flat, %neg : tensor<i32, [K, 2]>
  write %y, %f, %g, %j
}
"""
    x = np.arange(6, dtype=np.int32).reshape(2, 3)
    y = np.zeros((6, 2), np.int32)
    run(text, x, y)
    assert y.tolist() == [[v, -v] for v in x.T.ravel()]


def test_arguments_are_checked():
    x = np.zeros((2, 3), np.float32)
    with pytest.raises(ValueError, match="extent N is 3, got 4"):
        run(COPY, x, np.zeros((2, 4), np.float32))
    with pytest.raises(TypeError, match="an array of f32 expected, got float64"):
        run(COPY, x, np.zeros((2, 3)))
    with pytest.raises(ValueError, match="rank 2 expected, got 1"):
        run(COPY, x[0], x)
    with pytest.raises(ValueError, match="1 arguments for 2 parameters"):
        run(COPY, x)


def test_a_wrong_extent_in_the_program_is_found():
    text = """kernel k(%x: view<f32, [M], in>, %y: view<f32, [N], out>) {
""" + CONSTS + """  %m = extent {e=`M`} : index
  %d = domain %zero, %m, %one : domain<N>
}
"""
    with pytest.raises(reference.InterpreterError, match=r"%d has 2 members, its type says domain<N>"):
        run(text, np.zeros(2, np.float32), np.zeros(3, np.float32))


def test_empty_domains():
    text = """kernel k(%b: index, %e: index, %y: view<i32, [], out>) {
  %one = const {value=1} : index
  %d = domain %b, %e, %one : domain<%d>
  %z = const {value=0} : i32
  %u = const {value=1} : i32
  %n = for %d, %z : i32 {
  ^(%i: index, %c: i32):
    %k = add %c, %u : i32
    yield %k
  }
  write %y, %n
}
"""
    y = np.zeros((), np.int32)
    for b, e, want in ((2, 5, 3), (5, 2, 0), (3, 3, 0)):
        run(text, b, e, y)
        assert y == want


def test_extern_calls():
    text = """kernel k(%x: f32, %y: view<f64, [], out>) externs "half" {
  %v = call %x {fn="half"} : f64
  write %y, %v
}
"""
    y = np.zeros(())
    run(text, 3.0, y, externs={"half": lambda v: float(v) / 2})
    assert y == 1.5


def test_scalars_of_every_dtype():
    for dt, value, array in (("bool", True, np.bool_), ("u64", 2 ** 64 - 1, np.uint64), ("index", -3, np.int64), ("f16", 0.1, np.float16),
                             ("bf16", ml_dtypes.bfloat16(0.1), ml_dtypes.bfloat16), ("f8e5m2", 0.1, ml_dtypes.float8_e5m2),
                             ("f32", np.float32(0.1), np.float32), ("f64", 0.1, np.float64)):
        y = np.zeros((), array)
        run(f"kernel k(%s: {dt}, %y: view<{dt}, [], out>) {{\n  write %y, %s\n}}\n", value, y)
        assert y == array(value)


def test_rank_zero_tensors_and_scalars():
    text = """kernel k(%s: f32, %y: view<f32, [], out>) {
  %t = broadcast %s : tensor<f32, []>
  %u = add %t, %t : tensor<f32, []>
  %v = gather %u : f32
  write %y, %v
  write %y, %u
}
"""
    y = np.zeros((), np.float32)
    run(text, 1.5, y)
    assert y == 3.0 and not math.isnan(y)
