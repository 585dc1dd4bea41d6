"""Region operations that are reductions or scans by what their helpers do become plain ones (002 section 9.2); the others stay."""
from __future__ import annotations

import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from intent_numba.kir import walk
from tests.language.test_region import everywhere, plus, total
from tests.support import check, integers, kir_of, normal, out


def loops(kernel):
    return [op.kind for op in walk(kir_of(kernel).body) if op.kind in ("for", "loop")]


@intent.fn
def statistics(x, keep, scale):
    v = I.select(keep, x * scale, 0)
    return I.record(total=I.reduce.sum(v, axis=0), peak=I.reduce.max(x, axis=0), some=I.reduce.any(keep & (x > 3), axis=0))


@intent.fn
def pooled(a, b):
    return I.record(total=b.total + a.total, peak=I.maximum(a.peak, b.peak), some=a.some | b.some)


@intent.kernel
def folds(x: I.In[I.i32, ("N",)], keep: I.In[I.bool, ("N",)], scale: I.i32, total: I.Out[I.i32, ()], peak: I.Out[I.i32, ()],
          some: I.Out[I.bool, ()]):
    s = I.region_fold(source=(x[:], keep[:]), axis=0, summarize=statistics, combine=pooled, identity=I.record(total=0, peak=-7, some=False),
                      operands=(scale,))
    total[()], peak[()], some[()] = s.total, s.peak, s.some


@intent.fn
def peaks(x):
    return I.reduce.max(x, axis=1)


@intent.kernel
def row_peaks(x: I.In[I.f32, ("M", "N")], y: I.Out[I.f32, ("M",)]):
    """Extremes of floats have no order, along any axis."""
    y[:] = I.region_fold(source=x[:, :], axis=-1, summarize=peaks, combine=I.maximum, identity=I.full((x.shape[0],), -I.inf, I.f32))


@intent.fn
def found(keep):
    return I.reduce.any(keep, axis=0), I.reduce.all(keep, axis=0)


@intent.fn
def either(a, b):
    return a[0] | b[0], a[1] & b[1]


@intent.kernel
def logic(keep: I.In[I.bool, ("N",)], y: I.Out[I.bool, (2,)]):
    y[0], y[1] = I.region_fold(source=keep[:], axis=0, summarize=found, combine=either, identity=(False, True))


@pytest.mark.parametrize("n", [0, 1, 70])
def test_plain_folds_of_bools(n):
    for keep in (np.zeros(n, bool), np.ones(n, bool), np.arange(n) == 5):
        everywhere(logic, [keep, out(2, "bool")], lambda k: np.array([k.any(), k.all()]), exact=True)
    assert not loops(logic)


@pytest.mark.parametrize("n", [0, 1, 64, 1100])
def test_plain_folds(n, rng):
    def oracle(x, keep, scale):
        with np.errstate(over="ignore"):
            return np.array((x * scale)[keep].sum(dtype="i4")), np.array(x.max() if n else -7), np.array((keep & (x > 3)).any())
    args = [integers(rng, n, "i32"), rng.integers(0, 2, n) > 0, np.int32(3)]
    everywhere(folds, [*args, out((), "i32"), out((), "i32"), out((), "bool")], oracle, exact=True)
    x = normal(rng, (3, n))
    everywhere(row_peaks, [x, out(3, "f32")], lambda x: x.max(1, initial=-np.inf), exact=True)
    assert not loops(folds) and not loops(row_peaks)


@intent.fn
def sums(x, at):
    return I.reduce.sum(x * 2, axis=0), I.reduce.max(at, axis=0)


@intent.fn
def later(a, b):
    return a[0] + b[0], I.maximum(a[1], b[1])


@intent.fn
def running(x, at, state):
    before = I.cumsum(x * 2, axis=0, inclusive=False) + state[0]
    return I.record(before=before, seen=I.select(x > 0, I.maximum(state[1], I.cummax(at, axis=0)), -1), own=x + 1)


@intent.kernel
def scans(x: I.In[I.i64, ("N",)], y: I.Out[I.i64, ("N",)], seen: I.Out[I.i64, ("N",)], own: I.Out[I.i64, ("N",)], last: I.Out[I.i64, (2,)]):
    at = I.cast(I.indices(I.domain(0, x.shape[0])), I.i64)
    o, s = I.region_scan(source=(x[:], at), axis=0, summarize=sums, combine=later, identity=(0, -9223372036854775808),
                         initial_state=(10, 5), apply=later, emit=running)
    y[:], seen[:], own[:] = o.before, o.seen, o.own
    last[0], last[1] = s


@intent.fn
def prefixes(x, state):
    return I.cumsum(x, axis=1) + state[:, None]


@intent.fn
def row_totals(x):
    return I.reduce.sum(x, axis=1)


@intent.kernel
def row_scans(x: I.In[I.i32, ("M", "N")], y: I.Out[I.i32, ("M", "N")], last: I.Out[I.i32, ("M",)]):
    zero = I.zeros((x.shape[0],), I.i32)
    y[:, :], last[:] = I.region_scan(source=x[:, :], axis=1, summarize=row_totals, combine=plus, identity=zero, initial_state=x[:, 0],
                                     apply=plus, emit=prefixes)


@pytest.mark.parametrize("n", [0, 1, 64, 300])
def test_plain_scans(n, rng):
    def oracle(x):
        at, peak = np.arange(n), np.maximum(np.arange(n), 5)
        return 10 + np.concatenate([[0], np.cumsum(x * 2)])[:-1], np.where(x > 0, peak, -1), x + 1, np.array([10 + (x * 2).sum(),
                                                                                                              max([5, *at])])
    everywhere(scans, [integers(rng, n, "i64", -99, 99), *(out(n, "i64") for _ in range(3)), out(2, "i64")], oracle, exact=True)
    if n:
        x = integers(rng, (n, n), "i32")
        everywhere(row_scans, [x, out((n, n), "i32"), out(n, "i32")],
                   lambda x: (np.cumsum(x, axis=1, dtype="i4") + x[:, :1], x.sum(1, dtype="i4") + x[:, 0]), exact=True)
    assert not loops(scans) and not loops(row_scans)


# --- what only looks like one ------------------------------------------------------------------------------------------------

@intent.fn
def minus(a, b):
    return a - b


@intent.fn
def prefix(x, state):
    return I.cumsum(x, axis=0) + state


@intent.fn
def prefix_of_doubles(x, state):
    return I.cumsum(x * 2, axis=0) + state


@intent.fn
def slice_prefix(x, state):
    return I.cumsum(x, axis=0) + x


@intent.fn
def backwards(x, state):
    return I.cumsum(x, axis=0, reverse=True) + state


@intent.fn
def first_of_slice(x):
    return x[0] + I.reduce.sum(x, axis=0)


@intent.kernel
def float_sum(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, ()]):
    y[()] = I.region_fold(source=x[:], axis=0, summarize=total, combine=plus, identity=0.0)


def fold_of(summarize, combine):
    @intent.kernel
    def fold(x: I.In[I.i64, ("N",)], y: I.Out[I.i64, ()]):
        y[()] = I.region_fold(source=x[:], axis=0, summarize=summarize, combine=combine, identity=0)
    return fold


def scan_of(emit, combine=plus):
    @intent.kernel
    def scan(x: I.In[I.i64, ("N",)], y: I.Out[I.i64, ("N",)]):
        y[:], _ = I.region_scan(source=x[:], axis=0, summarize=total, combine=combine, identity=0, initial_state=0, apply=plus, emit=emit)
    return scan


@pytest.mark.parametrize("kernel", [float_sum, fold_of(total, minus), fold_of(total, I.maximum), fold_of(first_of_slice, plus),
                                    scan_of(prefix_of_doubles),
                                    scan_of(slice_prefix), scan_of(backwards), scan_of(prefix, minus)],
                         ids=["float sum", "other combine", "other primitive", "element of the slice", "other operand", "slice alone",
                              "reverse", "other law"])
def test_what_is_not_plain_stays(kernel, rng):
    assert loops(kernel)
    dt = kir_of(kernel).params[0].type.dt
    x = normal(rng, 200) if dt == "f32" else integers(rng, 200, dt)
    check(kernel, [x, out(() if len(kir_of(kernel).params[1].type.shape) == 0 else 200, dt)], layouts=("contiguous",))
