"""What a name is where paths join: literals of one merge take one dtype whatever the order of the arms, flags are values."""
import numpy as np
import pytest

import intent_numba.language as I
from intent_numba.errors import IntentTypeError
from intent_numba.frontend import build_kernel
from intent_numba.language.functions import Helper

from .front import i32, interpret

X = i32(0, 1, 2, 3, 4)


@Helper
def early(n):
    if n == 1:
        return 10
    if n == 2:
        return 20
    if n == 3:
        return n
    return 0


@Helper
def small(n):
    if n < 2:
        return False
    return True


def nested_ternary(x: I.In[I.i32, ("N",)], y: I.Out[I.i32, ("N",)]):
    for i in I.parallel(I.domain(0, x.shape[0])):
        n = x[i]
        y[i] = n if n == 1 else (20 if n == 2 else 0)


def inner_merge_first(x: I.In[I.i32, ("N",)], y: I.Out[I.i32, ("N",)]):
    for i in I.parallel(I.domain(0, x.shape[0])):
        if x[i] == 1:
            v = x[i]
        else:
            if x[i] == 2:
                v = 20
            else:
                v = 0
            y[i] = 7
        y[i] = v


def several_returns(x: I.In[I.i32, ("N",)], y: I.Out[I.i32, ("N",)]):
    for i in I.parallel(I.domain(0, x.shape[0])):
        y[i] = early(x[i])


def counted_then_replaced(x: I.In[I.i32, ("N",)], y: I.Out[I.i32, ("N",)]):
    for i in I.parallel(I.domain(0, x.shape[0])):
        n = x[i]
        v = 0
        for _ in range(3):
            if n > 1:
                v += 1
            else:
                v = n
        y[i] = v


@pytest.mark.parametrize("function, expected", [
    (nested_ternary, lambda n: n if n == 1 else 20 if n == 2 else 0),
    (inner_merge_first, lambda n: n if n == 1 else 20 if n == 2 else 0),
    (several_returns, lambda n: {1: 10, 2: 20, 3: 3}.get(n, 0)),
    (counted_then_replaced, lambda n: 3 if n > 1 else n)], ids=lambda f: getattr(f, "__name__", ""))
def test_literals_of_one_merge_take_the_dtype_of_its_values(function, expected):
    y = np.zeros(5, "i4")
    interpret(function, X, y)
    assert y.tolist() == [expected(int(n)) for n in X]


def test_what_was_merged_under_a_name_of_its_own_is_a_value():
    def kernel(x: I.In[I.i32, ("N",)], y: I.Out[I.i32, ("N",)]):
        n = x[0]
        t = 20 if n == 2 else 0
        v = n if n == 1 else t
        y[0] = v
    with pytest.raises(IntentTypeError, match="integer of literals on one path and i32 on the other") as caught:
        build_kernel(kernel)
    assert len(caught.value.diagnostics) == 1
    assert caught.value.line - kernel.__code__.co_firstlineno in (2, 3)


def test_a_literal_that_does_not_fit_the_dtype_of_the_merge_is_refused():
    def kernel(x: I.In[I.i8, ("N",)], y: I.Out[I.i8, ("N",)]):
        v = 1
        if x[0] == 0:
            v = 300
        if x[0] == 1:
            v = x[0]
        y[0] = v
    with pytest.raises(IntentTypeError, match="300"):
        build_kernel(kernel)


def test_a_flag_chosen_by_a_condition_is_a_value():
    def kernel(x: I.In[I.i32, ("N",)], y: I.Out[I.bool, ("N",)], z: I.Out[I.i32, ("N",)], w: I.Out[I.bool, ("N",)]):
        for i in I.parallel(I.domain(0, x.shape[0])):
            if x[i] < 2:
                v = False
            else:
                v = True
            y[i] = v
            z[i] = I.cast(v, I.i32) + I.select(v, 10, x[i])
            w[i] = small(x[i])
    y, z, w = np.zeros(5, bool), np.zeros(5, "i4"), np.zeros(5, bool)
    interpret(kernel, X, y, z, w)
    assert y.tolist() == w.tolist() == (X >= 2).tolist()
    assert z.tolist() == [11 if n >= 2 else n for n in X]


def test_a_condition_that_comes_out_negated():
    def kernel(x: I.In[I.i32, ("N",)], y: I.Out[I.i32, ("N",)]):
        for i in I.parallel(I.domain(0, x.shape[0])):
            n = x[i]
            a = 0
            b = 0
            if (b - 2) >= n:
                b = a
            else:
                b = ((b if a < b else a) if (n >= 3 or a < b) else (b - n))
            y[i] = b
    y = np.zeros(5, "i4")
    interpret(kernel, X, y)
    assert y.tolist() == [0 if n >= 3 else -n for n in X]


def test_a_literal_that_a_decided_branch_leaves_has_the_dtype_of_the_merge():
    def kernel(x: I.In[I.i32, ("N",)], y: I.Out[I.i32, ("N",)]):
        n = x[0]
        a = 1
        b = 0
        f = False
        if f:
            b = n
        if n == 3:
            a = n
        a += (2 - b)
        y[0] = a
    y = np.zeros(5, "i4")
    interpret(kernel, X, y)
    assert y[0] == 3


def test_an_arm_with_several_results_beside_a_constant():
    def kernel(x: I.In[I.i32, ("N",)], y: I.Out[I.bool, (1,)]):
        ok = x[0] == 0
        if ok:
            a, b = 0, 0
            for i in range(x.shape[0]):
                a, b = b + x[i], a
            found = a > b
        else:
            found = False
        y[0] = found
    y = np.zeros(1, bool)
    interpret(kernel, X, y)
    a = b = 0
    for n in X:
        a, b = b + n, a
    assert y[0] == (a > b)


def test_a_field_may_be_called_shape():
    def kernel(x: I.In[I.i32, ("N",)], y: I.Out[I.i32, ("N",)]):
        r = I.record(shape=x[:], dtype=x[:] * 2)
        y[:] = r.shape + r.dtype
    y = np.zeros(5, "i4")
    interpret(kernel, X, y)
    assert y.tolist() == (X * 3).tolist()


@Helper
def one_or_two(flag):
    if flag:
        return 1
    return 2


@pytest.mark.parametrize("flag", [False, True])
@pytest.mark.parametrize("width", [1, 3, 4, 6])
def test_branches_that_literals_decide_leave_literals(flag, width):
    """However the condition came about: Constexprs, names that kept a literal, helpers that returned one."""
    def kernel(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, (5,)], FLAG: I.Constexpr[bool], WIDTH: I.Constexpr[int]):
        n = 0
        if WIDTH % 2 == 0 and not FLAG:
            n = 1
            if WIDTH > 3 or FLAG:
                n += 2
        if n > 2:
            n = n * 2
        y[0] = x[0] * n
        s, again = 1, FLAG
        if again:
            s = 2
            again = WIDTH > 3
        if again:
            s = 7
        y[1] = x[0] * s
        t = 3 if one_or_two(FLAG) == 1 else 5
        y[2] = x[0] * t
        for i in I.domain(3, 5):
            if t == 3:
                if WIDTH > 2:
                    u = 4
                else:
                    u = one_or_two(WIDTH == 1)
            else:
                u = 5
            y[i] = x[0] * u
    y = np.zeros(5, "f4")
    interpret(kernel, np.array([2.5], "f4"), y, FLAG=flag, WIDTH=width)
    n = 6 if width in (4, 6) and not flag else 0
    s = 7 if flag and width > 3 else 2 if flag else 1
    u = (4 if width > 2 else 1) if flag else 5
    assert (y / 2.5).tolist() == [n, s, 3 if flag else 5, u, u]


def test_a_branch_is_decided_only_by_what_stays_a_literal():
    """The condition is a literal on the way to a mistake in the other branch, and a run-time value after it."""
    def kernel(x: I.In[I.i32, ("N",)], y: I.Out[I.i32, ("N",)]):
        v = 0
        w = 1
        for i in I.domain(0, x.shape[0]):
            if v == 0:
                v = x[i] + w
            else:
                w = 1.5
            y[i] = v
    with pytest.raises(IntentTypeError):
        build_kernel(kernel)
