"""Statements that read and change views and buffers: loads, stores, scatters, atomics. No read of what nothing wrote, no two writes
of one statement to one element but where an operation combines them."""
from __future__ import annotations

from dataclasses import replace

from .block import Block
from .helpers import combiner
from .pointwise import exact, expression, index_of
from .shaping import some_shape
from .types import Parameter, Place, Value, is_integer, shape_text

ORDERS = ("relaxed", "acquire", "release", "acq_rel")
COMMUTING = ("add", "max", "min", "and_", "or_", "xor")


def relation(b: Block, place: Place) -> tuple[list[str], tuple[str, ...] | None]:
    """One index for each axis of a place, injective, and the shape they select."""
    index: list[str] = []
    shape: list[str] = []
    data = False
    for extent, fixed in zip(place.shape, place.fixed):
        coords = [c for c, e in b.coords if e == extent]
        known = extent.isdigit() or extent in b.extents
        inside = [d for d, bound in b.domains.items() if bound == extent]
        if fixed is not None:
            index.append(fixed)
        elif coords and b.chance(0.4):
            c = b.pick(coords)
            index.append(b.pick((c, c, f"{extent} - 1 - {c}")))
        elif extent.isdigit() and extent != "0" and b.chance(0.2):
            index.append(str(b.writer.rnd.randrange(int(extent))))
        elif inside and b.chance(0.3):
            index.append(b.pick(inside))
            shape.append(index[-1])
        elif known and not data and b.chance(0.2):
            data = True
            index.append(b.pick((f"{extent} - 1 - I.indices(I.domain(0, {extent}))",
                                 f"(I.indices(I.domain(0, {extent})) + 1) % {extent}")))
            shape.append(extent)
        else:
            index.append(b.pick((":", ":", f"I.domain(0, {extent})")) if known else ":")
            shape.append(extent)
    return index, tuple(shape) or None


def bracket(index: list[str]) -> str:
    return ", ".join(index) or "()"


def some_place(b: Block, test=lambda p: True) -> Place | None:
    found = [p for p in b.places if test(p)]
    return b.pick(found) if found else None


def loaded(b: Block):
    place = some_place(b, lambda p: p.readable)
    if place is None:
        return
    index, shape = relation(b, place)
    b.let(f"{place.name}[{bracket(index)}]", place.dt, shape)


def stored(b: Block):
    place = some_place(b, lambda p: p.writable and p.name not in b.updates)
    if place is None:
        return
    index, shape = relation(b, place)
    value = expression(b, place.dt, shape)
    where = f"{place.name}[{bracket(index)}]"
    if index and b.chance(0.2):
        valid = f", valid={expression(b, 'bool', shape, 1).text}" if b.chance(0.7) else ""
        b.add(f"I.store({place.name}, {index[0] if len(index) == 1 else '(' + ', '.join(index) + ')'}, {value.text}{valid})"
              if ":" not in index else f"{where} = {value.text}")
    elif place.readable and b.chance(0.2):
        # The shape of an augmented assignment's right side is at most that of the left.
        b.add(f"{where} {b.pick('&|^') if place.dt == 'bool' else b.pick('+-*')}= {value.text}")
    else:
        b.add(f"{where} = {value.text}")


def scattered(b: Block):
    """A vector of updates: places from data are combined, places from a permutation are stored."""
    place = some_place(b, lambda p: p.writable and p.readable and all(f is None for f in p.fixed) and p.shape)
    keys = b.tensor(lambda v: is_integer(v.dt) and v.rank == 1)
    if place is None:
        return
    axis = b.writer.rnd.randrange(len(place.shape))
    if any(f is not None for f in place.fixed) or len(place.shape) > 2:
        return
    extent = place.shape[axis]
    index = [f"I.domain(0, {e})" for e in place.shape]
    if not all(e.isdigit() or e in b.extents for e in place.shape):
        return
    if keys is None or b.chance(0.3):
        index[axis] = f"{extent} - 1 - I.indices(I.domain(0, {extent}))"
        if len(index) == 2:
            index[1 - axis] = b.pick([c for c, e in b.coords if e == place.shape[1 - axis]] or [index[1 - axis]])
        shape = tuple(e for e, i in zip(place.shape, index) if "domain" in i)
        b.add(f"I.scatter_unique({place.name}, index=({''.join(f'{i}, ' for i in index)}), value={exact(b, place.dt, shape).text}"
              f"{valid_argument(b, shape)})")
        return
    if not (extent.isdigit() or extent in b.positive or extent == keys.shape[0]):
        return
    index[axis] = index_of(b, keys, extent)
    shape = tuple(keys.shape[0] if i == axis else e for i, e in enumerate(place.shape))
    combine = combiner(b, [(place.dt, None)])[0] if b.chance(0.4) or place.dt == "bool" else f"I.{b.pick(('add', 'maximum', 'minimum'))}"
    b.add(f"I.scatter_reduce({place.name}, index=({''.join(f'{i}, ' for i in index)}), value={exact(b, place.dt, shape).text}, "
          f"combine={combine}{valid_argument(b, shape)})")


def valid_argument(b: Block, shape) -> str:
    return f", valid={expression(b, 'bool', shape, 1).text}" if b.chance(0.4) else ""


def atomic(b: Block):
    """Atomics of a whole vector or of one element. Between points of a parallel only one commuting kind touches a place, and what
    it returns is not looked at."""
    place = some_place(b, lambda p: p.writable and p.fixed == (None,) and (p.name in b.updates if b.updates else p.readable))
    if place is None:
        return
    extent = place.shape[0]
    kind = b.updates[place.name] if b.updates else b.pick(commuting(place.dt))
    coords = [c for c, e in b.coords if e == extent]
    if b.chance(0.5) and (extent.isdigit() or extent in b.positive):
        scalar = expression(b, "i64", None, 1)
        coords = [index_of(b, scalar, extent)]
    if not coords:
        return
    at, order = b.pick(coords), b.pick(ORDERS)
    value = exact(b, place.dt, None).text
    valid = valid_argument(b, None)
    if kind == "scatter":
        b.add(f"I.scatter_reduce({place.name}, index={at}, value={value}, combine=I.add{valid})")
        return
    call = b.pick((f'I.atomic.{kind}({place.name}[{at}], {value}, order="{order}"{valid})',
                   f'I.atomic.{kind}({place.name}, index=({at},), value={value}, order="{order}"{valid})'))
    if b.updates or b.chance(0.5):
        b.add(call)
    else:
        ordered = b.pick(("exchange", "load", "compare", kind))
        if ordered == "load":
            call = f'I.atomic.load({place.name}[{at}], order="{b.pick(("relaxed", "acquire"))}")'
        elif ordered == "exchange":
            call = f'I.atomic.exchange({place.name}[{at}], {value}, order="{order}")'
        elif ordered == "compare" and is_integer(place.dt):
            old, expected = b.name(), expression(b, place.dt, None, 1).text
            b.add(f'{old} = I.atomic.compare_exchange({place.name}[{at}], {expected}, {value}, order="{order}")')
            b.know(Value(f"{old}.old_value", place.dt))
            b.know(Value(f"{old}.success", "bool"))
            return
        b.let(call, place.dt)


def commuting(dt: str) -> tuple[str, ...]:
    """Kinds of atomics whose order does not matter, or is fixed."""
    return COMMUTING if is_integer(dt) else COMMUTING[3:] if dt == "bool" else COMMUTING[:3]


def buffered(b: Block):
    """A buffer with contents from the start, or written as a whole before it is read."""
    shape = some_shape(b)
    dt = b.pick(b.writer.dtypes)
    if any(e in b.domains for e in shape):
        return
    name = b.name("b")
    how = b.pick(("scalar", "tensor", "later"))
    if how == "scalar":
        init = b.pick((b.literal(dt), expression(b, dt, None, 1).text))
        b.add(f"{name} = I.buffer({shape_text(shape)}, I.{dt}, init={init})")
    elif how == "tensor" and shape:
        b.add(f"{name} = I.buffer({shape_text(shape)}, I.{dt}, init={exact(b, dt, shape).text})")
    else:
        b.add(f"{name} = I.buffer({shape_text(shape)}, I.{dt})", f"{name}[{bracket([':'] * len(shape))}] = {expression(b, dt, shape).text}")
    place = Place(name, dt, shape, (None,) * len(shape), writable=True)
    b.places.append(place)


def remembered(b: Block):
    """A value written to an output of its own, at the coordinates of the loops around it."""
    if not b.kernel or sum(p.kind == "out" for p in b.writer.parameters) > 8:
        return
    v = b.find(lambda v: v.rank + len(b.points) <= 4)
    if v is not None:
        output(b, v)


def output(b: Block, v: Value):
    if v.dt == "index" and b.writer.policy == "checked":
        return                                                  # 004 has no integer that could hold it
    shape = v.shape or ()
    text, dt = (f"I.cast({v.text}, I.i64)", "i64") if v.dt == "index" else (v.text, v.dt)
    if any(e in b.domains or "*" in e or not (e.isdigit() or e in b.extents) for e in shape):
        if dt == "bool":
            text, shape = f"I.reduce.any({text}, axis={tuple(range(v.rank))})", ()
        else:
            text, shape = f"I.reduce.max({text}, axis={tuple(range(v.rank))})", ()
    points = [(c, e) for c, e in b.points if e in b.extents or e.isdigit()]
    name = b.name("o")
    extents = tuple(e for _, e in points) + shape
    b.writer.parameters.append(Parameter("out", name, dt, extents))
    b.add(f"{name}[{bracket([c for c, _ in points] + [':'] * len(shape))}] = {text}")


def assumed(b: Block):
    place = some_place(b, lambda p: any(e == x for e in p.shape for _, x in b.coords))
    if place is not None:
        axis = b.pick([i for i, e in enumerate(place.shape) if any(e == x for _, x in b.coords)])
        c = b.pick([c for c, e in b.coords if e == place.shape[axis]])
        b.add(f"I.assume_in_bounds({c}, {place.name}, axis={axis})")


def in_parallel(b: Block, points: list[tuple[str, str]]) -> tuple[list[Place], dict[str, str]]:
    """What the points of a parallel may do with each place: a point owns the elements at its coordinates; other places are read by
    all, or updated by one commuting kind of operation; the rest is out of reach."""
    places, updates = [], {}
    for p in b.places:
        if not p.writable or p.name in b.updates:
            places.append(p)
            continue
        fixed = list(p.fixed)
        for c, extent in points:
            axis = next((i for i, e in enumerate(p.shape) if e == extent and fixed[i] is None), None)
            if axis is None:
                break
            fixed[axis] = c
        else:
            if b.chance(0.8):
                places.append(replace(p, fixed=tuple(fixed)))
                continue
        if len(p.shape) == 1 and p.fixed == (None,) and b.writer.policy != "checked" and b.chance(0.6):
            updates[p.name] = b.pick((*commuting(p.dt), *(() if p.dt == "bool" else ("scatter",))))
            places.append(replace(p, readable=False))
        elif p.readable:
            places.append(replace(p, writable=False))
    return places, updates
