"""Every name of the closed list (SUPPLEMENT section 2) runs on the target under test in every dtype that it is defined for.

Programs are put together from one statement a name, so that each dtype is a few kernels. What the names mean is tested elsewhere: here
compiled code must exist and have the bits of the reference.
"""
from __future__ import annotations

import re

import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from intent_numba.language.operation import Operation
from tests.support import check, integers, numpy_dtype, out

CLOSED = """
In Out InOut constraints Constexpr Enum bool index i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 f8e4m3fn f8e5m2 dtype e2m1 e4m3 e8m0
quant.q4_k quant.q8_k sparse.one_of_two sparse.two_of_four inf nan pi LOG2E domain indices parallel assume_in_bounds ragged members cast
saturating_cast bitcast full zeros reshape transpose permute join select mask record gather add subtract multiply fdiv clamp relu
logical_not maximum minimum maximum_num minimum_num abs exp exp2 log log1p lgamma sin asin cos tanh floor ceil sqrt rsqrt erf erfc i0
sigmoid fma floor_divide remainder power pow reduce reduce.sum reduce.max reduce.min reduce.prod reduce.any reduce.all arg_reduce.max
arg_reduce.min scan cumsum cummax region_fold region_scan dot matvec vecmat matmul outer contract scaled_matmul scaled_contract quantize
quantized_dot sparse_matmul sparse_contract histogram buffer store mutable_load scatter_unique scatter_reduce atomic.load atomic.store
atomic.exchange atomic.add atomic.max atomic.min atomic.and_ atomic.or_ atomic.xor atomic.compare_exchange random.bits random.uniform
""".split()

FLOATS = ("f16", "bf16", "f32", "f64", "f8e4m3fn", "f8e5m2")
INTEGERS = ("index", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
NUMERIC = INTEGERS + FLOATS
DTYPES = ("bool", *NUMERIC)
WIDTH = {"index": 64, "f8e4m3fn": 8, "f8e5m2": 8, "bf16": 16} | {dt: int(dt[1:]) for dt in DTYPES if dt[1:].isdigit()}
N = 37

SCOPE: dict = {}
exec("""
import intent_numba as intent
import intent_numba.language as I

@intent.fn
def keep(a, b):
    return b

@intent.fn
def first(x):
    return x[0]

@intent.fn
def total(x):
    return I.reduce.max(x, axis=0)

@intent.fn
def emitted(x, state):
    return x
""", SCOPE)


def run(parameters: str, lines, arrays, outs) -> None:
    """A kernel of these statements by every road. ``outs``: name -> (shape, dtype); the extent "N" is 37."""
    views = [f"{name}: I.Out[I.{dt}, {tuple(shape)}]" for name, (shape, dt) in outs.items()]
    body = "\n".join(f"    {line}" for line in lines)
    exec(f"def kernel({', '.join([parameters, *views])}):\n{body}\n", SCOPE)
    places = [out([N if e == "N" else e for e in shape], dt) for shape, dt in outs.values()]
    check(intent.kernel(SCOPE["kernel"]), [*arrays, *places], layouts=("contiguous",))


def values(rng, shape, dt: str, low: int = 0, high: int = 6):
    """Small whole numbers, which every dtype holds."""
    return rng.integers(low, 2 if dt == "bool" else high, shape).astype(numpy_dtype(dt))


def rows(expressions, name: str):
    return [f"{name}[{i}, :] = {x}" for i, x in enumerate(expressions)]


def unary(dt: str) -> list[str]:
    if dt == "bool":
        return ["I.logical_not(a)", "~a"]
    always = ["-a", "+a", "I.abs(a)", "I.relu(a)"]
    if dt in INTEGERS:
        return [*always, "~a"]
    names = "exp exp2 log log1p lgamma sin asin cos tanh floor ceil sqrt rsqrt erf erfc i0 sigmoid".split()
    extra = ["I.exp2(a, approximate=True, flush_to_zero=True)", "I.tanh(a, approximate=True)",
             "I.fdiv(a, b, approximate=True, flush_to_zero=True)"] if dt == "f32" else []
    return [*always, *(f"I.{n}(a)" for n in names), *extra]


def binary(dt: str) -> list[str]:
    if dt == "bool":
        return ["a & b", "a | b", "a ^ b", "I.select(a, b, c)", "I.mask(a, valid=b, fill=c)"]
    named = [f"I.{n}(a, b)" for n in "add subtract multiply maximum minimum maximum_num minimum_num".split()]
    always = ["a + b", "a - b", "a * b", "I.clamp(a, b, c)", "I.select(a < b, a, b)", "I.mask(a, valid=a > b, fill=b)", "a ** b", *named]
    if dt in INTEGERS:
        return [*always, "a // b", "a % b", "a & b", "a | b", "a ^ b", "a << b", "a >> b", "I.power(a, b)"]
    return [*always, "a / b", "I.fdiv(a, b)", "I.fma(a, b, c)", "I.floor_divide(a, b)", "I.remainder(a, b)", "I.pow(a, b)",
            "a * I.pi + I.LOG2E", "a + I.nan", *(["I.minimum(a, I.inf)"] if dt != "f8e4m3fn" else [])]


@pytest.mark.parametrize("dt", DTYPES)
def test_pointwise(dt, rng):
    expressions = unary(dt) + binary(dt)
    truths = ["a == b", "a != b", *(f"a {c} b" for c in ("<", "<=", ">", ">=") if dt != "bool")]
    run(f"x: I.In[I.{dt}, (3, 'N')]", ["a, b, c = x[0, :], x[1, :], x[2, :]", *rows(expressions, "y"), *rows(truths, "z")],
        [values(rng, (3, N), dt, 1)], {"y": ((len(expressions), "N"), dt), "z": ((len(truths), "N"), "bool")})


@pytest.mark.parametrize("dt", DTYPES)
def test_conversions_and_shapes(dt, rng):
    lines = ["a, b = x[0, :], x[1, :]"]
    outs = {}

    def add(to: str, expression: str):
        outs[name := f"y{len(outs)}"] = (("N",), to)
        lines.append(f"{name}[:] = {expression}")
    for to in DTYPES:
        add(to, f"I.cast(a, I.dtype('{to}'))")
        if "bool" not in (dt, to):
            add(to, f"I.saturating_cast(a, I.{to})")
            if WIDTH[to] == WIDTH[dt]:
                add(to, f"I.bitcast(a, I.{to})")
    one = "True" if dt == "bool" else "1.0" if dt in FLOATS else "1"
    for expression in (f"I.full((x.shape[1],), {one}, I.{dt})", f"I.zeros(a.shape, I.{dt})", "I.reshape(I.reshape(a, (-1, 1)), a.shape)",
                       "I.transpose(x[:, :])[:, 0]", "I.permute(x[:, :], (1, 0))[:, 1]", "I.join(a, b)[:, 1]",
                       "I.gather(a, index=(I.cast(I.indices(I.domain(0, x.shape[1])), I.i64) - 1,), "
                       "valid=I.indices(I.domain(0, x.shape[1])) > 0, fill=b)", "I.record(u=a, v=b).v"):
        add(dt, expression)
    run(f"x: I.In[I.{dt}, (2, 'N')]", lines, [values(rng, (2, N), dt)], outs)


@pytest.mark.parametrize("dt", DTYPES)
def test_reductions_scans_and_regions(dt, rng):
    widened = {"i8": "i32", "i16": "i32", "u8": "u32", "u16": "u32"}.get(dt, "f32" if dt in FLOATS and WIDTH[dt] < 32 else dt)
    lines, outs = ["a = x[:, :]", "v = x[0, :]", "zero = v[0]"], {}

    def add(shape, to: str, expression: str):
        outs[name := f"y{len(outs)}"] = (shape, to)
        lines.append(f"{name}[{', '.join(':' * len(shape)) or '()'}] = {expression}")
    if dt == "bool":
        for op in ("any", "all"):
            add((3,), dt, f"I.reduce.{op}(a, axis=1)")
    else:
        for op in ("sum", "prod"):
            add((3,), widened, f"I.reduce.{op}(a, axis=1)")
        add((3,), "f64", "I.reduce.sum(a, axis=1, acc_dtype=I.f64)")
        add((3, "N"), widened, "I.cumsum(a, axis=1)")
        for op in ("max", "min"):
            add(("N",), dt, f"I.reduce.{op}(a, axis=0)")
            add((3,), dt, f"I.arg_reduce.{op}(a, axis=1)[0]")
            add((3,), "index", f"I.arg_reduce.{op}(a, axis=1)[1]")
        add((3, "N"), dt, "I.cummax(a, axis=1, inclusive=False, reverse=True)")
        for combine in ("add", "multiply", "maximum", "minimum"):
            add((), dt, f"I.reduce(v, axis=0, identity=zero, combine=I.{combine})")
        add((), dt, "I.region_fold(source=v, axis=0, summarize=total, combine=I.maximum, identity=zero)")
        add(("N",), dt, "I.region_scan(source=v, axis=0, summarize=total, combine=I.maximum, identity=zero, initial_state=zero, "
                      "apply=I.maximum, emit=emitted)[0]")
    if dt == "bool" or dt in INTEGERS:
        for combine in ("&", "|", "^"):
            name = {"&": "and_", "|": "or_", "^": "xor"}[combine]
            SCOPE.setdefault(name, getattr(__import__("operator"), name))
            add((), dt, f"I.reduce(v, axis=0, identity=zero, combine={name})")
    add((3, "N"), dt, "I.scan(a, axis=1, identity=a[:, 0], combine=keep)")
    run(f"x: I.In[I.{dt}, (3, 'N')]", lines, [values(rng, (3, N), dt, 1, 3)], outs)


@pytest.mark.parametrize("dt", NUMERIC)
def test_contractions(dt, rng):
    lines, outs = ["a, b = x[:, :, :], x[:, :, :]", "u, m = x[0, 0, :], x[0, :, :]"], {}
    accumulators = [acc for acc in NUMERIC if acc in FLOATS and (dt in INTEGERS or WIDTH[acc] >= WIDTH[dt])
                    or acc in INTEGERS and dt in INTEGERS and WIDTH[acc] >= WIDTH[dt]]
    for acc in accumulators:
        outs[name := f"y{len(outs)}"] = ((), acc)
        lines.append(f"{name}[()] = I.dot(u, u, acc_dtype=I.{acc})[()]")
    for acc in (dt, "f64"):
        for shape, expression in (((4,), "I.matvec(m, u"), ((5,), "I.vecmat(x[0, :, 0], m"), ((4, 4), "I.matmul(m, m, transpose_rhs=True"),
                                  ((2, 4, 2, 4), "I.contract(a, b, reduce=((2, 2),), batch=()")):
            outs[name := f"y{len(outs)}"] = (shape, acc)
            lines.append(f"{name}[{', '.join(':' * len(shape))}] = {expression}, acc_dtype=I.{acc})")
    outs["z"] = ((5, 5), dt)
    lines.append("z[:, :] = I.outer(u, u)")
    run(f"x: I.In[I.{dt}, (2, 4, 5)]", lines, [values(rng, (2, 4, 5), dt, 0, 3)], outs)


@pytest.mark.parametrize("dt", DTYPES)
def test_memory(dt, rng):
    kinds = {"exchange": True, "add": dt != "bool", "max": dt != "bool", "min": dt != "bool"}
    kinds |= dict.fromkeys(("and_", "or_", "xor"), dt not in FLOATS)
    combines = [f"I.{n}" for n in ("add", "multiply", "maximum", "minimum") if dt != "bool"] + ["keep"]
    lines = ["N, = x.shape", "n = I.domain(0, N)", f"b = I.buffer((N,), I.{dt}, init=x[:])", f"u = I.buffer((N,), I.{dt})",
             "for i in n:"]
    lines += ["    I.assume_in_bounds(at[i], b, axis=0)", "    I.store(u, i, I.mutable_load(b, at[i]))", "    y[0, i] = u[i]",
              "I.scatter_unique(y, index=(1, at[:]), value=x[:], valid=x[:] == x[:])"]
    row = 2
    for combine in combines:
        lines += [f"y[{row}, :] = x[:]", f"I.scatter_reduce(y, index=({row}, few[:]), value=x[:], combine={combine})"]
        row += 1
    for kind, legal in kinds.items():
        if legal:
            lines += [f"y[{row}, :] = x[:]", "for i in n:",
                      f"    y[{row + 1}, i] = I.atomic.{kind}(y[{row}, few[i]], x[i], order='relaxed')"]
            row += 2
    lines += [f"y[{row}, :] = x[:]", "for i in I.parallel(n):",
              f"    c = I.atomic.compare_exchange(y[{row}, i], x[0], x[1], order='acq_rel')",
              f"    y[{row + 1}, i] = c.old_value", "    ok[i] = c.success",
              f"    I.atomic.store(y[{row + 2}, i], I.atomic.load(y[{row}, i], order='acquire'), order='release')"]
    run(f"x: I.In[I.{dt}, ('N',)], at: I.In[I.i32, ('N',)], few: I.In[I.i32, ('N',)]", lines,
        [values(rng, N, dt, 0, 3), rng.permutation(N).astype("i4"), integers(rng, N, "i32", 0, 5)],
        {"y": ((row + 3, "N"), dt), "ok": (("N",), "bool")})


class Mode(I.Enum):
    PLAIN = 1
    TWICE = 2


@intent.kernel
def domains(x: I.In[I.f32, ("N",), I.constraints(noalias=True, strides=(None,))], offsets: I.In[I.i32, (4,)], mapping: I.In[I.i32, ("N",)],
            s: I.InOut[I.f32, (3,), I.constraints(alias="s")], y: I.Out[I.f32, (2, "N")], at: I.Out[I.index, ("N",)],
            MODE: I.Constexpr[Mode], COUNT: I.Constexpr[int]):
    n = I.domain(0, x.shape[0])
    groups = I.ragged(I.domain(0, 3), n, offsets[:], indices=mapping[:])
    for g in I.parallel(groups.outer):
        s[g] = s[g] + I.reduce.sum(x[I.members(groups[g])], axis=0)
    for i, j in I.parallel((I.domain(0, 2), n)):
        y[i, j] = x[j] if MODE == Mode.PLAIN else x[j] * 2.0
    for k in range(COUNT):
        for ordinal, i in enumerate(n[k:k + 2]):
            y[0, i] = y[0, i] + I.cast(ordinal, I.f32)
    at[n] = I.indices(n)


def test_domains_and_annotations(rng):
    x = rng.standard_normal(N).astype("f4")
    args = [x, np.array([0, 5, 5, N], "i4"), rng.permutation(N).astype("i4"), np.ones(3, "f4"), out((2, N), "f32"), out(N, "index")]
    for mode in Mode.PLAIN, Mode.TWICE:
        check(domains, args, constexprs={"MODE": mode, "COUNT": 3}, layouts=("contiguous",))


@pytest.mark.parametrize("dt", INTEGERS)
def test_histogram(dt, rng):
    run(f"x: I.In[I.{dt}, (3, 'N')]", [f"y{i}[:] = I.histogram(x[:, :], bins=5, valid=x[:, :] < 5, count_dtype=I.{to})"
                                       for i, to in enumerate(INTEGERS)],
        [values(rng, (3, N), dt)], {f"y{i}": ((5,), to) for i, to in enumerate(INTEGERS)})


@pytest.mark.parametrize("acc", ["f16", "bf16", "f32", "f64"])
def test_scaled_formats(acc, rng):
    lines, outs = [], {}
    pairs = [(left, right) for left in ("e2m1 p", "e4m3 u", "e4m3 f") for right in ("e2m1 q", "e4m3 v", "e4m3 g")]
    forms = ["matmul group_size=4", "contract lhs_group_size=4, rhs_group_size=4, reduce=((1, 0), (2, 1)), batch=()"]
    for k, (left, right) in enumerate(pairs if acc == "f32" else pairs[:2]):
        (left, i), (right, j), (name, tail) = left.split(), right.split(), forms[k % 2].split(" ", 1)
        outs[f"y{k}"] = ((3, 5), acc)
        lines.append(f"y{k}[:, :] = I.scaled_{name}({i}[:, :, :], s[:, :], {j}[:, :, :], t[:, :], lhs_format=I.{left}, "
                     f"rhs_format=I.{right}, {tail}, acc_dtype=I.{acc})")
    p, u, q, v = (integers(rng, shape, "u8", 0, 0x77) for shape in ((3, 2, 2), (3, 2, 4), (2, 2, 5), (2, 4, 5)))
    arrays = [p, u, values(rng, u.shape, "f8e4m3fn"), q, v, values(rng, v.shape, "f8e4m3fn"),
              integers(rng, (3, 2), "u8", 120, 132), integers(rng, (5, 2), "u8", 120, 132)]
    types = ["u8", "u8", "f8e4m3fn", "u8", "u8", "f8e4m3fn", "u8", "u8"]
    run(", ".join(f"{n}: I.In[I.{t}, {a.shape}]" for n, t, a in zip("pufqvgst", types, arrays)), lines, arrays, outs)


@intent.kernel
def closed_formats(x: I.In[I.f32, ("G", 256)], w: I.In[I.u8, ("G", 144)], a: I.In[I.f32, ("M", 4)], at: I.In[I.index, ("M", 4)],
                   first: I.In[I.index, ("M", 2)], b: I.In[I.f32, (8, "N")], seed: I.u64, q: I.Out[I.u8, ("G", 292)], d: I.Out[I.f32, ()],
                   y: I.Out[I.f32, (3, "M", "N")], bits: I.Out[I.u32, (9,)], uniform: I.Out[I.f32, (9,)]):
    records = I.quantize(x[:, :], format=I.quant.q8_k)
    q[:, :] = records
    d[()] = I.quantized_dot(w[:, :], records, lhs_format=I.quant.q4_k, rhs_format=I.quant.q8_k, acc_dtype=I.f32)[()]
    pair = I.sparse.one_of_two(compression_axis=1, logical_extent=8)
    four = I.sparse.two_of_four(compression_axis=-1, logical_extent=b.shape[0])
    places = I.record(first=first[:, :], second=first[:, :] + 1)
    y[0, :, :] = I.sparse_matmul(a[:, :], at[:, :], b[:, :], format=pair, acc_dtype=I.f32)
    y[1, :, :] = I.sparse_contract(a[:, :], at[:, :], b[:, :], format=pair, reduce=((1, 0),), batch=(), acc_dtype=I.f32)
    y[2, :, :] = I.sparse_matmul(a[:, :], places, b[:, :], format=four, acc_dtype=I.f32)
    bits[:] = I.random.bits(seed, I.indices(I.domain(0, 9)))
    uniform[:] = I.random.uniform(seed, I.indices(I.domain(3, 12)), dtype=I.f32)


def test_quantized_sparse_and_random(rng):
    w = integers(rng, (2, 144), "u8")
    w[:, :4] = np.array([0.5, 0.25], "f2").view("u1")
    args = [rng.standard_normal((2, 256)).astype("f4"), w, rng.standard_normal((3, 4)).astype("f4"), integers(rng, (3, 4), "index", 0, 2),
            integers(rng, (3, 2), "index", 0, 3), rng.standard_normal((8, 5)).astype("f4"), 77]
    check(closed_formats, [*args, out((2, 292), "u8"), out((), "f32"), out((3, 3, 5), "f32"), out(9, "u32"), out(9, "f32")],
          layouts=("contiguous",))


def test_nothing_is_left_out():
    """The list is whole, and every operation on ``I`` is in it and in one of the programs above."""
    def operations(holder, prefix=""):
        for name in (n for n in vars(type(holder)) | vars(holder) if n[0] != "_"):
            found = getattr(holder, name)
            if isinstance(found, Operation):
                yield found.name
            yield from operations(found, f"{prefix}{name}.") if type(found).__name__ == "Namespace" or isinstance(found, Operation) else ()
    for name in CLOSED:
        holder = I
        for part in name.split("."):
            holder = getattr(holder, part)
    assert set(operations(I)) <= set(CLOSED)
    kinds = [f"{r}.{k}" for r in ("reduce", "arg_reduce") for k in ("sum", "prod", "max", "min", "any", "all")]
    kinds += [f"atomic.{k}" for k in ("exchange", "add", "max", "min", "and_", "or_", "xor")]
    made = [unary, binary, *kinds, *DTYPES, "scaled_matmul scaled_contract e2m1 e4m3"]
    text = open(__file__).read().split('""".split()')[1]
    for part in made:
        names = re.findall(r"I\.(\w+)", " ".join(x for dt in DTYPES for x in part(dt))) if callable(part) else part.split()
        text += "".join(f" I.{n}" for n in names)
    assert [n for n in CLOSED if f"I.{n}" not in text] == ["e8m0"], "the format of scales is implied"
