"""Code generators in a child process: LLVM's backends end the process on what they cannot select, and no one can catch that."""
from __future__ import annotations

import os
import subprocess
import sys
from importlib import resources

from ..errors import UnsupportedError


def run(package: str, script: str, arguments, text: str, generator: str) -> bytes:
    """What a script of a package writes for a text that it reads. Raises UnsupportedError, naming the generator, when the script fails."""
    source = resources.files(package).joinpath(script).read_text(encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    ran = subprocess.run([sys.executable, "-c", source, *arguments], input=text.encode(), capture_output=True, env=environment)
    if ran.returncode:
        if os.environ.get("INTENT_DEBUG") == "1":
            sys.stderr.write(text + ran.stderr.decode(errors="replace"))
        raise UnsupportedError(f"{generator} cannot translate this kernel: {_reason(ran.stderr.decode(errors='replace'))}")
    return ran.stdout


def _reason(message: str) -> str:
    """The line that says what happened, of a stack dump or a traceback."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    told = [line for line in lines if "error" in line.lower() or "cannot" in line.lower() or "assert" in line.lower()]
    return (told or lines or ["it ended without a message"])[0][:300]
