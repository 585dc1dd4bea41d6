"""How is a kernel executed?  A direct reading of KIR: one rule for each kind, regions run as they stand.

Values are arrays as ``operations`` holds them (0-d for scalars), domains are ``Coordinates``, views and buffers are
``Memory``. ``parallel`` points run in ascending order. Every result is checked against the shape of its type, so a
wrong extent in KIR is found here and not in a wrong answer.
"""
from __future__ import annotations

import itertools
import math

import numpy as np

from ..errors import IntegerOverflow, InvalidInput, diagnostic
from ..kir.ir import Kernel, Op, Region
from ..kir.ops import ELEMENTWISE, OVERFLOW_MESSAGE
from ..kir.types import Domain, Extent, Scalar
from . import structured, updates
from .memory import Coordinates, Memory, select
from .operations import NUMPY, Typed, constant, evaluate


class InterpreterError(RuntimeError):
    """A kernel whose types do not describe its values."""


def run(kernel: Kernel, args: list) -> None:
    """Execute a verified kernel on ``args``, in the order of ``kernel.params``: NumPy arrays for views (f16 as float16, bf16 and
    f8 as ml_dtypes, index as int64), Python or NumPy numbers for scalars. Out and InOut views are written in place.

    Raises TypeError or ValueError when an argument does not fit its parameter, IndexError when an index leaves its axis.
    """
    if len(args) != len(kernel.params):
        raise ValueError(f"{kernel.name}: {len(args)} arguments for {len(kernel.params)} parameters")
    frame = _Frame(kernel)
    with np.errstate(all="ignore"):
        for p, value in zip(kernel.params, args):
            frame.bind(p, value)
        frame.run(kernel.body)


class _Symbols:
    """Extent symbols to integers: shape names, and ``%value`` for index scalars and domains."""

    def __init__(self, values: dict):
        self.values, self.names = values, {}

    def __getitem__(self, symbol: str) -> int:
        if not symbol.startswith("%"):
            return self.names[symbol]
        value = self.values[symbol[1:]]
        return value.count if isinstance(value, Coordinates) else int(value)


class _Frame:
    """The values of one launch. Names are unique in a kernel, so one dictionary serves every region."""

    def __init__(self, kernel: Kernel):
        self.kernel, self.values = kernel, {}
        self.symbols = _Symbols(self.values)
        self.uniform: dict[int, bool] = {}
        self.members = None             # those that a combine of scatter_reduce works on

    def bind(self, param, value) -> None:
        if isinstance(param.type, Scalar):
            self.values[param.name] = constant(value.item() if isinstance(value, np.generic) else value, param.type.dt)
            return
        memory = Memory.view(param.name, param.type.dt, value)
        if value.ndim != len(param.type.shape):
            raise ValueError(f"{param.name}: rank {len(param.type.shape)} expected, got {value.ndim}")
        for have, e in zip(value.shape, param.type.shape):
            if e.symbol is not None:
                self.symbols.names.setdefault(e.symbol, have)
            want = self.extent(e)
            if want != have:
                raise ValueError(f"{param.name}: extent {e} is {want}, got {have}")
        self.values[param.name] = memory

    def extent(self, e: Extent) -> int:
        # A domain whose begin lies after its end is empty, while end - begin is negative.
        return max(0, e.evaluate(self.symbols))

    def shape(self, type) -> tuple[int, ...]:
        return tuple(map(self.extent, type.shape))

    def run(self, region: Region) -> list:
        for op in region.ops:
            results = self.operation(op)
            for v, value in zip(op.results, results, strict=True):
                self.define(op, v, value)
        return [self.values[v.name] for v in region.yields]

    def operation(self, op: Op):
        if op.kind in ELEMENTWISE:
            return (self.elementwise(op),)
        rule = RULES.get(op.kind)
        if rule is None:
            raise InterpreterError(f"{op.kind} has no rule")
        try:
            return rule(self, op, [self.values[a.name] for a in op.args])
        except IndexError as error:
            raise IndexError(f"{error} (line {op.loc.line})" if op.loc and "(line " not in str(error) else str(error)) from None

    def elementwise(self, op: Op) -> np.ndarray:
        args = [Typed(a.type.dt, self.values[a.name]) for a in op.args]
        return evaluate(op.kind, args, op.result.type.dt, **op.attrs)

    def define(self, op: Op, v, value) -> None:
        type_ = v.type
        if isinstance(value, Memory):
            pass
        elif isinstance(value, Coordinates):
            # The extent may be named after the domain itself, so the value is set before it is compared.
            self.values[v.name] = value
            if not isinstance(type_, Domain) or value.count != self.extent(type_.extent):
                raise InterpreterError(f"{op.kind}: %{v.name} has {value.count} members, its type says {type_}")
        else:
            value = np.asarray(value)
            if value.dtype != NUMPY[type_.dt] or value.shape != self.shape(type_):
                raise InterpreterError(f"{op.kind}: %{v.name} is {value.dtype}{list(value.shape)}, its type says {type_}")
        self.values[v.name] = value

    # combine regions

    def combine(self, region: Region):
        """The combine of a generic reduce or scan, over components with leading axes."""
        if id(region) not in self.uniform:
            self.uniform[id(region)] = all(o.kind in ELEMENTWISE or o.kind in ("const", "extent", "broadcast") for o in region.ops)
        ranks = [len(p.type.shape) for p in region.params]
        members = self.together if self.uniform[id(region)] else self.one_by_one

        def call(left, right):
            args = [*left, *right]
            lead = args[0].shape[:args[0].ndim - ranks[0]]
            return members(region, args, lead)
        return call

    def together(self, region: Region, args, lead) -> list[np.ndarray]:
        """All members at once: elementwise operations align their operands from the right, so leading axes pass through."""
        for p, a in zip(region.params, args):
            self.values[p.name] = a
        for op in region.ops:
            if op.kind == "broadcast":
                source, want = self.values[op.args[0].name], self.shape(op.result.type)
                inner = len(op.args[0].type.shape)
                outer = source.shape[:source.ndim - inner]
                aligned = source.reshape(outer + (1,) * (len(want) - inner) + source.shape[source.ndim - inner:])
                self.values[op.result.name] = np.broadcast_to(aligned, outer + want)
            else:
                (self.values[op.results[0].name],) = self.operation(op)
        return [np.broadcast_to(self.values[v.name], lead + self.shape(v.type)) for v in region.yields]

    def one_by_one(self, region: Region, args, lead) -> list[np.ndarray]:
        out = [np.empty(lead + self.shape(v.type), NUMPY[v.type.dt]) for v in region.yields]
        for at in np.ndindex(lead):
            for p, a in zip(region.params, args):
                self.values[p.name] = np.asarray(a[at])
            for o, value in zip(out, self.run(region)):
                o[at] = value
        return out


# --- rules ------------------------------------------------------------------------------------------------------------
# Each takes the frame, the operation and the values of its operands, and gives the values of its results.

def _const(frame, op, args):
    return (constant(op.attrs["value"], op.result.type.dt),)


def _extent(frame, op, args):
    return (np.asarray(op.attrs["e"].evaluate(frame.symbols), np.int64),)


def _domain(frame, op, args):
    return (Coordinates.of(*map(int, args[:3])),)


def _indices(frame, op, args):
    return (args[0].array(),)


def _broadcast(frame, op, args):
    return (np.broadcast_to(args[0], frame.shape(op.result.type)),)


def _expand(frame, op, args):
    return (np.expand_dims(args[0], op.attrs["axis"]),)


def _reshape(frame, op, args):
    shape = frame.shape(op.result.type)
    if math.prod(shape) != args[0].size:
        raise InvalidInput(f"line {op.loc.line}: " * (op.loc is not None)
                           + f"reshape of {args[0].size} elements to {shape}, which has {math.prod(shape)}")
    return (args[0].reshape(shape),)


def _transpose(frame, op, args):
    return (args[0].transpose(op.attrs["perm"]),)


def _join(frame, op, args):
    return (np.stack(args, axis=-1),)


def _guard(op, args):
    """The indices and the (valid, fill) of a read or gather."""
    return (args[1:-2], (args[-2], args[-1])) if op.attrs.get("guard") else (args[1:], None)


def _read(frame, op, args):
    return (args[0].load(*_guard(op, args)),)


def _gather(frame, op, args):
    return (select(args[0], *_guard(op, args), f"%{op.args[0].name}"),)


def _write(frame, op, args):
    if op.attrs.get("guard"):
        args[0].store(args[1:-2], args[-2], args[-1])
    else:
        args[0].store(args[1:-1], args[-1])
    return ()


def _parts(op, args, operands: int):
    """(memory, indices, valid, operands as flat lists of the valid members, shape) of an update."""
    valid = args[-1] if op.attrs.get("guard") else None
    at = len(args) - operands - (valid is not None)
    shape = np.broadcast_shapes(*(np.shape(v) for v in args[at:]))
    return args[0], args[1:at], valid, [updates.flat(v, valid, shape) for v in args[at:at + operands]], shape


def _check(frame, op, args):
    """Raises IntegerOverflow where the operand is not True everywhere."""
    if not np.all(args[0]):
        raise IntegerOverflow(diagnostic(op.loc, f"{frame.kernel.name}: {OVERFLOW_MESSAGE}").render())
    return ()


def _atomic_load(frame, op, args):
    memory, indices, valid, _, _ = _parts(op, args, 0)
    return (updates.update(memory, indices, valid, lambda old, members: None),)


def _atomic_store(frame, op, args):
    memory, indices, valid, (value,), _ = _parts(op, args, 1)
    updates.update(memory, indices, valid, updates.combined("exchange", memory.dt, value))
    return ()


def _atomic_rmw(frame, op, args):
    memory, indices, valid, (value,), _ = _parts(op, args, 1)
    return (updates.update(memory, indices, valid, updates.combined(op.attrs["kind"], memory.dt, value)),)


def _atomic_compare_exchange(frame, op, args):
    memory, indices, valid, (expected, desired), shape = _parts(op, args, 2)
    done = np.zeros(len(expected), np.bool_)
    old = updates.update(memory, indices, valid, updates.exchanged_where_equal(memory.dt, expected, desired, done))
    success = np.zeros(shape, np.bool_)
    success[np.broadcast_to(True if valid is None else valid, shape)] = done
    return old, success


def _scatter_reduce(frame, op, args):
    memory, indices, valid, (value,), _ = _parts(op, args, 1)
    if op.attrs["kind"] == "generic":
        combine = frame.combine(op.regions[0])

        def step(old, members):
            frame.members = members
            return combine([old], [value[members]])[0]
    else:
        step = updates.combined(op.attrs["kind"], memory.dt, value)
    updates.update(memory, indices, valid, step)
    return ()


def _histogram(frame, op, args):
    (bins,) = frame.shape(op.result.type)
    return (updates.histogram(args[0], args[1] if op.attrs.get("guard") else None, bins, op.result.type.dt),)


def _buffer(frame, op, args):
    type_ = op.result.type
    memory = Memory.buffer(op.result.name, type_.dt, frame.shape(type_))
    for init in args:
        memory.store([Coordinates(0, 1, n) for n in memory.storage.shape], init)
    return (memory,)


def _reduce(frame, op, args):
    axis, kind = op.attrs["axis"], op.attrs["kind"]
    if kind != "generic":
        return (structured.reduce(args[0], axis, kind, op.args[0].type.dt),)
    k = len(args) // 2
    return structured.reduce_generic(args[:k], axis, args[k:], frame.combine(op.regions[0]), op.attrs.get("over", ()))


def _arg_reduce(frame, op, args):
    return structured.arg_reduce(args[0], op.attrs["axis"], op.attrs["kind"], op.args[0].type.dt)


def _scan(frame, op, args):
    axis, kind, inclusive, reverse = (op.attrs[k] for k in ("axis", "kind", "inclusive", "reverse"))
    if kind != "generic":
        return (structured.scan(args[0], axis, kind, op.args[0].type.dt, inclusive, reverse),)
    k = len(args) // 2
    return structured.scan_generic(args[:k], axis, args[k:], frame.combine(op.regions[0]), inclusive, reverse)


def _contract(frame, op, args):
    return (structured.contract(*args, op.attrs["reduce"], op.attrs["batch"], op.attrs["form"], op.args[0].type.dt),)


def _call(frame, op, args):
    function = frame.kernel.externs[op.attrs["fn"]]
    return (constant(function(*(a[()] for a in args)), op.result.type.dt),)


def _for(frame, op, args):
    region, carries = op.regions[0], args[1:]
    for i in args[0]:
        _enter(frame, region, [np.asarray(i, np.int64), *carries])
        carries = frame.run(region)
        if op.attrs.get("breaks"):
            stop, *carries = carries
            if stop:
                break
    return carries


def _loop(frame, op, args):
    region, carries, more = op.regions[0], args, True
    while more:
        _enter(frame, region, carries)
        more, *carries = frame.run(region)
    return carries


def _if(frame, op, args):
    return frame.run(op.regions[0 if args[0] else 1])


def _parallel(frame, op, args):
    for point in itertools.product(*args):
        _enter(frame, op.regions[0], [np.asarray(i, np.int64) for i in point])
        frame.run(op.regions[0])
    return ()


def _enter(frame, region: Region, values) -> None:
    for p, value in zip(region.params, values, strict=True):
        frame.values[p.name] = value


RULES = {
    "const": _const, "extent": _extent, "domain": _domain, "indices": _indices, "broadcast": _broadcast, "expand": _expand,
    "reshape": _reshape, "transpose": _transpose, "join": _join,
    "read": _read, "gather": _gather, "write": _write, "buffer": _buffer,
    "check": _check, "atomic_load": _atomic_load, "atomic_store": _atomic_store, "atomic_rmw": _atomic_rmw,
    "atomic_compare_exchange": _atomic_compare_exchange, "scatter_reduce": _scatter_reduce, "histogram": _histogram,
    "reduce": _reduce, "arg_reduce": _arg_reduce, "scan": _scan, "contract": _contract, "call": _call,
    "for": _for, "loop": _loop, "if": _if, "parallel": _parallel,
}
"""The rule of every kind that is not elementwise."""
