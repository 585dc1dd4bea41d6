"""The task program as text. ``print_program`` is for people and for tests of lowerings; ``parse_program`` reads it back.

Expressions are written as calls: ``add(load x[i1, i2], const f32 1.0)``. Every dtype is written where it cannot be inferred, so
that parsing needs no types from elsewhere.
"""
from __future__ import annotations

from .program import (Axis, Combine, Contract, For, Free, If, Loop, Node, Phase, Program, Reduce, Scan, Stage, Store, Update)


class _Writer:
    """Writes expressions; those that ``lets`` names are written by name."""

    def __init__(self):
        self.lets: dict[int, str] = {}

    def node(self, n: Node) -> str:
        """One expression."""
        if id(n) in self.lets:
            return self.lets[id(n)]
        return self.written(n)

    def written(self, n: Node) -> str:
        match n.op:
            case "axis":
                return n.attr
            case "const":
                return f"{_literal(n.attr)}:{n.dt}"
            case "extent":
                return f"extent({n.attr})"
            case "param":
                return f"param({n.attr}):{n.dt}"
            case "hole":
                return f"hole({n.attr}):{n.dt}"
            case "load":
                return f"{n.attr}[{self.list(n.args)}]:{n.dt}"
            case "gload":
                return f"{n.attr}[{self.list(n.args[2:])} if {self.node(n.args[0])} else {self.node(n.args[1])}]:{n.dt}"
            case "call":
                return f"call {n.attr}({self.list(n.args)}):{n.dt}"
            case _:
                attrs = "".join(f", {k}" for k, v in sorted(n.attr or ()) if v)
                return f"{n.op}({self.list(n.args)}{attrs}):{n.dt}"

    def list(self, nodes) -> str:
        return ", ".join(map(self.node, nodes))

    def sink(self, s) -> str:
        match s:
            case Store():
                return f"store {s.resource}[{self.list(s.coords)}] = {self.node(s.value)}{self.where(s)}"
            case Update():
                out = f"update.{s.kind}.{s.order or 'alone'}{' ascending' if s.ascending else ''} {s.resource}[{self.list(s.at)}]"
                out += f" with ({self.list(s.values)}){self.where(s)}{self.combine(s.combine)}"
                return out + "".join(f" {w} {t}[{self.list(s.coords)}]" for w, t in (("old", s.old), ("success", s.success)) if t)
            case Reduce():
                return f"reduce.{s.kind}.{s.form} {self.over(s)}"
            case Scan():
                how = ("inclusive" if s.inclusive else "exclusive") + (" reverse" if s.reverse else "")
                return f"scan.{s.kind}.{s.form} {how} {self.over(s)}"
            case Contract():
                out = f"contract {s.target}[{self.list(s.coords)}] over {', '.join(s.axes)} of {self.node(s.a)} * {self.node(s.b)}"
                out += f" m({', '.join(s.m_axes)}) n({', '.join(s.n_axes)})"
                out += f" batch({', '.join(s.batch_axes)})" if s.batch_axes else ""
                return out + ("" if s.keep else " dropped") + "".join(f" epilogue {self.sink(e)}" for e in s.epilogue)

    def where(self, s) -> str:
        return f" where {self.node(s.valid)}" if s.valid is not None else ""

    def over(self, s) -> str:
        ids = f" identity ({self.list(s.identities)})" if s.identities else ""
        return f"{', '.join(s.targets)}[{self.list(s.coords)}] over {s.axis} of ({self.list(s.values)}){ids}{self.combine(s.combine)}"

    def combine(self, c: Combine | None) -> str:
        return f" combine ({self.list(c.left)} ; {self.list(c.right)} -> {self.list(c.results)})" if c else ""

    def name_shared(self, roots) -> list[str]:
        """Name what several expressions share, and what would nest too deep; the lines that define the names."""
        order, uses, sizes, depths = [], {}, {}, {}
        stack = list(roots)
        while stack:
            n = stack[-1]
            if id(n) in sizes:
                stack.pop()
                uses[id(n)] = uses.get(id(n), 0) + 1
                continue
            missing = [a for a in n.args if id(a) not in sizes]
            if missing:
                stack += missing
                continue
            for a in n.args:
                uses[id(a)] = uses.get(id(a), 0) + 1
            sizes[id(n)] = 1 + sum(sizes[id(a)] for a in n.args)
            depths[id(n)] = 1 + max((depths[id(a)] for a in n.args), default=0)
            if depths[id(n)] >= NEST:
                depths[id(n)] = 0
            order.append(n)
        out = []
        for n in order:
            if n.args and (uses.get(id(n), 0) > 2 and sizes[id(n)] >= SHARE or depths[id(n)] == 0):
                line = self.written(n)
                self.lets[id(n)] = f"e{len(self.lets)}"
                out.append(f"let {self.lets[id(n)]} = {line}")
        return out


def _literal(v) -> str:
    return {float("inf"): "inf", float("-inf"): "-inf"}.get(v, repr(v)) if isinstance(v, float) else repr(v)


def _names(axes) -> str:
    return ", ".join(map(str, axes))


SHARE, NEST = 12, 24
"""A node of at least SHARE nodes that is used repeatedly, and one NEST levels above the last name, get a name of their own."""


def show(n: Node) -> str:
    """One expression."""
    return _Writer().node(n)


def _statements(stmts, out: list[str], depth: int):
    pad = "  " * depth
    for s in stmts:
        match s:
            case Phase():
                out.append(f"{pad}phase ({_names(s.loops)})")
                writer = _Writer()
                lines = writer.name_shared([n for k in s.sinks for n in roots(k)])
                out += [f"{pad}  {line}" for line in lines + [writer.sink(k) for k in s.sinks]]
            case For():
                stop = f" until {s.stop}" if s.stop else ""
                out.append(f"{pad}for {s.var} from {show(s.begin)} step {show(s.step)} times {s.extent}{stop} {{")
                _statements(s.body, out, depth + 1)
                out.append(pad + "}")
            case Loop():
                out.append(f"{pad}loop while {s.again} {{")
                _statements(s.body, out, depth + 1)
                out.append(pad + "}")
            case If():
                out.append(f"{pad}if {show(s.cond)} {{")
                _statements(s.then, out, depth + 1)
                out.append(pad + "} else {")
                _statements(s.orelse, out, depth + 1)
                out.append(pad + "}")
            case Stage():
                out.append(f"{pad}stage {s.name} tasks ({_names(s.tasks)}) {s.kind} cost={s.cost} {{")
                out += [f"{pad}  {_resource(r)}" for r in s.resources]
                _statements(s.body, out, depth + 1)
                out.append(pad + "}")
            case Free():
                out.append(f"{pad}free {s.resource}")


def _resource(r) -> str:
    if r.kind == "cell":
        return f"cell {r.name}: {r.dt}"
    axes = f" tasks({', '.join(r.axes)})" if r.axes else ""
    return f"{r.kind} {r.name}: {r.dt}[{_names(r.shape)}]{axes}" + (f"  ; {r.why}" if r.why else "")


def print_program(p: Program) -> str:
    """The whole program."""
    params = ", ".join(f"{q.name}: {q.dt}" + (f"[{_names(q.shape)}] {q.access}" if q.kind == "view" else "") for q in p.params)
    out = [f"program {p.name}({params}) {{"]
    out += [f"  {_resource(r)}" for r in p.resources]
    _statements(p.body, out, 1)
    for x, y in sorted(p.inplace):
        out.append(f"  inplace {x} {y}")
    return "\n".join(out + ["}"]) + "\n"


def roots(sink) -> list[Node]:
    """Every expression of a sink."""
    match sink:
        case Store():
            out = [*sink.coords, sink.value, sink.valid]
        case Update():
            out = [*sink.at, *sink.coords, *sink.values, sink.valid]
        case Contract():
            out = [*sink.coords, sink.a, sink.b, *(n for e in sink.epilogue for n in roots(e))]
        case _:
            out = [*sink.coords, *sink.values, *sink.identities]
    combine = getattr(sink, "combine", None)
    return [n for n in out + list(combine.results if combine else ()) if n is not None]


__all__ = ["Axis", "print_program", "show"]
