"""Typing rules of random numbers: a u64 seed and a counter give u32 words or f32 values. Spec: 000 section 12."""
from __future__ import annotations

from .operations import cast_hint, check_literal, dtype_argument, operand_problem, result_type
from .problems import refuse
from .types import Lit, Weak, describe, dtype_of

COUNTERS = ("u64", "index")


def bits(seed, counter, what="I.random.bits", dt="u32"):
    _integer(what, "seed", seed, ("u64",))
    _integer(what, "counter", counter, COUNTERS)
    return result_type(dt, (seed, counter))


def _integer(what: str, name: str, t, dts) -> None:
    operand_problem(f"{what}: {name}", t)
    if isinstance(t, Lit):
        check_literal(f"{what}: {name}", t.value, "u64")
    elif isinstance(t, Weak) and "index" not in dts or not isinstance(t, Weak) and dtype_of(t) not in dts:
        refuse(f"{what}: {name} must be {' or '.join(dts)}, not {describe(t)}", cast_hint(t, "u64"))


def uniform(seed, counter, dtype):
    what = "I.random.uniform"
    if (dt := dtype_argument(what, dtype)) != "f32":
        refuse(f"{what}: only f32 is defined, not {dt}", f"write I.cast(I.random.uniform(seed, counter), I.{dt})")
    return bits(seed, counter, what, "f32")


RULES = {"random.bits": bits, "random.uniform": uniform}
