"""What does a kernel become for a machine that is not here? ``intent.generate``: text, object code and interface as data.

No device and no arrays are needed; extents stay symbolic. A program is saved as a directory of plain files.
"""
from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from ..errors import IntentError, UnsupportedError
from . import targets
from .artifact import Artifact
from .interface import Interface
from .tracebacks import entry

_FACTS, _KIR, _TEXT, _BINARY = "program.json", "program.kir", "program.txt", "program.bin"


@dataclass(frozen=True)
class GeneratedProgram:
    """``text``: what the target's tools read (PTX for CUDA, else LLVM text). ``binary``: its object code. ``kir``: the program's meaning.
    ``interface``: kernel, entry symbol, parameters with dtypes, shapes and access, and how the entry is launched."""
    name: str
    target: str
    text: str
    binary: bytes
    kir: str
    interface: dict

    def save(self, directory) -> Path:
        """Write the program into a directory, which is made if need be. Returns its path."""
        place = Path(directory)
        place.mkdir(parents=True, exist_ok=True)
        (place / _KIR).write_text(self.kir, encoding="utf-8")
        (place / _TEXT).write_text(self.text, encoding="utf-8")
        (place / _BINARY).write_bytes(self.binary)
        facts = {"name": self.name, "target": self.target, "interface": self.interface, "checksum": self._checksum()}
        (place / _FACTS).write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
        return place

    @staticmethod
    def load(directory) -> "GeneratedProgram":
        """Read what ``save`` wrote. Raises OSError for a missing file, IntentError for files that do not belong together."""
        place = Path(directory)
        facts = json.loads((place / _FACTS).read_text(encoding="utf-8"))
        program = GeneratedProgram(facts["name"], facts["target"], (place / _TEXT).read_text(encoding="utf-8"),
                                   (place / _BINARY).read_bytes(), (place / _KIR).read_text(encoding="utf-8"), facts["interface"])
        if program._checksum() != facts["checksum"]:
            raise IntentError(f"{place}: the files of this generated program do not belong together")
        return program

    def _checksum(self) -> str:
        digest = hashlib.sha256()
        for part in (self.kir.encode(), self.text.encode(), self.binary):
            digest.update(len(part).to_bytes(8, "little") + part)
        return digest.hexdigest()


@entry
def generate(kernel, target: str | None = None, constexprs: dict | None = None, options=None) -> GeneratedProgram:
    """Generate code without loading it anywhere. Arguments and errors are those of ``intent.compile``; a target of which there is no
    device here, such as "cuda:sm_90", will do."""
    from .kernel import specialise
    if getattr(options, "checks", False):
        raise UnsupportedError("a generated program carries no checks: a rehearsal needs the host; compile with checks=True here instead")
    artifact = specialise(kernel, targets.resolve(target), constexprs, options)
    compiled = artifact._build.compiled()
    text = artifact.inspect("ptx" if hasattr(compiled.code, "ptx") else "llvm")
    return GeneratedProgram(artifact.__name__, artifact.target, text, compiled.code.object_code(), compiled.kir,
                            _describe(artifact, compiled))


def _describe(artifact: Artifact, compiled) -> dict:
    launch = _launch(artifact, compiled.code)
    return {
        "kernel": artifact.__name__,
        "symbol": compiled.symbol if launch["entry"] else None,
        "constexprs": {name: str(value) for name, value in artifact.constexprs.items()},
        "parameters": [_parameter(p) for p in artifact.interface.runtime],
        "extents": {name: list(where) for name, where in artifact.interface.symbols.items()},
        "launch": launch,
    }


def _launch(artifact: Artifact, code) -> dict:
    """How the program is started: its entry, and how a host enqueues the stages, for targets that have a host's part."""
    facts = {"entry": "int32_t entry(int64_t *frame)", "status": {"0": "done", "1": "no memory", "2": "integer overflow"},
             "frame": _frame(artifact.interface)}
    plan = getattr(code, "plan", None)
    return facts if plan is None else {**facts, **getattr(code, "launch", {}), "plan": plan}


def _parameter(p) -> dict:
    if p.kind == "scalar":
        return {"name": p.name, "kind": "scalar", "dtype": p.dt}
    return {"name": p.name, "kind": "view", "dtype": p.dt, "shape": list(p.shape), "access": p.access}


def _frame(interface: Interface) -> list[str]:
    """What every 8-byte slot of the frame holds."""
    slots = ["threads"]
    for p in interface.runtime:
        slots.append(f"{p.name}.data" if p.kind == "view" else p.name)
        if p.kind == "view":
            slots += [f"{p.name}.shape[{i}]" for i in range(len(p.shape))]
            slots += [f"{p.name}.strides[{i}] (elements)" for i in range(len(p.shape))]
    return slots
