"""Appends KIR operations, and knows what index scalars are: extents, their equality and their sign.

An index scalar that is a polynomial of shape names stays an extent. Constants and extents are shared within a region.
"""
from __future__ import annotations

from ..errors import diagnostic
from ..kir import Builder, Extent, Op, Region, Scalar, Tensor, Value
from ..kir.types import INTEGERS
from ..typing.active import materialized
from ..typing.policy import FLOATS, default_dtype, int_range, literal_value, policy_named
from .values import Deferred, Idx, Lit, Negated, Product

MAX_TERMS = 24
"""Index polynomials with more terms become plain arithmetic."""


class Scope:
    """What one region has: shared values and everything defined in it."""

    def __init__(self, params=()):
        self.shared: dict = {}
        self.defined: set = set(params)


class Emitter:
    def __init__(self, name: str, params, policy: str, obligations: bool = False):
        self.b = Builder(name, params, policy)
        self.obligations = obligations          # whether what only the author's words say becomes a check
        self.policy = policy_named(policy)
        self.scopes = [Scope(self.b.kernel.body.params)]
        self.extents: dict = {}                 # index scalar -> Extent
        self.symbols: dict = {}                 # "%name" -> index scalar
        self.low: dict = {}                     # "%name" -> Extent that it is not below
        self.high: dict = {}                    # "%name" -> Extent that it is not above
        self.domains: dict = {}                 # domain value -> its arguments
        self.constants: dict = {}               # value -> the number that each of its elements is known to be
        self.negations: dict = {}               # not x -> x
        self.clamped: dict = {}                 # "%name" -> Extent it equals where that is not negative
        self.quotients: dict = {}               # "%name" -> (Extent, Extent) whose exact quotient it is
        self.private: set = set()               # buffers of the expansion of an operation, invisible to the program

    # --- operations --------------------------------------------------------------------------------------------------

    def emit(self, op: str, args, types, regions=(), /, **attrs) -> tuple[Value, ...]:
        """Append an operation. Its name is positional, because reductions have an attribute ``kind``."""
        results = tuple(self.b.fresh(t) for t in types)
        self.b.region.ops.append(Op(op, tuple(args), attrs, results, tuple(regions), self.b.loc))
        self.scopes[-1].defined.update(results)
        if op == "domain":
            self.domains[results[0]] = tuple(args)
        if op == "broadcast" and args[0] in self.constants:
            self.constants[results[0]] = self.constants[args[0]]
        return results

    def one(self, op: str, args, type, /, **attrs) -> Value:
        return self.emit(op, args, (type,), **attrs)[0]

    def shared(self, key, make) -> Value:
        """The value of a pure operation, made once where it is visible."""
        for scope in reversed(self.scopes):
            if key in scope.shared:
                return scope.shared[key]
        value = self.scopes[-1].shared[key] = make()
        return value

    def negate(self, x) -> Value:
        """``not x`` of a bool scalar; a negation undone gives the original."""
        if isinstance(x, Negated):
            return x.value
        original = self.negations.get(x)
        if original is not None:
            return original
        value = self.shared(("not", x), lambda: self.one("not", (x,), Scalar("bool")))
        self.negations[value] = x
        return value

    def inside(self, region: Region, scope: Scope | None = None):
        """Emission into ``region``; a ``scope`` continues an earlier visit."""
        return _Inside(self, region, scope)

    def fail(self, cls, message: str, hint: str = "", notes: tuple = ()):
        raise cls(diagnostic(self.b.loc, message, hint, notes))

    # --- scalars -----------------------------------------------------------------------------------------------------

    def const(self, value, dt: str) -> Value:
        value = literal_value(value, dt)
        v = self.shared(("const", dt, type(value), repr(value)), lambda: self.one("const", (), Scalar(dt), value=value))
        self.constants[v] = value
        return v

    def value(self, x, dt: str | None = None) -> Value:
        """A KIR value of dtype ``dt`` (its own when None). Literals instantiate; a weak integer serves as i64."""
        match x:
            case Lit():
                return self.literal(x, dt)
            case Idx():
                x = self._extent_value(x.extent)
            case Product():
                x = self.product(x)
            case Negated():
                x = self.negate(x.value)
            case Deferred():
                from .build_planned import evaluate
                x = evaluate(self, x, dt)
        if dt is not None and x.type.dt != dt:
            assert self.policy.promotes or {x.type.dt, dt} == {"index", "i64"}, (x.type, dt)
            x = self.one("cast", (x,), _with_dtype(x.type, dt))
        return x

    def literal(self, x: Lit, dt: str | None) -> Value:
        """A literal as a constant. Where the policy converts, a bool may be a number and an integer wraps into its dtype."""
        value = x.value
        if not self.policy.promotes:
            return self.const(value, dt or x.dt or default_dtype(value))
        dt = dt or x.dt or materialized((value,))[0]
        if dt == "bool":
            value = bool(value)
        elif dt not in FLOATS:
            low, high = int_range(dt)
            value = (int(value) - low) % (high - low + 1) + low
        return self.const(value, dt)

    def product(self, p: Product) -> Value:
        if p.value is None:
            loc, self.b.loc = self.b.loc, p.loc
            p.value = self.one("mul", (p.a, p.b), p.type)
            self.b.loc = loc
        return p.value

    def index(self, x) -> Value:
        """Any integer scalar as a KIR index scalar."""
        if isinstance(x, Lit):
            return self.const(x.value, "index")
        x = self.value(x)
        if x.type.dt == "index":
            return x
        return self.shared(("cast", x), lambda: self.one("cast", (x,), Scalar("index")))

    def dtype(self, x) -> str | None:
        """Dtype of a front value; None for a literal."""
        match x:
            case Lit():
                return x.dt
            case Deferred():
                return None
            case Idx():
                return "index"
        return x.type.dt

    # --- extents -----------------------------------------------------------------------------------------------------

    def extent(self, x) -> Extent:
        """An integer scalar as an extent."""
        match x:
            case Lit():
                return Extent.of(x.value)
            case Idx():
                return x.extent
        v = self.index(x)
        found = self.extents.get(v)
        if found is None:
            symbol = f"%{v.name}"
            self.symbols[symbol] = v
            found = self.extents[v] = Extent.of(symbol)
        return found

    def scalar_of(self, e: Extent):
        """An extent as a front value."""
        return Lit(e.const) if e.const is not None else Idx(e)

    def _extent_value(self, e: Extent) -> Value:
        if e.const is not None:
            return self.const(e.const, "index")
        if not any(s.startswith("%") for s in e.symbols):
            return self.shared(("extent", e), lambda: self.one("extent", (), Scalar("index"), e=e))
        if e.symbol is not None:
            return self.symbols[e.symbol]
        return self.shared(("extent", e), lambda: self._polynomial(e))

    def _polynomial(self, e: Extent) -> Value:
        index, total = Scalar("index"), None
        for monomial, coefficient in e.terms:
            part = None
            for s in monomial:
                factor = self._extent_value(Extent.of(s))
                part = factor if part is None else self.one("mul", (part, factor), index)
            if part is None:
                part = self.const(coefficient, "index")
            elif coefficient != 1:
                part = self.one("mul", (part, self.const(coefficient, "index")), index)
            total = part if total is None else self.one("add", (total, part), index)
        self.extents[total] = e
        return total

    def index_arithmetic(self, kind: str, a, b=None):
        """``add``, ``sub``, ``mul`` or ``neg`` of index scalars: an extent where it stays one."""
        ea = self.extent(a)
        eb = None if b is None else self.extent(b)
        match kind:
            case "add":
                e = ea + eb
            case "sub":
                e = ea - eb
            case "mul":
                e = ea * eb
            case _:
                e = -ea
        if e == ea or e == eb:
            return a if e == ea else b          # x + 0, x * 1
        constant = e.const
        if constant is not None and -(1 << 63) <= constant < 1 << 63:
            return Idx(e)
        small = len(e.terms) <= MAX_TERMS and all(abs(c) < 1 << 63 for _, c in e.terms)
        if small and not any(s.startswith("%") for s in e.symbols):
            return Idx(e)
        args = (self.index(a),) if b is None else (self.index(a), self.index(b))
        v = self.one(kind, args, Scalar("index"))
        if small:
            self.extents[v] = e
        return v

    def same(self, a: Extent, b: Extent) -> bool:
        """Provably equal."""
        return a == b or self._resolve(a) == self._resolve(b)

    def _resolve(self, e: Extent) -> Extent:
        while any(s in self.clamped for s in e.symbols):
            e = e.substitute(self.clamped)
        return e

    def note_quotient(self, v: Value, source: Extent, rest: Extent) -> None:
        """Where ``v`` serves as an extent of a reshape, that the division is even is the author's word."""
        if rest.const is None or rest.const > 0:
            self.quotients[f"%{v.name}"] = source, rest

    def same_count(self, a: Extent, b: Extent) -> bool:
        """Provably equal, where extents that ``reshape`` inferred, and quotients that it was given, divide evenly."""
        return self._vanishes(self._resolve(a) - self._resolve(b))

    def _vanishes(self, d: Extent) -> bool:
        if d.const is not None:
            return d.const == 0
        for s in d.symbols & self.quotients.keys():
            if all(m.count(s) <= 1 for m, _ in d.terms):
                without = Extent(tuple((m, c) for m, c in d.terms if s not in m))
                factor = Extent(tuple((tuple(t for t in m if t != s), c) for m, c in d.terms if s in m))
                source, rest = self.quotients[s]
                return self._vanishes(without * rest + factor * source)
        return False

    def different(self, a: Extent, b: Extent) -> bool:
        """Provably unequal."""
        d = self._resolve(a) - self._resolve(b)
        return d.const is not None and d.const != 0

    def nonnegative(self, e: Extent, depth: int = 4) -> bool:
        """Provably zero or more, from shape names, loop bounds and clamped lengths."""
        if all(c >= 0 and all(self._not_below_zero(s) for s in m) for m, c in e.terms):
            return True
        if depth == 0:
            return False
        for monomial, coefficient in e.terms:
            if len(monomial) == 1:
                bound = (self.high if coefficient < 0 else self.low).get(monomial[0])
                if bound is not None:
                    rest = e - Extent.of(monomial[0]) * coefficient
                    if self.nonnegative(rest + bound * coefficient, depth - 1):
                        return True
        return False

    def _not_below_zero(self, symbol: str) -> bool:
        if not symbol.startswith("%"):
            return True
        low = self.low.get(symbol)
        return low is not None and low.const is not None and low.const >= 0

    def length(self, begin, end, step, obligation: bool) -> Extent:
        """Number of members of begin, begin + step, ... < end. ``obligation``: the caller promises begin <= end."""
        eb, ee, es = self.extent(begin), self.extent(end), self.extent(step)
        span = ee - eb
        if span.const is not None and es.const is not None:
            return Extent.of(max(0, -(-span.const // es.const)))
        certain = obligation or self.nonnegative(span)
        if es.const == 1 and certain:
            return span
        return self.extent(self.shared(("length", eb, ee, es), lambda: self._measured(span, begin, end, step, es, certain)))

    def _measured(self, span: Extent, begin, end, step, es: Extent, certain: bool) -> Value:
        index = Scalar("index")
        n = self.index(self.index_arithmetic("sub", end, begin))
        if es.const != 1:
            up = self.index(self.index_arithmetic("add", n, self.index_arithmetic("sub", step, Lit(1))))
            n = self.one("floordiv", (up, self.index(step)), index)
        if not certain:
            n = self.one("maximum", (n, self.const(0, "index")), index)
        symbol = self.extent(n).symbol
        if symbol is None:                      # an earlier name for the same polynomial: give the clamped value its own
            symbol = f"%{n.name}"
            self.symbols[symbol], self.extents[n] = n, Extent.of(symbol)
        self.low[symbol] = Extent.of(0)
        if es.const == 1 and not certain:
            self.clamped[symbol] = span
        return n

    def bind_coordinate(self, v: Value, dom) -> None:
        """Record what is known of a loop variable."""
        symbol = self.extent(v).symbol
        self.low[symbol] = self.extent(dom.begin)
        self.high[symbol] = self.extent(dom.end) - 1


class _Inside:
    """Emission into a region, with its own scope."""

    def __init__(self, emitter: Emitter, region: Region, scope: Scope | None):
        self.emitter, self.inner = emitter, emitter.b.inside(region)
        self.scope = scope or Scope()
        self.scope.defined.update(region.params)

    def __enter__(self) -> Scope:
        self.inner.__enter__()
        self.emitter.scopes.append(self.scope)
        return self.scope

    def __exit__(self, *exc):
        self.emitter.scopes.pop()
        return self.inner.__exit__(*exc)


def _with_dtype(t, dt: str):
    return Tensor(dt, t.shape) if isinstance(t, Tensor) else Scalar(dt)


def is_integer_dtype(dt: str) -> bool:
    return dt in INTEGERS
