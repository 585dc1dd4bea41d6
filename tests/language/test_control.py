"""Structured control: carries, merges, break and continue, early returns, against the same Python run on NumPy arrays."""
import numpy as np
import pytest

import intent_numba.language as I
from intent_numba.errors import IntentTypeError
from intent_numba.frontend import build_kernel
from intent_numba.language.functions import Helper

from .front import f32, i32, interpret, kinds


def test_while_with_a_weak_integer_carry():
    def doubling(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, ("N",)]):
        N = x.shape[0]
        step = 1
        while step <= N:
            y[step - 1] = x[step - 1]
            step = step * 2
    y = np.zeros(9, "f4")
    interpret(doubling, np.arange(9, dtype="f4") + 1, y)
    assert y.tolist() == [1, 2, 0, 4, 0, 0, 0, 8, 0]


def test_break_keeps_the_carry_of_that_iteration():
    def until_negative(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, (2,)]):
        acc = I.cast(0, I.f32)
        last = I.cast(-1, I.i32)
        for i in range(x.shape[0]):
            if x[i] < 0.0:
                break
            acc += x[i]
            last = I.cast(i, I.i32)
        y[0] = acc
        y[1] = I.cast(last, I.f32)
    for values, want in (((1, 2, -1, 8), (3, 1)), ((1, 2, 3, 4), (10, 3)), ((-1, 2), (0, -1)), ((), (0, -1))):
        y = np.zeros(2, "f4")
        interpret(until_negative, f32(*values), y)
        assert y.tolist() == list(want)


def test_for_else_and_two_exits():
    def first(x: I.In[I.i32, ("N",)], y: I.Out[I.i32, (2,)]):
        for i in I.domain(0, x.shape[0]):
            if x[i] == 7:
                y[0] = I.cast(i, I.i32)
                break
            if x[i] == 9:
                y[1] = I.cast(i, I.i32)
                break
        else:
            y[0] = -1
            y[1] = -1
    for values, want in (((1, 7, 9), (1, 0)), ((1, 9, 7), (0, 1)), ((1, 2), (-1, -1))):
        y = i32(0, 0)
        interpret(first, i32(*values), y)
        assert y.tolist() == list(want)


def test_nested_loops_with_break_and_continue():
    def body(x, y, n, m, get=lambda a, i: a[i]):
        total = 0
        for i in range(n):
            if i == 2:
                continue
            k = 0
            while k < m:
                k = k + 1
                if k == i:
                    break
                if (k + i) % 3 == 0:
                    continue
                total = total + k * i
            if total > 60:
                break
        return total, k

    def nest(n: I.i32, m: I.i32, y: I.Out[I.i32, (2,)]):
        total = I.cast(0, I.i32)
        k = I.cast(0, I.i32)
        for i0 in range(n):
            i = I.cast(i0, I.i32)
            if i == 2:
                continue
            k = I.cast(0, I.i32)
            while k < m:
                k = k + 1
                if k == i:
                    break
                if (k + i) % 3 == 0:
                    continue
                total = total + k * i
            if total > 60:
                break
        y[0] = total
        y[1] = k
    for n, m in ((1, 3), (5, 4), (9, 6), (4, 0)):
        y = i32(0, 0)
        interpret(nest, n, m, y)
        assert tuple(y) == body(None, None, n, m), (n, m)


@Helper
def classify(v, limit: I.i32):
    if v < 0:
        return -1
    total = I.cast(0, I.i32)
    for i in range(limit):
        total = total + v
        if total > 10:
            return total
    return total * 100


def test_early_return_in_a_helper():
    def reference(v, limit):
        if v < 0:
            return -1
        total = 0
        for _ in range(limit):
            total += v
            if total > 10:
                return total
        return total * 100

    def use(x: I.In[I.i32, ("N",)], limit: I.i32, y: I.Out[I.i32, ("N",)]):
        for i in I.parallel(I.domain(0, x.shape[0])):
            y[i] = classify(x[i], limit)
    x = i32(-3, 0, 2, 5, 11)
    y = np.zeros_like(x)
    interpret(use, x, 4, y)
    assert y.tolist() == [reference(int(v), 4) for v in x]


def test_ternary_guards_its_arms():
    def divide(a: I.In[I.i32, ("N",)], b: I.In[I.i32, ("N",)], y: I.Out[I.i32, ("N",)]):
        for i in I.parallel(I.domain(0, a.shape[0])):
            y[i] = a[i] // b[i] if b[i] != 0 else 0
    y = i32(9, 9)
    interpret(divide, i32(5, 5), i32(0, 2), y)
    assert y.tolist() == [0, 2]
    assert "if" in kinds(divide)


def test_continue_in_parallel_skips_the_point():
    def odd(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, ("N",)]):
        for i in I.parallel(I.domain(0, x.shape[0])):
            if i % 2 == 0:
                continue
            y[i] = x[i]
    y = np.zeros(5, "f4")
    interpret(odd, np.arange(5, dtype="f4") + 1, y)
    assert y.tolist() == [0, 2, 0, 4, 0]


def test_parallel_product_and_enumerate():
    def both(y: I.Out[I.i32, ("M", "N")], z: I.Out[I.i32, ("K",)]):
        M, N = y.shape
        for i, j in I.parallel((I.domain(0, M), I.domain(0, N))):
            y[i, j] = I.cast(i * 10 + j, I.i32)
        for k, i in enumerate(I.domain(2, 9, 3)):
            z[k] = I.cast(i, I.i32)
    y, z = np.zeros((2, 3), "i4"), np.zeros(3, "i4")
    interpret(both, y, z)
    assert y.tolist() == [[0, 1, 2], [10, 11, 12]] and z.tolist() == [2, 5, 8]


def test_products_are_carried_component_by_component():
    def moments(x: I.In[I.f32, ("M", "N")], y: I.Out[I.f32, ("N",)], z: I.Out[I.f32, (2,)]):
        M, N = x.shape
        state = I.record(total=I.zeros((N,), I.f32), peak=-I.inf, seen=0)
        pair = (0.0, 1.0)
        for i in range(M):
            state = I.record(total=state.total + x[i, :], peak=I.maximum(state.peak, x[i, 0]), seen=state.seen + 1)
            pair = (pair[1], x[i, 0])
        y[:] = state.total
        z[0] = state.peak + pair[0]
        z[1] = I.cast(state.seen, I.f32)
    x = np.arange(12, dtype="f4").reshape(3, 4)
    y, z = np.zeros(4, "f4"), np.zeros(2, "f4")
    interpret(moments, x, y, z)
    assert y.tolist() == x.sum(0).tolist() and z.tolist() == [8 + 4, 3]


def test_literal_carries_take_the_dtype_of_their_updates():
    def online(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, (2,)]):
        state = (-1.0, 0.0)
        for i in range(x.shape[0]):
            peak, total = state
            top = I.maximum(peak, x[i])
            decay = I.exp(peak - top)
            ahead = I.exp2(peak)
            state = (top, total * decay + x[i] * 0 + 1)
            y[1] = ahead
        y[0] = state[0]
    y = np.zeros(2, "f4")
    interpret(online, f32(1, 3, 2), y)
    assert y.tolist() == [3, 8]


def test_a_domain_may_be_chosen_at_run_time():
    def part(x: I.In[I.f32, ("N",)], flag: I.bool, y: I.Out[I.f32, (1,)]):
        rows = I.domain(0, x.shape[0])
        if flag:
            rows = I.domain(1, 3)
        acc = I.cast(0, I.f32)
        for i in rows:
            acc = acc + x[i]
        y[0] = acc
    for flag, want in ((True, 5), (False, 15)):
        y = np.zeros(1, "f4")
        interpret(part, f32(1, 2, 3, 4, 5), flag, y)
        assert y[0] == want


def test_short_circuit_never_reads_outside():
    def scan(x: I.In[I.i32, ("N",)], y: I.Out[I.i32, (1,)]):
        N = x.shape[0]
        i = I.cast(0, I.index)
        while i < N and x[i] != 0:
            i = i + 1
        y[0] = I.cast(i, I.i32)
    for values in ((1, 2, 0, 4), (1, 2, 3), (0,), ()):
        y = i32(-1)
        interpret(scan, i32(*values), y)
        assert y[0] == (values.index(0) if 0 in values else len(values))


def test_and_or_not_and_chained_comparisons():
    def logic(x: I.In[I.i32, ("N",)], y: I.Out[I.bool, ("N", 4)]):
        for i in I.parallel(I.domain(0, x.shape[0])):
            v = x[i]
            y[i, 0] = v > 1 and v < 5
            y[i, 1] = v < 1 or v > 5
            y[i, 2] = not v == 3
            y[i, 3] = 0 < v <= 4
    x = i32(*range(-1, 8))
    y = np.zeros((9, 4), bool)
    interpret(logic, x, y)
    assert y.tolist() == [[1 < v < 5, v < 1 or v > 5, v != 3, 0 < v <= 4] for v in x.tolist()]
    assert "if" not in kinds(logic)


class Mode(I.Enum):
    SUM = 1
    PRODUCT = 2


@pytest.mark.parametrize("mode, twice, want", [(Mode.SUM, False, 5), (Mode.PRODUCT, False, 6), (Mode.PRODUCT, True, 12)])
def test_constexprs_select_code_that_need_not_type(mode, twice, want):
    def kernel(x: I.In[I.f32, (2,)], y: I.Out[I.f32, (1,)], mode: I.Constexpr[Mode], twice: I.Constexpr[bool] = False):
        op = I.add if mode == Mode.SUM else I.multiply
        r = op(x[0], x[1])
        if twice and mode != Mode.SUM:
            r = r * 2
        elif twice:
            r = x + undefined_name      # noqa: F821
        y[0] = r
    y = np.zeros(1, "f4")
    interpret(kernel, f32(2, 3), y, mode=mode, twice=twice)
    assert y[0] == want


def test_python_literals_fold_before_anything_meets_them():
    def fold(y: I.Out[I.f32, (2,)], n: I.Constexpr[int]):
        y[0] = (2 ** 3 - n) / 4
        y[1] = 1 if n > 3 else 2
    y = np.zeros(2, "f4")
    interpret(fold, y, n=5)
    assert y.tolist() == [0.75, 1]


def test_a_merge_of_two_schemas_is_refused():
    def bad(x: I.In[I.f32, (2,)], b: I.bool, y: I.Out[I.f32, (1,)]):
        if b:
            t = x[0]
        else:
            t = I.cast(x[0], I.f64)
        y[0] = t
    with pytest.raises(IntentTypeError, match="'t' must keep one schema"):
        build_kernel(bad)
