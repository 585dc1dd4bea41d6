"""Every elementwise kind and dtype, as a scalar and as vectors, gives the bits of the reference."""
from __future__ import annotations

import numpy as np
import pytest

from intent_numba import math
from intent_numba.kir.ops import ELEMENTWISE
from intent_numba.kir.types import DTYPES, FLOATS, INTEGERS
from intent_numba.reference import operations as reference
from intent_numba.targets.llvm.ops import CONVERSIONS, NATIVE

from .harness import MEMORY, Bench, held, memory, same, samples

COUNT = 1024
LANES = (0, 8, 32)


def dtypes_of(domain: str):
    groups = {"n": INTEGERS + FLOATS, "f": FLOATS, "i": INTEGERS, "b": ("bool",), "u64": ("u64",), "any": DTYPES}
    return [dt for part in domain.split("|") for dt in groups[part]]


def kinds():
    return [k for k, info in ELEMENTWISE.items() if k not in CONVERSIONS]


@pytest.mark.parametrize("kind", kinds())
def test_kind(kind):
    info = ELEMENTWISE[kind]
    available = [dt for dt in dtypes_of(info.domain) if kind in NATIVE or math.program(kind, dt)]
    if not available:
        pytest.skip(f"no program for {kind} yet")
    bench, cases = Bench(), []
    for dt in available:
        operands = ["bool", dt, dt] if kind == "select" else [dt] * info.operands
        result = info.result if info.result in ("bool", "u32") else dt
        for lanes in LANES:
            name = f"{kind}.{dt}.{lanes}"
            bench.add(name, lambda o, *v, r=result: o.elementwise(kind, v, r), operands, lanes)
            cases.append((name, operands, result))
    bench.finish()
    for name, operands, result in cases:
        arrays = [samples(d, COUNT, seed) for seed, d in enumerate(operands)]
        check(name, kind, arrays, operands, result, bench)


def check(name, kind, arrays, operands, result, bench, **attrs):
    with np.errstate(all="ignore"):
        want = memory(np.asarray(reference.evaluate(kind, [held(a, d) for a, d in zip(arrays, operands)], result, **attrs)), result)
    got = bench.run(name, *arrays)
    bad = np.flatnonzero(~same(got, want, result))
    assert not len(bad), (f"{name}: {len(bad)} differ; first operands {[held(a, d).array[bad[0]] for a, d in zip(arrays, operands)]}: "
                          f"got {held(got, result).array[bad[0]]!r}, want {held(want, result).array[bad[0]]!r}")


@pytest.mark.parametrize("kind, ftz", [("div", False), ("div", True), ("exp2", False), ("exp2", True), ("tanh", False)])
def test_approximate(kind, ftz):
    """Approximate forms are exact but for their special cases; flushing stays at the operation's own operands and result."""
    operands = ["f32"] * ELEMENTWISE[kind].operands
    bench = Bench()
    bench.add("approx", lambda o, *v: o.elementwise(kind, v, "f32", {"approximate": True, "ftz": ftz}), operands, 8)
    bench.finish()
    check("approx", kind, [samples("f32", 4096, k) for k in range(len(operands))], operands, "f32", bench, approximate=True, ftz=ftz)


@pytest.mark.parametrize("dt", ["index", "u64", "i32"])
@pytest.mark.parametrize("kind", ["floordiv", "mod"])
def test_division_of_small_and_borderline_values(kind, dt):
    """Vectors of 64-bit integers take the float path only within 51 bits; both sides of that limit are right."""
    bench = Bench()
    bench.add("d", lambda o, a, b: o.elementwise(kind, (a, b), dt), [dt, dt], 8)
    bench.finish()
    rng = np.random.default_rng(5)
    low = 0 if dt[0] == "u" else -1000
    kind_of = np.dtype(MEMORY[dt])
    small = rng.integers(low, 1000, 4096).astype(kind_of)
    check("d", kind, [small, rng.permutation(small)], [dt, dt], dt, bench)
    check("d", kind, [small * 7, np.full(4096, 7, kind_of)], [dt, dt], dt, bench)
    if dt != "i32":
        sign = rng.choice([-1, 1], 4096).astype(kind_of) if low else kind_of.type(1)
        limit = ((1 << 51) + rng.integers(-3, 3, 4096)).astype(kind_of) * sign
        for divisor in (rng.integers(1, 9, 4096).astype(kind_of), rng.permutation(limit), limit - kind_of.type(1)):
            check("d", kind, [limit, divisor], [dt, dt], dt, bench)
