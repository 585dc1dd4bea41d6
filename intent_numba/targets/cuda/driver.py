"""Is there a CUDA device? Asked of the driver itself: other libraries hang or die where it is missing."""
from __future__ import annotations

import ctypes
from functools import lru_cache

_DRIVERS = ("libcuda.so.1", "nvcuda.dll")


@lru_cache(maxsize=1)
def device_count() -> int:
    """Devices that the driver reports; 0 where there is no driver."""
    for name in _DRIVERS:
        try:
            driver = ctypes.CDLL(name)
        except OSError:
            continue
        count = ctypes.c_int()
        if driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0:
            return count.value
    return 0
