"""KIR text in, task program text out; and the task program run by the plain executor against the reference interpreter."""
import numpy as np
import pytest
from run_program import run_program

from intent_numba import reference
from intent_numba.kir import text, verify
from intent_numba.lowering import lower
from intent_numba.task.parse import parse_program
from intent_numba.task.text import print_program

ROWS_COLS = """
  %0 = const {value=0} : index
  %1 = const {value=1} : index
  %m = extent {e=`M`} : index
  %n = extent {e=`N`} : index
  %r = domain %0, %m, %1 : domain<M>
  %c = domain %0, %n, %1 : domain<N>
"""

SOFTMAX = "kernel softmax(%x: view<f32, [M, N], in>, %y: view<f32, [M, N], out>) {" + ROWS_COLS + """
  %6 = read %x, %r, %c : tensor<f32, [M, N]>
  %7 = reduce %6 {axis=1, kind="max"} : tensor<f32, [M]>
  %8 = expand %7 {axis=1} : tensor<f32, [M, 1]>
  %9 = broadcast %8 : tensor<f32, [M, N]>
  %10 = sub %6, %9 : tensor<f32, [M, N]>
  %11 = exp %10 : tensor<f32, [M, N]>
  %12 = reduce %11 {axis=1, kind="sum"} : tensor<f32, [M]>
  %13 = expand %12 {axis=1} : tensor<f32, [M, 1]>
  %14 = broadcast %13 : tensor<f32, [M, N]>
  %15 = div %11, %14 : tensor<f32, [M, N]>
  write %y, %r, %c, %15
}
"""

CENTRED = "kernel centred(%x: view<f32, [M, N], in>, %y: view<f32, [M, N], out>) {" + ROWS_COLS + """
  %6 = read %x, %r, %c : tensor<f32, [M, N]>
  %7 = reduce %6 {axis=1, kind="sum"} : tensor<f32, [M]>
  %8 = reduce %6 {axis=0, kind="sum"} : tensor<f32, [N]>
  %9 = expand %7 {axis=1} : tensor<f32, [M, 1]>
  %10 = broadcast %9 : tensor<f32, [M, N]>
  %11 = broadcast %8 : tensor<f32, [M, N]>
  %12 = sub %6, %10 : tensor<f32, [M, N]>
  %13 = sub %12, %11 : tensor<f32, [M, N]>
  write %y, %r, %c, %13
}
"""

TURN = """kernel turn(%x: view<f32, [N, N], inout>) {
  %0 = const {value=0} : index
  %1 = const {value=1} : index
  %n = extent {e=`N`} : index
  %r = domain %0, %n, %1 : domain<N>
  %2 = read %x, %r, %r : tensor<f32, [N, N]>
  %3 = transpose %2 {perm=(1, 0)} : tensor<f32, [N, N]>
  write %x, %r, %r, %3
}
"""

SNAPSHOT = """kernel snapshot(%x: view<f32, [N], inout>, %y: view<f32, [N], out>) {
  %0 = const {value=0} : index
  %1 = const {value=1} : index
  %n = extent {e=`N`} : index
  %r = domain %0, %n, %1 : domain<N>
  %2 = read %x, %r : tensor<f32, [N]>
  %3 = add %2, %2 : tensor<f32, [N]>
  write %x, %r, %3
  write %y, %r, %2
}
"""

TOTAL = """kernel total(%x: view<f32, [N], in>, %y: view<f32, [N], out>) {
  %0 = const {value=0} : index
  %1 = const {value=1} : index
  %n = extent {e=`N`} : index
  %r = domain %0, %n, %1 : domain<N>
  %2 = read %x, %r : tensor<f32, [N]>
  %3 = mul %2, %2 : tensor<f32, [N]>
  %4 = reduce %3 {axis=0, kind="sum"} : f32
  %5 = broadcast %4 : tensor<f32, [N]>
  %6 = div %2, %5 : tensor<f32, [N]>
  write %y, %r, %6
}
"""

COPY = """kernel copy(%a: view<f32, [N], in>, %b: view<f32, [N], out>) {
  %0 = const {value=0} : index
  %1 = const {value=1} : index
  %n = extent {e=`N`} : index
  %r = domain %0, %n, %1 : domain<N>
  %2 = read %a, %r : tensor<f32, [N]>
  write %b, %r, %2
}
"""

LOOP = """kernel power(%a: view<f32, [N, N], in>, %v: view<f32, [N], inout>, %steps: index) {
  %0 = const {value=0} : index
  %1 = const {value=1} : index
  %n = extent {e=`N`} : index
  %r = domain %0, %n, %1 : domain<N>
  %t = domain %0, %steps, %1 : domain<%steps>
  %2 = read %a, %r, %r : tensor<f32, [N, N]>
  %3 = read %v, %r : tensor<f32, [N]>
  %4, %5 = for %t, %3, %3 : tensor<f32, [N]>, tensor<f32, [N]> {
    ^(%i: index, %p: tensor<f32, [N]>, %q: tensor<f32, [N]>):
    %6 = contract %2, %p {reduce=((1, 0),), batch=(), form="tree"} : tensor<f32, [N]>
    %7 = reduce %6 {axis=0, kind="max"} : f32
    %8 = broadcast %7 : tensor<f32, [N]>
    %9 = div %6, %8 : tensor<f32, [N]>
    yield %9, %p
  }
  %10 = sub %4, %5 : tensor<f32, [N]>
  write %v, %r, %10
}
"""

POINTS = """kernel points(%x: view<i32, [N], in>, %y: view<i32, [N], out>, %k: i32) {
  %0 = const {value=0} : index
  %1 = const {value=1} : index
  %n = extent {e=`N`} : index
  %r = domain %0, %n, %1 : domain<N>
  parallel %r {
    ^(%i: index):
    %2 = read %x, %i : i32
    %b = buffer : buffer<i32, [4]>
    %c0 = const {value=0} : i32
    %c1 = const {value=1} : i32
    write %b, %0, %2
    %5, %6 = loop %2, %c0 : i32, i32 {
      ^(%v: i32, %s: i32):
      %7 = sub %v, %k : i32
      %8 = add %s, %c1 : i32
      %9 = gt %7, %k : bool
      yield %9, %7, %8
    }
    %10 = read %b, %0 : i32
    %11 = gt %10, %5 : bool
    %12 = if %11 : i32 {
      yield %6
    } {
      %13 = read %b, %0 : i32
      yield %13
    }
    write %y, %i, %12
  }
}
"""


def program(source, alias=frozenset()):
    kernel = text.parse_kernel(source)
    verify(kernel)
    p = lower(kernel, alias)
    printed = print_program(p)
    assert print_program(parse_program(printed)) == printed
    return kernel, p


def both(source, *args, alias=frozenset()):
    """The arguments after the reference and after the task program."""
    kernel, p = program(source, alias)
    one, two = ([a.copy() if isinstance(a, np.ndarray) else a for a in args] for _ in "12")
    reference.run(kernel, one)
    run_program(p, two)
    for a, b in zip(one, two):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
    return one


def stages(p):
    return [s for s in print_program(p).splitlines() if s.strip().startswith("stage")]


def rng(*shape):
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("shape", [(4, 8), (3, 37), (0, 5), (5, 0)])
def test_softmax_is_one_stage_of_rows(shape):
    _, p = program(SOFTMAX)
    assert len(stages(p)) == 1 and ":M) phases" in stages(p)[0]
    assert p.inplace == {("x", "y")}
    both(SOFTMAX, rng(*shape), rng(*shape))


def test_softmax_text():
    _, p = program(SOFTMAX)
    assert print_program(p) == """program softmax(x: f32[M, N] in, y: f32[M, N] out) {
  stage stage14 tasks (i12:M) phases cost=32 {
    scratch s3: f32[M] tasks(i12)
    scratch t6: f32[M, N] tasks(i12)
    scratch s9: f32[M] tasks(i12)
    phase (i13:N)
      reduce.max.free s3[i12] over i13 of (x[i12, i13]:f32)
    phase (i13:N)
      store t6[i12, i13] = exp(sub(x[i12, i13]:f32, s3[i12]:f32):f32):f32
      reduce.sum.tree s9[i12] over i13 of (t6[i12, i13]:f32)
    phase (i13:N)
      store y[i12, i13] = div(t6[i12, i13]:f32, s9[i12]:f32):f32
  }
  inplace x y
}
"""


def test_row_and_column_sums_do_not_share_an_axis():
    _, p = program(CENTRED)
    assert len(stages(p)) == 2
    both(CENTRED, rng(5, 7), rng(5, 7))


def test_a_transpose_in_place_reads_everything_first():
    _, p = program(TURN)
    assert len(stages(p)) == 2
    (x,) = both(TURN, rng(6, 6))
    assert (x == rng(6, 6).T).all()


def test_a_read_before_a_store_is_a_snapshot():
    x, y = both(SNAPSHOT, rng(9), rng(9))
    assert (y == rng(9)).all() and (x == 2 * rng(9)).all()


@pytest.mark.parametrize("n", [0, 1, 31, 4096, 4097, 9000])
def test_a_whole_sum_is_split_into_leaves(n):
    _, p = program(TOTAL)
    assert len(stages(p)) == 3
    both(TOTAL, rng(n), rng(n))


def test_views_that_may_overlap_are_read_before_anything_is_stored():
    kernel, p = program(COPY, frozenset({frozenset(("a", "b"))}))
    assert len(stages(p)) == 2
    base = np.arange(6, dtype=np.float32)
    run_program(p, [base[:-1], base[1:]])
    assert base.tolist() == [0, 0, 1, 2, 3, 4]


def test_crossing_carries_are_assigned_at_once():
    both(LOOP, np.abs(rng(5, 5)), np.abs(rng(5)), np.int64(3))
    both(LOOP, np.abs(rng(5, 5)), np.abs(rng(5)), np.int64(0))


def test_scalar_points_with_control_and_a_buffer():
    _, p = program(POINTS)
    assert "point" in stages(p)[0]
    both(POINTS, np.array([1, 9, 30, -4, 7], np.int32), np.zeros(5, np.int32), np.int32(3))


WHERE = """kernel where(%x: view<f32, [N], in>, %v: view<f32, [1], out>, %i: view<index, [1], out>) {
  %0 = const {value=0} : index
  %1 = const {value=1} : index
  %n = extent {e=`N`} : index
  %r = domain %0, %n, %1 : domain<N>
  %2 = read %x, %r : tensor<f32, [N]>
  %3, %4 = arg_reduce %2 {axis=0, kind="max"} : f32, index
  write %v, %0, %3
  write %i, %0, %4
}
"""

PAIRS = """kernel pairs(%x: view<f32, [N], in>, %y: view<f32, [2], out>) {
  %0 = const {value=0} : index
  %1 = const {value=1} : index
  %n = extent {e=`N`} : index
  %r = domain %0, %n, %1 : domain<N>
  %2 = read %x, %r : tensor<f32, [N]>
  %3 = mul %2, %2 : tensor<f32, [N]>
  %z = const {value=0.0} : f32
  %4, %5 = reduce %2, %3, %z, %z {axis=0, kind="generic"} : f32, f32 {
    ^(%a: f32, %b: f32, %c: f32, %d: f32):
    %6 = add %a, %c : f32
    %7 = mul %b, %d : f32
    %8 = sub %7, %a : f32
    yield %6, %8
  }
  write %y, %0, %4
  write %y, %1, %5
}
"""


@pytest.mark.parametrize("n", [0, 1, 40, 4097, 9001])
def test_whole_arg_and_generic_reductions_are_split_too(n):
    for source, outs in ((WHERE, (np.zeros(1, np.float32), np.zeros(1, np.int64))), (PAIRS, (np.zeros(2, np.float32),))):
        assert len(stages(program(source)[1])) >= 3
        both(source, rng(n), *outs)


def test_a_value_nobody_uses_is_not_computed():
    dead = COPY.replace("  write", "  %3 = add %2, %2 : tensor<f32, [N]>\n  write").replace("[N], in>", "[N], inout>")
    kernel, p = program(dead)
    assert len(stages(p)) == 1


DIFFERENCES = """kernel differences(%a: view<f32, [N], in>, %x: view<f32, [N], out>) {
  %0 = const {value=0} : index
  %1 = const {value=1} : index
  %n = extent {e=`N`} : index
  %r = domain %0, %n, %1 : domain<N>
  %z = const {value=0.0} : f32
  %2 = for %r, %z : f32 {
    ^(%i: index, %later: f32):
    %3 = read %a, %i : f32
    %4 = sub %3, %later : f32
    write %x, %i, %4
    yield %4
  }
}
"""


def test_a_carry_is_assigned_after_the_stores_that_use_its_old_value():
    _, x = both(DIFFERENCES, rng(5), rng(5))
    assert x[0] == rng(5)[0]


RECURRENCE = """kernel recurrence(%x: view<f32, [T, B, D], in>, %w: view<f32, [D, D], in>, %y: view<f32, [T, B, D], out>) {
  %0 = const {value=0} : index
  %1 = const {value=1} : index
  %t = extent {e=`T`} : index
  %b = extent {e=`B`} : index
  %d = extent {e=`D`} : index
  %dt = domain %0, %t, %1 : domain<T>
  %db = domain %0, %b, %1 : domain<B>
  %dd = domain %0, %d, %1 : domain<D>
  %2 = read %w, %dd, %dd : tensor<f32, [D, D]>
  %z = const {value=0.0} : f32
  %3 = broadcast %z : tensor<f32, [B, D]>
  %4 = for %dt, %3 : tensor<f32, [B, D]> {
    ^(%i: index, %h: tensor<f32, [B, D]>):
    %5 = contract %h, %2 {reduce=((1, 0),), batch=(), form="chain"} : tensor<f32, [B, D]>
    %6 = read %x, %i, %db, %dd : tensor<f32, [B, D]>
    %7 = add %5, %6 : tensor<f32, [B, D]>
    %8 = tanh %7 : tensor<f32, [B, D]>
    write %y, %i, %db, %dd, %8
    yield %8
  }
}
"""


def test_a_loop_around_one_stage_becomes_a_stage_around_the_loop():
    _, p = program(RECURRENCE)
    (init, run) = p.body
    assert [a.extent.symbol for a in run.tasks] == ["B"] and type(run.body[0]).__name__ == "For"
    both(RECURRENCE, rng(4, 3, 5), rng(5, 5), rng(4, 3, 5))
    both(RECURRENCE, rng(0, 3, 5), rng(5, 5), rng(0, 3, 5))


def chain(n):
    lines, v = [], "%2"
    for i in range(n):
        lines.append(f"  %m{i} = mul {v}, {v} : tensor<f32, [N]>\n  %a{i} = add {v}, %m{i} : tensor<f32, [N]>")
        v = f"%a{i}"
    return COPY.replace("  write %b, %r, %2", "\n".join(lines) + f"\n  write %b, %r, {v}")


def test_a_long_shared_chain_lowers_and_prints_in_linear_time():
    program(chain(1000))
    both(chain(80), rng(3) * np.float32(1e-3), rng(3))


def test_targets_of_one_sink_have_one_layout():
    both("""kernel two(%x: view<f32, [A, B], in>, %y: view<index, [A, B], out>) {
  %0 = const {value=0} : index
  %1 = const {value=1} : index
  %a = extent {e=`A`} : index
  %b = extent {e=`B`} : index
  %ra = domain %0, %a, %1 : domain<A>
  %rb = domain %0, %b, %1 : domain<B>
  %2 = read %x, %ra, %rb : tensor<f32, [A, B]>
  %3 = reduce %2 {axis=0, kind="max"} : tensor<f32, [B]>
  %4, %5 = arg_reduce %2 {axis=1, kind="min"} : tensor<f32, [A]>, tensor<index, [A]>
  %6 = expand %5 {axis=1} : tensor<index, [A, 1]>
  %7 = broadcast %6 : tensor<index, [A, B]>
  %8 = broadcast %3 : tensor<f32, [A, B]>
  %9 = cast %8 : tensor<index, [A, B]>
  %10 = add %7, %9 : tensor<index, [A, B]>
  write %y, %ra, %rb, %10
}
""", rng(3, 5), np.zeros((3, 5), np.int64))


def test_two_writable_views_are_one_memory_only_if_both_ways_are_safe():
    backwards = COPY.replace("%a: view<f32, [N], in>", "%a: view<f32, [N], inout>").replace(
        "  %2 = read %a, %r : tensor<f32, [N]>",
        "  %i = indices %r : tensor<index, [N]>\n  %l = sub %n, %1 : index\n  %lb = broadcast %l : tensor<index, [N]>\n"
        "  %j = sub %lb, %i : tensor<index, [N]>\n  %2 = read %a, %j : tensor<f32, [N]>")
    assert not program(backwards)[1].inplace
    assert program(COPY)[1].inplace == {("a", "b")}


SELECTED = """kernel selected(%x: view<f32, [M, N], in>, %y: view<f32, [M, N], out>) {
  %0 = const {value=0} : index
  %1 = const {value=1} : index
  %m = extent {e=`M`} : index
  %n = extent {e=`N`} : index
  %r = domain %0, %m, %1 : domain<M>
  %c = domain %0, %n, %1 : domain<N>
  %2 = indices %c : tensor<index, [N]>
  %3 = broadcast %1 : tensor<index, [N]>
  %4 = add %2, %3 : tensor<index, [N]>
  %5 = broadcast %n : tensor<index, [N]>
  %6 = mod %4, %5 : tensor<index, [N]>
  %7 = broadcast %6 : tensor<index, [M, N]>
  %8 = indices %r : tensor<index, [M]>
  %9 = expand %8 {axis=1} : tensor<index, [M, 1]>
  %10 = broadcast %9 : tensor<index, [M, N]>
  %11 = read %x, %10, %7 : tensor<f32, [M, N]>
  write %y, %r, %c, %11
}
"""


def test_a_row_computed_once_does_not_turn_the_store_into_columns():
    _, p = program(SELECTED)
    row, store = p.body[:2]
    assert [a.extent.symbol for a in row.tasks] == ["N"] and [a.extent.symbol for a in store.tasks] == ["M", "N"]
    x, y = both(SELECTED, rng(5, 7), rng(5, 7))
    assert (y == np.roll(x, -1, axis=1)).all()


INSIDE = """kernel inside(%x: view<f32, [M, N], inout>, %k: index) {
  %0 = const {value=0} : index
  %1 = const {value=1} : index
  %m = extent {e=`M`} : index
  %n = extent {e=`N`} : index
  %r = domain %1, %m, %1 : domain<-1+M>
  %c = domain %1, %n, %1 : domain<-1+N>
  %r0 = domain %0, %FIRST, %1 : domain<-1+M>
  %2 = read %x, %r, %c : tensor<f32, [-1+M, -1+N]>
  %3 = read %x, %WHERE, %c : tensor<f32, [-1+M, -1+N]>
  %4 = add %2, %3 : tensor<f32, [-1+M, -1+N]>
  write %x, %r, %c, %4
}
"""


@pytest.mark.parametrize("where,tasks", [("r", ["-1+M", "-1+N"]), ("r0", ["-1+N"])])
def test_a_part_updated_in_place_keeps_its_points_apart(where, tasks):
    """At one offset every point has its element; at another it reads one that its neighbour writes."""
    source = INSIDE.replace("%FIRST", "%f").replace("  %r0", "  %f = sub %m, %1 : index\n  %r0").replace("%WHERE", f"%{where}")
    _, p = program(source)
    assert [str(a.extent) for a in p.body[0].tasks] == tasks
    x = rng(5, 40)
    got, _ = both(source, x, np.int64(0))
    want = x.copy()
    want[1:, 1:] += x[1:, 1:] if where == "r" else x[:-1, 1:]
    assert (got == want).all()
