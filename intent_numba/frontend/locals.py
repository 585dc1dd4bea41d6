"""Which one dtype has a local? Under policies that join, that of all its assignments; parameters and loop variables are their own."""
from __future__ import annotations

from functools import reduce

from numba.core import ir

from ..typing.active import ACTIVE
from ..typing.planned import join
from ..typing.types import Lit, NamedFloat, Scalar, Tensor, WeakFloat

NUMERIC = (Scalar, Tensor, Lit, NamedFloat, WeakFloat)


def joined_locals(func_ir, typemap: dict) -> dict:
    """Variable -> type, for every version of a name that is assigned more than once and whose versions differ."""
    versions, pinned = {}, set()
    for block in func_ir.blocks.values():
        for s in block.body:
            if isinstance(s, ir.Assign) and not s.target.name.startswith("$"):
                plain = s.target.unversioned_name
                versions.setdefault(plain, []).append(s.target.name)
                if isinstance(s.value, ir.Arg) or typemap.get(s.target.name) is None or _from_iteration(func_ir, s.value):
                    pinned.add(plain)
    found = {}
    for plain, names in versions.items():
        types = [typemap.get(n) for n in names]
        if plain in pinned or len(names) < 2 or not all(isinstance(t, NUMERIC) for t in types):
            continue
        if any(isinstance(t, Lit) and isinstance(t.value, str) for t in types) or all(t == types[0] for t in types):
            continue
        if all(isinstance(t, Lit) and type(t.value) is int and -1 << 31 <= t.value < 1 << 31 for t in types):
            continue                                        # they have one dtype as they are, and may be axes or extents
        common = reduce(lambda a, b: a if a is None or a == b else join(a, b), (_scalar(t) for t in types))
        if isinstance(common, WeakFloat):
            common = Scalar(ACTIVE.default_float)
        if common is not None:
            found.update({n: _with_dtype(t, common.dt) for n, t in zip(names, types)})
    return found


def _from_iteration(func_ir, value) -> bool:
    """Is this a coordinate that a for statement hands out?"""
    while isinstance(value, ir.Var):
        definitions = func_ir._definitions.get(value.name, ())
        if len(definitions) != 1:
            return False
        (value,) = definitions
    if isinstance(value, ir.Expr) and value.op in ("static_getitem", "exhaust_iter"):
        return _from_iteration(func_ir, value.value)
    return isinstance(value, ir.Expr) and value.op in ("pair_first", "iternext")


def _scalar(t):
    return Scalar(t.dt) if isinstance(t, Tensor) else t


def _with_dtype(t, dt: str):
    return Tensor(dt, t.rank) if isinstance(t, Tensor) else Scalar(dt)
