"""How does ``@numba.njit`` code call a kernel or an artifact?

The kernel becomes a Numba callable. Its machine code is linked into the caller, together with an entry that checks what
types cannot tell (extents, strides, overlap) and picks the variant; a failed check raises CallError in the caller.
The caller may be cached on disk (``cache=True``) and may run in a ``prange``.
"""
from __future__ import annotations

import ctypes
import inspect

import llvmlite.binding as llvm
import llvmlite.ir as ir
from numba.core import cgutils, errors, types
from numba.core.extending import NativeValue, models, register_model, unbox
from numba.core.imputils import lower_constant
from numba.core.registry import cpu_target
from numba.core.typing import signature

from ..errors import CallError, CompileError, IntegerOverflow
from ..kir.ops import ERRORS
from ..kir.types import BITS, int_range, is_float
from . import threads
from .artifact import Artifact
from .driver import Build, Compiled
from .guards import Checks, ViewText
from .interface import MISSING, Interface, Parameter, expectation
from .scalars import encode

_DTYPES = {types.boolean: ("bool",), types.int64: ("i64", "index"), types.int8: ("i8",), types.int16: ("i16",), types.int32: ("i32",),
           types.uint8: ("u8",), types.uint16: ("u16",), types.uint32: ("u32",), types.uint64: ("u64",),
           types.float16: ("f16",), types.float32: ("f32",), types.float64: ("f64",)}
_I32, _I64, _PTR = ir.IntType(32), ir.IntType(64), ir.IntType(8).as_pointer()
_SERIAL = "intent_serial_launch"


class KernelType(types.Callable, types.Opaque):
    """The Numba type of one kernel or artifact."""

    def __init__(self, owner):
        self.owner = owner
        super().__init__(f"intent kernel {owner.__name__} {id(owner):x}")

    @property
    def key(self):
        return self.owner

    @property
    def interface(self) -> Interface:
        return self.owner.interface

    def get_call_type(self, context, args, kws):
        if isinstance(self.owner, Artifact) and self.owner.target != "cpu":
            raise errors.TypingError(f"{self.owner.__name__}: an artifact for {self.owner.target} cannot be called from @njit code")
        if isinstance(self.owner, Artifact) and self.owner.options.checks:
            raise errors.TypingError(f"{self.owner.__name__}: with checks=True it cannot be called from @njit code; call it from Python")
        given = _assign(self.interface, self._params(), args, kws)
        chosen = [_check(self.interface, self.interface.by_name[name], type_) for name, type_ in given.items()]
        sig = signature(types.none, *chosen).replace(pysig=_python_signature(given))
        try:
            self.artifact(sig)
        except CompileError as e:
            raise errors.TypingError(f"kernel {self.interface.kernel} does not compile:\n{e}") from None
        return sig

    def get_call_signatures(self):
        return [], True

    def get_impl_key(self, sig):
        return self.owner

    def artifact(self, sig) -> Artifact:
        """The specialisation for a call of that signature: Constexprs are literals of its types."""
        if isinstance(self.owner, Artifact):
            return self.owner
        from .kernel import compile
        names = {p.name for p in self.interface.constexprs}
        return compile(self.owner, constexprs={name: t.literal_value for name, t in zip(sig.pysig.parameters, sig.args) if name in names})

    def _params(self) -> tuple[Parameter, ...]:
        return self.interface.runtime if isinstance(self.owner, Artifact) else self.interface.params


register_model(KernelType)(models.OpaqueModel)


@lower_constant(KernelType)
def _constant(context, builder, type_, value):
    return context.get_dummy_value()


@unbox(KernelType)
def _unbox(type_, obj, c):
    return NativeValue(c.context.get_dummy_value())


_types: dict = {}


def kernel_type(owner) -> KernelType:
    """The type of a kernel or artifact, with its implementation made known to Numba's CPU target."""
    found = _types.get(id(owner))
    if found is None:
        _make_symbols_known()
        found = _types[id(owner)] = KernelType(owner)
        cpu_target.target_context.insert_func_defn([(_implementation(found), owner, (types.VarArg(types.Any),))])
    return found


# --- typing --------------------------------------------------------------------------------------------------------------

def _assign(interface: Interface, params, args, kws) -> dict:
    """Parameter name -> Numba type, for what the call gives."""
    by_position = [p.name for p in params if not p.keyword_only]
    if len(args) > len(by_position):
        raise errors.TypingError(f"{interface.kernel}: expected at most {len(by_position)} positional arguments, got {len(args)}")
    given = dict(zip(by_position, args))
    for name, type_ in dict(kws).items():
        if name in given or name not in {p.name for p in params}:
            problem = "given by position and by keyword" if name in given else "no such parameter"
            raise errors.TypingError(f"{interface.kernel}: parameter '{name}': {problem}")
        given[name] = type_
    for p in params:
        if p.name not in given and p.default is MISSING:
            raise errors.TypingError(f"{interface.kernel}: parameter '{p.name}': expected {expectation(p)}, got nothing")
    return given


def _python_signature(names) -> inspect.Signature:
    """What Numba needs to put the arguments of this very call in order."""
    return inspect.Signature([inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names])


def _check(interface: Interface, p: Parameter, came):
    """The type under which the argument is passed. Raises Numba's TypingError naming the parameter."""
    match p.kind:
        case "constexpr":
            if not isinstance(came, types.Literal):
                raise _mismatch(interface, p, f"{came}: in @njit code a Constexpr is a literal bool or int, or fixed by intent.compile")
            return came
        case "view":
            came = types.unliteral(came)
            if not isinstance(came, types.Array) or came.ndim != len(p.shape) or p.dt not in _DTYPES.get(came.dtype, ()):
                raise _mismatch(interface, p, came)
            if not came.aligned or (p.written and not came.mutable):
                raise _mismatch(interface, p, f"{came}, which is {'read-only' if came.aligned else 'not aligned'}")
            return came
    return _check_scalar(interface, p, came)


def _check_scalar(interface: Interface, p: Parameter, came):
    plain = types.unliteral(came)
    wanted = types.Boolean if p.dt == "bool" else types.Integer
    if p.dt in ("f32", "f64"):
        wanted = (types.Float, types.Integer)
    elif is_float(p.dt):
        wanted = ()
    if not isinstance(plain, wanted):
        raise _mismatch(interface, p, came)
    return plain


def _mismatch(interface: Interface, p: Parameter, came):
    return errors.TypingError(f"{interface.kernel}: parameter '{p.name}': expected {expectation(p)}, got {came}")


# --- lowering ------------------------------------------------------------------------------------------------------------

def _implementation(type_: KernelType):
    def lower_call(context, builder, sig, args):
        artifact = type_.artifact(sig)
        interface = artifact.interface
        given = dict(zip(sig.pysig.parameters, zip(args, sig.args)))
        entry = _Entry.for_build(artifact._build)
        for library in entry.libraries:
            context.active_code_library.add_linking_library(library)
        context.active_code_library._reload_init.add(_make_symbols_known)
        status = builder.call(_declare(builder, entry.symbol), [_frame(context, builder, interface, given)])
        _raise(context, builder, interface, entry, status)
        return context.get_dummy_value()
    return lower_call


def _declare(builder, symbol: str):
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(_I32, [_PTR]), symbol)


def _frame(context, builder, interface: Interface, given: dict):
    """The launch frame, with strides still in bytes: the entry turns them into elements."""
    slots = [ir.Constant(_I64, 1)]
    for p in interface.runtime:
        if p.name not in given:
            slots.append(ir.Constant(_I64, encode(p.dt, p.default)))
            continue
        value, type_ = given[p.name]
        if p.kind == "view":
            array = context.make_array(type_)(context, builder, value=value)
            slots.append(builder.ptrtoint(array.data, _I64))
            slots += cgutils.unpack_tuple(builder, array.shape, type_.ndim)
            slots += cgutils.unpack_tuple(builder, array.strides, type_.ndim)
        else:
            slots.append(_scalar(context, builder, interface, p, value, type_))
    frame = cgutils.alloca_once(builder, ir.ArrayType(_I64, len(slots)))
    for i, slot in enumerate(slots):
        builder.store(slot, builder.gep(frame, [_I32(0), _I32(i)]))
    return builder.bitcast(frame, _PTR)


def _scalar(context, builder, interface: Interface, p: Parameter, value, type_):
    if p.dt == "bool":
        return builder.zext(context.cast(builder, value, type_, types.boolean), _I64)
    if not is_float(p.dt):
        return _integer(context, builder, interface, p, value, type_)
    wide = context.cast(builder, value, type_, types.float64)
    if isinstance(type_, types.Integer):
        back = (builder.fptosi if type_.signed else builder.fptoui)(wide, value.type)
        _require(context, builder, builder.icmp_signed("==", back, value), interface, p, "an integer that it cannot hold exactly")
    if p.dt == "f64":
        return builder.bitcast(wide, _I64)
    narrow = builder.fptrunc(wide, ir.FloatType())
    if isinstance(type_, types.Integer):
        same = builder.fcmp_ordered("==", builder.fpext(narrow, ir.DoubleType()), wide)
        _require(context, builder, same, interface, p, "an integer that it cannot hold exactly")
    else:
        finite = builder.fcmp_ordered("<", builder.call(_fabs(builder), [wide]), ir.Constant(ir.DoubleType(), float("inf")))
        largest = builder.fcmp_ordered("<", builder.fpext(_magnitude32(builder, narrow), ir.DoubleType()),
                                       ir.Constant(ir.DoubleType(), float("inf")))
        _require(context, builder, builder.or_(builder.not_(finite), largest), interface, p, "a number outside its range")
    return builder.zext(builder.bitcast(narrow, _I32), _I64)


def _fabs(builder):
    return builder.module.declare_intrinsic("llvm.fabs", [ir.DoubleType()])


def _magnitude32(builder, value):
    return builder.call(builder.module.declare_intrinsic("llvm.fabs", [ir.FloatType()]), [value])


def _integer(context, builder, interface: Interface, p: Parameter, value, type_):
    wide = (builder.sext if type_.signed else builder.zext)(value, _I64) if value.type.width < 64 else value
    lo, hi = int_range(p.dt)
    checks = []
    if type_.signed and lo > -(1 << 63):
        checks.append(builder.icmp_signed(">=", wide, ir.Constant(_I64, lo)))
    if hi < (1 << 63) - 1 or (hi == (1 << 63) - 1 and not type_.signed):
        compare = builder.icmp_signed if type_.signed else builder.icmp_unsigned
        checks.append(compare("<=", wide, ir.Constant(_I64, hi)))
    for fits in checks:
        _require(context, builder, fits, interface, p, "an integer outside its range")
    return wide


def _require(context, builder, condition, interface: Interface, p: Parameter, came: str):
    with builder.if_then(builder.not_(condition), likely=False):
        context.call_conv.return_user_exc(builder, CallError, (str(interface.mismatch(p, expectation(p), came)),))


def _raise(context, builder, interface: Interface, entry: "_Entry", status):
    with builder.if_then(builder.icmp_signed("!=", status, _I32(0)), likely=False):
        for code, message in enumerate(entry.messages, _FIRST_CHECK):
            with builder.if_then(builder.icmp_signed("==", status, _I32(code)), likely=False):
                context.call_conv.return_user_exc(builder, CallError, (message,))
        with builder.if_then(builder.icmp_signed("==", status, _I32(ERRORS["overflow"])), likely=False):
            context.call_conv.return_user_exc(builder, IntegerOverflow, (entry.overflow,))
        context.call_conv.return_user_exc(builder, MemoryError, (f"{interface.kernel}: no memory for the kernel's workspace",))


# --- the linked entry ----------------------------------------------------------------------------------------------------

_FIRST_CHECK = 16
"""Status of the first failed check; statuses below it are the kernel's own."""


class _Entry:
    """A checked entry over one build: its symbol, the libraries to link, and the message of each failed check."""

    def __init__(self, build: Build):
        base, ordered = _linkable(build, frozenset()), _ordered(build)
        self.symbol = base.code.symbol + "_checked"
        writer = _EntryText(build.interface, base, ordered)
        from ..targets.cpu import compile_text
        checked = compile_text(writer.text(self.symbol), self.symbol, "none")
        self.messages = writer.messages
        self.overflow = build.overflow() if build.policy == "checked" else ""
        # In this order: the linker drops what nothing linked before it names.
        self.libraries = [checked.library] + [c.code.library for c in (base, ordered) if c is not None]

    @staticmethod
    def for_build(build: Build) -> "_Entry":
        found = getattr(build, "_njit_entry", None)
        if found is None:
            found = build._njit_entry = _Entry(build)
        return found


def _written_pairs(interface: Interface) -> frozenset:
    """Every pair of views that can conflict."""
    views = interface.views
    return frozenset(frozenset((a.name, b.name)) for i, a in enumerate(views) for b in views[i + 1:]
                     if (a.written or b.written) and not (a.constraints.noalias or b.constraints.noalias))


def _ordered(build: Build) -> Compiled | None:
    """The variant that is right whatever overlaps; None when no views can conflict, or when there is no such variant."""
    plain = build.compiled().facts.plain_writes
    pairs = _written_pairs(build.interface) | {frozenset((p.name,)) for p in build.interface.views if _updated(p, plain)}
    try:
        return _linkable(build, pairs) if pairs else None
    except CompileError:
        return None


def _updated(p: Parameter, plain: frozenset) -> bool:
    """Whether a view is written by updates only, so that its elements may share memory."""
    return p.written and bool(p.shape) and p.name not in plain


def _linkable(build: Build, alias: frozenset) -> Compiled:
    """Code whose library Numba can link; what came from the disk cache is machine code only and is generated again."""
    compiled = build.compiled(alias)
    return compiled if compiled.code.library is not None else build.generate(alias)


class _EntryText(Checks):
    """Text of ``i32 entry(ptr frame)``: check, set the thread count, run the fitting variant. Who owns an allocation cannot
    be seen here, so alias groups are taken at their word: the ordered variant is right whatever overlaps."""

    def __init__(self, interface: Interface, base: Compiled, ordered: Compiled | None):
        super().__init__()
        self.interface, self.base, self.ordered = interface, base, ordered
        self.messages: list[str] = []

    def failure(self, kind: str, *names) -> str:
        return self.reject(_message(self.interface, kind, *names))

    def reject(self, message: str) -> str:
        self.messages.append(message)
        return f"fail{len(self.messages) - 1}"

    def text(self, symbol: str) -> str:
        views, slot = [], 1
        for p in self.interface.runtime:
            rank = len(p.shape)
            if p.kind == "view":
                loaded = [self.load("%frame", 8 * (slot + i)) for i in range(1 + 2 * rank)]
                views.append(ViewText(p, loaded[0], loaded[1:1 + rank], loaded[1 + rank:]))
                for i, elements in enumerate(self.element_strides(views[-1])):
                    self.line(f"store i64 {elements}, ptr {self.at('%frame', 8 * (slot + 1 + rank + i))}")
                slot += 1 + 2 * rank
            else:
                slot += 1
        self.same_extents(views)
        self.stride_constraints(views)
        for v in views:
            if v.param.name in self.base.facts.plain_writes:
                self.distinct_elements(v)
        self.launch(self.disjoint(views))
        for i in range(len(self.messages)):
            self.block(f"fail{i}")
            self.line(f"ret i32 {_FIRST_CHECK + i}")
        return self.function(f"define i32 @{symbol}(ptr %frame)")

    def disjoint(self, views: list[ViewText]) -> str:
        """An i1: the fast code may run. An overlap of a noalias view fails at once."""
        apart = [self.distinct(v) for v in views if self.ordered is not None and _updated(v.param, self.base.facts.plain_writes)]
        for a, b, ok in self.memory(views, self.base.facts.inplace):
            if self.ordered is None or a.param.constraints.noalias or b.param.constraints.noalias:
                v, other = (b, a) if b.param.constraints.noalias else (a, b)
                self.guard(ok, self.failure("memory", v, other))
            else:
                apart.append(ok)
        return self.all(apart)

    def launch(self, fast: str) -> None:
        self.externals[_SERIAL] = f"@{_SERIAL} = external global i64"
        allowed = self.call("i64", "get_num_threads")
        alone = self.let(f"icmp ne i64 {self.let(f'load i64, ptr @{_SERIAL}')}, 0")
        self.line(f"store i64 {self.let(f'select i1 {alone}, i64 1, i64 {allowed}')}, ptr %frame")
        if self.ordered is not None:
            yes, no = self.label(), self.label()
            self.line(f"br i1 {fast}, label %{yes}, label %{no}")
            self.block(no)
            self.line(f"ret i32 {self.call('i32', self.ordered.code.symbol, 'ptr %frame')}")
            self.block(yes)
        self.line(f"ret i32 {self.call('i32', self.base.code.symbol, 'ptr %frame')}")


def _message(interface: Interface, kind: str, v: ViewText, more=None) -> str:
    p = v.param
    match kind:
        case "extent":
            expected = p.shape[more]
            source = f" (that of '{interface.symbols[expected][0]}')" if isinstance(expected, str) else ""
            wanted, came = f"extent {expected}{source} on axis {more}", "another extent"
        case "stride":
            wanted, came = "strides of whole elements", f"strides that are no multiple of {BITS[p.dt] // 8} bytes"
        case "constraint":
            wanted, came = f"stride {p.constraints.strides[more]} on axis {more}", "another stride"
        case "distinct":
            wanted, came = "a writable array whose elements are distinct memory", "one that overlaps itself"
        case _:
            wanted, came = "memory of its own", f"memory that overlaps '{more.param.name}'"
    return str(interface.mismatch(p, wanted, came))


def _make_symbols_known() -> None:
    """Also run in a process that loads a cached caller: its code names the threading layer and this package's flag."""
    from numba.np.ufunc import parallel
    parallel._launch_threads()
    if not threads.free():
        threads.serial_when_nested.value = 1
    llvm.add_symbol(_SERIAL, ctypes.addressof(threads.serial_when_nested))
