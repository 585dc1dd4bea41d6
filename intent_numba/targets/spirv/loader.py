"""Where is OpenCL? Finds the Intel CPU runtime that PyPI installs, without environment variables or system packages.

The runtime's libraries lie in ``<prefix>/lib``, where no dynamic linker looks; they are opened by full path first. The ICD loader
inside pyopencl reads a directory of ``.icd`` files named by a variable that must be set before it is imported, so a directory
with one line is made for this process.
"""
from __future__ import annotations

import ctypes
import os
import pathlib
import sys
import tempfile
from functools import lru_cache

from ...errors import UnsupportedError

_NEEDED = ("libimf.so", "libirng.so", "libintlc.so.5", "libsvml.so", "libtbb.so.12")
_MISSING = 'the spirv target needs OpenCL: pip install "intent_numba[opencl]"'


@lru_cache(maxsize=1)
def opencl():
    """The pyopencl module with a usable platform. Raises UnsupportedError when there is none."""
    lib = pathlib.Path(sys.prefix) / "lib"
    runtime = lib / "libintelocl.so"
    if runtime.exists():
        for name in _NEEDED:
            if (lib / name).exists():
                ctypes.CDLL(str(lib / name), mode=ctypes.RTLD_GLOBAL)
        if "OCL_ICD_VENDORS" not in os.environ:
            vendors = tempfile.mkdtemp(prefix="intent_numba_icd_")
            (pathlib.Path(vendors) / "intel.icd").write_text(f"{runtime}\n")
            os.environ["OCL_ICD_VENDORS"] = vendors
    try:
        import pyopencl
        if not pyopencl.get_platforms():
            raise UnsupportedError(_MISSING)
    except ImportError:
        raise UnsupportedError(_MISSING) from None
    except pyopencl.Error:
        raise UnsupportedError(_MISSING) from None
    return pyopencl


@lru_cache(maxsize=1)
def queue():
    """(context, in-order queue) of the first device that takes SPIR-V and rounds as the language says."""
    cl = opencl()
    found = []
    for platform in cl.get_platforms():
        for device in platform.get_devices():
            if "SPIR-V" not in getattr(device, "il_version", ""):
                continue
            if rounds_correctly(cl, device):
                context = cl.Context([device])
                return context, cl.CommandQueue(context)
            found.append(device.name)
    if found:
        raise UnsupportedError(f"{found[0]} does not promise correctly rounded division and subnormal numbers")
    raise UnsupportedError("no OpenCL device takes SPIR-V")


def rounds_correctly(cl, device) -> bool:
    """Whether f32 and f64 have subnormals, and f32 division and square root round once. Intel's CPU device does the latter without
    saying so: it uses the processor's own instructions."""
    wanted = cl.device_fp_config.DENORM | cl.device_fp_config.ROUND_TO_NEAREST | cl.device_fp_config.INF_NAN
    single, double = device.single_fp_config, device.double_fp_config
    exact = single & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT or (
        device.type & cl.device_type.CPU and "Intel" in device.platform.vendor)
    return bool(exact) and single & wanted == wanted and double & wanted == wanted
