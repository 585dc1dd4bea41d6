"""Construction and reshaping of values: stubs with their documentation. Spec: 002 section 4, SUPPLEMENT 3."""
from __future__ import annotations

from .operation import operation


@operation
def full(shape, fill, dtype):
    """A tensor of ``shape`` (a tuple of extents or domains) filled with the scalar ``fill``; ``()`` gives rank zero."""


@operation
def zeros(shape, dtype):
    """``full(shape, 0, dtype)``."""


@operation
def reshape(value, shape):
    """The same elements in row-major order under another shape of the same count; one extent may be -1.
    Raises IntentShapeError when the counts provably differ."""


@operation
def transpose(value, permutation=None):
    """Axes reordered: result axis i is axis ``permutation[i]``; all axes reversed when omitted."""


@operation
def permute(value, permutation):
    """``transpose`` with the permutation given."""


@operation
def join(lhs, rhs):
    """Two tensors of one dtype and shape stacked along a new last axis of extent 2."""


@operation
def record(**fields):
    """A named product: immutable, at least one field, read by ``.field``. It may be a carry or an accumulator, never a
    parameter or an element. A literal in it stays a literal until a schema gives it a dtype."""


@operation
def gather(src, *, index, valid=True, fill=0):
    """``src[index]`` with a guard: where ``valid`` is False nothing is read and the result is ``fill``.
    ``valid`` and ``fill`` broadcast to the result's shape and never enlarge it. Spec: 002 section 15, SUPPLEMENT 4."""
