"""Generated programs are data: they save, load and say how they are launched."""
from __future__ import annotations

import ctypes

import numpy as np
import pytest

import intent_numba as intent
from intent_numba.targets.cpu import load_object

from . import kernels


@pytest.fixture(scope="module")
def program():
    return intent.generate(kernels.scale, target="cpu")


def test_contents(program):
    assert "define" in program.text and program.kir.startswith("kernel scale(") and len(program.binary) > 100
    assert program.interface["extents"] == {"M": ["x", 0], "N": ["x", 1]}
    assert [p["name"] for p in program.interface["parameters"]] == ["x", "s", "y"]
    assert program.interface["parameters"][2] == {"name": "y", "kind": "view", "dtype": "f32", "shape": ["M", "N"], "access": "out"}


def test_saving_and_loading(program, tmp_path):
    assert intent.GeneratedProgram.load(program.save(tmp_path / "deep" / "scale")) == program
    (tmp_path / "deep" / "scale" / "program.kir").write_text("kernel other")
    with pytest.raises(intent.IntentError, match="belong together"):
        intent.GeneratedProgram.load(tmp_path / "deep" / "scale")


def test_the_described_frame_launches_the_binary(program):
    x, y = np.arange(6, dtype="f4").reshape(2, 3), np.zeros((2, 3), "f4")
    slots = {"threads": 1, "s": int(np.float32(2).view("u4"))}
    for name, a in (("x", x), ("y", y)):
        slots[f"{name}.data"] = a.ctypes.data
        slots.update({f"{name}.shape[{i}]": n for i, n in enumerate(a.shape)})
        slots.update({f"{name}.strides[{i}] (elements)": s // a.itemsize for i, s in enumerate(a.strides)})
    layout = program.interface["launch"]["frame"]
    frame = (ctypes.c_int64 * len(layout))(*(slots[name] for name in layout))
    code = load_object(program.binary, program.interface["symbol"])
    assert ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(code.address)(ctypes.addressof(frame)) == 0
    assert np.array_equal(y, x * 2)


def test_constexprs_and_targets():
    text = intent.generate(kernels.modes, constexprs={"NEGATE": True}).interface["constexprs"]
    assert text["NEGATE"] == "True" and "DOUBLE" in text["mode"]
    with pytest.raises(intent.UnsupportedError):
        intent.generate(kernels.scale, target="nothing")
