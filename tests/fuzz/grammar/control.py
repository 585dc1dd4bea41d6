"""Statements with blocks of their own: branches, loops in order, loops without an order, and ways out of them."""
from __future__ import annotations

from .block import Block
from .memory import atomic, in_parallel, remembered
from .pointwise import condition, exact, index_of
from .types import Value, is_integer, shape_text

DEEPEST = 4


def some_statements(b: Block, count: int) -> None:
    from .program import statements
    statements(b, count)


def branched(b: Block):
    """An ``if`` whose arms give one name a value of one type, or change what was there before."""
    if b.depth >= DEEPEST:
        return
    like = b.find(lambda v: b.nameable(v.shape) and (v.dt != "index" or b.writer.policy != "checked"))
    merged = like is not None and b.chance(0.7)
    name = b.name()
    arms = [f"if {condition(b)}:"]
    if b.chance(0.2):
        arms.append(f"elif {condition(b)}:")
    if merged or b.chance(0.5):
        arms.append("else:")
    for head in arms:
        arm = b.inner()
        some_statements(arm, b.writer.rnd.randint(0 if merged else 1, 2))
        if merged:
            arm.add(f"{name} = {exact(arm, like.dt, like.shape).text}")
        b.nest(head, arm)
    if merged:
        b.variables.add(name)
        b.know(Value(name, like.dt, like.shape))


def rebound(b: Block):
    """A name bound again: in a loop, a carry."""
    v = b.find(lambda v: v.text in b.variables and (b.nameable(v.shape) or b.witness(v.shape)))
    if v is not None:
        b.add(f"{v.text} = {exact(b, v.dt, v.shape).text}")


def carried(b: Block, most: int = 2) -> list[Value]:
    """Names bound before a loop, for its body to bind again."""
    names = []
    for _ in range(b.writer.rnd.randint(0, most)):
        like = b.find(lambda v: b.nameable(v.shape) and v.dt != "index")
        if like is not None:
            names.append(b.let(exact(b, like.dt, like.shape, 1).text, like.dt, like.shape))
    if b.chance(0.2) and len(names) >= 2:
        product = b.name("t")
        b.add(f"{product} = I.record({', '.join(f'x{i}={v.text}' for i, v in enumerate(names))})")
        parts = [Value(f"{product}.x{i}", v.dt, v.shape) for i, v in enumerate(names)]
        for part in parts:
            b.know(part)
        return parts
    return names


def advance(inner: Block, names: list[Value]) -> None:
    """New values for the carries."""
    if names and "." in names[0].text:
        product = names[0].text.split(".")[0]
        fields = ", ".join(f"x{i}={exact(inner, v.dt, v.shape).text}" for i, v in enumerate(names))
        inner.add(f"{product} = I.record({fields})")
        return
    for v in names:
        inner.add(f"{v.text} = {exact(inner, v.dt, v.shape).text}")


def looped(b: Block):
    """``for`` over a domain or a few numbers, or ``while`` with a counter."""
    if b.depth >= DEEPEST:
        return
    names = carried(b)
    inner = b.inner(loop="for")
    # Over a whole extent only at the outside: the work multiplies.
    whole = [e for e in b.extents if b.depth < 2]
    k = b.name("k")
    if b.chance(0.25):
        head = f"while {b.pick((f'{k} < 3', f'{k} < 3 and {condition(b)}'))}:"
        b.add(f"{k} = I.cast(0, I.i32)")
        inner.add(f"{k} = {k} + 1")
        inner.know(Value(k, "i32"))
        inner.points = (*b.points, (f"{k} - 1", "3"))
    elif whole and b.chance(0.6):
        extent = b.pick(whole)
        head = f"for {k} in {b.pick((f'range({extent})', f'I.domain(0, {extent})', f'I.domain(0, {extent}, 2)'))}:"
        if b.chance(0.1):
            ordinal = b.name("n")
            head = head.replace(f"for {k} in ", f"for {ordinal}, {k} in enumerate(").replace("range(", "I.domain(0, ")[:-1] + "):"
            inner.know(Value(ordinal, "index"))
        inner.coords.append((k, extent))
        inner.positive.add(extent)
        inner.know(Value(k, "index"))
        inner.points = (*b.points, (k, extent))
    else:
        count = b.pick("123")
        head = f"for {k} in range({count}):"
        inner.coords.append((k, count))
        inner.know(Value(k, "index"))
        inner.points = (*b.points, (k, count))
    b.writer.nests.add(tuple(e for _, e in inner.points))
    some_statements(inner, b.writer.rnd.randint(1, 3))
    advance(inner, names)
    b.nest(head, inner)
    if b.chance(0.1):
        other = b.inner()
        some_statements(other, 1)
        b.nest("else:", other)


def left(b: Block):
    """A way out of the loop, or to its next point."""
    if not b.loop:
        return
    arm = b.inner()
    some_statements(arm, b.pick((0, 1)))
    arm.add("continue" if b.loop == "parallel" or b.chance(0.5) else "break")
    b.nest(f"if {condition(b)}:", arm)


def parallel(b: Block):
    """Each point of a domain, or of a product of two, on its own."""
    if b.pure or b.depth >= DEEPEST - 1 or not b.extents or not b.kernel:
        return
    b.writer.unordered = True
    extents = [b.pick(b.extents)]
    if b.chance(0.3) and len(set(b.extents)) > 1:
        extents.append(b.pick([e for e in b.extents if e != extents[0]]))
    points = [(b.name("p"), e) for e in extents]
    step = b.pick(("", "", ", 2"))
    domains = [f"I.domain(0, {e}{step})" for e in extents]
    places, updates = in_parallel(b, points)
    inner = b.inner(loop="parallel", places=places, updates={**b.updates, **updates} if updates or b.updates else {}, variables=set(),
                    points=(*b.points, *points))
    for c, e in points:
        inner.coords.append((c, e))
        inner.positive.add(e)
        inner.know(Value(c, "index"))
    b.writer.nests.add(tuple(e for _, e in inner.points))
    some_statements(inner, b.writer.rnd.randint(2, 6))
    if inner.updates and b.chance(0.7):
        atomic(inner)
    remembered(inner)
    head = domains[0] if len(domains) == 1 else shape_text(domains)
    names = ", ".join(c for c, _ in points)
    b.nest(f"for {names} in I.parallel({head}):", inner)


def coordinate(b: Block):
    """A scalar from data, folded into an extent that has elements."""
    choices = [e for e in (*b.positive, "2", "3")]
    v = b.find(lambda v: v.shape is None and is_integer(v.dt))
    if v is not None:
        extent = b.pick(choices)
        name = b.let(index_of(b, v, extent), "i64").text
        b.variables.discard(name)
        b.coords.append((name, extent))
