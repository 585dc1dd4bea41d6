"""Does a generated program mean the same by every road? Random data for its parameters, the rehearsal of its obligations, the
reference interpreter and compiled code on guarded memory.
"""
from __future__ import annotations

import linecache
import random
from dataclasses import dataclass

import numpy as np

import intent_numba as intent
from intent_numba import reference
from intent_numba.frontend import build_kernel
from tests.support import BACKEND, assert_same_bits, integers, numpy_dtype, place, poison, special_floats
from tests.support.arrays import LAYOUTS
from tests.support.compare import is_float

from .grammar import Program

EXTENTS = (0, 1, 2, 3, 5, 8, 17, 31, 32, 33, 40, 64, 65)
LONG = 4097
MOST_ELEMENTS, MOST_POINTS = 1 << 13, 400
"""Of one array, and of one nest of loops: the reference visits points one by one."""

DRAWS = 2
"""Data sets for each program."""


class Illegal(AssertionError):
    """A program that should be legal is refused, or breaks an obligation."""


@dataclass
class Loaded:
    """A program's text as Python objects. ``name`` is its file's, which error messages quote."""
    kernel: object
    scope: dict
    name: str


def load(source: str, name: str = "<generated>") -> Loaded:
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    scope: dict = {"__name__": "generated"}
    exec(compile(source, name, "exec"), scope)
    return Loaded(scope["kernel"], scope, name)


def values(rng, dt, shape):
    """Random contents, some of them special."""
    dtype = numpy_dtype(dt)
    if dt == "bool":
        return rng.random(shape) < 0.5
    if not is_float(np.zeros(0, dtype)):
        return integers(rng, shape, dt) if rng.random() < 0.5 else integers(rng, shape, dt, 0, 50)
    with np.errstate(all="ignore"):
        x = np.asarray(rng.standard_normal(shape) * 10.0 ** rng.integers(-2, 3)).astype(dtype)
        if rng.random() < 0.3:
            special = special_floats(dt)
            x = np.where(rng.random(shape) < 0.1, rng.choice(special, shape) if shape else special[3], x).astype(dtype)
    return np.asarray(x)


def dimensions(rng, program: Program) -> dict[str, int]:
    """Extents that keep every array small; long ones only where nothing goes point by point."""
    sizes = {e: int(rng.choice(EXTENTS)) for e in ("M", "N", "K")}
    if not program.nests and rng.random() < 0.1:
        sizes[str(rng.choice(list(sizes)))] = LONG
    def size(extents) -> int:
        return int(np.prod([extent_of(e, sizes) for e in extents or ()]))

    while max(size(p.shape) for p in program.parameters) > MOST_ELEMENTS or any(size(nest) > MOST_POINTS for nest in program.nests):
        largest = max(sizes, key=sizes.__getitem__)
        sizes[largest] = sizes[largest] // 2 + 1 if sizes[largest] > 3 else 1
    return sizes


def extent_of(text: str, sizes: dict[str, int]) -> int:
    return int(text) if text.isdigit() else sizes[text]


def arguments(rng, program: Program, sizes: dict[str, int]) -> list:
    """In parameter order, without Constexprs."""
    args = []
    for p in program.parameters:
        if p.kind == "scalar":
            args.append(bool(rng.random() < 0.5) if p.dt == "bool" else values(rng, p.dt, (1,))[0])
        elif p.kind != "constexpr":
            shape = tuple(extent_of(e, sizes) for e in p.shape)
            x = poison(shape, numpy_dtype(p.dt)) if p.kind == "out" else np.asarray(values(rng, p.dt, shape))
            if p.kind == "in" and x.ndim and x.shape[0] and rng.random() < 0.1:
                x = np.broadcast_to(x[:1], x.shape)
            args.append(x)
    return args


def constexprs(rng, program: Program, scope: dict) -> dict:
    made = {"bool": lambda: bool(rng.random() < 0.5), "int": lambda: int(rng.integers(1, 5)),
            "Mode": lambda: list(scope["Mode"])[int(rng.integers(0, 2))]}
    return {p.name: made[p.dt]() for p in program.parameters if p.kind == "constexpr"}


def overlaps(rng, program: Program, args) -> list[tuple[str, int] | None] | None:
    """Now and then, where every access has an order: where each view lies in a block that all views of its dtype share."""
    if program.unordered or rng.random() > 0.15:
        return None
    room = {str(a.dtype): max(b.size for b in args if isinstance(b, np.ndarray) and b.dtype == a.dtype) for a in args
            if isinstance(a, np.ndarray)}
    return [(str(a.dtype), int(rng.integers(0, room[str(a.dtype)] // 2 + 2))) if isinstance(a, np.ndarray) else None for a in args]


def own(args, plan=None) -> list:
    """Fresh copies; with a plan of overlaps, views of fresh blocks, in which later arguments cover earlier ones."""
    if plan is None:
        return [np.array(a, order="C", copy=True) if isinstance(a, np.ndarray) else a for a in args]
    ends: dict[str, int] = {}
    for a, where in zip(args, plan):
        if where is not None:
            ends[where[0]] = max(ends.get(where[0], 0), where[1] + a.size)
    blocks = {a.dtype: poison((ends[str(a.dtype)],), a.dtype) for a in args if isinstance(a, np.ndarray)}
    views = [blocks[a.dtype][at[1]:at[1] + a.size].reshape(a.shape) if at is not None else a for a, at in zip(args, plan)]
    for view, a in zip(views, args):
        if isinstance(a, np.ndarray):
            view[...] = a
    return views


def outcome(call, args):
    """The arrays after the call, or the overflow that ended it."""
    try:
        with np.errstate(all="ignore"):
            call(*args)
    except OverflowError:
        return OverflowError
    return args


def run_compiled(artifact, args, layouts, plan):
    """Compiled code on guarded copies in these layouts, where a repeated array keeps its strides of zero; or on overlapping views."""
    if plan is not None:
        return outcome(artifact, own(args, plan))
    placed = [place(a, layout) if isinstance(a, np.ndarray) and not (a.ndim and 0 in a.strides and a.size > 1) else a
              for a, layout in zip(args, layouts)]
    got = outcome(artifact, [p.array if hasattr(p, "array") else p for p in placed])
    for i, p in enumerate(placed):
        if hasattr(p, "check_guards"):
            p.check_guards(f"argument {i} ({layouts[i]})")
    return got


def check_program(program: Program, seed, draws: int = DRAWS, rehearse: bool = True) -> str:
    """Raises where the roads differ. Gives "ok", "overflow", or why a policy refuses the program. With ``rehearse`` the obligations
    are watched, too."""
    loaded = load(program.source)
    rng = np.random.default_rng(seed)
    statics = constexprs(rng, program, loaded.scope)
    try:
        artifact, interpret = roads(loaded.kernel, statics, program.policy)
        rehearsal = build_kernel(loaded.kernel.pyfunc, statics, program.policy, True) if rehearse else None
    except intent.CompileError as error:
        if program.policy == "strict" and not isinstance(error, intent.UnsupportedError):
            raise Illegal(str(error)) from error
        if program.policy == "strict":
            raise
        return "refused"
    result = "ok"
    for _ in range(draws):
        sizes = dimensions(rng, program)
        args = arguments(rng, program, sizes)
        layouts = [str(rng.choice(LAYOUTS)) for _ in args]
        plan = overlaps(rng, program, args)
        if rehearsal is not None:
            try:
                outcome(lambda *a: reference.rehearse(rehearsal, list(a)), own(args, plan))
            except intent.InvalidInput as error:
                if program.policy == "strict":
                    raise Illegal(f"{sizes}: {error}") from error
                return "obligation"
        want = outcome(interpret, own(args, plan))
        if artifact is not None:
            result = agreement(program, sizes, run_compiled(artifact, args, layouts, plan), want)
    return result


def roads(kernel, statics: dict, policy: str):
    """The compiled program, if it is under test, and its meaning."""
    if BACKEND == "reference":
        kir = build_kernel(kernel.pyfunc, statics, policy)
        return None, lambda *args: reference.run(kir, list(args))
    artifact = intent.compile(kernel, constexprs=statics)
    return artifact, artifact.interpret


def agreement(program: Program, sizes, got, want) -> str:
    if want is OverflowError or got is OverflowError:
        assert got is want, f"{sizes}: compiled gave {got}, the reference {want}"
        return "overflow"
    for p, g, w in zip((p for p in program.parameters if p.kind != "constexpr"), got, want):
        if isinstance(g, np.ndarray):
            assert_same_bits(np.asarray(g), np.asarray(w), f"{p.name} with {sizes}")
    return "ok"


def check_mutant(program: Program, seed) -> str:
    """A program that may be wrong either means the same by every road or is refused at a line of its own. Gives which, with the words
    of the refusal."""
    try:
        loaded = load(program.source)
    except intent.errors.IntentError as error:
        return refusal(program, error)
    except Exception as error:                                  # CPython itself refuses it
        return f"python: {type(error).__name__}"
    rng = np.random.default_rng(seed)
    try:
        statics = constexprs(rng, program, loaded.scope)
        rehearsal = build_kernel(loaded.kernel.pyfunc, statics, program.policy, True)
        artifact, interpret = roads(loaded.kernel, statics, program.policy)
    except intent.errors.IntentError as error:
        return refusal(program, error)
    if "while" in program.source or "bitcast" in program.source:
        return "compiled"                                       # it may never end, or look at the bits of a NaN
    sizes = dimensions(rng, program)
    args = arguments(rng, program, sizes)
    try:
        outcome(lambda *a: reference.rehearse(rehearsal, list(a)), own(args))
    except intent.InvalidInput:
        return "obligation"
    want = outcome(interpret, own(args))
    if artifact is not None:
        agreement(program, sizes, run_compiled(artifact, args, [str(rng.choice(LAYOUTS)) for _ in args], None), want)
    return "ok"


def refusal(program: Program, error) -> str:
    """Every diagnostic of a refusal stands at a line of the program, and none speaks of the compiler's inside."""
    assert isinstance(error, intent.CompileError), f"{type(error).__name__}: {error}"
    lines = program.source.count("\n") + 1
    for d in error.diagnostics:
        assert d.line is not None and 1 <= d.line <= lines and d.loc.file == "<generated>", f"no line of the program: {error}"
    assert "beyond this compiler" not in str(error), str(error)
    return f"refused: {type(error).__name__}: {error.diagnostics[0].message}"


def rnd_of(seed: int, k: int) -> random.Random:
    return random.Random(f"{seed}/{k}")
