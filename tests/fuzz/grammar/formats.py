"""Statements of the closed formats: quantized records, scaled and sparse contractions, ragged groups. Shapes are small and fixed."""
from __future__ import annotations

from .block import Block
from .pointwise import exact, expression
from .types import Value

ACCUMULATORS = ("f32", "f64")


def quantized(b: Block):
    """Finite values into q8_k records, and their products with q4_k records of any bits."""
    scale = exact(b, "i8", None, 1).text
    values, records = b.name(), b.name()
    b.add(f"{values} = I.reshape(I.cast(I.cast(I.indices(I.domain(0, 512)), I.i8) * {scale}, I.f32), (2, 256))",
          f"{records} = I.quantize({values}, format=I.quant.q8_k)")
    weights = f"I.reshape(I.cast(I.indices(I.domain(0, 288)) * I.cast({scale}, I.index), I.u8), (2, 144))"
    b.let(f"I.quantized_dot({weights}, {records}, lhs_format=I.quant.q4_k, rhs_format=I.quant.q8_k, acc_dtype=I.f32)", "f32", ())
    b.let(f"I.reduce.sum({records}, axis=1)", "u32", ("2",))


def scaled(b: Block):
    m, n = b.pick(("1", "3", *b.extents)), b.pick(("2", *b.extents))
    groups, carriers = b.pick("12"), b.pick("13")
    formats = [b.pick(("e2m1", "e4m3")) for _ in range(2)]
    if formats[0] != formats[1]:
        return
    size = int(carriers) * (2 if formats[0] == "e2m1" else 1)
    lhs, lhs_scale = exact(b, "u8", (m, groups, carriers), 1), exact(b, "u8", (m, groups), 1)
    rhs, rhs_scale = exact(b, "u8", (groups, carriers, n), 1), exact(b, "u8", (n, groups), 1)
    acc = b.pick(ACCUMULATORS)
    b.let(f"I.scaled_matmul({lhs.text}, {lhs_scale.text}, {rhs.text}, {rhs_scale.text}, lhs_format=I.{formats[0]}, "
          f"rhs_format=I.{formats[1]}, group_size={size}, acc_dtype=I.{acc})", acc, (m, n))


def sparse(b: Block):
    """One of two or two of four along the last axis of the compressed operand."""
    m, n = b.pick(("2", *b.extents)), b.pick(("3", *b.extents))
    dt = b.pick([d for d in b.writer.dtypes if d in ("f32", "f64", "i32", "i64", "f16")])
    acc = {"f16": "f32"}.get(dt, dt)
    compressed, rhs = exact(b, dt, (m, "2"), 1).text, exact(b, dt, ("4", n), 1).text
    if b.chance(0.5):
        where = f"I.cast(I.cast({exact(b, 'u8', (m, '2'), 1).text}, I.i64) & 1, I.index)"
        form = "I.sparse.one_of_two(compression_axis=1, logical_extent=4)"
    else:
        first = f"I.cast(I.cast({exact(b, 'u8', (m, '1'), 1).text}, I.i64) & 1, I.index)"
        where = f"I.record(first={first}, second={first} + 2)"
        form = "I.sparse.two_of_four(compression_axis=1, logical_extent=4)"
    b.let(f"I.sparse_matmul({compressed}, {where}, {rhs}, format={form}, acc_dtype=I.{acc})", acc, (m, n))


def ragged(b: Block):
    """Sums over groups of rows whose offsets ascend; the groups' place is taken by the loops around."""
    if len(b.extents) < 2 or b.depth > 1:
        return
    outer, members = b.extents[:2]
    v = b.find(lambda v: v.rank == 1 and v.shape[0] == members and v.dt not in ("bool", "index"))
    if v is None:
        return
    groups, i, total = b.name("g"), b.name("k"), b.name()
    b.writer.nests.add((*(e for _, e in b.points), outer))
    step = expression(b, "u8", None, 1).text
    b.add(f"{groups} = I.ragged(I.domain(0, {outer}), I.domain(0, {members}), I.minimum(I.indices(I.domain(0, {outer} + 1)) * "
          f"I.cast({step} & 3, I.index), {members}))", f"{total} = I.cast({b.literal(v.dt)}, I.{v.dt})",
          f"for {i} in {groups}.outer:", f"    {total} = {total} + I.reduce.max({v.text}[{groups}[{i}]], axis=0)")
    b.variables.add(total)
    b.know(Value(total, v.dt))
