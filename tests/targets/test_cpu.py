"""The CPU target inside Numba: registries, ``@njit`` functions called from our code, passes asked for by a function, host facts."""
import ctypes

import numba
import pytest
from numba.core import target_extension

from intent_numba.targets import cpu
from intent_numba.targets.cpu import externs, host, library
from intent_numba.targets.cpu.descriptor import NAME, IntentCPU, descriptor
from intent_numba.task.program import Graph, Program


def test_numba_knows_the_target():
    assert target_extension.resolve_target_str(NAME) is IntentCPU
    assert IntentCPU.inherits_from(target_extension.CPU)
    assert descriptor.target_context.codegen() is library.codegen()


def program_calling(function, *operands, result):
    graph = Graph()
    graph("call", [graph("param", (), f"a{k}", dt) for k, dt in enumerate(operands)], "callee", result)
    return Program("p", [], {}, [], [], graph, {"callee": function})


@pytest.mark.parametrize("opt", ["clean", "full"])
def test_njit_function_is_linked(opt):
    @numba.njit
    def scaled(x, k, up):
        return x * k if up else x - k

    parts, linked = externs.link(program_calling(scaled, "f32", "f32", "bool", result="f32"))
    text = ("declare float @callee(float, float, i1)\n"
            f"define float @linked_{opt}(float %x, i1 %up) {{ %r = call float @callee(float %x, float 2.0, i1 %up) ret float %r }}\n")
    code = library.compile_text(text, f"linked_{opt}", opt, parts, linked)
    f = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_float, ctypes.c_bool)(code.address)
    assert (f(1.5, True), f(1.5, False)) == (3.0, -0.5)


def test_njit_function_that_gives_bool_and_one_of_another_dtype():
    @numba.njit
    def positive(x):
        return x > 0

    parts, linked = externs.link(program_calling(positive, "i64", result="bool"))
    text = ("declare i1 @callee(i64)\n"
            "define i32 @linked_bool(i64 %x) { %r = call i1 @callee(i64 %x) %i = zext i1 %r to i32 ret i32 %i }\n")
    code = library.compile_text(text, "linked_bool", "full", parts, linked)
    f = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64)(code.address)
    assert (f(5), f(-5)) == (1, 0)
    with pytest.raises(RuntimeError, match="positive returns bool, not int64"):
        externs.link(program_calling(positive, "i64", result="i64"))


def test_a_function_may_ask_for_more_passes():
    body = "{ %a = mul i64 %x, 2  %b = mul i64 %x, 2  %c = sub i64 %a, %b  ret i64 %c }"
    text = f'define i64 @asking(i64 %x) "intent-opt"="full" {body}\ndefine i64 @plain(i64 %x) {body}\n'
    after = cpu.compile_text(text, "asking").llvm()
    assert after.count("mul i64") == 2 and "ret i64 0" in after


def test_host_facts():
    facts, dialect = cpu.model(), host.host_dialect()
    assert cpu.model() is facts
    assert facts.lanes == 32 and facts.vector_bytes in (16, 32, 64) and facts.threads >= 1
    assert facts.l1_bytes <= facts.l2_bytes <= facts.l3_bytes
    assert dialect.name == "cpu"
    assert cpu.fingerprint() == cpu.fingerprint()
