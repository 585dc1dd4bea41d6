"""From arguments to a launch frame: are they what the annotations say, and where do they live?

Nothing is written and no code runs before every check has passed. The frame is the one the generated entry reads:
slot 0 the thread count, then per parameter base address, extents and strides in elements, or a scalar's bits.
"""
from __future__ import annotations

import ctypes
from dataclasses import dataclass, field

import numpy as np

from . import aliasing, arrays, scalars
from .interface import Interface, Parameter, expectation


@dataclass
class Bound:
    """Arguments that passed every check. ``views`` are the arrays as the caller sees them, ``live`` those the code runs on
    (staged copies where the caller's cannot be addressed). ``ordered``: pairs of views that need the program-order variant."""
    frame: ctypes.Array
    views: dict[str, np.ndarray]
    scalars: dict[str, object]
    live: dict[str, np.ndarray]
    ordered: frozenset = frozenset()
    outs: tuple = ()
    staged: list = field(default_factory=list)     # of Staged

    def stage_in(self):
        for s in self.staged:
            s.copy[...] = s.origin if isinstance(s.origin, np.ndarray) else s.origin.get()

    def stage_out(self):
        for s in self.staged:
            if s.written and isinstance(s.origin, np.ndarray):
                s.origin[...] = s.copy
            elif s.written:
                s.origin.set(s.copy)


@dataclass(frozen=True)
class Staged:
    """The code works on ``copy`` in place of ``origin``, an array that it cannot address: misaligned, or on a device."""
    origin: object
    copy: np.ndarray
    written: bool


@dataclass(frozen=True)
class Facts:
    """What binding must know of the compiled program. ``inplace``: pairs that may be the very same memory;
    ``plain_writes``: views that something other than an atomic or a scatter_reduce writes."""
    inplace: frozenset = frozenset()
    plain_writes: frozenset = frozenset()


def bind(interface: Interface, facts: Facts, values: dict, outputs: tuple = (), extents: dict | None = None) -> Bound:
    """Check ``values`` (by parameter name) against the annotations. Outs absent from ``values`` are allocated with zeros;
    ``outputs`` are the Outs that the caller wants back. Raises CallError, and then nothing was written."""
    values, remote = _fetch(interface, values)
    views = {p.name: _view(interface, p, values[p.name]) for p in interface.views if p.name in values}
    numbers = {p.name: (p, _scalar(interface, p, values[p.name])) for p in interface.runtime if p.kind == "scalar"}
    sizes = _extents(interface, views, extents or {})
    for p in interface.outs:
        if p.name not in views:
            views[p.name] = np.zeros(tuple(sizes[e] if isinstance(e, str) else e for e in p.shape), arrays.numpy_dtype(p.dt))
    _constraints(interface, views)
    _self_overlap(interface, facts, views)
    ordered = aliasing.ordered_pairs([(p.name, p.written, views[p.name]) for p in interface.views], facts.inplace)
    ordered |= {frozenset((p.name,)) for p in interface.views if p.written and aliasing.overlaps_itself(views[p.name])}
    live, staged = _stage(interface, views)
    staged += [Staged(origin, views[p.name], p.written) for p, origin in remote]
    frame = _frame(interface, live, {name: bits for name, (_, bits) in numbers.items()})
    kept = {name: values[name] for name in numbers}
    return Bound(frame, views, kept, live, ordered, tuple(outputs or ()), staged)


def _fetch(interface: Interface, values: dict) -> tuple[dict, list]:
    """Host copies in place of device arrays, and (parameter, device array) for each. Copies do not overlap, so device arrays
    of one allocation must not be written."""
    remote = [(p, values[p.name]) for p in interface.views if p.name in values and arrays.is_device_array(values[p.name])]
    for i, (p, a) in enumerate(remote):
        for other, b in remote[i + 1:]:
            if (p.written or other.written) and arrays.same_allocation(a, b):
                raise interface.mismatch(other, f"a device allocation other than that of '{p.name}'", "the same one")
    return ({**values, **{p.name: a.get() for p, a in remote}} if remote else values), remote


def _view(interface: Interface, p: Parameter, obj) -> np.ndarray:
    try:
        array = arrays.as_array(obj)
    except arrays.NotAnArray as e:
        raise interface.mismatch(p, expectation(p), str(e)) from None
    if array.dtype != arrays.numpy_dtype(p.dt) or array.ndim != len(p.shape):
        raise interface.mismatch(p, expectation(p), arrays.describe(array))
    if p.written and not array.flags.writeable:
        raise interface.mismatch(p, expectation(p), "a read-only array")
    return array


def _scalar(interface: Interface, p: Parameter, value) -> int:
    try:
        return scalars.encode(p.dt, value)
    except scalars.Refused as e:
        raise interface.mismatch(p, expectation(p), str(e)) from None


def _extents(interface: Interface, views: dict, given: dict) -> dict[str, int]:
    """Every shape name's value, from the arrays first and then from ``given``."""
    sizes: dict[str, int] = {}
    origin: dict[str, str] = {}
    for p in interface.views:
        if p.name not in views:
            continue
        for axis, (extent, actual) in enumerate(zip(p.shape, views[p.name].shape)):
            if isinstance(extent, str):
                expected = sizes.setdefault(extent, actual)
                where = origin.setdefault(extent, f"{extent} of '{p.name}' axis {axis}")
                wanted = f"extent {expected} on axis {axis} ({where})"
            else:
                expected, wanted = extent, f"extent {extent} on axis {axis}"
            if actual != expected:
                raise interface.mismatch(p, wanted, f"{actual} (shape {views[p.name].shape})")
    _given_extents(interface, given, sizes, origin)
    for p in interface.outs:
        for extent in p.shape:
            if p.name not in views and isinstance(extent, str) and extent not in sizes:
                raise interface.mismatch(p, f"extents={{'{extent}': ...}}, since no argument has the extent {extent}", "nothing")
    return sizes


def _given_extents(interface: Interface, given: dict, sizes: dict, origin: dict) -> None:
    if not isinstance(given, dict):
        raise interface.error(f"extents: expected a dict such as {{'N': 8}}, got {given!r}")
    for name, value in given.items():
        if name not in interface.symbols:
            raise interface.error(f"extents: no shape name '{name}'; the names are {', '.join(interface.symbols) or 'none'}")
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < 0:
            raise interface.error(f"extents: expected a non-negative integer for '{name}', got {value!r}")
        if sizes.setdefault(name, int(value)) != value:
            raise interface.error(f"extents: expected {sizes[name]} for '{name}' ({origin[name]}), got {value}")


def _constraints(interface: Interface, views: dict) -> None:
    strides: dict[str, tuple[int, str]] = {}
    groups: dict[str, tuple[Parameter, object]] = {}
    for p in interface.views:
        c, array = p.constraints, views[p.name]
        if c.strides is not None:
            _strides(interface, p, array, strides)
        if c.alias is not None:
            first, base = groups.setdefault(c.alias, (p, aliasing.owner(array)))
            if aliasing.owner(array) is not base:
                raise interface.mismatch(p, f"a view of the allocation of '{first.name}' (alias group '{c.alias}')", "another allocation")
        if c.noalias:
            for other in interface.views:
                if other is not p and aliasing.ranges_meet(array, views[other.name]):
                    raise interface.mismatch(p, "memory of its own (noalias)", f"memory that overlaps '{other.name}'")


def _strides(interface: Interface, p: Parameter, array: np.ndarray, known: dict) -> None:
    for axis, wanted in enumerate(p.constraints.strides):
        if wanted is None or array.shape[axis] <= 1 or array.size == 0:
            continue                                          # such a stride moves nothing
        if array.strides[axis] % array.itemsize:
            raise interface.mismatch(p, f"a stride of whole elements on axis {axis}", f"{array.strides[axis]} bytes")
        actual = array.strides[axis] // array.itemsize
        source = ""
        if isinstance(wanted, str):
            wanted, source = known.setdefault(wanted, (actual, f" ({wanted} of '{p.name}')"))
        if actual != wanted:
            raise interface.mismatch(p, f"stride {wanted} on axis {axis}{source}", f"{actual} elements")


def _self_overlap(interface: Interface, facts: Facts, views: dict) -> None:
    for p in interface.views:
        if p.name in facts.plain_writes and aliasing.overlaps_itself(views[p.name]):
            raise interface.mismatch(p, "a writable array whose elements are distinct memory",
                                     f"one that overlaps itself (strides {views[p.name].strides})")


def _stage(interface: Interface, views: dict) -> tuple[dict, list]:
    """Copies of arrays whose elements lie at odd addresses. A copy is no longer the memory that other views see, so such
    an array must not share memory with a written one."""
    live, staged = dict(views), []
    for p in interface.views:
        array = views[p.name]
        if arrays.is_addressable(array):
            continue
        for other in interface.views:
            if other is not p and (p.written or other.written) and aliasing.overlap(array, views[other.name]):
                raise interface.mismatch(p, f"aligned elements, since it overlaps '{other.name}'", "misaligned elements")
        live[p.name] = np.empty(array.shape, array.dtype)
        staged.append(Staged(array, live[p.name], p.written))
    return live, staged


def _frame(interface: Interface, live: dict, bits: dict) -> ctypes.Array:
    slots = [1]
    for p in interface.runtime:
        if p.kind == "scalar":
            slots.append(bits[p.name])
        else:
            array = live[p.name]
            slots.append(arrays.address(array))
            slots.extend(array.shape)
            slots.extend(arrays.element_strides(array))
    return (ctypes.c_int64 * len(slots))(*slots)
