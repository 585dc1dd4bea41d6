"""Child process of test_accelerators: emits every scalar elementwise operation through one accelerator backend of LLVM.

LLVM ends the process when a backend cannot select an operation; the last line printed says which one.
"""
import itertools
import sys

import llvmlite.binding as llvm

from intent_numba import math
from intent_numba.kir.ops import ELEMENTWISE
from intent_numba.kir.types import BITS, DTYPES, FLOATS, INTEGERS
from intent_numba.targets.llvm import Dialect, Module, Ops, Pointer
from intent_numba.targets.llvm.ops import NATIVE

BACKENDS = {"nvptx": ("nvptx64-nvidia-cuda", "sm_90", "ptx_kernel", 4), "spirv": ("spirv64-unknown-unknown", "", "spir_kernel", 2),
            "amdgpu": ("amdgcn-amd-amdhsa", "gfx942", "amdgpu_kernel", 4)}
GROUPS = {"n": INTEGERS + FLOATS, "f": FLOATS, "i": INTEGERS, "b": ("bool",), "any": DTYPES}


def cases():
    for kind, info in ELEMENTWISE.items():
        for dt in dict.fromkeys(d for part in info.domain.split("|") for d in GROUPS.get(part, (part,))):
            if kind in ("cast", "saturating_cast"):
                yield from ((kind, [dt], out) for out in DTYPES)
            elif kind == "bitcast":
                yield from ((kind, [dt], out) for out in DTYPES if "bool" not in (dt, out) and BITS[dt] == BITS[out])
            else:
                yield kind, ["bool", dt, dt] if kind == "select" else [dt] * info.operands, dt if info.result == "same" else info.result


def kernel(module, name, kind, operands, result, convention):
    fn = module.function(name, "void", [("ptr addrspace(1)", f"p{k}") for k in range(len(operands) + 1)], head=convention)
    o = Ops(fn)
    x = o.elementwise(kind, [o.load(dt, Pointer(f"%p{k}", 1)) for k, dt in enumerate(operands)], result)
    o.store(x, Pointer(f"%p{len(operands)}", 1))
    fn.ret()


def main(backend: str) -> None:
    triple, cpu, convention, space = BACKENDS[backend]
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    for kind, group in itertools.groupby(cases(), key=lambda case: case[0]):
        module = Module(Dialect(backend, memory_none=False, constant_space=space))
        for number, (_, operands, result) in enumerate(group):
            if kind in NATIVE or math.program(kind, operands[0]):
                kernel(module, f"kernel{number}", kind, operands, result, convention)
        print(kind, flush=True)
        machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, opt=1)     # SPIR-V's has state: one per module
        parsed = llvm.parse_assembly(module.text())
        parsed.triple, parsed.data_layout = triple, str(machine.target_data)
        parsed.verify()
        machine.emit_assembly(parsed) if backend == "nvptx" else machine.emit_object(parsed)
    print("complete")


if __name__ == "__main__":
    main(sys.argv[1])
