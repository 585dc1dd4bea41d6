"""A plain executor of task programs, for tests: one task point after the other, each phase evaluated on the grid of its loops.

It says whether a lowering is right without any mapper. Bits come from the reference's structured operations.
"""
from __future__ import annotations

import itertools

import numpy as np

from intent_numba.reference import structured, updates
from intent_numba.reference.memory import Memory
from intent_numba.reference.operations import NUMPY, Typed, constant, evaluate
from intent_numba.task import Contract, For, Free, If, Loop, Phase, Program, Reduce, Scan, Stage, Store, Update


class Machine:
    def __init__(self, program: Program, args):
        self.p = program
        self.memory, self.scalars, self.cells = {}, {}, {}
        for q, a in zip(program.params, args):
            if q.kind == "view":
                self.memory[q.name] = Memory.view(q.name, q.dt, a)
            else:
                self.scalars[q.name] = constant(a, q.dt)
        self.symbols = {s: args[[q.name for q in program.params].index(v)].shape[i] for s, (v, i) in program.symbols.items()}
        self.res = {r.name: r for r in program.resources}
        self.tasks: dict = {}

    def extent(self, e) -> int:
        env = dict(self.symbols)
        for s in e.symbols:
            if s[0] == "%":
                env[s] = int(self.cells[s])
        return e.evaluate(env)

    def array(self, name):
        m = self.memory.get(name)
        if m is None:
            r = self.res[name]
            m = self.memory[name] = Memory.buffer(name, r.dt, tuple(map(self.extent, r.shape)))
        return m

    def run(self, stmts=None):
        for s in self.p.body if stmts is None else stmts:
            match s:
                case Stage():
                    shape = [self.extent(a.extent) for a in s.tasks]
                    outer_res = dict(self.res)
                    self.res.update((r.name, r) for r in s.resources)
                    for point in itertools.product(*map(range, shape)):
                        for r in s.resources:
                            if not r.axes:
                                self.memory.pop(r.name, None)
                            if r.kind == "cell":
                                self.cells.pop(r.name, None)
                        self.tasks = {a.name: np.int64(i) for a, i in zip(s.tasks, point)}
                        self.run(s.body)
                    for r in s.resources:
                        self.memory.pop(r.name, None)
                    self.tasks, self.res = {}, outer_res
                case Phase():
                    self.phase(s)
                case For():
                    begin, step = int(self.eval(s.begin, {})), int(self.eval(s.step, {}))
                    for k in range(self.extent(s.extent)):
                        self.cells[s.var] = np.int64(begin + k * step)
                        if s.stop:
                            self.cells[s.stop] = np.bool_(False)
                        self.run(s.body)
                        if s.stop and self.cells[s.stop]:
                            break
                case Loop():
                    while True:
                        self.run(s.body)
                        if not self.cells[s.again]:
                            break
                case If():
                    self.run(s.then if self.eval(s.cond, {}) else s.orelse)
                case Free():
                    self.memory.pop(s.resource, None)

    def phase(self, ph: Phase):
        sizes = [self.extent(a.extent) for a in ph.loops]
        n = len(sizes)
        grid = {a.name: np.arange(size).reshape([-1 if i == j else 1 for j in range(n)])
                for i, (a, size) in enumerate(zip(ph.loops, sizes))}
        full = lambda x: np.broadcast_to(x, sizes)      # noqa: E731
        axis = {a.name: i for i, a in enumerate(ph.loops)}
        for s in ph.sinks:
            match s:
                case Store():
                    valid = None if s.valid is None else full(self.eval(s.valid, grid))
                    self.store(s.resource, [full(self.eval(c, grid)) for c in s.coords], full(self.eval(s.value, grid)), valid)
                case Update():
                    self.update(s, full, grid)
                case Reduce():
                    i = axis[s.axis]
                    values = [full(self.eval(v, grid)) for v in s.values]
                    small = {a: g for a, g in grid.items() if a != s.axis}
                    drop = lambda x: np.broadcast_to(x, [1 if j == i else z for j, z in enumerate(sizes)]).squeeze(i)      # noqa: E731
                    dt = s.values[0].dt
                    if s.kind == "fma":
                        batch = tuple((j, j) for j in range(n) if j != i)
                        out = (structured.contract(*values, ((i, i),), batch, "tree", dt),)
                    elif s.kind == "generic":
                        ids = [drop(self.eval(v, small)) for v in s.identities]
                        out = structured.reduce_generic(values, i, ids, self.combine(s.combine))
                    elif s.kind.startswith("arg"):
                        out = structured.arg_reduce(values[0], i, s.kind[3:], dt)
                    else:
                        out = (structured.reduce(values[0], i, s.kind, dt),)
                    coords = [drop(self.eval(c, small)) for c in s.coords]
                    for t, v in zip(s.targets, out):
                        self.store(t, coords, np.asarray(v), None)
                case Scan():
                    i, dt = axis[s.axis], s.values[0].dt
                    values = [full(self.eval(v, grid)) for v in s.values]
                    if s.kind == "generic":
                        ids = [np.asarray(self.eval(v, {a: g for a, g in grid.items() if a != s.axis})) for v in s.identities]
                        ids = [np.broadcast_to(x, [1 if j == i else z for j, z in enumerate(sizes)]).squeeze(i) for x in ids]
                        out = structured.scan_generic(values, i, ids, self.combine(s.combine), s.inclusive, s.reverse)
                    else:
                        out = (structured.scan(values[0], i, s.kind, dt, s.inclusive, s.reverse),)
                    for t, v in zip(s.targets, out):
                        self.store(t, [full(self.eval(c, grid)) for c in s.coords], v, None)
                case Contract():
                    (k,) = s.axes
                    i = axis[k]
                    a, b = full(self.eval(s.a, grid)), full(self.eval(s.b, grid))
                    batch = tuple((j, j) for j in range(n) if j != i)
                    out = structured.contract(a, b, ((i, i),), batch, "chain", s.a.dt)
                    small = {x: g for x, g in grid.items() if x != k}
                    drop = lambda x: np.broadcast_to(x, [1 if j == i else z for j, z in enumerate(sizes)]).squeeze(i)      # noqa: E731
                    self.store(s.target, [drop(self.eval(c, small)) for c in s.coords], out, None)

    def update(self, s: Update, full, grid):
        valid = None if s.valid is None else full(self.eval(s.valid, grid))
        at = [full(self.eval(c, grid)).astype(np.int64) for c in s.at]
        memory, shape = self.array(s.resource), full(np.int64(0)).shape
        values = [updates.flat(full(self.eval(v, grid)), valid, shape) for v in s.values]
        success = np.zeros(shape if valid is None else int(valid.sum()), np.bool_).reshape(-1)
        match s.kind:
            case "load":
                step = lambda old, members: None      # noqa: E731
            case "store":
                step = updates.combined("exchange", memory.dt, values[0])
            case "compare_exchange":
                step = updates.exchanged_where_equal(memory.dt, *values, success)
            case "generic":
                step = lambda old, members: self.combine(s.combine)([old], [values[0][members]])[0]      # noqa: E731
            case _:
                step = updates.combined("prod" if s.kind == "mul" else s.kind, memory.dt, values[0])
        old = updates.update(memory, at, valid, step)
        done = np.zeros(shape, np.bool_)
        done[np.broadcast_to(True if valid is None else valid, shape)] = success
        for target, x in ((s.old, old), (s.success, done)):
            if target is not None:
                self.store(target, [full(self.eval(c, grid)) for c in s.coords], x, None)

    def combine(self, c):
        def call(left, right):
            env = {id(h): v for h, v in zip(c.left + c.right, list(left) + list(right))}
            return tuple(self.eval(r, {}, env) for r in c.results)
        return call

    def store(self, name, coords, value, valid):
        r = self.res.get(name)
        if r is not None and r.kind == "cell":
            self.cells[name] = np.asarray(value)[()]
            return
        self.array(name).store([np.asarray(c, np.int64) for c in coords], value, valid)

    def eval(self, n, grid, memo=None):
        memo = {} if memo is None else memo
        r = memo.get(id(n))
        if r is None:
            r = memo[id(n)] = self._eval(n, grid, memo)
        return r

    def _eval(self, n, grid, memo):
        match n.op:
            case "axis":
                return grid[n.attr] if n.attr in grid else self.tasks[n.attr]
            case "const":
                return constant(n.attr, n.dt)
            case "extent":
                return np.int64(self.extent(n.attr))
            case "param":
                return self.scalars[n.attr]
            case "load" | "gload":
                if n.attr in self.cells or n.attr in self.res and self.res[n.attr].kind == "cell":
                    return np.asarray(self.cells[n.attr])
                k = 0 if n.op == "load" else 2
                args = [np.asarray(self.eval(a, grid, memo)) for a in n.args]
                shape = np.broadcast_shapes(*[a.shape for a in args]) if args else ()
                args = [np.broadcast_to(a, shape) for a in args]
                return self.array(n.attr).load([a.astype(np.int64) for a in args[k:]], (args[0], args[1]) if k else None)
            case "call":
                return constant(self.p.externs[n.attr](*[self.eval(a, grid, memo)[()] for a in n.args]), n.dt)
        attrs = dict(n.attr or ())
        args = [Typed(a.dt, np.asarray(self.eval(a, grid, memo), NUMPY[a.dt])) for a in n.args]
        return evaluate(n.op, args, n.dt, attrs.get("approximate", False), attrs.get("ftz", False))


def run_program(program: Program, args) -> None:
    """Run a task program on NumPy arrays and scalars, in parameter order, in place."""
    with np.errstate(all="ignore"):
        Machine(program, args).run()
