"""Random numbers as KIR: one elementwise ``random_bits``, and the exact conversion to [0, 1). Spec: 000 section 12."""
from __future__ import annotations

from ..kir import Scalar, Tensor, Value
from .build_pointwise import conversion, same_dtype
from .emitter import Emitter
from .shapes import broadcast_shapes, is_tensor, place, shape_of
from .values import Lit


def random_bits(e: Emitter, seed, counter, what: str) -> Value:
    """The u32 words of u64 (or index) counters under u64 seeds."""
    args = [conversion(e, "cast", x, "u64") for x in (seed, counter)]
    tensor = any(map(is_tensor, args))
    shape = broadcast_shapes(e, [shape_of(a) for a in args], what) if tensor else ()
    return e.one("random_bits", [place(e, a, "u64", shape, tensor) for a in args], Tensor("u32", shape) if tensor else Scalar("u32"))


def bits(fb, result, seed, counter):
    return random_bits(fb.e, seed, counter, "I.random.bits")


def uniform(fb, result, seed, counter, dtype):
    """f32(bits >> 8) * 2**-24."""
    e = fb.e
    upper = same_dtype(e, "shr", (random_bits(e, seed, counter, "I.random.uniform"), Lit(8)))
    return e.value(same_dtype(e, "mul", (conversion(e, "cast", upper, "f32"), Lit(2.0 ** -24))))


BUILD = {"random.bits": bits, "random.uniform": uniform}
