"""``quantize`` to q8_k and ``quantized_dot`` of q4_k with q8_k as KIR: byte fields, exact integer sums, and f32 roundings that never fuse.

The operations are emitted one by one, so that no product meets its sum in one expression. Spec: SUPPLEMENT 7.
"""
from __future__ import annotations

from ..errors import IntentShapeError
from ..kir import Domain, Extent, Scalar, Tensor, Value
from . import build_obligations
from .build_scaled import Bits
from .emitter import Emitter
from .shapes import expand, extent_text, place, require_same, retype, whole_axis

VALUES, Q4_BYTES, Q8_BYTES = 256, 144, 292
ROUNDER = 12582912.0
"""1.5 * 2^23: adding and subtracting it rounds a small f32 to the nearest even integer."""


def require_extent(e: Emitter, what: str, have: Extent, wanted: int) -> None:
    if have.const is None:
        e.fail(IntentShapeError, f"{what}: the extent {extent_text(have)} is not known to be {wanted}", f"annotate the extent as {wanted}")
    if have.const != wanted:
        e.fail(IntentShapeError, f"{what}: extent {have} where {wanted} is needed")


def numbers(e: Emitter, begin: int, end: int) -> Value:
    """begin .. end-1 as an index tensor."""
    args = (e.const(begin, "index"), e.const(end, "index"), e.const(1, "index"))
    extent = Extent.of(end - begin)
    d = e.shared(("domain", args, extent), lambda: e.one("domain", args, Domain(extent)))
    return e.one("indices", (d,), Tensor("index", (extent,)))


def columns(e: Emitter, records: Value, at: Value) -> Value:
    """``records[:, at]`` for an index tensor."""
    rows = whole_axis(e, records.type.shape[0])
    return e.one("gather", (records, rows.value, at), Tensor(records.type.dt, (rows.extent, *at.type.shape)))


def field(e: Emitter, records: Value, begin: int, end: int) -> Value:
    """Bytes begin .. end-1 of every record."""
    return columns(e, records, numbers(e, begin, end))


def along(e: Emitter, x: Value, shape) -> Value:
    """A tensor without the leading record axis, or without trailing axes, repeated to ``shape``."""
    return place(e, x, None, shape, True)


def add_up(e: Emitter, x: Value) -> Value:
    """Exact integer sum over the last axis."""
    axis = len(x.type.shape) - 1
    return e.one("reduce", (x,), Tensor(x.type.dt, x.type.shape[:-1]), axis=axis, kind="sum")


def little_endian(e: Emitter, low: Value, high: Value, dt: str) -> Value:
    """Two bytes as a 16-bit value."""
    t = Bits(e, low)
    word = t.op("or", t.cast(low, "u16"), t.op("shl", t.cast(high, "u16"), 8))
    return t.cast(word, dt, "bitcast")


def half(e: Emitter, records: Value, at: int) -> Value:
    """The f16 at a byte of every record, as f32 [G]."""
    rows = whole_axis(e, records.type.shape[0])
    low, high = (e.one("gather", (records, rows.value, e.const(b, "index")), Tensor("u8", (rows.extent,))) for b in (at, at + 1))
    v = little_endian(e, low, high, "f16")
    return Bits(e, v).cast(v, "f32")


# --- quantize -------------------------------------------------------------------------------------------------------------

def quantize(fb, result, values, format):
    e, what = fb.e, "I.quantize"
    v = e.value(values)
    require_extent(e, f"{what}: values", v.type.shape[1], VALUES)
    groups = v.type.shape[0]
    flat = Tensor("f32", (groups,))
    least, most = (e.one("reduce", (v,), flat, axis=1, kind=kind) for kind in ("min", "max"))
    r = Bits(e, least)
    extreme = r.choose(r.op("ge", r.op("neg", least), most, dt="bool"), least, most, "f32")     # the minimum on a tie
    zero = r.op("eq", extreme, 0.0, dt="bool")
    inverse = r.op("div", -127.0, r.choose(zero, 1.0, extreme, "f32"))
    if e.obligations:
        build_obligations.finite(e, v, what, "a value is not finite")
        build_obligations.finite(e, inverse, what, "the inverse of a block's extreme is not finite")
    ds = r.choose(zero, 0.0, r.op("div", 1.0, inverse), "f32")
    t = Bits(e, v)
    scaled = t.op("mul", v, along(e, expand(e, inverse, 1), v.type.shape))
    rounded = t.op("sub", t.op("add", scaled, ROUNDER), ROUNDER)
    none = along(e, expand(e, zero, 1), v.type.shape)
    q = t.choose(none, 0, t.cast(rounded, "i8", "saturating_cast"), "i8")
    words = t.cast(q, "i32")
    sums = add_up(e, retype(e, words, (groups, Extent.of(16), Extent.of(16))))
    return _records(e, groups, ds, q, sums)


def _records(e: Emitter, groups: Extent, ds: Value, q: Value, sums: Value) -> Value:
    """Bytes put together by position: byte j of every record comes from one of the fields."""
    at = numbers(e, 0, Q8_BYTES)
    p = Bits(e, at)
    shape = (groups, Extent.of(Q8_BYTES))
    t = Bits(e, e.one("broadcast", (e.const(0, "u8"),), Tensor("u8", shape)))

    def wide(x: Value) -> Value:
        return along(e, x, shape)

    def byte_of(words: Value, number: Value) -> Value:
        """Byte ``number`` of u32 words, all of ``shape``."""
        return t.cast(t.op("shr", words, t.cast(number, "u32"), dt="u32"), "u8")

    def guarded(source: Value, valid: Value, column: Value) -> Value:
        rows = whole_axis(e, groups)
        dt = source.type.dt
        return e.one("gather", (source, rows.value, column, wide(valid), t.const(0, dt)), Tensor(dt, shape), guard=True)

    in_scale = p.op("lt", at, 4, dt="bool")
    in_sums = p.op("ge", at, 260, dt="bool")
    in_values = p.op("not", p.op("or", in_scale, in_sums, dt="bool"), dt="bool")
    scale = along(e, expand(e, Bits(e, ds).cast(ds, "u32", "bitcast"), 1), shape)
    shift = p.op("mul", p.choose(in_scale, at, 0, "index"), 8)
    from_scale = byte_of(scale, wide(shift))
    from_values = t.cast(guarded(q, in_values, p.op("sub", at, 4)), "u8", "bitcast")
    rest = p.op("sub", at, 260)
    totals = t.cast(guarded(sums, in_sums, p.op("shr", rest, 1)), "u32", "bitcast")
    from_sums = byte_of(totals, wide(p.op("mul", p.op("and", rest, 1), 8)))
    return t.choose(wide(in_scale), from_scale, t.choose(wide(in_values), from_values, from_sums, "u8"), "u8")


# --- dot ------------------------------------------------------------------------------------------------------------------

def quantized_dot(fb, result, lhs, rhs, lhs_format, rhs_format, acc_dtype):
    e, what = fb.e, "I.quantized_dot"
    a, b = e.value(lhs), e.value(rhs)
    require_extent(e, f"{what}: the records of lhs", a.type.shape[1], Q4_BYTES)
    require_extent(e, f"{what}: the records of rhs", b.type.shape[1], Q8_BYTES)
    require_same(e, a.type.shape[0], b.type.shape[0], f"{what}: records")
    b = place(e, b, None, (a.type.shape[0], b.type.shape[1]), True)
    if e.obligations:
        _owe_sums(e, b, what)
    scales, minima = (_packed(e, a, r) for r in (0, 1))
    products = _block_sums(e, a, b)
    t = Bits(e, scales)
    whole = add_up(e, t.op("mul", scales, products))
    offset = add_up(e, t.op("mul", minima, _pair_sums(e, b)))
    r = Bits(e, whole)
    p = r.op("mul", half(e, a, 0), r.cast(whole, "f32"))
    n = r.op("mul", half(e, a, 2), r.cast(offset, "f32"))
    v = r.op("mul", _scale(e, b), r.op("sub", p, n))
    return e.one("broadcast", (_in_order(e, v),), Tensor("f32", ()))


def _packed(e: Emitter, a: Value, r: int) -> Value:
    """The eight 6-bit fields ``sc`` (r = 0) or ``m`` (r = 1) as i32 [G, 8]."""
    base, spill = (field(e, a, begin, begin + 4) for begin in (4 + 4 * r, 12))
    t = Bits(e, base)
    low = t.op("and", base, 63)
    high = t.op("or", t.op("and", t.op("shr", spill, 4 * r), 15), t.op("shl", t.op("shr", base, 6), 4))
    both = e.one("join", (low, high), Tensor("u8", (*base.type.shape, Extent.of(2))))
    both = e.one("transpose", (both,), Tensor("u8", (base.type.shape[0], Extent.of(2), Extent.of(4))), perm=(0, 2, 1))
    flat = retype(e, both, (base.type.shape[0], Extent.of(8)))
    return Bits(e, flat).cast(flat, "i32")


def _block_sums(e: Emitter, a: Value, b: Value) -> Value:
    """sum_i wq[32 s + i] * xq[32 s + i] as i32 [G, 8]. Bytes 16 + 32 t .. hold blocks 2 t (low nibbles) and 2 t + 1 (high nibbles)."""
    groups = a.type.shape[0]
    packed = retype(e, field(e, a, 16, Q4_BYTES), (groups, Extent.of(4), Extent.of(32)))
    t = Bits(e, packed)
    pair = e.one("join", (t.op("and", packed, 15), t.op("shr", packed, 4)), Tensor("u8", (*packed.type.shape, Extent.of(2))))
    pair = e.one("transpose", (pair,), Tensor("u8", (groups, Extent.of(4), Extent.of(2), Extent.of(32))), perm=(0, 1, 3, 2))
    wq = retype(e, pair, (groups, Extent.of(8), Extent.of(32)))
    xq = retype(e, field(e, b, 4, 4 + VALUES), (groups, Extent.of(8), Extent.of(32)))
    s = Bits(e, wq)
    return add_up(e, s.op("mul", s.cast(wq, "i32"), s.cast(s.cast(xq, "i8", "bitcast"), "i32")))


def _owe_sums(e: Emitter, b: Value, what: str) -> None:
    """Every bsum of a q8_k record is the sum of its sixteen values."""
    values = retype(e, field(e, b, 4, 4 + VALUES), (b.type.shape[0], Extent.of(16), Extent.of(16)))
    t = Bits(e, values)
    sums, stored = add_up(e, t.cast(t.cast(values, "i8", "bitcast"), "i32")), _sums(e, b)
    ok = Bits(e, sums).op("eq", sums, stored, dt="bool")
    build_obligations.owe(e, ok, what, "a bsum of rhs is not the sum of its values")


def _pair_sums(e: Emitter, b: Value) -> Value:
    """bsum[2 s] + bsum[2 s + 1] as i32 [G, 8]."""
    return add_up(e, retype(e, _sums(e, b), (b.type.shape[0], Extent.of(8), Extent.of(2))))


def _sums(e: Emitter, b: Value) -> Value:
    """bsum as i32 [G, 16]."""
    at = numbers(e, 0, 16)
    p = Bits(e, at)
    low = p.op("add", p.op("mul", at, 2), 260)
    sums = little_endian(e, columns(e, b, low), columns(e, b, p.op("add", low, 1)), "i16")
    return Bits(e, sums).cast(sums, "i32")


def _scale(e: Emitter, b: Value) -> Value:
    """The f32 at the start of every q8_k record."""
    rows, bits = whole_axis(e, b.type.shape[0]), None
    for k in range(4):
        byte = e.one("gather", (b, rows.value, e.const(k, "index")), Tensor("u8", (rows.extent,)))
        t = Bits(e, byte)
        word = t.op("shl", t.cast(byte, "u32"), 8 * k)
        bits = word if bits is None else t.op("or", bits, word)
    return t.cast(bits, "f32", "bitcast")


def _in_order(e: Emitter, v: Value) -> Value:
    """Sum of a vector from +0, one member after the other."""
    f32 = Scalar("f32")
    region = e.b.block([Scalar("index"), f32])
    with e.inside(region):
        at, acc = region.params
        region.yields = (e.one("add", (acc, e.one("gather", (v, at), f32)), f32),)
    (total,) = e.emit("for", (whole_axis(e, v.type.shape[0]).value, e.const(0.0, "f32")), (f32,), (region,))
    return total


BUILD = {"quantize": quantize, "quantized_dot": quantized_dot}
