"""How LLVM text is written: modules, functions, and structured control flow.

Text only, no LLVM objects: writing an instruction is one f-string, which is what keeps compile time small.
"""
from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Dialect:
    """What a target's code generator can be trusted with; the emitter expands the rest.

    ``half``: conversions between ``float`` and ``half`` are native. ``freeze``: the instruction exists. ``memory_none``: so does
    the attribute. ``constant_space``: the address space of constant tables. ``scope``: text of the scope of atomic operations.
    ``atomic_bytes``: the smallest element that they change; ``atomic_access``: loads and stores can be atomic. ``fence``: the intrinsic
    that orders memory around atomic operations which order nothing by themselves; empty where they do.
    """
    name: str = "cpu"
    half: bool = True
    freeze: bool = True
    memory_none: bool = True
    constant_space: int = 0
    scope: str = ""
    atomic_bytes: int = 1
    atomic_access: bool = True
    fence: str = ""


class Module:
    """A translation unit under construction. ``helpers`` maps keys of internal functions to what was emitted for them."""

    def __init__(self, dialect: Dialect = Dialect()):
        self.dialect = dialect
        self.functions: list[Function] = []
        self.helpers: dict = {}
        self._declared: dict[str, str] = {}
        self._globals: dict[tuple, str] = {}
        self._global_text: list[str] = []
        self._metadata: dict[str, str] = {}
        self._trailer: list[str] = []

    def declare(self, ret: str, name: str, params: str, attrs: str = "") -> str:
        """Declare an external function once; ``params`` is the text of its parameter types. Returns ``@name``."""
        if name not in self._declared:
            self._declared[name] = f"declare {ret} @{name}({params}){' ' + attrs if attrs else ''}"
        return "@" + name

    def constant(self, type: str, value: str, align: int = 0) -> str:
        """A private constant global with this initialiser (shared when equal). Returns its name."""
        key = (type, value)
        name = self._globals.get(key)
        if name is None:
            name = self._globals[key] = f"@.c{len(self._globals)}"
            space = f"addrspace({self.dialect.constant_space}) " if self.dialect.constant_space else ""
            self._global_text.append(f"{name} = private unnamed_addr {space}constant {type} {value}"
                                     + (f", align {align}" if align else ""))
        return name

    def define_global(self, text: str) -> None:
        """A verbatim line at module level (a global, a comdat, an attribute group)."""
        self._global_text.append(text)

    def metadata(self, text: str) -> str:
        """A metadata node such as ``!{i32 1}`` (shared when equal). Returns ``!n``."""
        return self._metadata.setdefault(text, f"!{len(self._metadata)}")

    def trailer(self, text: str) -> None:
        """A verbatim line at the end of the module (named metadata, module flags)."""
        self._trailer.append(text)

    def function(self, name: str, ret: str, params=(), head: str = "", attrs: str = "nounwind") -> "Function":
        """Start a function definition. ``params`` are (type with attributes, name without %) pairs; ``head`` is linkage and
        calling convention. Functions may be written in any order, also while another is unfinished."""
        fn = Function(self, name, ret, tuple(params), head, attrs)
        self.functions.append(fn)
        return fn

    def text(self) -> str:
        out = [*self._global_text, *self._declared.values(), *(f.text() for f in self.functions)]
        out += [f"{name} = {text}" for text, name in self._metadata.items()]
        return "\n".join(out + self._trailer) + "\n"


class Function:
    """A function under construction. ``cur`` is the name of the block being written."""

    def __init__(self, module: Module, name: str, ret: str, params: tuple, head: str = "", attrs: str = "nounwind"):
        self.module, self.name, self.ret_type, self.params, self.head, self.attrs = module, name, ret, params, head, attrs
        self.cur = "entry"
        self.cache: dict = {}                     # values known in the entry block, for whoever hoists
        self._n = 0
        self._entry: list[str] = []
        self._lines: list[str] = []

    # --- instructions ---

    def fresh(self, prefix: str = "v") -> str:
        """A name (with %) that no other value or label of the function has."""
        self._n += 1
        return f"%{prefix}.{self._n}"

    def fresh_label(self, prefix: str = "b") -> str:
        """A label (without %)."""
        self._n += 1
        return f"{prefix}.{self._n}"

    def ins(self, text: str, name: str | None = None) -> str:
        """Write an instruction with a result; returns the result's name."""
        if name is None:
            self._n += 1
            name = f"%v.{self._n}"
        self._lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """Write an instruction without a result."""
        self._lines.append("  " + text)

    def label(self, name: str) -> None:
        """Start a block. The block before it must have ended with a terminator."""
        self.cur = name
        self._lines.append(name + ":")

    def alloca(self, type: str, align: int = 0, count: int = 1) -> str:
        """Stack memory, allocated once per call of the function wherever this is written. ``count`` elements of ``type``."""
        name = self.fresh("stack")
        kind = f"[{count} x {type}]" if count != 1 else type
        self._entry.append(f"  {name} = alloca {kind}" + (f", align {align}" if align else ""))
        return name

    def zeroed(self, type: str, align: int, count: int) -> str:
        """Stack memory that is zero when the function is entered."""
        name = self.alloca(type, align, count)
        self._entry.append(f"  store [{count} x {type}] zeroinitializer, ptr {name}")
        return name

    def entry(self, text: str) -> str:
        """Write an instruction into the entry block; it may use parameters and earlier entry instructions only."""
        name = self.fresh("e")
        self._entry.append(f"  {name} = {text}")
        return name

    @property
    def size(self) -> int:
        """Lines written so far."""
        return len(self._lines)

    # --- calls and terminators ---

    def call(self, ret: str, callee: str, args, head: str = "") -> str | None:
        """Call ``callee`` (with @ or %) on (type, text) pairs. Returns the result's name, None for void."""
        text = f"{head}call {ret} {callee}({', '.join(f'{t} {v}' for t, v in args)})"
        if ret == "void":
            return self.do(text)
        return self.ins(text)

    def br(self, label: str) -> None:
        self.do(f"br label %{label}")

    def cond_br(self, cond: str, yes: str, no: str) -> None:
        self.do(f"br i1 {cond}, label %{yes}, label %{no}")

    def phi(self, type: str, incoming) -> str:
        """``incoming``: (value, block label) pairs."""
        return self.ins(f"phi {type} " + ", ".join(f"[ {v}, %{b} ]" for v, b in incoming))

    def ret(self, type: str = "void", value: str = "") -> None:
        self.do(f"ret {type} {value}".rstrip())

    # --- structured control ---

    @contextmanager
    def loop(self, lo: str, hi: str, step: str | int = 1, carries=(), type: str = "i64", metadata: str = ""):
        """``for index in range(lo, hi, step)`` with a positive step, as a ``Loop``::

            with fn.loop("0", n, 32, carries=[("float", "0.0")]) as lp:
                lp.next[0] = fn.ins(f"fadd float {lp.carried[0]}, {x}")
            use(lp.results[0])

        A carry whose ``next`` is not set keeps its value.
        """
        before, head, body, done = self.cur, *(self.fresh_label(p) for p in ("head", "body", "done"))
        self.br(head)
        self.label(head)
        index = self.fresh("i")
        names = [self.fresh("c") for _ in carries]
        at = len(self._lines)
        self._lines += [""] * (1 + len(names))                   # the phis: their back edges are known at the end
        self.cond_br(self.ins(f"icmp slt {type} {index}, {hi}"), body, done)
        self.label(body)
        lp = Loop(index, names, list(names), head, body, done)
        yield lp
        latch, following = self.cur, self.ins(f"add nsw {type} {index}, {step}")
        self.do(f"br label %{head}" + metadata)
        self._lines[at] = f"  {index} = phi {type} [ {lo}, %{before} ], [ {following}, %{latch} ]"
        for k, ((kind, init), name) in enumerate(zip(carries, names)):
            self._lines[at + 1 + k] = f"  {name} = phi {kind} [ {init}, %{before} ], [ {lp.next[k]}, %{latch} ]"
        self.label(done)

    @contextmanager
    def repeat(self, carries=()):
        """Do-while, as a ``Loop`` without index: set ``again`` (an i1) and ``next``; ``results`` are the last ``next``."""
        before, body, done = self.cur, self.fresh_label("body"), self.fresh_label("done")
        self.br(body)
        self.label(body)
        names = [self.fresh("c") for _ in carries]
        at = len(self._lines)
        self._lines += [""] * len(names)
        lp = Loop("", names, list(names), body, body, done)
        yield lp
        latch = self.cur
        self.cond_br(lp.again, body, done)
        for k, ((kind, init), name) in enumerate(zip(carries, names)):
            self._lines[at + k] = f"  {name} = phi {kind} [ {init}, %{before} ], [ {lp.next[k]}, %{latch} ]"
        lp.results = list(lp.next)
        self.label(done)

    @contextmanager
    def if_(self, cond: str):
        """Run the block where ``cond`` (i1) holds::

            with fn.if_(c): ...

        With merged values: ``with fn.if_else(c) as b``."""
        yes, done = self.fresh_label("then"), self.fresh_label("endif")
        self.cond_br(cond, yes, done)
        self.label(yes)
        yield
        self.br(done)
        self.label(done)

    @contextmanager
    def if_else(self, cond: str):
        """Two-sided branch with merged values, as a ``Branch``::

            with fn.if_else(c) as b:
                b.yields(("float", x))          # (type, value) pairs of the first side
                b.orelse()
                b.yields(("float", y))
            use(b.results[0])
        """
        yes, no, done = (self.fresh_label(p) for p in ("then", "else", "endif"))
        self.cond_br(cond, yes, no)
        self.label(yes)
        branch = Branch(self, no, done)
        yield branch
        if not branch.second:
            branch.orelse()
        branch.ends.append(self.cur)
        self.br(done)
        self.label(done)
        if branch.values:
            first, second = branch.values
            branch.results = [self.phi(kind, [(a, branch.ends[0]), (b, branch.ends[1])])
                              for (kind, a), (_, b) in zip(first, second)]

    def text(self) -> str:
        params = ", ".join(f"{t} %{n}" for t, n in self.params)
        head = f"define {self.head + ' ' if self.head else ''}{self.ret_type} @{self.name}({params}) {self.attrs} {{"
        return "\n".join([head, "entry:", *self._entry, *self._lines, "}"])


@dataclass
class Loop:
    """Inside: the names ``index`` and ``carried``, and ``next`` to set. Behind: ``results``. ``head``, ``body``, ``done`` are labels."""
    index: str
    carried: list[str]
    next: list[str]
    head: str
    body: str
    done: str
    again: str = "false"
    results: list[str] = field(default_factory=list)

    def __post_init__(self):
        self.results = list(self.carried)


class Branch:
    """The two sides of ``Function.if_else``."""

    def __init__(self, fn: Function, no: str, done: str):
        self.fn, self.no, self.done = fn, no, done
        self.values: list = []
        self.ends: list[str] = []
        self.second = False
        self.results: list[str] = []

    def yields(self, *typed) -> None:
        """The values of the side being written, as (type, value) pairs."""
        self.values.append(typed)

    def orelse(self) -> None:
        """Start the second side."""
        self.ends.append(self.fn.cur)
        self.fn.br(self.done)
        self.fn.label(self.no)
        self.second = True
