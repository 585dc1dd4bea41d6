"""KIR as text: how is a kernel printed, and how is the text read back?  ``print_kernel(parse_kernel(t)) == t``.

    kernel      := "kernel" name "(" params ")" ["policy" string] ["externs" strings] region
    params      := [value ":" type {"," value ":" type}]
    region      := "{" ["^(" params "):"] {op} ["yield" values] "}"
    op          := [values "="] kind [values] ["{" name "=" attr {"," name "=" attr} "}"] [":" types] {region}
    attr        := int | float | True | False | None | string | "`" extent "`" | "(" attr "," ... ")"
    type        := dtype | tensor<dtype, [extents]> | buffer<dtype, [extents]> | domain<extent>
                 | view<dtype, [extents], access, alias=name, noalias, strides=(ints, names and _)>

A value is ``%name``; its type is written where it is defined. The operands of an operation stand on the line of its
kind. ``//`` starts a comment. Not kept: source positions, and the dispatchers behind ``externs`` (their names are).
"""
from __future__ import annotations

import json
import re

from .ir import Kernel, Op, Region, Value
from .types import DTYPES, Buffer, Domain, Extent, Scalar, Tensor, Type, View


class ParseError(ValueError):
    """The text is not KIR; the message gives the line."""


# --- printing ---------------------------------------------------------------------------------------------------------

def print_kernel(kernel: Kernel, locs: bool = False) -> str:
    """The kernel as text. With ``locs`` every operation ends in its source position, ``// line:column``."""
    head = f"kernel {kernel.name}({_params(kernel.body.params)})"
    if kernel.policy != "strict":
        head += f" policy {json.dumps(kernel.policy)}"
    if kernel.externs:
        head += " externs " + ", ".join(json.dumps(name) for name in sorted(kernel.externs))
    lines = [head + " {"]
    _body(kernel.body, "  ", locs, lines)
    return "\n".join(lines) + "\n}\n"


def _body(region: Region, indent: str, locs: bool, lines: list[str]) -> None:
    for op in region.ops:
        _op(op, indent, locs, lines)
    if region.yields:
        lines.append(f"{indent}yield {_values(region.yields)}")


def _op(op: Op, indent: str, locs: bool, lines: list[str]) -> None:
    text = indent + (f"{_values(op.results)} = " if op.results else "") + op.kind
    if op.args:
        text += " " + _values(op.args)
    if op.attrs:
        text += " {" + ", ".join(f"{k}={_attr(op.attrs[k])}" for k in sorted(op.attrs)) + "}"
    if op.results:
        text += " : " + ", ".join(str(v.type) for v in op.results)
    where = f"  // {op.loc.line}" + (f":{op.loc.col}" if op.loc.col is not None else "") if locs and op.loc else ""
    if not op.regions:
        lines.append(text + where)
        return
    lines.append(text + " {" + where)
    for i, region in enumerate(op.regions):
        if i:
            lines.append(indent + "} {")
        if region.params:
            lines.append(f"{indent}^({_params(region.params)}):")
        _body(region, indent + "  ", locs, lines)
    lines.append(indent + "}")


def _values(values) -> str:
    return ", ".join(f"%{v.name}" for v in values)


def _params(values) -> str:
    return ", ".join(f"%{v.name}: {v.type}" for v in values)


def _attr(value) -> str:
    match value:
        case None | bool() | int() | float():
            return repr(value)
        case str():
            return json.dumps(value)
        case Extent():
            return f"`{value}`"
        case tuple() | list():
            return "(" + ", ".join(map(_attr, value)) + ("," if len(value) == 1 else "") + ")"
    raise TypeError(f"an attribute cannot hold {value!r}")


# --- parsing ----------------------------------------------------------------------------------------------------------

_TOKEN = re.compile(r"""
    (?P<skip>    [ \t\r\n]+ | //[^\n]* )
  | (?P<string>  "(?:[^"\\]|\\.)*" )
  | (?P<extent>  `[^`]*` )
  | (?P<value>   %[\w.$]+ )
  | (?P<float>   -?(?:\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|(?:inf|nan)\b) )
  | (?P<int>     -?\d+ )
  | (?P<name>    [A-Za-z_][\w.$]* )
  | (?P<mark>    [-+*^(){}\[\]<>,:=] )
""", re.VERBOSE)


def parse_kernel(text: str) -> Kernel:
    """The kernel that ``text`` says. Raises ParseError. Run ``verify`` on the result: parsing checks the grammar only."""
    return _Parser(text).kernel()


class _Parser:
    def __init__(self, text: str):
        self.tokens: list[tuple[str, str, int]] = []
        self.at = 0
        self.scope: dict[str, Value] = {}
        position, line = 0, 1
        while position < len(text):
            m = _TOKEN.match(text, position)
            if m is None:
                raise ParseError(f"line {line}: unexpected {text[position]!r}")
            if m.lastgroup != "skip":
                self.tokens.append((m.lastgroup, m.group(), line))
            line += m.group().count("\n")
            position = m.end()
        self.tokens.append(("end", "", line))

    # tokens

    def look(self, ahead: int = 0) -> str:
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)][1]

    def fail(self, expected: str):
        kind, text, line = self.tokens[self.at]
        raise ParseError(f"line {line}: expected {expected}, got {text or 'the end'!r}")

    def next(self, kind: str) -> str:
        if self.tokens[self.at][0] != kind:
            self.fail(f"a {kind}")
        self.at += 1
        return self.tokens[self.at - 1][1]

    def accept(self, text: str) -> bool:
        if self.tokens[self.at][0] in ("mark", "name") and self.look() == text:
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            self.fail(repr(text))

    def list_of(self, item) -> list:
        out = [item()]
        while self.accept(","):
            out.append(item())
        return out

    # structure

    def kernel(self) -> Kernel:
        self.expect("kernel")
        name = self.next("name")
        self.expect("(")
        params = self.params(")")
        policy = self.string() if self.accept("policy") else "strict"
        externs = dict.fromkeys(self.list_of(self.string)) if self.accept("externs") else {}
        body = Region(params)
        self.region(body)
        if self.tokens[self.at][0] != "end":
            self.fail("the end")
        return Kernel(name, body, policy, externs)

    def params(self, close: str) -> tuple[Value, ...]:
        if self.accept(close):
            return ()
        out = tuple(self.list_of(self.param))
        self.expect(close)
        return out

    def param(self) -> Value:
        name = self.next("value")[1:]
        self.expect(":")
        return self.define(name, self.type())

    def define(self, name: str, type: Type) -> Value:
        if name in self.scope:
            raise ParseError(f"line {self.tokens[self.at - 1][2]}: %{name} is defined twice")
        self.scope[name] = Value(name, type)
        return self.scope[name]

    def use(self) -> Value:
        name = self.next("value")[1:]
        if name not in self.scope:
            raise ParseError(f"line {self.tokens[self.at - 1][2]}: %{name} is not defined")
        return self.scope[name]

    def region(self, into: Region) -> Region:
        self.expect("{")
        if self.accept("^"):
            self.expect("(")
            into.params = self.params(")")
            self.expect(":")
        while not self.accept("}"):
            if self.accept("yield"):
                into.yields = tuple(self.list_of(self.use))
                self.expect("}")
                break
            into.ops.append(self.op())
        return into

    def op(self) -> Op:
        names = []
        if self.tokens[self.at][0] == "value":
            names = self.list_of(lambda: self.next("value")[1:])
            self.expect("=")
        line = self.tokens[self.at][2]
        op = Op(self.next("name"))
        if self.tokens[self.at][0] == "value" and self.tokens[self.at][2] == line:
            op.args = tuple(self.list_of(self.use))
        if self.look() == "{" and self.look(2) == "=" and self.tokens[self.at + 1][0] == "name":
            self.expect("{")
            op.attrs = dict(self.list_of(self.attr_item))
            self.expect("}")
        types = self.list_of(self.type) if names and (self.expect(":") or True) else []
        if len(types) != len(names):
            self.fail(f"{len(names)} result types before this")
        regions = []
        while self.look() == "{":
            regions.append(self.region(Region(())))
        op.regions = tuple(regions)
        op.results = tuple(map(self.define, names, types))
        return op

    # attributes

    def attr_item(self):
        key = self.next("name")
        self.expect("=")
        return key, self.attr()

    def string(self) -> str:
        return json.loads(self.next("string"))

    def attr(self):
        kind, text, _ = self.tokens[self.at]
        match kind:
            case "int":
                self.at += 1
                return int(text)
            case "float":
                self.at += 1
                return float(text)
            case "string":
                return self.string()
            case "extent":
                self.at += 1
                return Extent.parse(text[1:-1])
            case "name" if text in ("True", "False", "None"):
                self.at += 1
                return {"True": True, "False": False, "None": None}[text]
        self.expect("(")
        items = []
        while not self.accept(")"):
            items.append(self.attr())
            if not self.accept(","):
                self.expect(")")
                break
        return tuple(items)

    # types

    def type(self) -> Type:
        if self.look() not in (*DTYPES, "tensor", "view", "buffer", "domain"):
            self.fail("a type")
        word = self.next("name")
        if word in DTYPES:
            return Scalar(word)
        self.expect("<")
        match word:
            case "domain":
                out = Domain(self.extent())
            case "tensor":
                out = Tensor(*self.array())
            case "buffer":
                out = Buffer(*self.array())
            case _:
                dt, shape = self.array()
                self.expect(",")
                out = View(dt, shape, self.next("name"), **self.constraints())
        self.expect(">")
        return out

    def array(self):
        if self.look() not in DTYPES:
            self.fail("a dtype")
        dt = self.next("name")
        self.expect(",")
        self.expect("[")
        shape = () if self.look() == "]" else tuple(self.list_of(self.extent))
        self.expect("]")
        return dt, shape

    def extent(self) -> Extent:
        start = self.at
        while self.look() not in (",", "]", ">") and self.tokens[self.at][0] in ("value", "name", "int", "mark"):
            self.at += 1
        if start == self.at:
            self.fail("an extent")
        return Extent.parse("".join(t[1] for t in self.tokens[start:self.at]))

    def constraints(self) -> dict:
        out: dict = {}
        while self.accept(","):
            key = self.next("name")
            if key == "noalias":
                out[key] = True
                continue
            self.expect("=")
            if key == "strides":
                self.expect("(")
                out[key] = () if self.look() == ")" else tuple(self.list_of(self.stride))
                self.expect(")")
            else:
                out[key] = self.next("name")
        return out

    def stride(self):
        if self.tokens[self.at][0] == "int":
            return int(self.next("int"))
        name = self.next("name")
        return None if name == "_" else name
