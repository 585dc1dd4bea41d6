"""The operations of KIR: the closed table that the builder, verifier, printer, interpreter and lowering read.

Conventions of every operation
  * Elementwise operations take operands of one common shape and give that shape; broadcasting is always an explicit
    ``broadcast``. A scalar counts as shape ``()``; a rank-zero tensor has shape ``()`` too but is another type, and
    ``broadcast`` and ``gather`` with no index convert between them.
  * Dtypes match exactly as the table says: KIR has no promotion. Index coordinates are always dtype ``index``.
  * Axes are non-negative. A reduction deletes one axis; several axes are nested operations, last axis first.
  * Operations act in program order inside a region. ``parallel`` points have no order.
  * Everything that fixes bits (FMA, tree, chain) is said by the kind or an attribute, never left to a target.
"""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OpInfo:
    """``operands`` is the number of elementwise operands (None: the operation has a rule of its own).
    ``domain``: n numeric, f float, i integer, b bool, u64, any; joined by |. ``result``: same, bool, u32, or attr (own rule)."""
    operands: int | None
    domain: str = "any"
    result: str = "same"
    doc: str = ""


# Elementwise. Integer arithmetic wraps; float arithmetic rounds once to nearest even in its own dtype.
ELEMENTWISE: dict[str, OpInfo] = {
    "add": OpInfo(2, "n"), "sub": OpInfo(2, "n"), "mul": OpInfo(2, "n"),
    "div": OpInfo(2, "f", doc="attrs approximate, ftz (bool, absent when False)"),
    "floordiv": OpInfo(2, "i", doc="Python floor division; a zero divisor or min//-1 gives some value, never a trap"),
    "mod": OpInfo(2, "i", doc="Python remainder, sign of the divisor; min % -1 is 0; a zero divisor gives some value"),
    "floor_divide": OpInfo(2, "f"), "remainder": OpInfo(2, "f"),
    "power": OpInfo(2, "i", doc="a**b modulo 2^N, b read as unsigned 64-bit"), "pow": OpInfo(2, "f", doc="C99 pow"),
    "neg": OpInfo(1, "n", doc="float: flips the sign bit; integers wrap"), "abs": OpInfo(1, "n"),
    "fma": OpInfo(3, "f", doc="a*b+c rounded once"),
    "and": OpInfo(2, "i|b"), "or": OpInfo(2, "i|b"), "xor": OpInfo(2, "i|b"), "not": OpInfo(1, "i|b"),
    "shl": OpInfo(2, "i", doc="an oversized amount gives some value"), "shr": OpInfo(2, "i", doc="arithmetic for signed, logical for unsigned"),
    "eq": OpInfo(2, "any", "bool"), "ne": OpInfo(2, "any", "bool", "true when an operand is NaN"),
    "lt": OpInfo(2, "n", "bool"), "le": OpInfo(2, "n", "bool"), "gt": OpInfo(2, "n", "bool"), "ge": OpInfo(2, "n", "bool"),
    "maximum": OpInfo(2, "n", doc="propagates NaN; -0 < +0"), "minimum": OpInfo(2, "n", doc="propagates NaN; -0 < +0"),
    "maximum_num": OpInfo(2, "n", doc="ignores a single NaN; -0 < +0"), "minimum_num": OpInfo(2, "n"),
    "select": OpInfo(3, "any", doc="args: bool condition, then two values of the result dtype; evaluates nothing lazily"),
    "cast": OpInfo(1, "any", "attr", "numeric conversion to the result dtype; float to int truncates, out of range gives some value"),
    "saturating_cast": OpInfo(1, "any", "attr"), "bitcast": OpInfo(1, "any", "attr"),
    "exp": OpInfo(1, "f"), "exp2": OpInfo(1, "f", doc="attrs approximate, ftz"), "log": OpInfo(1, "f"), "log1p": OpInfo(1, "f"),
    "lgamma": OpInfo(1, "f"), "sin": OpInfo(1, "f"), "asin": OpInfo(1, "f"), "cos": OpInfo(1, "f"),
    "tanh": OpInfo(1, "f", doc="attr approximate"), "floor": OpInfo(1, "f"), "ceil": OpInfo(1, "f"), "sqrt": OpInfo(1, "f"),
    "rsqrt": OpInfo(1, "f"), "erf": OpInfo(1, "f"), "erfc": OpInfo(1, "f"), "i0": OpInfo(1, "f"), "sigmoid": OpInfo(1, "f"),
    "random_bits": OpInfo(2, "u64", "u32", doc="seed, counter: a word of Philox4x32-10 (000 section 12)"),
}

# Values and shapes.
SHAPING: dict[str, OpInfo] = {
    "const": OpInfo(None, doc="attr value: a Python bool, int or float already representable in the result dtype (scalar)"),
    "extent": OpInfo(None, doc="attr e: an Extent; its value as an index scalar"),
    "domain": OpInfo(None, doc="args begin, end, step (index scalars): begin, begin+step, ... < end. A fourth argument is the domain it is a subregion of (step is then the constant 1)"),
    "indices": OpInfo(None, doc="args a domain: its coordinates as a tensor of index"),
    "broadcast": OpInfo(None, doc="a scalar or tensor to the result shape, aligned from the right; extent 1 repeats. A scalar to shape () makes a rank-zero tensor"),
    "expand": OpInfo(None, doc="attr axis: inserts an axis of extent 1"),
    "reshape": OpInfo(None, doc="row-major order kept; the result type says the shape"),
    "transpose": OpInfo(None, doc="attr perm: result axis i is source axis perm[i]"),
    "join": OpInfo(None, doc="two tensors of one type: a new last axis of extent 2"),
}

# Indexing. After the source come one index argument per source axis: an index scalar, a domain, or an index tensor.
# Result axes in index order: a domain gives its extent; all tensor indices have one common shape, whose axes stand at
# the place of the first of them; later tensors and scalars give none. With attr guard=True two more arguments follow,
# valid (bool) and fill, both of the result's shape: where valid is False nothing is read and fill is the result.
# An access reads view/buffer memory in program order: its result is a snapshot.
INDEXING: dict[str, OpInfo] = {
    "read": OpInfo(None, doc="from a view or buffer: scalar when the relation has no axes, else a tensor"),
    "gather": OpInfo(None, doc="the same relation on a tensor value (pure)"),
    "write": OpInfo(None, doc="args destination (view or buffer), indices, value of the relation's shape; guard=True adds valid of that shape. unique=True marks scatter_unique"),
    "buffer": OpInfo(None, doc="a new buffer, optionally initialised by one argument: a scalar or a tensor of the full shape"),
}

# Updates of shared memory: after the memory come its indices as in write, then the operands, each of the relation's shape; guard=True
# adds valid of that shape, and where it is False nothing is touched and results are zero. One indivisible operation for each
# member, in no order; results are the values found. attr order: one of ORDERS.
UPDATES: dict[str, OpInfo] = {
    "atomic_load": OpInfo(0, doc="result: the value"),
    "atomic_store": OpInfo(1, doc="operand: the value"),
    "atomic_rmw": OpInfo(1, doc="attr kind, one of RMW; floats: max and min propagate NaN, -0 < +0. Result: the old value"),
    "atomic_compare_exchange": OpInfo(2, doc="operands expected, desired. The bits are compared. Results: the old value, success (bool)"),
    "scatter_reduce": OpInfo(1, doc="attr kind as in reduce, generic has a region (element, value) yielding the new element. No order attribute, no "
                                    "result. Members act in ascending order, those of earlier points of a parallel first"),
}

CHECKS: dict[str, OpInfo] = {
    "check": OpInfo(None, doc="arg ok: a bool scalar or tensor; where it is False the launch fails with attr error, one of ERRORS. An effect: it "
                              "is never dropped, and happens exactly where it stands. error=input is for rehearsals only, its attrs "
                              "operation and message say what the caller owes"),
}

ERRORS = {"overflow": 2, "input": 3}
OVERFLOW_MESSAGE = "an integer result does not fit its dtype"
"""Errors of check: the status that the launch ends with. 1 is reserved for memory."""

# Structured. kind: sum prod max min any all and or xor, or generic with a combine region of 2k parameters and k yields.
STRUCTURED: dict[str, OpInfo] = {
    "reduce": OpInfo(None, doc="args k sources (then k identities for generic); attrs axis, kind. Section 12 R for float sum/prod and generic; else order-free. The identities of a generic reduce have the result types, and the combine region works on values of these types; with attr over, axes of the results, it works on their components without those axes, for each coordinate of them"),
    "arg_reduce": OpInfo(None, doc="attrs axis, kind max|min; results value and index. First NaN wins, else lowest index; empty gives (identity, 2^63-1)"),
    "scan": OpInfo(None, doc="like reduce, attrs axis, kind sum|prod|max|min|generic.., inclusive, reverse; identities are arguments for generic only. Section 12 S"),
    "contract": OpInfo(None, doc="args a, b of the accumulator dtype; attrs reduce, batch (axis pairs), form chain|tree. chain is section 12 C, tree is R with the FMA leaf; several reduced axes run row-major over the pairs as listed"),
    "histogram": OpInfo(None, doc="args values (a tensor of index), with guard=True valid of the same shape; result [bins] counts the valid members with each value, modulo 2^N"),
    "call": OpInfo(None, doc="attr fn: a symbol of kernel.externs; scalar operands, one scalar result"),
}

# Control. Carries are values of any scalar or tensor type; region parameters and yields match them.
CONTROL: dict[str, OpInfo] = {
    "for": OpInfo(None, doc="args domain, then initial carries; region (coordinate, carries...) yields carries. attr breaks=True: the first yield is a bool that ends the loop after this iteration, the others are carries"),
    "loop": OpInfo(None, doc="args initial carries; region (carries...) yields a bool, then carries; repeats while the bool is True. The body runs at least once"),
    "if": OpInfo(None, doc="args a bool scalar; two regions without parameters whose yields are the results"),
    "parallel": OpInfo(None, doc="args domains; one region with a coordinate for each; no results"),
}

OPS: dict[str, OpInfo] = {**ELEMENTWISE, **SHAPING, **INDEXING, **UPDATES, **CHECKS, **STRUCTURED, **CONTROL}

RMW = {"exchange": "any", "add": "n", "max": "n", "min": "n", "and": "i|b", "or": "i|b", "xor": "i|b"}
"""Kinds of atomic_rmw and their operand domains."""

ORDERS = {"atomic_load": ("relaxed", "acquire"), "atomic_store": ("relaxed", "release"),
          "atomic_rmw": ("relaxed", "acquire", "release", "acq_rel"), "atomic_compare_exchange": ("relaxed", "acquire", "release", "acq_rel")}
"""Memory orders. A failing compare_exchange has relaxed for relaxed and release, acquire for acquire and acq_rel."""

WRITING = frozenset({"write"}) | UPDATES.keys() - {"atomic_load"}
"""Kinds that change the memory that is their first operand."""

APPROXIMATE = {"div", "exp2", "tanh"}
"""Kinds that take approximate=True (ftz=True too, except tanh)."""

REDUCE_KINDS = ("sum", "prod", "max", "min", "any", "all", "and", "or", "xor", "generic")
FIXED_ORDER = ("sum", "prod", "generic")
"""Kinds whose parenthesization section 12 fixes, on float operands (generic: on any)."""

LANES, CHUNK, KBLOCK = 32, 4096, 1024
"""Section 12: lanes of a leaf, elements of a leaf, and length of a contraction block."""
