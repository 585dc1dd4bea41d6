"""How can a call cost less than a microsecond? A C-API entry in machine code, made for one form of call of one artifact.

The entry recognises the usual call (exact ndarrays of the right dtype, aligned, disjoint or in place) by reading the
objects' memory, fills the frame and launches. Anything else goes to the Python path, which decides and
explains; so a guard may be stricter than the language, never laxer.
"""
from __future__ import annotations

import functools
import itertools
import sys

import numpy as np

from ..kir.types import BITS, int_range, is_float, is_int
from . import native, threads
from .arrays import numpy_dtype
from .driver import Build, Compiled
from .entries import Form
from .guards import Checks, ViewText, pointer
from .interface import Interface, Parameter
from .launch import check
from .native import TUPLE_ITEMS, TUPLE_SIZE

_DATA, _NDIM, _SHAPE, _STRIDES, _DESCR, _FLAGS = 16, 24, 32, 40, 56, 64     # PyArrayObject_fields
_C_OR_F, _ALIGNED, _WRITEABLE = 0x3, 0x100, 0x400                           # ndarray flags
_TYPE, _NUMBER = 8, 16                                                      # PyObject.ob_type; value of a float or NumPy scalar
_RELEASE_ABOVE = 16384
"""Elements beyond which the interpreter lock is released: below, handing it over would cost more than the work."""

_serial_numbers = itertools.count()


def make(build: Build, form: Form, fallback):
    """A builtin for calls of one form, or None where machine code cannot stand in for the Python path. ``fallback`` is called
    with the same arguments whenever a guard fails."""
    if not _possible(build.interface):
        return None
    compiled = build.compiled()
    symbol = f"intent_stub_{next(_serial_numbers)}"
    writer = _Writer(build, compiled, form, fallback)
    module = sys.modules.get(build.pyfunc.__module__, sys)
    return native.builtin(writer.text(symbol), symbol, build.name, build.pyfunc.__doc__ or "", module,
                          (compiled, fallback, *writer.objects))


def _possible(interface: Interface) -> bool:
    if not native.possible() or not threads.free():                  # launches that take turns are arranged in Python
        return False
    small = any(p.kind == "scalar" and is_float(p.dt) and p.dt not in ("f32", "f64") for p in interface.runtime)
    return not small and not any(p.constraints.alias for p in interface.views)


class _Writer(Checks):
    """Text of one entry, ``PyObject *entry(PyObject *self, PyObject *args, PyObject *kwargs)``."""

    def __init__(self, build: Build, compiled: Compiled, form: Form, fallback):
        super().__init__()
        self.build, self.interface, self.compiled, self.form, self.fallback = build, build.interface, compiled, form, fallback
        self.objects: list = []

    def failure(self, kind: str, *names) -> str:
        return "miss"

    def text(self, symbol: str) -> str:
        params = self.interface.runtime
        slots = 1 + sum(1 + 2 * len(p.shape) if p.kind == "view" else 1 for p in params)
        self.line(f"%frame = alloca [{slots} x i64], align 16")
        self.line("%overflow = alloca i32, align 4")
        self.recognise()
        views, values = [], []
        for p, source in self.form.sources:
            item = self.item(source)
            if p.kind == "view":
                views.append(self.view(p, item))
                values += [views[-1].data, *views[-1].extents, *self.element_strides(views[-1])]
            else:
                values.append(self.scalar(p, item))
        self.same_extents(views)
        self.stride_constraints(views)
        for _, _, apart in self.memory(views, self.compiled.facts.inplace):
            self.guard(apart, "miss")
        for slot, value in enumerate(values, 1):
            self.line(f"store i64 {value}, ptr {self.at('%frame', 8 * slot)}")
        self.launch(views)
        return self.function(f"define ptr @{symbol}(ptr %self, ptr %args, ptr %kwargs)")

    def recognise(self) -> None:
        """As many positional arguments, these keywords and no others, and the very Constexpr objects."""
        keywords = self.form.keywords
        if keywords:
            self.guard(self.let("icmp ne ptr %kwargs, null"), "miss")
            self.guard(self.keyword_count_is(len(keywords)), "miss")
        else:
            self.no_keywords()
        self.guard(self.let(f"icmp eq i64 {self.load('%args', TUPLE_SIZE)}, {self.form.positional}"), "miss")
        for source, obj in self.form.fixed:
            self.guard(self.let(f"icmp eq ptr {self.item(source)}, {self.object(obj)}"), "miss")

    def no_keywords(self) -> None:
        """No dictionary, or an empty one, as ``call(*args, **{})`` passes."""
        given, none = self.label(), self.label()
        self.line(f"br i1 {self.let('icmp eq ptr %kwargs, null')}, label %{none}, label %{given}")
        self.block(given)
        self.line(f"br i1 {self.keyword_count_is(0)}, label %{none}, label %miss")
        self.block(none)

    def keyword_count_is(self, count: int) -> str:
        return self.let(f"icmp eq i64 {self.call('i64', 'PyDict_Size', 'ptr %kwargs')}, {count}")

    def item(self, source: int | str) -> str:
        """The argument at a position or under a keyword, a borrowed reference."""
        if isinstance(source, int):
            return self.load("%args", TUPLE_ITEMS + 8 * source, "ptr")
        found = self.call("ptr", "PyDict_GetItem", "ptr %kwargs", f"ptr {self.object(sys.intern(source))}")
        self.guard(self.let(f"icmp ne ptr {found}, null"), "miss")
        return found

    def object(self, obj) -> str:
        """The address of a Python object as a constant; the object is kept alive with the stub."""
        self.objects.append(obj)
        return pointer(id(obj))

    # --- arguments ---------------------------------------------------------------------------------------------------

    def type_is(self, item: str, cls: type) -> str:
        return self.let(f"icmp eq ptr {self.load(item, _TYPE, 'ptr')}, {self.object(cls)}")

    def view(self, p: Parameter, item: str) -> ViewText:
        self.guard(self.type_is(item, np.ndarray), "miss")
        self.guard(self.let(f"icmp eq ptr {self.load(item, _DESCR, 'ptr')}, {self.object(numpy_dtype(p.dt))}"), "miss")
        self.guard(self.let(f"icmp eq i32 {self.load(item, _NDIM, 'i32')}, {len(p.shape)}"), "miss")
        flags = self.load(item, _FLAGS, "i32")
        needed = _ALIGNED | (_WRITEABLE if p.written else 0)
        self.guard(self.let(f"icmp eq i32 {self.let(f'and i32 {flags}, {needed}')}, {needed}"), "miss")
        rank = range(len(p.shape))
        shape, strides = self.load(item, _SHAPE, "ptr"), self.load(item, _STRIDES, "ptr")
        v = ViewText(p, self.load(item, _DATA), [self.load(shape, 8 * i) for i in rank], [self.load(strides, 8 * i) for i in rank])
        if p.written:                                         # one that overlaps itself is for binding to judge
            self.distinct_elements(v, self.let(f"icmp ne i32 {self.let(f'and i32 {flags}, {_C_OR_F}')}, 0"))
        return v

    def scalar(self, p: Parameter, item: str) -> str:
        if p.dt == "bool":
            true, false = (self.let(f"or i1 {self.is_object(item, a)}, {self.is_object(item, b)}")
                           for a, b in ((True, np.True_), (False, np.False_)))
            self.guard(self.let(f"or i1 {true}, {false}"), "miss")
            return self.let(f"zext i1 {true} to i64")
        return self.integer(p, item) if is_int(p.dt) else self.floating(p, item)

    def is_object(self, item: str, obj) -> str:
        return self.let(f"icmp eq ptr {item}, {self.object(obj)}")

    def integer(self, p: Parameter, item: str) -> str:
        python, other, done = self.label(), self.label(), self.label()
        self.line(f"br i1 {self.type_is(item, int)}, label %{python}, label %{other}")
        self.block(python)
        number = self.call("i64", "PyLong_AsLongLongAndOverflow", f"ptr {item}", "ptr %overflow")
        fits = self.let(f"icmp eq i32 {self.load('%overflow', 0, 'i32')}, 0")
        self.line(f"br i1 {fits}, label %{done}, label %miss")
        arms = [(number, python)]
        self.block(other)
        for cls in dict.fromkeys((numpy_dtype(p.dt).type, np.int64)):
            own, further = self.label(), self.label()
            self.line(f"br i1 {self.type_is(item, cls)}, label %{own}, label %{further}")
            self.block(own)
            arms.append((self.numpy_integer(item, cls), own))
            self.line(f"br label %{done}")
            self.block(further)
        self.line("br label %miss")
        self.block(done)
        value = self.let("phi i64 " + ", ".join(f"[ {number}, %{label} ]" for number, label in arms))
        lo, hi = int_range(p.dt)
        if BITS[p.dt] < 64:
            self.guard(self.let(f"icmp sle i64 {value}, {hi}"), "miss")
        if lo > -(1 << 63):
            self.guard(self.let(f"icmp sge i64 {value}, {lo}"), "miss")
        return value

    def numpy_integer(self, item: str, cls: type) -> str:
        """The number of a NumPy scalar; one of u64 above the signed range comes out negative and is left to Python."""
        bits = 8 * np.dtype(cls).itemsize
        number = self.load(item, _NUMBER, f"i{bits}")
        if bits == 64:
            return number
        return self.let(f"{'sext' if np.issubdtype(cls, np.signedinteger) else 'zext'} i{bits} {number} to i64")

    def floating(self, p: Parameter, item: str) -> str:
        is_double = self.let(f"or i1 {self.type_is(item, float)}, {self.type_is(item, np.float64)}")
        if p.dt == "f64":
            self.guard(is_double, "miss")
            return self.load(item, _NUMBER)
        double, other, single, done = self.label(), self.label(), self.label(), self.label()
        self.line(f"br i1 {is_double}, label %{double}, label %{other}")
        self.block(double)
        wide = self.load(item, _NUMBER, "double")
        narrow = self.let(f"fptrunc double {wide} to float")
        overflowed = self.let(f"xor i1 {self.infinite('float', narrow)}, {self.infinite('double', wide)}")
        self.line(f"br i1 {overflowed}, label %miss, label %{done}")
        self.block(other)
        self.line(f"br i1 {self.type_is(item, np.float32)}, label %{single}, label %miss")
        self.block(single)
        exact = self.load(item, _NUMBER, "float")
        self.line(f"br label %{done}")
        self.block(done)
        value = self.let(f"phi float [ {narrow}, %{double} ], [ {exact}, %{single} ]")
        return self.let(f"zext i32 {self.let(f'bitcast float {value} to i32')} to i64")

    def infinite(self, type_: str, value: str) -> str:
        name = "llvm.fabs." + {"float": "f32", "double": "f64"}[type_]
        return self.let(f"fcmp oeq {type_} {self.call(type_, name, f'{type_} {value}')}, 0x7FF0000000000000")

    # --- launch --------------------------------------------------------------------------------------------------------

    def launch(self, views: list[ViewText]) -> None:
        native.set_threads(self)
        held, released, done = self.label(), self.label(), self.label()
        large = self.let(f"icmp ugt i64 {self.elements(views)}, {_RELEASE_ABOVE}")
        self.line(f"br i1 {large}, label %{released}, label %{held}")
        entry = pointer(self.compiled.code.address)
        self.block(held)
        short = self.let(f"call i32 {entry}(ptr %frame)")
        self.line(f"br label %{done}")
        self.block(released)
        long = native.released(self, f"call i32 {entry}(ptr %frame)")
        self.line(f"br label %{done}")
        self.block(done)
        status = self.let(f"phi i32 [ {short}, %{held} ], [ {long}, %{released} ]")
        fine, failed = self.label(), self.label()
        self.line(f"br i1 {self.let(f'icmp eq i32 {status}, 0')}, label %{fine}, label %{failed}")
        self.block(failed)
        raiser = self.object(functools.partial(check, kernel=self.interface.kernel, explain=self.build.overflow))
        number = self.call("ptr", "PyLong_FromLong", f"i64 {self.let(f'sext i32 {status} to i64')}")
        self.externals["PyObject_CallFunctionObjArgs"] = "declare ptr @PyObject_CallFunctionObjArgs(ptr, ...)"
        raised = self.let(f"call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr {raiser}, ptr {number}, ptr null)")
        self.line(f"ret ptr {raised}")
        self.block(fine)
        none = self.object(None)
        self.call("void", "Py_IncRef", f"ptr {none}")
        self.line(f"ret ptr {none}")
        self.block("miss")
        self.line(f"ret ptr {self.call('ptr', 'PyObject_Call', f'ptr {self.object(self.fallback)}', 'ptr %args', 'ptr %kwargs')}")

    def elements(self, views: list[ViewText]) -> str:
        total = "0"
        for v in views:
            count = "1"
            for extent in v.extents:
                count = self.let(f"mul i64 {count}, {extent}")
            total = self.let(f"add i64 {total}, {count}")
        return total
