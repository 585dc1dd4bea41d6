"""LLVM text to SPIR-V, in a child process: the backend ends the process on what it cannot select.

    python translate.py object|assembly < text > result
"""
from __future__ import annotations

import sys


def translate(text: str, form: str) -> bytes:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = llvm.parse_assembly(text)
    module.verify()
    # Above level 0 strength reduction makes pointers walk, and the backend gives them the wrong element type.
    machine = llvm.Target.from_triple("spirv64-unknown-unknown").create_target_machine(opt=0)
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2)))
    return machine.emit_object(module) if form == "object" else machine.emit_assembly(module).encode()


if __name__ == "__main__":
    sys.stdout.buffer.write(translate(sys.stdin.buffer.read().decode(), sys.argv[1]))
