"""Functions of a program besides its kernel: combines of a schema, helpers of tensors and products, with a body of statements."""
from __future__ import annotations

from collections.abc import Callable

from .block import Block
from .pointwise import condition, exact
from .types import Value


def schema_of(b: Block, count: int) -> tuple[Callable, list[str]]:
    """How ``count`` components become one product: a function from texts to a text, and the path to each component."""
    if count == 1:
        return (lambda texts: texts[0]), [""]
    if b.chance(0.5):
        return (lambda texts: f"({', '.join(texts)})"), [f"[{i}]" for i in range(count)]
    names = ["x", "y", "z", "w"][:count]
    return (lambda texts: f"I.record({', '.join(f'{n}={t}' for n, t in zip(names, texts))})"), [f".{n}" for n in names]


def define(b: Block, name: str, parameters: list[str], inner: Block, result: str) -> None:
    inner.add(f"return {result}")
    body = "\n    ".join(inner.lines)
    b.writer.helpers.append(f"@intent.fn\ndef {name}({', '.join(parameters)}):\n    {body}\n\n\n")


def body(b: Block, values: list[Value], **facts) -> Block:
    """An empty body of a function that knows ``values``."""
    return Block(b.writer, values=values, kernel=False, depth=2, **facts)


def combiner(b: Block, schema: list[tuple]) -> tuple[str, Callable, list[str]]:
    """A function of two products of one schema that gives a third, its name, and how the products are written."""
    packed, parts = schema_of(b, len(schema))
    sides = [Value(side + part, dt, shape) for side in ("p", "q") for part, (dt, shape) in zip(parts, schema)]
    inner = body(b, sides, pure=True)
    name = b.name("combine")
    results = [meeting(inner, dt, shape, i, len(schema)).text for i, (dt, shape) in enumerate(schema)]
    define(b, name, ["p", "q"], inner, packed(results))
    return name, packed, parts


def meeting(inner: Block, dt: str, shape, i: int, count: int) -> Value:
    """An expression of one component, that mostly looks at both sides."""
    left, right = inner.values[i], inner.values[count + i]
    if inner.chance(0.5):
        return exact(inner, dt, shape, 1)
    if dt == "bool":
        return Value(f"({left.text} {inner.pick('&|^')} {right.text})", dt, shape)
    return Value(inner.pick((f"({left.text} + {right.text})", f"I.maximum({left.text}, {right.text})", f"({left.text} * {right.text})",
                             f"({right.text} - {left.text})")), dt, shape)


def called(b: Block):
    """A helper of some visible values, with statements of its own, that gives one value or a product."""
    from .program import statements
    arguments = list({v.text: v for v in (b.find() for _ in range(b.writer.rnd.randint(1, 3))) if v is not None}.values())
    if not arguments:
        return
    places = [] if b.pure else [p for p in b.places if all(f is None for f in p.fixed) and p.readable and b.chance(0.2)][:1]
    passed = [e for e in b.extents] if b.chance(0.6) else []
    name = b.name("helper")
    names = [f"x{i}" for i in range(len(arguments))]
    known = [Value(n, v.dt, v.shape) for n, v in zip(names, arguments)]
    own = [type(p)(f"m{i}", p.dt, p.shape, p.fixed, p.readable, p.writable and not b.pure) for i, p in enumerate(places)]
    inner = body(b, known, extents=tuple(passed), pure=b.pure, places=list(own), positive=b.positive & set(passed))
    if b.loop == "parallel":
        inner.places = [type(p)(p.name, p.dt, p.shape, p.fixed, p.readable, False) for p in inner.places]
    statements(inner, b.writer.rnd.randint(1, 3))
    results = []
    for _ in range(b.pick((1, 1, 2, 3))):
        like = inner.find(lambda v: all(e in [e for a in arguments for e in a.shape or ()] or e.isdigit() or e in passed
                                        for e in v.shape or ()) and v.dt != "index")
        if like is not None:
            results.append(like)
    if not results:
        results = [exact(inner, "i32", None)]
    packed, parts = schema_of(b, len(results))
    if b.chance(0.25) and all(inner.nameable(r.shape) or inner.witness(r.shape) for r in results):
        inner.add(f"if {condition(inner)}:", f"    return {packed([exact(inner, r.dt, r.shape).text for r in results])}")
    define(b, name, [*names, *(p.name for p in own), *passed], inner, packed([r.text for r in results]))
    by_name = b.chance(0.5)
    given = [v.text for v in arguments] + [p.name for p in places] + [f"{e}={e}" if by_name else e for e in passed]
    result = b.name()
    b.add(f"{result} = {name}({', '.join(given)})")
    for r, part in zip(results, parts):
        b.know(Value(result + part, r.dt, r.shape))
