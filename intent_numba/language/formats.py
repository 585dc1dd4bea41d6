"""Closed formats of scaled, quantized and sparse operations. Spec: 002 sections 11 and 12, SUPPLEMENT 7."""
from __future__ import annotations

from dataclasses import dataclass

from .operation import Namespace, Operation


@dataclass(frozen=True)
class Format:
    """A named encoding; it takes part in no arithmetic."""
    name: str

    def __repr__(self):
        return f"I.{self.name}"


e2m1, e4m3, e8m0 = Format("e2m1"), Format("e4m3"), Format("e8m0")
quant = Namespace("quant", q4_k=Format("quant.q4_k"), q8_k=Format("quant.q8_k"))


@dataclass(frozen=True)
class SparseFormat:
    """Structured sparsity along one axis of the dense operand it stands for."""
    kind: str
    compression_axis: int
    logical_extent: object


class _SparseMaker(Operation):
    """``I.sparse.one_of_two`` and ``I.sparse.two_of_four``: in a kernel the logical extent may be a run-time value."""

    def __call__(self, *args, **kwargs):
        bound = self.signature.bind(*args, **kwargs)
        return SparseFormat(self.name.split(".")[1], **bound.arguments)


def _one_of_two(*, compression_axis, logical_extent):
    """One stored value of every two along ``compression_axis``; the metadata, of dtype index, says which: 0 or 1."""


def _two_of_four(*, compression_axis, logical_extent):
    """Two stored values of every four along ``compression_axis``, in order; the metadata is a record of their positions, first <
    second < 4."""


sparse = Namespace("sparse", one_of_two=_SparseMaker(_one_of_two, "sparse.one_of_two"),
                   two_of_four=_SparseMaker(_two_of_four, "sparse.two_of_four"))
