"""Language cases about numerics that concern whole operations: widening, empties, ties, scans, accumulators."""
import math

import numpy as np
import pytest

from intent_numba.kir import Builder, Tensor, shape_of

from .build import ARRAYS, contract, elementwise, load, run, save, structured, view


def widened(op, x, source, target, **attrs):
    """Cast, then a structured operation, as the front end writes a widening sum."""
    return structured(op, elementwise("cast", (x,), (source,), target), target, 0, **attrs)


def test_widening():
    """Language case 10."""
    assert widened("reduce", [65504, 65504], "f16", "f32", kind="sum") == 131008
    assert widened("scan", [100, 100], "i8", "i32", kind="sum", inclusive=True, reverse=False).tolist() == [100, 200]
    assert widened("reduce", [255] * 300, "u8", "u32", kind="sum") == 76500
    assert structured("reduce", [3, -4, 5], "i8", 0, kind="max").dtype == np.int8


EMPTY = [
    ("sum", "f32", 0), ("prod", "f32", 1), ("max", "f32", -math.inf), ("max", "f8e4m3fn", -448), ("max", "i8", -128), ("max", "u8", 0),
    ("min", "f32", math.inf), ("min", "f8e4m3fn", 448), ("min", "i8", 127), ("min", "u8", 255),
    ("any", "bool", False), ("all", "bool", True),
    ("sum", "i64", 0), ("prod", "i8", 1), ("max", "f8e5m2", -math.inf), ("max", "index", -2 ** 63), ("and", "u16", 65535), ("or", "i8", 0),
    ("xor", "bool", False), ("and", "bool", True),
]


@pytest.mark.parametrize("kind, dt, want", EMPTY)
def test_empty_reductions(kind, dt, want):
    """Language case 11."""
    assert float(structured("reduce", np.zeros(0), dt, 0, kind=kind)) == want
    three = structured("reduce", np.zeros((3, 0)), dt, 1, kind=kind)
    assert three.shape == (3,) and all(float(v) == want for v in three)
    assert structured("reduce", np.zeros((0, 3)), dt, 1, kind=kind).shape == (0,)
    assert structured("scan", np.zeros((0, 3)), dt, 0, kind=kind, inclusive=False, reverse=False).shape == (0, 3)


def test_empty_generic_reduction_gives_its_identity():
    def first(b, left, right):
        return left
    assert structured("reduce", np.zeros(0), "f32", 0, first, 5.0, kind="generic") == 5.0
    assert structured("reduce", np.zeros((2, 0)), "f32", 1, first, 5.0, kind="generic").tolist() == [5.0, 5.0]
    assert structured("reduce", [8.0], "f32", 0, first, 5.0, kind="generic") == 8.0


def test_empty_arg_reduce():
    value, at = structured("arg_reduce", np.zeros(0), "f32", 0, kind="max")
    assert value == -math.inf and at == 2 ** 63 - 1


@pytest.mark.parametrize("dt", ["f32", "f64", "f16", "bf16", "f8e5m2", "f8e4m3fn"])
def test_arg_reduce(dt):
    """Language case 12 and decision 24."""
    nan = math.nan

    def arg(kind, x):
        value, at = structured("arg_reduce", np.array(x).astype(ARRAYS[dt]), dt, 0, kind=kind)
        return float(value), int(at)
    value, at = arg("max", [1.0, nan, 3.0, nan])
    assert math.isnan(value) and at == 1
    value, at = arg("min", [1.0, nan, 3.0, nan])
    assert math.isnan(value) and at == 1
    assert arg("max", [2.0, 5.0, 5.0]) == (5.0, 1) and arg("min", [5.0, 2.0, 2.0]) == (2.0, 1)
    assert arg("max", [-0.0, 0.0]) == (0.0, 1) and math.copysign(1, arg("min", [0.0, -0.0])[0]) == -1
    assert arg("min", [0.0, -0.0])[1] == 1


def test_arg_reduce_along_an_axis(rng):
    x = rng.integers(0, 5, (4, 7, 3))
    for axis in range(3):
        value, at = structured("arg_reduce", x, "i32", axis, kind="max")
        assert value.tolist() == x.max(axis).tolist() and at.tolist() == x.argmax(axis).tolist()


def test_extrema_of_signed_zeros_and_nan():
    for n in (1, 7, 32, 33):
        x = np.full(n, -0.0)
        assert np.signbit(structured("reduce", x, "f32", 0, kind="max"))
        x[n // 2] = 0.0
        assert not np.signbit(structured("reduce", x, "f32", 0, kind="max"))
        assert np.signbit(structured("reduce", -x, "f32", 0, kind="min"))
        x[n - 1] = math.nan
        assert math.isnan(structured("reduce", x, "f32", 0, kind="max")) and math.isnan(structured("reduce", x, "f64", 0, kind="min"))


def test_scans():
    """Language case 13."""
    def scan(x, dt, kind, inclusive=True, reverse=False):
        return structured("scan", x, dt, 0, kind=kind, inclusive=inclusive, reverse=reverse).tolist()
    assert scan([1, 2, 3, 4], "f32", "sum", inclusive=False) == [0, 1, 3, 6]
    assert scan([1, 2, 3, 4], "f32", "sum", reverse=True) == [10, 9, 7, 4]
    assert scan([1, 2, 3, 4], "i32", "sum", inclusive=False, reverse=True) == [9, 7, 4, 0]
    assert scan([3, 1, 5], "i8", "max", inclusive=False) == [-128, 3, 3]
    got = scan([1, math.nan, 2], "f32", "max")
    assert got[0] == 1 and math.isnan(got[1]) and math.isnan(got[2])
    assert scan([True, False, True], "bool", "all") == [True, False, False]
    assert scan([6, 3], "u8", "xor") == [6, 5]


def test_accumulators():
    """Language case 15."""
    def through(x, source, target):
        return elementwise("cast", (x,), (source,), target)
    a = through([127, 127], "i8", "i32")
    assert contract(a, a, "i32", ((0, 0),)) == 32258
    a = through([300, 300], "f16", "f32")
    assert contract(a, a, "f32", ((0, 0),)) == 180000


def test_fma_scope():
    """Language case 1: the product that stands apart is rounded, the fused one is not."""
    a = np.full(3, 1 + 2.0 ** -12)
    c = np.full(3, -(1 + 2.0 ** -11))
    product = elementwise("mul", (a, a), ("f32", "f32"), "f32")
    assert elementwise("add", (product, c), ("f32", "f32"), "f32").tolist() == [0.0] * 3
    assert elementwise("fma", (a, a, c), ("f32",) * 3, "f32").tolist() == [2.0 ** -24] * 3


def test_generic_reduction_of_two_components():
    """Running value and index as a pair: the lowest index of the largest value."""
    x, y, at = view("x", "f32", "N"), view("y", "f32", access="out"), view("at", "index", access="out")
    b = Builder("pairs", [x, y, at])
    from intent_numba.kir import Scalar
    f, i, bool_ = Scalar("f32"), Scalar("index"), Scalar("bool")
    values = load(b, x)
    domain = next(op.result for op in b.kernel.body.ops if op.kind == "domain")
    places = b.one("indices", (domain,), Tensor("index", shape_of("N")))
    identities = (b.one("const", (), f, value=-math.inf), b.one("const", (), i, value=-1))
    region = b.block([f, i, f, i])
    with b.inside(region):
        v, p, w, q = region.params
        better, tie, lower = b.one("gt", (v, w), bool_), b.one("eq", (v, w), bool_), b.one("lt", (p, q), bool_)
        keep = b.one("or", (better, b.one("and", (tie, lower), bool_)), bool_)
        region.yields = (b.one("select", (keep, v, w), f), b.one("select", (keep, p, q), i))
    best, where = b.emit("reduce", (values, places, *identities), (f, i), (region,), axis=0, kind="generic")
    save(b, y, best)
    save(b, at, where)
    for n in (1, 5, 40, 100):
        data = np.random.default_rng(n).integers(0, 6, n).astype(np.float32)
        value, place = np.zeros((), np.float32), np.zeros((), np.int64)
        run(b.kernel, data, value, place)
        assert value == data.max() and place == data.argmax()


def test_missing_programs_are_named():
    from intent_numba.reference import MissingProgram
    from intent_numba.reference.operations import Typed, evaluate
    with pytest.raises(MissingProgram, match="no program for nonsense on f32"):
        evaluate("nonsense", [Typed("f32", np.float32(1))], "f32")
