"""How does a Python or NumPy number become the bits of a runtime scalar, and which numbers are refused?

An integer must be held exactly, whatever the dtype. A float is rounded once, to nearest even, and must not overflow.
"""
from __future__ import annotations

import math
import struct

import numpy as np

from ..kir.types import BITS, int_range, is_float, is_int

_FORMATS = {                     # precision in bits, exponent of the smallest subnormal, largest finite value
    "f16": (11, -24, 65504.0),
    "bf16": (8, -133, 3.3895313892515355e38),
    "f32": (24, -149, 3.4028234663852886e38),
    "f8e4m3fn": (4, -9, 448.0),
    "f8e5m2": (3, -16, 57344.0),
}


class Refused(Exception):
    """The number does not fit; the message says what came."""


def encode(dt: str, value) -> int:
    """The bits of ``value`` as dtype ``dt``, sign-extended for signed integers, zero-extended otherwise. Raises Refused."""
    return _bits(dt, convert(dt, value))


def convert(dt: str, value):
    """The Python bool, int or float that the kernel will see. Raises Refused."""
    if dt == "bool":
        if isinstance(value, (bool, np.bool_)):
            return bool(value)
        raise Refused(_came(value))
    if isinstance(value, (bool, np.bool_)):
        raise Refused(_came(value))
    if is_int(dt):
        return _integer(dt, value)
    return _float(dt, value)


def _integer(dt: str, value) -> int:
    if not isinstance(value, (int, np.integer)):
        raise Refused(_came(value))
    lo, hi = int_range(dt)
    number = int(value)
    if not lo <= number <= hi:
        raise Refused(f"{number}, outside {lo} .. {hi}")
    return number


def _float(dt: str, value) -> float:
    if isinstance(value, (int, np.integer)):
        return _exact_integer(dt, int(value))
    if not isinstance(value, (float, np.floating)) and not _is_small_float(value):
        raise Refused(_came(value))
    number = float(value)
    rounded = round_to(dt, number)
    if math.isinf(rounded) and (dt == "f8e4m3fn" or not math.isinf(number)):
        raise Refused(f"{number!r}, outside the range of {dt}")
    return rounded


def _exact_integer(dt: str, number: int) -> float:
    try:
        held = round_to(dt, float(number))
    except OverflowError:
        held = math.inf
    if math.isinf(held) or int(held) != number:
        raise Refused(f"{number}, which {dt} cannot hold exactly")
    return held


def round_to(dt: str, number: float) -> float:
    """``number`` rounded once to the nearest value of ``dt``, ties to even; infinite beyond the largest finite value."""
    if dt == "f64" or number == 0 or not math.isfinite(number):
        return number
    precision, smallest, largest = _FORMATS[dt]
    if abs(number) >= 2 * largest:
        return math.copysign(math.inf, number)
    quantum = max(math.frexp(number)[1] - precision, smallest)
    rounded = math.ldexp(round(math.ldexp(number, -quantum)), quantum)
    if abs(rounded) > largest:
        return math.copysign(math.inf, number)
    return math.copysign(rounded, number)


def _bits(dt: str, value) -> int:
    match dt:
        case "f64":
            return struct.unpack("<q", struct.pack("<d", value))[0]
        case "f32":
            return struct.unpack("<I", struct.pack("<f", value))[0]
        case _ if is_float(dt):
            from .arrays import numpy_dtype
            return int(np.array(value, numpy_dtype(dt)).view(f"u{BITS[dt] // 8}"))
        case _:
            bits = int(value)
            return bits - (1 << 64) if bits >= 1 << 63 else bits


def numpy_scalar(dt: str, value):
    """``value`` as a NumPy scalar of the dtype: what the reference interpreter takes."""
    from .arrays import numpy_dtype
    return numpy_dtype(dt).type(convert(dt, value))


def _is_small_float(value) -> bool:
    return isinstance(value, np.generic) and type(value).__module__.startswith("ml_dtypes")


def _came(value) -> str:
    return f"{value!r} of type {type(value).__name__}"
