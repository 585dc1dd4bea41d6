"""NVVM IR to PTX by libNVVM, in a child process. Needs the extra ``[cuda]``, but no driver.

    python nvvm.py sm_90 < text > ptx
"""
from __future__ import annotations

import sys


def translate(text: str, architecture: str) -> bytes:
    try:
        from cuda.core import Program, ProgramOptions
    except ImportError:
        sys.exit('error: cuda.core is not installed: pip install "intent_numba[cuda]"')
    # Every operation rounds once and keeps subnormal numbers; nothing is fused.
    options = ProgramOptions(arch=architecture, ftz=False, prec_div=True, prec_sqrt=True, fma=False)
    try:
        return bytes(Program(text, "nvvm", options).compile("ptx").code).rstrip(b"\0")
    except Exception as error:                               # its log names the line
        sys.exit(f"error: {' '.join(str(error).split())}")


if __name__ == "__main__":
    sys.stdout.buffer.write(translate(sys.stdin.buffer.read().decode(), sys.argv[1]))
