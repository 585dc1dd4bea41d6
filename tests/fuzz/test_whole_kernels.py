"""Does any kernel of the grammar mean the same compiled and interpreted, bit for bit, without breaking an obligation? A failure is
reported as the smallest program that still fails, with its seed and number.
"""
from __future__ import annotations

import os

import pytest

from .grammar import Program
from .programs import failure_text, program_of, run_mutant, run_one
from .settings import SEED, examples
from .shrink import shrunk

PARTS, NIGHTLY_PARTS = 20, 100
NIGHTLY = int(os.environ.get("INTENT_FUZZ_EXAMPLES") or 100_000)
"""Programs of ``pytest -m nightly``."""


def run_part(part: int, parts: int, count: int) -> None:
    """One of equal parts of the programs 0 .. count - 1."""
    for k in range(count * part // parts, count * (part + 1) // parts):
        try:
            run_one(SEED, k)
        except Exception as error:
            pytest.fail(failure_text(SEED, k, error), pytrace=False)


@pytest.mark.parametrize("part", range(PARTS))
def test_whole_kernels(part):
    run_part(part, PARTS, examples(0.5))


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(NIGHTLY_PARTS))
def test_many_whole_kernels(part):
    run_part(part, NIGHTLY_PARTS, NIGHTLY)


def check_mutants(part: int, parts: int, count: int) -> None:
    for k in range(count * part // parts, count * (part + 1) // parts):
        try:
            run_mutant(SEED, k)
        except Exception as error:
            pytest.fail(f"mutant {k} of seed {SEED}: {type(error).__name__}: {error}\n\nrepeat with: python -m tests.fuzz --mutants "
                        f"--show --seed {SEED} --first {k} --count 1", pytrace=False)


@pytest.mark.parametrize("part", range(4))
def test_programs_with_a_mistake(part):
    """Compiled like any other, or refused at a line of their own: never an error of the compiler's inside."""
    check_mutants(part, 4, examples(0.15))


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(NIGHTLY_PARTS))
def test_many_programs_with_a_mistake(part):
    check_mutants(part, NIGHTLY_PARTS, NIGHTLY)


def test_programs_repeat_and_differ():
    sources = [program_of(7, k).source for k in range(50)]
    assert sources == [program_of(7, k).source for k in range(50)] and len(set(sources)) == 50


def test_the_grammar_reaches_the_language():
    """Every construct stands in some of two thousand programs."""
    text = "".join(program_of(1, k).source for k in range(2000))
    missing = [c for c in CONSTRUCTS if c not in text]
    assert not missing


CONSTRUCTS = (
    "@intent.fn", "I.Constexpr[", "I.Enum", 'policy="checked"', 'policy="range_preserving"', "while ", " in range(", "enumerate(", "break",
    "continue", "elif ", "I.parallel(I.domain", "I.parallel((", "I.record(", "I.buffer(", "I.store(", "I.scatter_unique(",
    "I.scatter_reduce(", "I.atomic.add(", "I.atomic.max(", "I.atomic.xor(", "I.atomic.load(", "I.atomic.exchange(",
    "I.atomic.compare_exchange(", "I.gather(", "I.histogram(", "I.region_fold(", "I.region_scan(", "I.reduce(", "I.scan(", "I.cumsum(",
    "I.cummax(", "I.arg_reduce.", "I.reduce.any(", "acc_dtype=I.f8e5m2", "acc_dtype=I.f16", "I.contract(", "I.matmul(", "I.matvec(",
    "I.vecmat(", "I.dot(", "I.outer(", "I.random.bits(", "I.random.uniform(", "I.bitcast(", "I.saturating_cast(", "I.f8e4m3fn", "I.bf16",
    "approximate=True", "flush_to_zero=True", "I.assume_in_bounds(", "I.ragged(", "I.quantize(", "I.scaled_matmul(", "I.sparse_matmul(",
    "I.reshape(", "I.join(", "I.transpose(", "I.permute(", "I.full(", "I.zeros(", "I.mask(", "I.fma(", "I.power(", " if ", "valid=",
    "inclusive=False", "reverse=True", "I.InOut[I.bool", "InOut[I.u64", "I.floor_divide(", "I.remainder(", "I.pow(", "I.lgamma(")


def test_shrinking_keeps_what_fails():
    program = Program("def kernel(x, y):\n    a = x + 1\n    b = a * 2\n    if b:\n        y[0] = (b - 3) // a\n    c = 5\n", [])
    small = shrunk(program, lambda p: "//" in p.source)
    assert small.source == "def kernel(x, y):\n    (b - 3) // a" or len(small.source) < 40, small.source
