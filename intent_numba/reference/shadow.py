"""What happened to an element of memory so far: was it written, and by which points of the parallel loops that run?

A rehearsal works on copies. Views that overlap are copied together, so that they overlap in the copy too, and share what is known
of each element. Points are numbered in the order in which they run; the numbers of one parallel begin at its ``base``, so that
what an earlier parallel left needs no clearing.
"""
from __future__ import annotations

import ctypes
from dataclasses import dataclass, field

import numpy as np

CONFLICTS = {"read": ("write", "update"), "write": ("write", "read", "update", "load"), "load": ("write",), "update": ("write", "read")}
"""Accesses of other points that an access must not meet: read and write are plain, load and update atomic (or combining)."""


class Block:
    """A stretch of memory in units of the smallest element that some view has there. ``touched`` maps (depth of the parallel, kind
    of access) to the last point that did so, and the last before it that was another one. ``constant``: all of it is only read."""

    def __init__(self, units: int, constant: bool = False):
        self.constant = constant
        self.written = np.zeros(units, np.bool_)
        self.touched: dict = {}

    def points(self, depth: int, kind: str, make: bool):
        key = depth, kind
        if key not in self.touched and make:
            self.touched[key] = tuple(np.zeros(len(self.written), np.int32) for _ in range(2))
        return self.touched.get(key)


@dataclass
class Shadow:
    """What is known of one memory's elements. ``depth``: parallels around its creation, whose points cannot share it. ``size``: units of
    an element, a last axis of the arrays where there are several."""
    block: Block
    shape: tuple
    offset: int
    strides: tuple
    depth: int = 0
    size: int = 1
    _views: dict = field(default_factory=dict)

    @staticmethod
    def fresh(shape, depth: int) -> "Shadow":
        """Of a new buffer, in row-major order."""
        strides, step = [], 1
        for extent in reversed(shape):
            strides.append(step)
            step *= extent
        return Shadow(Block(max(1, step)), tuple(shape), 0, tuple(reversed(strides)), depth)

    @property
    def written(self) -> np.ndarray:
        return self._view("written", lambda: self.block.written)

    def points(self, depth: int, kind: str, make: bool = False):
        """The two arrays of point numbers, or None while there are none."""
        both = self.block.points(depth, kind, make)
        return both and tuple(self._view((depth, kind, i), lambda a=a: a) for i, a in enumerate(both))

    def _view(self, key, source) -> np.ndarray:
        if key not in self._views:
            a = source()
            shape, strides = (self.shape, self.strides) if self.size == 1 else ((*self.shape, self.size), (*self.strides, 1))
            if 0 in shape:
                self._views[key] = np.zeros(shape, a.dtype)
            else:
                self._views[key] = np.ndarray(shape, a.dtype, a, self.offset * a.itemsize, tuple(s * a.itemsize for s in strides))
        return self._views[key]


def copies(views) -> list[tuple[np.ndarray, Shadow]]:
    """A private copy and a shadow for each (array, access). Elements of arrays that are not Outs count as written."""
    out: list = [None] * len(views)
    for low, high, members in _stretches([a for a, _ in views]):
        data = bytearray(ctypes.string_at(low, high - low))
        unit = _unit([views[i][0] for i in members], low)
        block = Block(-(-(high - low) // unit), all(views[i][1] == "in" for i in members))
        for i in members:
            array, access = views[i]
            offset = _address(array) - low
            shadow = Shadow(block, array.shape, offset // unit, tuple(s // unit for s in array.strides), size=array.itemsize // unit)
            if access != "out":
                shadow.written[...] = True
            out[i] = np.ndarray(array.shape, array.dtype, data, offset, array.strides), shadow
    for i, (array, _) in enumerate(views):
        if out[i] is None:
            out[i] = array.copy(), Shadow.fresh(array.shape, 0)
    return out


def _address(a: np.ndarray) -> int:
    return a.__array_interface__["data"][0]


def _stretches(arrays) -> list:
    """(low, high, positions of the arrays inside) of the address ranges that do not meet."""
    ranges = []
    for i, a in enumerate(arrays):
        if a.size:
            reach = [s * (n - 1) for s, n in zip(a.strides, a.shape)]
            low = _address(a) + sum(min(0, r) for r in reach)
            ranges.append((low, _address(a) + sum(max(0, r) for r in reach) + a.itemsize, i))
    merged: list = []
    for low, high, i in sorted(ranges):
        if merged and low < merged[-1][1]:
            merged[-1][1] = max(high, merged[-1][1])
            merged[-1][2].append(i)
        else:
            merged.append([low, high, [i]])
    return merged


def _unit(arrays, low: int) -> int:
    size = min(a.itemsize for a in arrays)
    fits = all((_address(a) - low) % size == 0 and all(s % size == 0 for s in a.strides) for a in arrays)
    return size if fits else 1
