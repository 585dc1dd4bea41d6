"""The k-th program of a seed, and what is said of its failure: the smallest program that still fails, and how to repeat it."""
from __future__ import annotations

import re
from dataclasses import replace

from .execution import DRAWS, Illegal, check_mutant, check_program, rnd_of
from .grammar import Program, whole_kernel
from .grammar.checked import DTYPES
from .mutate import mutant
from .shrink import shrunk

POLICIES = ("strict",) * 17 + ("range_preserving", "checked", "checked")
MUTANTS = 8
"""Of one legal program."""


def program_of(seed: int, k: int) -> Program:
    rnd = rnd_of(seed, k)
    policy = rnd.choice(POLICIES)
    return whole_kernel(rnd, DTYPES, policy) if policy == "checked" else whole_kernel(rnd, policy=policy)


def run_one(seed: int, k: int, show: bool = False) -> str:
    program = program_of(seed, k)
    if show:
        print(program.source)
    return check_program(program, [seed, k], rehearse=program.policy != "strict" or k % 4 == 0)


def complaint(error: Exception) -> tuple:
    """What must stay the same while a failure shrinks: its kind, and the words of a refusal without names, numbers and places."""
    words = re.sub(r"`[^`]*`|\b\w*\d\w*\b|'[^']*'", "_", str(error).splitlines()[0].split(": ", 1)[-1])
    return type(error), words if not isinstance(error, AssertionError) or isinstance(error, Illegal) else ""


def failure_text(seed: int, k: int, error: Exception) -> str:
    """The report of a failing program."""
    def fails(candidate: Program) -> bool:
        try:
            check_program(candidate, [seed, k], DRAWS + 1)
        except Exception as other:
            return complaint(other) == complaint(error)
        return False

    program = shrunk(program_of(seed, k), fails)
    return (f"program {k} of seed {seed}: {error}\n\n{program.source}\n\n"
            f"repeat with: python -m tests.fuzz --seed {seed} --first {k} --count 1")


def mutant_of(seed: int, k: int) -> Program:
    """A legal program with a mistake."""
    program = program_of(seed, k // MUTANTS)
    return replace(program, source=mutant(program.source, rnd_of(seed, -1 - k)))


def run_mutant(seed: int, k: int, show: bool = False) -> str:
    program = mutant_of(seed, k)
    if show:
        print(program.source)
    return check_mutant(program, [seed, k])
