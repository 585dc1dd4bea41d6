"""What the one-line programs of these tests may mention: parameters of every kind, and helpers."""
import numba

import intent_numba as intent
import intent_numba.language as I
from tests.support.sources import kernel_of

SIGNATURE = ('x: I.In[I.f32, ("N",)], h: I.In[I.f16, ("N",)], k: I.In[I.i32, ("N",)], m: I.In[I.f32, ("M", "N")], u: I.In[I.u8, ("N",)], '
             'y: I.Out[I.f32, ("N",)], z: I.InOut[I.f32, ("N",)], q: I.InOut[I.i32, ("N",)], n: I.i32, j: I.index, s: I.f32, b: I.bool')


class Mode(I.Enum):
    A = 0
    B = 1


class Other(I.Enum):
    A = 0
    B = 1


@intent.fn
def total(v):
    return I.reduce.sum(v, axis=0)


@intent.fn
def same(v):
    return v


@intent.fn
def times(a, b):
    return a * b


@intent.fn
def plus(a, b):
    return a + b


@intent.fn
def draws(v):
    return I.random.uniform(0, 0) + v


@intent.fn
def total_and_draw(v):
    return I.reduce.sum(v, axis=0) + I.random.uniform(0, 0)


@intent.fn
def plus_and_draw(a, b):
    return a + b + I.random.uniform(0, 0)


@intent.fn
def prefix(v, state):
    return I.cumsum(v, axis=0) + state


@intent.fn
def prefix_and_draw(v, state):
    return I.cumsum(v, axis=0) + state + I.random.uniform(0, 0)


@intent.fn
def recursive(v):
    return recursive(v)


@intent.fn
def make_buffer():
    return I.buffer((4,), I.f32, init=0.0)


@intent.fn
def fill_buffer(t):
    t[0] = 1.0


@numba.njit
def scalar_njit(a):
    return a + 1


WORLD = {getattr(f, "__name__", None): f for f in (Mode, Other, total, same, times, plus, draws, total_and_draw, plus_and_draw, prefix,
                                                   prefix_and_draw, recursive, make_buffer, fill_buffer, scalar_njit)} | {"intent": intent}


def source(body: str, signature: str, policy: str = "strict", **names):
    """The kernel with this body, which may mention ``names`` too."""
    return intent.kernel(policy=policy)(kernel_of(signature, body, {**WORLD, **names})[0])
