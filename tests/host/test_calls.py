"""Calling kernels and artifacts: every way of passing arguments gives the same result."""
from __future__ import annotations

import pickle
import threading

import ml_dtypes
import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from intent_numba.runtime import threads

from . import kernels


@pytest.fixture
def x(rng):
    return rng.standard_normal((5, 7)).astype("f4")


def test_positional_keyword_and_repeated_calls(x):
    y = np.zeros_like(x)
    for n in range(40):                                          # the native entry takes over on the way
        kernels.scale(x, float(n), y)
        assert np.array_equal(y, x * np.float32(n))
        kernels.scale(s=n + 0.5, y=y, x=x)
        assert np.array_equal(y, x * np.float32(n + 0.5))


def test_run_keeps_its_errors_and_answers_once_the_native_entry_took_over(x):
    for _ in range(40):
        assert np.array_equal(kernels.scale.run(x, 3.0), x * 3)
        assert np.array_equal(kernels.scale.run(s=3, x=x[::2, ::-1]), x[::2, ::-1] * 3)
        assert kernels.fixed.run(np.ones((3, 5), "f4"))[0].tolist() == [1] * 5
    for bad in (x.astype("f8"), x[0], None, [[1.0]], 3):
        with pytest.raises(intent.CallError, match="'x'"):
            kernels.scale.run(bad, 3.0)
    with pytest.raises(intent.CallError, match="'s'"):
        kernels.scale.run(x, "3")


def test_run_allocates_and_returns(x):
    assert np.array_equal(kernels.scale.run(x, 3), x * 3)
    assert np.array_equal(kernels.scale.run(s=3, x=x), x * 3)
    n = np.arange(3, dtype="i4")
    assert kernels.nothing_out.run(n) is None and n.tolist() == [1, 2, 3]
    big, y = kernels.two_outs.run(x[0], extents={"P": 4})
    assert big.shape == (4, 2) and (big == 5).all() and np.array_equal(y, x[0] + 1)
    with pytest.raises(intent.CallError, match="P"):
        kernels.two_outs.run(x[0])
    with pytest.raises(intent.CallError, match="allocated"):
        intent.compile(kernels.scale).run(x, 3, y=np.zeros_like(x))


def test_artifact(x):
    art = intent.compile(kernels.scale, target="cpu", options=intent.CompileOptions(numerics="source"))
    y = np.zeros_like(x)
    for n in range(40):
        assert art(x, float(n), y) is None
        assert np.array_equal(y, x * np.float32(n))
    assert np.array_equal(art.run(x, 2.0), x * 2)
    assert art.extents == {"M": ("x", 0), "N": ("x", 1)} and art.target == "cpu"
    with pytest.raises(intent.CallError):
        art(x, 2.0, y, extra=1)


def test_prepare(x):
    art = intent.compile(kernels.scale)
    y = np.zeros_like(x)
    call = art.prepare(x, 2.0, outputs=(y,))
    with pytest.raises(RuntimeError):
        call.result()
    call.launch()
    assert call.result() is y and np.array_equal(y, x * 2)
    for _ in range(6):
        x += 1
        assert np.array_equal(call.launch().result(), x * 2)
    assert np.array_equal(art.prepare(x, 2.0).launch().result(), x * 2)
    with pytest.raises(intent.CallError, match="outputs"):
        art.prepare(x, 2.0, outputs=())
    with pytest.raises(intent.CallError, match="'y'"):
        art.prepare(x, 2.0, outputs=(y[:2],))


def test_constexprs_specialise(x):
    row, y = x[0], np.zeros(7, "f4")
    for _ in range(20):
        kernels.modes(row, y, True)
        assert np.array_equal(y, -row * 2)
        kernels.modes(row, y, NEGATE=False, mode=kernels.Mode.TRIPLE)
        assert np.array_equal(y, row * 3)
        kernels.modes(row, y, False, times=2)
        assert np.array_equal(y, row * 2 * 2)
    art = intent.compile(kernels.modes, constexprs={"NEGATE": True, "mode": kernels.Mode.TRIPLE})
    art(row, y)
    assert np.array_equal(y, -row * 3) and art.constexprs["NEGATE"] is True
    with pytest.raises(intent.CallError, match="fixed"):
        art(row, y, NEGATE=True)
    with pytest.raises(intent.CallError, match="NEGATE"):
        intent.compile(kernels.modes)
    with pytest.raises(intent.CallError, match="nothing_such"):
        intent.compile(kernels.modes, constexprs={"NEGATE": True, "nothing_such": 1})


def test_native_entries_serve_their_form_only(x):
    @intent.kernel
    def choose(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, ("N",)], N: I.Constexpr[int], f: I.Constexpr[float] = 1.0,
               flag: I.Constexpr[bool] = False):
        y[:] = -x[:] * f if flag else x[:] * f + I.cast(N, I.f32)
    row, y = x[0], np.zeros(7, "f4")
    big = 10**6
    for _ in range(12):
        for args, kwargs, want in [((1,), {}, row + 1), ((big,), {}, row + big), ((0, -0.0), {}, row * -0.0 + 0),
                                   ((0, 0.0), {}, row * 0.0 + 0), ((1,), {"flag": True}, -row), ((), {"N": 2}, row + 2),
                                   ((), {"f": 2.0, "N": 3}, row * 2 + 3), ((), {"N": 3, "f": 2.0}, row * 2 + 3),
                                   ((np.int64(4),), {"flag": np.False_}, row + 4)]:
            choose(row, y, *args, **kwargs)
            assert np.array_equal(y, want.astype("f4")), (args, kwargs)
    if threads.free():
        assert choose._entries.head is not None and choose.__call__ is choose._entries.head
    for args, kwargs in [((True,), {}), ((), {}), ((1,), {"N": 1}), ((1,), {"flags": True}), ((1, 1.0, True, 2), {}), ((), {"N": None}),
                         ((1, "1.0"), {}), ((), {"N": [1]})]:
        with pytest.raises(intent.CallError):
            choose(row, y, *args, **kwargs)
    with pytest.raises(intent.CallError, match="'x'"):
        choose(row.astype("f8"), y, 1)


def test_a_refused_call_writes_nothing(x):
    y = np.full_like(x, 7)
    for bad in [(x.astype("f8"), 1.0, y), (x, None, y), (x, 1.0, y[:, :3]), (x[:2], 1.0, y)]:
        with pytest.raises(intent.CallError):
            kernels.scale(*bad)
    assert (y == 7).all()


def test_in_place_and_overlap():
    add = kernels.add_one
    a = np.arange(100, dtype="f4")
    for _ in range(20):
        add(a)
    assert np.array_equal(a, np.arange(100) + 20)
    for kernel, want in [(kernels.shift, [0, 0, 1, 2, 3, 4]), (kernels.copy_ordered, [0, 0, 0, 0, 0, 0])]:
        base = np.arange(6, dtype="f4")
        kernel(base[:5], base[1:])
        assert base.tolist() == want
        base = np.arange(6, dtype="f4")
        kernel(base[1:], base[:5])
        assert base.tolist() == [1, 2, 3, 4, 5, 5]
        for n in (5, 40, 1000):
            base = np.arange(n, dtype="f4")
            kernel(base, base[::-1])
            want_reversed = np.arange(n, dtype="f4")
            if kernel is kernels.shift:
                assert np.array_equal(base[::-1], want_reversed)


def test_misaligned_arrays(x):
    raw = np.zeros(x.nbytes + 1, "u1")
    y = raw[1:].view("f4").reshape(x.shape)
    kernels.scale(x, 2.0, y)
    assert np.array_equal(y, x * 2)
    again = np.zeros_like(x)
    kernels.scale(y, 0.5, again)
    assert np.array_equal(again, x)


@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (5, 0), (1, 1), (1, 33), (33, 1)])
def test_small_and_empty(shape):
    x = np.ones(shape, "f4")
    assert np.array_equal(kernels.scale.run(x, 2.0), x * 2)


def test_scalars_arrive():
    for values in [(True, -128, 2**63, -5, 1.5, 0.1, 0.2), (False, 127, 1, 2**62, np.float16(-2), np.float32(3), 4)]:
        b, i, u, n, h, f, d = values
        want = [float(b), float(i), float(u), float(n), float(np.float16(h)), float(np.float32(f)) + float(d)]
        for _ in range(20):
            assert kernels.scalars.run(*values, extents=None).tolist() == want


def test_small_floats():
    x = np.array([1, -2.5, 1e5, 0.1], ml_dtypes.bfloat16)
    y = kernels.small_floats.run(x)
    assert y.dtype == ml_dtypes.float8_e5m2 and np.array_equal(y, x.astype("f4").astype(ml_dtypes.float8_e5m2))


def test_interpret_gives_the_same_bits(x):
    art = intent.compile(kernels.scale)
    mine, theirs = np.zeros_like(x), np.zeros_like(x)
    art(x, 1.1, mine)
    art.interpret(x, 1.1, theirs)
    assert np.array_equal(mine.view("u4"), theirs.view("u4"))


def test_inspect():
    art = intent.compile(kernels.scale)
    assert art.inspect("kir").startswith("kernel scale(")
    assert "scale" in art.inspect("task")
    assert "define" in art.inspect("llvm")
    assert ".globl" in art.inspect("asm") or "globl" in art.inspect("asm")
    assert "arg(0" in art.inspect("numba-ir")
    with pytest.raises(ValueError, match="stage"):
        art.inspect("ptx")


def test_pickling(x):
    assert pickle.loads(pickle.dumps(kernels.scale)) is kernels.scale
    for _ in range(20):
        kernels.scale.run(x, 1.0)
        kernels.scale(x, 1.0, np.zeros_like(x))
    assert pickle.loads(pickle.dumps(kernels.scale)) is kernels.scale
    art = intent.compile(kernels.modes, constexprs={"NEGATE": True})
    again = pickle.loads(pickle.dumps(art))
    assert np.array_equal(again.run(x[0]), art.run(x[0]))


def test_policies_and_options():
    with pytest.raises(ValueError, match="policy"):
        intent.kernel(policy="loose")
    with pytest.raises(ValueError, match="numerics"):
        intent.CompileOptions(numerics="fast")
    with pytest.raises(TypeError, match="checks"):
        intent.CompileOptions(checks=1)
    with pytest.raises(intent.UnsupportedError, match="(?i)cuda"):
        intent.compile(kernels.scale, target="cuda:sm_90")
    with pytest.raises(TypeError):
        intent.compile(lambda x: x)
    with pytest.raises(TypeError):
        intent.kernel(3)
    with pytest.raises(TypeError):
        intent.compile(kernels.scale, options={"numerics": "source"})


@pytest.mark.parametrize("numerics", ["source", "bitwise", "relaxed_normalization"])
def test_numerics_modes(numerics, x):
    art = intent.compile(kernels.row_sums, options=intent.CompileOptions(numerics=numerics))
    assert np.array_equal(art.run(x).view("u4"), kernels.row_sums.run(x).view("u4"))


def test_a_kernel_object_looks_like_its_function():
    assert kernels.scale.__name__ == "scale" and kernels.scale.__module__ == kernels.__name__
    assert kernels.scale.__intent_kernel__ is True and isinstance(kernels.scale, intent.Kernel)
    assert "scale" in repr(kernels.scale)


def test_first_calls_from_several_threads(x):
    @intent.kernel
    def fresh(x: I.In[I.f32, ("M", "N")], y: I.Out[I.f32, ("M", "N")]):
        y[:, :] = x[:, :] + 3
    results, start = [], threading.Barrier(6)

    def work():
        start.wait()
        results.append(fresh.run(x))
    workers = [threading.Thread(target=work) for _ in range(6)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert len(results) == 6 and all(np.array_equal(r, x + 3) for r in results)
    assert len(fresh._artifacts) == 1


def test_an_accident_inside_the_compiler_is_an_unsupported_error(monkeypatch):
    @intent.kernel
    def unlucky(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, ("N",)]):
        y[:] = x[:]
    import intent_numba.lowering as lowering

    def broken(*args):
        raise KeyError("internal name")
    monkeypatch.setattr(lowering, "lower", broken)
    monkeypatch.delenv("INTENT_DEBUG", raising=False)
    with pytest.raises(intent.UnsupportedError) as caught:
        intent.compile(unlucky)
    assert "unlucky" in str(caught.value) and caught.value.line and caught.value.__cause__ is None
    monkeypatch.setenv("INTENT_DEBUG", "1")
    with pytest.raises(KeyError):
        intent.compile(unlucky)
