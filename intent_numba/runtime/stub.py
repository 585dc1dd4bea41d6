"""How can a call cost less than a microsecond? A C-API entry in machine code, made for one artifact.

The entry recognises the usual call (positional arguments, exact ndarrays of the right dtype, aligned, disjoint or in place)
by reading the objects' memory, fills the frame and launches. Anything else goes to the Python path, which decides and
explains; so a guard may be stricter than the language, never laxer.

The text holds addresses of this process and is never cached on disk.
"""
from __future__ import annotations

import ctypes
import itertools
import sys
import sysconfig
from dataclasses import dataclass, field

import numpy as np

from ..kir.types import BITS, int_range, is_float, is_int
from . import threads
from .arrays import numpy_dtype
from .driver import Build, Compiled
from .interface import Interface, Parameter

_DATA, _NDIM, _SHAPE, _STRIDES, _DESCR, _FLAGS = 16, 24, 32, 40, 56, 64     # PyArrayObject_fields
_C_OR_F, _ALIGNED, _WRITEABLE = 0x3, 0x100, 0x400                           # ndarray flags
_TYPE, _NUMBER = 8, 16                                                      # PyObject.ob_type; value of a float object
_TUPLE_SIZE, _TUPLE_ITEMS = 16, tuple.__basicsize__
_RELEASE_ABOVE = 16384
"""Elements beyond which the interpreter lock is released: below, handing it over would cost more than the work."""

_serial_numbers = itertools.count()


def make(build: Build, fallback):
    """A builtin ``f(*args)`` for the artifact, or None where machine code cannot stand in for the Python path. ``fallback``
    is called with the same arguments whenever a guard fails."""
    if not _possible(build.interface):
        return None
    from numba import _dynfunc
    from ..targets.cpu import compile_text
    compiled = build.compiled()
    symbol = f"intent_stub_{next(_serial_numbers)}_{build.name if build.name.isascii() else ''}"
    writer = _Writer(build.interface, compiled, fallback)
    code = compile_text(writer.text(symbol), symbol)
    keep = (code, compiled, fallback, *writer.objects)
    return _dynfunc.make_function(sys.modules.get(build.pyfunc.__module__, sys), build.name, build.pyfunc.__doc__ or "",
                                  code.address, _environment(), keep)


def _environment():
    from numba import _dynfunc
    return _dynfunc.Environment({})


def _possible(interface: Interface) -> bool:
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED") or sys.byteorder != "little":
        return False
    if threads.layer() == "workqueue":                      # its launches take turns, which Python arranges
        return False
    if any(p.keyword_only for p in interface.runtime):
        return False
    small = any(p.kind == "scalar" and is_float(p.dt) and p.dt not in ("f32", "f64") for p in interface.runtime)
    return not small and not any(p.constraints.alias for p in interface.views)


@dataclass
class _View:
    """SSA names of one view's facts."""
    param: Parameter
    data: str
    extents: list[str]
    strides: list[str]                    # in bytes
    low: str = ""
    high: str = ""


@dataclass
class _Writer:
    interface: Interface
    compiled: Compiled
    fallback: object
    objects: list = field(default_factory=list)
    lines: list = field(default_factory=list)
    count: int = 0
    externals: dict = field(default_factory=dict)

    def text(self, symbol: str) -> str:
        params = self.interface.runtime
        slots = 1 + sum(1 + 2 * len(p.shape) if p.kind == "view" else 1 for p in params)
        self.line(f"%frame = alloca [{slots} x i64], align 16")
        self.line("%overflow = alloca i32, align 4")
        self.guard(self.let("icmp eq ptr %kwargs, null"))
        self.guard(self.let(f"icmp eq i64 {self.load('%args', _TUPLE_SIZE)}, {len(params)}"))
        views, values = [], []
        for i, p in enumerate(params):
            item = self.load("%args", _TUPLE_ITEMS + 8 * i, "ptr")
            if p.kind == "view":
                views.append(self.view(p, item))
                values += [views[-1].data, *views[-1].extents, *self.element_strides(views[-1])]
            else:
                values.append(self.scalar(p, item))
        self.same_extents(views)
        self.stride_constraints(views)
        self.memory(views)
        for slot, value in enumerate(values, 1):
            self.line(f"store i64 {value}, ptr {self.at('%frame', 8 * slot)}")
        self.launch(views)
        return self.module(symbol)

    # --- text --------------------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def let(self, text: str) -> str:
        self.count += 1
        self.line(f"%v{self.count} = {text}")
        return f"%v{self.count}"

    def label(self) -> str:
        self.count += 1
        return f"b{self.count}"

    def at(self, pointer: str, offset: int) -> str:
        return self.let(f"getelementptr i8, ptr {pointer}, i64 {offset}")

    def load(self, pointer: str, offset: int, type_: str = "i64") -> str:
        return self.let(f"load {type_}, ptr {self.at(pointer, offset)}")

    def guard(self, condition: str) -> None:
        """Go on if the i1 holds, else to the Python path."""
        ok = self.label()
        self.line(f"br i1 {condition}, label %{ok}, label %miss")
        self.lines.append(f"{ok}:")

    def call(self, type_: str, name: str, *typed_args: str) -> str:
        signature = ", ".join(a.split(" ")[0] for a in typed_args)
        self.externals[name] = f"declare {type_} @{name}({signature})"
        text = f"call {type_} @{name}({', '.join(typed_args)})"
        if type_ == "void":
            self.line(text)
            return ""
        return self.let(text)

    def object(self, obj) -> str:
        """The address of a Python object as a constant; the object is kept alive with the stub."""
        self.objects.append(obj)
        return _pointer(id(obj))

    # --- arguments ---------------------------------------------------------------------------------------------------

    def type_is(self, item: str, cls: type) -> str:
        return self.let(f"icmp eq ptr {self.load(item, _TYPE, 'ptr')}, {self.object(cls)}")

    def view(self, p: Parameter, item: str) -> _View:
        self.guard(self.type_is(item, np.ndarray))
        self.guard(self.let(f"icmp eq ptr {self.load(item, _DESCR, 'ptr')}, {self.object(numpy_dtype(p.dt))}"))
        self.guard(self.let(f"icmp eq i32 {self.load(item, _NDIM, 'i32')}, {len(p.shape)}"))
        flags = self.load(item, _FLAGS, "i32")
        needed = _ALIGNED | (_WRITEABLE if p.written else 0)
        self.guard(self.let(f"icmp eq i32 {self.let(f'and i32 {flags}, {needed}')}, {needed}"))
        rank = range(len(p.shape))
        shape, strides = self.load(item, _SHAPE, "ptr"), self.load(item, _STRIDES, "ptr")
        v = _View(p, self.load(item, _DATA), [self.load(shape, 8 * i) for i in rank], [self.load(strides, 8 * i) for i in rank])
        if p.written and len(p.shape) > 0:
            self.distinct_elements(v, flags)
        return v

    def element_strides(self, v: _View) -> list[str]:
        size = BITS[v.param.dt] // 8
        if size == 1:
            return v.strides
        if v.strides:
            joined = v.strides[0]
            for s in v.strides[1:]:
                joined = self.let(f"or i64 {joined}, {s}")
            self.guard(self.let(f"icmp eq i64 {self.let(f'and i64 {joined}, {size - 1}')}, 0"))
        return [self.let(f"ashr exact i64 {s}, {size.bit_length() - 1}") for s in v.strides]

    def scalar(self, p: Parameter, item: str) -> str:
        if p.dt == "bool":
            true = self.let(f"icmp eq ptr {item}, {self.object(True)}")
            false = self.let(f"icmp eq ptr {item}, {self.object(False)}")
            self.guard(self.let(f"or i1 {true}, {false}"))
            return self.let(f"zext i1 {true} to i64")
        return self.integer(p, item) if is_int(p.dt) else self.floating(p, item)

    def integer(self, p: Parameter, item: str) -> str:
        self.guard(self.type_is(item, int))
        value = self.call("i64", "PyLong_AsLongLongAndOverflow", f"ptr {item}", "ptr %overflow")
        self.guard(self.let(f"icmp eq i32 {self.load('%overflow', 0, 'i32')}, 0"))
        lo, hi = int_range(p.dt)
        if BITS[p.dt] < 64:
            self.guard(self.let(f"icmp sle i64 {value}, {hi}"))
        if lo > -(1 << 63):
            self.guard(self.let(f"icmp sge i64 {value}, {lo}"))
        return value

    def floating(self, p: Parameter, item: str) -> str:
        is_float_object = self.let(f"or i1 {self.type_is(item, float)}, {self.type_is(item, np.float64)}")
        if p.dt == "f64":
            self.guard(is_float_object)
            return self.load(item, _NUMBER)
        single, double, start, done = self.label(), self.label(), self.label(), self.label()
        self.line(f"br i1 {is_float_object}, label %{double}, label %{start}")
        self.lines.append(f"{double}:")
        wide = self.load(item, _NUMBER, "double")
        narrow = self.let(f"fptrunc double {wide} to float")
        became_infinite = self.infinite("float", narrow)
        lost = self.let(f"xor i1 {became_infinite}, {self.infinite('double', wide)}")
        self.line(f"br i1 {lost}, label %miss, label %{done}")
        self.lines.append(f"{start}:")
        self.line(f"br i1 {self.type_is(item, np.float32)}, label %{single}, label %miss")
        self.lines.append(f"{single}:")
        exact = self.load(item, _NUMBER, "float")
        self.line(f"br label %{done}")
        self.lines.append(f"{done}:")
        value = self.let(f"phi float [ {narrow}, %{double} ], [ {exact}, %{single} ]")
        return self.let(f"zext i32 {self.let(f'bitcast float {value} to i32')} to i64")

    def infinite(self, type_: str, value: str) -> str:
        self.externals[f"llvm.fabs.{type_}"] = f"declare {type_} @llvm.fabs.{_MANGLED[type_]}({type_})"
        magnitude = self.let(f"call {type_} @llvm.fabs.{_MANGLED[type_]}({type_} {value})")
        return self.let(f"fcmp oeq {type_} {magnitude}, 0x7FF0000000000000")

    # --- relations between arguments -----------------------------------------------------------------------------------

    def same_extents(self, views: list[_View]) -> None:
        known: dict[str, str] = {}
        for v in views:
            for name, extent in zip(v.param.shape, v.extents):
                expected = known.setdefault(name, extent) if isinstance(name, str) else str(name)
                if expected != extent:
                    self.guard(self.let(f"icmp eq i64 {extent}, {expected}"))

    def stride_constraints(self, views: list[_View]) -> None:
        known: dict[str, str] = {}
        for v in views:
            size = BITS[v.param.dt] // 8
            for wanted, stride in zip(v.param.constraints.strides or (), v.strides):
                if wanted is None:
                    continue
                elements = self.let(f"sdiv i64 {stride}, {size}")
                expected = known.setdefault(wanted, elements) if isinstance(wanted, str) else str(wanted)
                if expected != elements:
                    self.guard(self.let(f"icmp eq i64 {elements}, {expected}"))

    def distinct_elements(self, v: _View, flags: str) -> None:
        """No two coordinates share memory: contiguous, or every stride steps over all that the later (or all that the
        earlier) axes span. An extent of 0 or 1 makes its stride meaningless and is left to Python unless contiguous."""
        contiguous = self.let(f"icmp ne i32 {self.let(f'and i32 {flags}, {_C_OR_F}')}, 0")
        size = BITS[v.param.dt] // 8
        lengths = [self.magnitude(s) for s in v.strides]
        conditions = [self.nested(list(zip(v.extents, lengths))[::-1], size)]
        if len(lengths) > 1:
            conditions.append(self.nested(list(zip(v.extents, lengths)), size))
        ok = contiguous
        for c in conditions:
            ok = self.let(f"or i1 {ok}, {c}")
        self.guard(ok)

    def nested(self, axes, size: int) -> str:
        span, ok = str(size), "true"
        for extent, length in axes:
            ok = self.let(f"and i1 {ok}, {self.let(f'icmp uge i64 {length}, {span}')}")
            steps = self.let(f"sub i64 {extent}, 1")
            span = self.let(f"add i64 {span}, {self.let(f'mul i64 {steps}, {length}')}")
        return ok

    def magnitude(self, value: str) -> str:
        negative = self.let(f"icmp slt i64 {value}, 0")
        return self.let(f"select i1 {negative}, i64 {self.let(f'sub i64 0, {value}')}, i64 {value}")

    def memory(self, views: list[_View]) -> None:
        """Every pair with a writer (and every pair with a noalias view) is disjoint, or identical where that is in place."""
        pairs = [(a, b) for a, b in itertools.combinations(views, 2)
                 if a.param.written or b.param.written or a.param.constraints.noalias or b.param.constraints.noalias]
        for v in {id(v): v for pair in pairs for v in pair}.values():
            self.byte_range(v)
        for a, b in pairs:
            ok = self.let(f"or i1 {self.let(f'icmp ule i64 {a.high}, {b.low}')}, {self.let(f'icmp ule i64 {b.high}, {a.low}')}")
            forbidden = a.param.constraints.noalias or b.param.constraints.noalias
            names = frozenset((a.param.name, b.param.name))
            if not forbidden and names in self.compiled.facts.inplace and a.param.dt == b.param.dt and len(a.extents) == len(b.extents):
                ok = self.let(f"or i1 {ok}, {self.same_memory(a, b)}")
            self.guard(ok)

    def byte_range(self, v: _View) -> None:
        low, high, empty = v.data, self.let(f"add i64 {v.data}, {BITS[v.param.dt] // 8}"), "false"
        for extent, stride in zip(v.extents, v.strides):
            reach = self.let(f"mul i64 {self.let(f'sub i64 {extent}, 1')}, {stride}")
            down = self.let(f"icmp slt i64 {reach}, 0")
            low = self.let(f"add i64 {low}, {self.let(f'select i1 {down}, i64 {reach}, i64 0')}")
            high = self.let(f"add i64 {high}, {self.let(f'select i1 {down}, i64 0, i64 {reach}')}")
            empty = self.let(f"or i1 {empty}, {self.let(f'icmp eq i64 {extent}, 0')}")
        v.low = self.let(f"select i1 {empty}, i64 {v.data}, i64 {low}")
        v.high = self.let(f"select i1 {empty}, i64 {v.data}, i64 {high}")

    def same_memory(self, a: _View, b: _View) -> str:
        same = self.let(f"icmp eq i64 {a.data}, {b.data}")
        for x, y in zip(a.extents + a.strides, b.extents + b.strides):
            same = self.let(f"and i1 {same}, {self.let(f'icmp eq i64 {x}, {y}')}")
        return same

    # --- launch --------------------------------------------------------------------------------------------------------

    def launch(self, views: list[_View]) -> None:
        allowed = self.call("i64", "get_num_threads")
        serial = self.let(f"load i64, ptr {_pointer(ctypes.addressof(threads.serial))}")
        alone = self.let(f"icmp ne i64 {serial}, 0")
        self.line(f"store i64 {self.let(f'select i1 {alone}, i64 1, i64 {allowed}')}, ptr %frame")
        held, released, done = self.label(), self.label(), self.label()
        large = self.let(f"icmp ugt i64 {self.elements(views)}, {_RELEASE_ABOVE}")
        self.line(f"br i1 {large}, label %{released}, label %{held}")
        entry = _pointer(self.compiled.code.address)
        self.lines.append(f"{held}:")
        short = self.let(f"call i32 {entry}(ptr %frame)")
        self.line(f"br label %{done}")
        self.lines.append(f"{released}:")
        thread = self.call("ptr", "PyEval_SaveThread")
        long = self.let(f"call i32 {entry}(ptr %frame)")
        self.call("void", "PyEval_RestoreThread", f"ptr {thread}")
        self.line(f"br label %{done}")
        self.lines.append(f"{done}:")
        status = self.let(f"phi i32 [ {short}, %{held} ], [ {long}, %{released} ]")
        fine, failed = self.label(), self.label()
        self.line(f"br i1 {self.let(f'icmp eq i32 {status}, 0')}, label %{fine}, label %{failed}")
        self.lines.append(f"{failed}:")
        self.line(f"ret ptr {self.call('ptr', 'PyErr_NoMemory')}")
        self.lines.append(f"{fine}:")
        none = self.object(None)
        self.call("void", "Py_IncRef", f"ptr {none}")
        self.line(f"ret ptr {none}")
        self.lines.append("miss:")
        self.line(f"ret ptr {self.call('ptr', 'PyObject_Call', f'ptr {self.object(self.fallback)}', 'ptr %args', 'ptr %kwargs')}")

    def elements(self, views: list[_View]) -> str:
        total = "0"
        for v in views:
            count = "1"
            for extent in v.extents:
                count = self.let(f"mul i64 {count}, {extent}")
            total = self.let(f"add i64 {total}, {count}")
        return total

    def module(self, symbol: str) -> str:
        return "\n".join([*self.externals.values(), f"define ptr @{symbol}(ptr %self, ptr %args, ptr %kwargs) {{", "entry:",
                          *self.lines, "}", ""])


_MANGLED = {"float": "f32", "double": "f64"}


def _pointer(address: int) -> str:
    return f"inttoptr (i64 {address} to ptr)"
