"""The same bits for every tile size, block size, cost limit and number of threads: none of them is a number of the language.

The constants by which the CPU mapper cuts work up are set to extremes, so that small inputs are cut into many pieces or none, and work
of any size goes to threads. The reference knows none of these constants.
"""
from functools import cache
from importlib import import_module

import ml_dtypes
import numba
import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from intent_numba.runtime import fingerprint
from tests.language.test_atomics import of_kind
from tests.language.test_quantized import one_dot, quantize
from tests.language.test_region import flash_attention, folded_sum, gated_delta, linear_attention, mean_variance, state_space
from tests.language.test_scaled import mixed_gemm
from tests.language.test_scatter import dear
from tests.language.test_sparse import gemm_2_4, places
from tests.policies.test_checked_kernels import floats
from tests.programs.test_products import attention, contract_case, gemm, vectors
from tests.programs.test_reductions import centred, layer_norm, nested_axes, segment_sums, softmax
from tests.programs.test_scans import affine_scan, compaction, prefix, welford
from tests.support import BACKEND, assert_same_bits, execute, integers, interpret, normal, out

KNOBS = {  # module.name: extremes
    "targets.map_vector.launch.CHUNKS_PER_THREAD": (1, 40), "targets.map_vector.panel.ROWS_BLOCK": (6, 192),
    "targets.map_vector.panel.COLUMNS_BLOCK": (32, 512), "targets.map_vector.panel.FEW_ROWS": (6, 96),
    "targets.map_vector.pointwise.CROSSING": (8, 128), "targets.map_vector.grouped.GROUP": (1, 64),
    "targets.map_vector.grouped.BUNDLE": (1, 8), "targets.map_vector.tiles.DEPTH": (64, 1024),
    "targets.map_vector.stage.SMALL_SCRATCH": (0, 1 << 20), "targets.mapping.plan.SHORT": (0, 1000),
    "targets.mapping.memory.STREAM_BYTES": (0, 1 << 40), "targets.mapping.control.LIGHT": (0, 1000),
    "targets.mapping.turning.STEPS": (8, 64), "targets.map_vector.products.ROWS_BLOCK": (6, 96),
    "targets.map_vector.products.FEW": (0, 1 << 20),
    "lowering.analysis.DEAR": (1, 1000), "lowering.analysis.SELECT_COST": (0, 1000), "targets.llvm.ops.INLINE_LIMIT": (0, 10_000),
    "targets.llvm.ops.CALL_BYTES": (32, 256)}
SETTINGS = {"small": {k: v[0] for k, v in KNOBS.items()}, "large": {k: v[1] for k, v in KNOBS.items()}, "as it is": {}}
EACH = {f"{k.split('.')[-1]}={v}": {k: v} for k, both in KNOBS.items() for v in both}


@cache
def accumulated(d):
    """Every structured operation in one accumulator dtype."""
    @intent.kernel
    def accumulated(x: I.In[d, ("M", "N")], w: I.In[d, ("N", "K")], rows: I.Out[d, ("M",)], columns: I.Out[d, ("N",)], whole: I.Out[d, ()],
                    product: I.Out[d, ("M",)], mixed: I.Out[d, ("M",)], along: I.Out[d, ("M", "N")], down: I.Out[d, ("M", "N")],
                    p: I.Out[d, ("M", "K")], mv: I.Out[d, ("N",)], dot: I.Out[d, ()], back: I.Out[d, ("M", "N")]):
        v = x[:, :]
        rows[:] = I.reduce.sum(v, axis=1, acc_dtype=d)
        columns[:] = I.reduce.sum(v, axis=0, acc_dtype=d)
        whole[()] = I.reduce.sum(v, axis=(0, 1), acc_dtype=d)
        product[:] = I.reduce.prod(v * 0.5 + 1.0, axis=1, acc_dtype=d)
        mixed[:] = I.reduce(v, axis=1, identity=0.0, combine=halves)
        along[:, :] = I.cumsum(v, axis=1, acc_dtype=d)
        down[:, :] = I.cumsum(v, axis=0, reverse=True, inclusive=False, acc_dtype=d)
        back[:, :] = I.scan(v, axis=1, identity=0.0, combine=halves)
        p[:, :] = I.matmul(v, w[:, :], acc_dtype=d)
        mv[:] = I.vecmat(v[:, 0], v, acc_dtype=d)
        dot[()] = I.dot(v[0, :], v[1, :], acc_dtype=d)[()]
    return accumulated


@intent.fn
def halves(a, b):
    """Not associative: the order of the tree shows."""
    return a * 0.75 + b


def accumulations(d):
    def case(rng):
        M, N, K = 37, 229, 35
        f = d.name
        shapes = [(M,), (N,), (), (M,), (M,), (M, N), (M, N), (M, K), (N,), (), (M, N)]
        return accumulated(d), [normal(rng, (M, N), d), normal(rng, (N, K), d), *(out(s, f) for s in shapes)], {}
    return case


def scaled(rng):
    M, G, N = 40, 3, 70
    e4m3 = rng.standard_normal((G, 32, N)).astype(ml_dtypes.float8_e4m3fn)
    return mixed_gemm, [rng.integers(0, 256, (M, G, 16), "u1"), rng.integers(120, 134, (M, G), "u1"), e4m3,
                        rng.integers(120, 134, (N, G), "u1"), out((M, N), "f32")], {}


def sparse(rng):
    M, K, N = 41, 128, 67
    return gemm_2_4, [normal(rng, (M, K // 2)), *places(rng, (M, K // 4)), normal(rng, (K, N)), out((M, N), "f32")], {}


def quantized(rng):
    return one_dot, [rng.integers(0, 255, (5, 144), "u1") & 0x3B, quantize(normal(rng, (5, 256))), out((), "f32")], {}


def atomic_sum(which):
    return lambda rng: (of_kind("add", I.f32)[which], [rng.integers(0, 3, 700), normal(rng, 700), np.zeros(3, np.float32)], {})


def checked_chains(rng):
    M, K = 5, 260
    shapes = [(M,), (M,), (M,), (), (M, K), (M, K)]
    return floats, [normal(rng, (M, K)), normal(rng, (K, M)), integers(rng, (M, K), "i32", -99, 99), *(out(s, "f32") for s in shapes),
                    out(M, "i32"), *[out((M, M), "f32")] * 3], {}


CASES = {
    **{f"accumulated in {d.name}": accumulations(d) for d in (I.f16, I.bf16, I.f32, I.f64)},
    "softmax by columns": lambda rng: (softmax(I.bf16, 0), [normal(rng, (130, 71), "bf16"), out((130, 71), "bf16")], {}),
    "layer norm": lambda rng: (layer_norm, [normal(rng, (33, 300)), normal(rng, 300), normal(rng, 300), np.float32(1e-3),
                                            out((33, 300), "f32"), out(33, "f32")], {}),
    "means": lambda rng: (centred, [rng.standard_normal((67, 130)), out((67, 130), "f64")], {}),
    "axes": lambda rng: (nested_axes, [normal(rng, (9, 40, 70)), out(40, "f32"), out(9, "f32"), out(70, "f32")], {}),
    "segments": lambda rng: (segment_sums, [normal(rng, 300), np.array([0, 5, 5, 80, 299], np.int32), out(4, "f32"), out(4, "f32")], {}),
    "scan": lambda rng: (prefix(I.f32, I.f32, 0, False, True), [normal(rng, (130, 70)), out((130, 70), "f32"), out((130, 70), "f32")], {}),
    "affine scan": lambda rng: (affine_scan, [normal(rng, 9000), normal(rng, 9000), np.float32(0.5), out(9000, "f32")], {}),
    "compaction": lambda rng: (compaction, [normal(rng, 5001), out(5001, "f32"), out(1, "i32")], {}),
    "welford": lambda rng: (welford, [normal(rng, (33, 171)), out(33, "f32"), out(33, "f32")], {}),
    "long chains": lambda rng: (gemm(I.f32, I.f32, True), [normal(rng, (2100, 50)), normal(rng, (2100, 45)), out((50, 45), "f32")], {}),
    "integers": lambda rng: (gemm(I.i8, I.i32), [integers(rng, (130, 90), "i8"), integers(rng, (90, 140), "i8"),
                                                 out((130, 140), "i32")], {}),
    "vectors": lambda rng: (vectors, [normal(rng, (75, 130)), normal(rng, 130), normal(rng, 75),
                                      *(out(s, "f32") for s in (75, 130, 130, (), (75, 130)))], {}),
    "contract": lambda rng: (contract_case, [normal(rng, (9, 20, 33)), normal(rng, (20, 33, 40)), out((9, 20, 40), "f32"),
                                             out((9, 40), "f32")], {}),
    "attention": lambda rng: (attention, [normal(rng, (2, 70, 16)), normal(rng, (2, 70, 16)), normal(rng, (2, 70, 16)),
                                          out((2, 70, 16), "f32"), np.float32(0.25)], {"CAUSAL": True}),
    "fold": lambda rng: (folded_sum, [normal(rng, 2100), out((), "f32")], {}),
    "fold of records": lambda rng: (mean_variance, [normal(rng, (300, 40)), out(40, "f32"), out(40, "f32")], {}),
    "flash attention": lambda rng: (flash_attention, [normal(rng, (2, 70, 16)), normal(rng, (2, 150, 16)), normal(rng, (2, 150, 16)),
                                                      rng.random(150) < 0.9, np.float32(0.25), out((2, 70, 16), "f32")], {"CAUSAL": False}),
    "linear attention": lambda rng: (linear_attention, [normal(rng, (2, 150, 16), scale=0.1) for _ in range(3)] + [
        normal(rng, (2, 16, 16)), out((2, 150, 16), "f32"), out((2, 16, 16), "f32")], {}),
    "state space": lambda rng: (state_space, [normal(rng, (200, 33)), normal(rng, (200, 20)), normal(rng, (200, 20)), rng.random(200, "f4"),
                                              out((200, 33), "f32"), out((20, 33), "f32")], {}),
    "gated delta": lambda rng: (gated_delta, [normal(rng, (130, 16), scale=0.2) for _ in range(3)] + [
        rng.random(130, "f4"), rng.random(130, "f4"), out((130, 16), "f32"), out((16, 16), "f32")], {}),
    "scatter": lambda rng: (dear, [rng.integers(0, 4, (40, 129)), normal(rng, (40, 129)), np.zeros(4, np.float32),
                                   np.zeros((40, 4), np.float32)], {}),
    "atomics by points": atomic_sum(0), "atomics by lanes": atomic_sum(1), "checked chains": checked_chains,
    "scaled": scaled, "sparse": sparse, "quantized": quantized}


@cache
def expected(name):
    kernel, args, constexprs = CASES[name](np.random.default_rng(len(name)))
    with np.errstate(all="ignore"):
        return kernel, args, constexprs, interpret(kernel, args, constexprs)


def check_setting(name, setting, monkeypatch):
    kernel, args, constexprs, want = expected(name)
    monkeypatch.setattr("intent_numba.targets.map_vector.launch.SERIAL_WORK", 0)
    for knob, value in setting.items():
        module, attribute = f"intent_numba.{knob}".rsplit(".", 1)
        assert getattr(import_module(module), attribute) != value
        monkeypatch.setattr(f"{module}.{attribute}", value)
    monkeypatch.setattr(fingerprint, "kernel_key", lambda *_: None)         # this code is nobody else's
    again = intent.kernel(kernel.pyfunc, policy=kernel.policy)
    before = numba.get_num_threads()
    try:
        for threads, layout in {(1, "contiguous"), (before, "contiguous"), (before, "mixed")}:
            numba.set_num_threads(threads)
            for i, (got, w) in enumerate(zip(execute(again, args, constexprs, layout), want)):
                assert_same_bits(got, w, f"{name}, output {i}, {threads} threads, {layout}")
    finally:
        numba.set_num_threads(before)


@pytest.mark.skipif(BACKEND == "reference", reason="compiled code only")
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", CASES)
def test_same_bits(name, setting, monkeypatch):
    check_setting(name, SETTINGS[setting], monkeypatch)


@pytest.mark.nightly
@pytest.mark.parametrize("setting", EACH)
@pytest.mark.parametrize("name", CASES)
def test_same_bits_for_each_limit(name, setting, monkeypatch):
    check_setting(name, EACH[setting], monkeypatch)
