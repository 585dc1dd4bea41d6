"""From a Python function to Numba IR with exact columns; what the language forbids outright is refused here.

Every Numba hook of the untyped stage is in this file.
"""
from __future__ import annotations

from numba.core import bytecode, errors, interpreter, ir
from numba.core.ir_utils import build_definitions
from numba.core.ssa import reconstruct_ssa

from ..errors import CompileError, IntentNameError, LanguageError, UnsupportedError, diagnostic
from ..kir import Loc
from ..language.signature import function_loc
from .forbidden import refuse_forbidden


NEEDED_PEEPHOLES = {"peep_hole_list_to_tuple", "peep_hole_call_function_ex_to_call_function_kw"}
"""They turn ``f(*args)`` and long argument lists into plain calls."""


class _ColumnInterpreter(interpreter.Interpreter):
    """Gives every statement the position that PEP 657 records for its instruction (Python 3.11 and later)."""
    _positions = None

    def _remove_unused_temporaries(self):
        """Only drop unused temporaries. Numba also merges ``$t = a * b; p = $t``, which loses later uses of $t (a walrus) and
        the difference between an expression and a name."""
        unused = self.assigner.unused_dests
        self.current_block.body = [s for s in self.current_block.body
                                   if not (isinstance(s, ir.Assign) and s.target.is_temp and s.target.name in unused)]

    def post_process(self, peepholes, func_ir):
        """Numba's rewrites for with blocks and dicts are not needed: the language has neither."""
        return super().post_process([p for p in peepholes if p.__name__ in NEEDED_PEEPHOLES], func_ir)

    def _dispatch(self, inst, kws):
        if self._positions is None:
            code = self.func_id.code
            self._positions = list(code.co_positions()) if hasattr(code, "co_positions") else []
        i = (inst.offset - bytecode._FIXED_OFFSET) // 2
        if 0 <= i < len(self._positions):
            line, end_line, col, end_col = self._positions[i]
            if line is not None:
                self.loc = ir.Loc(self.loc.filename, line, col)
                self.loc.end = (end_line, end_col)
        return super()._dispatch(inst, kws)


def kir_loc(loc) -> Loc:
    """A Numba location as a KIR one."""
    end = getattr(loc, "end", (None, None))
    return Loc(loc.filename, loc.line, loc.col, *end)


def fail(cls, loc, message: str, hint: str = "", notes: tuple = ()):
    """Raise a compile error at a Numba location."""
    raise cls(diagnostic(kir_loc(loc), message, hint, notes)) from None


def untyped_ir(pyfunc) -> ir.FunctionIR:
    """Numba IR before SSA."""
    refuse_forbidden(pyfunc)
    try:
        func_id = bytecode.FunctionIdentity.from_function(pyfunc)
        func_ir = _ColumnInterpreter(func_id).interpret(bytecode.ByteCode(func_id))
    except CompileError:
        raise
    except (errors.NumbaError, errors.UnsupportedBytecodeError) as e:
        raise _translation_error(pyfunc, e) from None
    _refuse_statements(func_ir)
    return func_ir


def _translation_error(pyfunc, e) -> CompileError:
    loc = getattr(e, "loc", None)
    where = kir_loc(loc) if loc is not None else function_loc(pyfunc)
    if isinstance(e, errors.NotDefinedError):
        return IntentNameError(diagnostic(where, f"{e.name!r} has no value here", "assign it before this use"))
    return UnsupportedError(diagnostic(where, f"{pyfunc.__name__}: this construct is not part of the language",
                                       "a kernel knows expressions, assignments, if, for over domains, while, and calls"))


_EXPRESSIONS = {
    "build_list": "lists do not exist in a kernel; write a tuple", "build_set": "sets do not exist in a kernel",
    "build_map": "dicts do not exist in a kernel; I.record(field=value) makes a named product",
    "make_function": "functions cannot be defined inside a kernel; write an @intent.fn helper outside",
    "build_string": "strings do not exist in a kernel",
}


def _refuse_statements(func_ir: ir.FunctionIR) -> None:
    """Everything illegal in the whole function is reported at once."""
    found: list = []

    def report(loc, message):
        if not any(d.loc == kir_loc(loc) for d in found):
            found.append(diagnostic(kir_loc(loc), message))
    for block in func_ir.blocks.values():
        for inst in block.body:
            match inst:
                case ir.Assign(value=ir.Expr() as e) if e.op in _EXPRESSIONS:
                    report(e.loc, _EXPRESSIONS[e.op])
                case ir.Assign(value=ir.Global(name="str") as e) if inst.target.name.startswith("$") and e.value is str:
                    report(e.loc, _EXPRESSIONS["build_string"])
                case ir.Raise() | ir.StaticRaise() | ir.TryRaise() | ir.StaticTryRaise():
                    report(inst.loc, "a kernel cannot raise; write a condition around the work, or check on the host")
                case ir.Print():
                    report(inst.loc, "a kernel cannot print")
                case ir.SetAttr():
                    report(inst.loc, "attributes cannot be assigned; values are immutable")
                case ir.DelItem():
                    report(inst.loc, "elements cannot be deleted")
    if found:
        raise LanguageError(found)


def to_ssa(func_ir: ir.FunctionIR) -> ir.FunctionIR:
    """SSA form; a name that may have no value where it is used is refused."""
    func_ir.blocks = _ssa(func_ir)
    func_ir._definitions = build_definitions(func_ir.blocks)
    _refuse_unbound(func_ir)
    func_ir.jumps = _thread_jumps(func_ir.blocks)
    _join_chains(func_ir.blocks)
    return func_ir


def _join_chains(blocks: dict) -> None:
    """Merge a block into the only one that jumps to it. A long loop otherwise has its header apart from its iteration step."""
    sources: dict = {}
    for label, block in blocks.items():
        for target in _targets(block):
            sources.setdefault(target, []).append(label)
    renamed: dict = {}
    for label in sorted(blocks):
        block = blocks.get(label)
        while block is not None and isinstance(block.body[-1], ir.Jump):
            target = block.body[-1].target
            if target == label or sources[target] != [label] or _has_phi(blocks[target]):
                break
            block.body[-1:] = blocks.pop(target).body
            for after in _targets(block):
                sources[after] = [label if b == target else b for b in sources[after]]
            renamed[target] = label
    for block in blocks.values():
        for s in block.body:
            if isinstance(s, ir.Assign) and isinstance(s.value, ir.Expr) and s.value.op == "phi":
                s.value.incoming_blocks[:] = [_final(renamed, b) for b in s.value.incoming_blocks]


def _final(renamed: dict, label):
    while label in renamed:
        label = renamed[label]
    return label


def _has_phi(block) -> bool:
    return any(isinstance(s, ir.Assign) and isinstance(s.value, ir.Expr) and s.value.op == "phi" for s in block.body)


def _thread_jumps(blocks: dict) -> dict:
    """Drop blocks that only jump on: a break and the end of a loop then lead to one place. Gives, for each label, where the
    jumps to it that were dropped stood."""
    jumps: dict = {}
    for label in list(blocks):
        block = blocks[label]
        body = [s for s in block.body if not isinstance(s, (ir.Del, ir.PopBlock))]
        if label == min(blocks) or len(body) != 1 or not isinstance(body[0], ir.Jump) or body[0].target == label:
            continue
        target = body[0].target
        sources = [b for b in blocks if label in _targets(blocks[b])]
        if any(target in _targets(blocks[b]) or b == label for b in sources):
            continue                        # a source would reach the target twice, with different merge values
        jumps[target] = [*jumps.pop(label, ()), body[0].loc, *jumps.get(target, ())]
        for b in sources:
            _redirect(blocks[b], label, target)
        for s in blocks[target].body:
            if isinstance(s, ir.Assign) and isinstance(s.value, ir.Expr) and s.value.op == "phi":
                phi = s.value
                pairs = [(x, v) for b, v in zip(phi.incoming_blocks, phi.incoming_values) for x in (sources if b == label else [b])]
                phi.incoming_blocks[:] = [b for b, _ in pairs]
                phi.incoming_values[:] = [v for _, v in pairs]
        del blocks[label]
    return jumps


def _targets(block) -> tuple:
    match block.body[-1]:
        case ir.Jump(target=t):
            return (t,)
        case ir.Branch(truebr=a, falsebr=b):
            return (a, b)
    return ()


def _redirect(block, old, new) -> None:
    match block.body[-1]:
        case ir.Jump(loc=loc):
            block.body[-1] = ir.Jump(new, loc)
        case ir.Branch(cond=cond, truebr=a, falsebr=b, loc=loc):
            block.body[-1] = ir.Branch(cond, new if a == old else a, new if b == old else b, loc)


def _ssa(func_ir):
    return reconstruct_ssa(func_ir).blocks


def _refuse_unbound(func_ir) -> None:
    found: dict = {}
    for block in func_ir.blocks.values():
        for inst in block.body:
            if isinstance(inst, ir.Assign) and isinstance(inst.value, ir.Expr) and inst.value.op == "phi":
                if any(v is ir.UNDEFINED for v in inst.value.incoming_values) and not inst.target.name.startswith("$"):
                    found.setdefault(inst.target.unversioned_name, inst.target.name)
    if found:
        raise IntentNameError([diagnostic(kir_loc(_first_use(func_ir, name)), f"{plain!r} may have no value here",
                                          "give it a value on every path that reaches this use")
                               for plain, name in found.items()])


def _first_use(func_ir, name: str):
    """Where the merged name is read, following further merges."""
    names, fallback = {name}, None
    for _ in range(len(func_ir.blocks) + 1):
        before = len(names)
        for block in func_ir.blocks.values():
            for inst in block.body:
                phi = isinstance(inst, ir.Assign) and isinstance(inst.value, ir.Expr) and inst.value.op == "phi"
                used = {v.name for v in inst.list_vars()} - ({inst.target.name} if isinstance(inst, ir.Assign) else set())
                if used & names:
                    if not phi:
                        return inst.loc
                    names.add(inst.target.name)
                elif phi and inst.target.name == name:
                    fallback = inst.loc
        if len(names) == before:
            break
    return fallback
