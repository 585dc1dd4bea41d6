"""The whole: parameters, statements by weight, outputs."""
from __future__ import annotations

from . import control, helpers, memory, regions, shaping, structured
from .block import Block, Writer
from .formats import quantized, ragged, scaled, sparse
from .pointwise import any_dtype, exact, expression
from .types import STORED, Parameter, Place, Program, Value

IMPORTS = "import intent_numba as intent\nimport intent_numba.language as I\n\n\n"
MODE = "class Mode(I.Enum):\n    A = 1\n    B = 2\n\n\n"


def computed(b: Block):
    """An expression given a name: of one visible value's shape, or less."""
    like = b.find()
    if like is None:
        return
    dt = any_dtype(b)
    x = expression(b, dt, like.shape, 3)
    b.let(x.text, dt, x.shape)


def precise(b: Block):
    like = b.find(lambda v: b.nameable(v.shape))
    if like is not None:
        dt = any_dtype(b)
        b.let(exact(b, dt, like.shape).text, dt, like.shape)


PURE = {computed: 8, precise: 2, control.rebound: 3, control.branched: 3, control.looped: 3, control.left: 4,
        shaping.permuted: 1, shaping.expanded: 1, shaping.reshaped: 2, shaping.joined: 1, shaping.element: 2, shaping.filled: 1,
        shaping.gathered: 2, shaping.domain: 1,
        structured.reduced: 3, structured.arg_reduced: 1, structured.scanned: 2, structured.generic: 2, structured.multiplied: 5,
        structured.counted: 1, regions.folded: 1, regions.region_scanned: 1, helpers.called: 3}
FORMATS = {quantized: 0.2, scaled: 0.5, sparse: 0.7, ragged: 0.7}
"""Of programs whose policy is strict."""
EFFECTS = {memory.loaded: 3, memory.stored: 6, memory.scattered: 2, memory.atomic: 6, memory.buffered: 2, memory.remembered: 2,
           memory.assumed: 2, control.parallel: 5, control.coordinate: 2, structured.random_numbers: 1}


CHECKED = {computed: 8, precise: 3, control.rebound: 3, control.branched: 3, control.looped: 4, control.left: 2, control.parallel: 5,
           shaping.permuted: 1, shaping.expanded: 1, structured.summed: 4, structured.multiplied: 3, memory.loaded: 2, memory.stored: 6,
           memory.remembered: 3, helpers.called: 2}
TRIES = 5
"""For one statement: most kinds need something that a block may not have."""


def statements(b: Block, count: int) -> None:
    formats = FORMATS if b.writer.policy == "strict" and b.kernel else {}
    table = CHECKED if b.writer.policy == "checked" else {**PURE, **formats, **({} if b.pure else EFFECTS)}
    for _ in range(count):
        if b.writer.statements <= 0:
            return
        b.writer.statements -= 1
        written = len(b.lines)
        for _ in range(TRIES):
            b.writer.rnd.choices(list(table), weights=list(table.values()))[0](b)
            if len(b.lines) > written:
                break


def inputs(w: Writer, b: Block) -> None:
    shapes = [("M", "N"), ("M", "N"), ("M",), ("N",), ("N", "M"), ("M", "N", "2"), (), ("3",), ("3",), ("M", "3"), ("K",), ("N", "K"),
              ("2", "3")]
    first = w.pick(w.dtypes)
    chosen = [("in", first, ("M", "N"))]
    for _ in range(w.rnd.randint(1, 4)):
        dt = first if w.chance(0.5) else w.pick(w.dtypes)
        chosen.append((w.pick(("in", "inout", "inout")), dt, w.pick(shapes)))
    for i, (kind, dt, shape) in enumerate(chosen):
        w.parameters.append(Parameter(kind, f"a{i}", dt, shape))
        b.places.append(Place(f"a{i}", dt, shape, (None,) * len(shape), writable=kind == "inout"))
    for _ in range(w.rnd.randint(0, 2)):
        name, dt = w.name("s"), w.pick([first, "i32", "bool", w.pick(w.dtypes)])
        w.parameters.append(Parameter("scalar", name, dt))
        b.know(Value(name, dt))
    if w.chance(0.3):
        w.parameters.append(Parameter("constexpr", *w.pick((("FLAG", "bool"), ("TIMES", "int"), ("MODE", "Mode")))))
    b.extents = ("M", "N")
    b.add("M, N = a0.shape")
    for p in b.places:
        if "K" in p.shape:
            b.extents = ("M", "N", "K")
            b.add(f"K = {p.name}.shape[{p.shape.index('K')}]")
            break
    b.know(Value("M", "index"))
    for p in b.places:
        if w.chance(0.8):
            b.let(f"{p.name}[{memory.bracket([':'] * len(p.shape))}]", p.dt, p.shape or None)


def whole_kernel(rnd, dtypes=STORED, policy: str = "strict") -> Program:
    w = Writer(rnd, dtypes, policy)
    b = Block(w)
    inputs(w, b)
    while w.statements > 0:
        statements(b, w.statements)
    for v in dict.fromkeys(b.values[-5:]):
        memory.output(b, v)
    order = {"constexpr": 1}
    w.parameters.sort(key=lambda p: order.get(p.kind, 0))
    signature = ", ".join(f"{p.name}: {p.annotation()}" for p in w.parameters)
    mode = MODE if any(p.dt == "Mode" for p in w.parameters) else ""
    decorator = "@intent.kernel" if policy == "strict" else f'@intent.kernel(policy="{policy}")'
    body = "\n    ".join(b.lines)
    source = f"{IMPORTS}{mode}{''.join(w.helpers)}{decorator}\ndef kernel({signature}):\n    {body}\n"
    return Program(source, w.parameters, policy, w.nests, w.unordered)
