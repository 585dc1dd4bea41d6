"""Typing rules of the closed formats: scaled, sparse and quantized operations. Spec: 002 sections 11 and 12, SUPPLEMENT 7."""
from __future__ import annotations

from ..errors import IntentShapeError
from ..language.formats import Format, SparseFormat, e2m1, e4m3, quant
from .operations import dtype_argument
from .operations_index import axis_argument, integer, tensor_argument
from .operations_structured import _multiply, axis_pairs
from .policy import FLOATS
from .problems import refuse
from .types import IntentType, Lit, Record, Static, Tensor, describe, is_tuple

PER_CARRIER = {"e2m1": 2, "e4m3": 1}
"""Logical elements that one carrier element holds."""

CARRIERS = {"e2m1": ("u8",), "e4m3": ("u8", "f8e4m3fn")}


class SparseT(IntentType):
    """A sparse format made in a kernel; its logical extent is a value."""
    fields = ("kind", "axis")

    def __str__(self):
        return f"the format I.sparse.{self.kind}"


def format_argument(what: str, name: str, t, allowed) -> str:
    if not (isinstance(t, Static) and isinstance(t.obj, Format)):
        refuse(f"{what}: {name} must be a format such as {allowed[0]!r}, not {describe(t)}")
    if t.obj not in allowed:
        refuse(f"{what}: {name}={t.obj!r} is not one of {', '.join(map(repr, allowed))}")
    return t.obj.name


def _tensor(what: str, name: str, t, dts, rank: int) -> None:
    tensor_argument(f"{what}: {name}", t)
    if t.dt not in dts:
        refuse(f"{what}: {name} must hold {' or '.join(dts)}, not {t.dt}")
    if t.rank != rank:
        refuse(f"{what}: {name} must have rank {rank}, not {t.rank}", cls=IntentShapeError)


def _float_accumulator(what: str, t) -> str:
    acc = dtype_argument(what, t)
    if acc not in FLOATS or acc.startswith("f8"):
        refuse(f"{what}: acc_dtype={acc}: the accumulator is f16, bf16, f32 or f64")
    return acc


# --- scaled ------------------------------------------------------------------------------------------------------------

def _group_size(what: str, name: str, t, form: str) -> int:
    if not (isinstance(t, Lit) and type(t.value) is int and t.value > 0):
        refuse(f"{what}: {name} must be a positive compile-time integer, not {describe(t)}", "a literal or a Constexpr")
    if t.value % PER_CARRIER[form]:
        refuse(f"{what}: {name}={t.value} is no whole number of {form} carriers, which hold {PER_CARRIER[form]} elements",
               cls=IntentShapeError)
    return t.value


def _scaled(what: str, lhs, lhs_scale, rhs, rhs_scale, lhs_format, rhs_format, lhs_group, rhs_group, acc_dtype):
    left = format_argument(what, "lhs_format", lhs_format, (e2m1, e4m3))
    right = format_argument(what, "rhs_format", rhs_format, (e2m1, e4m3))
    _tensor(what, "lhs", lhs, CARRIERS[left], 3)
    _tensor(what, "lhs_scale", lhs_scale, ("u8",), 2)
    _tensor(what, "rhs", rhs, CARRIERS[right], 3)
    _tensor(what, "rhs_scale", rhs_scale, ("u8",), 2)
    groups = [_group_size(what, name, t, form) for name, t, form in (lhs_group + (left,), rhs_group + (right,))]
    if groups[0] != groups[1]:
        refuse(f"{what}: both group sizes must agree, {groups[0]} and {groups[1]} do not", cls=IntentShapeError)
    return Tensor(_float_accumulator(what, acc_dtype), 2)


def scaled_contract(lhs, lhs_scale, rhs, rhs_scale, lhs_format, rhs_format, lhs_group_size, rhs_group_size, reduce, batch, acc_dtype):
    what = "I.scaled_contract"
    result = _scaled(what, lhs, lhs_scale, rhs, rhs_scale, lhs_format, rhs_format, ("lhs_group_size", lhs_group_size),
                     ("rhs_group_size", rhs_group_size), acc_dtype)
    if axis_pairs(what, "reduce", reduce, 3, 3) != ((1, 0), (2, 1)):
        refuse(f"{what}: reduce is fixed to ((1, 0), (2, 1))", "bring the operands into [M, G, C] and [G, C, N] first", IntentShapeError)
    if not is_tuple(batch) or batch.types:
        refuse(f"{what}: batch is fixed to ()", "loop over the batch, for b in I.parallel(...)", IntentShapeError)
    return result


def scaled_matmul(lhs, lhs_scale, rhs, rhs_scale, lhs_format, rhs_format, group_size, acc_dtype):
    return _scaled("I.scaled_matmul", lhs, lhs_scale, rhs, rhs_scale, lhs_format, rhs_format, ("group_size", group_size),
                   ("group_size", group_size), acc_dtype)


# --- sparse ------------------------------------------------------------------------------------------------------------

def _sparse_format(kind: str):
    what = f"I.sparse.{kind}"

    def rule(compression_axis, logical_extent):
        if not (isinstance(compression_axis, Lit) and type(compression_axis.value) is int):
            refuse(f"{what}: compression_axis must be a compile-time integer, not {describe(compression_axis)}")
        integer(f"{what}: logical_extent", logical_extent)
        return SparseT(kind, compression_axis.value)
    return rule


def sparse_kind(what: str, t) -> tuple[str, int]:
    match t:
        case SparseT():
            return t.kind, t.axis
        case Static(obj=SparseFormat() as f):
            return f.kind, f.compression_axis
    refuse(f"{what}: format must be I.sparse.one_of_two(...) or I.sparse.two_of_four(...), not {describe(t)}")


def _sparse(what: str, compressed, metadata, rhs, format, reduce, batch, acc_dtype):
    kind, axis = sparse_kind(what, format)
    acc = _multiply(what, compressed, rhs, acc_dtype)
    axis_argument(f"{what}: compression_axis", Lit(axis), compressed.rank)
    if kind == "one_of_two":
        _tensor(what, "metadata", metadata, ("index",), compressed.rank)
    elif not isinstance(metadata, Record) or [n for n, _ in metadata.items] != ["first", "second"]:
        refuse(f"{what}: the metadata of two_of_four must be a record of first and second, not {describe(metadata)}",
               "write I.record(first=..., second=...)")
    else:
        for name, t in metadata.items:
            _tensor(what, f"metadata.{name}", t, ("index",), compressed.rank)
    if not reduce:
        refuse(f"{what}: reduce must name at least one pair of axes", cls=IntentShapeError)
    for side in (0, 1):
        if {p[side] for p in reduce} & {p[side] for p in batch}:
            refuse(f"{what}: an axis is both reduced and batched", cls=IntentShapeError)
    return Tensor(acc, compressed.rank + rhs.rank - 2 * len(reduce) - len(batch))


def sparse_contract(compressed, metadata, dense_rhs, format, reduce, batch, acc_dtype):
    what = "I.sparse_contract"
    tensor_argument(what, compressed)
    tensor_argument(what, dense_rhs)
    pairs = axis_pairs(what, "reduce", reduce, compressed.rank, dense_rhs.rank)
    batches = axis_pairs(what, "batch", batch, compressed.rank, dense_rhs.rank)
    return _sparse(what, compressed, metadata, dense_rhs, format, pairs, batches, acc_dtype)


def sparse_matmul(compressed, metadata, rhs, format, acc_dtype):
    what = "I.sparse_matmul"
    for name, t in (("the compressed operand", compressed), ("rhs", rhs)):
        tensor_argument(f"{what}: {name}", t)
        if t.rank != 2:
            refuse(f"{what}: {name} must have rank 2, not {t.rank}", cls=IntentShapeError)
    _, axis = sparse_kind(what, format)
    if axis not in (1, -1):
        refuse(f"{what}: the left operand is compressed along its axis 1, not {axis}", "use I.sparse_contract", IntentShapeError)
    return _sparse(what, compressed, metadata, rhs, format, ((1, 0),), (), acc_dtype)


# --- quantized ---------------------------------------------------------------------------------------------------------

def quantize(values, format):
    what = "I.quantize"
    _tensor(what, "values", values, ("f32",), 2)
    format_argument(what, "format", format, (quant.q8_k,))
    return Tensor("u8", 2)


def quantized_dot(lhs, rhs, lhs_format, rhs_format, acc_dtype):
    what = "I.quantized_dot"
    _tensor(what, "lhs", lhs, ("u8",), 2)
    _tensor(what, "rhs", rhs, ("u8",), 2)
    format_argument(what, "lhs_format", lhs_format, (quant.q4_k,))
    format_argument(what, "rhs_format", rhs_format, (quant.q8_k,))
    if dtype_argument(what, acc_dtype) != "f32":
        refuse(f"{what}: acc_dtype must be I.f32")
    return Tensor("f32", 0)


RULES = {
    "scaled_contract": scaled_contract, "scaled_matmul": scaled_matmul, "sparse_contract": sparse_contract,
    "sparse_matmul": sparse_matmul, "quantize": quantize, "quantized_dot": quantized_dot,
    "sparse.one_of_two": _sparse_format("one_of_two"), "sparse.two_of_four": _sparse_format("two_of_four"),
}
