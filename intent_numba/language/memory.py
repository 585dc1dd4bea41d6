"""Buffers, scattered writes, atomics and random bits: stubs with their documentation. Spec: 002 sections 15 to 17."""
from __future__ import annotations

from .dtypes import ALL
from .operation import Namespace, Operation, operation


@operation
def buffer(shape, dtype, init=None):
    """Mutable kernel-local memory, new each time the statement runs; ``init`` is a scalar or a tensor of the full shape.
    It is indexed and stored to like a view, and cannot be returned or stored."""


@operation
def store(buffer, index, value, *, valid=True):
    """``buffer[index] = value``; where ``valid`` is False nothing is written and no address is formed."""


@operation
def mutable_load(buffer, index):
    """``buffer[index]``."""


@operation
def scatter_unique(dst, *, index, value, valid=True):
    """Store through data-dependent indices that the author declares injective; invalid members are not written."""


@operation
def scatter_reduce(dst, *, index, value, combine, valid=True):
    """``dst[index] = combine(dst[index], value)`` for every member, in ascending source order where members meet. ``combine`` is a
    primitive such as ``I.add`` or a pure helper of two elements; an invalid member forms no address. Errors: IntentTypeError for
    dtypes, LanguageError for an In view or an impure combine. Spec: 002 section 15."""


# An atomic acts on an element expression, I.atomic.add(counts[e], 1, order="relaxed"), which is not read, or on (resource, index=...,
# value=..., order=...). With tensors in the index it acts once for each element, in no order, and gives a tensor. Where ``valid``
# is False nothing is touched and the result is zero. Errors: LanguageError for an illegal order, an In view or a value in place of
# an element, IntentTypeError for dtypes. Spec: 000 section 11, 002 section 16.

def _atomic(name):
    def declare(stub):
        return Operation(stub, f"atomic.{name}")
    return declare


@_atomic("load")
def _load(address, *, index=None, order, valid=True):
    """Atomic read; order relaxed or acquire."""


@_atomic("store")
def _store(address, value=None, *, index=None, order, valid=True):
    """Atomic write; order relaxed or release."""


@_atomic("exchange")
def _exchange(address, value=None, *, index=None, order, valid=True):
    """Atomic swap; gives the old value."""


@_atomic("add")
def _add(address, value=None, *, index=None, order, valid=True):
    """Atomic addition; gives the old value."""


@_atomic("max")
def _max(address, value=None, *, index=None, order, valid=True):
    """Atomic maximum; floats propagate NaN."""


@_atomic("min")
def _min(address, value=None, *, index=None, order, valid=True):
    """Atomic minimum; floats propagate NaN."""


@_atomic("and_")
def _and(address, value=None, *, index=None, order, valid=True):
    """Atomic bitwise and."""


@_atomic("or_")
def _or(address, value=None, *, index=None, order, valid=True):
    """Atomic bitwise or."""


@_atomic("xor")
def _xor(address, value=None, *, index=None, order, valid=True):
    """Atomic bitwise exclusive or."""


@_atomic("compare_exchange")
def _compare_exchange(address, expected=None, desired=None, *, index=None, order, valid=True):
    """Stores ``desired`` where the bits are those of ``expected``; a record of old_value and success. A failure has the order relaxed
    for relaxed and release, acquire for acquire and acq_rel."""


atomic = Namespace("atomic", load=_load, store=_store, exchange=_exchange, add=_add, max=_max, min=_min, and_=_and,
                   or_=_or, xor=_xor, compare_exchange=_compare_exchange)


def _bits(seed, counter):
    """Word ``counter % 4`` of Philox4x32-10 block ``counter // 4`` under the u64 seed, as u32. The counter is u64 or index;
    scalars and tensors broadcast. Spec: 000 section 12."""


def _uniform(seed, counter, *, dtype=ALL["f32"]):
    """A uniform f32 value in [0, 1): the upper 24 bits of the counter's word times 2^-24."""


random = Namespace("random", bits=Operation(_bits, "random.bits"), uniform=Operation(_uniform, "random.uniform"))
