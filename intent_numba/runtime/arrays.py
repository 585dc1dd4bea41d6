"""Which NumPy array does a caller's object stand for, without copying its elements?

Accepted: NumPy arrays, anything with a buffer, ``__array_interface__`` or CPU DLPack, and torch CPU tensors (their bf16 and
f8 too). Lists, numbers and device arrays are refused: a view of a temporary copy would lose what the kernel writes.
"""
from __future__ import annotations

import ctypes
import sys
from functools import cache

import numpy as np

_PLAIN = {"bool": np.bool_, "index": np.int64, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
          "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
          "f16": np.float16, "f32": np.float32, "f64": np.float64}
_EXTENSION = {"bf16": "bfloat16", "f8e4m3fn": "float8_e4m3fn", "f8e5m2": "float8_e5m2"}
_TORCH = {"torch.bfloat16": ("int16", "bf16"), "torch.float8_e4m3fn": ("uint8", "f8e4m3fn"), "torch.float8_e5m2": ("uint8", "f8e5m2")}
_CPU_DEVICES = (1, 3, 11, 13)          # DLPack: CPU, CUDA host, ROCm host, CUDA managed


class NotAnArray(Exception):
    """The object cannot be a view; the message says what came."""


@cache
def numpy_dtype(dt: str) -> np.dtype:
    """The NumPy dtype that carries an Intent dtype; ``ml_dtypes`` is imported for bf16 and f8 only."""
    if dt in _PLAIN:
        return np.dtype(_PLAIN[dt])
    import ml_dtypes
    return np.dtype(getattr(ml_dtypes, _EXTENSION[dt]))


def as_array(obj) -> np.ndarray:
    """A base-class ndarray over the memory of ``obj``. Raises NotAnArray."""
    if type(obj) is np.ndarray:
        return obj
    if isinstance(obj, np.ma.MaskedArray):
        raise NotAnArray("a masked array, whose mask would be lost")
    if isinstance(obj, np.ndarray):
        return obj.view(np.ndarray)
    if isinstance(obj, (np.generic, int, float, complex, str, list, tuple)):
        raise NotAnArray(describe(obj))
    if _is_torch(obj):
        return _from_torch(obj)
    if hasattr(obj, "__cuda_array_interface__"):
        raise NotAnArray(f"a device array of type {type(obj).__name__}")
    if hasattr(obj, "__array_interface__"):
        return np.asarray(obj)
    if hasattr(obj, "__dlpack__"):
        return _from_dlpack(obj)
    try:
        return np.asarray(memoryview(obj))
    except TypeError:
        raise NotAnArray(describe(obj)) from None


def is_device_array(obj) -> bool:
    """A ``pyopencl.array.Array``: its elements are copied in and out around a launch."""
    module = sys.modules.get("pyopencl.array")
    return module is not None and isinstance(obj, module.Array)


def same_allocation(a, b) -> bool:
    """Whether two device arrays look into one allocation."""
    return a.base_data.int_ptr == b.base_data.int_ptr


def describe(obj) -> str:
    """What came, for an error message: dtype and shape of an array, value and type of anything else."""
    if isinstance(obj, np.ndarray):
        order = "" if obj.dtype.isnative else "byte-swapped "
        return f"an array of {order}{obj.dtype} with shape {obj.shape}"
    text = repr(obj)
    return f"{text if len(text) <= 60 else text[:57] + '...'} of type {type(obj).__name__}"


def _is_torch(obj) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(obj, getattr(torch, "Tensor", ()))


def _from_torch(tensor) -> np.ndarray:
    if tensor.device.type != "cpu":
        raise NotAnArray(f"a torch tensor on {tensor.device}")
    tensor = tensor.detach()
    carrier = _TORCH.get(str(tensor.dtype))
    if carrier is None:
        return tensor.numpy()
    bits, dt = carrier
    return tensor.view(getattr(sys.modules["torch"], bits)).numpy().view(numpy_dtype(dt))


def _from_dlpack(obj) -> np.ndarray:
    device = obj.__dlpack_device__()
    if int(device[0]) not in _CPU_DEVICES:
        raise NotAnArray(f"a device array of type {type(obj).__name__}")
    try:
        array = np.from_dlpack(obj)
    except (BufferError, RuntimeError, TypeError) as e:
        raise NotAnArray(f"{type(obj).__name__}, whose DLPack export NumPy refuses ({e})") from None
    return array if array.flags.writeable or _says_readonly(obj) else _writable(array)


def _says_readonly(obj) -> bool:
    """Only the versioned protocol can say that memory is read-only; NumPy takes the older one for read-only always."""
    try:
        capsule = obj.__dlpack__(max_version=(1, 0))
    except TypeError:
        return False
    return "dltensor_versioned" in repr(capsule)


def _writable(array: np.ndarray) -> np.ndarray:
    lo, hi = byte_range(array)
    memory = (ctypes.c_char * (hi - lo)).from_address(lo)
    memory.owner = array
    return np.ndarray(array.shape, array.dtype, memory, address(array) - lo, array.strides)


if sys.implementation.name == "cpython":
    def address(array: np.ndarray) -> int:
        """Where element [0, 0, ...] lies: the first field after the object's head. Ten times quicker than asking the array,
        and a call asks often."""
        return ctypes.c_void_p.from_address(id(array) + object.__basicsize__).value or 0
else:
    def address(array: np.ndarray) -> int:
        """Where element [0, 0, ...] lies."""
        return array.__array_interface__["data"][0]


def byte_range(array: np.ndarray) -> tuple[int, int]:
    """First byte and one past the last byte that the elements occupy; equal when there are none."""
    lo = hi = address(array)
    for extent, stride in zip(array.shape, array.strides):
        if extent == 0:
            return lo, lo
        if stride < 0:
            lo += (extent - 1) * stride
        else:
            hi += (extent - 1) * stride
    return lo, hi + array.itemsize


def is_addressable(array: np.ndarray) -> bool:
    """Generated code counts strides in elements and loads at natural alignment; other arrays are staged."""
    size = array.itemsize
    if address(array) % size:
        return False
    return all(extent <= 1 or stride % size == 0 for extent, stride in zip(array.shape, array.strides))


def element_strides(array: np.ndarray) -> tuple[int, ...]:
    """Strides in elements; 0 along an axis with at most one member, where NumPy may keep any number."""
    return tuple(stride // array.itemsize if extent > 1 else 0 for extent, stride in zip(array.shape, array.strides))
