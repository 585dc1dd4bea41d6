"""Random programs of atomics, combining scatters and histograms among stores, branches and loops: compiled equals reference.

Within one parallel loop a resource is updated by one kind of operation, so that its result does not depend on the order of points.
"""
from __future__ import annotations

import linecache
import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import intent_numba as intent
import intent_numba.language as I
from tests.support import check

from .settings import fuzz

BINS = 7
SIGNATURE = """def program(x: I.In[I.i64, ("N",)], q: I.In[I.i32, ("N",)], v: I.In[I.f32, ("N",)], b: I.In[I.bool, ("N",)],
            m: I.In[I.f32, ("N", 5)], y: I.InOut[I.i32, (7,)], h: I.InOut[I.i32, (7,)], z: I.InOut[I.f32, (7,)],
            w: I.InOut[I.i32, ("N",)], g: I.InOut[I.f32, ("N", 7)]):
    N, = x.shape
    d = I.domain(0, N)
"""
KINDS = {"y": ("add", "max", "xor", "scatter"), "h": ("add", "min", "or_", "scatter"), "z": ("add", "max", "scatter", "decay"),
         "g": ("scatter", "decay"), "t": ("add", "max")}


@intent.fn
def decay(old, new):
    return old * 0.5 + new


class Writer:
    """Statements over the parameters of SIGNATURE, and ``t``, a buffer, where there is one."""

    def __init__(self, seed: int):
        self.random, self.count = random.Random(seed), 0
        self.buffer = self.random.random() < 0.4

    def name(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def pick(self, *options: str) -> str:
        return self.random.choice(options)

    def update(self, i: str, kinds: dict) -> str:
        target = self.pick("y", "z", "h", "g", *("t" if self.buffer else ""))
        kind = kinds.setdefault(target, self.random.choice(KINDS[target]))
        at = self.pick(f"x[{i}]", f"x[{i}]", "0", f"(x[{i}] + 1) % {BINS}")
        floats = (f"v[{i}]", f"v[{i}] * 2.0", "1.5", f"I.cast(q[{i}], I.f32)")
        value = self.pick(*floats) if target in "zg" else self.pick("1", "3", f"q[{i}]", f"I.cast(x[{i}], I.i32)")
        valid = self.pick("", "", f", valid=b[{i}]", f", valid=x[{i}] > 2")
        at = f"({i}, {at})" if target == "g" else at
        if kind in ("scatter", "decay"):
            combine = "I.add" if kind == "scatter" else "decay"
            return f"I.scatter_reduce({target}, index={at}, value={value}, combine={combine}{valid})"
        return self.pick(f'I.atomic.{kind}({target}[{at}], {value}, order="relaxed"{valid})',
                         f'I.atomic.{kind}({target}, index={at}, value={value}, order="acq_rel"{valid})')

    def body(self, i: str, kinds: dict, depth: int = 0) -> list[str]:
        out: list[str] = []
        for _ in range(self.random.randint(1, 2)):
            choice = self.random.random()
            inner = [] if depth > 1 or choice < 0.7 else ["    " + line for line in self.body(i, kinds, depth + 1)]
            if choice < 0.58 or depth > 1:
                out.append(self.update(i, kinds))
            elif choice < 0.64:
                out.append(f"w[{i}] = w[{i}] + q[{i}]")
            elif choice < 0.7:
                total = self.name("s")
                out += [f"{total} = I.reduce.sum(m[{i}, :], axis=0)", f"w[{i}] = w[{i}] + I.cast({total}, I.i32)"]
            elif choice < 0.87:
                out += [f"if {self.pick(f'b[{i}]', f'v[{i}] > 0.0', f'x[{i}] > 3')}:", *inner]
            else:
                out += [f"for {self.name('j')} in range({self.pick('2', '3', f'x[{i}]')}):", *inner]
        return out

    def loop(self, head: str) -> list[str]:
        i = self.name("i")
        return [f"for {i} in {head}:", *("    " + line for line in self.body(i, {}))]

    def statement(self) -> list[str]:
        match self.random.randrange(10):
            case 0:
                return ["y[:] = y[:] * 2 + 1"]
            case 1:
                return [f"I.scatter_reduce(z, index=x[d], value=v[d], combine={self.pick('I.add', 'decay', 'I.maximum')}, valid=b[d])"]
            case 2:
                return ["h[:] = h[:] + I.histogram(x[d], bins=7, valid=b[d], count_dtype=I.i32)"]
            case 3:
                return ['I.atomic.add(h[x[d]], q[d], order="relaxed")']
            case 4:
                return [f"for {self.name('r')} in range(3):", *("    " + line for line in self.loop("I.parallel(d)"))]
            case 5:
                return self.loop("d")
        return self.loop("I.parallel(d)")

    def program(self) -> str:
        lines = ["t = I.buffer((7,), I.i32, init=0)"] if self.buffer else []
        for _ in range(self.random.randint(1, 4)):
            lines += self.statement()
        lines += ["y[:] = y[:] + t[:]"] if self.buffer else []
        return SIGNATURE + "".join(f"    {line}\n" for line in lines)


def kernel_of(seed: int):
    source, name = Writer(seed).program(), f"<updates {seed}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    scope = {"I": I, "decay": decay}
    exec(compile(source, name, "exec"), scope)
    return intent.kernel(scope["program"])


@fuzz(0.05)
@given(seed=st.integers(0, 1 << 32))
def test_updates(seed):
    kernel, rng = kernel_of(seed), np.random.default_rng(seed)
    for n in (0, 1, 40):
        check(kernel, [rng.integers(0, BINS, n), rng.integers(-5, 6, n).astype(np.int32), rng.standard_normal(n).astype(np.float32),
                       rng.random(n) > 0.5, rng.integers(-9, 9, (n, 5)).astype(np.float32), rng.integers(0, 9, BINS).astype(np.int32),
                       rng.integers(0, 9, BINS).astype(np.int32), rng.standard_normal(BINS).astype(np.float32),
                       rng.integers(0, 9, n).astype(np.int32), rng.standard_normal((n, BINS)).astype(np.float32)],
              layouts=("contiguous", "mixed"))
