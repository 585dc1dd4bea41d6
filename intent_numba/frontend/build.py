"""Typed SSA to KIR: what does each statement mean? Expressions, calls and inlined helpers; control is in build_control.

One ``FunctionBuilder`` builds one function body; a helper call builds the helper's body in place with a builder of its own.
"""
from __future__ import annotations

import operator

from numba.core import ir

from ..errors import LanguageError, UnsupportedError
from ..kir import Value
from ..language.operation import Operation
from ..typing.active import ACTIVE
from ..typing.binding import Default, bind
from ..typing.context import HelperT, Literal, NjitT, OperationT, OperatorT
from ..typing.operations import BINARY, BUILTINS, INPLACE, SYMBOL, UNARY
from ..typing.types import Lit as LitT
from ..typing.types import NamedFloat, Record, Scalar, Tensor, dtype_of, is_tuple
from . import (build_atomics, build_index, build_pointwise, build_quantized, build_random, build_region, build_scaled, build_sparse,
               build_structured)
from .build_checked import UNCHECKED
from .build_control import ControlBuilder, Frame
from .build_index import getitem, setitem
from .build_pointwise import conversion, elementwise, power, same_dtype
from .bytecode import kir_loc
from .emitter import Emitter
from .products import instantiated, is_static, static
from .structure import RETURN, names_read, structure
from .values import Deferred, Idx, Lit, Product, RaggedValue, Rec, SliceValue

BUILD = {**build_index.BUILD, **build_pointwise.BUILD, **build_structured.BUILD, **build_region.BUILD, **build_random.BUILD,
         **build_atomics.BUILD, **build_scaled.BUILD, **build_sparse.BUILD, **build_quantized.BUILD}


class FunctionBuilder(ControlBuilder):
    def __init__(self, session, emitter: Emitter, typed, args):
        self.session, self.e, self.typed = session, emitter, typed
        self.types, self.return_type = typed.typemap, typed.return_type
        self.args, self.env = args, {}
        self.frames = [Frame("body", None, [], [], {}, set(), set())]
        self.last = None
        self._uses = None
        self.places = build_atomics.element_expressions(typed.func_ir, typed.typemap)
        self.argument_types = (), {}            # of the operation that is being built

    def build(self):
        """Build the body; gives the returned front value."""
        out = self.run(structure(self.typed.func_ir))
        return out.payload[RETURN]

    def returned(self, name: str):
        value = self.env[name]
        return self.plain_value(value)

    def settled(self, name: str, value):
        """A value as the name holds it: a literal that merged with run-time values has their dtype; where locals have one dtype, the
        value is converted to it."""
        if not self.e.policy.joins:
            return instantiated(value, self.type_of(name))
        t = self.types[name]
        if not isinstance(t, (Scalar, Tensor)) or not isinstance(value, (Deferred, Lit, Idx, Value, Product)):
            return value
        if isinstance(value, (Deferred, Lit)):
            return self.e.value(value, t.dt)
        if self.e.dtype(value) != t.dt:
            return conversion(self.e, "cast", value, t.dt)
        return value

    def plain_value(self, value):
        """A value without a pending product: what a name, a tuple or a return holds."""
        return self.e.product(value) if isinstance(value, Product) else value

    # --- loops: where variables live ----------------------------------------------------------------------------------

    def loop_blocks(self, header) -> frozenset:
        return frozenset(self._analysis()[2][header].body)

    def defined_in(self, blocks) -> set:
        definitions = self._analysis()[0]
        return set().union(*(definitions[b] for b in blocks))

    def used_outside(self, blocks) -> set:
        return set().union(*(names for b, names in self._analysis()[1].items() if b not in blocks))

    def _analysis(self):
        """(names defined, names used, loops) for each block; a merge uses its values at the end of the incoming blocks."""
        if self._uses is None:
            from numba.core.analysis import compute_cfg_from_blocks
            blocks = self.typed.func_ir.blocks
            defined, used = {b: set() for b in blocks}, {b: set() for b in blocks}
            for label, block in blocks.items():
                for s in block.body:
                    if isinstance(s, ir.Assign):
                        defined[label].add(s.target.name)
                        if isinstance(s.value, ir.Expr) and s.value.op == "phi":
                            for source, v in zip(s.value.incoming_blocks, s.value.incoming_values):
                                if v is not ir.UNDEFINED:
                                    used[source].add(v.name)
                            continue
                    used[label].update(names_read(s))
            self._uses = defined, used, compute_cfg_from_blocks(blocks).loops()
        return self._uses

    # --- statements -----------------------------------------------------------------------------------------------------

    def statement(self, s) -> None:
        self.e.b.loc = kir_loc(s.loc)
        match s:
            case ir.Assign():
                value = self.expression(s.value, self.types[s.target.name])
                if isinstance(value, Product) and not s.target.name.startswith("$"):
                    value = self.e.product(value)
                self.env[s.target.name] = self.settled(s.target.name, value)
            case ir.SetItem():
                setitem(self.e, self.env[s.target.name], self.env[s.index.name], self.env[s.value.name])
            case ir.Del() | ir.PopBlock():
                pass
            case _:
                self.e.fail(UnsupportedError, "this construct is not supported in a kernel")

    def expression(self, v, t):
        match v:
            case ir.Expr(op="call"):
                return self.call(v, t)
            case ir.Var():
                return self.env[v.name]
            case ir.Arg():
                return self.args[v.index]
            case ir.Const():
                return constant(v.value)
        if is_static(t):
            return tuple(static(x) for x in t.types) if is_tuple(t) and not any(map(_nested, t.types)) else self._static(t)
        match v.op:
            case "binop" | "inplace_binop":
                return self.binary(INPLACE.get(v.fn, v.fn), self.env[v.lhs.name], self.env[v.rhs.name])
            case "unary":
                return self.unary(v.fn, self.env[v.value.name])
            case "getitem" if id(v) in self.places:
                return build_atomics.Element(self.env[v.value.name], self.plain_value(self.env[v.index.name]))
            case "getitem":
                return getitem(self.e, self.plain_value(self.env[v.value.name]), self.plain_value(self.env[v.index.name]))
            case "static_getitem":
                return self.env[v.value.name][v.index]
            case "build_tuple":
                return tuple(self.plain_value(self.env[i.name]) for i in v.items)
            case "exhaust_iter" | "cast" | "getiter":
                return self.env[v.value.name]
            case "getattr":
                return self.attribute(self.env[v.value.name], v.attr)
            case "iternext":
                return self.first_member(self.env[v.value.name])
            case "pair_first" | "pair_second":
                return self.env[v.value.name][v.op == "pair_second"]
        self.e.fail(UnsupportedError, "this construct is not supported in a kernel")

    def _static(self, t):
        if is_tuple(t):
            return tuple(map(self._static, t.types))
        if isinstance(t, Record):
            return Rec({n: self._static(x) for n, x in t.items})
        return static(t)

    def attribute(self, x, name: str):
        if isinstance(x, Rec):
            return x.fields[name]
        if name == "shape":
            return tuple(self.e.scalar_of(extent) for extent in x.type.shape)
        if isinstance(x, RaggedValue):
            return x.outer
        return getattr(x, name)

    def truth_value(self, x):
        """A condition as Lit or a KIR bool scalar."""
        if isinstance(x, Lit):
            return Lit(bool(x.value))
        return self.e.value(x, "bool") if self.e.policy.promotes else self.e.value(x)

    def binary(self, fn, a, b):
        kind = BINARY.get(fn)
        if kind == "**":
            return power(self.e, a, b)
        if kind == "add" and isinstance(a, tuple):
            return a + b
        return elementwise(self.e, kind, (a, b), SYMBOL.get(kind, kind))

    def unary(self, fn, a):
        if fn is operator.not_:
            return same_dtype(self.e, "not", (self.truth_value(a),))
        if UNARY[fn] == "pos":
            return self.plain_value(a)
        return elementwise(self.e, UNARY[fn], (self.plain_value(a),))

    # --- calls ----------------------------------------------------------------------------------------------------------

    def call(self, v: ir.Expr, t):
        callee = self.types[v.func.name]
        values = [self.plain_or_product(callee, self.env[a.name]) for a in v.args]
        kinds = [self.types[a.name] for a in v.args]
        if v.vararg is not None:
            values += list(self.env[v.vararg.name])
            kinds += list(self.types[v.vararg.name].types)
        kws = {name: (self.plain_or_product(callee, self.env[a.name]), self.types[a.name]) for name, a in v.kws}
        match callee:
            case OperationT():
                self.argument_types = kinds, {n: k for n, (_, k) in kws.items()}
                return self.operation(callee.obj, values, {n: x for n, (x, _) in kws.items()}, t)
            case OperatorT():
                return self.builtin(callee.obj, values, t)
            case HelperT():
                return self.helper(callee.obj, values, kinds, kws)
            case NjitT():
                return self.njit(callee.obj, values, kinds, kws, t)
        self.e.fail(LanguageError, "this cannot be called in a kernel")

    def plain_or_product(self, callee, value):
        """Products reach only the named add and subtract, which count as operators (decision 17)."""
        fusing = isinstance(callee, OperationT) and callee.obj.name in ("add", "subtract")
        return value if fusing else self.plain_value(value)

    def operation(self, op: Operation, values, kws, t):
        if op.name == "record":
            return Rec(dict(kws))
        if is_static(t) and isinstance(t, LitT):
            return static(t)
        bound = [front(a.value) if isinstance(a, Default) else a for a in bind(f"I.{op.name}", op.signature, values, kws)]
        build = BUILD.get(op.name)
        if self.e.policy.raises and op.name in UNCHECKED:
            self.e.fail(UnsupportedError, f"I.{op.name}: {UNCHECKED[op.name]} is not supported under the policy {self.e.policy.name!r}")
        if build is None:
            self.e.fail(UnsupportedError, f"I.{op.name} is not supported by this compiler")
        return build(self, t, *bound)

    def builtin(self, fn, values, t):
        if fn is bool:
            return self.truth_value(values[0])
        if fn is slice:
            bounds = [None, *values] if len(values) == 1 else values
            return SliceValue(*bounds[:2])
        if fn is range:
            return build_index.python_range(self, t, *values)
        if fn is enumerate:
            return build_index.python_enumerate(self, t, *values)
        if fn is tuple:
            return values[0]
        if is_static(t):
            return static(t)
        if fn in INPLACE or fn in BINARY:
            return self.binary(INPLACE.get(fn, fn), *values)
        if fn in BUILTINS:
            return self.python_function(fn, values)
        return self.unary(fn, *values)

    def python_function(self, fn, values):
        name, operation, arity, _ = BUILTINS[fn]
        if arity is not None:
            return elementwise(self.e, operation, values, name)
        result = values[0]
        for value in values[1:]:
            result = elementwise(self.e, operation, (result, value), name)
        return result

    def helper(self, helper, values, kinds, kws):
        """Inline a helper: parameters are bound as Python does, the body is built here."""
        types_ = self.session.helper_arguments(helper, kinds, {n: k for n, (_, k) in kws.items()})
        bound = bind(helper.__name__, _signature(helper), values, {n: x for n, (x, _) in kws.items()})
        return self._inline(helper, [front(a.value) if isinstance(a, Default) else a for a in bound], types_)

    def _inline(self, helper, values, types_):
        typed = self.session.specialize(helper.pyfunc, tuple(types_))
        args = [self.parameter(v, t) for v, t in zip(values, types_)]
        loc = self.e.b.loc
        result = FunctionBuilder(self.session, self.e, typed, args).build()
        self.e.b.loc = loc
        return result

    def parameter(self, value, t):
        """An argument as its parameter holds it: a literal that the annotation gave a dtype becomes that value."""
        if isinstance(t, NamedFloat):
            return Lit(t.value, "f64")
        if isinstance(value, Lit) and dtype_of(t) is not None:
            return self.e.value(value, t.dt)
        if isinstance(value, Value) and dtype_of(t) is not None and value.type.dt != t.dt:
            return self.e.value(value, t.dt)
        return value

    def apply(self, combine, values, kinds):
        """Call a combine: a helper, an operation or an operator."""
        callee = combine
        if isinstance(callee, Operation):
            return self.plain_value(self.operation(callee, list(values), {}, kinds[0]))
        if hasattr(callee, "pyfunc"):
            return self.helper(callee, list(values), list(kinds), {})
        return self.plain_value(self.builtin(callee, list(values), kinds[0]))

    def njit(self, dispatcher, values, kinds, kws, t):
        import inspect
        from .njit import call_njit
        name = dispatcher.py_func.__name__
        dts = self.session.njit_arguments(dispatcher, kinds, {n: k for n, (_, k) in kws.items()})
        bound = bind(name, inspect.signature(dispatcher.py_func), values, {n: x for n, (x, _) in kws.items()})
        values = [front(a.value) if isinstance(a, Default) else a for a in bound]
        return call_njit(self, dispatcher, values, dts, t.dt)


def _nested(t) -> bool:
    return is_tuple(t) or isinstance(t, Record)


def _signature(helper):
    from .pipeline import _python_signature
    return _python_signature(helper)


def constant(value):
    """The front value of an ``ir.Const``."""
    if type(value) is Literal:
        named = value.named and isinstance(value.value, float) and not ACTIVE.policy.weak_floats
        return Lit(value.value, "f64" if named else None)
    return front(value)


def front(value):
    """A static Python object as a front value."""
    if isinstance(value, (bool, int, float, str)):
        return Lit(value)
    if isinstance(value, tuple):
        return tuple(map(front, value))
    return value
