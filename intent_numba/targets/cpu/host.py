"""The facts of the host CPU that lowering and the mapper look at."""
from __future__ import annotations

import os
from functools import cache

from ..base import TargetModel
from ..llvm.text import Dialect


@cache
def host_model() -> TargetModel:
    """Cache sizes from the system where it tells, the number of usable CPUs, and the width of the vector registers."""
    return TargetModel("cpu", vector_bytes=_vector_bytes(), threads=_threads(),
                       l1_bytes=_cache("SC_LEVEL1_DCACHE_SIZE", 32 << 10),
                       l2_bytes=_cache("SC_LEVEL2_CACHE_SIZE", 512 << 10),
                       l3_bytes=_cache("SC_LEVEL3_CACHE_SIZE", 8 << 20))


def _cache(name: str, default: int) -> int:
    try:
        return max(os.sysconf(name), 0) or default
    except (AttributeError, OSError, ValueError):               # not a POSIX system, or it does not say
        return default


def _threads() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def _vector_bytes() -> int:
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    return 64 if features.get("avx512f") else 32 if features.get("avx2") else 16


@cache
def host_dialect() -> Dialect:
    """What the host's code generator does natively: x86 converts halves in registers from F16C on, AArch64 always does."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    x86 = "sse2" in features
    return Dialect("cpu", half=bool(features.get("f16c")) if x86 else True)
