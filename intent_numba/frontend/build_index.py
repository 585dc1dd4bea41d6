"""Indexing, memory, domains and shape operations as KIR: which coordinates does an access touch?"""
from __future__ import annotations

from dataclasses import dataclass

from ..errors import IntentShapeError
from ..kir import Buffer, Domain, Extent, Scalar, Tensor, Value, tensor_or_scalar
from . import build_obligations
from .emitter import Emitter
from .shapes import (broadcast_shapes, expand, extents_argument, is_whole, make_domain, place, require_same, reshape, shape_of, shape_text,
                     simplest, to_scalar, transpose, whole_axis)
from .values import Dom, GroupValue, Idx, Iteration, Lit, RaggedValue, SliceValue


ALWAYS = Lit(True)


@dataclass
class Relation:
    """An index made explicit: one KIR argument for each source axis; ``shape`` of the access; ``new`` the positions in the final
    result where None inserts an axis; ``whole`` when every axis is kept as it is."""
    args: tuple
    shape: tuple
    new: list
    whole: bool


def relation(e: Emitter, source: Value, index) -> Relation:
    items = list(index) if isinstance(index, tuple) else [index]
    rank = len(source.type.shape)
    used = sum(x is not None and x is not Ellipsis for x in items)
    if any(x is Ellipsis for x in items):
        at = next(i for i, x in enumerate(items) if x is Ellipsis)
        items[at:at + 1] = [SliceValue(None, None)] * (rank - used)
    tensors = [_index_tensor(e, x) for x in items if _is_tensor(x)]
    joint = broadcast_shapes(e, [t.type.shape for t in tensors], "index") if tensors else ()
    args, shape, new, final, whole, placed = [], [], [], 0, True, False
    queue = iter(tensors)
    for x in items:
        if x is None:
            new.append(final)
            final += 1
            continue
        extent = source.type.shape[len(args)]
        if _is_tensor(x):
            args.append(place(e, next(queue), "index", joint, True))
            whole = False
            if not placed:
                shape += joint
                final += len(joint)
                placed = True
        elif isinstance(x, (Dom, SliceValue)):
            d = x if isinstance(x, Dom) else slice_domain(e, x, extent)
            whole = whole and is_whole(e, d, extent)
            args.append(d.value)
            shape.append(d.extent)
            final += 1
        else:
            _check_literal(e, x, extent)
            args.append(e.index(x))
            whole = False
    return Relation(tuple(args), tuple(shape), new, whole)


def _is_tensor(x) -> bool:
    return isinstance(x, Value) and isinstance(x.type, Tensor)


def _index_tensor(e: Emitter, v: Value) -> Value:
    return v if v.type.dt == "index" else e.one("cast", (v,), Tensor("index", v.type.shape))


def _check_literal(e: Emitter, x, extent: Extent) -> None:
    if isinstance(x, (Lit, Idx)):
        at = e.extent(x)
        if at.const is not None and extent.const is not None and not 0 <= at.const < extent.const:
            e.fail(IntentShapeError, f"index {at.const} is outside an axis of extent {extent.const}")


def slice_domain(e: Emitter, s: SliceValue, extent: Extent) -> Dom:
    if s.start is None and s.stop is None:
        return whole_axis(e, extent)
    begin = Lit(0) if s.start is None else s.start
    end = Idx(extent) if s.stop is None else s.stop
    if e.extent(begin).const == 0 and e.extent(end) == extent:
        return whole_axis(e, extent)
    b, n = e.extent(begin).const, e.extent(end).const
    if extent.const is not None and n is not None and n > extent.const:
        e.fail(IntentShapeError, f"the slice ends at {n}, outside an axis of extent {extent.const}", "slices never clamp")
    if b is not None and n is not None and b > n:
        e.fail(IntentShapeError, f"the slice {b}:{n} ends before it begins")
    length = e.length(begin, end, Lit(1), obligation=True)
    args = (e.index(begin), e.index(end), e.const(1, "index"))
    value = e.shared(("slice", args), lambda: e.one("domain", args, Domain(length)))
    return Dom(value, simplest(e, begin), simplest(e, end), Lit(1))


# --- reads -------------------------------------------------------------------------------------------------------------

def getitem(e: Emitter, source, index):
    match source:
        case tuple():
            return _tuple_item(source, index)
        case Dom():
            return subregion(e, source, index)
        case RaggedValue():
            return _group(e, source, index)
    r = relation(e, source, index)
    if r.whole and isinstance(source.type, Tensor):
        v = source if r.shape else to_scalar(e, source)
    else:
        kind = "gather" if isinstance(source.type, Tensor) else "read"
        v = e.one(kind, (source, *r.args), tensor_or_scalar(source.type.dt, r.shape))
    return _insert_axes(e, v, r.new)


def _tuple_item(source: tuple, index):
    if isinstance(index, SliceValue):
        bounds = [None if b is None else b.value for b in (index.start, index.stop)]
        return source[slice(*bounds)]
    return source[index.value]


def _insert_axes(e: Emitter, v: Value, new) -> Value:
    for position in new:
        v = expand(e, place(e, v, None, (), True) if isinstance(v.type, Scalar) else v, position)
    return v


def subregion(e: Emitter, source: Dom, s: SliceValue) -> Dom:
    begin = source.begin if s.start is None else s.start
    end = source.end if s.stop is None else s.stop
    if e.extent(source.step).const != 1:
        e.fail(IntentShapeError, "a domain with a step has no subregions", "slice the domain before stepping")
    return make_domain(e, begin, end, Lit(1), source)


def gather(fb, result, src, index, valid, fill):
    e = fb.e
    if isinstance(valid, Lit) and valid.value:
        return getitem(e, src, index)
    r = relation(e, src, index)
    if r.new:
        e.fail(IntentShapeError, "I.gather: None cannot stand in a guarded index", "add the axis to the result, g[:, None]")
    args = (src, *r.args, _guard(e, valid, "bool", r, "valid"), _guard(e, _bool_fill(fill, src), src.type.dt, r, "fill"))
    kind = "gather" if isinstance(src.type, Tensor) else "read"
    return e.one(kind, args, tensor_or_scalar(src.type.dt, r.shape), guard=True)


def _bool_fill(fill, src):
    return Lit(bool(fill.value)) if isinstance(fill, Lit) and src.type.dt == "bool" else fill


def _guard(e: Emitter, x, dt: str, r: Relation, name: str) -> Value:
    shape = broadcast_shapes(e, [r.shape, shape_of(x)], f"I.gather: {name}")
    if len(shape) != len(r.shape) or any(not e.same(a, b) for a, b in zip(shape, r.shape)):
        e.fail(IntentShapeError, f"I.gather: {name} of shape {shape_text(shape_of(x))} would enlarge the result {shape_text(r.shape)}")
    return place(e, x, dt, r.shape, bool(r.shape))


# --- writes ------------------------------------------------------------------------------------------------------------

def setitem(e: Emitter, target: Value, index, value, valid=ALWAYS, **attrs) -> None:
    if isinstance(valid, Lit) and not valid.value:
        return
    r = relation(e, target, index)
    shape = list(r.shape)
    for position in r.new:
        shape.insert(position, Extent.of(1))
    stored = aligned(e, value, target.type.dt, tuple(shape), "store")
    if r.new:
        stored = reshape(e, stored, r.shape) if r.shape else to_scalar(e, reshape(e, stored, ()))
    args = (target, *r.args, stored)
    if not isinstance(valid, Lit):
        args += (aligned(e, valid, "bool", r.shape, "valid"),)
        attrs["guard"] = True
    e.emit("write", args, (), **attrs)


def aligned(e: Emitter, x, dt: str, shape, what: str) -> Value:
    """A value broadcast to the relation's shape; it may not enlarge it."""
    own = shape_of(x)
    for have, want in zip(own[::-1], shape[::-1]):
        if have.const != 1:
            require_same(e, want, have, what)
    if len(own) > len(shape):
        e.fail(IntentShapeError, f"{what}: a value of shape {shape_text(own)} does not fit {shape_text(shape)}")
    return place(e, x, dt, shape, bool(shape))


def store(fb, result, buffer, index, value, valid):
    setitem(fb.e, buffer, index, value, valid)


def scatter_unique(fb, result, dst, index, value, valid):
    setitem(fb.e, dst, index, value, valid, unique=True)


def mutable_load(fb, result, buffer, index):
    return getitem(fb.e, buffer, index)


def buffer(fb, result, shape, dtype, init):
    e = fb.e
    extents = extents_argument(e, shape)
    args = ()
    if init is not None:
        tensor = len(shape_of(init)) > 0
        if tensor:
            for have, want in zip(shape_of(init), extents):
                require_same(e, want, have, "I.buffer: init")
        args = (place(e, init, dtype.name, extents, tensor),)
    return e.one("buffer", args, Buffer(dtype.name, extents))


# --- domains -----------------------------------------------------------------------------------------------------------

def domain(fb, result, begin, end, step):
    return make_domain(fb.e, begin, end, step)


def python_range(fb, result, *args):
    if isinstance(args[0], Dom):
        return args[0]
    begin, end, step = (Lit(0), args[0], Lit(1)) if len(args) == 1 else (*args, Lit(1))[:3]
    return make_domain(fb.e, begin, end, step)


def python_enumerate(fb, result, d):
    return Iteration("enumerate", (d,))


def parallel(fb, result, d):
    return Iteration("product", d) if isinstance(d, tuple) else Iteration("parallel", (d,))


def indices(fb, result, d):
    return fb.e.shared(("indices", d.value), lambda: fb.e.one("indices", (d.value,), Tensor("index", (d.extent,))))


def assume_in_bounds(fb, result, index, resource, axis):
    """The author's word; nothing depends on it yet, and checks find out if it is wrong."""
    e = fb.e
    if e.obligations:
        at = indices(fb, None, index) if isinstance(index, Dom) else e.value(index)
        axis = axis.value % len(resource.type.shape)
        build_obligations.inside(e, at, resource.type.shape[axis], "I.assume_in_bounds", f"the index is outside of axis {axis}")


def ragged(fb, result, outer, members, offsets, indices):
    return RaggedValue(outer, members, offsets, indices)


def _group(e: Emitter, r: RaggedValue, i):
    begin = getitem(e, r.offsets, i)
    end = getitem(e, r.offsets, e.index_arithmetic("add", i, Lit(1)))
    region = make_domain(e, begin, end, Lit(1), r.members)
    return region if r.indices is None else GroupValue(region, r.indices)


def members(fb, result, group):
    if isinstance(group, Dom):
        return indices(fb, result, group)
    v = getitem(fb.e, group.indices, group.region)
    return _index_tensor(fb.e, v)


# --- shapes ------------------------------------------------------------------------------------------------------------

def full(fb, result, shape, fill, dtype):
    return _filled(fb.e, shape, fill, dtype.name)


def zeros(fb, result, shape, dtype):
    return _filled(fb.e, shape, Lit(False if dtype.name == "bool" else 0), dtype.name)


def _filled(e: Emitter, shape, fill, dt: str) -> Value:
    scalar = to_scalar(e, e.value(fill, dt))
    return e.one("broadcast", (scalar,), Tensor(dt, extents_argument(e, shape)))


def build_reshape(fb, result, value, shape):
    return reshape(fb.e, fb.e.value(value), extents_argument(fb.e, shape))


def build_transpose(fb, result, value, permutation):
    v = fb.e.value(value)
    rank = len(v.type.shape)
    perm = range(rank)[::-1] if permutation is None else [p.value % rank for p in permutation]
    return transpose(fb.e, v, perm)


def join(fb, result, lhs, rhs):
    e = fb.e
    a, b = e.value(lhs), e.value(rhs)
    for x, y in zip(a.type.shape, b.type.shape):
        require_same(e, x, y, "I.join")
    b = place(e, b, None, a.type.shape, True)
    return e.one("join", (a, b), Tensor(a.type.dt, (*a.type.shape, Extent.of(2))))


BUILD = {"gather": gather, "store": store, "scatter_unique": scatter_unique, "mutable_load": mutable_load, "buffer": buffer,
         "domain": domain, "parallel": parallel, "indices": indices, "assume_in_bounds": assume_in_bounds, "ragged": ragged,
         "members": members, "full": full, "zeros": zeros, "reshape": build_reshape, "transpose": build_transpose,
         "permute": build_transpose, "join": join}

