"""Which orders does each atomic take (000 section 11)? Every combination, in both forms; CAS and its record."""
import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from tests.support import check, kir_of, out

from .world import source

ORDERS = ("relaxed", "acquire", "release", "acq_rel")
LEGAL = {"load": {"relaxed", "acquire"}, "store": {"relaxed", "release"}}
VALUES = {"load": "", "store": "x[i]", "compare_exchange": "q[i], x[i]"}
KEYWORDS = {"load": "", "store": "value=x[i], ", "compare_exchange": "expected=q[i], desired=x[i], "}
EFFECT = {"load": lambda q, x: q, "store": lambda q, x: x, "exchange": lambda q, x: x, "add": lambda q, x: q + x, "max": np.maximum,
          "min": np.minimum,
          "and_": lambda q, x: q & x, "or_": lambda q, x: q | x, "xor": lambda q, x: q ^ x, "compare_exchange": lambda q, x: x}


def kernel_of(kind, order, named):
    values = KEYWORDS.get(kind, "value=x[i], ") if named else VALUES.get(kind, "x[i]")
    place = f"q, index=i, {values}" if named else f"q[i], {values}{', ' if values else ''}"
    call = f'I.atomic.{kind}({place}order="{order}")'
    result = {"store": "q[i]", "compare_exchange": "r.old_value if r.success else -1"}.get(kind, "r")
    return source(f"for i in I.parallel(I.domain(0, x.shape[0])):\n    {'' if kind == 'store' else 'r = '}{call}\n    y[i] = {result}",
                  'x: I.In[I.i32, ("N",)], q: I.InOut[I.i32, ("N",)], y: I.Out[I.i32, ("N",)]')


@pytest.mark.parametrize("kind", EFFECT)
@pytest.mark.parametrize("named", [False, True], ids=["element", "named"])
def test_orders(kind, named):
    x, q = np.array([3, -4, 7, 12, 0] * 8, "i4"), np.array([1, 5, -7, 10, 9] * 8, "i4")
    for order in ORDERS:
        kernel = kernel_of(kind, order, named)
        if order in LEGAL.get(kind, ORDERS):
            after = EFFECT[kind](q, x)
            check(kernel, [x, q, out(40, "i32")], lambda x, q: (after, after if kind == "store" else q), layouts=("contiguous",))
        else:
            with pytest.raises(intent.LanguageError) as caught:
                kir_of(kernel)
            assert f"I.atomic.{kind}: order must be" in str(caught.value) and f"not '{order}'" in str(caught.value)


@intent.kernel
def swaps(want: I.In[I.i32, ("N",)], new: I.In[I.i32, ("N",)], q: I.InOut[I.i32, ("N",)], old: I.Out[I.i32, ("N",)], done: I.Out[I.bool,
                                                                                                                                 ("N",)],
          n: I.Out[I.i32, ()]):
    r = I.atomic.compare_exchange(q, index=I.domain(0, q.shape[0]), expected=want[:], desired=new[:], order="acq_rel")
    old[:] = r.old_value
    done[:] = r.success
    count = 0
    for i in I.domain(0, 3):
        again = I.atomic.compare_exchange(q[0], new[0], want[0], order="acquire")
        if again.success and again.old_value == new[0]:
            count = count + 1
    n[()] = I.cast(count, I.i32)


def test_compare_exchange_gives_old_value_and_success():
    want, new, q = np.array([1, 2, 3] * 20, "i4"), np.array([7, 8, 9] * 20, "i4"), np.array([1, 5, 3, 0] * 15, "i4")

    def oracle(want, new, q):
        after = np.where(q == want, new, q)
        after[0] = want[0]
        return after, q, q == want, np.array(1)
    check(swaps, [want, new, q, out(60, "i32"), out(60, "bool"), out((), "i32")], oracle)
