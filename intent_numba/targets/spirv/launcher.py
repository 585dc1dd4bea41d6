"""How a plan of map_simt runs on an OpenCL device: the host's part of a launch.

Arguments come as the frame that every target's entry takes: addresses, extents and strides in host memory. A device that addresses host
memory (fine-grain system SVM) works on it in place; for others the bytes that a view spans are copied to a buffer and back.
"""
from __future__ import annotations

import ctypes
import sys
import threading
import traceback
import warnings

import numpy as np

from .codegen import settings
from .loader import opencl, queue

OK, NO_MEMORY, FAILED = 0, 1, 99
"""What a launch gives besides the status that a check in the kernel left."""
GROUPS_PER_UNIT = 32
"""Groups started for each compute unit, at most, where each needs its part of an arena."""


def c_function(entry):
    """``entry`` as a C function ``int32_t f(int64_t *frame)``. Returns (object to keep alive, address)."""
    def call(frame):
        try:
            return entry(frame)
        except BaseException:                                # nothing may leave a C callback: the status tells the caller
            traceback.print_exc(file=sys.stderr)
            return FAILED
    function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(call)
    return function, ctypes.cast(function, ctypes.c_void_p).value


class Launcher:
    """A built program and its plan. Calls may come from any thread."""

    def __init__(self, plan: dict, binary: bytes):
        self.plan = plan
        self.cl = opencl()
        self.context, _ = queue()
        self.device = self.context.devices[0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")                  # the build log is never empty
            self.program = self.cl.Program(self.context, binary).build(_options(self.cl, self.device))
        self.local_bytes = self.device.local_mem_size
        self.units = self.device.max_compute_units
        self._kernels = threading.local()

    def kernel(self, name: str):
        """A kernel object of this thread: its arguments are a state that threads must not share."""
        found = self._kernels.__dict__.get(name)
        if found is None:
            found = self._kernels.__dict__[name] = self.cl.Kernel(self.program, name)
        return found

    def __call__(self, frame: int) -> int:
        try:
            return _Run(self, frame).all()
        except MemoryError:
            return NO_MEMORY
        except self.cl.MemoryError:
            return NO_MEMORY


class _Run:
    """One launch."""

    def __init__(self, launcher: Launcher, frame: int):
        self.launcher, self.plan, self.cl = launcher, launcher.plan, launcher.cl
        _, self.queue = queue()
        given = np.ctypeslib.as_array(ctypes.cast(frame, ctypes.POINTER(ctypes.c_int64)), (self.plan["arguments"],))
        self.frame = np.zeros(self.plan["slots"], np.int64)
        self.frame[:len(given)] = given
        zero_copy = _addresses_host(self.cl, launcher.device) and not settings().buffers
        self.memory = (_InPlace if zero_copy else _Copies)(self.cl, launcher.context, self.queue)
        self.workspace = {w["name"]: w for w in self.plan["workspace"]}
        self.sizes: dict[str, int] = {}
        self.pointers = self.memory.views(self.plan["views"], self.frame)
        self.device_frame = self.memory.share(self.frame)

    def all(self) -> int:
        """Gives the status: that of a check that failed, else OK."""
        try:
            self.steps(self.plan["steps"])
        finally:
            self.queue.finish()
        error = self.plan["error"]
        status = OK if error is None else int(self.read()[error])
        self.memory.give_back()
        return status

    def steps(self, steps) -> None:
        for s in steps:
            match s["do"]:
                case "run":
                    self.run(s["kernel"], s["uses"], (), 1, 1)
                case "stage":
                    self.stage(s)
                case "for":
                    self.for_(s)
                case "loop":
                    while True:
                        self.steps(s["body"])
                        if not self.flag(s["again"]):
                            break
                case "if":
                    self.steps(s["then"] if self.flag(s["cond"]) else s["else"])
                case "free":
                    self.memory.retire(self.pointers.pop(s["resource"], None))
                    self.sizes.pop(s["resource"], None)

    # --- the frame ---

    def read(self) -> np.ndarray:
        """The frame after everything that was started."""
        self.memory.fetch(self.device_frame, self.frame)
        return self.frame

    def flag(self, slot: int) -> bool:
        return bool(self.read()[slot:slot + 1].view(np.uint8)[0])

    def write(self, slot: int, value: int) -> None:
        self.read()[slot] = value
        self.memory.send(self.device_frame, self.frame)

    def extent(self, polynomial, frame) -> int:
        total = 0
        for coefficient, slots in polynomial:
            for slot in slots:
                coefficient *= int(frame[slot])
            total += coefficient
        return total

    def for_(self, s) -> None:
        frame = self.read()
        begin, step, count = int(frame[s["begin"]]), int(frame[s["step"]]), self.extent(s["extent"], frame)
        if s["stop"] is not None:
            self.write(s["stop"], 0)
        for i in range(count):
            self.write(s["var"], _wrapped(begin + i * step))
            self.steps(s["body"])
            if s["stop"] is not None and self.flag(s["stop"]):
                break

    # --- kernels ---

    def stage(self, s) -> None:
        frame = self.read() if self.plan["changes"] else self.frame
        points = 1
        for e in s["grid"]:
            points *= self.extent(e, frame)
        if points <= 0:
            return
        size, arena = self.plan["group"], 0
        for item, shape in s["arena"]:
            for e in shape:
                item *= self.extent(e, frame)
            arena += -(-item // 64) * 64
        if s["instead"] is not None and arena + s["instead"]["local"] <= self.launcher.local_bytes // 2:
            s = s["instead"]
        groups = -(-points // size) if s["by"] == "items" else points
        extra: tuple = (np.int64(points),)
        if s["space"] == "local":
            extra = (self.cl.LocalMemory(max(arena, 64)), *extra)
        elif s["space"] == "global":
            groups = min(groups, GROUPS_PER_UNIT * self.launcher.units)
            place = self.memory.allocate(arena * (groups * size if s["by"] == "items" else groups))
            self.memory.retire(place)                        # kept until the launch has ended
            extra = (place, *extra)
        for name in s["uses"]:
            if name in self.workspace:
                self.provide(name, frame)
        self.run(s["kernel"], s["uses"], extra, groups * size, size)

    def provide(self, name: str, frame) -> None:
        """Memory for a workspace that has none, or too little."""
        size = self.workspace[name]["bytes"]
        for e in self.workspace[name]["shape"]:
            size *= self.extent(e, frame)
        if name not in self.pointers or size > self.sizes[name]:
            self.memory.retire(self.pointers.get(name))
            self.pointers[name], self.sizes[name] = self.memory.allocate(size), size

    def run(self, name: str, uses, extra, items: int, group: int) -> None:
        kernel = self.launcher.kernel(name)
        kernel.set_args(self.device_frame, *(self.pointers[u] for u in uses), *extra)
        self.cl.enqueue_nd_range_kernel(self.queue, kernel, (items,), (group,))


def _options(cl, device) -> list[str]:
    exact = device.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
    return ["-cl-fp32-correctly-rounded-divide-sqrt"] if exact else []


def _addresses_host(cl, device) -> bool:
    return bool(device.svm_capabilities & cl.device_svm_capabilities.FINE_GRAIN_SYSTEM)


def _wrapped(x: int) -> int:
    x &= (1 << 64) - 1
    return x - (1 << 64) if x >> 63 else x


def _span(view: dict, frame) -> tuple[int, int]:
    """First byte and the byte behind the last of the elements of a view; an empty one spans nothing."""
    slot, rank, size = view["slot"], view["rank"], view["bytes"]
    low = high = int(frame[slot])
    for axis in range(rank):
        extent, stride = int(frame[slot + 1 + axis]), int(frame[slot + 1 + rank + axis])
        if extent == 0:
            return low, low
        reach = (extent - 1) * stride * size
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high + size


class _InPlace:
    """The device works on host memory."""

    def __init__(self, cl, context, queue):
        self.cl, self.queue = cl, queue
        self.retired: list = []

    def views(self, views, frame) -> dict:
        """Pointers by view; the frame's pointer slots become byte offsets from them."""
        out = {}
        for v in views:
            low, high = _span(v, frame)
            block = np.zeros(64, np.uint8) if low == high else np.ctypeslib.as_array((ctypes.c_uint8 * (high - low)).from_address(low))
            frame[v["slot"]] = int(frame[v["slot"]]) - low
            out[v["name"]] = self.cl.SVM(block)
        return out

    def share(self, array):
        return self.cl.SVM(array)

    def fetch(self, shared, array) -> None:
        self.queue.finish()

    def send(self, shared, array) -> None:
        pass

    def allocate(self, size: int):
        return self.cl.SVM(np.empty(max(size, 64) + 64, np.uint8))

    def retire(self, memory) -> None:
        self.retired.append(memory)                          # kernels may still use it

    def give_back(self) -> None:
        pass


class _Copies:
    """The device has memory of its own. Views whose bytes overlap share a buffer."""

    def __init__(self, cl, context, queue):
        self.cl, self.context, self.queue = cl, context, queue
        self.retired: list = []
        self.returns: list = []

    def views(self, views, frame) -> dict:
        out: dict = {}
        cluster: list = []
        end = 0
        for low, high, v in sorted(((*_span(v, frame), v) for v in views), key=lambda t: t[:2]):
            if cluster and low >= end:
                self._share(cluster, end, frame, out)
                cluster = []
            end = max(high, end) if cluster else high
            cluster.append((low, v))
        if cluster:
            self._share(cluster, end, frame, out)
        return out

    def _share(self, cluster, end: int, frame, out) -> None:
        start = cluster[0][0]
        buffer = self.allocate(end - start)
        if end > start:
            host = np.ctypeslib.as_array((ctypes.c_uint8 * (end - start)).from_address(start))
            self.cl.enqueue_copy(self.queue, buffer, host, is_blocking=True)
            if any(v["written"] for _, v in cluster):
                self.returns.append((host, buffer))
        for _, v in cluster:
            frame[v["slot"]] = int(frame[v["slot"]]) - start
            out[v["name"]] = buffer

    def share(self, array):
        buffer = self.allocate(array.nbytes)
        self.send(buffer, array)
        return buffer

    def fetch(self, shared, array) -> None:
        self.cl.enqueue_copy(self.queue, array, shared, is_blocking=True)

    def send(self, shared, array) -> None:
        self.cl.enqueue_copy(self.queue, shared, array, is_blocking=True)

    def allocate(self, size: int):
        return self.cl.Buffer(self.context, self.cl.mem_flags.READ_WRITE, max(size, 64))

    def retire(self, memory) -> None:
        self.retired.append(memory)

    def give_back(self) -> None:
        for host, buffer in self.returns:
            self.cl.enqueue_copy(self.queue, host, buffer, is_blocking=True)
