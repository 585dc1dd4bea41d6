"""How integers divide on machines whose division traps: every divisor is made safe first, in inactive lanes too.

x // 0 and x % 0 are 0; min // -1 is min; min % -1 is 0. Vectors divide in floating point, which is exact there: the quotient of
two n-bit integers is at least 1/b away from the next integer, more than half an ulp of a float with n+2 bits.
"""
from __future__ import annotations

from ...kir.types import BITS, SIGNED
from .values import Val



def known(x: Val) -> int | None:
    """The integer of a literal (also a repeated one), else None."""
    text = x.text
    if x.lanes and text.startswith("splat ("):
        text = text[text.index(" ", 7) + 1:-1]
    return int(text) if text.lstrip("-").isdigit() else None


def fold(name: str, a: Val, b: Val) -> Val | None:
    """Integer add, sub, mul where it is free: literals, zero, one. Index arithmetic is full of them."""
    if a.lanes != b.lanes:
        return None
    x, y = known(a), known(b)
    if x is not None and y is not None and not a.lanes and name in ("add", "sub", "mul"):
        n = BITS[a.dt]
        r = {"add": x + y, "sub": x - y, "mul": x * y}[name] & (1 << n) - 1
        return Val(a.dt, str(r - (1 << n) if r >> n - 1 and a.dt in SIGNED else r))
    if y == 0 and name in ("add", "sub") or y == 1 and name == "mul":
        return a
    if x == 0 and name == "add" or x == 1 and name == "mul":
        return b
    return None


def tdiv(o, a: Val, b: Val) -> Val:
    return _parts(o, a, b)[0]


def trem(o, a: Val, b: Val) -> Val:
    return _parts(o, a, b)[1]


def floordiv(o, a: Val, b: Val) -> Val:
    d = known(b)
    if d is not None and d > 0 and d & d - 1 == 0:
        return o.shr(a, o.const(d.bit_length() - 1, b.dt)) if d > 1 else a
    q, r, safe = _parts(o, a, b)
    return o.sub(q, o.cast(_crosses(o, r, safe), a.dt)) if a.dt in SIGNED else q


def mod(o, a: Val, b: Val) -> Val:
    d = known(b)
    if d is not None and d > 0 and d & d - 1 == 0:
        return o.and_(a, o.const(d - 1, b.dt))
    _, r, safe = _parts(o, a, b)
    return o.select(_crosses(o, r, safe), o.add(r, safe), r) if a.dt in SIGNED else r


def _crosses(o, r: Val, b: Val) -> Val:
    """The truncating quotient is one above the floor: the remainder is not zero and its sign is not the divisor's."""
    zero = o.const(0, r.dt)
    return o.and_(o.ne(r, zero), o.lt(o.xor(r, b), zero))


def _parts(o, a: Val, b: Val) -> tuple[Val, Val, Val]:
    """Truncating quotient, remainder, and a divisor that is neither 0 nor -1."""
    d = known(b)
    if d is not None and d not in (0, -1):
        q = _divide(o, a, b)
        return q, o.sub(a, o.mul(q, b)), b
    zero, one = o.const(0, a.dt), o.const(1, a.dt)
    is_zero = o.eq(b, zero)
    unsafe, safe_q = is_zero, zero
    if a.dt in SIGNED:
        is_minus = o.eq(b, o.const(-1, a.dt))
        unsafe, safe_q = o.or_(is_zero, is_minus), o.select(is_minus, o.neg(a), zero)
    safe = o.select(unsafe, one, b)
    q = _divide(o, a, safe)
    r = o.sub(a, o.mul(q, safe))                   # divisor 1 leaves 0, which is right for x % 0 and x % -1
    return o.select(unsafe, safe_q, q), r, safe


def _divide(o, a: Val, b: Val) -> Val:
    """a / b truncated, b safe."""
    n = BITS[a.dt]
    if a.lanes and n <= 32:
        f = "f32" if n <= 16 else "f64"
        wide = "i32" if n <= 16 else a.dt          # small quotients fit a signed word
        q = o.cast(o.div(o.cast(a, f), o.cast(b, f)), wide)
        return o.cast(q, a.dt)
    if a.lanes >= 4:
        return _divide_long(o, a, b)
    return _machine_divide(o, a, b)


def _divide_long(o, a: Val, b: Val) -> Val:
    """Vectors of 64-bit integers: in f64 when all operands lie within 51 bits, which indices do, else one by one."""
    half = o.const(1 << 51, "u64")

    def small(x):
        raw = o.relabel(x, "u64")
        return o.lt(o.add(raw, half), o.const(1 << 52, "u64")) if x.dt in SIGNED else o.lt(raw, half)

    # Adding an integer to the bits of 1.5 * 2^52 makes the float that is so much larger, and back.
    base, bits = o.const(1.5 * 2.0 ** 52, "f64"), o.const(0x4338000000000000, "u64")

    def widen(x):
        return o.sub(o.bitcast(o.add(o.relabel(x, "u64"), bits), "f64"), base)

    with o.fn.if_else(o.all(o.and_(small(a), small(b))).text) as branch:
        q = o.intrinsic("trunc", (o.div(widen(a), widen(b)),), "f64")
        q = o.sub(o.bitcast(o.add(q, base), "u64"), bits)
        branch.yields((q.type, q.text))
        branch.orelse()
        slow = _machine_divide(o, a, b)
        branch.yields((slow.type, slow.text))
    return Val(a.dt, branch.results[0], a.lanes)


def _machine_divide(o, a: Val, b: Val) -> Val:
    return o.ins(a.dt, a.lanes, f"{'sdiv' if a.dt in SIGNED else 'udiv'} {a.type} {a.text}, {b.text}")
