"""What does the author promise that no operation shows? Checks of it, in kernels that are built for a rehearsal.

Each is a ``check`` with error=input; a kernel that is built to be compiled has none of them.
"""
from __future__ import annotations

from ..kir import Extent, Scalar, Tensor, Value
from .build_scaled import Bits
from .emitter import Emitter
from .shapes import retype
from .values import Idx


def owe(e: Emitter, ok: Value, operation: str, message: str) -> None:
    """The caller owes that ``ok`` is True everywhere."""
    e.emit("check", (ok,), (), error="input", operation=operation, message=message)


def inside(e: Emitter, index: Value, extent: Extent, operation: str, message: str) -> None:
    """0 <= index < extent."""
    t = Bits(e, index)
    limit = e.value(Idx(extent))
    if t.tensor:
        limit = e.one("broadcast", (limit,), Tensor("index", t.shape))
    index = t.cast(index, "index")
    owe(e, t.op("and", t.op("ge", index, 0, dt="bool"), t.op("lt", index, limit, dt="bool")), operation, message)


def equal_extents(e: Emitter, a: Extent, b: Extent, operation: str, message: str) -> None:
    if a != b:
        owe(e, e.one("eq", (e.value(Idx(a)), e.value(Idx(b))), Scalar("bool")), operation, message)


def metadata(e: Emitter, kind: str, places, operation: str) -> None:
    """Positions inside of their group; those of two_of_four ascend."""
    if kind == "one_of_two":
        inside(e, places[0], Extent.of(2), operation, "a position of the metadata is not 0 or 1")
        return
    for place in places:
        inside(e, place, Extent.of(4), operation, "a position of the metadata is outside 0 .. 3")
    first, second = places
    second = retype(e, second, first.type.shape)
    owe(e, Bits(e, first).op("lt", first, second, dt="bool"), operation, "the positions of a group do not ascend")


def finite(e: Emitter, x: Value, operation: str, message: str) -> None:
    t = Bits(e, x)
    none = t.op("sub", x, x)                       # NaN for what is not finite
    owe(e, t.op("eq", none, none, dt="bool"), operation, message)
