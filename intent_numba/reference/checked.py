"""Does a call keep every obligation of its caller?  The interpreter, looking at each operand and access before it acts.

``rehearse`` runs a kernel on copies of its arrays. The first broken obligation, in program order and then in coordinates, becomes
InvalidInput. The points of a ``parallel`` have no order, so a violation there does not end it: the other points run too, and the
one that stands first in the program is reported. Spec: SUPPLEMENT section 8, decisions 11, 33 and 44.
"""
from __future__ import annotations

import itertools
import math
from array import array
from dataclasses import dataclass, field

import numpy as np

from ..errors import IntegerOverflow, InvalidInput, diagnostic
from ..kir.ir import Kernel, Op, Region, Value, walk
from ..kir.ops import OVERFLOW_MESSAGE, UPDATES
from ..kir.types import Tensor, View
from . import normalization, obligations, shadow
from .interpreter import InterpreterError, _enter, _Frame, _guard
from .memory import Memory, layout, resolve, spread


def rehearse(kernel: Kernel, args: list, relaxed: bool = False) -> list:
    """Run ``kernel`` on copies of ``args``, which are those of ``interpreter.run``; gives the arguments as they are afterwards.
    ``relaxed``: with the obligations of relaxed_normalization. Raises InvalidInput for the first violation, and IntegerOverflow where the
    policy ``checked`` does."""
    frame = _Checked(kernel)
    frame.finite = normalization.conditions(kernel) if relaxed else {}
    views = [p for p in kernel.params if isinstance(p.type, View)]
    copies = iter(shadow.copies([(a, p.type.access) for p, a in zip(kernel.params, args) if p in views]))
    own = []
    try:
        with np.errstate(all="ignore"):
            for p, value in zip(kernel.params, args):
                if p in views:
                    value, frame.shadows[p.name] = next(copies)
                frame.bind(p, value)
                own.append(value)
            frame.run(kernel.body)
    except Violation as v:
        raise v.report(kernel) from None
    return own


class Violation(Exception):
    """A broken obligation on its way out. ``path`` is where it stands in the program text, innermost first: positions of operations
    and arms. ``points`` are the coordinates of the loops around it."""

    def __init__(self, op: Op, message: str, element: tuple = ()):
        self.op, self.message, self.element = op, message, tuple(map(int, element))
        self.path: list = []
        self.points: tuple = ()
        self.member: tuple = ()         # which of the pairs that a combine works on at once

    @property
    def coordinates(self) -> tuple:
        return self.points + self.element

    def order(self) -> tuple:
        return tuple(reversed(self.path)), self.coordinates

    def report(self, kernel: Kernel) -> InvalidInput | IntegerOverflow:
        if self.op.attrs.get("error") == "overflow":
            return IntegerOverflow(diagnostic(self.op.loc, f"{kernel.name}: {OVERFLOW_MESSAGE}").render())
        name = self.op.attrs.get("operation") or obligations.name_of(self.op)
        at = f" at coordinates {self.coordinates}" if self.coordinates else ""
        text = diagnostic(self.op.loc, f"{kernel.name}: {name}{at}: {self.message}").render()
        return InvalidInput(text, loc=self.op.loc, operation=name, coordinates=self.coordinates)


@dataclass
class _Points:
    """A parallel that runs: its points are numbered from ``base``, ``number`` is the one that runs now. ``released``: those that
    released so far, ascending. An acquire of a point sees what points that had released before did: the first ``seen`` of them."""
    base: int
    number: int = 0
    points: dict = field(default_factory=dict)
    released: array = field(default_factory=lambda: array("q"))
    seen: int = 0

    def release(self) -> None:
        if not self.released or self.released[-1] != self.number:
            self.released.append(self.number)

    def sees(self, numbers: np.ndarray) -> np.ndarray:
        known = np.frombuffer(self.released, np.int64)[:self.seen]
        return known[np.minimum(np.searchsorted(known, numbers), self.seen - 1)] == numbers


class _Checked(_Frame):
    def __init__(self, kernel: Kernel):
        super().__init__(kernel)
        self.shadows: dict = {}
        self.parallels: list[_Points] = []
        self.started = 0
        self.made = {r: op for op in walk(kernel.body) for r in op.results}
        self.measures = _measures(kernel)
        self.finite: dict = {}
        self.iterations: list[int] = []         # of the while loops that run
        self.around = {outer for outer, inner in _nested(kernel.body, None) if inner in kernel.rotated}

    def run(self, region: Region) -> list:
        for at, op in enumerate(region.ops):
            try:
                self._step(op)
            except Violation as v:
                v.path.append(at)
                raise
        return [self.values[v.name] for v in region.yields]

    def _step(self, op: Op) -> None:
        rule = CONTROL.get(op.kind)
        if rule is not None:
            results = rule(self, op, [self.values[a.name] for a in op.args])
        else:
            check = RULES.get(op.kind)
            for message, value, where in self.finite.get(op, ()):
                where = where and (self.values[where[0].name], where[1])
                self.refuse(op, message, normalization.broken(self.values[value.name], where), value)
            if check is not None:
                check(self, op, [self.values[a.name] for a in op.args])
            results = self.operation(op) if op.kind != "scatter_reduce" else self.scattered(op)
        for v, value in zip(op.results, results, strict=True):
            try:
                self.define(op, v, value)
            except InterpreterError:
                raise Violation(op, "extents that must be equal are not") from None
            if op.kind == "buffer":
                self.shadows[v.name] = known = shadow.Shadow.fresh(value.storage.shape, len(self.parallels))
                known.written[...] = bool(op.args)

    def scattered(self, op: Op):
        try:
            return self.operation(op)
        except Violation as v:
            v.element = self.place(op, v.member) + v.element
            raise

    def place(self, op: Op, member: tuple) -> tuple:
        """The coordinates of a member that a combine of scatter_reduce works on."""
        args = [self.values[a.name] for a in op.args]
        shape = np.broadcast_shapes(*(np.shape(v) for v in args[-1 - bool(op.attrs.get("guard")):]))
        active = np.broadcast_to(args[-1] if op.attrs.get("guard") else True, shape)
        return tuple(map(int, np.argwhere(active)[self.members[member[0]]]))

    def elementwise(self, op: Op) -> np.ndarray:
        rule = obligations.ELEMENTWISE.get(op.kind)
        if rule is not None and op not in self.measures:
            args = [self.values[a.name] for a in op.args]
            for message, broken in rule(op, *args):
                if broken.any():
                    shape = np.broadcast_shapes(*(a.shape for a in args))       # a combine has pairs beside some of its operands only
                    self.refuse(op, message, np.broadcast_to(broken, shape), op.result)
        return super().elementwise(op)

    def refuse(self, op: Op, message: str, broken, of: Value) -> None:
        """Raise for the first element of ``of`` that is ``broken``."""
        if np.any(broken):
            flat = int(np.argmax(broken))
            raise Violation(op, message, self.absolute(of, np.unravel_index(flat, broken.shape)))

    def absolute(self, of: Value, element) -> tuple:
        """An element's coordinates, where those along a segment of a region operation count from the begin of its source."""
        begins = [self.kernel.segments.get(e.symbol) for e in getattr(of.type, "shape", ())]
        lead = len(element) - len(begins)
        return tuple(int(x) + (int(self.values[begins[i - lead].name]) if i >= lead and begins[i - lead] is not None else 0)
                     for i, x in enumerate(element))

    # combine regions: what the pairs are that meet is not the program's business

    def together(self, region: Region, args, lead) -> list:
        try:
            return super().together(region, args, lead)
        except Violation as v:
            v.path.append(region.ops.index(v.op))
            rank = len(v.op.result.type.shape) if isinstance(v.op.result.type, Tensor) else 0
            at = len(v.element) - rank
            v.member, v.element = v.element[:at], v.element[at:]
            raise

    def one_by_one(self, region: Region, args, lead) -> list:
        if 0 in lead or not lead:
            return super().one_by_one(region, args, lead)
        found, first = [], None
        for at in np.ndindex(lead):
            try:
                found.append(super().one_by_one(region, [a[at] for a in args], ()))
            except Violation as v:
                v.member = at
                if first is None or v.order() < first.order():
                    first = v
        if first is not None:
            raise first
        return [np.stack(parts).reshape(lead + parts[0].shape) for parts in zip(*found)]

    # memory

    def bounds(self, op: Op, what: str, extents, indices, valid):
        """What ``resolve`` gives, once every valid member lies inside of each axis."""
        try:
            return resolve(extents, indices, valid, what)
        except IndexError:
            element, axis, index = _outside(extents, indices, True if valid is None else valid)
            source = self.made.get(op.args[1 + axis])
            if index < 0 and source is not None and source.kind == "cast" and source.args[0].type.dt == "u64":
                index += 1 << 64                # as the program has it
            text = f"index {index} is outside axis {axis} of {what}, whose extent is {extents[axis]}"
            raise Violation(op, text, self.absolute(op.results[0] if op.results else op.args[-1], element)) from None

    def access(self, op: Op, memory: Memory, indices, valid, kind: str) -> None:
        """An access is about to happen: is it inside, of elements that were written, and no other point's?"""
        what = f"'{memory.name}'" if isinstance(op.args[0].type, View) else "the buffer"
        where, shape = self.bounds(op, what, memory.storage.shape, indices, valid)
        known = self.shadows[op.args[0].name]
        if where is None or known.block.constant:
            return

        def refuse(message, broken):
            if np.any(broken):
                member = int(np.argmax(broken))
                element = np.unravel_index(member, shape) if valid is None else np.argwhere(np.broadcast_to(valid, shape))[member]
                raise Violation(op, message(member), element)
        if kind == "write":
            refuse(lambda m: f"two elements are stored to one place of {what}", _repeated(memory, where))
        elif op.kind != "atomic_store" and op.attrs.get("kind") != "exchange":
            unwritten = ~np.asarray(known.written[where])
            refuse(lambda m: f"an element of {what} that nothing wrote is read", unwritten if known.size == 1 else unwritten.any(-1))
        for depth in range(known.depth, len(self.parallels)):
            self._meet(known, depth, where, kind, refuse, what)
        if kind in ("write", "update"):
            known.written[where] = True

    def _meet(self, known: shadow.Shadow, depth: int, where, kind: str, refuse, what: str) -> None:
        level = self.parallels[depth]
        for other in shadow.CONFLICTS[kind]:
            for numbers in known.points(depth, other) or ():
                found = np.asarray(numbers[where])
                broken = (found >= level.base) & (found != level.number)
                if level.seen and broken.any():
                    broken = broken & ~level.sees(found)
                if known.size > 1:
                    found = np.take_along_axis(found, broken.argmax(-1)[..., None], -1)[..., 0]
                    broken = broken.any(-1)
                refuse(lambda m, found=found, other=other: f"this {NOUNS[kind]} of {what} and the {NOUNS[other]} of the same element at "
                       f"point {level.points[int(found.flat[m])]} have no order", broken)
        last, before = known.points(depth, kind, make=True)
        found = np.asarray(last[where])
        before[where] = np.where((found >= level.base) & (found != level.number), found, before[where])
        last[where] = level.number


NOUNS = {"read": "read", "write": "store", "load": "atomic load", "update": "update"}


def _nested(region: Region, around: Region | None):
    """(the region of the innermost loop around, the region) of every ``loop``."""
    for op in region.ops:
        for r in op.regions:
            if op.kind == "loop":
                yield around, r
            yield from _nested(r, r if op.kind == "loop" else around)


def _measures(kernel: Kernel) -> set:
    """The divisions that count the members of a domain: a step that is not positive is reported at the domain."""
    made = {r.name: op for op in walk(kernel.body) for r in op.results}
    found = set()
    for op in walk(kernel.body):
        if op.kind == "domain":
            for symbol in op.result.type.extent.symbols:
                source = made.get(symbol[1:])
                if source is not None and source.kind == "maximum":
                    source = made.get(source.args[0].name)
                if source is not None and source.kind == "floordiv" and source.args[1] is op.args[2]:
                    found.add(source)
    return found


def _outside(extents, indices, valid) -> tuple[tuple, int, int]:
    """(element, axis, index) of the first valid member, in row-major order, that leaves an axis."""
    shape, begins, _ = layout(indices)
    parts = [np.broadcast_to(spread(index, begin, len(shape)), shape) for index, begin in zip(indices, begins)]
    wrong = [((part < 0) | (part >= extent)) & valid for part, extent in zip(parts, extents)]
    element = np.unravel_index(int(np.argmax(np.logical_or.reduce(wrong))), shape)
    axis = next(i for i, w in enumerate(wrong) if w[element])
    return element, axis, int(parts[axis][element])


def _repeated(memory: Memory, where):
    """Whether a member's place is that of an earlier one, in row-major order."""
    if not any(isinstance(w, np.ndarray) and w.ndim for w in where):
        return False
    places = np.ravel_multi_index(where, memory.storage.shape).ravel()
    broken = np.ones(len(places), np.bool_)
    broken[np.unique(places, return_index=True)[1]] = False
    return broken


# --- rules: what must hold before an operation acts -----------------------------------------------------------------------

def _domain(frame: _Checked, op: Op, args) -> None:
    begin, end, step = (int(a) for a in args[:3])
    if step <= 0:
        raise Violation(op, f"the step is {step}, it must be positive")
    if len(args) == 4:
        source = args[3]
        low, high = source.begin, source.begin + source.count
        if not low <= begin <= end <= high:
            raise Violation(op, f"{begin} .. {end} is not inside of its source, {low} .. {high}")
    elif end < begin and _promised(op, frame) < 0:
        raise Violation(op, f"the slice {begin}:{end} ends before it begins")


def _promised(op: Op, frame: _Checked) -> int:
    extent = op.result.type.extent
    return 0 if f"%{op.result.name}" in extent.symbols else extent.evaluate(frame.symbols)


def _extents(frame: _Checked, op: Op, args) -> None:
    for axis, e in enumerate(op.result.type.shape):
        if e.evaluate(frame.symbols) < 0:
            raise Violation(op, f"the extent of axis {axis} is {e.evaluate(frame.symbols)}, it must not be negative")


def _reshape(frame: _Checked, op: Op, args) -> None:
    _extents(frame, op, args)
    shape = frame.shape(op.result.type)
    if math.prod(shape) != args[0].size:
        raise Violation(op, f"{args[0].size} elements do not fill the shape {shape}, which has {math.prod(shape)}")


def _read(frame: _Checked, op: Op, args) -> None:
    indices, guard = _guard(op, args)
    frame.access(op, args[0], indices, guard and guard[0], "read")


def _gather(frame: _Checked, op: Op, args) -> None:
    indices, guard = _guard(op, args)
    frame.bounds(op, "a tensor", args[0].shape, indices, guard and guard[0])


def _write(frame: _Checked, op: Op, args) -> None:
    guarded = bool(op.attrs.get("guard"))
    frame.access(op, args[0], args[1:-1 - guarded], args[-1] if guarded else None, "write")


OPERANDS = {"atomic_load": 0, "atomic_store": 1, "atomic_rmw": 1, "atomic_compare_exchange": 2, "scatter_reduce": 1}


def _update(frame: _Checked, op: Op, args) -> None:
    guarded = bool(op.attrs.get("guard"))
    order = op.attrs.get("order")
    if order in ("acquire", "acq_rel"):
        for level in frame.parallels:
            level.seen = len(level.released)
    indices = args[1:len(args) - OPERANDS[op.kind] - guarded]
    frame.access(op, args[0], indices, args[-1] if guarded else None, "load" if op.kind == "atomic_load" else "update")
    if order in ("release", "acq_rel"):
        for level in frame.parallels:
            level.release()


def _histogram(frame: _Checked, op: Op, args) -> None:
    bins = op.result.type.shape[0].evaluate(frame.symbols)
    if bins <= 0:
        raise Violation(op, f"the number of bins is {bins}, it must be positive")
    valid = args[1] if op.attrs.get("guard") else True
    frame.refuse(op, f"the value is outside of the bins 0 .. {bins - 1}", ((args[0] < 0) | (args[0] >= bins)) & valid, op.args[0])


def _random(frame: _Checked, op: Op, args) -> None:
    source = frame.made.get(op.args[1])
    while source is not None and source.kind in ("broadcast", "expand", "reshape"):
        source = frame.made.get(source.args[0])
    if source is not None and source.kind == "cast" and source.args[0].type.dt == "index":
        counter = frame.values[source.args[0].name]
        frame.refuse(op, "the counter is negative", counter < 0, source.args[0])


def _check(frame: _Checked, op: Op, args) -> None:
    frame.refuse(op, op.attrs.get("message", ""), ~args[0], op.args[0])


RULES = {"domain": _domain, "broadcast": _extents, "buffer": _extents, "reshape": _reshape, "read": _read, "gather": _gather,
         "write": _write, "histogram": _histogram, "random_bits": _random, "check": _check, **dict.fromkeys(UPDATES, _update)}


# --- control: where a violation stands -------------------------------------------------------------------------------------

def _for(frame: _Checked, op: Op, args):
    region, carries = op.regions[0], args[1:]
    hidden = region.params[0] in frame.kernel.segments.values()
    for i in args[0]:
        _enter(frame, region, [np.asarray(i, np.int64), *carries])
        carries = _inside(frame, region, () if hidden else (i,))
        if op.attrs.get("breaks"):
            stop, *carries = carries
            if stop:
                break
    return carries


def _loop(frame: _Checked, op: Op, args):
    """The iterations of a loop that goes on with those of the one around it are counted there. A condition belongs to the iteration
    that it follows; one that follows none has no coordinate."""
    carries, region = args, op.regions[0]
    own, counts = region not in frame.kernel.rotated, region not in frame.around
    if own:
        frame.iterations.append(-1)
    try:
        while True:
            frame.iterations[-1] += counts
            _enter(frame, region, carries)
            more, *carries = frame.run(region)
            if not more:
                return carries
    except Violation as v:
        if own and frame.iterations[-1] >= 0:
            v.points = (frame.iterations[-1],) + v.points
        raise
    finally:
        if own:
            frame.iterations.pop()


def _if(frame: _Checked, op: Op, args):
    arm = 0 if args[0] else 1
    try:
        return frame.run(op.regions[arm])
    except Violation as v:
        v.path.append(arm ^ _swapped(op))
        raise


def _swapped(op: Op) -> bool:
    """The arm for False stands first in the text. Helpers stand above what calls them: the last line of an arm is its own."""
    then, orelse = (max((o.loc.line for o in walk(r) if o.loc is not None), default=None) for r in op.regions)
    return then is not None and orelse is not None and orelse < then


def _inside(frame: _Checked, region: Region, point: tuple):
    try:
        return frame.run(region)
    except Violation as v:
        v.points = point + v.points
        raise


def _parallel(frame: _Checked, op: Op, args):
    level, first = _Points(frame.started + 1), None
    frame.parallels.append(level)
    for point in itertools.product(*args):
        frame.started += 1
        level.number, level.seen = frame.started, 0
        level.points[frame.started] = point
        _enter(frame, op.regions[0], [np.asarray(i, np.int64) for i in point])
        try:
            frame.run(op.regions[0])
        except Violation as v:
            v.points = point + v.points
            if first is None or v.order() < first.order():
                first = v
    frame.parallels.pop()
    if first is not None:
        raise first
    return ()


CONTROL = {"for": _for, "loop": _loop, "if": _if, "parallel": _parallel}
