"""Structured operations on the CPU mapper: the reference's bits, on every axis, layout and size where the code takes another way."""
from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from intent_numba import reference
from intent_numba.kir import text
from intent_numba.kir.verify import verify
from intent_numba.lowering import lower

from .launching import launch

NUMPY = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "u8": np.uint8, "i64": np.int64, "index": np.int64, "bool": np.bool_,
         "f16": np.float16, "bf16": ml_dtypes.bfloat16}

HEAD = """
  %0 = const {value=0} : index
  %1 = const {value=1} : index
  %m = extent {e=`M`} : index
  %n = extent {e=`N`} : index
  %r = domain %0, %m, %1 : domain<M>
  %c = domain %0, %n, %1 : domain<N>
"""


def poisoned(shape, dt):
    a = np.empty(shape, NUMPY[dt])
    a.view(np.uint8)[...] = 0xA5
    return a


def placed(a: np.ndarray, layout: str) -> np.ndarray:
    """A copy of ``a`` with other strides, inside memory that must not change."""
    if layout == "plain" or not a.ndim:
        return a.copy()
    if layout == "turned":
        return np.asfortranarray(a)
    steps = tuple(slice(None, None, 2 if layout == "spread" else -1) for _ in a.shape)
    room = poisoned([2 * n + 3 for n in a.shape], "u8").astype(np.uint8)
    room = np.zeros([2 * n + 3 for n in a.shape], a.dtype)
    view = room[steps][tuple(slice(1, n + 1) for n in a.shape)]
    view[...] = a
    return view


def same(got: np.ndarray, want: np.ndarray) -> None:
    nan = np.zeros(got.shape, bool)
    if got.dtype.kind in "fV":
        nan = np.isnan(got.astype(np.float64)) & np.isnan(want.astype(np.float64))
    raw = [np.ascontiguousarray(a).view(f"u{a.itemsize}").reshape(a.shape) for a in (got, want)]
    wrong = (raw[0] != raw[1]) & ~nan
    assert not wrong.any(), f"{int(wrong.sum())} of {wrong.size} differ, from {np.argwhere(wrong)[0]}: {got[wrong][:3]} {want[wrong][:3]}"


def raw(a):
    """Narrow floats as their bits."""
    return a.view(np.uint16) if isinstance(a, np.ndarray) and a.dtype in (np.float16, ml_dtypes.bfloat16) else a


def check(source: str, *args, layouts=("plain", "spread", "back", "turned"), threads=(1,)):
    kernel = verify(text.parse_kernel(source))
    want = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    reference.run(kernel, want)
    program = lower(kernel)
    for layout in layouts:
        for n in threads:
            got = [placed(a, layout) if isinstance(a, np.ndarray) else a for a in args]
            launch(program, [raw(a) for a in got], n)
            for g, w in zip(got, want):
                if isinstance(g, np.ndarray):
                    same(g, w)


def data(dt: str, shape, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if dt == "bool":
        return rng.random(shape) < 0.5
    if NUMPY[dt] in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16):
        return rng.standard_normal(shape).astype(NUMPY[dt])
    info = np.iinfo(NUMPY[dt])
    return rng.integers(info.min, info.max, shape, dtype=NUMPY[dt], endpoint=True)


SHAPES = [(1, 1), (5, 7), (33, 40), (3, 4100), (4100, 3), (0, 4), (4, 0), (260, 300)]


def reduction(dt: str, axis: int, kind: str) -> str:
    left = "MN"[1 - axis]
    return f"""kernel red(%x: view<{dt}, [M, N], in>, %y: view<{dt}, [{left}], out>) {{{HEAD}
  %2 = read %x, %r, %c : tensor<{dt}, [M, N]>
  %3 = reduce %2 {{axis={axis}, kind="{kind}"}} : tensor<{dt}, [{left}]>
  write %y, %{"rc"[1 - axis]}, %3
}}"""


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dt,kind", [("f32", "sum"), ("f64", "prod"), ("f16", "sum"), ("f32", "max"), ("i32", "sum"), ("u8", "min"),
                                     ("bool", "any"), ("bool", "all"), ("i64", "xor")])
def test_reduce(dt, kind, axis, shape):
    check(reduction(dt, axis, kind), data(dt, shape), poisoned(shape[1 - axis], dt))


def test_extrema_with_nan_and_zeros():
    x = data("f32", (9, 70))
    x[0, 5], x[1, :], x[2, ::2], x[3, :], x[4, 69] = np.nan, -0.0, 0.0, -np.inf, np.nan
    x[2, 1::2] = -0.0
    for kind in ("max", "min"):
        for axis in (0, 1):
            check(reduction("f32", axis, kind), x, poisoned(x.shape[1 - axis], "f32"))
            check(arg(axis, kind, "f32"), x, poisoned(x.shape[1 - axis], "f32"), poisoned(x.shape[1 - axis], "index"))


def arg(axis: int, kind: str, dt: str) -> str:
    left = "MN"[1 - axis]
    return f"""kernel arg(%x: view<{dt}, [M, N], in>, %y: view<{dt}, [{left}], out>, %z: view<index, [{left}], out>) {{{HEAD}
  %2 = read %x, %r, %c : tensor<{dt}, [M, N]>
  %3, %4 = arg_reduce %2 {{axis={axis}, kind="{kind}"}} : tensor<{dt}, [{left}]>, tensor<index, [{left}]>
  write %y, %{"rc"[1 - axis]}, %3
  write %z, %{"rc"[1 - axis]}, %4
}}"""


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dt,kind", [("f32", "max"), ("f64", "min"), ("u8", "max"), ("i32", "min")])
def test_arg_reduce(dt, kind, axis, shape):
    check(arg(axis, kind, dt), data(dt, shape), poisoned(shape[1 - axis], dt), poisoned(shape[1 - axis], "index"))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("inclusive", [True, False])
@pytest.mark.parametrize("reverse", [True, False])
@pytest.mark.parametrize("dt,kind", [("f32", "sum"), ("i32", "sum"), ("f64", "max")])
def test_scan(dt, kind, reverse, inclusive, axis, shape):
    source = f"""kernel scans(%x: view<{dt}, [M, N], in>, %y: view<{dt}, [M, N], out>) {{{HEAD}
  %2 = read %x, %r, %c : tensor<{dt}, [M, N]>
  %3 = scan %2 {{axis={axis}, inclusive={inclusive}, kind="{kind}", reverse={reverse}}} : tensor<{dt}, [M, N]>
  write %y, %r, %c, %3
}}"""
    check(source, data(dt, shape), poisoned(shape, dt), layouts=("plain", "back"))


def pair(left: str) -> str:
    """A combine of two values that is neither associative nor commutative."""
    t = f"tensor<f32, [{left}]>"
    return f""" {{
    ^(%a: {t}, %b: {t}, %p: {t}, %q: {t}):
    %s = fma %a, %q, %p : {t}
    %t = add %b, %p : {t}
    %u = mul %t, %q : {t}
    yield %s, %u
  }}"""


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("axis", [0, 1])
def test_generic_reduce(axis, shape):
    left = "MN"[1 - axis]
    t = f"tensor<f32, [{left}]>"
    source = f"""kernel generic(%x: view<f32, [M, N], in>, %y: view<f32, [{left}], out>, %z: view<f32, [{left}], out>) {{{HEAD}
  %2 = read %x, %r, %c : tensor<f32, [M, N]>
  %5 = mul %2, %2 : tensor<f32, [M, N]>
  %i = const {{value=0.5}} : f32
  %j = const {{value=-0.25}} : f32
  %6 = broadcast %i : tensor<f32, [{left}]>
  %7 = broadcast %j : tensor<f32, [{left}]>
  %3, %4 = reduce %2, %5, %6, %7 {{axis={axis}, kind="generic"}} : {t}, {t}{pair(left)}
  write %y, %{"rc"[1 - axis]}, %3
  write %z, %{"rc"[1 - axis]}, %4
}}"""
    with np.errstate(all="ignore"):
        results = [poisoned(shape[1 - axis], "f32") for _ in range(2)]
        check(source, data("f32", shape) * 0.5, *results, layouts=("plain", "turned"))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("reverse", [True, False])
@pytest.mark.parametrize("inclusive", [True, False])
def test_generic_scan(inclusive, reverse, axis, shape):
    left, t = "MN"[1 - axis], "tensor<f32, [M, N]>"
    source = f"""kernel generic(%x: view<f32, [M, N], in>, %y: view<f32, [M, N], out>, %z: view<f32, [M, N], out>) {{{HEAD}
  %2 = read %x, %r, %c : tensor<f32, [M, N]>
  %5 = mul %2, %2 : tensor<f32, [M, N]>
  %i = const {{value=0.5}} : f32
  %j = const {{value=-0.25}} : f32
  %6 = broadcast %i : tensor<f32, [{left}]>
  %7 = broadcast %j : tensor<f32, [{left}]>
  %3, %4 = scan %2, %5, %6, %7 {{axis={axis}, inclusive={inclusive}, kind="generic", reverse={reverse}}} : {t}, {t}{pair(left)}
  write %y, %r, %c, %3
  write %z, %r, %c, %4
}}"""
    with np.errstate(all="ignore"):
        check(source, data("f32", shape) * 0.5, poisoned(shape, "f32"), poisoned(shape, "f32"), layouts=("plain",))


def product(dt: str, epilogue: bool) -> str:
    tail = f"""
  %9 = read %v, %c : tensor<{dt}, [N]>
  %10 = broadcast %9 : tensor<{dt}, [M, N]>
  %11 = add %8, %10 : tensor<{dt}, [M, N]>
  write %y, %r, %c, %11""" if epilogue else "\n  write %y, %r, %c, %8"
    views = f"%x: view<{dt}, [M, K], in>, %w: view<{dt}, [K, N], in>, %v: view<{dt}, [N], in>, %y: view<{dt}, [M, N], out>"
    return f"""kernel matmul({views}) {{{HEAD}
  %k = extent {{e=`K`}} : index
  %kk = domain %0, %k, %1 : domain<K>
  %6 = read %x, %r, %kk : tensor<{dt}, [M, K]>
  %7 = read %w, %kk, %c : tensor<{dt}, [K, N]>
  %8 = contract %6, %7 {{reduce=((1, 0),), batch=(), form="chain"}} : tensor<{dt}, [M, N]>{tail}
}}"""


@pytest.mark.parametrize("m,k,n", [(1, 1, 1), (5, 7, 9), (100, 64, 130), (37, 1500, 50), (7, 3000, 33), (3, 0, 4), (0, 3, 4),
                                   (200, 30, 16)])
@pytest.mark.parametrize("dt", ["f32", "f64", "i32", "u8", "bf16"])
def test_product(dt, m, k, n):
    with np.errstate(all="ignore"):
        check(product(dt, k % 2 == 0), data(dt, (m, k)), data(dt, (k, n), 1), data(dt, n, 2), poisoned((m, n), dt), threads=(1, 2))
