"""Structurally sparse contractions: absent positions are never multiplied, whatever stands there. Spec: 000 section 7, 002 section
12, decision 27."""
from __future__ import annotations

import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from intent_numba.errors import IntentShapeError, IntentTypeError
from intent_numba.frontend import build_kernel
from tests.support import check, integers, out

PAIR = I.sparse.one_of_two(compression_axis=1, logical_extent=8)


@intent.kernel
def gemm_2_4(a: I.In[I.f32, ("M", "H")], first: I.In[I.index, ("M", "Q")], second: I.In[I.index, ("M", "Q")], b: I.In[I.f32, ("K", "N")],
             y: I.Out[I.f32, ("M", "N")]):
    K, N = b.shape
    y[:, :] = I.sparse_matmul(a[:, :], I.record(first=first[:, :], second=second[:, :]), b[:, :],
                              format=I.sparse.two_of_four(compression_axis=1, logical_extent=K), acc_dtype=I.f32)


@intent.kernel
def gemm_1_2(a: I.In[I.i16, ("M", 4)], where: I.In[I.u8, ("M", 4)], b: I.In[I.i16, (8, "N")], y: I.Out[I.i32, ("M", "N")]):
    y[:, :] = I.sparse_matmul(a[:, :], I.cast(where[:, :], I.index), b[:, :], format=PAIR, acc_dtype=I.i32)


def places(rng, shape):
    """Two increasing positions of four."""
    pairs = np.array([(i, j) for i in range(4) for j in range(i + 1, 4)])
    chosen = pairs[rng.integers(0, 6, shape)]
    return chosen[..., 0].astype("i8"), chosen[..., 1].astype("i8")


def dense_2_4(a, first, second):
    """The logical operand and its present positions; groups along the last axis."""
    lead, groups = a.shape[:-1], a.shape[-1] // 2
    dense, present = np.zeros((*lead, groups, 4), a.dtype), np.zeros((*lead, groups, 4), bool)
    for at, k in ((first, 0), (second, 1)):
        np.put_along_axis(dense, at[..., None], a.reshape(*lead, groups, 2)[..., k, None], -1)
        np.put_along_axis(present, at[..., None], True, -1)
    return dense.reshape(*lead, 4 * groups), present.reshape(*lead, 4 * groups)


def product(dense, present, b):
    """Row by row over present positions only."""
    y = np.zeros((dense.shape[0], *b.shape[1:]))
    for m in range(dense.shape[0]):
        keep = present[m]
        y[m] = np.tensordot(dense[m, keep].astype("f8"), b[keep].astype("f8"), 1)
    return y


@pytest.mark.parametrize("M, K, N", [(5, 16, 7), (1, 4, 1), (3, 0, 4), (0, 8, 3), (4, 1024, 33), (3, 2200, 5)])
def test_two_of_four_gemm(M, K, N, rng):
    a = rng.integers(-8, 9, (M, K // 2)).astype("f4")
    first, second = places(rng, (M, K // 4))
    b = rng.integers(-8, 9, (K, N)).astype("f4")
    check(gemm_2_4, [a, first, second, b, out((M, N), "f32")], lambda a, f, s, b: product(*dense_2_4(a, f, s), b),
          layouts=("contiguous", "mixed"))


def test_bits_are_those_of_the_dense_contraction_over_finite_values(rng):
    """Blocks of 1024 logical positions: an absent zero would change nothing."""
    a, b = rng.standard_normal((4, 1300)).astype("f4"), rng.standard_normal((2600, 6)).astype("f4")
    first, second = places(rng, (4, 650))

    @intent.kernel
    def dense(x: I.In[I.f32, ("M", "K")], w: I.In[I.f32, ("K", "N")], y: I.Out[I.f32, ("M", "N")]):
        y[:, :] = I.matmul(x[:, :], w[:, :], acc_dtype=I.f32)
    whole = dense_2_4(a, first, second)[0]
    check(gemm_2_4, [a, first, second, b, out((4, 6), "f32")], lambda a, f, s, b: dense.run(whole, b), layouts=("contiguous",))


def test_absent_positions_hide_infinities_and_nan(rng):
    a = np.ones((2, 4), "f4")
    first, second = np.array([[0, 1], [2, 0]], "i8"), np.array([[1, 3], [3, 1]], "i8")
    b = np.full((8, 3), np.nan, "f4")
    for m in range(2):
        for g in range(2):
            b[4 * g + first[m, g]] = b[4 * g + second[m, g]] = 1.0
    b[6] = np.inf                                               # no row stores position 6
    check(gemm_2_4, [a, first, second, b, out((2, 3), "f32")], lambda *_: np.full((2, 3), 4.0), layouts=("contiguous",))


def test_one_of_two_on_integers(rng):
    a, where, b = integers(rng, (5, 4), "i16"), rng.integers(0, 2, (5, 4)).astype("u1"), integers(rng, (8, 9), "i16")

    def oracle(a, where, b):
        dense = np.zeros((5, 4, 2), "i8")
        np.put_along_axis(dense, where[..., None].astype("i8"), a[..., None].astype("i8"), -1)
        return (dense.reshape(5, 8) @ b.astype("i8")).astype("i4")
    check(gemm_1_2, [a, where, b, out((5, 9), "i32")], oracle, layouts=("contiguous", "mixed"))


@intent.kernel
def batched(a: I.In[I.f64, ("H", "B", "M")], where: I.In[I.index, ("H", "B", "M")], b: I.In[I.f64, ("B", "N", "K")],
            y: I.Out[I.f64, ("B", "M", "N")]):
    K = b.shape[2]
    y[:, :, :] = I.sparse_contract(a[:, :, :], where[:, :, :], b[:, :, :], format=I.sparse.one_of_two(compression_axis=0, logical_extent=K),
                                   reduce=((0, 2),), batch=((1, 0),), acc_dtype=I.f64)


def dense_1_2(a, where):
    """Groups along the last axis."""
    dense = np.zeros((*a.shape, 2), a.dtype)
    np.put_along_axis(dense, where[..., None], a[..., None], -1)
    return dense.reshape(*a.shape[:-1], 2 * a.shape[-1])


@pytest.mark.parametrize("B, M, N, K", [(2, 3, 4, 10), (1, 1, 1, 2), (2, 3, 0, 4), (3, 2, 5, 0)])
def test_batch_and_another_compression_axis(B, M, N, K, rng):
    a = rng.integers(-9, 10, (K // 2, B, M)).astype("f8")
    where, b = rng.integers(0, 2, a.shape), rng.integers(-9, 10, (B, N, K)).astype("f8")

    def oracle(a, where, b):
        return np.einsum("bmk,bnk->bmn", dense_1_2(a.transpose(1, 2, 0), where.transpose(1, 2, 0)), b)
    check(batched, [a, where, b, out((B, M, N), "f64")], oracle, layouts=("contiguous", "mixed"))


@intent.kernel
def two_pairs(a: I.In[I.f32, ("M", 3, "H")], where: I.In[I.index, ("M", 3, "H")], b: I.In[I.f32, (3, "K", "N")],
              y: I.Out[I.f32, ("M", "N")], z: I.Out[I.f32, ("M", "N")]):
    kept = I.sparse.one_of_two(compression_axis=2, logical_extent=b.shape[1])
    y[:, :] = I.sparse_contract(a[:, :, :], where[:, :, :], b[:, :, :], format=kept, reduce=((1, 0), (2, 1)), acc_dtype=I.f32)
    z[:, :] = I.sparse_contract(a[:, :, :], where[:, :, :], b[:, :, :], format=kept, reduce=((2, 1), (1, 0)), acc_dtype=I.f32)


@intent.kernel
def two_dense_pairs(a: I.In[I.f32, ("M", 3, "K")], b: I.In[I.f32, (3, "K", "N")], y: I.Out[I.f32, ("M", "N")], z: I.Out[I.f32, ("M", "N")]):
    y[:, :] = I.contract(a[:, :, :], b[:, :, :], reduce=((1, 0), (2, 1)), acc_dtype=I.f32)
    z[:, :] = I.contract(a[:, :, :], b[:, :, :], reduce=((2, 1), (1, 0)), acc_dtype=I.f32)


@pytest.mark.parametrize("K", [2, 700])
def test_several_pairs_run_row_major_as_listed_in_blocks(K, rng):
    a, b = rng.standard_normal((2, 3, K // 2)).astype("f4"), rng.standard_normal((3, K, 4)).astype("f4")
    where = rng.integers(0, 2, a.shape)
    check(two_pairs, [a, where, b, out((2, 4), "f32"), out((2, 4), "f32")], lambda a, w, b: two_dense_pairs.run(dense_1_2(a, w), b),
          layouts=("contiguous", "mixed"))


@intent.kernel
def sparse_vector(a: I.In[I.f32, ("M", "H")], first: I.In[I.index, ("M", "Q")], second: I.In[I.index, ("M", "Q")], x: I.In[I.f32, ("K",)],
                  y: I.Out[I.f32, ("M",)]):
    (K,) = x.shape
    y[:] = I.sparse_contract(a[:, :], I.record(first=first[:, :], second=second[:, :]), x[:],
                             format=I.sparse.two_of_four(compression_axis=-1, logical_extent=K), reduce=((1, 0),), acc_dtype=I.f32)


@pytest.mark.parametrize("M, K", [(4, 16), (3, 0), (2, 300)])
def test_matrix_times_vector(M, K, rng):
    a = rng.integers(-8, 9, (M, K // 2)).astype("f4")
    first, second = places(rng, (M, K // 4))
    x = rng.integers(-8, 9, K).astype("f4")
    check(sparse_vector, [a, first, second, x, out(M, "f32")], lambda a, f, s, x: product(*dense_2_4(a, f, s), x),
          layouts=("contiguous", "mixed"))
    if K:
        x = np.full(K, np.nan, "f4")
        dense, present = dense_2_4(a, first, second)
        x[present[0]] = 1.0
        got = sparse_vector.run(a, first, second, x)
        assert got[0] == a[0].sum()


@intent.kernel
def shared_rows(a: I.In[I.f32, ("B", "H")], where: I.In[I.index, ("B", "H")], b: I.In[I.f32, ("B", "K", "N")], y: I.Out[I.f32, ("B", "N")]):
    K = b.shape[1]
    y[:, :] = I.sparse_contract(a[:, :], where[:, :], b[:, :, :], format=I.sparse.one_of_two(compression_axis=1, logical_extent=K),
                                reduce=((1, 1),), batch=((0, 0),), acc_dtype=I.f32)


def test_batched_vector_times_matrix(rng):
    a, where = rng.integers(-8, 9, (3, 20)).astype("f4"), rng.integers(0, 2, (3, 20))
    b = rng.integers(-8, 9, (3, 40, 6)).astype("f4")
    check(shared_rows, [a, where, b, out((3, 6), "f32")], lambda a, w, b: np.einsum("bk,bkn->bn", dense_1_2(a, w), b),
          layouts=("contiguous",))


def test_formats_are_values_outside_of_kernels():
    made = I.sparse.two_of_four(compression_axis=1, logical_extent=16)
    assert (made.kind, made.compression_axis, made.logical_extent) == ("two_of_four", 1, 16)


def variant(format=None, metadata=None, reduce=((1, 0),), acc=I.f32, where="index", stored=4):
    def kernel(a, w, b, y):
        y[:, :] = I.sparse_contract(a[:, :], w[:, :] if metadata is None else w, b[:, :], format=format, reduce=reduce, acc_dtype=acc)
    kernel.__annotations__ = {"a": I.In[I.f32, ("M", stored)], "w": I.In[I.dtype(where), ("M", stored)], "b": I.In[I.f32, (8, "N")],
                              "y": I.Out[I.f32, ("M", "N")]}
    return kernel


@pytest.mark.parametrize("kernel, error, text", [
    (variant(I.sparse.two_of_four(compression_axis=1, logical_extent=8)), IntentTypeError, "record of first and second"),
    (variant(I.e2m1), IntentTypeError, "format must be"), (variant(PAIR, where="i32"), IntentTypeError, "metadata must hold index"),
    (variant(PAIR, reduce=()), IntentShapeError, "at least one pair"), (variant(PAIR, acc=I.i32), IntentTypeError, "acc_dtype"),
    (variant(PAIR, stored=5), IntentShapeError, "along the compression axis"),
    (variant(I.sparse.one_of_two(compression_axis=1, logical_extent=7)), IntentShapeError, "not divisible by 2"),
    (variant(I.sparse.one_of_two(compression_axis=2, logical_extent=8)), IntentShapeError, "axis 2 does not exist"),
    (variant(I.sparse.one_of_two(compression_axis=1, logical_extent=10), stored=5), IntentShapeError, "differ"),
])
def test_refused(kernel, error, text):
    with pytest.raises(error) as caught:
        build_kernel(kernel)
    assert text in str(caught.value)


def test_variant_is_legal():
    build_kernel(variant(PAIR))
