"""Contractions with every legal pairing of axes, dense and sparse, against plain Python over the members of each result element.

Small integers make every order exact, and NaN shows whether an absent position was multiplied. The bits of a sparse contraction of
finite values are those of the dense one.
"""
from __future__ import annotations

import itertools

import ml_dtypes  # noqa: F401  (NumPy knows its dtypes by name)
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import intent_numba as intent
import intent_numba.language as I
from tests.support import check, interpret, numpy_dtype, out

from .settings import fuzz

ACCUMULATORS = [("f32", "f32"), ("f16", "f32"), ("f64", "f64"), ("bf16", "bf16"), ("f8e5m2", "f16"), ("f8e4m3fn", "f32"), ("i8", "i8"),
                ("i16", "i32"), ("u8", "f32"), ("u32", "u64")]
PER_GROUP = {"one_of_two": 2, "two_of_four": 4}


@st.composite
def pairings(draw, most: int = 3):
    """(lhs rank, rhs rank, reduce, batch, extents of the lhs axes, of the rhs axes)."""
    ranks = draw(st.integers(1, most)), draw(st.integers(1, most))
    left, right = (draw(st.permutations(range(r))) for r in ranks)
    reduced = draw(st.integers(1, min(ranks)))
    batched = draw(st.integers(0, min(ranks) - reduced))
    pairs = list(zip(left, right))
    extents = [[draw(st.integers(0, 5) if draw(st.integers(0, 7)) == 0 else st.integers(1, 5)) for _ in range(r)] for r in ranks]
    for i, j in pairs[:reduced + batched]:
        extents[1][j] = extents[0][i]
    return *ranks, tuple(pairs[:reduced]), tuple(pairs[reduced:reduced + batched]), *extents


def shared(reduce, batch, lhs, rhs):
    """Names of the axes: paired ones have one name."""
    a, b = [f"A{i}" for i in range(len(lhs))], [f"B{j}" for j in range(len(rhs))]
    for i, j in (*reduce, *batch):
        b[j] = a[i]
    result = [a[i] for i in range(len(a)) if i not in {i for i, _ in reduce}]
    return a, b, tuple(result + [b[j] for j in range(len(b)) if j not in {j for _, j in (*reduce, *batch)}])


def colons(n: int) -> str:
    return "[" + ", ".join([":"] * n) + "]"


def made(source: str, **names):
    scope = dict(names, I=I, intent=intent)
    exec(source, scope)
    return intent.kernel(scope["kernel"])


def contraction(pairing, dt: str, acc: str):
    la, lb, reduce, batch, ea, eb = pairing
    a, b, y = shared(reduce, batch, ea, eb)
    left, right = (colons(len(y)), "") if y else ("[()]", "[()]")
    return made(f"""
def kernel(a: I.In[dt, {tuple(a)}], b: I.In[dt, {tuple(b)}], y: I.Out[acc, {y}]):
    y{left} = I.contract(a{colons(la)}, b{colons(lb)}, reduce={reduce}, batch={batch}, acc_dtype=acc){right}
""", dt=I.dtype(dt), acc=I.dtype(acc))


def sparse(pairing, dt: str, acc: str, kind: str, axis: int):
    la, lb, reduce, batch, ea, eb = pairing
    a, b, y = shared(reduce, batch, ea, eb)
    stored, groups = ([*a[:axis], name, *a[axis + 1:]] for name in ("S", "G"))
    where = f"w{colons(la)}" if kind == "one_of_two" else f"I.record(first=w{colons(la)}, second=w2{colons(la)})"
    second = f", w2: I.In[I.index, {tuple(groups)}]" if kind == "two_of_four" else ""
    left, right = (colons(len(y)), "") if y else ("[()]", "[()]")
    return made(f"""
def kernel(a: I.In[dt, {tuple(stored)}], w: I.In[I.index, {tuple(groups)}]{second}, b: I.In[dt, {tuple(b)}], z: I.In[dt, {(a[axis],)}],
           y: I.Out[acc, {y}]):
    format = I.sparse.{kind}(compression_axis={axis}, logical_extent=z.shape[0])
    y{left} = I.sparse_contract(a{colons(la)}, {where}, b{colons(lb)}, format=format, reduce={reduce}, batch={batch},
                                acc_dtype=acc){right}
""", dt=I.dtype(dt), acc=I.dtype(acc))


def members(a, present, b, reduce, batch, acc):
    """Every result element by Python's own arithmetic, in any order: the data is exact."""
    kept = [i for i in range(a.ndim) if i not in {i for i, _ in reduce}]
    free = [j for j in range(b.ndim) if j not in {j for _, j in (*reduce, *batch)}]
    y = np.zeros([*(a.shape[i] for i in kept), *(b.shape[j] for j in free)], numpy_dtype(acc))
    floating = acc[0] in "fb"
    for at in np.ndindex(*y.shape):
        total = 0
        for k in itertools.product(*(range(a.shape[i]) for i, _ in reduce)):
            left, right = dict(zip(kept, at)), dict(zip(free, at[len(kept):]))
            right |= {j: left[i] for i, j in batch}
            left |= {i: x for (i, _), x in zip(reduce, k)}
            right |= {j: x for (_, j), x in zip(reduce, k)}
            ia, ib = (tuple(c[i] for i in range(len(c))) for c in (left, right))
            if present[ia]:
                total += float(a[ia]) * float(b[ib]) if floating else int(a[ia]) * int(b[ib])
        y[at] = total if floating else total % (1 << 8 * y.dtype.itemsize) if acc[0] == "u" else \
            (total + (1 << 8 * y.dtype.itemsize - 1)) % (1 << 8 * y.dtype.itemsize) - (1 << 8 * y.dtype.itemsize - 1)
    return y


def merged(x):
    """The members of all groups along one axis."""
    return x.reshape(*x.shape[:-2], x.shape[-2] * x.shape[-1])


def small(rng, shape, dt: str):
    """Values whose products and sums are exact in every accumulator here."""
    low, high = (-1, 2) if dt.startswith("f8") or dt == "bf16" else (0, 9) if dt[0] == "u" else (-4, 5)
    return rng.integers(low, high, shape).astype(numpy_dtype(dt))


@fuzz(0.012)
@given(pairings(), st.sampled_from(ACCUMULATORS), st.integers(0, 2**32 - 1))
def test_dense(pairing, dts, seed):
    rng, (_, _, reduce, batch, ea, eb) = np.random.default_rng(seed), pairing
    a, b = small(rng, ea, dts[0]), small(rng, eb, dts[0])
    want = members(a, np.ones(a.shape, bool), b, reduce, batch, dts[1])
    check(contraction(pairing, *dts), [a, b, out(want.shape, dts[1])], lambda a, b: want, layouts=("mixed",))


@fuzz(0.012)
@given(pairings(), st.sampled_from(ACCUMULATORS), st.sampled_from(sorted(PER_GROUP)), st.integers(0, 2), st.integers(0, 2),
       st.integers(0, 2**32 - 1))
def test_sparse(pairing, dts, kind, axis, groups, seed):
    rng, (la, _, reduce, batch, ea, eb), (dt, acc) = np.random.default_rng(seed), pairing, dts
    axis, group = axis % la, PER_GROUP[kind]
    ea[axis] = groups * group
    for i, j in (*reduce, *batch):
        eb[j] = ea[i]
    lead = [*ea[:axis], *ea[axis + 1:]]
    size = group // 2                                               # stored values of a group
    places = np.sort(np.argsort(rng.random((*lead, groups, group)), -1)[..., :size], -1)
    values = small(rng, (*lead, groups, size), dt)
    dense, present = np.zeros((*lead, groups, group), values.dtype), np.zeros((*lead, groups, group), bool)
    np.put_along_axis(dense, places, values, -1)
    np.put_along_axis(present, places, True, -1)
    dense, present, stored = (np.moveaxis(merged(x), -1, axis) for x in (dense, present, values))
    where = [np.ascontiguousarray(np.moveaxis(places[..., k], -1, axis)) for k in range(size)]
    b, rest = small(rng, eb, dt), np.zeros(ea[axis], values.dtype)
    if dt[0] in "fb":
        b[rng.random(b.shape) < 0.1] = np.nan
    want = members(dense, present, b, reduce, batch, acc)
    kernel = sparse(pairing, dt, acc, kind, axis)
    check(kernel, [stored, *where, b, rest, out(want.shape, acc)], lambda *_: want, layouts=("mixed",))
    if dt in ("f32", "f64"):
        a, b = rng.standard_normal(stored.shape).astype(stored.dtype), rng.standard_normal(b.shape).astype(b.dtype)
        dense = np.zeros((*lead, groups, group), values.dtype)
        np.put_along_axis(dense, places, np.moveaxis(a, axis, -1).reshape(values.shape), -1)
        dense = np.moveaxis(merged(dense), -1, axis)
        (got,) = interpret(kernel, [a, *where, b, rest, out(want.shape, acc)])
        (same,) = interpret(contraction(pairing, dt, acc), [dense, b, out(want.shape, acc)])
        np.testing.assert_array_equal(got, same)
