"""The text writer: structured control flow, lanes and every way of touching memory."""
from __future__ import annotations

import ctypes
import hashlib

import numpy as np
import pytest

from intent_numba.kir.types import DTYPES
from intent_numba.targets import cpu
from intent_numba.targets.llvm import Module, Ops, Val

from .harness import MEMORY, Bench, samples


def compiled(write, params, ret="i64"):
    """Compile one function; ``write(fn, o)`` writes its body. Returns a ctypes callable of integers and pointers."""
    module = Module()
    fn = module.function("entry", ret, params)
    write(fn, Ops(fn))
    text = module.text()
    symbol = "t" + hashlib.sha256(text.encode()).hexdigest()[:24]
    code = cpu.compile_text(text.replace("@entry(", f"@{symbol}("), symbol)
    kinds = {"i64": ctypes.c_int64, "ptr": ctypes.c_void_p, "void": None}
    return ctypes.CFUNCTYPE(kinds[ret], *(kinds[t] for t, _ in params))(code.address)


def test_loop_carries_and_nested_branch():
    def write(fn, o):
        with fn.loop("0", "%n", 1, carries=[("i64", "0"), ("i64", "1")]) as lp:
            even = fn.ins(f"icmp eq i64 {fn.ins(f'and i64 {lp.index}, 1')}, 0")
            with fn.if_else(even) as side:
                side.yields(("i64", fn.ins(f"add i64 {lp.carried[0]}, {lp.index}")))
                side.orelse()
                side.yields(("i64", lp.carried[0]))
            lp.next[0] = side.results[0]
            lp.next[1] = fn.ins(f"mul i64 {lp.carried[1]}, 3")
        fn.ret("i64", fn.ins(f"add i64 {lp.results[0]}, {lp.results[1]}"))

    f = compiled(write, [("i64", "n")])
    assert [f(n) for n in (0, 1, 5, 6)] == [sum(range(0, n, 2)) + 3 ** n for n in (0, 1, 5, 6)]


def test_repeat_runs_at_least_once_and_if_without_values():
    def write(fn, o):
        slot = fn.alloca("i64", 8)
        fn.do(f"store i64 0, ptr {slot}")
        with fn.repeat(carries=[("i64", "%n")]) as lp:
            with fn.if_(fn.ins(f"icmp sgt i64 {lp.carried[0]}, 2")):
                inner = fn.alloca("i64", 8)                       # lands in the entry block all the same
                fn.do(f"store i64 1, ptr {inner}")
                fn.do(f"store i64 {_add(fn, slot, inner)}, ptr {slot}")
            lp.next[0] = fn.ins(f"sub i64 {lp.carried[0]}, 1")
            lp.again = fn.ins(f"icmp sgt i64 {lp.next[0]}, 0")
        total = fn.ins(f"mul i64 {fn.ins(f'load i64, ptr {slot}')}, 100")
        fn.ret("i64", fn.ins(f"add i64 {total}, {lp.results[0]}"))

    f = compiled(write, [("i64", "n")])
    assert [f(n) for n in (-5, 0, 1, 4)] == [-6, -1, 0, 200]


def _add(fn, a, b):
    x, y = fn.ins(f"load i64, ptr {a}"), fn.ins(f"load i64, ptr {b}")
    return fn.ins(f"add i64 {x}, {y}")


@pytest.mark.parametrize("dt", DTYPES)
@pytest.mark.parametrize("lanes", [0, 8, 32])
def test_masked_and_indexed_access(dt, lanes):
    """Masked lanes keep the fill and touch no memory; gather and scatter address by element."""
    def indexed(o, i, m, x):
        return o.gather(dt, "%table", i, m, x)

    module = Module()
    names = ("table", "index", "mask", "fill", "gathered", "scattered", "loaded", "stored")
    fn = module.function("entry", "void", [("ptr", p) for p in names])
    o = Ops(fn)
    i, m, x = o.load("index", "%index", lanes), o.load("bool", "%mask", lanes), o.load(dt, "%fill", lanes)
    o.store(indexed(o, i, m, x), "%gathered")
    o.scatter(x, "%scattered", i, m)
    o.store(o.masked_load(dt, "%table", m, x), "%loaded")
    o.masked_store(x, "%stored", m)
    fn.ret()
    text = module.text()
    symbol = "t" + hashlib.sha256(text.encode()).hexdigest()[:24]
    code = cpu.compile_text(text.replace("@entry(", f"@{symbol}("), symbol)
    n = lanes or 1
    rng = np.random.default_rng(lanes)
    table, fill = samples(dt, 64, 1), samples(dt, 64, 2)[:n].copy()
    index, mask = rng.permutation(64)[:n].astype(np.int64), rng.integers(0, 2, n).astype(bool)
    index = np.where(mask, index, 1 << 50)                        # an address that must not be touched
    outs = [np.zeros(64, MEMORY[dt]) for _ in range(4)]
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 8)(code.address)(*(a.ctypes.data for a in (table, index, mask, fill, *outs)))
    gathered, scattered, loaded, stored = outs
    raw = lambda a: a.view(f"u{a.itemsize}")  # noqa: E731
    safe = np.where(mask, index, 0)
    assert _agree(gathered[:n], np.where(mask, table[safe], fill), dt)
    want = np.zeros(64, MEMORY[dt])
    want[index[mask]] = fill[mask]
    assert _agree(scattered, want, dt)
    assert _agree(loaded[:n], np.where(mask, table[:n], fill), dt)
    assert _agree(stored[:n], np.where(mask, fill, np.zeros(n, MEMORY[dt])), dt)
    assert not raw(stored[n:]).any()


def _agree(a, b, dt):
    from .harness import same
    return same(np.ascontiguousarray(a), np.ascontiguousarray(b.astype(MEMORY[dt])), dt).all()


def test_lanes():
    bench = Bench()
    bench.add("reverse", lambda o, x: o.shuffle(x, range(7, -1, -1)), ["f32"], 8)
    bench.add("halves", lambda o, x: o.concat(o.slice(x, 4, 4), o.slice(x, 0, 4)), ["i32"], 8)
    bench.add("first", lambda o, x: o.splat(o.extract(x, 0), 8), ["f64"], 8)
    bench.add("insert", lambda o, x: o.insert(x, o.const(5.0, "bf16"), 2), ["bf16"], 8)
    bench.add("any", lambda o, x: o.splat(o.any(x), 8), ["bool"], 8)
    bench.add("all", lambda o, x: o.splat(o.all(x), 8), ["bool"], 8)
    bench.add("iota", lambda o, x: o.add(o.iota(8), x), ["index"], 8)
    bench.add("table", lambda o, x: o.table((1.5, 2.5, -3.0, 4.0), "f16", o.and_(x, o.const(3, "u8"))), ["u8"], 8)
    bench.finish()
    f = np.arange(16, dtype=np.float32)
    assert (bench.run("reverse", f) == f.reshape(2, 8)[:, ::-1].ravel()).all()
    i = np.arange(16, dtype=np.int32)
    assert (bench.run("halves", i) == np.roll(i.reshape(2, 8), 4, axis=1).ravel()).all()
    assert (bench.run("first", f.astype(np.float64)) == np.repeat([0.0, 8.0], 8)).all()
    assert (bench.run("insert", np.zeros(8, np.uint16)) == [0, 0, 0x40A0, 0, 0, 0, 0, 0]).all()
    m = np.zeros(24, bool)
    m[9], m[16:] = True, True
    assert (bench.run("any", m) == np.repeat([False, True, True], 8)).all()
    assert (bench.run("all", m) == np.repeat([False, False, True], 8)).all()
    assert (bench.run("iota", np.full(8, 3)) == np.arange(3, 11)).all()
    want = np.array([1.5, 2.5, -3.0, 4.0], np.float16)[np.arange(8) & 3]
    assert (bench.run("table", np.arange(8, dtype=np.uint8)).view(np.float16) == want).all()


def test_index_arithmetic_folds_literals():
    o = Ops(Module().function("f", "void"))
    two, x = o.const(2, "index"), Val("index", "%x")
    assert o.mul(two, o.add(two, two)).text == "8"
    assert o.add(x, o.const(0, "index")) is x and o.mul(o.const(1, "index"), x) is x
    assert o.add(o.const((1 << 63) - 1, "index"), o.const(1, "index")).text == str(-(1 << 63))
    assert o.fn.size == 0


def test_object_code_runs_in_another_process(tmp_path):
    import subprocess
    import sys
    text = "define i32 @tinyobject(ptr %frame) { %r = load i32, ptr %frame  ret i32 %r }\n"
    code = cpu.compile_text(text, "tinyobject")
    assert "tinyobject" in code.asm() and "define" in code.llvm()
    (tmp_path / "object").write_bytes(code.object_code())
    script = ("import ctypes, sys; from intent_numba.targets import cpu\n"
              "code = cpu.load_object(open(sys.argv[1], 'rb').read(), 'tinyobject')\n"
              "print(ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(code.address)(ctypes.addressof(ctypes.c_int32(41))))")
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "object")], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "41"


def test_refused_text_is_our_error(monkeypatch):
    monkeypatch.setenv("INTENT_DEBUG", "1")
    with pytest.raises(RuntimeError, match="(?s)internal error.*add i32 1.0"):
        cpu.compile_text("define i32 @broken() {\n  %r = add i32 1.0, 2\n  ret i32 %r\n}\n", "broken")
    with pytest.raises(RuntimeError, match="two programs"):
        cpu.compile_text("define i32 @once() { ret i32 1 }\n", "once")
        cpu.compile_text("define i32 @once() { ret i32 2 }\n", "once")


def test_big_programs_are_functions_of_the_module():
    """A program too big to be copied is emitted once and called; a small one leaves no function behind."""
    from intent_numba import math
    if math.program("erf", "f64") is None:
        pytest.skip("no erf yet")
    module = Module()
    fn = module.function("f", "void")
    o = Ops(fn)
    x = Val("f64", "%x", 8)
    for _ in range(3):
        o.elementwise("erf", (x,), "f64")
        o.elementwise("rsqrt", (x,), "f64")
    assert [f.name for f in module.functions] == ["f", "math.erf.f64.8"]
