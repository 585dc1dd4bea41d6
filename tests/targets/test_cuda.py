"""PTX of kernels without a device: it assembles, stays the same, keeps shapes symbolic, and rounds as written."""
from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import intent_numba as intent
import intent_numba.language as I
from intent_numba import math
from intent_numba.errors import UnsupportedError
from intent_numba.targets.cuda import variant
from intent_numba.targets.cuda.codegen import translated
from intent_numba.targets.cuda.device import dialect
from intent_numba.targets.cuda.driver import device_count
from intent_numba.targets.llvm import Module
from intent_numba.targets.llvm.ops import NATIVE
from tests.programs.test_algorithms import bitonic_sort
from tests.programs.test_control import jacobi, mandelbrot

from . import accelerators
from . import test_spirv as same

ARCHITECTURES = ["sm_75", "sm_90"]


@intent.kernel
def relu_f16(x: I.In[I.f16, ("N",)], y: I.Out[I.f16, ("N",)]):
    y[:] = I.maximum(x[:], 0.0)


@intent.kernel
def linear_f16(a: I.In[I.f16, ("M", "K")], b: I.In[I.f16, ("K", "N")], bias: I.In[I.f16, ("N",)], y: I.Out[I.f16, ("M", "N")]):
    y[:, :] = I.cast(I.matmul(a[:, :], b[:, :], acc_dtype=I.f32) + I.cast(bias[:], I.f32), I.f16)


@intent.kernel
def functions(x: I.In[I.f64, ("N",)], y: I.In[I.i64, ("N",)], a: I.Out[I.f64, ("N",)], b: I.Out[I.i64, ("N",)]):
    a[:] = I.tanh(x[:]) + I.erf(x[:]) * I.log(x[:])
    b[:] = y[:] // 7 + y[:] % 5


@intent.kernel
def histogram(x: I.In[I.i32, ("N",)], small: I.In[I.u8, ("N",)], counts: I.InOut[I.i32, ("K",)], best: I.InOut[I.f32, ("K",)],
              seen: I.InOut[I.u8, ("K",)]):
    for i in I.parallel(I.domain(0, x.shape[0])):
        I.atomic.add(counts[x[i]], 1, order="acq_rel")
        I.atomic.max(best[x[i]], I.cast(i, I.f32), order="relaxed")
        I.atomic.max(seen[x[i]], small[i], order="relaxed")


KERNELS = [relu_f16, same.swiglu, same.softmax, same.column_sums, same.row_argmax, same.running_sums, same.layer_norm, same.linear,
           linear_f16, same.embedding, bitonic_sort, mandelbrot, jacobi, same.assignment, same.attention, functions, histogram]


def assembled(ptx: str, architecture: str, place: Path) -> bytes:
    """The cubin of PTX, by ptxas or nvJitLink. Skips where there is neither."""
    if shutil.which("ptxas"):
        (place / "k.ptx").write_text(ptx)
        done = subprocess.run(["ptxas", f"-arch={architecture}", place / "k.ptx", "-o", place / "k.cubin"], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return (place / "k.cubin").read_bytes()
    linker = pytest.importorskip("cuda.bindings.nvjitlink", reason="neither ptxas nor nvJitLink")
    handle = linker.create(1, [f"-arch={architecture}"])
    linker.add_data(handle, linker.InputType.PTX, ptx.encode(), len(ptx), "k")
    linker.complete(handle)
    cubin = bytearray(linker.get_linked_cubin_size(handle))
    linker.get_linked_cubin(handle, cubin)
    return bytes(cubin)


needs_nvvm = pytest.mark.skipif(not importlib.util.find_spec("cuda") or not importlib.util.find_spec("cuda.core"),
                                reason="libNVVM comes with the extra [cuda]")


def rounds_as_written(ptx: str) -> bool:
    """No operation that ptxas may fuse with another, none that is approximate or loses subnormal numbers."""
    return not re.search(r"\b(add|sub|mul|mad|fma|div|sqrt)\.(f16|f32|f64)\b|\.(approx|ftz|full)\b", ptx)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
def test_assembles(kernel, architecture, tmp_path):
    program = intent.generate(kernel, target=f"cuda:{architecture}")
    assert f".target {architecture}" in program.text
    assert assembled(program.text, architecture, tmp_path)[:4] == b"\x7fELF"
    assert rounds_as_written(program.text)


@needs_nvvm
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
def test_nvvm_assembles(kernel, tmp_path):
    program = intent.generate(kernel, target="cuda:sm_90:nvvm")
    assert ".target sm_90" in program.text and "NVVM Compiler" in program.text
    assert assembled(program.text, "sm_90", tmp_path)[:4] == b"\x7fELF"
    assert rounds_as_written(program.text)


@needs_nvvm
@pytest.mark.parametrize("architecture", ["sm_75", "sm_100"])
@pytest.mark.parametrize("kernel", [same.attention, histogram], ids=lambda k: k.__name__)
def test_nvvm_of_both_forms(kernel, architecture, tmp_path):
    """Typed pointers up to sm_90, opaque ones from sm_100 on."""
    program = intent.generate(kernel, target=f"cuda:{architecture}:nvvm")
    assert assembled(program.text, architecture, tmp_path)[:4] == b"\x7fELF"
    assert rounds_as_written(program.text)
    if kernel is histogram:
        assert len(re.findall(r"membar\.gl|fence\.\w+\.gpu", program.text)) == 2


def test_interface_says_how_to_launch():
    program = intent.generate(same.softmax, target="cuda:sm_90")
    launch = program.interface["launch"]
    assert set(launch["kernels"]) == set(re.findall(r"\.visible \.entry (\w+)", program.text))
    for name, facts in launch["kernels"].items():
        head = re.search(rf"\.entry {name}\((.*?)\n\)\n\.reqntid (\d+), 1, 1", program.text, re.DOTALL)
        assert len(facts["arguments"]) == head[1].count(".param") and facts["block"] == [int(head[2]), 1, 1]
    places = {facts["arena"]: facts for facts in launch["kernels"].values()}
    assert places["local"]["shared"]["dynamic"] == "arena" and "arena" in places["global"]["arguments"]
    assert all(facts["shared"]["static"] == 32 * 4 * 4 for facts in places.values())
    assert launch["entry"] is None and launch["frame"][:2] == ["threads", "x.data"] and launch["plan"]["steps"][0]["do"] == "stage"


def test_shapes_stay_symbolic():
    program = intent.generate(same.softmax, target="cuda:sm_90")
    assert [p["shape"] for p in program.interface["parameters"]] == [["M", "N"], ["M", "N"]]
    assert program.interface["extents"] == {"M": ["x", 0], "N": ["x", 1]}
    (step,) = program.interface["launch"]["plan"]["steps"]
    rows = program.interface["launch"]["frame"].index("x.shape[0]")
    assert step["grid"] == [[[1, [rows]]]]


def test_same_program_every_time(tmp_path):
    """In another process too, and from the cache."""
    program = intent.generate(same.attention, target="cuda:sm_90")
    script = "import sys, intent_numba as intent\nfrom tests.targets import test_spirv as same\n" \
             "intent.generate(same.attention, target='cuda:sm_90').save(sys.argv[1])"
    for k, cache in enumerate(("one", "one", "two")):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "INTENT_CACHE_DIR": str(tmp_path / cache),
                       "PYTHONHASHSEED": str(k)}
        subprocess.run([sys.executable, "-c", script, tmp_path / str(k)], check=True, env=environment)
        again = intent.GeneratedProgram.load(tmp_path / str(k))
        assert (again.text, again.binary, again.kir, again.interface) == (program.text, program.binary, program.kir, program.interface)


def test_saving_and_loading(tmp_path):
    program = intent.generate(same.relu, target="cuda:sm_80")
    assert intent.GeneratedProgram.load(program.save(tmp_path)) == program
    assert (tmp_path / "program.txt").read_text() == program.text and program.kir.startswith("kernel relu(")
    code = variant("sm_80").load_object(program.binary, "")
    assert code.ptx == program.text and code.plan == program.interface["launch"]["plan"]


def test_atomics_are_ordered_by_barriers_of_memory():
    ptx = intent.generate(histogram, target="cuda:sm_90").text
    assert "atom.global.add" in ptx or "red.global.add" in ptx
    assert len(re.findall(r"membar\.gl|fence\.\w+\.gpu", ptx)) == 2
    assert re.search(r"atom\.relaxed\.gpu\.global\.cas\.b32", ptx) and "cas.b8" not in ptx


@pytest.mark.parametrize("target", ["cuda:sm_70", "cuda:hopper", "cuda:sm_90:clang", "cuda:sm_90:nvptx:more"])
def test_names_that_are_no_target(target):
    with pytest.raises(UnsupportedError, match="cuda"):
        intent.generate(same.relu, target=target)


@pytest.mark.skipif(device_count() > 0, reason="there is a CUDA device")
@pytest.mark.parametrize("target", ["cuda", "cuda:sm_90"])
def test_nothing_is_compiled_for_launching_without_a_device(target):
    with pytest.raises(UnsupportedError, match="no CUDA device"):
        intent.compile(same.relu, target=target)


def test_a_code_generator_that_dies_is_an_error():
    text = "declare float @llvm.exp.f32(float)\n" \
           "define ptx_kernel void @k(ptr addrspace(1) %p) {\n  %x = load float, ptr addrspace(1) %p\n" \
           "  %y = call float @llvm.exp.f32(float %x)\n  store float %y, ptr addrspace(1) %p\n  ret void\n}\n"
    with pytest.raises(UnsupportedError, match="NVPTX backend of LLVM cannot translate"):
        translated(text, "sm_90", "nvptx")


@needs_nvvm
@pytest.mark.parametrize("architecture", ["sm_75", "sm_100"])
def test_nvvm_reads_every_operation(architecture):
    module = Module(dialect(architecture, "nvvm"))
    written = [case for case in accelerators.cases() if case[0] in NATIVE or math.program(case[0], case[1][0])]
    for number, case in enumerate(written):
        accelerators.kernel(module, f"kernel{number}", *case, "ptx_kernel")
    text = module.text().replace(") nounwind {", ') nounwind "nvvm.reqntid"="1,1,1" {')
    ptx = translated(text, architecture, "nvvm")
    assert ptx.count(".visible .entry") == len(written) and rounds_as_written(ptx)
