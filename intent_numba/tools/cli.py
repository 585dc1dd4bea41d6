"""The ``intent-numba`` command: which version runs here, and what the disk cache holds."""
from __future__ import annotations

import argparse
import sys


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(prog="intent-numba", description="Intent on Numba")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("version", help="versions and processor")
    cache = commands.add_parser("cache", help="the disk cache of compiled kernels")
    cache.add_argument("action", choices=("info", "clear"), help="show what it holds, or remove it all")
    chosen = parser.parse_args(argv)
    if chosen.command == "version":
        return _version()
    return _cache_info() if chosen.action == "info" else _cache_clear()


def _version() -> int:
    import llvmlite
    import llvmlite.binding as llvm
    import numba
    import numpy
    from .. import __version__
    print(f"intent_numba {__version__}")
    print(f"numba {numba.__version__}, llvmlite {llvmlite.__version__}, numpy {numpy.__version__}, python {sys.version.split()[0]}")
    print(f"cpu {llvm.get_host_cpu_name()}")
    return 0


def _cache_info() -> int:
    from ..runtime import cache
    files = cache.entries()
    print(f"directory: {cache.directory()}" + ("" if cache.enabled() else " (disabled by INTENT_CACHE)"))
    print(f"entries: {len(files)}")
    print(f"bytes: {sum(_size(p) for p in files)}")
    return 0


def _cache_clear() -> int:
    from ..runtime import cache
    print(f"removed {cache.clear()} entries from {cache.directory()}")
    return 0


def _size(path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


if __name__ == "__main__":
    raise SystemExit(main())
