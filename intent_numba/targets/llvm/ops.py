"""The one expression emitter: every elementwise operation and memory access as LLVM text, for scalars and vectors.

``Ops`` offers the primitives that ``intent_numba.math`` programs are written over, so a program runs on it unchanged and
emits itself. Whatever is not a primitive is such a program: small ones are emitted in place, big ones once per module as an
internal function. Every operation takes scalars and vectors mixed; a scalar is repeated.

Bits: no fast-math flag is ever written, fma only where ``fma`` is called, sub-f32 floats round after every operation.
"""
from __future__ import annotations

from ... import math as programs
from ...kir.types import BITS, FLOATS, SIGNED, int_range
from . import convert, integer, memory
from .text import Function, Module
from .values import REGISTER, SMALL, Val, literal, register_type, vector

INLINE_LIMIT = 60
"""A math program of at most this many instructions is emitted in place: calls cost 20 % on exp."""
CALL_BYTES = 64
"""A bigger one is a function of this many bytes of lanes, called for each part of a wider value: twice as many gain little speed
and double the compile time."""

_FLOAT_COMPARE = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}
_SIGNED_COMPARE = {"eq": "eq", "ne": "ne", "lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"}
_UNSIGNED_COMPARE = {"eq": "eq", "ne": "ne", "lt": "ult", "le": "ule", "gt": "ugt", "ge": "uge"}

CONVERSIONS = {"cast": "convert", "saturating_cast": "saturating_cast", "bitcast": "bitcast"}
NATIVE = {"and": "and_", "or": "or_", "not": "not_",
           **{k: k for k in ("add", "sub", "mul", "div", "neg", "abs", "fma", "sqrt", "floor", "ceil", "xor", "shl", "shr", "select",
                             "eq", "ne", "lt", "le", "gt", "ge", "bitcast", "floordiv", "mod",
                             "maximum", "minimum", "maximum_num", "minimum_num")},
           **CONVERSIONS}
"""KIR kinds that are methods here; the rest are math programs."""

_REGISTER_BYTES = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "float": 4, "double": 8}
_sizes: dict = {}                                  # instructions of a math program by (kind, dtypes), for the inline decision


class Ops:
    """Writes into ``fn`` at its current position. Values are ``Val``."""

    def __init__(self, fn: Function):
        self.fn = fn
        self.module = fn.module
        self.dialect = fn.module.dialect

    # --- values ---

    def dt(self, x: Val) -> str:
        return x.dt

    def const(self, v, dt: str, lanes: int = 0) -> Val:
        return Val(dt, literal(v, dt, lanes), lanes)

    def splat(self, x: Val, lanes: int) -> Val:
        """A scalar repeated over ``lanes`` (0: unchanged)."""
        if not lanes or x.lanes == lanes:
            return x
        assert not x.lanes, f"cannot splat {x.lanes} lanes to {lanes}"
        element = REGISTER[x.dt]
        if x.text[0] != "%" and x.text[0] != "@":
            return Val(x.dt, f"splat ({element} {x.text})", lanes)
        kind = vector(element, lanes)
        one = self.fn.ins(f"insertelement {kind} poison, {element} {x.text}, i64 0")
        return Val(x.dt, self.fn.ins(f"shufflevector {kind} {one}, {kind} poison, <{lanes} x i32> zeroinitializer"), lanes)

    def together(self, *args: Val) -> tuple[Val, ...]:
        """The operands with scalars repeated to the lanes of the vectors among them."""
        lanes = max(a.lanes for a in args)
        return args if all(a.lanes == lanes for a in args) else tuple(self.splat(a, lanes) for a in args)

    def relabel(self, x: Val, dt: str) -> Val:
        """The same register as another dtype of the same register type."""
        return Val(dt, x.text, x.lanes)

    def ins(self, dt: str, lanes: int, text: str) -> Val:
        """An instruction whose result has dtype ``dt``."""
        return Val(dt, self.fn.ins(text), lanes)

    def intrinsic(self, name: str, args, dt: str) -> Val:
        """Call ``llvm.name`` on operands of one type, which is the result's type too; the result is labelled ``dt``."""
        kind = args[0].type
        callee = self.module.declare(kind, f"llvm.{name}.{suffix(args[0])}", ", ".join([kind] * len(args)))
        return self.ins(dt, args[0].lanes, f"call {kind} {callee}({', '.join(f'{kind} {a.text}' for a in args)})")

    # --- dispatch ---

    def elementwise(self, kind: str, args, dt: str, attrs=None) -> Val:
        """KIR elementwise ``kind`` (kir/ops.py) with result dtype ``dt``. ``attrs``: the approximate/ftz attributes, if any."""
        attrs = dict(attrs or ())
        if attrs.get("approximate"):
            return self._approximate(kind, args, attrs)
        if kind in CONVERSIONS:
            return getattr(self, CONVERSIONS[kind])(args[0], dt)
        method = NATIVE.get(kind)
        return getattr(self, method)(*args) if method else self.program(kind, args, dt)

    def program(self, kind: str, args, dt: str) -> Val:
        """A math program, in place or as a call of an internal function that the module holds once."""
        args = self.together(*args)
        operand = args[0].dt
        body = programs.program(kind, operand)
        if body is None:
            raise NotImplementedError(f"no program for {kind} on {operand}")
        size_key = (kind, operand)
        if size_key not in _sizes:                 # measured apart, so that a module's text never depends on what came before
            trial = Ops(Module(self.dialect).function("trial", "void"))
            body(trial, *(Val(a.dt, f"%a{k}") for k, a in enumerate(args)))
            _sizes[size_key] = trial.fn.size
        if _sizes[size_key] <= INLINE_LIMIT:
            return self.together(body(self, *args), *args[:1])[0]
        lanes = args[0].lanes
        part = min(lanes, CALL_BYTES // _REGISTER_BYTES[REGISTER[operand]])
        if lanes & lanes - 1:                      # halves of such a value are not equal
            part = lanes
        name = self._function(size_key, part, body, args)
        ret = register_type(dt, part)
        parts = [Val(dt, self.fn.call(ret, name, [(x.type, x.text) for x in (self.slice(a, at, part) if lanes else a for a in args)]), part)
                 for at in range(0, lanes or 1, part or 1)]
        while len(parts) > 1:
            parts = [self.concat(*parts[k:k + 2]) for k in range(0, len(parts), 2)]
        return parts[0]

    def _function(self, size_key, lanes: int, body, args) -> str:
        """The internal function of a program for ``lanes``."""
        key = (*size_key, lanes)
        name = self.module.helpers.get(key)
        if name is not None:
            return name
        name = f"math.{'.'.join(map(str, key))}"
        fn = self.module.function(name, "", [(register_type(a.dt, lanes), f"a{k}") for k, a in enumerate(args)], head="internal",
                                  attrs="nounwind memory(none)" if self.dialect.memory_none else "nounwind")
        inner = Ops(fn)
        result = inner.splat(body(inner, *(Val(a.dt, f"%a{k}", lanes) for k, a in enumerate(args))), lanes)
        fn.ret_type = result.type
        fn.ret(result.type, result.text)
        self.module.helpers[key] = "@" + name
        return "@" + name

    def _approximate(self, kind: str, args, attrs) -> Val:
        """Approximate f32 operations (000, 5.1). The exact operation is within every bound; only the classification of
        large divisors and flushing differ from it."""
        flush = self._flush if attrs.get("ftz") or attrs.get("flush_to_zero") else lambda x: x
        args = self.together(*map(flush, args))
        if kind != "div":
            return flush(self.program(kind, args, "f32"))
        a, b = args
        size = self.abs(b)
        large = self.and_(self.gt(size, self.const(2.0 ** 126, "f32")), self.lt(size, self.const(float("inf"), "f32")))
        zero = self.bitcast(self.and_(self.bitcast(b, "u32"), self.const(1 << 31, "u32")), "f32")
        return flush(self.select(large, self.mul(a, zero), self.div(a, b)))

    def _flush(self, x: Val) -> Val:
        """Subnormals become zeros of their sign."""
        zero = self.bitcast(self.and_(self.bitcast(x, "u32"), self.const(1 << 31, "u32")), "f32")
        return self.select(self.lt(self.abs(x), self.const(2.0 ** -126, "f32")), zero, x)

    # --- arithmetic ---

    def _binary(self, op: str, a: Val, b: Val, dt: str | None = None) -> Val:
        a, b = self.together(a, b)
        return self.ins(dt or a.dt, a.lanes, f"{op} {a.type} {a.text}, {b.text}")

    def _arith(self, name: str, a: Val, b: Val) -> Val:
        if a.dt not in FLOATS:
            return integer.fold(name, a, b) or self._binary(name, a, b)
        r = self._binary("f" + name, a, b)
        return convert.round_small(self, r, a.dt) if a.dt in SMALL else r

    def add(self, a: Val, b: Val) -> Val:
        return self._arith("add", a, b)

    def sub(self, a: Val, b: Val) -> Val:
        return self._arith("sub", a, b)

    def mul(self, a: Val, b: Val) -> Val:
        return self._arith("mul", a, b)

    def div(self, a: Val, b: Val) -> Val:
        return self._arith("div", a, b)

    def neg(self, a: Val) -> Val:
        if a.dt in FLOATS:
            return self.ins(a.dt, a.lanes, f"fneg {a.type} {a.text}")
        return self._binary("sub", self.const(0, a.dt, a.lanes), a)

    def abs(self, a: Val) -> Val:
        if a.dt in FLOATS:
            return self.intrinsic("fabs", (a,), a.dt)
        if a.dt not in SIGNED:
            return a
        return self.select(self.lt(a, self.const(0, a.dt)), self.neg(a), a)

    def fma(self, a: Val, b: Val, c: Val) -> Val:
        """a*b+c rounded once, in every float dtype."""
        a, b, c = self.together(a, b, c)
        return convert.fma_small(self, a, b, c) if a.dt in SMALL else self.intrinsic("fma", (a, b, c), a.dt)

    def sqrt(self, a: Val) -> Val:
        r = self.intrinsic("sqrt", (a,), a.dt)
        return convert.round_small(self, r, a.dt) if a.dt in SMALL else r

    # Rounding to an integer is exact in every float dtype.
    def floor(self, a: Val) -> Val:
        return self.intrinsic("floor", (a,), a.dt)

    def ceil(self, a: Val) -> Val:
        return self.intrinsic("ceil", (a,), a.dt)

    def rint(self, a: Val) -> Val:
        """To the nearest integer, ties to even; stays a float."""
        return self.intrinsic("rint", (a,), a.dt)

    def floordiv(self, a: Val, b: Val) -> Val:
        return integer.floordiv(self, *self.together(a, b))

    def mod(self, a: Val, b: Val) -> Val:
        return integer.mod(self, *self.together(a, b))

    def tdiv(self, a: Val, b: Val) -> Val:
        """Truncating quotient; x / 0 is 0, min / -1 is min."""
        return integer.tdiv(self, *self.together(a, b))

    def trem(self, a: Val, b: Val) -> Val:
        """Remainder of the truncating quotient; x rem 0 is 0."""
        return integer.trem(self, *self.together(a, b))

    # --- bits ---

    def and_(self, a: Val, b: Val) -> Val:
        return self._binary("and", a, b)

    def or_(self, a: Val, b: Val) -> Val:
        return self._binary("or", a, b)

    def xor(self, a: Val, b: Val) -> Val:
        return self._binary("xor", a, b)

    def not_(self, a: Val) -> Val:
        return self._binary("xor", a, self.const(True if a.dt == "bool" else -1, a.dt))

    def shl(self, a: Val, b: Val) -> Val:
        return self._shift("shl", a, b)

    def shr(self, a: Val, b: Val) -> Val:
        return self._shift("ashr" if a.dt in SIGNED else "lshr", a, b)

    def _shift(self, op: str, a: Val, b: Val) -> Val:
        """The amount counts modulo the width: the machine's own rule, and never poison."""
        mask = BITS[a.dt] - 1
        known = integer.known(b)
        amount = self.const(known & mask, b.dt) if known is not None else self.and_(b, self.const(mask, b.dt))
        return self._binary(op, a, self.relabel(amount, a.dt))

    # --- comparison and choice ---

    def _compare(self, kind: str, a: Val, b: Val) -> Val:
        a, b = self.together(a, b)
        if a.dt in FLOATS:
            text = f"fcmp {_FLOAT_COMPARE[kind]}"
        else:
            text = f"icmp {(_SIGNED_COMPARE if a.dt in SIGNED else _UNSIGNED_COMPARE)[kind]}"
        return self.ins("bool", a.lanes, f"{text} {a.type} {a.text}, {b.text}")

    def eq(self, a: Val, b: Val) -> Val:
        return self._compare("eq", a, b)

    def ne(self, a: Val, b: Val) -> Val:
        """True when an operand is NaN."""
        return self._compare("ne", a, b)

    def lt(self, a: Val, b: Val) -> Val:
        return self._compare("lt", a, b)

    def le(self, a: Val, b: Val) -> Val:
        return self._compare("le", a, b)

    def gt(self, a: Val, b: Val) -> Val:
        return self._compare("gt", a, b)

    def ge(self, a: Val, b: Val) -> Val:
        return self._compare("ge", a, b)

    def select(self, c: Val, a: Val, b: Val) -> Val:
        """Lane by lane; a scalar condition may choose between vectors."""
        lanes = max(c.lanes, a.lanes, b.lanes)
        a, b = self.splat(a, lanes), self.splat(b, lanes)
        return self.ins(a.dt, lanes, f"select {c.type} {c.text}, {a.type} {a.text}, {b.type} {b.text}")

    def maximum(self, a: Val, b: Val) -> Val:
        """NaN if an operand is; -0 below +0."""
        return self._extremum(a, b, "gt", "and_", True)

    def minimum(self, a: Val, b: Val) -> Val:
        return self._extremum(a, b, "lt", "or_", True)

    def maximum_num(self, a: Val, b: Val) -> Val:
        """The other operand if one is NaN; -0 below +0."""
        return self._extremum(a, b, "gt", "and_", False)

    def minimum_num(self, a: Val, b: Val) -> Val:
        return self._extremum(a, b, "lt", "or_", False)

    def _extremum(self, a: Val, b: Val, wins: str, zeros: str, propagate: bool) -> Val:
        a, b = self.together(a, b)
        if a.dt not in FLOATS:
            return self.select(self._compare(wins, a, b), a, b)
        # Each choice is one maxps/minps, which gives its second operand for equal zeros and for NaN: of both orders,
        # 'and' keeps +0 and 'or' keeps -0. Numbers that differ, or are equal and not zero, give the same bits twice.
        bits = "u64" if a.dt == "f64" else "u32"
        x, y = self.select(self._compare(wins, a, b), a, b), self.select(self._compare(wins, b, a), b, a)
        raw = lambda v: self.ins(bits, v.lanes, f"bitcast {v.type} {v.text} to {register_type(bits, v.lanes)}")  # noqa: E731
        m = getattr(self, zeros)(raw(x), raw(y))
        m = self.ins(a.dt, a.lanes, f"bitcast {m.type} {m.text} to {a.type}")
        if propagate:
            unordered = self.ins("bool", a.lanes, f"fcmp uno {a.type} {a.text}, {b.text}")
            return self.select(unordered, self.const(float("nan"), a.dt), m)
        return self.select(self.ne(a, a), b, self.select(self.ne(b, b), a, m))

    # --- conversion ---

    def cast(self, x: Val, dt: str) -> Val:
        """The primitive of math programs: float to int out of range gives some value."""
        return convert.convert(self, x, dt, saturate=False)

    def convert(self, x: Val, dt: str) -> Val:
        """KIR cast: float to int out of range saturates and NaN gives 0, on every target."""
        return convert.convert(self, x, dt, saturate=True)

    def saturating_cast(self, x: Val, dt: str) -> Val:
        """Clamped to the finite range; NaN becomes 0 as an integer."""
        return convert.saturating(self, x, dt)

    def bitcast(self, x: Val, dt: str) -> Val:
        """Reinterpret the memory bits."""
        return convert.bitcast(self, x, dt)

    def table(self, values, dt: str, index: Val) -> Val:
        """Element ``index`` (in range) of a constant table."""
        return memory.table(self, tuple(values), dt, index)

    def identity(self, kind: str, dt: str, lanes: int = 0) -> Val:
        """What ``kind`` (sum prod max min any all and or xor) starts from: it leaves every value as it is."""
        return self.const(_identity(kind, dt), dt, lanes)

    # --- lanes ---

    def iota(self, lanes: int, dt: str = "index") -> Val:
        """0, 1, ... as a vector."""
        element = REGISTER[dt]
        return Val(dt, "<" + ", ".join(f"{element} {k}" for k in range(lanes)) + ">", lanes)

    def shuffle(self, x: Val, indices, other: Val | None = None) -> Val:
        """Lanes of ``x`` (then of ``other``) in the order of ``indices``; a negative index is an arbitrary value."""
        pick = ", ".join(f"i32 {i}" if i >= 0 else "i32 poison" for i in indices)
        second = other.text if other else "poison"
        return self.ins(x.dt, len(indices), f"shufflevector {x.type} {x.text}, {x.type} {second}, <{len(indices)} x i32> <{pick}>")

    def slice(self, x: Val, start: int, count: int) -> Val:
        """Lanes start .. start+count-1."""
        return x if count == x.lanes else self.shuffle(x, range(start, start + count))

    def concat(self, a: Val, b: Val) -> Val:
        """Lanes of a, then of b (equally many)."""
        return self.shuffle(a, range(2 * a.lanes), b)

    def extract(self, x: Val, i: int | str) -> Val:
        """One lane as a scalar; ``i`` is a number or the text of an i64."""
        return self.ins(x.dt, 0, f"extractelement {x.type} {x.text}, i64 {i}")

    def insert(self, x: Val, scalar: Val, i: int | str) -> Val:
        return self.ins(x.dt, x.lanes, f"insertelement {x.type} {x.text}, {scalar.type} {scalar.text}, i64 {i}")

    def any(self, mask: Val) -> Val:
        """True if a lane of a bool vector is (scalar bool)."""
        return self._across("or", mask)

    def all(self, mask: Val) -> Val:
        return self._across("and", mask)

    def _across(self, op: str, mask: Val) -> Val:
        if not mask.lanes:
            return mask
        callee = self.module.declare("i1", f"llvm.vector.reduce.{op}.v{mask.lanes}i1", mask.type)
        return self.ins("bool", 0, f"call i1 {callee}({mask.type} {mask.text})")

    # --- memory ---
    # A pointer is the text of a ``ptr``, or a ``memory.Pointer`` with an address space. It addresses elements as stored.

    def gep(self, dt: str, ptr, index) -> "str | memory.Pointer":
        """The address of element ``index`` (an integer, i64 text or index Val)."""
        return memory.gep(self, dt, ptr, index)

    def load(self, dt: str, ptr, lanes: int = 0, align: int | None = None) -> Val:
        """One element, or ``lanes`` consecutive ones. ``align`` in bytes; default: the element's size."""
        return memory.load(self, dt, ptr, lanes, align)

    def store(self, x: Val, ptr, align: int | None = None, nontemporal: bool = False) -> None:
        """One element or consecutive ones. ``nontemporal`` needs the alignment of the whole vector register."""
        memory.store(self, x, ptr, align, nontemporal)

    def masked_load(self, dt: str, ptr, mask: Val, passthru: Val | None = None, align: int | None = None) -> Val:
        """Consecutive elements where the mask holds, ``passthru`` (default: zero) elsewhere; nothing else is touched."""
        return memory.masked_load(self, dt, ptr, mask, passthru, align)

    def masked_store(self, x: Val, ptr, mask: Val, align: int | None = None) -> None:
        memory.masked_store(self, x, ptr, mask, align)

    def gather(self, dt: str, ptr, offsets: Val, mask: Val | None = None, passthru: Val | None = None) -> Val:
        """Elements at ``offsets`` (a vector of integers, in elements) where the mask holds, else ``passthru`` (default: zero)."""
        return memory.gather(self, dt, ptr, offsets, mask, passthru)

    def scatter(self, x: Val, ptr, offsets: Val, mask: Val | None = None) -> None:
        """Store lane by lane in lane order; a later lane wins."""
        memory.scatter(self, x, ptr, offsets, mask)


def _identity(kind: str, dt: str):
    if kind in ("sum", "any", "or", "xor"):
        return 0
    if kind == "prod":
        return 1
    if kind in ("all", "and"):
        return True if dt == "bool" else -1
    if dt in FLOATS:
        return {"max": -1.0, "min": 1.0}[kind] * float("inf" if dt != "f8e4m3fn" else 448)
    low, high = int_range(dt)
    return low if kind == "max" else high


def suffix(x: Val) -> str:
    """The overload suffix of an intrinsic: f32, v8f64, v32i1 ..."""
    element = REGISTER[x.dt]
    name = {"float": "f32", "double": "f64"}.get(element, element)
    return f"v{x.lanes}{name}" if x.lanes else name
