"""Reductions and scans whose combine is no function of single elements, as ordered loops over small buffers.

A combine that multiplies matrices, has components of different shapes, loops or calls, cannot be evaluated lane by lane. Its
operation becomes loops that keep section 12's R and S step by step: each step reads two members whole, runs the combine's own
operations and stores the result. What is written here is KIR, so everything behind it is lowered like the author's own loops, and
chunks are ``parallel`` points. A scatter_reduce with such a combine takes its members one after the other.
"""
from __future__ import annotations

from ..kir import Buffer, Builder, Domain, Extent, Kernel, Op, Region, Scalar, Tensor, Value, walk
from ..kir.ops import CHUNK, ELEMENTWISE, LANES
from .analysis import selectable
from .inline import Inliner

INDEX, BOOL = Scalar("index"), Scalar("bool")

Number = int | Value
"""An index scalar; arithmetic on known ones is done here."""


def element_function(region: Region) -> bool:
    """Is the combine a function of single elements, one and the same at every place of its components?"""
    shapes = {v.type.shape for v in region.params}
    if len(shapes) > 1:
        return False
    allowed = shapes | {()}
    return all((o.kind in ELEMENTWISE or o.kind in ("const", "extent", "broadcast") or selectable(o, frozenset()))
               and all(v.type.shape in allowed for v in o.results) for o in region.ops)


def _refused(op: Op) -> bool:
    return op.attrs.get("kind") == "generic" and not element_function(op.regions[0])


def spread(kernel: Kernel) -> Kernel:
    """The kernel without such operations; itself where it has none."""
    if not any(_refused(op) for op in walk(kernel.body)):
        return kernel
    return _Spreading(kernel).kernel()


class _Spreading:
    """Copies a kernel, and writes the loops where such operations stood."""

    def __init__(self, kernel: Kernel):
        self.source, self.b = kernel, Builder(kernel.name, kernel.params, kernel.policy)
        values = [*kernel.params]
        for op in walk(kernel.body):
            values += [*op.results, *(p for r in op.regions for p in r.params)]
        self.b._n = 1 + max((int(v.name) for v in values if v.name.isdigit()), default=0)
        self.b.kernel.externs = kernel.externs

    def kernel(self) -> Kernel:
        self.ops(self.source.body.ops)
        return self.b.kernel

    def ops(self, ops) -> None:
        for op in ops:
            self.b.loc = op.loc
            match op.kind:
                case "reduce" if _refused(op):
                    self.mapped(op) if op.attrs.get("over") else self.reduce(op)
                case "scan" if _refused(op):
                    self.scan(op)
                case "scatter_reduce" if _refused(op):
                    self.scatter(op)
                case "parallel" if any(o.kind == "scatter_reduce" and _refused(o) for o in walk(op.regions[0])):
                    self.in_turn(op.args, op.regions[0])
                case _:
                    regions = tuple(map(self.copied, op.regions))
                    self.b.region.ops.append(Op(op.kind, op.args, op.attrs, op.results, regions, op.loc))

    def copied(self, region: Region) -> Region:
        new = Region(region.params, [], region.yields)
        with self.b.inside(new):
            self.ops(region.ops)
        return new

    # --- index scalars and loops ------------------------------------------------------------------------------------------

    def value(self, x: Number) -> Value:
        return self.b.one("const", (), INDEX, value=x) if isinstance(x, int) else x

    def number(self, e: Extent) -> Number:
        """An extent as a count."""
        return e.const if e.const is not None else self.arith("maximum", self.b.one("extent", (), INDEX, e=e), 0)

    def arith(self, kind: str, a: Number, b: Number) -> Number:
        if isinstance(a, int) and isinstance(b, int):
            return FOLD[kind](a, b)
        return self.b.one(kind, (self.value(a), self.value(b)), INDEX)

    def extent(self, n: Number) -> Extent:
        return Extent.of(n) if isinstance(n, int) else Extent.of(f"%{n.name}")

    def domain(self, n: Number, begin: Number = 0) -> Value:
        """The ``n`` coordinates from ``begin``."""
        args = (self.value(begin), self.value(self.arith("add", begin, n)), self.value(1))
        return self.b.one("domain", args, Domain(self.extent(n)))

    def whole(self, shape) -> list[Value]:
        ends = (self.value(e.const) if e.const is not None else self.b.one("extent", (), INDEX, e=e) for e in shape)
        return [self.b.one("domain", (self.value(0), end, self.value(1)), Domain(e)) for e, end in zip(shape, ends)]

    def each(self, kind: str, n: Number, body) -> None:
        """``for`` or ``parallel`` over 0 .. n-1; ``body(i)`` emits one point."""
        if n == 0:
            return
        domain, region = self.domain(n), self.b.block([INDEX])
        with self.b.inside(region):
            body(region.params[0])
        self.b.emit(kind, (domain,), (), (region,))

    def chunks(self, n: Number) -> Number:
        return self.arith("floordiv", self.arith("add", n, CHUNK - 1), CHUNK)

    # --- members ----------------------------------------------------------------------------------------------------------

    def buffers(self, types, axes, n: Number) -> "_Rows":
        """Room for ``n`` members of the component types, along one axis each."""
        shapes = [(*t.shape[:a], self.extent(n), *t.shape[a:]) for t, a in zip(types, axes)]
        return _Rows(self, "read", [self.b.one("buffer", (), Buffer(t.dt, s)) for t, s in zip(types, shapes)], types, axes)

    def combine(self, region: Region, left, right) -> tuple[Value, ...]:
        """One step: the combine's own operations on two members."""
        ops, yields = Inliner(self.b, dict(zip(region.params, (*left, *right)))).ops(region)
        loc = self.b.loc
        self.ops(ops)
        self.b.loc = loc
        return yields

    # --- R ----------------------------------------------------------------------------------------------------------------

    def mapped(self, op: Op) -> None:
        """A reduction for each coordinate of the axes that the combine does not see."""
        axis, over, k = op.attrs["axis"], op.attrs["over"], len(op.args) // 2
        out = [self.b.one("buffer", (), Buffer(v.type.dt, v.type.shape)) for v in op.results]
        domains = [self.whole(op.results[0].type.shape)[a] for a in over]
        points = self.b.block([INDEX] * len(over))
        at = dict(zip(over, points.params))

        def place(shape, where):
            return [where.get(i, d) for i, d in enumerate(self.whole(shape))]
        with self.b.inside(points):
            inside = {a if a < axis else a + 1: i for a, i in at.items()}
            members = []
            for v in op.args[:k]:
                rest = tuple(e for i, e in enumerate(v.type.shape) if i not in inside)
                members.append(self.b.one("gather", (v, *place(v.type.shape, inside)), Tensor(v.type.dt, rest)))
            types = [p.type for p in op.regions[0].params[:k]]
            neutral = [self.b.one("gather", (v, *place(v.type.shape, at)), t) for v, t in zip(op.args[k:], types)]
            attrs = {"axis": axis - sum(a < axis for a in over), "kind": "generic"}
            inner = Op("reduce", (*members, *neutral), attrs, tuple(map(self.b.fresh, types)), op.regions, op.loc)
            self.reduce(inner)
            for memory, v in zip(out, inner.results):
                self.b.emit("write", (memory, *place(memory.type.shape, at), v), ())
        self.b.emit("parallel", domains, (), (points,))
        for memory, v in zip(out, op.results):
            self.b.region.ops.append(Op("read", (memory, *self.whole(v.type.shape)), {}, (v,), (), op.loc))

    def reduce(self, op: Op) -> None:
        region, axis, k = op.regions[0], op.attrs["axis"], len(op.args) // 2
        types, identities = [v.type for v in op.results], op.args[k:]
        n = self.number(op.args[0].type.shape[axis])
        count = self.chunks(n)
        members = _Rows(self, "gather", op.args[:k], types, [axis] * k)
        leaves = self.buffers(types, [0] * k, count)
        self.each("parallel", count, lambda c: self.leaf(region, members, n, c, leaves))
        if not isinstance(count, int) or count > 1:
            self.each("parallel", 1, lambda _: self.levels(region, leaves, count))
        some = self.b.one("gt", (self.value(n), self.value(0)), BOOL)
        for memory, result, identity in zip(leaves.memories, op.results, identities):
            args = (memory, self.value(0), *self.whole(result.type.shape), self.spread_over(some, result.type), identity)
            self.b.region.ops.append(Op("read", args, {"guard": True}, (result,), (), op.loc))

    def levels(self, region: Region, leaves: "_Rows", count: Number) -> None:
        """Leaves of leaves until one is left. Leaf c of a level takes the place c, which no later leaf reads."""
        level = self.b.block([INDEX])
        (here,) = level.params
        with self.b.inside(level):
            above = self.chunks(here)
            self.each("for", above, lambda c: self.leaf(region, leaves, here, c, leaves))
            more = self.b.one("gt", (above, self.value(1)), BOOL)
            level.yields = (more, above)
        self.b.emit("loop", (self.value(count),), (INDEX,), (level,))

    def leaf(self, region: Region, members: "_Rows", n: Number, c: Value, out: "_Rows") -> None:
        """out[c] = leaf of the members c * CHUNK .. of n."""
        begin = self.arith("mul", c, CHUNK)
        m = n if isinstance(n, int) and n <= CHUNK else self.arith("minimum", self.arith("sub", n, begin), CHUNK)
        present = self.arith("minimum", m, LANES)
        lanes = self.buffers(members.types, [0] * len(members.types), LANES)
        self.each("for", present, lambda i: lanes.write(i, members.read(self.arith("add", begin, i))))

        def add(j):
            i = self.arith("add", j, LANES)
            lane = self.b.one("and", (i, self.value(LANES - 1)), INDEX)
            new = members.read(self.arith("add", begin, i))
            lanes.write(lane, self.combine(region, lanes.read(lane), new))
        self.each("for", self.arith("sub", m, present), add)

        def halve(t):
            h = self.b.one("shr", (self.value(LANES // 2), t), INDEX)
            width = self.arith("minimum", h, self.arith("maximum", self.arith("sub", present, h), 0))

            def pair(lane):
                lanes.write(lane, self.combine(region, lanes.read(lane), lanes.read(self.arith("add", lane, h))))
            self.each("for", width, pair)
        self.each("for", LANES.bit_length() - 1, halve)
        out.write(c, lanes.read(0))

    # --- S ----------------------------------------------------------------------------------------------------------------

    def scan(self, op: Op) -> None:
        region, axis, k = op.regions[0], op.attrs["axis"], len(op.args) // 2
        sources, identities = op.args[:k], op.args[k:]
        types, n = [v.type for v in identities], self.number(sources[0].type.shape[axis])
        reverse = op.attrs["reverse"]
        members = _Rows(self, "gather", sources, types, [axis] * k, n if reverse else None)
        memories = [self.b.one("buffer", (), Buffer(v.type.dt, v.type.shape)) for v in sources]
        out = _Rows(self, "read", memories, types, [axis] * k, n if reverse else None)

        def join(a, b):
            return self.combine(region, b, a) if reverse else self.combine(region, a, b)
        count = self.chunks(n)
        self.each("parallel", count, lambda c: self.prefixes(join, members, out, n, c))
        if not isinstance(count, int) or count > 1:
            self.connect(join, out, n, count)
        for memory, result, identity in zip(memories, op.results, identities):
            self.result(op, memory, result, identity)

    def prefixes(self, join, members: "_Rows", out: "_Rows", n: Number, c: Value) -> None:
        """The prefixes inside of chunk c, block by block."""
        begin = self.arith("mul", c, CHUNK)
        m = self.arith("minimum", self.arith("sub", n, begin), CHUNK)

        def block(b):
            inner = self.arith("mul", b, LANES)
            at = self.arith("add", begin, inner)
            width = self.arith("minimum", self.arith("sub", m, inner), LANES)
            self.each("for", width, lambda i: out.write(p := self.arith("add", at, i), members.read(p)))

            def step(t):
                s = self.b.one("shl", (self.value(1), t), INDEX)

                def lane(j):                             # from the last lane down: every lane reads what was there before the step
                    p = self.arith("sub", self.arith("add", at, self.arith("sub", width, 1)), j)
                    out.write(p, join(out.read(self.arith("sub", p, s)), out.read(p)))
                self.each("for", self.arith("maximum", self.arith("sub", width, s), 0), lane)
            self.each("for", LANES.bit_length() - 1, step)

            def carry(i):
                p = self.arith("add", at, i)
                out.write(p, join(out.read(self.arith("sub", at, 1)), out.read(p)))
            # The first block has nothing before it.
            self.each("for", self.arith("mul", width, self.arith("minimum", b, 1)), carry)
        self.each("for", self.arith("floordiv", self.arith("add", m, LANES - 1), LANES), block)

    def connect(self, join, out: "_Rows", n: Number, count: Number) -> None:
        """Totals of all chunks before each chunk, folded left, and then every later chunk with them in front."""
        before = self.buffers(out.types, [0] * len(out.types), count)

        def total(c):
            return out.read(self.arith("sub", self.arith("minimum", self.arith("mul", self.arith("add", c, 1), CHUNK), n), 1))

        def fold(_):
            self.each("for", self.arith("minimum", count, 1), lambda c: before.write(c, total(c)))

            def following(j):
                c = self.arith("add", j, 1)
                before.write(c, join(before.read(j), total(c)))
            self.each("for", later, following)

        def finish(j):
            begin = self.arith("mul", self.arith("add", j, 1), CHUNK)
            prefix = before.read(j)

            def member(i):
                p = self.arith("add", begin, i)
                out.write(p, join(prefix, out.read(p)))
            self.each("for", self.arith("minimum", self.arith("sub", n, begin), CHUNK), member)
        later = self.arith("maximum", self.arith("sub", count, 1), 0)
        self.each("parallel", 1, fold)
        self.each("parallel", later, finish)

    def result(self, op: Op, memory: Value, result: Value, identity: Value) -> None:
        """What the operation gives, from the inclusive prefixes."""
        shape, axis, loc = result.type.shape, op.attrs["axis"], op.loc
        whole = self.whole(shape)
        if op.attrs["inclusive"]:
            self.b.region.ops.append(Op("read", (memory, *whole), {}, (result,), (), loc))
            return
        line = Tensor("index", (shape[axis],))
        at = self.b.one("indices", (whole[axis],), line)
        at = self.b.one("add" if op.attrs["reverse"] else "sub", (at, self.b.one("broadcast", (self.value(1),), line)), line)
        bound = self.number(shape[axis]) if op.attrs["reverse"] else 0
        inside = self.b.one("lt" if op.attrs["reverse"] else "ge", (at, self.b.one("broadcast", (self.value(bound),), line)),
                            Tensor("bool", line.shape))
        for i in range(len(shape) - 1 - axis):
            inside = self.b.one("expand", (inside,), Tensor("bool", (*inside.type.shape, Extent.of(1))), axis=i + 1)
        valid = self.spread_over(inside, Tensor("bool", shape))
        fill = self.b.one("expand", (identity,), Tensor(result.type.dt, (*shape[:axis], Extent.of(1), *shape[axis + 1:])), axis=axis)
        args = (memory, *whole[:axis], at, *whole[axis + 1:], valid, self.spread_over(fill, result.type))
        self.b.region.ops.append(Op("read", args, {"guard": True}, (result,), (), loc))

    def spread_over(self, v: Value, t) -> Value:
        want = Tensor(v.type.dt, t.shape) if isinstance(t, Tensor) else Scalar(v.type.dt)
        return v if v.type == want else self.b.one("broadcast", (v,), want)

    # --- scatter_reduce ---------------------------------------------------------------------------------------------------

    def in_turn(self, domains, region: Region) -> None:
        """The points of a parallel region in ascending order."""
        if not domains:
            return self.ops(region.ops)
        loop = Region(region.params[:1])
        with self.b.inside(loop):
            self.in_turn(domains[1:], Region(region.params[1:], region.ops))
        self.b.emit("for", domains[:1], (), (loop,))
        return None

    def scatter(self, op: Op) -> None:
        """Each member in ascending order: read, combine, write, where it is valid."""
        memory, rank = op.args[0], len(op.args[0].type.shape)
        indices, (value, *valid) = op.args[1:1 + rank], op.args[1 + rank:]

        def member(at):
            place, joint, pos = [], None, 0
            for i in indices:
                if isinstance(i.type, Domain):
                    coordinates = self.b.one("indices", (i,), Tensor("index", (i.type.extent,)))
                    place.append(self.b.one("gather", (coordinates, at[pos]), INDEX))
                    pos += 1
                elif isinstance(i.type, Scalar):
                    place.append(i)
                else:
                    if joint is None:
                        joint = at[pos:pos + len(i.type.shape)]
                        pos += len(i.type.shape)
                    place.append(self.b.one("gather", (i, *joint), INDEX))
            new = self.b.one("gather", (value, *at), Scalar(value.type.dt))

            def act():
                old = self.b.one("read", (memory, *place), Scalar(memory.type.dt))
                (out,) = self.combine(op.regions[0], (old,), (new,))
                self.b.emit("write", (memory, *place, out), ())
            if not valid:
                return act()
            then, orelse = Region(()), Region(())
            with self.b.inside(then):
                act()
            return self.b.emit("if", (self.b.one("gather", (*valid, *at), BOOL),), (), (then, orelse))

        def nest(at, shape):
            if not shape:
                return member(at)
            return self.each("for", self.number(shape[0]), lambda i: nest([*at, i], shape[1:]))
        nest([], value.type.shape)


class _Rows:
    """Members of k components along an axis of k tensors or buffers. ``mirrored`` by a count, member i stands at its place from
    the end."""

    def __init__(self, spreading: _Spreading, kind: str, memories, types, axes, mirrored: Number | None = None):
        self.s, self.kind, self.memories, self.types, self.axes, self.mirrored = spreading, kind, memories, types, axes, mirrored

    def _place(self, i: Number, t, axis: int) -> list[Value]:
        whole = self.s.whole(t.shape)
        if self.mirrored is not None:
            i = self.s.arith("sub", self.s.arith("sub", self.mirrored, 1), i)
        return [*whole[:axis], self.s.value(i), *whole[axis:]]

    def read(self, i: Number) -> list[Value]:
        return [self.s.b.one(self.kind, (m, *self._place(i, t, a)), t) for m, t, a in zip(self.memories, self.types, self.axes)]

    def write(self, i: Number, values) -> None:
        for m, t, a, v in zip(self.memories, self.types, self.axes, values):
            self.s.b.emit("write", (m, *self._place(i, t, a), v), ())


FOLD = {"add": int.__add__, "sub": int.__sub__, "mul": int.__mul__, "floordiv": int.__floordiv__, "minimum": min, "maximum": max}
