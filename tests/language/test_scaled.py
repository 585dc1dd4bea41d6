"""Block-scaled contractions: every code of every format, one rounding to the accumulator, the closed schema. Spec: 000 section 7,
002 section 11, decision 28."""
from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from intent_numba.errors import IntentShapeError, IntentTypeError
from intent_numba.frontend import build_kernel
from tests.support import check, out

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
E2M1 = np.concatenate([E2M1, -E2M1])


def e8m0(codes):
    return np.where(codes == 255, np.nan, np.exp2(codes.astype("f8") - 127))


def e4m3(codes):
    return codes.view(ml_dtypes.float8_e4m3fn).astype("f8")


def unpack(carrier, axis):
    """The elements of e2m1 carriers, the low nibble first."""
    pair = np.stack([carrier & 15, carrier >> 4], axis=axis + 1)
    return E2M1[pair.reshape(*carrier.shape[:axis], 2 * carrier.shape[axis], *carrier.shape[axis + 1:])]


# --- codes ---------------------------------------------------------------------------------------------------------------

def codes_kernel(acc):
    @intent.kernel
    def kernel(a: I.In[I.u8, ("M", 1, 1)], s: I.In[I.u8, ("M", 1)], one: I.In[I.u8, (1, 1, 1)], unit: I.In[I.u8, (1, 1)],
               y: I.Out[acc, ("M", 1)]):
        y[:, :] = I.scaled_matmul(a[:, :, :], s[:, :], one[:, :, :], unit[:, :], lhs_format=I.e4m3, rhs_format=I.e4m3, group_size=1,
                                  acc_dtype=acc)
    return kernel


@pytest.mark.parametrize("acc", [I.f16, I.bf16, I.f32, I.f64], ids=str)
def test_every_element_with_every_scale_rounds_once(acc):
    a, s = (v.reshape(-1) for v in np.meshgrid(np.arange(256, dtype="u1"), np.arange(256, dtype="u1")))
    one, unit = np.full((1, 1, 1), 0x38, "u1"), np.full((1, 1), 127, "u1")
    target = out((len(a), 1), acc)

    def oracle(a, s, one, unit):
        exact = e4m3(a[:, 0, 0]) * e8m0(s[:, 0])                # at most 4 bits times a power of two: exact in f64
        return exact.astype(target.dtype)[:, None]
    check(codes_kernel(acc), [a.reshape(-1, 1, 1), s.reshape(-1, 1), one, unit, target], oracle, layouts=("contiguous",))


@intent.kernel
def e2m1_codes(a: I.In[I.u8, ("M", 1, 1)], s: I.In[I.u8, ("M", 1)], b: I.In[I.u8, (1, 2, 2)], t: I.In[I.u8, (2, 1)],
               y: I.Out[I.f64, ("M", 2)]):
    y[:, :] = I.scaled_matmul(a[:, :, :], s[:, :], b[:, :, :], t[:, :], lhs_format=I.e2m1, rhs_format=I.e4m3, group_size=2,
                              acc_dtype=I.f64)


def test_every_pair_of_nibbles():
    a = np.arange(256, dtype="u1").reshape(-1, 1, 1)
    s = (np.arange(256) * 37 % 255).astype("u1").reshape(-1, 1)
    b = np.array([[[0x38, 0], [0, 0x38]]], "u1")                # column 0 picks the first element, column 1 the second
    check(e2m1_codes, [a, s, b, np.full((2, 1), 127, "u1"), out((256, 2), "f64")],
          lambda a, s, b, t: unpack(a, 2)[:, 0, :] * e8m0(s), layouts=("contiguous", "mixed"))


# --- products --------------------------------------------------------------------------------------------------------------

@intent.kernel
def mixed_gemm(a: I.In[I.u8, ("M", "G", 16)], sa: I.In[I.u8, ("M", "G")], b: I.In[I.f8e4m3fn, ("G", 32, "N")], sb: I.In[I.u8, ("N", "G")],
               y: I.Out[I.f32, ("M", "N")]):
    y[:, :] = I.scaled_contract(a[:, :, :], sa[:, :], b[:, :, :], sb[:, :], lhs_format=I.e2m1, rhs_format=I.e4m3, lhs_group_size=32,
                                rhs_group_size=32, reduce=((1, 0), (2, 1)), batch=(), acc_dtype=I.f32)


@pytest.mark.parametrize("M, G, N", [(5, 3, 7), (1, 1, 1), (4, 0, 3), (0, 2, 3), (17, 40, 9)])
def test_block_scaled_gemm(M, G, N, rng):
    a, sa = rng.integers(0, 256, (M, G, 16)).astype("u1"), rng.integers(120, 134, (M, G)).astype("u1")
    b = rng.standard_normal((G, 32, N)).astype(ml_dtypes.float8_e4m3fn)
    sb = rng.integers(120, 134, (N, G)).astype("u1")

    def oracle(a, sa, b, sb):
        x = unpack(a, 2) * e8m0(sa)[:, :, None]
        w = b.astype("f8") * e8m0(sb).T[:, None, :]
        return np.einsum("mgc,gcn->mn", x, w)
    check(mixed_gemm, [a, sa, b, sb, out((M, N), "f32")], oracle, ulps=64, floor=64 * 40 * max(G, 1), layouts=("contiguous", "mixed"))


@intent.kernel
def batched_e2m1(a: I.In[I.u8, ("B", "M", "G", "C")], sa: I.In[I.u8, ("B", "M", "G")], w: I.In[I.u8, ("G", 8, "N")],
                 sw: I.In[I.u8, ("N", "G")], y: I.Out[I.f32, ("B", "M", "N")], HALF: I.Constexpr[int]):
    """Another order and a batch normalise through ordinary slices and control."""
    B, M, G, C = a.shape
    for i in I.parallel(I.domain(0, B)):
        x = a[i, :, :, 0:HALF]
        y[i, :, :] = I.scaled_matmul(x, sa[i, :, :], w[:, :, :], sw[:, :], lhs_format=I.e2m1, rhs_format=I.e2m1, group_size=2 * HALF,
                                     acc_dtype=I.f32)


def test_a_batch_by_ordinary_control_is_exact_on_exact_data(rng):
    a, sa = rng.integers(0, 256, (3, 6, 4, 8)).astype("u1"), rng.integers(125, 130, (3, 6, 4)).astype("u1")
    w, sw = rng.integers(0, 256, (4, 8, 5)).astype("u1"), rng.integers(125, 130, (5, 4)).astype("u1")

    def oracle(a, sa, w, sw):
        return np.einsum("bmgc,gcn->bmn", unpack(a, 3) * e8m0(sa)[..., None], unpack(w, 1) * e8m0(sw).T[:, None, :])
    check(batched_e2m1, [a, sa, w, sw, out((3, 6, 5), "f32")], oracle, constexprs={"HALF": 8}, layouts=("contiguous", "mixed"))


# --- refusals ----------------------------------------------------------------------------------------------------------------

VIEWS = dict(a=("u8", ("M", "G", 16)), sa=("u8", ("M", "G")), b=("u8", ("G", 32, "N")), sb=("u8", ("N", "G")))


def variant(lhs=I.e2m1, rhs=I.e4m3, group=32, acc=I.f32, reduce=((1, 0), (2, 1)), batch=(), other=None, **views):
    def view(name):
        dt, shape = views.get(name, VIEWS[name])
        return I.In[I.dtype(dt), shape]
    other = group if other is None else other

    def kernel(a, sa, b, sb, y):
        y[:, :] = I.scaled_contract(a[:, :, :], sa[:, :], b[:, :, :], sb[:, :], lhs_format=lhs, rhs_format=rhs, lhs_group_size=group,
                                    rhs_group_size=other, reduce=reduce, batch=batch, acc_dtype=acc)
    kernel.__annotations__ = {n: view(n) for n in VIEWS} | {"y": I.Out[I.f32, ("M", "N")]}
    return kernel


@pytest.mark.parametrize("kernel, error, text", [
    (variant(lhs=I.e8m0), IntentTypeError, "lhs_format"), (variant(lhs=I.f32), IntentTypeError, "lhs_format must be a format"),
    (variant(lhs=I.e4m3), IntentShapeError, "has extent 16"), (variant(group=64), IntentShapeError, "axis 2 has extent 16"),
    (variant(group=0), IntentTypeError, "positive"), (variant(group=3), IntentShapeError, "no whole number"),
    (variant(other=16), IntentShapeError, "must agree"), (variant(acc=I.i32), IntentTypeError, "accumulator"),
    (variant(reduce=((1, 0),)), IntentShapeError, "fixed to"), (variant(batch=((0, 2),)), IntentShapeError, "batch"),
    (variant(a=("u8", ("M", "G", "C"))), IntentShapeError, "annotate the extent as 16"),
    (variant(a=("i8", ("M", "G", 16))), IntentTypeError, "lhs must hold u8"),
    (variant(sa=("f32", ("M", "G"))), IntentTypeError, "lhs_scale"),
    (variant(sb=("u8", ("G", "N"))), IntentShapeError, "rhs_scale"), (variant(a=("u8", ("G", 16))), IntentShapeError, "given"),
])
def test_refused(kernel, error, text):
    with pytest.raises(error) as caught:
        build_kernel(kernel)
    assert text in str(caught.value)


def test_variants_are_legal():
    build_kernel(variant())
