"""The emitter's scalar text passes the accelerator backends of LLVM: nothing it writes is CPU-only."""
import pathlib
import subprocess
import sys

import pytest


@pytest.mark.parametrize("backend", ["nvptx", "spirv", "amdgpu"])
def test_every_operation_selects(backend):
    script = pathlib.Path(__file__).with_name("accelerators.py")
    done = subprocess.run([sys.executable, script, backend], capture_output=True, text=True)
    assert done.stdout.endswith("complete\n"), f"after {done.stdout.splitlines()[-1:]}: {done.stderr[-500:]}"
