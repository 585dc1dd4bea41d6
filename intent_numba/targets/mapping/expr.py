"""Task program expressions as values: scalars where no lane differs, vectors of the current tile elsewhere."""
from __future__ import annotations

from ...kir.types import BITS
from ...task.program import Node
from ..llvm.values import REGISTER, Val
from . import memory
from .env import Env


COMPARISONS = {"eq", "ne", "lt", "le", "gt", "ge"}


def value(env: Env, root: Node) -> Val:
    """The value of an expression at the current point. Subexpressions are emitted once per scope."""
    v = env.known(id(root))
    if v is not None:
        return v
    stack = [root]
    while stack:                                             # explicit stack: unrolled kernels nest deeply
        n = stack[-1]
        if env.known(id(n)) is not None:
            stack.pop()
            continue
        missing = [a for a in _evaluated(env, n) if env.known(id(a)) is None]
        if missing:
            stack += reversed(missing)
            continue
        env.remember(id(n), _compute(env, n))
        stack.pop()
    return env.known(id(root))


def _evaluated(env: Env, n: Node):
    """The operands whose values are needed as they stand; coordinates of loads are analysed first."""
    if n.op == "load":
        return ()
    return n.args[:2] if n.op == "gload" else n.args


def _compute(env: Env, n: Node) -> Val:
    o = env.o
    match n.op:
        case "axis":
            x = env.axes[n.attr]
            return o.add(env.wide(x), o.iota(env.lanes)) if env.tile and env.tile.axis == n.attr else x
        case "const":
            return o.const(n.attr, n.dt)
        case "extent":
            return env.extent(n.attr)
        case "param":
            return _parameter(env, n)
        case "load":
            return memory.load(env, n)
        case "gload":
            return memory.guarded_load(env, n, lambda a: env.known(id(a)))
        case "call":
            return _call(env, n)
    args = [env.known(id(a)) for a in n.args]
    if any(a.lanes == env.lanes for a in args):
        args = [env.wide(a) for a in args]
    if args[0].dt == "bool" and n.op in ("and", "or", "xor", "not"):
        return env.logic(n.op, *args)
    if args[0].dt == "bool" and n.op in ("eq", "ne"):
        different = env.logic("xor", *args)
        return different if n.op == "ne" else env.logic("not", different)
    x = o.elementwise(n.op, args, n.dt, n.attr)
    if x.lanes and n.op in COMPARISONS and BITS[args[0].dt] >= 32:
        env.note_word(x)
    return x


def _parameter(env: Env, n: Node) -> Val:
    """A scalar parameter, from its slot."""
    return env.o.load(n.dt, env.slot_pointer(env.layout.scalars[n.attr]))


def _call(env: Env, n: Node) -> Val:
    """An extern scalar function, lane by lane."""
    o, args = env.o, [env.known(id(a)) for a in n.args]
    callee = env.fn.module.declare(REGISTER[n.dt], n.attr, ", ".join(REGISTER[a.dt] for a in args))

    def one(values):
        return Val(n.dt, env.fn.call(REGISTER[n.dt], callee, [(v.type, v.text) for v in values]))
    if not any(a.lanes for a in args):
        return one(args)
    lanes = max(a.lanes for a in args)
    args = [o.splat(a, lanes) for a in args]
    result = Val(n.dt, "poison", lanes)
    for lane in range(lanes):
        result = o.insert(result, one([o.extract(a, lane) for a in args]), lane)
    return result


# --- hoisting --------------------------------------------------------------------------------------------------------

def hoist(env: Env, roots, written: frozenset[str]) -> None:
    """Compute now what the roots need and what the axes bound so far determine. ``written``: resources that change before the
    roots are evaluated. The caller knows that the roots will be evaluated at least once."""
    bound, seen = env.axes.keys(), set()
    stack = list(roots)
    while stack:
        n = stack.pop()
        if id(n) in seen or n.op == "const" or env.known(id(n)) is not None:
            continue
        seen.add(id(n))
        if _fixed(env, n, bound, written):
            x = value(env, n)
            if env.lanes and not x.lanes:
                env.wide(x)
            continue
        if n.op in ("load", "gload") and n.attr in env.storage:
            st = env.storage[n.attr]
            coords = n.args[2:] if n.op == "gload" else n.args
            for c, s in zip(coords[st.skip:], st.strides):
                if _fixed(env, c, bound, written) and not env.varies(c):
                    memory.term(env, c, s)
        stack += n.args


def _fixed(env: Env, n: Node, bound, written: frozenset[str]) -> bool:
    return env.node_axes(n) <= bound and not (reads(env, n) & written)


def reads(env: Env, root: Node) -> frozenset[str]:
    """Resources an expression reads, cells in extents included."""
    memo = env.reads_memo
    stack = [root]
    while stack:
        n = stack[-1]
        if id(n) in memo:
            stack.pop()
            continue
        open_ = [a for a in n.args if id(a) not in memo]
        if open_:
            stack += open_
            continue
        own = frozenset()
        if n.op in ("load", "gload"):
            own = frozenset({n.attr})
        elif n.op == "extent":
            own = frozenset(t for s in n.attr.symbols if s.startswith("%") for t in (s, s[1:]))
        memo[id(n)] = own.union(*(memo[id(a)] for a in n.args))
        stack.pop()
    return memo[id(root)]
