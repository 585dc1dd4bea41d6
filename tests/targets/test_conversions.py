"""Casts between all dtypes give the bits of the reference: each rounds once, and float to int saturates."""
from __future__ import annotations

import numpy as np
import pytest

from intent_numba.kir.types import BITS, DTYPES, is_float
from intent_numba.targets.llvm import Dialect

from .harness import MEMORY, Bench, samples
from .test_elementwise import check

SMALL = ("f16", "bf16", "f8e4m3fn", "f8e5m2")


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("kind", ["cast", "saturating_cast"])
def test_casts(kind, source):
    bench = Bench()
    names = [(f"{kind}.{source}.{target}.{lanes}", target) for target in DTYPES for lanes in (0, 8, 32)]
    for name, target in names:
        bench.add(name, lambda o, x, t=target: o.elementwise(kind, (x,), t), [source], int(name.rsplit(".", 1)[1]))
    bench.finish()
    values = samples(source, 4096 if source not in SMALL[:2] else 1 << 16)
    for name, target in names:
        check(name, kind, [values], [source], target, bench)


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_bitcasts(bits):
    kinds = [dt for dt in DTYPES if BITS[dt] == bits and dt != "bool"]
    bench = Bench()
    for a in kinds:
        for b in kinds:
            bench.add(f"{a}.{b}", lambda o, x, t=b: o.elementwise("bitcast", (x,), t), [a], 8)
    bench.finish()
    for a in kinds:
        for b in kinds:
            check(f"{a}.{b}", "bitcast", [samples(a, 1 << min(bits, 12))], [a], b, bench)


@pytest.mark.parametrize("target", SMALL)
@pytest.mark.parametrize("half", [True, False], ids=["native-half", "integer-half"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_rounding_next_to_ties(target, half):
    """f32 and f64 values at, just below and just above every midpoint of a small format; also without native half."""
    bench = Bench(Dialect(half=half))
    for source in ("f32", "f64"):
        bench.add(source, lambda o, x: o.convert(x, target), [source], 8)
    bench.add("load", lambda o, x: o.convert(x, "f32"), [target], 8)
    bench.finish()
    from .harness import held
    patterns = np.arange(1 << BITS[target], dtype=np.uint64).astype(MEMORY[target])
    check("load", "cast", [patterns], [target], "f32", bench)
    values = held(patterns, target).array.astype(np.float64)
    values = np.unique(values[np.isfinite(values)])
    ties = (values[1:] + values[:-1]) / 2
    ties = np.concatenate([ties, values, [448, 464, 480, 61440, 65520, 2.0 ** 128, 3.3961e38]])
    for source in ("f32", "f64"):
        near = ties.astype(MEMORY[source])
        x = np.concatenate([near, np.nextafter(near, MEMORY[source](np.inf)), np.nextafter(near, MEMORY[source](-np.inf))])
        x = np.resize(x, -(-len(x) // 8) * 8)
        check(source, "cast", [x], [source], target, bench)


@pytest.mark.parametrize("target", [dt for dt in DTYPES if is_float(dt)])
def test_integers_next_to_ties(target):
    """Large integers whose rounding to an intermediate format would land on a midpoint of the target."""
    rng = np.random.default_rng(3)
    bench = Bench()
    for source in ("i32", "u32", "i64", "u64", "index"):
        bench.add(source, lambda o, x: o.convert(x, target), [source], 8)
    bench.finish()
    top = rng.integers(0, 1 << 9, 1 << 14, dtype=np.uint64) | np.uint64(1 << 8)
    shift = rng.integers(0, 55, 1 << 14, dtype=np.uint64)
    wide = (((top << np.uint64(1)) | np.uint64(1)) << shift) + rng.integers(0, 3, 1 << 14, dtype=np.uint64) - np.uint64(1)
    for source in ("i32", "u32", "i64", "u64", "index"):
        x = wide.astype(MEMORY[source])
        check(source, "cast", [np.concatenate([x, -x])], [source], target, bench)
