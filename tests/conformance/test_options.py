"""What do compile options change (000 section 5.6, decisions 32 and 45)? No bit on a CPU."""
import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from tests.language.test_region import flash_attention
from tests.support import assert_same_bits, normal

from .test_numerics import modes

NUMERICS = ("source", "relaxed_normalization", "bitwise")


@intent.kernel
def normalized(x: I.In[I.f32, ("M", "N")], v: I.In[I.f32, ("N", "D")], at: I.In[I.i64, ("M",)], y: I.Out[I.f32, ("M", "D")],
               z: I.InOut[I.f32, (4,)]):
    """An online softmax by hand, its weights in bf16, and an update that meets addresses."""
    s = x[:, :]
    top = I.reduce.max(s, axis=1)
    p = I.exp(s - top[:, None])
    mass = I.reduce.sum(p, axis=1)
    y[:, :] = I.matmul(I.cast(I.cast(p, I.bf16), I.f32), v[:, :], acc_dtype=I.f32) / mass[:, None]
    I.scatter_reduce(z, index=at[:], value=mass, combine=I.add)


@pytest.mark.parametrize("kernel, options", [(k, o) for k in ("normalized", "flash", "modes") for o in NUMERICS[1:]])
def test_numerics_never_change_the_bits_here(kernel, options, rng):
    if kernel == "normalized":
        arrays, constants, kernel = [normal(rng, (9, 150)), normal(rng, (150, 6)), rng.integers(0, 4, 9), np.zeros((9, 6), "f4"),
                                     np.zeros(4, "f4")], {}, normalized
    elif kernel == "flash":
        arrays = [normal(rng, (2, 9, 8)), normal(rng, (2, 150, 8)), normal(rng, (2, 150, 8)), np.arange(150) % 5 > 0, np.float32(0.5),
                  np.zeros((2, 9, 8), "f4")]
        constants, kernel = {"CAUSAL": True}, flash_attention
    else:
        x = normal(rng, 70, scale=100)
        arrays, constants, kernel = [x, x[::-1].copy(), *(np.zeros((n, 70), "f4") for n in (3, 3, 2)), np.zeros(70, "f4")], {}, modes
    results = []
    for numerics, online in (("source", True), (options, True), (options, False)):
        own = [np.array(a) if isinstance(a, np.ndarray) else a for a in arrays]
        intent.compile(kernel, constexprs=constants, options=intent.CompileOptions(numerics=numerics, online_reduction=online))(*own)
        results.append(own)
    for own in results[1:]:
        for got, want in zip(own, results[0]):
            if isinstance(want, np.ndarray):
                assert_same_bits(got, want)


@pytest.mark.parametrize("wrong", [{"numerics": "fast"}, {"numerics": None}, {"online_reduction": 1}, {"checks": "yes"}])
def test_wrong_options_are_named(wrong):
    (name, value), = wrong.items()
    with pytest.raises(intent.IntentError) as caught:
        intent.CompileOptions(**wrong)
    assert str(caught.value).startswith(f"{name} is ") and repr(value) in str(caught.value)
