"""Statements that move elements: transposes, axes, reshapes, joins, domains, reads of tensors through coordinates."""
from __future__ import annotations

from .block import Block
from .pointwise import any_dtype, converted, exact, expression, index_of
from .types import Value, is_integer, shape_text

MOST_AXES = 4


def permuted(b: Block):
    v = b.find(lambda v: v.rank >= 2)
    if v is None:
        return
    order = list(range(v.rank))
    b.writer.rnd.shuffle(order)
    if b.chance(0.3):
        b.let(f"I.transpose({v.text})", v.dt, v.shape[::-1])
    else:
        b.let(f"I.{b.pick(('permute', 'transpose'))}({v.text}, {shape_text(order)})", v.dt, tuple(v.shape[i] for i in order))


def expanded(b: Block):
    v = b.find(lambda v: 1 <= v.rank < MOST_AXES - 1)
    if v is None:
        return
    axis = b.writer.rnd.randint(0, v.rank)
    index = [":"] * v.rank
    index.insert(axis, "None")
    b.let(f"{v.text}[{', '.join(index)}]", v.dt, (*v.shape[:axis], "1", *v.shape[axis:]))


def reshaped(b: Block):
    """Two axes made one, one axis split again, an axis of one element added or dropped."""
    v = b.tensor(lambda v: b.nameable(v.shape) and not any(e in b.domains or "*" in e for e in v.shape))
    flat = b.find(lambda v: v.rank == 1 and "*" in v.shape[0])
    if flat is not None and b.chance(0.6):
        m, n = flat.shape[0].split(" * ")
        shape = (n, m) if b.chance(0.4) else (m, n)
        wanted = [*shape]
        if b.chance(0.3) and not any(e.isdigit() and e == "0" for e in shape):
            wanted[b.pick((0, 1))] = "-1"
            if any(not e.isdigit() and e != "-1" for e in wanted):
                wanted = [*shape]               # the other extent may be zero, and then there is nothing to infer from
        b.let(f"I.reshape({flat.text}, {shape_text(wanted)})", flat.dt, shape)
    elif v is not None and v.rank == 2 and b.chance(0.6):
        m, n = v.shape
        product = f"{m} * {n}"
        b.let(f"I.reshape({v.text}, ({b.pick((product, product, '-1'))},))", v.dt, (product,))
    elif v is not None and v.rank < MOST_AXES:
        axis = b.writer.rnd.randint(0, v.rank)
        shape = (*v.shape[:axis], "1", *v.shape[axis:])
        b.let(f"I.reshape({v.text}, {shape_text(shape)})", v.dt, shape)


def joined(b: Block):
    v = b.find(lambda v: 1 <= v.rank < MOST_AXES - 1)
    if v is not None:
        b.let(f"I.join({v.text}, {exact(b, v.dt, v.shape, 1).text})", v.dt, (*v.shape, "2"))


def element(b: Block):
    """Part of a tensor: a digit for an axis of known extent, a loop's coordinate, a slice in reverse."""
    v = b.tensor()
    if v is None:
        return
    index, shape, reversed_axes = [], [], 0
    for extent in v.shape:
        coords = [c for c, e in b.coords if e == extent]
        if extent.isdigit() and extent != "0" and b.chance(0.4):
            index.append(str(b.writer.rnd.randrange(int(extent))))
        elif coords and b.chance(0.6):
            index.append(b.pick(coords))
        elif not reversed_axes and b.chance(0.3) and (extent in b.extents or extent.isdigit()):
            reversed_axes += 1
            index.append(f"{extent} - 1 - I.indices(I.domain(0, {extent}))")
            shape.append(extent)
        else:
            index.append(":")
            shape.append(extent)
    b.let(f"{v.text}[{', '.join(index)}]", v.dt, tuple(shape) or None)


def filled(b: Block):
    shape = some_shape(b)
    dt = any_dtype(b)
    if b.chance(0.5):
        b.let(f"I.full({shape_text(shape)}, {expression(b, dt, None, 1).text}, I.{dt})", dt, shape)
    else:
        b.let(exact(b, dt, shape).text, dt, shape)


def some_shape(b: Block, most: int = 2):
    extents = [*b.extents, *b.extents, *b.domains, "1", "2", "3"]
    return tuple(b.pick(extents) for _ in range(b.writer.rnd.randint(0, most)))


def domain(b: Block):
    """A domain with a step, or a subregion of another; its name is an extent, its coordinates lie inside the source's."""
    if not b.extents:
        return
    parent = b.pick(b.extents)
    name = b.name("d")
    if b.chance(0.3):
        b.add(f"{name} = I.domain({b.pick('012')}, {parent}, {b.pick('123')})")
    else:
        low = b.pick(("0", f"{parent} // 4", f"I.minimum({parent}, 2)"))
        high = b.pick((parent, f"{parent} - {parent} // 3", f"I.maximum({parent} // 2, {low})"))
        b.add(f"{name} = I.domain(0, {parent}){b.pick(('', '', f'[{low}:{parent}]'))}[{low}:{high}]")
    b.domains[name] = parent
    b.know(Value(f"I.indices({name})", "index", (name,)))
    read = b.tensor(lambda v: parent in v.shape)
    if read is not None:
        axis = read.shape.index(parent)
        index = [":"] * read.rank
        index[axis] = name
        b.let(f"{read.text}[{', '.join(index)}]", read.dt, (*read.shape[:axis], name, *read.shape[axis + 1:]))


def gathered(b: Block):
    """A tensor read through data: coordinates folded into range, or guarded by ``valid`` where they are not."""
    v = b.tensor(lambda v: b.nameable(v.shape) and not any("*" in e or e in b.domains for e in v.shape))
    k = b.tensor(lambda k: is_integer(k.dt) and k.rank < 3)
    if v is None or k is None:
        return
    guarded = b.chance(0.6)
    safe = [e for e in v.shape if e.isdigit() or e in b.positive or e in k.shape]
    if not guarded and len(safe) < v.rank:
        return
    if guarded:
        name = b.let(f"I.cast({k.text}, I.i64) & 63", "i64", k.shape).text
        valid = " & ".join(f"({name} < {converted(b, Value(e, 'index'), 'i64').text if not e.isdigit() else e})" for e in v.shape)
        fill = b.pick((b.literal(v.dt), expression(b, v.dt, k.shape, 1).text))
        b.let(f"I.gather({v.text}, index=({f'{name}, ' * v.rank}), valid={valid}, fill={fill})", v.dt, k.shape)
    elif v.rank == 2 and b.chance(0.5):
        axis = b.pick((0, 1))
        index = [":", ":"]
        index[axis] = index_of(b, k, v.shape[axis])
        shape = (*k.shape, v.shape[1]) if axis == 0 else (v.shape[0], *k.shape)
        b.let(f"{v.text}[{', '.join(index)}]", v.dt, shape)
    else:
        index = ", ".join(index_of(b, k, e) for e in v.shape)
        b.let(f"{v.text}[{index}]", v.dt, k.shape)
