"""The kernels and peers of the benchmarks agree on small arrays; nothing is timed."""
import math

import ml_dtypes
import numpy as np
import pytest
from benchmarks import kernels, peers
from benchmarks.cases import CASES
from benchmarks.harness import Case, Result, run, table


@pytest.fixture
def x(rng):
    return rng.standard_normal((33, 64), np.float32)


@pytest.mark.parametrize("name", ["softmax", "bitonic_sort"])
def test_row_kernels_agree_with_their_peers(name, x):
    ours, theirs = np.empty_like(x), np.empty_like(x)
    getattr(kernels, name)(x, ours)
    getattr(peers, name)(x, theirs)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_swiglu_and_layer_norm_agree_with_their_peers(x):
    ours, theirs = np.empty_like(x), np.empty_like(x)
    kernels.swiglu(x, x, ours)
    peers.swiglu(x, x, theirs)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    kernels.layer_norm(x, x[0], x[1], ours)
    peers.layer_norm(x, x[0], x[1], theirs)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_sums(x):
    np.testing.assert_allclose(kernels.row_sums.run(x), x.sum(1), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(kernels.column_sums.run(x), x.sum(0), rtol=1e-4, atol=1e-5)


def test_contractions(x):
    b = np.ascontiguousarray(x.T)
    np.testing.assert_allclose(kernels.gemm.run(x, b), x @ b, rtol=1e-4, atol=1e-4)
    narrow, narrow_b = x.astype(ml_dtypes.bfloat16), b.astype(ml_dtypes.bfloat16)
    wide = narrow.astype(np.float32) @ narrow_b.astype(np.float32)
    np.testing.assert_allclose(kernels.gemm_bf16.run(narrow, narrow_b), wide, rtol=1e-4, atol=1e-4)


def test_attention(rng):
    q, k, v = rng.standard_normal((3, 2, 40, 16), np.float32)
    expected, scores = np.empty_like(q), np.empty((2, 40, 40), np.float32)
    peers.attention(q, k, v, scores, expected)
    np.testing.assert_allclose(kernels.attention.run(q, k, v), expected, rtol=1e-4, atol=1e-5)
    assert math.isclose(float(scores[0, 0].sum()), 1.0, rel_tol=1e-5)


def test_a_wrong_result_is_not_timed():
    def wrong():
        raise AssertionError("wrong result")
    with pytest.raises(AssertionError, match="wrong result"):
        run(Case("wrong", lambda: ({"intent": int, "numpy": int}, wrong), "numpy", 1.0, 1.0, "GB/s"))


def test_results_are_judged_against_their_bars():
    ratio = Result("a", 1.4, "x numpy", 1.5, True, "")
    wait = Result("b", 1.4, "ms", 1.5, False, "")
    report = Result("c", 1.4, "x numpy", None, True, "")
    assert (ratio.passed, wait.passed, report.passed) == (False, True, None)
    assert [line.split()[-1] for line in table([ratio, wait, report]).splitlines()[1:]] == ["FAIL", "pass", "-"]
    assert len({case.name for case in CASES}) == len(CASES)
