"""NaN, signed zeros and ties in everything that picks an extreme: every order of the operands, in vector bodies and in tails.

The oracle ranks bit patterns as integers: a NaN wins (in the ``_num`` forms it loses), -0 stands below +0, the lowest index on ties.
"""
from functools import cache
from itertools import permutations

import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from tests.support import BACKEND, assert_same_bits, execute, interpret, numpy_dtype, out

from .generated import from_patterns
from .rational import EXPONENT_BITS
from .rounding import encode, is_nan, layout, of_integers, rank

FLOATS = ("f8e4m3fn", "f8e5m2", "f16", "bf16", "f32", "f64")
LENGTHS = (1, 7, 31, 32, 33, 63, 64, 65, 4095, 4097)


@cache
def kernels(dt):
    """Along rows and along columns of the same matrix; a scan takes one row."""
    d, least, most = I.dtype(dt), -448.0 if dt == "f8e4m3fn" else -I.inf, 448.0 if dt == "f8e4m3fn" else I.inf

    def reductions(shape, axis):
        @intent.kernel
        def reductions(x: I.In[d, shape], big: I.Out[d, ("P",)], small: I.Out[d, ("P",)], big_num: I.Out[d, ("P",)],
                       small_num: I.Out[d, ("P",)], high: I.Out[d, ("P",)], high_at: I.Out[I.index, ("P",)], low: I.Out[d, ("P",)],
                       low_at: I.Out[I.index, ("P",)]):
            big[:] = I.reduce.max(x[:, :], axis=axis)
            small[:] = I.reduce(x[:, :], axis=axis, identity=most, combine=I.minimum)
            big_num[:] = I.reduce(x[:, :], axis=axis, identity=least, combine=I.maximum_num)
            small_num[:] = I.reduce(x[:, :], axis=axis, identity=most, combine=I.minimum_num)
            a, b = I.arg_reduce.max(x[:, :], axis=axis)
            high[:] = a
            high_at[:] = b
            a, b = I.arg_reduce.min(x[:, :], axis=axis)
            low[:] = a
            low_at[:] = b
        return reductions

    def scans(shape, axis):
        @intent.kernel
        def scans(x: I.In[d, shape], up: I.Out[d, shape], back: I.Out[d, shape], small: I.Out[d, shape], num: I.Out[d, shape]):
            up[:, :] = I.cummax(x[:, :], axis=axis)
            back[:, :] = I.cummax(x[:, :], axis=axis, reverse=True, inclusive=False)
            small[:, :] = I.scan(x[:, :], axis=axis, identity=most, combine=I.minimum)
            num[:, :] = I.scan(x[:, :], axis=axis, identity=least, combine=I.maximum_num, reverse=True)
        return scans

    @intent.kernel
    def updates(x: I.In[d, ("P", "N")], at: I.In[I.index, ("P", "N")], big: I.InOut[d, ("P",)], small: I.InOut[d, ("P",)],
                top: I.InOut[d, ("P",)], num: I.InOut[d, ("P",)]):
        P, N = x.shape
        for i, j in I.parallel((I.domain(0, P), I.domain(0, N))):
            I.atomic.max(big[i], x[i, j], order="relaxed")
            I.atomic.min(small[i], x[i, j], order="relaxed")
        I.scatter_reduce(top, index=(at[:, :],), value=x[:, :], combine=I.maximum)
        I.scatter_reduce(num, index=(at[:, :],), value=x[:, :], combine=I.minimum_num)

    axes = ((("P", "N"), 1), (("N", "P"), 0))
    return [reductions(*a) for a in axes], [scans(*a) for a in axes], updates


# --- data ---------------------------------------------------------------------------------------------------------------

def special(dt: str) -> dict:
    """Patterns by name; e4m3fn has no infinity, its largest numbers stand in."""
    fraction, _, largest = layout(dt)
    rest = (1 << fraction + EXPONENT_BITS[dt]) - 1
    sign = ~rest if dt == "f64" else rest + 1
    top = largest if dt == "f8e4m3fn" else largest + 1
    one = int(encode(of_integers(np.array([1])), dt)[0])
    found = {"nan": rest, "0": 0, "top": top, "1": one, "tiny": 1}
    return found | {f"-{name}": sign | p for name, p in found.items()}


GROUPS = [("-0", "0"), ("nan", "-0", "0"), ("-0", "0", "-0"), ("-nan", "top", "-top"), ("top", "1", "1"), ("-top", "-1", "-1"),
          ("nan", "nan"), ("-0", "-tiny", "tiny")]


def rows(dt: str, n: int, count: int, rng) -> np.ndarray:
    """Patterns [P, n]: all orders of six specials where they fit, else a group of them at places that are easily missed."""
    values = special(dt)
    if n == 7:
        found = [(*p, fill) for group in (("nan", "0", "-0", "-top", "1"), ("0", "-0", "0", "-1", "-tiny")) for fill in ("-1", "-nan")
                 for p in set(permutations((*group, "-0")))]
        return np.array([[values[v] for v in row] for row in found])
    places = sorted({p % n for p in (0, 1, 30, 31, 32, 33, 62, 63, 64, n // 2, n - 33, n - 32, n - 2, n - 1)})
    found = np.empty((count, n), np.int64)
    for row in found:
        row[:] = values[rng.choice(["-1", "1", "0", "-0", "-top", "nan"])]
        group = rng.permutation(GROUPS[rng.integers(len(GROUPS))])[:n]
        row[rng.choice(places, min(len(group), len(places)), replace=False)] = [values[v] for v in group[:len(places)]]
    return found


# --- the oracle -----------------------------------------------------------------------------------------------------------

NAN = (1 << 63) - 1


def keys(p: np.ndarray, dt: str, largest: bool, num: bool) -> np.ndarray:
    """What the wanted element has the largest of."""
    nan = -NAN if num else NAN
    return np.where(is_nan(p, dt), nan, rank(p, dt) if largest else -rank(p, dt))


def pattern(key: np.ndarray, dt: str, largest: bool) -> np.ndarray:
    """The inverse; any NaN for NaN."""
    values, order = special(dt), key if largest else -key
    return np.where(np.abs(key) == NAN, values["nan"], np.where(order < 0, ~order | values["-0"], order))


def extreme(p, dt, largest, num=False):
    return pattern(keys(p, dt, largest, num).max(axis=1), dt, largest)


def running(p, dt, largest, num=False, reverse=False):
    k = keys(p, dt, largest, num)
    k = np.maximum.accumulate(k[:, ::-1] if reverse else k, axis=1)
    return pattern(k[:, ::-1] if reverse else k, dt, largest)


def hold(kernel, args, wants, dt, layouts):
    roads = [("reference", interpret(kernel, args))]
    roads += [(layout, execute(kernel, args, layout=layout)) for layout in layouts if BACKEND != "reference"]
    for road, got in roads:
        for i, (g, want) in enumerate(zip(got, wants)):
            want = from_patterns(want, dt) if g.dtype == numpy_dtype(dt) else want
            assert_same_bits(g, want.reshape(g.shape), f"output {i}, {road}")


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("dt", FLOATS)
def test_every_extreme(dt, n, rng):
    p = rows(dt, n, 100 if n < 100 else 12, rng)
    reductions, scans, updates = kernels(dt)
    picked = [keys(p, dt, largest, False).argmax(axis=1) for largest in (True, False)]
    wants = [extreme(p, dt, True), extreme(p, dt, False), extreme(p, dt, True, True), extreme(p, dt, False, True),
             np.take_along_axis(p, picked[0][:, None], 1), picked[0], np.take_along_axis(p, picked[1][:, None], 1), picked[1]]
    least = special(dt)["-top"]
    back = np.concatenate([running(p, dt, True, reverse=True)[:, 1:], np.full((len(p), 1), least)], axis=1)
    scanned = [running(p, dt, True), back, running(p, dt, False), running(p, dt, True, True, True)]
    for turn, (reduction, scan) in enumerate(zip(reductions, scans)):
        x = from_patterns(p.T if turn else p, dt)
        outs = [out((len(p),), "index" if i in (5, 7) else dt) for i in range(8)]
        hold(reduction, [x, *outs], wants, dt, ("contiguous", "strided", "reversed"))
        hold(scan, [x, *[out(x.shape, dt)] * 4], [w.T if turn else w for w in scanned], dt, ("contiguous", "strided", "reversed"))
    if n < 100:
        p = p[:: max(1, len(p) // 10)]
        start = p[:, 0]
        x, first = from_patterns(p, dt), from_patterns(start, dt)
        at = np.broadcast_to(np.arange(len(p))[:, None], p.shape).copy()
        wants = [extreme(p, dt, True), extreme(p, dt, False), extreme(p, dt, True), extreme(p, dt, False, True)]
        hold(updates, [x, at, *[first] * 4], wants, dt, ("contiguous", "mixed"))


@pytest.mark.parametrize("dt", ["f32", "bf16", "f64"])
def test_one_long_row(dt, rng):
    """A row that several threads share."""
    (reduction, _), (scan, _), _ = kernels(dt)
    for n in (70_000, 262_145):
        p = rows(dt, n, 2, rng)
        picked = [keys(p, dt, largest, False).argmax(axis=1) for largest in (True, False)]
        wants = [extreme(p, dt, True), extreme(p, dt, False), extreme(p, dt, True, True), extreme(p, dt, False, True),
                 np.take_along_axis(p, picked[0][:, None], 1), picked[0], np.take_along_axis(p, picked[1][:, None], 1), picked[1]]
        outs = [out((len(p),), "index" if i in (5, 7) else dt) for i in range(8)]
        hold(reduction, [from_patterns(p, dt), *outs], wants, dt, ("contiguous", "reversed"))


@pytest.mark.parametrize("dt", ["i8", "u64", "index"])
def test_ties_of_integers(dt, rng):
    """Few different numbers, the extremes of the dtype among them: the lowest index counts."""
    d = I.dtype(dt)

    def of(shape, axis):
        @intent.kernel
        def of(x: I.In[d, shape], high: I.Out[d, ("P",)], high_at: I.Out[I.index, ("P",)], low: I.Out[d, ("P",)],
               low_at: I.Out[I.index, ("P",)]):
            a, b = I.arg_reduce.max(x[:, :], axis=axis)
            high[:] = a
            high_at[:] = b
            a, b = I.arg_reduce.min(x[:, :], axis=axis)
            low[:] = a
            low_at[:] = b
        return of
    info = np.iinfo(numpy_dtype(d))
    numbers = np.array([info.min, info.min, 3, 4, info.max, info.max], numpy_dtype(d))
    for kernel, turn in ((of(("P", "N"), 1), False), (of(("N", "P"), 0), True)):
        for n in LENGTHS:
            x = rng.choice(numbers, (5, n))
            wants = [x.max(1), x.argmax(1), x.min(1), x.argmin(1)]
            outs = [out((5,), "index" if i % 2 else d) for i in range(4)]
            for where in ("contiguous", "reversed"):
                for g, want in zip(execute(kernel, [x.T.copy() if turn else x, *outs], layout=where), wants):
                    assert g.tolist() == want.tolist()
