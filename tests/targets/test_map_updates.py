"""Updates of single elements by hand-made task programs, with one task point at a time, in lanes, and from several threads."""
from __future__ import annotations

import numpy as np
import pytest

from intent_numba.kir.types import Extent
from intent_numba.task.program import Axis, Graph, Param, Phase, Program, Resource, Stage, Store, Update

from .launching import launch

N = Extent.of("N")


def program(dt: str, kind: str, order, values, lanes: bool, valid=None, old=False) -> Program:
    """y[i mod 8] = kind(y[i mod 8], values(i)); ``lanes``: i is a task axis, else a loop of one task."""
    g = Graph()
    i = g("axis", (), "i")
    place = g("mod", (i, g("const", (), 8)))
    old_names = {"old": "z", "coords": (i,)} if old else {}
    update = Update("y", (place,), kind, order, tuple(values(g, i)), valid(g, i) if valid else None, not lanes, **old_names)
    axis = Axis("i", N)
    if lanes:
        stage = Stage("s", (axis,), [Phase((), [update])])
    else:
        stage = Stage("s", (), [Phase((axis,), [update])])
    params = [Param("x", "view", dt, (N,), "in"), Param("y", "view", dt, (Extent.of(8),), "inout"), Param("z", "view", dt, (N,), "out")]
    return Program("p", params, {"N": ("x", 0)}, [], [stage], g)


def loaded(dt: str):
    return lambda g, i: [g("load", (i,), "x", dt)]


@pytest.mark.parametrize("lanes", [False, True])
@pytest.mark.parametrize("order", [None, "relaxed", "acq_rel"])
@pytest.mark.parametrize("dt", ["i32", "u8", "f32", "f64", "i64"])
@pytest.mark.parametrize("kind", ["add", "max", "min"])
def test_sums_and_extrema(kind, dt, order, lanes):
    rng = np.random.default_rng(0)
    array = {"i32": np.int32, "u8": np.uint8, "f32": np.float32, "f64": np.float64, "i64": np.int64}[dt]
    x = rng.integers(0, 5, 77).astype(array)
    y, want = np.zeros(8, array), np.zeros(8, array)
    launch(program(dt, kind, order, loaded(dt), lanes), [x, y, np.zeros(77, array)])
    ufunc = {"add": np.add, "max": np.maximum, "min": np.minimum}[kind]
    ufunc.at(want, np.arange(77) % 8, x)
    assert np.array_equal(y, want)


def test_threads_lose_nothing():
    x, y = np.ones(200_000, np.int64), np.zeros(8, np.int64)
    launch(program("i64", "add", "relaxed", loaded("i64"), True), [x, y, x.copy()], threads=2)
    assert (y == 25_000).all()
    x, y = np.ones(200_000, np.float64), np.zeros(8)
    launch(program("f64", "add", "relaxed", loaded("f64"), True), [x, y, x.copy()], threads=2)
    assert (y == 25_000).all()


@pytest.mark.parametrize("lanes", [False, True])
@pytest.mark.parametrize("order", [None, "acq_rel"])
def test_old_values_and_validity(order, lanes):
    x, y, z = np.arange(40, dtype=np.int32), np.arange(8, dtype=np.int32) * 100, np.full(40, -1, np.int32)
    some = lambda g, i: g("lt", (i, g("const", (), 20)), None, "bool")  # noqa: E731
    launch(program("i32", "exchange", order, loaded("i32"), lanes, some, old=True), [x, y, z])
    assert z[:8].tolist() == [k * 100 for k in range(8)] and z[8:20].tolist() == list(range(12)) and not z[20:].any()
    assert sorted(y.tolist()) == list(range(12, 20))


@pytest.mark.parametrize("order", [None, "acq_rel"])
def test_compare_exchange_compares_bits(order):
    y, z, x = np.zeros(8, np.float32), np.full(16, 9, np.float32), np.zeros(16, np.float32)
    y[3], x[3] = -0.0, 0.0                                   # equal, but other bits: not stored
    pair = lambda g, i: [g("load", (i,), "x", "f32"), g("const", (), 7.0, "f32")]  # noqa: E731
    launch(program("f32", "compare_exchange", order, pair, True, old=True), [x, y, z])
    assert y.tolist() == [7, 7, 7, 0, 7, 7, 7, 7] and z[8:].tolist() == [7, 7, 7, 0, 7, 7, 7, 7]


def test_private_counts_in_lanes():
    """Each task counts in scratch of its own, which lies interleaved by lane."""
    g = Graph()
    i, k = g("axis", (), "i"), g("axis", (), "k")
    count = Update("h", (i, g("cast", (g("mod", (g("load", (i, k), "x", "i32"), g("const", (), 4, "i32")), None, "i32"),))), "add", None,
                   (g("const", (), 1, "i32"),), None, True)
    rows, four = Axis("i", N), Axis("k", Extent.of(4))
    body = [Phase((four,), [Store("h", (i, k), g("const", (), 0, "i32"))]), Phase((Axis("k", Extent.of("M")),), [count]),
            Phase((four,), [Store("y", (i, k), g("load", (i, k), "h", "i32"))])]
    scratch = Resource("h", "scratch", "i32", (N, Extent.of(4)), ("i",))
    params = [Param("x", "view", "i32", (N, Extent.of("M")), "in"), Param("y", "view", "i32", (N, Extent.of(4)), "out")]
    p = Program("p", params, {"N": ("x", 0), "M": ("x", 1)}, [], [Stage("s", (rows,), body, [scratch])], g)
    x = np.random.default_rng(0).integers(0, 100, (45, 30)).astype(np.int32)
    for given in (x, np.asfortranarray(x)):
        y = np.full((45, 4), -1, np.int32)
        launch(p, [given, y])
        assert np.array_equal(y, [np.bincount(r % 4, minlength=4) for r in x])
