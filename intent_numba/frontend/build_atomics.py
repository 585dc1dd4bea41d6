"""Atomics, scatter_reduce and histogram as KIR. An atomic's element expression names a place and is never read."""
from __future__ import annotations

from dataclasses import dataclass

from numba.core import ir

from ..errors import IntentShapeError, LanguageError
from ..kir import Buffer, Scalar, Tensor, Value, View, tensor_or_scalar
from ..typing.context import OperationT
from ..typing.types import Buffer as BufferT
from ..typing.types import Scalar as ScalarT
from ..typing.types import View as ViewT
from .build_index import aligned, relation
from .build_structured import combine_region, primitive_kind
from .emitter import Emitter
from .shapes import extents_argument
from .values import Lit, Rec


@dataclass(frozen=True, eq=False)
class Element:
    """``memory[index]`` where it names a place."""
    memory: Value
    index: object


def element_expressions(func_ir, types) -> frozenset[int]:
    """Identities of the ``getitem`` expressions that are the address of an atomic."""
    defined = {s.target.name: s.value for block in func_ir.blocks.values() for s in block.body if isinstance(s, ir.Assign)}
    found = set()
    for v in defined.values():
        if isinstance(v, ir.Expr) and v.op == "call" and _is_atomic(types.get(v.func.name)):
            address = v.args[0] if v.args else dict(v.kws).get("address")
            while isinstance(address, ir.Var) and address.name.startswith("$"):
                address = defined.get(address.name)
            if isinstance(address, ir.Expr) and address.op == "getitem" and isinstance(types.get(address.value.name), (ViewT, BufferT)):
                found.add(id(address))
    return frozenset(found)


def _is_atomic(t) -> bool:
    return isinstance(t, OperationT) and t.obj.name.startswith("atomic.")


def _update(e: Emitter, op: str, what: str, address, index, operands, results, valid, /, **attrs) -> list[Value]:
    """Emit one update; ``results`` are dtypes, None standing for the memory's. Gives the results."""
    if isinstance(address, Element):
        memory, index = address.memory, address.index
    elif index is not None and isinstance(address, Value) and isinstance(address.type, (View, Buffer)):
        memory = address
    else:
        e.fail(LanguageError, f"{what}: this is a value that was read before; an atomic needs the place itself",
               "write the element in the call, I.atomic.add(counts[i], ...)")
    if op != "atomic_load" and isinstance(memory.type, View) and memory.type.access == "in":
        e.fail(LanguageError, f"{what}: an In view is read-only", "annotate the parameter with I.Out or I.InOut")
    r = relation(e, memory, index)
    if r.new:
        e.fail(IntentShapeError, f"{what}: None cannot stand in this index", "add the axis to the values, v[:, None]")
    dt = memory.type.dt
    types = [tensor_or_scalar(t or dt, r.shape) for t in results]
    args = (memory, *r.args, *(aligned(e, x, dt, r.shape, what) for x in operands))
    if not (isinstance(valid, Lit) and valid.value):
        args += (aligned(e, valid, "bool", r.shape, f"{what}: valid"),)
        attrs["guard"] = True
    regions = attrs.pop("regions", ())
    return list(e.emit(op, args, types, regions, **attrs))


def load(fb, result, address, index, order, valid):
    return _update(fb.e, "atomic_load", "I.atomic.load", address, index, (), (None,), valid, order=order.value)[0]


def store(fb, result, address, value, index, order, valid):
    _update(fb.e, "atomic_store", "I.atomic.store", address, index, (value,), (), valid, order=order.value)


def rmw(name: str):
    def build(fb, result, address, value, index, order, valid):
        return _update(fb.e, "atomic_rmw", f"I.atomic.{name}", address, index, (value,), (None,), valid, order=order.value,
                       kind=name.rstrip("_"))[0]
    return build


def compare_exchange(fb, result, address, expected, desired, index, order, valid):
    old, success = _update(fb.e, "atomic_compare_exchange", "I.atomic.compare_exchange", address, index, (expected, desired),
                           (None, "bool"), valid, order=order.value)
    return Rec({"old_value": old, "success": success})


def scatter_reduce(fb, result, dst, index, value, combine, valid):
    kind, regions = primitive_kind(combine), ()
    if kind is None:
        regions = (combine_region(fb, combine, ScalarT(dst.type.dt), [Scalar(dst.type.dt)], "I.scatter_reduce"),)
    _update(fb.e, "scatter_reduce", "I.scatter_reduce", dst, index, (value,), (), valid, kind=kind or "generic", regions=regions)


def histogram(fb, result, values, bins, valid, count_dtype):
    e = fb.e
    v = e.value(values)
    if v.type.dt != "index":
        v = e.one("cast", (v,), Tensor("index", v.type.shape))
    shape = extents_argument(e, (bins,))
    if isinstance(valid, Lit) and valid.value:
        return e.one("histogram", (v,), Tensor(count_dtype.name, shape))
    guard = aligned(e, valid, "bool", v.type.shape, "I.histogram: valid")
    return e.one("histogram", (v, guard), Tensor(count_dtype.name, shape), guard=True)


BUILD = {"atomic.load": load, "atomic.store": store, "atomic.compare_exchange": compare_exchange, "scatter_reduce": scatter_reduce,
         "histogram": histogram, **{f"atomic.{name}": rmw(name) for name in ("exchange", "add", "max", "min", "and_", "or_", "xor")}}
