"""Statements that combine along axes: reductions, scans, products of tensors, histograms, random numbers."""
from __future__ import annotations

from .block import Block
from .helpers import combiner
from .pointwise import converted, exact, expression, index_of
from .types import WIDENED, WIDTH, Value, accumulators, is_float, is_integer

def axis_of(b: Block, v: Value) -> tuple[int, int]:
    """An axis, and the way it is written."""
    axis = b.writer.rnd.randrange(v.rank)
    return axis, axis if b.chance(0.7) else axis - v.rank


def without(shape, *axes):
    return tuple(e for i, e in enumerate(shape) if i not in axes) or None


def accumulated(b: Block, dt: str, chance: float = 0.3) -> tuple[str, str]:
    """The dtype of a sum of ``dt``, and the argument that asks for it."""
    if b.chance(0.6 if dt in WIDENED else chance) and b.writer.policy == "strict":
        acc = b.pick(accumulators(dt))
        return acc, f", acc_dtype=I.{acc}"
    return WIDENED.get(dt, dt), ""


def reduced(b: Block):
    v = b.tensor(lambda v: v.dt != "index")
    if v is None:
        return
    axis, shown = axis_of(b, v)
    axes = (axis,)
    if v.rank > 1 and b.chance(0.3):
        axes = tuple(b.writer.rnd.sample(range(v.rank), b.writer.rnd.randint(1, v.rank)))
        shown = f"({''.join(f'{a}, ' for a in axes)})"
    rest = without(v.shape, *axes)
    if v.dt == "bool":
        b.let(f"I.reduce.{b.pick(('any', 'all'))}({v.text}, axis={shown})", "bool", rest)
        return
    kind = b.pick(("sum", "sum", "max", "min", "prod"))
    acc, argument = accumulated(b, v.dt) if kind in ("sum", "prod") else (v.dt, "")
    b.let(f"I.reduce.{kind}({v.text}, axis={shown}{argument})", acc, rest)


def summed(b: Block):
    """What 004 plans for whole tensors: sums of integers and floats, the rest of floats."""
    v = b.tensor(lambda v: v.dt in ("i32", "f32"))
    if v is None:
        return
    axis, shown = axis_of(b, v)
    kind = b.pick(("sum",) if v.dt == "i32" else ("sum", "sum", "max", "min", "prod"))
    b.let(f"I.reduce.{kind}({v.text}, axis={shown})", v.dt, without(v.shape, axis))


def arg_reduced(b: Block):
    v = b.tensor(lambda v: v.dt not in ("bool", "index"))
    if v is None:
        return
    axis, shown = axis_of(b, v)
    value, at = b.name(), b.name()
    b.add(f"{value}, {at} = I.arg_reduce.{b.pick(('max', 'min'))}({v.text}, axis={shown})")
    b.know(Value(value, v.dt, without(v.shape, axis)))
    b.know(Value(at, "index", without(v.shape, axis)))


def direction(b: Block) -> str:
    return b.pick(("", ", inclusive=False", ", reverse=True", ", inclusive=False, reverse=True"))


def scanned(b: Block):
    v = b.tensor(lambda v: v.dt not in ("bool", "index"))
    if v is None:
        return
    axis, shown = axis_of(b, v)
    kind = b.pick(("cumsum", "cumsum", "cummax", "builtin"))
    if kind == "builtin":
        name = b.pick(("add", "multiply", "maximum", "minimum"))
        identity = f"I.cast({b.literal(v.dt)}, I.{v.dt})"
        b.let(f"I.scan({v.text}, axis={shown}, identity={identity}, combine=I.{name}{direction(b)})", v.dt, v.shape)
        return
    acc, argument = accumulated(b, v.dt) if kind == "cumsum" else (v.dt, "")
    b.let(f"I.{kind}({v.text}, axis={shown}{direction(b)}{argument})", acc, v.shape)


def generic(b: Block):
    """A reduction or scan of one to three components with a combine function of its own; components may differ in dtype and rank."""
    first = b.tensor(lambda v: v.dt != "index")
    if first is None:
        return
    scan = b.chance(0.5)
    axis = b.writer.rnd.randrange(first.rank)
    sources = [first]
    for _ in range(b.pick((0, 1, 1, 2))):
        other = b.tensor(lambda v: v.dt != "index" and v.rank > axis and v.shape[axis] == first.shape[axis])
        sources.append(other or first)
    shapes = [without(s.shape, axis) for s in sources]
    schema = [(s.dt, shape) for s, shape in zip(sources, shapes)]
    if not all(b.nameable(shape) for shape in shapes):
        return
    combine, packed, parts = combiner(b, schema)
    identity = packed([exact(b, dt, shape, 0).text for dt, shape in schema])
    text = (f"I.{'scan' if scan else 'reduce'}({packed([s.text for s in sources])}, axis={axis}, identity={identity}, combine={combine}"
            f"{direction(b) if scan else ''})")
    result = b.name()
    b.add(f"{result} = {text}")
    for part, s, shape in zip(parts, sources, shapes):
        b.know(Value(result + part, s.dt, s.shape if scan else shape))


def multiplied(b: Block):
    """matmul, matvec, vecmat, dot, outer or contract of what fits together."""
    a = b.tensor(lambda v: v.dt not in ("bool", "index"))
    if a is None:
        return
    mates = [v for v in b.values if v.dt == a.dt and v.rank and any(e in a.shape for e in v.shape)]
    if not mates:
        return
    c = b.pick(mates)
    acc = accumulated(b, a.dt, 0.4)[0] if is_float(a.dt) or b.writer.policy != "strict" or b.chance(0.8) else b.pick(accumulators(a.dt))
    tail = f", acc_dtype=I.{acc})"
    if a.rank == c.rank == 1:
        if b.chance(0.3) and a.shape[0] not in b.domains:
            b.let(f"I.outer({a.text}, {c.text})", a.dt, (*a.shape, *c.shape))
        elif a.shape == c.shape:
            b.let(f"I.dot({a.text}, {c.text}{tail}", acc, ())
        return
    if b.chance(0.6) and matrix_product(b, a, c, acc, tail):
        return
    pairs = [(i, j) for i, e in enumerate(a.shape) for j, f in enumerate(c.shape) if e == f and e != "1"]
    b.writer.rnd.shuffle(pairs)
    chosen: list[tuple[int, int]] = []
    for i, j in pairs[:3]:
        if all(i != p and j != q for p, q in chosen):
            chosen.append((i, j))
    if not chosen:
        return
    split = b.writer.rnd.randint(1, len(chosen))
    pairs_reduced, batch = chosen[:split], chosen[split:]
    left = [e for i, e in enumerate(a.shape) if i not in {p for p, _ in pairs_reduced}]
    right = [e for j, e in enumerate(c.shape) if j not in {q for _, q in chosen}]
    if len(left) + len(right) <= 3:
        b.let(f"I.contract({a.text}, {c.text}, reduce={tuple(pairs_reduced)}, batch={tuple(batch)}{tail}", acc, (*left, *right))


def matrix_product(b: Block, a: Value, c: Value, acc: str, tail: str) -> bool:
    """A product by name, where the last axes fit one way or the other."""
    if a.rank == 2 and c.rank == 1:
        for flip in (False, True):
            m, k = a.shape[::-1] if flip else a.shape
            if k == c.shape[0]:
                if b.chance(0.5):
                    b.let(f"I.matvec({a.text}, {c.text}, transpose={flip}{tail}", acc, (m,))
                else:
                    b.let(f"I.vecmat({c.text}, {a.text}, transpose={not flip}{tail}", acc, (m,))
                return True
    if a.rank >= 2 and c.rank == 2:
        for ta in (False, True):
            for tb in (False, True):
                m, k = a.shape[-2:][::-1] if ta else a.shape[-2:]
                k2, n = c.shape[::-1] if tb else c.shape
                if k == k2:
                    b.let(f"I.matmul({a.text}, {c.text}, transpose_lhs={ta}, transpose_rhs={tb}{tail}", acc, (*a.shape[:-2], m, n))
                    return True
    return False


def counted(b: Block):
    v = b.tensor(lambda v: is_integer(v.dt))
    if v is None:
        return
    bins = b.pick("37")
    dt = b.pick(("i32", "u8", "i64"))
    valid = f", valid={expression(b, 'bool', v.shape, 1).text}" if b.chance(0.5) else ""
    b.let(f"I.histogram({index_of(b, v, bins)}, bins={bins}, valid=True, count_dtype=I.{dt})".replace(", valid=True", valid), dt, (bins,))


def random_numbers(b: Block):
    """Philox: the seed is u64, the counter a u64 that has no sign to be wrong."""
    seed, counter = expression(b, "u64", None, 1), b.find(lambda v: WIDTH.get(v.dt, 0) and is_integer(v.dt))
    if counter is None:
        return
    wide = converted(b, counter, "u64") if counter.dt != "index" else Value(f"I.cast({counter.text}, I.u64)", "u64", counter.shape)
    if b.chance(0.5):
        b.let(f"I.random.bits({seed.text}, {wide.text})", "u32", counter.shape)
    else:
        b.let(f"I.random.uniform({seed.text}, {wide.text}, dtype=I.f32)", "f32", counter.shape)
