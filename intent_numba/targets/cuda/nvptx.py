"""LLVM text to PTX by LLVM's own backend, in a child process.

    python nvptx.py sm_90 < text > ptx
"""
from __future__ import annotations

import sys


def translate(text: str, architecture: str) -> str:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    triple = "nvptx64-nvidia-cuda"
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=architecture, opt=3)
    # The layout decides what alignment an access has that names none, so it must stand before the text.
    module = llvm.parse_assembly(f'target triple = "{triple}"\ntarget datalayout = "{machine.target_data}"\n{text}')
    module.verify()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    builder.getModulePassManager().run(module, builder)
    return machine.emit_assembly(module)


if __name__ == "__main__":
    sys.stdout.buffer.write(translate(sys.stdin.buffer.read().decode(), sys.argv[1]).encode())
