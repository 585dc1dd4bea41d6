"""Programs of some size with a place for a helper, and what a violation of the helper's obligations must be reported as.

A *site* is the text of a kernel that applies ``{helper}`` to elements (a, b) of its arrays, amid other work: at a late iteration, in
the points of a parallel loop, in a branch, in the helpers of a region operation. A *plant* is a helper body with one obligation.
"""
from __future__ import annotations

import linecache
from dataclasses import dataclass

import numpy as np

import intent_numba as intent
import intent_numba.language as I
from intent_numba import reference
from intent_numba.frontend import build_kernel
from tests.support import numpy_dtype


@dataclass(frozen=True)
class Plant:
    """``body``: statements over ``a`` and ``b`` (scalars, or tensors of one shape) and the views ``t`` (f32 [5]) and ``n`` (i32 [5]),
    the last of them a return of dtype ``result``. ``clean`` are operands that keep every obligation, ``broken`` some that break the one
    of ``name``, which is reported for the operation at ``mark`` with ``text``."""
    name: str
    body: str
    types: tuple
    result: str
    clean: tuple
    broken: tuple
    operation: str
    mark: str
    text: str
    pure: bool = True
    policy: str = "strict"


@dataclass(frozen=True)
class Site:
    """``at``: the coordinates that the report must have where the element (row, column) is the broken one. ``pure``: what reads or draws
    cannot stand there."""
    source: str
    at: object
    pure: bool = False


M, N = 3, 70
"""Rows and columns of the arrays: the columns are more than one segment of a region operation."""

_HEAD = """
@intent.kernel(policy="{policy}")
def kernel(a: I.In[I.{ta}, ("M", "N")], b: I.In[I.{tb}, ("M", "N")], t: I.In[I.f32, (5,)], n: I.In[I.i32, (5,)],
           y: I.InOut[I.{result}, ("M", "N")], w: I.InOut[I.f32, ("M", "N")]):
    M, N = a.shape
"""

_SUMMARY = """
@intent.fn
def merge(p, q):
    return p ^ q


@intent.fn
def summarize(a, b, which, t, n):
    v = helper(a, b, t, n)
    return I.cast(I.reduce.sum(I.cast(v == v, I.i32), axis=0), I.u32) ^ I.reduce.max(which, axis=0)


"""

SITES = {
    "whole": Site(_HEAD + """
    w[:, :] = I.exp(w[:, :] - I.reduce.max(w[:, :], axis=1)[:, None])
    y[:, :] = helper(a[:, :], b[:, :], t, n)
    w[:, :] = w[:, :] / I.reduce.sum(w[:, :], axis=1)[:, None]
""", lambda i, j: (i, j)),
    "loops": Site(_HEAD + """
    total = I.cast(0.0, I.f32)
    for i in range(M):
        for j in I.domain(0, N):
            total = total + w[i, j]
            y[i, j] = helper(a[i, j], b[i, j], t, n)
        w[i, :] = I.cumsum(w[i, :], axis=0) + total
""", lambda i, j: (i, j)),
    "points": Site(_HEAD + """
    for i, j in I.parallel((I.domain(0, M), I.domain(0, N))):
        if w[i, j] >= 0.0:
            w[i, j] = I.sqrt(w[i, j])
        y[i, j] = helper(a[i, j], b[i, j], t, n)
""", lambda i, j: (i, j)),
    "rows of points": Site(_HEAD + """
    for i in I.parallel(I.domain(0, M)):
        row = helper(a[i, :], b[i, :], t, n)
        s = I.reduce.sum(w[i, :], axis=0)
        for j in I.domain(1, N):
            if j % 2 == 0:
                continue
            w[i, j] = w[i, j - 1] * s
        y[i, :] = row
""", lambda i, j: (i, j)),
    "a late branch of a while": Site(_HEAD + """
    k = I.cast(0, I.index)
    while k < M * N:
        i = k // N
        j = k % N
        if k >= 0 and (i + j > 1 or w[i, j] == w[i, j]):
            if w[0, 0] == w[0, 0]:
                v = helper(a[i, j], b[i, j], t, n)
            else:
                v = y[i, j]
            y[i, j] = v
        k = k + 1
""", lambda i, j: (i * N + j,)),
    "guarded": Site(_HEAD + """
    for i in I.domain(0, M):
        for j in I.parallel(I.domain(0, N)):
            y[i, j] = helper(a[i, j], b[i, j], t, n) if w[i, j] < 100.0 else y[i, j]
""", lambda i, j: (i, j)),
    "summarize": Site(_SUMMARY + _HEAD + """
    for i in I.parallel(I.domain(0, M)):
        c = I.region_fold(source=(a[i, :], b[i, :], I.full((N,), 3, I.u32)), axis=0, summarize=summarize, combine=merge,
                          identity=I.cast(0, I.u32), operands=(t[:], n[:]))
        w[i, 0] = I.cast(c, I.f32)
""", lambda i, j: (i, j), True),
}


def kernel_of(plant: Plant, site: str):
    """(kernel, its source lines) of a helper at a site."""
    text = SITES[site].source.format(ta=plant.types[0], tb=plant.types[1], result=plant.result, policy=plant.policy)
    body = "".join(f"    {line}\n" for line in plant.body.splitlines())
    source = f"@intent.fn\ndef helper(a, b, t, n):\n{body}\n\n" + text
    name = f"<planted {plant.name} {plant.types} {plant.policy} in {site} {hash(plant.body)}>"
    linecache.cache[name] = len(source), None, source.splitlines(True), name
    scope = {"intent": intent, "I": I, "__name__": "planted"}
    exec(compile(source, name, "exec"), scope)
    return scope["kernel"], source.splitlines()


def arguments(plant: Plant, where: tuple | None) -> list:
    """Arrays of clean operands, with broken ones at the places of ``where``."""
    rng = np.random.default_rng(5)
    pick = rng.integers(0, len(plant.clean), (M, N))
    a, b = (np.array([pair[k] for pair in plant.clean], numpy_dtype(dt))[pick] for k, dt in enumerate(plant.types))
    for at in where or ():
        a[at], b[at] = plant.broken
    t, n = rng.standard_normal(5).astype("f4"), np.arange(5, dtype="i4")
    return [a, b, t, n, np.zeros((M, N), numpy_dtype(plant.result)), rng.random((M, N)).astype("f4")]


def rehearsed(kernel):
    return build_kernel(kernel.pyfunc, {}, kernel.policy, obligations=True)


def interpreted(kernel, args) -> list:
    own = [x.copy() for x in args]
    reference.run(build_kernel(kernel.pyfunc, {}, kernel.policy), own)
    return own
