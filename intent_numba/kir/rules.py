"""What must hold inside one operation?  A table with one rule for each kind: operand counts, dtypes, shapes, axes and
region signatures, as ``ops.py`` states them. Two extents count as equal only when their normal forms are.
"""
from __future__ import annotations

import math

from .ir import Kernel, Op, Region, walk
from .ops import APPROXIMATE, ELEMENTWISE, ERRORS, OPS, ORDERS, REDUCE_KINDS, RMW, UPDATES
from .types import BITS, DTYPES, FLOATS, INTEGERS, Buffer, Domain, Extent, Scalar, Tensor, View, int_range, is_int, tensor_or_scalar


class Fault(Exception):
    """What is wrong with one operation."""


def check(op: Op, kernel: Kernel) -> None:
    """Raise Fault when ``op`` breaks the rule of its kind."""
    if op.kind not in OPS:
        raise Fault("unknown operation")
    rule = RULES.get(op.kind, _elementwise)
    if op.kind not in REGIONS:
        _need(not op.regions, "takes no regions")
    if rule is _call:
        _call(op, kernel)
    else:
        rule(op)


def _need(condition, message: str) -> None:
    if not condition:
        raise Fault(message)


# --- helpers ----------------------------------------------------------------------------------------------------------

def _counts(op: Op, args, results: int) -> None:
    allowed = (args,) if isinstance(args, int) else args
    _need(len(op.args) in allowed, f"{len(op.args)} operands, expected {' or '.join(map(str, allowed))}")
    _need(len(op.results) == results, f"{len(op.results)} results, expected {results}")


def _data(value, what: str) -> None:
    _need(isinstance(value.type, (Scalar, Tensor)), f"{what} %{value.name} is a {value.type}, expected a scalar or tensor")


def _tensor(value, what: str) -> None:
    _need(isinstance(value.type, Tensor), f"{what} %{value.name} is a {value.type}, expected a tensor")


def _is(value, type, what: str) -> None:
    _need(value.type == type, f"{what} %{value.name} is a {value.type}, expected {type}")


def _holds(value, dt: str, shape, what: str) -> None:
    """A scalar or tensor of this dtype and shape; without axes, a scalar and a rank-zero tensor both do."""
    _need(isinstance(value.type, (Scalar, Tensor)) and (value.type.dt, value.type.shape) == (dt, tuple(shape)),
          f"{what} %{value.name} is a {value.type}, expected {tensor_or_scalar(dt, shape)}")


def _result(op: Op, *types) -> None:
    _need(len(op.results) == len(types), f"{len(op.results)} results, expected {len(types)}")
    for i, (v, t) in enumerate(zip(op.results, types)):
        _need(v.type == t, f"result {i} is a {v.type}, expected {t}")


def _attrs(op: Op, required=(), optional=()) -> None:
    for name in required:
        _need(name in op.attrs, f"attribute {name} is missing")
    for name in op.attrs:
        _need(name in required or name in optional, f"unknown attribute {name}")


def _axis(op: Op, rank: int, what: str = "axis") -> int:
    axis = op.attrs[what]
    _need(type(axis) is int and 0 <= axis < rank, f"{what}={axis} does not fit rank {rank}")
    return axis


def _like(type, dt: str):
    """The same kind of value with another dtype."""
    return Tensor(dt, type.shape) if isinstance(type, Tensor) else Scalar(dt)


def _without(shape, axis: int):
    return shape[:axis] + shape[axis + 1:]


def _in_domain(dt: str, domain: str) -> bool:
    groups = {"n": INTEGERS + FLOATS, "f": FLOATS, "i": INTEGERS, "b": ("bool",), "u64": ("u64",), "any": DTYPES}
    return any(dt in groups[d] for d in domain.split("|"))


DOMAIN_NAMES = {"n": "numeric", "f": "floating", "i": "integer", "b": "bool", "i|b": "integer or bool", "u64": "u64", "any": "any"}


# --- elementwise ------------------------------------------------------------------------------------------------------

def _elementwise(op: Op) -> None:
    info = ELEMENTWISE[op.kind]
    _counts(op, info.operands, 1)
    for i, a in enumerate(op.args):
        _data(a, f"operand {i}")
    _attrs(op, (), ("approximate", "ftz") if op.kind in APPROXIMATE else ())
    first = op.args[0].type
    for i, a in enumerate(op.args[1:], 1):
        _need(isinstance(a.type, Tensor) == isinstance(first, Tensor) and a.type.shape == first.shape,
              f"operand {i} is a {a.type}, expected the shape of operand 0, {first}")
    values = op.args[1:] if op.kind == "select" else op.args
    if op.kind == "select":
        _need(first.dt == "bool", f"the condition is {first.dt}, expected bool")
    dt = values[0].type.dt
    for v in values:
        _need(v.type.dt == dt, f"operands of dtypes {dt} and {v.type.dt}")
    _need(_in_domain(dt, info.domain), f"operands of dtype {dt}, expected {DOMAIN_NAMES[info.domain]}")
    if op.attrs:
        _approximate(op, dt)
    result = op.results[0].type
    _need(isinstance(result, (Scalar, Tensor)), f"result is a {result}, expected a scalar or tensor")
    match info.result:
        case "same":
            _result(op, _like(first, dt))
        case "bool" | "u32":
            _result(op, _like(first, info.result))
        case "attr":
            _result(op, _like(first, result.dt))
            _conversion(op.kind, dt, result.dt)


def _approximate(op: Op, dt: str) -> None:
    for name, value in op.attrs.items():
        _need(type(value) is bool, f"{name}={value!r}, expected a bool")
    _need(not op.attrs.get("ftz") or op.attrs.get("approximate"), "ftz needs approximate")
    _need(op.kind != "tanh" or "ftz" not in op.attrs, "tanh takes no ftz")
    _need(dt == "f32" or not any(op.attrs.values()), f"approximate on {dt}, expected f32")


def _conversion(kind: str, source: str, target: str) -> None:
    if kind == "bitcast":
        _need("bool" not in (source, target), "bool cannot be bitcast")
        _need(BITS[source] == BITS[target], f"bitcast from {source} to {target} changes the width")


# --- values and shapes ------------------------------------------------------------------------------------------------

def _const(op: Op) -> None:
    _counts(op, 0, 1)
    _attrs(op, ("value",))
    type_, value = op.results[0].type, op.attrs["value"]
    _need(isinstance(type_, Scalar), f"result is a {type_}, expected a scalar")
    if type_.dt == "bool":
        _need(type(value) is bool, f"value {value!r} is no bool")
    elif is_int(type_.dt):
        low, high = int_range(type_.dt)
        _need(type(value) is int and low <= value <= high, f"value {value!r} is no {type_.dt}")
    else:
        _need(type(value) in (int, float), f"value {value!r} is no {type_.dt}")
        _need(not (type_.dt == "f8e4m3fn" and math.isinf(value)), "f8e4m3fn has no infinity")


def _extent(op: Op) -> None:
    _counts(op, 0, 1)
    _attrs(op, ("e",))
    _need(isinstance(op.attrs["e"], Extent), f"e={op.attrs['e']!r} is no extent")
    _result(op, Scalar("index"))


def _domain(op: Op) -> None:
    _counts(op, (3, 4), 1)
    _attrs(op)
    for what, a in zip(("begin", "end", "step"), op.args):
        _is(a, Scalar("index"), what)
    if len(op.args) == 4:
        _need(isinstance(op.args[3].type, Domain), f"the source %{op.args[3].name} is a {op.args[3].type}, expected a domain")
    _need(isinstance(op.results[0].type, Domain), f"result is a {op.results[0].type}, expected a domain")


def _indices(op: Op) -> None:
    _counts(op, 1, 1)
    _attrs(op)
    _need(isinstance(op.args[0].type, Domain), f"operand %{op.args[0].name} is a {op.args[0].type}, expected a domain")
    _result(op, Tensor("index", (op.args[0].type.extent,)))


def _broadcast(op: Op) -> None:
    _counts(op, 1, 1)
    _attrs(op)
    _data(op.args[0], "operand")
    source, result = op.args[0].type, op.results[0].type
    _need(isinstance(result, (Scalar, Tensor)) and result.dt == source.dt, f"result is a {result}, expected dtype {source.dt}")
    _need(len(source.shape) <= len(result.shape), f"{source} has more axes than {result}")
    for have, want in zip(source.shape[::-1], result.shape[::-1]):
        _need(have == want or have.const == 1, f"extent {have} does not broadcast to {want}")


def _expand(op: Op) -> None:
    _counts(op, 1, 1)
    _attrs(op, ("axis",))
    _data(op.args[0], "operand")
    source = op.args[0].type
    axis = _axis(op, len(source.shape) + 1)
    _result(op, Tensor(source.dt, source.shape[:axis] + (Extent.of(1),) + source.shape[axis:]))


def _reshape(op: Op) -> None:
    _counts(op, 1, 1)
    _attrs(op)
    _data(op.args[0], "operand")
    source, result = op.args[0].type, op.results[0].type
    _need(isinstance(result, (Scalar, Tensor)) and result.dt == source.dt, f"result is a {result}, expected dtype {source.dt}")
    have, want = _count(source.shape), _count(result.shape)
    _need(have.const is None or want.const is None or have == want, f"{source} has {have} elements, {result} has {want}")


def _count(shape) -> Extent:
    total = Extent.of(1)
    for e in shape:
        total = total * e
    return total


def _transpose(op: Op) -> None:
    _counts(op, 1, 1)
    _attrs(op, ("perm",))
    _tensor(op.args[0], "operand")
    source, perm = op.args[0].type, op.attrs["perm"]
    _need(sorted(perm) == list(range(len(source.shape))), f"perm={perm} is no permutation of the axes of {source}")
    _result(op, Tensor(source.dt, tuple(source.shape[p] for p in perm)))


def _join(op: Op) -> None:
    _counts(op, 2, 1)
    _attrs(op)
    _data(op.args[0], "operand 0")
    source = op.args[0].type
    _is(op.args[1], source, "operand 1")
    _result(op, Tensor(source.dt, source.shape + (Extent.of(2),)))


# --- indexing ---------------------------------------------------------------------------------------------------------

def _relation(source, indices) -> tuple[Extent, ...]:
    """The result axes of an index relation."""
    _need(len(indices) == len(source.shape), f"{len(indices)} indices for {len(source.shape)} axes of {source}")
    shape: list[Extent] = []
    joint = None
    for i, v in enumerate(indices):
        if isinstance(v.type, Domain):
            shape.append(v.type.extent)
            continue
        _data(v, f"index {i}")
        _need(v.type.dt == "index", f"index {i} %{v.name} has dtype {v.type.dt}, expected index")
        if isinstance(v.type, Scalar):
            continue
        if joint is None:
            joint = v.type.shape
            shape.extend(joint)
        _need(v.type.shape == joint, f"index {i} %{v.name} is a {v.type}, expected the shape of the first tensor index")
    return tuple(shape)


def _access(op: Op, sources) -> None:
    _attrs(op, (), ("guard",))
    extra = 2 if op.attrs.get("guard") else 0
    _need(len(op.args) >= 1 + extra, f"{len(op.args)} operands are too few")
    _need(len(op.results) == 1, f"{len(op.results)} results, expected 1")
    source = op.args[0].type
    _need(isinstance(source, sources), f"the source %{op.args[0].name} is a {source}")
    shape = _relation(source, op.args[1:len(op.args) - extra])
    _holds(op.results[0], source.dt, shape, "the result")
    if extra:
        valid, fill = op.args[-2:]
        _holds(valid, "bool", shape, "valid")
        _holds(fill, source.dt, shape, "fill")


def _read(op: Op) -> None:
    _access(op, (View, Buffer))


def _gather(op: Op) -> None:
    _access(op, (Tensor, Scalar))


def _write(op: Op) -> None:
    _attrs(op, (), ("guard", "unique"))
    extra = 2 if op.attrs.get("guard") else 1
    _need(len(op.args) >= 1 + extra, f"{len(op.args)} operands are too few")
    _need(not op.results, f"{len(op.results)} results, expected 0")
    to = op.args[0].type
    _need(isinstance(to, (View, Buffer)), f"the destination %{op.args[0].name} is a {to}")
    _need(not isinstance(to, View) or to.access != "in", f"the destination %{op.args[0].name} is read-only")
    shape = _relation(to, op.args[1:len(op.args) - extra])
    _holds(op.args[len(op.args) - extra], to.dt, shape, "the value")
    if extra == 2:
        _holds(op.args[-1], "bool", shape, "valid")


def _update(op: Op, attrs=(), results=("same",)):
    """Checks an update's memory, indices, operands and results; gives the dtype of the memory."""
    ordered = ("order",) if op.kind in ORDERS else ()
    _attrs(op, (*ordered, *attrs), ("guard",))
    if ordered:
        _need(op.attrs["order"] in ORDERS[op.kind], f"order={op.attrs['order']!r}, expected one of {', '.join(ORDERS[op.kind])}")
    operands = UPDATES[op.kind].operands
    extra = operands + bool(op.attrs.get("guard"))
    _need(len(op.args) >= 1 + extra, f"{len(op.args)} operands are too few")
    to = op.args[0].type
    _need(isinstance(to, (View, Buffer)), f"the memory %{op.args[0].name} is a {to}")
    _need(op.kind == "atomic_load" or not isinstance(to, View) or to.access != "in", f"the memory %{op.args[0].name} is read-only")
    at = len(op.args) - extra
    shape = _relation(to, op.args[1:at])
    for i, v in enumerate(op.args[at:at + operands]):
        _holds(v, to.dt, shape, f"operand {i}")
    if op.attrs.get("guard"):
        _holds(op.args[-1], "bool", shape, "valid")
    _need(len(op.results) == len(results), f"{len(op.results)} results, expected {len(results)}")
    for v, dt in zip(op.results, results):
        _holds(v, to.dt if dt == "same" else dt, shape, "the result")
    return to.dt


def _check(op: Op) -> None:
    _attrs(op, ("error",), ("operation", "message"))
    _counts(op, 1, 0)
    _need(op.attrs["error"] in ERRORS, f"error={op.attrs['error']!r}, expected one of {', '.join(ERRORS)}")
    t = op.args[0].type
    _need(isinstance(t, (Scalar, Tensor)) and t.dt == "bool", f"the operand is a {t}, expected bool")


def _atomic_rmw(op: Op) -> None:
    dt = _update(op, ("kind",))
    kind = op.attrs["kind"]
    _need(kind in RMW, f"kind={kind!r} is unknown")
    _need(_in_domain(dt, RMW[kind]), f"memory of dtype {dt}, expected {DOMAIN_NAMES[RMW[kind]]}")


def _scatter_reduce(op: Op) -> None:
    dt = _update(op, ("kind",), ())
    kind = op.attrs["kind"]
    _need(kind in REDUCE_KINDS, f"kind={kind!r} is unknown")
    _need(_in_domain(dt, REDUCE_DOMAINS[kind]), f"memory of dtype {dt}, expected {DOMAIN_NAMES[REDUCE_DOMAINS[kind]]}")
    _need(len(op.regions) == (kind == "generic"), f"{len(op.regions)} regions do not fit kind={kind!r}")
    for region in op.regions:
        _signature(region, [Scalar(dt)] * 2, [Scalar(dt)], "the combine")
        _pure(region)


def _buffer(op: Op) -> None:
    _counts(op, (0, 1), 1)
    _attrs(op)
    type_ = op.results[0].type
    _need(isinstance(type_, Buffer), f"result is a {type_}, expected a buffer")
    if op.args:
        init = op.args[0]
        _data(init, "the initial value")
        _need(init.type.dt == type_.dt and (isinstance(init.type, Scalar) or init.type.shape == type_.shape),
              f"the initial value %{init.name} is a {init.type}, expected {type_.dt} or {Tensor(type_.dt, type_.shape)}")


# --- structured -------------------------------------------------------------------------------------------------------

REDUCE_DOMAINS = {"sum": "n", "prod": "n", "max": "n", "min": "n", "any": "b", "all": "b",
                  "and": "i|b", "or": "i|b", "xor": "i|b", "generic": "any"}


def _sources(op: Op) -> tuple[list, int]:
    """The sources of a reduce or scan and their types once the axis is deleted; checks dtypes, identities and combine."""
    kind = op.attrs["kind"]
    _need(kind in REDUCE_KINDS, f"kind={kind!r} is unknown")
    k = len(op.args) // 2 if kind == "generic" else 1
    _need(k >= 1 and len(op.args) == (2 * k if kind == "generic" else 1), f"{len(op.args)} operands do not fit kind={kind!r}")
    members, deleted = None, []
    for i, a in enumerate(op.args[:k]):
        _tensor(a, f"source {i}")
        domain = REDUCE_DOMAINS[kind]
        _need(_in_domain(a.type.dt, domain), f"source {i} of dtype {a.type.dt}, expected {DOMAIN_NAMES[domain]}")
        axis = _axis(op, len(a.type.shape))
        _need(members in (None, a.type.shape[axis]), f"source {i} has extent {a.type.shape[axis]} on the axis, expected {members}")
        members = a.type.shape[axis]
        deleted.append((a.type.dt, _without(a.type.shape, axis)))
    _need(len(op.results) == k, f"{len(op.results)} results, expected {k}")
    if kind != "generic":
        _need(not op.regions, f"kind={kind!r} takes no region")
        return deleted, k
    for i, (a, (dt, shape)) in enumerate(zip(op.args[k:], deleted)):
        _holds(a, dt, shape, f"identity {i}")
    over = _over(op, deleted)
    types = [a.type for a in op.args[k:]]
    if over:
        types = [tensor_or_scalar(t.dt, [e for i, e in enumerate(t.shape) if i not in over]) for t in types]
    _need(len(op.regions) == 1, f"{len(op.regions)} regions, expected the combine")
    _signature(op.regions[0], types + types, types, "the combine")
    _pure(op.regions[0])
    return deleted, k


def _pure(region: Region) -> None:
    """A combine may use memory that it makes itself: the expansion of a region scan does."""
    own = {inner.results[0] for inner in walk(region) if inner.kind == "buffer" and inner.results}
    for inner in walk(region):
        private = inner.kind == "buffer" or inner.kind in ("read", "write") and inner.args[:1] and inner.args[0] in own
        _need(private or inner.kind not in EFFECTS, f"the combine contains a {inner.kind}; it must be pure")


def _over(op: Op, deleted) -> tuple[int, ...]:
    """The axes of the results that the combine knows nothing of; all results agree on their extents."""
    over = op.attrs.get("over", ())
    for axis in over:
        _need(type(axis) is int and all(0 <= axis < len(shape) for _, shape in deleted), f"over={over} does not fit the results")
        _need(len({shape[axis] for _, shape in deleted}) == 1, f"axis {axis} of over={over} has different extents")
    _need(list(over) == sorted(set(over)), f"over={over} is not ascending")
    return tuple(over)


def _signature(region: Region, params, yields, what: str) -> None:
    have = [p.type for p in region.params]
    _need(have == list(params), f"{what} takes ({_join_types(have)}), expected ({_join_types(params)})")
    have = [v.type for v in region.yields]
    _need(have == list(yields), f"{what} yields ({_join_types(have)}), expected ({_join_types(yields)})")


def _join_types(types) -> str:
    return ", ".join(map(str, types))


def _reduce(op: Op) -> None:
    _attrs(op, ("axis", "kind"), ("over",) if op.attrs.get("kind") == "generic" else ())
    deleted, k = _sources(op)
    for i, (v, (dt, shape)) in enumerate(zip(op.results, deleted)):
        _holds(v, dt, shape, f"result {i}")
        if op.attrs["kind"] == "generic":
            _is(op.args[k + i], v.type, f"identity {i}")


def _arg_reduce(op: Op) -> None:
    _counts(op, 1, 2)
    _attrs(op, ("axis", "kind"))
    _need(op.attrs["kind"] in ("max", "min"), f"kind={op.attrs['kind']!r}, expected max or min")
    _tensor(op.args[0], "the source")
    source = op.args[0].type
    _need(_in_domain(source.dt, "n"), f"the source of dtype {source.dt}, expected numeric")
    shape = _without(source.shape, _axis(op, len(source.shape)))
    for v, dt in zip(op.results, (source.dt, "index")):
        _holds(v, dt, shape, "the result")


def _scan(op: Op) -> None:
    _attrs(op, ("axis", "kind", "inclusive", "reverse"))
    for name in ("inclusive", "reverse"):
        _need(type(op.attrs[name]) is bool, f"{name}={op.attrs[name]!r}, expected a bool")
    _, k = _sources(op)
    _result(op, *(a.type for a in op.args[:k]))


def _contract(op: Op) -> None:
    _counts(op, 2, 1)
    _attrs(op, ("reduce", "batch", "form"))
    a, b = (v.type for v in op.args)
    for i, v in enumerate(op.args):
        _tensor(v, f"operand {i}")
    _need(a.dt == b.dt and _in_domain(a.dt, "n"), f"operands of dtypes {a.dt} and {b.dt}, expected one numeric dtype")
    reduce, batch = op.attrs["reduce"], op.attrs["batch"]
    _need(len(reduce) > 0, "no reduced axes")
    for side, t in ((0, a), (1, b)):
        axes = [p[side] for p in (*reduce, *batch)]
        _need(all(type(x) is int and 0 <= x < len(t.shape) for x in axes), f"axes {axes} do not fit rank {len(t.shape)} of operand {side}")
        _need(len(set(axes)) == len(axes), f"axes {axes} of operand {side} repeat")
    for i, j in (*reduce, *batch):
        _need(a.shape[i] == b.shape[j], f"the axes ({i}, {j}) have extents {a.shape[i]} and {b.shape[j]}")
    paired_a, paired_b = {p[0] for p in reduce}, {p[1] for p in (*reduce, *batch)}
    kept_a = tuple(e for i, e in enumerate(a.shape) if i not in paired_a)
    kept_b = tuple(e for j, e in enumerate(b.shape) if j not in paired_b)
    _holds(op.results[0], a.dt, kept_a + kept_b, "the result")
    batch_a = {p[0] for p in batch}
    free_a = [i for i in range(len(a.shape)) if i not in paired_a | batch_a]
    free_b = [j for j in range(len(b.shape)) if j not in paired_b]
    # Section 12: C where both sides have free axes, R with the FMA leaf everywhere else.
    form = "chain" if free_a and free_b else "tree"
    _need(op.attrs["form"] == form, f"form={op.attrs['form']!r}, expected {form!r} for these free axes")


def _histogram(op: Op) -> None:
    _attrs(op, (), ("guard",))
    _counts(op, 2 if op.attrs.get("guard") else 1, 1)
    values, result = op.args[0].type, op.results[0].type
    _need(isinstance(values, Tensor) and values.dt == "index", f"the values are {values}, expected a tensor of index")
    if op.attrs.get("guard"):
        _holds(op.args[1], "bool", values.shape, "valid")
    _need(isinstance(result, Tensor) and is_int(result.dt) and len(result.shape) == 1,
          f"result is a {result}, expected one axis of an integer dtype")


def _call(op: Op, kernel: Kernel) -> None:
    _attrs(op, ("fn",))
    _need(op.attrs["fn"] in kernel.externs, f"fn={op.attrs['fn']!r} is no extern of the kernel")
    _need(len(op.results) == 1, f"{len(op.results)} results, expected 1")
    for v in (*op.args, *op.results):
        _need(isinstance(v.type, Scalar), f"%{v.name} is a {v.type}, expected a scalar")


# --- control ----------------------------------------------------------------------------------------------------------

def _carried(values, what: str) -> list:
    for v in values:
        _data(v, what)
    return [v.type for v in values]


def _for(op: Op) -> None:
    _attrs(op, (), ("breaks",))
    _need(op.args and isinstance(op.args[0].type, Domain), "the first operand is no domain")
    types = _carried(op.args[1:], "the carry")
    _need(len(op.regions) == 1, f"{len(op.regions)} regions, expected 1")
    ends = [Scalar("bool")] if op.attrs.get("breaks") else []
    _signature(op.regions[0], [Scalar("index"), *types], ends + types, "the body")
    _result(op, *types)


def _loop(op: Op) -> None:
    _attrs(op)
    types = _carried(op.args, "the carry")
    _need(len(op.regions) == 1, f"{len(op.regions)} regions, expected 1")
    _signature(op.regions[0], types, [Scalar("bool"), *types], "the body")
    _result(op, *types)


def _if(op: Op) -> None:
    _attrs(op)
    _need(len(op.args) == 1, f"{len(op.args)} operands, expected 1")
    _is(op.args[0], Scalar("bool"), "the condition")
    _need(len(op.regions) == 2, f"{len(op.regions)} regions, expected 2")
    types = _carried(op.results, "the result")
    for what, r in zip(("the first branch", "the second branch"), op.regions):
        _signature(r, [], types, what)


def _parallel(op: Op) -> None:
    _attrs(op)
    for a in op.args:
        _need(isinstance(a.type, Domain), f"operand %{a.name} is a {a.type}, expected a domain")
    _need(op.args, "no domains")
    _need(len(op.regions) == 1, f"{len(op.regions)} regions, expected 1")
    _signature(op.regions[0], [Scalar("index")] * len(op.args), [], "the body")
    _result(op)


RULES = {
    "const": _const, "extent": _extent, "domain": _domain, "indices": _indices, "broadcast": _broadcast, "expand": _expand,
    "reshape": _reshape, "transpose": _transpose, "join": _join,
    "read": _read, "gather": _gather, "write": _write, "buffer": _buffer,
    "atomic_load": _update, "atomic_store": lambda op: _update(op, (), ()), "atomic_rmw": _atomic_rmw,
    "atomic_compare_exchange": lambda op: _update(op, (), ("same", "bool")), "scatter_reduce": _scatter_reduce, "histogram": _histogram,
    "check": _check, "reduce": _reduce, "arg_reduce": _arg_reduce, "scan": _scan, "contract": _contract, "call": _call,
    "for": _for, "loop": _loop, "if": _if, "parallel": _parallel,
}
"""The rule of every kind that is not elementwise."""

EFFECTS = {"read", "write", "buffer", "parallel", "random_bits", "check", *UPDATES}
"""Kinds that a combine cannot contain."""

REGIONS = {"reduce", "scan", "scatter_reduce", "for", "loop", "if", "parallel"}
"""Kinds whose rule looks at regions; all others take none."""
