"""The native entry against the Python path: whenever it takes a call, its frame is the one Python would have built; whatever
Python refuses or runs in program order, it leaves to Python."""
from __future__ import annotations

import ctypes
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import intent_numba as intent
from intent_numba.runtime import native, stub, threads
from intent_numba.runtime.binding import Facts, bind
from intent_numba.runtime.entries import Form
from intent_numba.runtime.interface import arrange

from tests.support import numpy_dtype

from . import kernels


@pytest.fixture(autouse=True, scope="module")
def entries_exist():
    if not (native.possible() and threads.free()):
        pytest.skip("no native entries here: launches take turns, or the interpreter is another")


def positional(interface):
    """The form of a call without keywords and Constexprs."""
    return Form.of(interface.runtime, (None,) * len(interface.runtime), {})


class Recorder:
    """A stub over code that only copies its frame to where a test can see it."""

    count = 0

    def __init__(self, kernel, inplace=frozenset(), status=0):
        from intent_numba.targets.cpu import compile_text
        Recorder.count += 1
        self.interface = kernel.interface
        self.facts = Facts(inplace, frozenset(p.name for p in self.interface.views if p.written))
        slots = 1 + sum(1 + 2 * len(p.shape) if p.kind == "view" else 1 for p in self.interface.runtime)
        self.seen = (ctypes.c_int64 * slots)()
        symbol = f"test_recorder_{Recorder.count}"
        code = compile_text(f"""
            declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
            define i32 @{symbol}(ptr %frame) {{
              %seen = inttoptr i64 {ctypes.addressof(self.seen)} to ptr
              call void @llvm.memcpy.p0.p0.i64(ptr %seen, ptr %frame, i64 {8 * slots}, i1 false)
              ret i32 {status}
            }}""", symbol)
        compiled = SimpleNamespace(code=code, facts=self.facts)
        build = SimpleNamespace(interface=self.interface, name="recorder", pyfunc=kernel.pyfunc, compiled=lambda: compiled,
                                overflow=lambda: "recorder: overflow")
        self.missed = []
        self.entry = stub.make(build, positional(self.interface), lambda *args, **kwargs: self.missed.append(args))

    def __call__(self, *args) -> str:
        """"taken" or "missed"; a taken call is compared with the Python path."""
        before = len(self.missed)
        assert self.entry(*args) is None
        if len(self.missed) > before:
            return "missed"
        bound = bind(self.interface, self.facts, arrange(self.interface, self.interface.runtime, args, {}))
        assert not bound.ordered and not bound.staged
        extents = self.significant(bound)
        assert [s for s, e in zip(self.seen, extents) if e][1:] == [s for s, e in zip(bound.frame, extents) if e][1:]
        return "taken"

    def significant(self, bound) -> list[bool]:
        """Which slots count: a stride along at most one member may be any number."""
        flags = [True]
        for p in self.interface.runtime:
            flags.append(True)
            if p.kind == "view":
                shape = bound.views[p.name].shape
                flags += [True] * len(shape) + [n > 1 for n in shape]
        return flags


@pytest.fixture(scope="module")
def scale():
    return Recorder(kernels.scale)


def test_usual_calls_are_taken(scale):
    x, y = np.zeros((3, 4), "f4"), np.zeros((3, 4), "f4")
    wide = np.zeros((6, 16), "f4")
    for args in [(x, 2.0, y), (x, np.float32(2), y), (x, np.float64(0.1), y), (x, float("inf"), y), (x, -0.0, y),
                 (x.T.copy().T, 1.0, y), (x[::-1, ::-1], 1.0, y[:, ::-1]), (wide[::2, ::4], 1.0, wide[1::2, :4].copy()),
                 (x, 1.0, wide[::2, ::4]), (x, 1.0, np.zeros((4, 3), "f4").T), (x[:0], 1.0, y[:0]), (x[:1], 1.0, y[:1]),
                 (np.broadcast_to(x[:1], (3, 4)), 1.0, y), (x, 1.0, np.zeros((4, 6), "f4").T[:3])]:
        assert scale(*args) == "taken", args


def test_everything_else_is_left_to_python(scale):
    x, y = np.zeros((3, 4), "f4"), np.zeros((3, 4), "f4")
    readonly = np.zeros((3, 4), "f4")
    readonly.flags.writeable = False
    raw = np.zeros(49, "u1")[1:].view("f4").reshape(3, 4)
    row = np.zeros((4, 4), "f4")
    for args in [(), (x,), (x, 1.0, y, y), (x.astype("f8"), 1.0, y), (x.astype(">f4"), 1.0, y), (x[0], 1.0, y), (x, 1.0, y[:2]),
                 (x, 1, y), (x, True, y), (x, 1e300, y), (x, "1", y), (x, None, y), (x, np.int64(1), y), (x, np.float16(1), y),
                 (x.view(np.matrix), 1.0, y),
                 (x, 1.0, readonly), (raw, 1.0, y), (x, 1.0, raw), (x, 1.0, x), (row[:3], 1.0, row[1:]),
                 (x, 1.0, as_strided(y, (3, 4), (0, 4))),
                 (x, 1.0, as_strided(np.zeros(40, "f4"), (3, 4), (8, 4))), (memoryview(x), 1.0, y), (x.tolist(), 1.0, y)]:
        assert scale(*args) == "missed", args
    missed = len(scale.missed)
    scale.entry(x, 1.0, y=y)
    assert len(scale.missed) == missed + 1
    scale.entry(*(x, 1.0, y), **{})
    assert len(scale.missed) == missed + 1


def test_exceptions_of_the_fallback_come_through():
    def fallback(*args, **kwargs):
        raise intent.CallError("no")
    recorder = Recorder(kernels.scale)
    compiled = SimpleNamespace(code=SimpleNamespace(address=0), facts=recorder.facts)
    build = SimpleNamespace(interface=recorder.interface, name="k", pyfunc=kernels.scale.pyfunc, compiled=lambda: compiled,
                            overflow=lambda: "k: overflow")
    entry = stub.make(build, positional(recorder.interface), fallback)
    for call in (lambda: entry(1, 2, 3), lambda: entry(), lambda: entry(x=1)):
        with pytest.raises(intent.CallError):
            call()


def test_out_of_memory():
    x = np.zeros((3, 4), "f4")
    with pytest.raises(MemoryError):
        Recorder(kernels.scale, status=1).entry(x, 1.0, x.copy())
    with pytest.raises(OverflowError, match="recorder"):
        Recorder(kernels.scale, status=2).entry(x, 1.0, x.copy())
    with pytest.raises(RuntimeError, match="status 9"):
        Recorder(kernels.scale, status=9).entry(x, 1.0, x.copy())


def test_in_place_pairs():
    recorder = Recorder(kernels.shift, inplace=frozenset({frozenset("ab")}))
    a = np.zeros(6, "f4")
    assert recorder(a, a) == "taken" and recorder(a[::2], a[::2]) == "taken"
    assert recorder(a[:5], a[1:]) == "missed" and recorder(a, a[::-1]) == "missed"
    assert Recorder(kernels.shift)(a, a) == "missed"


def test_scalars_of_every_kind():
    @intent.kernel
    def numbers(b: kernels.I.bool, i: kernels.I.i8, u: kernels.I.u64, n: kernels.I.index, d: kernels.I.f64,
                out: kernels.I.Out[kernels.I.f32, (1,)]):
        pass
    recorder, out = Recorder(numbers), np.zeros(1, "f4")
    assert recorder(True, -128, 2**63 - 1, -2**63, 0.1, out) == "taken"
    assert recorder(False, 127, 0, 2**63 - 1, np.float64("nan"), out) == "taken"
    assert recorder(np.True_, np.int64(-128), np.int64(5), np.int64(-2**63), -0.0, out) == "taken"
    assert recorder(True, np.int8(-128), np.uint64(2**63 - 1), np.int64(7), 0.0, out) == "taken"
    for position, bad in [(0, 1), (1, np.int64(128)), (2, np.int64(-1)), (1, np.uint8(1)), (2, np.uint64(2**63)),
                          (2, np.uint32(1)), (1, 128), (1, -129), (1, True), (2, -1), (2, 2**63), (2, 2**64),
                          (3, 2**63), (3, 1.0), (4, 1)]:
        args = [True, 1, 1, 1, 1.0, out]
        args[position] = bad
        assert recorder(*args) == "missed"


@pytest.mark.parametrize("dt", ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "index"])
def test_numpy_integers_of_the_parameters_own_dtype(dt):
    @intent.kernel
    def number(n: kernels.I.dtype(dt), out: kernels.I.Out[kernels.I.f32, (1,)]):
        pass
    recorder, own = Recorder(number), numpy_dtype(dt).type
    lo, hi = np.iinfo(own).min, min(np.iinfo(own).max, 2**63 - 1)
    for n in (lo, lo + 1, 0, 1, hi // 3, hi):
        assert recorder(own(n), np.zeros(1, "f4")) == "taken"


def test_constraints():
    recorder = Recorder(kernels.constrained)
    x, wide = np.zeros((3, 4), "f4"), np.zeros((3, 8), "f4")
    out = np.zeros((3, 4), "f4")
    assert recorder(x, x, out) == "taken"
    assert recorder(wide[:, :4], wide[:, 4:], np.zeros((3, 8), "f4")[:, ::2]) == "taken"
    assert recorder(wide[:, ::2], x, out) == "missed"
    assert recorder(x, wide[:, :4], out) == "missed"
    assert recorder(np.zeros((3, 4), "f4"), wide[:, :4], wide[:, 4:]) == "missed"
    assert stub.make(SimpleNamespace(interface=kernels.grouped.interface), None, None) is None


def test_exact_extents_and_rank_zero():
    recorder = Recorder(kernels.fixed)
    y, z = np.zeros(5, "f4"), np.zeros((), "f4")
    assert recorder(np.zeros((3, 5), "f4"), y, z) == "taken"
    assert recorder(np.zeros((2, 5), "f4"), y, z) == "missed"
    assert recorder(np.zeros((3, 5), "f4"), y, z[None]) == "missed"


def test_references_are_balanced(scale):
    x, y, number = np.zeros((3, 4), "f4"), np.zeros((3, 4), "f4"), 2.5
    objects = (x, y, number, None)
    scale.entry(x, number, y)
    before = [sys.getrefcount(o) for o in objects[:3]]
    for _ in range(1000):
        scale.entry(x, number, y)
    assert [sys.getrefcount(o) for o in objects[:3]] == before


def test_random_views_against_python(scale, rng):
    """Random windows of one block: taken calls are compared slot by slot, and must be disjoint."""
    taken = 0
    for _ in range(600):
        block = np.zeros(int(rng.integers(1, 4)) * 64, "f4")
        views = []
        for _ in range(2):
            strides = rng.choice([-12, -4, 1, 2, 3, 4, 8, 0], 2) if rng.random() < 0.5 else (4, 1)
            low = sum(min(0, int(s) * (n - 1)) for s, n in zip(strides, (3, 4)))
            high = sum(max(0, int(s) * (n - 1)) for s, n in zip(strides, (3, 4)))
            start = int(rng.integers(-low, len(block) - high)) if len(block) - high > -low else None
            if start is None:
                break
            views.append(as_strided(block[start:], (3, 4), tuple(4 * int(s) for s in strides)))
        if len(views) == 2:
            taken += scale(views[0], 1.0, views[1]) == "taken"
    assert taken > 30
