"""Typing rules of indexing, memory, domains and shapes: which axes an index gives, and what may be stored where."""
from __future__ import annotations

from numba.core import types

from ..errors import IntentShapeError, LanguageError
from . import planned
from .operations import cast_hint, check_literal, dtype_argument, operand_problem
from .policy import DOMAINS
from .problems import refuse
from .types import (INDEX, NOTHING, Buffer, Domain, DTypeT, EllipsisT, Group, Lit, NamedFloat, NoneT, NothingT, Ragged, Record, Scalar,
                    Slice,
                    Tensor, View, Weak, article, describe, dtype_of, is_product, is_tuple, shaped)

INTS = frozenset(DOMAINS["i"])


def is_integer(t) -> bool:
    return isinstance(t, Weak) or isinstance(t, Lit) and type(t.value) is int or isinstance(t, Scalar) and t.dt in INTS


def integer(what: str, t) -> None:
    if not is_integer(t):
        refuse(f"{what}: an integer is expected, not {describe(t)}", "" if dtype_of(t) is None else "write I.cast(x, I.index)")


# --- indexing --------------------------------------------------------------------------------------------------------

def relation_rank(source, index) -> int:
    """Rank of ``source[index]``; refuses what is no index."""
    items = tuple(index.types) if is_tuple(index) else (index,)
    if any(isinstance(t, NothingT) for t in items):
        refuse("a statement gives no index", "go on with the index itself")
    used = sum(not isinstance(t, (NoneT, EllipsisT)) for t in items)
    dots = sum(isinstance(t, EllipsisT) for t in items)
    if dots > 1:
        refuse("an index can hold only one '...'", cls=IntentShapeError)
    if used > source.rank or not dots and used < source.rank:
        count = f"{source.rank} {'index is' if source.rank == 1 else 'indices are'}"
        hint = "write one ':' for each axis kept whole" if used < source.rank else ""
        refuse(f"{count} expected for {article(source)}, {used} given", hint, IntentShapeError)
    rank, joint = 0, None
    for t in items:
        match t:
            case NoneT() | Domain(kind="domain"):
                rank += 1
            case EllipsisT():
                rank += source.rank - used
            case Slice():
                _slice(t)
                rank += 1
            case Tensor() if t.dt in INTS:
                joint = max(joint or 0, t.rank)
            case Lit() if type(t.value) is int:
                if t.value < 0:
                    refuse(f"a negative index {t.value} into {article(source)}", "count from the start: x[n - 1]", IntentShapeError)
            case _ if is_integer(t):
                pass
            case Tensor(dt="bool"):
                refuse("a bool tensor is not an index", "use I.select, or I.gather with valid=")
            case _:
                refuse(f"{describe(t)} is not an index", "an index is an integer, a domain, a slice or an integer tensor")
    return rank + (joint or 0)


def _slice(t: Slice) -> None:
    if not isinstance(t.step, NoneT):
        refuse("a slice with a step does not exist", "write I.domain(begin, end, step)", LanguageError)
    for bound in (t.start, t.stop):
        if not isinstance(bound, NoneT):
            integer("slice", bound)
            if isinstance(bound, Lit) and bound.value < 0:
                refuse(f"a negative slice bound {bound.value}", "slices count from the start and never clamp", IntentShapeError)


def getitem(source, index):
    if is_tuple(source):
        return _tuple_item(source, index)
    if isinstance(source, Ragged):
        integer("ragged", index)
        return Group() if source.mapped else Domain("domain", 1)
    if isinstance(source, Domain):
        return _subregion(source, index)
    if isinstance(source, Record):
        refuse("a record has no positions", "select a field, r.name")
    if not isinstance(source, (View, Tensor, Buffer)):
        hint = "I.full((), value, dtype) makes a rank-zero tensor" if isinstance(source, Scalar) else ""
        refuse(f"{describe(source)} cannot be indexed", hint)
    return shaped(source.dt, relation_rank(source, index))


def _tuple_item(source, index):
    if isinstance(index, Lit) and type(index.value) is int:
        if not -len(source.types) <= index.value < len(source.types):
            refuse(f"position {index.value} of a tuple of {len(source.types)}", cls=IntentShapeError)
        return source.types[index.value]
    if isinstance(index, Slice):
        bounds = static_slice(index)
        if bounds is not None:
            return types.Tuple(tuple(source.types)[bounds])
    refuse("a tuple position must be known at compile time", "a literal or a Constexpr; a loop variable is not known at compile time")


def static_slice(t: Slice) -> slice | None:
    """The slice when its bounds are compile-time integers."""
    bounds = []
    for b in (t.start, t.stop, t.step):
        if not (isinstance(b, NoneT) or isinstance(b, Lit) and type(b.value) is int):
            return None
        bounds.append(None if isinstance(b, NoneT) else b.value)
    return slice(*bounds)


def _subregion(source: Domain, index):
    if source.kind != "domain":
        refuse(f"{article(source)} cannot be indexed")
    if not isinstance(index, Slice):
        refuse(f"a domain is indexed with a slice of coordinates, not with {describe(index)}", "write d[a:b]")
    if not isinstance(index.step, NoneT):
        refuse("a subregion has no step", "write I.domain(begin, end, step)", LanguageError)
    for b in (index.start, index.stop):
        if not isinstance(b, NoneT):
            integer("subregion", b)
    return source


def store_value(what: str, dt: str, rank: int, value) -> None:
    """Refuse a value that cannot be stored where ``rank`` axes of dtype ``dt`` are."""
    if is_product(value):
        refuse(f"{what}: a {'record' if isinstance(value, Record) else 'tuple'} cannot be stored", "store its components one by one")
    operand_problem(what, value)
    if planned.promotes(value):
        planned.plan(what, "store", (Scalar(dt), value))
    elif isinstance(value, Lit):
        return check_literal(what, value.value, dt)
    elif isinstance(value, Weak):
        if dt not in ("index", "i64"):
            refuse(f"{what}: an integer that control flow made a run-time value goes into {dt}", cast_hint(value, dt))
    elif value.dt != dt:
        refuse(f"{what}: {dt} is expected, the value is {value.dt}", cast_hint(value, dt))
    if getattr(value, "rank", 0) > rank:
        refuse(f"{what}: a value of rank {value.rank} does not fit {rank} indexed {'axis' if rank == 1 else 'axes'}", cls=IntentShapeError)


def setitem(target, index, value):
    if isinstance(target, View) and target.access == "in":
        refuse("an In view is read-only", "annotate the parameter with I.Out or I.InOut", LanguageError)
    if isinstance(target, Tensor):
        refuse("tensors are immutable", "store to an Out or InOut view or to an I.buffer", LanguageError)
    if not isinstance(target, (View, Buffer)):
        refuse(f"{describe(target)} cannot be stored to", "store to an Out or InOut view or to an I.buffer", LanguageError)
    store_value("store", target.dt, relation_rank(target, index), value)
    return NOTHING


def valid_operand(what: str, rank: int, valid, limit: bool = True) -> None:
    if isinstance(valid, Lit) and isinstance(valid.value, bool):
        return
    if dtype_of(valid) != "bool":
        refuse(f"{what}: valid must be bool, not {describe(valid)}")
    if limit and valid.rank > rank:
        refuse(f"{what}: valid of rank {valid.rank} would enlarge the result of rank {rank}", cls=IntentShapeError)


def gather(src, index, valid, fill):
    what = "I.gather"
    if not isinstance(src, (View, Tensor, Buffer)):
        refuse(f"{what}: a tensor, view or buffer is expected, not {describe(src)}")
    rank = relation_rank(src, index)
    valid_operand(what, rank, valid)
    if isinstance(fill, Lit) and fill.value == 0 and src.dt == "bool":
        return shaped(src.dt, rank)
    store_value(f"{what}: fill", src.dt, rank, fill)
    return shaped(src.dt, rank)


def store(buffer, index, value, valid):
    setitem(buffer, index, value)
    valid_operand("I.store", relation_rank(buffer, index), valid)
    return NOTHING


def scatter_unique(dst, index, value, valid):
    return store(dst, index, value, valid)


def mutable_load(buffer, index):
    return getitem(buffer, index)


def assume_in_bounds(index, resource, axis):
    what = "I.assume_in_bounds"
    if not (is_integer(index) or isinstance(index, Tensor) and index.dt in INTS):
        refuse(f"{what}: an integer index is expected, not {describe(index)}")
    if not isinstance(resource, (View, Tensor, Buffer)):
        refuse(f"{what}: a view, tensor or buffer is expected, not {describe(resource)}")
    axis_argument(what, axis, resource.rank)
    return NOTHING


# --- domains ---------------------------------------------------------------------------------------------------------

def domain(begin, end, step):
    for t in (begin, end, step):
        integer("I.domain", t)
    if isinstance(step, Lit) and step.value <= 0:
        refuse(f"I.domain: the step must be positive, not {step.value}", "run forward and compute i = n - 1 - ordinal")
    return Domain("domain", 1)


def python_range(*args):
    if len(args) == 1 and isinstance(args[0], Domain) and args[0].kind == "domain":
        return args[0]
    if not 1 <= len(args) <= 3:
        refuse(f"range takes 1 to 3 integers, {len(args)} given")
    begin, end, step = (Lit(0), args[0], Lit(1)) if len(args) == 1 else (*args, Lit(1))[:3]
    for t in (begin, end, step):
        integer("range", t)
    if isinstance(step, Lit) and step.value <= 0:
        refuse(f"range: the step must be positive, not {step.value}", "run forward and compute i = n - 1 - ordinal")
    return Domain("domain", 1)


def python_enumerate(*args):
    if not args:
        refuse("enumerate: the domain is missing")
    d, *start = args
    if start:
        refuse("enumerate: a start value is not supported", "add it to the ordinal")
    if not (isinstance(d, Domain) and d.kind == "domain"):
        refuse(f"enumerate: a domain is expected, not {describe(d)}")
    return Domain("enumerate", 2)


def parallel(d):
    if isinstance(d, Domain) and d.kind == "domain":
        return Domain("parallel", 1)
    if is_tuple(d) and d.types and all(isinstance(t, Domain) and t.kind == "domain" for t in d.types):
        return Domain("product", len(d.types))
    refuse(f"I.parallel: a domain or a tuple of domains is expected, not {describe(d)}", "write I.parallel(I.domain(0, n))")


def indices(d):
    if isinstance(d, Domain) and d.kind == "domain":
        return Tensor("index", 1)
    refuse(f"I.indices: a domain or subregion is expected, not {describe(d)}")


def ragged(outer, members, offsets, indices):
    for name, t in (("outer", outer), ("members", members)):
        if not (isinstance(t, Domain) and t.kind == "domain"):
            refuse(f"I.ragged: {name} must be a domain, not {describe(t)}")
    for name, t in (("offsets", offsets), ("indices", indices)):
        if name == "indices" and isinstance(t, NoneT):
            continue
        if not (isinstance(t, (View, Tensor, Buffer)) and t.rank == 1 and t.dt in INTS):
            refuse(f"I.ragged: {name} must be an integer view or tensor of rank 1, not {describe(t)}")
    return Ragged(not isinstance(indices, NoneT))


def members(group):
    if isinstance(group, Group) or isinstance(group, Domain) and group.kind == "domain":
        return Tensor("index", 1)
    refuse(f"I.members: a ragged group r[i] is expected, not {describe(group)}")


def getiter(d):
    if isinstance(d, Domain):
        from .types import DomainIter
        return DomainIter(d.kind, d.rank)
    if isinstance(d, (View, Tensor, Buffer)):
        refuse(f"{article(d)} cannot be iterated", "iterate over its coordinates: for i in I.domain(0, x.shape[0])")
    refuse(f"{describe(d)} cannot be iterated", "iterate over a domain or range")


def iternext(it):
    single = it.kind in ("domain", "parallel")
    return types.Pair(INDEX if single else types.UniTuple(INDEX, it.rank), types.boolean)


# --- shapes ----------------------------------------------------------------------------------------------------------

def shape_argument(what: str, shape, inferred: bool = False) -> int:
    """Rank of a shape argument: a tuple of integers and domains."""
    if not is_tuple(shape):
        refuse(f"{what}: the shape must be a tuple such as (n,) or (), not {describe(shape)}")
    for t in shape.types:
        if isinstance(t, Domain) and t.kind == "domain":
            continue
        if not is_integer(t):
            refuse(f"{what}: an extent must be an integer or a domain, not {describe(t)}")
        if isinstance(t, Lit) and t.value < 0 and not (inferred and t.value == -1):
            refuse(f"{what}: an extent cannot be negative, got {t.value}", cls=IntentShapeError)
    return len(shape.types)


def full(shape, fill, dtype):
    rank, dt = shape_argument("I.full", shape), dtype_argument("I.full", dtype)
    if getattr(fill, "rank", 0) > 0:
        refuse("I.full: fill must be a scalar", "broadcast a tensor with pointwise operations", IntentShapeError)
    store_value("I.full: fill", dt, 0, fill)
    return Tensor(dt, rank)


def zeros(shape, dtype):
    return Tensor(dtype_argument("I.zeros", dtype), shape_argument("I.zeros", shape))


def buffer(shape, dtype, init):
    rank, dt = shape_argument("I.buffer", shape), dtype_argument("I.buffer", dtype)
    if not isinstance(init, NoneT):
        store_value("I.buffer: init", dt, rank, init)
        if isinstance(init, Tensor) and init.rank not in (0, rank):
            refuse(f"I.buffer: init must be a scalar or a tensor of the full rank {rank}, not rank {init.rank}", cls=IntentShapeError)
    return Buffer(dt, rank)


def tensor_argument(what: str, t, scalar: bool = False) -> None:
    if scalar and isinstance(t, (Scalar, NamedFloat)):
        return
    if isinstance(t, (View, Buffer)):
        operand_problem(what, t)
    if not isinstance(t, Tensor):
        refuse(f"{what}: a tensor is expected, not {describe(t)}")


def reshape(value, shape):
    tensor_argument("I.reshape", value, scalar=True)
    rank = shape_argument("I.reshape", shape, inferred=True)
    if sum(isinstance(t, Lit) and t.value == -1 for t in shape.types) > 1:
        refuse("I.reshape: at most one extent may be -1", cls=IntentShapeError)
    return Tensor(value.dt, rank)


def transpose(value, permutation, what="I.transpose"):
    tensor_argument(what, value)
    if not isinstance(permutation, NoneT):
        perm = static_ints(what, "permutation", permutation)
        if sorted(perm) != list(range(value.rank)):
            axes = ", ".join(map(str, range(value.rank)))
            refuse(f"{what}: {perm} is not a permutation of the {value.rank} axes", f"it names each of {axes} once", IntentShapeError)
    return value


def permute(value, permutation):
    return transpose(value, permutation, "I.permute")


def static_ints(what: str, name: str, t) -> tuple[int, ...]:
    if is_tuple(t) and all(isinstance(x, Lit) and type(x.value) is int for x in t.types):
        return tuple(x.value for x in t.types)
    refuse(f"{what}: {name} must be a tuple of compile-time integers, not {describe(t)}")


def join(lhs, rhs):
    tensor_argument("I.join", lhs)
    tensor_argument("I.join", rhs)
    if lhs.dt != rhs.dt:
        refuse(f"I.join: {lhs.dt} and {rhs.dt} do not mix", f"write I.cast(x, I.{lhs.dt})")
    if lhs.rank != rhs.rank:
        refuse(f"I.join: ranks {lhs.rank} and {rhs.rank} differ", cls=IntentShapeError)
    return Tensor(lhs.dt, lhs.rank + 1)


def axis_argument(what: str, t, rank: int) -> int:
    """A compile-time axis, normalised."""
    if not (isinstance(t, Lit) and type(t.value) is int):
        refuse(f"{what}: axis must be a compile-time integer, not {describe(t)}")
    if not -rank <= t.value < rank:
        refuse(f"{what}: axis {t.value} does not exist in rank {rank}", cls=IntentShapeError)
    return t.value % rank


def attribute(t, name: str):
    """Type of ``value.name`` for run-time values, None when there is no such attribute."""
    if isinstance(t, (View, Tensor, Buffer)):
        if name == "shape":
            return types.UniTuple(INDEX, t.rank) if t.rank else types.Tuple(())
        if name == "dtype":
            return DTypeT(t.dt)
        refuse(f"{article(t)} has no attribute {name!r}", "it has .shape and .dtype; everything else is an I. operation")
    if isinstance(t, Record):
        found = t.get(name)
        if found is None:
            refuse(f"the record has no field {name!r}", f"its fields are {', '.join(n for n, _ in t.items)}")
        return found
    if isinstance(t, Ragged) and name == "outer":
        return Domain("domain", 1)
    if name == "shape":
        refuse(f"{describe(t)} has no .shape", "tensors and views have one; I.full((), value, dtype) makes a rank-zero tensor")
    refuse(f"{describe(t)} has no attribute {name!r}")


RULES = {"gather": gather, "store": store, "scatter_unique": scatter_unique, "mutable_load": mutable_load,
         "assume_in_bounds": assume_in_bounds, "domain": domain, "parallel": parallel, "indices": indices, "ragged": ragged,
         "members": members, "full": full, "zeros": zeros, "buffer": buffer, "reshape": reshape, "transpose": transpose,
         "permute": permute, "join": join}
