"""The SPIR-V target gives the bits of the CPU at every group size, on whole, partial and empty work, in place and through buffers."""
from __future__ import annotations

import numpy as np
import pytest

import intent_numba as intent
import intent_numba.language as I
from intent_numba import errors
from intent_numba.targets.spirv import codegen
from tests.programs.test_algorithms import bitonic_sort, smith_waterman, stencil_in_time
from tests.programs.test_control import jacobi, mandelbrot, power_iteration
from tests.support import assert_same_bits, integers, normal, numpy_dtype, out, place
from tests.support.arrays import Out


def _device():
    from intent_numba.targets.spirv.loader import queue
    try:
        return queue()
    except errors.UnsupportedError:
        return None


needs_device = pytest.mark.skipif(_device() is None, reason="no OpenCL device takes SPIR-V")
GROUP_SIZES = [32, 64, 256]


@intent.kernel
def relu(x: I.In[I.f32, ("N",)], y: I.Out[I.f32, ("N",)]):
    y[:] = I.maximum(x[:], 0.0)


@intent.kernel
def relu_half(x: I.In[I.f16, ("N",)], y: I.Out[I.f16, ("N",)]):
    y[:] = I.maximum(x[:], 0.0)


@intent.kernel
def softmax(x: I.In[I.f32, ("M", "N")], y: I.Out[I.f32, ("M", "N")]):
    M, N = x.shape
    columns = I.domain(0, N)
    for m in I.parallel(I.domain(0, M)):
        row = x[m, columns]
        e = I.exp(row - I.reduce.max(row, axis=0))
        y[m, columns] = e / I.reduce.sum(e, axis=0)


@intent.kernel
def column_sums(x: I.In[I.f32, ("M", "N")], y: I.Out[I.f32, ("N",)]):
    y[:] = I.reduce.sum(x[:, :], axis=0)


@intent.kernel
def swiglu(gate: I.In[I.bf16, ("M", "N")], up: I.In[I.bf16, ("M", "N")], y: I.Out[I.bf16, ("M", "N")]):
    g = I.cast(gate[:, :], I.f32)
    y[:, :] = I.cast(g * I.sigmoid(g) * I.cast(up[:, :], I.f32), I.bf16)


@intent.kernel
def row_argmax(x: I.In[I.f32, ("M", "N")], values: I.Out[I.f32, ("M",)], places: I.Out[I.index, ("M",)]):
    v, at = I.arg_reduce.max(x[:, :], axis=1)
    values[:] = v
    places[:] = at


@intent.kernel
def running_sums(x: I.In[I.f32, ("M", "N")], y: I.Out[I.f32, ("M", "N")]):
    y[:, :] = I.cumsum(x[:, :], axis=1)


@intent.kernel
def layer_norm(x: I.In[I.f32, ("M", "N")], gain: I.In[I.f32, ("N",)], bias: I.In[I.f32, ("N",)], y: I.Out[I.f32, ("M", "N")]):
    M, N = x.shape
    columns = I.domain(0, N)
    scale = 1.0 / I.cast(N, I.f32)
    for m in I.parallel(I.domain(0, M)):
        row = x[m, columns]
        centred = row - I.reduce.sum(row, axis=0) * scale
        variance = I.reduce.sum(centred * centred, axis=0) * scale
        y[m, columns] = centred * I.rsqrt(variance + 1e-5) * gain[columns] + bias[columns]


@intent.kernel
def linear(a: I.In[I.f32, ("M", "K")], b: I.In[I.f32, ("K", "N")], bias: I.In[I.f32, ("N",)], y: I.Out[I.f32, ("M", "N")]):
    y[:, :] = I.matmul(a[:, :], b[:, :], acc_dtype=I.f32) + bias[:]


@intent.kernel
def linear_half(a: I.In[I.f16, ("M", "K")], b: I.In[I.f16, ("K", "N")], bias: I.In[I.f32, ("N",)], y: I.Out[I.f16, ("M", "N")]):
    y[:, :] = I.cast(I.matmul(a[:, :], b[:, :], acc_dtype=I.f32) + bias[:], I.f16)


@intent.kernel
def embedding(ids: I.In[I.i32, ("N",)], table: I.In[I.f16, ("V", "D")], y: I.Out[I.f16, ("N", "D")]):
    columns = I.domain(0, table.shape[1])
    for i in I.parallel(I.domain(0, ids.shape[0])):
        y[i, columns] = table[ids[i], columns]


@intent.kernel
def assignment(x: I.In[I.f32, ("N", "D")], centres: I.In[I.f32, ("K", "D")], y: I.Out[I.index, ("N",)]):
    difference = x[:, None, :] - centres[None, :, :]
    distance = I.reduce.sum(difference * difference, axis=2)
    nearest, y[:] = I.arg_reduce.min(distance, axis=1)


@intent.kernel
def attention(q: I.In[I.f32, ("S", "D")], k: I.In[I.f32, ("T", "D")], v: I.In[I.f32, ("T", "D")], scale: I.f32,
              y: I.Out[I.f32, ("S", "D")]):
    scores = I.matmul(q[:, :], k[:, :], acc_dtype=I.f32, transpose_rhs=True) * scale
    e = I.exp(scores - I.reduce.max(scores, axis=1)[:, None])
    p = e / I.reduce.sum(e, axis=1)[:, None]
    y[:, :] = I.matmul(p, v[:, :], acc_dtype=I.f32)


@intent.kernel
def moments(x: I.In[I.f32, ("N",)], s: I.Out[I.f32, ()], low: I.Out[I.f32, ()], e: I.Out[I.f32, ("N",)], r: I.Out[I.f32, ("N",)]):
    s[()] = I.full((), I.reduce.sum(x[:], axis=0), I.f32)
    low[()] = I.full((), I.reduce.min(x[:], axis=0), I.f32)
    e[:] = I.scan(x[:], axis=0, identity=0.0, combine=I.add, inclusive=False)
    r[:] = I.scan(x[:], axis=0, identity=0.0, combine=I.add, reverse=True)


def atomics(dt):
    @intent.kernel
    def atomics(ids: I.In[I.i32, ("N",)], x: I.In[dt, ("N",)], sums: I.InOut[dt, ("K",)], peaks: I.InOut[dt, ("K",)],
                flags: I.InOut[I.u8, ("K",)], claims: I.InOut[I.i32, (1,)]):
        for i in I.parallel(I.domain(0, ids.shape[0])):
            I.atomic.add(sums[ids[i]], x[i], order="relaxed")
            I.atomic.max(peaks[ids[i]], x[i], order="acq_rel")
            r = I.atomic.compare_exchange(flags, index=(ids[i],), expected=I.cast(0, I.u8), desired=I.cast(1, I.u8), order="acq_rel")
            I.atomic.add(claims[0], I.cast(r.success, I.i32), order="relaxed")
    return atomics


@intent.kernel
def combined(ids: I.In[I.i32, ("N",)], x: I.In[I.f32, ("N",)], sums: I.InOut[I.f32, ("K",)], counts: I.Out[I.i32, (8,)]):
    I.scatter_reduce(sums, index=ids[:], value=x[:], combine=I.add)
    counts[:] = I.histogram(ids[:], bins=8, count_dtype=I.i32)


def _rows(rng, m, n, dt="f32"):
    return normal(rng, (m, n), dt)


CASES = {
    "relu": (relu, [(256,), (1001,), (0,)], lambda rng, n: [normal(rng, n), out(n, "f32")]),
    "relu_half": (relu_half, [(256,), (1001,), (0,)], lambda rng, n: [normal(rng, n, "f16"), out(n, "f16")]),
    "softmax": (softmax, [(4, 64), (5, 1001), (2, 9000), (0, 5), (3, 0)], lambda rng, m, n: [_rows(rng, m, n), out((m, n), "f32")]),
    "column_sums": (column_sums, [(64, 32), (4099, 7), (0, 5), (5, 0)], lambda rng, m, n: [_rows(rng, m, n), out(n, "f32")]),
    "swiglu": (swiglu, [(4, 64), (3, 37), (0, 8)],
               lambda rng, m, n: [_rows(rng, m, n, "bf16"), _rows(rng, m, n, "bf16"), out((m, n), "bf16")]),
    "row_argmax": (row_argmax, [(4, 64), (3, 1001), (5, 1), (0, 4)],
                   lambda rng, m, n: [np.round(_rows(rng, m, n)), out(m, "f32"), out(m, "index")]),
    "running_sums": (running_sums, [(4, 64), (3, 1001), (2, 9001), (0, 4), (3, 0)],
                     lambda rng, m, n: [_rows(rng, m, n), out((m, n), "f32")]),
    "layer_norm": (layer_norm, [(4, 64), (3, 1001), (0, 4)],
                   lambda rng, m, n: [_rows(rng, m, n), normal(rng, n), normal(rng, n), out((m, n), "f32")]),
    "linear": (linear, [(16, 32, 32), (5, 1100, 7), (3, 0, 4), (0, 3, 3)],
               lambda rng, m, k, n: [_rows(rng, m, k), _rows(rng, k, n), normal(rng, n), out((m, n), "f32")]),
    "linear_half": (linear_half, [(16, 32, 32), (5, 1100, 7), (3, 0, 4), (0, 3, 3)],
                    lambda rng, m, k, n: [_rows(rng, m, k, "f16"), _rows(rng, k, n, "f16"), normal(rng, n), out((m, n), "f16")]),
    "embedding": (embedding, [(16, 64), (5, 33), (0, 4)],
                  lambda rng, n, d: [integers(rng, n, "i32", 0, 11), _rows(rng, 11, d, "f16"), out((n, d), "f16")]),
    "bitonic_sort": (bitonic_sort, [(16, 32), (33, 8), (0, 8), (3, 0)], lambda rng, m, n: [_rows(rng, m, n), out((m, n), "f32")]),
    "mandelbrot": (mandelbrot, [(8, 32), (5, 13), (0, 4)],
                   lambda rng, h, w: [np.linspace(-2, 0.6, w), np.linspace(-1.2, 1.2, h), np.int32(40), out((h, w), "i32")]),
    "assignment": (assignment, [(64, 8, 4), (37, 5, 3), (0, 3, 2)],
                   lambda rng, n, k, d: [_rows(rng, n, d), _rows(rng, k, d), out(n, "index")]),
    "attention": (attention, [(8, 16, 16), (5, 33, 7), (0, 4, 4)],
                  lambda rng, s, t, d: [_rows(rng, s, d), _rows(rng, t, d), _rows(rng, t, d), np.float32(0.25), out((s, d), "f32")]),
    "moments": (moments, [(4096,), (13001,), (33,), (0,)],
                lambda rng, n: [normal(rng, n), out((), "f32"), out((), "f32"), out(n, "f32"), out(n, "f32")]),
    "smith_waterman": (smith_waterman, [(3, 9, 7)],
                       lambda rng, b, n, m: [integers(rng, (b, n), "u8", 0, 4), integers(rng, (b, m), "u8", 0, 4),
                                             np.int32(3), np.int32(-2), np.int32(-1), out(b, "i32")]),
    "stencil_in_time": (stencil_in_time, [(40, 7), (1, 2)], lambda rng, n, steps: [normal(rng, n), np.int32(steps), out(n, "f32")]),
    "power_iteration": (power_iteration, [(16, 5), (7, 0)],
                        lambda rng, n, steps: [_rows(rng, n, n, "f64"), normal(rng, n, "f64"), np.int32(steps), out(n, "f64"),
                                               out((), "f64")]),
    "jacobi": (jacobi, [(9, 11)],
               lambda rng, m, n: [_rows(rng, m, n), np.float32(1e-2), np.int32(20), out((m, n), "f32"), out((1,), "i32")]),
}


CASES |= {f"atomics_{dt}": (
    atomics(dt), [(2000, 8), (77, 5), (0, 3)],             # whole numbers: sums have the same bits in any order
    lambda rng, n, k, dt=dt: [integers(rng, n, "i32", 0, k), integers(rng, n, "i32", 0, 4).astype(numpy_dtype(dt)),
                              np.zeros(k, numpy_dtype(dt)), np.zeros(k, numpy_dtype(dt)), np.zeros(k, np.uint8), np.zeros(1, np.int32)])
          for dt in (I.i32, I.u8, I.i16, I.i64, I.f32, I.f16)}
CASES["combined"] = (combined, [(2000, 8), (77, 5), (0, 3)],
                     lambda rng, n, k: [integers(rng, n, "i32", 0, k), normal(rng, n), normal(rng, k), out(8, "i32")])


def run(artifact, args, layout="contiguous") -> list[np.ndarray]:
    """Call on guarded copies; the arrays behind, inputs included."""
    given = [np.zeros(a.shape, a.dtype) if isinstance(a, Out) else a for a in args]
    placed = [place(a, layout) if isinstance(a, np.ndarray) else a for a in given]
    artifact(*[getattr(p, "array", p) for p in placed])
    arrays = [p for p in placed if hasattr(p, "array")]
    for p in arrays:
        p.check_guards(layout)
    return [p.array.copy() for p in arrays]


def compare(kernel, cases, layouts=("contiguous", "strided")) -> None:
    """The spirv target, with the settings of now, against the CPU."""
    on_cpu = intent.compile(kernel, target="cpu")
    on_device = intent.compile(intent.kernel(kernel.pyfunc), target="spirv")          # of its own: settings are no part of a kernel
    for args in cases:
        want = run(on_cpu, args)
        for layout in layouts:
            for i, (g, w) in enumerate(zip(run(on_device, args, layout), want)):
                assert_same_bits(g, w, f"{kernel.__name__}, {[getattr(a, 'shape', a) for a in args]}, {layout}, array {i}")


@needs_device
@pytest.mark.parametrize("size", GROUP_SIZES)
@pytest.mark.parametrize("name", CASES)
def test_same_bits_as_the_cpu(name, size, rng):
    kernel, shapes, arguments = CASES[name]
    with codegen.forced(group_size=size):
        compare(kernel, [arguments(rng, *shape) for shape in shapes])


@needs_device
@pytest.mark.parametrize("size", [8, 48])
@pytest.mark.parametrize("name", ["softmax", "running_sums", "row_argmax", "moments"])
def test_odd_group_sizes(name, size, rng):
    kernel, shapes, arguments = CASES[name]
    with codegen.forced(group_size=size):
        compare(kernel, [arguments(rng, *shape) for shape in shapes], ["contiguous"])


@needs_device
@pytest.mark.parametrize("name", ["relu", "softmax", "linear", "power_iteration", "jacobi", "bitonic_sort"])
def test_device_with_memory_of_its_own(name, rng):
    kernel, shapes, arguments = CASES[name]
    with codegen.forced(buffers=True):
        compare(kernel, [arguments(rng, *shape) for shape in shapes], ["contiguous", "reversed", "strided"])


@needs_device
@pytest.mark.parametrize("buffers", [False, True])
def test_overlapping_views(buffers, rng):
    x = normal(rng, 301)
    on_cpu, on_device = intent.compile(relu, target="cpu"), intent.compile(intent.kernel(relu.pyfunc), target="spirv")
    with codegen.forced(buffers=buffers):
        for source, target in ((slice(0, 300), slice(1, 301)), (slice(1, 301), slice(0, 300)), (slice(0, 301), slice(0, 301))):
            a, b = x.copy(), x.copy()
            on_cpu(a[source], a[target])
            on_device(b[source], b[target])
            assert_same_bits(b, a, f"{source} to {target}")


@needs_device
def test_prepared_launches(rng):
    x = normal(rng, 77)
    y = np.zeros_like(x)
    call = intent.compile(relu, target="spirv").prepare(x, outputs=(y,))
    for _ in range(6):
        y[:] = 7
        call.launch()
        assert_same_bits(y, np.maximum(x, 0), "prepared")


@needs_device
def test_code_survives_as_bytes(rng):
    code = intent.compile(softmax, target="spirv")._build.compiled().code
    again = codegen.load_object(code.object_code(), code.symbol)
    assert again.plan == code.plan and again.binary == code.binary
    with pytest.raises(ValueError):
        codegen.load_object(b"something else", "f")


def test_generation_needs_no_device():
    program = intent.compile(relu, target="cpu")._build.program()
    code = codegen.compile_program(program, "relu")
    assert int.from_bytes(code.binary[:4], "little") == 0x07230203
    assert "OpEntryPoint Kernel" in code.asm()


def test_a_backend_that_dies_is_an_error():
    with pytest.raises(errors.UnsupportedError, match="cannot translate"):
        codegen.translated("define void @f() { ret i32 0 }", "object")


def test_njit_helpers_are_refused_by_name():
    import numba

    @numba.njit
    def halved(v):
        return v / 2

    @intent.kernel
    def kernel(x: I.In[I.f64, ("N",)], y: I.Out[I.f64, ("N",)]):
        for i in I.parallel(I.domain(0, x.shape[0])):
            y[i] = halved(x[i])

    with pytest.raises(errors.UnsupportedError, match="halved"):
        intent.compile(kernel, target="spirv")


def test_numba_knows_the_target():
    from numba.core.target_extension import target_registry

    from intent_numba.targets.spirv.descriptor import NAME, descriptor
    assert target_registry[NAME] is descriptor.target_context.target


@intent.kernel
def turned_twice(x: I.In[I.f32, ("N", 2, 2)], y: I.Out[I.f32, ("N", 2, 2)]):
    N = x.shape[0]
    b = I.buffer((N, 2, 2), I.f32, init=x[:, :, :])
    for p in I.parallel(I.domain(0, (N + 4095) // 4096 - 1)):
        for i in I.domain(0, I.minimum(N - p * 4096, 4096)):
            b[p * 4096 + i, :, :] = I.transpose(b[p * 4096 + i, :, :])
    y[:, :, :] = b[:, :, :]


@needs_device
@pytest.mark.parametrize("n", [1, 2, 33])
def test_a_part_that_is_not_launched_does_not_disturb_the_others(n, rng):
    """Its work-items have an array each; with private memory for it, other kernels of the module went wrong or crashed."""
    x, y = normal(rng, (n, 2, 2)), np.zeros((n, 2, 2), np.float32)
    intent.compile(turned_twice, target="spirv")(x, y)
    assert_same_bits(y, x, "turned twice")
