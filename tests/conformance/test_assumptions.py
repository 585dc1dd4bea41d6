"""Assumptions (000 section 13) and the closed list of names (SUPPLEMENT 2)."""
import numpy as np

import intent_numba as intent
import intent_numba.language as I
from tests.support import check, out

NAMES = """
Constexpr DType Enum In InOut Out constraints bool index i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 f8e4m3fn f8e5m2 dtype
e2m1 e4m3 e8m0 quant sparse inf nan pi LOG2E domain indices parallel assume_in_bounds ragged members
cast saturating_cast bitcast full zeros reshape transpose permute join select mask record gather
add subtract multiply fdiv clamp relu logical_not maximum minimum maximum_num minimum_num
abs exp exp2 log log1p lgamma sin asin cos tanh floor ceil sqrt rsqrt erf erfc i0 sigmoid fma floor_divide remainder power pow
reduce arg_reduce scan cumsum cummax region_fold region_scan dot matvec vecmat matmul outer contract scaled_matmul scaled_contract
quantize quantized_dot sparse_matmul sparse_contract histogram buffer store mutable_load scatter_unique scatter_reduce atomic random
""".split()
MEMBERS = {"reduce": "sum max min prod any all", "arg_reduce": "max min", "random": "bits uniform", "quant": "q4_k q8_k",
           "sparse": "one_of_two two_of_four",
           "atomic": "load store exchange add max min and_ or_ xor compare_exchange"}


def test_the_closed_list_of_names():
    assert sorted(I.__all__) == sorted(NAMES)
    for name, members in MEMBERS.items():
        public = {m for m in dir(getattr(I, name)) if not m.startswith("_")} - {"signature", "name", "doc"}
        assert set(members.split()) <= public, (name, public)


@intent.kernel
def assumed(x: I.In[I.f32, ("M", "N")], i: I.In[I.i32, ("K",)], j: I.index, y: I.Out[I.f32, ("K",)], z: I.Out[I.f32, ("N",)]):
    rows = i[:]
    I.assume_in_bounds(rows, x, axis=0)
    I.assume_in_bounds(j, x, axis=-1)
    b = I.buffer(x.shape, I.f32, init=x[:, :])
    v = x[:, :] * 2.0
    I.assume_in_bounds(rows, b, axis=0)
    I.assume_in_bounds(j, v, axis=1)
    y[:] = x[rows, j] + b[rows, j]
    z[:] = v[0, :]
    for k in I.domain(0, i.shape[0]):
        I.assume_in_bounds(i[k], x, axis=0)
        z[j] = z[j] + x[i[k], j]


def test_assumptions_change_nothing(rng):
    x, i = rng.integers(-9, 9, (4, 6)).astype("f4"), np.array([3, 0, 2, 3, 1], "i4")

    def oracle(x, i, j):
        z = x[0] * 2
        z[int(j)] += x[i, int(j)].sum()
        return x[i, int(j)] * 2, z
    check(assumed, [x, i, np.int64(4), out(5, "f32"), out(6, "f32")], oracle)
