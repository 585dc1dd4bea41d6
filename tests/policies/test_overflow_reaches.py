"""OverflowError under ``checked``: from wherever an integer leaves i32, through every form of call, by one and by many threads."""
import numba
import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from tests.support import BACKEND

kernel = intent.kernel(policy="checked")
HIGH = 2 ** 31 - 1


@intent.fn
def square(x):
    return x * x


@intent.fn
def twice(x):
    if x > 0:
        return square(x + 1)
    return square(x)


@kernel
def helper(a: I.In[I.i32, ("N",)], y: I.Out[I.i32, ("N",)]):
    for i in I.domain(0, a.shape[0]):
        y[i] = twice(a[i])


@kernel
def vector_helper(a: I.In[I.i32, ("N",)], y: I.Out[I.i32, ("N",)]):
    y[:] = square(a[:]) - 1


@kernel
def ordered(a: I.In[I.i32, ("N",)], y: I.Out[I.i32, ("N",)]):
    for i in range(a.shape[0]):
        total = a[i]
        for j in range(3):
            total = total * a[i]
            if total > 1000000:
                break
        y[i] = total


@kernel
def unknown_trips(a: I.In[I.i32, ("N",)], y: I.Out[I.i32, ("N",)]):
    for i in I.parallel(I.domain(0, a.shape[0])):
        v, n = a[i], I.cast(0, I.i32)
        while n < 3:
            v = v * a[i]
            n = n + 1
        y[i] = v


@kernel
def points(a: I.In[I.i32, ("N",)], y: I.Out[I.i32, ("N",)]):
    for i in I.parallel(I.domain(0, a.shape[0])):
        y[i] = a[i] * a[i] if a[i] > 0 else 0


@kernel
def reduction(a: I.In[I.i32, ("N",)], y: I.Out[I.i32, ("N",)]):
    y[:] = a[:] - a[:] + I.reduce.sum(a[:], axis=0)


@kernel
def product_row(a: I.In[I.i32, ("N",)], y: I.Out[I.i32, ("N",)]):
    for i in I.parallel(I.domain(0, a.shape[0])):
        y[i] = I.dot(a[:], a[:], acc_dtype=I.i32)[()] - a[i]


@kernel
def matrix(a: I.In[I.i32, ("N",)], y: I.Out[I.i32, ("N",)]):
    m = I.matmul(a[:][:, None], a[:][None, :], acc_dtype=I.i32)
    for i in I.parallel(I.domain(0, a.shape[0])):
        y[i] = m[i, i]


@kernel
def cast(a: I.In[I.i32, ("N",)], y: I.Out[I.i32, ("N",)]):
    y[:] = I.cast(I.cast(a[:], I.f32) * 65536.0, I.i32)


@kernel
def power(a: I.In[I.i32, ("N",)], y: I.Out[I.i32, ("N",)]):
    y[:] = a[:] ** 3


@kernel
def dropped(a: I.In[I.i32, ("N",)], y: I.Out[I.i32, ("N",)]):
    for i in I.parallel(I.domain(0, a.shape[0])):
        t = a[i] * a[i]                                                 # noqa: F841
        y[i] = 0


@kernel
def in_buffer(a: I.In[I.i32, ("N",)], y: I.Out[I.i32, ("N",)]):
    for i in I.parallel(I.domain(0, a.shape[0])):
        b = I.buffer((2,), I.i32, init=0)
        b[0] = a[i]
        b[1] = b[0] * b[0]
        y[i] = b[1]


KERNELS = (helper, vector_helper, ordered, unknown_trips, points, reduction, product_row, matrix, cast, power, dropped, in_buffer)


def forms(k, a, y):
    """Every way to call the kernel on fresh arguments."""
    art = intent.compile(k)
    prepared = art.prepare(a, outputs=(y,))

    @numba.njit
    def outer(a, y):
        k(a, y)

    def launch():
        return prepared.launch().result()
    calls = {"k": lambda: k(a, y), "keywords": lambda: k(y=y, a=a), "run": lambda: k.run(a), "art": lambda: art(a, y),
             "art.run": lambda: art.run(a), "prepared": launch, "njit": lambda: outer(a, y)} if BACKEND != "reference" else {}
    return {**calls, "interpret": lambda: art.interpret(a, y)}


@pytest.mark.parametrize("k", KERNELS, ids=lambda k: k.__name__)
def test_every_form_of_call(k):
    good, bad = np.full(37, 3, np.int32), np.full(37, 3, np.int32)
    bad[33] = 2_147_483_600
    y = np.zeros(37, np.int32)
    want = None
    for (name, works), fails in zip(forms(k, good, y).items(), forms(k, bad, y.copy()).values()):
        for _ in range(4):                                  # native entries take over from repeated calls
            got = works()
            got = y if got is None else got
            want = got.copy() if want is None else want
            assert np.array_equal(got, want), name
            with pytest.raises(OverflowError, match=k.__name__):
                fails()


@pytest.mark.skipif(BACKEND == "reference", reason="compiled code only")
@pytest.mark.parametrize("k", (vector_helper, unknown_trips, points, cast, power, dropped, in_buffer), ids=lambda k: k.__name__)
def test_from_any_thread(k):
    n = 300_000
    y = np.zeros(n, np.int32)
    for at in (0, n // 2, n - 1):
        a = np.full(n, 3, np.int32)
        k(a, y)
        a[at] = 2_000_000_000
        for _ in range(3):
            with pytest.raises(OverflowError):
                k(a, y)
            with pytest.raises(OverflowError):
                k(a[::-1], y)


def test_a_caller_in_njit_can_go_on():
    art = intent.compile(points)

    @numba.njit
    def outer(a, y):
        try:
            art(a, y)
        except Exception:
            return -1
        return y[0]
    y = np.zeros(2, np.int32)
    assert outer(np.array([5, 1], np.int32), y) == 25
    assert outer(np.array([HIGH, 1], np.int32), y) == -1
    assert outer(np.array([6, 1], np.int32), y) == 36


def test_the_message_points_at_the_operation():
    a, y = np.array([70_000], np.int32), np.zeros(1, np.int32)
    lines, first = points.pyfunc.__code__, points.pyfunc.__code__.co_firstlineno
    for call in (lambda: points(a, y), lambda: intent.compile(points).interpret(a, y)):
        with pytest.raises(OverflowError) as caught:
            call()
        text = str(caught.value)
        assert f"{lines.co_filename}:{first + 3}:16: points: an integer result does not fit its dtype" in text
        assert "y[i] = a[i] * a[i] if a[i] > 0 else 0" in text
    with pytest.raises(OverflowError, match="it may be this one") as caught:
        ordered_pair(a, y)
    assert str(caught.value).count("it may be this one") == 2


@kernel
def ordered_pair(a: I.In[I.i32, ("N",)], y: I.Out[I.i32, ("N",)]):
    y[:] = a[:] * a[:] + a[:]
