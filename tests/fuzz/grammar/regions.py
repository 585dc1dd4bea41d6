"""Statements that fold or scan regions of a source: summarize, combine, apply and emit are functions of their own.

Nothing asks that their algebra be associative: where the slices lie is fixed, and with it every bit. A slice's own extent is a name
that begins with SLICE and that no text can spell, so that no body can look at it.
"""
from __future__ import annotations

from .block import Block
from .helpers import body, combiner, define, schema_of
from .pointwise import exact, expression
from .types import WIDENED, Value

SLICE = "?"


def source_of(b: Block):
    """Some tensors that share an extent on one axis, how the slices look, and captures."""
    first = b.tensor(lambda v: v.rank < 3)
    if first is None:
        return None
    axis = b.writer.rnd.randrange(first.rank)
    extent = first.shape[axis]
    if extent == "1" or first.shape.count(extent) > 1 and b.chance(0.9):
        return None
    sources = [first]
    if b.chance(0.4):
        other = b.tensor(lambda v: v.rank > axis and v.shape[axis] == extent)
        sources += [other] if other is not None else []
    if axis == 0 and extent in b.extents and b.chance(0.4):
        sources.append(Value(f"I.indices(I.domain(0, {extent}))", "index", (extent,)))
    operands = [v for v in (b.find(lambda v: b.nameable(v.shape)) for _ in range(b.pick((0, 1, 2)))) if v is not None]
    slice_extent = b.name(SLICE)
    slices = [Value(f"s{i}", s.dt, (*s.shape[:axis], slice_extent, *s.shape[axis + 1:])) for i, s in enumerate(sources)]
    captures = [Value(f"c{i}", v.dt, v.shape) for i, v in enumerate(operands)]
    return sources, operands, slices, captures, axis, extent, slice_extent


def summarized(b: Block, slices, captures, cut) -> tuple[Block, list[Value]] | None:
    """The body of a function that summarizes a slice, and what it gives."""
    from .program import statements
    inner = body(b, [*slices, *captures], pure=True)
    statements(inner, b.writer.rnd.randint(0, 2))
    results = []
    for _ in range(b.pick((1, 1, 2, 3))):
        v = inner.find(lambda v: v.shape is not None and v.shape.count(cut) == 1)
        axis = v.shape.index(cut)
        rest = tuple(e for e in v.shape if e != cut) or None
        if not b.nameable(rest):
            continue
        if v.dt == "bool":
            results.append(Value(f"I.reduce.{b.pick(('any', 'all'))}({v.text}, axis={axis})", "bool", rest))
        elif v.dt != "index" and b.chance(0.5):
            results.append(Value(f"I.reduce.sum({v.text}, axis={axis})", WIDENED.get(v.dt, v.dt), rest))
        else:
            results.append(Value(f"I.reduce.{b.pick(('max', 'min'))}({v.text}, axis={axis})", v.dt, rest))
    if not results:
        return None
    return inner, results


def products(b: Block, results: list[Value]):
    """The combine function of a summary's schema; it decides how the summary is written."""
    schema = [(r.dt, r.shape) for r in results]
    combine, packed, parts = combiner(b, schema)
    identity = packed([exact(b, dt, shape, 0).text for dt, shape in schema])
    return schema, combine, packed, parts, identity


def started(b: Block):
    found = source_of(b)
    if found is None:
        return None
    sources, operands, slices, captures, axis, _, cut = found
    summary = summarized(b, slices, captures, cut)
    if summary is None:
        return None
    inner, results = summary
    schema, combine, packed, parts, identity = products(b, results)
    summarize = b.name("summarize")
    define(b, summarize, [v.text for v in (*slices, *captures)], inner, packed([r.text for r in results]))
    one = len(sources) == 1 and b.chance(0.5)
    source = sources[0].text if one else f"({''.join(f'{s.text}, ' for s in sources)})"
    texts = "".join(f"{v.text}, " for v in operands)
    call = f"source={source}, axis={axis}, summarize={summarize}, combine={combine}, identity={identity}"
    return found, schema, parts, call, f", operands=({texts})" if operands else ""


def folded(b: Block):
    start = started(b)
    if start is None:
        return
    _, schema, parts, call, operands = start
    result = b.name()
    b.add(f"{result} = I.region_fold({call}{operands})")
    for part, (dt, shape) in zip(parts, schema):
        b.know(Value(result + part, dt, shape))


def region_scanned(b: Block):
    start = started(b)
    if start is None:
        return
    (_, _, slices, captures, _, extent, cut), schema, parts, call, operands = start
    state = [(v.dt, v.shape) for v in (b.find(lambda v: b.nameable(v.shape) and v.rank < 3) for _ in range(b.pick((1, 1, 2)))) if v]
    if not state:
        return
    packed, state_parts = schema_of(b, len(state))
    before = [Value("state" + part, dt, shape) for part, (dt, shape) in zip(state_parts, state)]
    step = body(b, [Value("t" + part, dt, shape) for part, (dt, shape) in zip(parts, schema)] + before, pure=True)
    apply = b.name("apply")
    define(b, apply, ["t", "state"], step, packed([exact(step, dt, shape, 1).text for dt, shape in state]))
    show = body(b, [*slices, *before, *captures], pure=True)
    from .program import statements
    statements(show, b.writer.rnd.randint(0, 2))
    shown = []
    for _ in range(b.pick((1, 1, 2))):
        like = show.find(lambda v: v.shape is not None and v.shape.count(cut) == 1)
        shown.append(exact(show, expression(show, like.dt, like.shape, 1).dt, like.shape, 1))
    wrap, out_parts = schema_of(b, len(shown))
    emit = b.name("emit")
    define(b, emit, [*(s.text for s in slices), "state", *(c.text for c in captures)], show, wrap([v.text for v in shown]))
    result, final = b.name(), b.name()
    initial = packed([exact(b, dt, shape, 1).text for dt, shape in state])
    b.add(f"{result}, {final} = I.region_scan({call}, initial_state={initial}, apply={apply}, emit={emit}{operands})")
    for part, v in zip(out_parts, shown):
        b.know(Value(result + part, v.dt, tuple(extent if e == cut else e for e in v.shape)))
    for part, (dt, shape) in zip(state_parts, state):
        b.know(Value(final + part, dt, shape))
