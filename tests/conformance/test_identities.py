"""The identity of a generic reduction is the author's, whatever the combine (002 section 7, SUPPLEMENT 12)."""
from __future__ import annotations

import numpy as np
import pytest

from intent_numba.kir import walk
from tests.support import check, kir_of, out

from .world import source

@pytest.mark.parametrize("combine, dt, identity, ufunc", [("I.maximum", "f32", 0.0, np.maximum), ("I.minimum", "i16", 99, np.minimum),
                                                          ("I.add", "f32", -0.0, np.add),
                                                          ("I.multiply", "i32", 1, np.multiply), ("I.maximum", "u8", 3,
                                                                                                  np.maximum), ("I.add", "i64", 0, np.add)])
@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (4, 70)])
def test_nothing_gives_the_authors_identity(combine, dt, identity, ufunc, shape, rng):
    kernel = source(f"""
v = x[:, :]
y[()] = I.reduce(v, axis=(0, 1), identity={identity}, combine={combine})
rows[:] = I.reduce(v, axis=1, identity=I.full((v.shape[0],), {identity}, I.{dt}), combine={combine})
z[:, :] = I.scan(v, axis=1, identity={identity}, combine={combine}, inclusive=False)
w[:, :] = I.scan(v, axis=0, identity={identity}, combine={combine}, inclusive=False, reverse=True)""",
                    f'x: I.In[I.{dt}, ("M", "N")], y: I.Out[I.{dt}, ()], rows: I.Out[I.{dt}, ("M",)], z: I.Out[I.{dt}, ("M", "N")], '
                    f'w: I.Out[I.{dt}, ("M", "N")]')
    x = rng.integers(10, 14, shape).astype(f"{dt[0]}{int(dt[1:]) // 8}")

    def oracle(x):
        start = np.array(identity, x.dtype)
        z = np.concatenate([np.full((shape[0], 1), start), ufunc.accumulate(x, axis=1, dtype=x.dtype)], axis=1)[:, :-1] if x.size else x
        w = np.concatenate([ufunc.accumulate(x[::-1], axis=0, dtype=x.dtype)[::-1], np.full((1, shape[1]), start)])[1:] if x.size else x
        rows = ufunc.reduce(x, axis=1, dtype=x.dtype) if shape[1] else np.full(shape[0], start)
        return ufunc.reduce(x, axis=None, dtype=x.dtype) if x.size else start, rows, z, w
    y, *_ = check(kernel, [x, out((), dt), out(shape[0], dt), out(shape, dt), out(shape, dt)], oracle, layouts=("contiguous", "mixed"))
    if not x.size:
        assert np.signbit(y) == np.signbit(np.array(identity, x.dtype))


def test_a_neutral_identity_is_the_builtin():
    kernel = source("y[0] = I.reduce(x[:], axis=0, identity=-I.inf, combine=I.maximum) + I.reduce(x[:], axis=0, identity=0, combine=I.add)",
                    'x: I.In[I.f32, ("N",)], y: I.Out[I.f32, (1,)]')
    assert not [op for op in walk(kir_of(kernel).body) if op.kind == "select"]
