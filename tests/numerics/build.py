"""Small kernels built by hand, so that these tests need no front end."""
import ml_dtypes
import numpy as np

from intent_numba import reference
from intent_numba.kir import Builder, Extent, Scalar, Tensor, Value, View, parse_kernel, print_kernel, shape_of, verify

ARRAYS = {"bool": np.bool_, "index": np.int64, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
          "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "f16": np.float16, "f32": np.float32, "f64": np.float64,
          "bf16": ml_dtypes.bfloat16, "f8e4m3fn": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2}
"""The NumPy dtype of an argument array."""


def view(name, dt, *shape, access="in"):
    return Value(name, View(dt, shape_of(*shape), access))


def whole(b: Builder, v: Value) -> list:
    """The domains that cover a view."""
    out = []
    zero, one = b.one("const", (), Scalar("index"), value=0), b.one("const", (), Scalar("index"), value=1)
    for e in v.type.shape:
        end = b.one("extent", (), Scalar("index"), e=e)
        out.append(domain(b, zero, end, one, e))
    return out


def domain(b, begin, end, step, extent):
    from intent_numba.kir import Domain
    return b.one("domain", (begin, end, step), Domain(Extent.of(extent)))


def load(b: Builder, v: Value) -> Value:
    return b.one("read", (v, *whole(b, v)), Tensor(v.type.dt, v.type.shape))


def save(b: Builder, v: Value, value: Value) -> None:
    b.emit("write", (v, *whole(b, v), value))


def bits(a: np.ndarray) -> np.ndarray:
    """The bit patterns of an array."""
    return np.ascontiguousarray(a).reshape(a.shape).view(f"u{a.dtype.itemsize}")


def from_bits(patterns, dt: str) -> np.ndarray:
    target = np.dtype(ARRAYS[dt])
    return np.asarray(patterns).astype(f"u{target.itemsize}").view(target)


def run(kernel, *args) -> None:
    """Verify, check the round trip through text, and execute."""
    verify(kernel)
    text = print_kernel(kernel)
    again = parse_kernel(text)
    assert print_kernel(again) == text
    again.externs = kernel.externs
    reference.run(verify(again), list(args))


def elementwise(kind: str, arrays, dts, result: str, **attrs) -> np.ndarray:
    """One elementwise operation over arrays of one common shape."""
    arrays = [np.asarray(a, ARRAYS[dt]) for a, dt in zip(arrays, dts)]
    shape = [f"N{i}" for i in range(arrays[0].ndim)]
    ins = [view(f"x{i}", dt, *shape) for i, dt in enumerate(dts)]
    out = view("out", result, *shape, access="out")
    b = Builder("pointwise", [*ins, out])
    loaded = [load(b, v) for v in ins]
    save(b, out, b.one(kind, loaded, Tensor(result, out.type.shape), **attrs))
    y = np.zeros(arrays[0].shape, ARRAYS[result])
    run(b.kernel, *arrays, y)
    return y


def structured(op: str, x: np.ndarray, dt: str, axis: int, combine=None, identity=None, **attrs):
    """A reduce, arg_reduce or scan of one axis. ``combine(b, l, r)`` builds a generic combine on scalars or tensors."""
    x = np.asarray(x, ARRAYS[dt])
    shape = [f"N{i}" for i in range(x.ndim)]
    source = view("x", dt, *shape)
    left = [s for i, s in enumerate(shape) if i != axis]
    kept = shape if op == "scan" else left
    outs = [view("y", dt, *kept, access="out")]
    if op == "arg_reduce":
        outs.append(view("at", "index", *kept, access="out"))
    b = Builder(op, [source, *outs])
    args, regions = [load(b, source)], ()
    member = Tensor(dt, shape_of(*left)) if left else Scalar(dt)
    if combine is not None:
        first = b.one("const", (), Scalar(dt), value=identity)
        args.append(b.one("broadcast", (first,), member) if left else first)
        region = b.block([member, member])
        with b.inside(region):
            region.yields = (combine(b, *region.params),)
        regions = (region,)
    types = [Tensor(o.type.dt, o.type.shape) if kept else Scalar(o.type.dt) for o in outs]
    results = b.emit(op, args, types, regions, axis=axis, **attrs)
    for o, r in zip(outs, results):
        save(b, o, r)
    ys = [np.zeros([n for i, n in enumerate(x.shape) if op == "scan" or i != axis], ARRAYS[o.type.dt]) for o in outs]
    run(b.kernel, x, *ys)
    return ys[0] if len(ys) == 1 else tuple(ys)


def contract(a: np.ndarray, b_: np.ndarray, dt: str, reduce, batch=()) -> np.ndarray:
    """A contraction of two arrays of the accumulator dtype; the form follows from the free axes."""
    names_a = [f"A{i}" for i in range(a.ndim)]
    names_b = [f"B{i}" for i in range(b_.ndim)]
    for i, j in (*reduce, *batch):
        names_b[j] = names_a[i]
    free_a = [n for i, n in enumerate(names_a) if i not in {p[0] for p in (*reduce, *batch)}]
    free_b = [n for j, n in enumerate(names_b) if j not in {p[1] for p in (*reduce, *batch)}]
    kept = [n for i, n in enumerate(names_a) if i not in {p[0] for p in reduce}] + free_b
    va, vb, out = view("a", dt, *names_a), view("b", dt, *names_b), view("out", dt, *kept, access="out")
    b = Builder("contract", [va, vb, out])
    result = Tensor(dt, shape_of(*kept))
    args = (load(b, va), load(b, vb))
    save(b, out, b.one("contract", args, result, reduce=tuple(reduce), batch=tuple(batch), form="chain" if free_a and free_b else "tree"))
    sizes = dict(zip(names_a + names_b, a.shape + b_.shape))
    y = np.zeros([sizes[n] for n in kept], ARRAYS[dt])
    run(b.kernel, np.asarray(a, ARRAYS[dt]), np.asarray(b_, ARRAYS[dt]), y)
    return y
