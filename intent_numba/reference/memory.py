"""Which elements does an index relation name, and how are they read and written?  Views, buffers and domains at run time.

Reads are copies. Writes go through to the caller's array, in program order, whatever its strides and whatever it
overlaps. An index outside its axis raises IndexError: in bounds is the caller's obligation.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..kir.types import BITS
from .formats import FORMATS, decode, encode
from .operations import NUMPY


@dataclass(frozen=True)
class Coordinates:
    """A domain: begin, begin + step, ... (count members)."""
    begin: int
    step: int
    count: int

    @staticmethod
    def of(begin: int, end: int, step: int) -> "Coordinates":
        return Coordinates(begin, step, max(0, -(-(end - begin) // step)) if step > 0 else 0)

    def __iter__(self):
        return iter(range(self.begin, self.begin + self.count * self.step, self.step) if self.count else ())

    def array(self) -> np.ndarray:
        return self.begin + self.step * np.arange(self.count, dtype=np.int64)


class Memory:
    """A view or buffer of ``dt``; ``storage`` holds narrow floats as their bits."""

    def __init__(self, name: str, dt: str, storage: np.ndarray):
        self.name, self.dt, self.storage = name, dt, storage

    @staticmethod
    def view(name: str, dt: str, array) -> "Memory":
        """The caller's array as memory. Raises TypeError when its dtype is not the view's."""
        if not isinstance(array, np.ndarray):
            raise TypeError(f"{name}: a NumPy array expected, got {type(array).__name__}")
        names = {"f16": "float16", "bf16": "bfloat16", "f8e4m3fn": "float8_e4m3fn", "f8e5m2": "float8_e5m2"}
        if array.dtype.name != names.get(dt, np.dtype(NUMPY[dt]).name):
            raise TypeError(f"{name}: an array of {dt} expected, got {array.dtype}")
        return Memory(name, dt, array.view(FORMATS[dt].carrier) if dt in FORMATS else array)

    @staticmethod
    def buffer(name: str, dt: str, shape) -> "Memory":
        """New memory; its contents before the first write are zeros here, and undefined in the language."""
        return Memory(name, dt, np.zeros(shape, f"u{BITS[dt] // 8}" if dt in FORMATS else NUMPY[dt]))

    def load(self, indices, guard=None) -> np.ndarray:
        bits = select(self.storage, indices, guard and (guard[0], self._bits(guard[1])), self.name)
        return decode(bits, self.dt) if self.dt in FORMATS else bits

    def store(self, indices, value: np.ndarray, valid=None) -> None:
        where, shape = resolve(self.storage.shape, indices, valid, self.name)
        if where is None:
            return
        value = self._bits(np.broadcast_to(value, shape))
        self.storage[where] = value if valid is None else value[np.broadcast_to(valid, shape)]

    def _bits(self, value):
        return encode(value, self.dt) if self.dt in FORMATS else value


def select(source: np.ndarray, indices, guard, name: str) -> np.ndarray:
    """A copy of the elements that ``indices`` name. ``guard`` is None or (valid, fill)."""
    if guard is None:
        where, shape = resolve(source.shape, indices, None, name)
        return np.zeros(shape, source.dtype) if where is None else np.array(source[where])
    valid, fill = guard
    where, shape = resolve(source.shape, indices, valid, name)
    out = np.array(np.broadcast_to(fill, shape), source.dtype)
    if where is not None:
        out[np.broadcast_to(valid, shape)] = source[where]
    return out


def resolve(extents, indices, valid, name: str):
    """NumPy indices and the relation's shape. The indices are None when they name no element; with ``valid`` they are flat
    lists of the valid members only. ``indices`` holds an integer, Coordinates or an index array for each axis."""
    shape, begins, joint = layout(indices)
    if 0 in shape:
        return None, shape
    if valid is None and not joint:
        return tuple(_slice(i, e, name, axis) for axis, (i, e) in enumerate(zip(indices, extents))), shape
    parts = [spread(index, begin, len(shape)) for index, begin in zip(indices, begins)]
    if valid is not None:
        valid = np.broadcast_to(valid, shape)
        parts = [np.broadcast_to(p, shape)[valid] for p in parts]
        if not valid.any():
            return None, shape
        if not parts:
            return (), shape
    for axis, (part, extent) in enumerate(zip(parts, extents)):
        _bounds(int(part.min()), int(part.max()), extent, name, axis)
    return tuple(parts), shape


def layout(indices) -> tuple[tuple, list, bool]:
    """The shape of a relation, the axis of it where each index begins, and whether there are index arrays."""
    shape: list[int] = []
    begins, joint = [], None
    for index in indices:
        if isinstance(index, Coordinates):
            begins.append(len(shape))
            shape.append(index.count)
        elif index.ndim == 0:
            begins.append(0)
        else:
            if joint is None:
                joint = len(shape)
                shape.extend(index.shape)
            begins.append(joint)
    return tuple(shape), begins, joint is not None


def spread(index, begin: int, rank: int) -> np.ndarray:
    """The values of an index as an array that broadcasts over a relation of that rank."""
    part = index.array() if isinstance(index, Coordinates) else index
    return part.reshape(part.shape + (1,) * (rank - begin - part.ndim)) if part.ndim else part


def _slice(index, extent: int, name: str, axis: int):
    if isinstance(index, Coordinates):
        last = index.begin + (index.count - 1) * index.step
        _bounds(index.begin, last, extent, name, axis)
        return slice(index.begin, last + 1, index.step)
    _bounds(int(index), int(index), extent, name, axis)
    return int(index)


def _bounds(low: int, high: int, extent: int, name: str, axis: int) -> None:
    if low < 0 or high >= extent:
        raise IndexError(f"{name}: index {low if low < 0 else high} on axis {axis} of extent {extent}")
