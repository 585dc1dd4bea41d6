"""Runs one emitted expression over arrays, so that tests can hold it against the reference."""
from __future__ import annotations

import ctypes
import hashlib

import numpy as np

from intent_numba.kir.types import BITS, int_range, is_float, is_int
from intent_numba.reference.operations import Typed, from_bits, to_bits
from intent_numba.targets import cpu
from intent_numba.targets.llvm import Module, Ops

MEMORY = {"bool": np.bool_, "index": np.int64, **{f"{k}{n}": np.dtype(f"{k}{n // 8}") for k in "iu" for n in (8, 16, 32, 64)},
          "f16": np.uint16, "bf16": np.uint16, "f8e4m3fn": np.uint8, "f8e5m2": np.uint8, "f32": np.float32, "f64": np.float64}
"""How elements lie in memory; narrow floats as their bits."""


class Bench:
    """A module of many small functions, compiled at once: ``add`` them, then ``run`` them by name."""

    def __init__(self, dialect=None, opt="clean"):
        self.module = Module(dialect) if dialect else Module()
        self.opt = opt
        self.results: dict[str, str] = {}

    def add(self, name: str, build, operands, lanes: int) -> None:
        """``build(o, *values)`` gives the result; ``operands`` are dtypes of arrays. One loop over ``lanes`` elements at a time."""
        fn = self.module.function(name, "void", [("ptr", "frame"), ("i64", "n")])
        o = Ops(fn)
        pointers = [fn.ins(f"load ptr, ptr {o.gep('i64', '%frame', k)}") for k in range(len(operands) + 1)]
        with fn.loop("0", "%n", max(lanes, 1)) as lp:
            values = [o.load(dt, o.gep(dt, p, lp.index), lanes) for dt, p in zip(operands, pointers)]
            result = build(o, *values)
            o.store(result, o.gep(result.dt, pointers[-1], lp.index))
        fn.ret()
        self.results[name] = result.dt

    def finish(self) -> None:
        """Give the module an anchor symbol that depends on its text, and compile it."""
        self.text = self.module.text()
        digest = "t" + hashlib.sha256((self.text + self.opt).encode()).hexdigest()[:24]
        for name in self.results:
            self.text = self.text.replace(f"@{name}(", f"@{digest}.{name}(")
        self.text += f"define void @{digest}() {{ ret void }}\n"
        self.code = cpu.compile_text(self.text, digest, self.opt)
        self.prefix = digest

    def run(self, name: str, *arrays) -> np.ndarray:
        """The result for operand arrays of memory elements, whose length is a multiple of the lanes."""
        out = np.empty(len(arrays[0]), MEMORY[self.results[name]])
        frame = np.array([a.ctypes.data for a in (*arrays, out)], np.int64)
        address = self.code.library.get_pointer_to_function(f"{self.prefix}.{name}")
        ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(address)(frame.ctypes.data, len(out))
        return out


def held(array: np.ndarray, dt: str) -> Typed:
    """Memory elements as the reference holds them."""
    return Typed(dt, array if dt in ("bool",) or is_int(dt) or dt in ("f32", "f64") else from_bits(array, dt))


def memory(array: np.ndarray, dt: str) -> np.ndarray:
    """What the reference holds as memory elements."""
    return array.astype(MEMORY[dt], copy=False) if dt not in ("f16", "bf16", "f8e4m3fn", "f8e5m2") else to_bits(array, dt)


def same(got: np.ndarray, want: np.ndarray, dt: str) -> np.ndarray:
    """Where two memory arrays agree bit for bit, any NaN being as good as another."""
    if not is_float(dt):
        return got == want
    a, b = held(got, dt).array, held(want, dt).array
    bits = f"u{BITS[dt] // 8}"
    return (got.view(bits) == want.view(bits)) | (np.isnan(a) & np.isnan(b))


def samples(dt: str, count: int, seed: int = 0) -> np.ndarray:
    """Edge values of a dtype, then random ones of every magnitude, as memory elements."""
    rng = np.random.default_rng(seed)
    if dt == "bool":
        return rng.integers(0, 2, count).astype(bool)
    if is_int(dt):
        low, high = int_range(dt)
        edges = [v for v in (0, 1, 2, 3, 7, 31, 63, -1, -2, -7, low, low + 1, high, high - 1, high // 2) if low <= v <= high]
        n = BITS[dt]
        spread = rng.integers(0, 1 << 63, count, dtype=np.uint64) >> rng.integers(64 - n, 64, count, dtype=np.uint64)
        negative = (rng.integers(0, 2, count) == 1) & (dt[0] != "u")
        out = np.where(negative, np.uint64(0) - spread, spread).astype(MEMORY[dt])
        out[:len(edges)] = np.array(edges, MEMORY[dt])
        return rng.permutation(out)
    if dt in ("f32", "f64"):
        kind, info = np.dtype(MEMORY[dt]), np.finfo(MEMORY[dt])
        out = np.frombuffer(rng.bytes(kind.itemsize * count), kind).copy()
        half = count // 2
        out[half:] = rng.standard_normal(count - half) * 2.0 ** rng.integers(-40, 40, count - half)
        edges = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 255.5, np.inf, np.nan, info.max, info.tiny, info.smallest_subnormal, 448.0, 464.0, 465.0,
                 65504.0, 65519.99, 65520.0, 57344.0, 61440.0, 2.0 ** 31, 2.0 ** 32, 2.0 ** 63, 2.0 ** 64]
        out[:2 * len(edges)] = np.array(edges + [-v for v in edges], kind)
        return rng.permutation(out)
    n = BITS[dt]
    every = np.arange(1 << n, dtype=np.uint64).astype(MEMORY[dt])
    return rng.permutation(np.resize(every, count))
