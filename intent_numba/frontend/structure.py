"""Which structured program is this control-flow graph? A dominator-tree construction over the SSA blocks.

The result is a list of statements and nodes. ``Block(label, body)`` is followed by the code of ``label``; a ``Goto`` inside
the body jumps there. A ``Goto`` to a loop's label continues it. Only reducible graphs arise from Python source.
"""
from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from numba.core import ir
from numba.core.analysis import compute_cfg_from_blocks

from ..errors import UnsupportedError
from .bytecode import fail


@dataclass
class Copies:
    """Simultaneous assignment of merge variables: pairs (target, source variable)."""
    pairs: list


@dataclass
class Goto:
    label: object
    pairs: list = field(default_factory=list)


@dataclass
class Return:
    name: str
    loc: object


@dataclass
class Lazy:
    """``first and then``/``first or then`` of conditions: ``stmts`` compute ``second`` only where it matters. ``first_not`` and
    ``second_not`` negate."""
    first: object
    first_not: bool
    stmts: list
    second: object
    second_not: bool
    loc: object


@dataclass
class If:
    """``cond`` is a variable name or a Lazy."""
    cond: object
    then: list
    orelse: list
    loc: object


@dataclass
class Block:
    label: object
    body: list


@dataclass
class Loop:
    """An endless loop, left by a Goto to another label. ``phis`` are its carried variables."""
    label: object
    phis: list
    body: list
    loc: object


@dataclass
class For:
    """Iteration over ``iterator``. ``element`` names the coordinate; ``aliases`` are further statements of the header;
    ``after`` runs when the iteration is exhausted."""
    label: object
    phis: list
    iterator: str
    header: list
    body: list
    after: list
    loc: object


RETURN = "return"
"""The label that every Return leads to."""


class Structurer:
    def __init__(self, func_ir: ir.FunctionIR):
        self.blocks = func_ir.blocks
        cfg = compute_cfg_from_blocks(self.blocks)
        self.successors = {n: [s for s, _ in cfg.successors(n)] for n in cfg.nodes()}
        self.order = self._reverse_postorder(cfg.entry_point())
        self.rank = {n: i for i, n in enumerate(self.order)}
        self.idom = cfg.immediate_dominators()
        dominators = cfg.dominators()
        self.loops = cfg.loops()
        self.back = {(s, d) for s in self.order for d in self.successors[s] if d in dominators[s]}
        for s in self.order:
            for d in self.successors[s]:
                if (s, d) not in self.back and self.rank[d] <= self.rank[s]:
                    fail(UnsupportedError, self.blocks[s].body[-1].loc, "this control flow is not structured")
        self.children: dict = {n: [] for n in self.order}
        for n in self.order:
            if self.idom[n] != n:
                self.children[self.idom[n]].append(n)
        forward: dict = {n: 0 for n in self.order}
        for s in self.order:
            for d in self.successors[s]:
                forward[d] += (s, d) not in self.back
        self.phis = {n: [s for s in self.blocks[n].body if is_phi(s)] for n in self.order}
        self._hoist(forward)
        self.merges = {n for n in self.order if forward[n] >= 2} | self.hoisted

    def _reverse_postorder(self, entry) -> list:
        seen, post, stack = {entry}, [], [(entry, iter(self.successors[entry]))]
        while stack:
            node, rest = stack[-1]
            nxt = next((s for s in rest if s not in seen), None)
            if nxt is None:
                post.append(node)
                stack.pop()
            else:
                seen.add(nxt)
                stack.append((nxt, iter(self.successors[nxt])))
        return post[::-1]

    def _hoist(self, forward) -> None:
        """Code dominated by a block of a loop but outside of it stands after the loop."""
        self.hoists: dict = {h: [] for h in self.loops}
        self.hoisted: set = set()
        for n in self.order:
            d = self.idom[n]
            if d == n:
                continue
            left = [h for h in self.loops if d in self.loops[h].body and n not in self.loops[h].body]
            if left:
                outermost = min(left, key=self.rank.get)
                if left == [d] and forward[n] == 1 and self._iternext(d) and self.blocks[d].body[-1].falsebr == n:
                    continue                # the exhaustion path of a for: its code follows the loop directly
                self.hoists[outermost].append(n)
                self.hoisted.add(n)

    def _iternext(self, header):
        for s in self.blocks[header].body:
            if isinstance(s, ir.Assign) and isinstance(s.value, ir.Expr) and s.value.op == "iternext":
                return s
        return None

    def run(self) -> list:
        return simplify(self._tree(self.order[0]), self._use_counts())

    def _use_counts(self) -> Counter:
        """How often each variable is read in the whole function."""
        counts: Counter = Counter()
        for block in self.blocks.values():
            for s in block.body:
                counts.update(names_read(s))
        return counts

    def _tree(self, n) -> list:
        merges = [k for k in self.children[n] if k in self.merges and k not in self.hoisted]
        if n not in self.loops:
            return self._within(n, merges)
        out = [self._loop(n, merges)]
        for after in sorted(self.hoists[n], key=self.rank.get):
            out = [Block(after, out), *self._tree(after)]
        return out

    def _loop(self, n, merges):
        phis = [s.target.name for s in self.phis[n]]
        step = self._iternext(n)
        loc = self.blocks[n].body[0].loc
        if step is None:
            return Loop(n, phis, self._within(n, merges), loc)
        end = self.blocks[n].body[-1]
        inside = [m for m in merges if m in self.loops[n].body]
        body = self._wrap(inside, lambda: self._branch(n, end.truebr))
        header = [s for s in self.blocks[n].body[:-1] if not is_phi(s) and not isinstance(s, ir.Del)]
        return For(n, phis, step.value.value.name, header, body, self._branch(n, end.falsebr), step.loc)

    def _wrap(self, merges, inner) -> list:
        out = None
        for m in sorted(merges, key=self.rank.get):
            out = [Block(m, inner() if out is None else out), *self._tree(m)]
        return inner() if out is None else out

    def _within(self, n, merges) -> list:
        return self._wrap(merges, lambda: self._straight(n))

    def _straight(self, n) -> list:
        out = [s for s in self.blocks[n].body[:-1] if not is_phi(s) and not isinstance(s, ir.Del)]
        end = self.blocks[n].body[-1]
        match end:
            case ir.Jump():
                out += self._branch(n, end.target)
            case ir.Branch():
                then, orelse = self._branch(n, end.truebr), self._branch(n, end.falsebr)
                out.append(If(end.cond.name, then, orelse, end.loc))
            case ir.Return():
                out.append(Return(end.value.name, end.loc))
            case _:
                fail(UnsupportedError, end.loc, "this construct is not supported in a kernel")
        return out

    def _branch(self, source, target) -> list:
        pairs = [(p.target.name, v.name) for p in self.phis[target]
                 for b, v in zip(p.value.incoming_blocks, p.value.incoming_values) if b == source and v is not ir.UNDEFINED]
        if (source, target) in self.back or target in self.merges:
            return [Goto(target, pairs)]
        return [*([Copies(pairs)] if pairs else []), *self._tree(target)]


def names_read(s) -> list[str]:
    """Variables that a statement reads."""
    match s:
        case ir.Assign(value=ir.Var(name=name)):
            return [name]
        case ir.Assign(value=ir.Expr() as e):
            if e.op == "phi":
                return [v.name for v in e.incoming_values if v is not ir.UNDEFINED]
            return [v.name for v in e.list_vars()]
        case ir.Assign() | ir.Jump():
            return []
        case ir.Branch(cond=c):
            return [c.name]
    return [v.name for v in s.list_vars()]


def is_phi(s) -> bool:
    return isinstance(s, ir.Assign) and isinstance(s.value, ir.Expr) and s.value.op == "phi"


def structure(func_ir: ir.FunctionIR) -> list:
    return Structurer(func_ir).run()


# --- tidying ------------------------------------------------------------------------------------------------------------

def simplify(nodes: list, uses: Counter) -> list:
    """Recover ``and``/``or`` conditions, and drop blocks that a single Goto leads to."""
    out: list = []
    for node in nodes:
        match node:
            case If():
                node.then, node.orelse = simplify(node.then, uses), simplify(node.orelse, uses)
                _short_circuit(node, uses)
            case Loop():
                node.body = simplify(node.body, uses)
            case For():
                node.body, node.after = simplify(node.body, uses), simplify(node.after, uses)
            case Block():
                node.body = simplify(node.body, uses)
        out.append(node)
    return _inline_blocks(out)


def _inline_blocks(nodes: list) -> list:
    for i, node in enumerate(nodes):
        if isinstance(node, Block):
            count = count_gotos(node.body, node.label)
            rest = _inline_blocks(nodes[i + 1:])
            if count == 0:
                return [*nodes[:i], *node.body]
            if count == 1 and _replace_goto(node.body, node.label, rest):
                return [*nodes[:i], *node.body]
            return [*nodes[:i], node, *rest]
    return nodes


def count_gotos(nodes: list, label) -> int:
    total = 0
    for node in nodes:
        match node:
            case Goto():
                total += node.label == label
            case If():
                total += count_gotos(node.then, label) + count_gotos(node.orelse, label)
            case Block() | Loop():
                total += count_gotos(node.body, label)
            case For():
                total += count_gotos(node.body, label) + count_gotos(node.after, label)
    return total


def _replace_goto(nodes: list, label, rest: list) -> bool:
    """Put ``rest`` in the place of the only Goto, unless that place is inside a loop."""
    if not nodes:
        return False
    last = nodes[-1]
    match last:
        case Goto() if last.label == label:
            nodes[-1:] = [*([Copies(last.pairs)] if last.pairs else []), *rest]
            return True
        case If():
            return _replace_goto(last.then, label, rest) or _replace_goto(last.orelse, label, rest)
        case For():
            return _replace_goto(last.after, label, rest)
    for node in nodes[:-1]:
        if isinstance(node, Block) and count_gotos(node.body, label):
            return _replace_goto(node.body, label, rest)
    return _replace_goto(last.body, label, rest) if isinstance(last, Block) else False


def _short_circuit(node: If, uses: Counter) -> None:
    """``if a {stmts; if b {T} else {E}} else {E}`` with E one and the same Goto becomes one condition, if nothing but b needs
    what the statements make."""
    for flip in (False, True):
        near, far = (node.orelse, node.then) if flip else (node.then, node.orelse)
        if not (len(far) == 1 and isinstance(far[0], Goto) and near and isinstance(near[-1], If)):
            continue
        inner, stmts = near[-1], near[:-1]
        if not all(_temporary(s) for s in stmts) or not _private(stmts, inner.cond, uses):
            continue
        for inner_flip in (False, True):
            take, skip = (inner.orelse, inner.then) if inner_flip else (inner.then, inner.orelse)
            if len(skip) == 1 and isinstance(skip[0], Goto) and skip[0] == far[0]:
                node.cond = Lazy(node.cond, flip, stmts, inner.cond, inner_flip, node.loc)
                node.then, node.orelse = take, skip
                return _short_circuit(node, uses)


def _private(stmts: list, cond, uses: Counter) -> bool:
    """Everything the statements define is read only by themselves and by the condition."""
    inside = Counter(_read_by(cond))
    for s in stmts:
        inside.update(names_read(s))
    return all(inside[s.target.name] == uses[s.target.name] for s in stmts)


def _read_by(cond) -> list[str]:
    if isinstance(cond, Lazy):
        return [*_read_by(cond.first), *(n for s in cond.stmts for n in names_read(s)), *_read_by(cond.second)]
    return [cond]


def _temporary(s) -> bool:
    return isinstance(s, ir.Assign) and s.target.name.startswith("$")
