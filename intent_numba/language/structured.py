"""Reductions, scans and contractions: stubs with their documentation.

Axes are compile-time integers (negative ones count from the end) or, for reductions, non-empty tuples of them. Errors:
IntentTypeError for dtypes and schemas, IntentShapeError for axes and extents. Spec: 002 sections 7 to 13, SUPPLEMENT 6.
"""
from __future__ import annotations

from .operation import Operation, operation


def _member(of: "Operation | _ArgReduce", name: str):
    def attach(stub):
        member = Operation(stub, f"{of.name}.{name}")
        setattr(of, name, member)
        return member
    return attach


@operation
def reduce(value, *, axis, identity, combine):
    """Aggregate along ``axis`` with a pure associative, commutative ``combine(lhs, rhs)``; an empty axis gives ``identity``.
    Tensors, tuples and records of tensors; identity, combine arguments and result have the schema of the value without
    the axis. A primitive such as ``I.add`` may be the combine and is the builtin."""


@_member(reduce, "sum")
def _sum(value, *, axis, acc_dtype=None):
    """Sum; 8- and 16-bit integers widen to 32 bits and floats below f32 to f32 unless ``acc_dtype`` says otherwise."""


@_member(reduce, "max")
def _max(value, *, axis, acc_dtype=None):
    """Maximum; NaN wins. Empty: -inf or the dtype's least value."""


@_member(reduce, "min")
def _min(value, *, axis, acc_dtype=None):
    """Minimum; NaN wins. Empty: +inf or the dtype's largest value."""


@_member(reduce, "prod")
def _prod(value, *, axis, acc_dtype=None):
    """Product, with sum's widening. Empty: one."""


@_member(reduce, "any")
def _any(value, *, axis):
    """True when one element is; bool tensors. Empty: False."""


@_member(reduce, "all")
def _all(value, *, axis):
    """True when every element is; bool tensors. Empty: True."""


class _ArgReduce:
    """``I.arg_reduce.max`` and ``I.arg_reduce.min``."""
    name = "arg_reduce"

    def __repr__(self):
        return "I.arg_reduce"


arg_reduce = _ArgReduce()


@_member(arg_reduce, "max")
def _arg_max(value, *, axis):
    """(values, indices) of the largest element: the first NaN, else the lowest index; indices are ``index``, from 0."""


@_member(arg_reduce, "min")
def _arg_min(value, *, axis):
    """(values, indices) of the smallest element: the first NaN, else the lowest index; indices are ``index``, from 0."""


@operation
def scan(value, *, axis, identity, combine, inclusive=True, reverse=False):
    """Prefixes along ``axis`` under an associative ``combine``; order is preserved. The result keeps the value's shape."""


@operation
def cumsum(value, *, axis, inclusive=True, reverse=False, acc_dtype=None):
    """Prefix sums, with the widening of ``reduce.sum``."""


@operation
def cummax(value, *, axis, inclusive=True, reverse=False, acc_dtype=None):
    """Prefix maxima; NaN wins from where it stands."""


@operation
def region_fold(*, source, axis, summarize, combine, identity, operands=()):
    """Fold of summaries over contiguous slices of the source axis. Spec: 002 section 9.1."""


@operation
def region_scan(*, source, axis, summarize, combine, identity, initial_state, apply, emit, operands=()):
    """(outputs, final_state) of a slicewise transition over the source axis. Spec: 002 section 9.2."""


@operation
def dot(lhs, rhs, *, acc_dtype):
    """[K] x [K] -> rank-zero tensor of ``acc_dtype``."""


@operation
def matvec(matrix, vector, *, acc_dtype, transpose=False):
    """[..., M, K] x [..., K] -> [..., M]."""


@operation
def vecmat(vector, matrix, *, acc_dtype, transpose=False):
    """[..., K] x [..., K, N] -> [..., N]."""


@operation
def matmul(lhs, rhs, *, acc_dtype, transpose_lhs=False, transpose_rhs=False):
    """[..., M, K] x [..., K, N] -> [..., M, N]; batch axes broadcast from the right, K must match."""


@operation
def outer(lhs, rhs):
    """[M] x [N] -> [M, N], an ordinary product in the operands' dtype."""


@operation
def contract(lhs, rhs, *, reduce, batch=(), acc_dtype):
    """Sum of products over the paired axes ``reduce``; ``batch`` pairs appear once, then the free axes of lhs and rhs."""


@operation
def scaled_matmul(lhs, lhs_scale, rhs, rhs_scale, *, lhs_format, rhs_format, group_size, acc_dtype):
    """Block-scaled matrix product. Spec: 002 section 11."""


@operation
def scaled_contract(lhs, lhs_scale, rhs, rhs_scale, *, lhs_format, rhs_format, lhs_group_size, rhs_group_size, reduce,
                    batch=(), acc_dtype):
    """Block-scaled contraction in its closed schema. Spec: 002 section 11."""


@operation
def quantize(values, *, format):
    """f32 [G, 256] to q8_k records u8 [G, 292]. SUPPLEMENT 7."""


@operation
def quantized_dot(lhs, rhs, *, lhs_format, rhs_format, acc_dtype):
    """Dot product of q4_k and q8_k records; rank-zero f32. SUPPLEMENT 7."""


@operation
def sparse_matmul(compressed, metadata, rhs, *, format, acc_dtype):
    """Matrix product with a structurally sparse left operand. Spec: 002 section 12."""


@operation
def sparse_contract(compressed, metadata, dense_rhs, *, format, reduce, batch=(), acc_dtype):
    """Contraction with a structurally sparse operand. Spec: 002 section 12."""


@operation
def histogram(values, *, bins, valid=True, count_dtype):
    """Counts of the integer ``values`` in 0 .. bins-1, as a tensor of ``count_dtype``. Spec: 002 section 13."""
