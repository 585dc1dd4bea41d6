"""Typing rules of atomics, scatter_reduce and histogram. Spec: 000 sections 7, 10 and 11, 002 sections 13, 15 and 16."""
from __future__ import annotations

from ..errors import IntentShapeError, LanguageError
from ..kir.ops import ORDERS, RMW
from .operations import dtype_argument
from .operations_index import INTS, integer, relation_rank, store_value, valid_operand
from .policy import DOMAINS
from .problems import refuse
from .types import NOTHING, Buffer, Lit, NoneT, Record, Scalar, Tensor, View, describe, shaped


def _place(what: str, address, index) -> tuple[str, int]:
    """Dtype and rank of what is accessed: an element expression, or a resource and its index."""
    if isinstance(address, (View, Buffer)):
        if isinstance(index, NoneT):
            refuse(f"{what}: which element of the {describe(address)}?", "write an element, counts[i], or give index=", LanguageError)
        return address.dt, relation_rank(address, index)
    if not isinstance(index, NoneT):
        refuse(f"{what}: index= goes with a view or buffer, not with {describe(address)}")
    if not isinstance(address, (Scalar, Tensor)):
        refuse(f"{what}: an element expression such as counts[i] is expected, not {describe(address)}", cls=LanguageError)
    return address.dt, address.rank


def _order(what: str, order, legal) -> None:
    if not (isinstance(order, Lit) and order.value in legal):
        names = " or ".join(map(repr, legal))
        refuse(f"{what}: order must be {names}, not {order.value if isinstance(order, Lit) else describe(order)!r}", cls=LanguageError)


def _operand(what: str, name: str, dt: str, rank: int, value) -> None:
    if isinstance(value, NoneT):
        refuse(f"{what}: {name} is missing")
    store_value(f"{what}: {name}", dt, rank, value)


def load(address, index, order, valid):
    dt, rank = _place("I.atomic.load", address, index)
    _order("I.atomic.load", order, ORDERS["atomic_load"])
    valid_operand("I.atomic.load", rank, valid)
    return shaped(dt, rank)


def store(address, value, index, order, valid):
    what = "I.atomic.store"
    dt, rank = _place(what, address, index)
    _operand(what, "value", dt, rank, value)
    _order(what, order, ORDERS["atomic_store"])
    valid_operand(what, rank, valid)
    return NOTHING


def rmw(name: str):
    kind, what = name.rstrip("_"), f"I.atomic.{name}"
    allowed = {"any": None, "n": DOMAINS["n"], "i|b": DOMAINS["ib"]}[RMW[kind]]

    def rule(address, value, index, order, valid):
        dt, rank = _place(what, address, index)
        if allowed is not None and dt not in allowed:
            refuse(f"{what} is not defined for {dt}")
        _operand(what, "value", dt, rank, value)
        _order(what, order, ORDERS["atomic_rmw"])
        valid_operand(what, rank, valid)
        return shaped(dt, rank)
    return rule


def compare_exchange(address, expected, desired, index, order, valid):
    what = "I.atomic.compare_exchange"
    dt, rank = _place(what, address, index)
    _operand(what, "expected", dt, rank, expected)
    _operand(what, "desired", dt, rank, desired)
    _order(what, order, ORDERS["atomic_compare_exchange"])
    valid_operand(what, rank, valid)
    return Record((("old_value", shaped(dt, rank)), ("success", shaped("bool", rank))))


def scatter_reduce(ctx, dst, index, value, combine, valid):
    what = "I.scatter_reduce"
    if not isinstance(dst, (View, Buffer)):
        refuse(f"{what}: an Out or InOut view or a buffer is expected, not {describe(dst)}", cls=LanguageError)
    if isinstance(dst, View) and dst.access == "in":
        refuse(f"{what}: an In view is read-only", "annotate the parameter with I.Out or I.InOut", LanguageError)
    rank = relation_rank(dst, index)
    _operand(what, "value", dst.dt, rank, value)
    valid_operand(what, rank, valid)
    element = Scalar(dst.dt)
    got = ctx.call(combine, (element, element), f"{what}: combine")
    if got != element:
        refuse(f"{what}: combine of two {dst.dt} elements gives {describe(got)}", "it must give what it takes")
    return NOTHING


def histogram(values, bins, valid, count_dtype):
    what = "I.histogram"
    if not (isinstance(values, Tensor) and values.dt in INTS):
        refuse(f"{what}: an integer tensor is expected, not {describe(values)}")
    integer(f"{what}: bins", bins)
    if isinstance(bins, Lit) and bins.value <= 0:
        refuse(f"{what}: bins must be positive, not {bins.value}", cls=IntentShapeError)
    valid_operand(what, values.rank, valid)
    dt = dtype_argument(f"{what}: count_dtype", count_dtype)
    if dt not in INTS:
        refuse(f"{what}: counts are integers, not {dt}")
    return Tensor(dt, 1)


RULES = {"atomic.load": load, "atomic.store": store, "atomic.compare_exchange": compare_exchange, "histogram": histogram,
         **{f"atomic.{name}": rmw(name) for name in ("exchange", "add", "max", "min", "and_", "or_", "xor")}}
CONTEXT_RULES = {"scatter_reduce": scatter_reduce}
