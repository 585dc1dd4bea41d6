"""The task program as text. ``print_program`` is for people and for tests of lowerings; ``parse_program`` reads it back.

Expressions are written as calls: ``add(load x[i1, i2], const f32 1.0)``. Every dtype is written where it cannot be inferred, so
that parsing needs no types from elsewhere.
"""
from __future__ import annotations

from .program import (Axis, Combine, Contract, For, Free, If, Loop, Node, Phase, Program, Reduce, Scan, Stage, Store, Update)


def show(n: Node) -> str:
    """One expression."""
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
            return f"{n.attr}[{_list(n.args)}]:{n.dt}"
        case "gload":
            return f"{n.attr}[{_list(n.args[2:])} if {show(n.args[0])} else {show(n.args[1])}]:{n.dt}"
        case "call":
            return f"call {n.attr}({_list(n.args)}):{n.dt}"
        case _:
            attrs = "".join(f", {k}" for k, v in sorted(n.attr or ()) if v)
            return f"{n.op}({_list(n.args)}{attrs}):{n.dt}"


def _literal(v) -> str:
    return {float("inf"): "inf", float("-inf"): "-inf"}.get(v, repr(v)) if isinstance(v, float) else repr(v)


def _list(nodes) -> str:
    return ", ".join(map(show, nodes))


def _names(axes) -> str:
    return ", ".join(map(str, axes))


def show_sink(s) -> str:
    match s:
        case Store():
            return f"store {s.resource}[{_list(s.coords)}] = {show(s.value)}" + (f" where {show(s.valid)}" if s.valid is not None else "")
        case Update():
            out = f"update.{s.kind}.{s.order or 'alone'}{' ascending' if s.ascending else ''} {s.resource}[{_list(s.at)}]"
            out += f" with ({_list(s.values)})" + (f" where {show(s.valid)}" if s.valid is not None else "") + _combine(s.combine)
            return out + "".join(f" {w} {t}[{_list(s.coords)}]" for w, t in (("old", s.old), ("success", s.success)) if t)
        case Reduce():
            return f"reduce.{s.kind}.{s.form} {_over(s)}"
        case Scan():
            how = ("inclusive" if s.inclusive else "exclusive") + (" reverse" if s.reverse else "")
            return f"scan.{s.kind}.{s.form} {how} {_over(s)}"
        case Contract():
            out = f"contract {s.target}[{_list(s.coords)}] over {', '.join(s.axes)} of {show(s.a)} * {show(s.b)}"
            out += f" m({', '.join(s.m_axes)}) n({', '.join(s.n_axes)})" + (f" batch({', '.join(s.batch_axes)})" if s.batch_axes else "")
            return out + ("" if s.keep else " dropped") + "".join(f" epilogue {show_sink(e)}" for e in s.epilogue)


def _over(s) -> str:
    ids = f" identity ({_list(s.identities)})" if s.identities else ""
    return f"{', '.join(s.targets)}[{_list(s.coords)}] over {s.axis} of ({_list(s.values)}){ids}{_combine(s.combine)}"


def _combine(c: Combine | None) -> str:
    return f" combine ({_list(c.left)} ; {_list(c.right)} -> {_list(c.results)})" if c else ""


def _statements(stmts, out: list[str], depth: int):
    pad = "  " * depth
    for s in stmts:
        match s:
            case Phase():
                out.append(f"{pad}phase ({_names(s.loops)})")
                out += [f"{pad}  {show_sink(k)}" for k in s.sinks]
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


__all__ = ["Axis", "print_program", "show", "show_sink"]
