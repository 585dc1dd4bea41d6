"""Which memory does a test hand to a kernel? Dtypes, memory layouts, and guard zones around every array.

Every array lives inside a larger block filled with a poison pattern. After the call the bytes of the block that
belong to no element must be unchanged: an access outside the array, or into the gaps of a strided one, is caught.
"""
from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np

GUARD = 64
"""Poisoned elements before and after an array: more than any vector the compiler uses."""

NUMPY = {"bool": np.bool_, "index": np.int64, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
         "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "f16": np.float16,
         "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
         "f8e4m3fn": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2}

LAYOUTS = ("contiguous", "strided", "reversed", "transposed", "offset")


def numpy_dtype(dtype) -> np.dtype:
    """The NumPy dtype of an Intent dtype or of its token."""
    return np.dtype(NUMPY[getattr(dtype, "name", dtype)])


@dataclass(frozen=True)
class Out:
    """The place of an output in a list of arguments: ``check`` allocates it, poisoned."""
    shape: tuple
    dtype: object


def out(shape, dtype) -> Out:
    """An output of this shape; ``dtype`` is a NumPy dtype, an Intent dtype or its token."""
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    name = getattr(dtype, "name", dtype)
    return Out(shape, numpy_dtype(name) if isinstance(name, str) and name in NUMPY else np.dtype(dtype))


def poison(shape, dtype) -> np.ndarray:
    """A block whose contents no test produces by accident."""
    dtype = np.dtype(dtype)
    if dtype == np.bool_:
        return np.ones(shape, np.bool_)
    block = np.empty(shape, dtype)
    block.reshape(-1).view(np.uint8)[...] = 0xA5
    return block


@dataclass
class Placed:
    """An array inside its poisoned block."""
    array: np.ndarray
    block: np.ndarray
    inside: np.ndarray
    before: np.ndarray

    def check_guards(self, name: str):
        """Raises AssertionError when a byte outside the array changed."""
        size = self.block.dtype.itemsize
        now = self.block.view(np.uint8).reshape(-1, size)
        outside = ~self.inside
        changed = (now != self.before).any(axis=1) & outside
        if changed.any():
            where = np.flatnonzero(changed)[:8].tolist()
            raise AssertionError(f"{name}: {int(changed.sum())} elements outside the array were written, at block positions {where} "
                                 f"(the array starts at {GUARD})")


def place(source: np.ndarray, layout: str) -> Placed:
    """A copy of ``source`` in the given memory layout, guarded on both sides."""
    shape = source.shape
    if layout == "strided":
        backing = tuple(2 * n + 1 for n in shape)
    elif layout == "transposed":
        backing = shape[::-1]
    else:
        backing = shape
    front = GUARD + (1 if layout == "offset" else 0)
    count = int(np.prod(backing, dtype=np.int64))
    block = poison(front + count + GUARD, source.dtype)
    marks = np.zeros(block.shape, np.bool_)

    def carve(flat):
        inner = flat[front:front + count].reshape(backing)
        if layout == "strided":
            return inner[(..., *(slice(1, 2 * n + 1, 2) for n in shape))]
        if layout == "reversed":
            return inner[(..., *(slice(None, None, -1) for _ in shape))]
        if layout == "transposed":
            return inner.T
        return inner

    array = carve(block)
    array[...] = source
    carve(marks)[...] = True
    return Placed(array, block, marks, block.view(np.uint8).reshape(-1, block.dtype.itemsize).copy())


def normal(rng, shape, dtype="f32", scale=1.0) -> np.ndarray:
    """Normally distributed values rounded to ``dtype``."""
    return (rng.standard_normal(shape) * scale).astype(numpy_dtype(dtype))


def integers(rng, shape, dtype="i32", low=None, high=None) -> np.ndarray:
    """Uniform integers in ``low <= x < high``; by default the whole range of the dtype."""
    dt = numpy_dtype(dtype)
    info = np.iinfo(dt)
    return rng.integers(info.min if low is None else low, info.max if high is None else high - 1, shape, dtype=dt, endpoint=True)


def special_floats(dtype="f32") -> np.ndarray:
    """Zeros of both signs, subnormals, extremes, infinities and NaN of a float dtype."""
    dt = numpy_dtype(dtype)
    info = ml_dtypes.finfo(dt)
    values = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, float(info.max), float(info.min), float(info.tiny), -float(info.tiny),
              float(info.smallest_subnormal), -float(info.smallest_subnormal), np.inf, -np.inf, np.nan, 3.0, 7.0]
    with np.errstate(all="ignore"):
        return np.array(values).astype(dt)
