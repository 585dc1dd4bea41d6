"""Which branches are decided at compile time? Conditions over static values are folded and dead code is dropped before
SSA and typing, so that an unselected algorithm branch need not even type-check."""
from __future__ import annotations

import operator

from numba.core import ir
from numba.core.analysis import compute_cfg_from_blocks
from numba.core.ir_utils import build_definitions

from ..language.annotations import Enum
from ..typing.context import Literal

UNKNOWN = object()
NOT_NONE = object()
"""A run-time value: unknown, but certainly not None."""

MAX_DEPTH = 60
FOLDABLE = {operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.and_, operator.or_, operator.xor,
            operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge, operator.truediv}


def prune(func_ir: ir.FunctionIR) -> None:
    """Fold decided branches until none is left."""
    while _prune_once(func_ir):
        for label in compute_cfg_from_blocks(func_ir.blocks).dead_nodes():
            del func_ir.blocks[label]
        func_ir._definitions = build_definitions(func_ir.blocks)


def _prune_once(func_ir) -> bool:
    changed = False
    for block in func_ir.blocks.values():
        end = block.body[-1]
        if isinstance(end, ir.Branch):
            cond = _evaluate(func_ir, end.cond.name, 0)
            if cond is not UNKNOWN and cond is not NOT_NONE:
                block.body[-1] = ir.Jump(end.truebr if cond else end.falsebr, end.loc)
                changed = True
    return changed


def take(func_ir: ir.FunctionIR, decided: dict) -> None:
    """Replace branches of an SSA function, block -> truth of its condition. What nothing reaches goes; a merge of one value is a copy."""
    blocks = func_ir.blocks
    for label, truth in decided.items():
        end = blocks[label].body[-1]
        blocks[label].body[-1] = ir.Jump(end.truebr if truth else end.falsebr, end.loc)
    graph = compute_cfg_from_blocks(blocks)
    for label in graph.dead_nodes():
        del blocks[label]
    for label, block in blocks.items():
        sources = {p for p, _ in graph.predecessors(label)} & blocks.keys()
        for s in block.body:
            if isinstance(s, ir.Assign) and isinstance(s.value, ir.Expr) and s.value.op == "phi":
                kept = [(b, v) for b, v in zip(s.value.incoming_blocks, s.value.incoming_values) if b in sources]
                s.value.incoming_blocks[:] = [b for b, _ in kept]
                s.value.incoming_values[:] = [v for _, v in kept]
                if len(kept) == 1 and isinstance(kept[0][1], ir.Var):
                    s.value = kept[0][1]
    func_ir._definitions = build_definitions(blocks)


def _evaluate(func_ir, name: str, depth: int):
    """The static value of a variable, or UNKNOWN. Only values whose truth is defined reach a branch."""
    definitions = func_ir._definitions.get(name, ())
    if len(definitions) != 1 or depth > MAX_DEPTH:
        return UNKNOWN
    match definitions[0]:
        case ir.Const(value=Literal() as literal):
            return literal.value
        case ir.Const(value=value) if value is None or isinstance(value, Enum):
            return value
        case ir.Arg():
            return NOT_NONE
        case ir.Var(name=other):
            return _evaluate(func_ir, other, depth + 1)
        case ir.Expr() as e:
            return _expression(func_ir, e, depth + 1)
    return UNKNOWN


def _expression(func_ir, e: ir.Expr, depth: int):
    if e.op == "unary":
        x = _evaluate(func_ir, e.value.name, depth)
        if _plain(x) and e.fn in (operator.not_, operator.neg, operator.pos):
            return e.fn(x)
    elif e.op in ("binop", "inplace_binop"):
        a, b = _evaluate(func_ir, e.lhs.name, depth), _evaluate(func_ir, e.rhs.name, depth)
        return _binary(e.fn, a, b)
    elif e.op == "call" and len(e.args) == 1 and not e.kws:
        fn = func_ir._definitions.get(e.func.name, ())
        if len(fn) == 1 and isinstance(fn[0], (ir.Const, ir.Global)) and fn[0].value is bool:
            x = _evaluate(func_ir, e.args[0].name, depth)
            return bool(x) if _plain(x) else UNKNOWN
    return UNKNOWN


def _plain(x) -> bool:
    return isinstance(x, (bool, int, float))


def _binary(fn, a, b):
    if fn in (operator.is_, operator.is_not) and (a is None or b is None) and UNKNOWN not in (a, b):
        return (a is b) == (fn is operator.is_)
    if isinstance(a, Enum) and type(a) is type(b) and fn in (operator.eq, operator.ne):
        return (a is b) == (fn is operator.eq)
    if _plain(a) and _plain(b) and fn in FOLDABLE:
        try:
            return fn(a, b)
        except (ArithmeticError, TypeError, ValueError):
            return UNKNOWN
    return UNKNOWN
