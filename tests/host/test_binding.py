"""A call that breaks its annotations is a CallError that names the parameter, what was expected and what came."""
from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import intent_numba as intent
from intent_numba.runtime.binding import Facts, bind
from intent_numba.runtime.interface import arrange, split_constexprs

from . import kernels


def call(kernel, *args, facts=None, extents=None, run=False, **kwargs):
    """Arrange, split and bind as a call does, without compiling."""
    interface = kernel.interface
    params = [p for p in interface.params if not (run and p.access == "out")]
    _, values = split_constexprs(interface, arrange(interface, params, args, kwargs))
    return bind(interface, facts or Facts(plain_writes=frozenset(p.name for p in interface.views if p.written)), values, extents=extents)


def refused(kernel, *args, **kwargs) -> str:
    with pytest.raises(intent.CallError) as caught:
        call(kernel, *args, **kwargs)
    assert isinstance(caught.value, TypeError) and isinstance(caught.value, intent.IntentError)
    return str(caught.value)


@pytest.fixture
def x():
    return np.zeros((3, 4), "f4")


@pytest.fixture
def y():
    return np.zeros((3, 4), "f4")


def test_frame_layout(x, y):
    bound = call(kernels.scale, x, 1.0, y[:, ::-1])
    assert list(bound.frame)[1:] == [x.ctypes.data, 3, 4, 4, 1, 0x3F800000, y[:, ::-1].ctypes.data, 3, 4, 4, -1]


def test_keywords_and_order(x, y):
    assert list(call(kernels.scale, s=1.0, y=y, x=x).frame) == list(call(kernels.scale, x, 1.0, y).frame)
    assert "'x'" in refused(kernels.scale, x, 1.0, y, x=x)
    assert "no parameter 'z'" in refused(kernels.scale, x, 1.0, z=y)
    assert "at most 3" in refused(kernels.scale, x, 1.0, y, y)
    assert "'y'" in refused(kernels.scale, x, 1.0) and "nothing" in refused(kernels.scale, x, 1.0)


@pytest.mark.parametrize("bad, words", [
    (np.zeros((3, 4)), ("f32", "float64")),
    (np.zeros((3, 4), ">f4"), ("f32", "byte-swapped")),
    (np.zeros((3, 4), "i4"), ("f32", "int32")),
    (np.zeros(3, "f4"), ("rank 2", "(3,)")),
    (np.zeros((3, 4, 1), "f4"), ("rank 2", "(3, 4, 1)")),
    ([[1.0]], ("f32", "list")),
    (None, ("f32", "None")),
    (3, ("f32", "3 of type int")),
    (np.float32(1), ("f32", "float32")),
    (np.zeros((3, 4), "c8"), ("f32", "complex64")),
])
def test_wrong_arrays(bad, words, y):
    message = refused(kernels.scale, bad, 1.0, y)
    assert message.startswith("scale: parameter 'x': expected")
    for word in words:
        assert word in message


def test_equal_names_need_equal_extents(x):
    message = refused(kernels.scale, x, 1.0, np.zeros((3, 5), "f4"))
    assert "'y'" in message and "extent 4 on axis 1 (N of 'x' axis 1)" in message and "got 5" in message


def test_exact_extents_and_rank_zero():
    z = np.zeros((), "f4")
    assert "extent 3 on axis 0" in refused(kernels.fixed, np.zeros((2, 5), "f4"), np.zeros(5, "f4"), z)
    assert "rank 0" in refused(kernels.fixed, np.zeros((3, 5), "f4"), np.zeros(5, "f4"), np.zeros(1, "f4"))
    call(kernels.fixed, np.zeros((3, 5), "f4"), np.zeros(5, "f4"), z)


def test_outs_must_be_writable(x, y):
    y.flags.writeable = False
    assert "read-only" in refused(kernels.scale, x, 1.0, y)
    x.flags.writeable = False
    y = np.zeros_like(x)
    call(kernels.scale, x, 1.0, y)


@pytest.mark.parametrize("view", [lambda a: np.broadcast_to(a[:1], a.shape), lambda a: as_strided(a, a.shape, (0, 4)),
                                  lambda a: as_strided(a, a.shape, (4, 4))])
def test_a_written_view_that_overlaps_itself(x, view):
    y = as_strided(np.zeros(100, "f4"), (3, 4), view(x).strides)
    assert "overlaps itself" in refused(kernels.scale, x, 1.0, y)
    call(kernels.scale, view(x), 1.0, np.zeros((3, 4), "f4"))
    call(kernels.scale, x, 1.0, y, facts=Facts())                # every write is an atomic: accepted


@pytest.mark.parametrize("position, bad", [(0, 1), (0, None), (1, 200), (1, 1.0), (1, True), (2, -1), (2, 2**64), (3, 2**63), (3, 1.5),
                                           (4, 1e6), (4, "1"), (4, True), (5, 1e39), (5, 2**24 + 1), (6, 2**53 + 1), (6, 1j)])
def test_wrong_scalars(position, bad):
    good = [True, -128, 2**64 - 1, -2**63, 1.5, 1.5, 1.5]
    call(kernels.scalars, *good, np.zeros(6))
    args = [*good[:position], bad, *good[position + 1:]]
    message = refused(kernels.scalars, *args, np.zeros(6))
    assert f"parameter '{'biunhfd'[position]}'" in message and "got" in message


def test_scalar_slots():
    bound = call(kernels.scalars, np.True_, np.int64(-3), 2**64 - 1, np.int8(7), np.float16(1.0), np.float64(-1.0), 1, np.zeros(6))
    assert list(bound.frame)[1:8] == [1, -3, -1, 7, 0x3C00, 0xBF800000, 0x3FF0000000000000]


def test_run_allocates_zeros(x):
    bound = call(kernels.scale, x, 1.0, run=True)
    assert bound.views["y"].shape == (3, 4) and not bound.views["y"].any()


def test_extents():
    x = np.zeros(7, "f4")
    assert "extents={'P'" in refused(kernels.two_outs, x, run=True)
    bound = call(kernels.two_outs, x, run=True, extents={"P": np.int64(9)})
    assert bound.views["big"].shape == (9, 2) and bound.views["y"].shape == (7,)
    assert call(kernels.two_outs, x, run=True, extents={"P": 0, "N": 7}).views["big"].shape == (0, 2)
    assert "'Q'" in refused(kernels.two_outs, x, run=True, extents={"P": 1, "Q": 2})
    assert "expected 7" in refused(kernels.two_outs, x, run=True, extents={"P": 1, "N": 8})
    for bad in (-1, 1.5, True, "1", None):
        assert "non-negative integer" in refused(kernels.two_outs, x, run=True, extents={"P": bad})


def test_strides_constraints(x):
    wide = np.zeros((3, 8), "f4")
    call(kernels.constrained, x, x.copy(), np.zeros((3, 4), "f4"))
    call(kernels.constrained, wide[:, :4], wide[:, 4:], np.zeros((3, 8), "f4")[:, ::2])
    assert "stride 1 on axis 1" in refused(kernels.constrained, wide[:, ::2], x, np.zeros((3, 4), "f4"))
    assert "(s of 'b')" in refused(kernels.constrained, x, wide[:, :4], np.zeros((3, 4), "f4"))
    call(kernels.constrained, np.zeros((3, 1), "f4"), wide[:, ::8], np.zeros((3, 8), "f4")[:, ::8])


def test_noalias_is_by_byte_range():
    block = np.zeros((3, 8), "f4")
    message = refused(kernels.constrained, np.zeros((3, 4), "f4"), block[:, :4], block[:, 4:])
    assert "'c'" in message and "noalias" in message and "'b'" in message


def test_alias_groups_share_their_allocation():
    base = np.zeros(6, "f4")
    call(kernels.grouped, base[:5], base[1:])
    call(kernels.grouped, base[:2], base[4:])
    call(kernels.grouped, base, base)
    assert "alias group 'g'" in refused(kernels.grouped, base, base.copy())


def test_overlapping_pairs_ask_for_program_order():
    base = np.zeros(6, "f4")
    pair = frozenset({frozenset("ab")})
    assert call(kernels.shift, base[:5], base[1:]).ordered == pair
    assert call(kernels.shift, base, base).ordered == pair
    assert call(kernels.shift, base, base, facts=Facts(inplace=pair)).ordered == frozenset()
    assert call(kernels.shift, base[:3], base[3:]).ordered == frozenset()


def test_misaligned_arrays_are_staged():
    raw = np.arange(49, dtype="u1")
    y = raw[1:].view("f4").reshape(3, 4)
    x = np.ones((3, 4), "f4")
    bound = call(kernels.scale, x, 2.0, y)
    bound.live["y"][...] = 7
    assert not (y == 7).any()
    bound.stage_out()
    assert (y == 7).all() and raw[0] == 0


def test_fields_of_packed_records_are_staged():
    packed = np.zeros(4, np.dtype([("tag", "u1"), ("x", "<f4")]))
    bound = call(kernels.add_one, packed["x"])
    bound.live["x"][...] = [1, 2, 3, 4]
    bound.stage_out()
    assert packed["x"].tolist() == [1, 2, 3, 4] and not packed["tag"].any()


def test_misaligned_arrays_must_not_overlap_written_ones():
    raw = np.zeros(49, "u1")
    message = refused(kernels.scale, raw[:48].view("f4").reshape(3, 4), 1.0, raw[1:].view("f4").reshape(3, 4))
    assert "misaligned" in message


def test_small_floats_come_through_ml_dtypes():
    call(kernels.small_floats, np.zeros(3, ml_dtypes.bfloat16), np.zeros(3, ml_dtypes.float8_e5m2))
    assert "bf16" in refused(kernels.small_floats, np.zeros(3, "u2"), np.zeros(3, ml_dtypes.float8_e5m2))
    assert "f8e5m2" in refused(kernels.small_floats, np.zeros(3, ml_dtypes.bfloat16), np.zeros(3, ml_dtypes.float8_e4m3fn))


@pytest.mark.parametrize("kwargs, words", [
    ({}, ("'NEGATE'", "nothing")),
    ({"NEGATE": 1}, ("'NEGATE'", "compile-time bool", "1 of type int")),
    ({"NEGATE": True, "mode": 0}, ("'mode'", "compile-time Mode")),
    ({"NEGATE": True, "mode": kernels.Other.DOUBLE}, ("'mode'", "compile-time Mode")),
    ({"NEGATE": True, "times": 1.0}, ("'times'", "compile-time int")),
    ({"NEGATE": True, "times": True}, ("'times'", "compile-time int")),
    ({"NEGATE": np.zeros(3)}, ("'NEGATE'", "compile-time bool")),
])
def test_wrong_constexprs(kwargs, words):
    message = refused(kernels.modes, np.zeros(3, "f4"), np.zeros(3, "f4"), **kwargs)
    assert all(word in message for word in words), message


def test_keyword_only_constexprs():
    x, y = np.zeros(3, "f4"), np.zeros(3, "f4")
    call(kernels.modes, x, y, True, kernels.Mode.TRIPLE, times=2)
    assert "at most 4" in refused(kernels.modes, x, y, True, kernels.Mode.TRIPLE, 2)
