"""What should the author write instead? Foreign names, and hints that quote the operand in question."""
from __future__ import annotations

import ast
import difflib
import linecache
import re

from numba.core import ir

from ..kir import Loc
from ..typing.types import Lit, dtype_of
from .bytecode import kir_loc

_REDUCED = {name: f"write I.reduce.{name}(v, axis=...)" for name in ("sum", "prod", "any", "all")}
_MEAN = "write I.reduce.sum(v, axis=...) / I.cast(n, I.f32), n being an extent of v.shape"
_PARTS = "write each part to its own slice of the output"

FOREIGN = {
    **_REDUCED,
    "where": "write I.select(cond, a, b)",
    "max": "write I.reduce.max(v, axis=...), or I.maximum(a, b) of two values",
    "min": "write I.reduce.min(v, axis=...), or I.minimum(a, b) of two values",
    "mean": _MEAN, "average": _MEAN, "std": _MEAN, "var": _MEAN,
    "argmax": "write I.arg_reduce.max(v, axis=...), which gives (values, indices)",
    "argmin": "write I.arg_reduce.min(v, axis=...), which gives (values, indices)",
    "arange": "write I.indices(I.domain(0, n))", "range": "write I.domain(begin, end), or Python's range",
    "prange": "write for i in I.parallel(I.domain(0, n))",
    "concatenate": _PARTS, "concat": _PARTS, "cat": _PARTS, "stack": "I.join(a, b) pairs two tensors on a new last axis",
    "einsum": "write I.contract(a, b, reduce=((1, 0),), acc_dtype=I.f32)",
    "tensordot": "write I.contract(a, b, reduce=..., acc_dtype=...)",
    "isnan": "write v != v", "isfinite": "write I.abs(v) < I.inf", "isinf": "write I.abs(v) == I.inf",
    "mod": "write a % b on integers, I.remainder(a, b) on floats", "fmod": "write I.remainder(a, b)",
    "divide": "write a / b", "floordiv": "write a // b on integers, I.floor_divide(a, b) on floats", "negative": "write -v",
    "round": "write I.floor(v + 0.5)", "rint": "write I.floor(v + 0.5)", "trunc": "write I.cast(v, I.i32)",
    "square": "write v * v", "sign": "write I.select(v > 0.0, 1.0, I.select(v < 0.0, -1.0, v))",
    "softmax": "write e = I.exp(v - I.reduce.max(v, axis=-1)[:, None]) and divide by I.reduce.sum(e, axis=-1)[:, None]",
    "ones": "write I.full(shape, 1, dtype)", "empty": "write I.zeros(shape, dtype), or I.buffer(shape, dtype) for local memory",
    "zeros_like": "write I.zeros(v.shape, v.dtype)", "ones_like": "write I.full(v.shape, 1, v.dtype)",
    "full_like": "write I.full(v.shape, value, v.dtype)",
    "array": "tensors come from views and operations; write I.full(shape, value, dtype)",
    "sort": "sorting is not an operation of the language", "argsort": "sorting is not an operation of the language",
    "expand_dims": "write v[:, None]", "squeeze": "write I.reshape(v, shape), or index the axis with 0",
    "flatten": "write I.reshape(v, (-1,))",
    "ravel": "write I.reshape(v, (-1,))", "swapaxes": "write I.permute(v, (1, 0))", "T": "write I.transpose(v)",
    "broadcast_to": "operands broadcast by themselves; v + I.zeros(shape, dtype) forces a shape",
    "astype": "write I.cast(v, I.f32)", "to": "write I.cast(v, I.f32)", "view": "write I.bitcast(v, I.i32)",
    "clip": "write I.clamp(v, low, high)",
    "cumprod": "write I.scan(v, axis=..., identity=1.0, combine=I.multiply)", "size": "multiply the extents of .shape",
    "ndim": "the rank is that of the annotation", "copy": "values are immutable and need no copy", "item": "write v[()]",
    "bitwise_and": "write a & b", "bitwise_or": "write a | b", "bitwise_xor": "write a ^ b", "logical_and": "write a & b",
    "logical_or": "write a | b", "left_shift": "write a << b", "right_shift": "write a >> b", "sigmoid_": "write I.sigmoid(v)",
    "int32": "the dtype is I.i32", "float32": "the dtype is I.f32", "float64": "the dtype is I.f64", "float16": "the dtype is I.f16",
    "int64": "the dtype is I.i64", "int8": "the dtype is I.i8", "uint8": "the dtype is I.u8", "bfloat16": "the dtype is I.bf16",
    "load": "read a view by its index, x[rows, cols]", "program_id": "there are no programs: write for i in I.parallel(I.domain(0, n))",
    "num_programs": "there are no programs: extents come from x.shape", "thread_id": "there are no threads: write I.parallel",
    "atomic_add": "write I.atomic.add(view[i], value, order=\"relaxed\")", "constexpr": "write I.Constexpr[int] in the annotation",
    "shape": "extents come from x.shape", "len": "extents come from x.shape", "random_uniform": "write I.random.uniform(seed, counter)",
    "rand": "write I.random.uniform(seed, counter)",
}
"""What NumPy, PyTorch or Triton call it -> what to write. Also the methods of their arrays."""


def member_hint(owner: str, attr: str, names) -> str:
    """For ``owner.attr`` that does not exist: the language's word for it, or the name it was probably meant to be."""
    if attr in FOREIGN and (owner == "I" or attr in ("mean", "average", "std", "var")):
        return FOREIGN[attr]
    for prefix in ("reduce", "arg_reduce", "atomic", "random"):
        if attr.startswith(prefix + "_"):
            return f"did you mean I.{prefix}.{attr[len(prefix) + 1:]}?"
    close = difflib.get_close_matches(attr, [n for n in names if not n.startswith("_")], 1, cutoff=0.75)
    return f"did you mean {owner}.{close[0]}?" if close else ""


def source_text(loc: Loc) -> str:
    """The source of an expression on one line, empty where it cannot be known."""
    if loc is None or loc.col is None or loc.end_col is None or loc.end_line not in (None, loc.line):
        return ""
    return linecache.getline(loc.file, loc.line).encode()[loc.col:loc.end_col].decode(errors="ignore").strip()


def begins_with(loc: Loc, word: str) -> bool:
    """The source at a position begins with a keyword; its line, where columns are not known."""
    line = linecache.getline(loc.file, loc.line)
    return line.encode()[loc.col or 0:].decode(errors="ignore").lstrip().startswith(word)


_CAST = re.compile(r"I\.cast\(x, I\.(\w+)\)")
MAX_QUOTED = 48


def with_operand(func_ir, inferer, names, hint: str, message: str) -> str:
    """The hint with the operand that has another dtype in place of the ``x`` of ``I.cast(x, ...)``: one whose dtype the message
    names, if there is one."""
    found = _CAST.search(hint)
    if found is None:
        return hint
    for name in sorted(names, key=lambda n: (not _is_named(inferer, n, message), _is_bool(inferer, n))):
        var = inferer.typevars.get(name)
        t = var.type if var is not None and var.defined else None
        if t is not None and not isinstance(t, Lit) and dtype_of(t) not in (None, found[1]):
            text = _operand_text(func_ir, name)
            if text:
                return hint.replace("I.cast(x, ", f"I.cast({text}, ")
    return hint


def _is_named(inferer, name: str, message: str) -> bool:
    var = inferer.typevars.get(name)
    return var is not None and var.defined and f" {dtype_of(var.type)} " in f"{message} "


def _is_bool(inferer, name: str) -> bool:
    """Conditions are the operands meant last."""
    var = inferer.typevars.get(name)
    return var is not None and var.defined and dtype_of(var.type) == "bool"


def _operand_text(func_ir, name: str) -> str:
    """A name, or the source of the expression behind a temporary."""
    statements = {s.target.name: s for block in func_ir.blocks.values() for s in block.body if isinstance(s, ir.Assign)}
    found = statements.get(name)
    while found is not None and found.target.name.startswith("$") and isinstance(found.value, ir.Var):
        name = found.value.name
        found = statements.get(name)
    if not name.startswith("$"):
        return name.split(".")[0]
    text = source_text(kir_loc(found.value.loc)) if found is not None else ""
    return text if len(text) <= MAX_QUOTED else ""


def logic_hint(loc: Loc) -> str:
    """For a tensor where a condition must be a scalar: ``and``, ``or``, ``not`` and chained comparisons written elementwise."""
    try:
        tree = ast.parse(source_text(loc), mode="eval").body
    except SyntaxError:
        return ""
    match tree:
        case ast.BoolOp(op=op, values=values):
            symbol = " & " if isinstance(op, ast.And) else " | "
            return f"elementwise logic: write {symbol.join(f'({ast.unparse(v)})' for v in values)}"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return f"elementwise logic: write ~({ast.unparse(operand)})"
        case ast.Compare(left=left, ops=ops, comparators=others) if len(ops) > 1:
            sides = [left, *others]
            pairs = (ast.unparse(ast.Compare(a, [op], [b])) for a, op, b in zip(sides, ops, others))
            return f"elementwise logic: write {' & '.join(f'({p})' for p in pairs)}"
    return ""
