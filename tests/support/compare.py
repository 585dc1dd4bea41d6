"""When do two results agree? Bit equality with any NaN equal to any NaN, and closeness in units of the last place."""
from __future__ import annotations

import ml_dtypes
import numpy as np

_BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def is_float(array) -> bool:
    return array.dtype.kind == "f" or array.dtype.kind == "V" or array.dtype.name in ("bfloat16", "float8_e4m3fn", "float8_e5m2")


def bits(array) -> np.ndarray:
    """The bit patterns, all NaNs made one."""
    array = np.ascontiguousarray(array).reshape(array.shape)
    out = array.view(_BITS[array.dtype.itemsize]).copy()
    if is_float(array):
        with np.errstate(all="ignore"):
            out[np.isnan(array.astype(np.float64))] = np.iinfo(out.dtype).max
    return out


def _first(bad, got, want) -> str:
    places = np.argwhere(bad)
    lines = [f"  at {tuple(int(i) for i in p)}: got {got[tuple(p)]!r}, want {want[tuple(p)]!r}" for p in places[:4]]
    return f"{len(places)} of {bad.size} elements differ\n" + "\n".join(lines)


def assert_same_bits(got, want, name="result"):
    """Same dtype, shape and bits; NaN equals NaN whatever its payload."""
    assert got.dtype == want.dtype and got.shape == want.shape, f"{name}: {got.dtype}{got.shape}, want {want.dtype}{want.shape}"
    bad = bits(got) != bits(want)
    assert not bad.any(), f"{name}: {_first(bad, got, want)}"


def assert_close(got, want, ulps=0.0, floor=0.0, name="result"):
    """``|got - want| <= (ulps * |want| + floor) * eps`` of got's dtype, where ``floor`` is the magnitude of the terms that
    were summed; infinities and NaNs in the same places. ``ulps = floor = 0``: equal values (zeros of either sign)."""
    want = np.asarray(want)
    assert got.shape == want.shape, f"{name}: shape {got.shape}, want {want.shape}"
    if not is_float(got):
        bad = got != want
        assert not np.any(bad), f"{name}: {_first(np.asarray(bad), got, want)}"
        return
    with np.errstate(all="ignore"):
        eps = float(ml_dtypes.finfo(got.dtype).eps)
        g, w = got.astype(np.float64), want.astype(np.float64)
        largest = float(ml_dtypes.finfo(got.dtype).max)
        finite = np.isfinite(w) & (np.abs(w) <= largest)
        limit = (ulps * np.abs(w) + floor) * eps + (float(ml_dtypes.finfo(got.dtype).smallest_subnormal) if ulps or floor else 0.0)
        bad = np.where(finite, ~(np.abs(g - w) <= limit), (g != w.astype(got.dtype).astype(np.float64)) & ~(np.isnan(g) & np.isnan(w)))
    assert not np.any(bad), f"{name}: {_first(np.asarray(bad), got, want)}"
