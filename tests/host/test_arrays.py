"""Which objects stand for arrays, and whose memory they name."""
from __future__ import annotations

import array
import sys
import types

import ml_dtypes
import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from intent_numba.runtime import aliasing
from intent_numba.runtime.arrays import NotAnArray, address, as_array, byte_range, element_strides, is_addressable, numpy_dtype


class Interface:
    def __init__(self, a):
        self.owner, self.__array_interface__ = a, a.__array_interface__


class DLPack:
    """An exporter of the protocol's first version, as older libraries are."""

    def __init__(self, a):
        self.owner = a

    def __dlpack__(self, stream=None):
        return self.owner.__dlpack__()

    def __dlpack_device__(self):
        return (1, 0)


class OnDevice(DLPack):
    def __dlpack_device__(self):
        return (2, 0)


class Cuda:
    __cuda_array_interface__ = {"shape": (3,), "typestr": "<f4", "data": (1, False), "version": 3}


@pytest.mark.parametrize("wrap", [lambda a: a, Interface, DLPack, memoryview, lambda a: a.view(np.matrix)])
def test_memory_is_shared(wrap):
    a = np.arange(6, dtype="f4").reshape(2, 3)
    seen = as_array(wrap(a))
    assert type(seen) is np.ndarray and seen.dtype == np.float32 and seen.shape == (2, 3)
    seen[1, 2] = 9
    assert a[1, 2] == 9


def test_buffers():
    values = array.array("d", [1, 2, 3])
    as_array(values)[0] = 7
    assert values[0] == 7
    assert as_array(bytearray(b"abc")).flags.writeable
    assert not as_array(b"abc").flags.writeable


def test_dlpack_with_strides_stays_writable():
    a = np.arange(12, dtype="i4").reshape(3, 4)
    seen = as_array(DLPack(a[:, 1::2]))
    assert seen.flags.writeable and seen.tolist() == a[:, 1::2].tolist()
    seen[0, 0] = -1
    assert a[0, 1] == -1


def test_read_only_stays_read_only():
    a = np.zeros(3)
    a.flags.writeable = False
    assert not as_array(a).flags.writeable
    assert not as_array(memoryview(bytes(8))).flags.writeable


@pytest.mark.parametrize("obj", [[1.0], (1.0,), 3, 2.5, "text", None, np.float32(1), object(), Cuda(), OnDevice(np.zeros(3)), 1j,
                                 np.ma.zeros(3)])
def test_what_is_no_array(obj):
    with pytest.raises(NotAnArray):
        as_array(obj)


def test_dtypes_of_carriers():
    assert numpy_dtype("index") == np.int64 and numpy_dtype("bool") == np.bool_
    assert numpy_dtype("bf16") == ml_dtypes.bfloat16 and numpy_dtype("f8e4m3fn") == ml_dtypes.float8_e4m3fn


def test_byte_ranges():
    a = np.zeros((4, 6), "f4")
    start = address(a)
    assert start == a.ctypes.data == a.__array_interface__["data"][0] and address(a[1:, 2:]) == a[1:, 2:].ctypes.data
    assert byte_range(a) == (start, start + 96)
    assert byte_range(a[::-1, ::-1]) == (start, start + 96)
    assert byte_range(a[1:3, 2:3]) == (start + 32, start + 60)
    assert byte_range(a[:0]) == (start, start)
    assert element_strides(a.T) == (1, 6) and element_strides(a[:1, ::-1]) == (0, -1)


def test_addressable():
    raw = np.zeros(41, "u1")
    assert not is_addressable(raw[1:].view("f4"))
    assert is_addressable(raw[:40].view("f4"))
    packed = np.zeros(3, np.dtype([("tag", "u1"), ("x", "<f4")]))
    assert not is_addressable(packed["x"])


@pytest.mark.parametrize("slices, expected", [
    ((np.s_[:, 0::2], np.s_[:, 1::2]), False),
    ((np.s_[:4], np.s_[4:]), False),
    ((np.s_[:5], np.s_[4:]), True),
    ((np.s_[::-1], np.s_[:]), True),
    ((np.s_[0:0], np.s_[:]), False),
    ((np.s_[::2, ::3], np.s_[1::2, ::3]), False),
])
def test_overlap_of_pairs(slices, expected):
    a = np.zeros((8, 12), "f8")
    x, y = a[slices[0]], a[slices[1]]
    assert aliasing.overlap(x, y) is expected
    pairs = aliasing.ordered_pairs([("x", False, x), ("y", True, y)], frozenset())
    assert pairs == (frozenset({frozenset("xy")}) if expected else frozenset())


def test_in_place_pairs_need_the_very_same_elements():
    a = np.zeros((4, 4), "f4")
    inplace = frozenset({frozenset("xy")})
    order = lambda x, y: aliasing.ordered_pairs([("x", False, x), ("y", True, y)], inplace)
    assert not order(a, a) and not order(a[::2], a[::2])
    for x, y in [(a, a.T), (a[:-1], a[1:]), (a, a[::-1]), (a, a.view("i4"))]:
        assert order(x, y)


def test_readers_may_share():
    a = np.zeros(4)
    assert not aliasing.ordered_pairs([("x", False, a), ("z", False, a)], frozenset())


@pytest.mark.parametrize("shape, strides, expected", [
    ((3, 4), (16, 4), False),
    ((3, 4), (-16, 4), False),
    ((3, 4), (0, 4), True),
    ((1, 4), (0, 4), False),
    ((3, 4), (8, 4), True),
    ((2, 2), (12, 8), False),            # offsets 0 8 12 20: not nested, yet distinct
    ((4, 4), (12, 8), True),             # 2 * 12 == 3 * 8
    ((2, 2, 2), (12, 8, 4), True),
    ((2, 2, 2), (4, 8, 16), False),
    ((0, 4), (0, 4), False),
    ((3,), (2,), True),
    ((), (), False),
])
def test_self_overlap(shape, strides, expected):
    base = np.zeros(64, "f4")
    view = as_strided(base[40:], shape, strides)
    assert aliasing.overlaps_itself(view) is expected


def test_owner():
    a = np.zeros(10)
    assert aliasing.owner(a[2:][::2]) is a
    raw = bytearray(80)
    assert aliasing.owner(np.frombuffer(raw)[1:]) is aliasing.owner(np.frombuffer(memoryview(raw))) is raw


class Tensor:
    """What as_array asks of a torch tensor."""

    def __init__(self, a, dtype, device="cpu"):
        self.a, self.dtype = a, dtype
        self.device = type("Device", (), {"type": device, "__str__": lambda self: device})()

    def detach(self):
        return self

    def numpy(self):
        assert self.dtype != "torch.bfloat16", "NumPy has no such dtype"
        return self.a

    def view(self, dtype):
        return Tensor(self.a.view(dtype), str(dtype))


def test_torch_tensors_share_their_memory(monkeypatch):
    torch = types.ModuleType("torch")
    torch.Tensor, torch.int16, torch.uint8 = Tensor, "i2", "u1"
    monkeypatch.setitem(sys.modules, "torch", torch)
    a = np.zeros(4, "f4")
    as_array(Tensor(a, "torch.float32"))[0] = 1
    assert a[0] == 1
    raw = np.zeros(4, "u2")
    seen = as_array(Tensor(raw, "torch.bfloat16"))
    seen[1] = 1.0
    assert seen.dtype == ml_dtypes.bfloat16 and raw[1] == 0x3F80
    with pytest.raises(NotAnArray, match="cuda"):
        as_array(Tensor(a, "torch.float32", "cuda:0"))
