"""``and`` and ``or`` as values: under a policy that promotes numbers in conditions they are truth values, not one of the operands.

Python keeps the tested operand itself on its stack where the expression ends early. In the IR before SSA that is a merge variable to
which the branching block assigns what it tests, and another block the next operand; a stack place that only lasts across a branch
is assigned once. Every value merged becomes its truth value. Spec: 003, "Result-type rules". In a condition nothing is merged.
"""
from __future__ import annotations

from collections import Counter

from numba.core import ir
from numba.core.ir_utils import build_definitions

def values_of_logic(func_ir: ir.FunctionIR) -> None:
    """Replace the merged operands of ``and`` and ``or``, in place."""
    assignments = Counter(s.target.name for block in func_ir.blocks.values() for s in block.body if _merges(s))
    merged: dict[str, dict] = {}                            # merge variable -> {block: the truth value that is there already}
    for label, block in func_ir.blocks.items():
        for name in _ending_early(block):
            if assignments[name] > 1:
                merged.setdefault(name, {})[label] = block.body[-1].cond
    if not merged:
        return
    for label, block in func_ir.blocks.items():
        body = []
        for s in block.body:
            if _merges(s) and s.target.name in merged:
                known = merged[s.target.name].get(label)
                body += _truth(s, label) if known is None else [ir.Assign(known, s.target, s.loc)]
            else:
                body.append(s)
        block.body = body
    func_ir._definitions = build_definitions(func_ir.blocks)


def _merges(s) -> bool:
    """Is this an assignment to a stack place at the head of a block?"""
    return isinstance(s, ir.Assign) and s.target.name.startswith("$phi")


def _ending_early(block) -> list[str]:
    """The merge variables that get what the block's branch tests."""
    branch = block.body[-1]
    if not isinstance(branch, ir.Branch):
        return []
    assigned = {s.target.name: s.value for s in block.body if isinstance(s, ir.Assign)}
    tested = _origin(assigned, branch.cond.name, through_bool=True)
    return [s.target.name for s in block.body if _merges(s) and _origin(assigned, s.target.name) == tested]


def _origin(assigned: dict, name: str, through_bool: bool = False) -> str:
    """Where a value of the block comes from: through copies, and through calls of ``bool``."""
    while True:
        value = assigned.get(name)
        if isinstance(value, ir.Var):
            name = value.name
        elif through_bool and isinstance(value, ir.Expr) and value.op == "call" \
                and getattr(assigned.get(value.func.name), "value", None) is bool:
            (arg,) = value.args
            name = arg.name
        else:
            return name


def _truth(s: ir.Assign, label: int) -> list:
    """``target = bool(value)``."""
    scope, loc = s.target.scope, s.loc
    operand, function = (ir.Var(scope, f"{s.target.name}.{what}.{label}", loc) for what in ("value", "bool"))
    call = ir.Expr.call(function, [operand], (), loc)
    return [ir.Assign(s.value, operand, loc), ir.Assign(ir.Global("bool", bool, loc), function, loc), ir.Assign(call, s.target, loc)]
