"""Shapes of KIR values: broadcasting, placement of operands, domains, reshape and transpose. Shape errors arise here, once."""
from __future__ import annotations

from ..errors import IntentShapeError
from ..kir import Domain, Extent, Scalar, Tensor, Value
from .emitter import Emitter
from .values import Deferred, Dom, Idx, Lit, Product


def shape_of(x) -> tuple:
    """Shape of a front value; scalars have ()."""
    return () if isinstance(x, (Deferred, Lit, Idx)) else x.type.shape


def is_tensor(x) -> bool:
    return isinstance(x, (Value, Product)) and isinstance(x.type, Tensor)


def extent_text(e: Extent) -> str:
    """An extent for messages: internal symbols are shown as a dynamic extent."""
    return "a dynamic extent" if any(s.startswith("%") for s in e.symbols) else str(e)


def shape_text(shape) -> str:
    return "(" + ", ".join(map(extent_text, shape)) + ("," if len(shape) == 1 else "") + ")"


def require_same(e: Emitter, a: Extent, b: Extent, what: str) -> None:
    """Refuse two extents that are not provably equal."""
    if e.same(a, b):
        return
    if e.different(a, b):
        e.fail(IntentShapeError, f"{what}: extents {extent_text(a)} and {extent_text(b)} differ")
    names = f"extents {extent_text(a)} and {extent_text(b)}" if extent_text(a) != extent_text(b) else "two dynamic extents"
    e.fail(IntentShapeError, f"{what}: {names} are not known to be equal",
           "give both the same name in the annotations, or use one domain for both")


def broadcast_shapes(e: Emitter, shapes, what: str) -> tuple:
    """The common shape, aligned from the right; extent 1 repeats."""
    rank = max(map(len, shapes), default=0)
    out = []
    for i in range(rank):
        chosen = None
        for shape in shapes:
            k = len(shape) - rank + i
            if k < 0:
                continue
            extent = shape[k]
            if chosen is None or chosen.const == 1:
                chosen = extent
            elif extent.const != 1 and extent != chosen:
                require_same(e, chosen, extent, what)
        out.append(chosen)
    return tuple(out)


def retype(e: Emitter, v: Value, shape) -> Value:
    """The same elements under extents that are equal but written differently."""
    return e.one("reshape", (v,), Tensor(v.type.dt, tuple(shape)))


def place(e: Emitter, x, dt: str | None, shape, tensor: bool) -> Value:
    """An operand as a KIR value of exactly this dtype, shape and kind."""
    v = e.value(x, dt)
    if not tensor:
        return to_scalar(e, v) if isinstance(v.type, Tensor) else v
    want = Tensor(v.type.dt, tuple(shape))
    if v.type == want:
        return v
    if isinstance(v.type, Tensor) and len(v.type.shape) == len(shape):
        if all(a == b or a.const != 1 and e.same(a, b) for a, b in zip(v.type.shape, shape)):
            return retype(e, v, shape)
    if isinstance(v.type, Tensor):              # spell equal extents alike before repeating the axes of extent 1
        tail = shape[len(shape) - len(v.type.shape):]
        spelled = tuple(a if a.const == 1 else b for a, b in zip(v.type.shape, tail))
        if spelled != v.type.shape:
            v = retype(e, v, spelled)
    if isinstance(v.type, Scalar):
        return e.shared(("broadcast", v, want), lambda: e.one("broadcast", (v,), want))
    return e.one("broadcast", (v,), want)


def to_scalar(e: Emitter, v: Value) -> Value:
    """A rank-zero tensor as a scalar."""
    return e.one("gather", (v,), Scalar(v.type.dt)) if isinstance(v.type, Tensor) else v


# --- domains -----------------------------------------------------------------------------------------------------------

ONE = Lit(1)


def make_domain(e: Emitter, begin, end, step=ONE, source: Dom | None = None) -> Dom:
    """``source`` makes a subregion: its bounds are the caller's obligation."""
    extent = e.length(begin, end, step, obligation=source is not None)
    args = (e.index(begin), e.index(end), e.index(step)) + (() if source is None else (source.value,))
    value = e.shared(("domain", args), lambda: e.one("domain", args, Domain(extent)))
    return Dom(value, simplest(e, begin), simplest(e, end), simplest(e, step))


def simplest(e: Emitter, x):
    """An index scalar as its extent where that is a polynomial of shape names."""
    extent = e.extent(x)
    if extent.const is not None or not any(s.startswith("%") for s in extent.symbols):
        return Idx(extent)
    return x


def whole_axis(e: Emitter, extent: Extent) -> Dom:
    """0 .. extent-1."""
    args = (e.const(0, "index"), e.value(Idx(extent)), e.const(1, "index"))
    value = e.shared(("domain", args, extent), lambda: e.one("domain", args, Domain(extent)))
    return Dom(value, Lit(0), Idx(extent), Lit(1))


def is_whole(e: Emitter, d: Dom, extent: Extent) -> bool:
    """True when the domain is 0 .. extent-1 in steps of one."""
    return e.extent(d.begin).const == 0 and e.extent(d.step).const == 1 and d.extent == extent


# --- rearrangement -------------------------------------------------------------------------------------------------------

def expand(e: Emitter, v: Value, axis: int) -> Value:
    shape = list(v.type.shape)
    shape.insert(axis, Extent.of(1))
    return e.one("expand", (v,), Tensor(v.type.dt, tuple(shape)), axis=axis)


def transpose(e: Emitter, v: Value, perm) -> Value:
    perm = tuple(perm)
    if perm == tuple(range(len(perm))):
        return v
    return e.one("transpose", (v,), Tensor(v.type.dt, tuple(v.type.shape[p] for p in perm)), perm=perm)


def extents_argument(e: Emitter, shape) -> tuple[Extent, ...]:
    """A shape argument: integers and domains as extents."""
    return tuple(d.extent if isinstance(d, Dom) else e.extent(d) for d in shape)


def product(extents) -> Extent:
    total = Extent.of(1)
    for x in extents:
        total = total * x
    return total


def reshape(e: Emitter, v: Value, wanted: tuple[Extent, ...]) -> Value:
    """Row-major reshape; an extent of -1 is inferred, and that it divides evenly is the author's word. Other counts must agree
    provably."""
    source = product(v.type.shape)
    holes = [i for i, x in enumerate(wanted) if x.const == -1]
    if holes:
        rest = product(x for i, x in enumerate(wanted) if i != holes[0])
        inferred = divide(source, rest)
        if inferred is None:
            inferred = _divided_at_run_time(e, source, rest)
        wanted = (*wanted[:holes[0]], inferred, *wanted[holes[0] + 1:])
    elif not e.same_count(source, product(wanted)):
        if e.different(source, product(wanted)):
            e.fail(IntentShapeError, f"I.reshape: {shape_text(v.type.shape)} has {extent_text(source)} elements, "
                                     f"{shape_text(wanted)} has {extent_text(product(wanted))}")
        e.fail(IntentShapeError, f"I.reshape: {shape_text(v.type.shape)} and {shape_text(wanted)} are not known to have the same count",
               "write -1 for one extent, or build the shape from the extents of the value")
    if not wanted and isinstance(v.type, Scalar):
        return e.one("broadcast", (v,), Tensor(v.type.dt, ()))
    if isinstance(v.type, Scalar):
        v = e.one("broadcast", (v,), Tensor(v.type.dt, ()))
    want = Tensor(v.type.dt, tuple(wanted))
    return v if v.type == want else e.one("reshape", (v,), want)


def divide(a: Extent, b: Extent) -> Extent | None:
    """Exact polynomial quotient by a monomial, else None."""
    if len(b.terms) != 1:
        return None
    monomial, coefficient = b.terms[0]
    total = Extent(())
    for m, c in a.terms:
        rest = list(m)
        for s in monomial:
            if s not in rest:
                return None
            rest.remove(s)
        if c % coefficient:
            return None
        part = Extent.of(c // coefficient)
        for s in rest:
            part = part * s
        total = total + part
    return total


def _divided_at_run_time(e: Emitter, source: Extent, rest: Extent) -> Extent:
    if rest.const == 0 or source.const is not None and rest.const is not None and source.const % rest.const:
        e.fail(IntentShapeError, f"I.reshape: {extent_text(source)} elements do not divide into {extent_text(rest)}")
    index = Scalar("index")
    if e.obligations:
        ok = e.one("ne", (e.value(Idx(rest)), e.const(0, "index")), Scalar("bool"))
        e.emit("check", (ok,), (), error="input", operation="I.reshape", message="the product of the extents beside -1 is zero")
    n = e.one("floordiv", (e.value(Idx(source)), e.value(Idx(rest))), index)
    symbol = e.extent(n).symbol
    e.low[symbol] = Extent.of(0)
    e.quotients[symbol] = source, rest
    return e.extent(n)
