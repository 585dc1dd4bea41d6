"""Section 12 bit for bit: R, S and C against element by element transcriptions that share no code with the package."""
from fractions import Fraction

import numpy as np
import pytest

from .build import ARRAYS, bits, contract, structured
from .rational import nearest

LENGTHS = (1, 2, 5, 31, 32, 33, 47, 64, 100, 1000)


def rounded(x, dt: str):
    """A Python float (exact in f64) rounded to dt."""
    with np.errstate(over="ignore"):
        return float(np.float64(x).astype(ARRAYS[dt]))


def add(dt):
    return lambda a, b: rounded(a + b, dt)  # f32 sums of f32 values are exact enough in f64 for one further rounding


def mul(dt):
    return lambda a, b: rounded(a * b, dt)


def fma(dt):
    def f(a, b, c):
        exact = Fraction(a) * Fraction(b) + Fraction(c)
        return float(nearest(exact, dt)) if exact else a * b + c
    return f


# --- the transcription ------------------------------------------------------------------------------------------------

def leaf(x, combine, start):
    lanes = [start] * 32
    for i, v in enumerate(x):
        lanes[i % 32] = v if lanes[i % 32] is None else combine(lanes[i % 32], v)
    for h in (16, 8, 4, 2, 1):
        for lane in range(h):
            if lanes[lane + h] is not None:
                lanes[lane] = combine(lanes[lane], lanes[lane + h])
    return lanes[0]


def R(x, combine, start, chunk=4096, first=leaf):
    if len(x) <= chunk:
        return first(x, combine, start)
    return R([first(x[i:i + chunk], combine, start) for i in range(0, len(x), chunk)], combine, start, chunk)


def S(x, combine, chunk=4096):
    result, totals = [], []
    for c in range(0, len(x), chunk):
        members, y, carry = x[c:c + chunk], [], None
        for begin in range(0, len(members), 32):
            p = members[begin:begin + 32]
            for s in (1, 2, 4, 8, 16):
                p = [combine(p[i - s], p[i]) if i >= s else p[i] for i in range(len(p))]
            block = p if carry is None else [combine(carry, v) for v in p]
            carry = block[-1]
            y += block
        if totals:
            before = totals[0]
            for t in totals[1:]:
                before = combine(before, t)
            result += [combine(before, v) for v in y]
        else:
            result += y
        totals.append(y[-1])
    return result


def C(a, b, dt):
    step, plus = fma(dt), add(dt)
    acc = 0.0
    for begin in range(0, len(a), 1024):
        p = 0.0
        for x, y in zip(a[begin:begin + 1024], b[begin:begin + 1024]):
            p = step(x, y, p)
        acc = p if begin == 0 else plus(acc, p)
    return acc


def numbers(rng, n, dt, *shape):
    return (rng.standard_normal((n, *shape)) * 2.0 ** rng.integers(-6, 6, (n, *shape))).astype(ARRAYS[dt])


def same(got, want, dt):
    want = np.asarray(want, np.float64).astype(ARRAYS[dt])
    assert bits(np.asarray(got)).tolist() == bits(want).tolist()


# --- reductions -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("dt", ["f32", "f64", "f16", "bf16"])
@pytest.mark.parametrize("n", LENGTHS)
def test_sum(n, dt, rng):
    x = numbers(rng, n, dt)
    want = R(x.astype(float).tolist(), add(dt), 0.0)
    same(structured("reduce", x, dt, 0, kind="sum"), want, dt)
    if dt == "f32":
        rows = numbers(rng, n, dt, 3)
        same(structured("reduce", rows, dt, 0, kind="sum"), [R(rows[:, j].astype(float).tolist(), add(dt), 0.0) for j in range(3)], dt)
        same(structured("reduce", rows.T, dt, 1, kind="sum"), [R(rows[:, j].astype(float).tolist(), add(dt), 0.0) for j in range(3)], dt)


@pytest.mark.parametrize("n", [4095, 4096, 4097, 8192, 9000])
def test_sum_of_several_chunks(n, rng):
    x = numbers(rng, n, "f32")
    same(structured("reduce", x, "f32", 0, kind="sum"), R(x.astype(float).tolist(), add("f32"), 0.0), "f32")


@pytest.mark.parametrize("n", LENGTHS)
def test_product(n, rng):
    x = (1 + rng.standard_normal(n) / 8).astype(np.float32)
    same(structured("reduce", x, "f32", 0, kind="prod"), R(x.astype(float).tolist(), mul("f32"), 1.0), "f32")


def test_a_sum_starts_from_zero():
    """Decision 16."""
    for n in (1, 32, 33):
        got = structured("reduce", np.full(n, -0.0), "f32", 0, kind="sum")
        assert got == 0 and not np.signbit(got)
    assert np.signbit(structured("reduce", [-0.0], "f32", 0, kind="prod"))


def not_associative(b, left, right):
    """3 l - r: any other order or parenthesization shows."""
    from intent_numba.kir import Scalar
    three = b.one("const", (), Scalar(left.type.dt), value=3.0)
    if left.type.shape or type(left.type) is not Scalar:
        three = b.one("broadcast", (three,), left.type)
    return b.one("sub", (b.one("mul", (three, left), left.type), right), left.type)


def transcribed(a, b):
    return float(np.float32(np.float32(3) * np.float32(a)) - np.float32(b))


@pytest.mark.parametrize("n", [*LENGTHS, 4097, 8200])
def test_generic_reduction(n, rng):
    x = numbers(rng, n, "f32")
    with np.errstate(all="ignore"):
        want = R(x.astype(float).tolist(), transcribed, None)
        same(structured("reduce", x, "f32", 0, not_associative, 0.0, kind="generic"), want, "f32")
        if n <= 100:
            rows = numbers(rng, n, "f32", 2)
            want = [R(rows[:, j].astype(float).tolist(), transcribed, None) for j in range(2)]
            same(structured("reduce", rows, "f32", 0, not_associative, 0.0, kind="generic"), want, "f32")
    if n == 1:
        assert np.signbit(structured("reduce", [-0.0], "f32", 0, not_associative, 0.0, kind="generic"))


def by_control(b, left, right):
    """The same combine with an ``if`` inside, which is run member by member."""
    from intent_numba.kir import Scalar
    yes = b.one("const", (), Scalar("bool"), value=True)
    first, second = b.block(), b.block()
    with b.inside(first):
        first.yields = (not_associative(b, left, right),)
    second.yields = (left,)
    return b.emit("if", (yes,), (left.type,), (first, second))[0]


@pytest.mark.parametrize("n", [1, 5, 33, 70])
def test_generic_combine_with_control(n, rng):
    x = numbers(rng, n, "f32", 2)
    want = [R(x[:, j].astype(float).tolist(), transcribed, None) for j in range(2)]
    same(structured("reduce", x, "f32", 0, by_control, 0.0, kind="generic"), want, "f32")
    want = np.array([S(x[:, j].astype(float).tolist(), transcribed) for j in range(2)]).T
    same(structured("scan", x, "f32", 0, by_control, 0.0, kind="generic", inclusive=True, reverse=False), want, "f32")


# --- scans ------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("inclusive", [False, True])
@pytest.mark.parametrize("n", [*LENGTHS, 4097, 8300])
def test_scan(n, inclusive, reverse, rng):
    x = numbers(rng, n, "f32")
    values = x.astype(float).tolist()

    def expect(combine, identity):
        y = S(values[::-1], lambda a, b: combine(b, a))[::-1] if reverse else S(values, combine)
        return y if inclusive else (y[1:] + [identity] if reverse else [identity] + y[:-1])
    attrs = {"inclusive": inclusive, "reverse": reverse}
    same(structured("scan", x, "f32", 0, kind="sum", **attrs), expect(add("f32"), 0.0), "f32")
    with np.errstate(all="ignore"):
        same(structured("scan", x, "f32", 0, not_associative, 7.0, kind="generic", **attrs), expect(transcribed, 7.0), "f32")
    if n <= 100:
        same(structured("scan", np.stack([x, x[::-1]]), "f32", 1, kind="sum", **attrs)[0], expect(add("f32"), 0.0), "f32")
        y = x.astype(np.float16)
        values = y.astype(float).tolist()
        same(structured("scan", y, "f16", 0, kind="sum", **attrs), expect(add("f16"), 0.0), "f16")


def test_a_scan_keeps_a_negative_zero():
    assert np.signbit(structured("scan", [-0.0], "f32", 0, kind="sum", inclusive=True, reverse=False)).all()


@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min"])
def test_integer_scans(kind, rng):
    x = rng.integers(-128, 128, 100)
    operate = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[kind]
    for reverse in (False, True):
        want = operate.accumulate(x[::-1] if reverse else x, dtype=np.int64)
        want = (want[::-1] if reverse else want).astype(np.int8) if kind in ("sum", "prod", "max", "min") else want
        assert structured("scan", x, "i8", 0, kind=kind, inclusive=True, reverse=reverse).tolist() == want.tolist()


# --- contractions -----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("dt", ["f32", "f64", "f16", "bf16"])
@pytest.mark.parametrize("k", [1, 2, 33, 300])
def test_chain(k, dt, rng):
    a, b = numbers(rng, k, dt, 2).T, numbers(rng, k, dt, 3)
    got = contract(a, b, dt, ((1, 0),))
    same(got, [[C(a[i].astype(float).tolist(), b[:, j].astype(float).tolist(), dt) for j in range(3)] for i in range(2)], dt)


@pytest.mark.parametrize("k", [1023, 1024, 1025, 2100])
def test_chain_of_several_blocks(k, rng):
    a, b = numbers(rng, k, "f32", 1).T, numbers(rng, k, "f32", 1)
    same(contract(a, b, "f32", ((1, 0),)), [[C(a[0].astype(float).tolist(), b[:, 0].astype(float).tolist(), "f32")]], "f32")


def dot(a, b, dt):
    """R whose first leaf uses the FMA."""
    step = fma(dt)

    def first(pairs, combine, start):
        if not isinstance(pairs[0], tuple):
            return leaf(pairs, combine, start)
        lanes = [0.0] * 32
        for i, (x, y) in enumerate(pairs):
            lanes[i % 32] = step(x, y, lanes[i % 32])
        for h in (16, 8, 4, 2, 1):
            for lane in range(h):
                lanes[lane] = combine(lanes[lane], lanes[lane + h])
        return lanes[0]
    pairs = list(zip(a.astype(float).tolist(), b.astype(float).tolist()))
    if len(pairs) <= 4096:
        return first(pairs, add(dt), 0.0)
    return R([first(pairs[i:i + 4096], add(dt), 0.0) for i in range(0, len(pairs), 4096)], add(dt), 0.0)


@pytest.mark.parametrize("dt", ["f32", "f64", "f16", "bf16"])
@pytest.mark.parametrize("k", [1, 31, 33, 500])
def test_tree(k, dt, rng):
    a, b, m = numbers(rng, k, dt), numbers(rng, k, dt), numbers(rng, k, dt, 2)
    same(contract(a, b, dt, ((0, 0),)), dot(a, b, dt), dt)
    same(contract(m, b, dt, ((0, 0),)), [dot(m[:, j], b, dt) for j in range(2)], dt)
    same(contract(b, m, dt, ((0, 0),)), [dot(m[:, j], b, dt) for j in range(2)], dt)
    same(contract(m, m, dt, ((0, 0),), ((1, 1),)), [dot(m[:, j], m[:, j], dt) for j in range(2)], dt)


def test_tree_of_several_chunks(rng):
    a, b = numbers(rng, 4100, "f32"), numbers(rng, 4100, "f32")
    same(contract(a, b, "f32", ((0, 0),)), dot(a, b, "f32"), "f32")


def test_several_reduced_axes_run_row_major_as_listed(rng):
    a, b = numbers(rng, 3, "f32", 5, 2), numbers(rng, 5, "f32", 3, 2)
    got = contract(a, b, "f32", ((1, 0), (0, 1)))
    left = a.transpose(1, 0, 2).reshape(15, 2)
    right = b.reshape(15, 2)
    left, right = left.T.astype(float).tolist(), right.T.astype(float).tolist()
    same(got, [[C(x, y, "f32") for y in right] for x in left], "f32")


def test_result_axes_and_batches(rng):
    """Language case 14."""
    a, b = rng.integers(-8, 8, (2, 3, 4)), rng.integers(-8, 8, (3, 4, 5))
    got = contract(a, b, "i32", ((2, 1),), ((1, 0),))
    assert got.shape == (2, 3, 5)
    assert got.tolist() == np.einsum("abk,bkc->abc", a, b).tolist()
    assert contract(a, b, "f32", ((2, 1),), ((1, 0),)).tolist() == got.tolist()


def test_integer_contractions_wrap(rng):
    a, b = rng.integers(-128, 128, (3, 40)), rng.integers(-128, 128, (40, 2))
    want = (a @ b).astype(np.int8)
    assert contract(a, b, "i8", ((1, 0),)).tolist() == want.tolist()
    assert contract(np.full((1, 2), 127), np.full((2, 1), 127), "i32", ((1, 0),)).tolist() == [[32258]]


def test_empty_contractions():
    assert contract(np.zeros((2, 0)), np.zeros((0, 3)), "f32", ((1, 0),)).tolist() == [[0.0] * 3] * 2
    assert contract(np.zeros(0), np.zeros(0), "f32", ((0, 0),)).tolist() == 0.0


