"""``python -m tests.numerics.accuracy``: how accurate is the compiled code of every elementary function? Writes docs/accuracy.md.

Narrow dtypes are measured at every bit pattern, f32 at one number of each of many equal parts of its encodings, or with ``--all``
at all of them, f64 at random points, seams and edges. Only the rows that were measured are written anew.
"""
from __future__ import annotations

import argparse
import math
import pathlib
import re
import sys
import time
import zlib
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache

import numpy as np

import intent_numba as intent
import intent_numba.language as I

from . import oracle, samples
from .build import ARRAYS
from .ulp import FORMATS, errors, errors_exact

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "accuracy.md"
DTYPES = ("f8e4m3fn", "f8e5m2", "f16", "bf16", "f32", "f64")
CHUNK = 1 << 18
NOISE = 1e-3
"""Errors in ULP of which the f64 oracle's own may be a part."""


def round_up(error: float) -> float:
    """To the digits of the page."""
    return math.ceil(error * 10_000) / 10_000 if math.isfinite(error) else error


@dataclass(frozen=True)
class Subject:
    """One function as it is called, and the error it may have in f32 and f64."""
    kind: str
    f32: float = 1.0
    f64: float = 2.0
    options: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return " ".join((self.kind, *self.options))

    @property
    def binary(self) -> bool:
        return self.kind in ("pow", "fdiv")

    @property
    def dtypes(self) -> tuple[str, ...]:
        return ("f32",) if self.options else DTYPES

    def bound(self, dt: str) -> float:
        """Narrow results are the f32 result, rounded."""
        if dt in ("f32", "f64"):
            return self.f32 if dt == "f32" else self.f64
        return self.f32 if self.f32 <= 0.5 else 0.5 + round_up(self.f32 * 2.0 ** (FORMATS[dt].mant - FORMATS["f32"].mant))


SUBJECTS = [Subject(kind) for kind in ("exp", "exp2", "log", "lgamma", "sin", "asin", "cos", "tanh", "rsqrt", "erf", "sigmoid", "pow")] + [
    Subject("log1p", 1, 1), Subject("erfc", 4, 5), Subject("i0", 6, 6),
    Subject("sqrt", 0.5, 0.5), Subject("fdiv", 0.5, 0.5), Subject("abs", 0, 0), Subject("floor", 0, 0), Subject("ceil", 0, 0),
    Subject("exp2", 2, options=("approximate",)), Subject("fdiv", 2, options=("approximate",)),
    # A relative error of 2^-11 is at least 2^12 units.
    Subject("tanh", 4096, options=("approximate",)),
]
"""Bounds in ULP, of 000 sections 5 and 5.1 where it has one."""


@cache
def kernel(subject: Subject, dt: str):
    """The function over a whole array."""
    D, function = I.dtype(dt), getattr(I, subject.kind)
    approximate = "approximate" in subject.options

    @intent.kernel
    def unary(x: I.In[D, ("N",)], y: I.Out[D, ("N",)]):
        y[:] = function(x[:])

    @intent.kernel
    def unary_approximate(x: I.In[D, ("N",)], y: I.Out[D, ("N",)]):
        y[:] = function(x[:], approximate=True)

    @intent.kernel
    def binary(a: I.In[D, ("N",)], b: I.In[D, ("N",)], y: I.Out[D, ("N",)]):
        y[:] = function(a[:], b[:])

    @intent.kernel
    def binary_approximate(a: I.In[D, ("N",)], b: I.In[D, ("N",)], y: I.Out[D, ("N",)]):
        y[:] = function(a[:], b[:], approximate=True)

    chosen = ((unary, unary_approximate), (binary, binary_approximate))[subject.binary][approximate]
    return intent.compile(chosen, target="cpu")


Columns = tuple[np.ndarray, ...]


def compiled(subject: Subject, dt: str, columns: Columns) -> np.ndarray:
    y = np.empty_like(columns[0])
    kernel(subject, dt)(*columns, y)
    return y


def interpreted(subject: Subject, dt: str, columns: Columns) -> np.ndarray:
    y = np.empty_like(columns[0])
    with np.errstate(all="ignore"):
        kernel(subject, dt).interpret(*columns, y)
    return y


# --- the inputs -------------------------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Inputs:
    what: str
    chunks: Iterable[Columns]


def inputs(subject: Subject, dt: str, count: int, rng, every: bool = False) -> Inputs:
    """``count`` numbers or pairs, or all there are."""
    if subject.binary:
        return _pairs(subject, dt, count, rng)
    if dt == "f64":
        x = samples.points_f64(subject.kind, count, rng)
        return Inputs(f"{x.size} random and edges", [(x,)])
    if dt == "f32":
        if every:
            return Inputs("all 2^32", ((samples.every_f32(i, i + CHUNK),) for i in range(0, 1 << 32, CHUNK)))
        x = np.concatenate([samples.stratified_f32(count, rng), samples.neighbours(samples.centres(subject.kind), dt)])
        return Inputs(f"{x.size} stratified", [(x[i:i + CHUNK],) for i in range(0, x.size, CHUNK)])
    x = _patterns(dt)
    return Inputs(f"all {x.size}", [(x,)])


def _patterns(dt: str) -> np.ndarray:
    kind = np.dtype(ARRAYS[dt])
    return np.arange(1 << 8 * kind.itemsize).astype(f"u{kind.itemsize}").view(kind)


def _pairs(subject: Subject, dt: str, count: int, rng) -> Inputs:
    if dt.startswith("f8"):
        x = _patterns(dt)
        return Inputs("all 65536 pairs", [(np.repeat(x, x.size), np.tile(x, x.size))])
    source = samples.powers if subject.kind == "pow" else samples.quotients
    a, b = source(dt, rng, count)
    if subject.options:     # 000 section 5.1: beyond, a divisor counts as infinite
        b = np.clip(np.abs(b), 2.0 ** -126, 2.0 ** 126) * np.sign(b)
    with np.errstate(over="ignore"):
        a, b = a.astype(ARRAYS[dt]), b.astype(ARRAYS[dt])
    return Inputs(f"{a.size} random pairs", [(a[i:i + CHUNK], b[i:i + CHUNK]) for i in range(0, a.size, CHUNK)])


# --- the measure ------------------------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Row:
    """The largest error found, in ULP, and one input that has it."""
    error: float
    place: str
    inputs: str
    bound: float

    def text(self, name: str) -> str:
        return f"| {name} | {self.error:.4f} | {self.bound:g} | {self.place} | {self.inputs} |"


@dataclass(frozen=True)
class Worst:
    error: float
    at: tuple[float, ...]


def measure(subject: Subject, dt: str, given: Inputs) -> Row:
    """Kernels run here; the oracle's part runs behind them in two threads."""
    worst = Worst(-1.0, ())
    with ThreadPoolExecutor(2) as pool:
        waiting: list[Future[Worst]] = []
        for columns in given.chunks:
            got = compiled(subject, dt, columns)
            waiting.append(pool.submit(_judge, subject.kind, dt, got, columns, worst.error))
            if len(waiting) > 3:
                worst = max(worst, waiting.pop(0).result(), key=lambda w: w.error)
        worst = max([worst, *(f.result() for f in waiting)], key=lambda w: w.error)
    return Row(round_up(worst.error), ", ".join(map(_short, worst.at)), given.what, subject.bound(dt))


def _short(number: float) -> str:
    """The hexadecimal form without trailing zeros."""
    return re.sub(r"\.?0*p", "p", number.hex())


def _judge(kind: str, dt: str, got: np.ndarray, columns: Columns, floor: float) -> Worst:
    """The largest error of a chunk, or ``floor`` where none exceeds it; what the f64 oracle says is confirmed by MPFR."""
    if dt == "f64":
        found = errors_exact(kind, dt, got, *columns)
        i = int(np.argmax(found))
        return Worst(float(found[i]), tuple(float(c[i]) for c in columns))
    if _ends_decide(kind, got, columns):
        got, columns = got[[0, -1]], tuple(c[[0, -1]] for c in columns)
    with np.errstate(all="ignore"):
        wide = np.ascontiguousarray(oracle.WIDE[kind](*(c.astype(np.float64) for c in columns)))
    found = errors(dt, got, wide)
    found[found < NOISE] = 0.0
    poor = np.flatnonzero(oracle.poor(kind, wide))
    found[poor] = errors_exact(kind, dt, got[poor], *(c[poor] for c in columns))
    worst = Worst(floor, ())
    while True:
        i = int(np.argmax(found))
        if not found[i] > worst.error:
            return worst
        exact = float(errors_exact(kind, dt, got[i:i + 1], *(c[i:i + 1] for c in columns))[0])
        if exact > worst.error:
            worst = Worst(exact, tuple(float(c[i]) for c in columns))
        found[i] = -1.0


MONOTONE = {"exp", "exp2", "log", "log1p", "tanh", "sigmoid", "rsqrt", "asin", "erf", "erfc", "i0"}
"""Functions that rise or fall all the way between two numbers of one sign."""
NEAR_IDENTITY = {"sin", "asin", "tanh", "log1p"}
"""Functions whose distance from x grows with |x| up to 1/2."""


def _ends_decide(kind: str, got: np.ndarray, columns: Columns) -> bool:
    """In a run of successive encodings of one sign and one exponent: is the largest error at an end, whatever is between? It is where
    all results are one number and the function is monotone, and where all results are the input and the distance is monotone."""
    x = columns[0]
    if len(columns) > 1 or x.size < 3 or x.dtype != np.float32:
        return False
    codes, results = x.view(np.uint32), got.view(np.uint32)
    first, last = int(codes[0]), int(codes[-1])
    if last - first != x.size - 1 or first >> 23 != last >> 23:
        return False
    if kind in MONOTONE or kind == "cos" and np.abs(x[-1]) < 1:
        if (results == results[0]).all():
            return True
    return kind in NEAR_IDENTITY and np.abs(x[-1]) < 0.5 and bool((results == codes).all())


# --- the page ---------------------------------------------------------------------------------------------------------

HEAD = """# Accuracy

The largest error of every elementary function, measured on compiled code by `python -m tests.numerics.accuracy`, which writes this page.
Errors are distances from the exact value in units in the last place (ULP) of the exact value's binade, rounded up; the bound is
what the language promises. "Stratified" is one random number in each of many equal parts of all encodings, with numbers around
zeros, poles and range ends added; "all" is every number of the dtype. The input is one that has the largest error. Where a whole
run of neighbours has one and the same result between two values of a monotone function, the ends of the run are judged for all.

Below `f32` a function is the `f32` function, rounded to the nearest. `floor_divide`, `remainder` and integer `power` are exact.
What is checked of zeros, poles, infinities, NaN and subnormal numbers is in `tests/numerics/test_math_special.py`.
"""
LINE = re.compile(r"\| ([\w ]+) \| ([\d.]+|inf) \| ([\d.]+) \| ([^|]*) \| ([^|]*) \|")

Rows = dict[tuple[str, str], Row]


def read_page() -> Rows:
    """The rows of the page by function and dtype."""
    rows, dt = {}, ""
    for line in PAGE.read_text().splitlines() if PAGE.exists() else ():
        if line.startswith("## "):
            dt = line.strip("# `")
        elif found := LINE.fullmatch(line):
            name, error, bound, place, what = found.groups()
            rows[name, dt] = Row(float(error), place, what, float(bound))
    return rows


def write_page(rows: Rows) -> None:
    parts = [HEAD]
    for dt in reversed(DTYPES):
        parts += [f"## `{dt}`\n", "| function | largest error | bound | at | inputs |", "| --- | --- | --- | --- | --- |"]
        parts += [rows[s.name, dt].text(s.name) for s in SUBJECTS if (s.name, dt) in rows] + [""]
    PAGE.write_text("\n".join(parts))


def seeded(subject: Subject, dt: str, seed: int):
    return np.random.default_rng([zlib.crc32(f"{subject.name} {dt}".encode()), seed])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.numerics.accuracy", description="Measure the elementary functions.")
    parser.add_argument("--only", default="", metavar="NAMES", help="functions, separated by commas; all by default")
    parser.add_argument("--dtype", default=",".join(DTYPES), metavar="DTYPES", help="dtypes, separated by commas; all by default")
    parser.add_argument("--all", action="store_true", help="f32 functions of one argument: all 2^32 inputs")
    parser.add_argument("--f32", type=int, default=10 ** 7, metavar="COUNT", help="f32 inputs (narrower pairs: a tenth)")
    parser.add_argument("--f64", type=int, default=10 ** 6, metavar="COUNT", help="f64 inputs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-write", action="store_true", help="only print")
    args = parser.parse_args()

    wanted = [name for name in args.only.split(",") if name]
    failed = False
    for subject in SUBJECTS:
        for dt in args.dtype.split(","):
            if wanted and subject.name not in wanted or dt not in subject.dtypes:
                continue
            count = {"f32": args.f32, "f64": args.f64}.get(dt, args.f32 // 10)
            start = time.monotonic()
            row = measure(subject, dt, inputs(subject, dt, count, seeded(subject, dt, args.seed), args.all))
            failed |= not row.error <= row.bound
            print(f"{dt:9}{row.text(subject.name)} {time.monotonic() - start:.1f} s", flush=True)
            if not args.no_write:
                write_page(read_page() | {(subject.name, dt): row})
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
