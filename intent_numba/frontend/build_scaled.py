"""Scaled contractions as KIR: decode the carriers, multiply each element by its scale (rounded in the accumulator's dtype), contract.

An element has at most 4 significant bits and a scale is a power of two, so their product is exact in f32 unless it overflows, and
always exact in f64. One rounding to the accumulator is left (decision 28). Spec: 000 section 7, 002 section 11.
"""
from __future__ import annotations

from ..errors import IntentShapeError
from ..kir import Extent, Scalar, Tensor, Value
from ..typing.operations_formats import PER_CARRIER
from .build_structured import contract_values
from .emitter import Emitter
from .shapes import expand, extent_text, place, require_same, retype, transpose

FLOAT = {"f32": ("u32", 23, 127), "f64": ("u64", 52, 1023)}
"""dtype -> carrier of its bits, bits of its fraction, bias of its exponent."""


class Bits:
    """Elementwise arithmetic on one tensor type, with constants of its shape."""

    def __init__(self, e: Emitter, like: Value):
        self.e, self.shape, self.tensor = e, like.type.shape, isinstance(like.type, Tensor)

    def type(self, dt: str):
        return Tensor(dt, self.shape) if self.tensor else Scalar(dt)

    def const(self, value, dt: str) -> Value:
        return place(self.e, self.e.const(value, dt), None, self.shape, self.tensor)

    def op(self, kind: str, *args, dt: str | None = None) -> Value:
        """An operation whose int operands are constants of the others' dtype."""
        own = next(a.type.dt for a in args[::-1] if isinstance(a, Value))
        args = [a if isinstance(a, Value) else self.const(a, own) for a in args]
        return self.e.one(kind, args, self.type(dt or own))

    def cast(self, x: Value, dt: str, kind: str = "cast") -> Value:
        return x if x.type.dt == dt and kind == "cast" else self.e.one(kind, (x,), self.type(dt))

    def choose(self, cond: Value, a, b, dt: str) -> Value:
        a, b = (x if isinstance(x, Value) else self.const(x, dt) for x in (a, b))
        return self.e.one("select", (cond, a, b), self.type(dt))


def decode_scale(e: Emitter, codes: Value, dt: str) -> Value:
    """e8m0: 2^(code - 127); 255 is NaN. In f32 the least scale, 2^-127, is subnormal."""
    t = Bits(e, codes)
    carrier, fraction, bias = FLOAT[dt]
    code = t.cast(codes, carrier)
    if bias == 127:
        bits = t.choose(t.op("eq", code, 0, dt="bool"), 1 << fraction - 1, t.op("shl", code, fraction), carrier)
    else:
        bits = t.op("shl", t.op("add", code, bias - 127), fraction)
    nan = (1 << 8 if bias == 127 else 1 << 11) - 1 << fraction | 1 << fraction - 1
    bits = t.choose(t.op("eq", code, 255, dt="bool"), nan, bits, carrier)
    return t.cast(bits, dt, "bitcast")


def decode_e2m1(e: Emitter, codes: Value, dt: str) -> Value:
    """Four bits in a u8: sign, two bits of exponent, one of fraction: 0, 0.5, 1, 1.5, 2, 3, 4, 6."""
    t = Bits(e, codes)
    carrier, fraction, bias = FLOAT[dt]
    code = t.cast(codes, carrier)
    magnitude = t.op("and", code, 7)
    bits = t.op("add", t.op("shl", magnitude, fraction - 1), bias - 1 << fraction)        # right from 1 on
    small = t.choose(t.op("eq", magnitude, 0, dt="bool"), 0, bias - 1 << fraction, carrier)
    bits = t.choose(t.op("lt", magnitude, 2, dt="bool"), small, bits, carrier)
    sign = t.op("shl", t.op("and", t.op("shr", code, 3), 1), fraction + (8 if bias == 127 else 11))
    return t.cast(t.op("or", bits, sign), dt, "bitcast")


def unpack_nibbles(e: Emitter, carrier: Value, axis: int) -> Value:
    """u8 codes of two elements per carrier along ``axis``, the earlier one from the low nibble."""
    t = Bits(e, carrier)
    pair = e.one("join", (t.op("and", carrier, 15), t.op("shr", carrier, 4)), Tensor("u8", (*carrier.type.shape, Extent.of(2))))
    rank = len(carrier.type.shape)
    pair = transpose(e, pair, (*range(axis + 1), rank, *range(axis + 1, rank)))
    shape = carrier.type.shape
    return retype(e, pair, (*shape[:axis], shape[axis] * 2, *shape[axis + 1:]))


def decode(e: Emitter, carrier: Value, form: str, axis: int, dt: str) -> Value:
    """The logical elements, unscaled and exact."""
    if form == "e2m1":
        return decode_e2m1(e, unpack_nibbles(e, carrier, axis), dt)
    t = Bits(e, carrier)
    if carrier.type.dt == "u8":
        carrier = t.cast(carrier, "f8e4m3fn", "bitcast")
    return t.cast(carrier, dt)


def _operand(e: Emitter, what: str, carrier: Value, scale: Value, form: str, axis: int, group: int, acc: str) -> Value:
    """One operand, decoded and scaled. ``axis`` holds the members of a group; ``scale`` has the carrier's rank already."""
    wanted, have = group // PER_CARRIER[form], carrier.type.shape[axis]
    if have.const != wanted:
        if have.const is None:
            e.fail(IntentShapeError, f"{what}: the extent {extent_text(have)} of axis {axis} is not known to be {wanted}, the {form} "
                                     f"carriers of a group of {group}", f"annotate the extent as {wanted}")
        e.fail(IntentShapeError, f"{what}: axis {axis} has extent {have}, a group of {group} {form} elements has {wanted} carriers")
    dt = "f64" if acc == "f64" else "f32"
    elements = decode(e, carrier, form, axis, dt)
    scales = place(e, decode_scale(e, scale, dt), None, elements.type.shape, True)
    t = Bits(e, elements)
    return t.cast(t.op("mul", elements, scales), acc)


def scaled_values(e: Emitter, what: str, lhs: Value, lhs_scale: Value, rhs: Value, rhs_scale: Value, lhs_format, rhs_format, group: int,
                  acc: str) -> Value:
    (m, g, _), (h, _, n) = lhs.type.shape, rhs.type.shape
    (m_scaled, g_scaled), (n_scaled, h_scaled) = lhs_scale.type.shape, rhs_scale.type.shape
    for a, b, axes in ((g, h, "the groups of lhs and rhs"), (m, m_scaled, "M of lhs and lhs_scale"),
                       (g, g_scaled, "the groups of lhs and lhs_scale"), (n, n_scaled, "N of rhs and rhs_scale"),
                       (h, h_scaled, "the groups of rhs and rhs_scale")):
        require_same(e, a, b, f"{what}: {axes}")
    lhs_scale = place(e, expand(e, lhs_scale, 2), None, (m, g, Extent.of(1)), True)
    rhs_scale = place(e, expand(e, transpose(e, rhs_scale, (1, 0)), 1), None, (h, Extent.of(1), n), True)
    a = _operand(e, what, lhs, lhs_scale, lhs_format.name, 2, group, acc)
    b = _operand(e, what, rhs, rhs_scale, rhs_format.name, 1, group, acc)
    return contract_values(e, a, b, ((1, 0), (2, 1)), (), acc)


def scaled_contract(fb, result, lhs, lhs_scale, rhs, rhs_scale, lhs_format, rhs_format, lhs_group_size, rhs_group_size, reduce, batch,
                    acc_dtype):
    operands = map(fb.e.value, (lhs, lhs_scale, rhs, rhs_scale))
    return scaled_values(fb.e, "I.scaled_contract", *operands, lhs_format, rhs_format, lhs_group_size.value, acc_dtype.name)


def scaled_matmul(fb, result, lhs, lhs_scale, rhs, rhs_scale, lhs_format, rhs_format, group_size, acc_dtype):
    operands = map(fb.e.value, (lhs, lhs_scale, rhs, rhs_scale))
    return scaled_values(fb.e, "I.scaled_matmul", *operands, lhs_format, rhs_format, group_size.value, acc_dtype.name)


BUILD = {"scaled_contract": scaled_contract, "scaled_matmul": scaled_matmul}
