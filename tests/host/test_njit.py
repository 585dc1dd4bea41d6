"""Kernels and artifacts inside @numba.njit code."""
from __future__ import annotations

import subprocess
import sys
import textwrap

import numba
import numpy as np
import pytest

import intent_numba as intent

from . import kernels
from .kernels import add_one, modes, row_sums, scale, shift

ROOT = __file__.rsplit("/tests/", 1)[0]


@pytest.fixture
def x(rng):
    return rng.standard_normal((6, 5)).astype("f4")


@numba.njit
def chain(x, y, s):
    t = np.empty_like(y)
    scale(x, s, t)
    scale(t, s=np.float32(0.5), y=y)
    return y.sum()


def test_calls_with_arrays_and_scalars(x):
    y = np.zeros_like(x)
    assert chain(x, y, 4.0) == pytest.approx(float((x * 2).sum()), rel=1e-5)
    assert np.array_equal(y, x * 2)
    chain(x, y, 4)
    assert np.array_equal(y, x * 2)
    chain(x[::-1], y[:, ::-1], np.float32(4))
    assert np.array_equal(y[:, ::-1], x[::-1] * 2)


def test_wrong_types_are_typing_errors_that_name_the_parameter(x):
    for args in [(x.astype("f8"), np.zeros_like(x), 1.0), (x[0], np.zeros(5, "f4"), 1.0), (x, np.zeros_like(x), "s")]:
        with pytest.raises(numba.TypingError, match="scale: parameter '[xs]': expected"):
            chain(*args)
    readonly = x.copy()
    readonly.flags.writeable = False

    @numba.njit
    def onto(x, y):
        scale(x, 1.0, y)
    onto(readonly, np.zeros_like(x))
    with pytest.raises(numba.TypingError, match="'y'.*read-only"):
        onto(x, readonly)

    @numba.njit
    def short(x):
        scale(x)
    with pytest.raises(numba.TypingError, match="nothing"):
        short(x)


def test_wrong_values_are_call_errors(x):
    @numba.njit
    def run(x, s, y):
        scale(x, s, y)
    y = np.full_like(x, 7)
    for args in [(x, 1.0, y[:3]), (x, 1e300, y), (x, 2**24 + 1, y), (x, 1.0, np.lib.stride_tricks.as_strided(y, y.shape, (0, 4)))]:
        with pytest.raises(intent.CallError, match="scale: parameter '[sy]': expected"):
            run(*args)
    assert (y == 7).all()


def test_constexprs_are_literals_or_fixed(x):
    tripled = intent.compile(modes, constexprs={"NEGATE": True, "mode": kernels.Mode.TRIPLE})

    @numba.njit
    def both(x, y, z):
        modes(x, y, False, times=2)
        tripled(x, z)
    y, z = np.zeros(5, "f4"), np.zeros(5, "f4")
    both(x[0], y, z)
    assert np.array_equal(y, x[0] * 4) and np.array_equal(z, -x[0] * 3)

    @numba.njit
    def dynamic(x, y, flag):
        modes(x, y, flag)
    with pytest.raises(numba.TypingError, match="Constexpr"):
        dynamic(x[0], y, True)


def test_overlap_has_the_language_s_answer():
    @numba.njit
    def move(a, b):
        shift(a, b)
    base = np.arange(100, dtype="f4")
    move(base[:-1], base[1:])
    assert base.tolist() == [0, *range(99)]
    base = np.arange(100, dtype="f4")
    move(base[1:], base[:-1])
    assert base.tolist() == [*range(1, 100), 99]


def test_a_kernel_that_does_not_compile_says_why():
    @intent.kernel
    def broken(x: kernels.I.InOut[kernels.I.f32, ("N",)]):
        x[:] = x[:] + nothing_such

    @numba.njit
    def run(x):
        broken(x)
    with pytest.raises(numba.TypingError, match="nothing_such"):
        run(np.zeros(3, "f4"))


def test_views_that_must_not_overlap():
    @numba.njit
    def run(a, b, c):
        kernels.constrained(a, b, c)
    block = np.zeros((3, 8), "f4")
    run(block[:, :4], block[:, 4:], np.zeros((3, 8), "f4")[:, :4])
    with pytest.raises(intent.CallError, match="'c': expected memory of its own"):
        run(np.zeros((3, 4), "f4"), block[:, :4], block[:, 4:])
    with pytest.raises(intent.CallError, match="stride 1 on axis 1"):
        run(block[:, ::2], block[:, :4], np.zeros((3, 8), "f4")[:, :4])


def test_kernels_as_arguments(x):
    @numba.njit
    def apply(kernel, x):
        kernel(x)
    a = np.zeros(5, "f4")
    apply(add_one, a)
    apply(intent.compile(add_one), a)
    assert (a == 2).all()


def test_inside_prange(x):
    @numba.njit(parallel=True)
    def each(x, y):
        for i in numba.prange(x.shape[0]):
            scale(x[i], 2.0, y[i])
    block = np.random.default_rng(0).standard_normal((16, 40, 50)).astype("f4")
    out = np.zeros_like(block)
    each(block, out)
    assert np.array_equal(out, block * 2)


def test_same_bits_as_from_python(rng):
    block = rng.standard_normal((300, 1000)).astype("f4")

    @numba.njit
    def sums(x, y):
        row_sums(x, y)
    y = np.zeros(300, "f4")
    sums(block, y)
    assert np.array_equal(y.view("u4"), row_sums.run(block).view("u4"))


def test_a_cached_caller_runs_in_a_fresh_process(tmp_path, own_cache):
    (tmp_path / "caller.py").write_text(textwrap.dedent("""
        import numba, numpy as np
        from tests.host.kernels import row_sums

        @numba.njit(cache=True)
        def sums(x, y):
            row_sums(x, y)

        x, y = np.ones((2000, 3000), "f4"), np.zeros(2000, "f4")
        sums(x, y)
        assert (y == 3000).all()
        print(sum(sums.stats.cache_hits.values()))
    """))
    run = lambda: subprocess.run([sys.executable, str(tmp_path / "caller.py")], capture_output=True, text=True, check=True,
                                 env={"PYTHONPATH": ROOT, "PATH": "", "INTENT_CACHE_DIR": str(own_cache)}).stdout.strip()
    assert [run(), run()] == ["0", "1"]
