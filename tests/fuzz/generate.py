"""Random legal programs as Python source: tensor expressions, and scalar programs with control flow.

A generator takes any object with the interface of ``random.Random`` (Hypothesis supplies one that it can shrink) and gives
text. Programs are legal by construction: dtypes and shapes are tracked while the text grows, divisors are never zero, shift
amounts are in range, float to integer conversions saturate, data-dependent reads are guarded.
"""
from __future__ import annotations

from dataclasses import dataclass, field

FLOATS = ("f32", "f32", "f32", "f64", "f16", "bf16")
INTEGERS = ("i32", "i8", "i64", "u8", "u16", "u32", "u64", "i16")
STORAGE = FLOATS + INTEGERS + ("bool", "f8e5m2", "f8e4m3fn")
WIDTH = {"i8": 8, "i16": 16, "i32": 32, "i64": 64, "u8": 8, "u16": 16, "u32": 32, "u64": 64, "index": 64}
SUM = {"i8": "i32", "i16": "i32", "u8": "u32", "u16": "u32", "f16": "f32", "bf16": "f32", "f8e5m2": "f32", "f8e4m3fn": "f32"}
CHEAP = ("sqrt", "floor", "ceil", "abs")
COSTLY = ("exp", "exp2", "log", "log1p", "sin", "cos", "tanh", "rsqrt", "erf", "sigmoid", "asin", "erfc", "i0", "lgamma")
IMPORTS = "import intent_numba as intent\nimport intent_numba.language as I\n\n\n"
COMBINE = "@intent.fn\ndef both(a, b):\n    return a[0] + b[0], I.maximum(a[1], b[1])\n\n\n"
FLOAT_LITERALS = ("0.5", "-1.25", "2.0", "0.0", "3.0", "-0.75", "1.0")


def is_float(dt):
    return dt[0] == "f" or dt == "bf16"


@dataclass(frozen=True)
class Value:
    """A name in the program; ``shape`` holds extent texts: M, N, 1, 2 or products. A scalar has rank None."""
    name: str
    dt: str
    shape: tuple | None

    @property
    def rank(self):
        return len(self.shape or ())


@dataclass
class Program:
    """Source text with its parameters in order: ("in" | "inout" | "out", name, dtype, shape) or ("scalar", name, dtype, None)."""
    source: str = ""
    parameters: list = field(default_factory=list)


class Tensors:
    """Grows one program of tensor expressions."""

    def __init__(self, rnd):
        self.rnd = rnd
        self.lines: list[str] = []
        self.values: list[Value] = []
        self.parameters: list = []
        self.used: set[str] = set()
        self.costly = 2

    def pick(self, options):
        return self.rnd.choice(list(options))

    def find(self, test=lambda v: True):
        found = [v for v in self.values if test(v)]
        if not found:
            return None
        v = self.pick(found[-6:] if self.rnd.random() < 0.7 else found)
        self.used.add(v.name)
        return v

    def let(self, text, dt, shape) -> Value:
        v = Value(f"v{len(self.values)}", dt, shape)
        self.lines.append(f"{v.name} = {text}")
        self.values.append(v)
        return v

    # ---- parameters

    def inputs(self):
        shapes = [("M", "N"), ("M", "N"), ("M",), ("N",), ("N", "M"), ("M", "N", "2"), ()]
        first = self.pick(FLOATS + INTEGERS)
        self.add_input("in", first, ("M", "N"))
        for _ in range(self.rnd.randint(1, 3)):
            dt = first if self.rnd.random() < 0.6 else self.pick(STORAGE)
            self.add_input(self.pick(["in", "in", "inout"]), dt, self.pick(shapes))
        if self.rnd.random() < 0.5:
            dt = self.pick([first, "i32", "f32", "bool"])
            name = f"s{len(self.parameters)}"
            self.parameters.append(("scalar", name, dt, None))
            self.values.append(Value(name, dt, None))

    def add_input(self, access, dt, shape):
        name = f"a{len(self.parameters)}"
        self.parameters.append((access, name, dt, shape))
        self.let(f"{name}[{', '.join(':' * len(shape)) or '()'}]", dt, shape or None)

    # ---- one operation

    def step(self):
        kinds = [self.unary, self.binary, self.binary, self.binary, self.compare, self.select, self.cast, self.reduce, self.reduce,
                 self.scan, self.shape,
                 self.shape, self.gather, self.product, self.generic, self.update, self.update, self.loop, self.loop,
                 self.branch, self.reverse, self.buffer]
        self.pick(kinds)()

    def unary(self):
        v = self.find()
        if v.dt == "bool":
            return self.let(f"~{v.name}", "bool", v.shape)
        if not is_float(v.dt):
            return self.let(self.pick([f"-{v.name}", f"~{v.name}", f"I.abs({v.name})", f"I.clamp({v.name}, 3, 100)"]), v.dt, v.shape)
        if self.costly and self.rnd.random() < 0.4:
            self.costly -= 1
            return self.let(f"I.{self.pick(COSTLY)}({v.name})", v.dt, v.shape)
        return self.let(self.pick([f"-{v.name}", f"I.relu({v.name})", f"I.{self.pick(CHEAP)}({v.name})"]), v.dt, v.shape)

    def partner(self, v):
        """A text of v's dtype that broadcasts with v, and the shape of the two together."""
        mate = self.find(lambda w: w.dt == v.dt and broadcast(v.shape, w.shape) is not False)
        if mate is None or (v.dt != "bool" and self.rnd.random() < 0.2):
            if v.dt == "bool":
                return v.name, v.shape
            return (self.pick(FLOAT_LITERALS) if is_float(v.dt) else self.pick(["1", "3", "7", "100"])), v.shape
        return mate.name, broadcast(v.shape, mate.shape)

    def binary(self):
        v = self.find()
        w, shape = self.partner(v)
        a, b = (v.name, w) if self.rnd.random() < 0.5 else (w, v.name)
        if v.dt == "bool":
            return self.let(f"{a} {self.pick('&|^')} {b}", "bool", shape)
        if is_float(v.dt):
            forms = [f"{a} + {b}", f"{a} - {b}", f"{a} * {b}", f"{a} / {b}", f"I.maximum({a}, {b})", f"I.minimum({a}, {b})",
                     f"I.maximum_num({a}, {b})",
                     f"I.minimum_num({a}, {b})", f"I.fma({a}, {b}, {v.name})",
                     f"{a} * {v.name} + {b}", f"{b} - {a} * {v.name}", f"{v.name} * {v.name} - {b}"]
            return self.let(self.pick(forms), v.dt, shape)
        width = WIDTH[v.dt]
        positive = f"(({b} & 7) | 1)"
        negative = f"(({b} & 6) - 8)" if v.dt[0] == "i" else positive
        forms = [f"{a} + {b}", f"{a} - {b}", f"{a} * {b}", f"{a} & {b}", f"{a} | {b}", f"{a} ^ {b}", f"I.maximum({a}, {b})",
                 f"I.minimum({a}, {b})",
                 f"{v.name} << ({w} & {width - 1})", f"{v.name} >> ({w} & {width - 1})"]
        if not w[0].isdigit():
            forms += [f"{a} // {positive}", f"{a} % {positive}", f"{a} // {negative}", f"{a} % {negative}"]
        return self.let(self.pick(forms), v.dt, shape)

    def compare(self):
        v = self.find()
        w, shape = self.partner(v)
        operators = ["==", "!="] if v.dt == "bool" else ["<", "<=", ">", ">=", "==", "!="]
        return self.let(f"{v.name} {self.pick(operators)} {w}", "bool", shape)

    def select(self):
        v = self.find()
        w, shape = self.partner(v)
        c = self.find(lambda u: u.dt == "bool" and broadcast(u.shape, shape) is not False)
        if c is not None:
            self.let(f"I.select({c.name}, {v.name}, {w})", v.dt, broadcast(c.shape, shape))

    def cast(self):
        v = self.find()
        dt = self.pick(STORAGE)
        if dt == v.dt or (v.dt == "bool" and dt.startswith("f8")):
            return None
        saturate = v.dt != "bool" and dt != "bool" and (dt == "f8e4m3fn" or is_float(v.dt) and not is_float(dt) or self.rnd.random() < 0.15)
        return self.let(f"I.{'saturating_cast' if saturate else 'cast'}({v.name}, I.{dt})", dt, v.shape)

    def reduce(self):
        v = self.find(lambda v: v.rank)
        if v is None:
            return
        axis = self.rnd.randrange(v.rank)
        rest = v.shape[:axis] + v.shape[axis + 1:] or None
        shown = axis if self.rnd.random() < 0.7 else axis - v.rank
        if v.dt == "bool":
            self.let(f"I.reduce.{self.pick(['any', 'all'])}({v.name}, axis={shown})", "bool", rest)
            return
        kind = self.pick(["sum", "sum", "max", "min", "prod", "arg"])
        if kind == "arg":
            n = len(self.values)
            self.lines.append(f"v{n}, i{n} = I.arg_reduce.{self.pick(['max', 'min'])}({v.name}, axis={shown})")
            self.values.append(Value(f"v{n}", v.dt, rest))
            self.let(f"I.cast(i{n}, I.i64)", "i64", rest)
            return
        self.let(f"I.reduce.{kind}({v.name}, axis={shown})", SUM.get(v.dt, v.dt) if kind in ("sum", "prod") else v.dt, rest)

    def direction(self):
        return f"inclusive={self.rnd.random() < 0.6}, reverse={self.rnd.random() < 0.4}"

    def scan(self):
        v = self.find(lambda v: v.rank and v.dt != "bool")
        if v is None:
            return
        axis = self.rnd.randrange(v.rank)
        flags = self.direction()
        if self.rnd.random() < 0.6:
            self.let(f"I.cumsum({v.name}, axis={axis}, {flags})", SUM.get(v.dt, v.dt), v.shape)
        else:
            self.let(f"I.cummax({v.name}, axis={axis}, {flags})", v.dt, v.shape)

    def shape(self):
        kind = self.pick(["transpose", "expand", "flatten", "unflatten", "join", "broadcast", "fold", "pick"])
        if kind == "transpose":
            v = self.find(lambda v: v.rank >= 2)
            if v is not None:
                order = list(range(v.rank))
                self.rnd.shuffle(order)
                self.let(f"I.permute({v.name}, ({', '.join(map(str, order))}))", v.dt, tuple(v.shape[i] for i in order))
        elif kind == "expand":
            v = self.find(lambda v: v.rank in (1, 2))
            if v is not None:
                axis = self.rnd.randint(0, v.rank)
                index = [":"] * v.rank
                index.insert(axis, "None")
                self.let(f"{v.name}[{', '.join(index)}]", v.dt, (*v.shape[:axis], "1", *v.shape[axis:]))
        elif kind == "flatten":
            v = self.find(lambda v: v.shape in (("M", "N"), ("N", "M")))
            if v is not None:
                self.let(f"I.reshape({v.name}, (M * N,))", v.dt, ("M * N",))
        elif kind == "unflatten":
            v = self.find(lambda v: v.shape == ("M * N",))
            if v is not None:
                shape = self.pick([("M", "N"), ("N", "M")])
                self.let(f"I.reshape({v.name}, ({', '.join(shape)}))", v.dt, shape)
        elif kind == "join":
            v = self.find(lambda v: v.rank in (1, 2) and "2" not in v.shape)
            w = v and self.find(lambda w: w.dt == v.dt and w.shape == v.shape)
            if w is not None:
                self.let(f"I.join({v.name}, {w.name})", v.dt, (*v.shape, "2"))
        elif kind == "broadcast":
            v = self.find(lambda v: v.dt != "bool" and broadcast(v.shape, ("M", "N")) == ("M", "N"))
            if v is not None:
                self.let(f"{v.name} + I.zeros((M, N), I.{v.dt})", v.dt, ("M", "N"))
        elif kind == "fold":
            v = self.find(lambda v: v.shape in (("M", "2"), ("N", "2")))
            if v is not None:
                self.let(f"I.reshape(I.permute({v.name}, (1, 0)), (2 * {v.shape[0]},))", v.dt, (f"2 * {v.shape[0]}",))
        else:
            v = self.find(lambda v: v.rank and v.shape[-1] == "2")
            if v is not None:
                self.let(f"{v.name}[{', '.join([':'] * (v.rank - 1) + [self.pick('01')])}]", v.dt, v.shape[:-1] or None)

    def gather(self):
        v = self.find(lambda v: v.shape in (("M",), ("N",), ("M", "N"), ("N", "M")) and v.dt != "bool")
        k = self.find(lambda k: k.dt in WIDTH and k.rank in (1, 2))
        if v is None or k is None:
            return
        fill = "0.5" if is_float(v.dt) else "7"
        n = len(self.values)
        self.lines.append(f"i{n} = I.cast({k.name}, I.i64) & 63")
        valid = f"i{n} < I.cast({v.shape[0]}, I.i64)"
        if v.rank == 1:
            self.let(f"I.gather({v.name}, index=(i{n},), valid={valid}, fill={fill})", v.dt, k.shape)
        else:
            valid = f"({valid}) & (i{n} < I.cast({v.shape[1]}, I.i64))"
            self.let(f"I.gather({v.name}, index=(i{n}, i{n}), valid={valid}, fill={fill})", v.dt, k.shape)

    def reverse(self):
        """A tensor read backwards along one axis, by coordinates."""
        v = self.find(lambda v: v.rank in (1, 2) and v.dt != "bool")
        if v is not None:
            axis = self.rnd.randrange(v.rank)
            index = [":"] * v.rank
            index[axis] = f"{v.shape[axis]} - 1 - I.indices(I.domain(0, {v.shape[axis]}))"
            self.let(f"{v.name}[{', '.join(index)}]", v.dt, v.shape)

    def buffer(self):
        """A buffer that holds a tensor, changed by rows in order or as a whole, and read again."""
        v = self.find(lambda v: v.rank in (1, 2) and v.dt not in ("bool", "f8e4m3fn", "f8e5m2") and "*" not in "".join(v.shape))
        if v is None:
            return
        n = len(self.values)
        index = ", ".join(":" * v.rank)
        self.lines.append(f"b{n} = I.buffer(({', '.join(v.shape)},), I.{v.dt}, init={v.name})")
        w = self.find(lambda w: w.dt == v.dt and w.shape == v.shape)
        step = self.pick(["whole", "rows", "twice"])
        if step == "rows":
            row = ", ".join(["k", *[":"] * (v.rank - 1)])
            other = self.pick([row, row.replace("k", f"{v.shape[0]} - 1 - k")])
            self.lines += [f"for k in range({v.shape[0]}):", f"    b{n}[{row}] = b{n}[{other}] + {w.name}[{row}]"]
        else:
            self.let(f"b{n}[{index}]", v.dt, v.shape)
            self.lines.append(f"b{n}[{index}] = {w.name} + b{n}[{index}]")
        self.let(f"b{n}[{index}]", v.dt, v.shape)

    def product(self):
        a = self.find(lambda v: v.rank == 2 and v.dt != "bool" and not v.dt.startswith("f8"))
        b = a and self.find(lambda v: v.rank == 2 and v.dt == a.dt)
        if not b:
            return
        acc = SUM.get(a.dt, a.dt)
        for ta, tb in ((False, False), (True, False), (False, True), (True, True)):
            m, k = a.shape[::-1] if ta else a.shape
            k2, n = b.shape[::-1] if tb else b.shape
            if k == k2:
                self.let(f"I.matmul({a.name}, {b.name}, acc_dtype=I.{acc}, transpose_lhs={ta}, transpose_rhs={tb})", acc, (m, n))
                break
        v = self.find(lambda v: v.dt == a.dt and v.rank == 1)
        if v is not None and v.shape[0] in a.shape:
            flip = v.shape[0] != a.shape[1]
            self.let(f"I.matvec({a.name}, {v.name}, acc_dtype=I.{acc}, transpose={flip})", acc, (a.shape[1 if flip else 0],))
            if self.rnd.random() < 0.3:
                self.let(f"I.dot({v.name}, {v.name}, acc_dtype=I.{acc}) + I.zeros((1,), I.{acc})", acc, ("1",))
            if self.rnd.random() < 0.3:
                self.let(f"I.outer({v.name}, {v.name})", v.dt, (v.shape[0], v.shape[0]))

    def generic(self):
        v = self.find(lambda v: v.rank and v.dt in ("f32", "i32", "f64", "u8", "i64", "f16"))
        if v is None:
            return
        axis = self.rnd.randrange(v.rank)
        zero = f"I.cast(0, I.{v.dt})"
        n = len(self.values)
        pair, shape = (f"({v.name}, {v.name})", v.shape)
        if self.rnd.random() < 0.5:
            text, shape = f"I.reduce({pair}, axis={axis}, identity=({zero}, {zero}), combine=both)", shape[:axis] + shape[axis + 1:] or None
        else:
            text = f"I.scan({pair}, axis={axis}, identity=({zero}, {zero}), combine=both, " + self.direction() + ")"
        self.lines.append(f"v{n}, w{n} = {text}")
        self.values += [Value(f"v{n}", v.dt, shape), Value(f"w{n}", v.dt, shape)]

    def update(self):
        """A store to an InOut view in the middle of the program, and a read after it."""
        views = [p for p in self.parameters if p[0] == "inout"]
        if not views:
            return
        _, name, dt, shape = self.pick(views)
        v = self.find(lambda v: v.dt == dt and broadcast(v.shape, shape or None) == (shape or None))
        if shape and self.rnd.random() < 0.3:
            back = f"{shape[0]} - 1 - I.indices(I.domain(0, {shape[0]}))"
            v = self.let(f"{name}[{', '.join([back, *[':'] * (len(shape) - 1)])}]", dt, shape)
        if v is not None:
            index = ", ".join(":" * len(shape)) or "()"
            if len(shape) == 1 and v.shape == shape and self.rnd.random() < 0.3:
                self.lines.append(f"I.scatter_unique({name}, index=({shape[0]} - 1 - I.indices(I.domain(0, {shape[0]})),), value={v.name})")
            else:
                self.lines.append(f"{name}[{index}] = {v.name}")
            self.let(f"{name}[{index}]", dt, shape or None)

    def loop(self):
        """An ordered loop that carries a tensor over the rows of another."""
        v = self.find(lambda v: v.rank == 2 and v.dt in ("f32", "i32", "u8", "f64"))
        if v is None or self.rnd.random() < 0.5:
            return
        n = len(self.values)
        acc = f"v{n}"
        half = " * 0.5" if is_float(v.dt) else " ^ 5"
        if self.rnd.random() < 0.4:
            text = [f"{acc} = {v.name}", f"n{n} = I.cast(0, I.i64)", f"while n{n} < 4:", f"    {acc} = {acc}{half}", f"    n{n} = n{n} + 1"]
            s = self.find(lambda s: s.dt == "bool" and s.shape is None)
            if s is not None:
                text += [f"    if {s.name}:", "        break"]
            self.lines += [*text, f"    {acc} = {acc} + {v.name}"]
            self.values.append(Value(acc, v.dt, v.shape))
            return
        self.lines += [f"{acc} = I.zeros(({v.shape[1]},), I.{v.dt})", f"for k{n} in range({v.shape[0]}):",
                       f"    {acc} = {self.pick([f'({acc}{half}) + {v.name}[k{n}, :]', f'I.maximum({acc}, {v.name}[k{n}, :]){half}'])}"]
        self.values.append(Value(acc, v.dt, (v.shape[1],)))

    def branch(self):
        """A scalar condition that chooses between two values of one schema."""
        c = self.find(lambda v: v.dt == "bool" and v.shape is None)
        v = self.find()
        w = self.find(lambda w: w.dt == v.dt and w.shape == v.shape)
        if c is None or c is v:
            return
        n = len(self.values)
        self.lines += [f"if {c.name}:", f"    v{n} = {v.name}", "else:", f"    v{n} = {w.name}"]
        self.values.append(Value(f"v{n}", v.dt, v.shape))

    # ---- the whole

    def outputs(self):
        results = [v for v in self.values if v.name not in self.used] or self.values[-1:]
        for v in results[-5:]:
            shape = v.shape or ()
            if not any("*" in e for e in shape):
                self.add_output(v, shape)

    def add_output(self, v, shape):
        name = f"o{len(self.parameters)}"
        self.parameters.append(("out", name, v.dt, shape))
        self.lines.append(f"{name}[{', '.join(':' * len(shape)) or '()'}] = {v.name}")

    def body(self):
        return ["M, N = a0.shape", *self.lines]

    def program(self, steps) -> Program:
        self.inputs()
        for _ in range(steps):
            if sum(v.rank > 2 for v in self.values) < 4:
                self.step()
        self.outputs()
        signature = ", ".join(f"{name}: {parameter(access, dt, shape)}" for access, name, dt, shape in self.parameters)
        body = "\n    ".join(self.body())
        return Program(f"{IMPORTS}{COMBINE}@intent.kernel\ndef kernel({signature}):\n    {body}\n", self.parameters)


class Rows(Tensors):
    """The same expressions inside a parallel loop over the rows of the first input."""

    def inputs(self):
        first = self.pick(FLOATS + INTEGERS)
        self.add_input("in", first, ("M", "N"))
        for _ in range(self.rnd.randint(1, 3)):
            dt = first if self.rnd.random() < 0.6 else self.pick(STORAGE)
            shape = self.pick([("M", "N"), ("M",), ("N",), ("M", "2"), ("M", "N", "2")])
            self.add_input(self.pick(["in", "inout"]) if shape[0] == "M" else "in", dt, shape)
        if self.rnd.random() < 0.5:
            name, dt = f"s{len(self.parameters)}", self.pick([first, "i32", "f32", "bool"])
            self.parameters.append(("scalar", name, dt, None))
            self.values.append(Value(name, dt, None))

    @staticmethod
    def row(shape):
        """The index of one row of a parameter, and the row's shape."""
        rest = shape[1:] if shape[0] == "M" else shape
        return ", ".join((["r"] if shape[0] == "M" else []) + [":"] * len(rest)), rest or None

    def add_input(self, access, dt, shape):
        name = f"a{len(self.parameters)}"
        self.parameters.append((access, name, dt, shape))
        index, rest = self.row(shape)
        self.let(f"{name}[{index}]", dt, rest)

    def update(self):
        views = [p for p in self.parameters if p[0] == "inout"]
        if not views:
            return
        _, name, dt, shape = self.pick(views)
        index, rest = self.row(shape)
        v = self.find(lambda v: v.dt == dt and broadcast(v.shape, rest) == rest)
        if v is not None:
            self.lines.append(f"{name}[{index}] = {v.name}")
            self.let(f"{name}[{index}]", dt, rest)

    def add_output(self, v, shape):
        name = f"o{len(self.parameters)}"
        self.parameters.append(("out", name, v.dt, ("M", *shape)))
        self.lines.append(f"{name}[{', '.join(['r', *':' * len(shape)])}] = {v.name}")

    def body(self):
        return ["M, N = a0.shape", "for r in I.parallel(I.domain(0, M)):", *("    " + line for line in self.lines)]


class Ordered(Rows):
    """The rows in order: a row may read what the row before it stored, and a tensor is carried from row to row."""

    def inputs(self):
        super().inputs()
        dt = self.parameters[0][2]
        self.carry = Value("acc", dt, ("N",))
        if not dt.startswith("f8"):
            self.values.append(self.carry)
        for access, name, dt, shape in self.parameters:
            if access == "inout" and shape == ("M", "N"):
                fill = "0.5" if is_float(dt) else "False" if dt == "bool" else "7"
                self.let(f"I.gather({name}, index=(r - 1, I.indices(I.domain(0, N))), valid=r > 0, fill={fill})", dt, ("N",))

    def body(self):
        inner = ["M, N = a0.shape", f"acc = I.zeros((N,), I.{self.carry.dt})", "for r in I.domain(0, M):",
                 *("    " + line for line in self.lines)]
        last = [v for v in self.values if v.dt == self.carry.dt and v.shape == ("N",) and v is not self.carry]
        return [*inner, f"    acc = {last[-1].name}"]


def parameter(access, dt, shape) -> str:
    """The annotation of a parameter."""
    if access == "scalar":
        return f"I.{dt}"
    extents = "".join(f"{e if e.isdigit() else repr(e)}, " for e in shape)
    return f"I.{ {'in': 'In', 'out': 'Out', 'inout': 'InOut'}[access] }[I.{dt}, ({extents})]"


def broadcast(a, b):
    """The common shape, or False; scalars (None) broadcast with everything."""
    if a is None or b is None:
        return b if a is None else a
    rank = max(len(a), len(b))
    a, b = ("1",) * (rank - len(a)) + a, ("1",) * (rank - len(b)) + b
    out = []
    for x, y in zip(a, b):
        if x != y and "1" not in (x, y):
            return False
        out.append(y if x == "1" else x)
    return tuple(out)


class Scalars:
    """Grows one scalar program with control flow over small non-negative integers; it means the same to Python itself."""

    def __init__(self, rnd):
        self.rnd = rnd
        self.depth = 0
        self.loops = 0

    def expression(self, names, depth=0):
        r = self.rnd.random()
        if depth > 2 or r < 0.35:
            return self.rnd.choice([*names, *names, str(self.rnd.randint(0, 9)), "x[i]"])
        if r < 0.45:
            return f"b[{self.expression(names, 3)} & 7]"
        if r < 0.55:
            return f"({self.expression(names, depth + 1)} if {self.condition(names, depth + 1)} else {self.expression(names, depth + 1)})"
        a, b = self.expression(names, depth + 1), self.expression(names, depth + 1)
        return self.rnd.choice([f"(({a} + {b}) & 1023)", f"(({a} * {b}) & 1023)", f"({a} ^ {b})", f"({a} // (({b} & 3) + 1))",
                                f"({a} % (({b} & 7) + 1))",
                                f"I.maximum({a}, {self.rnd.choice(names)})", f"({a} | {b})"])

    def condition(self, names, depth=0):
        r = self.rnd.random()
        # One side holds a run-time value, so that no comparison is between two literals.
        a, b = self.rnd.choice(names), self.expression(names, 2)
        if depth > 1 or r < 0.7:
            return f"{a} {self.rnd.choice(['<', '>', '==', '!=', '<=', '>='])} {b}"
        inner = self.condition(names, depth + 1), self.condition(names, depth + 1)
        return self.rnd.choice([f"({inner[0]} and {inner[1]})", f"({inner[0]} or {inner[1]})", f"(not {inner[0]})",
                                f"({a} < {b} <= {self.rnd.choice(names)})"])

    def assignment(self, names) -> str:
        if self.rnd.random() < 0.2:
            return f"b[{self.expression(names, 2)} & 7] = I.cast({self.expression(names, 1)}, I.i64)"
        return f"{self.rnd.choice(names)} = I.cast({self.expression(names)}, I.i64)"

    def bound(self, names) -> str:
        return self.rnd.choice(["3", "5", f"{self.rnd.choice(names)} & 3", "1, 7, 2"])

    def after_loop(self, names, k) -> str:
        return f"{self.rnd.choice(names)} = I.cast({k}, I.i64) + {self.rnd.choice(names)}"

    def block(self, names, indent, looping, budget):
        pad = "    " * indent
        lines = []
        for _ in range(self.rnd.randint(1, 3)):
            r = self.rnd.random()
            if r < 0.5 or budget <= 0 or indent > 5:
                lines.append(pad + self.assignment(names))
            elif r < 0.7:
                lines.append(f"{pad}if {self.condition(names)}:")
                lines += self.block(names, indent + 1, looping, budget - 1)
                if self.rnd.random() < 0.3:
                    lines.append(f"{pad}elif {self.condition(names)}:")
                    lines += self.block(names, indent + 1, looping, budget - 1)
                lines += self.otherwise(names, indent, looping, budget - 1, 0.5)
            elif r < 0.8 and looping:
                lines.append(f"{pad}if {self.condition(names)}:")
                lines.append(f"{pad}    {self.rnd.choice(['break', 'continue'])}")
            elif r < 0.92:
                self.loops += 1
                lines.append(f"{pad}for k{self.loops} in range({self.bound(names)}):")
                k = f"k{self.loops}"
                lines += self.block(names, indent + 1, True, budget - 2)
                if self.rnd.random() < 0.3:
                    lines.append(f"{pad}    {self.after_loop(names, k)}")
                lines += self.otherwise(names, indent, looping, budget - 2, 0.3)
            else:
                self.loops += 1
                w = f"w{self.loops}"
                lines += [f"{pad}{w} = I.cast({self.rnd.randint(1, 6)}, I.i64)", f"{pad}while {w} > 0:", f"{pad}    {w} = {w} - 1"]
                lines += self.block(names, indent + 1, True, budget - 2)
                lines += self.otherwise(names, indent, looping, budget - 2, 0.3)
        return lines

    def otherwise(self, names, indent, looping, budget, chance):
        return ["    " * indent + "else:", *self.block(names, indent + 1, looping, budget)] if self.rnd.random() < chance else []

    def program(self, budget) -> str:
        names = ["p", "q", "r"]
        body = ["    for i in I.parallel(I.domain(0, x.shape[0])):", "        b = I.buffer((8,), I.i64, init=0)", "        p = x[i]",
                "        q = I.cast(i, I.i64)", "        r = I.cast(3, I.i64)", *self.block(names, 2, False, budget),
                *self.block(names, 2, False, budget)]
        if self.rnd.random() < 0.3:
            body += [f"        if {self.condition(names)}:", "            y[i, 0] = -1", "            continue"]
        body += [f"        y[i, {j}] = {n}" for j, n in enumerate(names)] + ["        y[i, 3] = b[q & 7]"]
        text = "\n".join(body)
        return f'{IMPORTS}@intent.kernel\ndef kernel(x: I.In[I.i64, ("N",)], y: I.Out[I.i64, ("N", 4)]):\n{text}\n'


class TypedScalars(Scalars):
    """The same control flow over one variable of each of several dtypes, with wrapping integers and rounding floats."""

    DTYPES = {"p": "i32", "q": "u8", "r": "i64", "f": "f32", "g": "f64", "h": "f16", "s": "i8", "t": "u32", "c": "bool"}

    def of(self, dt, depth=0):
        """An expression of this dtype."""
        names = [n for n, d in self.DTYPES.items() if d == dt]
        r = self.rnd.random()
        if depth > 2 or r < 0.3:
            return self.rnd.choice(names)
        if r < 0.4:
            return f"({self.of(dt, depth + 1)} if {self.condition(None, depth + 1)} else {self.of(dt, depth + 1)})"
        if r < 0.5:
            return f"b_{dt}[r & 3]" if dt in ("i32", "f32") else names[0]
        if r < 0.65:
            other = self.rnd.choice([d for d in self.DTYPES.values() if d != dt])
            narrow = dt in WIDTH and is_float(other)
            return f"I.{'saturating_cast' if narrow else 'cast'}({self.of(other, depth + 1)}, I.{dt})"
        a, b = self.of(dt, depth + 1), self.of(dt, depth + 1)
        if dt == "bool":
            return self.rnd.choice([f"({a} & {b})", f"({a} ^ {b})", f"(~{a})", self.condition(None, depth + 1)])
        if is_float(dt):
            return self.rnd.choice([f"({a} + {b})", f"({a} - {b} * {a})", f"({a} * {b} + {names[0]})", f"({a} / {b})", f"I.sqrt({a})",
                                    f"I.minimum({a}, {b})",
                                    f"I.fma({a}, {b}, {names[0]})", f"(-{a})", f"I.floor({a} * 0.5)", f"I.tanh({a})"])
        return self.rnd.choice([f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} ^ {b})", f"({a} // (({b} & 7) | 1))",
                                f"({a} % (({b} & 7) | 1))",
                                f"({a} << ({b} & 7))", f"({a} >> ({b} & 7))", f"I.maximum({a}, {b})", f"(~{a})", f"(-{a})", f"I.abs({a})"])

    def condition(self, names, depth=0):
        dt = self.rnd.choice([d for d in self.DTYPES.values() if d != "bool"])
        if depth > 1 or self.rnd.random() < 0.7:
            return f"({self.of(dt, 2)} {self.rnd.choice(['<', '>', '==', '!=', '<=', '>='])} {self.of(dt, 2)})"
        a, b = self.condition(names, depth + 1), self.condition(names, depth + 1)
        return self.rnd.choice([f"({a} and {b})", f"({a} or {b})", f"(not {a})", "c"])

    def assignment(self, names) -> str:
        if self.rnd.random() < 0.2:
            dt = self.rnd.choice(["i32", "f32"])
            return f"b_{dt}[r & 3] = {self.of(dt, 1)}"
        name, dt = self.rnd.choice(list(self.DTYPES.items()))
        return f"{name} = {self.of(dt)}"

    def bound(self, names) -> str:
        return self.rnd.choice(["3", "q & 3", "r & 3", "1, 7, 2"])

    def after_loop(self, names, k) -> str:
        return f"p = p + I.cast({k}, I.i32)"

    def program(self, budget) -> Program:
        parameters = [("in", f"x{n}", dt, ("N",)) for n, dt in self.DTYPES.items()] + [("out", f"y{n}", dt, ("N",)) for n,
                                                                                       dt in self.DTYPES.items()]
        signature = ", ".join(f"{name}: {parameter(access, dt, shape)}" for access, name, dt, shape in parameters)
        body = ["for i in I.parallel(I.domain(0, xp.shape[0])):", "    b_i32 = I.buffer((4,), I.i32, init=1)",
                "    b_f32 = I.buffer((4,), I.f32, init=0.5)",
                *(f"    {n} = x{n}[i]" for n in self.DTYPES), *(line for _ in range(2) for line in self.block(None, 1, False, budget)),
                *(f"    y{n}[i] = {n}" for n in self.DTYPES)]
        text = "\n    ".join(body)
        return Program(f"{IMPORTS}@intent.kernel\ndef kernel({signature}):\n    {text}\n", parameters)
