"""Structured control as KIR: merges, ordered loops with carries, break and continue, early returns, parallel iteration.

A stretch of code has an ``Outcome``: the labels it may leave to, a flag for each when there are several, and the values of
merge variables on the way. Inside a loop every exit leads to the end of the iteration, so a break needs no further flags.
"""
from __future__ import annotations

from dataclasses import dataclass, field

from numba.core import ir

from ..errors import IntentShapeError, LanguageError
from ..kir import Region, Scalar, Value
from ..typing.types import BOOL
from .bytecode import kir_loc
from .hints import begins_with
from .products import dummy, fit, flatten, identical, is_static, static, unflatten
from .races import check_races
from .structure import RETURN, Block, Copies, For, Goto, If, Lazy, Loop, Return
from .values import UNDEFINED, Dom, Idx, Iteration, Lit, Negated

CHEAP = {"add", "sub", "mul", "neg", "abs", "and", "or", "xor", "not", "eq", "ne", "lt", "le", "gt", "ge", "const", "extent", "cast",
         "select", "shl", "shr", "maximum", "minimum"}
"""Pure scalar operations that may run although their result is not wanted."""

OWING = {"cast", "shl", "shr"}
"""Those of them that owe something: in a rehearsal they run only where the program runs them."""

MAX_SPECULATED = 8
ITERATION = "iteration"
"""The label of the end of a loop iteration."""


@dataclass
class Outcome:
    """``payload`` holds merge variables, and ("to", label) flags when there are several labels."""
    labels: tuple
    payload: dict = field(default_factory=dict)


@dataclass
class Arm:
    """One side of an ``if`` with everything needed to continue it."""
    region: Region
    scope: object
    out: Outcome
    env: dict


@dataclass
class Frame:
    """A loop being built. ``kind`` is for, loop or parallel. ``shared``: exit variable -> the phi whose carry it uses; ``extras``:
    what the loop defines and later code uses; ``kept``: phis that later code uses themselves."""
    kind: str
    label: object
    phis: list
    exits: list
    shared: dict
    extras: set
    kept: set
    local: list = field(default_factory=list)


class ControlBuilder:
    """The control half of ``FunctionBuilder``; needs e, env, types, return_type, statement(), settled(), truth_value()."""

    # --- straight code ----------------------------------------------------------------------------------------------

    def run(self, nodes: list) -> Outcome:
        for i, node in enumerate(nodes):
            match node:
                case Copies():
                    self.env.update({t: self.settled(t, self.env[v]) for t, v in node.pairs if v in self.env})
                case Goto():
                    return self.leave(node.label, {t: self.env.get(v, UNDEFINED) for t, v in node.pairs})
                case Return():
                    self.e.b.loc = kir_loc(node.loc)
                    return self.leave(RETURN, {RETURN: self.returned(node.name)})
                case If():
                    return self.choose(node)
                case Block():
                    self.frames[-1].local.append(node.label)
                    out = self.run(node.body)
                    self.frames[-1].local.remove(node.label)
                    if node.label not in out.labels:
                        return out
                    if len(out.labels) > 1:
                        return self._arrive_or_pass(out, node.label, nodes[i + 1:])
                    self.bind(out.payload)
                case For():
                    self.e.b.loc = kir_loc(node.loc)
                    return self.iterate(node)
                case Loop():
                    self.e.b.loc = kir_loc(node.loc)
                    return self.repeat(node)
                case _:
                    self.statement(node)
        raise AssertionError("control fell off the end of a block")

    def choose(self, node: If) -> Outcome:
        self.e.b.loc = kir_loc(node.loc)
        return self.branch(self.condition(node.cond), lambda: self.run(node.then), lambda: self.run(node.orelse))

    def bind(self, payload: dict) -> None:
        self.env.update({k: self.settled(k, v) for k, v in payload.items() if not isinstance(k, tuple) and v is not UNDEFINED})

    def _arrive_or_pass(self, out: Outcome, label, rest: list) -> Outcome:
        """Some paths lead to ``label`` (whose code is ``rest``), others further out."""
        reopened = self._reopen(label, rest)
        if reopened is not None:
            return reopened
        others = tuple(x for x in out.labels if x != label)
        passed = {k: v for k, v in out.payload.items() if k != ("to", label)}

        def arrive():
            self.bind(out.payload)
            return self.run(rest)

        def passing():
            payload = dict(passed)
            if len(others) == 1:
                payload[("to", others[0])] = Lit(True)
            return Outcome(others, payload)
        return self.branch(self.e.value(out.payload[("to", label)], "bool"), arrive, passing)

    def _reopen(self, label, rest: list) -> Outcome | None:
        """When the ``if`` just built leads to ``label`` from one arm only, its code continues that arm: no flag is needed."""
        if self.last is None:
            return None
        region, length, cond, arms = self.last
        ops = self.e.b.region.ops
        if region is not self.e.b.region or len(ops) != length or sum(label in arm.out.labels for arm in arms) != 1:
            return None
        if ops and ops[-1].kind == "if" and ops[-1].regions[0] is arms[0].region:
            ops.pop()
        elif any(arm.region.ops for arm in arms):
            return None
        for arm in arms:
            if label in arm.out.labels:
                saved, out = self.env, arm.out
                with self.e.inside(arm.region, arm.scope):
                    self.env = dict(arm.env)
                    self.last = None
                    if len(out.labels) == 1:
                        self.bind(out.payload)
                        arm.out = self.run(rest)
                    else:
                        arm.out = self._arrive_or_pass(out, label, rest)
                    arm.env, self.env = self.env, saved
        return self._merge(cond, arms)

    # --- leaving ----------------------------------------------------------------------------------------------------

    def leave(self, label, payload: dict) -> Outcome:
        frame = self.frames[-1]
        if frame.kind == "body" or label in frame.local:
            return Outcome((label,), {**payload, ("to", label): Lit(True)})
        if label == frame.label:
            out = {("next", p): payload.get(p, self.env.get(p)) for p in frame.phis}
            out[("leave",)] = Lit(False)
            return Outcome((ITERATION,), {**out, ("to", ITERATION): Lit(True)})
        if frame.kind == "parallel":
            word = "return" if label == RETURN else "break"
            if word == "break":
                self.e.b.loc = self._break_loc(label)
                word = "return" if begins_with(self.e.b.loc, "return") else word
            self.e.fail(LanguageError, f"{word} cannot leave a parallel loop: its points have no order",
                        "continue skips a point; an ordered for may break")
        return self._leave_loop(frame, label, payload)

    def _break_loc(self, label):
        """Where the break stands that leads to ``label``: a jump of its own, or the end of a block that only it reaches."""
        func_ir, here = self.typed.func_ir, self.e.b.loc
        ends = func_ir.jumps.get(label) or [func_ir.blocks[label].body[-1].loc]
        return kir_loc(min(ends, key=lambda loc: (loc.line < here.line, loc.line)))

    def _leave_loop(self, frame: Frame, label, payload: dict) -> Outcome:
        taken = {frame.shared[u]: v for u, v in payload.items() if u in frame.shared}
        out = {("next", p): taken[p] if p in taken else self.env[p] if p in frame.kept else UNDEFINED for p in frame.phis}
        out.update({("slot", u): v for u, v in payload.items() if u not in frame.shared})
        out.update({("slot", x): self.env[x] for x in frame.extras if x in self.env and ("slot", x) not in out})
        if len(frame.exits) > 1:
            out.update({("slot", ("to", x)): Lit(x == label) for x in frame.exits})
        out[("leave",)] = Lit(True)
        return Outcome((ITERATION,), {**out, ("to", ITERATION): Lit(True)})

    def type_of(self, key):
        while isinstance(key, tuple):
            if key[0] not in ("next", "slot"):
                return BOOL
            key = key[1]
        return self.return_type if key == RETURN else self.types[key]

    # --- branches ---------------------------------------------------------------------------------------------------

    def condition(self, cond):
        """A front bool: a literal when it is decided."""
        if not isinstance(cond, Lazy):
            return self.truth_value(self.env[cond])
        first = self.condition(cond.first)
        e = self.e

        def second():
            for s in cond.stmts:
                self.statement(s)
            value = self.condition(cond.second)
            if cond.second_not:
                value = Lit(not value.value) if isinstance(value, Lit) else e.negate(value)
            return Outcome((ITERATION,), {("to", ITERATION): Lit(True), ("leave",): value})

        def skip():
            return Outcome((ITERATION,), {("to", ITERATION): Lit(True), ("leave",): Lit(False)})
        e.b.loc = kir_loc(cond.loc)
        out = self.branch(first, skip, second) if cond.first_not else self.branch(first, second, skip)
        return out.payload[("leave",)]

    def branch(self, cond, then, orelse) -> Outcome:
        """``if cond``: both arms in regions of their own, merge variables as results."""
        if isinstance(cond, Lit):
            return then() if cond.value else orelse()
        if isinstance(cond, Negated):
            return self.branch(cond.value, orelse, then)
        loc = self.e.b.loc
        arms = [self._arm(then), self._arm(orelse)]
        self.e.b.loc = loc
        return self._merge(cond, arms)

    def _arm(self, run) -> Arm:
        region, saved = Region(()), self.env
        with self.e.inside(region) as scope:
            self.env = dict(saved)
            out = run()
            env, self.env = self.env, saved
        return Arm(region, scope, out, env)

    def _merge(self, cond: Value, arms) -> Outcome:
        labels = tuple(dict.fromkeys(label for arm in arms for label in arm.out.labels))
        payload, joined = {}, []
        for key in dict.fromkeys(key for arm in arms for key in arm.out.payload):
            flag = isinstance(key, tuple) and key[0] == "to"
            if flag and len(labels) == 1:
                payload[key] = Lit(True)
                continue
            a, b = (arm.out.payload.get(key, Lit(False) if flag else UNDEFINED) for arm in arms)
            if identical(a, b) or b is UNDEFINED and self._outer(a, arms[0]):
                payload[key] = a
            elif a is UNDEFINED and self._outer(b, arms[1]):
                payload[key] = b
            elif isinstance(a, Lit) and isinstance(b, Lit) and a.value is (not b.value):
                lazy = flag or key == ("leave",)            # a flag that may never be needed as a value
                payload[key] = cond if a.value else Negated(cond) if lazy else self.e.negate(cond)
            elif is_static(self.type_of(key)):
                payload[key] = static(self.type_of(key))
            else:
                joined.append((key, a, b))
        payload.update(self._join(cond, arms, joined))
        region = self.e.b.region
        self.last = region, len(region.ops), cond, arms
        return Outcome(labels, payload)

    def _outer(self, value, arm: Arm) -> bool:
        """The value exists outside of the arm."""
        return isinstance(value, (Lit, Idx)) or isinstance(value, Value) and value not in arm.scope.defined

    def _join(self, cond: Value, arms, joined) -> dict:
        e, loc = self.e, self.e.b.loc
        yields, types, spans = ([], []), [], []
        for key, a, b in joined:
            t = self.type_of(key)
            leaves = [None if x is UNDEFINED else self._flat(arm, x, t) for x, arm in zip((a, b), arms)]
            wanted = [v.type for v in (leaves[0] if leaves[0] is not None else leaves[1])]
            for side, arm in enumerate(arms):
                with e.inside(arm.region, arm.scope):
                    if leaves[side] is None:
                        leaves[side] = [dummy(e, w) for w in wanted]
                    name = self.plain(key)
                    yields[side].extend(fit(e, v, w, f"{name} of an if" if name else "the value of an if")
                                        for v, w in zip(leaves[side], wanted))
            spans.append((key, t, len(wanted)))
            types += wanted
        e.b.loc = loc
        then, orelse = arms[0].region, arms[1].region
        then.yields, orelse.yields = map(tuple, yields)
        if not types and not then.ops and not orelse.ops:
            return {}
        results = self._logical(cond, then, orelse, types) or e.emit("if", (cond,), types, (then, orelse))
        leaves, out = iter(results), {}
        for key, t, n in spans:
            out[key] = unflatten(e, t, iter([next(leaves) for _ in range(n)]))
        return out

    def _flat(self, arm: Arm, value, t):
        with self.e.inside(arm.region, arm.scope):
            return flatten(self.e, value, t)

    def _logical(self, cond: Value, then: Region, orelse: Region, types):
        """``a and b``, ``a or b`` with a cheap pure right side are one operation."""
        if types != [Scalar("bool")]:
            return None
        cheap_kinds = CHEAP - OWING if self.e.obligations else CHEAP
        for kind, run, short, constant in (("and", then, orelse, False), ("or", orelse, then, True)):
            value = short.yields[0]
            fixed = all(op.kind == "const" for op in short.ops)
            decided = value is cond or any(op.results == (value,) and op.attrs.get("value") is constant for op in short.ops)
            cheap = len(run.ops) <= MAX_SPECULATED and all(
                op.kind in cheap_kinds and isinstance(op.result.type, Scalar) for op in run.ops)
            if fixed and decided and cheap:
                self.e.b.region.ops.extend(run.ops)
                self.e.scopes[-1].defined.update(op.result for op in run.ops)
                return (self.e.one(kind, (cond, run.yields[0]), Scalar("bool")),)
        return None

    def plain(self, key) -> str:
        while isinstance(key, tuple):
            key = key[1] if len(key) > 1 else ""
        name = str(key).split(".")[0]
        return "" if name.startswith("$") or not name or key == RETURN else repr(name)

    # --- loops ------------------------------------------------------------------------------------------------------

    def _frame(self, kind: str, node) -> Frame:
        exits, inside = [], {node.label}
        _exits(node.body, inside, exits)
        labels = list(dict.fromkeys(label for label, _ in exits))
        blocks = self.loop_blocks(node.label)
        extras = (self.defined_in(blocks) & self.used_outside(blocks)) - set(node.phis)
        phis = [p for p in node.phis if not is_static(self.types[p])]
        used = self.used_outside(blocks)
        shared: dict = {}
        for _, pairs in exits:
            for u, _ in pairs:
                if u in shared or u not in self.types:
                    continue
                for p in phis:
                    if p not in used and p not in shared.values() and self.types[p] == self.types[u] and _base(p) == _base(u):
                        shared[u] = p
                        break
        return Frame(kind, node.label, phis, labels, shared, extras, used & set(phis))

    def iterate(self, node: For) -> Outcome:
        target = self.env[node.iterator]
        if isinstance(target, Dom):
            target = Iteration("domain", (target,))
        for p in node.phis:
            if is_static(self.types[p]):
                self.env[p] = static(self.types[p])
        if target.kind in ("parallel", "product"):
            return self._parallel(node, target)
        return self._ordered(node, target)

    def _parallel(self, node: For, target: Iteration) -> Outcome:
        frame = self._frame("parallel", node)
        e, loc = self.e, self.e.b.loc
        if frame.phis:
            name = self.plain(frame.phis[0]) or "a value"
            e.fail(LanguageError, f"{name} is carried over a parallel loop: its points have no order",
                   "use I.reduce or an ordered loop, for i in I.domain(...)")
        region = e.b.block([Scalar("index")] * len(target.domains))
        self.frames.append(frame)
        saved = self.env
        with e.inside(region):
            self.env = dict(saved)
            for v, d in zip(region.params, target.domains):
                e.bind_coordinate(v, d)
            element = region.params if target.kind == "product" else region.params[0]
            self._header(node, element)
            self.run(node.body)
            self.env = saved
        self.frames.pop()
        check_races(e, region, target.domains, loc)
        e.b.loc = loc
        e.emit("parallel", tuple(d.value for d in target.domains), (), (region,))
        return self.run(node.after)

    def _header(self, node: For, element) -> None:
        for s in node.header:
            op = getattr(getattr(s, "value", None), "op", "") if isinstance(s, ir.Assign) else ""
            if op == "pair_first":
                self.env[s.target.name] = element
            elif op not in ("iternext", "pair_second"):
                self.statement(s)

    def _ordered(self, node: For, target: Iteration) -> Outcome:
        e, (d,) = self.e, target.domains
        frame = self._frame("for", node)

        def element(region):
            v = region.params[0]
            e.bind_coordinate(v, d)
            return (self._ordinal(v, d), v) if target.kind == "enumerate" else v
        out, slots, results = self._body(node, frame, [Scalar("index")], element, (d.value,), "for")
        self.env.update(results)
        if slots is None:
            return self.run(node.after)
        direct = [n for n in node.after if isinstance(n, Goto) and [n.label] == frame.exits]
        if node.after == direct and all(frame.shared.get(u) == v for u, v in direct[0].pairs):
            return self.run(node.after)
        return self.branch(slots.pop("left"), lambda: self._after_exit(frame, slots), lambda: self.run(node.after))

    def first_member(self, target):
        """(the first element, whether there is one): all that a loop does whose every path leaves it."""
        e = self.e
        if isinstance(target, Dom):
            target = Iteration("domain", (target,))
        if target.kind in ("parallel", "product"):
            e.fail(LanguageError, "every path leaves this parallel loop: its points have no order", "an ordered for may break")
        (d,) = target.domains
        some = e.one("gt", (e.value(Idx(d.extent)), e.const(0, "index")), Scalar("bool"))
        first = e.index(d.begin)
        return (e.const(0, "index"), first) if target.kind == "enumerate" else first, some

    def _ordinal(self, v: Value, d: Dom):
        e = self.e
        k = e.index_arithmetic("sub", v, d.begin)
        step = e.extent(d.step)
        return k if step.const == 1 else e.one("floordiv", (e.index(k), e.index(d.step)), Scalar("index"))

    def repeat(self, node: Loop) -> Outcome:
        for p in node.phis:
            if is_static(self.types[p]):
                self.env[p] = static(self.types[p])
        frame, rotated = self._frame("loop", node), self._rotated(node)
        _, slots, results = self._body(node, frame, [], lambda region: None, (), "loop")
        if rotated:
            self.e.b.kernel.rotated.add(self.e.b.region.ops[-1].regions[0])
        if slots is None:
            self.e.fail(LanguageError, "this loop never ends", "a while needs a condition or a break")
        self.env.update(results)
        return self._after_exit(frame, slots)

    def _rotated(self, node: Loop) -> bool:
        """CPython tests the condition of a ``while`` at the end of its body once more, and goes back to the first test after a
        ``continue``: two loops of the bytecode are one of the source. Their tests stand in one line and leave both."""
        outer = self.frames[-1]
        if outer.kind != "loop":
            return False
        blocks, around = self.typed.func_ir.blocks, self.loop_blocks(outer.label)
        test = blocks[outer.label].terminator
        tests = [blocks[b].terminator for b in self.loop_blocks(node.label)]
        return isinstance(test, ir.Branch) and any(isinstance(t, ir.Branch) and t.loc.line == test.loc.line and
                                                   not {t.truebr, t.falsebr} <= around for t in tests)

    def _after_exit(self, frame: Frame, slots: dict) -> Outcome:
        """Continue where the loop was left to."""
        values = {**slots, **{u: self.env[p] for u, p in frame.shared.items()}}
        self.bind(values)
        payload = {k: v for k, v in values.items() if not isinstance(k, tuple) and k != "left"}

        def to(labels):
            if len(labels) == 1:
                return self.leave(labels[0], payload)
            flag = self.e.value(slots[("to", labels[0])], "bool")
            return self.branch(flag, lambda: self.leave(labels[0], payload), lambda: to(labels[1:]))
        return to(frame.exits)

    def _body(self, node, frame: Frame, lead, element, args, kind: str):
        """Build the loop operation. Returns the body's outcome, the exit slots (None when nothing leaves) and the carries."""
        e, loc = self.e, self.e.b.loc
        initial = [flatten(e, self.env[p], self.types[p]) for p in frame.phis]
        carried = [v for leaves in initial for v in leaves]
        types = [v.type for v in carried]
        region = e.b.block(lead + types)
        saved = self.env
        self.frames.append(frame)
        with e.inside(region) as scope:
            self.env = dict(saved)
            first = element(region)
            params = iter(region.params[len(lead):])
            for p, leaves in zip(frame.phis, initial):
                self.env[p] = unflatten(e, self.types[p], iter([next(params) for _ in leaves]))
            if isinstance(node, For):
                self._header(node, first)
            out = self.run(node.body)
            self.env = saved
        self.frames.pop()
        with e.inside(region, scope):
            yields = []
            position = 0
            for p in frame.phis:
                after = out.payload[("next", p)]
                current = region.params[len(lead) + position:]
                for v in flatten(e, after, self.types[p]) if after is not UNDEFINED else current[:len(initial[frame.phis.index(p)])]:
                    e.b.loc = v_loc(region, v) or loc
                    yields.append(fit(e, v, types[position], f"the carry {self.plain(p)}"))
                    position += 1
            e.b.loc = loc
            leave = out.payload[("leave",)]
            slots = {} if not (isinstance(leave, Lit) and not leave.value) else None
            slot_types, spans = [], []
            if slots is not None:
                for key, value in out.payload.items():
                    if key[0] == "slot":
                        t = self.type_of(key)
                        if value is UNDEFINED:
                            continue
                        if is_static(t):
                            slots[key[1]] = value
                            continue
                        leaves = flatten(e, value, t)
                        spans.append((key[1], t, len(leaves)))
                        slot_types += [v.type for v in leaves]
                        yields += leaves
                if kind == "for":
                    stop = e.value(leave, "bool")
                    yields = [stop, *yields, stop]
                    slot_types.append(Scalar("bool"))
                else:
                    again = Lit(False) if isinstance(leave, Lit) else e.negate(leave)
                    yields = [e.value(again, "bool"), *yields]
        region.params += tuple(e.b.fresh(t) for t in slot_types)
        region.yields = tuple(yields)
        initials = tuple(carried) + tuple(self._slot_start(t) for t in slot_types)
        attrs = {"breaks": True} if kind == "for" and slots is not None else {}
        results = iter(e.emit(kind, (*args, *initials), types + slot_types, (region,), **attrs))
        carries = {p: unflatten(e, self.types[p], iter([next(results) for _ in leaves])) for p, leaves in zip(frame.phis, initial)}
        if slots is not None:
            for key, t, n in spans:
                slots[key] = unflatten(e, t, iter([next(results) for _ in range(n)]))
            if kind == "for":
                slots["left"] = next(results)
        return out, slots, carries

    def _slot_start(self, t) -> Value:
        for extent in getattr(t, "shape", ()):
            for s in extent.symbols:
                if s.startswith("%") and not any(self.e.symbols[s] in scope.defined for scope in self.e.scopes):
                    self.e.fail(IntentShapeError, "a tensor whose extent is made inside a loop cannot leave it",
                                "reduce or store it inside")
        return dummy(self.e, t)


def v_loc(region: Region, v: Value):
    """Where a value was made in the region, None if elsewhere."""
    for op in region.ops:
        if v in op.results:
            return op.loc
    return None


def _base(name: str) -> str:
    return name.rsplit(".", 1)[0]


def _exits(nodes: list, inside: set, found: list) -> None:
    """Gotos and returns that leave the loop, as (label, pairs)."""
    for node in nodes:
        match node:
            case Goto() if node.label not in inside:
                found.append((node.label, node.pairs))
            case Return():
                found.append((RETURN, [(RETURN, node.name)]))
            case If():
                _exits(node.then, inside, found)
                _exits(node.orelse, inside, found)
            case Block():
                _exits(node.body, inside | {node.label}, found)
            case Loop():
                _exits(node.body, inside | {node.label}, found)
            case For():
                _exits(node.body, inside | {node.label}, found)
                _exits(node.after, inside, found)


