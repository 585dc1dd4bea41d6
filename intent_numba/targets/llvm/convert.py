"""How numbers change dtype, each conversion rounding exactly once to nearest even.

Small floats (f16, bf16, f8) are rounded as f32 bit patterns. A source that f32 cannot hold is first rounded *to odd* into f32:
inexact results get an odd last bit, so a second rounding to at least two bits fewer is that of the exact value.
"""
from __future__ import annotations

from dataclasses import dataclass

from ...kir.types import FLOATS, SIGNED, int_range
from .values import BYTES, MEMORY, REGISTER, SMALL, Val, register_type, vector

_INFINITY, _NAN = 0x7F800000, 0x7FC00000


@dataclass(frozen=True)
class _Format:
    """A small float format: fraction bits, bias, f32 bits of the first magnitude that is not finite after rounding, and the
    f32 bits it becomes."""
    fraction: int
    bias: int
    overflow: int
    beyond: int

    @property
    def least_normal(self) -> int:
        """f32 bits of the smallest normal magnitude."""
        return 1 - self.bias + 127 << 23


_FORMATS = {
    "f16": _Format(10, 15, 0x477FF000, _INFINITY),             # 65520
    "bf16": _Format(7, 127, 0x7F7F8000, _INFINITY),
    "f8e5m2": _Format(2, 15, 0x47700000, _INFINITY),           # 61440
    "f8e4m3fn": _Format(3, 7, 0x43E80001, _NAN),               # just above 464, which still rounds to 448
}
_LARGEST = {"f16": 65504.0, "bf16": 2.0 ** 128 - 2.0 ** 120, "f8e5m2": 57344.0, "f8e4m3fn": 448.0,
            "f32": 2.0 ** 128 - 2.0 ** 104, "f64": 1.7976931348623157e308}


def convert(o, x: Val, dt: str, saturate: bool) -> Val:
    """Cast. ``saturate`` fixes float to int out of range (clamp, NaN to 0); without it such a value is arbitrary."""
    src = x.dt
    if src == dt:
        return x
    if dt == "bool":
        return o.ne(x, o.const(0, src))
    if src == "bool":
        if dt in FLOATS:
            return o.select(x, o.const(1.0, dt), o.const(0.0, dt))
        return o.ins(dt, x.lanes, f"zext {x.type} {x.text} to {register_type(dt, x.lanes)}")
    if src not in FLOATS:
        return _from_int(o, x, dt) if dt in FLOATS else _int_to_int(o, x, dt)
    if dt not in FLOATS:
        return _to_int(o, x, dt, saturate)
    if src == "f64":
        r = _resize(o, x, "f32") if dt == "f32" else round_small(o, _f64_to_odd_f32(o, x), dt)
        return o.relabel(r, dt)
    wide = o.relabel(x, "f32")
    if dt == "f64":
        return o.ins("f64", x.lanes, f"fpext {wide.type} {wide.text} to {register_type('f64', x.lanes)}")
    exact = dt == "f32" or src in ("f8e4m3fn", "f8e5m2") and dt in ("f16", "bf16")
    return o.relabel(wide, dt) if exact else round_small(o, wide, dt)


def saturating(o, x: Val, dt: str) -> Val:
    """saturating_cast: into the finite range, infinities too; NaN stays NaN, and is 0 as an integer."""
    src = x.dt
    if "bool" in (src, dt) or src in FLOATS and dt not in FLOATS:
        return convert(o, x, dt, True)
    if src not in FLOATS:
        low, high = int_range(src)
        to_low, to_high = int_range(dt) if dt not in FLOATS else (-int(_LARGEST[dt]), int(_LARGEST[dt]))
        if to_low > low:
            x = o.select(o.lt(x, o.const(to_low, src)), o.const(to_low, src), x)
        if to_high < high:
            x = o.select(o.gt(x, o.const(to_high, src)), o.const(to_high, src), x)
        return convert(o, x, dt, True)
    narrows = _LARGEST[dt] <= _LARGEST[src]
    if not narrows:
        x = convert(o, x, dt, True)
    high, low = o.const(_LARGEST[dt], x.dt), o.const(-_LARGEST[dt], x.dt)
    x = o.select(o.lt(x, low), low, o.select(o.gt(x, high), high, x))
    return convert(o, x, dt, True)


def bitcast(o, x: Val, dt: str) -> Val:
    """Reinterpret the memory bits as another dtype of the same size."""
    if x.dt == dt:
        return x
    raw = pack(o, x) if x.dt in SMALL else x
    if dt in SMALL:
        return unpack(o, o.relabel(raw, f"u{8 * BYTES[dt]}"), dt)
    if raw.type == register_type(dt, x.lanes):
        return o.relabel(raw, dt)
    return o.ins(dt, x.lanes, f"bitcast {raw.type} {raw.text} to {register_type(dt, x.lanes)}")


# --- integers ---

def _int_to_int(o, x: Val, dt: str) -> Val:
    n, m = BYTES[x.dt], BYTES[dt]
    if n == m:
        return o.relabel(x, dt)
    op = "trunc" if m < n else "sext" if x.dt in SIGNED else "zext"
    if x.text.lstrip("-").isdigit():                            # a literal changes its spelling, not the program
        v = int(x.text) & (1 << 8 * min(n, m)) - 1 if op != "sext" else int(x.text)
        return o.const(v - (1 << 8 * m) if dt in SIGNED and v >> 8 * m - 1 == 1 else v, dt)
    return o.ins(dt, x.lanes, f"{op} {x.type} {x.text} to {register_type(dt, x.lanes)}")


def _int_to_wide(o, x: Val, dt: str) -> Val:
    """To f32 or f64."""
    op = "sitofp" if x.dt in SIGNED else "uitofp"
    return o.ins(dt, x.lanes, f"{op} {x.type} {x.text} to {register_type(dt, x.lanes)}")


def _from_int(o, x: Val, dt: str) -> Val:
    if dt in ("f32", "f64"):
        return _int_to_wide(o, x, dt)
    if dt != "bf16" or BYTES[x.dt] <= 2:
        # f32 is exact up to 2^24, and what lies beyond overflows f16 and f8 all the same.
        return round_small(o, _int_to_wide(o, x, "f32"), dt)
    if BYTES[x.dt] == 4:
        return round_small(o, _int_to_wide(o, _sticky(o, x, 8, 24), "f32"), dt)
    return round_small(o, _f64_to_odd_f32(o, _int_to_wide(o, _sticky(o, x, 11, 53), "f64")), dt)


def _sticky(o, x: Val, low: int, exact: int) -> Val:
    """Round a large integer to odd at bit ``low``, so that a float with ``exact`` bits holds it; |x| <= 2^exact stays."""
    mask = (1 << low) - 1
    lost = o.ne(o.and_(x, o.const(mask, x.dt)), o.const(0, x.dt))
    odd = o.select(lost, o.const(1 << low, x.dt), o.const(0, x.dt))
    unsigned = {4: "u32", 8: "u64"}[BYTES[x.dt]]
    rounded = o.or_(o.and_(x, o.const(~mask if x.dt in SIGNED else ~mask & (1 << 8 * BYTES[x.dt]) - 1, x.dt)), odd)
    if x.dt in SIGNED:
        small = o.le(o.relabel(o.add(x, o.const(1 << exact, x.dt)), unsigned), o.const(2 << exact, unsigned))
    else:
        small = o.le(x, o.const(1 << exact, x.dt))
    return o.select(small, x, rounded)


def _to_int(o, x: Val, dt: str, saturate: bool) -> Val:
    x = o.relabel(x, "f32") if x.dt in SMALL else x
    if BYTES[dt] < 4:                                           # through i32, which every machine converts to
        wide = _to_int(o, x, "i32", saturate)
        if saturate:
            low, high = (o.const(v, "i32") for v in int_range(dt))
            wide = o.select(o.lt(wide, low), low, wide)
            wide = o.select(o.gt(wide, high), high, wide)
        return _int_to_int(o, wide, dt)
    op = "fptosi" if dt in SIGNED else "fptoui"
    kind = register_type(dt, x.lanes)
    if not saturate:
        r = o.ins(dt, x.lanes, f"{op} {x.type} {x.text} to {kind}")
        return o.ins(dt, x.lanes, f"freeze {kind} {r.text}") if o.dialect.freeze else r
    low, high = int_range(dt)
    # Out of range the instruction gives anything; the selects never choose that.
    r = o.ins(dt, x.lanes, f"{op} {x.type} {x.text} to {kind}")
    r = o.select(o.ge(x, o.const(float(high + 1), x.dt)), o.const(high, dt), r)
    if dt in SIGNED:
        r = o.select(o.lt(x, o.const(float(low), x.dt)), o.const(low, dt), r)
        return o.select(o.ne(x, x), o.const(0, dt), r)
    return o.select(o.gt(x, o.const(-1.0, x.dt)), r, o.const(0, dt))           # false for NaN


# --- floats ---

def _resize(o, x: Val, dt: str) -> Val:
    return o.ins(dt, x.lanes, f"{'fptrunc' if dt == 'f32' else 'fpext'} {x.type} {x.text} to {register_type(dt, x.lanes)}")


def _f64_to_odd_f32(o, x: Val) -> Val:
    """f64 to f32, inexact results with an odd last bit."""
    near = _resize(o, x, "f32")
    back = _resize(o, near, "f64")
    inexact = o.ins("bool", x.lanes, f"fcmp one {x.type} {back.text}, {x.text}")        # false for NaN
    grew = o.gt(o.abs(back), o.abs(x))
    return _make_odd(o, near, inexact, o.not_(grew))


def _make_odd(o, near: Val, inexact: Val, away: Val) -> Val:
    """A nearest-even result moved to its odd neighbour: away from zero where ``away``, else towards it."""
    bits = "u64" if near.dt == "f64" else "u32"
    raw = bitcast(o, near, bits)
    even = o.eq(o.and_(raw, o.const(1, bits)), o.const(0, bits))
    step = o.select(away, o.const(1, bits), o.const(-1, bits))
    return bitcast(o, o.select(o.and_(inexact, even), o.add(raw, step), raw), near.dt)


def fma_small(o, a: Val, b: Val, c: Val) -> Val:
    """a*b+c of small floats with one rounding. The product is exact in f32 (in f64 for bf16, whose exponents double)."""
    dt = a.dt
    wide = "f64" if dt == "bf16" else "f32"
    a, b, c = (convert(o, v, wide, False) for v in (a, b, c))
    p = o.mul(a, b)
    s = o.add(p, c)
    part = o.sub(s, p)
    error = o.add(o.sub(p, o.sub(s, part)), o.sub(c, part))     # two-sum: s + error is exactly p + c
    zero = o.const(0.0, wide)
    inexact = o.ins("bool", s.lanes, f"fcmp one {s.type} {error.text}, {o.splat(zero, s.lanes).text}")
    away = o.eq(o.gt(error, zero), o.gt(s, zero))
    return convert(o, _make_odd(o, s, inexact, away), dt, False)


def round_small(o, x: Val, dt: str) -> Val:
    """An f32 rounded to a small dtype, still held as float."""
    if dt == "f16" and o.dialect.half:
        half = vector("half", x.lanes)
        small = o.fn.ins(f"fptrunc {x.type} {x.text} to {half}")
        return o.ins(dt, x.lanes, f"fpext {half} {small} to {x.type}")
    x = o.relabel(x, "f32")
    u = lambda v: o.const(v, "u32")  # noqa: E731
    if dt == "bf16":
        # A subnormal f32 keeps its bf16 prefix: one rule for all numbers. Overflow carries into infinity by itself.
        raw = bitcast(o, x, "u32")
        odd = o.and_(o.shr(raw, u(16)), u(1))
        r = o.and_(o.add(raw, o.add(odd, u(0x7FFF))), u(0xFFFF0000))
        return o.relabel(bitcast(o, o.select(o.ne(x, x), u(_NAN), r), "f32"), dt)
    f = _FORMATS[dt]
    drop = 23 - f.fraction
    i = lambda v: o.const(v, "i32")  # noqa: E731
    raw = bitcast(o, x, "i32")
    size = o.and_(raw, i(0x7FFFFFFF))
    odd = o.and_(o.shr(size, i(drop)), i(1))
    normal = o.and_(o.add(size, o.add(odd, i((1 << drop - 1) - 1))), i(-1 << drop))
    # Adding and taking away a power of two whose last bit is the format's least subnormal rounds to a multiple of it.
    magic = o.const(2.0 ** (23 + 1 - f.bias - f.fraction), "f32")
    subnormal = bitcast(o, o.sub(o.add(bitcast(o, size, "f32"), magic), magic), "i32")
    r = o.select(o.lt(size, i(f.least_normal)), subnormal, normal)
    r = o.select(o.ge(size, i(f.overflow)), i(f.beyond), r)
    if f.beyond != _NAN:
        r = o.select(o.gt(size, i(_INFINITY)), i(_NAN), r)
    r = o.or_(r, o.and_(raw, i(-1 << 31)))
    return o.relabel(bitcast(o, r, "f32"), dt)


# --- memory patterns of small floats ---

def pack(o, x: Val) -> Val:
    """The bits in memory of a small float, as u16 or u8."""
    dt, lanes = x.dt, x.lanes
    bits = f"u{8 * BYTES[dt]}"
    if dt in ("f16", "f8e5m2") and o.dialect.half:
        half = vector("half", lanes)
        small = o.fn.ins(f"fptrunc {x.type} {x.text} to {half}")
        wide = o.ins("u16", lanes, f"bitcast {half} {small} to {register_type('u16', lanes)}")
        return wide if dt == "f16" else _int_to_int(o, o.shr(wide, o.const(8, "u16")), bits)
    raw = bitcast(o, o.relabel(x, "f32"), "i32")
    i = lambda v: o.const(v, "i32")  # noqa: E731
    if dt == "bf16":
        return _int_to_int(o, o.shr(o.relabel(raw, "u32"), o.const(16, "u32")), bits)
    f = _FORMATS[dt]
    drop = 23 - f.fraction
    size = o.and_(raw, i(0x7FFFFFFF))
    normal = o.sub(o.shr(size, i(drop)), i(127 - f.bias << f.fraction))
    magic = 2.0 ** (23 + 1 - f.bias - f.fraction)               # the last bits of size + magic count least subnormals
    shifted = o.add(bitcast(o, size, "f32"), o.const(magic, "f32"))
    subnormal = o.and_(bitcast(o, shifted, "i32"), i((1 << f.fraction + 1) - 1))
    r = o.select(o.lt(size, i(f.least_normal)), subnormal, normal)
    top = 8 * BYTES[dt] - 1
    if f.beyond == _INFINITY:
        infinity = (1 << top) - (1 << f.fraction)
        r = o.select(o.ge(size, i(_INFINITY)), i(infinity), r)
        nan = infinity | 1 << f.fraction - 1
    else:
        nan = (1 << top) - 1
    r = o.select(o.gt(size, i(_INFINITY)), i(nan), r)
    sign = o.shr(o.relabel(raw, "u32"), o.const(31 - top, "u32"))
    sign = o.and_(o.relabel(sign, "i32"), i(1 << top))
    return _int_to_int(o, o.or_(r, sign), bits)


def unpack(o, raw: Val, dt: str) -> Val:
    """The small float of memory bits (u16 or u8)."""
    lanes = raw.lanes
    kind = register_type(dt, lanes)
    if dt in ("f16", "f8e5m2") and o.dialect.half:
        if dt == "f8e5m2":                                      # the upper half of an f16
            raw = o.shl(_int_to_int(o, raw, "u16"), o.const(8, "u16"))
        half = vector("half", lanes)
        small = o.fn.ins(f"bitcast {raw.type} {raw.text} to {half}")
        return o.ins(dt, lanes, f"fpext {half} {small} to {kind}")
    wide = _int_to_int(o, raw, "i32") if raw.dt in SIGNED else o.relabel(_int_to_int(o, raw, "u32"), "i32")
    i = lambda v: o.const(v, "i32")  # noqa: E731
    if dt == "bf16":
        return o.relabel(bitcast(o, o.shl(wide, i(16)), "f32"), dt)
    f = _FORMATS[dt]
    top = 8 * BYTES[dt] - 1
    drop = 23 - f.fraction
    size = o.and_(wide, i((1 << top) - 1))
    normal = o.add(o.shl(size, i(drop)), i(127 - f.bias << 23))
    subnormal = o.mul(_int_to_wide(o, size, "f32"), o.const(2.0 ** (1 - f.bias - f.fraction), "f32"))
    r = o.select(o.lt(size, i(1 << f.fraction)), bitcast(o, subnormal, "i32"), normal)
    if f.beyond == _INFINITY:                                   # the exponent field of all ones stays all ones
        special = o.or_(o.shl(size, i(drop)), i(_INFINITY))
        r = o.select(o.ge(size, i((1 << top) - (1 << f.fraction))), special, r)
    else:
        r = o.select(o.eq(size, i((1 << top) - 1)), i(_NAN), r)
    sign = o.shl(o.and_(wide, i(1 << top)), i(31 - top))
    return o.relabel(bitcast(o, o.or_(r, sign), "f32"), dt)


def to_memory(o, x: Val) -> Val:
    """The value as it is stored, under a dtype whose register type is the memory type."""
    if x.dt in SMALL:
        return pack(o, x)
    if x.dt == "bool":
        return o.ins("u8", x.lanes, f"zext {x.type} {x.text} to {register_type('u8', x.lanes)}")
    return x


def from_memory(o, raw: Val, dt: str) -> Val:
    """Inverse of ``to_memory``; any nonzero byte is True."""
    if dt in SMALL:
        return unpack(o, raw, dt)
    if dt == "bool":
        return o.ne(raw, o.const(0, "u8"))
    return o.relabel(raw, dt)


def carrier(dt: str) -> str:
    """The dtype under which memory of ``dt`` is loaded before ``from_memory``."""
    return dt if MEMORY[dt] == REGISTER[dt] else f"u{8 * BYTES[dt]}"
