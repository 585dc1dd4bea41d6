"""Which argument belongs to which parameter? Python's calling rules over whatever stands for arguments (types or values)."""
from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cache

from .problems import refuse


@dataclass(frozen=True)
class Default:
    """The parameter's default, a Python value, stands where no argument came."""
    value: object


@cache
def _plan(signature: inspect.Signature):
    params = list(signature.parameters.values())
    positional = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in params)
    return params, positional, {p.name: i for i, p in enumerate(params)}


def bind(what: str, signature: inspect.Signature, args, kws) -> list:
    """Arguments in parameter order; ``Default`` where a default applies. Refuses wrong counts and names."""
    params, positional, where = _plan(signature)
    if len(args) > positional:
        extra = "" if positional == len(params) else f"; {', '.join(p.name for p in params[positional:])} by keyword only"
        refuse(f"{what} takes {positional} positional {'argument' if positional == 1 else 'arguments'}, {len(args)} given{extra}",
               f"its signature is {what}{signature}")
    out: list = list(args) + [None] * (len(params) - len(args))
    filled = [True] * len(args) + [False] * (len(params) - len(args))
    for name, value in kws.items():
        i = where.get(name)
        if i is None:
            refuse(f"{what} has no parameter {name!r}", f"its signature is {what}{signature}")
        if filled[i]:
            refuse(f"{what}: {name!r} is given twice", f"its signature is {what}{signature}")
        out[i], filled[i] = value, True
    for i, p in enumerate(params):
        if not filled[i]:
            if p.default is p.empty:
                refuse(f"{what}: the argument {p.name!r} is missing", f"its signature is {what}{signature}")
            out[i] = Default(p.default)
    return out
